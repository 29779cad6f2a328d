"""How an array lies in memory, and where."""

from __future__ import annotations

import ctypes

import numpy as np

from jitlab.targets.cpu_llvm.entry import layout_is_known
from jitlab.targets.cpu_llvm.entry_code import DATA

#: How an array lies in memory, in words.
LAYOUTS = {"C": "row by row", "F": "column by column", "R": "rows apart", "S": "strided"}


def address_of(array: np.ndarray) -> int:
    """Where an array's first element lies."""
    return int(array.ctypes.data)


def _address_by_layout(array: np.ndarray) -> int:
    """The same, read from the array object: several times as fast."""
    return _word(id(array) + DATA).value


_word = ctypes.c_int64.from_address
if layout_is_known():
    address_of = _address_by_layout  # noqa: F811


def layout_of(array: np.ndarray) -> str:
    """ "C" contiguous, "F" column-major, "R" contiguous rows apart, "S" other strides, "" what has to be copied first."""
    flags = array.flags
    if not flags.aligned or not array.dtype.isnative:
        return ""
    if flags.c_contiguous:
        return "C"
    if flags.f_contiguous:
        return "F"
    size = array.itemsize
    if any(stride % size for stride in array.strides):
        return ""
    strides = [s // size for s in array.strides]
    if array.shape[-1] <= 1 or strides[-1] == 1:
        reach = array.shape[-1]
        for n, stride in zip(array.shape[-2::-1], strides[-2::-1], strict=True):
            if n > 1 and stride < reach:
                return "S"
            reach = max(reach, stride * n) if n > 1 else reach
        return "R"
    return "S"

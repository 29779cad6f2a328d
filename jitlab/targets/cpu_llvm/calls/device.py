"""The processor's memory: NumPy's arrays, how they lie in it and where, and recycled blocks for results."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from jitlab.targets.target import Device

from . import host_calls, shelves
from .argument_code import DATA
from .buffers import pool
from .entry import layout_is_known


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


def may_store_into(array: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    """Is it memory that a cluster can write: each element once, and apart from its other inputs?"""
    if not array.flags.writeable:
        return False
    reach = array.itemsize
    for stride, n in sorted((abs(stride), n) for stride, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return False  # elements that overlap one another
        reach = stride * (n - 1) + reach
    return not any(np.may_share_memory(array, other) for other in others)


def trim() -> None:
    """Give memory that is kept for later arrays back to the system."""
    pool.trim()
    shelves.trim()


class Memory(Device):
    """The processor's. Its methods are the functions above where a launch asks for them: one Python call each."""

    array_type = np.ndarray
    array = staticmethod(np.asarray)  # type: ignore[assignment]
    layout_of = staticmethod(layout_of)
    contiguous = staticmethod(np.ascontiguousarray)  # type: ignore[assignment]
    empty = staticmethod(pool.empty)
    may_store_into = staticmethod(may_store_into)
    trim = staticmethod(trim)
    raised = staticmethod(host_calls.raised)

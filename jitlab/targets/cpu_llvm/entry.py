"""The C function behind a warm call: checks exact arguments, makes the results, runs the machine code.

It knows the layout of NumPy's array object (public through its macros and stable in 2.x); `layout_is_known` verifies that on
a real array first. Whatever differs from the one signature it was made for goes on to `self`, the Python way.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from . import machine
from .entry_code import DATA, DESCR, DIMS, FLAGS, HEAD, NDIM, NEW_FROM_DESCR, WANTED_FLAGS, Warm, entry_text

FASTCALL_KEYWORDS = 0x82


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("meth", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


def make_entry(warm: Warm, busy: ctypes.c_int64, calls: ctypes.c_int64, otherwise: Any, name: str) -> tuple[Any, Any]:
    """A builtin function for warm calls, and what has to live as long as it does.

    It calls `otherwise` with the same arguments when anything differs, or `busy` is not 0. `calls` counts what it answers.
    While somebody takes notes it notes each call, and its first one goes on to `otherwise`.
    """
    text = entry_text(warm, ctypes.addressof(busy), ctypes.addressof(calls), _api())
    loaded = machine.load(machine.compile_object(text, "quick"), ["warm"])
    definition = _MethodDef(name.encode(), loaded.address("warm"), FASTCALL_KEYWORDS, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    function = new(ctypes.addressof(definition), otherwise, None)
    return function, (definition, loaded, warm, busy, calls)


@cache
def layout_is_known() -> bool:
    """Does an array object of this process look as the emitted code expects? False leaves every call to Python."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or not sys.byteorder == "little":
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    array = np.zeros((3, 5), np.float32)
    try:
        api = _api()
    except (AttributeError, ValueError):
        return False

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(id(array) + offset).value

    dims = (ctypes.c_int64 * 2).from_address(word(DIMS))
    return bool(
        api[NEW_FROM_DESCR]
        and word(HEAD - 8) == id(np.ndarray)
        and word(DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(id(array) + NDIM).value == 2
        and tuple(dims) == (3, 5)
        and word(DESCR) == id(np.dtype(np.float32))
        and ctypes.c_int32.from_address(id(array) + FLAGS).value & WANTED_FLAGS == WANTED_FLAGS
    )


def _api() -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(
        pointer(np._core._multiarray_umath._ARRAY_API, None),  # type: ignore[attr-defined]
        ctypes.POINTER(ctypes.c_void_p),
    )

"""Arrays in a GPU's memory as DLPack capsules, by which JAX and others take them without a copy."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .device_array import DeviceArray

#: Of a dtype's kind the number that DLPack has for it.
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}

NAME = b"dltensor"  # of a capsule that nobody has taken


class _Tensor(ctypes.Structure):
    """DLManagedTensor, with the DLTensor that it begins with."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )  # fmt: skip


#: By address what a capsule points to, as long as somebody has it.
_held: dict[int, Any] = {}


def _deleted(address: int) -> None:
    """Who has taken it out of a capsule needs it no more."""
    _held.pop(address, None)


def _dropped(capsule: int) -> None:
    """A capsule goes; what nobody has taken out of it goes with it."""
    valid, pointer = _functions()[1:]
    if valid(capsule, NAME):
        _deleted(pointer(capsule, NAME))


_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DELETER, _DESTRUCTOR = _FUNCTION(_deleted), _FUNCTION(_dropped)  # C code calls them as long as the process lives


@cache
def _functions() -> tuple[Any, Any, Any]:
    """PyCapsule_New, PyCapsule_IsValid, PyCapsule_GetPointer."""
    api = ctypes.pythonapi
    kinds: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "New": (ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
        "IsValid": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)),
        "GetPointer": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)),
    }
    made = [ctypes.PYFUNCTYPE(result, *given)((f"PyCapsule_{name}", api)) for name, (result, given) in kinds.items()]
    return made[0], made[1], made[2]


def capsule_of(array: DeviceArray, device: tuple[int, int]) -> Any:
    """A capsule of an array on a device, as DLPack numbers those."""
    if array.is_readonly:
        raise BufferError("an array that nobody may store into has no DLPack capsule, which could not say so")
    count, size = array.ndim, array.dtype.itemsize
    shape = (ctypes.c_int64 * count)(*array.shape)
    strides = (ctypes.c_int64 * count)(*(step // size for step in array.strides))
    if any(step % size for step in array.strides):
        raise BufferError("DLPack counts strides in elements, and those of this array are parts of one")
    made = _Tensor(
        array.address, *device, count, CODES[array.dtype.kind], 8 * size, 1, ctypes.addressof(shape), ctypes.addressof(strides),
        0, None, ctypes.cast(_DELETER, ctypes.c_void_p),
    )  # fmt: skip
    address = ctypes.addressof(made)
    _held[address] = made, shape, strides, array
    return _functions()[0](address, NAME, ctypes.cast(_DESTRUCTOR, ctypes.c_void_p))

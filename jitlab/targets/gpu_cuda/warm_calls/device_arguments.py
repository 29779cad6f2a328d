"""The code that compares a call's arguments that are DeviceArrays, and where such an object has what."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.ir.plans.call_forms import ArrayOf
from jitlab.targets.cpu_llvm.calls.argument_code import Arguments
from jitlab.targets.cpu_llvm.calls.code_lines import HEAD
from jitlab.targets.gpu_cuda.device_array import DeviceArray
from jitlab.targets.gpu_cuda.device_blocks import Block

if TYPE_CHECKING:
    from jitlab.targets.gpu_cuda.gpu_driver import Driver

#: The slots of a DeviceArray that C code reads and fills in.
SLOTS = ("_driver", "owner", "address", "shape", "dtype", "is_readonly", "_stand_in", "_apart")


@cache
def places_of(kind: Any) -> dict[str, int]:
    """Where an object of a class with slots has each of them, in bytes from its start."""
    made = kind.__new__(kind)
    names = [name for name in kind.__slots__ if not name.startswith("__")]
    marks = {name: object() for name in names}
    for name, mark in marks.items():
        setattr(made, name, mark)
    words = range(HEAD, kind.__basicsize__, 8)
    found = {ctypes.c_int64.from_address(id(made) + at).value: at for at in words}
    places = {name: found[id(mark)] for name, mark in marks.items()}
    for name in names:
        delattr(made, name)
    return places


class DeviceArguments(Arguments):
    """Arrays of one driver, that lie row by row. `data`: their addresses."""

    driver: Driver

    def _array(self, found: str, wanted: ArrayOf) -> None:
        code, places = self.code, places_of(DeviceArray)
        self._type(found, DeviceArray)
        for name, value in (("_driver", self.driver), ("_apart", None), ("dtype", wanted.dtype)):
            code.check_same("ptr", code.at(found, places[name], "ptr"), code.object(value))
        shape, address = (code.at(found, places[name], "ptr") for name in ("shape", "address"))
        self._shape(shape, wanted.shape)
        self._type(address, int)
        number = code.call("PyLong_AsLongLong", f"ptr {address}")
        low = code.new(f"and i64 {number}, {np.dtype(wanted.dtype).itemsize - 1}")
        code.check(code.new(f"icmp eq i64 {low}, 0"))
        self.data[wanted.leaf] = code.new(f"inttoptr i64 {number} to ptr")

    def _shape(self, found: str, wanted: tuple[int, ...]) -> None:
        """The same tuple, or an equal one."""
        code, known = self.code, self.code.object(wanted)
        self._type(found, tuple)
        differs, after = code.label("shape"), code.label("shaped")
        same = code.new(f"icmp eq ptr {found}, {known}")
        code.lines += [f"  br i1 {same}, label %{after}, label %{differs}", f"{differs}:"]
        equal = code.call("PyObject_RichCompareBool", f"ptr {found}", f"ptr {known}", "i32 2")
        code.check_same("i32", equal, "1")
        code.lines += [f"  br label %{after}", f"{after}:"]


def slots_are_known() -> bool:
    """Do objects of these classes have their slots where C code looks for them?"""
    try:
        places = places_of(DeviceArray), places_of(Block)
    except (KeyError, AttributeError):
        return False
    return all(name in places[0] for name in SLOTS) and "address" in places[1]

"""Lines of LLVM code of a C function, and the table that it reads: addresses and sizes stand there, so that functions which do
the same are one code."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from types import CellType
from typing import Any

HEAD = object.__basicsize__
#: Where a tuple has its first item, a list has the place of its items, and bytes have theirs.
ITEMS, LIST_ITEMS, BYTES = tuple.__basicsize__, HEAD + 8, bytes.__basicsize__ - 1
#: Of what a C function is bound to, the items that the code itself reads: what else takes the call, and the table.
OTHERWISE, TABLE = ITEMS, ITEMS + 8

#: Functions of Python's that the code calls -> their type.
_FUNCTIONS = {
    "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)", "PyObject_CallNoArgs": "ptr (ptr)",
    "PyObject_Call": "ptr (ptr, ptr, ptr)", "PyObject_CallOneArg": "ptr (ptr, ptr)",
    "PyType_GenericAlloc": "ptr (ptr, i64)", "PyLong_AsLongLong": "i64 (ptr)",
    "PyObject_RichCompareBool": "i32 (ptr, ptr, i32)", "PyObject_IsTrue": "i32 (ptr)",
    "Py_IncRef": "void (ptr)", "Py_DecRef": "void (ptr)",
    "PyErr_CheckSignals": "i32 ()", "PyErr_Restore": "void (ptr, ptr, ptr)", "PyErr_Clear": "void ()",
    "PyContextVar_Get": "i32 (ptr, ptr, ptr)", "PyEval_SaveThread": "ptr ()", "PyEval_RestoreThread": "void (ptr)",
    "PyTuple_New": "ptr (i64)", "PyTuple_SetItem": "i32 (ptr, i64, ptr)", "PyList_New": "ptr (i64)",
    "PyList_SetItem": "i32 (ptr, i64, ptr)", "PyDict_New": "ptr ()", "PyDict_SetItem": "i32 (ptr, ptr, ptr)",
    "PyDict_Next": "i32 (ptr, ptr, ptr, ptr)", "PyDict_GetItemWithError": "ptr (ptr, ptr)",
    "PyFunction_GetCode": "ptr (ptr)", "PyFunction_GetDefaults": "ptr (ptr)", "PyFunction_GetKwDefaults": "ptr (ptr)",
    "PyNumber_Float": "ptr (ptr)", "PyNumber_Long": "ptr (ptr)",
    "llvm.memcpy.p0.p0.i64": "void (ptr, ptr, i64, i1)",
}  # fmt: skip


class Code:
    """Lines of a function, with numbered values and labels, and the words of its table."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rooms: list[str] = []  # memory of its own, at its beginning
        self.words: list[int] = []
        self.kept: list[Any] = []  # objects whose addresses are in the table
        self._called: set[str] = set()
        self._count = 0

    def new(self, text: str) -> str:
        """A new value that is `text`."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {text}")
        return f"%t{self._count}"

    def at(self, pointer: str, offset: int, type: str) -> str:
        """What stands `offset` bytes behind `pointer`."""
        return self.new(f"load {type}, ptr {self.behind(pointer, offset)}")

    def behind(self, pointer: str, offset: int) -> str:
        return self.new(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer

    def declare(self, function: str) -> None:
        """One of Python's functions is called."""
        self._called.add(function)

    def call(self, function: str, *values: str) -> str:
        """What one of Python's functions gives; `values` with their types."""
        self.declare(function)
        kind = _FUNCTIONS[function].partition(" ")[0]
        text = f"call {kind} @{function}({', '.join(values)})"
        if kind != "void":
            return self.new(text)
        self.lines.append(f"  {text}")
        return ""

    def label(self, name: str = "") -> str:
        self._count += 1
        return f"{name or 'on'}{self._count}"

    def begun(self, name: str) -> str:
        """A label that the lines so far lead to."""
        label = self.label(name)
        self.lines.append(f"  br label %{label}")
        return label

    def check(self, condition: str, otherwise: str = "slow") -> None:
        """Goes on where the condition holds, else with a label."""
        label = self.label()
        self.lines += [f"  br i1 {condition}, label %{label}, label %{otherwise}", f"{label}:"]

    def check_same(self, type: str, found: str, wanted: str) -> None:
        self.check(self.new(f"icmp eq {type} {found}, {wanted}"))

    def all(self, conditions: Sequence[str]) -> str:
        """Do all of them hold?"""
        held = conditions[0]
        for condition in conditions[1:]:
            held = self.new(f"and i1 {held}, {condition}")
        return held

    def room(self, type: str, align: int = 8) -> str:
        """Memory for as long as the function runs."""
        name = f"%room{len(self.rooms)}"
        self.rooms.append(f"  {name} = alloca {type}, align {align}")
        return name

    # ---- the table
    def word(self, value: int, type: str = "i64") -> str:
        """A word of the table."""
        return self.at("%table", self._placed([value]), type)

    def pointer(self, address: int) -> str:
        return self.word(address, "ptr")

    def object(self, value: Any) -> str:
        """The address of an object, which stays."""
        self.kept.append(value)
        return self.pointer(id(value))

    def words_at(self, values: Sequence[int]) -> str:
        """The address of words of the table, in order."""
        return self.behind("%table", self._placed(values))

    def function(self, address: int, type: str, *values: str) -> str:
        """What the function at an address gives."""
        return self.new(f"call {type} {self.pointer(address)}({', '.join(values)})")

    def _placed(self, values: Sequence[int]) -> int:
        at = 8 * len(self.words)
        self.words += values or [0]
        return at

    def text(self, name: str) -> str:
        """The module of one function, which is called as Python calls: with what it is bound to, arguments, their number, and
        the names of the last ones."""
        declared = []
        for function in sorted(self._called):
            kind, _, values = _FUNCTIONS[function].partition(" ")
            declared.append(f"declare {kind} @{function}{values}")
        begin = [f"define ptr @{name}(ptr %self, ptr %args, i64 %given, ptr %names) {{", "entry:", *self.rooms]
        begin += [f"  %held = getelementptr i8, ptr %self, i64 {TABLE}", "  %bytes = load ptr, ptr %held"]
        begin += [f"  %table = getelementptr i8, ptr %bytes, i64 {BYTES}"]
        return "\n".join([*declared, *begin, *self.lines, "}"])


def are_known() -> bool:
    """Do lists, tuples, dicts, bytes and numbers look as the code takes them to?"""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return False
    held: tuple[Any, ...] = ([1, 2, 3], (1, 2), {1: 1})
    lengths = [_word(id(x) + HEAD) for x in held]
    items = _word(id(held) + ITEMS), _word(_word(id(held[0]) + LIST_ITEMS) + 8)
    numbers = _word(id(2.5) + HEAD) == 0x4004000000000000 and _word(id(1 + 2.5j) + HEAD + 8) == 0x4004000000000000
    cell = CellType(held)
    is_text = _word(id(cell) + HEAD) == id(held) and ctypes.string_at(id(b"jit") + BYTES, 3) == b"jit"
    return lengths == [3, 2, 1] and items == (id(held[0]), id(held[0][1])) and numbers and is_text


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value

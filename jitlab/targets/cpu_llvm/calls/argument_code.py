"""The code that compares the arguments of a call with a form: what differs goes on to `slow`. No code of Python's runs in it,
so nothing changes meanwhile."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from types import CellType
from typing import Any

import numpy as np

from jitlab.ir.plans.call_forms import (
    Absent,
    Again,
    ArrayOf,
    CallForm,
    Defaults,
    Equal,
    Holding,
    Is,
    Named,
    NumberOf,
    OfType,
    Standing,
)

from .code_lines import HEAD, ITEMS, LIST_ITEMS, Code

#: Where an array object has what.
DATA, NDIM, DIMS, STRIDES, DESCR, FLAGS = (HEAD + k for k in (0, 8, 16, 24, 40, 48))
#: Its flags, by their bits: row by row, aligned, writeable, and that who writes is warned.
ROWS, ALIGNED, WRITEABLE, WARNS = 0x1, 0x100, 0x400, 1 << 31


class Arguments:
    """The code that compares a call, and what it finds: of each leaf the object and its data, of containers the object."""

    def __init__(self, code: Code, form: CallForm) -> None:
        self.code, self.form = code, form
        self.objects: dict[Any, str] = {}
        self.data: dict[int, str] = {}
        self.held: list[int] = []
        self._arrays: dict[int, ArrayOf] = {}
        self._written = {leaf for leaf, _ in form.writes}
        self._is_inside = False
        self._again: list[tuple[int, int]] = []

    def check(self) -> None:
        code, form = self.code, self.form
        code.check_same("i64", "%given", str(form.given))
        if form.names:
            code.check(code.new("icmp ne ptr %names, null"))
            code.check_same("i64", code.at("%names", HEAD, "i64"), str(len(form.names)))
            for number, name in enumerate(form.names):
                code.check_same("ptr", code.at("%names", ITEMS + 8 * number, "ptr"), code.object(name))
        else:
            code.check_same("ptr", "%names", "null")
        for read in form.reads:
            if isinstance(read, Defaults):
                self._defaults(read)
            elif isinstance(read, Standing):
                self._value(code.object(read.value), read.what)
            else:
                self._name(read)
        for number, wanted in enumerate(form.values):
            self._value(code.at("%args", 8 * number, "ptr"), wanted)
        for leaf, first in self._again:
            code.check_same("ptr", self.objects[leaf], self.objects[first])
            self.data[leaf] = self.data[first]
        for one, other in form.distinct:
            code.check(code.new(f"icmp ne ptr {self.objects[one]}, {self.objects[other]}"))
        if form.is_whole:
            self._check_memory()

    def hold(self) -> list[str]:
        """From here on leaves that nobody but a container or a name keeps stay until the call ends: new references."""
        held = [self.objects[leaf] for leaf in self.held]
        for found in held:
            self.code.call("Py_IncRef", f"ptr {found}")
        return held

    def _name(self, read: Named) -> None:
        code = self.code
        table = code.object(read.table)
        if isinstance(read.table, CellType):
            found = code.at(table, HEAD, "ptr")
        else:
            found = code.call("PyDict_GetItemWithError", f"ptr {table}", f"ptr {code.object(read.name)}")
        if isinstance(read.what, Absent):
            code.check_same("ptr", found, "null")
            return
        code.check(code.new(f"icmp ne ptr {found}, null"), "absent")
        self._is_inside = True
        self._value(found, read.what)
        self._is_inside = False

    def _defaults(self, wanted: Defaults) -> None:
        code, function = self.code, self.code.object(wanted.function)
        found = code.call("PyFunction_GetDefaults", f"ptr {function}")
        code.check_same("ptr", found, "null" if wanted.positional is None else code.object(wanted.positional))
        found = code.call("PyFunction_GetKwDefaults", f"ptr {function}")
        if not wanted.named:
            code.check_same("ptr", found, "null")
            return
        code.check(code.new(f"icmp ne ptr {found}, null"))
        code.check_same("i64", code.at(found, HEAD, "i64"), str(len(wanted.named)))
        self._items_of_dict(found, wanted.named, [Is(value) for value in wanted.named.values()])

    def _value(self, found: str, wanted: Any) -> None:
        if isinstance(wanted, Is):
            self.code.check_same("ptr", found, self.code.object(wanted.value))
            if wanted.code is not None:
                own = self.code.call("PyFunction_GetCode", f"ptr {found}")
                self.code.check_same("ptr", own, self.code.object(wanted.code))
        elif isinstance(wanted, Equal):
            self._equal(found, wanted.value)
        elif isinstance(wanted, Holding):
            self._holding(found, wanted)
        else:
            self._leaf(found, wanted)

    def _leaf(self, found: str, wanted: ArrayOf | Again | NumberOf | OfType) -> None:
        if self._is_inside:
            self.held.append(wanted.leaf)
        self.objects[wanted.leaf] = found
        if isinstance(wanted, ArrayOf):
            self._array(found, wanted)
        elif isinstance(wanted, OfType):
            self._type(found, wanted.kind)
        elif isinstance(wanted, Again):
            self._again.append((wanted.leaf, wanted.first))
        else:
            self._type(found, wanted.kind)
            if wanted.value is not None:
                self._same_bits(found, struct.pack("d", wanted.value))
            self.data[wanted.leaf] = self.code.behind(found, HEAD)

    def _type(self, found: str, kind: type) -> None:
        self.code.check_same("ptr", self.code.at(found, HEAD - 8, "ptr"), self.code.object(kind))

    def _array(self, found: str, wanted: ArrayOf) -> None:
        code, new, at, leaf = self.code, self.code.new, self.code.at, wanted.leaf
        self._arrays[leaf] = wanted
        self._type(found, np.ndarray)
        flags = ALIGNED | (0 if wanted.strides is not None else ROWS)
        mask = flags
        if leaf in self._written:
            flags, mask = flags | WRITEABLE, mask | WRITEABLE | WARNS
        kept = new(f"and i32 {at(found, FLAGS, 'i32')}, {mask}")
        conditions = [
            new(f"icmp eq ptr {at(found, DESCR, 'ptr')}, {code.object(wanted.dtype)}"),
            new(f"icmp eq i32 {at(found, NDIM, 'i32')}, {len(wanted.shape)}"),
            new(f"icmp eq i32 {kept}, {flags}"),
        ]
        code.check(code.all(conditions))
        fits = []
        for offset, numbers in ((DIMS, wanted.shape), (STRIDES, wanted.strides or ())):
            place = at(found, offset, "ptr") if numbers else ""
            fits += [new(f"icmp eq i64 {at(place, 8 * n, 'i64')}, {code.word(value)}") for n, value in enumerate(numbers)]
        if fits:
            code.check(code.all(fits))
        self.data[leaf] = at(found, DATA, "ptr")

    def _equal(self, found: str, value: Any) -> None:
        """No method of a class of the user's is called: the type is Python's own."""
        code, kind = self.code, type(value)
        if value is None or value is ... or kind is bool:
            code.check_same("ptr", found, code.object(value))
            return
        self._type(found, kind)
        if kind is float or kind is complex:
            self._same_bits(found, struct.pack("d", value) if kind is float else struct.pack("dd", value.real, value.imag))
            return
        same = code.call("PyObject_RichCompareBool", f"ptr {found}", f"ptr {code.object(value)}", "i32 2")  # ==
        code.check_same("i32", same, "1")

    def _same_bits(self, found: str, bits: bytes) -> None:
        for number, (word,) in enumerate(struct.iter_unpack("q", bits)):
            self.code.check_same("i64", self.code.at(found, HEAD + 8 * number, "i64"), self.code.word(word))

    def _holding(self, found: str, wanted: Holding) -> None:
        code, was_inside = self.code, self._is_inside
        self.objects["container", wanted.number] = found
        self._type(found, wanted.kind)
        code.check_same("i64", code.at(found, HEAD, "i64"), str(len(wanted.items)))
        self._is_inside = True
        if wanted.kind is dict:
            self._items_of_dict(found, wanted.names, wanted.items)
        elif wanted.items:
            items = code.at(found, LIST_ITEMS, "ptr") if wanted.kind is list else code.behind(found, ITEMS)
            for number, item in enumerate(wanted.items):
                self._value(code.at(items, 8 * number, "ptr"), item)
        self._is_inside = was_inside

    def _items_of_dict(self, found: str, names: Iterable[str], items: Iterable[Any]) -> None:
        """The names are the same objects, in the same order: nothing is asked whether it equals another."""
        code = self.code
        at, key, value = (code.room(kind) for kind in ("i64", "ptr", "ptr"))
        code.lines.append(f"  store i64 0, ptr {at}")
        for name, item in zip(names, items, strict=True):
            more = code.call("PyDict_Next", f"ptr {found}", f"ptr {at}", f"ptr {key}", f"ptr {value}")
            code.check_same("i32", more, "1")
            code.check_same("ptr", code.new(f"load ptr, ptr {key}"), code.object(name))
            self._value(code.new(f"load ptr, ptr {value}"), item)

    def _check_memory(self) -> None:
        """What is written shares no memory with another input, as far as their first and last bytes tell."""
        bounds: dict[int, tuple[str, str]] = {}
        pairs = set()
        for leaf, _ in self.form.writes:
            for other in self.form.inputs:
                if other != leaf and other in self._arrays:
                    pairs.add((min(leaf, other), max(leaf, other)))
        for pair in sorted(pairs):
            for leaf in pair:
                if leaf not in bounds:
                    bounds[leaf] = self._bounds(self._arrays[leaf])
            (low, high), (other_low, other_high) = (bounds[leaf] for leaf in pair)
            before = self.code.new(f"icmp ule ptr {high}, {other_low}")
            after = self.code.new(f"icmp ule ptr {other_high}, {low}")
            self.code.check(self.code.new(f"or i1 {before}, {after}"))

    def _bounds(self, array: ArrayOf) -> tuple[str, str]:
        low, high = span(array)
        data, code = self.data[array.leaf], self.code
        return tuple(code.new(f"getelementptr i8, ptr {data}, i64 {code.word(n)}") for n in (low, high))  # type: ignore[return-value]


def span(array: ArrayOf) -> tuple[int, int]:
    """Where its memory begins and ends, in bytes from its first element."""
    if 0 in array.shape:
        return 0, 0
    steps: Sequence[int] | None = array.strides
    if steps is None:
        size = array.dtype.itemsize
        for n in array.shape:
            size *= n
        return 0, size
    ends = [step * (n - 1) for step, n in zip(steps, array.shape, strict=True)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + array.dtype.itemsize

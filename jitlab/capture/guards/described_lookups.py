"""What a lookup reads, told for machine code: of what a call's arguments hold, and under which names what has to stand."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from types import CellType
from typing import Any

import numpy as np

from jitlab.ir.plans.call_forms import Absent, Defaults, Equal, Is, Named, Standing

from .described_calls import VALUES, Described, Mark, Undescribed
from .gathering import Lookup, Read

_NAME = re.compile(r"(k\d+)(?:\['(\w+)'\]|\.cell_contents)")
_ARGUMENT = re.compile(r"a\[(\d+)\]")
_OF_NUMBER = re.compile(r"k\d+\(v(\d+)\)")


class DescribedLookup:
    """`inputs`: the leaf of each input; `reads`: the names. `marked`: the values of the parameters, with Marks for leaves."""

    def __init__(self, lookup: Lookup, described: Described, marked: Sequence[Any]) -> None:
        if lookup.does_more:
            raise Undescribed("a lookup does more than to compare")
        self.lookup, self.described, self.marked = lookup, described, marked
        self.inputs: dict[int, int] = {}
        self.reads: list[Named | Standing | Defaults] = [*described.standing]
        self.reads += [Defaults(f, *values) for f, values in lookup.defaults.items()]
        self._numbers: dict[int, int] = {}
        self._held: dict[str, Any] = {}  # what names hold, with Marks
        for found_in in lookup.attributes:
            for name, value in found_in.values.items():
                self.reads.append(Named(_table(found_in.table), name, Is(value) if found_in.text else Absent()))
        for read in lookup.reads:
            self._read(read)
        for n, text in lookup.computed.items():
            number = _OF_NUMBER.fullmatch(text)
            if number is None:
                raise Undescribed("an input is computed in Python")
            self.inputs[n] = self._numbers[int(number[1])]

    def inputs_of(self, found: Sequence[Any]) -> tuple[int, ...]:
        """The leaf of each input, where these were found for a call."""
        if len(self.inputs) < len(found):
            raise Undescribed("an input is found in Python")
        leaves = tuple(self.inputs[n] for n in range(len(found)))
        for leaf, input in zip(leaves, found, strict=True):
            value = self.described.leaves[leaf]
            if value is not input and not (type(value) is float and type(input) is np.float64):
                raise Undescribed("an input is found elsewhere")
        return leaves

    def leaf_of(self, place: Any) -> int:
        """The leaf of an input, by its number, or at a place."""
        return self.inputs[place] if isinstance(place, int) else self.leaf_at(place)

    def leaf_at(self, code: str) -> int:
        """The leaf at a place of the arguments, or of what a name holds."""
        name = _NAME.match(code)
        marked: Any
        marked, rest = (self.marked, code) if name is None else (self._held.get(name[0]), "a" + code[name.end() :])
        found = self.lookup.constants.function_of_arguments(rest)(marked)
        if not isinstance(found, Mark):
            raise Undescribed("an argument that is no array is given back")
        return self.described.first.get(found.leaf, found.leaf)

    def _read(self, read: Read) -> None:
        code = read.place.code
        name = _NAME.match(code)
        if read.kind == "typed" and (_ARGUMENT.fullmatch(code) or code in self._held):
            if not self.described.has_receiver(self.leaf_at(code), *read.want):
                raise Undescribed(f"{read.leaf.path} is read, too")
        elif name is not None and name[0] == code:
            self._named(read, self.lookup.constants.values[name[1]], name[2] or "")
        elif read.kind == "same" and len(read.want) == 2 and self.lookup.constants.values.get(code) is read.want[0]:
            self.reads.append(Standing(read.want[0], Is(*read.want)))  # a function: its code may be another one
        elif read.kind not in ("array", "number", "equal", "sized") or not (
            code.startswith("a[") or (name is not None and name[0] in self._held)
        ):
            raise Undescribed(f"{read.leaf.path} is read in Python")
        if read.input >= 0 or read.slot >= 0:
            self._bind(read, self.leaf_at(code))

    def _bind(self, read: Read, leaf: int) -> None:
        if read.slot >= 0:
            self._numbers[read.slot] = leaf
        elif self.inputs.setdefault(read.input, leaf) != leaf:
            raise Undescribed("two arrays were one")

    def _named(self, read: Read, table: Any, name: str) -> None:
        value = table.cell_contents if isinstance(table, CellType) else _table(table).get(name)
        what: Any
        if read.kind == "same" and (len(read.want) == 1 or isinstance(read.want[0], types.FunctionType)):
            what = Is(*read.want)
        elif read.kind == "equal" and type(value) in VALUES and read.want == (type(value), value):
            what = Equal(value)
        elif read.kind == "typed" and read.want == (type(value),):
            what, self._held[read.place.code] = self.described.receiver(value)
        elif read.kind in ("array", "number", "sized"):
            what, self._held[read.place.code] = self.described.value(value)
        else:
            raise Undescribed(f"{read.leaf.path} is read in Python")
        self.reads.append(Named(table, name, what))


def receivers_of(lookup: Lookup, values: Sequence[Any]) -> list[Any]:
    """The values of parameters that only get something."""
    places = (_ARGUMENT.fullmatch(read.place.code) for read in lookup.reads if read.kind == "typed")
    return [values[int(place[1])] for place in places if place is not None]


def _table(found: Mapping[str, Any]) -> dict[str, Any]:
    if type(found) is not dict:
        raise Undescribed("names of another kind of mapping")
    return found

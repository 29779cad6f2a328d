"""What a lookup reads, told for machine code: of what a call's arguments hold, and under which names what has to stand."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from typing import Any

from jitlab.ir.plans.call_forms import Defaults, Equal, Is, Named

from .described_calls import VALUES, Described, Mark, Undescribed
from .gathering import Lookup, Read

_GLOBAL = re.compile(r"(k\d+)\['(\w+)'\]")
_OF_NUMBER = re.compile(r"k\d+\(v(\d+)\)")


class DescribedLookup:
    """`inputs`: the leaf of each input; `reads`: the names. `marked`: the values of the parameters, with Marks for leaves."""

    def __init__(self, lookup: Lookup, described: Described, marked: Sequence[Any]) -> None:
        if lookup.does_more:
            raise Undescribed("a lookup does more than to compare")
        self.lookup, self.described, self.marked = lookup, described, marked
        self.inputs: dict[int, int] = {}
        self.reads: list[Named | Defaults] = [Defaults(f, *values) for f, values in lookup.defaults.items()]
        self._numbers: dict[int, int] = {}
        for found_in in lookup.attributes:
            for name, value in found_in.values.items():
                self.reads.append(Named(_table(found_in.table), name, Is(value)))
        for read in lookup.reads:
            self._read(read)
        for n, text in lookup.computed.items():
            number = _OF_NUMBER.fullmatch(text)
            if number is None:
                raise Undescribed("an input is computed in Python")
            self.inputs[n] = self._numbers[int(number[1])]

    def leaf_at(self, code: str) -> int:
        """The leaf at a place of the arguments."""
        found = self.lookup.constants.function_of_arguments(code)(self.marked)
        if not isinstance(found, Mark):
            raise Undescribed("an argument that is no array is given back")
        return self.described.first.get(found.leaf, found.leaf)

    def _read(self, read: Read) -> None:
        name = _GLOBAL.fullmatch(read.place.code)
        if name is not None:
            self._global(read, _table(self.lookup.constants.values[name[1]]), name[2])
        elif not read.place.code.startswith("a[") or read.kind not in ("array", "number", "equal", "sized"):
            raise Undescribed(f"{read.leaf.path} is read in Python")
        elif read.input >= 0 or read.slot >= 0:
            self._bind(read, self.leaf_at(read.place.code))

    def _bind(self, read: Read, leaf: int) -> None:
        if read.slot >= 0:
            self._numbers[read.slot] = leaf
        elif self.inputs.setdefault(read.input, leaf) != leaf:
            raise Undescribed("two arrays were one")

    def _global(self, read: Read, table: dict[str, Any], name: str) -> None:
        value = table.get(name)
        what: Any
        if read.kind == "same" and (len(read.want) == 1 or isinstance(read.want[0], types.FunctionType)):
            what = Is(*read.want)
        elif read.kind == "equal" and type(value) in VALUES and read.want == (type(value), value):
            what = Equal(value)
        elif read.kind in ("array", "number"):
            what, mark = self.described.value(value)
            if not isinstance(mark, Mark):
                raise Undescribed(f"{name} is no float")
            self._bind(read, self.described.first.get(mark.leaf, mark.leaf))
        else:
            raise Undescribed(f"{name} is read in Python")
        self.reads.append(Named(table, name, what))


def _table(found: Mapping[str, Any]) -> dict[str, Any]:
    if type(found) is not dict:
        raise Undescribed("names of another kind of mapping")
    return found

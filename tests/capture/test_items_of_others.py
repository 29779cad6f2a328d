"""What an object of the user's holds is read at each call: sets, ordered dicts, deques, classes made of list or dict."""

from __future__ import annotations

import array
import collections.abc
import re
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X = np.arange(3.0) + 1


class Settings(dict):
    __getattr__ = dict.__getitem__


class Stack(list):
    def top(self):
        return self[-1]


class Names(set):
    pass


class Table(collections.abc.Mapping):
    def __init__(self):
        self.rows = {"a": 1.0}

    def __getitem__(self, key):
        return self.rows[key]

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)


HELD = []


def held_items():
    HELD.append({"a": 1.0})
    return HELD[-1].items()


def set_item(key, value):
    return lambda held: held.__setitem__(key, value)


def add(value):
    return lambda held: held.add(value)


def append(value):
    return lambda held: held.append(value)


def loop(x, held):
    for v in held:
        x = x * 2 + v
    return x


#: What there is, how it becomes another, and what a program reads of it.
CASES = {
    "a set: in": (lambda: {1}, add(3), lambda x, held: x * (3 in held)),
    "a set: bool": (set, add(3), lambda x, held: x if held else -x),
    "a set: len": (lambda: {1}, add(3), lambda x, held: x * len(held)),
    "a set: loop": (lambda: {1, 9, 17}, add(25), loop),
    "a set: union": (lambda: {1}, add(3), lambda x, held: (x, held | {2})),
    "a set: ==": (lambda: {1}, add(3), lambda x, held: x * (held == {1})),
    "a set: another kind": (lambda: {1, 2}, lambda held: (held.discard(1), held.add(True)), lambda x, held: [*held]),
    "a set: of objects": (lambda: {print}, add(len), lambda x, held: x * len(held)),
    "a set in a dict": (lambda: {"s": {1}}, lambda held: held["s"].add(2), lambda x, held: x * len(held["s"])),
    "a set of an attribute": (
        lambda: types.SimpleNamespace(s={1}), lambda held: held.s.add(2), lambda x, held: x * (2 in held.s),
    ),
    "an OrderedDict": (lambda: OrderedDict(a=1.0), set_item("a", 2.0), lambda x, held: x * held["a"]),
    "an OrderedDict: order": (
        lambda: OrderedDict(a=1.0, b=2.0), lambda held: held.move_to_end("a"), lambda x, held: loop(x, held.values()),
    ),
    "an OrderedDict of arrays": (
        lambda: OrderedDict(a=X), set_item("a", X + 1), lambda x, held: [x * v for v in held.values()],
    ),
    "a Counter": (lambda: Counter("aab"), lambda held: held.update("b"), lambda x, held: x * held["b"]),
    "a Counter: missing": (lambda: Counter("a"), lambda held: held.update("b"), lambda x, held: x * held["b"]),
    "a Counter: most": (lambda: Counter("aab"), lambda held: held.update("bbb"), lambda x, held: x * held.most_common(1)[0][1]),
    "a defaultdict": (lambda: defaultdict(float, a=1.0), set_item("a", 2.0), lambda x, held: x * held["a"]),
    "a defaultdict: missing": (lambda: defaultdict(list), set_item("a", [1]), lambda x, held: x * len(held["a"])),
    "a defaultdict: a copy": (
        lambda: defaultdict(list), set_item("a", [1]), lambda x, held: (x + 1, held.copy(), held.copy()["z"]),
    ),
    "a deque": (lambda: deque([1.0]), append(3.0), lambda x, held: x * held[-1]),
    "a deque: in": (lambda: deque([1.0]), append(3.0), lambda x, held: x * (3.0 in held)),
    "a deque: bool": (deque, append(3.0), lambda x, held: x if held else -x),
    "an array.array": (lambda: array.array("d", [1.0]), append(3.0), lambda x, held: x * held[-1]),
    "a bytearray": (lambda: bytearray([1]), append(3), lambda x, held: x * len(held)),
    "a memoryview": (lambda: memoryview(bytearray([1])), set_item(0, 3), lambda x, held: x * held[0]),
    "items of a dict": (held_items, lambda held: HELD[-1].update(b=2.0), lambda x, held: [x * v for _, v in held]),
    "a ChainMap": (lambda: ChainMap({"a": 1.0}), set_item("a", 2.0), lambda x, held: x * held["a"]),
    "a UserDict": (lambda: UserDict(a=1.0), set_item("a", 2.0), lambda x, held: x * held["a"]),
    "a UserList": (lambda: UserList([1.0]), append(2.0), lambda x, held: x * held[-1]),
    "a Mapping": (Table, lambda held: held.rows.update(b=3.0), lambda x, held: x * ("b" in held)),
    "a Mapping: get": (Table, lambda held: held.rows.update(b=3.0), lambda x, held: x * held.get("b", 0)),
    "a class of dict: attribute": (lambda: Settings(a=1.0), set_item("a", 2.0), lambda x, held: x * held.a),
    "a class of dict: len": (lambda: Settings(a=1.0), set_item("b", 2.0), lambda x, held: x * len(held)),
    "a class of dict: **": (lambda: Settings(a=1.0), set_item("a", 2.0), lambda x, held: (lambda a: x * a)(**held)),
    "a class of list: method": (lambda: Stack([1.0]), append(3.0), lambda x, held: x * held.top()),
    "a class of list: item": (lambda: Stack([1.0]), append(3.0), lambda x, held: x * held[-1]),
    "a class of list: sum": (lambda: Stack([1.0]), append(3.0), lambda x, held: x * sum(held)),
    "a class of list: np.array": (lambda: Stack([1.0]), append(3.0), lambda x, held: x[0] * np.array(held)),
    "a class of list: ==": (lambda: Stack([1.0]), append(3.0), lambda x, held: x * (held == [1.0])),
    "a class of set": (lambda: Names([1]), add(3), lambda x, held: x * (3 in held)),
}  # fmt: skip
#: What changes it inside the program.
WRITES = {
    "a set: add": (lambda: {1}, lambda x, held: (held.add(len(held) + 5), x * len(held))),
    "a set: |=": (lambda: {1}, lambda x, held: union_in_place(x, held)),
    "an OrderedDict": (lambda: OrderedDict(a=1.0), lambda x, held: (held.__setitem__("b", x.sum()), held["b"] * x)),
    "a Counter": (lambda: Counter("a"), lambda x, held: count(x, held)),
    "a defaultdict": (lambda: defaultdict(list), lambda x, held: (held["a"].append(len(held["a"])), x * len(held["a"]))),
    "a deque": (lambda: deque([1.0]), lambda x, held: (held.append(float(x[0])), x * len(held))),
    "a class of list": (lambda: Stack([1.0]), lambda x, held: (held.append(2.0), x * held.top())),
}


def union_in_place(x, held):
    held |= {len(held) + 10}
    return x * len(held)


def count(x, held):
    held["a"] += 1
    return x * held["a"]


def outcomes(call, make, change):
    held, found = make(), []
    for n in range(6):
        if n in (2, 4):
            change(held)
        found.append(without_addresses((call(X, held), held)))
    found.append(without_addresses((call(X, make()), held)))  # another of its kind
    return found


def without_addresses(x):
    return re.sub(" at 0x[0-9a-f]+", "", repr(x))


def as_cell(program):
    names = {"program": program}

    def call(x, held):
        names.update(x=x, held=held)
        run_cell("result = program(x, held)\nagain = result", names, "<cell>")
        return names["again"]

    return call


def as_global(program):
    """The object is found by a name instead of being passed."""
    names = {"program": program}
    exec("def f(x):\n    return program(x, held)", names)
    compiled = jl.jit(names["f"])

    def call(x, held):
        names["held"] = held
        return compiled(x)

    return call


WAYS = {"jit": jl.jit, "a cell": as_cell, "a global": as_global}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("case", CASES)
def test_what_an_object_holds_is_read_at_each_call(case, way):
    make, change, program = CASES[case]
    assert outcomes(way(program), make, change) == outcomes(program, make, change)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("case", WRITES)
def test_what_a_program_puts_into_an_object_is_there_once(case, way):
    make, program = WRITES[case]
    assert outcomes(way(program), make, lambda held: None) == outcomes(program, make, lambda held: None)


@pytest.mark.parametrize("held", [{1, 2}, OrderedDict(a=1.0), Counter("ab")], ids=lambda x: type(x).__name__)
def test_a_program_that_reads_a_set_or_a_dict_of_python_s_is_captured_whole(held):
    compiled = jl.jit(lambda x, held: np.sqrt(x) * len(held) + ("a" in held))
    compiled(X, held)
    assert "in pieces" not in str(compiled.ledger)


def test_a_miss_tells_the_items_of_a_set():
    compiled = jl.jit(lambda x, held: x * len(held))
    compiled(X, {1, 2})
    compiled(X, {1, 3})
    assert "`held` was set with items 1, 2 and is now set with items 1, 3" in str(compiled.ledger)

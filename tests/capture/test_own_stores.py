"""Stores that a class has code for (a property's setter, a descriptor, `__setattr__`, `__setitem__`) are made at each call."""

import linecache

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

CLASSES = """
import numpy as np

class Doubling:
    def __init__(self):
        self.stored, self.stores = 0.0, 0

    @property
    def value(self):
        return self.stored

    @value.setter
    def value(self, value):
        self.stored = value * 2
        self.stores += 1

    def __setitem__(self, key, value):
        self.stored = value + key

class Tripling:
    def __get__(self, owner, kind):
        return owner.__dict__["tripled"]

    def __set__(self, owner, value):
        owner.__dict__["tripled"] = value * 3

class Described:
    value = Tripling()

class Layer:
    def __init__(self, factor):
        self.names = []
        self.factor = factor

    def __setattr__(self, name, value):
        if name != "names":
            self.names.append(name)
            value = value * 5
        super().__setattr__(name, value)

    def __call__(self, x):
        self.last = x * self.factor
        return self.last + 1

    def __eq__(self, other):
        return np.equal(self.factor, other)

outside = Doubling()
"""
PROGRAMS = {
    "a property": "held = Doubling()\nheld.value = x\nresult = held.value, held.stores",
    "a property, +=": "held = Doubling()\nheld.value = x\nheld.value += x\nresult = held.value",
    "a property among targets": "held = Doubling()\nheld.value, other = x, 2\nresult = held.value * other",
    "setattr": "held = Doubling()\nsetattr(held, 'value', x)\nresult = held.value",
    "a property of an object from outside": "outside.value = x\nresult = outside.value + 1",
    "a descriptor": "held = Described()\nheld.value = x\nresult = held.value",
    "an item": "held = Doubling()\nheld[2] = x\nresult = held.value",
    "__setattr__": "held = Layer(2.0)\nheld.factor = x\nresult = held.factor, held.names",
    "__setattr__ in a call of an object with its own ==": "held = Layer(2.0)\nresult = held(x), held.last",
    "in an if": "held = Doubling()\nif x.sum() > 6:\n    held.value = x\nelse:\n    held.value = -x\nresult = held.value",
    "in a for": "held = Doubling()\nfor k in range(3):\n    held.value = x * k\nresult = held.value, held.stores",
    "in a while":
        "held = Doubling()\nheld.value = x + 1\nwhile held.value.sum() < 90:\n    held.value += 1\nresult = held.value",
}
INPUTS = [np.arange(3.0) + 1, np.arange(3.0) * 20, np.arange(4.0) * 2]


def as_function(name, how):
    file = f"<stores, {name}>"
    body = "".join(f"    {line}\n" for line in PROGRAMS[name].split("\n"))
    source = f"{CLASSES}\ndef program(x):\n{body}    return result\n"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"__name__": "stores"}
    exec(compile(source, file, "exec"), space)
    return how(space["program"])


def as_cell(name):
    file, space = f"<classes of stores, {name}>", {"__name__": "stores"}
    linecache.cache[file] = len(CLASSES), None, CLASSES.splitlines(True), file
    exec(compile(CLASSES, file, "exec"), space)

    def call(x):
        space["x"] = x
        run_cell(PROGRAMS[name], space, f"<stores, {name}>")
        return space["result"]

    return call


WAYS = {"function": lambda name: as_function(name, jl.function), "jit": lambda name: as_function(name, jl.jit), "cell": as_cell}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_store_that_a_class_has_code_for_is_made_at_each_call(name, way):
    plain, found = as_function(name, lambda f: f), WAYS[way](name)
    for x in INPUTS:
        for a, b in zip(parts(found(x.copy())), parts(plain(x.copy())), strict=True):
            np.testing.assert_array_equal(a, b)


def parts(result):
    return result if isinstance(result, tuple) else (result,)

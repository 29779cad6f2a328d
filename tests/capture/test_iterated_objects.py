"""What an object of the user's gives where Python iterates over it is asked at each call, wherever the object stands."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from collections import deque

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell


class Mapped:
    """What `dict` takes for a mapping."""

    def __init__(self):
        self.held = {"a": 1.0}

    def __getitem__(self, key):
        return self.held[key]

    def keys(self):
        return list(self.held)

    def grow(self):
        self.held["b"] = 2.0


class Iterated:
    def __init__(self):
        self.held = [1.0]

    def __iter__(self):
        return iter(list(self.held))

    def grow(self):
        self.held.append(2.0)


class Numbered:
    """By `__getitem__` alone."""

    def __init__(self):
        self.held = [1.0]

    def __getitem__(self, n):
        return self.held[n]

    def grow(self):
        self.held.append(2.0)


def weighted(a=0, b=0):
    return a + 10 * b


MAPPINGS = {
    "**": "y = x * sum({**held}.values())",
    "** beside a key": "y = x * sum({'c': 1.0, **held}.values())",
    "** of a call": "y = x * weighted(**held)",
    "** beside a keyword": "y = x * sum(dict(c=1.0, **held).values())",
    "dict": "y = x * sum(dict(held).values())",
    "update": "d = {}\nd.update(held)\ny = x * sum(d.values())",
    "|=": "d = {}\nd |= held\ny = x * sum(d.values())",
}
ITERABLES = {
    "extend": "items = []\nitems.extend(held)\ny = x * sum(items)",
    "+=": "items = []\nitems += held\ny = x * sum(items)",
    "set.update": "items = set()\nitems.update(held)\ny = x * sum(items)",
    "union": "y = x * sum({1.0}.union(held))",
    "a slice": "items = [0.0]\nitems[:] = held\ny = x * sum(items)",
    "an empty slice": "items = [0.0]\nitems[0:0] = held\ny = x * sum(items)",
    "max": "y = x * max(held)",
    "map": "y = x * sum(map(abs, held))",
    "sorted": "y = x * sorted(held)[-1]",
    "in": "y = x * (2.0 in held)",
    "not in": "y = x + 1 if 2.0 not in held else x",
    "a star": "y = x * sum([*held])",
    "dict.fromkeys": "y = x * len(dict.fromkeys(held, 1))",
    "extend a deque": "items = deque()\nitems.extend(held)\ny = x * len(items)",
    "in a loop": "items = []\nfor _ in range(2):\n    items += held\ny = x * sum(items)",
}
PROGRAMS = [(Mapped, name) for name in MAPPINGS] + list(itertools.product((Iterated, Numbered), ITERABLES))
SPACE = {"weighted": weighted, "deque": deque, "np": np, "__name__": "iterated"}


def as_function(body, how):
    file = f"<iterated, {hash(body)}>"
    source = f"def program(x, held):\n{textwrap.indent(body, '    ')}\n    return y\n"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = dict(SPACE)
    exec(compile(source, file, "exec"), space)
    return how(space["program"])


def as_cell(body):
    space = dict(SPACE)

    def call(x, held):
        space.update(x=x, held=held)
        run_cell(body, space, f"<iterated, a cell, {hash(body)}>")
        return space["y"]

    return call


def outcomes(call, held):
    found = []
    for n in range(5):
        if n == 2:
            held.grow()
        found.append(repr(call(np.arange(3.0) + 1, held)))
    return found


@pytest.mark.parametrize("way", ["jit", "cell"])
@pytest.mark.parametrize(("kind", "name"), PROGRAMS, ids=lambda x: getattr(x, "__name__", x))
def test_what_an_object_gives_where_python_iterates_over_it_is_asked_at_each_call(kind, name, way):
    body = (MAPPINGS if kind is Mapped else ITERABLES)[name]
    wanted = outcomes(as_function(body, lambda f: f), kind())
    assert outcomes(as_cell(body) if way == "cell" else as_function(body, jl.jit), kind()) == wanted
    assert len(set(wanted)) == 2


PLAIN = {
    "**": "y = x * sum({**{'a': 1.0}}.values())",
    "** of a call": "d = {'a': 1, 'b': 2}\ny = x * weighted(**d)",
    "extend": "items = []\nitems.extend([x, x + 1])\nitems += (x, x)\ny = np.stack(items)",
    "numbers": "y = x\nfor n in range(3):\n    y += n * x\n    y[1:] = x[1:] + n",
    "the caller's": "y = x * sum({**held}.values()) * max(held.values()) + weighted(**held) + ('a' in held)",
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_python_s_own_containers_hold_is_still_compiled_whole(name):
    x, held = np.arange(3.0), {"a": 2.0, "b": 3.0}
    result = as_function(PLAIN[name], lambda f: jl.jit(f, fullgraph=True))(x.copy(), held)
    np.testing.assert_array_equal(result, as_function(PLAIN[name], lambda f: f)(x.copy(), held))

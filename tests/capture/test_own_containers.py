"""Stores into lists, dicts and objects that a function makes, where a traced value decides: they are Python's."""

from __future__ import annotations

import types

import numpy as np
import pytest

import jitlab as jl
from tests.capture.same import assert_same

Count = np.int64


class Box:
    """Something with attributes."""


def in_both_branches(a):
    x = {"a": a}
    if x["a"] > 1:
        x["b"] = 1
    else:
        x["b"] = -1
    return x


def in_one_branch(a):
    x = {"a": a}
    if a > 1:
        x["b"] = 1
    return x


def an_item_of_a_list(a):
    x = [a, 0, *[5] * 2]
    if x[0] > 1:
        x[1] = 1
    else:
        x[-1] = -1
    return x


def an_attribute(a):
    x = Box()
    x.b = 0
    if a > 1:
        x.b = 1
    else:
        x.b = -1
    return x.b


def an_attribute_of_a_namespace(a):
    x = types.SimpleNamespace(n=0, rows=[])
    while a > 0:
        a = a - 1
        x.n += 1
        x.rows.append(x.n)
    return x.n, x.rows


def arrays(a):
    x = {"b": np.zeros(2)}
    if a > 1:
        x["b"] = np.ones(2)
    return x


def what_a_comprehension_made(a):
    x = [k for k in range(3)]
    if a > 1:
        x[1] = 9
    return x


def methods(a):
    x, y, z = [1], {"a": 1}, {1}
    if a > 1:
        x.append(2)
        y.update(b=2)
        z.add(2)
    else:
        x.insert(0, 3)
        y.pop("a")
    return x, y, len(z)


def in_a_while(a):
    y, n = {"a": 0}, [0]
    while a > 0:
        a = a - 1
        y["a"] += 1
        n[0] -= 2
    return y, n


def that_decides_itself(a):
    y = {"a": a, "b": a}
    while y["b"] <= 10:
        y["a"] += 1
        y["b"] = y["b"] * 2 + 1
    return y


def in_a_counted_loop(a):
    y = {"a": 0}
    for i in range(a):
        y["a"] += i
    return y


def over_an_array(a):
    y = [np.float64(0)]
    for v in np.arange(5.0) * a:
        y[0] = y[0] + v
    return y[0]


def in_a_loop_in_a_branch(a):
    y = []
    if a > 1:
        for i in range(3):
            y.append(i)
    return y


def in_a_helper(a):
    y = {}
    fill(y, a)
    return y


def fill(y, a):
    if a > 1:
        y["high"] = 1
    else:
        y["low"] = 2


def made_in_the_branch(a):
    if a > 1:
        y = [1, 2]
        y[0] = 7
    else:
        y = [3, 4]
        y[1] = 8
    return y


PROGRAMS = [
    in_both_branches, in_one_branch, an_item_of_a_list, an_attribute, an_attribute_of_a_namespace, arrays,
    what_a_comprehension_made, methods, in_a_while, that_decides_itself, in_a_counted_loop, over_an_array,
    in_a_loop_in_a_branch, in_a_helper, made_in_the_branch,
]  # fmt: skip


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_the_program_made_holds_what_python_put_there(program, decorate):
    traced = decorate(program)
    as_it_is = decorate is jl.jit
    for n in (3, 0, 1, 3):
        mine, theirs = traced(Count(n)), program(Count(n))
        assert_same(mine, theirs) if as_it_is else assert_same(with_scalars(mine), with_scalars(theirs))


def with_scalars(x):
    """As `function` gives it: Python's numbers are NumPy's."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(with_scalars, x))
    if isinstance(x, dict):
        return {key: with_scalars(value) for key, value in x.items()}
    return np.asarray(x)[()]


OUTSIDE = {"n": 0, "rows": [0]}


def store_outside(a):
    if a > 1:
        OUTSIDE["n"] += 1
        OUTSIDE["rows"].append(OUTSIDE["n"])
    while a > 0:
        a = a - 1
        OUTSIDE["n"] += 10
    return a


def test_what_is_stored_outside_happens_at_each_call_and_under_function_once_a_trace():
    def left(call):
        OUTSIDE.update(n=0, rows=[0])
        for n in (3, 0, 1, 3):
            call(Count(n))
        return OUTSIDE["n"], list(OUTSIDE["rows"])

    assert left(jl.jit(store_outside)) == left(store_outside)
    assert left(jl.function(store_outside)) == (11, [0, 1])

"""A value that equals the one a trace was made with is not always that one: 1, 1.0 and True, 0.0 and -0.0."""

from __future__ import annotations

import types

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X = np.full(3, 2.0)
NAMED = 0.0
KEYS: dict = {}
SETTINGS = types.ModuleType("settings")


class Model:
    rate = 0.0


MODEL = Model()


def helper(x, factor=1, *, shift=0):
    return x * factor, str(factor), str(shift)


def set_everywhere(value):
    global NAMED
    NAMED = SETTINGS.rate = Model.rate = MODEL.own = value
    helper.__defaults__, helper.__kwdefaults__ = (value,), {"shift": value}
    KEYS.clear()
    KEYS[value] = KEYS[value, "second"] = 1


def an_argument(x, value):
    return np.full(2, value), str(value)


def a_part_of_an_argument(x, value):
    return np.copysign(x, value.real), np.copysign(x, value.imag), str(value)


def an_item(x, value):
    items = {"value": [value]}
    return str(items["value"][0]), np.copysign(x, items["value"][0].real)


def a_name(x, value):
    return np.sum(-0.0 * x, initial=NAMED.real), str(NAMED)


def an_attribute(x, value):
    return str(SETTINGS.rate), str(Model.rate), str(MODEL.own), x * MODEL.own


def a_default(x, value):
    return helper(x)


def keys(x, value):
    return [x * key for key in KEYS if not isinstance(key, tuple)], str(list(KEYS))


def a_default_of_an_inner_function(x, value):
    def inner(a, b=value):
        return a * b

    return inner(x), str(inner.__defaults__)


BODIES = (an_argument, a_part_of_an_argument, an_item, a_name, an_attribute, a_default, keys, a_default_of_an_inner_function)
SIGNED = [(0.0, -0.0), (-0.0, 0.0), (0.0, 1.0, -0.0), (-0.0, 1.0, 0.0)]
PARTS = [(0j, complex(0, -0.0), complex(-0.0, 0), 0j), (complex(1, 0), complex(1, -0.0)), (complex(0, 1), complex(-0.0, 1))]
KINDS = [(1, 1.0, True), (True, 1, 1.0), (1.0, 1), (0, -0.0, False, 0.0), (0j, -0.0, 0), (np.float32(1), np.float64(1), 1)]


@pytest.mark.parametrize("values", [*SIGNED, *PARTS, *KINDS])
@pytest.mark.parametrize("body", BODIES)
def test_a_call_is_for_the_very_value_and_not_for_one_that_is_equal(body, values):
    compiled = jl.jit(body)
    for value in (*values, *values):
        set_everywhere(value)
        assert repr(compiled(X, value)) == repr(body(X, value)), value


@pytest.mark.parametrize("values", [*SIGNED, *PARTS, *KINDS])
def test_a_cell_is_for_the_very_value(values):
    space = {"np": np, "x": X}
    for value in (*values, *values):
        space["value"] = value
        run_cell("a = np.full(2, value); b = np.copysign(x, value.real); c = str(value)", space, filename="<cell>")
        found = space["a"], space["b"], space["c"]
        assert repr(found) == repr((np.full(2, value), np.copysign(X, value.real), str(value))), value


@pytest.mark.parametrize("wrap", [lambda v: {v: 1}, lambda v: frozenset((v,)), lambda v: [{v: 1}]])
@pytest.mark.parametrize("values", [*SIGNED, (1, 1.0, True), (True, 1, 1.0), (1.0, 1), (0, -0.0, False, 0.0)])
@pytest.mark.parametrize("compiler", [jl.jit, jl.function])
def test_keys_and_members_are_told_apart_as_values_are(compiler, values, wrap):
    def first(x, items):
        items = items[0] if isinstance(items, list) else items
        return x * next(iter(items))

    ones = np.ones(3, np.int64)
    compiled = compiler(first)
    for value in values:
        mine, theirs = np.asarray(compiled(ones, wrap(value))), first(ones, wrap(value))
        assert repr(mine) == repr(theirs), value


@pytest.mark.parametrize("make", [
    lambda x, v: np.full(3, v), lambda x, v: np.where(x > 5, 1, v), lambda x, v: np.pad(x, 1, constant_values=v),
    lambda x, v: np.nan_to_num(x / 0 * 0, nan=v), lambda x, v: np.clip(x - 2, v, None), lambda x, v: np.arange(v, 3),
    lambda x, v: np.linspace(v, 5, 3), lambda x, v: np.diff(x, prepend=v), lambda x, v: np.heaviside(x - 2, v),
    lambda x, v: np.array([v]), lambda x, v: x.astype(np.int64) ** v, lambda x, v: np.full_like(x, v), lambda x, v: [v, (v,)],
])  # fmt: skip
@pytest.mark.parametrize("values", [(0.0, -0.0), (-0.0, 0.0), (1, 1.0, True), (True, 1.0), (0, -0.0, False)])
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_one_program_holds_equal_values_side_by_side(make, values):
    def several(x):
        return [make(x, value) for value in values]

    assert repr(jl.jit(several)(X)) == repr(several(X))


NAN = float("nan")
IMAGINARY_NAN = complex(1, NAN)
NANS = [
    lambda x, n: x * NAN, lambda x, n: x * IMAGINARY_NAN, lambda x, n: (str(n), x), lambda x, n: x if n == n else x + 1,
]  # fmt: skip


@pytest.mark.parametrize("program", NANS)
def test_nan_is_the_nan_that_a_trace_was_made_with(program):
    compiled = jl.jit(program)
    for _ in range(3):
        compiled(np.ones(3), float("nan"))
    assert compiled.experimental_get_tracing_count() == 1

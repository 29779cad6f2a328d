"""Dispatch to the most specific trace, reduce_retracing: against the table, and against a model of it."""

from __future__ import annotations

import random

import numpy as np
import pytest

import jitlab as jl
from jitlab import TensorSpec

f32 = np.float32


def shapes_of(function):
    return [c.function_type.parameters[0].shape for c in function._concretes.values()]


@pytest.mark.parametrize(
    "called, traced",
    [
        ([(1,), (2,), (3,), (4, 4), (5, 5), (1,), (2, 3, 4)], [(1,), (None,), None]),
        ([(2, 3), (2, 4), (2, 5), (3, 4), (7, 7)], [(2, 3), (2, None), (None, None)]),
        ([(3,), (3,), (3,)], [(3,)]),
    ],
)
def test_shapes_widen_on_the_second_miss(called, traced):
    f = jl.function(lambda x: x * 2, reduce_retracing=True)
    for shape in called:
        assert f(np.ones(shape, f32)).shape == shape
    assert shapes_of(f) == traced
    assert f.experimental_get_tracing_count() == len(traced)


def test_other_dtypes_and_python_values_start_exact():
    f = jl.function(lambda x, n: x * n, reduce_retracing=True)
    for x, n in [(np.ones(1, f32), 1), (np.ones(2, f32), 1), (np.ones(3), 1), (np.ones(4, f32), 2), (np.ones(5, f32), 1)]:
        f(x, n)
    assert [str(c.function_type.parameters[0].shape) for c in f._concretes.values()] == ["(1,)", "(None,)", "(3,)", "(4,)"]


def test_lists_widen_by_element():
    f = jl.function(lambda xs: xs[0].sum() + xs[1].sum(), reduce_retracing=True)
    for n in (2, 3, 4):
        assert f([np.ones(n), np.ones(2)]) == n + 2
    specs = [t.shape for t in list(f._concretes.values())[1].function_type.tensors()]
    assert specs == [(None,), (2,)]


def test_the_body_runs_once_a_trace_however_many_sizes_it_meets(capsys):
    kept, state = [], {"n": 0}

    class Counter:
        calls = 0

    counter = Counter()
    count = 0

    @jl.function(reduce_retracing=True)
    def f(x):
        nonlocal count
        count += 1
        counter.calls += 1
        state["n"] += 1
        kept.append(state["n"])
        print("traced")
        return x * counter.calls

    results = [f(np.ones(n))[0] for n in (1, 2, 3, 4, 5)]
    assert f.experimental_get_tracing_count() == 2
    assert (count, counter.calls, state["n"], kept) == (2, 2, 2, [1, 2])
    assert capsys.readouterr().out == "traced\ntraced\n"
    assert results == [1, 2, 2, 2, 2]  # what the trace for (None,) read is fixed for all of its sizes


def test_python_values_freeze_for_all_sizes_of_a_trace():
    factor = 2
    f = jl.function(lambda x: x * factor)
    f.get_concrete_function(TensorSpec([None], np.float64))
    factor = 5
    assert [f(np.ones(n))[0] for n in (1, 2, 3)] == [2, 2, 2]


def test_a_wider_trace_serves_what_it_contains():
    f = jl.function(lambda x: x + 1)
    wide = f.get_concrete_function(TensorSpec(None, f32))
    assert f.get_concrete_function(TensorSpec([2], f32)) is wide
    for shape in ((), (3,), (2, 2)):
        assert np.shape(f(np.ones(shape, f32))) == shape
    assert f.experimental_get_tracing_count() == 1
    f(np.ones(2))
    assert f.experimental_get_tracing_count() == 2


def test_the_exact_trace_wins_then_the_most_specific():
    f = jl.function(lambda x: x + 1)
    exact = f.get_concrete_function(TensorSpec([2, 3], f32))
    row = f.get_concrete_function(TensorSpec([2, None], f32))
    wide = f.get_concrete_function(TensorSpec([None, None], f32))
    for shape, expected in [((2, 3), exact), ((2, 4), row), ((3, 3), wide)]:
        assert f.get_concrete_function(np.ones(shape, f32)) is expected
        assert f(np.ones(shape, f32)).shape == shape
    assert f.experimental_get_tracing_count() == 3


def test_sizes_of_a_wide_trace_are_no_retraces():
    from jitlab import events

    f = jl.function(lambda x: x + 1)
    f.get_concrete_function(TensorSpec([None], np.float64))
    heard = []
    with events.listen(heard.append):
        for n in range(5):
            f(np.ones(n))
    assert not [e for e in heard if isinstance(e, events.Traced)]


class Model:
    """In a few lines: traces are pairs of types; a type is a tuple of (kind, ...)."""

    def __init__(self, reduce):
        self.reduce, self.traces = reduce, []

    def call(self, values):
        wanted = tuple(map(self.type_of, values))
        fits = [t for t in self.traces if all(map(self.contains, t, wanted))]
        if fits:
            best = fits[0]
            for t in fits[1:]:
                if all(map(self.contains, best, t)) and not all(map(self.contains, t, best)):
                    best = t
            return best
        if self.reduce:
            for known in self.traces:
                common = tuple(map(self.common, wanted, known))
                wanted = wanted if None in common else common
        self.traces.append(wanted)
        return wanted

    def type_of(self, value):
        if isinstance(value, (np.ndarray, np.generic)):
            return ("tensor", str(value.dtype), tuple(value.shape))
        if isinstance(value, list):
            return ("list", *map(self.type_of, value))
        return ("value", type(value).__name__, repr(value))

    def contains(self, wide, t):
        if wide[0] != t[0]:
            return False
        if wide[0] == "list":
            return len(wide) == len(t) and all(map(self.contains, wide[1:], t[1:]))
        if wide[0] == "value":
            return wide == t
        if wide[1] != t[1] or wide[2] is None:
            return wide[1] == t[1]
        if t[2] is None or len(wide[2]) != len(t[2]):
            return False
        return all(a in (None, b) for a, b in zip(wide[2], t[2], strict=True))

    def common(self, a, b):
        if a[0] != b[0] or len(a) != len(b):
            return None
        if a[0] == "list":
            items = tuple(map(self.common, a[1:], b[1:]))
            return None if None in items else ("list", *items)
        if a[0] == "value":
            return a if a == b else None
        if a[1] != b[1]:
            return None
        if a[2] is None or b[2] is None or len(a[2]) != len(b[2]):
            return ("tensor", a[1], None)
        return ("tensor", a[1], tuple(x if x == y else None for x, y in zip(a[2], b[2], strict=True)))


def random_value(rng):
    kind = rng.choice(["array", "array", "array", "scalar", "number", "list"])
    if kind == "array":
        return np.ones([rng.choice([0, 1, 2, 3]) for _ in range(rng.choice([0, 1, 1, 2]))], rng.choice([f32, np.float64]))
    if kind == "scalar":
        return rng.choice([np.float64(2), np.int64(3)])
    if kind == "number":
        return rng.choice([1, 1.0, True, 0.0, -0.0, "a", None])
    return [np.ones(rng.choice([1, 2, 3])) for _ in range(rng.choice([1, 2]))]


@pytest.mark.parametrize("seed", range(30))
def test_random_calls_trace_as_the_model_says(seed):
    rng = random.Random(seed)
    reduce = seed % 2 == 1
    f = jl.function(lambda x, y=1: None, reduce_retracing=reduce)
    model = Model(reduce)
    reached = {}
    for _ in range(25):
        values = [random_value(rng), random_value(rng)] if rng.random() < 0.7 else [random_value(rng)]
        expected = model.call([*values, 1][:2])
        if rng.random() < 0.2:
            f.get_concrete_function(*values)
        else:
            f(*values) if rng.random() < 0.5 else f(**dict(zip("xy", values, strict=False)))
        concrete = f.get_concrete_function(*values)
        assert reached.setdefault(expected, concrete) is concrete
        assert f.experimental_get_tracing_count() == len(model.traces)

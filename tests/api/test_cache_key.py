"""The cache key: what makes a call another trace."""

from __future__ import annotations

import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import jitlab as jl

f32 = np.float32


def test_one_trace_for_each_way_to_pass_the_same():
    @jl.function
    def f(x, k=2, *rest, flag=False, **options):
        return x * k

    x = np.ones(2)
    f(x), f(x, 2), f(k=2, x=x), f(x, flag=False)
    assert f.experimental_get_tracing_count() == 1
    f(x, a=1, b=2), f(x, b=2, a=1)
    assert f.experimental_get_tracing_count() == 2
    f(x, 2, 1), f(x, 2, 1, 1)
    assert f.experimental_get_tracing_count() == 4


def test_python_values_are_told_apart_by_type_and_sign():
    @jl.function
    def f(x, k):
        return x * k

    x = np.ones(2)
    values = [1, 1.0, True, 0.0, -0.0, float("nan"), "a", b"a", None, 1j, (1,), [1], 2**70]
    for value in values:
        try:
            f(x, value)
        except TypeError:
            pass
    made = f.experimental_get_tracing_count()
    for value in [1, 1.0, True, 0.0, -0.0, float("nan"), 1j, 2**70]:
        f(x, value)
    assert f.experimental_get_tracing_count() == made
    assert np.copysign(1, f(x, -0.0))[0] == -1 and np.copysign(1, f(x, 0.0))[0] == 1


def test_numpy_scalars_are_tensors():
    f = jl.function(lambda x, k: x * k)
    for k in (1, 2, 3):
        assert f(np.ones(2, f32), f32(k)).tolist() == [k, k]
    assert f.experimental_get_tracing_count() == 1
    assert f(np.ones(2, f32), np.float64(2)).dtype == np.float64
    assert f.experimental_get_tracing_count() == 2


Point = namedtuple("Point", "a b")


def test_structures_in_the_key():
    f = jl.function(lambda tree: None)
    one, two = np.ones(2), np.zeros(2)
    for tree in ([one, two], [two, one], (one, two), Point(one, two), {"a": one, "b": two}, {"b": one, "a": two},
                 OrderedDict(a=one, b=two), [one, [two]]):  # fmt: skip
        f(tree)
    assert f.experimental_get_tracing_count() == 6


def test_objects_are_told_apart_by_identity_or_equality():
    class Config:
        def __init__(self, k):
            self.k = k

    class Equal(Config):
        def __eq__(self, other):
            return type(other) is Equal and self.k == other.k

        def __hash__(self):
            return hash(self.k)

    f = jl.function(lambda x, c: x * c.k)
    x, c = np.ones(1), Config(2)
    f(x, c), f(x, c)
    assert f.experimental_get_tracing_count() == 1
    assert f(x, Config(3))[0] == 3 and f.experimental_get_tracing_count() == 2
    one, other = Equal(1), Equal(1)
    f(x, one), f(x, other)
    assert f.experimental_get_tracing_count() == 3
    with pytest.raises(TypeError, match="Could not generate a generic TraceType"):
        f(x, {1, 2, 3})


def test_binding_errors():
    f = jl.function(lambda x, y=1: x)
    for args, kwargs, text in [((), {}, "missing a required argument: 'x'"), ((1, 2, 3), {}, "too many positional arguments"),
                               ((1,), {"z": 1}, "got an unexpected keyword argument 'z'")]:  # fmt: skip
        with pytest.raises(TypeError, match="Binding inputs to jl.function failed due to") as error:
            f(*args, **kwargs)
        assert text in str(error.value)


class Equal:
    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        return type(other) is Equal and self.k == other.k

    def __hash__(self):
        return hash(self.k)

    def __repr__(self):
        return f"Equal({self.k})"


class Unhashable:
    __hash__ = None


@pytest.mark.parametrize(
    "values, traces",
    [
        ([np.ones(2), np.zeros(2)], 1),
        ([np.ones(2), np.ones(2, f32), np.ones(3), np.ones((2, 1))], 4),
        ([np.float64(1), np.float64(2), np.array(3.0)], 1),
        ([1, 1.0, True, 1 + 0j, "1", b"1", None], 7),
        ([0, False, 0.0, -0.0], 4),
        ([float("nan"), float("nan")], 1),
        ([[1, 2], (1, 2), [1, 2], [2, 1]], 3),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}, OrderedDict(a=1, b=2)], 3),
        ([Point(1, 2), Point(1, 2), (1, 2)], 2),
        ([range(3), range(3), range(4), frozenset({1}), frozenset({1})], 3),
        ([len, len, max], 2),
        ([Equal(1), Equal(2)], 2),
    ],
    ids=str,
)  # fmt: skip
def test_which_values_share_a_trace(values, traces):
    f = jl.function(lambda x: None)
    for value in values:
        f(value)
    assert f.experimental_get_tracing_count() == traces


def test_equal_objects_share_while_they_live():
    f = jl.function(lambda x: None)
    one, other = Equal(1), Equal(1)
    f(one), f(other)
    assert f.experimental_get_tracing_count() == 1
    del one, other
    f(Equal(1))
    assert f.experimental_get_tracing_count() == 2


def test_a_decorated_argument_is_known_by_what_it_wraps():
    f = jl.function(lambda x: None)

    def inner():
        return 1

    def wrapped():
        wrapper = lambda: inner()  # noqa: E731
        wrapper.__wrapped__ = inner
        return wrapper

    f(wrapped()), f(wrapped()), f(inner)
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("value", [{1, 2}, slice(1), Unhashable(), [Unhashable()]], ids=lambda v: type(v).__name__)
def test_what_cannot_be_hashed_has_no_key(value):
    with pytest.raises(TypeError, match="Could not generate a generic TraceType"):
        jl.function(lambda x: None)(value)


def test_weak_references_are_refused():
    with pytest.raises(TypeError, match="not supported for jl.function"):
        jl.function(lambda x: None)(weakref.ref(Equal(1)))


def test_variables_are_told_apart_by_type_and_by_which_are_one():
    @jl.function
    def add(a, b):
        a.assign_add(b.read_value())
        return a + b

    u, v, w = (jl.Variable(np.full(2, float(n))) for n in (1, 2, 3))
    for pair, traces in [((v, w), 1), ((w, v), 1), ((u, v), 1), ((v, v), 2), ((w, w), 2), ((v, jl.Variable(np.ones(3))), 3)]:
        before = [x.numpy() for x in pair]
        if before[0].shape == before[1].shape:
            total = add(*pair)
            expected = before[0] + before[1]
            assert np.array_equal(pair[0].numpy(), expected)
            assert np.array_equal(total, expected + (expected if pair[0] is pair[1] else before[1]))
            assert add.experimental_get_tracing_count() == traces


def test_a_variable_is_no_tensor():
    f = jl.function(lambda x: x * 2)
    assert f(jl.Variable(np.ones(2))).tolist() == f(np.ones(2)).tolist() == [2, 2]
    assert f.experimental_get_tracing_count() == 2


def test_a_variable_argument_is_not_the_one_of_a_name():
    state = jl.Variable(10.0)
    f = jl.function(lambda v: v * state)
    assert f(state) == 100 and f(jl.Variable(3.0)) == 30
    assert f.experimental_get_tracing_count() == 1


def test_fields_of_attrs_classes_are_a_structure():
    attrs = pytest.importorskip("attrs")
    pair = attrs.make_class("Pair", ["x", "k"])
    f = jl.function(lambda p: p.x * p.k)
    assert f(pair(np.ones(2), 3)).tolist() == [3, 3] and f(pair(np.full(2, 2.0), 3)).tolist() == [6, 6]
    assert f.experimental_get_tracing_count() == 1
    f(pair(np.ones(2), 4))
    assert f.experimental_get_tracing_count() == 2


def test_a_call_inside_another_function_shares_the_cache():
    seen = []

    @jl.function
    def inner(x):
        seen.append(1)
        return np.tanh(x)

    @jl.function
    def outer(x):
        return inner(x) + inner(x * 2)

    x = np.array([0.1, 0.2])
    assert np.allclose(outer(x), np.tanh(x) + np.tanh(2 * x)) and np.allclose(inner(x), np.tanh(x))
    assert seen == [1]
    assert (inner.experimental_get_tracing_count(), outer.experimental_get_tracing_count()) == (1, 1)
    inner(np.ones(3))
    assert seen == [1, 1] and inner.experimental_get_tracing_count() == 2


def test_globals_are_no_part_of_the_key():
    factor = 2
    f = jl.function(lambda x: x * factor)
    assert f(np.ones(1))[0] == 2
    factor = 3
    assert f(np.ones(1))[0] == 2 and f.experimental_get_tracing_count() == 1

"""Python numbers that only a run knows, under `jl.function`: `x.item()`, `x.tolist()`, functions of `math`. They are what NumPy
and Python give, to the bit, and give way in promotion as Python's numbers do."""

import math

import numpy as np
import pytest

import jitlab as jl
from jitlab.capture.control.python_values import MOST_LISTED
from jitlab.errors import ValueOfTracedArrayError
from jitlab.ops.python_math import FLOATS, ROUNDED, TESTS

NUMBERS = [0.5, -0.5, 0.0, -0.0, 1.0, 2.75, -3.0, 1e-310, 1e300, math.inf, -math.inf, math.nan]
TWO = {math.atan2, math.copysign, math.fmod, math.hypot, math.pow, math.remainder, math.isclose, math.nextafter}


def outcome(function, *args):
    """What a call gives, as bits, or how it ends."""
    try:
        return np.asarray(function(*args)).tobytes()
    except Exception as error:
        return type(error), str(error).partition(" (")[0]  # the place of the call


@pytest.mark.parametrize("function", sorted(FLOATS | TESTS, key=lambda f: f.__name__), ids=lambda f: f.__name__)
def test_functions_of_math_give_pythons_bits_and_errors(function):
    def program(x):
        return function(x[0], x[1]) if function in TWO else function(x[0])

    recorded = jl.function(program)
    for first in NUMBERS:
        for second in NUMBERS if function in TWO else (0.0,):
            x = np.array([first, second])
            assert outcome(recorded, x) == outcome(program, x), (first, second)
    assert recorded.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("function", sorted(ROUNDED, key=lambda f: f.__name__), ids=lambda f: f.__name__)
def test_rounded_numbers_are_pythons(function):
    recorded = jl.function(lambda x: function(x[0]))
    for number in (2.5, -2.5, 0.0, 7.0, -0.25, 1e15):
        for dtype in ("f8", "f4") if function is not math.trunc else ("f8",):
            x = np.array([number], dtype)
            assert recorded(x) == function(x[0]) and recorded(x).dtype == np.int64
    assert jl.function(lambda x: function(int(x[0])))(np.array([2**60 + 1])) == 2**60 + 1
    for dtype in ("i8", "?"):  # by way of a float, or not at all
        with pytest.raises((ValueOfTracedArrayError, TypeError)):
            recorded(np.array([1], dtype))


@pytest.mark.parametrize("dtype", ["bool", "i1", "u4", "i8", "f2", "f4", "f8"])
def test_math_of_other_dtypes(dtype):
    def program(x, y):
        return math.hypot(x[0], y), math.atan2(x[1], 3), math.exp(x[2]), math.isnan(x[0]), math.log(8, x[1] + 2)

    x = np.array([3, 1, 0], dtype)
    recorded = jl.function(program)
    assert [np.asarray(r).tobytes() for r in recorded(x, 4)] == [np.asarray(r).tobytes() for r in program(x, 4)]


def test_zeros_of_both_signs_are_two_numbers():
    recorded = jl.function(lambda x: [math.copysign(x[0], -0.0), math.copysign(x[0], 0.0)])
    assert recorded(np.array([2.0])) == [-2, 2]


def test_math_in_a_loop_and_in_a_branch():
    def program(x):
        total, most = 0.0, 0.0
        for i in range(len(x)):
            total += math.sqrt(x[i])
            if x[i] > 3:
                most = max(most, math.log(x[i]))
        return total, most

    recorded = jl.function(program)
    x = np.arange(30.0)
    assert recorded(x) == program(x)
    for call in (recorded, program):
        with pytest.raises(ValueError, match="math domain error"):
            call(x - 5)


def test_what_is_not_taken_raises_though_nobody_reads_the_result():
    def program(x):
        math.sqrt(x[0])
        return x + 1

    recorded = jl.function(program)
    assert recorded(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="math domain error"):
        recorded(-np.ones(2))

    @jl.function
    def branch(x):
        return math.sqrt(x[0]) if x[0] > 0 else 0.0

    assert branch(np.array([4.0])) == 2 and branch(np.array([-4.0])) == 0


def test_a_call_of_math_with_too_many_arguments_is_pythons_error():
    with pytest.raises(TypeError):
        jl.function(lambda x: math.sqrt(x[0], x[1]))(np.ones(2))
    with pytest.raises(ValueOfTracedArrayError):
        jl.function(lambda x: math.sqrt(x))(np.ones(2))


@pytest.mark.parametrize("dtype", ["bool", "i2", "u1", "i8", "f4", "f8"])
def test_the_elements_of_an_array_as_a_list(dtype):
    for shape in ((), (3,), (2, 3), (2, 0), (1, 2, 2)):
        x = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
        assert jl.function(lambda x: x.tolist())(x) == x.tolist()
    recorded = jl.function(lambda x: [v * np.float32(2) for v in x.tolist()])
    assert {r.dtype for r in recorded(np.ones(3))} == {np.dtype("f4")}  # as Python's numbers they give way


def test_a_single_element():
    def program(x):
        return x.sum().item() * np.float32(2), x[:1].item(), x.max().item() + 1

    x = np.array([0.1, 0.7])
    for found, wanted in zip(jl.function(program)(x), program(x), strict=True):
        assert found == wanted and np.asarray(found).dtype == np.asarray(wanted).dtype
    with pytest.raises(ValueError, match="can only convert an array of size 1"):
        jl.function(lambda x: x.item())(x)


def test_a_list_of_elements_in_a_loop():
    def program(x):
        total = 0.0
        for i in range(20):
            a, b = x[i : i + 2].tolist()
            total += a * b
        return total

    x = np.random.default_rng(3).normal(size=30)
    np.testing.assert_allclose(jl.function(program)(x), program(x), rtol=1e-14)


@pytest.mark.parametrize(
    "x", [np.ones(MOST_LISTED + 1), np.array([1j]), np.array([2**63], np.uint64)], ids=["long", "complex", "uint64"]
)
def test_other_lists_have_no_value(x):
    for use in (lambda x: x.tolist(), lambda x: x[0].item() if x.dtype != np.float64 else x.tolist()):
        with pytest.raises(ValueOfTracedArrayError, match=r"needs a Python value by \.(tolist|item)\(\)"):
            jl.function(use)(x)


def test_lists_make_keys_and_tuples_of_results():
    @jl.function
    def f(x, names):
        return dict(zip(names, x.round(2).tolist(), strict=True)), tuple(x.tolist())

    found, pair = f(np.array([0.123, 4.567]), ["a", "b"])
    assert found == {"a": 0.12, "b": 4.57} and pair == (0.123, 4.567)

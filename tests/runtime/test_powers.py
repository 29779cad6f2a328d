"""A small whole exponent that the program says is computed by products: within 3 ULP of the true value, integers exactly."""

from fractions import Fraction

import numpy as np
import pytest

import jitlab as jl

FLOATS = [np.float16, np.float32, np.float64]


def program_of(function, *args):
    with jl.record() as recording:
        result = jl.jit(function, fullgraph=True)(*args)
    report = recording.report()
    return result, report.ir(report.clusters[0].name, stage="program")


def off(result, x, power):
    """By how many ULP of the true value each result is off."""
    true = [Fraction(float(v)) ** power for v in x]
    ulps = [Fraction(float(np.spacing(np.abs(result.dtype.type(float(v)))))) for v in true]
    return max(abs(Fraction(float(r)) - t) / u for r, t, u in zip(result, true, ulps, strict=True))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power", [2, 3, 4, 5, 3.0, 4.0])
def test_powers_of_floats_are_within_three_ulp(dtype, power):
    rng = np.random.default_rng(power.__hash__())
    x = np.concatenate([rng.uniform(-8, 8, 700), 1 + np.linspace(-0.5, 1, 300)]).astype(dtype)
    x = x[np.abs(x) > 0.1]
    result = jl.jit(lambda x: x**power)(x)
    assert result.dtype == dtype and off(result, x, int(power)) <= 3


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power", [2, 3, 4])
def test_powers_of_what_is_special_are_numpys(dtype, power):
    big, tiny = np.finfo(dtype).max, np.finfo(dtype).tiny
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, big, -big, tiny, -tiny, 1, -1], dtype)
    with np.errstate(all="ignore"):
        want = x**power
        got = jl.jit(lambda x: x**power)(x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[1:]), np.signbit(want[1:]))


@pytest.mark.parametrize("dtype", "bhilBHIL")
def test_powers_of_integers_wrap_around(dtype):
    x = np.random.default_rng(7).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 500, dtype, endpoint=True)
    for power in (0, 1, 2, 3, 4, 7, 15, 16, 40):
        for function in (lambda x, p=power: x**p, lambda x, p=power: np.power(x, x.dtype.type(p))):
            got, want = jl.jit(function)(x), function(x)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("write", "said"), [
    (lambda x: x**3 + 1, "IntegerPower(power=3)"),
    (lambda x: np.power(x, 4) * x, "IntegerPower(power=4)"),
    (lambda x: (x.reshape(4, 3) ** 3.0).ravel(), "IntegerPower(power=3)"),
    (lambda x: (x > 0).astype(np.int32) ** 15, "IntegerPower(power=15)"),
    (lambda x: np.linalg.norm(x, 3), "IntegerPower(power=3)"),
])  # fmt: skip
def test_a_program_says_a_small_whole_exponent(write, said):
    x = np.linspace(-2, 2, 12)
    result, text = program_of(write, x)
    assert said in text
    np.testing.assert_allclose(result, write(x), rtol=1e-15)


@pytest.mark.parametrize("power", [5, 2.5, -3, 100])
def test_another_exponent_of_floats_is_passed_so_that_it_compiles_nothing_anew(power):
    x = np.linspace(0.5, 2, 12)
    result, text = program_of(lambda x: x**power, x)
    assert "= Pow " in text and "IntegerPower" not in text
    np.testing.assert_allclose(result, x**power, rtol=1e-15)


def test_the_graph_still_has_a_power_and_its_gradient():
    x = np.linspace(-2.0, 2, 9)
    np.testing.assert_allclose(jl.grad(lambda x: np.sum(x**3))(x), 3 * x**2, rtol=1e-14)
    np.testing.assert_allclose(jl.grad(lambda x: np.sum(jl.grad(lambda x: np.sum(x**4))(x)))(x), 12 * x**2, rtol=1e-14)
    graph = jl.function(lambda x: x**3).get_concrete_function(x).graph
    assert [node.op.name for node in graph.nodes].count("Pow") == 1

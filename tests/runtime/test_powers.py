"""A small whole exponent that the program says is computed by products: integers exactly, floats rounded once or nearly so."""

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm.machine import features
from jitlab.targets.llvm.function_text import FunctionText, module_text
from jitlab.targets.llvm.vector_emitter import VectorEmitter

sys.path.insert(0, str(Path(__file__).parent.parent / "targets"))
from one_kernel import call  # noqa: E402

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
@pytest.mark.parametrize("power", [2, 3, 4, 5, 6, 7, 8, 9, 3.0, 4.0])
def test_powers_of_floats_are_within_three_ulp(dtype, power):
    rng = np.random.default_rng(power.__hash__())
    x = np.concatenate([rng.uniform(-8, 8, 700), 1 + np.linspace(-0.5, 1, 300)]).astype(dtype)
    x = x[(np.abs(x) > 0.1) & (np.abs(x) < float(np.finfo(dtype).max) ** (0.99 / power))]
    result = jl.jit(lambda x: x**power)(x)
    assert result.dtype == dtype and off(result, x, int(power)) <= 3


ROUNDED = {
    "whole": lambda x, power: x**power,
    "strided": lambda x, power: (x[::2] ** power, x[1::2] ** power),
    "fused": lambda x, power: np.concatenate([x, -x])[: x.size] ** power + np.zeros_like(x),
    "by itself": lambda x, power: np.power(x, float(power)),
}


@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power", [3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("write", ROUNDED)
def test_small_whole_powers_are_the_nearest_floats(write, power, dtype, level):
    rng = np.random.default_rng(5)
    low, high = (-3, 3) if dtype == np.float16 else (-9, 9) if dtype == np.float32 else (-70, 70)
    high = min(high, 0.99 * np.finfo(dtype).maxexp / power)
    x = (np.exp2(rng.uniform(low, high, 800)) * rng.choice([-1, 1], 800)).astype(dtype)
    results = jl.jit(ROUNDED[write], jit_level=level)(x, power)
    operands = [x[::2], x[1::2]] if write == "strided" else [x]
    for operand, result in zip(operands, results if write == "strided" else [results], strict=True):
        assert result.dtype == dtype and off(result, operand, power) <= 0.5


def test_a_cube_in_a_loop_over_elements_is_the_nearest_float():
    def cubes(x):
        y = np.zeros_like(x)
        for i in range(x.size):
            y[i] = x[i] ** 3
        return y

    x = np.random.default_rng(6).normal(size=300)
    assert off(jl.jit(cubes)(x), x, 3) <= 0.5


@pytest.mark.parametrize("power", [3, 4, 5, 6, 7, 8])
def test_powers_about_the_ends_of_the_range_are_what_their_products_are(power):
    """Where what a product loses is no float any more, it is left out: never NaN, never another sign."""
    ends = np.array([np.finfo(float).max ** (1 / power), np.finfo(float).tiny ** (1 / power), 5e-324 ** (1 / power)])
    x = np.concatenate([ends * (1 + k * 2.0**-40) for k in range(-6, 7)])
    x = np.concatenate([x, -x, [1e-200, -1e-200, 1e200, -1e200]])
    with np.errstate(all="ignore"):
        products, result = (x.astype(np.longdouble) ** power).astype(float), jl.jit(lambda x: x**power)(x)
    np.testing.assert_array_equal(np.isfinite(result), np.isfinite(products))
    np.testing.assert_array_equal(np.signbit(result), np.signbit(products))
    result, products = result[np.isfinite(products)], products[np.isfinite(products)]
    assert (np.abs(result - products) <= 2 * np.spacing(np.abs(products))).all()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("power", [3, 4, 5, 7, 8])
@pytest.mark.parametrize("char", "efd")
def test_powers_ask_for_no_instruction_that_the_processor_lacks(char, power, fused):
    """`llvm.fma` without such an instruction is a call of the C library for each element."""
    x = np.linspace(-2, 2, 16).astype(char)
    fn = FunctionText("k", [("ptr", "source"), ("ptr", "target")])
    e = VectorEmitter(fn, 16, replace(features(), fuses_multiply_add=fused))
    e.store("%target", e.pow(e.load("%source", x.dtype), e.constant(power, x.dtype)))
    fn.ret()
    text = module_text([fn])
    by_products = fused or power <= 4  # the others are powers like any, of which the logarithm asks for it
    assert ("@llvm.fma" in text) == ((fused or not by_products) and char == "d")
    result = np.empty_like(x)
    call(text, x, result)
    assert off(result[x != 0], x[x != 0], power) <= 2


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power", [2, 3, 4, 5, 6, 7, 8])
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
    (lambda x: x**8 + 1, "IntegerPower(power=8)"),
    (lambda x: (x.reshape(4, 3) ** 3.0).ravel(), "IntegerPower(power=3)"),
    (lambda x: (x > 0).astype(np.int32) ** 15, "IntegerPower(power=15)"),
    (lambda x: np.linalg.norm(x, 3), "IntegerPower(power=3)"),
])  # fmt: skip
def test_a_program_says_a_small_whole_exponent(write, said):
    x = np.linspace(-2, 2, 12)
    result, text = program_of(write, x)
    assert said in text
    np.testing.assert_allclose(result, write(x), rtol=1e-15)


@pytest.mark.parametrize("power", [9, 2.5, -3, 100])
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


@pytest.mark.parametrize("function", [np.fmod, np.remainder, np.floor_divide, np.power, np.arctan2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_nan_that_comes_in_goes_out_with_its_sign(function, dtype):
    nans, numbers = np.array([np.nan, -np.nan] * 4, dtype), np.linspace(1.5, 9, 8).astype(dtype)
    for x, y in ((nans, numbers), (numbers, nans)):
        np.testing.assert_array_equal(np.signbit(jl.jit(lambda x, y: function(x, y))(x, y)), np.signbit(function(x, y)))

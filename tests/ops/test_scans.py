"""Scans: NumPy's bits in NumPy's order, in one loop with what they read and what reads them; slopes."""

import numpy as np
import pytest

import jitlab as jl
from tests.ops.calling import F, right_slope
from tests.ops.strict_calls import compiles, refuses, sample

DTYPES = ("bool", "i1", "f2", "f4", "f8", "c16")
X = sample("f8", 4, 5)


def sums_and_products(x):
    return (
        np.cumsum(x), np.cumsum(x, axis=0), x.cumsum(axis=-1), np.cumprod(x, axis=1), x.cumprod(),
        np.maximum.accumulate(x), np.minimum.accumulate(x, axis=1), np.add.accumulate(x, axis=1),
        np.cumulative_sum(x, axis=1, include_initial=True), np.cumulative_prod(x[0], include_initial=True),
        np.nancumsum(x, axis=0), np.nancumprod(x),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_running_values_have_numpys_bits(dtype):
    compiles(sums_and_products, sample(dtype, 4, 5))


def test_other_functions_accumulate():
    compiles(
        lambda x: (
            np.subtract.accumulate(x, axis=1), np.divide.accumulate(x), np.fmax.accumulate(x, axis=1),
            np.logical_xor.accumulate(x > 0), np.arctan2.accumulate(x[:1]), np.hypot.accumulate(x[:1], axis=0),
        ),
        X,
    )  # fmt: skip
    compiles(lambda x: (np.bitwise_or.accumulate(x), np.bitwise_xor.accumulate(x, axis=1)), sample("i4", 4, 5))


@pytest.mark.parametrize(
    "x", [X[::2, ::-1], X.T, np.zeros((0, 3)), np.zeros((3, 0)), np.full((3, 1), np.nan), np.array([[-0.0], [-0.0]])],
    ids=["view", "transposed", "no rows", "no columns", "one column of NaN", "negative zeros"],
)  # fmt: skip
def test_any_layout_and_emptiness(x):
    def program(x):
        return np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.cumprod(x), np.maximum.accumulate(x, axis=1)

    compiles(program, x)
    assert np.array_equal(np.signbit(jl.function(program)(x)[0]), np.signbit(np.cumsum(x, axis=0)))


def test_numbers_and_dtypes():
    compiles(lambda x: (np.cumsum(x), np.cumprod(x)), np.float32(3))
    compiles(lambda x: (np.cumsum(x, dtype="f4"), np.cumprod(x, axis=1, dtype="c16"), np.add.accumulate(x, dtype="i8")), X)
    compiles(lambda x: (np.cumsum(x, axis=0, out=np.zeros((4, 5))), x.sum(axis=0, out=np.zeros(5))), sample("f4", 4, 5))


def test_wide_and_long_arrays():
    x = np.random.default_rng(0).normal(size=(70, 300))
    compiles(lambda x: (np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.cumsum(x.reshape(7, 10, 300), axis=1)), x)


def test_what_it_reads_and_what_reads_it_join_its_loop():
    traced = jl.function(lambda x: np.sqrt(np.cumsum(x * x, axis=1)) + x)
    report = jl.explain(traced, X)
    assert len(report.kernels) == 1 and not report.fallbacks
    text = report.ir(report.clusters[0].name, stage="program")
    assert "with r0 = Cumsum(axis=1, reverse=False)" in text and "temp" not in text
    several = jl.function(lambda x: (np.cumsum(x, axis=0), np.maximum.accumulate(x, axis=0), x + 1), jit_compile=True)
    assert len(jl.explain(several, X).kernels) == 1


def test_in_a_loop_of_the_users():
    def program(x):
        for _ in range(20):
            x = np.cumsum(x, axis=1) / 2
        return x

    compiles(program, X)
    assert not jl.explain(jl.function(program), X).fallbacks


def test_errors_are_numpys():
    refuses(lambda x: np.cumsum(x, axis=2), X)
    refuses(lambda x: np.add.accumulate(x[0, 0]), X)
    refuses(lambda x: np.cumulative_sum(x), X)
    refuses(lambda x: np.bitwise_or.accumulate(x), X)
    refuses(lambda x: np.power.accumulate(x), np.array([2, -1]))


def test_slopes():
    right_slope(lambda x: F[np.cumsum](x, 1), X, second=True)
    right_slope(lambda x: F[np.cumprod](x, 1), X + 0.05, second=True)
    right_slope(lambda x: F[np.cumprod](x), X + 1j)
    right_slope(lambda x: F[np.maximum.accumulate](x, 1), X + 0.01 * np.arange(5))
    right_slope(lambda x: F[np.minimum.accumulate](x, 0), X + 0.01 * np.arange(20).reshape(4, 5))
    right_slope(lambda x: F[np.subtract.accumulate](x, 0), X)
    right_slope(lambda x: F[np.cumulative_sum](x, axis=0, include_initial=True), X)


@pytest.mark.parametrize("zeros", [[(0, 0)], [(0, 2), (1, 0), (1, 3)], [(2, 4), (2, 0), (2, 1)]])
def test_products_with_zeros_have_slopes(zeros):
    x = X + 0.05
    for place in zeros:
        x[place] = 0
    right_slope(lambda x: F[np.cumprod](x, 1), x)
    right_slope(lambda x: F[np.cumprod](x, 0), x)

"""Reductions with all their arguments, statistics that leave NaN out, covariances, histograms, differences, convolutions."""

import numpy as np
import pytest

import jitlab as jl
from tests.ops.calling import F, agrees, right_slope
from tests.ops.strict_calls import compiles, refuses, sample

X = sample("f8", 4, 5)
APART = X + 0.001 * np.random.default_rng(1).permutation(20).reshape(4, 5)
WITH_NAN = np.array([[1.0, np.nan, -0.0, 0.0, 2.0], [np.nan] * 5, [3.0, 1.0, 2.0, np.inf, -np.inf]])


def reductions(x):
    return (
        np.sum(x, where=x > 0), np.sum(x, axis=0, initial=3), np.prod(x, axis=1, where=x > 0, keepdims=True),
        np.max(x, axis=0, initial=1), np.min(x, axis=1, where=x > 0, initial=1), np.any(x, axis=0, where=x > 0),
        np.all(x, where=x > 0), np.mean(x, axis=1, where=x != 1), np.std(x, where=x != 1, axis=0), np.sum(x, axis=(0, 1)),
        np.sum(x, dtype=bool), np.prod(x, dtype="c16", axis=0), x.max(), x.min(axis=0), x.argmax(axis=1), np.argmin(x),
        np.sum(x, axis=1, where=[True, False, True, True, False]), np.var(x, ddof=1), np.var(x, axis=0, correction=1),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "i1", "f4", "c16"])
def test_reductions_take_all_their_arguments(dtype):
    compiles(reductions, sample(dtype, 4, 5), exact=False)


def test_reductions_of_nothing():
    x = np.zeros((0, 3))
    compiles(lambda x: (np.sum(x, axis=0), np.max(x, axis=0, initial=2), np.max(x, axis=1), np.any(x), np.mean(x, axis=1)), x)
    refuses(lambda x: np.max(x, axis=0), x)
    refuses(lambda x: np.argmin(x), x)
    refuses(lambda x: np.max(x, where=x > 0), X)
    refuses(lambda x: np.sum(x, axis=(0, 0)), X)
    refuses(lambda x: np.sum(x, where=np.arange(5)), X)


def test_averages():
    compiles(
        lambda x, w: (
            np.average(x), np.average(x, axis=0, returned=True), np.average(x, axis=1, weights=w), np.ptp(x, axis=0),
            np.average(x, weights=x * x, returned=True), np.average(x, axis=1, weights=w, keepdims=True),
        ),
        X, np.arange(1.0, 6.0), exact=False,
    )  # fmt: skip
    refuses(lambda x: np.average(x, weights=[1, 2]), X)


def without_nan(x):
    return (
        np.nansum(x, axis=0), np.nanprod(x), np.nanmean(x, axis=1), np.nanvar(x, axis=0, ddof=1), np.nanstd(x),
        np.nanmax(x), np.nanmin(x, axis=1), np.nanmax(x, axis=0, keepdims=True), np.nanargmax(x), np.nanargmin(x[::2], axis=1),
        np.nanmean(x, where=x > 0), np.nanvar(x, where=x > 0, axis=1),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f2", "f8"])
def test_nan_is_left_out(dtype):
    compiles(without_nan, WITH_NAN.astype(dtype), exact=False)


def test_of_integers_and_of_nothing_but_nan():
    compiles(without_nan, sample("i4", 4, 5), exact=False)
    refuses(lambda x: np.nanargmax(x, axis=1), WITH_NAN)


def test_covariances():
    weights = [1, 2, 3, 1, 2]
    compiles(
        lambda x: (
            np.cov(x), np.cov(x, rowvar=False), np.cov(x[0], x[1], bias=True), np.cov(x[0]), np.corrcoef(x),
            np.corrcoef(x[0], x[1]), np.corrcoef(x[0]), np.cov(x, fweights=weights), np.cov(x, aweights=weights, ddof=0),
            np.cov(x, aweights=weights, fweights=weights),
        ),
        X, exact=False,
    )  # fmt: skip
    compiles(lambda x: (np.cov(x), np.corrcoef(x, rowvar=False)), X + 1j * X[::-1], exact=False)
    refuses(lambda x: np.cov(x, ddof=0.5), X)


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_histograms_of_fixed_bins(dtype):
    compiles(
        lambda x: (
            np.histogram(x), np.histogram(x, 5, (-1, 1)), np.histogram(x, bins=[-1, 0, 0.5, 2]), np.histogram(x, density=True),
            np.histogram(x, weights=x * x), np.histogram_bin_edges(x, 4), np.histogram2d(x[0], x[1], bins=3),
            np.histogram2d(x[0], x[1], bins=[3, [-1, 0, 1]], range=[[-1, 1], [0, 1]]), np.histogramdd(x[:, :2], bins=(2, 3)),
        ),
        sample(dtype, 4, 5),
    )  # fmt: skip


@pytest.mark.parametrize("how", [jl.jit, jl.function], ids=["jit", "function"])
def test_the_edges_of_a_histogram_of_many_dimensions_are_a_list_as_numpys(how):
    found, wanted = (f(X) for f in (how(lambda x: np.histogramdd(x, 2)), lambda x: np.histogramdd(x, 2)))
    assert type(found) is type(wanted) and type(found[1]) is type(wanted[1])
    np.testing.assert_array_equal(found[1], wanted[1])


def test_histograms_refuse_what_numpy_refuses():
    refuses(lambda x: np.histogram(x, bins=0), X)
    refuses(lambda x: np.histogram(x, range=(1, 0)), X)
    refuses(lambda x: np.histogram(x), WITH_NAN)
    np.testing.assert_array_equal(jl.function(lambda x: np.histogram(x, "auto")[0])(X), np.histogram(X, "auto")[0])


@pytest.mark.parametrize("dtype", ["i4", "f4", "c16"])
def test_differences(dtype):
    compiles(
        lambda x: (
            np.diff(x), np.diff(x, 2, axis=0), np.diff(x, prepend=0), np.diff(x, axis=0, append=x[:2]),
            np.ediff1d(x, [1, 2], 0),
            np.gradient(x), np.gradient(x, 2.0, axis=0), np.gradient(x, edge_order=2), np.gradient(x, 2, [0, 1, 3, 4, 6]),
            np.polyval([1, 2, 3], x), np.polyval(x[0], x[1]), np.convolve(x[0], [1, 2, 1], "same"), np.convolve([1, 2], x[0]),
            np.correlate(x[0], x[1, :3]), np.correlate(x[0, :2], x[1], "full"), np.piecewise(x, [x < 0, x >= 1], [7, 1, 3]),
        ),
        sample(dtype, 4, 5),
    )  # fmt: skip


def test_integrals_angles_and_interpolation():
    compiles(lambda x: (np.trapezoid(x), np.trapezoid(x, dx=0.5, axis=0), np.trapezoid(x, [0, 1, 3, 4, 6])), X, exact=False)
    compiles(lambda x: (np.unwrap(x * 4), np.unwrap(x, axis=0, period=3), np.unwrap(x, discont=4)), X)
    compiles(
        lambda x, p: (
            np.interp(x, p, p * 2), np.interp(x[0], [-1, 0, 1], [2, 3, 5], left=7.5, right=-1), np.interp(0.3, p, p),
            np.interp(x, [0, 1, 2.5], [2, 3, 5], period=3), np.interp(x, [-1, 0, 1], [2, 3j, 5]),
        ),
        X, np.sort(APART[0]),
    )  # fmt: skip
    compiles(lambda x, p: (np.gradient(x, p), np.gradient(x, p * 0 + [0, 1, 2, 3, 4], edge_order=2)), X[0], np.sort(APART[0]))


def test_differences_refuse_what_numpy_refuses():
    refuses(lambda x: np.diff(x, -1), X)
    refuses(lambda x: np.gradient(x[:1], axis=0), X)
    refuses(lambda x: np.gradient(x, 1.0, 2.0, 3.0), X)
    refuses(lambda x: np.convolve(x, [1]), X)
    refuses(lambda x: np.convolve(x[0], [1], "best"), X)
    refuses(lambda x: np.interp(x, [1, 2], [1, 2, 3]), X)


def test_slopes_of_statistics():
    mask = X > -1
    right_slope(lambda x: F[np.sum](x, axis=0, where=mask), X)
    right_slope(lambda x: F[np.prod](x, axis=1, initial=3.0, where=mask), X + 0.05)
    right_slope(lambda x: F[np.max](x, axis=1, initial=0.5), APART)
    right_slope(lambda x: F[np.mean](x, axis=1, where=mask), X)
    right_slope(lambda x: F[np.var](x, axis=1, where=mask), X, second=True)
    right_slope(lambda x, w: F[np.average](x, axis=1, weights=w), X, np.arange(1.0, 6.0))
    right_slope(lambda x: F[np.nanvar](x, axis=1), X)
    right_slope(lambda x: F[np.nanmax](x, axis=1), APART)
    right_slope(lambda x: F[np.cov](x), X, second=True)
    right_slope(lambda x: F[np.corrcoef](x), X)


def test_slopes_of_differences():
    v, w, places = X[0], X[1, :3], np.sort(APART[0])
    right_slope(lambda x: F[np.diff](x, 2, prepend=0.0), X)
    right_slope(lambda x: F[np.gradient](x, edge_order=2)[1], X)
    right_slope(lambda x, y: F[np.gradient](x, y), v, places)
    right_slope(lambda x, y: F[np.trapezoid](x, y), v, places, second=True)
    right_slope(lambda x: F[np.polyval]([1.0, 2.0, 3.0], x), X)
    right_slope(lambda x, p, f: F[np.interp](x, p, f), APART[1:], places, v)
    for mode in ("full", "same", "valid"):
        right_slope(lambda a, b, mode=mode: F[np.convolve](a, b, mode), v, w, second=mode == "full")
        right_slope(lambda a, b, mode=mode: F[np.convolve](a, b, mode), v[:4], v)
        right_slope(lambda a, b, mode=mode: F[np.correlate](a, b, mode), v + 1j, w - 2j)


@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (2, 0), (-1, 1), (2, 1, 0), (1,), 1])
def test_weights_have_their_axes_in_the_order_in_which_they_are_named(axis):
    x = np.arange(24.0).reshape(2, 3, 4)
    shape = tuple(x.shape[a] for a in (axis if isinstance(axis, tuple) else (axis,)))
    w = np.arange(1.0, 1 + np.prod(shape)).reshape(shape) ** 2
    for options in ({}, {"keepdims": True}, {"returned": True}):
        agrees(np.average, x, axis, w, messages=False, **options)


@pytest.mark.parametrize("dtype", ["e", "f", "d", "D"])
@pytest.mark.parametrize("start", [
    lambda x: -0.0, lambda x: 0.0, lambda x: np.float32(-0.0), lambda x: np.zeros((), x.dtype) * -1, lambda x: x.flat[0],
])  # fmt: skip
@pytest.mark.parametrize("write", [
    lambda x, z: np.sum(x, initial=z), lambda x, z: x.sum(axis=0, initial=z), lambda x, z: np.add.reduce(x, initial=z),
    lambda x, z: np.sum(x[:0], initial=z), lambda x, z: np.sum(x, initial=-0.0) + z, lambda x, z: np.nansum(x, initial=z),
    lambda x, z: np.sum(x, initial=z, where=x != 0), lambda x, z: np.sum(x, initial=z, where=x == 0, axis=1, keepdims=True),
    lambda x, z: np.sum(x, initial=x[0, 0]), lambda x, z: np.sum(x, axis=(), initial=z), lambda x, z: np.sum(x + 0, initial=z),
])  # fmt: skip
def test_a_sum_of_negative_zeros_that_starts_with_one_is_one(write, start, dtype):
    def signs(x):
        return np.signbit(x.real).tolist(), np.signbit(x.imag).tolist()

    for shape in ((3, 2), (2, 700)):
        x = np.full(shape, complex(-0.0, -0.0) if dtype == "D" else -0.0, dtype)
        for compiler in (jl.jit, jl.function):
            mine, theirs = np.asarray(compiler(write)(x, start(x))), write(x, start(x))
            assert mine.dtype == theirs.dtype and signs(mine) == signs(theirs)

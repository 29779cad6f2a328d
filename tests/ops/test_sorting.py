"""Sorting, searching and order statistics inside clusters: NumPy's results, slopes by the order, NumPy's errors."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import InvalidArgumentError
from jitlab.ops.reducing.sorting import OrderStatistic
from tests.ops.calling import F, right_slope
from tests.ops.strict_calls import compiles, refuses, sample

X = sample("f8", 4, 5)
APART = X + 0.001 * np.random.default_rng(1).permutation(20).reshape(4, 5)  # no two are equal
WITH_NAN = np.array([[1.0, np.nan, -0.0, 0.0, 2.0], [np.nan] * 5, [3.0, 1.0, 2.0, np.inf, -np.inf]])


def sorted_ways(x):
    return (
        np.sort(x), np.sort(x, axis=0), np.sort(x, axis=None), np.argsort(x, kind="stable"), x.argsort(axis=0, stable=True),
        np.partition(x, 2), np.partition(x, (1, -1), axis=0), np.lexsort((x[0], x[1])), np.lexsort(x),
        np.searchsorted(np.sort(x[0]), x), np.sort(x[0]).searchsorted(x[1], side="right"), np.isin(x, x[0]),
        np.searchsorted(x[0], x, sorter=np.argsort(x[0])), np.count_nonzero(x, axis=0), np.sort(x * 2)[::-1] + 1,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "u2", "f4", "f8", "c16"])
def test_sorting_and_searching(dtype):
    compiles(sorted_ways, sample(dtype, 4, 5))


def test_nan_and_views():
    compiles(sorted_ways, WITH_NAN)
    compiles(sorted_ways, X[::2, ::-1])


def statistics(x):
    return (
        np.median(x), np.median(x, axis=1), np.median(x, axis=(0, 1), keepdims=True), np.nanmedian(x, axis=0),
        np.percentile(x, 30), np.percentile(x, [10, 50, 99.5], axis=0), np.quantile(x, 0.3, axis=1, keepdims=True),
        np.quantile(x, 0.7, method="hazen"), np.quantile(x, [[0.1, 0.9]], axis=1, method="nearest"),
        np.nanquantile(x, [0.2, 0.7], axis=0), np.nanpercentile(x, 50),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["i1", "f4", "f8"])
def test_order_statistics(dtype):
    compiles(statistics, sample(dtype, 4, 5))


def test_order_statistics_of_nan_and_traced_probabilities():
    compiles(statistics, WITH_NAN)
    compiles(lambda x, q: (np.quantile(x, q), np.percentile(x, q * 100, axis=0)), X, np.array([0.25, 0.5]))


def test_in_place():
    def program(x):
        y, z, w = x.copy(), x.copy(), x.copy()
        y.sort()
        z[::-1].sort(axis=0)
        w.partition(2, axis=1)
        return y, z, w

    compiles(program, X)


def test_bins_and_complex_order():
    compiles(lambda x: (np.digitize(x, [-1, 0, 2]), np.digitize(x, [2, 0, -1.0], right=True), np.sort_complex(x)), X)
    compiles(lambda x: (np.sort_complex(x), np.sort(x, axis=0)), X + 1j * X[::-1])
    compiles(lambda x: np.argsort(x[0, 0]), X)


def test_one_cluster_holds_the_sort_and_its_neighbours():
    report = jl.explain(jl.function(lambda x: np.sort(x * 2, axis=1)[:, ::-1] + np.median(x)), X)
    assert len(report.clusters) == 1 and not report.fallbacks


def test_errors_are_numpys():
    refuses(lambda x: np.sort(x, axis=2), X)
    refuses(lambda x: np.sort(x, kind="best"), X)
    refuses(lambda x: np.partition(x, 9), X)
    refuses(lambda x: np.quantile(x, 1.5), X)
    refuses(lambda x, q: np.quantile(x, q), X, np.float64(1.5))
    refuses(lambda x: np.digitize(x, x[0]), np.array([[1.0, 3.0, 2.0]]))
    refuses(lambda x: np.searchsorted(x, 1.0), X)
    refuses(lambda x: np.lexsort((x[0], x[0, :2])), X)


def test_slopes():
    right_slope(lambda x: F[np.sort](x, 0), APART, second=True)
    right_slope(lambda x: F[np.sort](x, None), APART)
    right_slope(lambda x: F[np.partition](x, 2, axis=1), APART)
    right_slope(lambda x: F[np.take_along_axis](x, F[np.argsort](x, axis=1), 1), APART)
    right_slope(lambda x: F[np.median](x, axis=0), APART, second=True)
    right_slope(lambda x: F[np.quantile](x, 0.3, axis=1, keepdims=True), APART)
    right_slope(lambda x: F[np.percentile](x, np.float32([[20, 30], [99, 100]]), axis=0, method="weibull"), APART)


def test_the_slope_of_a_median_leaves_nan_out():
    x = np.array([[1.0, np.nan, 4.0, 2.0], [np.nan, 5.0, np.nan, 3.0]])
    slope = jl.grad(lambda x: np.nanmedian(x, axis=1).sum())(x)
    np.testing.assert_array_equal(slope, [[0, 0, 0, 1], [0, 0.5, 0, 0.5]])
    np.testing.assert_array_equal(jl.grad(lambda x: np.sort(x)[0])(np.array([2.0, 1.0, 1.0])), [0, 1, 0])


DATA_DEPENDENT = [
    lambda x: np.unique(x), lambda x: np.nonzero(x), lambda x: x.nonzero(), lambda x: np.argwhere(x),
    lambda x: np.flatnonzero(x), lambda x: np.trim_zeros(x[0]),
    lambda x: np.extract(x > 0, x), lambda x: np.compress(x[0] > 0, x, axis=1), lambda x: np.union1d(x, 1.0),
    lambda x: np.intersect1d(x, x[0]), lambda x: np.setdiff1d(x, x[0]), lambda x: np.setxor1d(x, x[0]),
    lambda x: np.bincount(np.abs(x[0]).astype(int), minlength=9), lambda x: np.unique(x, return_counts=True),
]  # fmt: skip


@pytest.mark.parametrize("function", DATA_DEPENDENT)
def test_what_is_as_long_as_the_data_make_it_says_so(function):
    want, got = function(X), jl.function(function)(X)
    for mine, theirs in zip(*([r] if isinstance(r, np.ndarray) else r for r in (got, want)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(InvalidArgumentError, match=r"Detected unsupported operations") as error:
        jl.function(function, jit_compile=True)(X)
    text = str(error.value)
    assert "depends on the data" in text or "each element" in text or "known only at run time" in text
    assert "where:" in text and "line " in text and "try:" in text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_median_of_a_row_has_numpys_bits(dtype):
    draw = np.random.default_rng(7)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    median = OrderStatistic("median")
    for n in (*range(1, 40), 300):
        rows = draw.normal(size=n), draw.choice(special, n), draw.choice(special[2:], n), np.arange(n)
        for x in (row.astype(dtype) for row in rows):
            before = x.copy()
            with np.errstate(all="ignore"):
                found, wanted = median.numpy(x), np.median(x)
            assert type(found) is type(wanted) and found.tobytes() == wanted.tobytes(), x
            assert x.tobytes() == before.tobytes()
    assert np.isnan(median.numpy(np.zeros((2, 0), dtype))).all() and median.numpy(np.ones((2, 3), dtype)).tolist() == [1, 1]


def test_the_median_of_each_window_is_no_call_of_numpys_python(monkeypatch):
    median = np.median

    def smooth(x):
        out = np.zeros_like(x)
        for i in range(len(x) - 4):
            out[i] = median(x[i : i + 5])
        return out

    x = np.random.default_rng(1).normal(size=50)
    compiled, wanted = jl.jit(smooth), smooth(x)
    np.testing.assert_array_equal(compiled(x), wanted)
    calls = []
    monkeypatch.setattr(np, "median", lambda *args, **kwargs: calls.append(args))
    np.testing.assert_array_equal(compiled(x), wanted)
    assert not calls

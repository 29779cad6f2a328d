"""A value that is read at many places is stored where computing it at each would cost more; results stay the same."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir import NotFused

windows = np.lib.stride_tricks.sliding_window_view


def sines(x, n=8):
    for i in list(range(n)):
        x = np.sin(x[:-1]) * x[1:] + i
    return x


def means(x, n=40):
    for _ in list(range(n)):
        x = x[:-1] * 0.5 + x[1:] * 0.5
    return x


def jacobi(x, n=6):
    for _ in list(range(n)):
        x = 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
    return x


def spread(x):
    e = np.exp(x)
    return e[:-4] + e[1:-3] + e[2:-2] + e[3:-1] + e[4:]


def row_sums(x):
    s = np.sqrt(x)
    return (s[:, :-3] + s[:, 1:-2] + s[:, 2:-1] + s[:, 3:]).sum(axis=1)


def in_a_loop(x, n=5):
    total = np.zeros(x.shape[0] - 4)
    for i in range(n):
        total += spread(x * (i + 1))
    return total


def reported(function, *args):
    with jl.record() as recording:
        result = jl.jit(function, fullgraph=True)(*args)
    return result, recording.report()


LINE, SQUARE = np.linspace(0.1, 1, 300), np.linspace(0.1, 1, 900).reshape(30, 30)


@pytest.mark.parametrize(("function", "x"), [
    (sines, LINE), (means, LINE), (jacobi, SQUARE), (spread, LINE), (row_sums, SQUARE), (in_a_loop, LINE),
], ids=lambda value: getattr(value, "__name__", ""))  # fmt: skip
@pytest.mark.parametrize("level", ["O1", "O0"])
def test_values_are_numpys(function, x, level):
    np.testing.assert_allclose(jl.jit(function, jit_level=level)(x), function(x), rtol=1e-9)


@pytest.mark.parametrize(("function", "x", "most"), [(sines, LINE, 8), (means, LINE, 8), (jacobi, SQUARE, 6)])
def test_a_long_chain_is_cut_into_nests_that_compute_little_again(function, x, most):
    _, report = reported(function, x)
    assert 2 <= len(report.kernels) <= most
    assert {edge.reason.code for edge in report.boundaries} == {NotFused.RECOMPUTE_IS_EXPENSIVE.value}


def test_the_reason_says_where_it_is_read_and_what_it_would_cost():
    _, report = reported(spread, LINE)
    (edge,) = {boundary.reason.text for boundary in report.boundaries}
    line = spread.__code__.co_firstlineno + 1
    assert edge == f"`e` is read at 5 places, and computing it at each would take 80 more operations; 2.4 kB (line {line})"
    assert {tuple(boundary.reason.evidence) for boundary in report.boundaries} == {("5", "80", "32")}


@pytest.mark.parametrize("function", [
    lambda x: (x * 2)[:-1] + (x * 2)[1:],
    lambda x: np.exp(x)[:-1] + np.exp(x)[1:],
    lambda x: np.exp(x) / np.exp(x)[0],
    lambda x: sum((x * 2)[i : i + 100] for i in range(9)),
])  # fmt: skip
def test_what_is_cheap_to_compute_again_is_not_stored(function):
    result, report = reported(function, LINE)
    np.testing.assert_allclose(result, function(LINE), rtol=1e-12)
    assert len(report.kernels) == 1


def test_a_what_if_computes_it_again_all_the_same():
    f = jl.function(spread)
    answer = f.whatif(LINE, fuse=("Exp", "Slice"), seconds=0.01)
    assert (answer.before.kernels, answer.after.kernels) == (2, 1) and answer.after.temporaries == 0


@pytest.mark.parametrize(("function", "kernels"), [
    (lambda x: windows(x, 50)[::7] * 2, 1),
    (lambda x: windows(x, 50).mean(axis=1), 1),
    (lambda x: windows(windows(x, 50)[::5], 4, axis=0)[:, ::-1] + 1, 1),
    (lambda x: (windows(x.reshape(20, 15), (3, 4))[::2] * np.arange(4.0)).sum(axis=(-2, -1)), 1),
    (lambda x: windows(np.exp(x), 9)[3:] + 1, 2),
    (lambda x: windows(x[np.arange(290)], 9)[::3].sum(axis=1), 2),
])  # fmt: skip
def test_windows_are_read_where_they_lie_and_what_they_slide_over_is_computed_once(function, kernels):
    result, report = reported(function, LINE)
    np.testing.assert_allclose(result, function(LINE), rtol=1e-12)
    assert len(report.kernels) == kernels
    assert sum(temporary.bytes for temporary in report.temporaries) <= LINE.nbytes


def test_windows_of_elements_that_are_not_there_raise_as_in_python():
    with pytest.raises(IndexError, match="out of bounds"):
        jl.jit(lambda x: windows(x[np.arange(301)], 9)[:1] + 1)(LINE)


def logistic(x, w):
    p = 1 / (1 + np.exp(-(x @ w)))
    return x.T @ (p - 0.5)


def weighted(x, w):
    return (np.sqrt(np.abs(w) + 1)[:, None] / 3 * x).sum(axis=0)


@pytest.mark.parametrize(("function", "first", "dtype"), [
    (logistic, "Exp", "f8"), (weighted, "Sqrt", "f8"), (weighted, "Sqrt", "f4"),
])  # fmt: skip
def test_what_all_lanes_of_a_loop_over_rows_share_is_stored_before_it(function, first, dtype):
    """It would be computed one by one, and again for each vector of columns."""
    x = np.random.default_rng(3).normal(size=(60, 40)).astype(dtype)
    w = x[0].copy() if function is logistic else x[:, 0].copy()
    result, report = reported(function, x, w)
    near = 1e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(result, function(x, w), rtol=near, atol=near)
    (name,) = (cluster.name for cluster in report.clusters)
    before, after = report.ir(name, stage="program").split("kernel k1:")
    assert first in before and not any(word in after.split("r1 <-")[0] for word in ("Exp", "Sqrt", "RealDiv"))
    assert len(report.kernels) == 2


def test_what_is_cheap_is_computed_where_lanes_share_it():
    x = np.random.default_rng(3).normal(size=(60, 40))
    result, report = reported(lambda x, w: ((w * 2 + 1)[:, None] * x).sum(axis=0), x, x[:, 0].copy())
    np.testing.assert_allclose(result, ((x[:, 0] * 2 + 1)[:, None] * x).sum(axis=0), rtol=1e-11, atol=1e-13)
    assert len(report.kernels) == 1

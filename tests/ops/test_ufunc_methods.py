"""`reduce`, `accumulate`, `reduceat`, `outer` and `at` of every function of two elements."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.ops.numpy_api.ufunc_methods import BINARY
from tests.ops.calling import F, right_slope
from tests.ops.strict_calls import compiles, refuses, sample

X = sample("f8", 4, 5)
INTS = np.abs(sample("i4", 4, 5)) + 1

#: Within the bounds of docs/reference/numerics.md; the others have NumPy's bits.
BOUNDED = {"add", "multiply", "logaddexp", "logaddexp2", "hypot", "arctan2", "power", "float_power"}


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_methods_of(ufunc):
    x = INTS if not any(t.startswith("dd") for t in ufunc.types) else X
    calls = []
    for call in (
        lambda x: ufunc.reduce(x, axis=1, keepdims=True),
        lambda x: ufunc.accumulate(x, axis=1),
        lambda x: ufunc.reduceat(x, [0, 3, 1], axis=0),
    ):
        try:
            call(x)
        except TypeError:
            continue
        calls.append(call)
    if calls:  # comparisons of numbers reduce to nothing
        compiles(lambda x: [call(x) for call in calls], x, exact=ufunc.__name__ not in BOUNDED)


def test_outer():
    compiles(lambda x: (np.less.outer(x[0], x[1, :2]), np.subtract.outer(x[0], x), np.copysign.outer(x[0], x[1])), X)


def test_arguments_of_reduce():
    compiles(
        lambda x: (
            np.add.reduce(x, axis=None), np.add.reduce(x, axis=(0, 1), initial=2), np.bitwise_or.reduce(x, axis=None),
            np.bitwise_and.reduce(x, axis=1, where=x > 2), np.fmax.reduce(x, axis=1, where=x > 2, initial=0),
            np.subtract.reduce(x, initial=3), np.add.reduce(x, dtype="f4"), np.multiply.accumulate(x, dtype="f8"),
            np.logical_or.reduce(x, axis=1), np.bitwise_xor.reduce(x[:0]), np.lcm.reduce(x[:, :2]),
        ),
        INTS,
    )  # fmt: skip


def test_updates_at_positions():
    def program(x):
        a, b, c, d = x.copy(), x.copy(), x.copy(), x.copy()
        np.add.at(a, [0, 1, 0], 1)
        np.subtract.at(b, ([0, 0], [1, 1]), 2)
        np.multiply.at(c, [0, 0, 1], 3)
        np.maximum.at(d, ([0, 0], [1, 1]), [2, 9])
        np.negative.at(d, [0, 0, 1])
        return a, b, c, d

    compiles(program, X)
    compiles(program, INTS)


def test_errors_are_numpys():
    refuses(lambda x: np.subtract.reduce(x, axis=(0, 1)), X)
    refuses(lambda x: np.fmin.reduce(x[:0]), X)
    refuses(lambda x: np.maximum.reduce(x, where=x > 0), X)
    refuses(lambda x: np.bitwise_or.reduce(x), X)

    def outside(x):
        np.multiply.at(x, [9], 2.0)
        return x

    refuses(outside, X)


def test_slopes():
    right_slope(lambda x: F[np.logaddexp.reduce](x, axis=1), X, second=True)
    right_slope(lambda x: F[np.hypot.reduce](x, axis=0), X)
    right_slope(lambda x: F[np.add.reduce](x, axis=1, where=X > 0, initial=1.0), X)
    right_slope(lambda x, y: F[np.multiply.outer](x, y), X[0], X[1])


def test_a_library_call_is_a_kernel_of_the_cluster():
    report = jl.explain(jl.function(lambda x: np.maximum.reduceat(x * 2, [0, 2], axis=1) + 1), X)
    assert len(report.clusters) == 1 and not report.fallbacks

"""Reductions go along memory, whichever axes they reduce; what they give does not depend on it."""

import itertools

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir.programs.program import LANES, For, walk
from jitlab.runtime import Executable
from tests.ops.strict_calls import compiles

AXES = [axes for count in (1, 2, 3) for axes in itertools.combinations(range(3), count)]


def reductions(axes):
    def function(x):
        return (
            x.sum(axes), x.max(axes), (x + 1).min(axes), (x > 2).any(axes), np.sqrt(np.abs(x.sum(axes))) * 2,
            (x - x.max(axes, keepdims=True)).sum(axes), x.argmax(axes[0] if len(axes) == 1 else None),
        )  # fmt: skip

    return function


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 0, 2)], ids=str)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_any_axes_of_any_layout(dtype, axes, order):
    """Of whole numbers, whose sums are exact in any order."""
    base = np.random.default_rng(3).integers(-9, 9, (9, 33, 11)).astype(dtype)
    for x in (base, base[::-1, ::2, ::-1], base[:0], base[:, :1]):
        if x.size or axes in ((1,), (2,)):
            compiles(reductions(axes), np.transpose(x, order) if x.size else x)


def test_nan_and_infinities_of_columns():
    x = np.random.default_rng(3).standard_normal((300, 70))
    x[5, 6], x[7, 7], x[8, 7], x[299, 69] = np.nan, np.inf, -np.inf, np.nan
    compiles(lambda x: (x.T.max(1), x.T.min(0), x.T.argmax(1), x.T.max(), np.isnan(x.T.sum(1)), np.isnan(x.T.sum())), x)


@pytest.mark.parametrize("rows", [31, 32, 33, 1000])
def test_tall_ones_are_read_by_rows(rows, monkeypatch):
    """Blocks of rows, as the same sum of an array that is not transposed: the same bits, and an error within the bound."""
    x = np.random.default_rng(3).standard_normal((rows, 400))
    turned, straight = jl.jit(lambda x: x.T.sum(1))(x), jl.jit(lambda x: x.sum(0))(x)
    assert turned.tobytes() == straight.tobytes() == jl.jit(lambda x: x.sum(1))(np.asfortranarray(x.T)).tobytes()
    wrong = np.abs(turned - x.astype(np.longdouble).sum(0))
    assert wrong.max() <= 20 * np.finfo(float).eps * np.abs(x).sum(0).max()


@pytest.mark.parametrize(("function", "over_lanes"), [
    (lambda x: x.sum(1), False), (lambda x: x.sum(0), True), (lambda x: x.mean(), True), (lambda x: x.argmax(0), True),
    (lambda x: x.T @ x[:, 0], None),
])
def test_vectors_run_along_memory(function, over_lanes, monkeypatch):
    programs, real = [], Executable._lower
    monkeypatch.setattr(Executable, "_lower", lambda *args: programs.append(real(*args)) or programs[-1])
    jl.jit(function)(np.asfortranarray(np.random.default_rng(3).standard_normal((30, 40))))
    loops = [s for lowered in programs for k in lowered.program.kernels for s in walk(k.body) if isinstance(s, For)]
    assert over_lanes is None or any(s.kind == LANES for s in loops) == over_lanes

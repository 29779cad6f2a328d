"""Views of new arrays, transposed results among them, are given by machine code: no Python runs, and they are NumPy's views."""

import gc
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.cpu_llvm.calls.entry import layout_is_known

pytestmark = pytest.mark.skipif(not layout_is_known(), reason="every call takes the Python way on this interpreter")


def square():
    return np.arange(12.0).reshape(3, 4)


@pytest.fixture
def warm(monkeypatch):
    """A function that Python does not run any more."""

    def made(function, *args):
        traced = jl.function(function)
        for _ in range(8):
            traced(*args)
        monkeypatch.setattr(jl.Function, "_run", lambda *a: pytest.fail("Python ran it"))
        return traced

    return made


@pytest.mark.parametrize(("function", "x"), [
    (lambda x: x * 2 + 1, np.asfortranarray(square())),
    (lambda x: (x * 2).T, square()),
    (lambda x: (x * 2)[1:], square()),
    (lambda x: (x * 2)[::-1, 1:3], square()),
    (lambda x: (x * 2)[1], square()),
    (lambda x: (x > 3)[:, ::2], square()),
    (lambda x: (x * 2).reshape(2, 3, 2).transpose(2, 0, 1), square()),
    (lambda x: (x * 2).reshape(100, 200).T, np.arange(20_000.0)),
    (lambda x: [(y := x * 2)[2:], {"all": y.T}], square()),
    (lambda x: ((y := x * 2)[1:], y[:-1]), square()),
])  # fmt: skip
def test_they_are_numpys(warm, function, x):
    for found, wanted in zip(*(leaves(f(x)) for f in (warm(function, x), function)), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert (found.dtype, found.strides) == (wanted.dtype, wanted.strides)
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED"):
            assert found.flags[flag] == wanted.flags[flag]


def leaves(result):
    if isinstance(result, dict):
        return leaves(list(result.values()))
    return [leaf for item in result for leaf in leaves(item)] if isinstance(result, (list, tuple)) else [result]


def test_two_views_of_one_array_share_it(warm):
    first, second = warm(lambda x: ((y := x * 2)[1:], y[:-1]), square())(square())
    second[1] = 7
    np.testing.assert_array_equal(first[0], 7)
    assert first.base is second.base


@pytest.mark.parametrize("n", [12, 20_000])
def test_a_view_keeps_its_array_and_nothing_else_does(warm, n):
    x = np.arange(float(n))
    f = warm(lambda x: (x * 2)[1:], x)
    view = f(x)
    counts = sys.getrefcount(view), sys.getrefcount(view.base)
    assert view.base.shape == (n,) and counts == (2, 2)
    part = view[3:]
    del view
    gc.collect()
    others = [f(x) for _ in range(4)]
    for other in others:
        other[:] = -1
    np.testing.assert_array_equal(part, x[4:] * 2)


@pytest.mark.parametrize("function", [
    lambda x: np.broadcast_to(x * 2, (5, 3, 4)), lambda x: np.diagonal(x * 2), lambda x: (x * 2)[3:],
    lambda x: (x[1:], x * 2),
])  # fmt: skip
def test_what_else_is_a_view_stays_numpys_own(function):
    x, traced = square(), jl.function(function)
    for _ in range(8):
        for found, wanted in zip(leaves(traced(x)), leaves(function(x)), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.flags.writeable == wanted.flags.writeable
            assert np.shares_memory(found, x) == np.shares_memory(wanted, x)


def test_each_size_has_its_own_view():
    sizes = [np.arange(5.0 + n) for n in range(3)]
    traced = jl.function(lambda x: (x * 2)[1:], reduce_retracing=True)
    for n in range(30):
        np.testing.assert_array_equal(traced(sizes[n % 3]), (sizes[n % 3] * 2)[1:])

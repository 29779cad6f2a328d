"""`x.shape = ...`: the array object itself gets another shape."""

import numpy as np
import pytest

import jitlab as jl


def flattened(n):
    a, b = np.mgrid[0:n, 0 : n + 1]
    a = a * 1.5
    a.shape = n * (n + 1)
    a[::2] = 0
    return a, a.sum(), b


def seen_by_its_views(x):
    y = x + 1
    row = y[1]
    y.shape = (-1,)
    y[4] = 100
    return y, row


def of_a_view(x):
    y = x * 2
    v = y[1:]
    v.shape = (4, 2)
    v[0] = -1
    return y, v


def twice(x):
    y = x.copy()
    y.shape = (8, 1)
    y.shape = (2, 2, 2)
    return y


def in_a_loop(x):
    total = 0.0
    for k in range(20):
        y = x * k
        y.shape = (8,)
        total += y[k % 8]
    return total


@pytest.mark.parametrize("make", [jl.function, jl.jit])
@pytest.mark.parametrize(
    ("program", "argument"),
    [(seen_by_its_views, (2, 4)), (of_a_view, (5, 2)), (twice, (2, 4)), (in_a_loop, (2, 4)), (flattened, 5)],
)
def test_an_array_gets_another_shape(program, argument, make):
    given = argument if isinstance(argument, int) else np.arange(float(np.prod(argument))).reshape(argument)
    found, wanted = make(program)(given), program(given)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wanted)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.shape(a) == np.shape(b)


def test_a_shape_that_needs_a_copy_is_numpys_error():
    def program(x):
        y = (x + 1).T
        y.shape = (-1,)
        return y

    with pytest.raises(AttributeError, match="Incompatible shape for in-place modification"):
        jl.function(program)(np.ones((3, 4)))


def test_the_callers_own_array_gets_it_too():
    def program(x):
        x.shape = (4, 3)
        x[0] = 7

    mine, theirs = np.ones((3, 4)), np.ones((3, 4))
    jl.jit(program)(mine)
    program(theirs)
    assert mine.shape == (4, 3)
    np.testing.assert_array_equal(mine, theirs)

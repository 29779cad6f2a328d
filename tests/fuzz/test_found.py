"""Programs that the fuzzer has found, kept small: each was wrong once."""

import numpy as np
import pytest

import jitlab as jl
from tests.left import ours_in

X = np.arange(16.0).reshape(4, 4) - 5
EMPTY = np.zeros((4, 0))


@pytest.mark.parametrize(
    ("program", "x"),
    [
        (lambda x: np.take(np.max(x, axis=1, keepdims=True) == 3, [0, -1], axis=-1), X),
        (lambda x: x[::2] @ x[::2].T, EMPTY),
    ],
    ids=["picked from a reduction that keeps its axis", "a product over no elements"],
)
def test_it_gives_what_numpy_gives(program, x):
    want = program(x)
    for transform in (jl.jit, jl.function):
        got = transform(program)(x)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_partitioning_nothing_gives_nothing():
    for transform in (jl.jit, jl.function, lambda f: jl.function(f, jit_compile=False)):
        assert transform(lambda x: np.partition(x, 0))(np.zeros(0)).shape == (0,)


def test_the_conjugate_of_bools_by_method_is_bools():
    for transform in (jl.jit, jl.function):
        assert transform(lambda x: (x > 0).conj())(X).dtype == bool


def test_products_of_halves_are_added_up_as_floats():
    x = np.array([[-7336.0, 172.0, -57.3], [515.0, -57.3, -172.0]], np.float16)
    for program in (lambda x: x @ x[0], lambda x: np.dot(x[None], x.T), lambda x: np.einsum("ij,kj->ik", x, x)):
        with np.errstate(all="ignore"):
            want = program(x)
        got = jl.function(program, jit_compile=True)(x)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


LARGE = np.arange(25.0).reshape(5, 5) % 4

#: What NumPy gives in several arrays, or in arrays that are columns of one.
GIVEN = {
    "where": lambda x: np.where(x)[0],
    "where, the second": lambda x: np.where(x)[1],
    "nonzero": lambda x: np.nonzero(x > 1)[1],
    "a mask": lambda x: x[x > 1],
    "argwhere": lambda x: np.argwhere(x)[:, 1],
    "unique": lambda x: np.unique(x, return_counts=True)[1],
    "unique inverse": lambda x: np.unique(x, return_inverse=True)[1].ravel(),
    "divmod": lambda x: np.divmod(x, 3)[0].ravel(),
    "histogram": lambda x: np.histogram(x, 7)[0],
    "modf": lambda x: np.modf(x / 3)[1].ravel(),
    "lstsq": lambda x: np.linalg.svd(x)[1],
}


def reversed_product(w):
    w[::-1] *= w[::-1]
    return w


def shifted(w):
    w[1:] = w[:-1] + 1
    return w


def moved_in_a_loop(w):
    for i in range(3, 0, -1):
        w[:i] = w[-i:]
    return w


def through_two_names(w):
    v = w
    v[::2] = 0
    u = v[1:]
    u += w[:-1]
    return w, v, u


def element_by_element(w):
    for i in range(1, len(w)):
        w[i] = w[i - 1] + w[i]
    return w


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("write", [reversed_product, shifted, moved_in_a_loop, through_two_names, element_by_element])
def test_what_NumPy_made_is_written_where_it_lies(given, write):
    """Writes into an array of a host operation, whose length only the run knows: memory that nobody set up was read."""
    make = GIVEN[given]

    def program(x):
        return write(make(x))

    for transform in (jl.jit, jl.function, lambda f: jl.jit(f, jit_level="O0")):
        compiled = transform(program)
        for x in (LARGE, LARGE.T, LARGE[::-1]):
            got, want = compiled(x.copy()), program(x.copy())
            assert not ours_in(got)
            for mine, theirs in zip(got if type(got) is tuple else [got], want if type(want) is tuple else [want], strict=True):
                assert mine.dtype == theirs.dtype
                np.testing.assert_allclose(mine, theirs, rtol=1e-12)

"""Programs that the fuzzer has found, kept small: each was wrong once."""

import numpy as np
import pytest

import jitlab as jl

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

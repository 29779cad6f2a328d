"""Integers of the inputs where NumPy's functions want a Python number: `jl.function` takes their values as part of the key,
also where they come as NumPy scalars and 0-d arrays."""

import numpy as np
import pytest

import jitlab as jl

X, V = np.arange(12.0).reshape(3, 4), np.arange(6.0)

CALLS = [
    lambda x, v, k: np.rot90(x, k),
    lambda x, v, k: np.rot90(x, -k),
    lambda x, v, k: np.tril(x, k),
    lambda x, v, k: np.triu(x, k),
    lambda x, v, k: np.eye(3, k=k),
    lambda x, v, k: np.eye(k + 1),
    lambda x, v, k: np.tri(3, 3, k),
    lambda x, v, k: np.identity(k + 2),
    lambda x, v, k: np.indices((k + 1, 2)),
    lambda x, v, k: np.diag(v, k),
    lambda x, v, k: np.diagonal(x, k),
    lambda x, v, k: np.trace(x, k),
    lambda x, v, k: np.squeeze(x[:, :, None], k + 1),
    lambda x, v, k: np.vander(v, k),
    lambda x, v, k: np.stack([x, x], k),
    lambda x, v, k: np.concatenate([x, x], axis=k),
    lambda x, v, k: np.tensordot(x, x.T, k),
    lambda x, v, k: np.cov(x, ddof=k),
    lambda x, v, k: np.roll(x, k),
    lambda x, v, k: np.diff(x, k),
    lambda x, v, k: np.swapaxes(x, k, 0),
    lambda x, v, k: np.split(v, k + 1),
    lambda x, v, k: np.sum(x, axis=k),
    lambda x, v, k: np.linspace(0, 1, k + 2),
]


@pytest.mark.parametrize("make", [np.int64, np.array], ids=["scalar", "0-d array"])
@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_number_that_an_input_holds(number, make):
    call = CALLS[number]
    compiled = jl.function(call)
    for k in (1, 0):
        try:
            expected = call(X, V, make(k))
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(X, V, make(k))
            continue
        np.testing.assert_array_almost_equal_nulp(np.asarray(compiled(X, V, make(k))), np.asarray(expected), 4)


def test_a_number_that_is_computed_from_values_is_taken_from_each_call():
    f = jl.function(lambda x: np.rot90(x, (x.sum() > 3).astype(int)))
    np.testing.assert_array_equal(f(X), np.rot90(X))
    np.testing.assert_array_equal(f(X * 0), X * 0)

"""Kernels over the rows of one matrix share a loop over blocks of rows."""

import numpy as np
import pytest

import jitlab as jl

RNG = np.random.default_rng(3)


def twice(a, x):
    return (a @ x) @ a


def update_then_product(a, u, v, y):
    a += np.outer(u, v)
    return y @ a


def other_rows(a, x):
    t = a @ x
    return t[::-1].copy() @ a


def kernels_of(function, *arguments):
    with jl.record() as recording:
        result = jl.jit(function)(*[x.copy() for x in arguments])
    return result, len(recording.report().kernels)


@pytest.mark.parametrize("shape", [(300, 600), (301, 1200), (257, 257)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_matrix_that_is_read_twice_by_rows_is_read_once(shape, dtype):
    a, x = (RNG.standard_normal(n).astype(dtype) for n in (shape, shape[1]))
    found, kernels = kernels_of(twice, a, x)
    tolerance = np.finfo(dtype).eps * sum(shape) * ((abs(a) @ abs(x)) @ abs(a)).max()
    assert abs(found - twice(a.astype(float), x.astype(float))).max() <= tolerance
    big = a.nbytes >= 1 << 20
    assert kernels == (1 if big else 2)


def test_rows_that_were_just_written_are_read_in_the_same_block():
    a, u, v, y = RNG.standard_normal((400, 500)), *(RNG.standard_normal(n) for n in (400, 500, 400))
    mine = a.copy()
    found = jl.jit(update_then_product)(mine, u, v, y)
    np.testing.assert_allclose(mine, a + np.outer(u, v), rtol=1e-14)
    np.testing.assert_allclose(found, y @ mine, rtol=1e-9, atol=1e-9)
    assert kernels_of(update_then_product, a, u, v, y)[1] == 1


def test_rows_in_another_order_wait_for_the_whole_loop():
    a, x = RNG.standard_normal((400, 500)), RNG.standard_normal(500)
    found, kernels = kernels_of(other_rows, a, x)
    np.testing.assert_allclose(found, other_rows(a, x), rtol=1e-9, atol=1e-9)
    assert kernels > 1


def test_very_many_sums_over_one_space_do_not_share_one_nest():
    def program(x, w):
        seen, sums = [], []
        for i in range(70):
            seen.append(i)  # an effect: the loop is unrolled
            sums.append(np.sum(x[:, i : i + 2, :, None] * w, axis=(1, 2)))
        return np.stack(sums)

    x, w = RNG.standard_normal((8, 71, 3)), RNG.standard_normal((2, 3, 4))
    with jl.record() as recording:
        found = jl.function(program)(x, w)
    np.testing.assert_allclose(found, program(x, w), rtol=1e-12, atol=1e-12)
    assert len(recording.report().kernels) == 3  # 64 sums, 6 sums, what puts them together

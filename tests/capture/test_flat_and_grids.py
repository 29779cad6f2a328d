"""`x.flat`, `np.mgrid`, `np.ogrid`, `np.r_` and `np.c_` under `jl.jit` and `jl.function`: values, and what they leave."""

import numpy as np
import pytest

import jitlab as jl
from tests.capture.same import assert_same


def read(m):
    picked = m.flat[[1, 3]], m.flat[np.array([4, 5])]
    return m.flat[2], m.flat[-1], m.flat[:], m.flat[3:9:2], len(m.flat), np.sum(m.flat), np.array(m.flat), *picked


def a_copy_of_a_part(m):
    part = m.flat[2:8]
    part[0] = 100
    return part, m


def written(m):
    y = np.zeros((2, 2))
    y.flat[:2] = m[0, :2]
    y.flat[1] = 9
    m.flat[3] = -1
    m.flat[::7] = 100
    m.T.flat[1] = 55
    m.flat[[4, 5]] = 7
    m[:, 1:3].flat[2:5] = -7
    return y, m


def written_whole(m):
    m.flat = m[::-1]
    m.T.flat = np.arange(m.size) * 2
    m[0].flat = 3
    return m


def written_in_a_loop(m):
    for i, v in enumerate(m.flat):
        m.flat[i] = v * 2 + i
    for i in range(m.size):
        m.flat[i] = m.flat[i] - i
    return m


def iterated(m):
    total, flat = 0.0, m.flat
    for v in flat:
        total = total * 0.5 + v
    for _ in flat:  # it has been gone through
        total += 1000
    for v, w in zip(m.T.flat, m.flat, strict=True):
        total += v * w
    return total, sum(m.flat), max(m.flat), any(v > 3 for v in m.flat), [v for v in m[0].flat], list(m[0].flat)


def grids(m):
    h, w = m.shape
    y, x = np.mgrid[:h, :w]
    a, b = np.ogrid[:h, :w]
    return (y - h / 2) ** 2 + x * m, (a - 2) ** 2 + (b - 3) ** 2 <= 4, a, b


def grids_of_numbers(m):
    k = 3.0
    ends = np.mgrid[-1:1:5j, 0:2:3j], np.mgrid[0:1:5j], np.mgrid[0:1:1j], np.ogrid[-1:1:4j, 0:3:0.5]
    return np.mgrid[0:1:0.25, 0:3], np.mgrid[1:10:3, 2:3], np.mgrid[0:5:2], np.mgrid[0:k, 0:4] + m[0, 0], np.ogrid[0:5], *ends


def a_grid_is_written(m):
    grid = np.mgrid[0:3, 0:3]
    grid[0] += 5
    first, second = grid
    second[2, 2] = 9
    return grid, first, m + 1


def joined(m):
    return np.r_[m[0], 1, 2], np.c_[m[:, 0], m[:, 1]], np.r_[0:3, m[0]], np.r_[m[0], m[1]]


PROGRAMS = [
    read, a_copy_of_a_part, written, written_whole, written_in_a_loop, iterated, grids, grids_of_numbers, a_grid_is_written,
    joined,
]  # fmt: skip
M = np.arange(30.0).reshape(5, 6)
LAYOUTS = [M, M[::-1], np.asfortranarray(M), M.astype(int), M[:, ::-2], M[:, :6].astype(np.float32)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_recorded_whole(program):
    compiled = jl.jit(fullgraph=True)(program)
    for m in (*LAYOUTS, M):
        if m.dtype != np.float64 and program is iterated:
            continue  # sums of other dtypes
        mine, theirs = m.copy("K"), m.copy("K")
        assert_same(compiled(mine), program(theirs))
        assert_same(mine, theirs)


@pytest.mark.parametrize("program", [read, written, written_in_a_loop, grids, a_grid_is_written])
def test_it_is_recorded_by_jl_function(program):
    recorded = jl.function(program)
    for m in LAYOUTS[:3]:
        mine, theirs = m.copy("K"), m.copy("K")
        for one, other in zip(recorded(mine), program(theirs), strict=True):
            np.testing.assert_array_equal(one, other)
        assert_same(mine, theirs)


# ---- what is NumPy's


def repeats(m):
    m.flat = [1, 2]
    m.flat[1:] = [1, 2, 3]
    return m


def out_of_bounds(m):
    m.flat[0] = 8
    return m.flat[1000]


def the_iterator(m):
    return m.flat.index, m.flat.coords, m.flat.copy(), m.flat.base is m


def by_a_mask(m):
    m.flat[m.ravel() > 20] = 5
    return m.flat[m.ravel() > 4]


def no_size(m):
    return np.mgrid[3:0, 0:2], m


def no_step(m):
    return np.mgrid[0:3:0], m


def decided_by_data(m):
    return np.mgrid[0:2, 0 : int(m[0, 3])], m


@pytest.mark.parametrize("program", [repeats, out_of_bounds, the_iterator, by_a_mask, no_size, no_step, decided_by_data])
def test_it_is_what_numpy_does(program):
    compiled = jl.jit(program)

    def outcome(function, m):
        try:
            return function(m), m
        except Exception as error:
            return type(error), str(error), m

    for m in (M, M, LAYOUTS[3]):
        assert_same(outcome(compiled, m.copy())[:-1], outcome(program, m.copy())[:-1])


def test_a_read_only_array_is_not_written_through_flat():
    m = M.copy()
    m.flags.writeable = False

    def program(m):
        m.flat[3] = 1
        return m

    for function in (program, jl.jit(program)):
        with pytest.raises(ValueError, match="read-only"):
            function(m)

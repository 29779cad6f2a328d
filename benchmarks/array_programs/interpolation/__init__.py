"""Values between the points of a table: two gathers and a blend."""

import numpy as np

TITLE = "interpolation in a table"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (4_000_000,)}
SMALL = (1000,)
UNSUPPORTED = {"numexpr": "it has no gather"}


def program(table, at):
    below = at.astype(np.int64)
    share = at - below.astype(at.dtype)
    return table[below] * (1 - share) + table[below + 1] * share


def inputs(shape, dtype, rng):
    return rng.normal(size=1001).astype(dtype), rng.uniform(0, 999, shape).astype(dtype)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(table, at):
        out = np.empty_like(at)
        one = at.dtype.type(1)
        for i in prange(at.size):
            below = int(at[i])
            share = at[i] - at.dtype.type(below)
            out[i] = table[below] * (one - share) + table[below + 1] * share
        return out

    return run

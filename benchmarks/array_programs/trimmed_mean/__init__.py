"""The mean of the middle half of each row: a sort of many short rows, and a reduction."""

import numpy as np

TITLE = "trimmed mean of rows"
SIZES = {"small": (50, 16), "medium": (2000, 32), "large": (20_000, 64)}
SMALL = (50, 16)
UNSUPPORTED = {"numexpr": "it has no sort"}


def program(x):
    quarter = x.shape[1] // 4
    return np.sort(x, axis=1)[:, quarter:-quarter].mean(axis=1)


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x):
        out = np.empty(x.shape[0], x.dtype)
        quarter = x.shape[1] // 4
        for i in prange(x.shape[0]):
            row = np.sort(x[i])
            total = x.dtype.type(0)
            for j in range(quarter, x.shape[1] - quarter):
                total += row[j]
            out[i] = total / x.dtype.type(x.shape[1] - 2 * quarter)
        return out

    return run

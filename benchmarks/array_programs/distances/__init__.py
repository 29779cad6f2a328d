"""Squared distances of all pairs of points in eight dimensions."""

import numpy as np

TITLE = "pairwise distances, 8 dimensions"
SIZES = {"small": (30, 8), "medium": (300, 8), "large": (1500, 8)}
SMALL = (30, 8)
UNSUPPORTED = {"numexpr": "a reduction ends its expression"}


def program(a, b):
    return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1))


def inputs(shape, dtype, rng):
    return rng.normal(size=shape).astype(dtype), rng.normal(size=shape).astype(dtype)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(a, b):
        out = np.empty((a.shape[0], b.shape[0]), a.dtype)
        for i in prange(a.shape[0]):
            for j in range(b.shape[0]):
                s = a.dtype.type(0)
                for k in range(a.shape[1]):
                    s += (a[i, k] - b[j, k]) * (a[i, k] - b[j, k])
                out[i, j] = np.sqrt(s)
        return out

    return run

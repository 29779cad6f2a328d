"""Covariances of columns: centred, and multiplied with itself."""

import numpy as np

TITLE = "covariance matrix"
SIZES = {"small": (50, 8), "medium": (1000, 40), "large": (20_000, 200)}
SMALL = (50, 8)
UNSUPPORTED = {"numexpr": "it has no matrix product"}


def program(x):
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (len(x) - 1)


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x):
        mean = np.zeros(x.shape[1], x.dtype)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                mean[j] += x[i, j]
        mean /= x.dtype.type(x.shape[0])
        centred = np.empty_like(x)
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                centred[i, j] = x[i, j] - mean[j]
        return np.dot(centred.T, centred) / x.dtype.type(x.shape[0] - 1)

    return run

"""The price of an option on the mean of simulated paths: a running sum along each path, then reductions."""

import numpy as np

TITLE = "option on the mean of paths"
SIZES = {"small": (20, 50), "medium": (1000, 100), "large": (40_000, 250)}
SMALL = (20, 50)
UNSUPPORTED = {"numexpr": "it has no running sum"}


def program(normals):
    paths = 100 * np.exp(np.cumsum(0.0001 + 0.01 * normals, axis=1))
    return np.maximum(paths.mean(axis=1) - 100, 0).mean()


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(normals):
        paid = np.empty(normals.shape[0], normals.dtype)
        t = normals.dtype.type
        drift, size, start, n = t(0.0001), t(0.01), t(100), t(normals.shape[1])
        for i in prange(normals.shape[0]):
            log = total = t(0)
            for j in range(normals.shape[1]):
                log += drift + size * normals[i, j]
                total += start * np.exp(log)
            paid[i] = max(total / n - start, t(0))
        return paid.mean()

    return run

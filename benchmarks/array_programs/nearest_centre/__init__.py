"""The assignment step of k-means: the nearest of ten centres for each point."""

import numpy as np

TITLE = "nearest of 10 centres"
SIZES = {"small": (100, 4), "medium": (5000, 4), "large": (300_000, 4)}
SMALL = (100, 4)
UNSUPPORTED = {"numexpr": "it has no argmin"}


def program(points, centres):
    return ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)


def inputs(shape, dtype, rng):
    return rng.normal(size=shape).astype(dtype), rng.normal(size=(10, shape[1])).astype(dtype)


def for_jax(jax, compiled):
    """With NumPy's type of positions."""
    jnp = jax.numpy

    def run(points, centres):
        squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        return jnp.argmin(squares, axis=1).astype(jnp.int64)

    return compiled(run)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(points, centres):
        out = np.empty(points.shape[0], np.int64)
        for i in prange(points.shape[0]):
            best = points.dtype.type(np.inf)
            at = 0
            for j in range(centres.shape[0]):
                s = points.dtype.type(0)
                for k in range(points.shape[1]):
                    s += (points[i, k] - centres[j, k]) * (points[i, k] - centres[j, k])
                if s < best:
                    best, at = s, j
            out[i] = at
        return out

    return run

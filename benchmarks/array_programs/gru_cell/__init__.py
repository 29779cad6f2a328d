"""One step of a gated recurrent unit for a batch: six products, sigmoids and a tanh."""

import numpy as np

TITLE = "GRU cell, 32 wide"
SIZES = {"small": (4, 32), "medium": (128, 32), "large": (4096, 32)}
SMALL = (4, 32)
UNSUPPORTED = {"numexpr": "it has no matrix product"}


def program(x, h, wz, uz, wr, ur, wh, uh):
    z = 1 / (1 + np.exp(-(x @ wz + h @ uz)))
    r = 1 / (1 + np.exp(-(x @ wr + h @ ur)))
    return (1 - z) * h + z * np.tanh(x @ wh + (r * h) @ uh)


def inputs(shape, dtype, rng):
    n = shape[1]
    return tuple(rng.normal(0, 0.3, size).astype(dtype) for size in (shape, shape, *[(n, n)] * 6))


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x, h, wz, uz, wr, ur, wh, uh):
        z, r, one = x @ wz + h @ uz, x @ wr + h @ ur, x.dtype.type(1)
        for i in prange(z.shape[0]):
            for j in range(z.shape[1]):
                z[i, j] = one / (one + np.exp(-z[i, j]))
                r[i, j] = h[i, j] / (one + np.exp(-r[i, j]))
        new = x @ wh + r @ uh
        for i in prange(z.shape[0]):
            for j in range(z.shape[1]):
                new[i, j] = (one - z[i, j]) * h[i, j] + z[i, j] * np.tanh(new[i, j])
        return new

    return run

"""A net of two layers: products of matrices with what stands behind them."""

import numpy as np

TITLE = "two-layer net, 64 wide"
SIZES = {"small": (8, 64), "medium": (256, 64), "large": (8192, 64)}
SMALL = (8, 64)
UNSUPPORTED = {"numexpr": "it has no matrix product"}


def program(x, w1, b1, w2, b2):
    return np.tanh(np.maximum(x @ w1 + b1, 0) @ w2 + b2)


def inputs(shape, dtype, rng):
    n = shape[1]
    return tuple(rng.normal(0, 0.3, size).astype(dtype) for size in (shape, (n, n), (n,), (n, n), (n,)))


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x, w1, b1, w2, b2):
        h = x @ w1
        zero = x.dtype.type(0)
        for i in prange(h.shape[0]):
            for j in range(h.shape[1]):
                h[i, j] = max(h[i, j] + b1[j], zero)
        out = h @ w2
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = np.tanh(out[i, j] + b2[j])
        return out

    return run

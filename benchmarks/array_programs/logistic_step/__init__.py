"""One step down the gradient of a logistic regression: a product, a map, and the product with the transpose."""

import numpy as np

TITLE = "logistic-regression step"
SIZES = {"small": (100, 8), "medium": (2000, 50), "large": (50_000, 100)}
SMALL = (100, 8)
UNSUPPORTED = {"numexpr": "it has no matrix product"}


def program(w, X, y):
    p = 1 / (1 + np.exp(-(X @ w)))
    return w - 0.1 * (X.T @ (p - y)) / len(y)


def inputs(shape, dtype, rng):
    X = rng.normal(size=shape).astype(dtype)
    return rng.normal(size=shape[1]).astype(dtype), X, (rng.uniform(size=shape[0]) > 0.5).astype(dtype)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(w, X, y):
        p = X @ w
        one, rate = w.dtype.type(1), w.dtype.type(0.1) / w.dtype.type(y.size)
        for i in prange(p.size):
            p[i] = one / (one + np.exp(-p[i])) - y[i]
        return w - rate * (X.T @ p)

    return run

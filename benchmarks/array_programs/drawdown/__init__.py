"""The deepest fall below the maximum so far, for each series: a scan and a reduction."""

import numpy as np

TITLE = "deepest fall of each series"
SIZES = {"small": (20, 50), "medium": (500, 200), "large": (10_000, 1000)}
SMALL = (20, 50)
UNSUPPORTED = {"numexpr": "it has no running maximum", "jax": "jax.numpy.maximum.accumulate gives no compiled loop of its own"}


def program(price):
    return (price / np.maximum.accumulate(price, axis=1)).min(axis=1) - 1


def inputs(shape, dtype, rng):
    return (np.exp(np.cumsum(rng.normal(0, 0.01, shape), axis=1)).astype(dtype),)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(price):
        out = np.empty(price.shape[0], price.dtype)
        one = price.dtype.type(1)
        for i in prange(price.shape[0]):
            high, low = price[i, 0], one
            for j in range(price.shape[1]):
                high = max(high, price[i, j])
                low = min(low, price[i, j] / high)
            out[i] = low - one
        return out

    return run

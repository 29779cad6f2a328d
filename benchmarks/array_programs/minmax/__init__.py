"""Everything scaled to 0 to 1: two reductions, then all is read again."""

import numpy as np

TITLE = "scale to 0 to 1"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(x):
    low, high = x.min(), x.max()
    return (x - low) / (high - low)


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numexpr(numexpr):
    def run(x):
        low, high = numexpr.evaluate("min(x)", {"x": x}), numexpr.evaluate("max(x)", {"x": x})
        return numexpr.evaluate("(x - low) / span", {"x": x, "low": x.dtype.type(low), "span": x.dtype.type(high - low)})

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x):
        low = high = x[0]
        for i in range(x.size):
            low, high = min(low, x[i]), max(high, x[i])
        out = np.empty_like(x)
        span = high - low
        for i in prange(x.size):
            out[i] = (x[i] - low) / span
        return out

    return run

"""The Gaussian error linear unit by its tanh formula."""

import numpy as np

TITLE = "gelu"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numexpr(numexpr):
    def run(x):
        c = {name: x.dtype.type(value) for name, value in (("h", 0.5), ("a", 0.7978845608), ("b", 0.044715), ("one", 1))}
        return numexpr.evaluate("h * x * (one + tanh(a * (x + b * x * x * x)))", {"x": x, **c})

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x):
        out = np.empty_like(x)
        half, a, b, one = x.dtype.type(0.5), x.dtype.type(0.7978845608), x.dtype.type(0.044715), x.dtype.type(1)
        for i in prange(x.size):
            out[i] = half * x[i] * (one + np.tanh(a * (x[i] + b * x[i] * x[i] * x[i])))
        return out

    return run

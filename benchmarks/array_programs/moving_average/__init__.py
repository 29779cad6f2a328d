"""The mean of five neighbours, and how far each value is from it."""

import numpy as np

TITLE = "moving average of 5"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(x):
    return x[2:-2] - (x[:-4] + x[1:-3] + x[2:-2] + x[3:-1] + x[4:]) / 5


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numexpr(numexpr):
    def run(x):
        names = {"a": x[:-4], "b": x[1:-3], "c": x[2:-2], "d": x[3:-1], "f": x[4:], "five": x.dtype.type(5)}
        return numexpr.evaluate("c - (a + b + c + d + f) / five", names)

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x):
        out = np.empty(x.size - 4, x.dtype)
        five = x.dtype.type(5)
        for i in prange(out.size):
            out[i] = x[i + 2] - (x[i] + x[i + 1] + x[i + 2] + x[i + 3] + x[i + 4]) / five
        return out

    return run

"""The area under sampled points by the trapezoid rule: neighbours, and one number."""

import numpy as np

TITLE = "trapezoid rule"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(x, y):
    return ((y[1:] + y[:-1]) * (x[1:] - x[:-1])).sum() / 2


def inputs(shape, dtype, rng):
    return np.linspace(0, 1, *shape).astype(dtype), rng.uniform(size=shape).astype(dtype)


def for_numexpr(numexpr):
    def run(x, y):
        names = {"a": x[:-1], "b": x[1:], "c": y[:-1], "d": y[1:]}
        return x.dtype.type(numexpr.evaluate("sum((c + d) * (b - a))", names) / 2)

    return run


def for_numba(numba):
    """Partial sums of 4096 elements: one running sum of 10 million float32 loses digits."""

    prange = numba.prange

    @numba.njit
    def run(x, y):
        n = x.size - 1
        parts = np.zeros((n + 4095) // 4096, x.dtype)
        for part in prange(parts.size):
            total = x.dtype.type(0)
            for i in range(part * 4096, min(n, part * 4096 + 4096)):
                total += (y[i + 1] + y[i]) * (x[i + 1] - x[i])
            parts[part] = total
        return parts.sum() / x.dtype.type(2)

    return run

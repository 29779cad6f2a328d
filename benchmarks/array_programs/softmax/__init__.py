"""Softmax over the rows of a matrix: a reduction, then a consumer over the same rows, twice."""

import numpy as np

TITLE = "softmax over rows"
SIZES = {"small": (10, 100), "medium": (300, 400), "large": (10_000, 1000)}
SMALL = (10, 100)


def program(x):
    shifted = x - np.max(x, axis=-1, keepdims=True)
    e = np.exp(shifted)
    return e / np.sum(e, axis=-1, keepdims=True)


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numexpr(numexpr):
    """A reduction ends an expression of numexpr, so this takes four."""

    def run(x):
        m = numexpr.evaluate("max(x, axis=1)", {"x": x})
        e = numexpr.evaluate("exp(x - m)", {"x": x, "m": m[:, None]})
        s = numexpr.evaluate("sum(e, axis=1)", {"e": e}).astype(x.dtype, copy=False)
        return numexpr.evaluate("e / s", {"e": e, "s": s[:, None]})

    return run


def for_numba(numba):
    """Numba has no `axis=` for max: the loops by hand, a row at a time."""

    prange = numba.prange

    @numba.njit
    def run(x):
        out = np.empty_like(x)
        rows, columns = x.shape
        for i in prange(rows):
            m = x[i, 0]
            for j in range(columns):
                m = max(m, x[i, j])
            s = x.dtype.type(0)
            for j in range(columns):
                e = np.exp(x[i, j] - m)
                out[i, j] = e
                s += e
            for j in range(columns):
                out[i, j] /= s
        return out

    return run

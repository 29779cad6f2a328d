"""log(sum(exp(x))) of each row, without overflow."""

import numpy as np

TITLE = "logsumexp over rows"
SIZES = {"small": (10, 100), "medium": (300, 400), "large": (10_000, 1000)}
SMALL = (10, 100)


def program(x):
    m = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - m).sum(axis=-1)) + m[..., 0]


def inputs(shape, dtype, rng):
    return (rng.normal(size=shape).astype(dtype),)


def for_numexpr(numexpr):
    """A reduction ends an expression of numexpr, so this takes three."""

    def run(x):
        m = numexpr.evaluate("max(x, axis=1)", {"x": x})
        s = numexpr.evaluate("sum(exp(x - m), axis=1)", {"x": x, "m": m[:, None]}).astype(x.dtype, copy=False)
        return numexpr.evaluate("log(s) + m", {"s": s, "m": m})

    return run


def for_numba(numba):
    """Numba has no `axis=` for max: the loops by hand, a row at a time."""

    prange = numba.prange

    @numba.njit
    def run(x):
        rows, columns = x.shape
        out = np.empty(rows, x.dtype)
        for i in prange(rows):
            m = x[i, 0]
            for j in range(columns):
                m = max(m, x[i, j])
            s = x.dtype.type(0)
            for j in range(columns):
                s += np.exp(x[i, j] - m)
            out[i] = np.log(s) + m
        return out

    return run

"""The cosine between two rows each: three reductions over the same rows."""

import numpy as np

TITLE = "cosine of rows"
SIZES = {"small": (20, 50), "medium": (500, 200), "large": (20_000, 256)}
SMALL = (20, 50)


def program(a, b):
    return (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))


def inputs(shape, dtype, rng):
    return rng.normal(size=shape).astype(dtype), rng.normal(size=shape).astype(dtype)


def for_numexpr(numexpr):
    def run(a, b):
        names = {"a": a, "b": b}
        ab, aa, bb = (numexpr.evaluate(f"sum({x} * {y}, axis=1)", names) for x, y in (("a", "b"), ("a", "a"), ("b", "b")))
        return (ab / np.sqrt(aa * bb)).astype(a.dtype, copy=False)

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(a, b):
        out = np.empty(a.shape[0], a.dtype)
        for i in prange(a.shape[0]):
            ab = aa = bb = a.dtype.type(0)
            for j in range(a.shape[1]):
                ab += a[i, j] * b[i, j]
                aa += a[i, j] * a[i, j]
                bb += b[i, j] * b[i, j]
            out[i] = ab / np.sqrt(aa * bb)
        return out

    return run

"""Each column less its mean, over its standard deviation: reductions down the columns."""

import numpy as np

TITLE = "standardize columns"
SIZES = {"small": (100, 10), "medium": (2000, 50), "large": (100_000, 100)}
SMALL = (100, 10)


def program(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def inputs(shape, dtype, rng):
    return (rng.normal(2, 3, shape).astype(dtype),)


def for_numexpr(numexpr):
    def run(x):
        mean = (numexpr.evaluate("sum(x, axis=0)", {"x": x}) / len(x)).astype(x.dtype, copy=False)
        squares = numexpr.evaluate("sum((x - mean) * (x - mean), axis=0)", {"x": x, "mean": mean}) / len(x)
        return numexpr.evaluate("(x - mean) / s", {"x": x, "mean": mean, "s": np.sqrt(squares).astype(x.dtype, copy=False)})

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x):
        rows, columns = x.shape
        n = x.dtype.type(rows)
        mean, squares, out = np.zeros(columns, x.dtype), np.zeros(columns, x.dtype), np.empty_like(x)
        for i in range(rows):
            for j in range(columns):
                mean[j] += x[i, j]
        for j in range(columns):
            mean[j] /= n
        for i in range(rows):
            for j in range(columns):
                squares[j] += (x[i, j] - mean[j]) * (x[i, j] - mean[j])
        for j in range(columns):
            squares[j] = np.sqrt(squares[j] / n)
        for i in prange(rows):
            for j in range(columns):
                out[i, j] = (x[i, j] - mean[j]) / squares[j]
        return out

    return run

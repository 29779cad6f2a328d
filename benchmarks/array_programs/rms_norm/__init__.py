"""Rows divided by the root of their mean square, with a gain."""

import numpy as np

TITLE = "rms norm over rows"
SIZES = {"small": (10, 100), "medium": (300, 400), "large": (10_000, 1000)}
SMALL = (10, 100)


def program(x, gain):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * gain


def inputs(shape, dtype, rng):
    return rng.normal(size=shape).astype(dtype), rng.normal(size=shape[-1:]).astype(dtype)


def for_numexpr(numexpr):
    def run(x, gain):
        squares = numexpr.evaluate("sum(x * x, axis=1)", {"x": x}) / x.shape[1]
        names = {"x": x, "gain": gain, "s": squares.astype(x.dtype, copy=False)[:, None], "eps": x.dtype.type(1e-6)}
        return numexpr.evaluate("x / sqrt(s + eps) * gain", names)

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x, gain):
        out = np.empty_like(x)
        n, eps = x.dtype.type(x.shape[1]), x.dtype.type(1e-6)
        for i in prange(x.shape[0]):
            squares = x.dtype.type(0)
            for j in range(x.shape[1]):
                squares += x[i, j] * x[i, j]
            scale = np.sqrt(squares / n + eps)
            for j in range(x.shape[1]):
                out[i, j] = x[i, j] / scale * gain[j]
        return out

    return run

"""Edges of a picture: two 3 x 3 stencils and the length of the gradient."""

import numpy as np

TITLE = "Sobel edges"
SIZES = {"small": (30, 30), "medium": (300, 300), "large": (2000, 2000)}
SMALL = (30, 30)


def program(p):
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    return np.sqrt(gx * gx + gy * gy)


def inputs(shape, dtype, rng):
    return (rng.uniform(size=shape).astype(dtype),)


def for_numexpr(numexpr):
    def run(p):
        at = {"a": p[:-2, :-2], "b": p[:-2, 1:-1], "c": p[:-2, 2:], "d": p[1:-1, :-2], "f": p[1:-1, 2:], "g": p[2:, :-2]}
        names = {**at, "h": p[2:, 1:-1], "i": p[2:, 2:], "two": p.dtype.type(2)}
        gx, gy = "(c + two * f + i - a - two * d - g)", "(g + two * h + i - a - two * b - c)"
        return numexpr.evaluate(f"sqrt({gx} * {gx} + {gy} * {gy})", names)

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(p):
        out = np.empty((p.shape[0] - 2, p.shape[1] - 2), p.dtype)
        two = p.dtype.type(2)
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                a, b, c = p[i, j], p[i, j + 1], p[i, j + 2]
                d, f = p[i + 1, j], p[i + 1, j + 2]
                g, h, k = p[i + 2, j], p[i + 2, j + 1], p[i + 2, j + 2]
                gx, gy = c + two * f + k - a - two * d - g, g + two * h + k - a - two * b - c
                out[i, j] = np.sqrt(gx * gx + gy * gy)
        return out

    return run

"""One step of the optimizer Adam: three arrays in and out, square roots and divisions."""

import numpy as np

TITLE = "Adam step"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (4_000_000,)}
SMALL = (1000,)


def program(w, m, v, g):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return w - 0.001 * (m / 0.19) / (np.sqrt(v / 0.002) + 1e-8), m, v


def inputs(shape, dtype, rng):
    w, m, g = (rng.normal(size=shape).astype(dtype) for _ in range(3))
    return w, m, rng.uniform(size=shape).astype(dtype), g


def for_numexpr(numexpr):
    numbers = {"b": 0.9, "b1": 0.1, "c": 0.999, "c1": 0.001, "r": 0.001, "mb": 0.19, "vb": 0.002, "eps": 1e-8}

    def run(w, m, v, g):
        names = {"w": w, "g": g, **{name: w.dtype.type(value) for name, value in numbers.items()}}
        names["m"] = m = numexpr.evaluate("b * m + b1 * g", {**names, "m": m})
        names["v"] = v = numexpr.evaluate("c * v + c1 * g * g", {**names, "v": v})
        return numexpr.evaluate("w - r * (m / mb) / (sqrt(v / vb) + eps)", names), m, v

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(w, m, v, g):
        new, m2, v2 = np.empty_like(w), np.empty_like(w), np.empty_like(w)
        t = w.dtype.type
        b, b1, c, c1, rate = t(0.9), t(0.1), t(0.999), t(0.001), t(0.001)
        mb, vb, eps = t(0.19), t(0.002), t(1e-8)
        for i in prange(w.size):
            m2[i] = b * m[i] + b1 * g[i]
            v2[i] = c * v[i] + c1 * g[i] * g[i]
            new[i] = w[i] - rate * (m2[i] / mb) / (np.sqrt(v2[i] / vb) + eps)
        return new, m2, v2

    return run

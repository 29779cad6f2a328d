"""Great-circle distances: circular functions and an arc sine."""

import numpy as np

TITLE = "haversine distance"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (4_000_000,)}
SMALL = (1000,)
RADIUS = 6371.0


def program(lat1, lon1, lat2, lon2):
    a = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * RADIUS * np.arcsin(np.sqrt(a))


def inputs(shape, dtype, rng):
    return tuple(rng.uniform(-1.5, 1.5, shape).astype(dtype) for _ in range(4))


def for_numexpr(numexpr):
    def run(lat1, lon1, lat2, lon2):
        names = {"p": lat1, "q": lon1, "r": lat2, "s": lon2, "h": lat1.dtype.type(0.5), "d": lat1.dtype.type(2 * RADIUS)}
        return numexpr.evaluate("d * arcsin(sqrt(sin((r - p) * h)**2 + cos(p) * cos(r) * sin((s - q) * h)**2))", names)

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(lat1, lon1, lat2, lon2):
        out = np.empty_like(lat1)
        half, twice = lat1.dtype.type(0.5), lat1.dtype.type(2 * RADIUS)
        for i in prange(lat1.size):
            u, v = np.sin((lat2[i] - lat1[i]) * half), np.sin((lon2[i] - lon1[i]) * half)
            out[i] = twice * np.arcsin(np.sqrt(u * u + np.cos(lat1[i]) * np.cos(lat2[i]) * v * v))
        return out

    return run

"""A polynomial of degree eight by Horner's rule: multiply and add, nothing else."""

import numpy as np

TITLE = "polynomial of degree 8"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)
FACTORS = (0.5, -1.25, 0.75, 2.0, -0.125, 0.0625, 1.5, -0.375, 0.25)


def program(x):
    total = FACTORS[0]
    for factor in FACTORS[1:]:
        total = total * x + factor
    return total


def inputs(shape, dtype, rng):
    return (rng.uniform(-1, 1, shape).astype(dtype),)


def for_numexpr(numexpr):
    text = "c0"
    for at in range(1, len(FACTORS)):
        text = f"({text}) * x + c{at}"
    return lambda x: numexpr.evaluate(text, {"x": x, **{f"c{at}": x.dtype.type(c) for at, c in enumerate(FACTORS)}})


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(x):
        out = np.empty_like(x)
        c = np.array(FACTORS).astype(x.dtype)
        for i in prange(x.size):
            total = c[0]
            for k in range(1, 9):
                total = total * x[i] + c[k]
            out[i] = total
        return out

    return run

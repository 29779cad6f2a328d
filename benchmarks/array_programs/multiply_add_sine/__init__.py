"""A chain of elementwise operations over four arrays."""

import numpy as np

TITLE = "a*b + c*np.sin(d)"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(a, b, c, d):
    return a * b + c * np.sin(d)


def inputs(shape, dtype, rng):
    return tuple(rng.uniform(-10, 10, shape).astype(dtype) for _ in range(4))


def for_numexpr(numexpr):
    return lambda a, b, c, d: numexpr.evaluate("a * b + c * sin(d)")

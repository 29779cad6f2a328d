"""The least there is to fuse: memory traffic and the cost of a new result."""

TITLE = "2*x + 1"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(x):
    return 2 * x + 1


def inputs(shape, dtype, rng):
    return (rng.uniform(-10, 10, shape).astype(dtype),)


def for_numexpr(numexpr):
    return lambda x: numexpr.evaluate("2 * x + 1")

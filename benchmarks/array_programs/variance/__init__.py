"""The variance of all elements: one number from one array."""

TITLE = "x.var()"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(x):
    return x.var()


def inputs(shape, dtype, rng):
    return (rng.normal(3, 2, shape).astype(dtype),)


def for_numexpr(numexpr):
    def run(x):
        mean = x.dtype.type(numexpr.evaluate("sum(x)", {"x": x}) / x.size)
        return x.dtype.type(numexpr.evaluate("sum((x - m) * (x - m))", {"x": x, "m": mean}) / x.size)

    return run

"""Ten steps of heat in a plate, its rim held: a stencil that changes an array in place."""

TITLE = "heat equation, 10 steps"
SIZES = {"small": (30, 30), "medium": (300, 300), "large": (2000, 2000)}
SMALL = (30, 30)
UNSUPPORTED = {"numexpr": "it has no loops and no store into a part"}


def program(start):
    u = start.copy()
    for _ in range(10):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def inputs(shape, dtype, rng):
    return (rng.uniform(size=shape).astype(dtype),)


def for_jax(jax, compiled):
    """Its arrays are not changed in place."""

    def run(u):
        for _ in range(10):
            change = 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
            u = u.at[1:-1, 1:-1].add(change)
        return u

    return compiled(run)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(start):
        u, v = start.copy(), start.copy()
        rate, four = start.dtype.type(0.2), start.dtype.type(4)
        for _ in range(10):
            for i in prange(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    around = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - four * u[i, j]
                    v[i, j] = u[i, j] + rate * around
            u, v = v, u
        return u

    return run

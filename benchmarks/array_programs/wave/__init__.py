"""Ten steps of a wave on a membrane: three arrays that take turns, a stencil with padding by hand."""

import numpy as np

TITLE = "wave equation, 10 steps"
SIZES = {"small": (30, 30), "medium": (300, 300), "large": (2000, 2000)}
SMALL = (30, 30)
UNSUPPORTED = {"numexpr": "it has no loops and no store into a part"}


def program(start):
    before, now = start.copy(), start.copy()
    for _ in range(10):
        after = np.zeros_like(now)
        bend = now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1]
        after[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.25 * bend
        before, now = now, after
    return now


def inputs(shape, dtype, rng):
    return (rng.uniform(size=shape).astype(dtype),)


def for_jax(jax, compiled):
    """Its arrays are not changed in place."""
    jnp = jax.numpy

    def run(start):
        before = now = start
        for _ in range(10):
            bend = now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1]
            inner = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.25 * bend
            before, now = now, jnp.zeros_like(now).at[1:-1, 1:-1].set(inner)
        return now

    return compiled(run)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(start):
        before, now, after = start.copy(), start.copy(), np.zeros_like(start)
        two, four, rate = start.dtype.type(2), start.dtype.type(4), start.dtype.type(0.25)
        for step in range(10):
            for i in prange(1, now.shape[0] - 1):
                for j in range(1, now.shape[1] - 1):
                    bend = now[i + 1, j] + now[i - 1, j] + now[i, j + 1] + now[i, j - 1] - four * now[i, j]
                    after[i, j] = two * now[i, j] - before[i, j] + rate * bend
            before, now, after = now, after, before
            if step < 2:
                after[0], after[-1], after[:, 0], after[:, -1] = 0, 0, 0, 0
        return now

    return run

"""The pull of every body on every other one: broadcasting to a square, reduced along a row."""

import numpy as np

TITLE = "n-body forces"
SIZES = {"small": (30,), "medium": (300,), "large": (2000,)}
SMALL = (30,)
UNSUPPORTED = {"numexpr": "a reduction ends its expression, and the square would be stored"}


def program(position, mass):
    offset = position[None, :, :] - position[:, None, :]
    squares = (offset * offset).sum(axis=-1) + 0.01
    pull = mass[None, :] / (squares * np.sqrt(squares))
    return (pull[:, :, None] * offset).sum(axis=1)


def inputs(shape, dtype, rng):
    return rng.normal(size=(*shape, 3)).astype(dtype), rng.uniform(1, 2, shape).astype(dtype)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(position, mass):
        out = np.empty_like(position)
        soft = position.dtype.type(0.01)
        for i in prange(mass.size):
            fx = fy = fz = position.dtype.type(0)
            for j in range(mass.size):
                x, y, z = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1], position[j, 2] - position[i, 2]
                squares = x * x + y * y + z * z + soft
                pull = mass[j] / (squares * np.sqrt(squares))
                fx, fy, fz = fx + pull * x, fy + pull * y, fz + pull * z
            out[i, 0], out[i, 1], out[i, 2] = fx, fy, fz
        return out

    return run

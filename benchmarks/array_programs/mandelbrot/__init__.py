"""How long each point of a plane stays bounded: fifty rounds of arithmetic in registers."""

import numpy as np

TITLE = "Mandelbrot, 50 rounds"
SIZES = {"small": (30, 30), "medium": (300, 300), "large": (1500, 1500)}
SMALL = (30, 30)
UNSUPPORTED = {"numexpr": "it has no loops"}


def program(re, im):
    x, y, count = 0 * re, 0 * re, 0 * re
    for _ in range(50):
        x2, y2 = x * x, y * y
        inside = x2 + y2 < 4
        x, y = np.where(inside, x2 - y2 + re, x), np.where(inside, 2 * x * y + im, y)
        count = count + inside
    return count


def inputs(shape, dtype, rng):
    re, im = np.meshgrid(np.linspace(-2, 0.6, shape[1]), np.linspace(-1.2, 1.2, shape[0]))
    return re.astype(dtype), im.astype(dtype)


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(re, im):
        count = np.empty_like(re)
        for i in prange(re.shape[0]):
            for j in range(re.shape[1]):
                x = y = re[i, j] * 0
                n = 0
                for _ in range(50):
                    x2, y2 = x * x, y * y
                    if not x2 + y2 < 4:
                        break
                    x, y = x2 - y2 + re[i, j], x * y + x * y + im[i, j]
                    n += 1
                count[i, j] = n
        return count

    return run

"""Brightness of a colour picture: three channels that lie interleaved, read with a stride."""

import numpy as np

TITLE = "luminance of interleaved channels"
SIZES = {"small": (20, 30), "medium": (300, 300), "large": (2000, 2000)}
SMALL = (20, 30)


def program(image):
    return 0.299 * image[:, :, 0] + 0.587 * image[:, :, 1] + 0.114 * image[:, :, 2]


def inputs(shape, dtype, rng):
    return (rng.uniform(size=(*shape, 3)).astype(dtype),)


def for_numexpr(numexpr):
    def run(image):
        names = {name: image[:, :, at] for at, name in enumerate("xyz")}
        weights = {name: image.dtype.type(value) for name, value in (("a", 0.299), ("b", 0.587), ("c", 0.114))}
        return numexpr.evaluate("a * x + b * y + c * z", {**names, **weights})

    return run


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(image):
        out = np.empty(image.shape[:2], image.dtype)
        a, b, c = image.dtype.type(0.299), image.dtype.type(0.587), image.dtype.type(0.114)
        for i in prange(image.shape[0]):
            for j in range(image.shape[1]):
                out[i, j] = a * image[i, j, 0] + b * image[i, j, 1] + c * image[i, j, 2]
        return out

    return run

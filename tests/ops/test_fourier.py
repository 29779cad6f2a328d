"""np.fft through the table: every function, length, axis, norm and dtype as NumPy has it, and its errors."""

import numpy as np
import pytest

from tests.ops.calling import agrees

ONE = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)
SEVERAL = tuple(getattr(np.fft, name) for name in "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split())
random = np.random.default_rng(2)
each_dtype = pytest.mark.parametrize("dtype", ["f8", "f4", "c8", "c16", "i4", "?", "f2"])


def array(shape, dtype):
    x = random.normal(size=shape) * 4
    return (x + 1j * random.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@each_dtype
@pytest.mark.parametrize("shape", [(5,), (4, 6), (1,), ()])
def test_transforms_along_one_axis(shape, dtype):
    x = array(shape, dtype)
    for function in ONE:
        agrees(function, x)
        for n in (1, 3, 8, 0, -1):
            agrees(function, x, n)
        for norm in ("backward", "ortho", "forward", "bad"):
            agrees(function, x, 7, norm=norm)
        for axis in (0, -1, 5):
            agrees(function, x, axis=axis)


def test_transforms_of_nothing():
    for function in ONE:
        agrees(function, np.empty(0))
    for function in (np.fft.fft, np.fft.rfft):
        agrees(function, np.empty((2, 0)), 3)
        agrees(function, np.empty((0, 4)))


@each_dtype
@pytest.mark.parametrize("shape", [(5,), (2, 5, 4)])
def test_transforms_along_several_axes(shape, dtype):
    x = array(shape, dtype)
    for function in SEVERAL:
        agrees(function, x, messages=False)
        agrees(function, x, s=(3, 8), axes=(0, -1))
        agrees(function, x, axes=(0,), norm="ortho")
        agrees(function, x, s=(3,), axes=(0, 1))
        agrees(function, x, s=(-1, 4), axes=(-1, 0))


def test_frequencies_and_shifts():
    for n in (1, 2, 5, 8):
        agrees(np.fft.fftfreq, n)
        agrees(np.fft.fftfreq, n, 0.1)
        agrees(np.fft.fftfreq, n, np.float32(0.5))
        agrees(np.fft.rfftfreq, n, 0.25)
    agrees(np.fft.fftfreq, 2.5)
    for x in (array((5,), "f8"), array((4, 3), "c8"), array((), "f8")):
        for function in (np.fft.fftshift, np.fft.ifftshift):
            agrees(function, x)
            agrees(function, x, 0, messages=False)
            agrees(function, x, (0, -1), messages=False)

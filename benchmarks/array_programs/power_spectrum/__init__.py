"""The power of each frequency of windowed frames: a map, a library's transform, and a map."""

import numpy as np

TITLE = "power spectrum of frames"
SIZES = {"small": (8, 64), "medium": (200, 256), "large": (4000, 1024)}
SMALL = (8, 64)
UNSUPPORTED = {"numexpr": "it has no Fourier transform", "numba": "it has no Fourier transform"}


def program(frames, window):
    spectrum = np.fft.rfft(frames * window, axis=1)
    return spectrum.real**2 + spectrum.imag**2


def inputs(shape, dtype, rng):
    return rng.normal(size=shape).astype(dtype), np.hanning(shape[1]).astype(dtype)

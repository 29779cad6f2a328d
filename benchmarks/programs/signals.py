"""Filters, windows and spectra of signals."""

import math

import numpy as np

from .record import Program, given


def moving_average(x, width):
    """The mean of the last `width` samples."""
    out = np.zeros(len(x))
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        if i >= width:
            total -= x[i - width]
            out[i] = total / width
        else:
            out[i] = total / (i + 1)
    return out


def exponential_smoothing(series, alpha=0.3):
    result = [series[0]]
    for n in range(1, len(series)):
        result.append(alpha * series[n] + (1 - alpha) * result[n - 1])
    return np.array(result)


def median_filter(signal, kernel_size=3):
    if kernel_size % 2 == 0:
        raise ValueError("kernel_size must be odd")
    half = kernel_size // 2
    padded = np.pad(signal, half, mode="edge")
    output = np.zeros_like(signal)
    for i in range(len(signal)):
        output[i] = np.median(padded[i : i + kernel_size])
    return output


class Biquad:
    """A second-order section, direct form II transposed."""

    def __init__(self, b0, b1, b2, a1, a2):
        self.b = (b0, b1, b2)
        self.a = (a1, a2)
        self.z1 = self.z2 = 0.0
        self.processed = 0

    def step(self, x):
        b0, b1, b2 = self.b
        a1, a2 = self.a
        y = b0 * x + self.z1
        self.z1 = b1 * x - a1 * y + self.z2
        self.z2 = b2 * x - a2 * y
        self.processed += 1
        return y


def biquad_filter(filt, samples):
    return [filt.step(s) for s in samples]


def hann_window(n, symmetric=True):
    if n < 1:
        return np.array([])
    if n == 1:
        return np.ones(1)
    m = n if symmetric else n + 1
    w = np.array([0.5 - 0.5 * math.cos(2 * math.pi * i / (m - 1)) for i in range(m)])
    return w if symmetric else w[:-1]


def welch(x, fs=1.0, nperseg=8):
    """Averaged periodogram of half-overlapping Hann segments."""
    step = nperseg // 2
    window = 0.5 * (1 - np.cos(2 * np.pi * np.arange(nperseg) / nperseg))
    scale = 1.0 / (fs * (window**2).sum())
    spectra = []
    for start in range(0, len(x) - nperseg + 1, step):
        seg = x[start : start + nperseg]
        seg = seg - seg.mean()
        spec = np.abs(np.fft.rfft(seg * window)) ** 2 * scale
        spec[1:-1] *= 2
        spectra.append(spec)
    freqs = np.fft.rfftfreq(nperseg, 1 / fs)
    return freqs, np.mean(spectra, axis=0)


def find_peaks(y, threshold=0.0, min_distance=1):
    peaks = []
    for i in range(1, len(y) - 1):
        if y[i] > y[i - 1] and y[i] >= y[i + 1] and y[i] > threshold:
            if peaks and i - peaks[-1] < min_distance:
                if y[i] > y[peaks[-1]]:
                    peaks[-1] = i
                continue
            peaks.append(i)
    return peaks


def lms_adaptive(x, d, taps=4, mu=0.01):
    """The least-mean-squares filter: outputs, errors, weights."""
    w = np.zeros(taps)
    y = np.zeros(len(x))
    e = np.zeros(len(x))
    for n in range(taps, len(x)):
        u = x[n - taps : n][::-1]
        y[n] = np.dot(w, u)
        e[n] = d[n] - y[n]
        w += 2 * mu * e[n] * u
    return y, e, w


def normalize_in_place(buffer, peak=1.0):
    largest = np.max(np.abs(buffer))
    if largest == 0:
        return False
    buffer *= peak / largest
    return True


def goertzel(samples, target, rate):
    """The power of one frequency."""
    n = len(samples)
    k = int(0.5 + n * target / rate)
    coeff = 2.0 * math.cos(2.0 * math.pi * k / n)
    s_prev, s_prev2 = 0.0, 0.0
    for sample in samples:
        s = sample + coeff * s_prev - s_prev2
        s_prev2 = s_prev
        s_prev = s
    return s_prev2**2 + s_prev**2 - coeff * s_prev * s_prev2


def zero_crossings(x):
    count = 0
    previous = x[0]
    for value in x[1:]:
        if (value >= 0) != (previous >= 0):
            count += 1
        previous = value
    return count, count / len(x)


PROGRAMS = [
    Program(moving_average, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=n), 4)),
    Program(exponential_smoothing, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=n), alpha=0.2)),
    Program(median_filter, (10, 500, 5000), lambda n, draw: given(draw.normal(size=n), 5)),
    Program(
        biquad_filter,
        (10, 2000, 50_000),
        lambda n, draw: given(Biquad(0.2, 0.4, 0.2, -0.5, 0.25), draw.normal(size=n).tolist()),
    ),
    Program(hann_window, (10, 2000, 100_000), lambda n, draw: given(n, symmetric=False)),
    Program(welch, (64, 4096, 200_000), lambda n, draw: given(draw.normal(size=n), fs=100.0, nperseg=16 if n < 100 else 256)),
    Program(find_peaks, (12, 2000, 100_000), lambda n, draw: given(draw.normal(size=n), min_distance=3)),
    Program(lms_adaptive, (12, 1000, 30_000), lambda n, draw: given(draw.normal(size=n), draw.normal(size=n))),
    Program(normalize_in_place, (10, 5000, 1_000_000), lambda n, draw: given(draw.normal(size=n), peak=0.9)),
    Program(goertzel, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=n).tolist(), 5.0, 50.0)),
    Program(zero_crossings, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=n))),
]

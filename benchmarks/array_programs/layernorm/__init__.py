"""Layer normalisation over the rows of a matrix, with gain and bias."""

import numpy as np

TITLE = "layernorm over rows"
SIZES = {"small": (10, 100), "medium": (300, 400), "large": (10_000, 1000)}
SMALL = (10, 100)


def program(x, gain, bias):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    var = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(var + 1e-5) * gain + bias


def inputs(shape, dtype, rng):
    return tuple(rng.normal(size=size).astype(dtype) for size in (shape, shape[-1:], shape[-1:]))


def for_numexpr(numexpr):
    """A reduction ends an expression of numexpr, so this takes three."""

    def run(x, gain, bias):
        n = x.shape[-1]
        names = {"x": x, "gain": gain, "bias": bias, "eps": x.dtype.type(1e-5)}
        mean = numexpr.evaluate("sum(x, axis=1)", names) / n
        names["mean"] = mean.astype(x.dtype, copy=False)[:, None]
        var = numexpr.evaluate("sum((x - mean) * (x - mean), axis=1)", names) / n
        names["var"] = var.astype(x.dtype, copy=False)[:, None]
        return numexpr.evaluate("(x - mean) / sqrt(var + eps) * gain + bias", names)

    return run


def for_numba(numba):
    """Numba has no `keepdims=`: the loops by hand, a row at a time."""

    prange = numba.prange

    @numba.njit
    def run(x, gain, bias):
        out = np.empty_like(x)
        rows, columns = x.shape
        zero, n, eps = x.dtype.type(0), x.dtype.type(columns), x.dtype.type(1e-5)
        for i in prange(rows):
            total = zero
            for j in range(columns):
                total += x[i, j]
            mean = total / n
            squares = zero
            for j in range(columns):
                centred = x[i, j] - mean
                squares += centred * centred
            scale = np.sqrt(squares / n + eps)
            for j in range(columns):
                out[i, j] = (x[i, j] - mean) / scale * gain[j] + bias[j]
        return out

    return run

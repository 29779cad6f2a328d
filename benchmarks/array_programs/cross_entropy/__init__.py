"""The mean loss of a logistic model from its scores, safe for large ones: one number from two arrays."""

import numpy as np

TITLE = "binary cross-entropy"
SIZES = {"small": (1000,), "medium": (100_000,), "large": (10_000_000,)}
SMALL = (1000,)


def program(score, label):
    return (np.maximum(score, 0) - score * label + np.log1p(np.exp(-np.abs(score)))).mean()


def inputs(shape, dtype, rng):
    return rng.normal(0, 3, shape).astype(dtype), rng.integers(0, 2, shape).astype(dtype)


def for_numexpr(numexpr):
    text = "sum(where(s > 0, s, zero) - s * y + log1p(exp(-abs(s))))"
    return lambda score, label: score.dtype.type(
        numexpr.evaluate(text, {"s": score, "y": label, "zero": score.dtype.type(0)}) / score.size
    )


def for_numba(numba):
    """Partial sums of 4096 elements: one running sum of 10 million float32 loses digits."""

    prange = numba.prange

    @numba.njit
    def run(score, label):
        parts = np.zeros((score.size + 4095) // 4096, score.dtype)
        zero = score.dtype.type(0)
        for part in prange(parts.size):
            total = zero
            for i in range(part * 4096, min(score.size, part * 4096 + 4096)):
                total += max(score[i], zero) - score[i] * label[i] + np.log1p(np.exp(-abs(score[i])))
            parts[part] = total
        return parts.sum() / score.dtype.type(score.size)

    return run

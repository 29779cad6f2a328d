"""Attention of one head: two products of matrices around a softmax over rows."""

import numpy as np

TITLE = "attention, 64 wide"
SIZES = {"small": (16, 64), "medium": (128, 64), "large": (1024, 64)}
SMALL = (16, 64)
UNSUPPORTED = {"numexpr": "it has no matrix product"}


def program(q, k, v):
    score = q @ k.T / 8.0
    e = np.exp(score - score.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def inputs(shape, dtype, rng):
    return tuple(rng.normal(size=shape).astype(dtype) for _ in range(3))


def for_numba(numba):
    prange = numba.prange

    @numba.njit
    def run(q, k, v):
        score = q @ k.T
        eight = q.dtype.type(8)
        for i in prange(score.shape[0]):
            m = score[i, 0]
            for j in range(score.shape[1]):
                m = max(m, score[i, j])
            total = q.dtype.type(0)
            for j in range(score.shape[1]):
                score[i, j] = np.exp((score[i, j] - m) / eight)
                total += score[i, j]
            for j in range(score.shape[1]):
                score[i, j] /= total
        return score @ v

    return run

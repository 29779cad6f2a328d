"""What the fuser makes of well-known programs, as text: kernels, passes over a row, what is kept and what is joined."""

import numpy as np
import pytest

import jitlab as jl

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 100))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layernorm(x, g, b):
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * g + b


def logsumexp(x):
    m = x.max(axis=1)
    return m + np.log(np.exp(x - m[:, None]).sum(axis=1))


def stencil(x):
    y = x.copy()
    y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def distances(a, b):
    return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))


def centred_columns(x):
    return x - x.mean(axis=0)


def two_results_and_a_sum(x):
    y = 2 * x + 1
    return y, np.tanh(y), y.sum()


def dense(x, w, b):
    return np.maximum(x @ w + b, 0)


def joined(x):
    return np.concatenate([x[:2] * 2, x[2:], x[:1]])


def taken(x, i):
    return x[i] + 1


def running_shares(x):
    y = np.cumsum(x * x, axis=1)
    return y, np.sqrt(y) + x


PROGRAMS = [
    (softmax, (X,)),
    (layernorm, (X, np.ones(100), np.zeros(100))),
    (logsumexp, (X,)),
    (stencil, (X,)),
    (distances, (X[:, :3], X[:30, :3])),
    (centred_columns, (X,)),
    (two_results_and_a_sum, (X,)),
    (dense, (X, RNG.normal(size=(100, 32)), np.zeros(32))),
    (joined, (X,)),
    (running_shares, (X,)),
    (taken, (X, np.array([3, -1, 5]))),
]


@pytest.mark.parametrize("function, arguments", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_program(function, arguments, golden):
    traced = jl.function(function)
    for mine, theirs in zip(_parts(traced(*arguments)), _parts(function(*arguments)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)
    report = jl.explain(traced, *arguments)
    texts = [report.ir(cluster.name, stage="program") for cluster in report.clusters]
    edges = [f"{edge.producer} -> {edge.consumer}: {edge.reason}" for edge in report.boundaries]
    assert "\n\n".join([*texts, *edges]) == golden


def _parts(result):
    return result if isinstance(result, tuple) else (result,)

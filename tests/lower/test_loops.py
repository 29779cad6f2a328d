"""What well-known loops become, as text: what is stored in place, what is copied, which loop is innermost."""

import numpy as np
import pytest

import jitlab as jl
from jitlab import events

RNG = np.random.default_rng(0)


def running(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]


def lu(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


def jacobi(steps, a, b):
    for _ in range(steps):
        b[1:-1] = 0.33 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33 * (b[:-2] + b[1:-1] + b[2:])


def shortest_paths(p):
    for k in range(p.shape[0]):
        p[:] = np.minimum(p, np.add.outer(p[:, k], p[k, :]))


def smoothed_rows(x):
    y = np.empty_like(x)
    y[:, 0] = x[:, 0]
    for j in range(1, x.shape[1]):
        y[:, j] = 0.5 * x[:, j] + 0.25 * y[:, j - 1]
    return y


def smoothed_in_place(x):
    for _ in range(5):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])


def shifted_left(x):
    for _ in range(5):
        x[:-1] = 0.5 * (x[:-1] + x[1:])


def fibonacci(a, b):
    for _ in range(20):
        a, b = b, 0.5 * (a + b)
    return a, b


def clipped_sum(x, limit):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < limit:
            total += x[i]
        else:
            x[i] = limit
    return total


def until_small(x):
    steps = 0
    while x.max() > 0.1:
        x *= 0.5
        steps += 1
    return steps


def two_fields(steps, u, v):
    for _ in range(steps):
        u[:, 1:] -= 0.5 * v[:, 1:]
        v[:, 1:] += 0.25 * u[:, 1:]


def products_of_rows(a, b):
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        out[i, :] = a[i, :] @ b
    return out


def X(*shape):
    return RNG.uniform(0.1, 1, shape)


PROGRAMS = [
    (running, (X(40),)),
    (lu, (X(30, 30) + 30 * np.eye(30),)),
    (jacobi, (20, X(50), X(50))),
    (shortest_paths, (X(20, 20),)),
    (smoothed_rows, (X(30, 40),)),
    (smoothed_in_place, (X(50),)),
    (shifted_left, (X(50),)),
    (fibonacci, (X(30), X(30))),
    (clipped_sum, (X(60), 0.5)),
    (until_small, (X(60),)),
    (two_fields, (20, X(20, 30), X(20, 30))),
    (products_of_rows, (X(20, 30), X(30, 40))),
]


@pytest.mark.parametrize("function, arguments", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_loop(function, arguments, golden):
    mine, theirs, third = ([np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(3))
    traced = jl.jit(function)
    for got, want in zip(_parts(traced(*mine)), _parts(function(*theirs)), strict=True):
        assert want is None or np.allclose(got, want, rtol=1e-12)
    for got, want in zip(mine, theirs, strict=True):
        assert np.allclose(got, want, rtol=1e-12)
    plans = []
    with events.listen(lambda event: plans.append(event.plan) if isinstance(event, events.PlanMade) else None):
        report = jl.explain(jl.jit(function), *third)
    texts = [report.ir(cluster.name, stage="program") for cluster in report.clusters]
    copies = [f"{copy['node']}: {copy['reason']['code']}, {copy['bytes']} B" for plan in plans for copy in plan["copies"]]
    assert "\n\n".join([*texts, *copies]) == golden


def _parts(result):
    return result if isinstance(result, tuple) else (result,)

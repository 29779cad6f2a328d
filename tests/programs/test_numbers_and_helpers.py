"""Programs that make Python numbers of elements, call what cannot be recorded, or write into small arrays.

Each is Python's at every call, under `jl.jit` and as cells that run again: in results and kinds of numbers, arguments, prints,
calls of helpers, and random numbers drawn.
"""

import copy
import math

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell
from tests.programs.alike import same

CALLED = []


def measured(a):
    """No part of a program: it keeps what it was called with, and tells a type from another."""
    CALLED.append((type(a), a.shape, round(float(a.flat[0]), 9)))
    return np.asarray(memoryview(np.ascontiguousarray(a)))


def behind_a_helper(a):
    return np.exp(-measured(a * 2) ** 2) + 1


def behind_two_helpers(a, *rest, scale=2.0):
    b = np.tanh(a) * scale
    return (behind_a_helper(b), *rest)


def behind_one_in_a_loop(a):
    for k in range(3):
        a = np.sqrt(a * a + k)
        if k == 1:
            a = measured(a) + k
    return a, len(CALLED)


def distance(a, b):
    total = 0
    for i in range(len(a)):
        total += pow(a[i] - b[i], 2)
    return math.sqrt(total), total


def density(data, mu, var):
    p = np.ones((data.shape[0], 1))
    for i in range(data.shape[0]):
        for j in range(data.shape[1]):
            p[i] *= 1 / math.sqrt(2 * math.pi * var[j]) * math.e ** (-((data[i, j] - mu[j]) ** 2) / (2 * var[j]))
    return p


def pooled(a, n):
    out = np.zeros((a.shape[0] // n, a.shape[1] // n))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = int(np.average(a[i * n : i * n + n, j * n : j * n + n]))
    return out, int(out.sum()), out[0, 0].item(), f"{out[-1, -1]:.1f}"


def told_now_and_then(x, y, steps):
    w = np.zeros(x.shape[1])
    for i in range(steps):
        h = 1 / (1 + np.exp(-x @ w))
        w = w - 0.1 * x.T @ (h - y) / y.size
        if i % 5 == 0:
            print(f"{i} {(-y * np.log(h) - (1 - y) * np.log(1 - h)).mean():.6f}")
    return w


def kept_in_dicts(x, weights):
    grads = {k: np.zeros_like(w) for k, w in weights.items()}
    for i in range(x.shape[0]):
        seen = {0: x[i]}
        for k in range(len(weights)):
            seen[k + 1] = np.tanh(weights[k] @ seen[k])
        for k in range(len(weights)):
            grads[k] = grads[k] + np.outer(seen[k + 1], seen[k])
    return grads[0], grads[1], list(grads)


class Momentum:
    def __init__(self):
        self.v, self.turns = None, 0

    def update(self, w, g):
        if self.v is None:
            self.v = np.zeros(np.shape(w))
        self.v = 0.9 * self.v + 0.1 * g
        self.turns += 1
        return w - 0.01 * self.v


OPTIMIZERS = []


def with_state(w, g):
    opt = OPTIMIZERS[-1]
    for _ in range(3):
        w = opt.update(w, g)
    return w, opt.v, opt.turns


def edges(n, x):
    x[0, 1:-1] = -x[1, 1:-1]
    x[-1, 1:-1] = -x[n, 1:-1]
    x[1:-1, 0] = x[1:-1, 1]
    x[1:-1, -1] = x[1:-1, n]


def normalised(p):
    p /= sum(np.asarray(p, dtype=float))
    return p


def share_of_equals(a, b):
    return np.sum(a == b, axis=0) / len(a)


def shuffled(x, y):
    i = np.arange(x.shape[0])
    np.random.shuffle(i)
    return x[i], y[i], i


def of_each(nu, x):
    """What a comprehension calls for each element."""
    return -2 * nu * np.exp(-(x**2) / nu) + 4


def from_a_comprehension(x, nu):
    return np.asarray([of_each(nu, x0) for x0 in x]), [float(x0) for x0 in x if x0 > 1]


def data(*shape):
    return np.random.RandomState(3).rand(*shape)


PROGRAMS = {
    behind_a_helper: lambda: [data(3, 2)],
    behind_two_helpers: lambda: [data(4), 5, "a"],
    behind_one_in_a_loop: lambda: [data(6)],
    distance: lambda: [data(9), data(9)[::-1]],
    density: lambda: [data(7, 3), data(7, 3).mean(0), data(7, 3).var(0)],
    pooled: lambda: [data(9, 8) * 50, 2],
    told_now_and_then: lambda: [data(8, 3), np.arange(8) % 2, 11],
    kept_in_dicts: lambda: [data(6, 4), {0: data(5, 4), 1: data(2, 5)}],
    with_state: lambda: [data(4), data(4)],
    edges: lambda: [6, data(8, 8)],
    normalised: lambda: [data(5)],
    share_of_equals: lambda: [np.arange(6) % 4, np.arange(6) % 3],
    shuffled: lambda: [data(7, 2), np.arange(7)],
    from_a_comprehension: lambda: [np.linspace(0, 6, 25), 0.07],
}


def outcome(call, program, capsys):
    """What three calls leave."""
    CALLED.clear()
    np.random.seed(1)
    OPTIMIZERS.append(Momentum())
    left = []
    for _ in range(3):
        arguments = PROGRAMS[program]()
        result = call(*arguments)
        results = result if isinstance(result, tuple) else [result]
        left.append(([r is a for r in results for a in arguments], result, arguments))
    return copy.deepcopy(left), list(CALLED), capsys.readouterr().out, np.random.rand(), OPTIMIZERS[-1].turns


def compare(mine, theirs):
    assert mine[1:] == theirs[1:]
    for (aliases, result, arguments), (wanted_aliases, wanted, written) in zip(mine[0], theirs[0], strict=True):
        assert aliases == wanted_aliases
        same(result, wanted)
        same(arguments, written)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_call_leaves_what_python_leaves(program, capsys):
    compare(outcome(jl.jit(program), program, capsys), outcome(program, program, capsys))


def in_cells(program):
    """A call as two cells that run again: a call of the plain function, and what becomes of its result."""
    names = {"np": np, "program": program}

    def call(*arguments):
        names["arguments"] = arguments
        run_cell("first = len(arguments)\nresult = program(*arguments)\ncount = first + 1", names, f"<cell {program.__name__}>")
        run_cell("kind = type(result)\nresult", names, f"<cell {program.__name__} 2>")
        assert names["kind"] is type(names["result"]) and names["count"] == len(arguments) + 1
        return names["result"]

    return call


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_cell_leaves_what_python_leaves(program, capsys):
    compare(outcome(in_cells(program), program, capsys), outcome(program, program, capsys))

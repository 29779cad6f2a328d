"""A trace of open sizes records each size apart: every recording computes what Python computes, whatever ran in the first."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl

GAINS = [0.5, 2.0, 3.0]
TABLE = {"a": 1.0, "b": 2.0}
WEIGHTS = [np.arange(3.0), np.ones(3)]


class Layer:
    def __init__(self, k):
        self.k = k

    @property
    def twice(self):
        return float(2 * self.k)

    def __call__(self, x):
        return x * self.k


LAYERS = [Layer(2.0), Layer(3.0), Layer(5.0)]


def counted(x):
    for i in range(3):
        x = x + i * x
    return x


def subscripted(x):
    out = np.zeros_like(x)
    for i in range(3):
        out[i] = x[i] * i + GAINS[i]
    return out


def numbered(x):
    for n, gain in enumerate(GAINS):
        x = x * gain + n
    return x


def zipped(x):
    for gain, name in zip(GAINS, TABLE, strict=False):
        x = x * gain + TABLE[name]
    return x


def of_a_table(x):
    for name, value in TABLE.items():
        x = x + value * len(name)
    return x


def nested(x):
    for i in range(3):
        for j in (1, -2):
            x = x * i + np.roll(x, j) * j
    return x


def backwards(x):
    for i in range(5, 0, -2):
        x = np.tanh(x) + i
    return x


def of_layers(x):
    for layer in LAYERS:
        x = layer(x) + layer.k
    return x


def of_arrays(x):
    for w in WEIGHTS:
        x = x + w[1] * 2
    return x


def with_functions(x):
    made = [lambda y, k=k: y * k for k in (1, 2, 3)]
    for g in made:
        x = x + g(x)
    return x


def late_functions(x):
    for i in range(3):

        def g(y):
            return y * i + 1  # noqa: B023 - it is called in the same turn

        x = g(x)
    return x


def summed(x):
    return sum([i * x for i in range(4)]) + sum(k * x for k in GAINS)


def until(x):
    i = 0
    while i < 3:
        x, i = x + i, i + 1
    return x


def left_early(x):
    for i in range(10):
        if i == 3:
            break
        x = x + i
    else:
        x = x * 0
    return x * i


def counted_in_the_object(x):
    layer = Layer(1.0)
    for i in range(3):
        layer.k = layer.k + i
        x = x * layer.k
    return x


def of_a_property(x):
    layer = LAYERS[0]
    before = layer.k
    for i in (1, 2, 3):
        layer.k = i
        x = x * layer.twice
    layer.k = before
    return x * layer.twice


BODIES = [
    counted, subscripted, numbered, zipped, of_a_table, nested, backwards, of_layers, of_arrays, with_functions, late_functions,
    summed, until, left_early, counted_in_the_object, of_a_property,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("options", [{"input_signature": [jl.TensorSpec([None], np.float64)]}, {"reduce_retracing": True}])
def test_each_size_gives_what_python_gives(body, options):
    f = jl.function(body, **options)
    for size in (4, 5, 40, 4, 7):
        x = np.random.default_rng(size).normal(size=size)
        np.testing.assert_allclose(f(x), body(x.copy()), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_each_rank_gives_what_python_gives(body):
    f = jl.function(body, input_signature=[jl.TensorSpec(None, np.float64)])
    for shape in ((6,), (6, 3), (5, 2), (7,)):
        x = np.random.default_rng(1).normal(size=shape)
        np.testing.assert_allclose(f(x), body(x.copy()), rtol=1e-13, atol=1e-13)

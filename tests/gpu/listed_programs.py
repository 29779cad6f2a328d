"""Programs whose code for a GPU is looked at: what each computes, its arguments, and what is to be true of its PTX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(17)


def normal(*shape, dtype="f4"):
    return RANDOM.normal(size=shape).astype(dtype)


@dataclass
class Listed:
    """`wide`: it reads and writes 16 bytes at a time; `once`: it reads each element of its arguments once, and writes each of
    its results once; `single`: its code has nothing of 64-bit floats."""

    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    wide: bool = True
    once: bool = True
    single: bool = True

    def __post_init__(self):
        self.single = self.single and not any(a.dtype.char in "dD" for a in self.arguments)


LISTED: dict[str, Listed] = {}


def few(program: Listed) -> tuple[np.ndarray, ...]:
    """A program's arguments with few rows, for where each thread takes long."""
    return tuple(a[:3] if a.ndim == 2 else a for a in program.arguments)


def listed(*arguments, **facts):
    def taken(function):
        LISTED[function.__name__] = Listed(function, arguments, **facts)
        return function

    return taken


M = normal(16, 256)
N = abs(normal(16, 256)) + 0.5
D = normal(16, 256, dtype="f8")


@listed(M, N)
def chain(a, b):
    return (a * b + 1) / b - a * 2 + b


@listed(M)
def gelu(x):
    return x * 0.5 * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x)))


@listed(M)
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@listed(D)
def sigmoid_of_doubles(x):
    return 1 / (1 + np.exp(-x))


@listed(D, D + 1)
def chain_of_doubles(a, b):
    return (a * b + 1) / b - a * 2 + b


@listed(normal(64, 64, dtype="f2"), normal(64, 64, dtype="f2"))
def chain_of_halves(a, b):
    return a * b + a


@listed(RANDOM.integers(0, 255, (64, 64)).astype("u1"))
def bytes_to_floats(x):
    return x.astype(np.float32) * 1 / 255 - 0.5


@listed(RANDOM.integers(-99, 99, (64, 64)).astype("i4"), RANDOM.integers(1, 9, (64, 64)).astype("i4"))
def integers(a, b):
    return (a * b - 3) ^ (a >> 2)


@listed(M > 0, M, N)
def chosen(c, a, b):
    return np.where(c, a, b)


@listed(M)
def clipped(x):
    return np.clip(x, -1, 1)


@listed(M, N)
def compared(a, b):
    return (a < b) & (a > -b)


@listed(N)
def logarithms(x):
    return np.log(x) + np.log1p(x) - np.sqrt(x)


@listed(N, M)
def waves(a, b):
    """Whose arguments may be huge: what is rare is a function of its own."""
    return np.sin(a) * np.cos(b) + np.fmod(a, b)


@listed(N, M)
def powers(a, b):
    return a**2 + b**3 - a


@listed(M, normal(256), once=False)  # each row wants the weights
def by_columns(x, row):
    return x * row + row


@listed(M, normal(16, 1), once=False)  # a column's element is read by each thread that wants it
def by_rows(x, column):
    return x * column


@listed(normal(64), normal(64), once=False)
def outer(a, b):
    return a[:, None] * b[None, :]


@listed(N, N + 1, N, N)
def black_scholes(s, k, t, v):
    root = np.sqrt(t)
    d1 = (np.log(s / k) + (0.02 + v * v / 2) * t) / (v * root)
    d2 = d1 - v * root
    n1, n2 = 1 / (1 + np.exp(-1.702 * d1)), 1 / (1 + np.exp(-1.702 * d2))
    return s * n1 - k * np.exp(-0.02 * t) * n2


@listed(M, wide=False, once=False)
def stencil(x):
    return (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.2


@listed(M, wide=False)
def reversed_and_strided(x):
    return x[::-1, ::2] * 2


@listed(normal(64, 48), wide=False)
def transposed(x):
    return x.T * 2 + 1


@listed(normal(64, 48), normal(48, 64), wide=False)
def turned_beside_another(x, y):
    return x.T * 2 + y


@listed(normal(400), RANDOM.integers(0, 400, 300), wide=False, once=False)
def gathered(x, i):
    return x[i] * 2


@listed(M, N)
def joined(a, b):
    return np.concatenate([a, b], axis=1)


@listed(normal(8, 1024))
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@listed(normal(3, 4096))
def softmax_of_long_rows(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@listed(normal(3, 32768))  # several blocks have a row together
def softmax_of_rows_in_parts(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@listed(normal(3, 32768), normal(32768), normal(32768), once=False)
def layernorm_of_rows_in_parts(x, w, b):
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b


@listed(normal(8, 1024), normal(1024), normal(1024), once=False)
def layernorm(x, w, b):
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b


@listed(normal(8, 1024), normal(1024), once=False)
def rmsnorm(x, w):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * w


@listed(normal(8, 1024))
def log_softmax(x):
    d = x - x.max(axis=1, keepdims=True)
    return d - np.log(np.exp(d).sum(axis=1, keepdims=True))


@listed(normal(5, 1000), wide=False)
def row_sums(x):
    return x.sum(axis=1)


@listed(normal(200, 32), wide=False)
def column_sums(x):
    return x.sum(axis=0)


@listed(normal(60000), wide=False)
def whole_sum(x):
    return x.sum()


@listed(normal(60000, dtype="f8"), wide=False)
def whole_sum_of_doubles(x):
    return (x * x).sum()


@listed(normal(5, 1000), wide=False)
def row_maxima(x):
    return x.max(axis=1)


@listed(normal(5, 1000), wide=False, once=False)
def deviations(x):
    return x.std(axis=1), x.var(axis=0)


@listed(normal(5, 1000), wide=False)
def row_positions(x):
    return x.argmax(axis=1)


@listed(normal(48, 40), normal(40, 56), wide=False, once=False)
def product(a, b):
    return a @ b


@listed(normal(48, 40, dtype="f8"), normal(40, 56, dtype="f8"), wide=False, once=False)
def product_of_doubles(a, b):
    return a @ b


@listed((normal(64, 64) + 1j * normal(64, 64)).astype("c8"), wide=False)
def complex_numbers(z):
    return z * z + z


@listed(normal(500), normal(40), wide=False, once=False)
def distances(x, c):
    return ((x[:, None] - c[None, :]) ** 2).sum(axis=1)


@listed(normal(24, 24), wide=False, once=False)
def heat(u):
    for _ in range(10):
        u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    return u


@listed(normal(300), wide=False, once=False)
def newton(x):
    y = np.abs(x) + 1
    for _ in range(8):
        y = (y + np.abs(x) / y) / 2
    return y


@listed(np.linspace(-2, 1, 400, dtype="f4"), wide=False, once=False)
def escapes(c):
    n = np.zeros(400, np.int32)
    z = np.zeros(400, np.float32)
    for _ in range(20):
        z = np.where(z * z < 4, z * z + c, z)
        n = n + (z * z < 4)
    return n

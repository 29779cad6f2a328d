"""Functions of about twenty lines, each of another kind, whose assembly is looked at."""

from collections.abc import Callable
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(5)


def elementwise(s, k, t, r, v):
    root = np.sqrt(t)
    spread = v * root
    forward = np.log(s / k)
    drift = r + v * v / 2
    moved = drift * t
    top = forward + moved
    d1 = top / spread
    d2 = d1 - spread
    scaled = d1 * 0.7
    near = np.tanh(scaled)
    far = np.tanh(d2 * 0.7)
    half = near + 1
    other = far + 1
    discount = np.exp(-r * t)
    paid = k * discount
    left = s * half
    right = paid * other
    call = left - right
    return np.maximum(call / 2, 0.0)


def reductions(x, w):
    mean = x.mean(axis=1, keepdims=True)
    centred = x - mean
    squares = centred * centred
    variance = squares.mean(axis=1, keepdims=True)
    scale = np.sqrt(variance + 1e-5)
    normed = centred / scale
    weighted = normed * w
    top = weighted.max(axis=1, keepdims=True)
    shifted = weighted - top
    e = np.exp(shifted)
    total = e.sum(axis=1, keepdims=True)
    p = e / total
    logs = np.log(p + 1e-9)
    entropy = -(p * logs).sum(axis=1)
    low = entropy.min()
    high = entropy.max()
    width = high - low
    first = p.argmax(axis=1)
    return entropy / (width + 1), first


def loop(u, a, n):
    for _ in range(n):
        left = u[:-2]
        middle = u[1:-1]
        right = u[2:]
        bend = left - 2 * middle
        bend = bend + right
        step = a * bend
        u[1:-1] = middle + step
        u[0] = u[1]
        u[-1] = u[-2]
        u[1:-1] *= 0.999
    return u * 2


def stencil(p, b):
    inner = p[1:-1, 1:-1]
    east = p[1:-1, 2:]
    west = p[1:-1, :-2]
    north = p[:-2, 1:-1]
    south = p[2:, 1:-1]
    across = east + west
    along = north + south
    around = across + along
    new = around * 0.25
    source = b[1:-1, 1:-1]
    new = new - source
    change = new - inner
    error = np.abs(change)
    worst = error.max()
    out = p.copy()
    out[1:-1, 1:-1] = inner + 1.2 * change
    out[0, :] = out[1, :]
    out[:, 0] = out[:, 1]
    return out, worst


def matmul(x, w1, b1, w2, y):
    z = x @ w1
    z = z + b1
    h = np.maximum(z, 0)
    o = h @ w2
    top = o.max(axis=1, keepdims=True)
    e = np.exp(o - top)
    p = e / e.sum(axis=1, keepdims=True)
    n = x.shape[0]
    d = (p - y) / n
    dw2 = h.T @ d
    dh = d @ w2.T
    dz = dh * (z > 0)
    dw1 = x.T @ dz
    db1 = dz.sum(axis=0)
    w1 = w1 - 0.1 * dw1
    w2 = w2 - 0.1 * dw2
    b1 = b1 - 0.1 * db1
    return w1, b1, w2


def conditionals(x, limit):
    positive = x > 0
    small = np.abs(x) < limit
    both = positive & small
    doubled = x * 2
    halved = x / 2
    y = np.where(both, doubled, halved)
    y = np.clip(y, -3, 3)
    total = y.sum()
    if total > 0:
        y = np.sin(y)
        y = y + 1
    else:
        y = np.cos(y)
        y = y - 1
    far = np.where(y > 1, 1.0, y)
    sign = np.sign(far)
    count = (sign > 0).sum()
    return far, count


def whole_numbers(a, b, index):
    s = a + b
    d = a - b
    m = s * d
    q = m // (b + 7)
    r = m % (b + 7)
    low = q & 255
    high = r >> 2
    mixed = low ^ high
    picked = mixed[index]
    summed = np.cumsum(picked)
    big = summed > 100
    counted = big.sum()
    longest = summed.max()
    spread = longest - summed.min()
    scaled = picked * spread
    even = scaled % 2 == 0
    kept = np.where(even, scaled, -scaled)
    return kept, counted


def turns(x, tolerance):
    guess = x / 2
    error = 1.0
    times = 0
    while error > tolerance:
        better = x / guess
        better = better + guess
        better = better / 2
        change = better - guess
        size = np.abs(change)
        error = size.max()
        guess = better
        times = times + 1
    root = guess * 1.0
    square = root * root
    off = square - x
    return root, np.abs(off).max(), times


def numbers(*shape: int) -> Any:
    return RANDOM.random(shape) + 0.5


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "elementwise": (elementwise, lambda: (numbers(1000), numbers(1000), numbers(1000), 0.05, numbers(1000))),
    "reductions": (reductions, lambda: (numbers(40, 70), numbers(70))),
    "loop": (loop, lambda: (numbers(500), 0.2, 40)),
    "stencil": (stencil, lambda: (numbers(60, 50), numbers(60, 50))),
    "matmul": (matmul, lambda: (numbers(32, 20), numbers(20, 16), numbers(16), numbers(16, 10), numbers(32, 10))),
    "conditionals": (conditionals, lambda: (numbers(1000) - 1, 0.3)),
    "whole_numbers": (
        whole_numbers, lambda: (np.arange(300), np.arange(300) % 11, RANDOM.integers(0, 300, 200)),
    ),
    "turns": (turns, lambda: (numbers(200), 1e-9)),
}  # fmt: skip

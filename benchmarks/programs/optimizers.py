"""Optimisers and roots: gradient descent, simplex, annealing, swarms, line searches."""

import math
import random

import numpy as np

from .record import Program, given


def newton_root(coefficients, x0, tol=1e-12, max_iter=50):
    """A root of a polynomial (highest power first), with how many steps it took."""

    def horner(x):
        p = dp = 0.0
        for c in coefficients:
            dp = dp * x + p
            p = p * x + c
        return p, dp

    x = x0
    for iteration in range(max_iter):
        p, dp = horner(x)
        if abs(p) < tol:
            return x, iteration
        if dp == 0:
            raise ZeroDivisionError("the derivative vanishes")
        x = x - p / dp
    return x, max_iter


def bisection(values, lo, hi, steps=40):
    """Where the sum of (x - v)^3 over the values is zero."""
    f = lambda x: sum((x - v) ** 3 for v in values)  # noqa: E731
    if f(lo) * f(hi) > 0:
        raise ValueError("no sign change")
    for _ in range(steps):
        mid = (lo + hi) / 2
        if f(lo) * f(mid) <= 0:
            hi = mid
        else:
            lo = mid
    return (lo + hi) / 2


def gradient_descent(A, b, lr=0.01, steps=20, verbose=False):
    x = np.zeros(A.shape[1])
    losses = []
    for i in range(steps):
        r = A @ x - b
        grad = 2 * A.T @ r / len(b)
        x -= lr * grad
        losses.append(float(np.mean(r**2)))
        if verbose and i % 10 == 0:
            print(f"step {i:3d}  loss {losses[-1]:.5f}")
    return x, losses


class Adam:
    def __init__(self, lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-8):
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.m = None
        self.v = None
        self.t = 0

    def update(self, params, grads):
        if self.m is None:
            self.m = {k: np.zeros_like(v) for k, v in params.items()}
            self.v = {k: np.zeros_like(v) for k, v in params.items()}
        self.t += 1
        for key in params:
            self.m[key] = self.beta1 * self.m[key] + (1 - self.beta1) * grads[key]
            self.v[key] = self.beta2 * self.v[key] + (1 - self.beta2) * grads[key] ** 2
            m_hat = self.m[key] / (1 - self.beta1**self.t)
            v_hat = self.v[key] / (1 - self.beta2**self.t)
            params[key] -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


def adam_fit(optimizer, params, x, y, epochs=5):
    for _ in range(epochs):
        error = x @ params["w"] + params["b"] - y
        grads = {"w": x.T @ error / len(y), "b": np.array(error.mean())}
        optimizer.update(params, grads)
    return float((error**2).mean())


def simulated_annealing(cities, steps, seed=3, t0=1.0, cooling=0.99):
    """A short tour through the cities, by reversing parts of it."""
    rng = random.Random(seed)
    n = len(cities)

    def length(order):
        return sum(math.dist(cities[order[i]], cities[order[(i + 1) % n]]) for i in range(n))

    tour = list(range(n))
    current = length(tour)
    best, best_len = tour[:], current
    t = t0
    for _ in range(steps):
        i, j = sorted(rng.sample(range(n), 2))
        candidate = tour[:i] + tour[i : j + 1][::-1] + tour[j + 1 :]
        cost = length(candidate)
        if cost < current or rng.random() < math.exp((current - cost) / t):
            tour, current = candidate, cost
            if current < best_len:
                best, best_len = tour[:], current
        t *= cooling
    return best, best_len


def particle_swarm(rng, n_particles, n_steps=20, dim=3):
    def rastrigin(p):
        return 10 * dim + np.sum(p**2 - 10 * np.cos(2 * np.pi * p), axis=1)

    pos = rng.uniform(-5, 5, (n_particles, dim))
    vel = np.zeros_like(pos)
    best_pos, best_val = pos.copy(), rastrigin(pos)
    g = best_pos[np.argmin(best_val)]
    for _ in range(n_steps):
        r1, r2 = rng.random((2, n_particles, dim))
        vel = 0.7 * vel + 1.5 * r1 * (best_pos - pos) + 1.5 * r2 * (g - pos)
        pos = pos + vel
        val = rastrigin(pos)
        better = val < best_val
        best_pos[better] = pos[better]
        best_val[better] = val[better]
        g = best_pos[np.argmin(best_val)]
    return g, best_val.min()


def golden_section(points, a, b, tol=1e-6):
    """The minimum of the distance to all points, on a line."""
    invphi = (math.sqrt(5) - 1) / 2

    def cost(t):
        return np.sum(np.sqrt(1 + (points - t) ** 2))

    c, d = b - invphi * (b - a), a + invphi * (b - a)
    while abs(b - a) > tol:
        if cost(c) < cost(d):
            b = d
        else:
            a = c
        c, d = b - invphi * (b - a), a + invphi * (b - a)
    return (a + b) / 2


def hill_climb_knapsack(weights, values, capacity):
    order = sorted(range(len(weights)), key=lambda i: values[i] / weights[i], reverse=True)
    taken, total = [], 0
    worth = 0.0
    for i in order:
        if total + weights[i] > capacity:
            continue
        taken.append(i)
        total += weights[i]
        worth += values[i]
    return {"items": taken, "weight": total, "value": worth}


PROGRAMS = [
    Program(newton_root, (4, 200, 2000), lambda n, draw: given([1.0] + draw.normal(size=n).tolist(), 3.0)),
    Program(bisection, (10, 500, 10_000), lambda n, draw: given(draw.normal(size=n).tolist(), -10.0, 10.0, steps=20)),
    Program(
        gradient_descent,
        (10, 2000, 50_000),
        lambda n, draw: given(draw.normal(size=(n, 3)), draw.normal(size=n), lr=0.05, verbose=True),
    ),
    Program(
        adam_fit,
        (10, 2000, 100_000),
        lambda n, draw: given(
            Adam(lr=0.1), {"w": np.zeros(4), "b": np.zeros(())}, draw.normal(size=(n, 4)), draw.normal(size=n)
        ),
    ),
    Program(
        simulated_annealing,
        (6, 40, 200),
        lambda n, draw: given([tuple(p) for p in draw.random((n, 2)).tolist()], 10 if n < 10 else 200),
    ),
    Program(particle_swarm, (6, 200, 20_000), lambda n, draw: given(np.random.default_rng(5), n)),
    Program(golden_section, (10, 2000, 200_000), lambda n, draw: given(draw.normal(size=n), -3.0, 3.0)),
    Program(
        hill_climb_knapsack,
        (10, 2000, 100_000),
        lambda n, draw: given(draw.integers(1, 30, n).tolist(), draw.random(n).tolist(), n * 3),
    ),
]

"""Differential equations and physics, step by step."""

import math
from dataclasses import dataclass

import numpy as np

from .record import Program, given


def euler_decay(y0, rate, dt, steps):
    y = y0
    ys = [y]
    for _ in range(steps):
        y += dt * (-rate * y)
        ys.append(y)
    return ys


def rk4_lorenz(state, n, dt=0.01, sigma=10.0, rho=28.0, beta=8 / 3):
    def f(s):
        x, y, z = s
        return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    out = np.empty((n, 3))
    for i in range(n):
        k1 = f(state)
        k2 = f(state + dt / 2 * k1)
        k3 = f(state + dt / 2 * k2)
        k4 = f(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out[i] = state
    return out


def adaptive_rk12(y, t_end, tol=1e-3):
    """dy/dt = -y + sin t with a step that follows the error; how many steps were thrown away."""
    t, h = 0.0, 0.1
    rejected = 0
    while t < t_end:
        if t + h > t_end:
            h = t_end - t
        k1 = -y + math.sin(t)
        k2 = -(y + h * k1) + math.sin(t + h)
        error = abs(h * (k2 - k1) / 2)
        if error > tol:
            rejected += 1
            h *= 0.5
            continue
        y = y + h * (k1 + k2) / 2
        t += h
        if error < tol / 4:
            h *= 1.5
    return y, rejected


def verlet(positions, velocities, n_steps, dt=0.01, k=1.0):
    """Masses on springs, changed in place; gives the energies."""
    energies = []
    acc = -k * positions
    for _ in range(n_steps):
        positions += velocities * dt + 0.5 * acc * dt * dt
        new_acc = -k * positions
        velocities += 0.5 * (acc + new_acc) * dt
        acc = new_acc
        energies.append(0.5 * np.sum(velocities**2) + 0.5 * k * np.sum(positions**2))
    return np.array(energies)


@dataclass
class Body:
    x: float
    y: float
    vx: float
    vy: float
    mass: float = 1.0


def n_body(bodies, dt=0.01, steps=2):
    for _ in range(steps):
        for i, a in enumerate(bodies):
            for b in bodies[i + 1 :]:
                dx, dy = b.x - a.x, b.y - a.y
                d3 = (dx * dx + dy * dy + 1e-6) ** 1.5
                a.vx += dt * b.mass * dx / d3
                a.vy += dt * b.mass * dy / d3
                b.vx -= dt * a.mass * dx / d3
                b.vy -= dt * a.mass * dy / d3
        for body in bodies:
            body.x += dt * body.vx
            body.y += dt * body.vy
    return sum(0.5 * b.mass * (b.vx**2 + b.vy**2) for b in bodies)


def heat_equation(u, alpha=0.1, steps=20, callback=None):
    for step in range(steps):
        u[1:-1] += alpha * (u[2:] - 2 * u[1:-1] + u[:-2])
        if callback is not None and step % 5 == 0:
            callback(step, u.max())
    return u


def laplace_2d(grid, tol=1e-2, max_iter=20):
    iterations = 0
    change = tol + 1
    while change > tol and iterations < max_iter:
        new = grid.copy()
        new[1:-1, 1:-1] = 0.25 * (grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2])
        change = np.abs(new - grid).max()
        grid[:] = new
        iterations += 1
    return iterations, change


def predator_prey(prey, predators, steps, dt=0.02):
    """Yields the populations."""
    for _ in range(steps):
        births = 1.1 * prey
        eaten = 0.4 * prey * predators
        prey, predators = prey + dt * (births - eaten), predators + dt * (0.1 * prey * predators - 0.4 * predators)
        yield prey, predators


def random_walk(n, seed=42):
    np.random.seed(seed)
    x = y = 0
    farthest = 0.0
    for _ in range(n):
        direction = np.random.randint(4)
        if direction == 0:
            x += 1
        elif direction == 1:
            x -= 1
        elif direction == 2:
            y += 1
        else:
            y -= 1
        farthest = max(farthest, math.hypot(x, y))
    return (x, y), farthest


def ising_sweep(spins, beta, rng):
    """One Metropolis sweep over a square lattice."""
    n = spins.shape[0]
    flips = 0
    for i in range(n):
        for j in range(n):
            s = spins[i, j]
            neighbours = spins[(i + 1) % n, j] + spins[i, (j + 1) % n] + spins[i - 1, j] + spins[i, j - 1]
            dE = 2 * s * neighbours
            if dE <= 0 or rng.random() < np.exp(-beta * dE):
                spins[i, j] = -s
                flips += 1
    return flips, spins.sum()


def logistic_map(r_values, skip=10, keep=4):
    points = []
    for r in r_values:
        x = 0.5
        for _ in range(skip):
            x = r * x * (1 - x)
        row = []
        for _ in range(keep):
            x = r * x * (1 - x)
            row.append(round(x, 9))
        points.append((r, row))
    return points


PROGRAMS = [
    Program(euler_decay, (10, 2000, 200_000), lambda n, draw: given(1.0, 0.5, 0.001, n)),
    Program(rk4_lorenz, (5, 200, 5000), lambda n, draw: given(np.array([1.0, 1.0, 1.0]), n)),
    Program(adaptive_rk12, (2, 300, 10_000), lambda n, draw: given(1.0, float(n))),
    Program(verlet, (10, 2000, 200_000), lambda n, draw: given(draw.normal(size=n), draw.normal(size=n), 20)),
    Program(n_body, (4, 30, 200), lambda n, draw: given([Body(*p) for p in draw.normal(size=(n, 4)).tolist()])),
    Program(heat_equation, (10, 2000, 200_000), lambda n, draw: given(draw.random(n), alpha=0.2, callback=print)),
    Program(laplace_2d, (6, 64, 400), lambda n, draw: given(draw.random((n, n)), tol=1e-3)),
    Program(predator_prey, (10, 2000, 100_000), lambda n, draw: given(10.0, 5.0, n)),
    Program(random_walk, (10, 1000, 20_000), lambda n, draw: given(n)),
    Program(
        ising_sweep, (4, 20, 120), lambda n, draw: given(draw.choice([-1, 1], size=(n, n)), 0.4, np.random.default_rng(2))
    ),
    Program(logistic_map, (4, 300, 10_000), lambda n, draw: given(np.linspace(2.5, 4.0, n).tolist())),
]

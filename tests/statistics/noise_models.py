"""What disturbs durations: models of noise, as logarithms around 0, in the order of time."""

import numpy as np


def quiet(rng, n):
    return rng.normal(0, 0.005, n)


def jitter(rng, n):
    return rng.normal(0, 0.02, n)


def drift(rng, n):
    """The machine becomes slower or faster by up to 4 % over both runs."""
    return jitter(rng, n) + rng.uniform(-0.02, 0.02) * np.linspace(-1, 1, n)


def walk(rng, n):
    return jitter(rng, n) + np.cumsum(rng.normal(0, 0.02 / np.sqrt(n), n))


def waves(rng, n):
    return jitter(rng, n) + 0.02 * np.sin(np.linspace(0, rng.uniform(3, 12), n) * np.pi + rng.uniform(0, 6))


def memory(rng, n):
    """Each sample resembles the one before."""
    pushes = rng.normal(0, 0.012, n)
    values = np.empty(n)
    value = rng.normal(0, 0.02)
    for i, push in enumerate(pushes):
        value = 0.8 * value + push
        values[i] = value
    return values + rng.normal(0, 0.01, n)


def bursts(rng, n):
    """Another program takes the processor for some calls: a fifth of them, which take up to three times as long."""
    values, i = jitter(rng, n), 0
    while i < n:
        i += int(rng.exponential(10)) + 1
        long = int(rng.exponential(3)) + 1
        values[i : i + long] += np.log(rng.uniform(1.2, 3))
        i += long
    return values


def heavy_tail(rng, n):
    return jitter(rng, n) + np.minimum(0.05 * rng.pareto(1.5, n), 3)


def heavier_tail(rng, n):
    return jitter(rng, n) + np.minimum(0.02 * np.abs(rng.standard_t(1.5, n)), 4)


def two_modes(rng, n):
    """Three calls in ten miss the cache."""
    return jitter(rng, n) + np.where(rng.random(n) < 0.3, 0.25, 0)


def one_sided(rng, n):
    return np.abs(rng.normal(0, 0.1, n))


def placement(rng, n):
    """Where its memory lies makes a run as a whole slower or faster."""
    return jitter(rng, n) + rng.normal(0, 0.01)


def wide(rng, n):
    """Each call differs from the next by as much as from any other."""
    return rng.normal(0, 0.08, n)


#: Each with whether it goes on from one run into the next.
MODELS = {
    quiet: False, jitter: False, drift: True, walk: True, waves: True, memory: True, bursts: True, heavy_tail: False,
    heavier_tail: False, two_modes: False, one_sided: False, placement: False,
}  # fmt: skip


def two_runs(model, rng, before, after, seconds=0.01):
    """Durations of two runs one after the other."""
    if MODELS[model]:
        both = model(rng, before + after)
        parts = both[:before], both[before:]
    else:
        parts = model(rng, before), model(rng, after)
    return tuple(seconds * np.exp(part) for part in parts)


def pairs(model, rng, count, seconds=0.01):
    """Both sides in turns; each second pair begins with the other side."""
    values = model(rng, 2 * count)
    i = np.arange(count)
    return seconds * np.exp(values[2 * i + i % 2]), seconds * np.exp(values[2 * i + 1 - i % 2])

"""Statistics: moments, regressions, clusters, tests and estimators."""

import math
import random
from collections import Counter, defaultdict

import numpy as np

from .record import Program, given


def running_moments(values):
    """Welford: mean and variance in one pass."""
    n = 0
    mean = m2 = 0.0
    for x in values:
        n += 1
        delta = x - mean
        mean += delta / n
        m2 += delta * (x - mean)
    if n < 2:
        return mean, float("nan")
    return mean, m2 / (n - 1)


def kmeans(X, k, max_iter=10, seed=0, verbose=True):
    rng = np.random.RandomState(seed)
    centers = X[rng.choice(len(X), k, replace=False)].copy()
    labels = np.zeros(len(X), dtype=int)
    for it in range(max_iter):
        distances = np.linalg.norm(X[:, np.newaxis] - centers, axis=2)
        new_labels = np.argmin(distances, axis=1)
        if it > 0 and np.all(new_labels == labels):
            if verbose:
                print(f"converged after {it} iterations")
            break
        labels = new_labels
        for j in range(k):
            members = X[labels == j]
            if len(members) > 0:
                centers[j] = members.mean(axis=0)
    inertia = sum(np.sum((X[labels == j] - centers[j]) ** 2) for j in range(k))
    return centers, labels, inertia


def linear_regression(x, y):
    n = len(x)
    mx, my = sum(x) / n, sum(y) / n
    sxy = sum((a - mx) * (b - my) for a, b in zip(x, y))  # noqa: B905
    sxx = sum((a - mx) ** 2 for a in x)
    slope = sxy / sxx
    intercept = my - slope * mx
    residuals = [b - (slope * a + intercept) for a, b in zip(x, y)]  # noqa: B905
    stderr = math.sqrt(sum(r * r for r in residuals) / (n - 2) / sxx)
    return {"slope": slope, "intercept": intercept, "stderr": stderr}


def bootstrap_mean(data, n_resamples=50, rng=None):
    """A 95 % interval of the mean, by resampling."""
    rng = rng if rng is not None else np.random.default_rng(0)
    means = np.empty(n_resamples)
    for i in range(n_resamples):
        sample = rng.choice(data, size=len(data), replace=True)
        means[i] = sample.mean()
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def histogram(values, bins=10):
    lo, hi = min(values), max(values)
    if lo == hi:
        return {lo: len(values)}
    width = (hi - lo) / bins
    counts = defaultdict(int)
    for v in values:
        b = min(int((v - lo) / width), bins - 1)
        counts[b] += 1
    return dict(sorted(counts.items()))


def mann_whitney_u(a, b):
    combined = sorted([(v, 0) for v in a] + [(v, 1) for v in b])
    ranks = [0.0] * len(combined)
    i = 0
    while i < len(combined):
        j = i
        while j + 1 < len(combined) and combined[j + 1][0] == combined[i][0]:
            j += 1
        for k in range(i, j + 1):
            ranks[k] = (i + j) / 2 + 1
        i = j + 1
    r1 = sum(r for r, (_, group) in zip(ranks, combined) if group == 0)  # noqa: B905
    u1 = r1 - len(a) * (len(a) + 1) / 2
    return min(u1, len(a) * len(b) - u1)


def gaussian_kde(points, grid, bandwidth=None):
    n = len(points)
    if bandwidth is None:
        bandwidth = 1.06 * np.std(points) * n ** (-1 / 5)
    density = np.zeros(len(grid))
    for p in points:
        density += np.exp(-0.5 * ((grid - p) / bandwidth) ** 2)
    return density / (n * bandwidth * np.sqrt(2 * np.pi))


def em_two_gaussians(x, steps=5):
    """Mixture of two normal distributions by expectation and maximisation."""

    def pdf(v, mu, var):
        return np.exp(-((v - mu) ** 2) / (2 * var)) / np.sqrt(2 * np.pi * var)

    mu1, mu2 = x.min(), x.max()
    var1 = var2 = x.var()
    weight = 0.5
    history = []
    for _ in range(steps):
        p1 = weight * pdf(x, mu1, var1)
        p2 = (1 - weight) * pdf(x, mu2, var2)
        r = p1 / (p1 + p2)
        mu1 = (r * x).sum() / r.sum()
        mu2 = ((1 - r) * x).sum() / (1 - r).sum()
        var1 = (r * (x - mu1) ** 2).sum() / r.sum()
        var2 = ((1 - r) * (x - mu2) ** 2).sum() / (1 - r).sum()
        weight = r.mean()
        history.append(np.log(p1 + p2).sum())
    return (mu1, var1), (mu2, var2), weight, history


def word_entropy(tokens):
    counts = Counter(tokens)
    total = sum(counts.values())
    h = 0.0
    for c in counts.values():
        p = c / total
        h -= p * math.log2(p)
    return round(h, 12), counts.most_common(2)


def reservoir_sample(stream, k, seed=1):
    random.seed(seed)
    chosen = []
    for i, item in enumerate(stream):
        if i < k:
            chosen.append(item)
        else:
            j = random.randint(0, i)
            if j < k:
                chosen[j] = item
    return chosen


def autocorrelation(x, max_lag=5):
    x = np.asarray(x, dtype=float)
    x = x - x.mean()
    denominator = np.dot(x, x)
    if denominator == 0:
        return None
    return [1.0] + [float(np.dot(x[:-lag], x[lag:]) / denominator) for lag in range(1, max_lag + 1)]


def standardize(table, eps=1e-12):
    """Columns to mean 0 and deviation 1, in place; gives what was taken off."""
    means = []
    scales = []
    for j in range(table.shape[1]):
        col = table[:, j]
        m, s = col.mean(), col.std()
        if s < eps:
            s = 1.0
        table[:, j] = (col - m) / s
        means.append(m)
        scales.append(s)
    return means, scales


PROGRAMS = [
    Program(running_moments, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=n))),
    Program(kmeans, (12, 1000, 10_000), lambda n, draw: given(draw.normal(size=(n, 2)), 3)),
    Program(
        linear_regression, (10, 1000, 50_000), lambda n, draw: given(draw.normal(size=n).tolist(), draw.normal(size=n).tolist())
    ),
    Program(bootstrap_mean, (10, 1000, 50_000), lambda n, draw: given(draw.normal(size=n), rng=np.random.default_rng(7))),
    Program(histogram, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=n).tolist(), bins=8)),
    Program(
        mann_whitney_u,
        (10, 1000, 20_000),
        lambda n, draw: given(draw.integers(0, 50, n).tolist(), draw.normal(size=n).tolist()),
    ),
    Program(gaussian_kde, (10, 300, 3000), lambda n, draw: given(draw.normal(size=n), np.linspace(-3, 3, min(n, 500)))),
    Program(em_two_gaussians, (12, 2000, 200_000), lambda n, draw: given(draw.choice([0, 4], n) + draw.normal(size=n))),
    Program(word_entropy, (10, 2000, 100_000), lambda n, draw: given([f"w{i}" for i in draw.integers(0, 9, n)])),
    Program(reservoir_sample, (10, 2000, 100_000), lambda n, draw: given(range(n), 4)),
    Program(autocorrelation, (10, 2000, 500_000), lambda n, draw: given(draw.normal(size=n))),
    Program(standardize, (10, 2000, 100_000), lambda n, draw: given(draw.normal(3, 2, size=(n, 4)))),
]

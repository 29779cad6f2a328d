"""Ordinary NumPy programs with loops and writes, as people write them. Each has arguments in `PROGRAMS`."""

import math

import numpy as np


def heat_1d(u, steps):
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])


def heat_3d(a, b, steps):
    for _ in range(1, steps):
        b[1:-1, 1:-1, 1:-1] = 0.125 * (
            (a[2:, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1])
            + (a[1:-1, 2:, 1:-1] + a[1:-1, :-2, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1])
            + (a[1:-1, 1:-1, 2:] + a[1:-1, 1:-1, :-2] - 2.0 * a[1:-1, 1:-1, 1:-1])
        ) + a[1:-1, 1:-1, 1:-1]
        a[1:-1, 1:-1, 1:-1] = b[1:-1, 1:-1, 1:-1] * 0.5


def levinson(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gauss_elimination(a, b):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def longest_common_subsequence(a, b):
    table = np.zeros((a.size + 1, b.size + 1), dtype=np.int32)
    for i in range(a.size):
        for j in range(b.size):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table[-1, -1], table


def sieve(n):
    is_prime = np.ones(n, dtype=bool)
    is_prime[:2] = False
    for i in range(2, int(math.sqrt(n)) + 1):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    return is_prime


def histogram_by_hand(values, bins):
    counts = np.zeros(bins, np.int64)
    for i in range(values.shape[0]):
        counts[int(values[i] * bins)] += 1
    return counts


def conjugate_gradient(a, b, tolerance):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for i in range(b.shape[0]):  # noqa: B007
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < tolerance:
            break
        p = r + (new / rs) * p
        rs = new
    return x, i


def newton_sqrt(values):
    out = np.empty_like(values)
    for i in range(len(values)):
        x = values[i]
        guess = x
        while abs(guess * guess - x) > 1e-12 * x:
            guess = 0.5 * (guess + x / guess)
        out[i] = guess
    return out


def collatz(limit):
    longest = 0
    best = 0
    for start in range(1, limit):
        n = start
        length = 1
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            length += 1
        if length > longest:
            longest = length
            best = start
    return best, longest


def bubble_sort(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(0, n - i - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def running_mean(x, width):
    out = np.zeros(x.shape[0] - width + 1)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        if i >= width:
            total -= x[i - width]
        if i >= width - 1:
            out[i - width + 1] = total / width
    return out


def thomas(a, b, c, d):
    n = d.shape[0]
    cp = np.zeros(n)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.empty(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def game_of_life(board, steps):
    for _ in range(steps):
        n = np.zeros(board.shape, np.int8)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if (dy, dx) != (0, 0):
                    n += np.roll(np.roll(board, dy, axis=0), dx, axis=1)
        board = ((n == 3) | ((board == 1) & (n == 2))).astype(np.int8)
    return board


def escape_times(width, height, limit):
    out = np.zeros((height, width), np.int64)
    for j in range(height):
        for i in range(width):
            c = complex(-2.0 + 3.0 * i / width, -1.0 + 2.0 * j / height)
            z = 0j
            n = 0
            while n < limit and abs(z) <= 2.0:
                z = z * z + c
                n += 1
            out[j, i] = n
    return out


def power_iteration(a, steps):
    v = np.ones(a.shape[0])
    value = 0.0
    for _ in range(steps):
        w = a @ v
        value = np.linalg.norm(w)
        v = w / value
    return value, v


def runge_kutta(y, dt, steps):
    def rates(s):
        return np.array([1.1 * s[0] - 0.4 * s[0] * s[1], 0.1 * s[0] * s[1] - 0.4 * s[1]])

    path = np.empty((steps, 2))
    for i in range(steps):
        k1 = rates(y)
        k2 = rates(y + dt / 2 * k1)
        k3 = rates(y + dt / 2 * k2)
        k4 = rates(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[i] = y
    return path


def page_rank(links, damping, steps):
    n = links.shape[0]
    rank = np.full(n, 1.0 / n)
    out = links.sum(axis=1)
    for _ in range(steps):
        new = np.full(n, (1 - damping) / n)
        for j in range(n):
            new += damping * links[j] * rank[j] / max(out[j], 1.0)
        rank = new
    return rank


def k_means(points, centers, steps):
    for _ in range(steps):
        distance = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        nearest = distance.argmin(axis=1)
        for k in range(centers.shape[0]):
            mine = nearest == k
            count = mine.sum()
            if count > 0:
                centers[k] = (points * mine[:, None]).sum(axis=0) / count
    return nearest


def triangle_of_pascal(n):
    t = np.zeros((n, n), np.int64)
    for i in range(n):
        t[i, 0] = 1
        for j in range(1, i + 1):
            t[i, j] = t[i - 1, j - 1] + t[i - 1, j]
    return t


def fibonacci(n):
    a, b = 0, 1
    out = []
    for _ in range(n):
        a, b = b, a + b
    return a, out


def swapped_buffers(a, steps):
    b = np.empty_like(a)
    for _ in range(steps):
        b[:] = np.roll(a, 1) * 0.5 + a * 0.5
        a, b = b, a
    return a


def prefix_products(x):
    out = np.empty_like(x)
    p = 1.0
    for i, v in enumerate(x):
        p *= v
        out[i] = p
    return out


def rows_by_iteration(a):
    total = np.zeros(a.shape[1])
    biggest = -np.inf
    for row in a:
        total += row * row
        biggest = max(biggest, row.sum())
    return total, biggest


def upwind(u, c, steps):
    for _ in range(steps):
        un = u.copy()
        for i in range(1, len(u)):
            u[i] = un[i] - c * (un[i] - un[i - 1])
    return u


def anti_diagonal_sums(a):
    n = a.shape[0]
    out = np.zeros(2 * n - 1)
    for i in range(n):
        for j in range(n):
            out[i + j] += a[i, j]
    return out


def every_third_backwards(x):
    s = 0.0
    for i in range(len(x) - 1, -1, -3):
        s = s * 0.5 + x[i]
    return s


def first_above(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return i
    return -1


def skip_negative(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            continue
        total += np.sqrt(x[i])
    return total


def countdown(x):
    n = len(x) - 1
    s = 0.0
    while n >= 0:
        s += x[n] * n
        n -= 2
    return s


def permuted(x, order):
    out = np.zeros_like(x)
    for i in range(len(order)):
        out[order[i]] += x[i]
    return out


def triangular_solve_many(lower, b):
    x = np.zeros_like(b)
    for k in range(b.shape[1]):
        for i in range(b.shape[0]):
            x[i, k] = (b[i, k] - np.dot(lower[i, :i], x[:i, k])) / lower[i, i]
    return x


def blur(image):
    out = image.copy()
    for y in range(1, image.shape[0] - 1):
        for x in range(1, image.shape[1] - 1):
            out[y, x] = image[y - 1 : y + 2, x - 1 : x + 2].mean()
    return out


def integers_wrap(n):
    h = np.uint32(2166136261)
    for i in range(n):
        h = (h ^ np.uint32(i & 255)) * np.uint32(16777619)
    return h


def half_and_single(x):
    s = np.float32(0)
    for i in range(x.shape[0]):
        s = s + x[i] * np.float32(0.5)
    return s


def places_of_peaks(x):
    (places,) = np.where(x > 0.5)
    total = 0.0
    for n in range(x.shape[0]):
        total += x[n]
    return places, np.nonzero(x < 0.5), total


def damped_parts(psi, steps):
    work = psi * 2
    re = work.real
    re += 1
    work.imag *= 3
    np.imag(work)[1] = 8
    seen = np.real(psi)
    for _ in range(steps):
        psi *= 0.5
    now = work.real
    work[0] = 9
    return work, seen + 0, psi.imag, now * 1


RNG = np.random.default_rng(5)
SPD = (lambda m: m @ m.T + 40 * np.eye(40))(RNG.random((40, 40)))
PROGRAMS = {
    heat_1d: lambda: (RNG.random(50), 20),
    heat_3d: lambda: (RNG.random((8, 9, 10)), RNG.random((8, 9, 10)), 20),
    levinson: lambda: (RNG.random(40) * 0.1,),
    gauss_elimination: lambda: (SPD.copy(), RNG.random(40)),
    edit_distance: lambda: (RNG.integers(0, 4, 30), RNG.integers(0, 4, 25)),
    longest_common_subsequence: lambda: (RNG.integers(0, 4, 30), RNG.integers(0, 4, 25)),
    sieve: lambda: (2000,),
    histogram_by_hand: lambda: (RNG.random(200), 20),
    conjugate_gradient: lambda: (SPD.copy(), np.linspace(0.2, 1, 40), 3e-8),  # no residual comes near this
    newton_sqrt: lambda: (RNG.random(30) * 100 + 1,),
    collatz: lambda: (60,),
    bubble_sort: lambda: (RNG.random(30),),
    running_mean: lambda: (RNG.random(60), 7),
    thomas: lambda: (RNG.random(40), RNG.random(40) + 3, RNG.random(40), RNG.random(40)),
    game_of_life: lambda: ((RNG.random((20, 24)) < 0.3).astype(np.int8), 20),
    escape_times: lambda: (24, 20, 30),
    power_iteration: lambda: (SPD.copy(), 30),
    runge_kutta: lambda: (np.array([10.0, 5.0]), 0.05, 40),
    page_rank: lambda: ((RNG.random((20, 20)) < 0.3).astype(float), 0.85, 20),
    k_means: lambda: (RNG.random((60, 3)), RNG.random((4, 3)), 20),
    triangle_of_pascal: lambda: (30,),
    fibonacci: lambda: (40,),
    swapped_buffers: lambda: (RNG.random(33), 21),
    prefix_products: lambda: (RNG.random(40) + 0.5,),
    rows_by_iteration: lambda: (RNG.random((30, 7)),),
    upwind: lambda: (RNG.random(40), 0.3, 20),
    anti_diagonal_sums: lambda: (RNG.random((20, 20)),),
    every_third_backwards: lambda: (RNG.random(80),),
    first_above: lambda: (RNG.random(80), 0.95),
    skip_negative: lambda: (RNG.standard_normal(80),),
    countdown: lambda: (RNG.random(80),),
    permuted: lambda: (RNG.random(40), RNG.integers(0, 40, 40)),
    triangular_solve_many: lambda: (np.tril(SPD), RNG.random((40, 18))),
    blur: lambda: (RNG.random((24, 26)),),
    integers_wrap: lambda: (100,),
    half_and_single: lambda: (RNG.random(50).astype(np.float32),),
    damped_parts: lambda: (RNG.random(20) + 1j * RNG.random(20), 4),
    places_of_peaks: lambda: (RNG.random(40),),
}

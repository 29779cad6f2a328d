"""Unmodified programs whose subscripts move with their loops: rolled and compiled, they give NumPy's values and errors."""

import numpy as np
import pytest

import jitlab as jl


def draw(*shape):
    return np.random.default_rng(len(shape)).random(shape)


def positions(low, high, n):
    return np.random.default_rng(n).integers(low, high, n)


def shifted_out(x):
    for i in range(x.shape[0]):
        x[i + 1] = x[i]


def wrapped(x, y):
    for i in range(x.shape[0]):
        y[i] = x[-i] + x[i - 3]


def gathered(x, y, where):
    for i in range(where.shape[0]):
        y[where[i]] += x[where[i]] * i


def histogram(counts, where):
    for i in range(where.shape[0]):
        counts[where[i]] += 1
    return counts


def window(x, y):
    n = x.shape[0]
    for i in range(n):
        y[i] = np.sum(x[max(0, i - 3) : min(n, i + 4)])


def clamped(x, y):
    for i in range(x.shape[0]):
        y[i] = np.sum(x[i - 2 : i + 3])


def ring(x, y):
    n = x.shape[0]
    for i in range(n):
        y[i] = x[(i + 1) % n] - x[(i - 1) % n] + x[i // 2]


def bubble_sort(x):
    n = len(x)
    for i in range(n):
        for j in range(0, n - i - 1):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


def sieve(flags):
    n = len(flags)
    for i in range(2, n):
        if flags[i]:
            for j in range(i * i, n, i):
                flags[j] = False
    return flags


def bisect(x, v):
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


def convolve(x, weights, y):
    for i in range(len(x) - len(weights) + 1):
        total = 0.0
        for j in range(len(weights)):
            total += x[i + j] * weights[j]
        y[i] = total


def rows(a, where):
    for i in range(len(where)):
        row = a[where[i]]
        row += 1.0
        a[where[i], 0] = row[-1]


def numbers(x):
    for i in range(len(x)):
        x[i] = i**2 + i / 2 + 2 ** (i % 5) + i % 3 * 0.5


def eliminate(a):
    for i in range(a.shape[0]):
        a[i, i:] /= a[i, i]
        a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :])
    return a


def running_maximum(a):
    for i in range(1, a.shape[0]):
        a[i] = a[:i].max() + a[i]


def flat(a, b):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            b[i * m + j] = a[i, j] + a[n - 1 - i, m - 1 - j]


def sparse(y, starts, columns, values, x):
    for i in range(y.shape[0]):
        for k in range(starts[i], starts[i + 1]):
            y[i] += values[k] * x[columns[k]]


def sieve_by_slices(flags):
    for i in range(2, int(len(flags) ** 0.5) + 1):
        if flags[i]:
            flags[i * i :: i] = False
    return flags


def every_kth(x, y):
    for k in range(1, 20):
        y[k] = x[::k].sum() + x[k:-k:k].sum()


def every_kth_downwards(x, y):
    for k in range(1, 20):
        part = x[::-k]
        y[k] = (part * np.arange(len(part))).sum() - x[-3:k:-k].sum()
    for k in range(-20, 0):
        y[::k] += k


def parts_that_overlap(x):
    for k in range(2, 20):
        n = len(x[::k])
        x[::k] = x[:n] + x[k - 1 :: -1][0]
        x[k::k] += x[:-k:k]


def steps_of_two_loops(a, y):
    for k in range(1, 18):
        for j in range(1, 18):
            y[k] += a[k::j, :: k + j].sum() * a[:: k * j][0, j]


def a_step_of_zero(x):
    for k in range(20):
        x[::k] += 1


def steps_on_both_sides_of_zero(x):
    for k in range(-10, 10):
        x[:: 2 * k + 1] += k


line, zeros = np.arange(40.0), np.zeros(40)
PROGRAMS = [
    (shifted_out, line), (wrapped, line, zeros), (gathered, line, zeros, positions(-40, 40, 30)),
    (gathered, line, zeros, np.array([*range(30), 41, 3])), (gathered, line, zeros, np.array([*range(30), -41, 3])),
    (histogram, np.zeros(10), positions(0, 10, 50)), (window, line, zeros), (clamped, line, zeros), (ring, line, zeros),
    (bubble_sort, draw(30)), (sieve, np.ones(100, bool)), (bisect, np.sort(draw(50)), 0.4), (convolve, line, draw(5), zeros),
    (rows, draw(20, 5), positions(0, 20, 30)), (numbers, line), (eliminate, draw(20, 20) + 20 * np.eye(20)),
    (running_maximum, line), (flat, draw(20, 30), np.zeros(600)),
    (sieve_by_slices, np.ones(2000, bool)), (sieve_by_slices, np.ones(3, bool)), (every_kth, line, zeros),
    (every_kth, line[:0], zeros), (every_kth_downwards, line, zeros), (every_kth_downwards, line[:3], zeros),
    (parts_that_overlap, draw(50)), (steps_of_two_loops, draw(30, 40), zeros), (a_step_of_zero, line),
    (steps_on_both_sides_of_zero, line),
    (sparse, np.zeros(20), np.sort(positions(0, 60, 21)), positions(0, 20, 60), draw(60), draw(20)),
    (sparse, np.zeros(20), np.sort(positions(0, 90, 21)), positions(0, 20, 60), draw(60), draw(20)),
]  # fmt: skip


def outcome(function, arrays):
    """What is returned or raised, and what the arguments are afterwards."""
    copies = [np.array(x) if isinstance(x, np.ndarray) else x for x in arrays]
    try:
        return function(*copies), copies
    except (IndexError, ValueError) as error:
        return str(error).splitlines()[0], copies


@pytest.mark.parametrize(("program", "arrays"), [(p[0], p[1:]) for p in PROGRAMS], ids=[p[0].__name__ for p in PROGRAMS])
def test_a_rolled_program_is_numpys(program, arrays):
    wanted, theirs = outcome(program, arrays)
    result, mine = outcome(jl.jit(program), arrays)
    assert type(result) is type(wanted)
    np.testing.assert_array_equal(result, wanted) if not isinstance(wanted, str) else None
    assert not isinstance(wanted, str) or result == wanted
    for x, y in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)

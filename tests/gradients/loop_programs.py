"""Programs with loops and branches, each a function of one array to one number, and where it is tried."""

import numpy as np

R = np.random.default_rng(0)


def number_carried(x):
    s = 0.5
    for _ in range(20):
        s = np.sin(s) * x[0] + x[1]
    return s


def recurrence_in_an_array(x):
    y = np.zeros(30)
    y[0] = x[0]
    for i in range(1, 30):
        y[i] = np.sin(y[i - 1]) * x[i % 3] + 0.1
    return y.sum()


def recurrence_in_place(x):
    y = x.copy()
    for i in range(1, 30):
        y[i] = np.sin(y[i - 1]) + y[i] * y[i]
    return y.sum()


def backwards_by_steps(x):
    y = x.copy()
    for i in range(27, 0, -2):
        y[i] += y[i + 2] * y[i - 1]
    return np.square(y).sum()


def array_carried(x):
    a = x
    for _ in range(20):
        a = np.tanh(a * 1.1 + x)
    return (a * a).sum()


def arrays_swapped(x):
    a, b = x[:3] * 1.0, x[3:] * 1.0
    for _ in range(21):
        a, b = b, a * np.cos(b)
    return (a * b).sum()


def stencil(x):
    u = x.copy()
    for _ in range(20):
        u[1:-1] = u[1:-1] + 0.01 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
    return (u * u).sum()


def cholesky(x):
    a = x @ x.T + 20 * np.eye(20)
    for i in range(20):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = np.sqrt(a[i, i])
    return np.tril(a).sum()


def matrix_applied(x):
    v = x[0]
    for _ in range(20):
        v = np.tanh(x @ v)
    return v.sum()


def lengths_that_move(x):
    s = 0.0
    for i in range(1, 20):
        s = s + np.prod(x[:i]) * x[i] + np.max(x[i:])
    return s


def positions_in_arrays(x):
    where = np.array([3, 1, 2, 0, 3])
    a = x.copy()
    for i in range(20):
        a = a + 0.1 * np.sin(a[where[i % 5]]) * a[np.array([1, 0, 3, 2])]
        a[where] = a[where] * 1.01
    return a.sum()


def condition_on_values(x):
    s = 0.0
    for i in range(30):
        s = s + np.sqrt(x[i]) * s + x[i] if x[i] > 0 else s * 0.5 - x[i]
    return s


def branch_that_writes(x):
    a = x.copy()
    for i in range(1, 20):
        if a[i] > 0:
            a[i] = np.sqrt(a[i]) * a[i - 1]
        else:
            a[i] = a[i - 1] * 0.5 + a[i]
            a[0] = a[0] * 1.01
    return (a * a).sum()


def nested_with_continue(x):
    s = 0.0
    for i in range(20):
        for j in range(i, 20):
            if x[i] * x[j] > 0:
                s = s + np.sqrt(x[i] * x[j])
                continue
            s = s + x[i] * 0.1
    return s


def left_by_break(x):
    s = 0.1
    for i in range(30):
        s = s + x[i] * s * s + 0.1
        if s > 2:
            break
    return s


def left_by_return(x):
    s = 0.0
    for i in range(20):
        s = s + x[i] ** 2
        if s > 3:
            return s * x[i]
    return s


def branch_outside_loops(x):
    if x.sum() > 0:
        return np.sqrt(x.sum()) * x[0]
    return (x * x).sum()


def newton(x):
    y = x[0]
    while np.abs(y * y - x[1]) > 1e-9:
        y = y - (y * y - x[1]) / (2 * y)
    return y * x[2]


def many_steps(x):
    s = x[0]
    n = x[0] * 0
    while n < 57:
        s = np.sin(s) * x[1] + x[2]
        n = n + 1
    return s


def array_until(x):
    a, s = x.copy(), 0.0
    while (a * a).sum() > 1e-3:
        a = a * 0.9
        a[0] = np.sin(a[1] * a[0])
        s = s + a.sum()
    return s


def while_in_for(x):
    t = 0.0
    for i in range(20):
        s = x[i % 3]
        while s < 50:
            s = s * x[1] + x[2]
        t = t + s * x[i % 3]
    return t


def while_in_while(x):
    t = x[0]
    while t < 100:
        s = x[1]
        while s < 5:
            s = s * 1.5 + x[2]
        t = t + s * t * 0.1
    return t


THREE = np.array([1.0, 1.5, 0.3])
PROGRAMS = [
    (number_carried, R.normal(size=2)),
    (recurrence_in_an_array, R.normal(size=3)),
    (recurrence_in_place, R.normal(size=30) * 0.3),
    (backwards_by_steps, R.normal(size=30) * 0.3),
    (array_carried, R.normal(size=4)),
    (arrays_swapped, R.normal(size=6)),
    (stencil, R.normal(size=12)),
    (cholesky, R.normal(size=(20, 20))),
    (matrix_applied, R.normal(size=(4, 4))),
    (lengths_that_move, 1 + 0.2 * R.normal(size=20)),
    (positions_in_arrays, R.normal(size=4)),
    (condition_on_values, R.normal(size=30)),
    (branch_that_writes, R.normal(size=20)),
    (nested_with_continue, R.normal(size=20)),
    (left_by_break, np.abs(R.normal(size=30)) * 0.3),
    (left_by_break, np.full(30, 1e-3)),
    (left_by_return, R.normal(size=20) * 0.7),
    (branch_outside_loops, np.abs(R.normal(size=3))),
    (branch_outside_loops, -np.abs(R.normal(size=3))),
    (newton, THREE),
    (many_steps, THREE),
    (array_until, np.abs(R.normal(size=3))),
    (while_in_for, THREE),
    (while_in_while, THREE),
]

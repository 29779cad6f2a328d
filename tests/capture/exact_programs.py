"""Programs whose Python numbers leave 64 bits, or divide by zero, where the data or a loop make them."""

import numpy as np

DATA = [np.array(x, float) for x in ([2, 3, 4], [0, 3, 4], [0, 0, 4], [5, 0, 0], [*range(40)], [*range(90, 0, -1)], [7] * 70)]


def factorial(x):
    f = 1
    for i in range(1, len(x)):
        f = f * i
    return f, x * 2


def fibonacci(x):
    a, b = 0, 1
    for _ in range(2 * len(x)):
        a, b = b, a + b
    return a


def powers(x):
    t, u, v = 1, 1, 3
    for i in range(len(x)):
        t, u = t * -3, u << 1
        v = v**2 if x[i] > 88 else v
    return t, u, v


def added_up_and_shifted(x):
    h = 7
    for i in range(len(x)):
        h = (h << 5) - h + i
    return h, h % 1000, h // 7


def subtracted(x):
    a, b = 1, -1
    for _ in range(len(x)):
        a, b = a - b, b - a
    return [a, {"b": b}]


def written_before(x):
    t = 1
    for i in range(len(x)):
        x[i] = x[i] + t % 7
        t = t * 5
    return t, x


def divided_by_zero(x):
    t = 1.0
    for i in range(len(x)):
        t = 0.0 if x[i] > 80 else t * 0.5
    return 1 / t


def remainder_of_zero(x):
    t = 3
    for i in range(len(x)):
        if x[i] == 3:
            t = 0
    return 7 % t


def divided_in_the_loop(x):
    k, s = len(x), 0
    for i in range(len(x)):
        if x[i] > 2:
            k = k - 1
        s = s + 100 // k
    return s


def one_of_two_divided_by(x):
    t = 0.0
    if x[0] > 1:
        t = x[0]
    return 1 / t


def power_of_a_float(x):
    t = 2.0
    for i in range(len(x)):
        t = t**2 if x[i] > 1 else t
    return t


def root_of_a_negative(x):
    t = 4.0
    for i in range(len(x)):
        if x[i] > 3:
            t = -4.0
    return t**0.5


LEAVES_64_BITS = [
    factorial, fibonacci, powers, added_up_and_shifted, subtracted, written_before, divided_by_zero, remainder_of_zero,
    divided_in_the_loop, one_of_two_divided_by, power_of_a_float, root_of_a_negative,
]  # fmt: skip


def counted(x):
    c, total = 0, 0
    for i in range(len(x)):
        if x[i] > 3:
            c, total = c + 1, total + i
    return c, total


def remainders(x):
    h = 7
    for i in range(len(x)):
        h = (h % 1000 * 31 + i) % 1000003
    return h


def halved(x):
    low, high = 0, len(x)
    while low < high:
        middle = low + (high - low) // 2
        if x[middle] < 5:
            low = middle + 1
        else:
            high = middle
    return low


STAYS_WITHIN = [counted, remainders]

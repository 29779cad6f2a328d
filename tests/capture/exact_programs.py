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


def int_of(x):
    t, places = 0, np.zeros(7)
    for i in range(len(x)):
        v = x[i] * 1e18 if x[i] > 60 else np.sqrt(x[i] - 1) if x[i] < 1 else x[i]
        t = t + int(v)
        places[int(v) % 7] += 1
    return t, places


LEAVES_64_BITS = [
    factorial, fibonacci, powers, added_up_and_shifted, subtracted, written_before, divided_by_zero, remainder_of_zero,
    int_of, divided_in_the_loop, one_of_two_divided_by, power_of_a_float, root_of_a_negative,
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


def tens(x):
    t = 0
    for i in range(len(x)):
        if x[i] > 1:
            t = t + 10
    return t


def stored_into_bytes(x):
    t, a = tens(x), np.zeros((3, 3), np.uint8)
    a[1:] = t
    a[:, 0] += t
    return a


def stored_in_the_loop(x):
    a, t = np.zeros(len(x), np.int8), 0
    for i in range(len(x)):
        t = t + 10
        a[i] = t
    return a


def added_to_bytes(x):
    return np.ones(3, np.int8) + tens(x)


def subtracted_from_unsigned(x):
    return np.uint64(3) + (20 - tens(x)), np.add(np.ones(2, np.uint8), tens(x))


def filled_with(x):
    t = tens(x)
    return np.full(3, t, np.int8), np.where(x > 3, np.int8(1), t)


def compared_with_bytes(x):
    t, a = tens(x), np.arange(-3, 120, 40).astype(np.int8)
    return a < t, t >= a, a == t, np.uint64(3) > t - 30, np.greater(a, -t), np.uint8(9) != t


OF_SMALL_DTYPES = [
    stored_into_bytes, stored_in_the_loop, added_to_bytes, subtracted_from_unsigned, filled_with, compared_with_bytes,
]  # fmt: skip
STAYS_WITHIN = [counted, remainders]

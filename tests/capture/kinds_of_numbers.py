"""Programs in which a number is one of Python's own on one way, and a NumPy scalar or a 0-d array on the other."""

import numpy as np

#: Data by which each of the programs below goes several ways: for loops that are unrolled, and for those that are rolled.
DATA = [
    np.array([*x, *[x[2]] * more])
    for more in (0, 36)
    for x in ([2.0, 3, 4], [0.0, 3, 4], [0.0, 0, 4], [-1.0, -3, -4.5], [5.0, 0, 0], [np.nan, 1, 9])
]


def behind_an_if(x):
    t = 0
    if x[0] > 1:
        t = x[0]
    return t


def one_of_two_python_numbers(x):
    t = 1
    if x[1] > 1:
        t = 2.5
    return t, t * 3, t / 2, t // 2, -t, abs(t), t == 1, t + x[0], x * t, t**2, np.sqrt(t), t > x[2]


def true_or_seven(x):
    t = True
    if x[1] > 1:
        t = 7
    return t, t + 1, not t


def arithmetic_of_bools(x):
    t = u = True
    if x[1] > 1:
        t = False
    if x[0] > 1:
        u = not t
    return u * False, u + u, -u, ~u, u - t, u / True, u & t, u | True, u ^ u, u == t, u < t, u // True, abs(u)


def max_and_min(x):
    return max(x[0], 1), min(1.0, x[0]), min(max(x[0], 1), 3.0), max(0, min(x[1], 2), x[2])


def whichever_is_the_highest(x):
    t = 0
    for i in range(len(x)):
        t = max(t, x[i])
    return t


def found_in_a_loop(x):
    best, place = -np.inf, -1
    for i in range(len(x)):
        if x[i] > best:
            best, place = x[i], i
    return best, place


def a_loop_of_some_iterations(x):
    t, i = 0, 0
    while i < 3 and x[i] > 1:
        t, i = t + x[i], i + 1
    return t, i


def a_loop_without_iterations(x):
    t = 0
    for i in range(len(x) - len(x)):
        t = t + x[i]
    return t


def a_name_that_only_iterations_give(x):
    y = 0
    for i in range(len(x)):
        if x[i] > 3:
            y = x[i] * 2
    return y


def returned_from_a_loop(x):
    for i in range(len(x)):
        if x[i] > 2.5:
            return x[i]
    return -1


def left_by_break(x):
    t = 0
    for i in range(len(x)):
        if x[i] > 3:
            t = x[i]
            break
        t = 0.5
    return t


def a_conditional_expression(x):
    return x[0] if x[1] > 2 else -1


def either_operand(x):
    found = False
    for i in range(len(x)):
        found = found or x[i] > 3
    return found, (x[0] > 1) or False, (x[0] > 1) and True


def in_containers(x):
    t, u = 0, 1.5
    if x[0] > 1:
        t, u = x[0], x[1]
    return [t, (u, t)], {"t": t, "deeper": {"u": [u]}}


def a_scalar_or_an_array_without_axes(x):
    t = np.array(1.5)
    if x[0] > 1:
        t = x[0]
    return t, t + 1


def a_number_or_an_array_without_axes(x):
    t = 4
    if x[0] > 1:
        t = np.array(2.5)
    return t


def of_float32(x):
    y = x.astype(np.float32)
    t = 0.5
    if x[0] > 1:
        t = y[0]
    return t, t * y, t * x


def a_position(x):
    t = 1
    if x[0] > 1:
        t = np.argmax(x)
    return x[t], t, t + 1, x[::-1][t]


def an_integer_and_its_bounds(x):
    n = np.argmax(x)
    return min(max(n, 1), 50), max(n, 0) - 1


def nested(x):
    t = 1
    if x[0] > 1:
        t = x[0] if x[1] > 1 else 2.5
    elif x[2] > 3:
        t = x[2] * 2
    return t


def computed_of_two(x):
    t, u = 1, 2
    if x[0] > 1:
        t = x[0]
    if x[1] > 1:
        u = x[1]
    return t + u, t * 2 - u, t < u, [abs(t - u)]


def handed_from_iteration_to_iteration(x):
    a, b = 0, 1
    for i in range(len(x)):
        if x[i] > 1:
            a, b = b, x[i]
        else:
            a = b
    return a, b


COMPILED = [
    arithmetic_of_bools, behind_an_if, one_of_two_python_numbers, true_or_seven, max_and_min, whichever_is_the_highest,
    found_in_a_loop, a_loop_of_some_iterations, a_loop_without_iterations, a_name_that_only_iterations_give,
    returned_from_a_loop, left_by_break, a_conditional_expression, either_operand, in_containers,
    a_scalar_or_an_array_without_axes, a_number_or_an_array_without_axes, of_float32, a_position, an_integer_and_its_bounds,
    nested, computed_of_two, handed_from_iteration_to_iteration,
]  # fmt: skip


def its_type_is_asked_for(x):
    t = 1
    if x[1] > 1:
        t = x[0]
    return isinstance(t, int), type(t).__name__


def its_type_decides_a_dtype(x):
    y = x.astype(np.float32)
    t = 1.5
    if x[0] > 1:
        t = x[1]
    return t * y


def the_other_dtype_does_not_hold_it(x):
    y = x.astype(np.float32)
    t = 0.1
    if x[0] > 1:
        t = y[0]
    return t


def a_bool_is_no_position(x):
    t = True
    if x[1] > 1:
        t = 0
    return x[t]


def only_a_scalar_has_attributes(x):
    t = 2
    if x[0] > 1:
        t = x[0]
    return t.real, str(t)


def only_an_array_is_written_in_place(x):
    t = u = np.array(1.5)
    if x[0] > 1:
        t = x[0]
    t += 1
    return t, u


def the_place_of_a_slice(x):
    t = 1
    if x[0] > 1:
        t = np.argmax(x)
    return x[t:], x[: t + 1], t


def only_floats_are_no_positions(x):
    t = 1
    if x[1] > 8:
        t = 0.5
    return x[t] if t < 0.7 else x[int(t)]


LEFT_TO_PYTHON = [
    its_type_is_asked_for, its_type_decides_a_dtype, the_other_dtype_does_not_hold_it, a_bool_is_no_position,
    only_a_scalar_has_attributes, only_an_array_is_written_in_place, the_place_of_a_slice,
    only_floats_are_no_positions,
]  # fmt: skip

"""Names that a statement may leave as they were: where a call runs in pieces they keep the value of the piece before."""

import numpy as np
import pytest

import jitlab as jl

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def if_without_else(x, out):
    v = 1
    out.append(0)
    if x.sum() > 3:
        v = 2
    out.append(v)
    return v


@program
def array_or_product(x, out):
    v = x
    out.append(0)
    if x.sum() > 3:
        v = x * 2
    out.append(1)
    return v


@program
def bound_on_one_side_alone(x, out):
    out.append(0)
    if x.sum() > 3:
        w = 2
    out.append(1)
    try:
        return w
    except UnboundLocalError:
        return "unbound"


@program
def none_or_array(x, out):
    v = None
    out.append(0)
    if x.sum() > 3:
        v = x + 1
    out.append(1)
    return v


@program
def list_or_list(x, out):
    v = [x, 1]
    out.append(0)
    if x.sum() > 3:
        v = [x + 1, 2]
    out.append(1)
    return v


@program
def loop_that_breaks(x, out):
    v, row = 0, None
    out.append(0)
    for k, row in enumerate(x):
        if row > 1:
            v = k
            break
    out.append(1)
    return v, row, k


@program
def loop_over_a_list_that_breaks(x, out):
    enough = True
    out.append(0)
    for k, need in enumerate([1, 2, 0.5]):
        if need > x[k % len(x)]:
            enough = False
            break
    out.append(1)
    return enough


@program
def while_that_breaks(x, out):
    v, n = -1, 0
    out.append(0)
    while n < len(x):
        if x[n] > 1:
            v = n
            break
        n += 1
    out.append(1)
    return v, n


@program
def loop_with_else(x, out):
    v = "start"
    out.append(0)
    for k in range(len(x)):
        if x[k] > 1:
            v = "found"
            break
    else:
        v = "none"
    out.append(1)
    return v, k


@program
def loop_that_returns(x, out):
    v = 3
    out.append(0)
    for e in [1, 2, 3]:
        if x[0] > e:
            v = e
            out.append(v)
            if x.sum() > 5:
                return v
    return v, e


@program
def match_on_a_length(x, out):
    v = 1
    out.append(0)
    match len(x):
        case 2:
            v = 5
        case n if n > 3:
            v = n
    out.append(1)
    return v


@program
def failed_try(x, out):
    v = 1
    out.append(0)
    try:
        v = x[5]
    except IndexError:
        pass
    out.append(1)
    return v


@program
def best_of_a_host_loop(x, out):
    s, best, arg = 0.0, -1.0, None
    for t in range(3):
        out.append(t)
        if x[t % len(x)] > best:
            best, arg = x[t % len(x)], t
        s += best
    return s, best, arg


SCALE = 2.0


@program
def walrus_of_a_lambda(x, out):
    out.append(0)
    twice = lambda v: (SCALE := v * 2) + SCALE  # noqa: E731, F841
    out.append(twice(3))
    return x * SCALE


ARRAYS = (
    [0.0, 1, 2, 3], [0.0, 0.1], [5.0, 5, 5], [1.0, 2.0], [0.0, 0.0, 9.0], [2.0, 0.2], [0.4, 0.4, 0.4, 0.4, 0.4, 7.0], [3.0],
)  # fmt: skip


@pytest.mark.parametrize("order", [1, -1], ids=["forward", "backward"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_a_name_that_a_statement_does_not_bind_keeps_its_value(function, order):
    traced = jl.jit(function)
    for values in ARRAYS[::order] * 2:
        mine, pythons = [], []
        got, want = traced(np.array(values), mine), function(np.array(values), pythons)
        assert (repr(got), mine) == (repr(want), pythons)

"""What a program decided or counted when it was recorded is decided and counted again: caught errors, shared names."""

import contextlib

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X = np.arange(4.0) + 1


def index_error(x, i):
    try:
        return x[i]
    except IndexError:
        return x[-1] * 0


def any_exception(x, i):
    try:
        y = x[i] * 2
    except Exception as error:
        y = x * 0
        return y, type(error).__name__
    else:
        return y, "no error"
    finally:
        x = x + 1


def bare(x, i):
    try:
        return x[i : i + 2].reshape(2) + 1
    except:  # noqa: E722
        return x.sum()


def in_a_helper(x, i):
    return [index_error(x * k, i) for k in range(3)]


def in_an_inner_try(x, i):
    try:
        try:
            return x[i] / 2
        finally:
            x = x * 2
    except (IndexError, ValueError):
        return x[0]


def suppressed(x, i):
    y = x.sum()
    with contextlib.suppress(IndexError):
        y = x[i]
    return y


def of_numbers(x, i):
    try:
        return x / (1 // (3 - i))
    except ZeroDivisionError:
        return -x


def counter():
    n = 0

    def count(x):
        nonlocal n
        n += 1
        return x * n

    return count


def counted(x, i):
    count = counter()
    return count(x), count(x), count(x[0])


def summed(x, i):
    total = 0.0

    def add(v):
        nonlocal total
        total = total + v

    for k in range(3):
        add(x[k] * k)
    add(x.sum())
    return total


def chosen(x, i):
    best = None

    def offer(v):
        nonlocal best
        if best is None or v > best:
            best = v

    for v in (x[0], x[2], x[1]):
        offer(v)
    return best


def in_turns(x, i):
    seen = []
    state = x

    def step():
        nonlocal state
        state = state * 2 + 1
        seen.append(state.sum())

    step()
    step()
    return state, seen


CAUGHT = [index_error, any_exception, bare, in_a_helper, in_an_inner_try, suppressed, of_numbers]
SHARED = [counted, summed, chosen, in_turns]


def as_cell(program):
    names = {"program": program, "np": np}

    def call(x, i):
        names.update(x=x, i=i)
        run_cell("result = program(x, i)\nagain = result", names, "<cell>")
        return names["again"]

    return call


def as_global(program):
    names = {"program": program}
    exec("def f(x):\n    return program(x, number)", names)
    compiled = jl.jit(names["f"])

    def call(x, i):
        names["number"] = i
        return compiled(x)

    return call


@pytest.mark.parametrize("way", [jl.jit, as_cell, as_global])
@pytest.mark.parametrize("program", CAUGHT + SHARED, ids=lambda f: f.__name__)
def test_each_call_is_pythons(program, way):
    call = way(program)
    for i in (1, 9, 1, 3, 9, 2):
        assert repr(call(X, i)) == repr(program(X, i))


@pytest.mark.parametrize("program", SHARED, ids=lambda f: f.__name__)
def test_a_function_shares_names_as_python_does(program):
    compiled = jl.function(program)
    for x in (X, X[::-1].copy()):
        assert repr(compiled(x, 1)) == repr(program(x, 1))

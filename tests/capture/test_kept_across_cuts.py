"""What a name keeps while Python runs the statements behind it: bound methods, buffers and iterators over an array."""

import functools
import inspect
import textwrap

import numpy as np
import pytest

import jitlab as jl
from jitlab.events import StatementRan, listen
from tests.cell_runs import run_cell


def bound_to_a_result(x):
    y = x * 2
    largest, total = y.max, y.sum
    text = f"{largest(0)} {total(1)}"
    y[0] = 100
    return text, largest(0), total(axis=1)


def bound_to_an_argument(x):
    copied = x.copy
    x += 1
    print(end="")
    return copied(), x.dot(x.T)


def bound_to_a_list(x):
    found = []
    add = found.append
    add(x.sum())
    print(end="")
    add(x * 2)
    return found


def bound_to_a_ufunc(x):
    fold = np.add.reduce
    run = functools.partial(np.add.accumulate, axis=1)
    y = x + 1
    print(end="")
    return fold(y), run(y)


def seen_as_memory(x):
    y = x.ravel() + 1
    seen = memoryview(y)
    y[1] = 30
    print(end="")
    seen[0] = 7
    return y * 1, seen[1]


def seen_as_a_buffer(x):
    y = x.ravel() + 1
    seen = np.frombuffer(y)
    y[1] = 30
    print(end="")
    return seen * 1, seen[:2] + y[:2]


def seen_flat(x):
    y = x + 1
    flat = y.flat
    y[0, 1] = 30
    print(end="")
    flat[2] = 50
    return y * 1, flat[1]


def seen_by_an_iterator(x):
    y = x + 1
    with np.nditer(y, op_flags=["readwrite"]) as elements:
        for element in elements:
            element[...] = 2 * element
    return y + 1


PROGRAMS = [
    bound_to_a_result, bound_to_an_argument, bound_to_a_list, bound_to_a_ufunc, seen_as_memory, seen_as_a_buffer, seen_flat,
    seen_by_an_iterator,
]  # fmt: skip


def given():
    return np.arange(6.0).reshape(2, 3)


def check_same(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, (tuple, list)):
        for a, b in zip(found, wanted, strict=True):
            check_same(a, b)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_name_keeps_is_python_s_in_a_call(program):
    compiled = jl.jit(program)
    for _ in range(3):
        mine, theirs = given(), given()
        check_same(compiled(mine), program(theirs))
        check_same(mine, theirs)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_name_keeps_is_python_s_in_the_next_cell(program):
    lines = textwrap.dedent("".join(inspect.getsourcelines(program)[0][1:])).replace("return ", "result = ")
    names = {"np": np, "functools": functools, "x": given()}
    head, *tail = lines.split("\n")
    run_cell(head, names, "<first>")
    run_cell("\n".join(tail), names, "<second>")
    check_same(names["result"], program(given()))


def test_an_array_of_lists_of_a_call_s_numbers_is_captured():
    def noise(dt, variance):
        return np.array([[0.25 * dt**4, 0.5 * dt**3], [0.5 * dt**3, dt**2]]) * variance + np.array([dt, 2 * dt])

    compiled, heard = jl.jit(noise), []
    with listen(heard.append):
        for numbers in ((0.1, 2.0), (0.2, 3.0)):
            np.testing.assert_allclose(compiled(*numbers), noise(*numbers), rtol=1e-15)
    assert compiled.experimental_get_tracing_count() > 0
    assert not [event for event in heard if isinstance(event, StatementRan)]


def test_objects_that_each_call_makes_anew_are_not_captured_for_ever():
    class Line:
        def __init__(self, a):
            setattr(self, "a", np.diff(a))  # noqa: B010 - what is not captured

        def at(self, t):
            return self.a * t + 1

    def course(x):
        line = Line(x)
        return line.at(0.5).sum()

    compiled, x = jl.jit(course), np.arange(10.0)
    for _ in range(40):
        assert compiled(x) == course(x)
    known = str(compiled.ledger).split("\n")[0]
    for _ in range(10):
        assert compiled(x) == course(x)
    assert str(compiled.ledger).split(" traces")[0] == known.split(" traces")[0]

"""A number that is one of Python's own on one way through a program and a NumPy scalar (or a 0-d array) on the other."""

import numpy as np
import pytest

import jitlab as jl
from tests.capture.kinds_of_numbers import COMPILED, DATA, LEFT_TO_PYTHON, behind_an_if, whichever_is_the_highest
from tests.capture.same import assert_like


@pytest.mark.parametrize("level", ["O1", "O0"])
@pytest.mark.parametrize("program", COMPILED)
def test_it_is_of_the_kind_that_Python_gives_it(program, level):
    compiled = jl.jit(program, jit_level=level)
    for x in DATA:
        assert_like(compiled(x.copy()), program(x.copy()))
    assert compiled.experimental_get_tracing_count() <= 2  # one for each length: the data choose among the kinds of a recording
    assert compiled.experimental_get_tracing_count() >= 1


@pytest.mark.parametrize("program", LEFT_TO_PYTHON)
def test_what_hangs_on_its_kind_is_left_to_Python(program):
    compiled = jl.jit(program)
    for x in DATA:
        assert_like(compiled(x.copy()), program(x.copy()))


def test_a_function_gives_tensors():
    """NumPy scalars of the joined dtype: the contract knows no numbers of Python's own."""
    assert type(jl.function(whichever_is_the_highest)(DATA[3])) is np.float64
    assert type(jl.function(behind_an_if)(DATA[1])) is np.float64


def of_one_kind(x):
    t, n = x[0], 0
    for i in range(1, len(x)):
        if x[i] > t:
            t, n = x[i], n + 1
    return max(t, x[0]), n


def settled_by_the_first_iteration(x):
    t = 0
    for i in range(len(x)):
        t = t + x[i]
    return t


@pytest.mark.parametrize(("program", "results"), [(of_one_kind, 4), (settled_by_the_first_iteration, 1)])
def test_names_of_one_kind_carry_nothing_more(program, results):
    """Neither is there a result more nor does a loop carry more."""
    report = jl.explain(jl.jit(program), DATA[-1])
    assert report.ir(report.clusters[0].name, stage="graph").count("Item(") == results


def test_a_kind_that_nobody_asks_for_is_not_computed():
    def only_the_place(x):
        best, place = -np.inf, -1
        for i in range(len(x)):
            if x[i] > best:
                best, place = x[i], i
        return place

    report = jl.explain(jl.jit(only_the_place), DATA[-1])
    text = report.ir(report.clusters[0].name, stage="graph")
    assert text.count("Item(") == 4  # the two names, of the `if` and of the loop


def added_in_a_loop(x, n):
    for i in range(n):
        y = int(i * 0.1) + x.shape[0]
    return y


def least_in_a_loop(x, n):
    out = np.zeros(n)
    for i in range(n):
        first = int(i * 0.1)
        following = min(first + 1, x.shape[0] - 1)
        out[i] = x[following]
    return first, following, max(len(x), int(x[0])), out


def behind_a_condition(x, n):
    y = 0
    if x[0] > 1:
        y = len(x) - int(x[0] * n)
    return y


def until_it_is_high(x, n):
    y = -n
    while y < x[0]:
        y = y + x.shape[0]
    return y


def divided_by_a_length(x, n):
    for i in range(n):
        y = i * 0.5 / len(x)
    return y


WITH_LENGTHS = [added_in_a_loop, least_in_a_loop, behind_a_condition, until_it_is_high, divided_by_a_length]


@pytest.mark.parametrize("program", WITH_LENGTHS, ids=lambda f: f.__name__)
def test_an_arrays_length_is_a_number_of_Pythons_own_in_a_loop_or_branch(program):
    compiled = jl.jit(program)
    for x in (np.array([1.5, 2.0, 0.5]), np.array([0.5, 2.0, 0.5]), np.array([7.5, 1.0])):
        assert_like(compiled(x, 20), program(x, 20))

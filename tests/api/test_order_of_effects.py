"""Errors and effects in Python's order: what raises raises, also unread; what is drawn is drawn once, by the run alone."""

from __future__ import annotations

import inspect
import textwrap

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

FAR = np.array([0, 9])
CALLS = 3


def outcome(call, arguments):
    """What a call gives or raises, what is in its arguments then, and what the next random number would be."""
    np.random.seed(11)
    try:
        found = repr(call(*arguments))
    except Exception as error:
        found = type(error).__mro__[-4:], str(error).split("\n")[0]
        if isinstance(error, np.linalg.LinAlgError):
            found = np.linalg.LinAlgError, found[1]
    return found, [x.tolist() for x in arguments], np.random.random()


def as_cell(function):
    """The body of a function as a cell, which runs again in one namespace."""
    lines = inspect.getsource(function).split("\n")[1:]
    source = textwrap.dedent("\n".join(lines)).replace("return ", "result = ")
    names = list(inspect.signature(function).parameters)
    program = {}

    def call(*arguments):
        program.update(globals(), **dict(zip(names, arguments, strict=True)))
        run_cell(source, program, f"<{function.__name__}>")
        return program["result"]

    return call


# ---- an operation that may raise for the values that it is given is not dead
def singular(x):
    np.linalg.inv(np.zeros((2, 2)) * x[0])
    return x + 1


def not_definite(x):
    np.linalg.cholesky(x[:2, None] * x[:2] - 1)
    return x


def far_in_an_array(x):
    v = -x
    v[np.array([0, v.shape[0]])] = 1
    return x


def far_when_taken(x):
    np.take(x, np.argsort(x) * 3)
    return x


def far_in_the_part_that_is_not_read(x):
    return x[FAR][0]


def far_in_every_second(x):
    return (np.take(x, FAR + 0) * 2)[::2].sum()


def written_before(x):
    x[0] = 5
    np.nanargmax(x * np.nan)
    x[1] = 5
    return x


def not_monotonic(x):
    np.digitize(x, x * np.array([1, -1, 1, -1]))
    return x


def in_a_branch(x):
    if x.sum() > 0:
        np.linalg.inv(x[:2, None] * x[:2])
    return x + 1


def in_a_loop(x):
    s = 0.0
    for i in range(20):
        np.linalg.inv(x[:2, None] * x[:2] * i)
        s = s + x[0]
    return s


def read_in_a_loop_for_nothing(x):
    for i in range(20):
        x[i]
    return x + 1


def only_its_length(x):
    k = x[x > 0].shape[0]
    return np.zeros(k)


RAISES = [
    singular, not_definite, far_in_an_array, far_when_taken, far_in_the_part_that_is_not_read, far_in_every_second,
    written_before, not_monotonic, in_a_branch, in_a_loop, read_in_a_loop_for_nothing, only_its_length,
]  # fmt: skip


@pytest.mark.parametrize("way", [jl.jit, as_cell])
@pytest.mark.parametrize("function", RAISES, ids=lambda f: f.__name__)
def test_what_may_raise_is_not_left_out_although_nobody_reads_it(function, way):
    compiled = way(function)
    for number in range(CALLS):
        x = np.arange(4.0) * (-1) ** number
        assert outcome(compiled, [x.copy()]) == outcome(function, [x.copy()])


@pytest.mark.parametrize("function", RAISES, ids=lambda f: f.__name__)
def test_a_function_raises_it_too(function):
    compiled = jl.function(function)
    for number in range(CALLS):
        x = np.arange(4.0) * (-1) ** number
        mine, theirs = outcome(compiled, [x.copy()])[0], outcome(function, [x.copy()])[0]
        assert mine == theirs or (isinstance(theirs, tuple) and isinstance(mine, tuple) and theirs[0][-3:] == mine[0][-3:])


# ---- an assert that does not hold leaves what the statements before it have made
def asserted(x):
    x[0] = 7
    assert x.sum() < 0, f"no: {len(x)}"
    x[1] = 7
    return x


def asserted_behind_a_draw(x):
    x += np.random.normal(size=4)
    assert (x > 100).all(), "small"
    return x


@pytest.mark.parametrize("way", [jl.jit, as_cell])
@pytest.mark.parametrize("function", [asserted, asserted_behind_a_draw], ids=lambda f: f.__name__)
def test_a_failed_assert_is_pythons_and_leaves_what_python_leaves(function, way):
    compiled = way(function)
    for _ in range(CALLS):
        assert outcome(compiled, [np.arange(4.0)]) == outcome(function, [np.arange(4.0)])


# ---- random numbers: the sequence that Python draws, whatever else uses the state
def in_a_loop_then_shuffled(x):
    for _ in range(20):
        x = x + np.random.normal()
    np.random.shuffle(x)
    return x


def in_a_loop_then_a_permutation(x):
    for _ in range(20):
        x = x + np.random.normal()
    return np.sort(x)[np.random.permutation(4)]


def in_a_branch_then_counted(x):
    if x.sum() > 3:
        x = x + np.random.normal(size=4)
    y = np.unique(x)
    return y[0] + np.random.random()


def in_a_loop_then_selected(x):
    for _ in range(20):
        x = x + np.random.normal()
    return x[x > 0].sum() + np.random.random()


def in_a_while_then_the_host(x):
    while x.sum() < 9:
        x = x + np.random.random(4)
    return np.unique(x), np.random.random()


def of_a_generator_of_its_own(x):
    rng = np.random.default_rng(4)
    for _ in range(20):
        x = x + rng.normal()
    return np.unique(x)[rng.integers(4)]


DRAWS = [
    in_a_loop_then_shuffled, in_a_loop_then_a_permutation, in_a_branch_then_counted, in_a_loop_then_selected,
    in_a_while_then_the_host, of_a_generator_of_its_own,
]  # fmt: skip


@pytest.mark.parametrize("way", [jl.jit, jl.function, as_cell])
@pytest.mark.parametrize("function", DRAWS, ids=lambda f: f.__name__)
def test_random_numbers_drawn_in_bodies_come_in_pythons_order(function, way):
    compiled = way(function)
    for _ in range(CALLS):
        mine, theirs = outcome(compiled, [np.arange(4.0)]), outcome(function, [np.arange(4.0)])
        assert mine[1:] == theirs[1:]
        assert mine[0] == theirs[0] or way is jl.function  # Python's numbers are NumPy's there


def test_nothing_is_printed_while_a_function_is_recorded(capsys):
    @jl.function
    def f(x):
        for i in range(20):
            x = x + i
            if i == 19:
                jl.print_("x", x)
        return np.unique(x)

    f(np.ones(2))
    assert capsys.readouterr().err == "x [191 191]\n"


# ---- what NumPy calls back into the user's Python happens once
def vectorized(calls, x):
    f = np.vectorize(lambda v: calls.append(1) or v * 2, otypes=[float])
    return repr((f(x), x * x)), len(calls)


def of_frompyfunc(calls, x):
    f = np.frompyfunc(lambda v: calls.append(1) or v + 1, 1, 1)
    return repr((f(x), x * x)), len(calls)


def along_an_axis(calls, x):
    return repr((np.apply_along_axis(lambda r: calls.append(1) or r, 0, x), x * x)), len(calls)


def in_pieces(calls, x):
    return np.piecewise(x, [x > 1], [lambda v: calls.append(1) or v * 2, 0]) + x, len(calls)


def from_a_function(calls, x):
    return np.fromfunction(lambda i, j: calls.append(1) or i + j, (2, 3)) * x[1], len(calls)


def from_an_iterator(calls, x):
    it = iter([1.0, 2.0, 3.0])
    return np.fromiter(it, float, 2) + next(it) + x[:2] * x[:2], list(it)


class Asked:
    def __init__(self, calls):
        self.calls = calls

    def __array_ufunc__(self, *args, **kwargs):
        self.calls.append(1)
        return 1.0


def of_a_class_of_its_own(calls, x):
    return np.multiply(Asked(calls), x), len(calls)


@pytest.mark.parametrize(
    "function", [vectorized, of_frompyfunc, along_an_axis, in_pieces, from_a_function, from_an_iterator, of_a_class_of_its_own],
    ids=lambda f: f.__name__,
)  # fmt: skip
@pytest.mark.parametrize("way", [jl.jit, as_cell])
def test_what_numpy_calls_back_is_called_as_often_as_python_calls_it(function, way):
    compiled = way(function)
    for _ in range(CALLS):
        mine, theirs = [], []
        assert repr(compiled(mine, np.arange(4.0))) == repr(function(theirs, np.arange(4.0)))
        assert mine == theirs


@pytest.mark.parametrize(
    "called",
    [
        lambda f, x: np.vectorize(f, otypes=[float])(x),
        lambda f, x: np.vectorize(f)(x * 2),
        lambda f, x: np.apply_along_axis(lambda row: f(row), 0, x),
        lambda f, x: np.frompyfunc(f, 1, 1)(x).astype(float),
        lambda f, x: np.vectorize(f, otypes=[float])(np.unique(x)),
    ],
    ids=["vectorize", "vectorize without types", "along an axis", "frompyfunc", "vectorize of what only a run knows"],
)
def test_a_function_that_calls_back_and_may_be_given_up_is_called_as_often_as_by_python(called):
    """Its first call, and those whose later operations have results of another length, too."""
    calls = []

    def each(v):
        calls.append(1)
        return v * 2.0

    def program(x):
        y = called(each, x)
        return np.unique(x).sum() + y.sum()

    compiled = jl.function(program)
    for x in ([1.0, 2, 3, 4], [1.0, 2, 3, 5], [2.0, 2, 0, 2], [1.0, 1, 1, 1], [4.0, 3, 2, 1]):
        counts, results = [], []
        for run in (program, compiled):
            calls.clear()
            results.append(run(np.array(x)))
            counts.append(len(calls))
        assert counts[0] == counts[1] and results[0] == results[1]


def test_an_array_as_the_key_of_a_dict_is_pythons_or_an_error_that_says_so():
    words = {0: "zero", 1: "one"}

    def word(x):
        return words[x[0]]

    assert jl.jit(word)(np.array([1, 2])) == "one"
    with pytest.raises(jl.errors.ValueOfTracedArrayError, match=r"`words\[x\[0\]\]` needs .* the key of a dict"):
        jl.function(word)(np.array([1, 2]))


def test_of_two_errors_the_first_in_the_program_is_raised():
    def f(x):
        if x[0] > 3:
            raise ValueError("first")
        return 1 // (x.shape[0] - x.shape[0])

    compiled = jl.function(f)
    for x in (np.array([5.0]), np.array([1.0]), np.array([5.0])):
        with pytest.raises(ValueError if x[0] > 3 else ZeroDivisionError):
            compiled(x)

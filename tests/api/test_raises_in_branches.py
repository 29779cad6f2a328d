"""What raises in a side of a branch that arrays decide raises where that side is taken, and nowhere else."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import CaptureError
from jitlab.ops.table import FUNCTIONS

TABLE = np.arange(4.0)
ARGUMENTS = [[0, 1, 2, 3], [5, 1, 2, 3], [-1, -2, -3, -4], [0, 40, 80, 120], [0, 1, 2, 3]]


class TwoParts(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)
        self.second = second


def refused(x):
    if (x < 0).any():
        raise ValueError("negative!")
    return x * 2


def refused_otherwise(x):
    if (x < 0).any():
        y = x * 2
    else:
        raise TwoParts(1, "two")
    return y + 1


def in_a_branch_of_a_branch(x):
    if x.sum() > 0:
        if x[0] > 4:
            raise KeyError("k")
        else:
            y = x + 1
    else:
        y = x - 1
    return y


def on_both_sides(x):
    if x.sum() > 0:
        raise ValueError("positive")
    else:
        raise TypeError("negative")


def behind_a_break(x):
    for i in range(1, 4):
        if TABLE[i + 1] > 1:
            break
    return x * i


def far_when_returned(x):
    if x[0] > 3:
        return x[7]
    return x[0]


def far_in_an_expression(x):
    return x[9] if x[0] > 3 else x[0]


def far_behind_and(x):
    return x[0] > 3 and x[9] > 2


def in_a_rolled_loop(x):
    s = 0.0
    for i in range(30):
        if x[i % 4] > 50:
            raise RuntimeError("large")
        s = s + x[i % 4]
    return s


def in_a_while(x):
    i = 0
    while i < 20:
        x = x * 1.2
        if x.max() > 60:
            raise OverflowError("over")
        i += 1
    return x


def in_a_helper(x):
    def twice(v):
        if v.sum() > 100:
            raise ArithmeticError("h")
        return v * 2

    return twice(x) + twice(x * 3)


def never(x):
    if x[0] > 0:
        assert False, "never"  # noqa: B011 - the statement is what is tested
    return x


def what_the_other_side_binds(x):
    if x[0] < 1:
        n, y = 3, x
    else:
        raise ValueError("r")
    z = np.zeros(n) + y[0]
    y[...] = 7
    return y, z


def divided(x):
    if x.sum() > 5:
        1 // (x.shape[0] - x.shape[0])
    return x


PROGRAMS = [
    refused, refused_otherwise, in_a_branch_of_a_branch, on_both_sides, behind_a_break, far_when_returned,
    far_in_an_expression, far_behind_and, in_a_rolled_loop, in_a_while, in_a_helper, never, what_the_other_side_binds, divided,
]  # fmt: skip


def outcome(call, x):
    try:
        return repr(call(x)), x.tolist()
    except Exception as error:
        return [kind for kind in type(error).__mro__ if kind.__module__ != "jitlab.errors"], str(error).split("\n")[0]


def compiled_whole(f):
    return jl.function(f, jit_compile=True)


@pytest.mark.parametrize("way", [jl.jit, jl.function, compiled_whole], ids=["jit", "function", "whole"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_side_that_is_not_taken_does_not_raise(program, way):
    compiled = way(program)
    for values in ARGUMENTS:
        mine, theirs = np.array(values, float), np.array(values, float)
        assert outcome(compiled, mine) == outcome(program, theirs)
        if way is jl.jit:
            np.testing.assert_array_equal(mine, theirs)


def test_the_exception_is_the_programs_with_its_line():
    compiled = jl.function(refused_otherwise)
    for _ in range(2):
        with pytest.raises(TwoParts) as caught:
            compiled(np.ones(2))
        assert caught.value.args == (1, "two") and caught.value.second == "two"
        shown = "".join(traceback.format_exception(caught.value))
        assert 'raise TwoParts(1, "two")' in shown and "jitlab/runtime" not in shown


def test_each_run_raises_an_exception_of_its_own():
    compiled = jl.function(refused)
    found = []
    for _ in range(2):
        with pytest.raises(ValueError) as caught:
            compiled(-np.ones(2))
        found.append(caught.value)
    assert found[0] is not found[1] and len(traceback.extract_tb(found[1].__traceback__)) < 6


def test_what_a_try_would_catch_is_not_recorded():
    def f(x):
        try:
            if x[0] > 3:
                raise ValueError("caught")
            y = x + 1
        except ValueError:
            y = x - 1
        return y

    for values in ARGUMENTS:
        x = np.array(values, float)
        np.testing.assert_array_equal(jl.jit(f)(x), f(x))
        np.testing.assert_array_equal(jl.function(f)(x), f(x))
    with pytest.raises((CaptureError, ValueError)):
        jl.function(f, jit_compile=True)(np.ones(2))


def test_a_branch_in_which_everything_is_caught_is_recorded():
    @jl.function(jit_compile=True)
    def f(x):
        if x[0] > 3:
            try:
                x = x + int("three")
            except ValueError:
                x = x + 3
        return x

    assert f(np.array([5.0])) == 8 and f(np.array([1.0])) == 1


def test_a_loop_around_a_raise_stays_one_kernel():
    compiled = jl.jit(in_a_rolled_loop)
    with jl.record() as recording:
        compiled(np.arange(4.0))
    (cluster,) = recording.report().clusters
    assert len(cluster.kernels) == 1


def taken_above_nothing(x):
    if x.sum() > 0:
        return np.tanh(x) * 2
    return x + 1


def behind_a_check(x):
    if x.sum() < -1e9:
        raise ValueError("far below")
    return np.tanh(x) * 2


def in_a_loop_that_is_rolled(x):
    for i in range(40):
        x = np.tanh(x) + i
    return x


def _fails(*args, **kwargs):
    return {}["a mistake"]


def _asserts(*args, **kwargs):
    raise AssertionError("a mistake")


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("mistake", [_fails, _asserts])
@pytest.mark.parametrize("program", [taken_above_nothing, behind_a_check, in_a_loop_that_is_rolled])
def test_a_mistake_of_jitlab_is_not_taken_for_what_the_program_raises(program, mistake, sign, monkeypatch):
    """What fails inside jitlab while a side is recorded is no exception of the program's: Python runs the call."""
    import jitlab.ops.elementwise.arithmetic as arithmetic

    mistake.__code__ = mistake.__code__.replace(co_filename=arithmetic.__file__)
    monkeypatch.setitem(FUNCTIONS, np.tanh, mistake)
    x, told = sign * np.ones(3), []
    with jl.events.listen(lambda event: told.append(str(getattr(event, "text", "")))):
        np.testing.assert_array_equal(jl.function(program)(x), program(x))
    assert any("an error inside jitlab" in text for text in told), told
    with pytest.raises(jl.errors.InvalidArgumentError, match="an error inside jitlab"):
        jl.function(program, jit_compile=True)(x)


@pytest.mark.parametrize("is_first", [True, False])
def test_what_the_other_side_of_an_expression_does_to_python_happens_once(is_first, capsys):
    log = []

    def noted(x):
        print("noted")
        log.append(x.ndim)
        return x * 2

    def raising():
        raise ValueError("never")

    @jl.function
    def f(x):
        if is_first:
            return raising() if x.sum() < 0 else noted(x)
        return noted(x) if x.sum() > 0 else raising()

    assert f(np.ones(3)).tolist() == [2, 2, 2]
    assert log == [1] and capsys.readouterr().out == "noted\n"
    with pytest.raises(ValueError, match="never"):
        f(-np.ones(3))

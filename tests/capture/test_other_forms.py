"""Under `jl.function` a traced value may decide between results of two forms: one is recorded, for the other Python takes the
call; and what Python's `print` shows of a tensor has no digits to choose."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl
from jitlab import events

UP, DOWN = np.arange(4.0), -np.arange(4.0)


def none_first(x):
    if x.sum() < 0:
        return None
    return [x.sum(), x * 2]


def none_last(x):
    if x.sum() < 0:
        return x + 1
    return None


def tuple_or_array(x):
    if x.sum() < 0:
        return x.max(), x
    return x


def three_ways(x):
    if x.sum() < 0:
        if x[0] < -5:
            return None
        return [x.sum()]
    elif x.sum() > 20:
        return "much"
    return {"x": x}


def written_before(x):
    x += 1
    if x.sum() < 0:
        x *= 2
        return None
    x *= 3
    return [x.sum()]


def in_a_loop(x):
    for i in range(len(x)):
        if x[i] > 1.5:
            return None
        x[i] = 7
    return x


def of_a_helper(x):
    y = none_first(x)
    if y is None:
        return x - 1
    return y[1]


PROGRAMS = [none_first, none_last, tuple_or_array, three_ways, written_before, in_a_loop, of_a_helper]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("order", [1, -1])
def test_each_call_gives_the_form_that_python_gives(program, order):
    recorded = jl.function(program)
    for x in [UP, DOWN, UP * 10, DOWN - 10, UP, DOWN][::order] * 3:  # C answers the last ones
        mine, theirs = x.copy(), x.copy()
        found, wanted = recorded(mine), program(theirs)
        assert repr(found) == repr(wanted)
        assert mine.tolist() == theirs.tolist()
    assert recorded.experimental_get_tracing_count() == 1


def test_what_such_a_call_has_drawn_python_draws_again():
    def drawn(x):
        noise = np.random.random(3)
        if x.sum() < 0:
            return None
        return [x.sum() + noise]

    recorded = jl.function(drawn)
    for x in (UP, DOWN, UP):
        results = []
        for function in (recorded, drawn):
            np.random.seed(3)
            results.append(repr((function(x), np.random.random())))
        assert results[0] == results[1]


def test_the_event_says_that_the_form_is_another():
    recorded = jl.function(none_first)
    recorded(UP)
    heard = []
    with events.listen(heard.append):
        recorded(DOWN)
    (ran,) = [event for event in heard if isinstance(event, events.StatementRan)]
    assert "it returns another kind of result here" in str(ran.said)
    assert ran.lines[0][1] == none_first.__code__.co_firstlineno + 1


def test_what_would_happen_twice_keeps_it_an_error():
    variable = jl.Variable(np.array(0.0))

    @jl.function
    def counted(x):
        variable.assign_add(1.0)
        return none_first(x)

    with pytest.raises(ValueError, match="the return value is None"):
        counted(UP)
    assert variable.numpy() == 0

    @jl.function
    def told(x):
        jl.print_("told")
        return none_first(x)

    with pytest.raises(ValueError, match="the return value is None"):
        told(UP)


def test_it_is_an_error_where_all_is_to_be_compiled():
    with pytest.raises(ValueError, match="the return value is None"):
        jl.function(none_first, jit_compile=True)(UP)


def romberg(function, a, b):
    found = np.zeros((8, 8))
    h = b - a
    found[0, 0] = h * (function(a) + function(b)) / 2
    for k in range(1, 8):
        h /= 2
        found[k, 0] = found[k - 1, 0] / 2 + h * sum(function(a + (2 * i - 1) * h) for i in range(1, 2 ** (k - 1) + 1))
        if k > 1 and abs(found[k, 0] - found[k - 1, 0]) < 1e-3:
            return found[k, 0], k
    raise RuntimeError("no convergence")


def integral(a, b):
    return romberg(lambda x: 1 / (1 + x * x), a, b)


@pytest.mark.parametrize("way", [jl.function, jl.jit(fullgraph=True)])
def test_what_follows_a_loop_that_may_return_only_raises(way):
    found, wanted = way(integral)(0.0, 1.0), integral(0.0, 1.0)
    assert found[1] == wanted[1] and abs(found[0] - wanted[0]) < 1e-14


def printing(x):
    print(f"sum {x.sum():.3f}, {float(x[0]):{len(x)}.1f}, {x!r}, {len(x):3d}")
    return x


def test_print_shows_tensors_whatever_their_format(capsys):
    recorded = jl.function(printing)
    assert recorded(UP).tolist() == UP.tolist()
    assert capsys.readouterr().out == (
        'sum Tensor("sum:0", shape=(), dtype=float64), Tensor("reshape:0", shape=(), dtype=float64),'
        " <traced array float64[4]>,   4\n"
    )
    recorded(UP)
    assert capsys.readouterr().out == ""
    compiled = jl.jit(printing)
    for _ in range(2):
        compiled(UP)
        assert capsys.readouterr().out == "sum 6.000,  0.0, array([0., 1., 2., 3.]),   4\n"


def formatting(x, *more):
    print("sum {:.3f}, {first:>6} of {n}".format(x.sum(), *more, first=float(x[0]), n=len(x)), "{!r}".format("text"))
    return x


def test_print_shows_tensors_of_formatted_texts(capsys):
    jl.function(formatting)(UP)
    assert capsys.readouterr().out == (
        'sum Tensor("sum:0", shape=(), dtype=float64), Tensor("reshape:0", shape=(), dtype=float64) of 4 \'text\'\n'
    )
    jl.jit(formatting)(UP)
    assert capsys.readouterr().out == "sum 6.000,    0.0 of 4 'text'\n"


def test_a_print_of_the_programs_own_gets_no_such_text():
    def shouted(x):
        print = str.upper  # noqa: A001 - that is the point
        return x, print(f"{x.sum():.3f}")

    with pytest.raises(jl.errors.ValueOfTracedArrayError, match="needs the number itself, to format it"):
        jl.function(shouted)(UP)
    assert jl.jit(shouted)(UP)[1] == "6.000"

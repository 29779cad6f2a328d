"""Calls that give something to a list, dict or set among their arguments, answered by C: what is given, to whom, in order."""

import linecache
import sys

import numpy as np
import pytest

import jitlab as jl
from tests.api.test_put_off import PROGRAMS, outcome, same_objects

pytestmark = pytest.mark.usefixtures("stays_compiled")


def answered(f):
    """Calls that C has answered."""
    return sum(trace.costs.native_calls for trace, _ in f._recent.values())


def appends_two(x, log):
    y = x * 2 + 1
    log.append(1)
    log.append(y)
    return y * 3 - 1


def keeps_under_a_name(x, log):
    y = x * 2 + 1
    log["y"] = y
    log["n"] = 2.5
    return y + 1


def adds(x, log):
    y = x * 2 + 1
    log.add("seen")
    return y * 3


def puts_in_front(x, log):
    y = np.sqrt(x)
    log.insert(0, float(y[0]))
    return y + 1


GIVERS = ((appends_two, list), (keeps_under_a_name, dict), (adds, set), (puts_in_front, list))


@pytest.mark.parametrize(("program", "kind"), GIVERS, ids=lambda x: x.__name__)
def test_it_gets_what_python_would_give(program, kind):
    f = jl.jit(program)
    mine, theirs = kind(), kind()
    for n in range(60):
        x = np.linspace(0, 1, 5) + n
        np.testing.assert_array_equal(f(x, mine), program(x, theirs))
        if n % 20 == 19:  # another one, and one that has something
            mine, theirs = ((kind(), kind()), (kind([("a", 1)]), kind([("a", 1)])))[n // 20 % 2]
        assert repr(mine) == repr(theirs)
    assert answered(f) > 20


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_that_gives_something_out_does_so_where_c_answers(program):
    f = jl.jit(program)
    for n in range(40):
        x = np.linspace(0.5, 2, 4) + n
        found, wanted = outcome(f, x.copy(), [7.5] * (n // 20)), outcome(program, x.copy(), [7.5] * (n // 20))
        assert found[:2] == wanted[:2], n
        assert same_objects(found, wanted), n


@pytest.mark.parametrize("program", [appends_two, puts_in_front])
def test_only_python_s_own_containers_are_given_something_by_c(program):
    class Sub(list):
        def append(self, x):
            super().append((len(self), x))

        def insert(self, at, x):
            super().insert(at, (len(self), x))

    class Other:
        def append(self, x):
            vars(self)[len(vars(self))] = x

        insert = __repr__ = lambda self, *found: vars(self).setdefault("found", repr(found))

    f, x = jl.jit(program), np.ones(3)
    for _ in range(40):
        f(x, [])
    before = answered(f)
    assert before
    for kind in (Sub, Other):
        mine, theirs = kind(), kind()
        f(x, mine)
        program(x, theirs)
        assert repr((mine, vars(mine))) == repr((theirs, vars(theirs))) != repr((kind(), {}))
    for none in ((), None, "text", {}):
        with pytest.raises(AttributeError):
            f(x, none)
    assert answered(f) == before


def test_containers_that_are_one_in_a_later_call():
    def program(x, log, items):
        y = x * 2
        log.append(y.sum())
        return y + items[0], len(items)

    def both(x, log, other):
        y = x * 2
        log.append(y.sum())
        other.append("other")
        return y

    for function, items in ((program, [1.0, 2.0]), (both, [])):
        f, x = jl.jit(function), np.arange(3.0)
        for n in range(60):
            mine, theirs = [0.5], [0.5]
            given, wanted = (mine, mine if n % 7 == 6 else [*items]), (theirs, theirs if n % 7 == 6 else [*items])
            assert repr((f(x, *given), given)) == repr((function(x, *wanted), wanted)), n
        assert answered(f) > 10


def test_a_container_under_a_name_is_looked_up_at_each_call():
    names = {"np": np, "log": []}
    text = "def program(x):\n    y = np.tanh(x) * 2\n    log.append(y)\n    return y + 1\n"
    linecache.cache["<given out>"] = (len(text), None, text.splitlines(True), "<given out>")
    exec(compile(text, "<given out>", "exec"), names)
    f, x = jl.jit(names["program"]), np.ones(4)
    for n in range(50):
        if n % 10 == 0:
            names["log"] = []
        f(x)
        assert len(names["log"]) == n % 10 + 1
    assert answered(f) > 10


def test_what_was_given_is_let_go_with_its_container():
    f, x = jl.jit(appends_two), np.ones(3)
    for _ in range(40):
        f(x, [])
    assert answered(f)
    log = []
    references = sys.getrefcount(log)
    results = [f(x, log) for _ in range(10)]
    assert sys.getrefcount(log) == references and len(log) == 20
    assert {sys.getrefcount(log[n]) for n in range(1, 20, 2)} == {sys.getrefcount([1.5][0])} and len(results) == 10


def plus_one(x):
    return x + 1


def plus_two(x):
    return x + 2


def by_another_name(x):
    return _renamed(x) * 2


_renamed = plus_one
plus_one_of_module = plus_one
plus_one = None  # as a decorator leaves it: the module's name is not the function's


@pytest.mark.parametrize("program", [plus_one_of_module, by_another_name])
def test_functions_of_modules_are_answered_by_c_until_they_have_other_code(program):
    f, x = jl.jit(program), np.ones(3)
    before, first = plus_one_of_module.__code__, program(x)
    for _ in range(40):
        np.testing.assert_array_equal(f(x), first)
    assert answered(f) > 10
    plus_one_of_module.__code__ = plus_two.__code__  # as `%autoreload` does
    try:
        assert program(x)[0] > first[0]
        for _ in range(3):
            np.testing.assert_array_equal(f(x), program(x))
    finally:
        plus_one_of_module.__code__ = before
    np.testing.assert_array_equal(f(x), first)


def test_what_raises_when_it_is_given_raises_once_where_it_stands():
    def program(x, out, log):
        y = x * 2
        log.append("before")
        out[1] = y
        log.append("behind")
        return y + 1

    f, x = jl.jit(program), np.ones(3)
    for _ in range(40):
        f(x, [0, 0], [])
    before, out, log = answered(f), [0], []
    with pytest.raises(IndexError, match="assignment index out of range") as raised:
        f(x, out, log)
    assert (out, log, answered(f)) == ([0], ["before"], before + 1)
    entry = raised.traceback[-1]
    assert (entry.name, entry.lineno) == ("program", program.__code__.co_firstlineno + 2)

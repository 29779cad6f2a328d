"""Calls of `jit` that run as Python go through C: no Python code but the user's runs, and what is no such call is not taken for
one. What is counted is frames of Python code, never time."""

import copy
import functools
import gc
import inspect
import os
import pickle
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api import settling
from jitlab.api.functions import jit as jit_module
from jitlab.api.functions.dispatch import as_python
from jitlab.api.functions.jit import Jit
from jitlab.api.functions.native_entry import InFront
from jitlab.api.settling import COMPILED, PYTHON, compiled_calls, kind_of_call
from jitlab.compat import mindspore
from jitlab.errors import EagerScopeError
from jitlab.support import direct_calls
from jitlab.targets.cpu_llvm.calls.entry import layout_is_known

pytestmark = pytest.mark.skipif(not layout_is_known(), reason="every call takes the Python way on this interpreter")


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "measure")
    monkeypatch.setattr(jit_module, "DIRECT_FIRST", settling.DIRECT)


def frames_of(call):
    """The names of the Python functions that run in a call."""
    seen = []

    def profile(frame, event, argument):
        if event == "call":
            seen.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen[1:]  # the first is the call itself


def settled(function, *kinds):
    """A `jit` function for which calls with each of these arguments run as Python, and were called often enough."""
    jitted = function if isinstance(function, Jit) else jl.jit(function)
    for args in kinds:
        jitted._new_trial(kind_of_call(args, {})).way = PYTHON
        for _ in range(settling.DIRECT):
            jitted(*args)
    return jitted


def body(*args, **kwargs):
    return args, kwargs


VALUES = [
    (np.ones(10),), (np.ones((2, 3)), 1.5), ([1, 2, 3], {"a": 1}, (1, 2)), (), ("text", None, np.float32(2)),
    (np.zeros((0, 4)), []), (np.array(3),), (object(),), (np.ones(5, "i1"), np.array(["a"]), np.array([None])),
]  # fmt: skip


@pytest.mark.parametrize("args", VALUES, ids=range(len(VALUES)))
def test_only_the_users_function_runs(args):
    f = settled(body, args)
    assert frames_of(lambda: f(*args)) == ["body"]
    given, named = f(*args)
    assert all(x is y for x, y in zip(given, args, strict=True)) and not named


def test_keywords_by_name_and_order():
    f = jl.jit(body)
    x = np.ones(4)
    f._new_trial(kind_of_call((x,), {"a": 1, "b": x})).way = PYTHON
    for _ in range(settling.DIRECT):
        f(x, a=1, b=x)
    assert frames_of(lambda: f(x, a=2, b=x)) == ["body"]
    assert f(x, a=2, b=x) == ((x,), {"a": 2, "b": x})
    for others in ({"b": x, "a": 1}, {"a": 1, "c": x}, {"a": 1}, {"a": 1.0, "b": x}):
        assert "body" not in frames_of(lambda others=others: f(x, **others))[:1]
    assert len(frames_of(lambda: f(x, 1, x))) > 1  # positional ones are another kind


@pytest.mark.parametrize("other", [
    (np.ones(16),), (np.ones(7),), (np.ones((2, 5)),), (np.ones(10, np.float32),), (np.ones(10, ">f8"),), ([1] * 10,),
    (np.ma.ones(10),), (np.ones(10).view(np.recarray),), (np.ones(10), 1), (), (np.ones(10), np.ones(10)), (10,),
], ids="size smaller axes dtype order list masked record more none two number".split())  # fmt: skip
def test_another_kind_is_asked_for_in_python(other):
    f = settled(body, (np.ones(10),))
    for same in (np.zeros(15), np.ones(30)[::3]):  # its number of elements has as many bits
        assert frames_of(lambda same=same: f(same)) == ["body"]
    assert frames_of(lambda: f(*other))[0] != "body"


@pytest.mark.parametrize(("known", "other"), [
    (([1, 2, 3],), ([1, 2, 3, 4],)), (((1,),), ([1],)), (({1: 1},), ({1: 1, 2: 2},)), ((1,), (True,)), (([],), ([1],)),
    ((np.ones(2), [1]), (np.ones(2), [1, 2])), (("abc",), ("abcd",)), (("é",), ("ééé",)), (("",), ("日",)),
])  # fmt: skip
def test_lengths_of_containers_count(known, other):
    f = settled(body, known)
    assert frames_of(lambda: f(*known)) == ["body"]
    assert frames_of(lambda: f(*other))[0] != "body"


@pytest.mark.parametrize(("known", "same", "other"), [
    (5, 7, 8), (0, -3, 1), (-1, 1 << 41, 2), (1 << 40, 1 << 40, (1 << 40) - 1), (1 << 70, -(1 << 70), 1), (True, False, 1),
])  # fmt: skip
def test_ints_count_as_lengths(known, same, other):
    f = settled(body, (known,))
    assert frames_of(lambda: f(same)) == ["body"]
    assert frames_of(lambda: f(other))[0] != "body"


def test_subclasses_of_containers_are_types_of_their_own():
    class Mine(list):
        pass

    f = settled(body, (Mine([1, 2]),))
    assert frames_of(lambda: f(Mine([1] * 100))) == ["body"]  # how many elements it has says nothing
    assert frames_of(lambda: f([1, 2]))[0] != "body"


def test_several_kinds_and_no_more_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(InFront, "MOST", 3)
    kinds = [(np.ones(2**n),) for n in range(5)]
    f = settled(body, *kinds)
    assert [frames_of(lambda args=args: f(*args))[0] == "body" for args in kinds] == [True] * 3 + [False] * 2


def test_a_kind_that_is_forgotten_is_decided_again(monkeypatch):
    f = settled(body, (1,), (1.0,))
    monkeypatch.setattr(jit_module, "MOST_KINDS", 2)
    f("text")  # makes room
    assert frames_of(lambda: f(1))[0] != "body"
    assert f._trials[kind_of_call((1,), {})].way == ""
    assert frames_of(lambda: f(1.0))[0] != "body"  # 1 made room in its turn


def test_what_runs_compiled_is_compiled():
    x, y = np.ones(4), np.ones(100)
    f = jl.jit(lambda x: x * 2)
    f._new_trial(kind_of_call((x,), {})).way = PYTHON
    f._new_trial(kind_of_call((y,), {})).way = COMPILED
    for _ in range(10):
        f(x), f(y)
    assert frames_of(lambda: f(x)) == ["<lambda>"]
    assert "<lambda>" not in frames_of(lambda: f(y)) and len(f._traces) == 1


# ---- who has to be asked


def test_while_somebody_is_busy_listens_or_wants_compiled_code_python_is_asked():
    x = np.ones(4)
    f = settled(lambda x: x * 2, (x,))
    heard = []
    for inside in (
        lambda: events.busy, lambda: events.listen(heard.append), lambda: events.muted(), lambda: as_python(),
    ):  # fmt: skip
        with inside():
            assert frames_of(lambda: f(x))[:1] != ["<lambda>"]
        assert frames_of(lambda: f(x)) == ["<lambda>"]
    assert not [event for event in heard if isinstance(event, events.StatementRan)]
    assert {event.about.function for event in heard if isinstance(event, events.CalledAsPython)} == {"<lambda>"}
    taken = []
    with events.listen(heard.append, taken.append):
        f(x)
    assert sum(len(calls) for batch in taken for calls in (*batch.calls, batch.events)) == 1
    with compiled_calls():
        assert "<lambda>" not in frames_of(lambda: f(x))[:1]
    assert jl.explain(f, x).kernels
    with jl.record() as recording:
        f(x)
    assert [ran.calls for ran in recording.report().as_python] == [1]
    assert frames_of(lambda: f(x)) == ["<lambda>"]


def test_the_setting_is_asked_at_each_call(monkeypatch):
    f = settled(body, (1,))
    monkeypatch.setattr(jl.config, "settle", "off")
    assert frames_of(lambda: f(1))[0] != "body"
    monkeypatch.setattr(jl.config, "settle", "measure")
    assert frames_of(lambda: f(1)) == ["body"]
    monkeypatch.setattr(jl.config, "settle", "model")
    assert frames_of(lambda: f(1))[0] != "body"  # decided under another one


def test_a_recording_around_it_takes_its_operations():
    x = np.ones(4)
    inner = settled(lambda x: x * 2, (x,))
    outer = jl.function(lambda x: inner(x) + 1)
    np.testing.assert_array_equal(outer(x), [3, 3, 3, 3])
    assert [node.op.name for node in outer.get_concrete_function(x).graph.nodes if node.inputs] == ["Mul", "AddV2"]


def test_other_python_code_is_found():
    f = settled(body, (1,))
    f.python_function = lambda n: n + 1
    assert f(1) == 2 and frames_of(lambda: f(1)) != ["<lambda>"]  # it is decided anew
    settled(f, (1,))
    assert f(1) == 2 and frames_of(lambda: f(1)) == ["<lambda>"]
    f.python_function.__code__ = (lambda n: n - 1).__code__
    assert f(1) == 0


def test_mindspores_functions_give_its_tensors():
    f = mindspore.jit(lambda x: x)
    f._new_trial(kind_of_call((np.ones(2),), {})).way = PYTHON
    for _ in range(20):
        assert isinstance(f(np.ones(2)), mindspore.Tensor)


# ---- what the user sees


def test_errors_are_the_users_own():
    def fails(x):
        raise LookupError("mine")

    f = jl.jit(fails)
    f._new_trial(kind_of_call((1,), {})).way = PYTHON
    for _ in range(settling.DIRECT + 1):
        with pytest.raises(LookupError, match="mine") as found:
            f(1)
    frames = [frame.name for frame in traceback.extract_tb(found.value.__traceback__)]
    assert frames == ["test_errors_are_the_users_own", "fails"] and found.value.__context__ is None
    assert not f.in_front._direct.under_way.value
    with pytest.raises(TypeError, match="positional argument"):
        f()


def test_c_counts_the_calls_that_it_hands_on_also_those_that_raise():
    def halved(x):
        return 1 / x

    f = settled(halved, (1.0,))
    before = f.ledger.python_calls
    assert f(2.0) == 0.5
    with pytest.raises(ZeroDivisionError):
        f(0.0)
    assert frames_of(lambda: f(4.0)) == ["halved"] and f.ledger.python_calls == (before[0], before[1] + 3)


def test_a_scope_inside_marks_nothing_and_outside_it_is_an_error():
    def scoped(x, inside=None):
        with jl.jit_scope():
            return x + 1

    def calls(x):
        return scoped(x)

    f = settled(scoped, (1,))
    g = settled(calls, (1,))
    assert frames_of(lambda: f(1))[:1] == ["scoped"] and f(1) == 2 and g(1) == 2
    with pytest.raises(EagerScopeError):
        scoped(1)
    entered, leave, wrong = threading.Event(), threading.Event(), []

    def waits(x):
        entered.set()
        assert leave.wait(60)

    leave.set()
    h = settled(waits, (1,))
    leave.clear(), entered.clear()
    thread = threading.Thread(target=h, args=(1,))
    thread.start()
    assert entered.wait(60) and h.in_front._direct.under_way.value == 1
    try:
        scoped(1)
    except EagerScopeError:
        wrong.append(False)
    finally:
        leave.set()
        thread.join()
    assert wrong == [False] and not direct_calls.in_direct_call()


def test_looks_copies_and_pickles_are_as_before():
    f = settled(module_level, (1,))
    assert isinstance(f, Jit) and type(f).__name__ == "Jit" and f.__name__ == "module_level"
    assert copy.copy(f) is f and copy.deepcopy(f) is f and pickle.loads(pickle.dumps(f)) is f
    assert inspect.signature(f) == inspect.signature(f.python_function)

    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)

    assert wrapper.__wrapped__ is f and wrapper(1) == 2 and jl.jit(wrapper)(1) == 2
    assert jl.jit(functools.partial(f))(1) == 2
    with pytest.warns(UserWarning, match="is jitted already"):
        assert jl.jit(f).python_function is f.python_function
    assert f.would_hit(1) in (True, False) and "module_level" in str(f.ledger)


@jl.jit
def module_level(x):
    return x + 1


def test_methods_are_bound():
    class Counts:
        def __init__(self):
            self.count = 0

        @jl.jit
        def up(self, by):
            self.count += by
            return self

        @staticmethod
        @jl.jit
        def twice(x):
            return 2 * x

    made = Counts()
    settled(Counts.up, (made, 1)), settled(Counts.twice, (2,))
    before = made.count
    assert frames_of(lambda: made.up(1)) == ["__get__", "up"] and made.count == before + 1
    assert made.up(1) is made and Counts.up(made, 1) is made and made.up.__self__ is made
    assert frames_of(lambda: made.twice(2)) == ["twice"] and Counts.twice(4) == 8


@pytest.mark.parametrize("named", [True, False])
def test_a_function_goes_with_its_last_name(named):
    def made():
        held = []

        def calls_itself(n):
            return n if not held or n <= 0 else held[-1](n - 1)

        f = settled(calls_itself, (1,))
        assert frames_of(lambda: f(1)) == ["calls_itself"]
        if named:
            held.append(f)  # found by its own code
            assert f(1) == 0
        return weakref.ref(f), weakref.ref(f.python_function)

    references = made()
    if named:
        gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_what_is_left_of_a_function_says_so():
    f = settled(body, (1,))
    entry = f.__call__
    assert entry(1) == ((1,), {})
    del f
    assert entry(1) == ((1,), {})
    with pytest.raises(ReferenceError, match="The function is gone"):
        entry("text")


def test_threads_settle_and_call():
    f, found = jl.jit(lambda x: x * 2), []
    kinds = [np.ones(2**n, dtype) for n in range(6) for dtype in ("f8", "f4")]
    for x in kinds:
        f._new_trial(kind_of_call((x,), {})).way = PYTHON

    def work():
        for _ in range(40):
            for x in kinds:
                found.append(f(x)[0] == 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 * 40 * len(kinds) and all(found)
    assert all(frames_of(lambda x=x: f(x)) == ["<lambda>"] for x in kinds)
    assert not f.in_front._direct.under_way.value


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_inside_of_a_call():
    def forks(x):
        return os.fork() if x[0] else 1

    f = settled(forks, ([0],))
    assert frames_of(lambda: f([0])) == ["forks"]
    child = f([1])
    if not child:
        is_right = not f.in_front._direct.under_way.value and frames_of(lambda: f([0])) == ["forks"]
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_function_that_calls_itself():
    @jl.jit
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    settled(fib, (1,))
    assert frames_of(lambda: fib(1)) == ["fib"]
    for n in (0, 2, 4, 8):
        fib._new_trial(kind_of_call((n,), {})).way = PYTHON
    assert fib(15) == 610
    assert set(frames_of(lambda: fib(6))) == {"fib"} and not fib.in_front._direct.under_way.value
    endless = jl.jit(lambda n: endless(n))
    endless._new_trial(kind_of_call((1,), {})).way = PYTHON
    for _ in range(settling.DIRECT + 1):
        with pytest.raises(RecursionError):
            endless(1)
    assert not endless.in_front._direct.under_way.value


def test_it_is_made_only_where_calls_are_many(monkeypatch):
    monkeypatch.setattr(jit_module, "DIRECT", 30)
    monkeypatch.setattr(jit_module, "DIRECT_FIRST", 30)
    f = jl.jit(body)
    f._new_trial(kind_of_call((1,), {})).way = PYTHON
    for n in range(32):
        assert (frames_of(lambda: f(1)) == ["body"]) == (n >= 30)

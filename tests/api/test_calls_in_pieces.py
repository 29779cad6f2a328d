"""A function that runs in pieces: what its calls cost, and that pieces answered by C give what Python gives."""

import functools
import sys
import threading
import traceback

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.targets.cpu_llvm.calls.entry import layout_is_known

needs_entries = pytest.mark.skipif(not layout_is_known(), reason="every call takes the Python way on this interpreter")


def python_calls(function, *args):
    """The calls, of Python and of C functions, that one call of a function makes."""
    found = []
    sys.setprofile(lambda frame, event, arg: found.append(event) if "return" not in event else None)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return len(found)


@pytest.fixture
def nobody_listens():
    """Who listens to events, such as the shell of an earlier test, would be told of each call."""
    listeners = list(events._listeners)
    for listener, _ in listeners:
        events.remove_listener(listener)
    yield
    for listener, take in listeners:
        events.add_listener(listener, take)


def two_pieces(x, log, k=3.0):
    y = x * 2 + k
    log.append(len(log))
    return y.sum() + x


@needs_entries
@pytest.mark.usefixtures("nobody_listens")
def test_a_piece_that_is_called_often_is_answered_by_c_and_binds_without_inspect():
    traced, x = jl.jit(two_pieces), np.arange(6.0)
    for _ in range(3):
        traced(x, [])
    before = python_calls(traced, x, [])
    for _ in range(6):
        traced(x, [])
    assert python_calls(traced, x, []) < before * 0.7
    assert all(trace.run.__name__ == "run_warm" for trace in pieces_of(traced))


def pieces_of(traced):
    return [trace for traces in traced._body.segment.traces.values() for trace in traces]


@pytest.mark.parametrize("other", [
    np.arange(6.0)[::-1], np.arange(6), np.float32([1, 2]), np.arange(12.0).reshape(3, 4).T, np.float64(2.5), np.int64(7),
    np.zeros((0, 3)), np.ma.masked_array([1.0, 2.0], [True, False]),
])  # fmt: skip
def test_other_arguments_of_a_piece_with_a_c_function_give_what_python_gives(other):
    traced, x = jl.jit(two_pieces), np.arange(6.0)
    for _ in range(8):
        traced(x, [])
    logs = [], []
    for _ in range(8):
        got, want = traced(other, logs[0]), two_pieces(other, logs[1])
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(traced(x, []), two_pieces(x, []))
    assert logs[0] == logs[1]


def test_a_piece_with_a_c_function_still_writes_into_its_argument_and_gives_new_results():
    @jl.jit
    def moves(x, log):
        x += 1.0
        y = x * 2
        log.append(len(log))
        return y, y.sum()

    x, kept = np.zeros(4), []
    for n in range(1, 10):
        y, total = moves(x, [])
        np.testing.assert_array_equal(x, np.full(4, float(n)))
        assert total == 8.0 * n and type(total) is np.float64
        kept.append(y)
    assert [y[0] for y in kept] == [2.0 * n for n in range(1, 10)]


def wrapping(function):
    @functools.wraps(function)
    def wrapper(*args, scale=2.0, **kwargs):
        log.append(scale)
        return function(*args, **kwargs) * scale

    return wrapper


log = []


class Model:
    def __init__(self):
        self.seen = []

    @jl.jit
    def step(self, x, *more, factor=1.0, **options):
        y = x * factor + len(more)
        self.seen.append(sorted(options))
        return y - 1

    def __call__(self, x, k=2.0):
        y = x * k
        self.seen.append(k)
        return y + 1


@pytest.mark.parametrize(("make", "calls"), [
    (lambda: jl.jit(wrapping(lambda x, k=1.0: x + k)), [((1,), {}), ((1, 2.0), {}), ((1,), {"k": 3.0})]),
    (lambda: Model().step, [((1,), {}), ((1, 2, 3), {"factor": 2.0}), ((1,), {"a": 1, "b": 2})]),
    (lambda: jl.jit(functools.partial(two_pieces, log=log, k=1.0)), [((1,), {}), ((1,), {"k": 5.0})]),
    (lambda: jl.jit(Model()), [((1,), {}), ((1, 3.0), {}), ((1,), {"k": 3.0})]),
], ids=["wrapper", "method", "partial", "object"])  # fmt: skip
def test_arguments_of_a_call_in_pieces_are_bound_as_python_binds_them(make, calls):
    traced = make()
    plain = traced.python_function
    if hasattr(traced, "__self__"):
        plain = functools.partial(plain, traced.__self__)
    for args, kwargs in calls * 7:
        args = (np.arange(3.0) * args[0], *args[1:])
        np.testing.assert_array_equal(traced(*args, **kwargs), plain(*args, **kwargs))


def test_each_call_of_a_piece_is_counted_once_and_its_capture_with_it(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")

    @jl.jit
    def waits(x):
        y = x * 2
        log.__iadd__([1])
        return y + x.mean()

    for n in range(9):
        waits(np.full(5, float(n)))
    for _ in range(9):
        waits(np.ones(4, np.float32))
    # the first call of another dtype was Python's: it met the function that has the pieces in line
    assert [(piece.traces, piece.calls) for piece in waits.ledger.pieces.values()] == [(2, 17)] * 2
    frequency = waits._observer.frequency
    assert frequency.calls == sum(frequency.tracings) <= 2 * 18


def leaves_loops(x, log, at):
    y = x * 2
    for i in range(3):
        log.append(i)
        for j, row in enumerate([y, y + 1]):
            log.append(j)
            if i == at:
                if j:
                    return y + i
                continue
            if at == 5:
                break
            y = y + row.mean()
        else:
            log.append("inner")
    else:
        log.append("outer")
    return y


def returns_from_a_while(x, log, at):
    while (n := len(log)) < 4:
        log.append(n)
        for k in [1, 2, 3]:
            x = x + k
            log.append(k)
            if k == at:
                return x, [s for s in log]
    else:
        log.append("else")
    return x * n


def goes_over_what_is_captured(x, log, at):
    log.append(0)
    for row in np.outer(x, x) * 2:
        log.append(float(row.sum()))
        if row.sum() > at:
            return row
    for name in {"a": 1, "b": 2}:
        log.append(name)
    return name


@pytest.mark.parametrize("at", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("function", [leaves_loops, returns_from_a_while, goes_over_what_is_captured])
def test_a_loop_in_pieces_is_left_as_python_leaves_it(function, at):
    traced = jl.jit(function)
    for _ in range(3):
        mine, pythons = [], []
        got, want = traced(np.arange(3.0), mine, at), function(np.arange(3.0), pythons, at)
        assert (repr(got), mine) == (repr(want), pythons)


def catches(x, log, at):
    y = x * 2
    try:
        z = y + 1
        w = z[at] * 3
        log.append("fits")
    except IndexError as error:
        log.append(str(error))
        w = y.sum()
    else:
        w = w + z.mean()
    finally:
        log.append(float(y.mean()))
    try:
        error  # noqa: B018
    except NameError as unbound:
        log.append(type(unbound).__name__)
    return w


def returns_through_finally(x, log, at):
    for i in range(4):
        with np.errstate(all="ignore"):
            try:
                y = x + i
                log.append(i)
                if i == at:
                    return y * 2
                if i == 1:
                    continue
                y = y / 0
            finally:
                log.append("finally")
                if at == 5:
                    break  # noqa: B012
        log.append("behind")
    return y


def overrules(x, log, at):
    try:
        y = x[at] + 1
        log.append(1)
        return y
    finally:
        if at == 1:
            return x * 3  # noqa: B012


class Suppressing:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return 3.0

    def __exit__(self, kind, error, trace):
        self.log.append(kind and kind.__name__)
        return kind is IndexError


def suppresses(x, log, at):
    y = x - 1
    with Suppressing(log) as by, Suppressing(log):
        y = y * by
        y = y + x[at]
        log.append("reached")
    return y * by


def raises_again(x, log, at):
    try:
        y = x * 2
        try:
            return y[at]
        except IndexError:
            log.append("again")
            raise
    except LookupError as error:
        raise ValueError("outer") from error


@pytest.mark.parametrize("at", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("function", [catches, returns_through_finally, overrules, suppresses, raises_again])
def test_a_try_or_with_in_pieces_does_what_python_does(function, at):
    def outcome(called, log):
        try:
            return repr(called(np.arange(3.0), log, at)), log
        except Exception as error:
            cause = error.__cause__
            return type(error), str(error).split("\n")[0], type(cause), type(error.__context__), log

    traced = jl.jit(function)
    for _ in range(3):
        assert outcome(traced, []) == outcome(function, [])


def test_the_blocks_of_a_try_and_of_a_with_are_compiled():
    with jl.record() as recording:
        jl.jit(catches)(np.arange(3.0), [], 1)
        jl.jit(suppresses)(np.arange(3.0), [], 1)
    found = {line for cluster in recording.report().clusters for line in cluster.lines}
    firsts = [f.__code__.co_firstlineno for f in (catches, suppresses)]
    assert {firsts[0] + 3, firsts[0] + 4, firsts[1] + 3} <= found


def appends(x, log, at):
    y = np.sqrt(x)
    log.append(float(y.sum()))
    log[0] += x.mean() * 2
    log.append([len(log), (y * at).tolist()])
    return float(np.square(y).sum()), np.sqrt(x).mean().item()


def rebinds(x, log, at):
    def moves():
        nonlocal x
        x = x + at
        return 1.0

    y = log.append(x.sum() + moves()) or (x.mean() + moves() * x)
    return log.append(y.sum() * 2) or y, x


def keeps_order(x, log, at):
    def said(what):
        log.append(what)
        return what

    return said(1) + (x * 2).sum() + said(at) + float(np.square(x).sum()) * said(3)


class Scaled:
    def __init__(self, log):
        self.__scale, self.log = 2.0, log

    def run(self, x):
        self.log.append(float((x * self.__scale).sum()))
        return super().__class__.__name__, (x * self.__scale).tolist()


def in_a_method(x, log, at):
    log.append(at)
    return Scaled(log).run(x)


def asserts(x, log, at):
    log.append(0)
    assert (x * 2).sum() < at * 3, log.append(float(x.sum()))
    return x


def divides_by_nothing(x, log, at):
    log.append(0)
    log.append(float(np.square(x).sum()) / at)
    return log


@pytest.mark.parametrize("at", [0, 1, 2, 5])
@pytest.mark.parametrize("function", [appends, rebinds, keeps_order, in_a_method, asserts, divides_by_nothing])
def test_a_statement_in_steps_does_what_python_does(function, at):
    def outcome(called, log):
        try:
            return repr(called(np.arange(3.0), log, at)), repr(log)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            return type(error), str(error).split("\n")[0], [f.lineno for f in frames if f.name == function.__name__], repr(log)

    traced = jl.jit(function)
    for _ in range(3):
        assert outcome(traced, []) == outcome(function, [])


def test_numpy_in_a_statement_of_a_call_is_compiled_though_python_runs_the_rest():
    with jl.record() as recording:
        jl.jit(appends)(np.arange(3.0), [], 2)
    first = appends.__code__.co_firstlineno
    found = {line - first for cluster in recording.report().clusters for line in cluster.lines}
    assert found == {1, 2, 3, 4, 5}


def test_threads_take_one_body_apart_together():
    traced, start, wrong = jl.jit(appends), threading.Barrier(4), []

    def call():
        start.wait(60)
        for _ in range(5):
            mine, pythons = [], []
            if repr(traced(np.arange(3.0), mine, 2)) != repr(appends(np.arange(3.0), pythons, 2)) or mine != pythons:
                wrong.append(mine)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def raises_in_loops(x, log):
    y = x * 2
    for i in range(3):
        log.append(i)
        for _ in [1, 2]:
            if log:
                y = y + i
                if i == 1:
                    raise ValueError("bad")
    return y


def asks_for_the_truth_of_many(x, log):
    log.append(1)
    while x * 2:
        log.append(2)
    return x


def iterates_over_a_number(x, log):
    log.append(1)
    for i in len(log):
        x = x + i
    return x


def does_not_fit(x, log):
    log.append(1)
    y = x * 2
    z = y + np.ones(7)
    return z


FAILING = [raises_in_loops, asks_for_the_truth_of_many, iterates_over_a_number, does_not_fit]


@pytest.mark.parametrize("function", FAILING)
def test_an_error_in_pieces_has_the_lines_that_python_shows(function):
    def lines(called):
        with pytest.raises((ValueError, TypeError)) as caught:
            called(np.arange(3.0), [])
        found = traceback.extract_tb(caught.value.__traceback__)
        return [(frame.name, frame.lineno) for frame in found if frame.name != "lines"]

    traced = jl.jit(function)
    for _ in range(3):
        assert lines(traced) == lines(function)


def test_of_a_piece_that_fails_the_statement_that_raises_is_the_one_to_tell_of():
    def fails(x, log, at):
        log.__iadd__([1])
        a = x * 2
        b = a + 1
        c = b[at]
        return c

    traced = jl.jit(fails)
    traced(np.arange(3.0), [], np.arange(2))
    with jl.record() as recording, pytest.raises(IndexError):
        traced(np.arange(3.0), [], np.array([5, 6]))
    first = fails.__code__.co_firstlineno
    assert [[line - first for line in s.lines] for s in recording.report().statements] == [[1], [4]]

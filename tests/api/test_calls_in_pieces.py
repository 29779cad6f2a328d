"""A function that runs in pieces: what its calls cost, and that pieces answered by C give what Python gives."""

import functools
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.targets.cpu_llvm.entry import layout_is_known

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


def test_each_call_of_a_piece_is_counted_once_and_its_capture_with_it():
    @jl.jit
    def waits(x):
        y = x * 2
        log.append(1)
        return y + x.mean()

    for n in range(9):
        waits(np.full(5, float(n)))
    for _ in range(9):
        waits(np.ones(4, np.float32))
    assert [(piece.traces, piece.calls) for piece in waits.ledger.pieces.values()] == [(2, 18)] * 2
    frequency = waits._telling.frequency
    assert frequency.calls == sum(frequency.tracings) <= 2 * 18

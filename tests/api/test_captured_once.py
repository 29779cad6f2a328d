"""What cannot be traced whole is not tried again and again: in methods, and where a list among the arguments grows."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api.functions import jit as jit_module
from jitlab.api.retraces import in_pieces
from jitlab.capture.drivers.driver import Driver


@pytest.fixture
def tried(monkeypatch):
    """How often calls, and statements, were captured."""
    counts = {"calls": 0, "statements": 0}

    def counted(kind, function):
        def called(*args, **kwargs):
            counts[kind] += 1
            return function(*args, **kwargs)

        return called

    monkeypatch.setattr(jl.config, "settle", "off")
    monkeypatch.setattr(jit_module, "record_call", counted("calls", jit_module.record_call))
    monkeypatch.setattr(Driver, "_capture", counted("statements", Driver._capture))
    return counts


class Tracker:
    def __init__(self):
        self.count, self.last, self.history, self.__private = 0, None, [], 0

    def step(self, x):
        y = x * 2 + 1
        self.last = y
        self.count += 1
        self.history.append(float(y[0]))
        self.history.append(np.sqrt(y * y).sum())
        self.__private = self.__private + y.max()
        return y.sum() + y, self.__private


def left(tracker, results):
    return repr((vars(tracker), results))


def test_statements_of_a_method_are_taken_apart_as_others_are(tried):
    mine, theirs = Tracker(), Tracker()
    compiled = jl.jit(Tracker.step)
    found, wanted = [], []
    for n in range(12):
        x = np.arange(4.0) + n
        found.append(compiled(mine, x))
        wanted.append(theirs.step(x))
        if n == 3:
            before = dict(tried)
    assert left(mine, found) == left(theirs, wanted)
    assert tried == before
    assert mine.last is not None and len(mine.history) == 24


def logged(x, log, n):
    y = x * 2 + n
    log.__iadd__([y.sum()])
    return y.max()


def test_a_list_that_grows_among_the_arguments_is_no_reason_to_capture_the_call_anew(tried):
    mine, theirs = [], []
    compiled = jl.jit(logged)
    for n in range(40):
        assert compiled(np.arange(4.0), mine, n) == logged(np.arange(4.0), theirs, n)
    assert repr(mine) == repr(theirs)
    assert tried["calls"] <= 5


def sometimes(x, n):
    if n % 10 == 0:
        print("ten")
    return x * n


def test_calls_of_which_others_like_them_were_captured_are(tried, capsys):
    compiled = jl.jit(sometimes)
    for n in range(1, 61):
        assert np.array_equal(compiled(np.arange(4.0), n), sometimes(np.arange(4.0), n))
    assert tried["calls"] == 60  # each int is a kind of its own
    assert capsys.readouterr().out == "ten\n" * 12


def test_another_kind_of_argument_is_captured(tried):
    compiled = jl.jit(lambda x, log, told: log.append(x.sum()) if told else x * 2)
    log = []
    for _ in range(8):
        compiled(np.arange(4.0), log, True)
    calls = tried["calls"]
    assert compiled(np.arange(4.0), log, False).tolist() == [0, 2, 4, 6]
    assert tried["calls"] == calls + 1 and tried["statements"] <= 4


def parsed(texts, log):
    found = []
    for text in texts:
        try:
            found.append(np.sqrt(float(text)))
        except ValueError as error:
            log.append(str(error))
    return found


def test_a_statement_that_raises_is_captured_after_twice_as_many_runs_each_time(tried, monkeypatch):
    monkeypatch.setattr(in_pieces, "may_settle", lambda: True)
    mine, theirs, heard = [], [], []
    compiled = jl.jit(parsed)
    texts = ["4", "x", "9", "NA", "", "1e4"]
    with events.listen(heard.append):
        for _ in range(40):
            assert compiled(texts, mine) == parsed(texts, theirs)
    assert mine == theirs and len(mine) == 120
    assert tried["statements"] <= 30
    said = [str(event.said) for event in heard if isinstance(event, events.StatementRan)]
    said = [text for text in said if "could not convert string to float: 'x'" in text]
    assert sum("a `try` may catch" not in text for text in said) == 40 and len(said) <= 42  # the `try` was captured, too

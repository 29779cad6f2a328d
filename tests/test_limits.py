"""Code that takes too long is ended wherever it is, and what comes after it is not."""

import sys
import threading

import pytest

from jitlab.support.limits import OutOfTimeError, within

LONG_NS = 1 << 50


def test_what_ends_in_time_gives_its_value_and_its_exception():
    assert within(lambda: 3, LONG_NS) == 3
    with pytest.raises(ZeroDivisionError):
        within(lambda: 1 / 0, LONG_NS)


def test_a_loop_without_end_is_ended():
    def forever():
        while True:
            pass

    for limit, is_due in ((0, lambda: False), (LONG_NS, lambda: True)):
        with pytest.raises(OutOfTimeError):
            within(forever, limit, is_due)


def test_a_program_that_catches_everything_is_ended_where_it_no_longer_does():
    caught = []

    def stubborn():
        while len(caught) < 3:
            try:
                while True:
                    pass
            except BaseException as error:
                caught.append(type(error))
        while True:
            pass

    with pytest.raises(OutOfTimeError):
        within(stubborn, 0)
    assert caught == [OutOfTimeError] * 3


def test_nothing_is_raised_after_the_end(monkeypatch):
    """The limit is reached about when the work is done: it ends with its value or by the limit, nothing comes later."""
    monkeypatch.setattr("jitlab.support.limits.LOOKS_EACH", 1e-5)
    ended = []

    def work(count):
        for _ in range(count):
            pass
        return count

    for count in range(0, 20_000, 100):
        try:
            assert within(lambda count=count: work(count), 0) == count
        except OutOfTimeError:
            ended.append(count)
        work(20_000)
    assert len(ended) < 200
    assert not [thread for thread in threading.enumerate() if thread.name == "jitlab-limit" and thread.join(60)]


def test_a_debugger_goes_on_after_the_end():
    """CPython looks for an exception that was called off for ever, and never gets to a function that is traced."""
    assert within(lambda: 3, LONG_NS) == 3
    with pytest.raises(OutOfTimeError):
        within(lambda: [None for _ in iter(int, 1)], 0)
    seen = []
    sys.setprofile(lambda frame, event, _: seen.append(event))
    try:
        (lambda: None)()
    finally:
        sys.setprofile(None)
    assert "call" in seen

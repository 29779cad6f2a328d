"""The machine's peaks while nobody can measure them: nothing is known, and no report fails for that."""

from concurrent.futures import Future

import pytest

from jitlab.targets.cpu_llvm import peaks
from jitlab.targets.target import Peaks

FOUND = Peaks(1e9, 2e9)


def ended(outcome):
    future = Future()
    future.set_exception(outcome) if isinstance(outcome, Exception) else future.set_result(outcome)
    return future


@pytest.fixture
def outcomes(monkeypatch):
    """What becomes of each measurement that is asked for: put it in."""
    planned = []

    class Background:
        def submit(self, job):
            assert job is peaks.peaks
            outcome = planned.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

    monkeypatch.setattr(peaks, "background", Background)
    monkeypatch.setattr(peaks, "_asked", None)
    return planned


@pytest.mark.parametrize("error", [RuntimeError("the thread has ended"), MemoryError("a thread")])
def test_where_no_thread_is_to_be_had_nothing_is_known(outcomes, error):
    outcomes += [error, ended(FOUND)]
    assert peaks.known_peaks() is None  # no error: Python ends, or has no room
    assert peaks.known_peaks() == FOUND


def test_they_are_asked_for_once_and_waited_for_by_nobody(outcomes):
    outcomes.append(future := Future())
    assert peaks.known_peaks() is None and peaks.known_peaks() is None
    future.set_result(FOUND)
    assert peaks.known_peaks() == FOUND == peaks.known_peaks()


def test_a_measurement_that_fails_is_tried_again(outcomes):
    outcomes += [ended(MemoryError("48 MiB")), ended(FOUND)]
    assert peaks.known_peaks() is None
    assert peaks.known_peaks() == FOUND == peaks.known_peaks()

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


@pytest.fixture
def measures(monkeypatch, tmp_path):
    """What each process measures in turn; `peaks.peaks()` is what the next one knows."""
    planned = []
    monkeypatch.setattr(peaks, "cache_folder", lambda: str(tmp_path))
    monkeypatch.setattr(peaks, "measure", lambda: planned.pop(0))
    monkeypatch.setattr(peaks, "peaks", peaks.peaks.__wrapped__)
    return planned


def test_the_most_of_the_first_processes_counts(measures):
    """Who measures while others have half of the core finds half of it."""
    measures += [Peaks(1e9, 4e9), Peaks(3e9, 2e9), *[Peaks(1e9, 1e9)] * (peaks.PROCESSES - 2)]
    assert [peaks.peaks() for _ in range(peaks.PROCESSES + 2)] == [Peaks(1e9, 4e9), *[Peaks(3e9, 4e9)] * (peaks.PROCESSES + 1)]
    assert not measures


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bytes_per_second": "x"}', '{"processes": 9}'])
def test_a_damaged_file_is_measured_again(measures, tmp_path, text):
    (tmp_path / f"peaks-{peaks.machine.cpu_name()}.json").write_text(text)
    measures.append(FOUND)
    assert peaks.peaks() == FOUND

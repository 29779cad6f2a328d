"""What other programs took of the processors, also where a run is too short to tell."""

import pytest

from jitlab.api.check import load


@pytest.fixture
def machine(monkeypatch):
    """Two processors, whose counts and clock a test moves on: `busy` and `own` are shares of them."""
    state = {"now": 100.0, "reading": (0.0, 0.0, 0.0)}

    def passes(seconds, busy, own):
        whole = 2 * seconds
        state["now"] += seconds
        state["reading"] = tuple(a + b for a, b in zip(state["reading"], (whole, busy * whole, own * whole), strict=True))

    monkeypatch.setattr(load.time, "monotonic", lambda: state["now"])
    monkeypatch.setattr(load, "_read", lambda: state["reading"])
    monkeypatch.setattr(load, "_last", (float("-inf"), None))
    monkeypatch.setattr(load, "_earlier", None)
    return passes


def test_a_run_that_is_long_enough_tells_of_itself(machine):
    run = load.Load()
    machine(1.0, busy=0.9, own=0.5)
    assert run.others() == pytest.approx(0.4)
    machine(1.0, busy=0.5, own=0.5)
    run = load.Load()
    machine(1.0, busy=0.5, own=0.5)
    assert run.others() == pytest.approx(0.0)


def test_of_the_first_short_run_nothing_is_known_and_of_later_ones_the_time_just_before(machine):
    run = load.Load()
    machine(0.001, busy=1.0, own=0.5)
    assert run.others() is None
    for seconds in (0.001, 0.04):
        machine(2.0, busy=0.8, own=0.0)
        run = load.Load()
        machine(seconds, busy=0.8, own=0.3)
        assert run.others() == pytest.approx(0.8, abs=0.02)
    machine(30.0, busy=0.8, own=0.0)
    run = load.Load()
    machine(0.001, busy=0.8, own=0.3)
    assert run.others() is None  # what was half a minute ago says nothing


def test_a_system_that_does_not_tell_is_not_taken_for_quiet(machine, monkeypatch):
    monkeypatch.setattr(load, "_read", lambda: None)
    run = load.Load()
    machine(1.0, busy=0.5, own=0.0)
    assert run.others() is None

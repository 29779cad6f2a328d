"""Calls settled as Python while somebody listens in bulk, as the notebook does: they are noted, and told of with a count."""

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api import settling
from jitlab.api.settling import DIRECT_FIRST, PYTHON
from jitlab.capture.drivers import function_body
from jitlab.notebook.rpc.link import Bulk
from jitlab.report.recording import Recording


class Log(list):
    """What is appended to is put off for lists alone."""


@pytest.fixture
def recording(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "measure")
    recording = Recording()
    events.add_listener(recording.listen, recording.take)
    yield recording
    events.remove_listener(recording.listen)


def settled():
    @jl.jit
    def f(x):
        if x.shape[0] == 5:
            raise ValueError("five")
        return x.shape[0] + 1

    f(np.ones(3))
    for trial in f._trials.values():
        trial.way = PYTHON
    return f


def test_each_place_has_its_number_its_time_and_its_reason(recording):
    f, x = settled(), np.ones(3)
    events.collect()
    before = recording.count
    for _ in range(40):
        f(x)
    first = settled.__code__.co_firstlineno  # the lines above are of this file
    for _ in range(3):
        f(x)
    events.collect()
    tallies = recording.as_python
    assert sorted(tally.calls for tally in tallies.values()) == [3, 40]
    assert all(tally.ns > 0 for tally in tallies.values())
    assert all(about.said[0].code == "settled.nothing" and about.lines[0][0] == __file__ for about in tallies)
    assert all(about.lines[0][1] > first for about in tallies)
    assert recording.count == before + 43
    spans = [span for span in recording.lanes["compiled"] if span.label == "as Python"]
    assert len(spans) == 43 and sum(span.duration_ns for span in spans) == sum(tally.ns for tally in tallies.values())
    (a, b) = recording.report().to_json()["as_python"]
    assert {a["calls"], b["calls"]} == {3, 40} and a["said"][0]["code"] == "nothing"
    assert not [key for key in recording.statements if key[0] == "settled"]


def test_a_call_that_is_tried_as_python_is_told_as_one_that_ran(recording):
    """It was in nobody's report: who looks at the run saw the one before."""

    @jl.jit
    def f(x):
        return np.tanh(x) * 2

    x, way = np.ones(3), settling.Trial.next_way
    f(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling.Trial, "next_way", lambda trial, **options: PYTHON)
        f(x)
    assert settling.Trial.next_way is way
    events.collect()
    (about,) = recording.as_python
    assert [said.code for said in about.said] == ["settled.trial"] and about.lines[0][0] == __file__
    assert recording.as_python[about].calls == 1 and recording.as_python[about].ns > 0


def test_a_call_that_raises_is_told_of_too(recording):
    f = settled()
    f._trials[next(iter(f._trials))].way = PYTHON
    for _ in range(2):
        with pytest.raises(ValueError, match="five"):
            f(np.ones(2))  # another size class is another kind
            f(np.ones(5))
    f(np.ones(3))
    events.collect()
    assert sum(tally.calls for tally in recording.as_python.values()) >= 1


def test_who_hears_each_event_gets_each(recording):
    f, heard = settled(), []
    with events.listen(heard.append):
        for _ in range(20):
            f(np.ones(3))
    assert len([event for event in heard if event.kind == "called-as-python"]) == 20


def test_the_panel_counts_them_as_what_they_are(recording):
    f, taken = settled(), []
    events.add_listener(lambda event: None, taken.append)
    take = events._listeners[-1][0]
    try:
        for _ in range(40):
            f(np.ones(3))
        events.collect()
    finally:
        events.remove_listener(take)
    (calls,) = [calls for batch in taken for calls in batch.calls]
    single = [event for batch in taken for event in batch.events if event.kind == "called-as-python"]
    assert Bulk(calls).kinds() == {"called-as-python": 40 - len(single)}
    each = list(events.each(calls))
    assert len(each) == 40 - len(single)
    assert {(event.kind, event.about.function) for event in each} == {("called-as-python", "f")}
    assert sum(event.duration_ns for event in each) == int(calls.durations.sum())


def test_a_function_with_its_pieces_in_line_tells_of_pieces_and_statements_alike(recording, stays_compiled):
    log = Log()

    @jl.jit
    def f(x):
        y = x * 2 + 1
        log.append(len(y))
        if len(log) > 3:
            log.clear()
        return y * 3 - 1

    for _ in range(20):
        f(np.ones(6))
    assert f._stitched is not None
    events.collect()
    before = {key[2][0][1]: tally.calls for key, tally in recording.statements.items()}
    pieces = sum(tally.calls for tally in recording.functions.values())
    ran = []
    runs, function_body.run_body = function_body.run_body, lambda *args: ran.append(args)
    try:
        for _ in range(40):
            np.testing.assert_array_equal(f(np.ones(6)), np.full(6, 8.0))
    finally:
        function_body.run_body = runs
    events.collect()
    after = {key[2][0][1]: tally.calls for key, tally in recording.statements.items()}
    line = f.python_function.__code__.co_firstlineno + 3
    assert not ran and after[line] == before[line] + 40
    assert sum(tally.calls for tally in recording.functions.values()) == pieces + 80
    assert all(tally.ns > 0 for key, tally in recording.statements.items() if key[2][0][1] == line)


def test_what_a_call_gives_out_is_noted_with_it(recording, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    found = []

    @jl.jit
    def f(x):
        found.append(x.shape[0])
        return x * 2 + 1

    for _ in range(20):
        f(np.ones(6))
    trace = f._last
    before = trace.costs.calls
    for n in range(40):
        np.testing.assert_array_equal(f(np.full(6, n)), np.full(6, 2 * n + 1.0))
    events.collect()
    assert trace.costs.calls == before, "C answers them"
    assert found == [6] * 60
    ((key, tally),) = recording.statements.items()
    assert key[0] == "put_off" and key[2][0][1] == f.python_function.__code__.co_firstlineno + 2
    assert tally.calls == sum(each.calls for each in recording.functions.values()) == 60 and tally.ns > 0


def test_c_notes_calls_as_python_by_the_line_that_makes_them(recording):
    f, x = settled(), np.ones(3)
    for trial in f._trials.values():
        trial.is_in_front, trial.as_python = False, DIRECT_FIRST
    ran = []

    def both(n):
        for _ in range(n):
            f(x)
            f(x)

    both(2)
    tried, f._settling_call = f._settling_call, lambda *given: [ran.append(given), tried(*given)][1]
    both(30)
    events.collect()
    assert not ran
    assert sorted(tally.calls for tally in recording.as_python.values()) == [32, 32]


def test_c_notes_a_call_as_python_that_raises(recording):
    f, x = settled(), np.ones(5)
    for _ in range(3):
        with pytest.raises(ValueError, match="five"):
            f(x)
    (kind,) = [kind for kind in f._trials if f._trials[kind].elements_bits == 3]
    f._trials[kind].way, f._trials[kind].as_python = PYTHON, DIRECT_FIRST
    for _ in range(20):
        with pytest.raises(ValueError, match="five"):
            f(x)
    events.collect()
    (tally,) = recording.as_python.values()
    assert tally.calls == 20

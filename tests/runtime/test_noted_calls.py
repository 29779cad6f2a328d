"""Warm calls are noted by their C function while somebody records: all are counted, in the right cell, and nothing is lost."""

import gc
import itertools
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.report import Recording
from jitlab.report.duration_samples import Samples
from jitlab.support import native_call_log
from jitlab.targets.cpu_llvm.calls import launcher
from jitlab.targets.cpu_llvm.calls.entry import layout_is_known
from tests.api.test_size_families import trace_of

pytestmark = pytest.mark.skipif(
    not layout_is_known() or native_call_log.clock() is None,
    reason="every recorded call takes the Python way on this interpreter",
)


def warmed(function, *arrays):
    traced = jl.function(function)
    for _ in range(8):
        traced(*arrays)
    return traced


def hot(x):
    return np.tanh(x) * 2


def double(x):
    return x + x


def two_results(x):
    return np.exp(x), x.sum()


def calls_of(recording):
    return {name: tally.calls for (name, _), tally in recording.functions.items()}


def test_a_recorded_call_stays_in_its_c_function(monkeypatch):
    x = np.ones(10)
    f = warmed(hot, x)
    taken = []
    monkeypatch.setattr(jl.Function, "_run", lambda *a, _run=jl.Function._run: taken.append(1) or _run(*a))
    with jl.record() as recording:
        for _ in range(1000):
            f(x)
    assert calls_of(recording) == {"hot": 1000}
    assert len(taken) < 100


def test_more_calls_than_a_block_holds_are_all_counted():
    x = np.ones(5)
    f, g, h = warmed(hot, x), warmed(double, x), warmed(two_results, x)
    with jl.record() as recording:
        for n in range(3 * native_call_log.LINES):
            f(x)
            if n % 3 == 0:
                g(x)
            if n % 100 == 0:
                h(x)
    n = 3 * native_call_log.LINES
    assert calls_of(recording) == {"hot": n, "double": n // 3, "two_results": -(-n // 100)}
    for tally in (*recording.functions.values(), *recording.clusters.values()):
        assert 0 < tally.ns and tally.samples.seconds
    data = recording.report().to_json()
    (lane,) = [lane for lane in data["timeline"]["lanes"] if lane["name"] == "compiled"]
    assert len(lane["spans"]) + lane["dropped"] == sum(tally.calls for tally in recording.clusters.values())
    ends = [span["start"] + span["duration"] for span in lane["spans"]]
    assert all(a <= b + 0.002 for a, b in zip(ends, ends[1:], strict=False))


def test_times_are_those_of_the_calls():
    x = np.linspace(0, 1, 40_000)
    f = warmed(lambda v: (np.exp(np.sin(v)).sum(), np.cos(v).max()), x)
    heard = []
    with jl.record() as recording:
        for _ in range(30):
            f(x)
    with events.listen(heard.append):
        f(x)
    (function,) = recording.functions.values()
    assert function.calls == 30
    assert 0 < sum(cluster.ns for cluster in recording.clusters.values()) <= function.ns
    by_name = {event.cluster: event for event in heard if event.kind == "cluster-ran"}
    for (_, _, name), cluster in recording.clusters.items():
        assert cluster.calls == 30
        assert len(cluster.kernels_ns) == len(by_name[name].kernels_ns) > 0
        assert 0.9 * cluster.ns <= sum(cluster.kernels_ns) <= cluster.ns


def test_each_noted_call_belongs_to_its_cell():
    x = np.ones(3)
    f = warmed(hot, x)
    batches = []
    with events.listen(lambda event: None, batches.append):
        for cell in ("a", "b", "a"):
            with events.in_cell(cell):
                for _ in range(50):
                    f(x)
        events.collect()
    cells = {}
    for calls in (calls for batch in batches for calls in batch.calls if calls.about.tells_call):
        cells[calls.cell] = cells.get(calls.cell, 0) + len(calls)
        told = [event.cell for event in events.each(calls) if event.kind == "function-called"]
        assert told == [calls.cell] * len(calls)
    for event in (event for batch in batches for event in batch.events if event.kind == "function-called"):
        cells[event.cell] = cells.get(event.cell, 0) + 1
    assert cells == {"a": 100, "b": 50}


def test_who_hears_each_event_at_once_still_does():
    x = np.ones(3)
    f = warmed(hot, x)
    heard = []
    with jl.record() as recording:
        f(x)
        f(x)
        with events.listen(heard.append):
            f(x)
        f(x)
    assert [event.kind for event in heard] == ["cluster-ran", "function-called"]
    assert calls_of(recording) == {"hot": 4}


def test_two_recordings_have_each_what_happened_in_it():
    x = np.ones(3)
    f = warmed(hot, x)
    with jl.record() as outer:
        for _ in range(10):
            f(x)
        with jl.record() as inner:
            for _ in range(20):
                f(x)
        for _ in range(30):
            f(x)
    f(x)
    assert calls_of(inner) == {"hot": 20} and calls_of(outer) == {"hot": 60}


def test_a_report_in_the_middle_has_every_call_before_it():
    x = np.ones(3)
    f = warmed(hot, x)
    with jl.record() as recording:
        for n in range(1, 6):
            for _ in range(7):
                f(x)
            recording.report()
            assert calls_of(recording) == {"hot": 7 * n}


def test_jit_functions_are_counted_too():
    x = np.ones(3)
    f = jl.jit(hot)
    for _ in range(8):
        f(x)
    with jl.record() as recording:
        for _ in range(500):
            f(x)
    assert calls_of(recording) == {"hot": 500}
    assert [tally.calls for tally in recording.clusters.values()] == [500]


class Model:
    @jl.function
    def step(self, x):
        return np.sort(np.exp(x)) + np.roll(x, 1).sum()


def test_what_has_no_c_function_is_counted_as_exactly():
    x, large = np.linspace(0, 1, 1000), np.ones((600, 600))
    model, f = Model(), warmed(hot, large)
    for _ in range(8):
        model.step(x)
    with jl.record() as recording:
        for _ in range(1500):
            model.step(x)
        for _ in range(10):
            f(large)
    assert calls_of(recording) == {"step": 1500, "hot": 10}
    assert {tally.calls for (name, *_), tally in recording.clusters.items() if name == "step"} == {1500}
    assert all(sum(tally.kernels_ns) for tally in recording.clusters.values())


def test_what_is_muted_is_not_noted():
    x = np.ones(3)
    f = warmed(hot, x)
    with jl.record() as recording:
        f(x)
        f(x)
        with events.muted():
            for _ in range(10):
                f(x)
    assert calls_of(recording) == {"hot": 2}


def test_a_failing_call_is_no_call():
    x, i = np.arange(5.0), np.array([0, 4, -1])
    f = warmed(lambda x, i: x[i] * 2, x, i)
    with jl.record() as recording:
        for _ in range(3):
            f(x, i)
        with pytest.raises(IndexError):
            f(x, np.array([0, 5, 1]))
        f(x, i)
    assert list(calls_of(recording).values()) == [4]


def test_threads_lose_nothing():
    x = np.arange(20.0)
    f, g = warmed(hot, x), warmed(two_results, x)
    with jl.record() as recording:

        def work(function):
            for _ in range(3000):
                function(x)

        threads = [threading.Thread(target=work, args=(function,)) for function in (f, g, f, g)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            recording.report()
        for thread in threads:
            thread.join()
    assert calls_of(recording) == {"hot": 6000, "two_results": 6000}


def test_notes_outlive_their_function():
    x = np.ones(3)
    f = warmed(hot, x)
    with jl.record() as recording:
        for _ in range(10):
            f(x)
        del f
        gc.collect()
    assert calls_of(recording) == {"hot": 10}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_records_on():
    x = np.ones(3)
    f = warmed(hot, x)
    with jl.record() as recording:
        for _ in range(5):
            f(x)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            for _ in range(6):
                f(x)
            recording.report()
            os.write(write, str(calls_of(recording)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        f(x)
    assert os.read(read, 1000).decode() == "{'hot': 11}"
    assert calls_of(recording) == {"hot": 6}


@pytest.mark.parametrize("parts", [[1] * 700, [255, 1, 300], [256], [1000], [3, 2000, 5], [128] * 9])
def test_samples_taken_in_bulk_are_those_taken_singly(parts):
    one, many = Samples(), Samples()
    durations = np.arange(1, sum(parts) + 1)
    for value in durations.tolist():
        one.add(value)
    for part in np.split(durations, np.cumsum(parts)[:-1]):
        many.extend(part)
    assert one.seconds == many.seconds


def test_a_recording_taken_in_bulk_has_what_single_events_give():
    x = np.ones(30)
    f = warmed(two_results, x)
    bulk, single = Recording(), Recording()

    def take(batch):
        bulk.take(batch)
        for calls in batch.calls:
            for event in events.each(calls):
                single.listen(event)
        for event in batch.events:
            single.listen(event)

    with events.listen(lambda event: (bulk.listen(event), single.listen(event)), take):
        for _ in range(400):
            f(x)
    assert bulk.count == single.count
    assert told_by(bulk.functions) == told_by(single.functions)
    assert told_by(bulk.clusters) == told_by(single.clusters)
    assert set(bulk.lanes["compiled"]) == set(single.lanes["compiled"])


def told_by(tallies):
    return {key: (tally.calls, tally.ns, tally.kernels_ns, tally.samples.seconds) for key, tally in tallies.items()}


@pytest.mark.parametrize("calls", [3, 40])
def test_what_other_programs_had_of_the_processor_is_in_no_sample(calls, monkeypatch):
    """Each launch takes 10 ms by the clock, for 2 of which the process has a processor; where that is not known all counts."""
    x = np.ones(10)
    executable = trace_of(jl.function(hot), x).executable
    executable.run([x])
    for spent_ns, expected in ((2_000_000, 2e-3), (0, 1e-2), (50_000_000, 1e-2)):
        moments, processor = itertools.count(1), itertools.count(1)
        monkeypatch.setattr(launcher, "time", SimpleNamespace(perf_counter_ns=lambda m=moments: 10_000_000 * next(m)))
        monkeypatch.setattr(events, "had_ns", lambda m=processor, spent=spent_ns: (spent * (n := next(m)), spent // 2 * n))
        with jl.record() as recording:
            for _ in range(calls):
                executable.run([x])
            monkeypatch.undo()
        (tally,) = recording.clusters.values()
        assert tally.samples.seconds == [expected] * calls and tally.ns == calls * round(expected * 1e9)
        assert tally.ns + tally.stolen_ns == calls * 10_000_000  # the timeline has the clock's
        assert recording.away_ns == max(0, 10_000_000 - spent_ns // 2) * calls  # nobody knows: it may all be waiting

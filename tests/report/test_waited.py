"""What the user waited for stands first: the run by the clock with its parts, what later runs take, when compiling has paid."""

import os
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.report.build import waited as made
from jitlab.report.recording import Sampled

from . import report_samples as samples


def of(run_ns=10_000_000_000, before=0.0, compared=None, is_whole=False, **options):
    """`verdict` of the sample with this time by the clock; `compared`: NumPy's and our milliseconds of three rounds."""
    recording = samples.recorded(samples.softmax_events(compare=False, **options), samples.cell())
    recording.run_ns, recording.compiled_before = run_ns, before
    if compared is not None:
        numpy, ours = ((round(ms * 1e6),) * 3 for ms in compared)
        measured = dict(numpy_ns=numpy, compiled_ns=ours, largest_error=0.0, others=0.0, is_whole=is_whole)
        recording.listen(events.Compared(**measured))
    return recording.report()


def test_the_run_by_the_clock_stands_first_with_its_parts():
    report = of(run_ns=100_000_000)
    told = report.verdict["waited"]
    assert told["seconds"] == 0.1
    assert told["work"] + told["compiling"] + told["python"] == pytest.approx(0.1)
    assert told["text"] == "100 ms this run: 58.6 ms work, 20.6 ms tracing and compiling, 20.8 ms Python"
    assert str(report).split("\n")[0] == told["text"]


def test_what_calls_take_around_their_work_is_jitlabs_and_not_pythons():
    """Of a cell that Python runs: what calls of functions took, without work, compiling and what Python did in them."""
    plain = of(run_ns=100_000_000, retraces=0).verdict["waited"]
    for extra_ms, overhead in ((0, 0.0), (30, 0.030), (300, 1.0)):
        recording = samples.recorded(samples.softmax_events(compare=False, retraces=0), samples.cell())
        recording.run_ns = 100_000_000
        inside = recording.work_ns + round((plain["compiling"]) * 1e9)
        recording.functions.clear()
        recording.functions["step", 1] = Sampled(calls=3, ns=inside + extra_ms * 1_000_000)
        told = recording.report().verdict["waited"]
        rest = 0.1 - told["work"] - told["compiling"]
        assert told["overhead"] == pytest.approx(min(overhead, rest))
        assert told["python"] == pytest.approx(rest - told["overhead"])
        assert ("30.0 ms jitlab" in told["text"]) == (extra_ms == 30)


def test_what_is_not_felt_is_not_named_and_what_is_no_sum_is_no_list():
    told = of(run_ns=18_000_000, retraces=0).verdict["waited"]["text"]
    assert told.startswith("18.0 ms this run: 9.8 ms work, 8.1 ms tracing and compiling") and "Python" not in told
    assert of(run_ns=10_000_000, retraces=0).verdict["waited"]["text"] == "10.0 ms this run"  # threads ran at once


@pytest.mark.parametrize(
    "copied, idle, away, alone, captured, parts",
    [
        (0, 9, 2, True, True, {"waiting": 7, "overhead": 3}),  # two of the nine are within launches, whose work they are not
        (4, 0, 0, True, True, {"copying": 4, "waiting": 0, "overhead": 6}),
        (4, 99, 0, True, True, {"copying": 4, "waiting": 6, "overhead": 0}),
        (99, 99, 0, True, True, {"copying": 10, "waiting": 0, "overhead": 0}),
        (0, 2, 9, True, True, {"waiting": 0, "overhead": 10}),
        (0, 9, 0, False, True, {"overhead": 10}),  # a sleep of the program's, or the compiler
        (0, 9, 0, True, False, {"overhead": 10}),
        (0, None, 0, True, True, {"overhead": 10}),
    ],
)
def test_what_is_neither_work_nor_pythons_is_copies_waiting_and_jitlabs_own(copied, idle, away, alone, captured, parts):
    recording = SimpleNamespace(
        copied_ns=copied * 10**9, idle_ns=idle if idle is None else idle * 10**9, away_ns=away * 10**9, is_captured=captured
    )
    assert made._around(recording, 10.0, alone) == parts


@pytest.mark.parametrize("share, taken", [(None, ""), (0.24, ""), (0.6, "60 %")])
def test_a_run_says_without_a_comparison_that_others_had_the_processors(share, taken):
    said = f"; other programs took {taken} of the processors meanwhile" if taken else ""
    recording = samples.recorded(samples.softmax_events(compare=False), samples.cell())
    recording.run_ns, recording.others = 100_000_000, share
    told = recording.report().verdict["waited"]
    assert told["text"] == f"100 ms this run: 58.6 ms work, 20.6 ms tracing and compiling, 20.8 ms Python{said}"


def test_where_the_comparison_says_that_others_had_the_processors_it_is_not_said_twice():
    recording = samples.recorded(samples.softmax_events(compare=False), samples.cell())
    recording.run_ns, recording.others = 100_000_000, 0.6
    measured = dict(numpy_ns=(40_000_000,) * 3, compiled_ns=(10_000_000,) * 3, largest_error=0.0, others=0.7)
    recording.listen(events.Compared(**measured))
    assert f"{recording.report()}".count("of the processors meanwhile") == 1


def test_what_other_programs_had_within_launches_is_waiting_and_no_work_of_clusters_kernels_or_lines():
    plain = of(run_ns=100_000_000).to_json()
    happened = list(samples.softmax_events(compare=False))
    stolen = 0
    for n, event in enumerate(happened):
        if isinstance(event, events.ClusterRan):  # the process had a processor in a quarter of the time
            stolen += event.duration_ns - event.duration_ns // 4
            happened[n] = replace(event, process_ns=event.duration_ns // 4, thread_ns=event.duration_ns // 4)
    recording = samples.recorded(happened, samples.cell())
    recording.run_ns = 100_000_000
    report = recording.report().to_json()
    told, before = report["verdict"]["waited"], plain["verdict"]["waited"]
    assert stolen and told["waiting"] == stolen / 1e9 and "ms waiting for a processor" in told["text"]
    assert told["work"] == pytest.approx(before["work"] - stolen / 1e9)
    assert told["work"] + told["waiting"] == pytest.approx(before["work"]) and told["python"] == pytest.approx(before["python"])
    for now, then in zip(report["clusters"] + report["kernels"], plain["clusters"] + plain["kernels"], strict=True):
        assert now["seconds"] == pytest.approx(then["seconds"] / 4, rel=0.01)


def test_what_others_had_while_python_or_numpy_ran_is_waiting_and_no_time_of_theirs():
    happened = list(samples.softmax_events(compare=False))
    numpy = next(n for n, event in enumerate(happened) if isinstance(event, events.HostOperationRan))
    took, delay = happened[numpy].duration_ns, happened[numpy].duration_ns // 2
    happened[numpy] = replace(happened[numpy], process_ns=4 * took, delayed_ns=delay)
    said, lines = samples.said("print writes output"), (("In [7]", 3, 0, 3, 10),)
    happened.append(
        events.StatementRan(reason="effect", said=said, lines=lines, start_ns=0, duration_ns=30_000_000, delayed_ns=20_000_000)
    )
    recording = samples.recorded(happened, samples.cell())
    recording.run_ns = 200_000_000
    report, plain = recording.report(), of(run_ns=200_000_000)
    assert report.verdict["waited"]["waiting"] == (20_000_000 + delay) / 1e9
    assert report.verdict["waited"]["work"] == pytest.approx(plain.verdict["waited"]["work"] - delay / 1e9)
    assert [statement.seconds for statement in report.statements] == [0.01]


def test_how_long_a_thread_waited_for_a_processor_is_the_systems_word(tmp_path, monkeypatch):
    schedule = tmp_path / "schedstat"
    monkeypatch.setattr(events, "SCHEDULE", str(schedule))
    monkeypatch.setattr(events, "_schedules", events._Schedules())
    assert events.moment().delayed_ns is None  # nobody listens
    with events.listen(lambda event: None):
        for said, known in (("5000 70 3\n", 70), ("5000 90 3\n", 90), ("", 0)):
            schedule.write_text(said)
            monkeypatch.setattr(events, "_schedules", events._Schedules())
            assert events.moment().delayed_ns == known
    times = [events.Moment(1000, 70), events.Moment(1500, 90), events.Moment(1600, 900)]
    assert events.between(*times[:2]) == {"start_ns": 1000, "duration_ns": 500, "delayed_ns": 20}
    assert events.between(*times[1:])["delayed_ns"] == 100  # never more than the time itself


def test_many_calls_at_once_count_as_single_ones():
    one, many = Sampled(), Sampled()
    durations, work, kernels = np.array([1000, 3000]), np.array([250, 3000]), np.array([[600, 400], [3000, 0]])
    many.add_calls(np.array([0, 5000]), durations, kernels, work)
    for start, (duration, process, times) in zip((0, 5000), zip(durations, work, kernels, strict=True), strict=True):
        about = dict(function="f", trace=1, cluster="cluster_0", start_ns=start, thread_ns=int(process))
        ran = events.ClusterRan(duration_ns=int(duration), process_ns=int(process), **about)
        one.add_call(ran, tuple(times.tolist()))
    assert (one.ns, one.stolen_ns, one.kernels_ns) == (many.ns, many.stolen_ns, many.kernels_ns) == (3250, 750, [3150, 100])


def test_a_run_that_goes_on_says_nothing_yet():
    assert of(run_ns=None).verdict.get("waited") is None


def test_what_later_runs_take_is_said_where_it_was_measured():
    measured = of(compared=(40, 10)).verdict["waited"]
    assert measured["next"] == 0.01 and measured["text"].endswith(" Python; next runs 10.0 ms of work")


@pytest.mark.parametrize(
    ("numpy_ms", "before_s", "said"),
    [
        (40, 0, "20.6 ms of compiling pays for itself after 1 run"),
        (40, 1, "1.02 s of compiling pays for itself after 35 runs"),
        (11, 19.6, "19.6 s of compiling does not pay for itself before run 20,000: leave it to NumPy"),
        (5, 0, "leave it to NumPy: about 5.0 ms a run, 10.0 ms compiled"),
        (10, 1, None),
    ],
)
def test_the_compiling_is_set_against_what_each_run_saves(numpy_ms, before_s, said):
    told = of(compared=(numpy_ms, 10), before=before_s).verdict["waited"].get("pays")
    assert (told and told["text"]) == said


def test_rounds_of_the_whole_cell_are_what_later_runs_take():
    told = of(compared=(40, 10), before=1.0, is_whole=True).verdict["waited"]
    assert told["text"].endswith(" Python; next runs 10.0 ms")
    assert told["pays"]["text"] == "1.02 s of compiling pays for itself after 35 runs"


@pytest.mark.parametrize(
    ("numpy_ms", "ours_ms", "said"),
    [
        ([30] * 9, [20] * 5 + [26] * 4, "pays for itself after 3 runs"),  # 20.6 ms of compiling, and 30 - 20 ms saved
        ([7] * 5 + [9] * 4, [14] * 9, "about 7.0 ms a run, 14.0 ms compiled"),
    ],
)
def test_when_it_pays_is_told_by_the_times_that_stand_beside_it(numpy_ms, ours_ms, said):
    recording = samples.recorded(samples.softmax_events(compare=False), samples.cell())
    recording.run_ns = 100_000_000
    numpy, ours = (tuple(n * 1_000_000 for n in side) for side in (numpy_ms, ours_ms))
    recording.listen(events.Compared(numpy_ns=numpy, compiled_ns=ours, largest_error=0.0, others=0.0))
    verdict = recording.report().verdict
    assert (verdict["numpy_seconds"], verdict["waited"]["next"]) == (numpy_ms[0] / 1e3, ours_ms[0] / 1e3)
    assert said in verdict["waited"]["pays"]["text"]


def test_without_numpys_time_nobody_knows_whether_it_pays():
    assert of().verdict["waited"].get("pays") is None


def test_the_break_even_is_where_both_ways_have_taken_as_long():
    speed = {"ratio": 4.0, "low": 3.9, "high": 4.1}
    for compiling, run in ((0.3, 0.01), (1.0, 0.07), (2.5, 0.01)):
        runs = int(re.search(r"after (\d+)", str(made._paid(compiling, run, 0.0, speed)))[1])
        assert compiling + runs * run <= runs * run * 4.0 < compiling + run * 4 + runs * run


def test_what_each_run_has_besides_its_work_counts_against_it():
    speed = {"ratio": 4.0, "low": 3.9, "high": 4.1}
    assert "after 15 runs" in str(made._paid(0.29, 0.01, 0.01, speed))  # of 30 ms saved 20 are left
    assert made._paid(0.3, 0.01, 0.03, speed) is None  # nobody knows
    assert str(made._paid(0.3, 0.01, 0.04, speed)) == "leave it to NumPy: about 40.0 ms a run, 50.0 ms compiled"


def test_captures_that_came_to_nothing_are_compiling():
    recording = samples.recorded(samples.softmax_events(compare=False), samples.cell())
    recording.run_ns, recording.captures_ns = 10_000_000_000, 3_000_000_000
    assert recording.report().verdict["waited"]["compiling"] == 3


def test_a_recorded_block_is_a_run():
    with jl.record() as recording:
        jl.function(lambda x: np.exp(x) * 3.5)(np.ones(50))
    told = recording.report().verdict["waited"]
    assert told["compiling"] > 0 and told["seconds"] >= told["work"]


def test_a_forked_process_closes_no_file_of_its_own_for_its_parent(tmp_path):
    known = events._Schedule()
    if known.file < 0:
        pytest.skip("this system does not say how long a thread waited")
    number, known.process = known.file, known.process + 1  # as a child finds it
    known.__del__()
    os.fstat(number)  # raises where it is closed
    known.process -= 1
    del known
    with pytest.raises(OSError):
        os.fstat(number)


def test_of_what_began_before_anybody_listened_no_wait_is_known():
    began = events.Moment(1_000)
    assert events.between(began, events.Moment(5_000, 9_000)) == {"start_ns": 1_000, "duration_ns": 4_000, "delayed_ns": 0}
    assert events.between(events.Moment(1_000, 7_000), events.Moment(5_000, 9_000))["delayed_ns"] == 2_000

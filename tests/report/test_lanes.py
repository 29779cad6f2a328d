from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import jitlab as jl
from jitlab import events
from jitlab.report import Recording
from jitlab.report.build.lanes import busy


def lanes_of(recording):
    return {lane["name"]: lane for lane in recording.report().timeline.lanes}


def compiled(tier, start, origin="compiled"):
    return events.ProgramCompiled(
        function="f", trace=1, cluster="cluster_0", program="abc", tier=tier, origin=origin, start_ns=start, duration_ns=100
    )  # fmt: skip


def told(recording, kind, start, duration, trace=1, function="f", thread=None, **more):
    """One event of a trace, as the thread that did it tells of it."""
    event = kind(function=function, trace=trace, start_ns=start, duration_ns=duration, **more)
    if thread is None:
        recording.listen(event)
    else:
        thread.submit(recording.listen, event).result()


TRACED = {
    "causes": ("first_call",), "argument": "", "before": "", "after": "", "lines": (), "fix": None, "operations": 3,
}  # fmt: skip
PASS = {"name": "fold", "nodes_before": 3, "nodes_after": 2}
CODE = {"cluster": "cluster_0", "program": "abc", "origin": "compiled"}
PLAN = {"plan": {"ops": [], "clusters": [], "kernels": [], "boundaries": []}}


def spans_of(lane):
    return [(span["kind"], span["label"], span["start"], span["duration"]) for span in lane["spans"]]


def test_a_trace_has_its_capture_passes_planning_and_code_within_it():
    recording = Recording()
    told(recording, events.PassRan, 2000, 500, **PASS)
    told(recording, events.Traced, 1000, 4000, **TRACED)
    told(recording, events.PlanMade, 6000, 1000, **PLAN)
    told(recording, events.ProgramCompiled, 8000, 2000, tier="quick", **CODE)
    told(recording, events.FunctionCalled, 5500, 6000)
    told(recording, events.ProgramCompiled, 90_000, 2000, tier="good", **CODE)  # of another form, for a later call
    with ThreadPoolExecutor(1) as behind:
        told(recording, events.ProgramCompiled, 9000, 70_000, tier="good", thread=behind, **CODE)
    lanes = lanes_of(recording)
    assert [(name, lane["group"], lane["busy"]) for name, lane in lanes.items()] == [
        ("compiling", "compiling", 11.0), ("codegen good", "compiling", 70.0),
    ]  # fmt: skip
    assert spans_of(lanes["compiling"]) == [
        ("trace", "f #1", 0.0, 9.0), ("capture", "capture", 0.0, 4.0), ("passes", "fold", 1.0, 0.5),
        ("planning", "planning", 5.0, 1.0), ("codegen", "codegen, quick", 7.0, 2.0), ("codegen", "codegen, good", 89.0, 2.0),
    ]  # fmt: skip


def test_a_trace_that_is_not_the_first_is_a_retrace_and_one_whose_call_raised_is_its_capture_alone():
    recording = Recording()
    told(recording, events.Traced, 1000, 1000, **TRACED)
    told(recording, events.PlanMade, 2000, 1000, **PLAN)
    told(recording, events.Traced, 50_000, 1000, trace=2, **{**TRACED, "causes": ("shape",), "argument": "x"})
    told(recording, events.PlanMade, 51_000, 1000, trace=2, **PLAN)
    told(recording, events.FunctionCalled, 50_500, 9000, trace=2)
    assert [row for row in spans_of(lanes_of(recording)["compiling"]) if row[0] != "capture"] == [
        ("trace", "f #1", 0.0, 1.0), ("planning", "planning", 1.0, 1.0),
        ("retrace", "f #2", 49.0, 2.0), ("planning", "planning", 50.0, 1.0),
    ]  # fmt: skip


def test_threads_that_trace_at_once_have_a_lane_each_and_what_lies_in_a_capture_ends_with_it():
    recording = Recording()
    with ThreadPoolExecutor(1) as other:
        told(recording, events.Traced, 2000, 1000, function="inner", **TRACED)
        told(recording, events.Traced, 1000, 4000, **TRACED)
        told(recording, events.Traced, 1500, 9000, function="g", thread=other, **TRACED)
        told(recording, events.PlanMade, 7000, 500, function="inner", **PLAN)
        told(recording, events.FunctionCalled, 6500, 2000, function="inner")
    lanes = lanes_of(recording)
    assert {name: [row[1:] for row in spans_of(lane) if row[0] == "trace"] for name, lane in lanes.items()} == {
        "compiling": [("f #1", 0.0, 4.0), ("inner #1", 1.0, 3.0)], "compiling 2": [("g #1", 0.5, 9.0)],
    }  # fmt: skip
    assert ("planning", "planning", 6.0, 0.5) in spans_of(lanes["compiling"])


def test_machine_code_of_threads_that_trace_nothing_has_a_lane_for_each_tier():
    recording = Recording()
    for tier, start in (("quick", 2000), ("good", 5000), ("best", 9000)):
        recording.listen(compiled(tier, start))
    recording.listen(compiled("good", 9500, origin="disk"))
    lanes = lanes_of(recording)
    assert list(lanes) == ["codegen quick", "codegen good", "codegen best"]
    assert {lane["group"] for lane in lanes.values()} == {"compiling"}
    assert [span["start"] for span in lanes["codegen good"]["spans"]] == [3.0, 7.5]
    assert [span["kind"] for span in lanes["codegen good"]["spans"]] == ["codegen", "load"]


def test_a_first_call_and_a_retrace_lie_within_the_time_of_the_call_and_nest_in_any_report():
    @jl.function
    def f(x):
        return np.exp(x - x.max()) / (1 + x)

    with jl.record() as recording:
        for x in (np.ones(3), np.ones(3, "f4"), np.ones(3)):
            f(x)
    spans = lanes_of(recording)["compiling"]["spans"]
    assert [(span["kind"], span["name"]) for span in spans if span["kind"] in ("trace", "retrace")] == [
        ("trace", "f #1"), ("retrace", "f #2"),
    ]  # fmt: skip
    open_until = []
    depths: Counter[str] = Counter()
    for span in spans:
        while open_until and open_until[-1] <= span["start"] + 1e-6:
            open_until.pop()
        end = span["start"] + span["duration"]
        assert not open_until or end <= open_until[-1] + 1e-6
        kind = "codegen" if span["kind"] == "load" else span["kind"]
        depths[kind] = max(depths[kind], len(open_until))
        open_until.append(end)
    assert depths == {"trace": 0, "retrace": 0, "capture": 1, "planning": 1, "codegen": 1, "passes": 2}


def test_kernels_stand_within_their_launch_one_after_another():
    x = np.random.default_rng(0).random((2000, 300))

    @jl.function
    def f(x):
        return np.exp(x @ x.T).sum(axis=1)

    f(x)
    with jl.record() as recording:
        f(x)
    lanes = lanes_of(recording)
    (launch,), kernels = lanes["compiled"]["spans"], lanes["kernels"]["spans"]
    assert [span["name"] for span in kernels] == [kernel.name for kernel in recording.report().kernels]
    ends = [span["start"] + span["duration"] for span in kernels]
    assert all(abs(end - span["start"]) < 0.01 for end, span in zip(ends, kernels[1:], strict=False))
    assert kernels[0]["start"] == launch["start"] and ends[-1] <= launch["start"] + launch["duration"] + 0.01


def test_a_kernel_too_short_for_the_clock_has_no_time_anywhere(monkeypatch):
    @jl.function
    def f(x):
        return np.exp(x @ x.T).sum(axis=1)

    x = np.random.default_rng(0).random((20, 30))
    f(x)
    with jl.record() as recording:
        f(x)
    ((key, tally),) = recording.clusters.items()
    monkeypatch.setattr(tally, "kernels_ns", [0, *tally.kernels_ns[1:]])
    kernels = recording.report().kernels
    assert len(kernels) > 1 and kernels[0].seconds is None and kernels[0].of_peak is None and kernels[1].seconds > 0
    said = str(recording.report())
    assert "0.0 µs" not in said and " 0 µs" not in said
    of_none = events.ClusterRan(function=key[0], trace=key[1], cluster=key[2], kernels_ns=(0, 30), start_ns=0, duration_ns=30)
    recording = Recording()
    recording.listen(of_none)
    report = recording.report()
    assert [span["name"] for span in lanes_of(recording)["kernels"]["spans"]] == [kernel.name for kernel in report.kernels[1:]]
    assert report.kernels[0].seconds is None and "< 0.1 µs" in str(report)


def test_what_numpy_and_python_ran_is_on_the_axis_of_the_launches():
    @jl.function
    def f(x):
        return np.tanh(np.unique(np.tanh(x)))

    x = np.random.default_rng(0).random(100)
    f(x)
    with jl.record() as recording:
        f(x)
    lanes = lanes_of(recording)
    host, launches = lanes["host"], lanes["compiled"]
    assert [span["label"] for span in host["spans"]] == ["np.unique(np.tanh(x))"]
    assert host["offset"] == launches["offset"] and host["group"] == launches["group"] == "compiled"
    assert launches["spans"][0]["start"] < host["spans"][0]["start"] < launches["spans"][-1]["start"]


def test_an_argument_that_is_copied_first_has_a_span_with_its_bytes():
    @jl.function
    def f(x):
        return np.tanh(x).sum()

    x = np.zeros(100, [("a", "i4"), ("b", "f8")])["b"]  # no whole number of elements lies between two of them
    f(x)
    with jl.record() as recording:
        f(x)
    (copy,) = lanes_of(recording)["copies"]["spans"]
    assert (copy["kind"], copy["label"], copy["bytes"], copy["cluster"] is None) == ("copy", "copy of x", 800, False)


def test_a_lane_says_how_long_it_ran_with_what_it_did_not_keep():
    recording = Recording()
    for i in range(3000):
        recording.listen(
            events.ClusterRan(
                function="f", trace=1, cluster="cluster_0", start_ns=10_000 * i, duration_ns=4000, kernels_ns=(1000, 2000)
            )
        )
    lane = lanes_of(recording)["compiled"]
    assert lane["dropped"] == 1000 and len(lane["spans"]) == 2000
    assert lane["busy"] == 3000 * 4.0 and recording.lanes["compiled"].dropped_kernels_ns == 1000 * 3000
    assert busy([{"start": 0, "duration": 5}, {"start": 2, "duration": 1}, {"start": 4, "duration": 3}]) == 7

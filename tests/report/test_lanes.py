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


def test_machine_code_has_a_lane_for_each_tier_and_the_first_call_one_axis():
    recording = Recording()
    recording.listen(
        events.PassRan(function="f", trace=1, name="fold", nodes_before=3, nodes_after=2, start_ns=1000, duration_ns=50)
    )
    for tier, start in (("quick", 2000), ("good", 5000), ("best", 9000)):
        recording.listen(compiled(tier, start))
    recording.listen(compiled("good", 9500, origin="disk"))
    lanes = lanes_of(recording)
    assert list(lanes) == ["passes", "codegen quick", "codegen good", "codegen best"]
    assert {lane["group"] for lane in lanes.values()} == {"first call"}
    assert [span["start"] for span in lanes["codegen good"]["spans"]] == [4.0, 8.5]
    assert [span["kind"] for span in lanes["codegen good"]["spans"]] == ["codegen", "load"]


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

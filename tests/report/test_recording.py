import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab import events, runtime
from jitlab.report import Peaks, Recording, explain, record, recording
from jitlab.report.build import build_report


def ran(cluster="cluster_0", ms=1.0, function="f", start=0):
    ns = int(ms * samples.MS)
    return events.ClusterRan(function=function, trace=1, cluster=cluster, start_ns=start, duration_ns=ns, kernels_ns=(ns,))


def test_events_of_other_threads_are_recorded():
    with record() as rec:
        threads = [threading.Thread(target=lambda: [events.send(ran()) for _ in range(250)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert rec.clusters["f", 1, "cluster_0"].calls == 1000


def test_nothing_is_heard_before_and_after_the_block():
    with record() as rec:
        pass
    events.send(ran())
    assert not rec.clusters


def test_memory_is_bounded_and_counts_stay_exact():
    rec = Recording()
    for i in range(5000):
        rec.listen(ran(start=i))
    assert rec.clusters["f", 1, "cluster_0"].calls == 5000
    assert len(rec.lanes["compiled"]) == recording.SPANS
    lane = rec.report().timeline.lanes[0]
    assert (len(lane["spans"]), lane["dropped"]) == (recording.SPANS, 5000 - recording.SPANS)


def test_a_plan_heard_by_an_earlier_recording_explains_a_later_run():
    plan = samples.softmax_plan(first_cluster=900, function="kept").to_json()
    Recording().listen(events.PlanMade(function="kept", trace=1, plan=plan, start_ns=0, duration_ns=1))
    later = Recording()
    later.listen(ran("cluster_900", function="kept"))
    assert [cluster.name for cluster in later.report().clusters] == ["cluster_900", "cluster_901"]


def test_a_plan_nobody_heard_of_comes_from_the_code_that_runs(monkeypatch):
    plan = samples.softmax_plan(first_cluster=800, function="old")
    plan.written = SimpleNamespace(texts={("cluster_800", "llvm"): "define void @run()"}, codes={})
    monkeypatch.setattr(runtime, "plan_of", lambda function, trace, cluster=None: plan if function == "old" else None)
    rec = Recording()
    rec.listen(ran("cluster_800", function="old"))
    report = rec.report()
    assert len(report.ops) == 22
    assert report.ir("cluster_800", "llvm") == "define void @run()"


def test_two_functions_of_one_name_are_two_plans():
    rec = Recording()
    for first in (0, 10):
        plan = samples.softmax_plan(first_cluster=first, function="f").to_json()
        rec.listen(events.PlanMade(function="f", trace=1, plan=plan, start_ns=0, duration_ns=1))
    assert [plan["name"] for plan in rec.report().to_json()["plans"]] == ["f #1", "f #1 (2)"]


def test_a_plan_without_clusters_is_not_taken_for_a_live_one_of_its_functions_name():
    def alike(x):
        e = np.exp(x)
        return e / e.sum()

    live, heard = jl.function(alike), []
    with events.listen(heard.append):
        live(np.ones(3))
    (made,) = (event for event in heard if event.kind == "plan-made")
    assert made.plan["boundaries"]
    nodes = samples.node("a", "Sin"), samples.node("b", "Cos")
    plan = samples.plan_of(nodes, [], {}, function=made.function).to_json()
    rec = Recording()
    rec.listen(events.PlanMade(function=made.function, trace=made.trace, plan=plan, start_ns=0, duration_ns=1))
    assert [told.plan for told in rec.plans] == [plan]


def test_explain_calls_once_and_reports():
    calls = []
    report = explain(lambda x: (calls.append(x), events.send(ran())), 3)
    assert calls == [3]
    assert report.verdict["seconds"] == 0.001


def test_kernels_know_what_bounds_them_once_peaks_were_measured(monkeypatch):
    assert {kernel.bound for kernel in samples.softmax_report().kernels} == {None}
    monkeypatch.setattr(build_report, "peak_sources", [lambda: None, lambda: Peaks(40e9, 400e9)])
    k0 = samples.softmax_report(retraces=0).kernels[0]
    assert k0.bound == "memory"
    assert abs(k0.of_peak - (190.4e6 / 40e9) / 5.28e-3) < 1e-9


def test_the_stages_of_a_function_that_is_gone_are_kept():
    report = jl.explain(jl.function(lambda x: np.tanh(x) + 1), np.ones(5))
    gc.collect()
    name = report.clusters[0].name
    assert "Tanh" in report.ir(name) and report.ir(name, "program")
    assert "program" in {stage for _, stage in report._texts()}


def test_of_too_much_text_the_newest_stays(monkeypatch):
    monkeypatch.setattr("jitlab.report.recording.TEXT_CHARACTERS", 1)
    with jl.record() as recording:
        kept = [jl.function(lambda x, n=n: np.tanh(x) + n) for n in range(3)]
        for function in kept:
            function(np.ones(5))
    report = recording.report()
    assert list(recording.texts) == [report.clusters[-1].name]


@pytest.mark.parametrize(("given", "kind"), [(np.ones(3), "an array"), (2.5, "of type float")])
def test_what_a_function_has_given_is_not_explained_and_how_to_ask_is_said(given, kind):
    with pytest.raises(TypeError) as error:
        jl.explain(given)
    why, hint = f"  why: its first argument is {kind}, which cannot be called", "  try: jl.explain(f, x), not jl.explain(f(x))"
    assert str(error.value).split("\n")[1:] == [why, hint]

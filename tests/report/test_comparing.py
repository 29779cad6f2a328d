"""Two runs side by side: alignment by what was decided, changes with intervals, plan changes in sentences, baseline files."""

import json
from copy import deepcopy

import numpy as np
import pytest
from report_samples import softmax_events, softmax_plan

import jitlab as jl
from jitlab.errors import OptionError
from jitlab.report import Recording, Report
from jitlab.report.duration_samples import MOST, Samples, quantiles
from jitlab.report.store.baselines import MOST_BYTES, Baseline, read_baseline, taken_here, write_baseline
from jitlab.report.store.comparing import aligned, compared
from jitlab.report.store.fingerprints import cluster_fingerprint, plan_fingerprint
from jitlab.report.store.regressions import checked
from jitlab.report.store.runs import pooled, run_facts
from jitlab.targets.devices import default_target

X = np.linspace(0, 1, 4000).reshape(40, 100)


def recorded(function, *arguments, calls=4):
    with jl.record() as recording:
        for _ in range(calls):
            function(*arguments)
    return recording.report()


def timed(report, seconds, count=60, seed=0, of=None):
    """The report with durations that a test knows: `seconds` a call (of one part), with 1 % of noise."""
    rng = np.random.default_rng(seed)
    facts = deepcopy(report.facts)
    for part in facts["parts"]:
        if of is None or part["name"] == of:
            part["samples"] = list(seconds * np.exp(rng.normal(0, 0.01, count)))
            part["calls"], part["seconds"] = count, seconds * count
    facts["samples"] = list(sum(np.array(part["samples"]) for part in facts["parts"]))
    facts["span"], facts["others"] = sum(part["seconds"] for part in facts["parts"]), 0.0
    return facts


def normalized(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def renamed(values):
    other = np.exp(values - values.max(axis=1, keepdims=True))
    return other / other.sum(axis=1, keepdims=True)


def test_the_same_decisions_have_the_same_fingerprint_whatever_things_are_called_and_how_large_they_are():
    one, two = recorded(jl.function(normalized), X), recorded(jl.function(renamed), np.ones((7, 300)))
    (a,), (b,) = one.data["plans"], two.data["plans"]
    assert a["fingerprint"] == b["fingerprint"] and len(a["fingerprint"]) == 12
    assert [c["fingerprint"] for c in one.data["clusters"]] == [c["fingerprint"] for c in two.data["clusters"]]


def test_another_operation_kernel_or_reason_is_another_fingerprint():
    plan = softmax_plan().to_json()
    known = plan_fingerprint(plan)
    for name, key, value in (("exp", "op", "Log"), ("exp", "kernel", "k1"), ("argpartition", "reason", {"code": "dtype"})):
        changed = {**plan, "ops": [{**op, key: value} if op["name"] == name else op for op in plan["ops"]]}
        assert plan_fingerprint(changed) != known
    cuts = [{**edge, "reason": {"code": "other", "text": ""}} for edge in plan["boundaries"]]
    assert plan_fingerprint({**plan, "boundaries": cuts}) != known


def test_a_cluster_keeps_its_fingerprint_when_the_rest_of_the_plan_moves():
    plan = softmax_plan().to_json()
    moved = {**plan, "clusters": plan["clusters"][::-1], "ops": [op for op in plan["ops"] if op["cluster"] == "cluster_1"]}
    assert cluster_fingerprint(plan, "cluster_1") == cluster_fingerprint(moved, "cluster_1")
    assert plan_fingerprint(plan) != plan_fingerprint(moved)


def part(name, fingerprint, ops="Exp Sum", lines=(1, 2), kind="cluster", function="f"):
    made = [{"op": op, "kernel": "k0", "lines": list(lines)} for op in ops.split()]
    return {
        "kind": kind, "name": name, "fingerprint": fingerprint, "function": function, "ops": made, "lines": list(lines),
        "kernels": 1, "bytes": 80, "reason": "why", "color": 0, "calls": 0, "seconds": 0.0, "samples": [],
    }  # fmt: skip


def names(pairs):
    return [(a and a["name"], b and b["name"]) for a, b in pairs]


def test_parts_are_aligned_by_fingerprint_under_renaming_and_reordering():
    before = [part("cluster_0", "a"), part("cluster_1", "b", "Log", lines=(3,)), part("cluster_2", "a", lines=(9,))]
    after = [part("cluster_7", "b", "Log", lines=(5,)), part("cluster_8", "a", lines=(9,)), part("cluster_9", "a")]
    assert names(aligned(before, after)) == [
        ("cluster_1", "cluster_7"), ("cluster_2", "cluster_8"), ("cluster_0", "cluster_9"),
    ]  # fmt: skip


def test_a_changed_cluster_is_found_by_its_operations_and_lines_and_strangers_are_not():
    before = [part("cluster_0", "a", "Exp Sum RealDiv", lines=(3, 4)), part("cluster_1", "b", "MatMul AddV2", lines=(8,))]
    after = [part("cluster_5", "c", "Exp Sum RealDiv Mul", lines=(3, 4)), part("cluster_6", "d", "Sin Cos Tan", lines=(20,))]
    assert names(aligned(before, after)) == [
        ("cluster_0", "cluster_5"), (None, "cluster_6"), ("cluster_1", None),
    ]  # fmt: skip
    assert names(aligned([part("Sort", "x", "", kind="host")], [part("Sort", "y", "", kind="host")])) == [("Sort", "Sort")]


def test_a_planted_slow_down_of_one_cluster_is_told_of_it_and_of_the_whole():
    report = recorded(jl.function(normalized), X)
    same = compared(timed(report, 0.01), timed(report, 0.01, seed=1))
    assert [row["state"] for row in same.rows] == ["same", "same"] and not same.worse
    assert {row["change"]["word"] for row in same.rows} == {"no measurable change"}
    found = compared(timed(report, 0.01), timed(report, 0.011, seed=1))
    assert found.worse == [f"{row['name']} is {row['change']['word']}" for row in found.rows]
    assert found.rows[0]["change"]["ratio"] == pytest.approx(1.1, abs=0.01)
    assert found.rows[0]["change"]["word"].startswith("slower by 10 % ± ")
    assert "Same plan." in str(found) and "60 and 60 timed calls" in str(found)
    assert max(map(len, str(found).split("\n"))) <= 100


def test_three_calls_before_and_three_now_tell_nothing_however_well_they_agree():
    report = recorded(jl.function(normalized), X)
    few = compared(timed(report, 0.02, count=3), timed(report, 0.009, count=3, seed=1))
    assert few.rows[0]["change"] is None and few.data["needs"] is not None and not few.worse


def test_short_calls_of_runs_apart_and_of_an_unknown_load_are_known_less_well():
    report = recorded(jl.function(normalized), X)
    before, after = timed(report, 0.0004, count=5), timed(report, 0.00018, count=5, seed=1)  # 55 % less
    assert compared(before, after).rows[0]["change"]["significant"]  # one run each on a quiet machine
    apart = [{**facts, "runs": [n, n + 1, n + 2, n + 3, n + 4]} for n, facts in ((1, before), (6, after))]
    assert not compared(*apart).rows[0]["change"]["significant"]
    before, after = timed(report, 0.1, count=5), timed(report, 0.085, count=5, seed=1)
    unknown = [{**facts, "others": None} for facts in (before, after)]
    assert compared(before, after).rows[0]["change"]["significant"]
    assert not compared(*unknown).rows[0]["change"]["significant"]


def test_a_changed_plan_is_told_also_when_it_takes_the_same_time():
    def gather_first(x, rows):
        e = np.exp(x)
        return (e * 2)[rows] + 1

    def gather_last(x, rows):
        e = np.exp(x)
        return (e * 2 + 1)[rows]

    rows = np.arange(0, 40, 3)
    before, after = (timed(recorded(jl.function(f), X, rows), 0.01, seed=i) for i, f in enumerate((gather_first, gather_last)))
    found = compared(before, after)
    assert before["fingerprint"] != after["fingerprint"] and not found.worse
    assert any(text.startswith("Plan changed in cluster_") for text in found.plan_changes)


def test_an_operation_that_moves_between_cluster_and_host_is_named_with_its_reason_and_line():
    def compiled(x):
        return np.exp(x) * 2

    def on_the_host(x):
        with jl.jit_scope(compile_ops=False):
            e = np.exp(x)
        return e * 2

    a, b = (timed(recorded(jl.function(f), X), 0.01) for f in (compiled, on_the_host))
    there, back = compared(a, b).plan_changes, compared(b, a).plan_changes
    assert any(text.startswith("NumPy runs `np.exp(x)` (line ") and ") now: " in text for text in there)
    assert any(text.startswith("`np.exp(x)` (line ") and "is compiled now, in cluster_" in text for text in back)


def test_a_kernel_that_an_operation_left_is_told():
    before = part("cluster_1", "a", "Exp Take Sum")
    after = part("cluster_4", "b", "Exp Take Sum")
    for p, kernels in ((before, "k0 k1 k2"), (after, "k0 k2 k2")):
        for op, kernel in zip(p["ops"], kernels.split(), strict=True):
            op["kernel"] = kernel
        p["kernels"] = len(set(kernels.split()))
    before["bytes"] = 188_000_080
    facts = {**run_facts(Recording().report().data), "span": 0.0}
    (text,) = compared({**facts, "parts": [before]}, {**facts, "parts": [after]}).plan_changes
    assert text == "Plan changed in cluster_4: 3 kernels → 2. Take (lines 1–2) now runs inside k2; 188 MB less memory traffic."
    for p in (before, after):
        p["ops"][1]["written"] = "x[i]"
    (text,) = compared({**facts, "parts": [before]}, {**facts, "parts": [after]}).plan_changes
    assert "3 kernels → 2. `x[i]` (lines 1–2) now runs inside k2; 188 MB less memory traffic." in text


def test_reports_compare_themselves_also_those_that_were_saved():
    function = jl.function(normalized)
    one, two = recorded(function, X), recorded(function, X, calls=6)
    live = one.compare(two)
    assert live.data["samples"] == [3, 6] or live.data["samples"] == [4, 6]  # the first call may run other code
    saved = Report(json.loads(json.dumps(one.to_json()))).compare(Report(json.loads(json.dumps(two.to_json()))))
    assert [row["name"] for row in saved.rows] == [row["name"] for row in live.rows]
    assert saved.data["samples"][1] == 6
    assert one.timeline.compare(two.timeline).rows


def test_retraces_before_and_after_are_counted():
    recording = Recording({"id": "a", "execution_count": 7, "title": "In [7]", "source": [], "running": False, "error": None})
    for event in softmax_events():
        recording.listen(event)
    report = recording.report()
    few = {**report.facts, "retraces": 0}
    found = compared(few, report.facts)
    assert found.data["retraces"] == {"before": 0, "after": 5} and "5 retraces, 0 before" in found.worse


def test_a_cell_that_calls_once_a_run_is_joined_by_its_earlier_runs():
    report = recorded(jl.function(normalized), X, calls=1)
    runs = [{**timed(report, 0.01, count=1, seed=i), "run": i + 1} for i in range(6)]
    joined = pooled(runs, 20)
    assert joined["runs"] == [1, 2, 3, 4, 5, 6] and len(joined["samples"]) == 6 == len(joined["parts"][0]["samples"])
    runs = [{**run, "first": run["run"] == 1} for run in runs]
    assert pooled(runs, 20)["runs"] == [2, 3, 4, 5, 6] and pooled(runs[:3], 20)["runs"] == [1, 2, 3]
    runs[2]["source"] = "edited"
    assert pooled(runs, 20)["runs"] == [4, 5, 6]
    assert pooled([*runs, {**timed(report, 0.01, count=30), "run": 7}], 20)["runs"] == [7]


# ---- samples


def test_samples_stay_few_cover_the_whole_run_and_are_of_the_newest_code():
    samples = Samples()
    for ns in range(1, 10_001):
        samples.add(ns)
    kept = samples.seconds
    assert MOST // 2 <= len(kept) <= MOST and kept == sorted(kept)
    assert kept[0] == 1e-9 and kept[-1] > 9.9e-6
    samples.renew()
    samples.add(5)
    assert samples.seconds[-1] == 5e-9 and len(samples.seconds) > 100  # too few to let the earlier ones go
    samples.add(6)
    samples.add(7)
    assert samples.seconds == [5e-9, 6e-9, 7e-9]
    assert quantiles([]) is None and quantiles([3.0, 1.0, 2.0]) == {"least": 1.0, "median": 2.0, "p90": 3.0}


def test_a_trace_tells_its_calls_its_last_use_and_quantiles_without_the_call_that_captured_it():
    function = jl.function(normalized)
    report = recorded(function, X, calls=5)
    (plan,) = report.data["plans"]
    assert plan["calls"] == 5 and plan["last_used"] > 0 and plan["quantiles"]["least"] <= plan["quantiles"]["median"]
    again = recorded(function, np.ones((3, 5)), calls=1)
    (plan,) = again.data["plans"]
    assert (plan["calls"], plan["quantiles"]) == (1, None)  # captured, never used again


def test_the_text_says_which_traces_are_used_and_which_never_were_again():
    @jl.function
    def scaled(x, k):
        return np.exp(x) * k

    with jl.record() as recording:
        for k in (1, 1, 1, 2, 3):
            scaled(X, k)
    text = str(recording.report())
    assert "scaled: 5 calls of 3 traces; #1 had 3" in text and "used only once: #2, #3." in text


# ---- files


@pytest.fixture
def facts():
    return recorded(jl.function(normalized), X).facts


def test_a_baseline_comes_back_from_its_file(tmp_path, facts):
    path = write_baseline(tmp_path / "base.json", taken_here("gather first", [facts]))
    found = read_baseline(path)
    assert (found.name, len(found.cells)) == ("gather first", 1)
    assert compared(found.cells[0], facts).data["plan_changes"] == []
    assert json.loads(path.read_text())["version"] == 1


def test_a_baseline_says_on_what_it_was_taken_also_when_it_is_written_elsewhere(tmp_path, facts):
    path = write_baseline(tmp_path / "base.json", taken_here("b", [facts]))
    data = json.loads(path.read_text())
    assert read_baseline(path).is_of_here and data["target"] == default_target().key
    path.write_text(json.dumps(data | {"target": "another"}))
    found = read_baseline(path)
    assert not found.is_of_here and read_baseline(write_baseline(tmp_path / "copy.json", found)) == found
    del data["target"]  # as files of earlier versions
    path.write_text(json.dumps(data))
    assert read_baseline(path).is_of_here
    path.write_text(json.dumps(data | {"machine": "another"}))
    assert not read_baseline(path).is_of_here


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data | {"version": 2}, "it is of version 2, and this jitlab reads up to 1"),
        (lambda data: data | {"version": "1"}, '"version" is no number'),
        (lambda data: data | {"format": "other"}, '"format" is not "jitlab-baseline"'),
        (lambda data: data | {"cells": {}}, "cells is no list"),
        (lambda data: data | {"cells": [5]}, "cells[0] is no object"),
        (lambda data: data | {"cells": [data["cells"][0] | {"kernels": -1}]}, "cells[0].kernels is no number"),
        (lambda data: data | {"cells": [data["cells"][0] | {"samples": [0.1, "x"]}]}, "cells[0].samples is no number"),
        (lambda data: data | {"cells": [data["cells"][0] | {"parts": [{"kind": "?"}]}]}, "cells[0].parts[0] is no part"),
        (lambda data: data | {"cells": [data["cells"][0] | {"title": "x" * 20_000}]}, "cells[0].title is no text"),
    ],
)  # fmt: skip
def test_a_damaged_or_newer_baseline_is_refused_with_the_place(tmp_path, facts, change, why):
    path = write_baseline(tmp_path / "base.json", taken_here("b", [facts]))
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(OptionError) as refused:
        read_baseline(path)
    assert why in str(refused.value) and str(path) in str(refused.value)


def test_files_that_are_no_json_too_big_or_not_there_are_refused(tmp_path):
    path = tmp_path / "base.json"
    for text in ("", "{", "[" * 100_000, "\x00", "NaN"):
        path.write_text(text)
        with pytest.raises(OptionError):
            read_baseline(path)
    with open(path, "wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(OptionError, match="more than 64 MB"):
        read_baseline(path)
    with pytest.raises(OptionError, match="can't be read"):
        read_baseline(tmp_path / "none.json")


# ---- checks


def test_more_retraces_kernels_or_host_operations_are_worse_fewer_are_not(facts):
    before = {**facts, "retraces": 1, "kernels": 3}
    worse = checked(Baseline("b", (before,)), [{**facts, "retraces": 2, "kernels": 4, "causes": ["k was 1, then 2"]}])
    assert worse.is_worse and "retraces: 1 → 2 (k was 1, then 2)" in str(worse) and "kernels: 3 → 4" in str(worse)
    better = checked(Baseline("b", (before,)), [{**facts, "retraces": 0, "kernels": 2}])
    assert better.is_changed and not better.is_worse
    same = checked(Baseline("b", (before,)), [before])
    assert not same.is_changed and str(same) == "1 cell as before"


def test_a_cell_that_compiles_nothing_any_more_is_worse(facts):
    assert checked(Baseline("b", (facts,)), []).is_worse

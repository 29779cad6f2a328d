import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import report_samples as samples

from jitlab import events


@pytest.fixture(scope="module")
def trace():
    return samples.softmax_report(retraces=0).timeline.to_chrome()["traceEvents"]


def spans(trace):
    return [event for event in trace if event["ph"] == "X"]


def test_metadata_comes_first_and_names_every_process(trace):
    kinds = [event["ph"] for event in trace]
    last = max(i for i, kind in enumerate(kinds) if kind == "M")
    assert set(kinds[: last + 1]) == {"M"}
    names = {event["pid"]: event["args"]["name"] for event in trace if event["ph"] == "M"}
    assert names[0] == "Allocators"
    assert {event["pid"] for event in trace} <= set(names)
    assert "/device:CPU:0 Compute" in names.values() and "/device:CPU:0 Tensors" in names.values()


def test_op_by_op_shows_operations_and_compiled_shows_launches(trace):
    names = {event["pid"]: event["args"]["name"] for event in trace if event["ph"] == "M"}
    by_op = [e["name"] for e in spans(trace) if "op by op" in names[e["pid"]]]
    compiled = [e["name"] for e in spans(trace) if names[e["pid"]] == "/device:CPU:0 Compute"]
    assert by_op.count("MatMul") == 2 and "_XlaLaunch" not in by_op
    assert compiled == ["_XlaLaunch", "ArgPartition", "_XlaLaunch"]


def test_spans_have_the_contracts_fields(trace):
    launch = next(e for e in spans(trace) if e["name"] == "_XlaLaunch")
    assert launch["cat"] == "Op" and launch["args"]["op"] == "_XlaLaunch" and launch["args"]["name"] == "cluster_0"
    assert [launch["args"][f"input{i}"] for i in range(3)] == ["X", "W", "b"]
    matmul = next(e for e in spans(trace) if e["name"] == "MatMul")
    assert matmul["args"] == {"name": "matmul", "op": "MatMul", "input0": "X", "input1": "W"}
    for event in spans(trace):
        assert all(type(event[key]) is int for key in ("pid", "tid", "ts", "dur"))
        assert event["dur"] >= 1 and event["ts"] >= 0


def test_overlapping_spans_get_different_rows():
    plan = samples.softmax_plan()
    rec = samples.recorded([events.PlanMade(function="In [7]", trace=1, plan=plan.to_json(), start_ns=0, duration_ns=0)])
    for name, start, ms in (("cluster_0", 0, 3), ("cluster_1", 2, 3)):
        rec.listen(
            events.ClusterRan(
                function="In [7]", trace=1, cluster=name, start_ns=start * samples.MS, duration_ns=ms * samples.MS
            )
        )
    rec.listen(
        events.HostOperationRan(
            function="In [7]", trace=1, operation="argpartition", op="ArgPartition", start_ns=6 * samples.MS, duration_ns=10
        )
    )
    trace = rec.report().timeline.to_chrome()["traceEvents"]
    assert [e["tid"] for e in spans(trace)] == [0, 1, 0]


def test_what_a_trace_waited_for_lies_in_it_on_one_row_and_what_another_thread_compiles_on_its_own():
    rec = samples.recorded([])
    about = {"causes": ("first_call",), "argument": "", "before": "", "after": "", "lines": (), "fix": None, "operations": 1}
    code = {"cluster": "cluster_0", "program": "abc", "origin": "compiled"}
    for n, start in enumerate((100, 3303)):  # nanoseconds: what is rounded sticks out nowhere
        more = {"function": "f", "trace": n + 1}
        rec.listen(
            events.PassRan(name="fold", nodes_before=2, nodes_after=1, start_ns=start + 2300, duration_ns=300, **more)
        )
        rec.listen(events.Traced(start_ns=start + 900, duration_ns=1800, **about, **more))
        with ThreadPoolExecutor(1) as behind:
            event = events.ProgramCompiled(tier="good", start_ns=start + 2400, duration_ns=100, **code, **more)
            behind.submit(rec.listen, event).result()
    made = [event for event in spans(rec.report().timeline.to_chrome()["traceEvents"]) if event["cat"] == "Compile"]
    rows = {}
    for event in made:
        rows.setdefault(event["tid"], []).append((event["name"], event["ts"], event["ts"] + event["dur"]))
    assert {name for row in rows.values() for name, *_ in row} == {"f #1", "f #2", "capture", "fold", "codegen, good"}
    assert all(len({name.startswith("codegen") for name, *_ in row}) == 1 for row in rows.values())
    for row in rows.values():
        for n, (_, start, end) in enumerate(row):
            assert all(other >= end or until <= start or (other <= start and end <= until) for _, other, until in row[:n])
    (first,) = [row for row in rows.values() if row[0][0] == "f #1"]
    assert [name for name, *_ in first[:3]] == ["f #1", "capture", "fold"]


def test_data_flow_arrows_go_from_end_to_start_with_one_id():
    a = samples.node("a", "Sin")
    b = samples.node("b", "Cos", [a])
    rec = samples.recorded([])
    stays = {n: samples.Reason(samples.Stays.LEVEL, "x") for n in (a, b)}
    plan = samples.plan_of([a, b], [], stays, function="f").to_json()
    rec.listen(events.PlanMade(function="f", trace=1, plan=plan, start_ns=0, duration_ns=0))
    for name, start in (("other", 0), ("a", 1), ("b", 3)):  # "other" keeps row 0 busy while a runs
        rec.listen(
            events.HostOperationRan(
                function="f", trace=1, operation=name, op=name.upper(), start_ns=start * samples.MS,
                duration_ns=2 * samples.MS if name != "b" else samples.MS,
            )
        )  # fmt: skip
    trace = rec.report().timeline.to_chrome()["traceEvents"]
    assert [e["tid"] for e in spans(trace)] == [0, 1, 0]
    start, end = [e for e in trace if e["ph"] in "st"]
    assert (start["ph"], start["tid"], start["ts"], end["ph"], end["tid"], end["ts"]) == ("s", 1, 3000, "t", 0, 3000)
    assert start["id"] == end["id"] and start["name"] == end["name"] == "a" and start["cat"] == "DataFlow"


def tensors(trace, process):
    (pid,) = [e["pid"] for e in trace if e["ph"] == "M" and e["args"]["name"] == process]
    return [e for e in trace if e["ph"] in "NOD" and e["pid"] == pid]


def test_memory_counter_holds_what_later_operations_read(trace):
    counters = [event for event in trace if event["ph"] == "C"]
    assert all(event["pid"] == 0 and event["cat"] == "Memory" and event["name"] == "cpu" for event in counters)
    held = [event["args"]["cpu"] for event in counters]
    assert max(held) > 90_000_000 and min(held) == held[-1] == 0


def test_each_result_is_an_object_made_described_and_freed(trace):
    found = tensors(trace, "/device:CPU:0 op by op Tensors")
    ran = [e["args"]["name"] for e in spans(trace) if e["pid"] == found[0]["pid"] - 1]
    assert [e["name"] for e in found if e["ph"] == "N"] == ran
    for new in (e for e in found if e["ph"] == "N"):
        (snapshot,) = [e for e in found if (e["ph"], e["id"]) == ("O", new["id"])]
        (freed,) = [e for e in found if (e["ph"], e["id"]) == ("D", new["id"])]
        assert new["cat"] == snapshot["cat"] == freed["cat"] == "Tensor" and snapshot["name"] == freed["name"] == new["name"]
        assert new["ts"] <= snapshot["ts"] < freed["ts"]
        assert snapshot["args"]["snapshot"]["tensor_description"].startswith(("float64[", "int64[", "float32["))
    assert len({e["id"] for e in found}) * 3 == len(found)


def test_a_launch_makes_only_what_is_read_outside_its_cluster(trace):
    names = [e["name"] for e in tensors(trace, "/device:CPU:0 Tensors") if e["ph"] == "N"]
    every = [e["args"]["name"] for e in spans(trace) if e["name"] != "_XlaLaunch"]
    assert 0 < len(names) < len(every)


def test_a_device_has_two_processes_and_arrows_cross_between_devices():
    a = samples.node("a", "Sin")
    b = samples.node("b", "Cos", [a])
    a.attrs["device"] = "/job:localhost/replica:0/task:0/device:XLA_CPU:0"
    rec = samples.recorded([])
    stays = {n: samples.Reason(samples.Stays.LEVEL, "x") for n in (a, b)}
    plan = samples.plan_of([a, b], [], stays, function="f").to_json()
    rec.listen(events.PlanMade(function="f", trace=1, plan=plan, start_ns=0, duration_ns=0))
    for name, start in (("a", 0), ("b", 3)):
        rec.listen(
            events.HostOperationRan(
                function="f", trace=1, operation=name, op=name.upper(), start_ns=start * samples.MS, duration_ns=samples.MS
            )
        )
    trace = rec.report().timeline.to_chrome()["traceEvents"]
    names = {e["args"]["name"]: e["pid"] for e in trace if e["ph"] == "M"}
    assert list(names)[0] == "Allocators" and list(names.values()) == list(range(len(names)))
    assert {"/device:XLA_CPU:0 Compute", "/device:XLA_CPU:0 Tensors", "/device:CPU:0 Compute"} <= set(names)
    start, end = [e for e in trace if e["ph"] in "st"]
    assert start["pid"] == names["/device:XLA_CPU:0 Compute"] and end["pid"] == names["/device:CPU:0 Compute"]
    assert start["id"] == end["id"] and start["tid"] == end["tid"] == 0


def test_file_is_compact_json(tmp_path):
    path = samples.softmax_report().timeline.save(tmp_path / "timeline.ctf.json")
    text = path.read_text()
    assert text.startswith('{"traceEvents":[{"name":"process_name","ph":"M","pid":0,"args":{"name":"Allocators"}}')
    assert ", " not in text.replace("] ", "").split('"op":')[0]
    json.loads(text)


def test_compare_puts_two_timelines_side_by_side():
    before, after = samples.softmax_report(compare=False).timeline, samples.softmax_report(retraces=0, compare=False).timeline
    rows = {row.name: row for row in before.compare(after).rows}
    assert rows["compiled: cluster_0"].change == pytest.approx(0)
    assert rows["compiled: cluster_2"].after is None
    assert "the same" in str(before.compare(after))

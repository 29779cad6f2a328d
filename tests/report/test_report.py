import json

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab import events
from jitlab.config import config
from jitlab.errors import OptionError
from jitlab.report import MIME, Peaks, Report, read_report
from jitlab.report.build.build_report import bound, without_items


@pytest.fixture(scope="module")
def report():
    return samples.softmax_report()


def test_verdict_counts_plans_that_differ_in_values_only_once(report):
    verdict = report.verdict
    assert verdict["lead"] == "21 of 22 operations compiled"
    counts = {key: verdict[key] for key in ("operations", "compiled", "clusters", "kernels", "host", "retraces", "traces")}
    assert counts == {
        "operations": 22, "compiled": 21, "clusters": 2, "kernels": 4, "host": 1, "retraces": 5, "traces": 6
    }  # fmt: skip
    assert verdict["seconds"] == pytest.approx(6 * 9.76e-3)
    assert verdict["numpy_seconds"] == pytest.approx(6 * 47.9e-3)


def test_lists_hold_every_plan(report):
    assert len(report.clusters) == 12
    assert len(report.ops) == 6 * 22
    assert len({cluster.plan for cluster in report.clusters}) == 6


def test_a_plan_with_another_decision_is_counted_apart():
    rec = samples.recorded(samples.softmax_events(retraces=0, compare=False))
    other = samples.plan_of([samples.node("sin", "Sin", line=2)], [], {}, trace=2)
    rec.listen(events.PlanMade(function="In [7]", trace=2, plan=other.to_json(), start_ns=0, duration_ns=0))
    assert rec.report().verdict["operations"] == 23


def test_times_and_calls_are_totals(report):
    cluster = samples.softmax_report(retraces=0).clusters[0]
    assert (cluster.calls, cluster.seconds) == (1, pytest.approx(5.48e-3))
    assert [k.seconds for k in report.kernels[:4]] == pytest.approx([5.28e-3, 0.2e-3, 0.14e-3, 3.2e-3])


def test_first_trace_is_a_trace_and_no_retrace(report):
    assert len(report.traces) == 6
    assert report.traces[0].first and report.traces[0].cause == "first_call"
    assert [t.trace for t in report.retraces] == [2, 3, 4, 5, 6]
    retrace = report.retraces[0]
    assert (retrace.argument, retrace.before, retrace.after, retrace.lines) == ("lr", "0.1", "0.095", (10, 11))
    assert retrace.text == "lr was 0.1, then 0.095: each new Python number is traced again"
    assert retrace.seconds == pytest.approx(2.5e-3)


def test_nested_and_overlapping_preparation_counts_once():
    def at(ms, long):
        return {"start_ns": int(ms * samples.MS), "duration_ns": int(long * samples.MS)}

    plan = samples.softmax_plan().to_json()
    rec = samples.recorded(
        [
            events.Traced(
                function="In [7]", trace=1, causes=("shape",), argument="X", before="a", after="b", lines=(), fix=None,
                operations=1, **at(0, 10),
            ),
            events.PassRan(function="In [7]", trace=1, name="simplify", nodes_before=1, nodes_after=1, **at(2, 3)),
            events.PlanMade(function="In [7]", trace=1, plan=plan, **at(8, 4)),
            events.ProgramCompiled(
                function="In [7]", trace=1, cluster="cluster_0", program="", tier="quick", origin="compiled", **at(20, 5)
            ),
            events.ProgramCompiled(
                function="In [7]", trace=1, cluster="cluster_0", program="", tier="good", origin="compiled", **at(26, 50)
            ),
        ]
    )  # fmt: skip
    assert rec.report().retraces[0].seconds == pytest.approx(17e-3)


def test_host_operations_are_fallbacks_with_their_reason(report):
    fallback = report.fallbacks[0]
    assert (fallback.op, fallback.lines, fallback.calls) == ("ArgPartition", (8,), 1)
    assert str(fallback.reason) == "jitlab cannot compile it"
    assert fallback.reason.code == "no_loop_body"


def test_next_is_the_retraces_when_they_cost_most(report):
    assert report.verdict["next"] == {
        "text": "Make lr an array: it retraced 5 times", "code": "lr = np.asarray(lr, np.float32)",
        "advice": "as_array", "args": {"name": "lr", "often": "5 times"},
        "why": "lr was 0.1, then 0.095: each new Python number is traced again."
        " 12.5 ms lost.",
        "section": "retraces",
    }  # fmt: skip


def test_next_is_the_host_operation_when_that_costs_most():
    suggestion = samples.softmax_report(retraces=0).verdict["next"]
    assert suggestion["text"] == "ArgPartition is left to NumPy, 0.94 ms (10 % of the work)"
    assert (suggestion["section"], suggestion["advice"]) == ("clusters", "host_share")


def with_host_operation(reason, ms):
    """A cluster of 10 ms and a host operation that stays out for `reason`."""
    recording = samples.recorded(
        [e for e in samples.softmax_events(retraces=0, compare=False) if e.kind != "host-operation-ran"]
    )
    made = recording.plans[0].plan
    made["ops"] = [
        {**op, "reason": {"code": reason.name.lower(), "text": "why"}} if op["name"] == "argpartition" else op
        for op in made["ops"]
    ]
    recording.listen(
        events.HostOperationRan(
            function="In [7]", trace=1, operation="argpartition", op="ArgPartition", start_ns=0,
            duration_ns=int(ms * samples.MS),
        )
    )  # fmt: skip
    return recording.report().verdict["next"]


def test_next_names_no_host_operation_that_is_quick_or_meant_to_be_there():
    stays = samples.Stays
    assert with_host_operation(stays.NO_LOOP_BODY, 5.0)["text"].startswith("ArgPartition is left to NumPy")
    assert with_host_operation(stays.NO_LOOP_BODY, 0.4) is None  # under 5 % of the run
    for reason in (stays.DISALLOWED, stays.LEVEL, stays.JIT_OFF, stays.STATEFUL_RANDOM):
        assert with_host_operation(reason, 5.0) is None


def test_next_counts_all_retraces_of_an_argument():
    changes = [("argument_type", "f64[]", "0.5"), *(("python_value", str(0.5 + i), str(1.5 + i)) for i in range(4))]
    rec = samples.recorded(
        events.Traced(
            function="f", trace=i + 2, causes=(cause,), argument="lr", before=before, after=after, lines=(),
            fix=samples.written("as_array", "lr = np.asarray(lr)") if i else samples.Message("fix.same_kind", {"path": "lr"}),
            operations=1, start_ns=0, duration_ns=10**6 if i else 10**9,
        )
        for i, (cause, before, after) in enumerate(changes)
    )  # fmt: skip
    found = rec.report().verdict["next"]
    assert (found["text"], found["code"]) == ("Make lr an array: it retraced 5 times", "lr = np.asarray(lr)")


def test_nothing_next_when_nothing_is_lost():
    events_ = [e for e in samples.softmax_events(retraces=0) if not isinstance(e, events.HostOperationRan)]
    assert samples.recorded(events_).report().verdict["next"] is None


def test_a_fix_for_lost_compilation_needs_a_fix():
    rec = samples.recorded(e for e in samples.softmax_events(retraces=0, compare=False) if e.kind != "host-operation-ran")
    rec.listen(
        events.Traced(
            function="In [7]", trace=2, causes=("shape",), argument="X", before="f32[3]", after="f32[4]", lines=(), fix=None,
            operations=1, start_ns=0, duration_ns=10**9,
        )
    )  # fmt: skip
    assert rec.report().verdict["next"] is None


def retraced(cause, argument, before, after, fix, site=("", 0), done=None):
    event = events.Traced(
        function="f", trace=2, causes=(cause,), argument=argument, before=before, after=after, lines=(), fix=fix,
        operations=1, start_ns=0, duration_ns=10**9, site=site, done=done,
    )  # fmt: skip
    return samples.recorded([event]).report()


@pytest.mark.parametrize(("times", "fix"), [(3, None), (4, "reduce_retracing=True")])
def test_many_new_shapes_have_the_fix_that_a_replay_proved(times, fix):
    rec = samples.recorded(
        events.Traced(
            function="f", trace=n + 2, causes=("shape",), argument="z", before=f"f64[{n + 5}]", after=f"f64[{n + 6}]", lines=(),
            fix=samples.written("dynamic", "reduce_retracing=True", "option"), operations=1, start_ns=0, duration_ns=10**7,
            proof="make axis 0 of `z` dynamic: 5 traces become 2",
        )
        for n in range(times)
    )  # fmt: skip
    report = rec.report()
    assert {retrace.fix for retrace in report.retraces} == {fix}
    found = report.verdict["next"]
    assert (found and found["code"]) == fix
    assert fix is None or found["why"].endswith("lost. It is an option of jl.function, where f is made.")
    assert ("No fix found. It cost tracing only: the compiled code was used again." in str(report)) == (fix is None)


def test_where_a_fix_avoids_a_part_of_what_retraces_cost_both_figures_are_told():
    fix = samples.written("as_array", "k = np.asarray(k)")
    made = [
        events.Traced(
            function="f", trace=n + 2, causes=(cause,), argument=argument, before="1", after="2", lines=(), fix=fix,
            operations=1, start_ns=0, duration_ns=(n + 1) * 10**9,
        )
        for n, (cause, argument, fix) in enumerate([("python_value", "k", fix), ("shape", "z", None)])
    ]  # fmt: skip
    report = samples.recorded(made).report()
    assert report.verdict["next"]["why"].endswith("This could save 1.00 s of 3.00 s lost.")
    assert sum(retrace.seconds for retrace in report.retraces) == 3.0


def test_what_to_do_next_and_the_retraces_name_one_figure_and_one_example():
    specs = "input_signature=[jl.TensorSpec([None], np.float64)]"
    fixes = [None, *(samples.written("dynamic", option, "option") for option in ("reduce_retracing=True", specs))]
    made = [
        events.Traced(
            function="f", trace=n + 2, causes=("shape",), argument="x", before=f"f64[{32 << n}]", after=f"f64[{64 << n}]",
            lines=(), fix=fixes[min(n, 2)], proof="make axis 0 of `x` dynamic: 5 traces become 1" if n else "", operations=1,
            start_ns=0, duration_ns=10**9,
        )
        for n in range(5)
    ]  # fmt: skip
    report = samples.recorded(made).report()
    known = report.to_json()["retraces"]
    assert {retrace["proof"].rpartition(", ")[2] for retrace in known if retrace["proof"]} == {"saves 4.00 s"}
    assert "This could save 4.00 s of 5.00 s lost." in report.verdict["next"]["why"]
    assert report.verdict["next"]["why"].startswith("x: f64[32] → f64[64]") and "5 × x: f64[32] → f64[64]" in str(report)


def test_numbers_of_very_many_digits_are_told_in_short_unless_they_then_look_alike():
    def said(before, after):
        return retraced("python_value", "k", before, after, None).retraces[0].text

    assert said("0.1", "0.15000000000000002").startswith("k was 0.1, then 0.15: ")
    assert said("0.15000000000000002", "0.15").startswith("k was 0.15000000000000002, then 0.15: ")
    assert said("(1, 0.30000000000000004)", "(1, 1e-05)").startswith("k was (1, 0.3), then (1, 1e-05): ")


def test_a_fix_that_is_a_sentence_is_no_code_to_copy():
    report = retraced("python_value", "mode", "'a'", "'b'", samples.Message("fix.few_values", {"path": "mode"}))
    assert report.verdict["next"] == {
        "text": "mode retraced once", "code": None, "advice": "retraced", "args": {"name": "mode", "often": "once"},
        "why": "mode was 'a', then 'b': each new Python string is traced again."
        " Each value of mode is compiled separately: use few of them. 1.00 s lost.",
        "section": "retraces",
    }  # fmt: skip


def test_next_says_where_an_argument_is_changed():
    report = retraced("python_value", "k", "2", "3", samples.written("as_array", "k = np.asarray(k)"), site=("script.py", 12))
    assert report.verdict["next"]["why"].endswith("Write this before the call in script.py, line 12, not inside of f.")
    place = report.data["retraces"][-1]["place"]
    assert place == "Write this before the call in script.py, line 12, not inside of f."


def test_next_shows_the_call_as_it_is_written():
    call = "f(x, np.asarray(0.1 * step, np.float64))"
    report = retraced("python_value", "k", "2", "3", samples.written("as_array", call, "call"), site=("script.py", 12))
    next_ = report.verdict["next"]
    assert (next_["text"], next_["code"]) == ("Make k an array: it retraced once", call)
    assert next_["why"].endswith("Write the call in script.py, line 12 like this; nothing changes inside of f.")


def test_a_fix_in_words_is_a_sentence_of_next():
    report = retraced("closure", "k", "2", "3", samples.written("hoist", "define `f` once, before the loop", "words"))
    assert report.verdict["next"]["why"].endswith(". Define `f` once, before the loop. 1.00 s lost.")


def test_a_retrace_that_was_the_last_of_its_kind_is_no_advice():
    once = samples.Message("done.array", {"names": "`k`"})
    report = retraced("argument_type", "k", "2", "f64[]", None, done=once)
    assert report.retraces[0].fix is None and report.verdict["next"] is None
    assert "an array from now on. Nothing to fix." in " ".join(str(report).split())


def test_that_nothing_is_to_do_is_not_said_where_no_fix_was_found():
    report = retraced("shape", "X", "f32[6]", "f32[5]", None)
    assert report.retraces[0].fix is None and report.verdict["next"] is None
    assert "No fix found. It cost tracing only" in str(report) and "Nothing to fix" not in str(report)


def test_colours_follow_first_appearance_and_plans_alike_share_them(report):
    colors = [(c["color"], c["pattern"]) for c in report.to_json()["clusters"]]
    assert colors == [(0, "solid"), (1, "diagonal")] * 6


def test_why_and_why_not(report):
    assert report.why("exp", "sum").fused
    assert str(report.why("Exp", "Sum")) == "Exp (line 5) and Sum (line 6) are one kernel, k0 of cluster_0."
    cut = report.why_not("div", "take")
    assert (cut.code, cut.would_fuse_if) == ("read_again", "each element were read by the iteration that computes it")
    assert report.why_not("matmul", "log").code == "read_again"  # on the way from one to the other
    assert report.why_not("div", "sub_1").code == "cycle"
    assert report.why_not("exp", "argpartition").code == "no_loop_body"
    both = "Max (line 4) and Neg (line 7) are compiled together, in cluster_0, but not in one kernel. "
    assert report.why("max", "neg").text.startswith(both)
    with pytest.raises(OptionError, match="no operation 'expp'(.|\n)*exp"):
        report.why("expp", "sum")


def test_ir_names_what_there_is(report):
    with pytest.raises(OptionError, match="no stage 'hlo'"):
        report.ir("cluster_0", "hlo")
    with pytest.raises(OptionError, match="no cluster 'cluster_99'"):
        report.ir("cluster_99")


def test_html_that_cannot_be_written_says_so(report, tmp_path):
    with pytest.raises(OptionError, match="can't be written\n  why: No such file"):
        report.to_html(tmp_path / "none" / "r.html")


def test_json_is_plain_and_a_copy(report):
    data = report.to_json()
    assert json.loads(json.dumps(data)) == data
    data["ops"].clear()
    assert report.ops
    assert list(data)[:10] == [
        "version", "cell", "verdict", "plans", "ops", "clusters", "kernels", "boundaries", "retraces", "fallbacks"
    ]  # fmt: skip


def test_nothing_but_times_changes_between_two_runs(report):
    assert samples.softmax_report().to_json() == report.to_json()
    assert samples.softmax_report()._repr_mimebundle_() == report._repr_mimebundle_()


def test_bundle_has_three_forms_and_fits(report):
    bundle = report._repr_mimebundle_()
    assert list(bundle) == [MIME, "text/html", "text/plain"]
    assert bundle["text/plain"] == str(report)
    assert len(json.dumps(bundle, ensure_ascii=False).encode()) <= config.saved_bytes


def bytes_in_a_file(bundle):
    """What a cell's output adds to a notebook file, which is JSON with a line for each item; of a text, for each line."""
    lines = {key: value.splitlines(keepends=True) if isinstance(value, str) else value for key, value in bundle.items()}
    book = {"cells": [{"outputs": [{"data": lines}]}]}
    return len(json.dumps(book, ensure_ascii=False, indent=1).encode())


@pytest.mark.slow
def test_a_huge_report_is_cut_to_size_and_says_so():
    nodes = [samples.node(f"sin_{i}", "Sin", line=i % 90 + 1) for i in range(20_000)]
    stays = {n: samples.Reason(samples.Stays.NO_LOOP_BODY, "jitlab cannot compile it") for n in nodes}
    plan = samples.plan_of(nodes, [], stays).to_json()
    rec = samples.recorded([events.PlanMade(function="In [7]", trace=1, plan=plan, start_ns=0, duration_ns=0)])
    for n in nodes[:5000]:
        rec.listen(
            events.HostOperationRan(function="In [7]", trace=1, operation=n.name, op="Sin", start_ns=0, duration_ns=1000)
        )
    bundle = rec.report()._repr_mimebundle_()
    assert len(json.dumps(bundle, ensure_ascii=False).encode()) <= config.saved_bytes
    assert bundle[MIME]["omitted"]["ops"] > 19_000
    assert 60_000 < bytes_in_a_file(bundle) <= config.saved_bytes
    assert bundle[MIME]["verdict"]["operations"] == 20_000


def test_a_cluster_of_very_many_kernels_is_cut_to_size_and_its_slowest_stay():
    nodes = []
    for i in range(1500):
        nodes.append(samples.node(f"sin_{i}", "Sin", nodes[-1:], line=i + 1))
    cluster = samples.Cluster("cluster_0", nodes, [], nodes[-1:], samples.Reason(samples.Joined.AUTO, "joined"), None)
    kernels = [samples.KernelInfo(f"k{i}", "cluster_0", (n,), "nest", 8000, 8000, 1000) for i, n in enumerate(nodes)]
    reason = samples.Reason(samples.NotFused.READ_AGAIN, "it is stored, and what is read again has to lie in memory")
    flip = samples.said("it were read once")
    edges = [samples.Edge(a, b, reason, 8000, flip) for a, b in zip(nodes, nodes[1:], strict=False)]
    plan = samples.plan_of(nodes, [cluster], {}, kernels, edges, function="long").to_json()
    happened = [events.PlanMade(function="long", trace=1, plan=plan, start_ns=0, duration_ns=0)]
    ran = {"function": "long", "trace": 1, "cluster": "cluster_0", "start_ns": 0, "duration_ns": 10**9}
    happened.append(events.ClusterRan(**ran, kernels_ns=tuple(i * 100 for i in range(1500))))
    report = samples.recorded(happened).report()
    assert len(str(report)) < 25_000 and "more kernels, each faster than these" in str(report)
    assert len(report.to_svg()) < 40_000 and "k1499" in str(report) and "k1499" in report.to_svg()
    bundle = report._repr_mimebundle_()
    assert bytes_in_a_file(bundle) <= config.saved_bytes
    (saved,) = read_report(bundle).clusters  # the JSON has room for what matters beside them
    assert saved.kernels and set(saved.kernels) <= {kernel.name for kernel in read_report(bundle).kernels}
    assert bundle[MIME]["clusters"][0]["op_count"] == bundle[MIME]["clusters"][0]["kernel_count"] == 1500
    assert str(read_report(bundle)).startswith(str(report)[:40])


def test_an_empty_recording_reports_that():
    report = samples.recorded([]).report()
    assert report.verdict["lead"] == "Nothing to compile"
    assert report.verdict["seconds"] is None
    assert str(report) == "Nothing to compile"
    assert "No NumPy operation" in report.to_svg()
    assert report.to_html().startswith("<!doctype html>")
    assert repr(report) == "<Report: Nothing to compile>"


def test_statements_python_ran_are_named(tmp_path):
    file = tmp_path / "cell.py"
    file.write_text("x = 1\nimport scipy\n")
    rec = samples.recorded([])
    for _ in range(3):
        rec.listen(
            events.StatementRan(
                reason="statement", said=samples.said("an import"), lines=((str(file), 2, 0, 2, 12),), start_ns=5,
                duration_ns=1000,
            )
        )
    report = rec.report()
    assert [(s.text, s.lines, s.calls) for s in report.statements] == [("import scipy", (2,), 3)]
    assert "◇ import scipy, Python, line 2" in str(report)
    assert "Run by Python: an import" in str(report)


def test_what_has_another_length_each_time_is_one_entry_with_its_first_lengths():
    @jl.function
    def picked(rows, mask):
        return (rows * 2)[mask][::2].sum(axis=0)  # how many that are is no polynomial: a recording is for one length

    rows = np.arange(40.0).reshape(20, 2)
    with jl.record() as rec:
        for n in (3, 4, 5, 6, 7, 8, 9, 10):
            picked(rows, np.arange(20) < n)
    report = rec.report()
    (statement,) = report.statements
    assert statement.text == "picked(rows, np.arange(20) < n)" and statement.calls == 4
    assert "picked, because the length of `(rows * 2)[mask]` (line " in str(statement.reason)
    assert "changes from run to run: 3, 4, 5, …" in str(statement.reason)
    assert "read_item" not in str(report) and "float64[3" not in str(report)


def test_statements_stand_in_program_order_and_in_the_facts():
    rec = samples.recorded(samples.softmax_events(retraces=0, compare=False))
    for line, ms in ((1, 0.5), (7, 2.0), (20, 0.0)):
        rec.listen(
            events.StatementRan(
                reason="statement", said=samples.said(f"statement of line {line}"), lines=((samples.CELL, line, 0, line, 9),),
                start_ns=5,                duration_ns=int(ms * samples.MS),
            )
        )  # fmt: skip
    report = rec.report()
    assert (report.verdict["statements"], report.verdict["statement_seconds"]) == (3, pytest.approx(2.5e-3))
    assert "3 statements run by Python, 2.5 ms" in " ".join(str(report).split())
    order = [line.split(",")[0][2:] for line in str(report).splitlines() if line.startswith(("■", "◇"))]
    assert order == [
        "statement of line 1", "cluster_0", "statement of line 7", "ArgPartition", "cluster_1", "statement of line 20"
    ]  # fmt: skip


def test_statements_that_took_next_to_nothing_are_counted_without_their_time():
    rec = samples.recorded(samples.softmax_events(retraces=0, compare=False))
    rec.listen(events.StatementRan(reason="statement", said=samples.said("x"), lines=(), start_ns=5, duration_ns=10_000))
    verdict = rec.report().verdict
    assert verdict["statements"] == 1 and "statement_seconds" not in verdict
    assert "· 1 statement run by Python ·" in " ".join(str(rec.report()).split())


def ran(reason, span, ms):
    return events.StatementRan(
        reason=reason, said=samples.said(reason), lines=((samples.CELL, *span),), start_ns=5, duration_ns=int(ms * samples.MS)
    )


def test_a_statement_that_ran_in_steps_or_for_two_reasons_is_one():
    rec = samples.recorded([])
    rec.listen(ran("value", (3, 6, 3, 30), 1))  # the f-string of a print
    rec.listen(ran("effect", (3, 0, 3, 31), 2))
    rec.listen(ran("error", (5, 0, 6, 12), 1))
    rec.listen(ran("effect", (5, 0, 6, 12), 3))
    rec.listen(ran("effect", (7, 0, 7, 5), 1))
    found = [(s.lines, s.reason.code, s.calls, round(s.seconds * 1e3)) for s in rec.report().statements]
    assert found == [((3,), "effect", 1, 3), ((5,), "effect", 2, 4), ((7,), "effect", 1, 1)]


def test_who_moves_little_is_not_bound_by_memory():
    peaks = Peaks(bytes_per_second=1e10, flops_per_second=1e11)
    kernel = {"bytes_read": 30_000, "bytes_written": 30_000, "flops": 10, "seconds": 1e-5, "calls": 1}
    assert bound(kernel, peaks) == (None, None)
    assert bound({**kernel, "bytes_written": 40_000}, peaks) == ("memory", pytest.approx(0.7))
    assert bound({**kernel, "flops": 900_000}, peaks)[0] == "compute"
    assert bound({**kernel, "bytes_written": 40_000, "seconds": 5e-6}, peaks) == ("cache", None)  # 14 GB/s of 10


def test_a_report_is_made_of_its_json_alone(report):
    again = Report(json.loads(json.dumps(report.to_json())))
    assert str(again) == str(report)
    assert again.to_svg() == report.to_svg()


def test_plot_has_a_bar_a_kernel():
    figure = samples.softmax_report(retraces=0).plot()
    assert list(figure.data[0].x) == ["k0", "k1", "k2", "k3", "ArgPartition (NumPy)"]
    assert len(figure.data[3].x) == 4


def test_the_plot_draws_the_limits_that_the_report_tells_and_who_works_in_the_caches():
    data = samples.softmax_report(retraces=0).to_json()
    slow, fast = data["kernels"][:2]
    for kernel, seconds in ((slow, 1.0), (fast, 1e-3)):
        kernel.update(bytes_read=10**9, bytes_written=0, flops=10**9, calls=1, seconds=seconds)
    data["peaks"] = {"bytes_per_second": 1e10, "flops_per_second": 1e11}
    figure = Report(data).plot()
    texts = list(figure.data[3].text)
    assert slow["name"] in texts and f"{fast['name']}, in cache" in texts
    roof = figure.data[4]
    assert roof.name == "this machine: 10.0 GB/s of memory, 100 GFLOP/s"
    assert list(roof.y)[1:] == [1e11, 1e11] and list(roof.x)[1] == 10
    assert [trace.name for trace in figure.data if trace.showlegend is not False][:2] == ["bytes read", "bytes written"]


def test_a_figure_stands_on_the_ground_of_any_theme():
    layout = samples.softmax_report(retraces=0).plot().layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0, 0, 0, 0)"
    ink = luminance(layout.font.color)
    for ground in ("#ffffff", "#111111"):
        low, high = sorted((ink, luminance(ground)))
        assert (high + 0.05) / (low + 0.05) > 4, ground


def luminance(color):
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_lists_read_as_a_line_for_each_thing():
    report = samples.softmax_report(retraces=1)
    lead = "In [7] #2, lines 10–11: lr was 0.1, then 0.095: each new Python number is traced again"
    assert str(report.retraces).startswith(lead)
    assert str(report.clusters).splitlines()[0] == "cluster_0, lines 3–7: 10 operations, 2 kernels, 5.5 ms"
    assert repr(report.clusters).startswith("[\n  <cluster_0, lines 3–7: 10 operations")
    assert str(samples.softmax_report(retraces=0).retraces) == "none" and report.retraces == list(report.retraces)


def test_the_results_of_a_host_call_are_no_operations():
    def op(name, kind, inputs, cluster=None):
        return {
            "name": name, "plan": "f #1", "op": kind, "cluster": cluster, "kernel": None, "reason": None, "lines": [],
            "shape": [], "dtype": "float64", "inputs": inputs, "scope": None, "seconds": None,
        }  # fmt: skip

    edge = {"producer": "item", "consumer": "exp", "reason": {"code": "not_compiled", "text": "why"}, "bytes": 8}
    ops = [op("svd", "Svd", ["x"]), op("item", "Item", ["svd"]), op("exp", "Exp", ["item"], "cluster_0")]
    plan = without_items({"ops": ops, "boundaries": [edge, {**edge, "producer": "svd", "consumer": "item"}], "clusters": []})
    assert [(made["name"], made["inputs"]) for made in plan["ops"]] == [("svd", ["x"]), ("exp", ["svd"])]
    assert [(made["producer"], made["consumer"]) for made in plan["boundaries"]] == [("svd", "exp")]


def plain(x):
    return np.tanh(x) + 1


class Model:
    def plain(self, x):
        return np.tanh(x) + 1

    @jl.function
    def compiled(self, x):
        return np.tanh(x) + 1


@pytest.mark.parametrize("function", [plain, Model().plain], ids=["function", "method"])
def test_explaining_a_plain_function_says_that_it_is_not_compiled_and_what_would_compile_it(function):
    said = "plain is plain Python, so nothing is compiled: put @jl.jit above it, or ask jl.explain(jl.jit(plain), ...)"
    report = jl.explain(function, np.ones(3))
    assert report.verdict["lead"] == said and " ".join(str(report).split()) == said
    assert len(jl.explain(jl.jit(function), np.ones(3)).kernels) == 1  # it is so


@pytest.mark.parametrize(
    ("function", "start"),
    [(lambda x: x + 1, "This function is plain Python"), (np.tanh, "tanh is not compiled by itself"), (len, "len is not")],
)
def test_explaining_what_has_no_decorator_says_so(function, start):
    assert jl.explain(function, np.ones(3)).verdict["lead"].startswith(start)


def test_a_plain_function_that_calls_a_compiled_one_is_explained_by_it():
    compiled, tried = jl.function(plain), jl.jit(lambda x: str(x))
    assert jl.explain(lambda x: compiled(x) * 2, np.ones(3)).verdict["lead"] == "2 of 2 operations compiled"
    assert "plain Python" not in str(jl.explain(lambda x: tried(x), np.ones(3)))
    assert "plain Python" not in str(jl.explain(Model().compiled, np.ones(3)))

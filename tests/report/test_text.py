import re
from pathlib import Path

import numpy as np
import pytest
import report_samples as samples

import jitlab
import jitlab as jl
from jitlab import events, messages
from jitlab.ir import Copied, Copy
from jitlab.messages import Message
from jitlab.report.render import text as rendering
from jitlab.report.render import wording
from jitlab.runtime.compiled import forget_compiled


def test_text_of_six_runs_compared_with_numpy(golden):
    assert str(samples.softmax_report()) == golden


def test_text_of_one_run(golden):
    assert str(samples.softmax_report(retraces=0, compare=False)) == golden


def test_text_keeps_to_a_hundred_columns_without_colour_codes():
    for text in (str(samples.softmax_report()), str(samples.softmax_report(retraces=0))):
        assert max(map(len, text.splitlines())) <= 100
        assert "\x1b" not in text


def test_types_are_short_in_sentences():
    assert wording.short_type("float32[60000, 784] and 3") == "f32[60000,784] and 3"
    assert wording.short_type("my_float32[x]") == "my_float32[x]"


@pytest.mark.parametrize(
    "numbers, text",
    [
        ([], ""), ([8], "line 8"), ([3, 5, 4], "lines 3–5"), ([8, 9, 11], "lines 8–9 and 11"),
        ([1, 3, 5], "lines 1, 3 and 5"),
    ],
)  # fmt: skip
def test_lines(numbers, text):
    assert wording.line_text(numbers) == text


def test_a_kernel_of_thousands_of_operations_stays_short():
    nodes = [samples.node(f"sin_{i}", "Sin", line=1) for i in range(5000)]
    cluster = samples.Cluster("cluster_0", nodes, [], nodes[-1:], samples.Reason(samples.Joined.AUTO, "auto"))
    kernels = [samples.KernelInfo("k0", "cluster_0", tuple(nodes), "nest", 1, 1, 1)]
    plan = samples.plan_of(nodes, [cluster], {}, kernels).to_json()
    report = samples.recorded([events.PlanMade(function="f", trace=1, plan=plan, start_ns=0, duration_ns=0)]).report()
    assert "k0 Sin" in str(report) and len(str(report)) < 1000  # one line of the program, however often it is turned
    assert len(report.to_svg()) < 5000
    for i, op in enumerate(report.data["ops"]):
        op["written"] = f"sin(x[{i}])"
    assert "+4960" in str(report) and len(str(report)) < 2000
    assert len(report.to_svg()) < 5000 and "+49" in report.to_svg()


def unrolled(code, said, times=1, line=3, iterations=40):
    lines = ((samples.CELL, line, 0, line, 20),)
    return [events.LoopKept(function="f", lines=lines, code=code, said=said, iterations=iterations)] * times


def test_a_loop_that_was_not_rolled_is_told_with_line_iterations_and_reason():
    happened = unrolled("effect", Message("refused.changes_a", {"name": "append", "kind": "list"}), times=2)
    report = samples.recorded(happened).report()
    text = str(report)
    assert "1 loop run iteration by iteration" in text.splitlines()[0]
    assert "Iteration by iteration: loop (line 3, 40 iterations, recorded 2 times)" in text
    assert "  append changes a list\n" in text + "\n"
    (loop,) = report.loops
    assert (loop.lines, loop.iterations, loop.times, loop.reason.code) == ((3,), 40, 2, "effect")
    args = {"name": "append", "kind": "list"}
    detail = {"code": "effect", "text": str(loop.reason), "detail": "changes_a", "args": args}
    assert report.to_json()["loops"][0]["reason"] == detail
    assert str(report.loops) == f"loop, line 3, 40 iterations: {loop.reason}"
    assert "1 loop run iteration by iteration" in report.to_svg() and "Loops run iteration by iteration" in report.to_html()


def test_many_loops_that_were_not_rolled_stay_short():
    happened = [event for line in range(1, 30) for event in unrolled("value", samples.said(""), line=line)]
    text = str(samples.recorded(happened).report())
    assert text.count("Iteration by iteration: ") == 6 and "… and 23 more loops" in text


def refusal_codes():
    """The codes of the refusals that the sources write out."""
    call = re.compile(r'(?:NotRolled\(|NotReplayable\(|\.refusal\(|refuse\([\w.()]+, )\s*"(\w+)"')
    return {code for path in Path(jitlab.__file__).parent.rglob("*.py") for code in call.findall(path.read_text())}


def test_every_reason_not_to_roll_has_its_clause():
    codes = refusal_codes()
    assert {"effect", "extents", "index_value", "kind", "shape"} <= codes
    assert codes | {"check", "error"} <= messages.codes("loop")
    assert wording.loop_reason("check", samples.said("np.linalg.inv.")).endswith(": np.linalg.inv")
    assert wording.loop_reason("of_another_kind", samples.said("")) == "of another kind"


def test_a_rolled_loop_is_called_as_in_the_program():
    def scan(x):
        for i in range(1, 40):
            x[i] = x[i - 1] * 0.5 + x[i]
        return x

    report = jl.explain(jl.function(scan), np.ones(40))
    line = scan.__code__.co_firstlineno + 1
    row = next(row for row in str(report).splitlines() if row.startswith("  k0"))
    assert f"for i (line {line})" in row and "Item" not in row and "While" not in row
    assert report.to_json()["ops"][0]["loop"] == "for i in range(1, 40)"
    assert "for i (line" in report.to_svg()


def test_copies_that_numpy_does_not_make_stand_with_their_cluster():
    def shifted(a):
        b = a * 1
        b[1:] = b[:-1] * 2
        return b

    report = jl.explain(jl.function(shifted), np.ones(40))
    (copy,) = report.to_json()["copies"]
    assert copy["cluster"] == report.clusters[0].name and copy["bytes"] == 8  # what is not assigned
    assert copy["reason"]["text"].startswith(("Copied: ", "Stored: ")) and f"  // {copy['reason']['text']}" in str(report)
    assert ">Copies<" in report.to_html()


def test_copies_in_the_body_of_a_loop_stand_with_their_cluster():
    def shifted(a):
        for _ in range(30):
            a[1:-1] = a[:-2] + a[2:]
        return a

    report = jl.explain(jl.function(shifted), np.ones(40))
    copies = [copy for copy in report.to_json()["copies"] if copy["reason"]["code"] == "overlap"]
    assert [copy["cluster"] for copy in copies] == [report.clusters[0].name]
    assert f"(line {shifted.__code__.co_firstlineno + 2})" in str(report)


def test_an_array_that_a_loop_makes_anew_is_called_by_its_name_where_it_is_copied():
    def spread(u):
        for _ in range(50):
            lap = -4 * u
            lap[1:, :] += u[:-1, :]
            lap[:-1, :] += u[1:, :]
            u = u + 0.1 * lap
        return u, lap

    report = jl.explain(jl.jit(spread), np.ones((40, 40)))
    copies = {copy["reason"]["code"]: copy["reason"]["args"]["name"] for copy in report.to_json()["copies"]}
    assert copies["made_elsewhere"] == "`lap`"


def test_of_several_statements_in_a_line_each_is_told_by_its_own_text(tmp_path):
    def of_python(x, a, b):
        a.seek(1); b.seek(2)  # fmt: skip  # noqa: E702
        return x + 1

    with open(tmp_path / "a", "w") as a, open(tmp_path / "b", "w") as b:
        report = jl.explain(jl.jit(of_python), np.ones(4), a, b)
    assert [statement.text for statement in report.statements] == ["a.seek(1)", "b.seek(2)"]


def test_of_many_copies_of_a_cluster_some_are_told():
    plan = samples.softmax_plan()
    node = plan.clustering.clusters[0].nodes[0]
    plan.copies = [Copy(node, samples.Reason(Copied.OVERLAP, f"copy {i}"), 8) for i in range(9)]
    made = events.PlanMade(function="f", trace=1, plan=plan.to_json(), start_ns=0, duration_ns=0)
    text = str(samples.recorded([made]).report())
    assert text.count("// Stored: copy") == 6 and "// and 3 more copies" in text


def test_traces_that_are_alike_are_counted_once_and_named_by_their_numbers():
    @jl.function
    def scaled(x, k):
        return np.exp(x) * k + x

    with jl.record() as rec:
        for k in (0.5, 1, 2.0, 4.0):  # times 1 is left out: that plan is another
            scaled(np.ones(100), k)
    text = str(rec.report())
    assert "2 clusters · 2 kernels" in text
    assert "scaled, traces 1 and 3–4, which differ in sizes or values only" in text and "scaled #2" in text


def test_first_traces_of_functions_of_one_name_are_said_to_be_of_several():
    with jl.record() as rec:
        for k in (2, 3):
            jl.function(lambda x, k=k: np.exp(x) * k)(np.ones(100))
        jl.function(np.sin)(np.ones(100))
    text = " ".join(str(rec.report()).split())
    assert "<lambda>, trace 1 of 2 functions, which differ in sizes or values only" in text
    assert "<lambda>: 2 calls of 2 traces of 2 functions." in text


def test_a_change_from_nothing_has_no_arrow():
    with jl.record() as rec:
        for _ in range(2):
            jl.function(lambda x: np.exp(x))(np.ones(100))
    assert "1 × <lambda>: made again of the same code" in str(rec.report())


@pytest.mark.parametrize(
    "bound, share, text",
    [
        ("memory", 0.93, "memory-bound, 93 % of peak"),
        ("memory", None, "memory-bound"),
        ("memory", 0.05, ""),
        ("compute", 0.1, ""),
        (None, None, ""),
    ],
)
def test_only_what_comes_near_a_peak_is_bound_by_it(bound, share, text):
    assert wording.bound_text({"bound": bound, "of_peak": share}) == text


def test_a_retrace_that_no_change_of_the_arguments_avoids_says_so(monkeypatch):
    monkeypatch.setattr(jitlab.config, "cache", False)
    forget_compiled()

    @jl.function
    def cleared(x, n):
        y = x * 2
        y[n:] = 0
        return y

    with jl.record() as rec:
        for n in (3, 5, 7):
            cleared(np.ones(20), n)
    text = " ".join(str(rec.report()).split())
    assert "2 × n: 3 → 5 (+1 more) (a Python number" in text
    assert "No fix found: the changes that were tried do not avoid it." in text and "try:" not in text


def test_an_object_that_is_another_each_time_is_to_be_made_once():
    class Scale:
        def __init__(self, by):
            self.by = by

    @jl.jit
    def scaled(x, scale):
        return x * scale.by

    with jl.record() as rec:
        for n in (3, 5, 7):
            scaled(np.ones(20), Scale(n))
    report = rec.report()
    assert "each object is traced separately" in report.retraces[0].text
    assert "Make scale once, outside, and use the same object each time." in str(report)


def test_lines_of_an_edge_are_a_range():
    @jl.function
    def turned(x):
        return (
            np.roll(x, 1)
            + np.roll(x, 2)
        )

    with jl.record() as rec:
        turned(np.ones(100))
    assert not re.search(r"\(lines? \d+, ", str(rec.report()))


def test_a_long_note_goes_on_beside_a_long_name_and_not_below_it():
    name, note = "k0 " + ", ".join(["np.exp(x)"] * 9), "memory-bound, 37 % of peak, on up to 2 threads, in 477 pieces"
    lines = rendering._timed(name, 0.0125, note)
    assert len(lines) == 3 and lines[0].index("memory-bound") == lines[1].index("threads") > lines[1].index("np.exp(x)")
    assert max(map(len, lines)) <= rendering.WIDTH

"""What each line cost: a kernel over several lines has its time once, for all of them together."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.report import Report
from jitlab.report.build.lines import home_file, in_words, line_costs, slowest, where_text


def helper(a):
    return a[:, None] - a[None, :]


@jl.jit
def program(x):
    d = helper(x)
    w = np.exp(-d * d)

    # one loop with the line below
    s = w.sum(axis=0)
    return np.sort(w / s, axis=0)


@pytest.fixture(scope="module")
def report():
    with jl.record() as rec:
        program(np.random.default_rng(0).random(300))
    return rec.report()


def test_the_lines_of_a_kernel_say_once_what_they_cost_together(report):
    lines = {line.text.strip(): line for line in report.lines}
    first = lines["return a[:, None] - a[None, :]"]
    assert first.what == "k0" and len(first.span) > 1 and first.cost.startswith("k0 ") and "lines" in first.cost
    for text in ("d = helper(x)", "# one loop with the line below", ""):
        assert lines[text].cost == ""
    assert lines["w = np.exp(-d * d)"].cost == f"k0 with line {first.line}"
    assert sum(line.seconds or 0 for line in report.lines) == pytest.approx(sum(k.seconds for k in report.kernels))


def test_the_verdict_names_the_slowest_lines_and_how_many_kernels_they_are(report):
    found = report.verdict["slowest"]
    assert found["seconds"] == max(found["seconds"], *(k.seconds for k in report.kernels))
    assert f"slowest: {in_words(found)}" in str(report)
    assert "slowest: " in report.to_svg()
    assert "with line" in report.to_html()


def made(**changes):
    """A report of one kernel over lines 4 to 9, a call of NumPy and a statement, as a file would have it."""
    ops = [
        {"name": f"op{n}", "op": "Exp", "plan": "f #1", "cluster": "cluster_0", "kernel": "k0", "lines": [["f.py", n, 0, n, 5]]}
        for n in (4, 7, 9)
    ]
    kernel = {"name": "k0", "plan": "f #1", "cluster": "cluster_0", "ops": ["op4", "op7", "op9"], "seconds": 0.006}
    data = {
        "plans": [{"name": "f #1", "like": "f #1"}], "ops": ops, "kernels": [kernel],
        "fallbacks": [{"op": "Sort", "plan": "f #1", "lines": [["f.py", 8, 0, 8, 9]], "seconds": 0.001}],
        "statements": [{"lines": [["f.py", 2, 0, 2, 9]], "seconds": 0.001}],
        "sources": [{"file": "f.py", "first": 1, "lines": [f"line {n}" for n in range(1, 10)]}],
    }  # fmt: skip
    return {**data, **changes}


def test_what_is_slowest_says_all_its_lines():
    assert in_words(slowest(made())) == "lines 4, 7 and 9 (one kernel), 6.0 ms, 75 % of the work"
    costs = {line.line: line.cost for line in line_costs(made())}
    assert costs == {
        1: "", 2: "Python 1.0 ms", 3: "", 4: "k0 6.0 ms, lines 4, 7 and 9", 5: "", 6: "", 7: "k0 with line 4", 8: "host 1.0 ms",
        9: "k0 with line 4",
    }  # fmt: skip


def test_a_loop_that_is_one_kernel_is_said_to_be_one():
    data = made()
    data["ops"][0] |= {"name": "loop", "op": "While"}
    data["kernels"][0]["ops"][0] = "loop"
    assert in_words(slowest(data)) == "lines 4, 7 and 9 (the whole loop), 6.0 ms, 75 % of the work"
    data["ops"] += [{**data["ops"][1], "name": "other", "kernel": "k1"}, *({**op, "plan": "f #2"} for op in data["ops"])]
    data["kernels"] += [{**data["kernels"][0], "plan": "f #2"}]
    assert slowest(data)["text"] == "lines 4, 7 and 9 (2 kernels)"


def looping(x):
    s = x
    for k in range(20):
        s = np.sin(s) * 2 - k
        s = s + np.tanh(s)
    return s


def test_the_slowest_lines_of_a_loop_that_was_kept_are_the_whole_loop():
    found = jl.explain(jl.jit(looping), np.random.default_rng(0).random(3000)).verdict["slowest"]
    first = looping.__code__.co_firstlineno
    assert found["text"] == f"lines {first + 2}–{first + 4} (the whole loop)"


def test_a_line_of_another_cell_says_of_which():
    data = made() | {"cell": {"id": "calls"}}
    data["sources"] = [{"file": "f.py", "cell": "defines", "first": 4, "lines": [""] * 6}]
    assert slowest(data)["text"] == "lines 4, 7 and 9 of f.py (one kernel)"
    data["sources"][0]["cell"] = "calls"
    assert slowest(data)["text"] == "lines 4, 7 and 9 (one kernel)"


def test_a_helper_in_another_file_is_said_too():
    data = made()
    data["ops"][2]["lines"] = [["g.py", 3, 0, 3, 9]]
    assert slowest(data)["text"] == "lines 4 and 7 and line 3 of g.py (one kernel)"
    assert home_file(data) == "f.py"
    assert where_text([("<cell 2>", 3), ("<cell 7>", 5), ("<cell 7>", 4)], "<cell 7>") == "lines 4–5 and line 3 of In [2]"
    data["sources"] = [{"file": "g.py", "first": 3, "lines": ["return x"]}]
    assert [line.cost for line in line_costs(data)] == ["k0 with f.py, line 4"]


def test_plans_that_are_alike_are_one_kernel():
    data = made(plans=[{"name": "f #1", "like": "f #1"}, {"name": "f #2", "like": "f #1"}], fallbacks=[], statements=[])
    data["ops"] += [{**op, "plan": "f #2"} for op in data["ops"]]
    data["kernels"] = data["kernels"] + [{**data["kernels"][0], "plan": "f #2", "seconds": 0.004}]
    assert in_words(slowest(data)) == "lines 4, 7 and 9 (one kernel), 10.0 ms"


def test_nothing_that_was_timed_is_no_answer():
    nothing = {"seconds": None}
    data = made(kernels=[made()["kernels"][0] | nothing], fallbacks=[], statements=[])
    assert slowest(data) is None
    assert {line.cost for line in line_costs(data)} == {"", "in k0"}


def test_a_report_that_was_stored_tells_the_same(report):
    assert [line.cost for line in Report(report.to_json()).lines] == [line.cost for line in report.lines]

"""What-if, sweep and measure asked by the panel, of cells that have run."""

import ast
import json
import sys
import threading

import numpy as np
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jitlab.api.check.replaying import Took
from jitlab.config import config
from jitlab.notebook.extension import load_ipython_extension, session_of, unload_ipython_extension
from jitlab.notebook.magics.plain_cell import PlainCell
from jitlab.notebook.rpc import inputs, measuring_requests
from jitlab.notebook.rpc.requests import answer
from jitlab.support.limits import OutOfTimeError

CELL = """\
%%jit
m = x.max(axis=1, keepdims=True)
e = np.exp(x - m)
s = e.sum(axis=1, keepdims=True)
p = e / s
"""


class Asked:
    """A shell whose jobs are heard."""

    def __init__(self, shell, monkeypatch):
        self.shell, self.session = shell, session_of(shell)
        self.states, self.changed = [], threading.Condition()
        monkeypatch.setattr(self.session.jobs, "_tell", self.hear)

    def hear(self, state):
        with self.changed:
            self.states.append(state)
            self.changed.notify_all()

    def run(self, source, cell="cell-a"):
        return self.shell.run_cell(source, store_history=True, cell_id=cell).raise_error()

    def ask(self, **body):
        return answer(self.session, json.loads(json.dumps({"cell": "cell-a", **body})))

    def result(self, **body):
        reply = self.ask(**body)
        assert "job" in reply, reply

        def ended():
            return next((s for s in self.states if s["id"] == reply["job"] and s["state"] in ("done", "failed")), None)

        with self.changed:
            assert self.changed.wait_for(ended, 20)
        state = json.loads(json.dumps(ended()))
        assert state["state"] == "done", state["error"]
        return state["result"]

    def failure(self, **body):
        """Why there is no result, at once or in the end."""
        reply = self.ask(**body)
        if "job" not in reply:
            return reply["error"]

        def ended():
            return next((s for s in self.states if s["id"] == reply["job"] and s["state"] in ("done", "failed")), None)

        with self.changed:
            assert self.changed.wait_for(ended, 20)
        return ended()["error"]

    @property
    def plan(self):
        return self.session.report_of(self.session.cells["cell-a"]).data["plans"][-1]["name"]


@pytest.fixture
def asked(monkeypatch):
    InteractiveShell.clear_instance()
    settings = Config()
    settings.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=settings)
    shell.display_pub = CapturingDisplayPublisher()
    shell.user_ns.update(np=np, x=np.random.default_rng(0).random((60, 40)))
    load_ipython_extension(shell)
    monkeypatch.setattr(measuring_requests, "ROUNDS_SECONDS", 0.02)
    monkeypatch.setattr("jitlab.api.whatif.whatif.Load.others", lambda load: None)  # of the machine that tests run on
    yield Asked(shell, monkeypatch)
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


def test_a_cut_is_measured_and_the_cell_is_told_how_to_keep_it(asked):
    asked.run(CELL)
    result = asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]], ops=[])
    assert (result["before"]["kernels"], result["after"]["kernels"]) == (1, 2)
    assert result["question"]["edges"] == [["exp", "sum"]] and result["note"] is None
    assert result["in_cell"]["calls"] == 1 and result["in_cell"]["seconds"] > 0
    assert result["keep"]["first"] == 3 and result["keep"]["last"] == 4
    states = [state["state"] for state in asked.states]
    assert states[0] == "queued" and states[-1] == "done"
    assert asked.states[0]["title"] == "Split `e` from `e.sum(axis=1, keepdims=True)` (lines 3 and 4)"
    before = asked.shell.user_ns["p"].copy()
    asked.run("import jitlab as jl", "cell-b")
    result = asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]])
    lines = CELL.splitlines()
    lines[result["keep"]["first"] - 1 : result["keep"]["last"]] = result["keep"]["lines"]
    asked.run("\n".join(lines))
    np.testing.assert_allclose(asked.shell.user_ns["p"], before, rtol=1e-13)
    report = asked.session.report_of(asked.session.cells["cell-a"])
    kernels = [set(kernel.ops) for kernel in report.kernels]
    assert {"exp"} <= kernels[0] and {"sum"} <= kernels[1] and len(kernels) == 2


def test_a_cut_in_a_cell_that_calls_a_function_of_another_cell_is_kept_where_its_ends_are_made(asked):
    helper = "def shifted(x):\n    y = x - x.max(axis=1, keepdims=True)\n    return np.exp(y)"
    cell = "%%jit\ne = shifted(x)\nr = e * 2 + e * e\ns = r.sum(axis=1, keepdims=True)\np = r / s"
    asked.run("import jitlab as jl", "cell-c")
    asked.run(helper, "cell-b")
    asked.run(cell)
    ops = [op["name"] for op in asked.session.report_of(asked.session.cells["cell-a"]).data["ops"]]
    edge = ["exp", next(name for name in ops if name.startswith("mul"))]
    across = asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[edge])["keep"]
    assert (across["file"], across["first"], across["last"]) == ("<cell 3>", 2, 3)
    keep = asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[["sub", "exp"]])["keep"]
    assert (keep["file"], keep["first"], keep["last"]) == ("<cell 2>", 2, 3)
    lines = helper.splitlines()
    lines[keep["first"] - 1 : keep["last"]] = keep["lines"]
    asked.run("\n".join(lines), "cell-b")
    asked.run(cell)
    kernels = [set(kernel.ops) for kernel in asked.session.report_of(asked.session.cells["cell-a"]).kernels]
    assert any("sub" in kernel for kernel in kernels) and not any({"sub", "exp"} <= kernel for kernel in kernels)


def test_the_runs_of_a_question_are_not_the_cells(asked):
    asked.run(CELL)
    before = asked.session.report_of(asked.session.cells["cell-a"]).to_json()
    asked.result(want="whatif", plan=asked.plan, kind="keep_out", ops=["exp"], edges=[])
    asked.result(want="sweep", plan=asked.plan)
    assert asked.session.report_of(asked.session.cells["cell-a"]).to_json() == before


def test_a_sweep_ranks_the_cuts(asked):
    asked.run(CELL)
    result = asked.result(want="sweep", plan=asked.plan)
    assert result["tried"] == 7 and len(result["edges"]) == 7 and result["stopped"] is None


def test_a_sweep_that_ran_out_of_time_goes_on_where_it_stopped(asked, monkeypatch):
    asked.run(CELL)
    monkeypatch.setattr("jitlab.notebook.rpc.measuring_requests.SWEEP_SECONDS", 1e-4)
    result = asked.result(want="sweep", plan=asked.plan)
    assert 0 < result["tried"] < result["total"] == 7 and "splits were not tried" in result["stopped"]
    monkeypatch.setattr("jitlab.notebook.rpc.measuring_requests.SWEEP_SECONDS", 10)
    ticket = asked.states[-1]["id"]
    assert asked.states[-1]["can_continue"]
    assert asked.states[-1]["title"] == f"Try every cut of {asked.session.cells['cell-a'].title}"
    asked.states.clear()
    again = asked.result(want="continue", job=ticket)
    assert (again["tried"], again["stopped"], asked.states[-1]["id"]) == (7, None, ticket)
    before = {(edge["producer"], edge["consumer"]): edge["change"] for edge in result["edges"]}
    after = {(edge["producer"], edge["consumer"]): edge["change"] for edge in again["edges"]}
    assert before.items() <= after.items()  # what was measured stays


def test_an_impossible_fusion_is_a_result_with_its_path(asked):
    asked.run("%%jit\ny = x / x.sum()\n")
    result = asked.result(want="whatif", plan=asked.plan, kind="fuse", edges=[["sum", "realdiv"]])
    assert result["refusal"]["code"] == "space" and result["before"] is None
    assert asked.result(want="whatif", plan=asked.plan, kind="target", target="cuda")["refusal"]["code"] == "target"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "cut", "edges": [["log", "sum"]]}, "no operation 'log'"),
        ({"kind": "cut", "edges": []}, "asked nothing"),
        ({"kind": "keep_out", "ops": ["__import__('os')"]}, "no operation"),
        ({"kind": "run", "edges": []}, "kind has to be"),
        ({"kind": "cut", "edges": [["exp", "sum"]], "plan": "other #1"}, "did not run in this cell"),
        ({"kind": "cut", "edges": [["exp", "sum"]], "cell": "nowhere"}, "no report of this cell"),
    ],
)
def test_what_does_not_fit_is_answered_with_a_sentence(asked, body, words):
    asked.run(CELL)
    assert words in asked.ask(**{"want": "whatif", "plan": asked.plan, **body})["error"]


def test_a_question_waits_for_the_cell_that_runs(asked, monkeypatch):
    asked.run(CELL)
    plan = asked.plan
    asked.shell.user_ns["ask"] = lambda: asked.ask(want="whatif", plan=plan, kind="cut", edges=[["exp", "sum"]])
    asked.run("reply = ask()", "cell-b")
    assert asked.states[0]["waits_for"] == "In [2]"
    with asked.changed:
        assert asked.changed.wait_for(lambda: asked.states[-1]["state"] == "done", 20)


def test_large_inputs_are_not_kept_alive_and_asked_for_again(asked, monkeypatch):
    monkeypatch.setattr(inputs, "COPIED_BYTES", 1000)
    asked.run(CELL)
    asked.run("del x", "cell-b")
    error = asked.ask(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]])["error"]
    assert error.endswith("no longer exist. Run the cell again: jitlab keeps copies this time.")
    asked.shell.user_ns["x"] = np.random.default_rng(0).random((60, 40))
    asked.run(CELL)
    asked.run("del x", "cell-b")
    assert asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]])["after"]["kernels"] == 2
    assert asked.result(want="measure")["numpy_seconds"] > 0


def test_inputs_that_changed_since_are_said_to_have(asked, monkeypatch):
    monkeypatch.setattr(inputs, "COPIED_BYTES", 1000)
    asked.run(CELL)
    same = asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]])
    asked.run("x += 1", "cell-b")
    other = asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]])
    assert same["note"] is None and other["note"].endswith("have changed since; these are as they are now.")
    monkeypatch.setattr("jitlab.api.whatif.whatif.Load.others", lambda load: 0.5)
    busy = asked.result(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]])
    assert busy["note"].startswith(f"{other['note']} Other programs took 50 % of the processors meanwhile")
    assert busy["others"] == 0.5


def test_numpy_is_timed_after_the_fact(asked):
    asked.run(CELL)
    assert asked.session.report_of(asked.session.cells["cell-a"]).verdict["numpy_seconds"] is None
    result = asked.result(want="measure")
    verdict = asked.session.report_of(asked.session.cells["cell-a"]).verdict
    assert verdict["numpy_seconds"] == result["numpy_seconds"] > 0 and verdict["seconds"] == result["seconds"]


@pytest.mark.parametrize("source", [CELL, "%%jit\ny = np.exp(x) * 2\nlabel = f'{y.sum():.3f}'"])
def test_cancel_ends_numpys_run_and_a_cell_that_starts_does_not_wait_for_it(asked, source, monkeypatch):
    asked.run(source)
    asked_of, session = [], asked.session

    def waits(run, limit_ns, is_due):
        asked_of.append(is_due())
        if len(asked_of) == 1:  # a cell starts, in the thread of the cells
            cell = threading.Thread(target=lambda: session.jobs.cell_started("In [9]"))
            cell.start()
            while not is_due():
                cell.join(0.01)
            threading.Thread(target=lambda: (cell.join(), session.jobs.cell_ended())).start()
        else:
            assert answer(session, {"want": "cancel", "job": ticket}) == {"cancelled": True}
            asked_of.append(is_due())
        raise OutOfTimeError

    monkeypatch.setattr("jitlab.notebook.magics.plain_cell.within", waits)
    session.jobs.cell_started("In [8]")
    ticket = asked.ask(want="measure")["job"]
    session.jobs.cell_ended()
    with asked.changed:
        assert asked.changed.wait_for(lambda: asked.states[-1]["state"] == "cancelled", 20)
    assert asked_of == [False, False, True] and speed_of(asked) is None
    assert [s["waits_for"] for s in asked.states if s["state"] == "queued"][-2:] == ["In [9]", None]


class Sides:
    """How often the statements ran on either side."""

    def __init__(self, asked, monkeypatch):
        self.plain, self.captured = 0, 0
        run, run_captured = PlainCell.run, PlainCell.run_captured

        def plainly(cell):
            self.plain += 1
            return run(cell)

        def captured(cell):
            self.captured += 1
            return run_captured(cell)

        monkeypatch.setattr(PlainCell, "run", plainly)
        monkeypatch.setattr(PlainCell, "run_captured", captured)


@pytest.fixture
def sides(asked, monkeypatch):
    return Sides(asked, monkeypatch)


def speed_of(asked):
    return asked.session.report_of(asked.session.cells["cell-a"]).verdict.get("speed")


def test_numpys_side_are_the_cells_own_statements_and_nothing_is_changed(asked, sides, capsys):
    asked.run("rng, log, n = np.random.default_rng(3), [], 2", "cell-b")
    asked.run("%%jit\ndef scaled(a):\n    return a * n\nz = rng.normal(size=x.shape)\ny = np.exp(scaled(x)) + z\ns = y.sum()")
    names, state = dict(asked.shell.user_ns), asked.shell.user_ns["rng"].bit_generator.state
    y = names["y"].copy()
    asked.result(want="measure")
    speed = speed_of(asked)
    assert sides.plain >= speed["rounds"] - 1 >= 2 and sides.captured == 0
    now = asked.shell.user_ns
    assert {name for name in names if names[name] is not now.get(name)} == set() and now.keys() == names.keys()
    assert now["rng"].bit_generator.state == state
    np.testing.assert_array_equal(now["y"], y)
    assert capsys.readouterr().err == ""


def test_what_python_ran_is_on_both_sides(asked, sides):
    asked.run("%%jit\ny = np.exp(x) * 2\nlabel = f'{y.sum():.3f}'\nz = np.tanh(y) + len(label)")
    names = dict(asked.shell.user_ns)
    result = asked.result(want="measure")
    report = asked.session.report_of(asked.session.cells["cell-a"])
    assert report.data["statements"] and sides.captured > report.verdict["speed"]["rounds"] > 0
    assert sides.plain >= report.verdict["speed"]["rounds"] - 1 and report.verdict["seconds"] == result["seconds"]
    assert all(asked.shell.user_ns[name] is names[name] for name in names)


CHANGES = "x = x * 1.5 + 1", "x += 1", "x[0] = np.tanh(x[1])", "x.sort()", "np.copyto(x, x * 2)", "for x in [x * 2]: pass"


@pytest.mark.parametrize("change", CHANGES)
def test_a_cell_that_changes_what_it_reads_is_run_again_first(asked, sides, change):
    source = f"%%jit\n{change}\ny = np.exp(x) * 2"
    asked.run(source)
    said = asked.ask(want="measure")["error"]
    assert said.startswith("The cell may have changed x, which it reads. Run the cell again: jitlab keeps")
    asked.run(source)
    x, y = asked.shell.user_ns["x"].copy(), asked.shell.user_ns["y"]
    asked.result(want="measure")
    assert asked.shell.user_ns["y"] is y
    np.testing.assert_array_equal(asked.shell.user_ns["x"], x)
    assert speed_of(asked) and sides.plain


def test_what_the_cell_read_may_be_something_else_by_now(asked, sides):
    asked.run(CELL)
    asked.run("whole, x = x, x[:7]", "cell-b")
    assert asked.ask(want="measure")["error"].startswith("What the cell reads is something else by now. Run the cell again: ")
    asked.run("x = whole", "cell-b")
    assert speed_of(asked) is None
    asked.result(want="measure")
    assert speed_of(asked) and sides.plain


def test_where_the_statements_cannot_run_again_measuring_is_refused(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked.run("import os\nimport jitlab as jl\nf = jl.jit(lambda a: np.tanh(a) * 2)", "cell-b")
    why = "the cell's statements cannot run again, since what they do with `os` (the module os) cannot be taken back."
    for source in ("%%jit\ny = np.exp(x) * 2\nos.mkdir('made')", "y = f(x)\nos.mkdir('other')"):
        asked.run(source)
        assert asked.failure(want="measure") == f"NumPy can't be timed: {why}" and speed_of(asked) is None
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["made", "other"]


FUNCTION = """\
import jitlab as jl
@jl.jit
def total(a, seen):
    s = 0.0
    for row in range(len(a)):
        if a[row, 0] > 0.5:
            s = s + np.tanh(a[row]).sum() / seen
    return s
@jl.function
def doubled(a):
    return np.exp(a) * 2
settled = jl.jit(lambda a: a + 1)
"""


@pytest.mark.parametrize("call", ["y = total(x, n)", "y = [doubled(x + k).sum() for k in range(3)]", "y = settled(x[:2, :2])"])
def test_a_cell_that_calls_functions_is_measured_as_the_user_would_have_run_it(asked, sides, call, monkeypatch):
    """Both sides are the cell's own statements: the functions that they call as Python, and as jitlab has them."""
    asked.run(f"n = 3\n{FUNCTION}", "cell-b")
    asked.run(call)
    if "for" in call:  # of several calls the inputs are to be kept
        assert "jitlab keeps copies this time" in asked.ask(want="measure")["error"]
        asked.run(call)
    timed = PlainCell._timed

    def watched(cell, run, way, **options):
        timed(cell, run, way, **options)
        return Took([10_000_000, 30_000_000][len(options) == 0])

    monkeypatch.setattr(PlainCell, "_timed", watched)
    names = dict(asked.shell.user_ns)
    traces = {name: asked.shell.user_ns[name].experimental_get_tracing_count() for name in ("total", "doubled", "settled")}
    result = asked.result(want="measure")
    verdict = asked.session.report_of(asked.session.cells["cell-a"]).verdict
    assert (result["numpy_seconds"], result["seconds"]) == (0.03, 0.01) and verdict["speed"]["text"] == "about 3.0 × faster"
    assert min(sides.captured, sides.plain) >= verdict["speed"]["rounds"]
    assert "operation by itself" not in verdict["speed"].get("note", "")
    assert all(asked.shell.user_ns[name] is value for name, value in names.items())
    assert {name: asked.shell.user_ns[name].experimental_get_tracing_count() for name in traces} == traces


def test_numpys_side_of_functions_is_their_body(asked, monkeypatch):
    """No trial, no compiled code: what runs between two calls of the plain side is the function's own bytecode."""
    asked.run(f"n = 3\n{FUNCTION}", "cell-b")
    asked.run("y = total(x, n)")
    code, seen = asked.shell.user_ns["total"].python_function.__code__, []
    sides = {}
    for side in ("run", "run_captured"):
        plain = getattr(PlainCell, side)

        def watched(cell, side=side, plain=plain):
            sys.setprofile(lambda frame, event, _: seen.append(side) if event == "call" and frame.f_code is code else None)
            try:
                return plain(cell)
            finally:
                sys.setprofile(None)
                sides[side] = sides.get(side, 0) + 1

        monkeypatch.setattr(PlainCell, side, watched)
    asked.result(want="measure")
    assert seen.count("run") == sides["run"] > 0 and not seen.count("run_captured") and sides["run_captured"] > 0


def test_why_statements_cannot_run_again_is_a_clause():
    found = {"some": [np.array([None])], "x": np.ones(100)}
    asked = {"some[0]": 10**9, "x + 1": 10, "await x": 10**9}
    said = [PlainCell.of(ast.parse(source).body, "<cell>", found, limit) for source, limit in asked.items()]
    why = "some[0] is an array of objects", "copies of what they find would take more than 10 B", "they wait"
    assert said == [f"the cell's statements cannot run again, since {clause}" for clause in why]


def test_numbers_are_checked_after_the_fact_and_the_report_has_them(asked):
    asked.run(CELL)
    before = asked.session.report_of(asked.session.cells["cell-a"]).data
    assert "numerics" not in before
    result = asked.result(want="check")
    after = asked.session.report_of(asked.session.cells["cell-a"]).data
    assert result["ok"] and after["numerics"] == result["numerics"] and result["note"] is None
    assert {row["op"] for row in after["numerics"]} >= {"RealDiv"} and all(row["lines"] for row in after["numerics"])
    assert [c["calls"] for c in after["clusters"]] == [c["calls"] for c in before["clusters"]]  # a check is no run
    assert "error" in asked.ask(want="check", cell="another") and "error" in asked.ask(want="check", cell=7)


def test_a_loop_is_timed_when_it_ran_again(asked):
    asked.run("import jitlab as jl\n@jl.function\ndef f(a):\n    return np.tanh(a) * 2", "cell-b")
    loop = "for i in range(3):\n    y = f(x)\n    x += 1"
    asked.run(loop)
    assert "jitlab keeps copies this time" in asked.ask(want="measure")["error"]
    asked.run(loop)
    assert asked.result(want="measure")["numpy_seconds"] > 0
    assert asked.session.report_of(asked.session.cells["cell-a"]).clusters[0].calls == 3


def test_short_runs_in_a_row_are_not_all_kept(asked, monkeypatch):
    kept = []
    held = inputs.held
    monkeypatch.setattr(inputs, "held", lambda arguments: kept.append(1) or held(arguments))
    asked.run("import jitlab as jl\n@jl.function\ndef f(a):\n    return a + 1", "cell-b")
    asked.run("y = np.zeros(100)\nfor i in range(2000):\n    y = f(y)")
    assert 0 < len(kept) < 1000


def test_copies_over_the_limit_are_refused(asked, monkeypatch):
    asked.run(CELL)
    monkeypatch.setattr(config, "copy_limit_bytes", 100)
    reply = asked.ask(want="whatif", plan=asked.plan, kind="cut", edges=[["exp", "sum"]])
    with asked.changed:
        assert asked.changed.wait_for(lambda: asked.states and asked.states[-1]["state"] == "failed", 20)
    assert "jl.config.copy_limit_bytes" in asked.states[-1]["error"] and "job" in reply

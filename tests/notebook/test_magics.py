"""The magics in a real shell. Cells run by a stand-in for the compiler, which only tells what it would have done."""

import ast
import base64
import linecache
import re
import threading
import time

import pytest
from IPython.core.interactiveshell import InteractiveShell

from jitlab import events
from jitlab.capture.drivers import cells as capture_cells
from jitlab.errors import OptionError
from jitlab.notebook import extension
from jitlab.notebook.extension import load_ipython_extension, session_of, unload_ipython_extension
from jitlab.notebook.magics import magics, running
from jitlab.report import MIME, Report
from tests.notebook.shells import new_shell

PLAN = {
    "plans": [{"name": "In [1] #1", "function": "cell", "trace": 1}],
    "ops": [
        {
            "name": "mul", "plan": "In [1] #1", "op": "Mul", "cluster": "cluster_0", "kernel": "k0", "reason": None,
            "lines": [],
            "shape": [3], "dtype": "float64", "inputs": [], "scope": None, "seconds": None,
        }
    ],
    "clusters": [
        {
            "name": "cluster_0", "plan": "In [1] #1", "ops": ["mul"], "kernels": ["k0"], "lines": [2],
            "reason": {"code": "auto", "text": "they can be compiled together"}, "calls": 0, "seconds": None, "flops": 3,
            "bytes_read": 24, "bytes_written": 24,
        }
    ],
    "kernels": [
        {
            "name": "k0", "cluster": "cluster_0", "ops": ["mul"], "kind": "nest", "lines": [2], "calls": 0, "seconds": None,
            "bytes_read": 24, "bytes_written": 24, "flops": 3, "bound": None, "of_peak": None,
        }
    ],
    "boundaries": [],
}  # fmt: skip


def happen(file="f", lines=()):
    """What a compiled piece tells."""
    cell = events.current_cell()
    events.send(
        events.Traced(
            cell=cell, function="cell", trace=1, causes=("first_call",), argument="", before="", after="", lines=lines,
            fix=None, operations=1, start_ns=0, duration_ns=1000,
        )
    )  # fmt: skip
    events.send(events.PlanMade(cell=cell, function="cell", trace=1, plan=PLAN, start_ns=1000, duration_ns=1000))
    events.send(events.ClusterRan(cell=cell, function="cell", trace=1, cluster="cluster_0", start_ns=3000, duration_ns=10**6))


@pytest.fixture
def cells(monkeypatch):
    """Stands for jitlab.capture.drivers.cells: runs the cell as Python and tells of one cluster."""
    seen = []

    async def run_nodes(nodes, namespace, filename, *, shown, compiler, display, strict, executor, title, settles, observer):
        source = "".join(linecache.getlines(filename))
        seen.append({"source": source, "filename": filename, "strict": strict, "executor": executor, "title": title})
        happen(filename, ((filename, 2, 0, 2, 5),))
        for node in nodes:
            if shown == "last_expr" and node is nodes[-1] and isinstance(node, ast.Expr):
                display(eval(compile(ast.Expression(node.value), filename, "eval"), namespace))
            else:
                exec(compile(ast.Module([node], []), filename, "exec"), namespace)

    monkeypatch.setattr(capture_cells, "run_nodes", run_nodes)
    return seen


@pytest.fixture
def shell(cells):
    ip = new_shell()
    yield ip
    unload_ipython_extension(ip)
    InteractiveShell.clear_instance()


def run(shell, source, fine=True):
    shell.display_pub.outputs.clear()
    result = shell.run_cell(source, store_history=True)
    if fine:
        result.raise_error()
    return result


def shown(shell):
    return [output["data"] for output in shell.display_pub.outputs]


def test_a_jit_cell_runs_in_the_namespace_and_shows_its_report(shell, cells):
    run(shell, "%%jit\nx = 2\ny = x * 21")
    assert shell.user_ns["y"] == 42
    (bundle,) = shown(shell)
    assert list(bundle) == [MIME, "text/html", "text/plain"]
    report = bundle[MIME]
    assert report["verdict"]["lead"] == "1 of 1 operation compiled"
    assert report["cell"]["source"] == ["%%jit", "x = 2", "y = x * 21"] and report["cell"]["running"] is False
    assert report["retraces"][0]["lines"] == [["In [ ]", 2, 0, 2, 5]]  # neither the process's temporary name nor a number
    assert cells[0]["strict"] is False and cells[0]["title"] == "In [1]"


def test_lines_are_numbered_as_the_person_sees_them(shell, cells):
    run(shell, "%%jit\n\n\nx = 1")
    assert cells[0]["source"].split("\n")[3] == "x = 1"
    run(shell, "\n%%jit --level O0\nx = 1", fine=False)
    result = run(shell, "%%jit\na = 1\nb = a / 0\n", fine=False)
    lines = []
    traceback = result.error_in_exec.__traceback__
    while traceback:
        lines.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    assert lines[-1] == (cells[-1]["filename"], 3)


def test_options_reach_the_compiler(shell, cells, monkeypatch):
    asked = []
    monkeypatch.setattr(running, "compile_trace", lambda trace, options: asked.append(options))
    run(shell, "%%jit --level O0 --strict\nx = 1")
    cells[0]["executor"]("a trace")
    assert cells[0]["strict"] and (asked[0].level, asked[0].jit_compile) == ("O0", True)


@pytest.mark.parametrize(
    "line, why",
    [
        ("--nope", "--nope"), ("--level O9", "O9"), ("--comp", "--comp"), ("stray", "stray"), ("--level", "--level"),
        ("-o 3x", "3x"), ("-o 'open", "quot"), ("--helpme", "--helpme"),
    ],
)  # fmt: skip
def test_an_unknown_option_runs_nothing_and_says_what_to_do(shell, cells, line, why, capsys):
    result = run(shell, f"%%jit {line}\nx = 1", fine=False)
    assert isinstance(result.error_in_exec, OptionError)
    text = str(result.error_in_exec)
    assert "x" not in shell.user_ns and not cells and not shown(shell)
    assert f"where: In [1], line 1: %%jit {line}" in text and "--level O0|O1" in text
    assert why in text
    printed = capsys.readouterr()
    assert "site-packages" not in printed.out + printed.err  # the message stands alone


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("--chek", "%%jit has no option --chek. Did you mean --check?"), ("--xyzzy", "%%jit has no option --xyzzy.\n"),
        ("--levle=O0", "%%jit has no option --levle. Did you mean --level?"), ("stray", "%%jit has other options."),
    ],
)  # fmt: skip
def test_an_unknown_option_is_named_with_the_nearest(shell, line, what):
    assert str(run(shell, f"%%jit {line}\nx = 1", fine=False).error_in_exec).startswith(what)


def test_last_expression_is_displayed_and_kept(shell, capsys):
    run(shell, "%%jit\nx = 3\nx + 1")
    assert "4" in capsys.readouterr().out
    assert shell.user_ns["_"] == 4
    run(shell, "%%jit\nx + 2;")
    assert "5" not in capsys.readouterr().out


def test_o_binds_or_returns_the_report(shell, capsys):
    run(shell, "%%jit -o rep\nx = 3\nx")
    assert isinstance(shell.user_ns["rep"], Report) and shell.user_ns["rep"].clusters[0].calls == 1
    assert len(shown(shell)) == 1
    run(shell, "%%jit -o\nx = 4\nx")
    assert isinstance(shell.user_ns["_"], Report)
    assert "4" in [data.get("text/plain") for data in shown(shell)]


def test_an_error_still_gives_the_report_and_points_at_the_cell(shell, capsys):
    result = run(shell, "%%jit\nx = 5\nraise KeyError('k')", fine=False)
    assert isinstance(result.error_in_exec, KeyError)
    assert shell.user_ns["x"] == 5
    (bundle,) = shown(shell)
    assert bundle[MIME]["cell"]["error"] == "KeyError"
    printed = capsys.readouterr().out
    assert "raise KeyError('k')" in printed and "jitlab/notebook" not in printed and "run_cell_magic" not in printed


def test_an_interrupt_is_an_interrupt(shell):
    result = run(shell, "%%jit\nraise KeyboardInterrupt", fine=False)
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert shown(shell)[0][MIME]["cell"]["error"] == "KeyboardInterrupt"


def test_a_plain_cell_with_compiled_functions_is_recorded_but_shows_nothing(shell):
    shell.user_ns["happen"] = happen
    run(shell, "happen()")
    assert shown(shell) == []
    session = session_of(shell)
    (cell,) = session.cells.values()
    assert session.report_of(cell).verdict["clusters"] == 1


def test_a_cell_without_jitlab_costs_no_recording(shell):
    run(shell, "x = 1")
    assert not session_of(shell).cells


def test_events_of_the_replaced_run_do_not_count_again(shell):
    shell.user_ns["happen"] = happen
    run(shell, "happen(); happen()")
    run(shell, "happen()")
    counts = [session_of(shell).report_of(cell).clusters[0].calls for cell in session_of(shell).cells.values()]
    assert counts == [2, 1]


class Panel:
    """In the place of a session's link: keeps what would be sent."""

    def __init__(self, session):
        self.attached, self.events, self.reports = True, [], []
        self.came = threading.Condition()
        session.link = self

    def emit(self, cell, event):
        self.events.append((cell, event.kind))

    def mark(self, cell):
        return len(self.events)

    def report(self, cell, report, mark, order):
        with self.came:
            self.reports.append(report)
            self.came.notify_all()

    def forget(self):
        self.reports.clear()

    def ended(self):
        """Wait for the report of a cell that has ended."""
        with self.came:
            assert self.came.wait_for(lambda: self.reports and not self.reports[-1]["cell"]["running"], 10)

    unload = forget


def test_reports_and_events_go_to_the_panel(shell):
    panel = Panel(session_of(shell))
    run(shell, "%%jit\nx = 1")
    assert [kind for _, kind in panel.events] == ["cell-started", "traced", "plan-made", "cluster-ran", "cell-finished"]
    assert {cell for cell, _ in panel.events} == set(session_of(shell).cells)
    panel.ended()


def test_a_running_cell_reports_now_and_then(shell):
    panel = Panel(session_of(shell))
    shell.user_ns |= {"happen": happen, "reports": panel.reports}
    start = time.monotonic()
    run(shell, "import time\nwhile len(reports) < 2:\n    happen(); time.sleep(0.1)")
    took = time.monotonic() - start
    panel.ended()
    running = [report["cell"]["running"] for report in panel.reports]
    assert 2 <= running.count(True) <= 4 * took + 1


def test_a_cell_does_not_wait_for_its_report(shell, monkeypatch):
    """It is made when the cell has ended, for a panel that is shown; for none, not at all."""
    session = session_of(shell)
    shell.user_ns["happen"] = happen
    panel = Panel(session)
    panel.attached = False
    run(shell, "happen()")
    assert next(iter(session.cells.values())).report is None and not panel.reports
    panel.attached = True
    hold = threading.Event()
    made = session.report_of
    monkeypatch.setattr(session, "report_of", lambda *arguments: hold.wait(10) and made(*arguments))
    run(shell, "happen()")  # ends while the report's thread is held
    hold.set()
    panel.ended()


def test_status_explain_export_and_clear(shell, capsys, tmp_path):
    run(shell, "%jitlab")
    assert "No cell has used it yet" in capsys.readouterr().out
    run(shell, "%%jit\nx = 1")
    run(shell, "%jitlab status")
    printed = capsys.readouterr().out
    assert "clustering ON" in printed and "In [2]: " in printed and "1 of 1 operation compiled" in printed
    first = printed.split("In [2]: ")[1].split(" · ")[0]
    run(shell, "%jitlab explain")
    assert MIME in shown(shell)[0]
    run(shell, "%jitlab explain 2")
    assert MIME in shown(shell)[0]
    for name, start in (
        ("a.html", "<!doctype"), ("a.svg", "<svg"), ("a.txt", first), ("a.dot", "digraph"), ("a.json", "{"),
        ("t.ctf.json", '{"traceEvents"'),
    ):  # fmt: skip
        run(shell, f"%jitlab export {tmp_path / name}")
        assert (tmp_path / name).read_text().startswith(start)
    run(shell, "%jitlab clear")
    assert "Forgot 1 recorded cell." in capsys.readouterr().out
    assert isinstance(run(shell, "%jitlab explain", fine=False).error_in_exec, OptionError)


@pytest.mark.parametrize(
    "line", ["frobnicate", "export", "export x.pdf", "export /not/there/x.html", "explain 99", "status now", "export a b"]
)
def test_jitlab_refuses_what_it_does_not_know(shell, line):
    run(shell, "%%jit\nx = 1")
    error = run(shell, f"%jitlab {line}", fine=False).error_in_exec
    assert isinstance(error, OptionError) and "try:" in str(error) and "why:" in str(error)


def test_an_export_says_what_is_wrong_with_its_path(shell):
    told = (("export", "takes a path"), ("export x.pdf", "writes no .pdf"), ("export x", "writes no file without an ending"))
    for line, said in told:
        error = run(shell, f"%jitlab {line}", fine=False).error_in_exec
        assert str(error).startswith(f"%jitlab export {said}.")


@pytest.mark.parametrize("asked", ["help", "-h", "--help", "?"])
def test_help_lists_each_command_with_a_line(shell, capsys, asked):
    run(shell, f"%jitlab {asked}")
    printed = capsys.readouterr().out
    for command in ("status", "explain [N]", "baseline [NAME]", "compare [NAME]", "export PATH", "clear", "help"):
        (line,) = [line for line in printed.split("\n") if line.startswith(f"%jitlab {command}")]
        assert len(line.removeprefix(f"%jitlab {command}").strip()) > 10


def test_a_wrong_command_is_told_the_one_that_is_near(shell):
    error = str(run(shell, "%jitlab explian", fine=False).error_in_exec)
    assert "%jitlab has no command explian. Did you mean explain?" in error and "try: %jitlab help, which" in error
    error = str(run(shell, "%jitlab report", fine=False).error_in_exec)
    assert "%jitlab has no command report. Did you mean explain?" in error
    error = str(run(shell, "%jitlab zzz", fine=False).error_in_exec)
    assert "why: the commands are status, explain, baseline, compare, export, clear" in error
    assert "status takes nothing else" in str(run(shell, "%jitlab status now", fine=False).error_in_exec)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("-n ten", "-n 10, or leave it away"), ("-r 0", "-r 10, or leave it away"), ("--device gpuu", "--device gpu"),
        ("--device zzz", "--device cpu or --device gpu or --device auto"), ("--level o1", "--level O1"),
    ],
)  # fmt: skip
def test_a_value_that_an_option_does_not_take_is_answered_with_one_that_it_takes(shell, line, hint):
    error = str(run(shell, f"%%jit {line}\nx = 1", fine=False).error_in_exec)
    assert f"\n  try: {hint}: %%jit [" in error and "x" not in shell.user_ns


def test_jit_explains_itself_instead_of_running_the_cell(shell, capsys):
    run(shell, "%%jit --help\nnever = 1")
    run(shell, "%jit -h")
    assert capsys.readouterr().out.count("Run the cell compiled, as far as it can be") == 2
    assert "never" not in shell.user_ns


def test_loading_twice_hooks_once_and_unloading_removes_all(shell):
    load_ipython_extension(shell)
    session = session_of(shell)
    run(shell, "%%jit\nx = 1")
    assert len(shown(shell)) == 1
    unload_ipython_extension(shell)
    assert session_of(shell) is None and session.hear not in events._listeners
    result = run(shell, "%%jit\nx = 1", fine=False)
    assert "jit" not in shell.magics_manager.magics["cell"] and not result.success
    assert extension.session_of(shell) is None


OPTIONS = [option for action in magics.JitMagics.jit.parser._actions for option in action.option_strings]


@pytest.mark.parametrize("option", OPTIONS)
def test_what_is_said_to_someone_who_mistypes_names_every_option(option):
    assert re.search(rf"\[{option}\b", magics.OPTIONS_HINT)


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.startswith("--")])
def test_every_long_option_may_stand_before_an_expression(option):
    action = next(action for action in magics.JitMagics.jit.parser._actions if option in action.option_strings)
    line = f"{option} {'O0 ' if action.nargs is None else ''}"
    assert magics._end_of_options(f"{line}x + 1") == len(line)
    if action.nargs == "?":
        assert magics._end_of_options(f"{line}anew x + 1") == len(f"{line}anew ")


@pytest.mark.parametrize(
    "show, clusters, retraces",
    [("graph,retraces,timeline", True, True), ("retraces", False, True), ("graph", True, False), ("verdict", False, False)],
)
def test_parts_of_a_report_are_chosen(shell, show, clusters, retraces):
    run(shell, f"%%jit --show {show}\nx = 1")
    (bundle,) = shown(shell)
    assert "1 of 1 operation compiled" in bundle["text/plain"]
    assert ("■ cluster_0" in bundle["text/plain"]) == clusters
    assert (">Retraces</text>" in picture(bundle)) == retraces
    assert (">Time</text>" in picture(bundle)) == ("timeline" in show)
    assert bundle[MIME].get("show", ["graph", "retraces", "timeline"]) == [
        part for part in show.split(",") if part != "verdict"
    ]


def picture(bundle):
    return base64.b64decode(re.search(r"base64,([^\"]+)", bundle["text/html"])[1]).decode()


def test_nothing_is_shown_when_nothing_is_asked_for(shell):
    run(shell, "%%jit --show none -o r\nx = 1")
    assert shown(shell) == [] and isinstance(shell.user_ns["r"], Report)
    run(shell, "%jit --show none x + 1")
    assert [data for data in shown(shell) if MIME in data] == []


def test_an_unknown_part_is_an_error_before_anything_ran(shell):
    error = run(shell, "%%jit --show picture\nnever = 1", fine=False).error_in_exec
    assert isinstance(error, OptionError) and "'picture'" in str(error) and "graph, retraces, timeline" in str(error)
    assert "never" not in shell.user_ns


def test_help_has_every_option_and_an_example_of_each_use(shell):
    text = shell.magics_manager.magics["cell"]["jit"].__doc__
    for option in ("--level", "--strict", "--compare", "--check", "--show", "-o", "%jit on", "%jit off", ";"):
        assert option in text
    for command in ("status", "explain", "baseline", "compare", "export", "clear"):
        assert f"%jitlab {command}" in shell.magics_manager.magics["line"]["jitlab"].__doc__


def test_a_word_of_pythons_is_no_name_for_a_report(shell):
    error = run(shell, "%%jit -o class\ny = 1", fine=False).error_in_exec
    assert isinstance(error, OptionError) and "'class' is not a name" in str(error)


def test_a_button_turns_jit_on_and_off_as_the_magic_does(shell):
    class Toolbar:
        attached, told = False, []

        def tell_switch(self, on=None):
            self.told.append(runner.switch(on))

        def emit(self, *args):
            pass

        unload = emit

    runner = shell.magics_manager.magics["line"]["jit"].__self__.runner
    session_of(shell).link = Toolbar()
    off = {"op": "switch", "on": False, "level": None, "strict": False}
    on = {"op": "switch", "on": True, "level": "O1", "strict": False}
    run(shell, "%jit on --level O0 --strict")
    assert Toolbar.told == [{"op": "switch", "on": True, "level": "O0", "strict": True}]
    assert runner.switch(True) == Toolbar.told[0], "it is on, and stays as it was asked for"
    assert runner.switch(False) == off and runner.always is None
    assert runner.switch(True) == on and runner.always.level == "O1"
    run(shell, "%jit off")
    assert Toolbar.told[-1] == off

"""Runs of a cell that take less time as Python run as Python, where nobody asks for what is compiled. All times are planned: a
run takes what the test says."""

import ast
import itertools

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.api import deciding_cells, settling
from jitlab.api.settling import COMPILED, ENOUGH, FIRST_CALLS, LONG_NS, PATIENCE, PYTHON
from jitlab.capture.drivers import cells
from jitlab.notebook.extension import unload_ipython_extension
from jitlab.ops.base import Operation
from jitlab.report import MIME
from jitlab.report.render.text import report_text
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.cpu_target import CPU
from tests.notebook.shells import lines_of, new_shell

#: So long a list has as many elements, in powers of two, after 50 more.
BEFORE = 70
IN_PIECES = """%%jit
y = np.tanh(x) + 1
log.__iadd__([float(y[0])])
z = y * 2
z.sum()
"""


@pytest.fixture
def shell(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "measure")
    monkeypatch.setattr(deciding_cells, "is_measurable", lambda: True)
    monkeypatch.setattr(jl.config, "stable_outputs", False)
    monkeypatch.setattr(cells, "_programs", type(cells._programs)())
    ip = new_shell()
    ip.user_ns.update(np=np, jl=jl, x=np.linspace(0, 1, 10), log=[0] * BEFORE)
    yield ip
    unload_ipython_extension(ip)
    InteractiveShell.clear_instance()


@pytest.fixture
def plan(monkeypatch):
    return Planned(monkeypatch)


class Planned:
    """What a run takes each way, in nanoseconds, and the ways that runs went that decide."""

    def __init__(self, monkeypatch):
        self.takes, self.now, self.ways = {COMPILED: 9000, PYTHON: 3000}, 0, []
        monkeypatch.setattr(settling, "clock", lambda: self.now)
        monkeypatch.setattr(settling, "busy_clock", lambda: self.now)
        before = settling.tried
        monkeypatch.setattr(
            deciding_cells, "tried",
            lambda trial, ways, is_ready: before(trial, {way: self.timed(way, run) for way, run in ways.items()}, is_ready),
        )  # fmt: skip

    def timed(self, way, run):
        def timed():
            run()
            self.ways.append(way)
            self.now += self.takes[way]

        return timed


def run(shell, source):
    """The report, and the error."""
    shell.display_pub.outputs.clear()
    result = shell.run_cell(source, store_history=True)
    assert result.error_before_exec is None
    shown = [output["data"][MIME] for output in shell.display_pub.outputs if MIME in output["data"]]
    return (shown or [None])[-1], result


def trial_of(shell):
    (trial,) = next(reversed([runs for runs in deciding_cells._runs.values() if runs.trials])).trials.values()
    return trial


def as_python(report):
    return [entry["text"] for entry in report["as_python"]]


def test_what_is_faster_as_python_runs_as_python_and_keeps_its_plan(shell, plan):
    x = shell.user_ns["x"]
    found = []
    for number in range(1, 30):
        report, result = run(shell, IN_PIECES)
        np.testing.assert_allclose(result.result, ((np.tanh(x) + 1) * 2).sum(), rtol=1e-15)
        np.testing.assert_allclose(shell.user_ns["z"], (np.tanh(x) + 1) * 2, rtol=1e-15)
        assert shell.user_ns["log"][BEFORE:] == [1.0] * number  # each run had its effect once
        found.append((report["verdict"]["lead"], as_python(report)))
    first, last = found[0], found[-1]
    assert last[0] == first[0] == "5 of 5 operations compiled" and first[1] == []
    assert {lead for lead, _ in found} == {first[0]}
    said = (
        "runs as Python up to 127 elements: 3.0 µs beside 9.0 µs compiled in pieces (5 calls each); "
        "because += changes a list (line 3)"
    )
    assert last[1] == [said]
    assert plan.ways.index(PYTHON) == FIRST_CALLS + 2  # after the one that gets C in front of the pieces, and two timed ones
    assert len(plan.ways) < FIRST_CALLS + 2 * ENOUGH + 4
    in_turn = ["ran as Python, in turn with compiled runs, to find out which take less time"]
    assert [texts for _, texts in found].count(in_turn) == plan.ways.count(PYTHON) == ENOUGH
    told = report["verdict"]["settled"]
    assert told["text"].startswith("This run: In [") and told["text"].endswith(f") {said}")
    assert told["short"] == "Python 3.0 µs, compiled 9.0 µs"
    lines = report_text(report).replace("\n  ", " ").split("\n")
    assert lines[1] == told["text"].replace("`", "") and sum(said in line for line in lines) == 1  # at the top, once
    (entry,) = report["as_python"]
    assert entry["plans"] and [line[1:] for line in entry["lines"]] == [[2, 0, 5, 7]]
    assert not any(name.startswith("__jl") for name in shell.user_ns)


def test_what_is_faster_compiled_stays_compiled(shell, plan):
    plan.takes.update({COMPILED: 2000, PYTHON: 3000})
    for _ in range(25):
        report, _ = run(shell, IN_PIECES)
    assert trial_of(shell).way == COMPILED and as_python(report) == []
    assert report["clusters"][0]["calls"] == 1


def test_each_text_size_and_dtype_is_decided_by_itself(shell, plan):
    for x, python in ((np.ones(10), 300), (np.ones(1000), 30_000), (np.ones(10, np.float32), 30_000)):
        shell.user_ns["x"] = x
        plan.takes[PYTHON] = python
        for _ in range(25):
            report, _ = run(shell, "%%jit\ny = np.tanh(x) + 1\n")
    ((runs),) = [runs for runs in deciding_cells._runs.values() if runs.trials]
    assert [trial.way for trial in runs.trials.values()] == [PYTHON, COMPILED, COMPILED]
    shell.user_ns["x"] = np.ones(11)
    assert as_python(run(shell, "%%jit\ny = np.tanh(x) + 1\n")[0])
    report, _ = run(shell, "%%jit\ny = np.tanh(x) + 2\n")
    assert as_python(report) == [] and report["clusters"][0]["calls"] == 1


def test_a_long_run_decides_soon(shell, plan):
    plan.takes.update({COMPILED: 20 * LONG_NS, PYTHON: 1000})
    ways = []
    for _ in range(12):
        report, _ = run(shell, IN_PIECES)
        ways.append(bool(as_python(report)))
    assert ways[:3] == [False, False, True] and all(ways[3:])


@pytest.mark.parametrize("option", ["--strict", "--compare", "--check", "-r 1 -n 1"])
def test_who_asks_what_is_compiled_always_gets_it(shell, plan, option):
    source = f"%%jit {option}\ny = np.tanh(x) + 1\n"
    for _ in range(20):
        report, _ = run(shell, source)
    assert not plan.ways and (report is None or as_python(report) == [])


def test_off_compiles_all(shell, plan):
    jl.config.settle = "off"
    for _ in range(20):
        report, _ = run(shell, IN_PIECES)
    assert not plan.ways and as_python(report) == []


def test_by_counts_it_is_so_after_the_first_runs(shell, plan):
    jl.config.settle = "model"
    said = [as_python(run(shell, IN_PIECES)[0]) for _ in range(9)]
    assert said[0] == [] and not plan.ways
    (text,) = said[-1]
    assert text.startswith("runs as Python: entering its 2 pieces takes longer than Python takes for what is compiled in them")


def test_where_nothing_can_be_compiled_the_third_run_is_python(shell, plan):
    source = "%%jit\nlog.__iadd__([len(log)])\nsorted(log)\n"
    for number in range(5):
        report, result = run(shell, source)
        assert result.result == [0] * BEFORE + list(range(BEFORE, BEFORE + number + 1))
        assert (as_python(report) != []) == (number >= 2)
    assert as_python(report)[0].startswith("runs as Python: nothing in it can be compiled; because += changes a list")


def test_another_setting_reopens_it(shell, plan):
    for _ in range(25):
        run(shell, IN_PIECES)
    assert trial_of(shell).way == PYTHON
    before, jl.config.max_cluster_size = jl.config.max_cluster_size, 1000
    try:
        assert as_python(run(shell, IN_PIECES)[0]) == []
    finally:
        jl.config.max_cluster_size = before


def test_a_run_that_raises_is_no_measure_and_leaves_what_python_leaves(shell, plan):
    source = "%%jit\nn = n + 1\ny = np.tanh(x) * n\nif n % 2:\n    raise ValueError(n)\nz = y + 1\n"
    shell.user_ns["n"] = 1100
    for number in range(1101, 1161):
        _, result = run(shell, source)
        assert shell.user_ns["n"] == number
        np.testing.assert_allclose(shell.user_ns["y"], np.tanh(shell.user_ns["x"]) * number)
        if number % 2:
            assert isinstance(result.error_in_exec, ValueError) and result.error_in_exec.args == (number,)
            assert lines_of(result.error_in_exec, True) == [4]
        else:
            result.raise_error()
            np.testing.assert_allclose(shell.user_ns["z"], shell.user_ns["y"] + 1)
        assert not any(name.startswith("__jl") for name in shell.user_ns)
    assert trial_of(shell).way == PYTHON and plan.ways.count(PYTHON) >= ENOUGH


def test_a_function_that_decides_is_first(shell, plan):
    """A call of the cell's that was a trial itself says nothing of what the cell takes."""
    shell.run_cell("@jl.jit\ndef f(x):\n    y = np.tanh(x) + 1\n    log.append(len(y))\n    return y * 2\n")
    jit = shell.user_ns["f"]
    inner = []
    for _ in range(12):
        run(shell, "%%jit\nz = f(x) + 1\n")
        inner.append(next(iter(jit._trials.values())).way)
    (trial,) = [trial for runs in deciding_cells._runs.values() for trial in runs.trials.values()]
    measured = len(trial.times[COMPILED]) + len(trial.times[PYTHON])
    assert measured <= sum(map(bool, inner))


def test_scopes_mark_nothing_in_a_run_as_python(shell, plan):
    source = "%%jit\nwith jl.jit_scope():\n    y = np.tanh(x) + 1\nlog.append(1)\n"
    for _ in range(25):
        _, result = run(shell, source)
        result.raise_error()
    assert trial_of(shell).way == PYTHON


def test_a_cell_that_waits_is_not_decided(shell, plan):
    shell.autoawait = True
    for number in range(15):
        _, result = run(shell, "%%jit\nimport asyncio\ny = np.tanh(x) + 1\nawait asyncio.sleep(0)\nlog.append(1)\n")
        result.raise_error()
        assert len(shell.user_ns["log"]) == BEFORE + number + 1
    assert not plan.ways


def test_under_jit_on_what_was_decided_holds_in_the_first_run(shell, plan, tmp_path, monkeypatch):
    """Another process begins with it: here the same one, which has forgotten its cells."""
    made = machine.ObjectCache(tmp_path)
    monkeypatch.setattr(machine, "object_cache", lambda: made)
    monkeypatch.setattr(CPU, "keeps_plans", True)
    monkeypatch.setattr(Operation, "has_others", False)
    monkeypatch.setattr(jl.config, "cache", True)
    source = "y = np.tanh(x) + 1\nprint(float(y[0]))\nz = y * 2\n"
    run(shell, "%jit on")
    for _ in range(25):
        run(shell, source)
    decided = trial_of(shell)
    assert decided.way == PYTHON and decided.kept is None
    cells._programs.clear()
    run(shell, source)
    again = trial_of(shell)
    assert again is not decided and again.way == PYTHON and str(again.said[-1]) == "as a process before this one has found"
    cells._programs.clear()
    shell.user_ns["x"] = np.ones(1000)  # other sizes are others
    run(shell, source)
    assert trial_of(shell).way == ""


TEXTS = [
    "x = x * 2\nx",
    "for i in range(3):\n    log.append(i * x.sum())",
    "def g(a):\n    return a + x\ny = g(x)\nlog.append(y.tolist())",
    "a, *b = log[-1:], x, x\nlog.append(b[0] is b[1])",
    "try:\n    log.append(1)\n    np.missing\nexcept AttributeError as error:\n    log.append(str(error))\n",
    "_ = 3\nlog.append([k for k in range(3)])\nx[0] = len(log)\nx.copy()",
    "import math as m\nclass C:\n    v = m.pi\nlog.append(C.v * x[1])",
    "w = [np.sin(x) for _ in range(2)]\nlog.append(len(w)); w[1][0]",
]


@pytest.mark.parametrize("text", TEXTS)
def test_both_ways_leave_what_python_leaves(shell, plan, text):
    plan.takes.update({COMPILED: 1000, PYTHON: 1000})  # so that the ways take turns for long
    names = {"np": np, "x": shell.user_ns["x"].copy(), "log": [0] * BEFORE}
    tree = ast.parse(text)
    for _ in range(PATIENCE + 2 * ENOUGH):
        exec(compile(tree, "<plain>", "exec"), names)
        _, result = run(shell, "%%jit\n" + text)
        result.raise_error()
        np.testing.assert_allclose(shell.user_ns["x"], names["x"], rtol=1e-14)
        assert len(shell.user_ns["log"]) == len(names["log"])
        for mine, plain in zip(shell.user_ns["log"], names["log"], strict=True):
            assert type(mine) is type(plain)
            assert mine == plain if isinstance(mine, (str, list)) else np.allclose(mine, plain, rtol=1e-14)
    assert {PYTHON, COMPILED} <= set(plan.ways) or trial_of(shell).counted is not None


def test_names_that_are_read_are_those_of_before(shell):
    """A name that the cell binds first is no part of the kind."""
    program = cells.CellProgram
    texts = {"y = x\nz = y": {"x"}, "for i in q:\n    i": {"q"}, "def f():\n    return g\n": {"g"}, "x += 1": {"x"}}
    for (text, expected), shown in itertools.product(texts.items(), ("none", "last_expr")):
        made = program(ast.parse(text).body, "<cell>", {}, shown, _compiled)
        assert made.names_read == expected


def _compiled(tree, filename, mode):
    return compile(tree, filename, mode)

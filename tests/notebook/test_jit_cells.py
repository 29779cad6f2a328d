"""`%%jit` with the real compiler, in a real shell."""

import copy
import gc
import re
import signal
import threading
import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from jitlab import errors
from jitlab.api.check.replaying import Took, largest_error, op_by_op
from jitlab.capture import NotReplayable
from jitlab.config import config
from jitlab.notebook.extension import session_of, unload_ipython_extension
from jitlab.notebook.magics import blas_threads as blas
from jitlab.notebook.magics.blas_threads import blas_threads
from jitlab.notebook.magics.compare import Comparison
from jitlab.notebook.magics.plain_cell import PlainCell
from jitlab.notebook.magics.timing import Replays
from jitlab.notebook.rpc.requests import answer
from jitlab.report import MIME
from jitlab.support.limits import OutOfTimeError
from tests.notebook.shells import new_shell

SOFTMAX = """\
z = x - x.max(axis=1, keepdims=True)
e = np.exp(z)
p = e / e.sum(axis=1, keepdims=True)
"""


@pytest.fixture
def shell():
    ip = new_shell()
    ip.user_ns.update(np=np, x=np.random.default_rng(0).normal(size=(300, 40)))
    yield ip
    unload_ipython_extension(ip)
    InteractiveShell.clear_instance()


def run(shell, source, fine=True):
    shell.display_pub.outputs.clear()
    result = shell.run_cell(source, store_history=True)
    if fine:
        result.raise_error()
    return result


def report_of(shell):
    return shell.display_pub.outputs[-1]["data"][MIME]


def test_softmax_is_compiled_and_shown_with_the_cells_lines(shell):
    run(shell, "%%jit\n" + SOFTMAX)
    report = report_of(shell)
    assert report["verdict"]["compiled"] == report["verdict"]["operations"] > 0
    assert report["verdict"]["clusters"] == 1 and report["verdict"]["numpy_seconds"] is None
    assert report["clusters"][0]["lines"] == [2, 3, 4]
    assert {file for op in report["ops"] for file, *_ in op["lines"]} == {"In [ ]"}
    x = shell.user_ns["x"]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(shell.user_ns["p"], e / e.sum(axis=1, keepdims=True), rtol=1e-12)


def test_compare_measures_numpy_on_copies_and_changes_nothing(shell):
    run(shell, "before = x.copy()\nw = np.zeros(40)")
    run(shell, "%%jit --compare\nfor i in range(30):\n    w += 0.5 * x[i]\nx[0] = 7.0\nt = np.tanh(x)")
    report = report_of(shell)
    verdict = report["verdict"]
    assert verdict["seconds"] > 0 and verdict["numpy_seconds"] > 0 and verdict["largest_error"] < 1e-12
    before = shell.user_ns["before"]
    np.testing.assert_allclose(shell.user_ns["w"], 0.5 * before[:30].sum(axis=0))
    np.testing.assert_array_equal(shell.user_ns["x"][0], 7.0)
    lanes = {lane["name"]: lane["spans"] for lane in report["timeline"]["lanes"]}
    assert {"op by op", "compiled", "kernels", "compiling"} <= set(lanes)
    assert "np.tanh(x)" in {span["label"] for span in lanes["op by op"]}
    assert {span["label"] for span in lanes["compiled"]} == {"_XlaLaunch"}
    starts = [span["start"] for span in lanes["op by op"]]
    assert starts == sorted(starts) and starts[0] == 0


def test_check_puts_errors_and_bounds_into_the_report_and_changes_nothing(shell):
    run(shell, "%%jit --check\nt = np.tanh(x) + 1\nx[0] = 7.0\nk = np.argmax(x, axis=1)")
    report = report_of(shell)
    rows = {row["op"]: row for row in report["numerics"]}
    assert rows and all(row["ok"] for row in rows.values())
    assert rows["AddV2"]["bound_ulp"] > 0 and rows["AddV2"]["lines"] == [2] and rows["ArgMax"]["bound_ulp"] == 0
    assert sum(cluster["calls"] for cluster in report["clusters"]) == len(report["clusters"])  # the check is no run
    np.testing.assert_array_equal(shell.user_ns["x"][0], 7.0)
    assert "within their bounds, compared with NumPy" in shell.display_pub.outputs[-1]["data"]["text/plain"]


def test_a_cell_that_acts_on_the_world_is_not_checked_and_says_so(shell, capsys):
    run(shell, "%%jit --check\nimport math")
    assert "Not checked beside NumPy: nothing was compiled in this cell." in capsys.readouterr().err


def test_both_sides_are_measured_in_rounds_and_the_median_is_shown(shell, monkeypatch):
    """The times are planned: NumPy's side takes 5 ms, ours 1 ms, another one in each round."""
    now = iter(range(100))
    monkeypatch.setattr(PlainCell, "run", lambda self: Took(5_000_000 + next(now) * 1000))
    monkeypatch.setattr(Replays, "loop", lambda self, loops: Took(1_000_000 + next(now) * 100))
    monkeypatch.setattr("jitlab.notebook.magics.rounds.MOST_REPEATS", 1)
    monkeypatch.setattr("jitlab.notebook.magics.rounds.ENOUGH_NS", 1 << 60)
    monkeypatch.setattr("jitlab.notebook.magics.rounds.LONG_NS", 1 << 60)
    run(shell, "%%jit --compare\nt = np.tanh(x)")
    verdict = report_of(shell)["verdict"]
    assert verdict["speed"]["rounds"] == 15
    assert verdict["speed"]["text"] == "about 5.0 × faster"
    assert 5e-3 < verdict["numpy_seconds"] < 5.03e-3 and 1e-3 < verdict["seconds"] < 1.003e-3


def test_the_lanes_and_the_clusters_of_a_comparison_are_one_run(shell):
    run(shell, "%%jit --compare\nt = np.tanh(x)")
    report = report_of(shell)
    assert report["clusters"][0]["calls"] == 1
    lanes = {lane["name"]: lane["spans"] for lane in report["timeline"]["lanes"]}
    assert [span["label"] for span in lanes["op by op"]] == ["np.tanh(x)"]
    spent = sum(span["duration"] for span in lanes["compiled"]) / 1e6
    assert spent == pytest.approx(report["clusters"][0]["seconds"], abs=1e-8)


def test_what_the_run_took_stays_beside_a_comparison(shell, monkeypatch):
    """Sums agree with their parts: of clusters, lines and the timeline of the run. The comparison's are the factor's alone."""
    monkeypatch.setattr(PlainCell, "run", lambda self: Took(5_000))
    monkeypatch.setattr(Replays, "loop", lambda self, loops: Took(1_000))
    run(shell, "%%jit --compare\nt = np.tanh(x)\nu = (t + 1).sum(axis=0) @ np.ones((x.shape[1], 3))")
    report = report_of(shell)
    verdict = report["verdict"]
    assert (verdict["seconds"], verdict["numpy_seconds"]) == (1e-6, 5e-6) and verdict["speed"]["text"] == "about 5.0 × faster"
    assert "both measured after the run, in 15 rounds" in verdict["speed"]["note"]
    parts = [entry["seconds"] for entry in (*report["clusters"], *report["fallbacks"]) if entry["seconds"]]
    assert verdict["waited"]["work"] == pytest.approx(sum(parts))
    assert verdict["slowest"]["seconds"] < verdict["waited"]["seconds"]
    lanes = {lane["name"]: lane["spans"] for lane in report["timeline"]["lanes"]}
    launches = [span for span in lanes["compiled"] if span["kind"] == "launch"]
    assert sum(span["duration"] for span in launches) / 1e6 == pytest.approx(verdict["waited"]["work"], abs=1e-7)


def plan_times(monkeypatch, numpy, ours):
    """What each run of a side takes, as clocks would tell it."""
    monkeypatch.setattr(PlainCell, "run", lambda self: numpy)
    monkeypatch.setattr(Replays, "loop", lambda self, loops: ours)


def test_threads_of_blas_that_wait_at_work_are_no_work_of_numpys(shell, monkeypatch):
    """By the clock NumPy takes 12 ms and we 10; two threads that wait for each other were at work for 210 ms meanwhile."""
    plan_times(monkeypatch, Took(12_000_000, 210_000_000, 12_000_000), Took(10_000_000, 9_000_000, 9_000_000))
    monkeypatch.setattr("jitlab.notebook.magics.compare.blas_threads", lambda: 2)
    run(shell, "%%jit --compare\nt = np.tanh(x @ x.T)")
    verdict = report_of(shell)["verdict"]
    assert verdict["speed"]["ratio"] == pytest.approx(1.2, rel=0.01)
    assert "by the clock, since BLAS ran on 2 threads" in verdict["speed"]["note"]
    run(shell, "%%jit --compare\nt = np.tanh(x) + 1")
    assert "by the clock, since several threads worked" in report_of(shell)["verdict"]["speed"]["note"]


@pytest.mark.parametrize(("others", "threads"), [(0.9, 1), (0.0, 2)])
def test_blas_runs_on_one_thread_on_both_sides_where_others_have_the_processors(shell, monkeypatch, others, threads):
    known, at, seen = blas_threads(), [2], set()
    monkeypatch.setattr(blas, "_functions", lambda: (lambda: at[-1], at.append))
    monkeypatch.setattr("jitlab.notebook.magics.compare.Load.others", lambda self: others)
    monkeypatch.setattr(Took, "is_of_threads", False)  # the BLAS of this process has the threads that it has
    run_plain, run_compiled = PlainCell._timed, Replays.loop
    monkeypatch.setattr(PlainCell, "_timed", lambda self, *args: (seen.add(("numpy", at[-1])), run_plain(self, *args))[1])
    monkeypatch.setattr(Replays, "loop", lambda self, loops: (seen.add(("ours", at[-1])), run_compiled(self, loops))[1])
    run(shell, "%%jit --compare\nt = np.tanh(x @ x.T)")
    assert seen == {("numpy", threads), ("ours", threads)} and at[-1] == 2
    note = report_of(shell)["verdict"]["speed"].get("note", "")
    assert ("BLAS on one thread on both sides" in note) is (threads == 1)
    monkeypatch.undo()
    assert blas_threads() == known


def test_numpys_side_is_ended_where_it_takes_too_long_and_the_factor_is_a_bound(shell, monkeypatch):
    def ended(run, limit_ns, is_due):
        run()
        raise OutOfTimeError

    monkeypatch.setattr("jitlab.notebook.magics.plain_cell.within", ended)
    monkeypatch.setattr(PlainCell, "run", None)  # not a second time
    monkeypatch.setattr(Replays, "loop", lambda self, loops: Took(1))
    run(shell, "before = x.copy()")
    run(shell, "%%jit --compare\nx *= 2\nt = np.tanh(x)")
    np.testing.assert_array_equal(shell.user_ns["x"], shell.user_ns["before"] * 2)
    verdict = report_of(shell)["verdict"]
    speed = verdict["speed"]
    assert re.fullmatch(r"at least \d+ × faster", speed["text"]) and "NumPy was stopped after " in speed["note"]
    assert verdict["numpy_seconds"] is None and speed["low"] == speed["ratio"] and speed.get("high") is None


def test_a_whole_cell_whose_numpy_side_was_ended_does_not_run_again(shell, monkeypatch, capsys):
    def ended(run, limit_ns, is_due):
        raise KeyboardInterrupt

    monkeypatch.setattr("jitlab.notebook.magics.plain_cell.within", ended)
    monkeypatch.setattr(PlainCell, "run_captured", None)
    capsys.readouterr()
    run(shell, "%%jit --compare\ny = np.tanh(x)\nprint('once', y.sum())\nz = y + 1")
    assert capsys.readouterr().out.count("once") == 1
    verdict = report_of(shell)["verdict"]
    assert verdict["statements"] and verdict["numpy_seconds"] is None and verdict["waited"].get("next") is None


def test_a_round_that_is_interrupted_ends_the_rounds_and_those_before_it_stand(shell, monkeypatch):
    runs = iter([Took(5_000_000)] * 4 + [None])

    def interrupted(self):
        if (took := next(runs)) is None:
            raise KeyboardInterrupt
        return took

    monkeypatch.setattr(PlainCell, "run", interrupted)
    monkeypatch.setattr("jitlab.notebook.magics.rounds.MOST_REPEATS", 1)
    monkeypatch.setattr("jitlab.notebook.magics.rounds.LONG_NS", 1 << 60)
    run(shell, "%%jit --compare\nt = np.tanh(x)")
    assert report_of(shell)["verdict"]["speed"]["rounds"] == 4


def test_operations_one_by_one_that_take_too_long_are_left_out_of_the_picture(shell, monkeypatch):
    for limit in ("PICTURE_NS", "PICTURE_TIMES"):
        monkeypatch.setattr(f"jitlab.notebook.magics.compare.{limit}", -1)
    run(shell, "%%jit --compare\nt = np.tanh(x)")
    report = report_of(shell)
    assert report["verdict"]["speed"]["ratio"] > 0 and report["verdict"].get("largest_error") is None
    assert not [lane for lane in report["timeline"]["lanes"] if lane["name"] == "op by op"]


def test_operations_one_by_one_may_take_work_as_numpys_side_does_and_not_time_as_others_leave(shell, monkeypatch):
    limits, op_by_op, clock = [], Comparison._op_by_op, count(0, 10**12)

    def while_others_have_the_processor(self, limit_ns):
        limits.append(limit_ns)
        with pytest.MonkeyPatch.context() as patch:
            clocks = SimpleNamespace(**{**vars(time), "perf_counter_ns": lambda: next(clock)})
            patch.setattr("jitlab.api.check.replaying.time", clocks)
            return op_by_op(self, limit_ns)

    monkeypatch.setattr(Comparison, "_op_by_op", while_others_have_the_processor)
    plan_times(monkeypatch, Took(*[1_500_000_000] * 3), Took(*[1_000_000] * 3))
    run(shell, "%%jit --compare\nt = np.tanh(x)")
    assert limits == [4 * 1_500_000_000]
    assert [lane for lane in report_of(shell)["timeline"]["lanes"] if lane["name"] == "op by op"]


def test_who_waits_for_numpy_is_told_and_may_stop_it(shell, monkeypatch, capsys):
    monkeypatch.setattr("jitlab.notebook.magics.waiting.SAID_AFTER", -1.0)
    asked = []

    def waits(run, limit_ns, is_due):
        def look():
            asked.append(is_due())
            session = shell.find_line_magic("jitlab").__self__.session
            assert answer(session, {"want": "cancel", "job": session.waiting.ticket}) == {"cancelled": True}
            asked.append(is_due())

        thread = threading.Thread(target=look)  # as the one that looks at the clock
        thread.start()
        thread.join()
        raise OutOfTimeError

    monkeypatch.setattr("jitlab.notebook.magics.plain_cell.within", waits)
    run(shell, "%%jit --compare\nt = np.tanh(x)")
    assert asked == [False, True] and "NumPy is being measured beside it" in capsys.readouterr().err
    assert shell.find_line_magic("jitlab").__self__.session.waiting is None


def test_long_work_is_compared_once(shell, monkeypatch):
    monkeypatch.setattr("jitlab.notebook.magics.rounds.LONG_NS", 1)
    run(shell, "%%jit --compare\nt = np.tanh(-x)")
    speed = report_of(shell)["verdict"]["speed"]
    assert speed["rounds"] == 1 and speed["text"].endswith("one run each") and speed.get("low") is None


PLAIN = {
    "what it finds": "y = np.tanh(x)\nx[1] = 2.0\nk = k + 1",
    "a list and a dict": "items.append(x.sum())\nfound['last'] = x * k",
    "a function of the notebook": "y = twice(x)\ny += jitted(y)",
    "random numbers": "y = rng.normal(size=x.shape) * x",
    "an object": "model.bias[...] += 1.0\nmodel.steps = k",
    "a list that Python sorts": "y = np.tanh(x)\nitems += [y.sum(), 0.5]\nitems.sort()\nx[0] = items[0]",
    "what is printed": "y = np.tanh(x)\nprint(y.sum(), f'{y.mean():.2f}')\nfound[f'{y.min():.1f}'] = items.pop()\nx[1] = 1",
    "a length from data": "y = x[x > 0.5]\nfor v in sorted(set(np.round(y, 1))):\n    items.append(float(v))\ny = np.sqrt(y)",
}


@pytest.mark.parametrize("source", PLAIN.values(), ids=PLAIN)
def test_the_statements_run_again_on_what_they_found_and_change_nothing(shell, source, monkeypatch, capsys):
    run(shell, """
        import jitlab as jl
        k, items, found, rng = 2, [1.0], {}, np.random.default_rng(1)
        def twice(a):
            return a * 2 + k
        @jl.jit
        def jitted(a):
            return a - 1
        class Model:
            bias = np.zeros(3)
            steps = 0
        model = Model()
    """.replace("\n        ", "\n"))
    before = deepcopy_of(shell)
    exec(source, before)
    run_again, seen = PlainCell._timed, []

    def watched(self, *args, **options):
        spent = run_again(self, *args, **options)
        seen.append(state_of(shell.user_ns))
        return spent

    monkeypatch.setattr(PlainCell, "_timed", watched)
    capsys.readouterr()
    run(shell, f"%%jit --compare\n{source}")
    report = report_of(shell)
    assert state_of(shell.user_ns) == state_of(before)
    assert capsys.readouterr().out.count("\n") == source.count("print")
    if report["verdict"]["numpy_seconds"] is not None:
        both = 2 if report["statements"] else 1  # sides that are the statements themselves
        assert report["verdict"]["speed"] and len(seen) > 10 * both
        assert set(seen) == {state_of(before)}  # each time the same, from the same start


NOT_AGAIN = {
    "name = os.path.join('a', 'b')": "what they do with `os` (the module os)",
    "k = next(it)": "what they do with `it` (generator)",
    "display(k)": "what they do by `display`",
    "%time k = 3": "what they do by `get_ipython`",
    "shown(k)": "what they do by `xml.dom`",
    "open('made.txt', 'a').write('1')": "it writes the file 'made.txt'",
    "opened.read()": "what they do with `opened` (_io.TextIOWrapper)",
    "part.thread.start()": "what they do with `Part.thread` (threading.Thread)",
}


@pytest.mark.parametrize(("statement", "why"), NOT_AGAIN.items())
def test_statements_that_cannot_be_taken_back_are_not_run_again(shell, statement, why, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "read.txt").write_text("text")
    run(shell, """
        import os, threading
        k, it, opened = 2, iter(n for n in range(100)), open('read.txt')
        def shown(a):
            import xml.dom
            return id(a)
        class Own(threading.Thread):
            def run(self): pass
        class Part:
            thread = Own()
        part = Part()
    """.replace("\n        ", "\n"))
    run(shell, f"%%jit --compare\ny = np.tanh(x)\n{statement}\nz = y + 1")
    report = report_of(shell)
    assert report["statements"] and next(shell.user_ns["it"]) == ("next" in statement)
    said = f"NumPy was not measured: the cell's statements cannot run again, since {why}"
    assert said in capsys.readouterr().err and "speed" not in report["verdict"]
    assert not (tmp_path / "made.txt").exists() or (tmp_path / "made.txt").read_text() == "1"
    run(shell, "opened.close()")


def deepcopy_of(shell):
    names = ("x", "k", "items", "found", "rng", "twice", "jitted", "model")
    copied = copy.deepcopy({name: shell.user_ns[name] for name in names if name not in ("twice", "jitted")})
    return {**copied, "np": np, "twice": shell.user_ns["twice"], "jitted": shell.user_ns["jitted"].python_function}


def state_of(names):
    """All that the programs change, as text; compiled sums may have other last digits."""
    model, found = names["model"], names["found"]
    arrays = names["x"][:3], names["items"], [*found.values()], model.bias, names.get("y", [0.0])
    told = [np.round(array, 9).tolist() for array in arrays]
    return repr((told, list(found), names["k"], model.steps, names["rng"].bit_generator.state["state"]))


@pytest.mark.parametrize("source", ["y = x + 1\nopen('made.txt', 'w').close()", "import os\ny = x * 2\nos.mkdir('made')"])
def test_what_acts_on_the_world_outside_does_so_once(shell, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(shell, f"%%jit --compare\n{source}")
    assert len(list(tmp_path.iterdir())) == 1
    assert "speed" not in report_of(shell)["verdict"]


def test_a_factor_stands_while_the_cell_and_what_it_finds_are_the_same(shell, monkeypatch):
    monkeypatch.setattr(config, "stable_outputs", False)
    measured = []
    replay = Comparison.replay

    def watched(self, *args, **options):
        measured.append(len(self.calls))
        return replay(self, *args, **options)

    monkeypatch.setattr(Comparison, "replay", watched)
    cell = "%%jit --compare\nt = np.tanh(x) + k"
    run(shell, f"k = 2\n{SOFTMAX}")
    run(shell, cell)
    first = report_of(shell)["verdict"]
    for _ in range(3):
        run(shell, cell)
        verdict = report_of(shell)["verdict"]
        assert first["speed"]["text"] in verdict["speed"]["text"] and verdict["speed"]["note"].find("measured at ") >= 0
        assert verdict["numpy_seconds"] is None  # of one side alone nothing is kept
    assert len(measured) == 1
    run(shell, cell.replace("--compare", "--compare anew"))
    assert len(measured) == 2 and "measured at" not in report_of(shell)["verdict"]["speed"].get("note", "")
    for change in ("x = x[:40].copy()", "k = 3", "k = 3.0"):
        run(shell, change)
        run(shell, cell)
    assert len(measured) == 5
    run(shell, cell.replace("tanh", "cosh"))
    assert len(measured) == 6 and min(measured) == 1


def test_options_that_change_nothing_of_the_code_keep_traces_and_the_factor(shell, monkeypatch):
    monkeypatch.setattr(config, "stable_outputs", False)
    session = shell.find_line_magic("jitlab").__self__.session

    def traces(options):
        run(shell, f"%%jit {options}\nt = np.tanh(x) * 3")
        newest = next(reversed(session.cells.values()))
        return newest.recording.traced, session.report_of(newest).data["verdict"].get("speed")

    assert traces("")[0] == 1
    assert [traces(options)[0] for options in ("-q", "--check", "--show verdict", "-n 2 -r 2")] == [0] * 4
    none, measured = traces("--compare")
    for options in ("--compare -q", "-o report --compare"):
        again, speed = traces(options)
        assert none == again == 0 and measured["ratio"] == speed["ratio"] and speed["note"].find("measured at ") >= 0
    assert [traces(options)[0] for options in ("--level O0", "--strict", "", "--level O0")] == [1, 1, 0, 0]
    assert len(session.cells) == 1  # all of them are one cell


def test_a_level_that_is_asked_for_later_is_taken(shell):
    run(shell, "%jit on")
    counts = []
    for line in ("%jit on --level O0", "%jit on"):
        run(shell, "y = np.exp(x)\nz = np.sqrt(y) + 1")
        counts.append(report_of(shell)["verdict"]["kernels"])
        run(shell, line)
    run(shell, "y = np.exp(x)\nz = np.sqrt(y) + 1")
    assert counts[0] < counts[1] and report_of(shell)["verdict"]["kernels"] == counts[0]


@pytest.mark.parametrize("debugged", [False, True])
def test_an_error_of_a_cell_with_other_options_than_before_has_its_number_and_lines(shell, debugged, monkeypatch, capsys):
    monkeypatch.setattr("jitlab.notebook.magics.running.is_debugged", lambda: debugged)
    run(shell, "%%jit\ny = x * 2\nassert k_is_there, 'no k'", fine=False)
    run(shell, "k_is_there = False")
    capsys.readouterr()
    run(shell, "%%jit --show none -q\ny = x * 2\nassert k_is_there, 'no k'", fine=False)
    told = capsys.readouterr().out
    assert "In[3], line 3" in told and "--show none -q" in told and "AssertionError: no k" in told


def test_a_run_of_other_code_has_no_factor_of_an_earlier_one(shell, capsys, monkeypatch):
    monkeypatch.setattr(config, "stable_outputs", False)
    run(shell, "import jitlab as jl\n@jl.function\ndef f(a):\n    return np.tanh(a)")
    cell = "%%jit --compare\nfor n in items:\n    t = f(n)"
    run(shell, "items = [x, x[:10]]")
    run(shell, cell)
    run(shell, "items = [x[:20], x[:10] * 1j]")
    capsys.readouterr()
    run(shell, cell)
    assert "NumPy was not measured: other code ran" in capsys.readouterr().err
    assert "speed" not in report_of(shell)["verdict"]
    run(shell, cell)
    assert report_of(shell)["verdict"]["speed"]["ratio"] > 0


def test_compare_covers_compiled_functions_that_the_cell_calls(shell):
    run(shell, "import jitlab as jl\n@jl.function\ndef f(a):\n    return np.tanh(a).sum()")
    run(shell, "%%jit --compare\nfor i in range(3):\n    s = f(x)")
    report = report_of(shell)
    assert report["verdict"]["numpy_seconds"] > 0
    assert report["clusters"][0]["calls"] == 3


def test_compare_refuses_too_many_bytes_and_says_how_many(shell, capsys, monkeypatch):
    monkeypatch.setattr(config, "copy_limit_bytes", 50_000)
    run(shell, "%%jit --compare\ny = x + 1\n")
    assert report_of(shell)["verdict"]["numpy_seconds"] is None
    printed = capsys.readouterr().err
    assert "more than 50.0 kB (96.0 kB so far)" in printed and "jl.config.copy_limit_bytes = 192000" in printed
    np.testing.assert_array_equal(shell.user_ns["y"], shell.user_ns["x"] + 1)


def test_compare_draws_the_same_random_numbers_twice_and_sets_the_generator_back(shell):
    run(shell, "rng = np.random.default_rng(3)\ntwin = np.random.default_rng(3)")
    run(shell, "%%jit --compare\nnoise = rng.standard_normal(500)\nt = np.tanh(noise) + 1")
    assert report_of(shell)["verdict"]["largest_error"] < 1e-12
    run(shell, "expected = twin.standard_normal(500)\nafter = rng.random(), twin.random()")
    np.testing.assert_array_equal(shell.user_ns["noise"], shell.user_ns["expected"])
    assert shell.user_ns["after"][0] == shell.user_ns["after"][1]


def test_compare_and_check_draw_what_the_run_drew_where_a_mask_decides_how_much_is_left(shell, capsys):
    run(shell, "rng = np.random.default_rng(0)\ntwin = np.random.default_rng(0)")
    run(shell, "%%jit --compare --check\nxx = rng.random(100)\nsel = xx[xx > 0.3]\ns = sel.sum()")
    assert capsys.readouterr().err == ""
    report = report_of(shell)
    assert report["verdict"]["numpy_seconds"] > 0 and report["verdict"]["largest_error"] < 1e-12
    assert all(row["ok"] for row in report["numerics"])
    run(shell, "expected = twin.random(100)\nafter = rng.random(), twin.random()")
    np.testing.assert_array_equal(shell.user_ns["xx"], shell.user_ns["expected"])
    assert shell.user_ns["after"][0] == shell.user_ns["after"][1]


def test_a_cell_that_cannot_be_run_again_is_told_in_a_line_and_its_report_stands(shell, capsys, monkeypatch):
    def refuse(call):
        said = "`rows[mask]` in line 7 has another length each time\nand more"
        raise NotReplayable("data_dependent_shape", "raised", text=said)

    monkeypatch.setattr("jitlab.notebook.magics.compare.warm_up", refuse)
    run(shell, "%%jit --compare\nt = np.tanh(x)")
    printed = capsys.readouterr().err
    said = "the cell takes another path when it is repeated: `rows[mask]` in line 7 has another length each time."
    assert printed == f"NumPy was not measured: {said}\n"
    report = report_of(shell)
    assert report["verdict"]["numpy_seconds"] is None and report["clusters"][0]["calls"] == 1


def test_an_array_that_does_not_change_is_copied_once():
    class Fake:
        graph = type("G", (), {"nodes": []})()

    comparison, x, w = Comparison(), np.zeros(1000), np.zeros(10)
    for _ in range(5):
        comparison.note(Fake(), [x, w, 3.0])
        w += 1
    assert comparison._copies.bytes == x.nbytes + 5 * w.nbytes
    assert [call.arguments[1][0] for call in comparison.calls] == [0, 1, 2, 3, 4]


def test_largest_error_is_relative_to_the_arrays_scale():
    assert largest_error([np.array([1.0, 100.0])], [np.array([2.0, 100.0])]) == 0.01
    assert largest_error([np.array([np.nan, np.inf])], [np.array([np.nan, np.inf])]) == 0
    assert largest_error([np.int64(3), np.float64(0)], [np.int64(3), np.float64(0)]) == 0


def test_strict_names_what_is_not_compiled(shell, capsys):
    result = run(shell, "%%jit --strict\nq = np.unique(x)", fine=False)
    assert isinstance(result.error_in_exec, errors.JitlabError)
    assert "q" not in shell.user_ns
    printed = capsys.readouterr().out
    assert "unique" in printed and "line 2" in printed and "try:" in printed
    assert "jitlab/notebook" not in printed and "jitlab/capture" not in printed


def test_host_operation_stands_in_the_report_with_its_reason(shell):
    run(shell, "%%jit\nq = np.tanh(x)\nr = np.unique(q)")
    (fallback,) = report_of(shell)["fallbacks"]
    assert fallback["lines"][0][1] == 3 and fallback["reason"]["text"] and fallback["seconds"] > 0


def test_an_error_half_way_leaves_what_numpy_would_have_left(shell, capsys):
    result = run(shell, "%%jit\na = x + 1\nb = a[:, 0] / np.zeros(7)\nc = 3", fine=False)
    assert isinstance(result.error_in_exec, ValueError)
    assert "a" in shell.user_ns and "b" not in shell.user_ns and "c" not in shell.user_ns
    assert report_of(shell)["cell"]["error"] == "ValueError"
    printed = capsys.readouterr().out
    assert "----> 3 b = a[:, 0] / np.zeros(7)" in printed


@pytest.mark.parametrize("how", ["%%jit\n", "%jit on\n"])
def test_the_traceback_of_a_cell_stands_above_its_report_which_is_one_line(shell, monkeypatch, how):
    happened = []
    monkeypatch.setattr(shell, "showtraceback", lambda *args, **options: happened.append("traceback"))
    publish = shell.display_pub.publish
    shown_by = lambda *args, **options: (happened.append("report"), publish(*args, **options))  # noqa: E731
    monkeypatch.setattr(shell.display_pub, "publish", shown_by)
    if how == "%jit on\n":
        run(shell, how)
        how = ""
    run(shell, f"{how}a = np.tanh(x) * 2\nb = a[:, 0] / np.zeros(7)", fine=False)
    assert happened == ["traceback", "report"]
    shown = shell.display_pub.outputs[-1]["data"]
    assert shown["text/plain"].startswith("stopped by ValueError · ") and shown["text/plain"].count("\n") <= 1
    assert shown["text/html"].startswith("<details><summary>jitlab: stopped by ValueError")


def test_level_o0_fuses_nothing(shell):
    run(shell, "%%jit --level O0\n" + SOFTMAX)
    several = report_of(shell)["verdict"]["kernels"]
    run(shell, "%%jit\n" + SOFTMAX)
    assert report_of(shell)["verdict"]["kernels"] < several


@pytest.mark.slow
def test_an_interrupt_stops_the_cell_and_keeps_the_report(shell):
    gc.collect()  # Python drops an interrupt that comes while a callback of garbage runs: there is none of other tests
    timer = threading.Timer(2.0, lambda: signal.raise_signal(signal.SIGINT))  # the loop runs by then, also on a busy machine
    timer.start()
    result = run(shell, "%%jit\ni = 0\nwhile True:\n    x = np.tanh(x)\n    i += 1", fine=False)
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert shell.user_ns["i"] > 0
    assert report_of(shell)["cell"]["error"] == "KeyboardInterrupt"


def test_recording_of_a_plain_cell_names_the_line_that_retraced(shell):
    run(shell, "import jitlab as jl\n@jl.function\ndef f(a, k):\n    return np.tanh(a) * k")
    run(shell, "for k in (2.0, 3.0, 4.0):\n    f(x, k)")
    assert not shell.display_pub.outputs
    session = session_of(shell)
    report = session.report_of(session.cells[next(reversed(session.cells))])
    assert [r.argument for r in report.retraces] == ["k", "k"]
    assert report.to_json()["retraces"][1]["lines"][0][0] == "<cell 1>"


def test_op_by_op_lets_values_go(monkeypatch):
    class Op:
        name = "Add"

        def numpy(self, a):
            return a + 1

    from jitlab.ir import ArrayType, Graph, Node

    kind = ArrayType((2,), np.dtype("f8"))
    first = Node(None, (), kind, name="x")
    chain = [first]
    for n in range(3):
        chain.append(Node(Op(), (chain[-1],), kind, name=f"n{n}"))
    graph = Graph("g", [first], chain[1:], [chain[-1]])
    outputs, spans = op_by_op(graph, [np.zeros(2)])
    assert outputs[0].tolist() == [3, 3] and len(spans) == 3


def test_the_same_text_is_the_same_cell_where_no_front_end_names_cells(shell):
    reports = []
    for _ in range(2):
        run(shell, "%%jit\n" + SOFTMAX)
        reports.append(report_of(shell))
    first, second = reports
    assert first["retraces"][0]["first"] and second["retraces"] == [] and second["verdict"].get("first_run") is None
    (cell,) = session_of(shell).cells.values()
    assert cell.title == f"In [{shell.execution_count - 1}]"
    failed = run(shell, "%%jit\nlog = x / 0 if False else 1 / 0", fine=False), run(shell, "%%jit\n" + SOFTMAX)
    assert failed[0].error_in_exec is not None and report_of(shell)["retraces"] == []
    run(shell, "%%jit\n" + SOFTMAX + "q = p * 2")
    assert report_of(shell)["retraces"][0]["first"]  # another text


def test_what_a_cell_reads_is_bound_and_not_passed(shell):
    run(shell, "best = float('inf')\nclass Adam:\n    pass\nadam = Adam()")
    text = "%%jit\nbest = np.minimum(best, x.min())\ny = x * 2\nadam.y = y"
    run(shell, text)
    assert "the compiled code gives its values, and Python does what is done with them" in str(report_of(shell)["statements"])
    run(shell, text)
    fixes = {retrace["argument"]: retrace["fix"] for retrace in report_of(shell)["retraces"]}
    assert fixes["best"]["text"] == "Give best the same kind of value each time, as in `best = np.float64(…)`."
    assert {fix["code"] for fix in fixes.values() if fix} <= {"same_dtype_of_name", "same_kind_of_name"}


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0c", "\x1c", "\x0b"], ids=ascii)
def test_what_python_takes_for_no_end_of_a_line_shifts_no_lines(shell, mark):
    run(shell, f"%%jit\na = np.exp(x)  # pasted{mark}note\nb = np.sort(a, axis=0)\nc = np.tanh(b)")
    report = report_of(shell)
    assert [(op["called"], op["lines"][0][1]) for op in report["ops"]] == [("a", 2), ("b", 3), ("c", 4)]
    assert report["cell"]["source"][3] == "c = np.tanh(b)"

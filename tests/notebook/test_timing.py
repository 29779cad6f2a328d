"""`%%jit -n N -r R`: the compiled work of a cell again and again, told as `%timeit` tells it; the cell itself runs once."""

import re
from base64 import b64decode

import numpy as np
import pytest

import jitlab as jl
from jitlab.errors import OptionError
from jitlab.messages.units import duration
from jitlab.report import MIME

LINE = r"\d[\d.]* (?:ns|µs|ms|s) ± \d[\d.]* (?:ns|µs|ms|s) per loop \(mean ± std\. dev\. of 2 runs, 3 loops each\)"


@pytest.fixture
def run(ip):
    """Runs a cell that must not fail; its bundle, of the last output."""

    def run(cell):
        ip.display_pub.outputs.clear()
        ip.run_cell(cell, store_history=True).raise_error()
        return ip.display_pub.outputs[-1]["data"] if ip.display_pub.outputs else None

    ip.user_ns.update(np=np, jl=jl, x=np.arange(20.0), y=np.ones(20))
    return run


def unfolded(bundle):
    """The lines of a report before long ones were folded."""
    return bundle["text/plain"].replace("\n  ", " ").split("\n")


def test_the_line_of_timeit_stands_below_the_verdict_and_in_the_saved_output(run, monkeypatch):
    monkeypatch.setattr("jitlab.api.check.load.Load.others", lambda self: None)  # what others took makes a line longer
    bundle = run("%%jit -n 3 -r 2\nz = np.exp(x) + y")
    told = bundle[MIME]["verdict"]["repeated"]
    assert re.match(LINE, unfolded(bundle)[1])
    assert " per loop " in bundle["text/html"]
    own = unfolded(bundle)[0]
    assert own.startswith(f"{duration(bundle[MIME]['verdict']['waited']['seconds'])} this run")
    picture = b64decode(re.search(r"base64,([^\"]*)", bundle["text/html"])[1]).decode()
    assert f">{told['text']}<" in picture and f">{own}<" in picture
    assert (told["loops"], told["runs"], len(told["seconds"]), told["left_out"]) == (3, 2, 2, [])
    assert told["mean"] == pytest.approx(sum(told["seconds"]) / 2) and told["deviation"] >= 0


def test_the_cell_runs_once_and_leaves_what_one_run_leaves(run, ip, capsys):
    run("v = jl.Variable(np.zeros(20))\n@jl.function\ndef count(a):\n    v.assign_add(a)\n    return v * 2")
    run("np.random.seed(3); w = np.arange(20.0); view = w[2:]")
    run("%%jit -n 3 -r 2\nview += y[2:]\nw *= 2\nlast = count(y)\ndrawn = np.random.rand(4)\nprint('once', w.sum())")
    expected = np.arange(20.0)
    expected[2:] += 1
    expected *= 2
    assert capsys.readouterr().out.count("once") == 1
    assert np.array_equal(ip.user_ns["w"], expected) and np.array_equal(ip.user_ns["v"].numpy(), np.ones(20))
    generator = np.random.RandomState(3)
    assert np.array_equal(ip.user_ns["drawn"], generator.rand(4)) and np.random.rand() == generator.rand()


def test_what_python_ran_is_left_out_and_named(run):
    told = run("%%jit -n 3 -r 2\nz = x + 1\nprint('a', end='')\nz = z * 2")[MIME]["verdict"]["repeated"]
    assert told["left_out"] == ["print('a', end='') (line 3)"]
    assert told["text"].endswith("not run again: print('a', end='') (line 3).")


def test_without_n_there_are_as_many_loops_as_take_a_fifth_of_a_second(run, monkeypatch):
    monkeypatch.setattr("jitlab.notebook.magics.timing.LEAST_NS", 300_000)
    told = run("%%jit -r 2\nz = np.exp(x)")[MIME]["verdict"]["repeated"]
    digits = str(told["loops"])
    assert digits[0] in "125" and set(digits[1:]) <= {"0"} and told["runs"] == 2


def test_a_line_is_timed_too_and_an_expression_that_begins_with_a_minus_is_one(run, ip):
    assert re.match(LINE, unfolded(run("%jit -n 3 -r 2 (x * 2).sum()"))[1])
    run("n = x\nq = %jit -n + 5")
    assert np.array_equal(ip.user_ns["q"], -np.arange(20.0) + 5)


def test_copies_above_the_limit_are_refused_with_the_bytes(run, monkeypatch, capsys):
    monkeypatch.setattr(jl.config, "copy_limit_bytes", 100)
    bundle = run("%%jit -n 3\nz = x + 1")
    assert "Not timed: the copies of what the cell reads would take more than 100 B (160 B so far)" in capsys.readouterr().err
    assert "repeated" not in bundle[MIME]["verdict"]
    monkeypatch.setattr(jl.config, "copy_limit_bytes", 200)
    run("%%jit -n 3\nx += 1")
    assert "reads and changes would take 320 B, more than 200 B" in capsys.readouterr().err


def test_nothing_is_shown_with_q_and_o_has_the_report(run, ip):
    assert run("%%jit -q -n 3 -r 2 -o told\nz = x + 1") is None
    assert ip.user_ns["told"].data["verdict"]["repeated"]["loops"] == 3


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("%%jit -n 0\nx", "'0' is not a whole number from 1 on"),
        ("%%jit -n 1e3\nx", "'1e3' is not a whole number from 1 on"),
        ("%%jit -r -2\nx", "'-2' is not a whole number from 1 on"),
        ("%jit -n many (x * 2).sum()", "'many' is not a whole number from 1 on"),
        ("%jit on -n 4", "-n and -r would time every later cell"),
        ("%%jit -q --show graph\nx", "-q shows nothing, and --show graph asks for something"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_before_anything_ran(run, line, why):
    with pytest.raises(OptionError, match=re.escape(why)):
        run(line)


def test_show_takes_what_the_parts_are_called_elsewhere_and_names_a_near_one(run):
    bundle = run("%%jit --show clusters\nz = x + 1")
    assert "■ cluster_" in bundle["text/plain"] and bundle[MIME]["show"] == ["graph"]
    with pytest.raises(OptionError, match=r"--show knows no 'retaces' \(did you mean retraces\?\): graph, retraces, timeline"):
        run("%%jit --show retaces\nz = x + 1")

"""Loops of a cell whose iterations Python does in less time than it takes to enter their pieces: the first run of a `%%jit`
cell compiles all of them, those aside of which no piece is of use to another iteration; under `%jit on`, and where the cell
runs again, those after the first ones are Python's."""

from bisect import insort

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from jitlab.config import config
from jitlab.notebook.extension import unload_ipython_extension
from jitlab.report import MIME
from tests.notebook.shells import new_shell

PEAKS = """\
found = []
for i in range(1, len(x) - 1):
    if x[i] > x[i - 1] and x[i] >= x[i + 1]:
        insort(found, i)
    if i == 150:
        break
else:
    found.append("else")
"""
WHILE = """\
found, n = [], 0
while n < 200:
    insort(found, float(x[n] * 2))
    n += 1
    if n % 3: continue
    last = n
else:
    found.append("else")
"""
RAISES = """\
found = []
for n in range(1000):
    insort(found, float(x[n] * 3 + 1))
"""


@pytest.fixture
def shell(monkeypatch):
    monkeypatch.setattr(config, "settle", "model")
    ip = new_shell()
    ip.user_ns.update(np=np, insort=insort, x=np.random.default_rng(0).random(300))
    yield ip
    unload_ipython_extension(ip)
    InteractiveShell.clear_instance()


def run(shell, source):
    """The report, and the error."""
    shell.display_pub.outputs.clear()
    result = shell.run_cell(source, store_history=True)
    assert result.error_before_exec is None
    shown = [output["data"][MIME] for output in shell.display_pub.outputs if MIME in output["data"]]
    return (shown or [None])[-1], result.error_in_exec


def iterations(report):
    return max(cluster["calls"] for cluster in report["clusters"])


def reasons(report):
    return {statement["reason"]["code"] for statement in report["statements"]}


@pytest.mark.parametrize("source", [PEAKS, WHILE, RAISES])
def test_the_first_run_compiles_all_and_the_next_ones_not(shell, source):
    plain = {}
    try:
        exec(source, plain | {"x": shell.user_ns["x"], "insort": insort}, plain)
    except IndexError:
        pass
    plain.pop("__builtins__", None)
    for number in range(3):
        report, error = run(shell, "%%jit\n" + source)
        assert isinstance(error, IndexError) == (source is RAISES)
        assert {name: shell.user_ns[name] for name in plain} == plain
        assert (iterations(report) < 64) == (number > 0)
        assert ("settled" in reasons(report)) == (number > 0)
    assert not any(name.startswith("__jl") for name in shell.user_ns)


def test_under_jit_on_it_is_so_in_the_first_run(shell):
    run(shell, "%jit on")
    report, _ = run(shell, PEAKS)
    assert iterations(report) < 64 and "settled" in reasons(report)
    (loop,) = [statement for statement in report["statements"] if statement["reason"]["code"] == "settled"]
    assert [line[1:] for line in loop["lines"]] == [[2, 0, 2, 29]]
    assert loop["calls"] == 1


@pytest.mark.parametrize("options", ["--compare", "--check", "--strict"])
def test_who_asks_what_is_compiled_sees_all_iterations(shell, options):
    source = "y = x\nfor i in range(100):\n    y = y + 1\n    z = str(i)\n" if options == "--strict" else PEAKS
    for _ in range(2):
        report, _ = run(shell, f"%%jit {options}\n{source}")
    assert report is None or iterations(report) >= 100


def test_off_compiles_all(shell):
    config.settle = "off"
    for _ in range(2):
        report, _ = run(shell, "%%jit\n" + PEAKS)
        assert iterations(report) >= 100


USELESS = {
    "lists of numbers": "s = 0.0\nfor r in rows.tolist():\n    s += sum(r)\n",
    "others after some that fit": "s, found = 0.0, rows.tolist()\nfor r in found[:1] * 20 + found:\n    s += sum(r)\n",
    "inside another loop": "s = 0.0\nfor k in range(3):\n    for r in rows.tolist():\n        s += sum(r) * k\n",
    "a while": "s, n, found = 0.0, 0, rows.tolist()\nwhile n < len(found):\n    s += sum(found[n])\n    n += 1\n",
}


@pytest.mark.parametrize("source", USELESS.values(), ids=USELESS)
def test_a_loop_of_which_nothing_is_of_use_is_left_in_the_first_run(shell, source):
    """Each iteration captured something that no other one could use: sixteen times, and then each waited for the driver."""
    config.settle = "measure"
    shell.user_ns["rows"] = np.sqrt(np.arange(3600.0)).reshape(12, 300)
    plain = {"rows": shell.user_ns["rows"]}
    exec(source, plain)
    for number in range(3):
        report, _ = run(shell, "%%jit\n" + source)
        assert shell.user_ns["s"] == plain["s"] and type(shell.user_ns["s"]) is float
        assert report["verdict"]["traces"] <= 8 * (number == 0)
        assert report["verdict"]["next"]["advice"] == "plain_cell"
        if number == 0:
            assert "settled" in reasons(report) or not report["verdict"]["traces"]
        else:
            assert len(report["as_python"]) == 1 and not report["statements"]


def test_a_loop_whose_pieces_are_used_again_is_compiled_in_the_first_run(shell):
    """However often it is captured at first: the shapes come again."""
    source = "for row in [x[: 20 + k % 5] for k in range(120)]:\n    y = np.tanh(row * 2) + 1\n    z = str(len(row))\n"
    report, _ = run(shell, "%%jit\n" + source)
    assert "settled" not in reasons(report) and sum(cluster["calls"] for cluster in report["clusters"]) == 120
    assert report["verdict"]["next"] is None or report["verdict"]["next"]["advice"] != "plain_cell"

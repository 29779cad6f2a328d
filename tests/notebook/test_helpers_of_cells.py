"""What a `%%jit` cell calls and cannot capture whole runs in pieces of its own, also when its cell has run again."""

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.notebook.extension import unload_ipython_extension
from jitlab.report import MIME
from tests.notebook.shells import new_shell

DEFINED = """\
def loss(v, by=2):
    e = np.exp(-v) * by
    seen.__iadd__([len(v)])
    return np.log(e + 1).mean()
"""
CALLS = "%%jit\ny = np.tanh(x)\nz = loss(y) + 1\nw = z * 2"


@pytest.fixture
def shell(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    ip = new_shell()
    ip.user_ns.update(np=np, x=np.linspace(0, 1, 5), seen=[])
    yield ip
    unload_ipython_extension(ip)
    InteractiveShell.clear_instance()


def run(shell, source, fine=True):
    shell.display_pub.outputs.clear()
    result = shell.run_cell(source, store_history=True)
    if fine:
        result.raise_error()
    return result


def report(shell):
    return next(output["data"][MIME] for output in shell.display_pub.outputs if MIME in output["data"])


def functions(shell):
    return {plan["function"] for plan in report(shell)["plans"]}


def value(shell):
    names = {"np": np, "seen": []}
    exec(DEFINED, names)
    return (names["loss"](np.tanh(shell.user_ns["x"])) + 1) * 2


def test_its_pieces_are_in_the_cells_report(shell):
    run(shell, DEFINED)
    for n in range(1, 4):
        run(shell, CALLS)
        np.testing.assert_allclose(shell.user_ns["w"], value(shell))
        assert shell.user_ns["seen"] == [5] * n
        assert any("loss" in title for title in functions(shell)), functions(shell)
        assert [statement["text"].strip() for statement in report(shell)["statements"]] == ["seen.__iadd__([len(v)])"]
    assert not [name for name in shell.user_ns if name.startswith("__jl_")]


def test_one_that_was_defined_again_does_too(shell):
    run(shell, DEFINED)
    for _ in range(3):
        run(shell, CALLS)
    run(shell, DEFINED)
    run(shell, CALLS)
    np.testing.assert_allclose(shell.user_ns["w"], value(shell))
    assert any("loss" in title for title in functions(shell))
    run(shell, DEFINED.replace("+ 1)", "+ 3)"))
    for _ in range(2):
        run(shell, CALLS)
        assert shell.user_ns["w"] != pytest.approx(value(shell))
    run(shell, "loss = lambda v: 5.0")
    run(shell, CALLS)
    assert shell.user_ns["w"] == 12.0


def test_an_error_in_it_points_at_its_line(shell):
    run(shell, DEFINED)
    for _ in range(3):
        run(shell, CALLS)
    run(shell, "seen = None")
    error = run(shell, CALLS, fine=False).error_in_exec
    lines, entry = [], error.__traceback__
    while entry is not None:
        lines.append((entry.tb_frame.f_code.co_name, entry.tb_lineno))
        entry = entry.tb_next
    assert isinstance(error, AttributeError) and lines[-1] == ("loss", 3) and lines[-2][1] == 3, lines

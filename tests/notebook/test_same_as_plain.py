"""A notebook under `%%jit` (or `%jit on`) leaves what it leaves without: names, sharing, Out, printed text, errors, lines."""

from __future__ import annotations

import re

import pytest
from notebook_programs import NOTEBOOKS, namespace
from shells import run_cells

from jitlab.capture.drivers.driver import interpreted
from jitlab.notebook.magics import running
from tests import left


def described(names):
    """Without what Python notes of warnings, which compiled code does not give."""
    return left.described({name: value for name, value in names.items() if name != "__warningregistry__"})


def same(shell, cells, above, first="", alike=lambda described: described):
    theirs = run_cells(shell, cells, namespace())
    plain = described(theirs.names), described(theirs.values)
    if first:
        shell.run_cell(first).raise_error()
    mine = run_cells(shell, cells, namespace(), above)
    shell.run_cell("%jit off").raise_error()
    assert mine.errors == theirs.errors
    assert without_traceback(mine.printed) == without_traceback(theirs.printed)
    assert mine.shown == theirs.shown
    found = described(mine.names), described(mine.values)
    assert list(found[0][0]) == list(plain[0][0])
    assert alike(found) == alike(plain)


def rounded(described):
    """Compiled functions differ from NumPy's in the last bits."""
    return re.sub(r"\d+\.\d{12,}", lambda number: f"{float(number[0]):.13g}", str(described))


def without_traceback(text):
    """What was printed, tracebacks apart: they show the line above the cell too."""
    return re.sub(r"-{20,}.*?(?=\nOut\[|\Z)", "<traceback>", text, flags=re.DOTALL).split('  File "')[0].split("  Cell In")[0]


@pytest.fixture
def op_by_op(monkeypatch):
    """What is captured runs on NumPy: what is tested is the capture, and results are NumPy's bits."""
    monkeypatch.setattr(running, "compile_trace", lambda trace, options: interpreted(trace))


warnings = pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")


@warnings
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_leaves_what_it_leaves_without(ip, op_by_op, name):
    same(ip, NOTEBOOKS[name], "%%jit\n")


@warnings
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_with_jit_on_leaves_what_it_leaves_without(ip, op_by_op, name):
    same(ip, NOTEBOOKS[name], "", "%jit on")


@warnings
@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if "error" in name or "try" in name or "store" in name])
def test_a_compiled_notebook_leaves_what_it_leaves_without(ip, name):
    same(ip, NOTEBOOKS[name], "%%jit\n", alike=rounded)

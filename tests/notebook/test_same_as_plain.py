"""A notebook under `%%jit` (or `%jit on`) leaves what it leaves without: names, sharing, Out, printed text, errors, lines."""

from __future__ import annotations

import re
import types

import numpy as np
import pytest
from notebook_programs import NOTEBOOKS, Box, namespace
from shells import run_cells

from jitlab.capture.cells import interpreted
from jitlab.notebook import running
from tests.left import assert_plain


def flat(x, path, found, seen):
    """Every array with its path, and a comparable form of the rest."""
    if isinstance(x, np.ndarray):
        found.append((path, x))
        return ("array", str(x.dtype), x.shape, repr(x.tolist()))
    if isinstance(x, np.generic):
        return (type(x).__name__, repr(x.tolist()))
    if id(x) in seen:
        return ("seen", seen[id(x)])
    if isinstance(x, (list, tuple, set, dict, Box)) or type(x).__module__ == "__main__":
        seen[id(x)] = path
    if isinstance(x, dict):
        return {k: flat(v, f"{path}[{k!r}]", found, seen) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [flat(v, f"{path}[{n}]", found, seen) for n, v in enumerate(x)])
    if isinstance(x, Box):
        return flat(vars(x), path, found, seen)
    if isinstance(x, (int, float, str, bytes, complex, set, type(None), slice, range)):
        return (type(x).__name__, repr(x))
    if isinstance(x, (types.FunctionType, type)):
        return (type(x).__name__, x.__name__, getattr(x, "__doc__", None))
    return type(x).__name__


def described(names):
    assert_plain(names)
    found, seen = [], {}
    names = {
        name: value for name, value in names.items() if name != "__warningregistry__"
    }  # of warnings compiled code does not give
    form = {name: flat(value, name, found, seen) for name, value in names.items()}
    sharing = [
        (a, b, x is y, np.shares_memory(x, y))
        for n, (a, x) in enumerate(found)
        for b, y in found[n + 1 :]
        if np.may_share_memory(x, y)
    ]
    return form, sharing


def same(shell, cells, above, first=""):
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
    assert found == plain


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
    same(ip, NOTEBOOKS[name], "%%jit\n")

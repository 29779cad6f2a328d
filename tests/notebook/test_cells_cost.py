"""What the extension does around each cell, in calls: few, and no more of a cell of many lines."""

import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import jitlab as jl
from jitlab.notebook import saved_outputs
from jitlab.notebook.extension import session_of

PACKAGE = str(Path(jl.__file__).parent)
LINES = "\n".join(f"v{i} = {i}" for i in range(60))
TWO = "y = np.exp(a) * 2\nz = y.sum(axis=0)"


@pytest.fixture
def calls(ip, monkeypatch):
    """How many calls of functions jitlab's own code gets and makes while a cell runs that has run before."""
    monkeypatch.setattr(jl.config, "settle", "off")
    ip.run_cell("import numpy as np\na = np.linspace(0, 1, 250_000).reshape(500, 500)").raise_error()

    def counted(source):
        with redirect_stdout(StringIO()):
            for _ in range(12):
                ip.run_cell(source, store_history=True, cell_id="same").raise_error()
            found = 0

            def count(frame, event, argument):
                nonlocal found
                found += event in ("call", "c_call") and frame.f_code.co_filename.startswith(PACKAGE)

            sys.setprofile(count)
            try:
                ip.run_cell(source, store_history=True, cell_id="same")
            finally:
                sys.setprofile(None)
        return found

    return counted


def test_a_trivial_cell_costs_few_calls_and_one_of_many_lines_no_more(calls):
    few = calls("1 + 1")
    assert few < 105
    assert calls(LINES) <= few + 12


def test_a_captured_cell_that_has_nothing_to_compile_costs_few_calls_also_of_many_lines(calls):
    """Its text is compared by C: no walk in Python through its statements."""
    assert calls("%%jit\nv = 1") < 290
    assert calls(f"%%jit\n{LINES}") < 700


def test_a_cell_that_runs_again_costs_few_calls_beside_its_report(ip, calls, monkeypatch):
    """Of a run that took as long as the one before: its output is not made anew."""
    monkeypatch.setattr(saved_outputs, "times_of", lambda data: {"seconds": 0.001})
    monkeypatch.setattr(session_of(ip).saved, "stay", True)  # as where a notebook's file keeps it
    quiet, shown = calls(f"%%jit -q\n{TWO}"), calls(f"%%jit\n{TWO}")
    assert quiet < 680
    assert shown < 3700

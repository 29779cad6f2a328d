"""Lets the tests here import their programs, and run graphs op by op instead of compiling them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def op_by_op(monkeypatch):
    """Functions run their graphs on NumPy: what is tested is the capture alone, and results are NumPy's bits."""
    from jitlab.api.functions import traces
    from jitlab.capture.drivers.driver import interpreted

    monkeypatch.setattr(traces, "compile_trace", lambda trace, options: interpreted(trace))

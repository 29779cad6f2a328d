"""Traces run op by op on NumPy here: what is compiled is tested elsewhere. `compiled` turns that off."""

import pytest

import jitlab as jl
from jitlab.api import settling
from jitlab.api.functions import jit, traces
from jitlab.capture.drivers.driver import interpreted


@pytest.fixture(autouse=True)
def _op_by_op(request, monkeypatch):
    if "compiled" not in request.fixturenames:
        monkeypatch.setattr(traces, "compile_trace", lambda trace, options: interpreted(trace))


@pytest.fixture
def compiled():
    """The stages after capture run, as they do for people."""


@pytest.fixture
def stays_compiled(monkeypatch):
    """Calls are tried, and decided to stay compiled, whatever they take."""
    now = [0]
    monkeypatch.setattr(jl.config, "settle", "measure")
    monkeypatch.setattr(jit, "_is_measurable", lambda: True)
    monkeypatch.setattr(settling, "clock", lambda: now[0])
    monkeypatch.setattr(settling, "busy_clock", lambda: now[0])
    before = settling.tried

    def tried(trial, ways, is_ready):
        def timed(way):
            result = ways[way]()
            now[0] += {settling.COMPILED: 1000, settling.PYTHON: 9000}[way]
            return result

        return before(trial, {way: lambda way=way: timed(way) for way in ways}, is_ready)

    monkeypatch.setattr(settling, "tried", tried)

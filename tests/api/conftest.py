"""Traces run op by op on NumPy here: what is compiled is tested elsewhere. `compiled` turns that off."""

import pytest

from jitlab.api.functions import traces
from jitlab.capture.drivers.driver import interpreted


@pytest.fixture(autouse=True)
def _op_by_op(request, monkeypatch):
    if "compiled" not in request.fixturenames:
        monkeypatch.setattr(traces, "compile_trace", lambda trace, options: interpreted(trace))


@pytest.fixture
def compiled():
    """The stages after capture run, as they do for people."""

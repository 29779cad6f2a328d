"""Calls that are captured whole and given up each time as they run (a check fires) are Python's after some of them: each paid
for the run, for the search of what failed, and for Python."""

import linecache

import numpy as np
import pytest

import jitlab as jl
from jitlab.api import settling
from jitlab.api.settling import GIVEN_UP
from jitlab.runtime import Executable

LARGE = """
def f(x):
    s = 1
    for v in x:
        s = s * int(v)
    return s
"""
INDEX = """
def f(x, i=7):
    y = np.sin(x)
    return y[i] + y.sum()
"""
PROGRAMS = {
    "an int that is too large": (LARGE, (np.full(40, 9.0),), (np.full(40, 1.0),), "value", 5),
    "int(nan)": ("def f(x):\n    return x * 2 + int(x[0])\n", (np.array([np.nan, 1]),), (np.ones(2),), "value", 2),
    "an index out of bounds": (INDEX, (np.ones(4), np.int64(7)), (np.ones(4), np.int64(2)), "error", 4),
}


@pytest.fixture(params=PROGRAMS)
def program(request):
    return PROGRAMS[request.param]


@pytest.fixture(params=["model", "measure"])
def settle(request, monkeypatch):
    """No call is tried as Python: whether one is hangs on times."""
    monkeypatch.setattr(jl.config, "settle", request.param)
    monkeypatch.setattr(settling, "FIRST_CALLS", 1000)


@pytest.fixture
def failures(monkeypatch):
    """The searches for what failed."""
    found = []
    fail = Executable._fail
    monkeypatch.setattr(Executable, "_fail", lambda *args: found.append(1) or fail(*args))
    return found


def defined(text, **options):
    names = {"np": np}
    name = f"<given up {len(linecache.cache)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"), names)
    return jl.jit(names["f"], **options)


def outcome(f, args):
    with np.errstate(all="ignore"):
        try:
            return repr(f(*args))
        except Exception as error:
            return type(error).__name__


def test_after_some_in_succession_python_runs_them(program, settle, failures):
    text, bad, good, code, line = program
    f = defined(text)
    wanted = outcome(f.python_function, bad)
    for _ in range(30):
        assert outcome(f, bad) == wanted
    assert len(failures) == GIVEN_UP
    assert f"runs as Python: {GIVEN_UP} calls in succession were given up as they ran ({code})" in str(f.ledger)
    assert f"line {line})" in str(f.ledger)
    np.testing.assert_allclose(f(*good), f.python_function(*good))
    assert len(failures) == GIVEN_UP


def test_one_between_that_runs_to_its_end_begins_anew(program, monkeypatch, failures):
    monkeypatch.setattr(jl.config, "settle", "model")
    text, bad, good, *_ = program
    f = defined(text)
    for _ in range(6):
        for _ in range(GIVEN_UP - 1):
            outcome(f, bad)
        f(*good)
    assert len(failures) == 6 * (GIVEN_UP - 1) and "runs as Python" not in str(f.ledger)


def test_calls_that_c_answers_are_between_them_too(monkeypatch, failures):
    monkeypatch.setattr(jl.config, "settle", "model")
    text, bad, good, *_ = PROGRAMS["an index out of bounds"]
    f = defined(text)
    for _ in range(40):
        f(*good)
    for _ in range(3 * GIVEN_UP):
        outcome(f, bad)
        f(*good)
    assert len(failures) == 3 * GIVEN_UP and "runs as Python" not in str(f.ledger)


@pytest.mark.parametrize("options", [{"fullgraph": True}, {}])
def test_who_asks_for_compiled_calls_gets_them(program, options, monkeypatch, failures):
    monkeypatch.setattr(jl.config, "settle", "model" if options else "off")
    text, bad, _, *_ = program
    f = defined(text, **options)
    wanted = outcome(f.python_function, bad)
    for _ in range(2 * GIVEN_UP):
        assert outcome(f, bad) == wanted
    assert len(failures) == 2 * GIVEN_UP


def test_another_kind_of_call_has_its_own_count(monkeypatch, failures):
    monkeypatch.setattr(jl.config, "settle", "model")
    text, bad, *_ = PROGRAMS["int(nan)"]
    f = defined(text)
    for _ in range(10):
        outcome(f, bad)
        outcome(f, (bad[0].astype(np.float32),))
    assert len(failures) == 2 * GIVEN_UP


def test_a_function_inside_another_is_given_up_too(monkeypatch, failures):
    monkeypatch.setattr(jl.config, "settle", "model")
    text, bad, *_ = PROGRAMS["int(nan)"]
    inner = defined(text)

    def outer(x, log):
        log.append(len(log))
        try:
            inner(x)
        except ValueError:
            log.append("nan")
        return log[-1]

    f = jl.jit(outer)
    log = []
    for _ in range(100):
        assert f(bad[0], log) == "nan"
    assert len(failures) <= 4 * GIVEN_UP and "given up" in str(inner.ledger)

"""A signal gets through to loops that would run for years: its handler runs, and what it raises ends the run between turns."""

import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from jitlab.ir.programs.program import (
    LANES,
    PARALLEL,
    Accumulator,
    Assign,
    For,
    Index,
    Let,
    Load,
    Local,
    Read,
    Repeat,
    Scalar,
    Step,
    Store,
    Variable,
)
from jitlab.ops.elementwise.arithmetic import Add, Mul
from jitlab.ops.elementwise.comparison import Less
from jitlab.ops.elementwise.math_functions import Sin
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.targets.cpu_llvm.calls.signals import raise_stopped
from jitlab.targets.cpu_llvm.emit import codegen

sys.path.insert(0, str(Path(__file__).parent))
from statement_programs import N, Running, apply, at, buffer, number, program  # noqa: E402

F8 = np.dtype("f8")
ADD, MUL = Add(), Mul()
YEARS = number(1 << 60)
x, y = buffer("x0", "input", "n0"), buffer("y0", "output", 1)

pytestmark = pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="this system has no signals to raise")


def count_up():
    """y[0] = y[0] + x[0]"""
    return Store(y, at(), apply(ADD, Load(y, at()), Load(x, at())))


def forever():
    """while y[0] < c: ...: no count, a test that is always true"""
    return [Repeat("i0", None, [count_up()], [], apply(Less(), Load(y, at()), Scalar("c0", F8), dtype="?"))]


def inner_forever():
    """for i in range(3): for j in range(2**60): ..."""
    return [Repeat("i0", number(3), [Repeat("i1", YEARS, [count_up()])])]


def short_inner_loops():
    """for i in range(2**60): for j in range(3): ..., and a vector loop, and a sum"""
    r = Accumulator("r0", Sum((0,)), F8, F8, Index(N("n0")))
    total = For("a0", (Index(N("n0")),), [Step(r, Load(x, at("a0")), Index.var("a0"))], LANES, [r])
    double = Store(x, at("a1"), apply(ADD, Load(x, at("a1")), Load(x, at("a1"))))
    twice = For("a1", (Index(N("n0")),), [double], PARALLEL)
    store = Store(y, at(), apply(ADD, Load(y, at()), Local("r0", F8)))
    return [Repeat("i0", YEARS, [Repeat("i1", number(3), [count_up()]), twice, total, store])]


def nest_inside():
    """for i in range(2): y[0] = sum over a nest of 2**20 * 2**20 * n elements: one long statement"""
    r = Accumulator("r0", Sum((0,)), F8, F8)
    long = Index(number(1 << 20))
    step = Step(r, apply(Sin(), apply(MUL, Load(x, at("a2")), Load(y, at()))), Index.var("a2"))
    inner = For("a2", (Index(N("n0")),), [step], LANES)
    nest = For("a0", (long,), [For("a1", (long,), [inner])], accumulators=[r])
    return [Repeat("i0", number(2), [nest, Store(y, at(), Local("r0", F8))])]


def carried_scalar():
    """for i in range(2**60): v = v + x[0], in a register"""
    v = Variable("v0", F8)
    body = [Let("l0", Read(v)), Assign(v, apply(ADD, Local("l0", F8), Load(x, at())))]
    return [Assign(v, Scalar("c0", F8)), Repeat("i0", YEARS, body), Let("l1", Read(v)), Store(y, at(), Local("l1", F8))], [v]


LOOPS = [forever, inner_forever, short_inner_loops, nest_inside, carried_scalar]


@pytest.mark.parametrize("make", LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("tier", ["quick", "good"])
def test_a_handler_that_raises_ends_the_loop(make, tier):
    body = make()
    body, variables = body if isinstance(body, tuple) else (body, [])
    p = program([x], [y], body, symbols=["n0"], scalars=[("c0", F8)], variables=variables)
    memory = {"x0": np.ones(50), "y0": np.zeros(1)}
    running = Running(p, memory, {"n0": 50}, {"c0": np.inf}, tier)
    calls = 0

    def handler(number, frame):
        nonlocal calls
        calls += 1
        raise ZeroDivisionError("mine")

    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        assert running.to_end() == codegen.STOPPED
        with pytest.raises(ZeroDivisionError, match="mine"):
            raise_stopped(running.context)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert calls == 1


def test_a_handler_that_returns_lets_the_loop_go_on():
    p = program([x], [y], forever(), symbols=["n0"], scalars=[("c0", F8)])
    memory = {"x0": np.ones(1), "y0": np.zeros(1)}
    running = Running(p, memory, {"n0": 1}, {"c0": np.inf}, budget=10**6)
    seen = []

    def handler(number, frame):
        seen.append(number)
        if len(seen) == 3:
            raise ZeroDivisionError
        threading.Timer(0.02, signal.raise_signal, [signal.SIGINT]).start()

    before = signal.signal(signal.SIGINT, handler)
    try:
        threading.Timer(0.02, signal.raise_signal, [signal.SIGINT]).start()
        assert running.to_end() == codegen.STOPPED
        with pytest.raises(ZeroDivisionError):
            raise_stopped(running.context)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(seen) == 3
    assert memory["y0"][0] > 1000, "what the turns before it stored is there"

"""A recording beside tracers, profilers and coverage; generators, coroutines, recursion under `jl.jit`; cells in two tasks."""

from __future__ import annotations

import asyncio
import sys

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell


def work(x, n):
    y = np.sin(x) * n
    for i in range(20):
        y[i % 3] += x[0]
    if y.sum() > 1000:
        y = y - 1
    return y, len(y)


def recursive(x, n):
    return x if n == 0 else recursive(x * 2, n - 1) + 1


def until_small(x):
    return x if x.sum() < 1 else until_small(x / 2)


def counting(x, n):
    for i in range(n):
        yield x * i


def sums(x, n):
    return sum(part.sum() for part in counting(x, n)), [float(v) for v in (p[0] for p in counting(x, n))]


@jl.jit
def inner(x):
    return np.cos(x) + 1


def calling(x):
    return inner(x) * 2 + inner(x + 1)


async def awaited(x):
    y = np.sin(x) * 2
    await asyncio.sleep(0)
    return y + np.cos(x)


X = np.arange(3.0)


def traced_by(install, remove):
    events = []

    def tracer(frame, event, argument):
        events.append((event, frame.f_code.co_name))
        return tracer

    install(tracer)
    try:
        found = [jl.jit(work)(X, 2), jl.function(work)(X, 2), *(jl.jit(work)(X, n) for n in (3, 3))]
    finally:
        remove(None)
    return found, events


@pytest.mark.parametrize("kind", ["trace", "profile"])
def test_a_tracer_or_profiler_changes_no_result_and_stays_installed(kind):
    set_, get = getattr(sys, f"set{kind}"), getattr(sys, f"get{kind}")
    before = get()
    found, events = traced_by(set_, lambda _: set_(before))
    for (mine, length), n in zip(found, (2, 2, 3, 3), strict=True):
        np.testing.assert_allclose(mine, work(X, n)[0], rtol=1e-12)
        assert length == 3
    assert ("call", "work") in events  # the user's frames are seen under their own names


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")
def test_events_of_sys_monitoring_change_no_result():
    monitoring, seen = sys.monitoring, []
    tool = monitoring.DEBUGGER_ID
    monitoring.use_tool_id(tool, "test")
    monitoring.register_callback(tool, monitoring.events.LINE, lambda code, line: seen.append(line))
    monitoring.set_events(tool, monitoring.events.LINE)
    try:
        mine = jl.jit(work)(X, 2)[0]
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    np.testing.assert_allclose(mine, work(X, 2)[0], rtol=1e-12)
    assert seen


def test_a_debugger_that_looks_at_locals_at_each_line_changes_no_result():
    looked = []

    def debugger(frame, event, argument):
        if frame.f_code.co_filename == __file__:
            looked.append(sorted(name for name in frame.f_locals if not name.startswith("__jl")))
            [repr(type(value)) for value in frame.f_locals.values()]
        return debugger

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        mine = jl.jit(work)(X, 2)[0]
    finally:
        sys.settrace(before)
    np.testing.assert_allclose(mine, work(X, 2)[0], rtol=1e-12)
    assert any("y" in names for names in looked)


def test_a_tracer_that_raises_leaves_the_function_as_it_was():
    compiled, count = jl.jit(work), [0]

    def failing(frame, event, argument):
        count[0] += 1
        if count[0] == 300:
            raise KeyError("from the tracer")
        return failing

    before = sys.gettrace()
    sys.settrace(failing)
    try:
        try:
            compiled(X, 2)
        except KeyError:
            pass
    finally:
        sys.settrace(before)
    np.testing.assert_allclose(compiled(X, 2)[0], work(X, 2)[0], rtol=1e-12)


DEEP = [(recursive, (X, 5)), (until_small, (X * 100,)), (sums, (X, 4)), (calling, (X,))]


@pytest.mark.parametrize("function, arguments", DEEP)
def test_recursion_generators_and_jitted_callees_are_pythons(function, arguments):
    compiled = jl.jit(function)
    for _ in range(3):
        mine, theirs = compiled(*arguments), function(*arguments)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_generator_function_under_jit_yields_what_python_yields():
    compiled = jl.jit(counting)
    for _ in range(2):
        assert [v.tolist() for v in compiled(X, 3)] == [v.tolist() for v in counting(X, 3)]


def test_coroutines_under_jit_are_awaited_as_pythons():
    compiled = jl.jit(awaited)

    async def both():
        return await asyncio.gather(*(compiled(X + k) for k in range(4)))

    for _ in range(2):
        for k, found in enumerate(asyncio.run(both())):
            np.testing.assert_allclose(found, np.sin(X + k) * 2 + np.cos(X + k), rtol=1e-12)


def test_a_call_while_another_task_is_between_two_statements():
    compiled = jl.jit(work)

    async def one(k):
        found = []
        for n in range(3):
            found.append(compiled(X + k, n)[0])
            await asyncio.sleep(0)
        return found

    async def main():
        return await asyncio.gather(*(one(k) for k in range(3)))

    for k, found in enumerate(asyncio.run(main())):
        for n, mine in enumerate(found):
            np.testing.assert_allclose(mine, work(X + k, n)[0], rtol=1e-12)


def test_cells_of_two_tasks_that_take_turns():
    async def cell(k, names):
        for n in range(3):
            run_cell(f"y = np.sin(x) * {n} + k\nz = y.sum()", names, f"<cell {k}>")
            await asyncio.sleep(0)
        return names["z"]

    async def main():
        return await asyncio.gather(*(cell(k, {"np": np, "x": X, "k": k}) for k in range(3)))

    assert asyncio.run(main()) == [(np.sin(X) * 2 + k).sum() for k in range(3)]


def test_coverage_sees_the_lines_and_changes_no_result():
    coverage = pytest.importorskip("coverage", reason="coverage.py is a tool of its own")
    measured = coverage.Coverage(data_file=None, include=[__file__])
    measured.start()
    try:
        mine = jl.jit(work)(X, 2)[0]
        jl.function(work)(X, 2)
    finally:
        measured.stop()
    np.testing.assert_allclose(mine, work(X, 2)[0], rtol=1e-12)
    first = work.__code__.co_firstlineno
    assert {first + 1, first + 2, first + 3} <= set(measured.get_data().lines(__file__))


# ---- calls in forms that wrap a function
def bare(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Model:
    weight = 3.0

    def __init__(self):
        self.bias = np.ones(3)

    def plain(self, x):
        return x * self.weight + self.bias

    @bare
    def wrapped(self, x, k=2):
        return x * k

    @jl.jit
    @bare
    def jitted(self, x, k=2):
        return x * k

    @bare
    @jl.jit
    def around(self, x, k=2):
        return x * k


@bare
def free(x, k=1):
    return x + k


CALLS = [
    lambda x: Model().plain(x), lambda x: Model().wrapped(x) + Model().wrapped(x, k=3), lambda x: Model().jitted(x, k=3),
    lambda x: Model().around(x, k=4), lambda x: free(x, k=5), free, Model().wrapped,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CALLS)))
@pytest.mark.parametrize("way", [jl.jit, jl.function])
def test_decorated_functions_and_methods_are_called_as_python_calls_them(number, way):
    compiled = way(CALLS[number])
    for x in (np.arange(3), np.ones(3), np.arange(3)):
        np.testing.assert_array_equal(compiled(x), CALLS[number](x))

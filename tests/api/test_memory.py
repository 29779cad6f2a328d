"""What a function keeps: traces least-recently-used, no arguments, nothing of traces that made room."""

from __future__ import annotations

import gc
import linecache
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api.functions.concrete import ConcreteFunction, Recording
from jitlab.capture import Tensor, Trace
from jitlab.ir import Graph
from jitlab.runtime.executable import Executable
from jitlab.targets.cpu_llvm.compiling import MachineCode, background
from jitlab.targets.cpu_llvm.machine import Loaded


def test_arguments_are_not_kept_alive():
    f = jl.function(lambda x: x * 2)
    x = np.ones(1000)
    f(x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_oldest_traces_are_forgotten(monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 2)
    f = jl.function(lambda x, k: x * k)
    x = np.ones(1)
    f(x, 1), f(x, 2), f(x, 1), f(x, 3)
    assert f.experimental_get_tracing_count() == 3
    f(x, 1)
    assert f.experimental_get_tracing_count() == 3
    f(x, 2)
    assert f.experimental_get_tracing_count() == 4


def alive(kind):
    background().submit(int).result()  # what it is about to load is counted, too
    gc.collect()
    return sum(issubclass(type(x), kind) for x in gc.get_objects())


@pytest.mark.parametrize(
    "function, call, reduce",
    [
        (lambda x: x * 2.5, lambda f, n: f(np.ones((n % 50 + 2, n // 50 + 2))), False),
        (lambda x: x * 2.5, lambda f, n: f(np.ones((n % 50 + 2, n // 50 + 2))), True),
        (lambda x, k: x * k, lambda f, n: f(np.ones(3), float(n)), False),
        (lambda x: np.sort(x), lambda f, n: f(np.ones(n + 2)), False),
    ],
    ids=["shapes", "shapes of one trace", "values", "host operations"],
)
def test_new_types_leak_nothing_once_the_limit_is_reached(function, call, reduce, monkeypatch, compiled):
    monkeypatch.setattr(jl.config, "max_traces", 10)
    f = jl.function(function, reduce_retracing=reduce)
    for n in range(25):
        call(f, n)
    counted = [Trace, Executable, MachineCode, Loaded, Tensor, Graph, ConcreteFunction, Recording]
    before = {kind: alive(kind) for kind in counted}
    tracemalloc.start()
    for n in range(25, 85):  # until all that is kept a while has been replaced while it is watched
        call(f, n)
    grown = []
    for first in (85, 130):  # what leaks does so both times, what others of this process keep does not
        gc.collect()
        start, _ = tracemalloc.get_traced_memory()
        for n in range(first, first + 45):
            call(f, n)
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0] - start)
    tracemalloc.stop()
    assert {kind: alive(kind) for kind in counted} == before
    assert len(f._recent) == 10 >= sum(map(len, f._traces.values()))
    assert min(grown) < 45 * 2000  # a trace that is kept is tens of kilobytes


def test_programs_that_nobody_runs_are_taken_out_of_memory(monkeypatch, compiled):
    module = sys.modules["jitlab.runtime.compiled"]
    monkeypatch.setattr(module, "MOST_UNUSED", 2)
    made = []
    for n in range(6):
        f = jl.function(eval("lambda x: " + "np.tanh(x) + x *" * (n + 1) + "x", {"np": np}), autograph=False)
        f(np.ones(3))
        (recording,) = f._recent.values()
        recording.trace.executable.settle()
        made += [weakref.ref(v.launcher.code) for v in recording.trace.executable._variants.values()]
    del f, recording
    background().submit(int).result()  # its last job lets go of the Program
    gc.collect()
    assert len(made) == 6 and sum(code() is not None for code in made) <= 2


def test_a_trace_that_c_answers_is_not_the_oldest(monkeypatch, compiled):
    monkeypatch.setattr(jl.config, "max_traces", 2)
    f = jl.function(lambda x: x + 1)
    for _ in range(8):
        f(np.ones(2))
    for n in range(3, 9):
        f(np.ones(2))
        f(np.ones(n))
    assert f.experimental_get_tracing_count() == 7


def test_a_wide_trace_lives_while_one_of_its_sizes_is_called(monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 3)
    seen = []

    @jl.function
    def f(x):
        seen.append(1)
        return x + 1

    wide = f.get_concrete_function(jl.TensorSpec([None], np.float64))
    for n in range(10):
        f(np.ones(n))
    assert f.get_concrete_function(np.ones(3)) is wide and len(seen) == 1
    for n in range(3):
        f(n)
    assert f.get_concrete_function(np.ones(3)) is not wide and len(seen) == 5
    assert wide(np.ones(4)).tolist() == [2, 2, 2, 2]


def test_a_trace_that_made_room_is_traced_again_for_that_cause(monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 2)
    f = jl.function(lambda x, k: x * k)
    heard = []
    with events.listen(heard.append):
        for k in (1, 2, 3, 1):
            f(np.ones(1), k)
    assert [e.causes[0] for e in heard if isinstance(e, events.Traced)][-1] == "cache_evicted"
    assert f.experimental_get_tracing_count() == 4


def test_definitions_that_are_executed_again_leave_nothing(monkeypatch):
    from jitlab.api.retraces import places
    from jitlab.capture import positions
    from jitlab.capture.rewrite import convert

    monkeypatch.setattr(places, "MOST_PLACES", 1)  # it remembers so many definitions, to know the next edition of each
    def define_and_call(n):
        source = f"def f(x):\n    g = lambda y: y + {n}\n    return g(x) * 2\n"
        name = f"<definition {n}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        names = {}
        exec(compile(source, name, "exec"), names)
        assert jl.function(names["f"])(np.ones(2)).tolist() == [2 * n + 2] * 2
        del linecache.cache[name]

    define_and_call(0)
    gc.collect()
    tables = [convert._codes._values, positions._converted, positions._spans, positions._added]
    before = [len(table) for table in tables]
    for n in range(20):
        define_and_call(n)
    gc.collect()
    assert all(len(table) <= size + 6 for table, size in zip(tables, before, strict=True))

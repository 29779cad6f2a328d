"""A mistake of jitlab's own in a size is seen before compiled code runs: Python answers, or an error does; memory is safe.

The mistakes are planted: a symbol has another value, a size stems from another recording, an array has another length than
the trace says, a view reaches beyond its base.
"""

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api import Options, compile_trace
from jitlab.capture import NotReplayable
from jitlab.capture.numpy_calls.host_fallback import _Exact
from jitlab.errors import InternalError
from jitlab.ir import Extent, Graph
from jitlab.ops.layout.views import Update, View
from jitlab.runtime.size_checks import Sizes
from tests.cell_runs import CellResult, run_cell

from .compiling import parameter


class Box:
    """Holds a size where a recording looks it up."""

    h = 6


BOX = Box()


def grown(a):
    b = np.ones(BOX.h * BOX.h) + 1.0
    return b.reshape(BOX.h, BOX.h) + a[0]


def scaled(a):
    return a * BOX.h + 1


def cut(a):
    return a[BOX.h :] * 2.0


def written(a):
    b = a + 1
    b[BOX.h :] = 0
    return b


PROGRAMS = [grown, scaled, cut, written]


@pytest.fixture(params=["another symbol's", "a larger symbol", "no symbol of the trace"])
def planted(request, monkeypatch):
    """A size that is 6, and that compiled code would take for another number."""
    if request.param == "a larger symbol":
        known = Graph.symbol_values
        monkeypatch.setattr(Graph, "symbol_values", lambda graph: {k: n + 1000 for k, n in known(graph).items()})
        return
    monkeypatch.setattr(BOX, "h", Extent.symbol("n0" if request.param == "another symbol's" else "n7", 6), raising=False)


def x():
    return np.arange(36.0)


def wanted(program):
    held, BOX.h = BOX.h, 6
    try:
        return program(x())
    finally:
        BOX.h = held


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "wrap", [jl.jit, jl.function, lambda f: jl.jit(f, capture_mode="trace")], ids=["jit", "function", "trace"]
)
def test_a_call_with_a_planted_size_is_answered_by_Python(planted, program, wrap):
    compiled = wrap(program)
    for _ in range(8):  # from the fifth call on a C function may answer
        got = compiled(x())
        np.testing.assert_array_equal(got, wanted(program))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "wrap", [lambda f: jl.jit(f, fullgraph=True), lambda f: jl.function(f, jit_compile=True)], ids=["fullgraph", "jit_compile"]
)
def test_where_everything_has_to_compile_the_mistake_is_raised(planted, program, wrap):
    for _ in range(2):
        with pytest.raises(InternalError, match="jitlab made a mistake"):
            wrap(program)(x())


def test_a_cell_with_a_planted_size_runs_as_Python_and_a_strict_one_raises(planted):
    def compiled(trace):
        return compile_trace(trace, Options())

    cell = "b = (np.ones(box.h * box.h) + 1.0).reshape(box.h, box.h) + a[0]\nc = a * box.h"
    names = {"np": np, "a": x(), "box": BOX}
    result = CellResult()
    for _ in range(2):
        run_cell(cell, names, "<cell>", executor=compiled, result=result)
    assert {reason for reason, _, _ in result.statements} == {"internal"}
    np.testing.assert_array_equal(names["b"], np.full((6, 6), 2.0))
    np.testing.assert_array_equal(names["c"], x() * 6)
    with pytest.raises(InternalError):
        run_cell(cell, names, "<cell>", executor=compiled, strict=True)


def test_the_mistake_names_the_line_and_its_event_says_what_it_is(monkeypatch):
    monkeypatch.setattr(BOX, "h", Extent.symbol("n0", 6), raising=False)
    with pytest.raises(InternalError) as raised:
        jl.function(grown, jit_compile=True)(x())
    line = grown.__code__.co_firstlineno + 1
    assert f"line {line}" in str(raised.value)
    heard = []
    with events.listen(heard.append):
        jl.jit(grown)(x())
    (ran,) = [event for event in heard if isinstance(event, events.StatementRan)]
    assert ran.reason == "internal"


def test_nothing_is_changed_before_the_mistake_is_seen(monkeypatch):
    def f(a, b):
        a += 1
        b[BOX.h :] = a[BOX.h :]
        return a

    monkeypatch.setattr(BOX, "h", Extent.symbol("n0", 6), raising=False)
    a, b = x(), np.zeros(36)
    jl.function(f)(a, b)
    np.testing.assert_array_equal(a, x() + 1)
    np.testing.assert_array_equal(b[6:], x()[6:] + 1)
    assert not b[:6].any()


@pytest.mark.parametrize(
    ("give", "error", "said"),
    [
        (lambda v: np.append(v, 7), NotReplayable, "changes from"), (lambda v: v[:1], NotReplayable, "changes from"),
        (lambda v: v.astype("i4"), InternalError, "would take it for i64"),
        (lambda v: v[None], InternalError, "would take it for i64"),
    ],
)  # fmt: skip
def test_what_NumPy_gives_is_compared_before_it_is_read(monkeypatch, give, error, said):
    """A host operation whose result is another one than the trace has room for; its length is for the data to decide."""

    def f(a):
        (w,) = np.nonzero(a)
        return w * 2 + 1

    for wrap in (jl.jit, jl.function):
        compiled = wrap(f)
        want = compiled(x())
        with monkeypatch.context() as patch:
            patch.setattr(_Exact, "__call__", lambda self, *args: give(self.function(*args)[0]))
            np.testing.assert_array_equal(compiled(x()), want)
    strict = jl.function(f)
    strict(x())
    executable = next(iter(strict._traces.values()))[0].executable
    monkeypatch.setattr(_Exact, "__call__", lambda self, *args: give(self.function(*args)[0]))
    with pytest.raises(error, match=said):
        executable.run([x()])


@pytest.mark.parametrize("given", [np.arange(35.0), np.arange(37.0), np.arange(36), np.arange(36.0)[None], np.float64(1)])
def test_arrays_of_another_size_than_the_trace_says_are_not_bound(given):
    compiled = jl.function(scaled)
    compiled(x())
    executable = next(iter(compiled._traces.values()))[0].executable
    for run in (executable.run, executable.run_in_place):
        with pytest.raises(InternalError, match="`a`"):
            run([given])


@pytest.mark.parametrize(
    "view",
    [
        View(((30, 1, 0),), (10,)), View(((0, 4, 0),), (10,)), View(((-1, 1, 0),), (3,)), View(((5, -1, 0),), (7,)),
        View(((36, 1, None),), ()), View(((Extent.symbol("n0", 36), 1, 0),), (1,)),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("writes", [False, True])
def test_a_view_that_reaches_beyond_its_base_is_seen(view, writes):
    graph = Graph("g")
    with graph.building():
        base = parameter(graph, x(), "n")
        node = graph.add(view, base)
        graph.outputs = [graph.add(Update(view.map, view.shape), base, node) if writes else node]
    with pytest.raises(InternalError, match="reaches beyond"):
        Sizes(graph, {**graph.symbol_values(), "n0": 36})


def test_the_program_of_a_cluster_takes_its_memory_as_large_as_it_is():
    compiled = jl.function(scaled)
    compiled(x())
    executable = next(iter(compiled._traces.values()))[0].executable
    (lowered,) = executable._lowerings.values()
    sizes = Sizes(executable.graph, executable.graph.symbol_values())
    sizes.check_buffers(lowered)
    lowered.symbol_values.update({name: n + 1 for name, n in lowered.symbol_values.items()})
    with pytest.raises(InternalError, match="another size"):
        sizes.check_buffers(lowered)


def test_sizes_that_do_not_agree_are_seen_where_they_meet():
    with pytest.raises(InternalError):
        Extent.symbol("n0", 36) - Extent.symbol("n0", 6)

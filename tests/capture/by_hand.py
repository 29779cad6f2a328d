"""Loops rolled by hand: a body is traced once with a symbolic index, or runs as plain Python; both have to give the same.

A program is `program(do, *arrays)`; it loops by `do.loop(body, range arguments, *arrays)` and writes into its arrays.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from jitlab.capture import HOOKS, Capture
from jitlab.capture.tracers.symbolic import call_builtin, symbolic_range
from jitlab.ir import Graph, Node, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops.build_nodes import apply
from jitlab.ops.control_flow import Loop
from jitlab.ops.host_operations import Item
from jitlab.ops.leaf_operations import Parameter


class Plain:
    """What Python does."""

    def loop(self, body: Any, bounds: Any, *arrays: Any) -> None:
        for i in range(*(bounds if isinstance(bounds, tuple) else (bounds,))):
            body(i, *arrays)

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(builtins, name)


class Rolled:
    """Each loop's body is traced once. `bodies` holds their graphs."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.bodies: list[Graph] = []

    def loop(self, body: Any, bounds: Any, *arrays: Any) -> None:
        capture, outer = self.capture, self.capture.graph
        numbers = symbolic_range(capture, *(bounds if isinstance(bounds, tuple) else (bounds,)))
        count = numbers.count
        if int(count) < 1 and not hasattr(count, "expr"):
            return
        symbol = capture.enter_loop(count)
        graph = Graph("body")
        types = tuple(x.type for x in arrays)
        parameters = [graph.append(Node(Parameter(t), (), t, name=f"p{k}")) for k, t in enumerate(types)]
        capture.graph = graph
        try:
            with graph.building():
                inner = [capture.fresh(p) for p in parameters]
                body(numbers.at(symbol), *inner)
                graph.outputs = [x._cell.node for x in inner]
        finally:
            capture.graph = outer
            capture.leave_loop()
        graph = graph.without_dead()
        graph.sizes = dict(capture.bounds.sizes)
        self.bodies.append(graph)
        loop = apply(Loop(graph, types, symbol.expr.symbols[0], count), *(x.node() for x in arrays))
        for k, x in enumerate(arrays):
            x._cell.write((), apply(Item(k, types[k]), loop))

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return HOOKS.call(function, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        function = getattr(builtins, name)

        def called(*args: Any) -> Any:
            result = call_builtin(self.capture, function, args)
            return function(*args) if result is NotImplemented else result

        return called


def rolled(program: Any, *arrays: Any) -> tuple[Graph, Rolled]:
    """The graph of a program, with the final values of its arrays as outputs."""
    capture = Capture("by_hand")
    with capture.recording():
        inputs = [capture.add_input(x, f"x{k}") for k, x in enumerate(arrays)]
        do = Rolled(capture)
        program(do, *inputs)
        capture.graph.outputs = [x._cell.node for x in inputs]
    return verify(capture.graph.without_dead()), do


def check(program: Any, *arrays: Any) -> Rolled:
    """The rolled program gives NumPy's values, or raises what NumPy raises; gives what was rolled."""
    graph, do = rolled(program, *arrays)
    expected = [np.array(x) for x in arrays]
    try:
        program(Plain(), *expected)
    except (IndexError, ValueError) as error:
        wanted = error
    else:
        for mine, theirs in zip(interpret(graph, arrays), expected, strict=True):
            assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
            np.testing.assert_array_equal(mine, theirs)
        return do
    try:
        interpret(graph, arrays)
    except (IndexError, ValueError) as error:
        assert type(error) is type(wanted) and str(error) == str(wanted)
        return do
    raise AssertionError(f"NumPy raises {wanted!r}")


def operations(graph: Graph) -> list[str]:
    """The operations of a graph and of the graphs in it."""
    found = []
    for node in graph.nodes:
        found.append(type(node.op).__name__)
        for inner in getattr(node.op, "graphs", ()):
            found += operations(inner)
    return found

"""Control flow as nodes: loops and branches whose bodies are graphs of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Graph, evaluate_extent, interpret, poly

from .base import Cost, Operation
from .host_operations import SEVERAL

Interpreter = Callable[..., list[Any]]  # (graph, arguments, symbols=...) -> outputs, as `interpret`


class Loop(Operation, eq=False):
    """`for` and `while`: runs `body` until `count` iterations are done or `test` says no.

    Inputs: the initial values of what is carried, then what is only read. `body` and `test` have one parameter for each, in
    this order; the body's outputs are the carried values of the next iteration, the test's one output is a 0-d bool, asked
    before each iteration. `symbol` is the number of the iteration (0, 1, ...) in the extents of body and test: a subscript
    `lo + step * symbol` is an `Extent` over it. Results: what is carried, as `Item`s. A `count` below 1 runs nothing.
    """

    body: Graph
    types: tuple[ArrayType, ...]  # of what is carried
    symbol: str
    count: int | None = None  # an Extent; None: until the test says no
    test: Graph | None = None
    replays: Operation | None = field(default=None, repr=False)  # on the same inputs its first results are those of this Loop
    tf_name: ClassVar[str | None] = "While"
    differentiable: ClassVar[bool] = True  # by the pass itself: passes/control_gradient.py
    flops_per_element: ClassVar[float] = 0

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.body,) if self.test is None else (self.test, self.body)

    @property
    def has_effects(self) -> bool:  # type: ignore[override]
        return any(graph.has_effects for graph in self.graphs)

    @property
    def may_raise(self) -> bool:  # type: ignore[override]
        return any(graph.must_run for graph in self.graphs)

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType((), SEVERAL)

    def numpy(self, *arrays: Any) -> Any:
        return self.run({}, arrays)

    def run(self, symbols: dict[str, int], arrays: tuple[Any, ...], body: Interpreter = interpret) -> tuple[Any, ...]:
        """The meaning, op by op; `symbols` are the values of the loop symbols around this one, `body` runs a graph."""
        carried, read = list(arrays[: len(self.types)]), arrays[len(self.types) :]
        number = 0
        while self.count is None or number < evaluate_extent(self.count, symbols):
            inner = {**symbols, self.symbol: number}
            if self.test is not None and not bool(body(self.test, (*carried, *read), symbols=inner)[0]):
                break
            carried = body(self.body, (*carried, *read), symbols=inner)
            number += 1
        return tuple(carried)

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        times = 1 if self.count is None else max(int(self.count), 0)
        each = [node.op.cost(node.type, *(x.type for x in node.inputs)) for node in self.body.nodes]
        return Cost(
            times * sum(c.flops for c in each), sum(t.nbytes for t in types), sum(t.nbytes for t in self.types)
        )

    def __str__(self) -> str:
        return f"{self.name}({self.symbol} in 0..{'?' if self.count is None else poly(self.count)})"


class Branch(Operation, eq=False):
    """`if`: the values of one of two graphs. Inputs: a 0-d bool, then what the graphs read; both have a parameter for each
    of those, in this order, and the same number of outputs, of the same types. Results: the outputs, as `Item`s."""

    then: Graph
    orelse: Graph
    types: tuple[ArrayType, ...]
    replays: Operation | None = field(default=None, repr=False)  # on the same inputs its first results are those of this Branch
    numpy_word: ClassVar[str] = "if"
    tf_name: ClassVar[str | None] = "If"
    differentiable: ClassVar[bool] = True  # by the pass itself: passes/control_gradient.py
    flops_per_element: ClassVar[float] = 0

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.then, self.orelse)

    @property
    def has_effects(self) -> bool:  # type: ignore[override]
        return any(graph.has_effects for graph in self.graphs)

    @property
    def may_raise(self) -> bool:  # type: ignore[override]
        return any(graph.must_run for graph in self.graphs)

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType((), SEVERAL)

    def numpy(self, *arrays: Any) -> Any:
        return self.run({}, arrays)

    def run(self, symbols: dict[str, int], arrays: tuple[Any, ...], body: Interpreter = interpret) -> tuple[Any, ...]:
        """The meaning, op by op; `body` runs a graph."""
        condition, *rest = arrays
        return tuple(body(self.then if bool(condition) else self.orelse, rest, symbols=symbols))

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, sum(t.nbytes for t in types), sum(t.nbytes for t in self.types))

    def __str__(self) -> str:
        return self.name


class Define(Operation):
    """An integer found at run time becomes a symbol of extents: `A[start:stop]` with bounds read from an array.

    The input is a 0-d int64; its value is the result's too. From here on (in this graph and in the bodies below it) Extents
    may contain `symbol`. `least` and `most` bound it (inclusive); None where nothing is known.
    """

    symbol: str
    least: int | None = None
    most: int | None = None
    numpy_word: ClassVar[str] = "index"
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return np.int64(arrays[0])

    def result(self, *types: ArrayType) -> ArrayType:
        (x,) = types
        assert x.shape == () and x.dtype == np.dtype("i8"), f"a symbol that is {x}"
        return x

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("d0", 0, 9), np.int64(3)

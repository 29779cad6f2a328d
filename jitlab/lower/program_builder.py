"""What all blocks of one Program share: names, memory, inputs, constants, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import Copy, Node, Poly, Sources
from jitlab.ir.programs.program import ONE, Buffer, Scalar, Variable, contiguous_strides
from jitlab.ops.leaf_operations import Constant

from .fusion.cuts import NO_CUTS, Cuts
from .schedule.dependence import Relation
from .schedule.ranges import Ranges
from .sizes import Sizes

#: Layouts of an input: "C" contiguous, "F" column-major, "R" its last axis is contiguous, "S" any strides.
Layout = str


class Shared:
    """Everything of a Program but its statements. `wanted`: values, at any depth, that are to lie in memory."""

    #: Reads of an array that a nest may do while it overwrites the array.
    harmless: frozenset[Relation] = frozenset({Relation.DISJOINT, Relation.SAME, Relation.AHEAD})

    def __init__(
        self, sizes: Sizes, layouts: dict[Node, Layout], level: str, wanted: set[Node], cuts: Cuts = NO_CUTS
    ) -> None:
        self.cuts = cuts
        self.sizes, self.layouts, self.level, self.wanted = sizes, layouts, level, wanted
        self.ranges = Ranges(sizes.values, sizes.asked)
        self.inputs: dict[Node, Buffer] = {}
        self.scalars: dict[Node, Scalar] = {}
        self.constants: list[Constant] = []
        self.temps: list[Buffer] = []
        self.rows: list[Buffer] = []
        self.variables: list[Variable] = []
        self.strides: dict[str, tuple[int, int]] = {}
        self.errors: list[Sources] = []
        self.calls: list[Any] = []
        self.copies: list[Copy] = []
        self.bodies: list[list[Any]] = []  # the groups of each body
        self.places: dict[Node, Buffer] = {}  # of values with memory of their own, in any block
        self.captured: dict[Node, Node] = {}  # input of any body -> the value around it that it stands for
        self._checks: dict[Node, int] = {}
        self._counters: dict[str, int] = {}

    def name(self, stem: str) -> str:
        n = self._counters.get(stem, 0)
        self._counters[stem] = n + 1
        return f"{stem}{n}"

    def variable(self, dtype: np.dtype) -> Variable:
        variable = Variable(self.name("u"), dtype)
        self.variables.append(variable)
        return variable

    def scalar(self, node: Node) -> Scalar:
        """The constant as a number that the caller passes."""
        scalar = self.scalars.get(node)
        if scalar is None:
            scalar = self.scalars[node] = Scalar(f"c{len(self.scalars)}", node.dtype, node.origins)
            self.constants.append(node.op)
        return scalar

    def check(self, node: Node) -> int:
        """The number of the check that a node's indices are in range."""
        if node not in self._checks:
            self._checks[node] = len(self.errors)
            self.errors.append(node.sources)
        return self._checks[node]

    def allocate(self, node: Node, output: bool) -> Buffer:
        """Memory for a value."""
        if not output:
            return self.temp("temp", tuple(self.sizes.of(n) for n in node.shape), node.dtype)
        shape = tuple(self.sizes.of(n) for n in node.shape)
        return Buffer(self.name("y"), "output", node.dtype, shape, contiguous_strides(shape))

    def temp(self, kind: str, shape: tuple[Poly, ...], dtype: object) -> Buffer:
        """Memory for one call; in loops as large as any iteration needs."""
        shape = self._capacity(shape)
        buffer = Buffer(self.name("e" if kind == "row" else "t"), kind, np.dtype(dtype), shape, contiguous_strides(shape))  # type: ignore[call-overload]
        (self.rows if kind == "row" else self.temps).append(buffer)
        return buffer

    def _capacity(self, extents: Sequence[Poly]) -> tuple[Poly, ...]:
        """Extents at their greatest over the loops around."""
        shape = []
        for n in extents:
            greatest = self.ranges.greatest_size(n)
            assert greatest is not None, f"no bound is known for the extent {n}"
            shape.append(greatest)
        return tuple(shape)

    def input(self, node: Node) -> Buffer:
        """The buffer of an input of the cluster (or of an array written in the program)."""
        if node in self.inputs:
            return self.inputs[node]
        layout = self.layouts.get(node, "C")
        shape = tuple(self.sizes.of(n) for n in node.shape)
        strides = list(contiguous_strides(shape))
        if layout == "F":
            strides = list(reversed(contiguous_strides(shape[::-1])))
        elif layout != "C":
            for axis in range(node.ndim - (layout == "R")):
                if int(node.shape[axis]) > 1:
                    symbol = self.sizes.fresh(0, "s")
                    strides[axis] = symbol
                    self.strides[str(symbol)] = (len(self.inputs), axis)
            if layout == "R":
                strides[-1] = ONE
        buffer = Buffer(f"x{len(self.inputs)}", "input", node.dtype, shape, tuple(strides))
        self.inputs[node] = buffer
        return buffer

    def stride_symbols(self) -> tuple[set[str], set[str]]:
        """The symbols that are strides of arguments, and those that may be negative."""
        nodes = list(self.inputs)
        return set(self.strides), {s for s, (i, _) in self.strides.items() if self.layouts.get(nodes[i]) == "S"}

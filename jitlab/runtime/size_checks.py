"""Before machine code runs: its sizes are those of the arrays it is given, so that it reads and writes no other memory.

A kernel knows lengths as polynomials over symbols; the graph it is made of has a number beside each, which NumPy's own rules
were asked about. Where the symbols get their values the two are compared, and what views reach; where arrays are bound, theirs
are. What differs is a mistake of ours: an InternalError that names the line, and the call is left to Python. The C functions
in front of warm calls compare shapes and dtypes themselves, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from jitlab.errors import InternalError
from jitlab.ir import ArrayType, Extent, Graph, Lowered, Node, every_node, plain
from jitlab.ops.layout.views import Update, View


class Sizes:
    """The sizes of a graph for these values of its symbols. Raises InternalError where they do not agree."""

    def __init__(self, graph: Graph, values: Mapping[str, int]) -> None:
        self.graph, self.values = graph, values
        nodes = list(every_node(graph))
        #: Symbols that get their values in loops, and from data: what depends on them is proved, or checked at each run.
        self.at_a_run = frozenset(node.op.symbol for node in nodes if hasattr(node.op, "symbol")) | graph.sizes.keys()
        for node in nodes:
            for extent in (*node.shape, *_extents(node.op)):
                if self._is_fixed(extent) and not self._is_known(extent):
                    self._refuse(node, f"a size of {_name(node)} is {int(extent)}, and compiled code would take it for another")
            if isinstance(node.op, (View, Update)) and not self._stays_inside(node):
                self._refuse(node, f"{_name(node)} reaches beyond the array that it is a part of")
        self._types = {node: self._type(node) for node in (*graph.parameters, *graph.nodes)}
        self._wanted = [(node, self._types[node]) for node in graph.parameters]

    def check_arguments(self, arrays: Sequence[Any]) -> None:
        """Arrays are bound to the parameters."""
        for (node, wanted), x in zip(self._wanted, arrays, strict=True):
            if wanted is not None and (x.shape != wanted[0] or x.dtype != wanted[1]):
                self.check_value(node, x)

    def check_value(self, node: Node, value: Any) -> None:
        """A value has the shape and dtype of the node whose value it is."""
        wanted = self._types.get(node)
        if wanted is None or isinstance(value, tuple):
            return
        array = np.asarray(value)
        if array.shape != wanted[0] or array.dtype != wanted[1]:
            found, taken = (f"{dtype}{list(shape)}" for shape, dtype in ((array.shape, array.dtype), wanted))
            self._refuse(node, f"{_name(node)} is {found}, and compiled code would take it for {taken}")

    def found(self, node: Node, value: Any) -> list[ArrayType]:
        """What an operation has given whose lengths the data decide, otherwise as it was to be."""
        op = node.op
        found = op.found(value)
        for own, type in zip(found, op.types, strict=True):
            wanted = [n if self._is_fixed(n) else None for n in type.shape]
            shapes = zip(own.shape, wanted, strict=False)
            if own.dtype != type.dtype or own.ndim != type.ndim or any(n is not None and m != n for m, n in shapes):
                self._refuse(node, f"{_name(node)} is {own}, and compiled code would take it for {type}")
        return found  # type: ignore[no-any-return]

    def check_buffers(self, lowered: Lowered) -> None:
        """The memory that a Program gets for its inputs and outputs is as large as its own loops take it to be."""
        program = lowered.program
        for kind, buffers, nodes in (("input", program.inputs, lowered.inputs), ("output", program.outputs, lowered.outputs)):
            for buffer, node in zip(buffers, nodes, strict=True):
                if buffer.kind != kind:
                    self._refuse(node, f"the result {_name(node)} would be left in the place of what it is made of")
                wanted = self._type(node)
                if wanted is not None and tuple(n.evaluate(lowered.symbol_values) for n in buffer.shape) != wanted[0]:
                    self._refuse(node, f"compiled code would take {_name(node)} for another size than {list(wanted[0])}")

    def _is_fixed(self, extent: int) -> bool:
        return not isinstance(extent, Extent) or self.at_a_run.isdisjoint(extent.expr.symbols)

    def _is_known(self, extent: int) -> bool:
        if not isinstance(extent, Extent):
            return True
        try:
            return extent.expr.evaluate(self.values) == int(extent)
        except KeyError:
            return False

    def _stays_inside(self, node: Node) -> bool:
        """Do the first and the last element that a view has on each axis of its base lie in it?"""
        op, (base, *_) = node.op, node.inputs
        if 0 in plain(op.shape):
            return True
        for n, (offset, step, axis) in zip(base.shape, op.map, strict=True):
            length = 1 if axis is None else op.shape[axis]
            if all(map(self._is_fixed, (n, offset, step, length))):
                first, last = int(offset), int(offset) + (int(length) - 1) * int(step)
                if not (0 <= first < int(n) and 0 <= last < int(n)):
                    return False
        return True

    def _type(self, node: Node) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
        """Shape and dtype; None where only a run knows the lengths, or where there are several values."""
        if node.dtype.kind == "V" or not all(map(self._is_fixed, node.shape)):
            return None
        return plain(node.shape), node.dtype

    def _refuse(self, node: Node, what: str) -> None:
        readers = (reader for reader in self.graph.nodes if node in reader.inputs)
        sources = node.sources or next((reader.sources for reader in readers if reader.sources), frozenset())
        raise InternalError(
            f"jitlab made a mistake: {what}.", where=next((source.place for source in sorted(sources)), ""),
            why="sizes are compared before compiled code runs; nothing was changed",
            hint="please report it with the program; jit_scope(False) around the line leaves it to NumPy",
        )  # fmt: skip


def _extents(x: Any) -> Iterator[int]:
    """The extents in an operation's fields."""
    kind = type(x)
    if isinstance(x, Extent):
        yield x
    elif kind is tuple:
        for part in x:
            if type(part) is not int:
                yield from _extents(part)
    else:
        names = _names.get(kind)
        if names is None:
            holds = is_dataclass(x) and not isinstance(x, type) and not hasattr(x, "nodes")
            names = _names[kind] = tuple(f.name for f in fields(x)) if holds else ()
        for name in names:
            yield from _extents(getattr(x, name))


#: The fields of each class that was met.
_names: dict[type, tuple[str, ...]] = {}


def _name(node: Node) -> str:
    return f"`{node.called or (node.name if node.op.is_parameter else node.op.word)}`"


__all__ = ["Sizes"]

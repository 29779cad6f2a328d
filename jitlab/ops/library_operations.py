"""Operations that a library computes whole: NumPy's own code, called as one kernel inside a cluster."""

from __future__ import annotations

from typing import ClassVar

from jitlab.ir import ArrayType, Node, current_graph

from .base import Operation
from .build_nodes import apply
from .host_operations import SEVERAL, Item


class Library(Operation, family=True):
    """One call of a library in a cluster. Its operands lie row after row in memory, its results are stored there.

    `numpy` is the meaning and the machine: it gets arrays of the types of the trace and gives one array or a tuple of them,
    exactly as `results` says. What it raises (`LinAlgError`) reaches the user at the line of the call.
    """

    exact: ClassVar[bool] = False
    library: ClassVar[str] = "NumPy"  # whose code it is, as the report names it
    may_fail: ClassVar[bool] = True  # a run may find it raising, or interrupted in Python

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """The types of the results. Raises what NumPy raises for operands it refuses."""
        raise NotImplementedError

    def result(self, *types: ArrayType) -> ArrayType:
        results = self.results(*types)
        return results[0] if len(results) == 1 else ArrayType((), SEVERAL)


def call(op: Library, *inputs: Node) -> Node | tuple[Node, ...]:
    """Append the call: its result, or a node for each of its results. `gradient` of an operation with several results gets
    the node of the call as `out`, and for `g` a tuple with the cotangent of each result, None where none flows."""
    node = apply(op, *inputs)
    return results_of(node) if node.dtype == SEVERAL else node


def results_of(call: Node) -> tuple[Node, ...]:
    """A node for each result of a call that has several: those that the graph has, so that each result is stored once."""
    graph = current_graph()
    assert graph is not None, "no graph is being built"
    known = {node.op.index: node for node in graph.nodes if isinstance(node.op, Item) and node.inputs[0] is call}
    types = call.op.results(*(source.type for source in call.inputs))
    return tuple(known.get(k) or apply(Item(k, type), call) for k, type in enumerate(types))

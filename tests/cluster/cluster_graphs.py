"""Small graphs for the clusterer: operations by short names, and stand-ins for what has no compiled form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from jitlab.cluster import cluster, for_session
from jitlab.flags import read_flags
from jitlab.ir import ArrayType, Clustering, ClusteringOptions, Graph, Node
from jitlab.messages import Message
from jitlab.ops.base import Operation
from jitlab.ops.build_nodes import apply, constant, elementwise
from jitlab.ops.control_flow import Branch
from jitlab.ops.elementwise.arithmetic import Add, Mul
from jitlab.ops.elementwise.math_functions import Cos, Exp, Sin
from jitlab.ops.graph_state import AssignVariable, Identity, ReadVariable
from jitlab.ops.host_operations import SEVERAL, HostCall, Input, Item
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.linear_algebra.matrix_products import MatMul
from jitlab.support.lazy_dataclass import dataclass

VECTOR = ArrayType((3,), np.dtype("f8"))
MATRIX = ArrayType((3, 3), np.dtype("f8"))
FLAG = ArrayType((), np.dtype(bool))

#: The contract's policy at ON_1 and OFF, with no flag set.
SESSION = for_session(read_flags({}), 1)
OFF = for_session(read_flags({}), 0)
#: The policy of functions and cells.
OURS = ClusteringOptions()


@dataclass(frozen=True)
class NoLoop(Operation):
    """What no loop computes."""

    def numpy(self, *arrays: Any) -> Any:
        return np.sort(sum(arrays))

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return Message("statement.no_loop_body")


@dataclass(frozen=True)
class Print(NoLoop):
    has_effects: ClassVar[bool] = True


@dataclass(frozen=True)
class FloatsOnly(Operation):
    def numpy(self, x: Any) -> Any:
        return x

    def result(self, x: ArrayType) -> ArrayType:
        return x

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return None if types[0].dtype == np.dtype("f8") else Message("stays.of_dtype", {"dtype": str(types[0].dtype)})


@dataclass(frozen=True)
class Slow(FloatsOnly):
    tf_name: ClassVar[str | None] = "Qr"


@dataclass(frozen=True)
class Counter(FloatsOnly):
    """assign_add: reads a variable and writes it."""

    tf_name: ClassVar[str | None] = "AssignAddVariableOp"


@dataclass(frozen=True)
class NoOp(NoLoop):
    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType((), SEVERAL)


class Making:
    """A graph that is being made, with its first argument."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.x = graph.add(Parameter(VECTOR), name="x")

    def argument(self, type: ArrayType = VECTOR) -> Node:
        return self.graph.add(Parameter(type), name="y")

    def make(self, op: Any, *inputs: Node, after: tuple[Node, ...] = (), device: str = "", **attrs: Any) -> Node:
        """The operation; `after`: what has to run before it; `device`: where it is placed."""
        node = apply(op, *inputs)
        if after:
            node.attrs["^"] = tuple(other.name for other in after)
        if device:
            node.attrs["device"] = device
        node.attrs.update(attrs)
        return node

    def sin(self, x: Node, **options: Any) -> Node:
        return self.make(Sin(), x, **options)

    def cos(self, x: Node, **options: Any) -> Node:
        return self.make(Cos(), x, **options)

    def exp(self, x: Node, **options: Any) -> Node:
        return self.make(Exp(), x, **options)

    def add(self, x: Node, y: Node, **options: Any) -> Node:
        return self.make(Add(), x, y, **options)

    def mul(self, x: Node, y: Node, **options: Any) -> Node:
        return self.make(Mul(), x, y, **options)

    def dot(self, x: Node, y: Node, **options: Any) -> Node:
        return self.make(MatMul(), x, y, **options)

    def host(self, *inputs: Node, **options: Any) -> Node:
        return self.make(NoLoop(), *inputs, **options)

    def print(self, *inputs: Node, **options: Any) -> Node:
        return self.make(Print(), *inputs, **options)

    def plus(self, x: Node, number: float) -> Node:
        return elementwise(Add(), x, constant(number))

    def identity(self, x: Node) -> Node:
        return apply(Identity(), x)

    def read(self, variable: Node, **options: Any) -> Node:
        return self.make(ReadVariable(), variable, **options)

    def assign(self, value: Node, **options: Any) -> Node:
        return self.make(AssignVariable(), value, **options)

    def count(self, value: Node, **options: Any) -> Node:
        return self.make(Counter(), value, **options)

    def group(self, *nodes: Node) -> Node:
        return self.make(NoOp(), after=nodes)

    def draw(self) -> Node:
        call = HostCall(np.add, (Input(0), 1.0), {}, (VECTOR,), "stateful_random", Message("stays.draws"), "random")
        return apply(call, self.x)

    def branch(self, x: Node, depth: int = 1, inner: Any = None, **options: Any) -> Node:
        """if flag: x = inner(x), in `depth` bodies inside one another; with its result."""
        where = self.argument(FLAG)

        def body(depth: int) -> Graph:
            made = Graph(f"body_{depth}")
            own, flag = made.add(Parameter(VECTOR), name="x"), made.add(Parameter(FLAG), name="flag")
            with made.building():
                if depth:
                    nested = apply(Branch(body(depth - 1), body(0), (VECTOR, FLAG)), flag, own, flag)
                    made.outputs = [apply(Item(0, VECTOR), nested), flag]
                else:
                    made.outputs = [apply(inner or Exp(), own), flag]
            return made

        node = self.make(Branch(body(depth - 1), body(0), (VECTOR, FLAG)), where, x, where, **options)
        return apply(Item(0, VECTOR), node)


@contextmanager
def making(name: str = "f") -> Iterator[Making]:
    graph = Graph(name)
    with graph.building():
        yield Making(graph)


def clustered(made: Making, *outputs: Node, options: ClusteringOptions = SESSION, **settings: Any) -> Clustering:
    made.graph.outputs = list(outputs)
    return cluster(made.graph, options, **settings)


def sets(clustering: Clustering) -> list[set[str]]:
    """The names in each cluster, without those of constants."""
    return [{node.name for node in c.members if node.op.name not in ("Const", "Item")} for c in clustering.clusters]


def names(*nodes: Node) -> set[str]:
    return {node.name for node in nodes}


def codes(clustering: Clustering) -> dict[str, Any]:
    """Why operations stay out; arguments and constants are left out."""
    found = {n: r.code for n, r in clustering.stays.items() if n.op.name not in ("Const", "Placeholder", "VarHandleOp")}
    return {node.name: code for node, code in found.items()}


def refusals(clustering: Clustering) -> list[tuple[str, str, Any]]:
    return [(edge.producer.name, edge.consumer.name, edge.reason.code) for edge in clustering.apart]

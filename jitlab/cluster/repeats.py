"""What a fusion that somebody asks for would compute a second time: a producer that the plan keeps apart from its reader."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jitlab.ir import Node, Plan
from jitlab.ops.base import Elementwise, Generated
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.layout.indexing import Gather, Take
from jitlab.ops.layout.views import Reshape, View

from .decided import named

Pair = tuple[str, str]


def repeats(plan: Plan, pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """(producer, its first reader on the way) of each pair that is apart and whose producer may be computed a second time."""
    names = named(plan.clustering.graph)
    nodes = {name: node for node, name in names.items()}
    kernels = [{node.name for node in kernel.nodes} for kernel in plan.kernels]
    found = []
    for a, b in pairs:
        steps = None if any({a, b} <= kernel for kernel in kernels) else way(nodes[a], nodes[b], names)
        if steps is not None and _may_repeat(plan, nodes[a], steps[0]):
            found.append((a, names[steps[0]]))
    return tuple(found)


def _may_repeat(plan: Plan, producer: Node, consumer: Node) -> bool:
    """Can the producer be computed a second time for this consumer? Element by element, in one cluster, if others read it."""
    graph = plan.clustering.graph
    if producer not in consumer.inputs or not any({producer, consumer} <= set(c.members) for c in plan.clustering.clusters):
        return False
    others = any(producer in node.inputs and node is not consumer for node in graph.nodes)
    return (others or producer in graph.outputs) and isinstance(
        producer.op, (Elementwise, Generated, View, Reshape, Take, Gather)
    )


def way(x: Node, y: Node, among: Collection[Node]) -> list[Node] | None:
    """The operations after x up to y, when all between only move or cast a value."""
    ways: list[list[Node]] = [[y]]
    while ways:
        steps = ways.pop(0)
        read = [call_of(node) for node in steps[0].inputs]
        if x in read:
            return steps
        ways += [[node, *steps] for node in read if is_move(node) and node in among]
    return None


def call_of(node: Node) -> Node:
    """What makes a value: of one of several results the call, the loop or the branch."""
    return node.inputs[0] if node.op.name == "Item" else node


def is_move(node: Node) -> bool:
    """It only moves or casts a value."""
    return isinstance(node.op, (View, Reshape, Cast))

"""Edges between kernels that no stage reads over: memory that changes in place, views that a library reads where they lie. With
them each edge between operations in different kernels has its one reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitlab.ir import Edge, KernelInfo, Node, NotFused, Reason, is_operation
from jitlab.ir.dot import line_text
from jitlab.ops.indexing import Scatter
from jitlab.ops.library import Library
from jitlab.ops.linear import Product
from jitlab.ops.views import Update

from .block import is_control
from .names import called


def completed(edges: Sequence[Edge], kernels: Iterable[KernelInfo], nodes: Sequence[Node]) -> list[Edge]:
    """The edges, and those of the nodes of a cluster that are missing: no kernel has both ends."""
    homes: dict[Node, set[str]] = {}
    for kernel in kernels:
        for node in kernel.nodes:
            homes.setdefault(node, set()).add(kernel.name)
    known = {(_owner(edge.producer), edge.consumer) for edge in edges}
    result = list(edges)
    inside = set(nodes)
    for consumer in nodes:
        if not is_operation(consumer):
            continue
        for source in dict.fromkeys(consumer.inputs):
            producer = _owner(source)
            if not is_operation(producer) or producer not in inside or (producer, consumer) in known:
                continue
            if homes.get(producer, set()) & homes.get(consumer, set()):
                continue
            known.add((producer, consumer))
            result.append(Edge(producer, consumer, _reason(producer, consumer), source.type.nbytes))
    return result


def _owner(node: Node) -> Node:
    """The operation that gives a value: a loop for one of its results."""
    return node if is_operation(node) or not node.inputs else node.inputs[0]


def _reason(producer: Node, consumer: Node) -> Reason:
    name = called(producer)
    lines = line_text(s.line for s in consumer.sources) or "line ?"
    if isinstance(consumer.op, (Library, Product)) or isinstance(producer.op, (Library, Product)):
        text = f"Not fused: a library call reads {name} where it lies ({lines})"
        return Reason(NotFused.LIBRARY_CALL, text, (consumer.name,))
    if isinstance(consumer.op, (Update, Scatter)):
        text = f"Not fused: {called(consumer)} writes a part of {name} where it lies ({lines})"
        return Reason(NotFused.UPDATED, text, (consumer.name,))
    if is_control(consumer) or is_control(producer):
        text = f"Not fused: {called(consumer)} is a loop or branch of its own ({lines})"
        if is_control(producer):
            text = f"Not fused: {name} is a loop or branch of its own, which ends before it is read ({lines})"
        return Reason(NotFused.UPDATED, text, (consumer.name,))
    return Reason(NotFused.READ_AGAIN, f"Not fused: {name} is read again ({lines})", (consumer.name,))


__all__ = ["completed"]

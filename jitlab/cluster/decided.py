"""The decisions of `jit_scope(cut=..., fuse=...)`, by the names of the operations that a graph has after its passes."""

from __future__ import annotations

from collections.abc import Iterator

from jitlab.ir import DECISIONS, Decision, Graph, Node, Overrides, inner_nodes, is_operation
from jitlab.ops.elementwise import Cast
from jitlab.ops.views import Reshape, View


def decided(graph: Graph) -> Overrides:
    """What the scopes of a program decide of its edges, those inside loops and branches among them."""
    every = [(node, node.name) for node in graph.nodes]
    if not any(getattr(node.op, "graphs", ()) or DECISIONS in node.attrs for node in graph.nodes):
        return Overrides()
    every += [(inner, name) for node in graph.nodes for inner, name, _ in inner_nodes(node)]
    names = {node: name for node, name in every if is_operation(node)}
    cut: dict[tuple[str, str], None] = {}
    fuse: dict[tuple[str, str], None] = {}
    for node, name in names.items():
        for decision in node.attrs.get(DECISIONS, ()):
            for a, b in decision.cut:
                cut.update(((names[x], names[first]), None) for x, first in _edges(node, name, a, b, decision, names))
            for a, b in decision.fuse:
                fuse.update(((names[x], name), None) for x, _ in _edges(node, name, a, b, decision, names))
    return Overrides(cut=tuple(cut), fuse=tuple(fuse))


def _edges(
    node: Node, name: str, a: str, b: str, decision: Decision, names: dict[Node, str]
) -> Iterator[tuple[Node, Node]]:
    """(producer, what reads it first) of each edge to a node that is a `b`, from an `a` of the same scope; what only moves or
    casts a value may stand between."""
    if not _is(node, name, b):
        return
    ways = [(source, node) for source in dict.fromkeys(node.inputs)]
    seen = set()
    while ways:
        source, reader = ways.pop()
        if source not in names or (source, reader) in seen:
            continue
        seen.add((source, reader))
        if decision in source.attrs.get(DECISIONS, ()) and _is(source, names[source], a):
            yield source, reader
        elif isinstance(source.op, (View, Reshape, Cast)):
            ways += [(further, source) for further in source.inputs]


def _is(node: Node, name: str, wanted: str) -> bool:
    return wanted.lower() == node.op.name.lower() or wanted in (name, node.name)

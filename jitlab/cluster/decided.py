"""The decisions of `jit_scope(cut=..., fuse=...)`, by the names of the operations that a graph has after its passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from jitlab.ir import DECISIONS, Decision, Graph, Node, Overrides, inner_nodes, is_operation, is_written
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.layout.views import Reshape, View


def decided(graph: Graph) -> Overrides:
    """What the scopes of a program decide of its edges, those inside loops and branches among them."""
    if not any(getattr(node.op, "graphs", ()) or DECISIONS in node.attrs for node in graph.nodes):
        return Overrides()
    names = named(graph)
    cut: dict[tuple[str, str], None] = {}
    fuse: dict[tuple[str, str], None] = {}
    for node, name in names.items():
        for decision in node.attrs.get(DECISIONS, ()):
            inside = partial(is_inside, decision)
            for a, b in decision.cut:
                cut.update(((names[x], names[first]), None) for x, first in edges_to(node, a, b, names, inside))
            for a, b in decision.fuse:
                fuse.update(((names[x], name), None) for x, _ in edges_to(node, a, b, names, inside))
    return Overrides(cut=tuple(cut), fuse=tuple(fuse))


def named(graph: Graph) -> dict[Node, str]:
    """The operations of a graph and of its loops and branches, by the names that reports have for them."""
    every = [(node, node.name) for node in graph.nodes]
    every += [(inner, name) for node in graph.nodes for inner, name, _ in inner_nodes(node)]
    return {node: name for node, name in every if is_operation(node)}


def is_inside(decision: Decision, node: Node) -> bool:
    """Was it made in this scope?"""
    return decision in node.attrs.get(DECISIONS, ())


def edges_to(
    node: Node, a: str, b: str, names: dict[Node, str], inside: Callable[[Node], bool]
) -> Iterator[tuple[Node, Node]]:
    """(producer, what reads it first) of each edge to a node that is a `b`, from an `a` that is inside; what only moves or
    casts a value may stand between."""
    if not answers_to(node, names[node], b):
        return
    ways = [(source, node) for source in dict.fromkeys(node.inputs)]
    seen = set()
    while ways:
        source, reader = ways.pop()
        if source not in names or (source, reader) in seen:
            continue
        seen.add((source, reader))
        if inside(source) and answers_to(source, names[source], a):
            yield source, reader
        elif isinstance(source.op, (View, Reshape, Cast)):
            ways += [(further, source) for further in source.inputs]


def answers_to(node: Node, name: str, wanted: str) -> bool:
    """Is it of this kind, or of this name, or written so?"""
    kinds = node.op.name.lower(), node.op.word
    return wanted in (name, node.name) or wanted.lower() in kinds or is_written(wanted, node.called)

"""What the passes share: a rewrite that leaves alone what it must, and exact comparison of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from jitlab.ir import Extent, Graph, Node, current_graph

Found = TypeVar("Found")


def rewrite(graph: Graph, match: Callable[[Node], Found | None], replace: Callable[[Node, Found], Node]) -> Graph:
    """The new node `replace(node, match(node))` for each node that matches; the graph itself when none does."""
    if all(match(node) is None for node in graph.nodes):
        return graph

    def rule(node: Node) -> Node | None:
        found = match(node)
        return None if found is None else replace(node, found)

    return graph.rewrite(rule)


def leave_out(graph: Graph, match: Callable[[Node], Node | None], absorbed: Callable[[Node, Node], Sequence[Node]]) -> Graph:
    """The node that `match` gives, which is there already, for each node that matches; the graph itself when none does.

    `absorbed(node, kept)` go with the node: what is kept takes over their sources. An output is never left out: two results
    (or a result and an argument) that the program computed apart would then share memory.
    """
    outputs = {node.name for node in graph.outputs}

    def rule(node: Node) -> Node | None:
        kept = None if node.name in outputs else match(node)
        return None if kept is None else absorb(kept, *absorbed(node, kept))

    if all(node.name in outputs or match(node) is None for node in graph.nodes):
        return graph
    return graph.rewrite(rule)


def absorb(node: Node, *left_out: Node) -> Node:
    """The node, which now stands also for what is left out."""
    for other in left_out:
        node.sources |= other.sources
    return node


def instead(node: Node, op: Any, *inputs: Node) -> Node:
    """`op(*inputs)` in the place of `node`, under its name."""
    graph = current_graph()
    assert graph is not None
    return graph.add(op, *inputs, sources=node.sources, name=node.name)


def exactly(value: Any) -> Any:
    """A key that is equal for equal values of one type and, for extents, of one polynomial."""
    if isinstance(value, tuple):
        return tuple(exactly(v) for v in value)
    if isinstance(value, Extent):
        return Extent, value.expr
    return type(value), value


def same(a: Any, b: Any) -> bool:
    return bool(exactly(a) == exactly(b))


def operation_key(op: Any) -> Any:
    """Equal for operations that do the same in every trace with this text; loops and branches are only equal to themselves."""
    if hasattr(op, "graphs"):
        return type(op), id(op)
    return type(op), tuple(exactly(getattr(op, f.name)) for f in fields(op))

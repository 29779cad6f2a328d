"""Loops and branches that the gradient runs once more, to save what it needs, become one with those they replay."""

from __future__ import annotations

from dataclasses import replace

from jitlab.ir import Graph, Node, current_graph
from jitlab.ops.control_flow import Branch, Loop

from .rewriting import absorb, instead


def join_replays(graph: Graph) -> Graph:
    """y = loop(x); ...; y, stack = saving loop(x, zeros)  ->  y, stack = saving loop(x, zeros); ...

    The saving one stands where the other stood: what it has more inputs of are constants.
    """
    calls = {id(node.op): node for node in graph.nodes if isinstance(node.op, (Loop, Branch))}
    pairs: dict[str, Node] = {}  # the name of a loop or branch -> the first one that replays it
    for node in calls.values():
        first = calls.get(id(node.op.replays))
        if first is not None and first.name not in pairs and _is_replay(first, node):
            pairs[first.name] = node
    if not any(node.op.replays is not None for node in calls.values()):
        return graph
    made: dict[str, Node] = {}  # by the name of the one that replays

    def rule(node: Node) -> Node | None:
        if node.name in pairs:
            saving = pairs[node.name]
            kept = len(node.op.types) if isinstance(node.op, Loop) else len(node.inputs)
            more = [_once_more(x) for x in saving.inputs[kept : len(saving.inputs) - len(node.inputs) + kept]]
            op = replace(saving.op, replays=None)
            made[saving.name] = instead(node, op, *node.inputs[:kept], *more, *node.inputs[kept:])
            return made[saving.name]
        if node.name in made:
            return absorb(made[node.name], node)
        if isinstance(node.op, (Loop, Branch)) and node.op.replays is not None:
            return instead(node, replace(node.op, replays=None), *node.inputs)
        return None

    return graph.rewrite(rule)


def _is_replay(first: Node, saving: Node) -> bool:
    """The same inputs, but for more carried ones that are made of constants alone."""
    kept = len(first.op.types) if isinstance(first.op, Loop) else len(first.inputs)
    rest = len(first.inputs) - kept
    last = len(saving.inputs) - rest
    same = saving.inputs[:kept] == first.inputs[:kept] and saving.inputs[last:] == first.inputs[kept:]
    return same and all(_is_constant(x) for x in saving.inputs[kept:last])


def _is_constant(node: Node) -> bool:
    return not node.op.is_parameter and all(_is_constant(x) for x in node.inputs)


def _once_more(node: Node) -> Node:
    """A constant made again, where it is needed earlier."""
    graph = current_graph()
    assert graph is not None
    return graph.add(node.op, *(_once_more(x) for x in node.inputs), sources=node.sources, name=node.name)

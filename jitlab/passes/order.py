"""The order of operations: any order in which each comes after what it reads gives the same results."""

from __future__ import annotations

from collections import deque

from jitlab.ir import Graph, Node
from jitlab.ir.graphs.graph import is_definition


def order_operations(graph: Graph, order: str) -> Graph:
    """Operations as they become ready: "bfs" takes the one that was ready first, "dfs" the one that became ready last.

    For a -> b -> c and a -> d -> e: bfs a, b, d, c, e; dfs a, b, c, d, e, which keeps fewer arrays alive. Operations with
    effects stay in program order; so does a graph whose extents are found while it runs.
    """
    if graph.sizes or any(is_definition(node.op) for node in graph.nodes):
        return graph
    position = {node: n for n, node in enumerate(graph.nodes)}
    readers: dict[Node, list[Node]] = {node: [] for node in graph.nodes}
    missing: dict[Node, int] = {}
    first: list[Node] = []
    chained: Node | None = None
    for node in graph.nodes:
        sources = {source for source in node.inputs if source in position}
        if getattr(node.op, "has_effects", False):
            if chained is not None:
                sources.add(chained)
            chained = node
        for source in sources:
            readers[source].append(node)
        missing[node] = len(sources)
        if not sources:
            first.append(node)
    ready = deque(first if order == "bfs" else reversed(first))
    nodes: list[Node] = []
    while ready:
        node = ready.popleft() if order == "bfs" else ready.pop()
        nodes.append(node)
        freed = []
        for reader in readers[node]:
            missing[reader] -= 1
            if not missing[reader]:
                freed.append(reader)
        freed.sort(key=position.__getitem__, reverse=order == "dfs")
        ready.extend(freed)
    new = graph.without_dead()
    kept = set(new.nodes)
    new.nodes = [node for node in nodes if node in kept]
    return new

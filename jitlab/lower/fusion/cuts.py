"""What a what-if decides in one cluster: the edges that it cuts, those of loops and branches among them, and what it has
computed again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitlab.ir import Node, Overrides, again_name, inner_nodes


class Cuts:
    """Pairs of nodes: the first is stored, and the second reads it in another nest."""

    def __init__(self, overrides: Overrides, nodes: Sequence[Node]) -> None:
        self.pairs: set[tuple[Node, Node]] = set()
        if overrides.cut:
            named = {node.name: node for node in nodes}
            named.update((name, inner) for node in nodes for inner, name, _ in inner_nodes(node))
            self.pairs = {(named[a], named[b]) for a, b in overrides.cut if a in named and b in named}
        self.stored = {producer for producer, _ in self.pairs}
        copies = {again_name(producer) for producer, _ in overrides.again}
        self.again = {node for node in nodes if node.name in copies}

    def between(self, made: Iterable[Node], computed: Iterable[Node]) -> bool:
        """Is an edge from one of `made` to one of `computed` cut?"""
        if not self.pairs:
            return False
        producers, consumers = set(made), set(computed)
        return any(a in producers and b in consumers for a, b in self.pairs)


NO_CUTS = Cuts(Overrides(), ())

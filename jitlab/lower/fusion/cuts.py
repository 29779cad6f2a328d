"""What a scope or a what-if decides in one cluster: the edges that are cut, those of loops and branches among them, and the
edges that are to be fused, if need be by computing a value again for who reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitlab.ir import Node, Overrides, inner_nodes

Edge = tuple[Node, Node]


class Cuts:
    """Of the edges in `pairs` the first end is stored, and the second reads it in another nest. `again`: (value, the node of
    a stage) where that stage computes a value itself, whatever that costs, though it is stored for others."""

    def __init__(self, overrides: Overrides, nodes: Sequence[Node], again: set[Edge] | None = None) -> None:
        self.pairs: set[Edge] = set()
        if overrides.cut:
            named = {node.name: node for node in nodes}
            named.update((name, inner) for node in nodes for inner, name, _ in inner_nodes(node))
            self.pairs = {(named[a], named[b]) for a, b in overrides.cut if a in named and b in named}
        self.stored = {producer for producer, _ in self.pairs}
        self.again: set[Edge] = set() if again is None else again

    def repeated_in(self, reader: Node) -> set[Node]:
        """What the stage of a node computes although it is stored."""
        return {value for value, other in self.again if other is reader}

    def stored_after_all(self, values: Iterable[Node]) -> bool:
        """These can only be read where they are stored: no stage computes them again. False where none did."""
        found = {pair for pair in self.again if pair[0] in set(values)}
        self.again -= found
        return bool(found)

    def between(self, made: Iterable[Node], computed: Iterable[Node]) -> bool:
        """Is an edge from one of `made` to one of `computed` cut?"""
        if not self.pairs:
            return False
        producers, consumers = set(made), set(computed)
        return any(a in producers and b in consumers for a, b in self.pairs)


NO_CUTS = Cuts(Overrides(), ())

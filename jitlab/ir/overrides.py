"""What a what-if changes in a plan, as plain data by the names of operations. Results stay NumPy's (design D14)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .graph import Graph, Node, current_graph

Pair = tuple[str, str]  # (producer, consumer)


@dataclass(frozen=True)
class Overrides:
    """Decisions that are taken otherwise than the rules would take them.

    `cut`: the producer is stored, and the consumer reads it in another kernel. `fuse`: both ends compile, in one cluster where
    no cycle forbids it, whatever scopes and sizes say. `again`: the producer is computed a second time, for this consumer.
    `keep_out`: operations that NumPy runs.
    """

    cut: tuple[Pair, ...] = ()
    fuse: tuple[Pair, ...] = ()
    again: tuple[Pair, ...] = ()
    keep_out: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.cut or self.fuse or self.again or self.keep_out)

    @property
    def compiled(self) -> frozenset[str]:
        """The operations that are to be compiled where they can be."""
        return frozenset(name for pair in self.fuse for name in pair)

    def cuts(self, made: Iterable[Node], computed: Iterable[Node]) -> bool:
        """Is an edge from one of `made` to one of `computed` cut?"""
        if not self.cut:
            return False
        producers, consumers = {node.name for node in made}, {node.name for node in computed}
        return any(a in producers and b in consumers for a, b in self.cut)

    def is_stored(self, node: Node) -> bool:
        """Is a value stored because somebody reads it over a cut edge?"""
        return any(a == node.name for a, _ in self.cut)


NO_OVERRIDES = Overrides()


def computed_again(graph: Graph, pairs: Iterable[Pair]) -> Graph:
    """x = f(a); g(x); h(x)  ->  x = f(a); g(x); x' = f(a); h(x')   for the pair (x, h)."""
    wanted = set(pairs)
    if not wanted:
        return graph

    def rule(node: Node) -> None:
        inputs = []
        for source in node.inputs:
            if (source.name, node.name) in wanted:
                new = current_graph()
                assert new is not None
                copy = Node(
                    source.op, source.inputs, source.type, name=f"{source.name}_again", sources=source.sources,
                    attrs=source.attrs,
                )  # fmt: skip
                source = new.append(copy)
            inputs.append(source)
        node.inputs = tuple(inputs)

    return graph.rewrite(rule)

"""What a what-if changes in a plan, as plain data by the names of operations. Results stay NumPy's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jitlab.ir.graphs.graph import Graph, Node, current_graph
from jitlab.ir.graphs.operation import CONTROL
from jitlab.support.lazy_dataclass import dataclass

Pair = tuple[str, str]  # (producer, consumer)


@dataclass(frozen=True)
class Overrides:
    """Decisions that are taken otherwise than the rules would take them.

    `cut`: the producer is stored, and the consumer reads it in another kernel. `fuse`: both ends compile, in one cluster where
    no cycle forbids it, whatever scopes and sizes say; in one kernel if that takes no more than computing the producer again.
    `again`: the graph has the producer a second time, for this consumer. `keep_out`: operations that NumPy runs. `earlier`:
    the first, and what it is made of, comes before the second.
    """

    cut: tuple[Pair, ...] = ()
    fuse: tuple[Pair, ...] = ()
    again: tuple[Pair, ...] = ()
    keep_out: tuple[str, ...] = ()
    earlier: tuple[Pair, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.cut or self.fuse or self.again or self.keep_out or self.earlier)

    def over(self, scoped: Overrides) -> Overrides:
        """These decisions beside those of scopes, where none of these says otherwise."""
        if not scoped:
            return self
        cut = (pair for pair in scoped.cut if pair not in self.fuse)
        fuse = (pair for pair in scoped.fuse if pair not in self.cut)
        return Overrides(_joined(self.cut, cut), _joined(self.fuse, fuse), self.again, self.keep_out, self.earlier)

    @property
    def compiled(self) -> frozenset[str]:
        """The operations that are to be compiled where they can be."""
        return frozenset(name for pair in self.fuse for name in pair)


NO_OVERRIDES = Overrides()


def _joined(first: Iterable[Pair], second: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def again_name(name: str) -> str:
    """Of what computes a value a second time."""
    return f"{name}_again"


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
                after = (*source.attrs.get(CONTROL, ()), source.name)  # an edge to the first, so both stay in one cluster
                copy = Node(
                    source.op, source.inputs, source.type, name=again_name(source.name), sources=source.sources,
                    attrs={**source.attrs, CONTROL: after},
                )  # fmt: skip
                source = new.append(copy)
            inputs.append(source)
        node.inputs = tuple(inputs)

    return graph.rewrite(rule)


def reordered(graph: Graph, pairs: Iterable[Pair]) -> Graph:
    """a; b; c  ->  a; c; b  for the pair (c, b), where c is made of nothing that comes after b."""
    for name, before in pairs:
        named = {node.name: node for node in graph.nodes}
        if name not in named or before not in named:
            continue
        needed, todo = {named[name]}, [named[name]]
        while todo:
            node = todo.pop()
            sources = (*node.inputs, *(named[n] for n in node.attrs.get(CONTROL, ()) if n in named))
            todo += [source for source in sources if source not in needed]
            needed.update(sources)
        at = graph.nodes.index(named[before])
        later = graph.nodes[at:]
        if named[before] not in needed:
            moved = [node for node in later if node in needed]
            graph = replace(graph, nodes=[*graph.nodes[:at], *moved, *(node for node in later if node not in needed)])
    return graph

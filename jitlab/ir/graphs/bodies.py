"""What is inside of loops and branches: nodes of their bodies, named and joined to what is around them as reports show them."""

from __future__ import annotations

from collections.abc import Iterator

from jitlab.ir.types import Origins
from jitlab.support.lazy_dataclass import dataclass

from .graph import Graph, Node


@dataclass(frozen=True)
class Nest:
    """A fused nest, a library call, or a run of scalar work in the body of a loop or branch, with the operations in it."""

    kind: str  # "nest", "library" or "scalars"
    origins: Origins


def every_node(graph: Graph) -> Iterator[Node]:
    """Its nodes, each followed by those of the bodies in it."""
    for node in graph.nodes:
        yield node
        for body in getattr(node.op, "graphs", ()):
            yield from every_node(body)


def inner_nodes(node: Node, name: str | None = None) -> Iterator[tuple[Node, str, str]]:
    """(node, name, the loop or branch it is in) of everything in the bodies of a loop or branch, named as reports name it."""
    own = name or node.name
    for prefix, graph in _bodies(node, own):
        for inner in graph.nodes:
            yield inner, prefix + inner.name, own
            yield from inner_nodes(inner, prefix + inner.name)


def body_sources(node: Node, name: str, sources: dict[Node, str]) -> None:
    """What is read where a node of a body is read: an input of the body is what it stands for outside (what a loop carries is
    what it starts from), a result of a loop is the loop's."""
    for prefix, graph in _bodies(node, name):
        outside = node.inputs[1:] if hasattr(node.op, "orelse") else node.inputs
        for parameter, outer in zip(graph.parameters, outside, strict=False):
            sources[parameter] = sources.get(outer, outer.name)
        for inner in graph.nodes:
            sources[inner] = prefix + inner.name
            if inner.op.name == "Item":
                sources[inner] = sources[inner.inputs[0]]
            body_sources(inner, prefix + inner.name, sources)


def _bodies(node: Node, name: str) -> Iterator[tuple[str, Graph]]:
    op = node.op
    graphs = getattr(op, "graphs", ())
    kinds = ("then", "else") if hasattr(op, "orelse") else ("test", "") if len(graphs) == 2 else ("",)
    for kind, graph in zip(kinds, graphs, strict=False):
        yield f"{name}/{kind}/" if kind else f"{name}/", graph

"""A flip made: the graph, or the options, as they would be, and clustered anew."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

from jitlab.ir import Change, Clustering, ClusteringOptions, Flip, Graph, Node, Overrides

from .cluster import clustered_anew

#: What each change of marks puts on the operations that a flip names.
MARKS: dict[Enum, str] = {
    Change.ALLOW: "_XlaCompile", Change.MARK: "_XlaCompile", Change.ONE_SCOPE: "_XlaScope", Change.PLACE: "device",
}  # fmt: skip
#: The options that changes set.
FIELDS: dict[Enum, str] = {Change.MIN_SIZE: "min_size", Change.MAX_SIZE: "max_size", Change.FUEL: "fuel"}


def flipped(clustering: Clustering, flip: Flip) -> Clustering | None:
    """The clustering after a flip; None for a change of the program that is more than a mark, an option or a copy."""
    given = clustering.made_of
    assert given is not None
    if flip.change in MARKS:
        return clustered_anew(clustering, graph=_marked(given.graph, flip))
    if flip.change is Change.COMPUTE_TWICE:
        return clustered_anew(clustering, overrides=Overrides(again=((flip.names[0], flip.names[1]),)))
    if flip.change is Change.MUST:
        return clustered_anew(clustering, jit_compile=True)
    changes = _options_of(flip, given.options)
    return clustered_anew(clustering, options=replace(given.options, **changes)) if changes else None


def _options_of(flip: Flip, options: ClusteringOptions) -> dict[str, Any]:
    if flip.change is Change.LEVEL:
        return {"level": "ON", "level_on_one_gpu": None}
    if flip.change is Change.LIST:
        return {"listed": (options.listed or frozenset()) | {flip.value}}
    if flip.change is Change.DO_NOT_EXCLUDE:
        return {"excluded": options.excluded - {flip.value}}
    return {FIELDS[flip.change]: flip.value} if flip.change in FIELDS else {}


def _marked(graph: Graph, flip: Flip) -> Graph:
    changes: dict[str, Any] = {MARKS[flip.change]: True if MARKS[flip.change] == "_XlaCompile" else flip.value}
    if flip.change is Change.MARK and flip.value is not None:
        changes["_XlaScope"] = flip.value

    def rule(node: Node) -> None:
        if node.name in flip.names:
            node.attrs.update(changes)

    return graph.rewrite(rule)

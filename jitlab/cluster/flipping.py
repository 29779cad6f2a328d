"""A flip made: the graph, or the options, as they would be, and clustered anew."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

from jitlab.ir import Change, Flip, Graph, Node

from .options import ClusteringOptions

#: What each change of marks puts on the operations that a flip names.
MARKS: dict[Enum, str] = {
    Change.ALLOW: "_XlaCompile", Change.MARK: "_XlaCompile", Change.ONE_SCOPE: "_XlaScope", Change.PLACE: "device",
}  # fmt: skip
#: The options that changes set.
FIELDS: dict[Enum, str] = {Change.MIN_SIZE: "min_size", Change.MAX_SIZE: "max_size", Change.FUEL: "fuel"}


def made(
    flip: Flip, graph: Graph, options: ClusteringOptions, jit_compile: bool | None
) -> tuple[Graph, ClusteringOptions, bool | None] | None:
    """What to cluster to see a flip; None for a change of the program that is more than a mark, an option or a copy."""
    if flip.change in MARKS:
        return _marked(graph, flip), options, jit_compile
    if flip.change is Change.COMPUTE_TWICE:
        return graph, options, jit_compile  # an override does it
    if flip.change is Change.LEVEL:
        return graph, replace(options, level="ON", level_on_one_gpu=None), jit_compile
    if flip.change is Change.MUST:
        return graph, options, True
    if flip.change is Change.LIST:
        return graph, replace(options, listed=(options.listed or frozenset()) | {flip.value}), jit_compile
    if flip.change is Change.DO_NOT_EXCLUDE:
        return graph, replace(options, excluded=options.excluded - {flip.value}), jit_compile
    field = FIELDS.get(flip.change)
    return None if field is None else (graph, replace(options, **{field: flip.value}), jit_compile)


def _marked(graph: Graph, flip: Flip) -> Graph:
    changes: dict[str, Any] = {MARKS[flip.change]: True if MARKS[flip.change] == "_XlaCompile" else flip.value}
    if flip.change is Change.MARK and flip.value is not None:
        changes["_XlaScope"] = flip.value

    def rule(node: Node) -> None:
        if node.name in flip.names:
            node.attrs.update(changes)

    return graph.rewrite(rule)

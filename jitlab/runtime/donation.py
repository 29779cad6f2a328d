"""Arguments changed in place: which cluster may store the last version of an argument straight into it (loops.md §5).

Elsewhere the new version is a result like any other, and whoever runs the trace copies it into the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitlab.ir import Cluster, Clustering, Graph, Node
from jitlab.lower import overwritten

Ends = Mapping[Node, Node]  # a cluster's output -> the argument whose last version it is


def endings(clustering: Clustering, writes: Sequence[tuple[int, int]]) -> dict[str, dict[Node, Node]]:
    """For each cluster (by name) the outputs that may end in an argument's place. `writes`: (parameter, output) of the graph.

    Nothing may come between the cluster and the end of the call that wants the argument as it was or that can fail: an
    error has to leave what the statements before it have made, and these are not in order across clusters.
    """
    graph = clustering.graph
    made_by = {node: n for n, step in enumerate(clustering.steps) if isinstance(step, Cluster) for node in step.outputs}
    found: dict[str, dict[Node, Node]] = {}
    for parameter, output in writes:
        old, new = graph.parameters[parameter], graph.outputs[output]
        if new not in made_by or graph.outputs.count(new) > 1 or old in graph.outputs or new.ndim == 0 or old.type != new.type:
            continue
        at = made_by[new]
        cluster, later = clustering.steps[at], clustering.steps[at + 1 :]
        if old not in cluster.inputs or any(not isinstance(step, Cluster) or old in step.inputs for step in later):
            continue
        found.setdefault(cluster.name, {})[new] = old
    return found


def may_store_into(array: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    """Is it memory that a cluster can write: each element once, and apart from its other inputs?"""
    if not array.flags.writeable:
        return False
    reach = array.itemsize
    for stride, n in sorted((abs(stride), n) for stride, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return False  # elements that overlap one another
        reach = stride * (n - 1) + reach
    return not any(np.may_share_memory(array, other) for other in others)


def leave(
    graph: Graph, writes: Sequence[tuple[int, int]], arguments: Mapping[Node, Any], values: Mapping[Node, Any], failed: Node
) -> None:
    """An operation failed: each written argument gets the last version that the operations before it have made of it."""
    order = {node: n for n, node in enumerate(graph.nodes)}
    at = order.get(failed, len(order))
    for parameter, output in writes:
        old, node = graph.parameters[parameter], graph.outputs[output]
        while node is not old and (node not in values or order.get(node, at) >= at):
            base = next((base for new, base in overwritten(node) if new is node), None)
            if base is None:
                break
            node = base
        else:
            if node is not old:
                np.copyto(arguments[old], values[node])

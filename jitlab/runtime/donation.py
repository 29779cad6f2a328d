"""Arguments changed in place: which cluster may store the last version of an argument straight into it.

Elsewhere the new version is a result like any other, and the executable that runs the trace copies it into the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitlab.ir import Cluster, Clustering, Graph, Node
from jitlab.ir.graphs.graph import must_run

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


def wanted_later(clustering: Clustering) -> dict[str, list[Node]]:
    """For each cluster (by name) the arguments that the steps behind it read, or that are results as they are: what shares
    memory with one of them stays as it is while the cluster runs."""
    graph, steps = clustering.graph, clustering.steps
    outputs = set(graph.outputs)
    return {
        step.name: [x for x in graph.parameters if x in outputs or any(x in later.inputs for later in steps[n + 1 :])]
        for n, step in enumerate(steps)
        if isinstance(step, Cluster)
    }


def leave(
    graph: Graph, lasting: Mapping[str, Sequence[tuple[int, int]]], values: Mapping[Node, Any], failed: Node,
    value_of: Callable[[Node, Mapping[Node, Any]], Any],
) -> None:  # fmt: skip
    """An operation failed: these arguments get what the operations before it make of them. Those that have not run yet are
    run, by `value_of`."""
    known = dict(values)
    for parameter, output in lasting.get(failed.name, ()):
        wanted = graph.outputs[output]
        for node in graph.nodes:
            if wanted in known:
                break
            if node not in known and not must_run(node.op) and all(source in known for source in node.inputs):
                known[node] = value_of(node, known)
        if wanted in known:
            np.copyto(values[graph.parameters[parameter]], known[wanted])

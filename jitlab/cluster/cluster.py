"""Auto-clustering: which operations the compiler owns, and why each other one stays out.

For functions and cells a constant (or an axis length as a number) is no operation: each cluster that uses one lists it in its
`nodes`, so it may be in several clusters; it joins nothing, keeps nothing apart, and counts for the largest size only. For a
Session a constant is an operation like any other, and still written into whatever reads it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jitlab import messages
from jitlab.errors import InvalidArgumentError
from jitlab.ir import (
    NO_OVERRIDES,
    Apart,
    Cluster,
    Clustering,
    ClusteringInput,
    ClusteringOptions,
    Edge,
    Graph,
    Joined,
    Node,
    Overrides,
    Reason,
    Stays,
    because,
    computed_again,
    name_values,
    reordered,
    told_node,
)
from jitlab.ir.graphs.graph import symbols_of

from .candidates import Study, draws_or_checks, is_constant, is_silent, unsupported
from .decided import decided
from .partition import Partition, chosen_device, contracted, device_text, effective_size, scope_text


def cluster(
    graph: Graph,
    options: ClusteringOptions | None = None,
    *,
    jit_compile: bool | None = None,
    function: str = "",
    overrides: Overrides = NO_OVERRIDES,
    names: Mapping[str, str] | None = None,
    **settings: Any,
) -> Clustering:
    """Cut a graph into clusters and host operations, in an order that respects every edge.

    `settings` are fields of the options that differ. `jit_compile` True: everything in one cluster, or InvalidArgumentError;
    False: only what a scope marks. `function` is the name that such an error gives; the graph's own if there is none.
    `overrides`: decisions of a what-if; `names`: those of the clusters as they are, by the names of their operations.
    """
    options = replace(options or ClusteringOptions(), **settings)
    return clustered(ClusteringInput(graph, options, jit_compile, function, overrides, names))


def clustered(given: ClusteringInput) -> Clustering:
    """The clustering of all that decides of one."""
    overrides = given.overrides.over(decided(given.graph))
    graph = reordered(computed_again(given.graph, overrides.again), overrides.earlier)
    name_values(graph)
    made = _clustering(graph, given, overrides)
    made.overrides, made.made_of = overrides, given
    return made


def clustered_anew(clustering: Clustering, **changes: Any) -> Clustering:
    """The same with some of what decided of it changed; clusters keep the names that their operations' clusters have."""
    given = clustering.made_of
    assert given is not None
    names = given.names or {node.name: c.name for c in clustering.clusters for node in c.members}
    return clustered(replace(given, names=names, **changes))


def _clustering(graph: Graph, given: ClusteringInput, overrides: Overrides) -> Clustering:
    options = given.options
    study = Study(graph, options, given.jit_compile, overrides=overrides)
    naming = _Names(given.names)
    if given.jit_compile:
        operations = [node for node in study.operations if not is_constant(node)]
        must_compile(operations, given.function or graph.name)
        if not any(unsupported(node) is not None for node in operations):
            names = [naming.of(operations)] if operations else []
            return _Result(Partition(study, {}), [operations] if operations else [], names).clustering(Joined.MUST)
    partition = contracted(study)
    stays, options = dict(partition.stays), study.options
    groups = []
    for group in partition.groups.values():
        if partition.kept(group):
            groups.append(group)
            continue
        size = effective_size(group)
        few = because(Stays.SIZE, evidence=(size, options.min_size), count=size, least=options.min_size)
        stays |= dict.fromkeys(group, few)
    if options.constants_count:
        for node in graph.parameters:
            stays[node] = because(Stays.ARGUMENT)
    result = _Result(partition, groups, [naming.of(group) for group in groups], stays)
    return result.clustering(None)


def reset_names() -> None:
    """Let the next cluster be cluster_0 again; for tests, a process never reuses a name."""
    global _numbers
    _numbers = itertools.count()


_numbers = itertools.count()


class _Names:
    """Names for clusters: new ones, or in a what-if those that the clusters of the operations have already."""

    def __init__(self, known: Mapping[str, str] | None) -> None:
        self.known = known
        self.given: dict[str, int] = {}

    def of(self, group: Sequence[Node]) -> str:
        if self.known is None:
            return f"cluster_{next(_numbers)}"
        name = next((self.known[node.name] for node in group if node.name in self.known), "cluster")
        count = self.given[name] = self.given.get(name, 0) + 1
        return name if count == 1 and name != "cluster" else f"{name}.{count}"


def must_compile(operations: Sequence[Node], function: str) -> None:
    """Raise the contract's error for the operations that have no compiled form. Random numbers and
    checks are asked for all the same: NumPy draws and checks between what is compiled."""
    bad = [(node, reason) for node in operations if (reason := unsupported(node)) is not None and not draws_or_checks(node)]
    if not bad:
        return
    kinds = ", ".join(dict.fromkeys(node.op.name for node, _ in bad))
    first, reason = bad[0]
    places = [source.place for node, _ in bad for source in sorted(node.sources)[:1]]
    raise InvalidArgumentError(
        f"Detected unsupported operations when trying to compile graph {function}[_XlaMustCompile=true]: {kinds}",
        where="; ".join(dict.fromkeys(places)),
        why=f"{first.op.name}: {reason.text}",
        hint="leave jit_compile=True out, so that NumPy runs what jitlab has no loop for, or move it out of the function",
    )


class _Result:
    """Clusters and the rest as steps in order, with the reason for each edge between them."""

    def __init__(
        self, partition: Partition, groups: list[list[Node]], names: list[str], stays: Mapping[Node, Reason] | None = None
    ) -> None:
        self.partition, self.groups, self.names, self.stays = partition, groups, names, stays or {}
        self.study, self.graph = partition.study, partition.study.graph
        self.operations, self.number = partition.operations, partition.number

    def clustering(self, joined: Joined | None) -> Clustering:
        place = {node: i for i, node in enumerate(self.graph.nodes)}
        clusters = [self._cluster(name, group, joined, place) for name, group in zip(self.names, self.groups, strict=True)]
        cluster_of = {node: c for c, group in zip(clusters, self.groups, strict=True) for node in group}
        self._find_borders(clusters, cluster_of)
        stays = {n: self.stays[n] for n in (*self.graph.parameters, *self.operations) if n in self.stays}
        return Clustering(self.graph, self._steps(cluster_of), stays, self._apart(cluster_of))

    def _cluster(self, name: str, group: list[Node], joined: Joined | None, place: Mapping[Node, int]) -> Cluster:
        inside = [node for node in group if not is_silent(node)]
        constants = {source for node in inside for source in node.inputs if is_constant(source)}
        nodes = sorted({*constants, *inside}, key=place.__getitem__)
        marked = sum(self.study.marked(node) for node in group)
        placed = any(self.study.placed(node) for node in group)
        code = joined or (Joined.MARKED if marked else Joined.PLACED if placed else Joined.AUTO)
        reason = Reason(code, code.value, (len(group), marked))
        if code is Joined.MARKED and marked < len(group):
            reason = because(code, "with_others", reason.evidence, count=len(group) - marked)
        scopes = dict.fromkeys(scope_text(node.attrs["_XlaScope"]) for node in group if node.attrs.get("_XlaScope"))
        devices = frozenset(self.study.device(node) for node in group)
        device = chosen_device(devices, frozenset()) if any(node.attrs.get("device") for node in group) else None
        return Cluster(
            name, nodes, [], [], reason, next(iter(scopes), None),
            device_text(device) if device else "", [node for node in group if is_silent(node)],
        )  # fmt: skip

    def _find_borders(self, clusters: list[Cluster], cluster_of: Mapping[Node, Cluster]) -> None:
        """Fill in what each cluster takes in (in order of use) and hands out (in program order)."""
        inputs: dict[str, dict[Node, None]] = {c.name: {} for c in clusters}
        handed_out = {node for node in self.graph.outputs if node in cluster_of}
        for node in self.operations:
            mine = cluster_of.get(node)
            for source in node.inputs:
                if is_constant(source) or (mine is not None and cluster_of.get(source) is mine):
                    continue
                if mine is not None:
                    inputs[mine.name][source] = None
                if source in cluster_of:
                    handed_out.add(source)
        for c in clusters:
            c.inputs = list(inputs[c.name])
            c.outputs = [node for node in c.nodes if node in handed_out and not is_constant(node)]

    def _steps(self, cluster_of: Mapping[Node, Cluster]) -> list[Cluster | Node]:
        """Every edge respected, otherwise in program order of the first operation.

        Constants that a host operation or the graph's outputs read, and those nobody reads, are steps of their own; they come
        first. What only waits for others is no step.
        """
        step_of: list[int] = []  # operation -> number of its step: that of its (cluster's) first operation
        first: dict[str, int] = {}
        for i, node in enumerate(self.operations):
            mine = cluster_of.get(node)
            step_of.append(i if mine is None else first.setdefault(mine.name, i))
        waiting: dict[int, int] = dict.fromkeys(step_of, 0)
        readers: dict[int, list[int]] = {}
        for a, b in {(step_of[a], step_of[b]): None for a, b in self.partition.edges}:
            if a != b:
                readers.setdefault(a, []).append(b)
                waiting[b] += 1
        ready = [step for step, count in waiting.items() if count == 0]
        heapq.heapify(ready)
        constants = self._loose_constants(cluster_of)
        decided = {name for node in self.operations for name in getattr(node.op, "by_data", ())}
        by_data = {node: names for node in constants if (names := symbols_of(node) & decided)} if decided else {}
        steps: list[Cluster | Node] = [node for node in constants if node not in by_data]
        done = 0
        while ready:
            step = heapq.heappop(ready)
            done += 1
            node = self.operations[step]
            made = cluster_of.get(node, node)
            if isinstance(made, Cluster):
                steps += [made] if made.nodes else []
            elif not is_constant(made) and not is_silent(made):
                steps.append(made)
                for constant, names in list(by_data.items()) if getattr(made.op, "by_data", ()) else ():
                    names -= set(made.op.by_data)
                    if not names:
                        steps.append(constant)
                        del by_data[constant]
            for reader in readers.get(step, ()):
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    heapq.heappush(ready, reader)
        assert done == len(waiting), "the clusters form a cycle"
        return [*steps, *(node for node in dict.fromkeys(self.graph.outputs) if is_silent(node))]

    def _loose_constants(self, cluster_of: Mapping[Node, Cluster]) -> list[Node]:
        inside = {source for node in self.operations if node in cluster_of for source in node.inputs}
        outside = {source for node in self.operations if node not in cluster_of for source in node.inputs}
        outside.update(self.graph.outputs)
        return [n for n in self.graph.nodes if is_constant(n) and (n in outside or n not in inside)]

    def _apart(self, cluster_of: Mapping[Node, Cluster]) -> list[Edge]:
        """Each edge between operations that are not in one cluster, with its reason. A constant is written into its readers."""
        known: dict[tuple[int, int], Reason] = {}
        part = self.partition
        edges = []
        for b, consumer in enumerate(self.operations):
            controls = [self.operations[a] for a in part.control_before(b)]
            for producer in dict.fromkeys((*consumer.inputs, *controls)):
                if producer not in self.number or is_constant(producer):
                    continue
                if producer in cluster_of and cluster_of[producer] is cluster_of.get(consumer):
                    continue
                size = producer.type.told_bytes if producer in consumer.inputs else 0
                a = self.number[producer]
                if part.contraction is not None and part.candidate[a] and part.candidate[b]:
                    groups = part.contraction.group(a), part.contraction.group(b)
                    if groups[0] != groups[1]:
                        if groups not in known:
                            known[groups] = self._refusal(*groups, cluster_of)
                        reason = known[groups]
                        other = cluster_of.get(consumer)
                        clause = messages.text("apart.separate", other=other.name if other else told_node(consumer))
                        reason = replace(reason, text=f"{clause}: {reason.text}", clause=clause, rest=reason.text)
                        edges.append(Edge(producer, consumer, reason, size))
                        continue
                out = [node for node in (producer, consumer) if node not in cluster_of]
                names = " and ".join(map(told_node, out))
                reason = because(Apart.NOT_COMPILED, evidence=tuple(n.name for n in out), names=names)
                edges.append(Edge(producer, consumer, reason, size))
        return edges

    def _refusal(self, a: int, b: int, cluster_of: Mapping[Node, Cluster]) -> Reason:
        """Why groups a and b, with an edge between them, were not joined. Asked when nothing can be joined any more."""
        code, nodes, evidence = self.partition.why_apart(a, b)
        if code is Apart.RESOURCES:
            args: dict[str, Any] = {"one": told_node(nodes[0]), "other": told_node(nodes[1])}
        elif code is Apart.CYCLE:
            shown = [node in cluster_of for node in nodes]
            evidence = tuple(cluster_of[n].name if inside else n.name for n, inside in zip(nodes, shown, strict=True))
            host = [told_node(node) for node, inside in zip(nodes, shown, strict=True) if not inside]
            args = {"through": host[0] if host else evidence[0]}
        elif code is Apart.SIZE:
            args = {"count": evidence[0], "most": evidence[1]}
        else:
            waits = {"waits": told_node(nodes[0])} if code is Apart.CROSS_DEVICE else {}
            args = {"one": str(evidence[0]), "other": str(evidence[1]), **waits}
        return because(code, evidence=evidence, **args)

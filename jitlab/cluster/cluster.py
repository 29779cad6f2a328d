"""Auto-clustering: which operations the compiler owns, and why each other one stays out (semantics §2, design D8-D9).

Upstream's phases about shape operations and scalar counters have nothing to act on here (extents are not operations, variables
are values), so one phase is left: every edge, consumers first, until nothing changes.

A constant (or an axis length as a number) is no operation: each cluster that uses one lists it in its `nodes`, so it may be in
several clusters; it joins nothing, keeps nothing apart, and counts for the largest size only.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitlab.errors import InvalidArgumentError
from jitlab.ir import (
    Apart,
    Cluster,
    Clustering,
    Edge,
    Graph,
    Joined,
    Node,
    Reason,
    Stays,
)
from jitlab.ops.control import Branch, Loop
from jitlab.ops.host import HostCall, Item
from jitlab.ops.library import Library
from jitlab.ops.sources import Constant, Length

from .contraction import Contraction

FLOAT64 = np.dtype("f8")
LARGEST = 2**31 - 1
PATH_SHOWN = 16  # groups of a cycle that are kept as evidence

#: What a host call says of itself; anything else (an argument that no loop takes) is NO_LOOP_BODY with its own text.
CODES = {
    "dtype": Stays.DTYPE,
    "foreign_type": Stays.FOREIGN_TYPE,
    "data_dependent": Stays.DATA_DEPENDENT_SHAPE,
    "stateful_random": Stays.STATEFUL_RANDOM,
}


def cluster(
    graph: Graph,
    *,
    level: str = "ON",
    min_size: int = 1,
    max_size: int = LARGEST,
    jit_compile: bool | None = None,
    function: str = "",
) -> Clustering:
    """Cut a graph into clusters and host operations, in an order that respects every edge.

    `level` "OFF": only what a scope marks is compiled. `jit_compile` True: everything in one cluster, or InvalidArgumentError;
    False: as OFF. `function` is the name that such an error gives; the graph's own if there is none.
    """
    operations = [node for node in graph.nodes if not _is_constant(node)]
    if jit_compile:
        _must_compile(operations, function or graph.name)
        names = [_next_name()] if operations else []
        work = _Partition(graph, operations, {})
        return work.clustering([operations] if operations else [], names, {}, Joined.MUST)
    marked_only = _why_marked_only(graph, level, jit_compile)
    stays = {node: reason for node in operations if (reason := _why_not(node, marked_only)) is not None}
    partition = _Partition(graph, operations, stays)
    partition.contract(max_size, scopes=marked_only is not None)
    groups = []
    for group in partition.groups():
        size = sum(node.op.name not in ("Identity", "Item") for node in group)
        if size >= min_size or any(_marked(node) for node in group):
            groups.append(group)
        else:
            text = f"{_count(size, 'operation')} could be joined here; a cluster has at least {min_size}"
            for node in group:
                stays[node] = Reason(Stays.SIZE, text, (size, min_size))
    return partition.clustering(groups, [_next_name() for _ in groups], stays, None)


def reset_names() -> None:
    """Let the next cluster be cluster_0 again; for tests, a process never reuses a name."""
    global _numbers
    _numbers = itertools.count()


_numbers = itertools.count()


def _next_name() -> str:
    return f"cluster_{next(_numbers)}"


def _is_constant(node: Node) -> bool:
    return isinstance(node.op, (Constant, Length))


def _is_control(node: Node) -> bool:
    return isinstance(node.op, (Loop, Branch))


def _is_one_of_several(node: Node) -> bool:
    """A result of a loop, a branch or a library call, which stays with it."""
    return isinstance(node.op, Item) and (_is_control(node.inputs[0]) or isinstance(node.inputs[0].op, Library))


def _marked(node: Node) -> bool:
    return bool(node.attrs.get("_XlaCompile"))


def _why_marked_only(graph: Graph, level: str, jit_compile: bool | None) -> Reason | None:
    """Why only marked operations compile; None when all may."""
    if jit_compile is False:
        return Reason(Stays.LEVEL, "jit_compile=False, and no jit_scope asks for it")
    if level == "OFF":
        return Reason(Stays.JIT_OFF, "the level is OFF, and no jit_scope asks for it")
    if graph.marked_only:
        return Reason(Stays.JIT_OFF, "a jit_scope(strict=True) compiles marked operations only, and none marks this one")
    return None


def _why_not(node: Node, marked_only: Reason | None) -> Reason | None:
    """Why an operation can't be in any cluster; the order of the questions is the contract's (semantics §2.2)."""
    if not node.attrs.get("_XlaCompile", True):
        return Reason(Stays.DISALLOWED, "a jit_scope with compile_ops=False keeps it out")
    if marked_only is not None and not _marked(node):
        return marked_only
    unsupported = _unsupported(node)
    if unsupported is not None:
        return unsupported
    if node.op.has_effects:
        return Reason(Stays.EFFECT, "it has an effect outside the arrays, so NumPy runs it in its place")
    return None


def _unsupported(node: Node) -> Reason | None:
    """The operation's own reason for having no loop body; a loop's or branch's is that of the first operation inside."""
    if _is_one_of_several(node):
        return _unsupported(node.inputs[0])
    if _is_control(node):  # not once more for each of its results: in nested ones that would multiply
        inside = (inner for graph in node.op.graphs for inner in graph.nodes if not _is_one_of_several(inner))
        return next((why for inner in inside if (why := _inside(inner)) is not None), None)
    types = tuple(source.type for source in node.inputs)
    text = node.op.why_not_compiled(*types)
    if text is None:
        return None
    call = node.inputs[0].op if isinstance(node.op, Item) else node.op
    if isinstance(call, HostCall):
        code = CODES.get(call.code, Stays.NO_LOOP_BODY)
    else:
        others = node.op.why_not_compiled(*(type.with_dtype(FLOAT64) for type in types))
        code = Stays.DTYPE if others is None else Stays.NO_LOOP_BODY
    return Reason(code, text, (node.op.name,))


def _inside(node: Node) -> Reason | None:
    """Why an operation of a body keeps its loop from being compiled."""
    reason = _unsupported(node) or _effect(node)
    if reason is None or _is_control(node):
        return reason
    lines = ", ".join(str(line) for line in sorted({source.line for source in node.sources}))
    where = f" in its body (line {lines})" if lines else " in its body"
    return Reason(reason.code, f"{node.op.name}{where}: {reason.text}", (node.op.name, *reason.evidence))


def _must_compile(operations: Sequence[Node], function: str) -> None:
    """Raise the contract's error for the operations that have no compiled form (semantics §3.16)."""
    bad = [(node, reason) for node in operations if (reason := _unsupported(node) or _effect(node)) is not None]
    if not bad:
        return
    kinds = ", ".join(dict.fromkeys(node.op.name for node, _ in bad))
    first, reason = bad[0]
    places = [f"{source.file}, line {source.line}" for node, _ in bad for source in sorted(node.sources)[:1]]
    raise InvalidArgumentError(
        f"Detected unsupported operations when trying to compile graph {function}[_XlaMustCompile=true]: {kinds}",
        where="; ".join(dict.fromkeys(places)),
        why=f"{first.op.name}: {reason.text}",
        hint="leave jit_compile=True out, so that NumPy runs what jitlab has no loop for, or move it out of the function",
    )


def _effect(node: Node) -> Reason | None:
    return Reason(Stays.EFFECT, "it has an effect outside the arrays") if node.op.has_effects else None


class _Partition:
    """The operations of a graph, numbered in program order, with the edges between them."""

    def __init__(self, graph: Graph, operations: Sequence[Node], stays: dict[Node, Reason]) -> None:
        self.graph = graph
        self.operations = operations
        self.number = {node: i for i, node in enumerate(operations)}
        self.candidate = [node not in stays for node in operations]
        self.edges = list(self._edges())
        self.contraction: Contraction | None = None

    def _edges(self) -> Iterable[tuple[int, int]]:
        """Data edges, and one from each operation with an effect to the next: effects happen in program order."""
        effect = -1
        for i, node in enumerate(self.operations):
            for source in node.inputs:
                if source in self.number:
                    yield self.number[source], i
            if node.op.has_effects:
                if effect >= 0:
                    yield effect, i
                effect = i

    def contract(self, max_size: int, *, scopes: bool) -> None:
        """Contract edges between candidates, consumers first, until no more can be. `scopes`: scope numbers count."""
        self.contraction = dag = Contraction(len(self.operations), self.edges)
        self.max_size, self.scopes = max_size, scopes
        self.members = [int(not isinstance(node.op, Item)) for node in self.operations]
        self.constants = [{s for s in node.inputs if _is_constant(s)} for node in self.operations]
        self.scope: list[Any] = [node.attrs.get("_XlaScope") for node in self.operations]
        for node in self.operations:  # the results of a loop stay with it
            if _is_one_of_several(node) and self.candidate[self.number[node]]:
                self._join(dag.group(self.number[node.inputs[0]]), self.number[node])
        changed = True
        while changed:
            changed = False
            for start in dag.from_last():
                group = dag.group(start)
                if not self.candidate[group]:
                    continue
                for consumer in dag.consumers(group):
                    consumer = dag.group(consumer)
                    group = dag.group(group)
                    if consumer != group and self.candidate[consumer] and self._fits(group, consumer):
                        changed |= self._join(group, consumer)

    def _fits(self, a: int, b: int) -> bool:
        if self.scopes and self.scope[a] and self.scope[b] and self.scope[a] != self.scope[b]:
            return False
        return self.max_size >= LARGEST or self._joint_size(a, b) <= self.max_size

    def _joint_size(self, a: int, b: int) -> int:
        """Operations and different constants of both."""
        few, many = sorted((self.constants[a], self.constants[b]), key=len)
        return self.members[a] + self.members[b] + len(many) + sum(constant not in many for constant in few)

    def _join(self, a: int, b: int) -> bool:
        assert self.contraction is not None
        if not self.contraction.contract(a, b):
            return False
        joint = self.contraction.group(a)
        few, many = sorted((self.constants[a], self.constants[b]), key=len)
        many |= few
        self.constants[joint], self.members[joint] = many, self.members[a] + self.members[b]
        self.scope[joint] = self.scope[a] or self.scope[b]
        return True

    def groups(self) -> list[list[Node]]:
        """The candidates by the group they ended up in, in program order of their first operation."""
        assert self.contraction is not None
        groups: dict[int, list[Node]] = {}
        for i, node in enumerate(self.operations):
            if self.candidate[i]:
                groups.setdefault(self.contraction.group(i), []).append(node)
        return list(groups.values())

    def clustering(
        self, groups: list[list[Node]], names: list[str], stays: dict[Node, Reason], joined: Joined | None
    ) -> Clustering:
        """Clusters and the rest as steps in order, with the reason for each edge between them."""
        clusters = [self._cluster(name, group, joined) for name, group in zip(names, groups, strict=True)]
        cluster_of = {node: c for c in clusters for node in c.nodes if not _is_constant(node)}
        self._find_borders(clusters, cluster_of)
        steps = self._steps(clusters, cluster_of)
        ordered_stays = {node: stays[node] for node in self.operations if node in stays}
        return Clustering(self.graph, steps, ordered_stays, self._apart(cluster_of))

    def _cluster(self, name: str, group: list[Node], joined: Joined | None) -> Cluster:
        constants = {source for node in group for source in node.inputs if _is_constant(source)}
        nodes = sorted((*constants, *group), key=self.place.__getitem__)
        marked = sum(_marked(node) for node in group)
        code = joined or (Joined.MARKED if marked else Joined.AUTO)
        text = {
            Joined.MUST: "jit_compile=True",
            Joined.AUTO: "joined by auto-clustering",
            Joined.MARKED: "marked by jit_scope",
        }[code]
        if code is Joined.MARKED and marked < len(group):
            text += f", with {_count(len(group) - marked, 'operation')} joined by auto-clustering"
        scopes = list(dict.fromkeys(_text(node.attrs["_XlaScope"]) for node in group if node.attrs.get("_XlaScope")))
        return Cluster(name, nodes, [], [], Reason(code, text, (len(group), marked)), scopes[0] if scopes else None)

    @cached_property
    def place(self) -> dict[Node, int]:
        return {node: i for i, node in enumerate(self.graph.nodes)}

    def _find_borders(self, clusters: list[Cluster], cluster_of: dict[Node, Cluster]) -> None:
        """Fill in what each cluster takes in (in order of use) and hands out (in program order)."""
        inputs: dict[str, dict[Node, None]] = {c.name: {} for c in clusters}
        handed_out = {node for node in self.graph.outputs if node in cluster_of}
        for node in self.operations:
            mine = cluster_of.get(node)
            for source in node.inputs:
                if _is_constant(source) or (mine is not None and cluster_of.get(source) is mine):
                    continue
                if mine is not None:
                    inputs[mine.name][source] = None
                if source in cluster_of:
                    handed_out.add(source)
        for c in clusters:
            c.inputs = list(inputs[c.name])
            c.outputs = [node for node in c.nodes if node in handed_out]

    def _steps(self, clusters: list[Cluster], cluster_of: dict[Node, Cluster]) -> list[Cluster | Node]:
        """Every edge respected, otherwise in program order of the first operation. Constants that a host operation or the
        graph's outputs read, and those nobody reads, are steps of their own; they come first."""
        step_of: list[int] = []  # operation -> number of its step: that of its (cluster's) first operation
        first: dict[str, int] = {}
        for i, node in enumerate(self.operations):
            mine = cluster_of.get(node)
            step_of.append(i if mine is None else first.setdefault(mine.name, i))
        waiting: dict[int, int] = dict.fromkeys(step_of, 0)
        readers: dict[int, list[int]] = {}
        for a, b in {(step_of[a], step_of[b]): None for a, b in self.edges}:
            if a != b:
                readers.setdefault(a, []).append(b)
                waiting[b] += 1
        ready = [step for step, count in waiting.items() if count == 0]
        heapq.heapify(ready)
        steps: list[Cluster | Node] = list(self._loose_constants(cluster_of))
        while ready:
            step = heapq.heappop(ready)
            node = self.operations[step]
            steps.append(cluster_of.get(node, node))
            for reader in readers.get(step, ()):
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    heapq.heappush(ready, reader)
        assert len(steps) >= len(waiting), "the clusters form a cycle"
        return steps

    def _loose_constants(self, cluster_of: dict[Node, Cluster]) -> Iterable[Node]:
        inside = {source for node in self.operations if node in cluster_of for source in node.inputs}
        outside = {source for node in self.operations if node not in cluster_of for source in node.inputs}
        outside.update(self.graph.outputs)
        return [n for n in self.graph.nodes if _is_constant(n) and (n in outside or n not in inside)]

    def _apart(self, cluster_of: dict[Node, Cluster]) -> list[Edge]:
        """Each edge between operations that are not in one cluster, with its reason."""
        known: dict[tuple[int, int], tuple[Apart, str, tuple[Any, ...]]] = {}
        edges = []
        for consumer in self.operations:
            for producer in dict.fromkeys(consumer.inputs):
                if producer not in self.number or (producer in cluster_of and cluster_of[producer] is cluster_of.get(consumer)):
                    continue
                a, b = self.number[producer], self.number[consumer]
                if self.contraction is not None and self.candidate[a] and self.candidate[b]:
                    a, b = self.contraction.group(a), self.contraction.group(b)
                    if a != b:
                        if (a, b) not in known:
                            known[a, b] = self._refusal(a, b, cluster_of)
                        code, text, evidence = known[a, b]
                        other = cluster_of.get(consumer)
                        text = f"Separate from {other.name if other else consumer.name}: {text}"
                        edges.append(Edge(producer, consumer, Reason(code, text, evidence), producer.type.nbytes))
                        continue
                out = [node for node in (producer, consumer) if node not in cluster_of]
                text = f"NumPy runs {' and '.join(node.op.name for node in out)}"
                reason = Reason(Apart.NOT_COMPILED, text, tuple(node.name for node in out))
                edges.append(Edge(producer, consumer, reason, producer.type.nbytes))
        return edges

    def _refusal(self, a: int, b: int, cluster_of: dict[Node, Cluster]) -> tuple[Apart, str, tuple[Any, ...]]:
        """Why groups a and b, with an edge between them, were not joined. Asked when nothing can be joined any more."""
        assert self.contraction is not None
        if self.scopes and self.scope[a] and self.scope[b] and self.scope[a] != self.scope[b]:
            scopes = (_text(self.scope[a]), _text(self.scope[b]))
            return Apart.SCOPES, f"{scopes[0]} and {scopes[1]} compile apart", scopes
        size = self._joint_size(a, b)
        if size > self.max_size:
            text = f"together they would have {_count(size, 'operation')}, a cluster has at most {self.max_size}"
            return Apart.SIZE, text, (size, self.max_size)
        path = self.contraction.other_path(a, b, PATH_SHOWN)
        assert path is not None, f"{self.operations[a]!r} and {self.operations[b]!r} could still be joined"
        nodes = [self.operations[group] for group in path]
        shown = [self.candidate[group] and node in cluster_of for group, node in zip(path, nodes, strict=True)]
        labels = tuple(cluster_of[n].name if inside else n.name for n, inside in zip(nodes, shown, strict=True))
        host = [node.op.name for node, inside in zip(nodes, shown, strict=True) if not inside]
        return Apart.CYCLE, f"joining them would make a cycle through {host[0] if host else labels[0]}", labels


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value

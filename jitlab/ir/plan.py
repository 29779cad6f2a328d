"""Plan: what became of a graph. Clusters, host operations and kernels in the order they run, each decision with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .extents import plain
from .graph import Graph, Node


class Stays(Enum):
    """Why an operation is in no cluster (semantics §2.2, §2.4, §2.10)."""

    DISALLOWED = "disallowed by _XlaCompile attribute"
    JIT_OFF = "global jit disabled"
    NO_LOOP_BODY = "no_loop_body"
    DTYPE = "dtype"
    FOREIGN_TYPE = "foreign_type"
    DATA_DEPENDENT_SHAPE = "data_dependent_shape"
    STATEFUL_RANDOM = "stateful random op"
    SIZE = "cluster too small"
    LEVEL = "jit_compile=False"
    ERRSTATE = "errstate"
    EFFECT = "effect"


class Joined(Enum):
    """Why an operation is in its cluster."""

    MARKED = "marked by jit_scope"
    AUTO = "joined by auto-clustering"
    MUST = "jit_compile=True"


class Apart(Enum):
    """Why an edge was not contracted (semantics §2.3)."""

    SCOPES = "the two nodes have mismatching XLA scopes"
    CYCLE = "contracting the edge would create a cycle"
    SIZE = "the new cluster will be larger than the max cluster size"
    NOT_COMPILED = "one end is not compiled"


class NotFused(Enum):
    """Why two operations of one cluster are in different kernels (design §6)."""

    LIBRARY_CALL = "library_call"
    READ_AGAIN = "read_again"
    REDUCED_OUTER_AXIS = "reduced_outer_axis"
    WHOLE_REDUCTION = "whole_reduction"
    DIFFERENT_SPACE = "different_space"
    RECOMPUTE_IS_DEAR = "recompute_is_dear"
    RESHAPED = "reshaped"
    GATHERED = "gathered"
    OVERLAP = "overlap"
    UPDATED = "updated"
    LEVEL = "level_O0"
    CLUSTER_BORDER = "cluster_border"


class Copied(Enum):
    """Why an array was copied that NumPy's program changes in place (loops.md §5)."""

    INPUT_KEPT = "input_kept"
    OLD_VERSION_READ = "old_version_read"
    SOURCE_CHANGES = "source_changes"
    MADE_ELSEWHERE = "made_elsewhere"
    SNAPSHOT = "snapshot"
    OVERLAP = "overlap"


@dataclass(frozen=True)
class Reason:
    """One decision's cause: a code of a closed enum, its sentence for people, and plain evidence (names, sizes, paths)."""

    code: Stays | Joined | Apart | NotFused | Copied
    text: str
    evidence: tuple[Any, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"code": self.code.name.lower(), "text": self.text}


@dataclass(frozen=True)
class Edge:
    """An edge of the graph (or of a cluster) with the reason it was cut; `bytes` go over it in memory."""

    producer: Node
    consumer: Node
    reason: Reason
    bytes: int
    would_fuse_if: str | None = None


@dataclass(frozen=True)
class Copy:
    """Memory that a value got although the program changes an array in place; `bytes` each time it is filled."""

    node: Node
    reason: Reason
    bytes: int


@dataclass
class Cluster:
    """Nodes that are lowered to one native function. `inputs` come from outside, `outputs` are read outside."""

    name: str  # "cluster_<n>", a process-wide number
    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]
    reason: Reason
    scope: str | None = None


@dataclass
class Clustering:
    """What the clusterer hands on: steps in an order that respects every edge; `stays` for each node in no cluster."""

    graph: Graph
    steps: list[Cluster | Node]
    stays: dict[Node, Reason]
    apart: list[Edge] = field(default_factory=list)

    @property
    def clusters(self) -> list[Cluster]:
        return [step for step in self.steps if isinstance(step, Cluster)]


@dataclass(frozen=True)
class KernelInfo:
    """One fused nest or library call of a Program. Bytes and flops are per call; each distinct element counts once."""

    name: str
    cluster: str
    nodes: tuple[Node, ...]
    kind: str  # "nest" or "library"
    bytes_read: int
    bytes_written: int
    flops: int


@dataclass
class Plan:
    """A clustering with its kernels: everything a report says of a trace apart from times."""

    function: str
    trace: int
    clustering: Clustering
    kernels: list[KernelInfo] = field(default_factory=list)
    boundaries: list[Edge] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)  # (cluster, stage) -> text, for report.ir

    @property
    def title(self) -> str:
        return f"{self.function} #{self.trace}"

    def to_json(self) -> dict[str, Any]:
        """The `plans`, `ops`, `clusters`, `kernels` and `boundaries` of docs/report-format.md, without times, and `copies`."""
        clustering = self.clustering
        cluster_of = {node: c for c in clustering.clusters for node in c.nodes}
        kernel_of: dict[Node, KernelInfo] = {}
        for kernel in self.kernels:
            for node in kernel.nodes:
                kernel_of.setdefault(node, kernel)
        ops = []
        for node in clustering.graph.nodes:
            if not is_operation(node):
                continue
            cluster = cluster_of.get(node)
            reason = clustering.stays.get(node)
            kernel_info = kernel_of.get(node)
            ops.append(
                {
                    "name": node.name, "plan": self.title, "op": node.op.name,
                    "cluster": cluster.name if cluster else None, "kernel": kernel_info.name if kernel_info else None,
                    "reason": reason.to_json() if reason else None, "lines": spans(node.sources),
                    "shape": list(plain(node.shape)), "dtype": str(node.dtype),
                    "inputs": [source.name for source in node.inputs if is_operation(source) or source.op.is_parameter],
                    "scope": _text(node.attrs.get("_XlaScope")), "seconds": None,
                }
            )  # fmt: skip
        clusters = []
        for c in clustering.clusters:
            mine = [k for k in self.kernels if k.cluster == c.name]
            clusters.append(
                {
                    "name": c.name, "plan": self.title, "ops": [n.name for n in c.nodes if is_operation(n)],
                    "kernels": [k.name for k in mine], "reason": c.reason.to_json(), "calls": 0, "seconds": None,
                    "flops": sum(k.flops for k in mine), "bytes_read": sum(k.bytes_read for k in mine),
                    "bytes_written": sum(k.bytes_written for k in mine), "lines": line_numbers(c.nodes),
                }
            )  # fmt: skip
        kernels = [
            {
                "name": k.name, "cluster": k.cluster, "ops": [n.name for n in k.nodes if is_operation(n)], "kind": k.kind,
                "lines": line_numbers(k.nodes), "calls": 0, "seconds": None, "bytes_read": k.bytes_read,
                "bytes_written": k.bytes_written, "flops": k.flops, "bound": None, "of_peak": None,
            }
            for k in self.kernels
        ]  # fmt: skip
        boundaries = [
            {
                "producer": edge.producer.name, "consumer": edge.consumer.name, "reason": edge.reason.to_json(),
                "bytes": edge.bytes, "would_fuse_if": edge.would_fuse_if,
            }
            for edge in (*self.boundaries, *clustering.apart)
        ]  # fmt: skip
        copies = [
            {
                "node": c.node.name, "cluster": _home(c.node, clustering.clusters), "reason": c.reason.to_json(),
                "bytes": c.bytes, "lines": spans(c.node.sources),
            }
            for c in self.copies
        ]  # fmt: skip
        plans = [{"name": self.title, "function": self.function, "trace": self.trace}]
        return {
            "plans": plans, "ops": ops, "clusters": clusters, "kernels": kernels, "boundaries": boundaries, "copies": copies,
        }  # fmt: skip


def _home(node: Node, clusters: Sequence[Cluster]) -> str | None:
    """The cluster that computes a node, itself or in the body of a loop or a branch."""
    return next((c.name for c in clusters if _contains(c.nodes, node)), None)


def _contains(nodes: Sequence[Node], node: Node) -> bool:
    return node in nodes or any(_contains(graph.nodes, node) for n in nodes for graph in getattr(n.op, "graphs", ()))


def is_operation(node: Node) -> bool:
    """Constants, parameters, axis lengths and the results of a loop are values, not operations, when operations are counted
    or listed."""
    return node.op.name not in ("Const", "Placeholder", "Size", "Item")


def spans(sources: frozenset[Any]) -> list[list[Any]]:
    return [list(source) for source in sorted(sources)]


def line_numbers(nodes: Sequence[Node]) -> list[int]:
    return sorted({source.line for node in nodes if is_operation(node) for source in node.sources})


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value

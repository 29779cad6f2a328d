"""Plan: what became of a graph. Clusters, host operations and kernels in the order they run, each decision with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from .bodies import Nest, body_sources, inner_nodes
from .called import told_node
from .extents import Moving, plain
from .graph import Graph, Node
from .overrides import NO_OVERRIDES, Overrides
from .types import Origin, Origins

if TYPE_CHECKING:
    from .program import Program


class Stays(Enum):
    """Why an operation is in no cluster, in the order the questions are asked (semantics §2.2, §2.4).

    `meaning` is the question's name here, `upstream` what the contract logs for it (§2.10).
    """

    def __init__(self, meaning: str, upstream: str) -> None:
        self.meaning, self.upstream = meaning, upstream

    DISALLOWED = "a jit_scope with compile_ops=False", "disallowed by _XlaCompile attribute"
    NO_COMPILER = "its device has no compiler", "could not find JIT device type"
    JIT_OFF = "the level is OFF and no scope marks it", "global jit disabled"
    LEVEL = "jit_compile=False and no scope marks it", "disallowed by _XlaCompile attribute"
    ARGUMENT = "an argument of the graph", "top level _Arg or _Retval"
    NO_LOOP_BODY = "jitlab has no loop for it", "unsupported op"
    DTYPE = "jitlab has no loop for this dtype", "unsupported op"
    FOREIGN_TYPE = "it works on other things than plain arrays", "unsupported op"
    DATA_DEPENDENT_SHAPE = "values decide the shape of its result", "unsupported op"
    EFFECT = "it has an effect outside the arrays", "unsupported op"
    UNSUPPORTED_WHILE = "a loop with an operation that can't be compiled", "unsupported while"
    UNSUPPORTED_IF = "a branch with an operation that can't be compiled", "unsupported if"
    UNSUPPORTED_FUNCTION = "a call of what can't be compiled", "unsupported function"
    DEPTH = "bodies inside bodies", "function depth limit exceeded"
    STATEFUL_RANDOM = "it draws from a random generator", "stateful random op"
    CHECK = "it checks a value and raises", "Assert or CheckNumerics"
    SLOW = "compiled code for it is slow", "slow operation"
    NOT_FUSIBLE = "it shares loops with nothing", "not fusable op but fusion_only enabled"
    NOT_LISTED = "not in tf_xla_ops_to_cluster", "rejected by allowlist"
    EXCLUDED = "in tf_xla_cluster_exclude_ops", "in the exclusion list"
    FUEL = "the fuel is used up", "fuel"
    SIZE = "its cluster would be too small", "cluster too small"


class Joined(Enum):
    """Why an operation is in its cluster."""

    MARKED = "marked by jit_scope"
    AUTO = "joined by auto-clustering"
    MUST = "jit_compile=True"
    PLACED = "placed on an XLA device"


class Apart(Enum):
    """Why an edge was not contracted, in the order the questions are asked (semantics §2.3)."""

    NOT_COMPILED = "one end is not compiled"
    DEVICES = "the two nodes have incompatible devices"
    SCOPES = "the two nodes have mismatching XLA scopes"
    SIZE = "the new cluster will be larger than the max cluster size"
    CROSS_DEVICE = "the new cluster will introduce a cross device dependency"
    RESOURCES = "the new cluster would break resource variable semantics"
    CYCLE = "contracting the edge would create a cycle"


class Change(Enum):
    """What would be changed to flip a decision about clusters."""

    ALLOW = "compile_ops=True"
    MARK = "make it inside a jit_scope"
    ONE_SCOPE = "make them inside one jit_scope"
    LEVEL = "clustering ON"
    MUST = "jit_compile=True"
    MIN_SIZE = "tf_xla_min_cluster_size"
    MAX_SIZE = "tf_xla_max_cluster_size"
    FUEL = "tf_xla_clustering_fuel"
    LIST = "tf_xla_ops_to_cluster"
    DO_NOT_EXCLUDE = "tf_xla_cluster_exclude_ops"
    CAST = "another dtype"
    NEST_LESS = "fewer bodies inside one another"
    PLACE = "another device"
    USE_VALUE = "use the value that was assigned"
    COMPUTE_TWICE = "compute it a second time"


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
    TOO_LONG = "too_long"
    LEVEL = "level_O0"
    CLUSTER_BORDER = "cluster_border"
    CUT = "cut"  # a what-if says so


class Copied(Enum):
    """Why an array was copied that NumPy's program changes in place (loops.md §5)."""

    INPUT_KEPT = "input_kept"
    OLD_VERSION_READ = "old_version_read"
    SOURCE_CHANGES = "source_changes"
    MADE_ELSEWHERE = "made_elsewhere"
    SNAPSHOT = "snapshot"
    OVERLAP = "overlap"


class Stored(Enum):
    """Why a value of a cluster lies in memory although no edge to its reader was cut."""

    PARTIAL_RESULTS = "partial_results"
    LIBRARY_OPERAND = "library_operand"
    LOOP_VALUE = "loop_value"
    KEPT = "kept"
    LEAVES_CLUSTER = "leaves_cluster"


@dataclass(frozen=True)
class Reason:
    """One decision's cause: a code of a closed enum, its sentence for people, and plain evidence (names, sizes, paths)."""

    code: Stays | Joined | Apart | NotFused | Copied | Stored
    text: str
    evidence: tuple[Any, ...] = ()

    def to_json(self) -> dict[str, Any]:
        shown = {"evidence": [str(part) for part in self.evidence]} if self.evidence else {}
        return {"code": self.code.name.lower(), "text": self.text, **shown}


@dataclass(frozen=True)
class Flip:
    """The smallest change that was found to flip a decision: `text` follows "would compile if" or "would fuse if".

    `names`: the operations that are changed; `value`: what a setting (or an attribute of theirs) would be.
    """

    change: Change
    text: str
    names: tuple[str, ...] = ()
    value: Any = None


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


@dataclass(frozen=True)
class Temporary:
    """A value of a cluster that reaches memory between its kernels; `bytes` a call, every element once."""

    name: str
    cluster: str
    producer: Node
    consumers: tuple[Node, ...]
    bytes: int
    reason: Reason


@dataclass
class Cluster:
    """Nodes that are lowered to one native function. `inputs` come from outside, `outputs` are read outside."""

    name: str  # "cluster_<n>", a process-wide number
    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]
    reason: Reason
    scope: str | None = None
    device: str = ""
    silent: list[Node] = field(default_factory=list)  # members that only wait for others (NoOp): nothing runs for them

    @property
    def members(self) -> list[Node]:
        """All that belong to it, as the report counts them."""
        return [*self.nodes, *self.silent]


@dataclass
class Clustering:
    """What the clusterer hands on: steps in an order that respects every edge; `stays` for each node in no cluster."""

    graph: Graph
    steps: list[Cluster | Node]
    stays: dict[Node, Reason]
    apart: list[Edge] = field(default_factory=list)
    flip: Callable[[Node | Edge], Flip | None] = lambda what: None  # what would change a decision; it looks when it is asked
    changed: Callable[[Overrides], Clustering] | None = None  # the same graph cut again, by other decisions
    flipped: Callable[[Flip], Clustering | None] | None = None  # the same with a flip made, where a mark or an option does it
    overrides: Overrides = NO_OVERRIDES

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
    bytes_op_by_op: int | None = None  # what NumPy would move for its operations; None: nobody knows beforehand
    nests: tuple[Nest, ...] = ()  # those in its loops and branches
    per_turn: bool = False  # of a loop without a count that goes over arrays, one turn is counted in the bytes


@dataclass(frozen=True)
class ClusterCode:
    """What a cluster's code is shown from, also when the function is gone: no graph and no array is kept alive by it."""

    program: Program
    graph: Sequence[tuple[str, Origins]]  # the text of the whole graph, each line with its operation
    names: Mapping[Origin, tuple[str, ...]]  # operations, bodies included, as reports call them; a first turn has twins
    inputs: Sequence[str]  # what the Program's inputs are called
    outputs: Sequence[str]
    scalars: Sequence[str]  # the values of its scalars
    kernels: Mapping[str, str]  # the Program's kernels, as reports call them


@dataclass
class Plan:
    """A clustering with its kernels: everything a report says of a trace apart from times."""

    function: str
    trace: int
    clustering: Clustering
    kernels: list[KernelInfo] = field(default_factory=list)
    boundaries: list[Edge] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    temporaries: list[Temporary] = field(default_factory=list)
    scratch: dict[str, int] = field(default_factory=dict)  # bytes that a call of each cluster takes, rows and gaps included
    texts: dict[tuple[str, str], str] = field(default_factory=dict)  # (cluster, stage) -> text, for report.ir
    codes: dict[str, ClusterCode] = field(default_factory=dict)  # of each cluster, for report.code
    sources: list[dict[str, Any]] = field(default_factory=list)  # the text that was captured (texts.py)
    alternative: Callable[[Edge], str | None] = lambda edge: None  # another way to write an edge, in which it would be fused

    @property
    def title(self) -> str:
        return f"{self.function} #{self.trace}"

    def to_json(self) -> dict[str, Any]:
        """The `plans`, `ops`, `clusters`, `kernels` and `boundaries` of docs/report-format.md, without times, and `copies`."""
        clustering = self.clustering
        cluster_of = {node: c for c in clustering.clusters for node in c.members}
        kernel_of: dict[Node, KernelInfo] = {}
        for kernel in self.kernels:
            for node in kernel.nodes:
                kernel_of.setdefault(node, kernel)
        ops = []
        sources = self._sources()
        for node in clustering.graph.nodes:
            if not is_operation(node):
                continue
            cluster = cluster_of.get(node)
            reason = clustering.stays.get(node)
            kernel_info = kernel_of.get(node)
            flip = clustering.flip(node) if reason else None
            ops.append(self._op(node, cluster, kernel_info, reason, sources))
            if flip is not None:
                ops[-1]["would_compile_if"] = flip.text
            for inner, name, parent in inner_nodes(node):
                if is_operation(inner):
                    made = self._op(inner, cluster, kernel_info, reason, sources)
                    ops.append({**made, "name": name, "parent": parent, "side": _side(name, parent)})
        clusters = []
        for c in clustering.clusters:
            mine = [k for k in self.kernels if k.cluster == c.name]
            clusters.append(
                {
                    "name": c.name, "plan": self.title, "ops": _names(c.members),
                    "kernels": [k.name for k in mine], "reason": c.reason.to_json(), "calls": 0, "seconds": None,
                    "flops": sum(k.flops for k in mine), "bytes_read": sum(k.bytes_read for k in mine),
                    "bytes_written": sum(k.bytes_written for k in mine), "lines": line_numbers(_inside(c.nodes)),
                    "bytes_saved": _total(_saved(k) for k in mine),
                    "temporary_bytes": sum(t.bytes for t in self.temporaries if t.cluster == c.name),
                    "scratch_bytes": self.scratch.get(c.name, 0),
                }
            )  # fmt: skip
            if c.device:
                clusters[-1]["device"] = c.device
            if any(k.per_turn for k in mine):
                clusters[-1]["per_turn"] = True
        kernels: list[dict[str, Any]] = [
            {
                "name": k.name, "cluster": k.cluster, "ops": _names(k.nodes), "kind": k.kind,
                "lines": line_numbers(_inside(k.nodes)), "calls": 0, "seconds": None, "bytes_read": k.bytes_read,
                "bytes_written": k.bytes_written, "flops": k.flops, "bound": None, "of_peak": None,
                "bytes_saved": _saved(k),
            }
            for k in self.kernels
        ]  # fmt: skip
        for kernel, entry in zip(self.kernels, kernels, strict=True):
            if kernel.nests:
                entry["nests"] = list(_nests(kernel))
            if kernel.per_turn:
                entry["per_turn"] = True
        boundaries = [
            {
                "producer": sources.get(edge.producer, edge.producer.name),
                "consumer": sources.get(edge.consumer, edge.consumer.name), "reason": edge.reason.to_json(),
                "bytes": edge.bytes, "would_fuse_if": _would_fuse(edge, clustering) or self.alternative(edge),
            }
            for edge in (*self.boundaries, *clustering.apart)
        ]  # fmt: skip
        inside = {inner: name for node in clustering.graph.nodes for inner, name, _ in inner_nodes(node)}
        copies = [
            {
                "node": inside.get(c.node, c.node.name), "cluster": _home(c.node, clustering.clusters),
                "reason": c.reason.to_json(), "bytes": c.bytes, "lines": spans(c.node.sources),
            }
            for c in self.copies
        ]  # fmt: skip
        plans = [{"name": self.title, "function": self.function, "trace": self.trace}]
        return {
            "plans": plans, "ops": ops, "clusters": clusters, "kernels": kernels, "boundaries": boundaries, "copies": copies,
            "temporaries": self._temporaries(), "activity": self.activity(), "sources": self.sources,
        }  # fmt: skip

    def _sources(self) -> dict[Node, str]:
        """What is read where a node is read, as reports call it: a result of a loop is the loop's."""
        sources: dict[Node, str] = {}
        for node in self.clustering.graph.nodes:
            sources[node] = node.name
            if node.op.name == "Item" and is_operation(node.inputs[0]):
                sources[node] = node.inputs[0].name
            body_sources(node, node.name, sources)
        return sources

    def _op(
        self, node: Node, cluster: Cluster | None, kernel: KernelInfo | None, reason: Reason | None, sources: dict[Node, str]
    ) -> dict[str, Any]:
        read = [source for source in node.inputs if is_operation(source) or source.op.is_parameter or source.op.name == "Item"]
        made = {
            "name": node.name, "plan": self.title, "op": node.op.name, "cluster": cluster.name if cluster else None,
            "kernel": kernel.name if kernel else None, "reason": reason.to_json() if reason else None,
            "lines": spans(node.sources), "shape": list(plain(node.shape)), "dtype": str(node.dtype),
            "inputs": list(dict.fromkeys(sources.get(source, source.name) for source in read)),
            "scope": _text(node.attrs.get("_XlaScope")), "seconds": None,
        }  # fmt: skip
        if node.called:
            made["called"] = node.called
        if node.within:
            made["within"] = node.within
        if node.attrs.get("device"):
            made["device"] = str(node.attrs["device"])
        if hasattr(node.op, "count") and hasattr(node.op, "test"):
            count = node.op.count  # one that hangs on the loop around it is another each time
            made["iterations"] = None if count is None or isinstance(count, Moving) else max(0, int(count))
            made["ends_early"] = node.op.test is not None
        return made

    def _temporaries(self) -> list[dict[str, Any]]:
        """What reaches memory inside clusters, then what goes from one cluster to another or to NumPy."""
        clusters = self.clustering.clusters
        inner = {node: name for c in clusters for n in c.nodes for node, name, _ in inner_nodes(n)}
        inside = [
            {
                "plan": self.title, "cluster": t.cluster,
                "name": inner.get(t.producer, t.producer.name) + t.name.removeprefix(t.producer.name),
                "producer": inner.get(t.producer, t.producer.name),
                "consumers": [inner.get(node, node.name) for node in t.consumers], "bytes": t.bytes, "place": "scratch",
                "lines": spans(t.producer.sources), "consumer_lines": line_numbers(t.consumers), "reason": t.reason.to_json(),
            }
            for t in self.temporaries
        ]  # fmt: skip
        return inside + [
            {
                "plan": self.title, "cluster": c.name, "name": node.name, "producer": node.name,
                "consumers": [reader.name for reader in readers], "bytes": node.type.nbytes, "place": "result",
                "lines": spans(node.sources), "consumer_lines": line_numbers(readers),
                "reason": Reason(Stored.LEAVES_CLUSTER, _reader_text(readers[0], self.clustering)).to_json(),
            }
            for c, node, readers in _between(self.clustering)
        ]  # fmt: skip

    def activity(self) -> dict[str, Any]:
        """The summary of one graph (semantics §2.10): how many nodes are in clusters, of which kinds. Constants are nodes."""
        clustering = self.clustering
        clusters = clustering.clusters
        mine = {node for c in clusters for node in c.members}
        graph = clustering.graph
        outside = [node for node in (*graph.parameters, *graph.nodes) if _counts(node) and node not in mine]
        return {
            "unclustered_node_count": len(outside),
            "clustered_node_count": sum(_counts(node) for node in mine),
            "clusters": [
                {"name": c.name, "size": sum(map(_counts, c.members)), "op_histogram": _histogram(c.members)} for c in clusters
            ],
            "unclustered_op_histogram": _histogram(outside),
        }


def _inside(nodes: Iterable[Node]) -> list[Node]:
    """The nodes and those in their bodies."""
    return [each for node in nodes for each in (node, *(inner for inner, _, _ in inner_nodes(node)))]


def _names(nodes: Iterable[Node]) -> list[str]:
    """The operations among the nodes and in their bodies, as reports call them."""
    names: list[str] = []
    for node in nodes:
        if is_operation(node):
            names.append(node.name)
            names += [name for inner, name, _ in inner_nodes(node) if is_operation(inner)]
    return names


def _nests(kernel: KernelInfo) -> Iterator[dict[str, Any]]:
    """The nests inside the loops and branches of a kernel, each with its operations."""
    inside = [(inner, name) for node in kernel.nodes for inner, name, _ in inner_nodes(node) if is_operation(inner)]
    for nest in kernel.nests:
        mine = [(inner, name) for inner, name in inside if inner.origins <= nest.origins]
        if mine:
            yield {"kind": nest.kind, "ops": [name for _, name in mine], "lines": line_numbers([inner for inner, _ in mine])}


def _saved(kernel: KernelInfo) -> int | None:
    """Bytes that fusion keeps out of memory in a call of a kernel."""
    if kernel.bytes_op_by_op is None:
        return None
    return kernel.bytes_op_by_op - kernel.bytes_read - kernel.bytes_written


def _side(name: str, parent: str) -> str:
    """Of what is in a branch "then" or "else", in a loop "test" or "body"."""
    kind, inside, _ = name.removeprefix(f"{parent}/").partition("/")
    return kind if inside else "body"


def _total(counts: Iterable[int | None]) -> int | None:
    """The sum; None where a part of it is unknown."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _between(clustering: Clustering) -> Iterable[tuple[Cluster, Node, list[Node]]]:
    """Values that leave their cluster and are no results of the graph, with the operations that read them."""
    results = set(clustering.graph.outputs)
    for c in clustering.clusters:
        inside = set(c.members)
        for node in c.outputs:
            readers = [n for n in clustering.graph.nodes if node in n.inputs and n not in inside and is_operation(n)]
            if readers and node not in results:
                yield c, node, readers


def _reader_text(reader: Node, clustering: Clustering) -> str:
    home = next((c.name for c in clustering.clusters if reader in c.members), None)
    name = told_node(reader)
    return f"{name} is in {home}" if home else f"NumPy runs {name}"


def _would_fuse(edge: Edge, clustering: Clustering) -> str | None:
    if edge.would_fuse_if is not None or not isinstance(edge.reason.code, Apart):
        return edge.would_fuse_if
    flip = clustering.flip(edge)
    return flip.text if flip else None


def _counts(node: Node) -> bool:
    return node.op.name not in ("Item", "Size")


def _histogram(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """The most frequent first, then by name."""
    counts = Counter(node.op.name for node in nodes if _counts(node))
    return [{"op": op, "count": count} for op, count in sorted(counts.items(), key=lambda kind: (-kind[1], kind[0]))]


def _home(node: Node, clusters: Sequence[Cluster]) -> str | None:
    """The cluster that computes a node, itself or in the body of a loop or a branch."""
    sources = [source for n in node.inputs for source in (n, *n.inputs)]
    wanted = (node, *sources)  # lowering makes copies of its own: they are where what they copy is
    return next((c.name for n in wanted for c in clusters if _contains(c.nodes, n)), None)


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

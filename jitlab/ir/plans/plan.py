"""Plan: what became of a graph. Clusters, host operations and kernels in the order they run, each decision with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from jitlab.ir.graphs.bodies import Nest
from jitlab.ir.graphs.graph import Graph, Node
from jitlab.ir.options import ClusteringOptions
from jitlab.ir.types import Origin, Origins
from jitlab.messages import Message
from jitlab.support.lazy_dataclass import dataclass

from .overrides import NO_OVERRIDES, Overrides
from .plan_json import activity, plan_json
from .reasons import Reason, Rejection

if TYPE_CHECKING:
    from jitlab.ir.programs.program import Program

    from .lowered import Written


@dataclass(frozen=True)
class Edge:
    """An edge of the graph (or of a cluster) with the reason it was cut; `bytes` go over it in memory.

    Two ways would fuse it, and the reason is made of one. `rejections`: all that kept the consumer out of the nest that makes
    the producer. `stored`: the decision to store the value, without which the consumer's nest would compute it; None where it
    lies in memory whatever is decided.
    """

    producer: Node
    consumer: Node
    reason: Reason
    bytes: int
    would_fuse_if: Message | None = None
    rejections: tuple[Rejection, ...] = ()
    stored: Rejection | None = None


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


@dataclass(frozen=True)
class ClusteringInput:
    """All that decides of a clustering: clustered again with one of these changed, it shows what the change would do."""

    graph: Graph  # as the passes left it
    options: ClusteringOptions
    jit_compile: bool | None = None
    function: str = ""  # what an error calls it
    overrides: Overrides = NO_OVERRIDES  # of a what-if, beside what the graph's scopes decide
    names: Mapping[str, str] | None = None  # of the clusters, by the names of their operations; None: new ones


@dataclass
class Clustering:
    """What the clusterer hands on: steps in an order that respects every edge; `stays` for each node in no cluster."""

    graph: Graph
    steps: list[Cluster | Node]
    stays: dict[Node, Reason]
    apart: list[Edge] = field(default_factory=list)
    overrides: Overrides = NO_OVERRIDES  # the what-if's and the scopes'
    made_of: ClusteringInput | None = None

    @property
    def clusters(self) -> list[Cluster]:
        return [step for step in self.steps if isinstance(step, Cluster)]


@dataclass(frozen=True)
class KernelInfo:
    """One fused nest or library call of a Program. Bytes and flops are per call; of bytes each distinct element counts once."""

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
    target: str  # the key of the target that compiles it


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
    sources: list[dict[str, Any]] = field(default_factory=list)  # the text that was captured (texts.py)
    targets: Mapping[str, str] = field(default_factory=dict)  # of each cluster the key of the target that compiles it
    placed: Message | None = None  # why it is on its device, where that was left to jitlab
    is_whole: bool = False  # its clusters are lowered: all of the above is there
    written: Written | None = None  # once it is whole
    #: Of each kernel, on how many threads it may run, or why on one, where somebody listened as it was made; None where that is
    #: not worth a word.
    threads: list[Message | None] = field(default_factory=list)

    @property
    def texts(self) -> dict[tuple[str, str], str]:
        """(cluster, stage) -> text, for report.ir"""
        return {} if self.written is None else self.written.texts

    @property
    def codes(self) -> dict[str, ClusterCode]:
        """Of each cluster, for report.code."""
        return {} if self.written is None else self.written.codes

    @property
    def title(self) -> str:
        return f"{self.function} #{self.trace}"

    def to_json(self) -> dict[str, Any]:
        """`plans`, `ops`, `clusters`, `kernels`, `boundaries` of docs/reference/report-format.md; `copies`. What would change
        its decisions is looked for by the caller that asks (`jitlab.api.whatif.flip_verification`)."""
        return plan_json(self)

    def activity(self) -> dict[str, Any]:
        """The summary of one graph: how many nodes are in clusters, of which kinds. Constants are nodes."""
        return activity(self)

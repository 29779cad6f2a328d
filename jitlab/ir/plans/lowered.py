"""A cluster as a Program, which lowering hands to a target and to the executable, and the plan of all that are lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from jitlab.ir.graphs.bodies import every_node, inner_nodes
from jitlab.ir.graphs.graph import Graph, Node
from jitlab.ir.programs.program import Program
from jitlab.ir.texts import texts_of
from jitlab.ir.types import UNKNOWN, Origins
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

from .plan import Cluster, ClusterCode, Copy, Edge, KernelInfo, Plan, Temporary
from .plan_json import is_operation


@dataclass
class Lowered:
    """A cluster's Program and how its inputs reach it. `strides` names the symbols that are an input's stride (in elements)."""

    cluster: Cluster
    program: Program
    inputs: list[Node]  # one for each Program input, constants that are arrays among them
    outputs: list[Node]  # one for each Program output
    constants: list[Any]  # the Constants whose values are the Program's scalars, in order
    symbol_values: dict[str, int]
    strides: dict[str, tuple[int, int]]  # symbol -> (input, axis)
    kernels: list[KernelInfo] = field(default_factory=list)
    boundaries: list[Edge] = field(default_factory=list)
    copies: list[Node] = field(default_factory=list)  # inputs to be made contiguous first
    kept: list[Copy] = field(default_factory=list)  # what the Program copies although NumPy changes it in place
    in_place: dict[Node, Node] = field(default_factory=dict)  # outputs of the cluster that are inputs it has overwritten
    temporaries: list[Temporary] = field(default_factory=list)
    origins: dict[str, Any] = field(default_factory=dict)  # what symbols are of the graph's sizes; `.evaluate(values)`
    scratch_bytes: int = 0  # that a call needs, each piece from a multiple of ALIGNMENT on


@dataclass
class Written:
    """The texts of a plan and what its code is shown from, made when they are asked for. `names`: of each cluster's kernels."""

    graph: Graph
    lowerings: Sequence[Lowered]
    names: Sequence[Sequence[str]]
    targets: Mapping[str, str]

    @lazy
    def lines(self) -> list[tuple[str, Origins]]:
        return [(text, UNKNOWN if node is None else node.origins) for text, node in self.graph.lines()]

    @lazy
    def texts(self) -> dict[tuple[str, str], str]:
        texts = {("", "graph"): "\n".join(text for text, _ in self.lines)}
        return texts | {(lowered.cluster.name, "program"): lowered.program.text for lowered in self.lowerings}

    @lazy
    def codes(self) -> dict[str, ClusterCode]:
        pairs = zip(self.lowerings, self.names, strict=True)
        return {made.cluster.name: _code(made, self.lines, own, self.targets[made.cluster.name]) for made, own in pairs}


def whole_plan(plan: Plan, lowerings: Sequence[Lowered]) -> Plan:
    """The plan of a clustering, with what became of its clusters; kernels are numbered through all of them."""
    made = Plan(plan.function, plan.trace, plan.clustering, targets=plan.targets, placed=plan.placed, is_whole=True)
    made.sources = texts_of(source for node in every_node(plan.clustering.graph) for source in node.sources)
    names: list[list[str]] = []
    for lowered in lowerings:
        names.append([f"k{len(made.kernels) + number}" for number in range(len(lowered.kernels))])
        made.kernels += [replace(kernel, name=name) for kernel, name in zip(lowered.kernels, names[-1], strict=True)]
        made.boundaries += lowered.boundaries
        made.copies += lowered.kept
        made.temporaries += lowered.temporaries
        made.scratch[lowered.cluster.name] = lowered.scratch_bytes
    made.written = Written(plan.clustering.graph, lowerings, names, plan.targets)
    return made


def _code(lowered: Lowered, lines: Sequence[tuple[str, Origins]], kernels: Sequence[str], target: str) -> ClusterCode:
    """What the code of a cluster is shown from; `kernels`: the plan's names for its kernels."""
    names: dict[Any, tuple[str, ...]] = {}
    for node in lowered.cluster.nodes:
        for inner, name in ((node, node.name), *((inner, name) for inner, name, _ in inner_nodes(node))):
            if is_operation(inner):
                (origin,) = inner.origins
                names[origin] = (*names.get(origin, ()), name)
    return ClusterCode(
        lowered.program, lines, names, [_named(n) for n in lowered.inputs], [_named(n) for n in lowered.outputs],
        [str(op.value) for op in lowered.constants],
        dict(zip((k.name for k in lowered.program.kernels), kernels, strict=True)), target,
    )  # fmt: skip


def _named(node: Node) -> str:
    """What the program calls a value."""
    return node.called or str(node.name if node.op.is_parameter else node.op.word)

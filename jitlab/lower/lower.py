"""A cluster becomes a Program: fused nests, library calls, loops, and memory for what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import MappingProxyType

from jitlab.ir import NO_OVERRIDES, Cluster, Copy, KernelInfo, Lowered, Node, Overrides, Shape, is_operation
from jitlab.ir.programs.program import Buffer, Kernel, Program
from jitlab.ir.programs.traffic import flops, is_per_turn, scratch_places, traffic
from jitlab.ir.size_facts import noting
from jitlab.ops.base import Elementwise, Generated
from jitlab.ops.layout.indexing import Gather, Take
from jitlab.ops.layout.views import Reshape, Update, View
from jitlab.ops.layout.windows import SlidingWindows

from .block import Block, with_items
from .fusion.cuts import Cuts, Edge
from .fusion.groups import Group, cut_between
from .fusion.inside import inner_nests
from .fusion.obstacles import JOINED
from .fusion.rejections import boundaries, inner_edges, taken
from .memory import arrange
from .program_builder import Layout, Shared
from .schedule.inlining import Unreadable
from .schedule.loop_fusion import without_unread
from .schedule.row_blocking import in_blocks
from .schedule.statements import BlockWriter
from .sizes import Sizes
from .temporaries import moved_op_by_op, size_of, temporaries


def lower(
    cluster: Cluster, values: dict[str, int], layouts: Sequence[Layout], shape: Shape, *, level: str = "O1",
    donated: AbstractSet[Node] = frozenset(), ends: Mapping[Node, Node] = MappingProxyType({}),
    overrides: Overrides = NO_OVERRIDES,
) -> Lowered:  # fmt: skip
    """`values`: of the graph's shape symbols; `layouts`: one for each input of the cluster; `shape`: of the machine.

    `donated`: inputs that nobody wants after the call: each is memory of its own, which no other input shares. `ends`:
    outputs that are the last version of such an input, and end in its place wherever they are made.
    """
    given = dict(zip(cluster.inputs, layouts, strict=True))
    wanted: set[Node] = set()
    copies: list[Node] = []
    again: dict[Edge, set[Edge]] = {}  # of each edge that is to be fused, and is not: the stages that would compute it again
    plain: Lowered | None = None  # what becomes of the cluster where nothing is computed again
    while True:
        cuts = Cuts(overrides, cluster.nodes, set[Edge]().union(*again.values()))
        shared = Shared(Sizes(cluster.nodes, values, shape), given, level, wanted, cuts)
        try:
            lowered, groups = _lower(cluster, shared, donated - set(copies), {w: x for w, x in ends.items() if x not in copies})
        except Unreadable as unreadable:  # it has to lie in memory, row after row
            (node,) = unreadable.nodes
            while node in shared.captured:
                node = shared.captured[node]
            if node in wanted:  # it is, in the place of an input that lies otherwise: the input is copied first
                strided = [x for x in {*ends.values(), *donated} if given[x] != "C"]
                assert strided, f"{node!r} is stored and still cannot be read"
                given.update(dict.fromkeys(strided, "C"))
                copies += strided
            elif node not in given:
                wanted.add(node)
            else:
                assert given[node] != "C", f"{node!r} is contiguous and still cannot be read"
                given[node] = "C"
                copies.append(node)
            continue
        lowered.copies = list(copies)
        apart = _apart(lowered, overrides) if overrides.fuse and level != "O0" else []
        if plain is not None:
            return plain if any(edge in again for edge in apart) else lowered
        if apart:
            again = {edge: found for edge in apart if (found := set(_repeatable(*edge, cluster, groups)))}
        if not again:
            return lowered
        plain = lowered


#: What may be computed a second time: single elements, and what only picks or moves them.
REPEATABLE = (Elementwise, Generated, View, Reshape, Take, Gather, SlidingWindows)


def _apart(lowered: Lowered, overrides: Overrides) -> list[Edge]:
    """The edges that were to be fused and go through memory between kernels, though nobody cuts them."""
    named = {node.name: node for node in lowered.cluster.nodes}
    pairs = (pair for pair in overrides.fuse if pair not in overrides.cut)
    edges = [(named[a], named[b]) for a, b in pairs if a in named and b in named]
    return [edge for edge in edges if not any(set(edge) <= set(kernel.nodes) for kernel in lowered.kernels)]


def _repeatable(a: Node, b: Node, cluster: Cluster, groups: Sequence[Group]) -> Iterator[Edge]:
    """(a, the node of each stage) where b is computed and could compute a value for itself that others read, too."""
    readers = sum(a in node.inputs for node in cluster.nodes)
    if isinstance(a.op, REPEATABLE) and (readers > 1 or a in cluster.outputs):
        for stage in (stage for group in groups for stage in group.stages):
            if stage.kind in JOINED and b in stage.computed and a in stage.reads:
                yield a, stage.node


def _lower(
    cluster: Cluster, shared: Shared, donated: AbstractSet[Node], ends: Mapping[Node, Node]
) -> tuple[Lowered, list[Group]]:
    wanted = list(dict.fromkeys(cluster.outputs))
    results = [node for node in wanted if node in ends]
    block = Block(
        with_items(cluster.nodes), [node for node in wanted if node not in ends], list(cluster.inputs),
        set(donated).union(ends.values()), results=results, targets={k: ends[node] for k, node in enumerate(results)},
    )  # fmt: skip
    writer = BlockWriter(shared, block)
    own = set(cluster.nodes)
    kernels: list[Kernel] = []
    infos: list[KernelInfo] = []
    groups: list[Group] = []
    made: list[Node] = []
    counted: set[Node] = set()  # operations whose traffic in NumPy is in a kernel's account
    for group, body, nodes in writer.groups():
        apart = not kernels or shared.level == "O0" or cut_between(groups[-1:], group, shared.cuts)
        together = None if apart else in_blocks(kernels[-1].body, body)
        if together is not None:
            nodes = [*made, *nodes]
            groups[-1] = Group([*groups[-1].stages, *group.stages], groups[-1].kind)
            kernels[-1] = Kernel(kernels[-1].name, kernels[-1].kind, together)
            infos.pop()
            counted = {node for info in infos for node in info.nodes}
        else:
            groups.append(group)
            kernels.append(Kernel(f"k{len(kernels)}", "library" if group.kind in ("gemm", "call") else "nest", body))
        made = [node for node in nodes if node in own]
        with noting(None):
            infos.append(_info(kernels[-1], cluster, made, counted))
        counted.update(infos[-1].nodes)
    places = {shared.inputs[node]: node for node in {*donated, *ends.values()} if node in shared.inputs}
    last = {node: block.finals[k][1] if k in block.finals else node for k, node in enumerate(results)}
    lies = {node: writer.buffers[last.get(node, node)] for node in wanted}
    in_place = {node: places[buffer] for node, buffer in lies.items() if buffer in places}
    outputs = [node for node in wanted if node not in in_place]
    kernels, temps = without_unread(kernels, shared.temps)
    program = Program(
        list(shared.inputs.values()),
        [lies[node] for node in outputs],
        temps,
        shared.rows,
        [(s.name, s.dtype) for s in shared.scalars.values()],
        shared.sizes.symbols,
        kernels,
        shared.variables,
        shared.errors,
        shared.calls,
        shared.sizes.told,
    )
    sizes = shared.sizes
    lowered = Lowered(
        cluster, program, list(shared.inputs), outputs, shared.constants, {**sizes.values, **sizes.samples}, shared.strides,
        kept=_still(shared, temps), in_place=in_place, origins=sizes.origins,
    )  # fmt: skip
    with noting(None):  # numbers that decide nothing
        _account(lowered, shared, infos, groups, wanted)
    return lowered, groups


def _account(
    lowered: Lowered, shared: Shared, infos: list[KernelInfo], groups: list[Group], wanted: Sequence[Node]
) -> None:  # fmt: skip
    """What reports say of a cluster that is lowered."""
    cluster, program, sizes = lowered.cluster, lowered.program, shared.sizes
    infos = [_told(info, kernel, sizes) for info, kernel in zip(infos, program.kernels, strict=True)]
    edges = boundaries(groups, shared, _fused_otherwise(cluster, shared), wanted)
    edges += list(taken(edges, groups, set(cluster.nodes)))
    edges += inner_edges(cluster, shared)
    _, lowered.scratch_bytes = scratch_places(program, lambda b: size_of(b.shape, sizes) * b.dtype.itemsize)
    lowered.kernels, lowered.boundaries = infos, edges
    lowered.temporaries = temporaries(cluster, program.kernels, program.temps, shared, edges, groups)


def _fused_otherwise(cluster: Cluster, shared: Shared) -> list[set[Node]]:
    """At level O0: what would share a nest at O1."""
    if shared.level != "O0":
        return []
    block = Block(with_items(cluster.nodes), list(dict.fromkeys(cluster.outputs)), list(cluster.inputs))
    try:
        groups = arrange(block, shared.sizes, shared.wanted, level="O1").groups
    except Unreadable:
        return []
    nests = [group for group in groups if group.kind not in ("gemm", "call")]
    return [{node for stage in group.stages for node in stage.computed} for group in nests]


def _still(shared: Shared, temps: Sequence[Buffer]) -> list[Copy]:
    """The copies that are left now that temporaries whose reads were forwarded are gone."""
    gone = {b.name for b in shared.temps} - {b.name for b in temps}

    def place(node: Node) -> Node:
        while node not in shared.places and isinstance(node.op, (View, Update)):
            node = node.inputs[-1]
        return node

    places = [(copy, shared.places.get(place(copy.node))) for copy in shared.copies]
    return [copy for copy, buffer in places if buffer is None or buffer.name not in gone]


def _info(kernel: Kernel, cluster: Cluster, nodes: list[Node], counted: AbstractSet[Node]) -> KernelInfo:
    operations = tuple(node for node in nodes if is_operation(node))
    by_numpy = moved_op_by_op(node for node in operations if node not in counted)
    return KernelInfo(kernel.name, cluster.name, operations, kernel.kind, 0, 0, 0, by_numpy)


def _told(info: KernelInfo, kernel: Kernel, sizes: Sizes) -> KernelInfo:
    """With the inner nests and the traffic of a kernel as it stays: what nobody reads is no longer stored."""
    bytes_read, bytes_written = traffic(kernel, sizes)
    by_numpy = info.bytes_op_by_op
    if info.nodes and all(isinstance(node.op, (View, Reshape)) for node in info.nodes):
        by_numpy = bytes_read + bytes_written  # a view that is written is a copy that NumPy makes too: .copy(), a reshape
    return replace(
        info, bytes_read=bytes_read, bytes_written=bytes_written, bytes_op_by_op=by_numpy, nests=inner_nests(kernel),
        per_turn=is_per_turn(kernel), flops=flops(kernel, info.nodes, sizes),
    )  # fmt: skip

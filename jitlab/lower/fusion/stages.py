"""The stages of a block: what writes memory or reduces, a stored value, a reduction, a library call, a loop. Everything else is
read lazily, by the stage that needs it.

Stages keep the order of the nodes: an array that changes in place is read before the stage that changes it (memory.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

import numpy as np

from jitlab.ir import Node, Poly
from jitlab.ir.programs.program import Apply, Expr, Index, Scalar
from jitlab.lower.block import Block, binds, is_control
from jitlab.lower.schedule.inlining import Position, Reader, Ref, Unreadable
from jitlab.lower.sizes import Sizes
from jitlab.ops.base import Elementwise, Generated, Reduction
from jitlab.ops.control_flow import Branch, Define, Loop
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.concatenation import Concatenate
from jitlab.ops.layout.indexing import Gather, Scatter, Take
from jitlab.ops.layout.views import Reshape, Update, View
from jitlab.ops.leaf_operations import Constant
from jitlab.ops.library_operations import Library
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.ops.reducing.scans import Scan
from jitlab.support.lazy_dataclass import dataclass

from .cuts import NO_CUTS, Cuts
from .findings import Obstacle
from .recomputing import Places

REGION = (Concatenate, Update, Scatter)


@dataclass(eq=False)
class Stage:
    """One stored value, reduction or call. `space`: the extents it loops over (axes of extent 1 left out)."""

    node: Node
    kind: str  # "map", "reduce", "scan", "gemm", "call", "region", "update", "scatter", "let", "define", "loop" or "branch"
    space: tuple[Poly, ...]
    reduced: tuple[bool, ...] = ()  # for each axis of `space`
    refs: list[tuple[Node, Position]] = field(default_factory=list)  # values of other stages, where they are read
    picked: set[Node] = field(default_factory=set)  # what it reads where integers say: that has to lie in memory
    taken: tuple[Node, ...] = ()  # what it takes where it lies: memory that it changes in place, the views that a library reads
    leaves: set[Node] = field(default_factory=set)  # inputs of the cluster it reads
    lazy: dict[Node, Expr] = field(default_factory=dict)  # what it computes on the way
    passed: dict[Node, None] = field(default_factory=dict)  # all that it computes or looks through on the way
    items: tuple[Node, ...] = ()  # the results of a loop or branch
    along: int | None = None  # of a scan: its axis of `space`
    reverse: bool = False  # of a scan: it begins at the last element
    again: set[Node] = field(default_factory=set)  # what it computes though it is stored: a scope or a what-if wants it so
    evidence: tuple[float, ...] = ()  # of a library call that a limit decides: multiplications, and from how many on it is one
    stored_for: Obstacle | None = None  # the decision without which what reads its value would compute it
    rejected: dict[Node, tuple[Obstacle, ...]] = field(default_factory=dict)  # why no nest that makes such a value takes it
    moves: dict[Node, Node] = field(default_factory=dict)  # value -> before what it would have to come to share its nest

    @property
    def made(self) -> tuple[Node, ...]:
        return (self.node, *self.items)

    @property
    def computed(self) -> list[Node]:
        """What is computed here, lazily or not."""
        return list(dict.fromkeys((*self.passed, *self.made)))

    @property
    def reads(self) -> set[Node]:
        """The values with a place that it reads."""
        return {node for node, _ in self.refs} | self.leaves

    @property
    def touched(self) -> set[Node]:
        """What it reads or computes on the way: a nest that has some of it, too, saves memory traffic."""
        return {node for node, _ in self.refs} | self.leaves | set(self.lazy)

    @property
    def kept(self) -> tuple[Poly, ...]:
        return tuple(n for n, gone in zip(self.space, self.reduced, strict=True) if not gone)

    @property
    def suffix(self) -> bool:
        """Only trailing axes are reduced."""
        return self.kind == "reduce" and not any(
            later for later, now in zip(self.reduced, self.reduced[1:], strict=False) if later and not now
        )


def stages_of(
    block: Block, sizes: Sizes, stored: set[Node], in_place: dict[Node, Node], expensive: dict[Node, Obstacle],
    cuts: Cuts = NO_CUTS,
) -> list[Stage]:  # fmt: skip
    """The stages that are needed, in the order of the nodes. `stored` grows by what cannot be read lazily and, as does
    `expensive`, by what would be computed again at too many places; what is to be computed again is not among that."""
    nodes = block.all_nodes
    where = {node: at for at, node in enumerate(nodes)}
    found: dict[Node, Stage] = {}
    at = 0
    while at < len(nodes):
        if _starts_stage(nodes[at], stored):
            try:
                own = cuts.repeated_in(nodes[at]) if cuts.again else set()
                places = Places(nodes[at], expensive, sizes.shape, own, block.ordered)
                found[nodes[at]] = _stage(nodes[at], block, where, sizes, stored - own if own else stored, in_place, places)
                found[nodes[at]].again = own
            except Unreadable as unreadable:
                if cuts.stored_after_all(unreadable.nodes):
                    continue
                assert stored.isdisjoint(unreadable.nodes), f"{unreadable} is stored and still cannot be read"
                stored.update(unreadable.nodes)
                at = min(where[node] for node in unreadable.nodes)  # nothing before reads them: those stages stay
                continue
        at += 1
    needed = block.needed
    live = []
    for node in reversed(nodes):
        stage = found.get(node)
        if stage is not None and (stage.kind == "define" or any(made in needed for made in stage.made)):
            live.append(stage)
            needed |= stage.reads
            needed.update(in_place[made] for made in stage.made if made in in_place)
    return live[::-1]


def must_be_stored(block: Block, sizes: Sizes, level: str) -> set[Node]:
    """What has a place whatever else is decided; 0-d values of a body have theirs in a register."""
    nodes = block.all_nodes
    inside = set(nodes)
    stored = {*block.outputs, *(node for node in block.unread if not is_control(node))}
    for node in nodes:
        if isinstance(node.op, (Product, Item, Define, Library, Scan, *REGION)) or (block.ordered and binds(node)):
            stored.add(node)
        if isinstance(node.op, Product) and by_library(node, sizes, block.ordered):
            stored.update(operand_root(source) for source in node.inputs)
        elif is_control(node):
            stored.update(root for source in captured(node) if _is_work(root := operand_root(source)))
        elif level == "O0" and not isinstance(node.op, (Constant, View, Reshape, Reduction)):
            stored.add(node)
    stored |= _checked_whole(nodes, stored)
    return {node for node in stored if node in inside and not isinstance(node.op, Constant)}


def _checked_whole(nodes: Sequence[Node], stored: set[Node]) -> set[Node]:
    """`x[indices][0]`: values of which only a part is read, but each of whose indices is checked."""
    in_part: set[Node] = set()
    for node in reversed(nodes):
        if (node in in_part and node not in stored) or (isinstance(node.op, View) and not _sees_all(node)):
            in_part.update(node.inputs)
    return {node for node in in_part if isinstance(node.op, (Take, Gather))}


def _sees_all(view: Node) -> bool:
    """Is each element of its base seen?"""
    (base,) = view.inputs
    entries = zip(view.op.map, base.shape, strict=True)
    return all(n == 1 if axis is None else view.shape[axis] == n for (_, _, axis), n in entries)


def is_lazy(node: Node, stored: set[Node]) -> bool:
    """Is a value of the block computed where it is read?"""
    return node not in stored and not isinstance(node.op, (Reduction, Constant, Library)) and not is_control(node)


def captured(node: Node) -> tuple[Node, ...]:
    """The inputs of a loop or branch that its bodies read and the operation does not carry."""
    return node.inputs[len(node.op.types) :] if isinstance(node.op, Loop) else node.inputs[1:]


def _is_work(node: Node) -> bool:
    return not isinstance(node.op, (Generated, Constant))


def by_library(node: Node, sizes: Sizes, in_body: bool = False) -> bool:
    """Is this product of matrices a call of a BLAS? Integers, bools, halves and complex numbers have loops of our own; so have
    vectors and, in a body, small matrices."""
    if not sizes.shape.has_gemm or node.dtype not in (np.dtype("f4"), np.dtype("f8")):
        return False
    a, b = node.inputs
    if a.ndim < 2 or b.ndim < 2 or a.shape[-2] == 1 or b.shape[-1] == 1:
        return False  # a vector: every element is read once, which loops of ours do as fast as memory
    if not in_body:
        return True
    multiplications, least = limit_of_calls(node, sizes)
    return multiplications >= least


def limit_of_calls(node: Node, sizes: Sizes) -> tuple[int, int]:
    """The multiplications of a product of matrices, and from how many on one in a body is a call."""
    return int(node.type.size) * int(node.inputs[0].shape[-1]), sizes.shape.gemm_multiplications


def operand_root(node: Node) -> Node:
    """What a matrix operand is a view of: a library reads views where they lie, other work has to be done first."""
    while isinstance(node.op, View):
        (node,) = node.inputs
    return node


def _starts_stage(node: Node, stored: set[Node]) -> bool:
    kept = node in stored and not isinstance(node.op, Item)
    return kept or isinstance(node.op, (Reduction, Library)) or is_control(node)


def _stage(
    node: Node, block: Block, inside: Collection[Node], sizes: Sizes, stored: set[Node], in_place: dict[Node, Node],
    places: Places,
) -> Stage:  # fmt: skip
    refs: dict[tuple[Node, Position], None] = {}
    leaves: set[Node] = set()

    def resolve(read: Node, position: Position) -> Expr | None:
        if read not in inside or (isinstance(read.op, Constant) and read.ndim > 0):
            leaves.add(read)
            return Ref(read, position)
        if read in stored or read in reader.unreadable or isinstance(read.op, Reduction):
            refs[(read, position)] = None
            return Ref(read, position)
        return None

    reader = _TracingReader(sizes, resolve, places)
    stage = _traced(node, block, reader, sizes, in_place)
    if reader.unreadable:
        raise Unreadable(*reader.unreadable)
    stage.refs = list(refs)
    stage.picked = reader.picked
    stage.leaves = leaves
    stage.lazy = {n: e for n, e in reader.computed.items() if n is not node}
    stage.passed = reader.passed
    return stage


def _traced(node: Node, block: Block, reader: _TracingReader, sizes: Sizes, in_place: dict[Node, Node]) -> Stage:
    """What computes a node, after `reader` has read all that this needs."""
    op = node.op
    if isinstance(op, Reduction):
        (x,) = node.inputs
        space, position = _space(x, sizes)
        reader.read(x, position)
        return Stage(node, "reduce", space, tuple(axis in op.axes for axis, n in enumerate(x.shape) if n != 1))
    if isinstance(op, Product) and not by_library(node, sizes, block.ordered):
        space, gone, _ = contraction(node, reader, sizes)
        return Stage(node, "reduce", space, gone)
    if isinstance(op, Update) and node in in_place:
        value = node.inputs[1]
        reader.read(value, space_of(value.shape, sizes)[1])
        return Stage(node, "update", space_of(op.shape, sizes)[0], taken=node.inputs[:1])
    if isinstance(op, (Product, Library, REGION)) or is_control(node):
        return _called(node, block, reader, sizes, in_place)
    if isinstance(op, Define):
        reader.read(node.inputs[0], ())
        return Stage(node, "define", ())
    if block.ordered and binds(node):
        reader.compute(node, ())
        return Stage(node, "let", ())
    space, position = _space(node, sizes)
    if isinstance(op, Scan) and node.shape[op.axis] != 1:
        reader.read(node.inputs[0], position)
        along = sum(n != 1 for n in node.shape[: op.axis])
        return Stage(node, "scan", space, tuple(False for _ in space), along=along, reverse=op.reverse)
    reader.compute(node, position)
    return Stage(node, "map", space, tuple(False for _ in space))


def _called(node: Node, block: Block, reader: _TracingReader, sizes: Sizes, in_place: dict[Node, Node]) -> Stage:
    """A stage that takes its inputs as they lie in memory: a library call, a loop, a branch, a region."""
    op = node.op
    items = tuple(n for n in block.nodes if isinstance(n.op, Item) and n.inputs[0] is node)
    bases = set() if isinstance(op, (Product, Library)) else {in_place[n] for n in (node, *items) if n in in_place}
    for source in node.inputs:
        if source not in bases or source in _others(node, source):
            reader.read_operand(source, _space(source, sizes)[1])
    if isinstance(op, Product):
        views = tuple(v for v in dict.fromkeys(node.inputs) if isinstance(v.op, View) and v in reader.passed)
        evidence = limit_of_calls(node, sizes) if block.ordered else ()
        return Stage(node, "gemm", _space(node, sizes)[0], taken=views, evidence=evidence)
    if isinstance(op, Library):
        return Stage(node, "call", (), items=items)
    kinds = {Loop: "loop", Branch: "branch", Scatter: "scatter"}
    kind = next((word for type, word in kinds.items() if isinstance(op, type)), "region")
    taken = tuple(source for source in dict.fromkeys(node.inputs) if source in bases)
    return Stage(node, kind, _space(node, sizes)[0], taken=taken, items=items)


class _TracingReader(Reader):
    """Remembers what it computed."""

    def __init__(self, sizes: Sizes, resolve: object, places: Places) -> None:
        super().__init__(sizes, resolve, lambda node: Scalar(node.name, node.dtype), lambda node: 0)  # type: ignore[arg-type]
        self.places = places
        self.computed: dict[Node, Expr] = {}
        self.picked: set[Node] = set()
        self.passed: dict[Node, None] = {}
        self.unreadable: dict[Node, None] = {}  # what has to be stored before its operands can be read

    def read_operand(self, node: Node, position: Position) -> None:
        """Read one of perhaps many operands, all of whose failures are found in one go."""
        try:
            self.read(node, position)
        except Unreadable as unreadable:
            self.unreadable.update(dict.fromkeys(unreadable.nodes))

    def _read_gathered(self, node: Node, rest: Position, picks: Sequence[tuple[int, Node, Position]]) -> Expr:
        self.picked.add(node.inputs[0])
        return super()._read_gathered(node, rest, picks)

    def read_flat(self, node: Node, flat: Index) -> Expr:
        expr = super().read_flat(node, flat)
        if not isinstance(expr, Ref) or expr.node is not node:
            self.passed[node] = None
        return expr

    def compute(self, node: Node, position: Position) -> Expr:
        is_again = self.places.enter(node, position)
        expr = super().compute(node, position)
        if is_again:
            self.places.leave()
        self.passed[node] = None
        if isinstance(node.op, (Elementwise, Generated)):
            self.computed[node] = expr
        return expr


def contraction(node: Node, reader: Reader, sizes: Sizes) -> tuple[tuple[Poly, ...], tuple[bool, ...], Expr]:
    """A product of matrices as a sum: its space, which axis of it is summed, and the terms.

    Axes are batch, rows, columns and the summed one; but neighbours in memory come last, so that vectors run along them.
    """
    from jitlab.ops.build_nodes import result_dtype
    from jitlab.ops.elementwise.arithmetic import Mul

    a, b = node.inputs
    batch = [f"z{axis}" for axis in range(node.ndim - (a.ndim > 1) - (b.ndim > 1))]
    order = [*batch, *(["row"] if a.ndim > 1 else []), *(["column"] if b.ndim > 1 else [])]
    extents = dict(zip(order, node.shape, strict=True)) | {"sum": a.shape[-1]}
    order.insert(len(order) - (len(order) > len(batch) and _sums_across(a, b)), "sum")
    axes = [axis for axis in order if extents[axis] != 1]
    index = {axis: Index() for axis in order} | {axis: Index.var(f"a{number}") for number, axis in enumerate(axes)}

    def operand(x: Node, matrix: list[str]) -> Expr:
        lead = batch[len(batch) - (x.ndim - len(matrix)) :] if x.ndim > len(matrix) else []
        where = [Index() if n == 1 else index[axis] for n, axis in zip(x.shape, [*lead, *matrix], strict=True)]
        return reader.read(x, tuple(where))

    left = operand(a, ["row", "sum"] if a.ndim > 1 else ["sum"])
    right = operand(b, ["sum", "column"] if b.ndim > 1 else ["sum"])
    assert result_dtype(a, b) == node.dtype
    space = tuple(sizes.of(extents[axis]) for axis in axes)
    return space, tuple(axis == "sum" for axis in axes), Apply(Mul(), (left, right), node.dtype, origins=node.origins)


def _sums_across(a: Node, b: Node) -> bool:
    """Are neighbours in memory apart along the summed axis?"""
    if b.ndim > 1 and b.shape[-1] != 1:
        return not _runs_along(b, b.ndim - 2)
    return a.ndim > 1 and a.shape[-2] != 1 and not _runs_along(a, a.ndim - 1)


def _runs_along(x: Node, axis: int) -> bool:
    """Is one step along the axis one element in memory (as far as views tell)?"""
    while isinstance(x.op, View):
        behind = [base_axis for base_axis, (_, _, seen) in enumerate(x.op.map) if seen == axis]
        if not behind:
            return False
        axis = behind[-1]
        (x,) = x.inputs
    return axis == x.ndim - 1


def _space(node: Node, sizes: Sizes) -> tuple[tuple[Poly, ...], Position]:
    return space_of(node.shape, sizes)


def space_of(shape: Sequence[int], sizes: Sizes) -> tuple[tuple[Poly, ...], Position]:
    """The extents other than 1, and a position with a variable for each: a<axis>."""
    space = tuple(sizes.of(n) for n in shape if n != 1)
    names = iter(f"a{i}" for i in range(len(space)))
    position = tuple(Index() if n == 1 else Index.var(next(names)) for n in shape)
    return space, position


def _others(node: Node, base: Node) -> tuple[Node, ...]:
    """The inputs that an operation reads besides the base it changes."""
    if isinstance(node.op, Loop):
        return captured(node)
    rest = list(node.inputs[1:])
    if isinstance(node.op, Branch):
        rest.remove(base)
    return tuple(rest)

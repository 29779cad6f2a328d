"""From the groups of a block to statements: what each kind of group becomes, and where its values lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from jitlab.ir import Copied, Node, Poly
from jitlab.ir.programs.program import (
    ASCENDING,
    PARALLEL,
    ZERO,
    Apply,
    Buffer,
    CheckedIndex,
    Expr,
    For,
    Index,
    IndexValue,
    Let,
    Load,
    Local,
    LoopKind,
    Scalar,
    Statement,
    Store,
    contiguous_strides,
)
from jitlab.lower.block import Block, covers, has_several, rim, root
from jitlab.lower.fusion.groups import Group, cut_between
from jitlab.lower.fusion.stages import space_of
from jitlab.lower.memory import Arranged, arrange, copied
from jitlab.lower.program_builder import Shared
from jitlab.ops.base import Reduction
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.indexing import ScatterAdd
from jitlab.ops.layout.views import Reshape, Update
from jitlab.ops.leaf_operations import Constant
from jitlab.ops.library_operations import Library as LibraryOperation

from .dependence import Relation, relation
from .inlining import Position, Reader, gather_positions
from .library_calls import Library, write_call
from .loop_fusion import Written, joined, nest_of
from .loops_and_branches import name_definitions, write_branch, write_define, write_loop
from .schedule import Nest, collapse, replaced

Loops = list[tuple[str, Poly]]


class BlockWriter:
    """Writes one block. A body's writer reads what its body captures through the writer around it."""

    def __init__(self, shared: Shared, block: Block, around: BlockWriter | None = None) -> None:
        self.shared, self.block, self.around = shared, block, around
        self.sizes, self.ranges = shared.sizes, shared.ranges
        self.buffers: dict[Node, Buffer] = {}
        self.values: dict[Node, Expr] = {}  # of 0-d values that are bound
        self.captured: dict[Node, Node] = {}  # input of a body -> the value around it that it stands for
        self.inside = set(block.all_nodes)
        self.arranged: Arranged | None = None

    def groups(self) -> Iterator[tuple[Group, list[Statement], list[Node]]]:
        """Each group with its statements and the nodes computed by them, in the order they run."""
        name_definitions(self)
        arranged = self.arranged = arrange(
            self.block, self.sizes, self.shared.wanted, level=self.shared.level, cuts=self.shared.cuts
        )
        self.inside = set(self.block.all_nodes)
        self.shared.copies += arranged.copies
        same = self._reshaped_results(arranged)
        self._allocate(arranged, same)
        order = {node: number for number, node in enumerate(self.block.nodes)}
        for group in arranged.groups:
            if group.nodes[0] in same.values():
                continue
            computed: dict[Node, None] = {}
            statements = self._write(group, computed)
            made = {*computed, *group.nodes, *(same[node] for node in group.nodes if node in same)}
            yield group, statements, sorted((n for n in made if n in order), key=order.__getitem__)

    def statements(self) -> list[Statement]:
        """The whole block, in order."""
        done: list[Statement] = []
        mine: list[Written] = []
        before: list[Group] = []
        every: list[Group] = []
        self.shared.bodies.append(every)
        for group, written, _ in self.groups():
            every.append(group)
            if cut_between(before, group, self.shared.cuts):
                done, mine, before = [*done, *joined(mine, self.shared)], [], []
            mine += [Written(s, group.stages) for s in written]
            before.append(group)
        return [*done, *joined(mine, self.shared)]

    # -- memory

    def _reshaped_results(self, arranged: Arranged) -> dict[Node, Node]:
        """x = concatenate(a, b); return reshape(x): the value -> the result, where nothing but its shape is another, so that it
        is made where the result lies. What reads the result in a nest of its own, or changes the value, keeps them apart."""
        if self.block.ordered or self.shared.level == "O0":
            return {}
        read = {node for group in arranged.groups for stage in group.stages for node in stage.reads}
        changed = {*arranged.in_place, *arranged.in_place.values()}
        made = {node for group in arranged.groups for node in group.nodes if not has_several(node)}
        found: dict[Node, Node] = {}
        for group in arranged.groups:
            (node, *others) = group.nodes
            if others or not isinstance(node.op, Reshape) or node not in self.block.outputs or node in read | changed:
                continue
            (base,) = node.inputs
            is_free = base in made and base not in self.block.outputs and base not in changed and base not in found
            if is_free and (base, node) not in self.shared.cuts.pairs and base.ndim:
                found[base] = node
        return found

    def _allocate(self, arranged: Arranged, same: Mapping[Node, Node]) -> None:
        made = {node for group in arranged.groups for node in group.nodes}
        where = {node: group for group in arranged.groups for node in group.nodes}
        elsewhere = {n for g in arranged.groups for s in g.stages for n, _ in s.refs if where.get(n) is not g}
        outputs = {root(node, arranged.in_place) for node in self.block.outputs}
        for node in self.block.all_nodes:
            if node not in made or has_several(node) or (self.block.ordered and not node.ndim and not _is_called(node)):
                continue
            if node in same:
                made_in = self.buffers[node] = self.shared.places[node] = self.shared.allocate(node, True)
                shape = tuple(self.sizes.of(n) for n in same[node].shape)
                self.buffers[same[node]] = replace(made_in, shape=shape, strides=contiguous_strides(shape))
            elif node in same.values():
                continue
            elif node in arranged.in_place:
                base = arranged.in_place[node]
                self.buffers[node] = self.buffers[base] if base in self.buffers else self.shared.input(base)
            elif node in arranged.stored or node in elsewhere or not isinstance(node.op, Reduction):
                self.buffers[node] = self.shared.places[node] = self.shared.allocate(node, node in outputs)

    def place(self, node: Node) -> Buffer | None:
        """The memory a value has."""
        buffer = self.buffers.get(node)
        if buffer is not None:
            return buffer
        if isinstance(node.op, Constant) and node.ndim > 0:
            return self.shared.input(node)
        if self.around is None and node not in self.inside:
            return self.shared.input(node)
        return None

    def reader(self, computed: dict[Node, None] | None = None, resolve: Callable[..., Expr | None] | None = None) -> Reader:
        """A fresh reader of this block's values; `resolve` answers before the places do."""
        find = Finder(self, computed)
        return _NotingReader(self, resolve or find, computed if computed is not None else {})

    # -- groups

    def _write(self, group: Group, computed: dict[Node, None]) -> list[Statement]:
        stage = group.stages[0]
        node = stage.node
        if group.kind == "gemm":
            library = Library(self.reader(), self.sizes, *self.shared.stride_symbols())
            return library.gemm(node, self.buffers[node])
        if group.kind == "call":
            return write_call(self, stage, computed)
        if group.kind == "let":
            return self._let(node, self.reader(computed).compute(node, ()))
        if group.kind == "define":
            return write_define(self, node)
        if group.kind == "loop":
            return write_loop(self, stage, computed)
        if group.kind == "branch":
            return write_branch(self, stage, computed)
        if group.kind in ("region", "scatter"):
            return self._region(node, self.reader(computed))
        if group.kind == "update":
            return self._update(node, self.reader(computed))
        nest = Nest(
            group, self.sizes, self.place, Finder(self, computed),
            lambda resolve: self.reader(computed, resolve), self.shared.temp, self.shared.name,
            self.ranges if self.block.ordered else None,
        )  # fmt: skip
        statements = nest.build()
        if self.block.ordered:
            self.values.update({n: e for n, e in nest.results.items() if not n.ndim})
        return statements

    def _let(self, node: Node, value: Expr) -> list[Statement]:
        local, statements = self.bind(value, node)
        self.values[node] = local
        return statements

    def bind(self, value: Expr, node: Node) -> tuple[Expr, list[Statement]]:
        """The value as an expression that may be read anywhere later, and the statement that this takes."""
        if isinstance(value, (Local, Scalar)) or (isinstance(value, IndexValue) and not value.index.terms):
            return value, []
        name = self.shared.name("l")
        return Local(name, node.dtype), [Let(name, value, node.origins)]

    def _update(self, node: Node, reader: Reader) -> list[Statement]:
        """A region of an array, stored where the old version lies."""
        op, value = node.op, node.inputs[1]
        out = self.buffers[node]
        space, position = space_of(op.shape, self.sizes)
        loops = [(f"a{axis}", n) for axis, n in enumerate(space)]
        target = reader.view_position(op, position)
        return self._store_safely(node, out, target, loops, reader.read(value, space_of(value.shape, self.sizes)[1]))

    def _store_safely(self, node: Node, out: Buffer, target: Position, loops: Loops, value: Expr) -> list[Statement]:
        """out[target] = value for all iterations, the right side as it was before the first store."""
        loops = _unit_stride_last(out.offset(target), loops)
        value, before, kind = self._protected(node, out, target, loops, value)
        store = Store(out, out.offset(target), value, node.origins, position=target)
        return [*before, *self.nest(loops, [store], kind)]

    def _protected(
        self, node: Node, out: Buffer, target: Position, loops: Loops, value: Expr
    ) -> tuple[Expr, list[Statement], LoopKind]:
        if not loops:
            return value, [], PARALLEL
        spoiled = []
        kind = PARALLEL
        for load in _loads(value, out):
            known = load.position is not None and not load.gathered
            how = relation(target, load.position, loops, self.ranges) if known and load.position else Relation.OVERLAP
            if how not in self.shared.harmless:
                spoiled.append(load)
            elif how is Relation.AHEAD:
                kind = ASCENDING
        if not spoiled:
            return value, [], kind
        parts = [[(v, n) for v, n in loops if load.offset.coefficient(v).terms] for load in spoiled]
        whole = any(load.gathered or len(part) == len(loops) for load, part in zip(spoiled, parts, strict=True))
        if whole:
            self.shared.copies.append(copied(node, Copied.OVERLAP, self._bytes(loops, out)))
            return *self._keep(value, loops, node), PARALLEL
        self.shared.copies.append(copied(node, Copied.SNAPSHOT, sum(self._bytes(part, out) for part in parts)))
        statements = []
        instead: dict[int, Expr] = {}
        for load, part in zip(spoiled, parts, strict=True):
            instead[id(load)], stores = self._keep(load, part, node)
            statements += stores
        return replaced(value, instead), statements, kind

    def _bytes(self, loops: Loops, buffer: Buffer) -> int:
        size = buffer.dtype.itemsize
        for _, n in loops:
            size *= self.sizes.value(n)
        return size

    def _keep(self, value: Expr, loops: Loops, node: Node) -> tuple[Expr, list[Statement]]:
        """The value of each iteration in a temporary."""
        extents = tuple(n for _, n in loops)
        buffer = self.shared.temp("temp", extents, value.dtype)
        position = tuple(Index.var(v) for v, _ in loops)
        offset = buffer.offset(position)
        store = Store(buffer, offset, value, node.origins, position=position)
        return Load(buffer, offset, position=position), self.nest(loops, [store])

    def _region(self, node: Node, reader: Reader) -> list[Statement]:
        """Concatenation, and updates that start from a copy: values stored into parts of one buffer."""
        out = self.buffers[node]
        statements: list[Statement] = []
        assert self.arranged is not None
        if not isinstance(node.op, Update) and not hasattr(node.op, "place"):
            start = Index()
            for source in node.inputs:
                at = start

                def moved(position: Position, at: Index = at) -> Position:
                    return tuple(i + at if axis == node.op.axis else i for axis, i in enumerate(position))

                statements += self.copy(out, source, reader, node, moved)
                start = start + Index(self.sizes.of(source.shape[node.op.axis]))
            return statements
        if node not in self.arranged.in_place and not covers(node):
            statements += self._kept(out, node, reader)
        if isinstance(node.op, Update):
            op = node.op
            return statements + self.copy(out, node.inputs[1], reader, node, lambda p: reader.view_position(op, p))
        return statements + self._scatter(node, out, reader)

    def _kept(self, out: Buffer, node: Node, reader: Reader) -> list[Statement]:
        """What an update leaves of its base: its rim, slab by slab; where it is no rim, all of the base."""
        base, widths = node.inputs[0], rim(node)
        if widths is None:
            return self.copy(out, base, reader, node)
        statements: list[Statement] = []
        starts = [self.sizes.of(offset) for offset, _, _ in node.op.map]
        region = [self.sizes.of(n) for n in node.op.shape]
        for axis, n in enumerate(base.shape):
            after = starts[axis] + region[axis]
            for start, extent in ((ZERO, starts[axis]), (after, self.sizes.of(n) - after)):
                if extent != ZERO:
                    extents = [*region[:axis], extent, *(self.sizes.of(m) for m in base.shape[axis + 1 :])]
                    at = [*starts[:axis], start, *[ZERO] * (base.ndim - axis - 1)]
                    loops = [(f"a{k}", m) for k, m in enumerate(extents)]
                    position = tuple(Index.var(f"a{k}") + Index(s) for k, s in enumerate(at))
                    store = Store(out, out.offset(position), reader.read(base, position), node.origins, position=position)
                    statements += self.nest(loops, [store])
        return statements

    def _scatter(self, node: Node, out: Buffer, reader: Reader) -> list[Statement]:
        """Each value stored (or added) where its indices say, one after the other."""
        base, value, *indices = node.inputs
        names = iter(f"a{axis}" for axis in range(value.ndim))
        position = tuple(Index() if n == 1 else Index.var(next(names)) for n in value.shape)
        rest, picks = gather_positions(node, base, indices, position)
        offset = out.offset(rest)
        gathered = []
        for axis, index_node, where in picks:
            at = CheckedIndex(reader.read(index_node, where), self.sizes.of(base.shape[axis]), self.shared.check(node))
            gathered.append((at, out.strides[axis]))
        new = reader.read(value, position)
        if isinstance(node.op, ScatterAdd):
            new = Apply(Add(), (Load(out, offset, tuple(gathered)), new), node.dtype, origins=node.origins)
        body: list[Statement] = [Store(out, offset, new, node.origins, tuple(gathered))]
        loops = [(i.vars[0], self.sizes.of(n)) for i, n in zip(position, value.shape, strict=True) if i.vars]
        for var, n in reversed(loops):
            body = [For(var, (Index(n),), body)]
        return body

    def copy(
        self, out: Buffer, source: Node, reader: Reader, node: Node, where: Callable[[Position], Position] = tuple
    ) -> list[Statement]:
        """out[where(i)] = source[i] for each element of the source, which lies elsewhere."""
        space, position = space_of(source.shape, self.sizes)
        loops = [(f"a{axis}", n) for axis, n in enumerate(space)]
        target = where(position)
        return self.nest(loops, [Store(out, out.offset(target), reader.read(source, position), node.origins, position=target)])

    def nest(self, loops: Loops, body: list[Statement], kind: LoopKind = PARALLEL) -> list[Statement]:
        """Loops around statements; a body's nests are joined with their neighbours first."""
        if not self.block.ordered:
            loops, body = collapse(loops, body)
        return [nest_of(loops, body, kind)] if loops else body


class Finder:
    """Where a block's values lie, for one group of statements: each has its own, so that loads are not shared across stores."""

    def __init__(self, writer: BlockWriter, computed: dict[Node, None] | None) -> None:
        self.writer, self.computed = writer, computed
        self._around: Reader | None = None

    def __call__(self, node: Node, position: Position) -> Expr | None:
        writer = self.writer
        value = writer.values.get(node)
        if value is not None:
            return value
        buffer = writer.place(node)
        if buffer is not None:
            return Load(buffer, buffer.offset(position), position=position)
        if node in writer.captured:
            if self._around is None:
                assert writer.around is not None
                self._around = writer.around.reader(self.computed)
            return self._around.read(writer.captured[node], position)
        return None


class _NotingReader(Reader):
    """Remembers which nodes a kernel computes."""

    def __init__(self, writer: BlockWriter, resolve: Callable[..., Expr | None], computed: dict[Node, None]) -> None:
        super().__init__(writer.sizes, resolve, writer.shared.scalar, writer.shared.check)
        self._computed = computed

    def compute(self, node: Node, position: Position) -> Expr:
        self._computed[node] = None
        return super().compute(node, position)

    def read_flat(self, node: Node, flat: Index) -> Expr:
        if node.ndim > 1 and self.resolve(node, (Index(),) * node.ndim) is None:
            self._computed[node] = None
        return super().read_flat(node, flat)


def _is_called(node: Node) -> bool:
    """A result of a library call."""
    call = node.inputs[0] if isinstance(node.op, Item) else node
    return isinstance(call.op, LibraryOperation)


def _unit_stride_last(offset: Index, loops: Loops) -> Loops:
    """The loop whose steps are neighbours in memory goes innermost."""
    unit = [i for i, (v, _) in enumerate(loops) if offset.coefficient(v).value == 1]
    if len(loops) < 2 or not unit or unit[-1] == len(loops) - 1:
        return loops
    inner = loops[unit[-1]]
    return [loop for loop in loops if loop is not inner] + [inner]


def _loads(value: Expr, buffer: Buffer) -> list[Load]:
    found: dict[int, Load] = {}
    seen: set[int] = set()
    todo: list[Expr] = [value]
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if isinstance(e, Load) and e.buffer is buffer:
            found[id(e)] = e
        todo.extend(e.parts)
    return list(found.values())

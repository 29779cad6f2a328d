"""A cluster becomes a Program: fused nests, library calls, memory for what is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from jitlab.ir import Cluster, Edge, KernelInfo, Node, Poly, Sources, is_operation
from jitlab.ir.program import (
    ONE,
    Apply,
    Buffer,
    CheckedIndex,
    Expr,
    For,
    Gemm,
    Index,
    Kernel,
    Load,
    Program,
    Scalar,
    Statement,
    Store,
    contiguous_strides,
    expressions,
    walk,
)
from jitlab.ops.arithmetic import Add
from jitlab.ops.base import Reduction
from jitlab.ops.indexing import Scatter, ScatterAdd
from jitlab.ops.sources import Constant
from jitlab.ops.views import Update

from .fusion import Group, boundaries, fuse, updates_in_place
from .reading import Position, Reader, Unreadable, gather_positions
from .schedule import Nest, collapse
from .sizes import Sizes

#: Outputs from this size on are written past the cache (half of a 32 MB L3, cpu.md §2).
STREAM_BYTES = 16 << 20

#: Layouts of an input: "C" contiguous, "F" column-major, "R" its last axis is contiguous, "S" any strides.
Layout = str


@dataclass
class Lowered:
    """A cluster's Program and how its inputs reach it. `strides` names the symbols that are an input's stride (in elements)."""

    cluster: Cluster
    program: Program
    inputs: list[Node]  # one for each Program input, constants that are arrays among them
    outputs: list[Node]
    constants: list[Constant]  # values of the Program's scalars, in order
    symbol_values: dict[str, int]
    strides: dict[str, tuple[int, int]]  # symbol -> (input, axis)
    kernels: list[KernelInfo] = field(default_factory=list)
    boundaries: list[Edge] = field(default_factory=list)
    copies: list[Node] = field(default_factory=list)  # inputs to be made contiguous first


def lower(
    cluster: Cluster, values: dict[str, int], layouts: Sequence[Layout], *, level: str = "O1", blas: bool = True
) -> Lowered:
    """`values`: of the graph's shape symbols; `layouts`: one for each input of the cluster; `blas`: may it be called?"""
    given = dict(zip(cluster.inputs, layouts, strict=True))
    inside = set(cluster.nodes)
    wanted: set[Node] = set()
    copies: list[Node] = []
    while True:
        try:
            lowered = _Lowering(cluster, Sizes(cluster.nodes, values, blas=blas), given, level, wanted).run()
        except Unreadable as unreadable:  # it has to lie in memory, row after row
            node = unreadable.node
            if node in inside:
                assert node not in wanted, f"{node!r} is stored and still cannot be read"
                wanted.add(node)
            else:
                assert given[node] != "C", f"{node!r} is contiguous and still cannot be read"
                given[node] = "C"
                copies.append(node)
            continue
        lowered.copies = copies
        return lowered


class _Lowering:
    def __init__(
        self, cluster: Cluster, sizes: Sizes, layouts: dict[Node, Layout], level: str, wanted: set[Node]
    ) -> None:
        self.cluster, self.layouts, self.level, self.wanted = cluster, layouts, level, wanted
        self.sizes = sizes
        self.buffers: dict[Node, Buffer] = {}
        self.inputs: list[Node] = []
        self.scalars: dict[Node, Scalar] = {}
        self.constants: list[Constant] = []
        self.temps: list[Buffer] = []
        self.rows: list[Buffer] = []
        self.strides: dict[str, tuple[int, int]] = {}
        self.errors: list[Sources] = []
        self.checks: dict[Node, int] = {}
        self.counters: dict[str, int] = {}
        self.inside = set(cluster.nodes)

    def run(self) -> Lowered:
        groups, stored = fuse(self.cluster, self.sizes, self.wanted, level=self.level)
        outputs = list(dict.fromkeys(self.cluster.outputs))
        made = {node for group in groups for node in group.nodes}
        users: dict[Node, list[Node]] = {}
        for node in self.cluster.nodes:
            for source in dict.fromkeys(node.inputs):
                users.setdefault(source, []).append(node)
        read_elsewhere = self._read_elsewhere(groups)
        own = [
            node
            for node in self.cluster.nodes
            if node in made and (node in stored or node in read_elsewhere or not isinstance(node.op, Reduction))
        ]
        base_of = self._in_place(own, users, outputs)
        given_away = {base: node for node, base in base_of.items()}
        for node in own:
            if node in base_of:
                self.buffers[node] = self.buffers[base_of[node]]
                continue
            last = node
            while last in given_away:
                last = given_away[last]
            self._allocate(node, last in outputs)
        kernels: list[Kernel] = []
        infos: list[KernelInfo] = []
        for group in groups:
            kernel, nodes = self._kernel(group, f"k{len(kernels)}")
            kernels.append(kernel)
            infos.append(self._info(kernel, nodes))
        program = Program(
            [self.buffers[node] for node in self.inputs],
            [self.buffers[node] for node in outputs],
            self.temps,
            self.rows,
            [(s.name, s.dtype) for s in self.scalars.values()],
            self.sizes.symbols,
            kernels,
            errors=self.errors,
        )
        edges = boundaries(self.cluster, groups, stored, self.level)
        return Lowered(
            self.cluster, program, self.inputs, outputs, self.constants, self.sizes.values, self.strides, infos, edges
        )

    # -- memory

    def _read_elsewhere(self, groups: list[Group]) -> set[Node]:
        where = {node: group for group in groups for node in group.nodes}
        return {
            node for group in groups for stage in group.stages for node, _ in stage.refs if where.get(node) is not group
        }

    def _in_place(self, own: list[Node], users: dict[Node, list[Node]], outputs: list[Node]) -> dict[Node, Node]:
        """Updates that take over the buffer of their base: nobody else wants the old version, their own value included."""
        places = set(own)
        result: dict[Node, Node] = {}
        for node in own:
            if not isinstance(node.op, Update) or node.inputs[0] not in places:
                continue
            if updates_in_place(node, users, outputs) and not self._reads(node.inputs[1], node.inputs[0], places):
                result[node] = node.inputs[0]
        return result

    def _reads(self, value: Node, base: Node, places: set[Node]) -> bool:
        """Does computing `value` read `base`? What has a place of its own was computed before."""
        seen: set[Node] = set()
        todo = [value]
        while todo:
            node = todo.pop()
            if node is base:
                return True
            if node not in seen and node in self.inside and node not in places:
                seen.add(node)
                todo.extend(node.inputs)
        return False

    def _allocate(self, node: Node, output: bool) -> None:
        shape = tuple(self.sizes.of(n) for n in node.shape)
        stem = "y" if output else "t"
        stream = output and node.type.nbytes >= STREAM_BYTES and self._rows_aligned(node)
        buffer = Buffer(
            self._name(stem), "output" if output else "temp", node.dtype, shape, contiguous_strides(shape), stream
        )
        self.buffers[node] = buffer
        if not output:
            self.temps.append(buffer)

    def _rows_aligned(self, node: Node) -> bool:
        """Every row starts on a cache line, as streamed vectors must."""
        row = node.shape[-1] if node.ndim > 1 else 16
        return node.dtype.kind in "fiu" and int(row) * node.dtype.itemsize % 128 == 0

    def _input(self, node: Node) -> Buffer:
        layout = self.layouts.get(node, "C")
        shape = tuple(self.sizes.of(n) for n in node.shape)
        strides = list(contiguous_strides(shape))
        if layout == "F":
            strides = list(reversed(contiguous_strides(shape[::-1])))
        elif layout != "C":
            for axis in range(node.ndim - (layout == "R")):
                if int(node.shape[axis]) > 1:
                    symbol = self.sizes.fresh(0, "s")
                    strides[axis] = symbol
                    self.strides[str(symbol)] = (len(self.inputs), axis)
            if layout == "R":
                strides[-1] = ONE
        buffer = Buffer(f"x{len(self.inputs)}", "input", node.dtype, shape, tuple(strides))
        self.inputs.append(node)
        self.buffers[node] = buffer
        return buffer

    def _place(self, node: Node) -> Buffer | None:
        buffer = self.buffers.get(node)
        if buffer is None and (node not in self.inside or (isinstance(node.op, Constant) and node.ndim > 0)):
            buffer = self._input(node)
        return buffer

    def _temp(self, kind: str, shape: tuple[Poly, ...], dtype: object) -> Buffer:
        buffer = Buffer(self._name("e" if kind == "row" else "t"), kind, np.dtype(dtype), shape, contiguous_strides(shape))  # type: ignore[call-overload]
        (self.rows if kind == "row" else self.temps).append(buffer)
        return buffer

    def _name(self, stem: str) -> str:
        n = self.counters.get(stem, 0)
        self.counters[stem] = n + 1
        return f"{stem}{n}"

    # -- kernels

    def _kernel(self, group: Group, name: str) -> tuple[Kernel, list[Node]]:
        computed: dict[Node, None] = {}

        def make_reader(resolve: Callable[[Node, Position], Expr | None]) -> Reader:
            return _NotingReader(self.sizes, resolve, self._scalar, self._check, computed)

        if group.kind == "gemm":
            body = self._gemm(group.nodes[0])
            kind = "library"
        elif group.kind == "region":
            body = self._region(group.nodes[0], make_reader)
            kind = "nest"
        else:
            body = Nest(group, self.sizes, self._place, make_reader, self._temp, self._name).build()
            kind = "nest"
        nodes = [n for n in self.cluster.nodes if n in computed or n in group.nodes]
        return Kernel(name, kind, body), nodes

    def _scalar(self, node: Node) -> Scalar:
        scalar = self.scalars.get(node)
        if scalar is None:
            scalar = self.scalars[node] = Scalar(f"c{len(self.scalars)}", node.dtype)
            self.constants.append(node.op)
        return scalar

    def _check(self, node: Node) -> int:
        if node not in self.checks:
            self.checks[node] = len(self.errors)
            self.errors.append(node.sources)
        return self.checks[node]

    def _operand(self, node: Node, names: tuple[str, str], reader: Reader) -> tuple[Load, Poly, bool]:
        """(load, leading dimension, transposed) of a matrix operand. Raises Unreadable if no library reads it as it lies."""
        position = self._batch_position(node, names)
        e = reader.read(node, position)
        if not isinstance(e, Load) or e.gathered:
            raise Unreadable(node)
        rows, columns = (e.offset.coefficient(v) for v in names)
        extent_rows = self.sizes.of(node.shape[-2]) if node.ndim > 1 else ONE
        extent_columns = self.sizes.of(node.shape[-1])
        if node.ndim == 1:
            rows = extent_columns if names[0] == "p" else ONE
        if int(node.shape[-1]) == 1:
            columns = ONE
        if node.ndim > 1 and int(node.shape[-2]) == 1:
            rows = extent_columns
        if self._may_be_negative(rows) or self._may_be_negative(columns):
            raise Unreadable(node)
        if columns == ONE and self._positive(rows) >= self._positive(extent_columns):
            return e, rows, False
        if rows == ONE and self._positive(columns) >= self._positive(extent_rows):
            return e, columns, True
        raise Unreadable(node)

    def _may_be_negative(self, stride: Poly) -> bool:
        """Is it a stride of an argument of which nothing is known? A library wants positive ones."""
        return any(self.layouts.get(self.inputs[self.strides[s][0]]) == "S" for s in stride.symbols if s in self.strides)

    def _positive(self, p: Poly) -> int:
        return p.evaluate({**self.sizes.values, **{s: 1 << 40 for s in self.strides}})

    def _batch_position(self, node: Node, names: tuple[str, str]) -> Position:
        matrix = [Index.var(names[1])] if node.ndim == 1 else [Index.var(v) for v in names]
        lead = node.ndim - len(matrix)
        position = [Index() if int(n) == 1 else Index.var(f"z{lead - axis}") for axis, n in enumerate(node.shape[:lead])]
        return tuple(
            Index() if int(n) == 1 else i for n, i in zip(node.shape, [*position, *matrix], strict=True)
        )

    def _gemm(self, node: Node) -> list[Statement]:
        a, b = node.inputs
        reader = Reader(self.sizes, self._load, self._scalar, self._check)
        left = self._operand(a, ("p", "q"), reader)
        right = self._operand(b, ("q", "r"), reader) if b.ndim > 1 else self._column_operand(b, reader)
        out = self.buffers[node]
        (load_a, lda, transpose_a), (load_b, ldb, transpose_b) = left, right
        none = {v: Index() for v in ("p", "q", "r")}
        m = self.sizes.of(a.shape[-2]) if a.ndim > 1 else ONE
        n = self.sizes.of(b.shape[-1]) if b.ndim > 1 else ONE
        k = self.sizes.of(a.shape[-1])
        batch = node.ndim - (a.ndim > 1) - (b.ndim > 1)
        out_offset = Index()
        for axis in range(batch):
            if int(node.shape[axis]) != 1:
                out_offset = out_offset + Index.var(f"z{batch - axis}").scale(out.strides[axis])
        body: list[Statement] = [
            Gemm(
                out, out_offset, load_a.buffer, load_a.offset.substitute(none), lda, transpose_a,
                load_b.buffer, load_b.offset.substitute(none), ldb, transpose_b, m, n, k, node.sources,
            )
        ]  # fmt: skip
        for axis in reversed(range(batch)):
            if int(node.shape[axis]) != 1:
                body = [For(f"z{batch - axis}", (Index(self.sizes.of(node.shape[axis])),), body)]
        return body

    def _column_operand(self, b: Node, reader: Reader) -> tuple[Load, Poly, bool]:
        """A vector on the right: k rows of one column."""
        e = reader.read(b, (Index.var("q") if int(b.shape[0]) != 1 else Index(),))
        stride = e.offset.coefficient("q") if isinstance(e, Load) and not e.gathered else ONE
        if not isinstance(e, Load) or e.gathered or self._may_be_negative(stride):
            raise Unreadable(b)
        return e, stride if stride.terms else ONE, False

    def _region(self, node: Node, make_reader: Callable[..., Reader]) -> list[Statement]:
        """Concatenation and update: values stored into parts of one buffer."""
        out = self.buffers[node]
        reader = make_reader(self._load)
        statements: list[Statement] = []
        if isinstance(node.op, Update):
            base, value = node.inputs
            if self.buffers.get(base) is not out:
                statements += self._copy_nest(out, base, reader, node, lambda position: position)
            statements += self._copy_nest(out, value, reader, node, lambda p: reader.view_position(node.op, p))
            return statements
        if isinstance(node.op, Scatter):
            return self._scatter(node, out, reader)
        start = Index()
        for source in node.inputs:
            at = start

            def moved(position: Position, at: Index = at) -> Position:
                return tuple(i + at if axis == node.op.axis else i for axis, i in enumerate(position))

            statements += self._copy_nest(out, source, reader, node, moved)
            start = start + Index(self.sizes.of(source.shape[node.op.axis]))
        return statements

    def _scatter(self, node: Node, out: Buffer, reader: Reader) -> list[Statement]:
        """The base copied, then each value stored (or added) where its indices say, one after the other."""
        base, value, *indices = node.inputs
        statements = self._copy_nest(out, base, reader, node, lambda position: position)
        names = iter(f"a{axis}" for axis in range(value.ndim))
        position = tuple(Index() if int(n) == 1 else Index.var(next(names)) for n in value.shape)
        rest, picks = gather_positions(node, base, indices, position)
        offset = out.offset(rest)
        gathered = []
        for axis, index_node, where in picks:
            at = CheckedIndex(reader.read(index_node, where), self.sizes.of(base.shape[axis]), self._check(node))
            gathered.append((at, out.strides[axis]))
        new = reader.read(value, position)
        if isinstance(node.op, ScatterAdd):
            new = Apply(Add(), (Load(out, offset, tuple(gathered)), new), node.dtype, sources=node.sources)
        body: list[Statement] = [Store(out, offset, new, node.sources, tuple(gathered))]
        loops = [(i.vars[0], self.sizes.of(n)) for i, n in zip(position, value.shape, strict=True) if i.vars]
        for var, n in reversed(loops):
            body = [For(var, (Index(n),), body)]
        return [*statements, *body]

    def _load(self, node: Node, position: Position) -> Expr | None:
        buffer = self._place(node)
        if buffer is None:
            return None
        return Load(buffer, buffer.offset(position))

    def _copy_nest(
        self, out: Buffer, source: Node, reader: Reader, node: Node, where: Callable[[Position], Position]
    ) -> list[Statement]:
        names = [f"a{axis}" for axis, n in enumerate(source.shape) if int(n) != 1]
        rest = iter(names)
        position = tuple(Index() if int(n) == 1 else Index.var(next(rest)) for n in source.shape)
        offset = out.offset(where(position))
        loops = [(v, self.sizes.of(n)) for v, n in zip(names, (n for n in source.shape if int(n) != 1), strict=True)]
        body: list[Statement] = [Store(out, offset, reader.read(source, position), node.sources)]
        loops, body = collapse(loops, body)
        for i in reversed(range(len(loops))):
            body = [For(loops[i][0], (Index(loops[i][1]),), body, vector=i == len(loops) - 1)]
        return body

    # -- what a kernel costs

    def _info(self, kernel: Kernel, nodes: list[Node]) -> KernelInfo:
        read, written = traffic(kernel, self.sizes)
        flops = 0
        for node in nodes:
            flops += node.op.cost(node.type, *(source.type for source in node.inputs)).flops
        operations = tuple(node for node in nodes if is_operation(node))
        return KernelInfo(kernel.name, self.cluster.name, operations, kernel.kind, read, written, flops)


class _NotingReader(Reader):
    """Remembers which nodes a kernel computes."""

    def __init__(self, sizes: Sizes, resolve: object, scalar: object, check: object, computed: dict[Node, None]) -> None:
        super().__init__(sizes, resolve, scalar, check)  # type: ignore[arg-type]
        self._computed = computed

    def compute(self, node: Node, position: Position) -> Expr:
        self._computed[node] = None
        return super().compute(node, position)


def traffic(kernel: Kernel, sizes: Sizes) -> tuple[int, int]:
    """Bytes a kernel reads and writes in memory: each distinct element once, rows of scratch not at all."""
    loops: dict[str, int] = {}
    read: dict[str, dict[Index, int]] = {}
    written: dict[str, dict[Index, int]] = {}
    whole: dict[str, int] = {}

    def note(table: dict[str, dict[Index, int]], buffer: Buffer, offset: Index, gathered: bool) -> None:
        if buffer.kind == "row":
            return
        size = buffer.dtype.itemsize
        for n in buffer.shape:
            size *= sizes.value(n)
        whole[buffer.name] = size
        touched = buffer.dtype.itemsize
        for v in offset.vars:
            touched *= loops.get(v, 1)
        table.setdefault(buffer.name, {})[offset] = size if gathered else touched

    def visit(e: Expr, seen: set[int]) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        if isinstance(e, Load):
            note(read, e.buffer, e.offset, bool(e.gathered))
        for part in e.parts:
            visit(part, seen)

    for s in walk(kernel.body):
        if isinstance(s, For):
            loops[s.var] = min(sizes.value(i.const) for i in s.extent if not i.vars)
            if s.var == "j" and "b" in loops:  # a block of a whole reduction: together the blocks cover everything
                left = next(i for i in s.extent if i.vars)
                loops["j"], loops["b"] = sizes.value(left.const), 1
        elif isinstance(s, Store):
            note(written, s.buffer, s.offset, bool(s.gathered))
        elif isinstance(s, Gemm):
            for buffer, offset, extent in ((s.a, s.a_offset, s.m * s.k), (s.b, s.b_offset, s.k * s.n)):
                count = sizes.value(extent)
                for v in offset.vars:
                    count *= loops.get(v, 1)
                note(read, buffer, offset, False)
                read[buffer.name][offset] = count * buffer.dtype.itemsize
            count = sizes.value(s.m * s.n)
            for v in s.out_offset.vars:
                count *= loops.get(v, 1)
            note(written, s.out, s.out_offset, False)
            written[s.out.name][s.out_offset] = count * s.out.dtype.itemsize
        for e in expressions(s):
            visit(e, set())
    inner = {name for name in read if name in written}  # written by this kernel and still in cache
    bytes_read = sum(min(whole[name], sum(parts.values())) for name, parts in read.items() if name not in inner)
    return bytes_read, sum(min(whole[name], sum(parts.values())) for name, parts in written.items())

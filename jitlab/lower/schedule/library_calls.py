"""Library calls: products of matrices by a BLAS, which reads views where they lie, and what NumPy computes whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitlab.ir import Node, Poly
from jitlab.ir.programs.program import ONE, Buffer, Call, For, Gemm, Index, Load, Statement
from jitlab.lower.sizes import Sizes

from .inlining import Position, Reader, Unreadable

if TYPE_CHECKING:
    from jitlab.lower.fusion.stages import Stage

    from .statements import BlockWriter

#: What takes the place of a stride that is a run-time symbol when strides are compared: an argument's may be large.
FAR = 1 << 40


class Library:
    """Writes the call for one product. `may_be_negative(stride)`: is it the stride of an argument of which nothing is known?"""

    def __init__(self, reader: Reader, sizes: Sizes, unknown: set[str], signless: set[str]) -> None:
        self.reader, self.sizes = reader, sizes
        self._unknown = unknown  # symbols that are strides of arguments,
        self._signless = signless  # and those among them that may be negative

    def gemm(self, node: Node, out: Buffer) -> list[Statement]:
        a, b = node.inputs
        left = self._operand(a, ("p", "q"))
        right = self._operand(b, ("q", "r")) if b.ndim > 1 else self._column(b)
        (load_a, lda, transpose_a), (load_b, ldb, transpose_b) = left, right
        none = {v: Index() for v in ("p", "q", "r")}
        m = self.sizes.of(a.shape[-2]) if a.ndim > 1 else ONE
        n = self.sizes.of(b.shape[-1]) if b.ndim > 1 else ONE
        k = self.sizes.of(a.shape[-1])
        batch = node.ndim - (a.ndim > 1) - (b.ndim > 1)
        out_offset = Index()
        for axis in range(batch):
            if node.shape[axis] != 1:
                out_offset = out_offset + Index.var(f"z{batch - axis}").scale(out.strides[axis])
        body: list[Statement] = [
            Gemm(
                out, out_offset, load_a.buffer, load_a.offset.substitute(none), lda, transpose_a,
                load_b.buffer, load_b.offset.substitute(none), ldb, transpose_b, m, n, k,
                node.origins | load_a.origins | load_b.origins,
            )
        ]  # fmt: skip
        for axis in reversed(range(batch)):
            if node.shape[axis] != 1:
                body = [For(f"z{batch - axis}", (Index(self.sizes.of(node.shape[axis])),), body)]
        return body

    def _operand(self, node: Node, names: tuple[str, str]) -> tuple[Load, Poly, bool]:
        """(load, leading dimension, transposed) of a matrix operand. Raises Unreadable if no library reads it as it lies."""
        e = self.reader.read(node, self._position(node, names))
        if not isinstance(e, Load) or e.gathered:
            raise Unreadable(node)
        rows, columns = (e.offset.coefficient(v) for v in names)
        extent_rows = self.sizes.of(node.shape[-2]) if node.ndim > 1 else ONE
        extent_columns = self.sizes.of(node.shape[-1])
        if node.ndim == 1:
            rows = extent_columns if names[0] == "p" else ONE
        if node.shape[-1] == 1:
            columns = ONE
        if node.ndim > 1 and node.shape[-2] == 1:
            rows = extent_columns
        if self._may_be_negative(rows) or self._may_be_negative(columns):
            raise Unreadable(node)
        if columns == ONE and self._positive(rows) >= self._positive(extent_columns):
            return e, rows, False
        if rows == ONE and self._positive(columns) >= self._positive(extent_rows):
            return e, columns, True
        raise Unreadable(node)

    def _column(self, b: Node) -> tuple[Load, Poly, bool]:
        """A vector on the right: k rows of one column."""
        e = self.reader.read(b, (Index.var("q") if b.shape[0] != 1 else Index(),))
        stride = e.offset.coefficient("q") if isinstance(e, Load) and not e.gathered else ONE
        if not isinstance(e, Load) or e.gathered or self._may_be_negative(stride):
            raise Unreadable(b)
        return e, stride if stride.terms else ONE, False

    def _position(self, node: Node, names: tuple[str, str]) -> Position:
        matrix = [Index.var(names[1])] if node.ndim == 1 else [Index.var(v) for v in names]
        lead = node.ndim - len(matrix)
        position = [Index() if n == 1 else Index.var(f"z{lead - axis}") for axis, n in enumerate(node.shape[:lead])]
        return tuple(Index() if n == 1 else i for n, i in zip(node.shape, [*position, *matrix], strict=True))

    def _may_be_negative(self, stride: Poly) -> bool:
        return not self._signless.isdisjoint(stride.symbols)

    def _positive(self, p: Poly) -> int:
        return p.evaluate({**self.sizes.values, **self.sizes.samples, **dict.fromkeys(self._unknown, FAR)})


def write_call(writer: BlockWriter, stage: Stage, computed: dict[Node, None]) -> list[Statement]:
    """The call of an operation that a library computes; operands that lie nowhere are stored first."""
    node, shared = stage.node, writer.shared
    computed[node] = None
    statements: list[Statement] = []
    ins: dict[Node, Buffer] = {}
    for source in node.inputs:
        if source in ins:
            continue
        buffer = _place(writer, source)
        if buffer is None:
            buffer = shared.temp("temp", tuple(writer.sizes.of(n) for n in source.shape), source.dtype)
            statements += writer.copy(buffer, source, writer.reader(computed), node)
        ins[source] = buffer
    first: dict[int, Node] = {}
    again = [item for item in stage.items if first.setdefault(item.op.index, item) is not item]
    results = [first[index] for index in sorted(first)] or [node]
    outs = tuple(writer.buffers[result] for result in results)
    extents = tuple(tuple(writer.sizes.of(n) for n in array.shape) for array in (*results, *node.inputs))
    number = len(shared.calls)
    shared.calls.append(node.op)
    code = shared.check(node) if node.op.may_fail else -1
    call = Call(number, str(node.op), outs, tuple(ins[s] for s in node.inputs), extents, code, node.origins)
    statements.append(call)
    computed.update(dict.fromkeys(results))
    for item in again:  # merged calls: a result that is wanted at several places
        statements += writer.copy(writer.buffers[item], first[item.op.index], writer.reader(computed), node)
    return statements


def _place(writer: BlockWriter, source: Node) -> Buffer | None:
    """Where a value lies, in this block or around it."""
    around: BlockWriter | None = writer
    while around is not None:
        buffer = around.place(source)
        if buffer is not None or source not in around.captured:
            return buffer
        source, around = around.captured[source], around.around
    return None

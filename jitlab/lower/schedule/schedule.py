"""From a group of stages to a loop nest: loops, passes over a row, lanes, what is kept in a row of scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jitlab.ir import Node, Poly
from jitlab.ir.programs.program import (
    LANES,
    ONE,
    PARALLEL,
    SERIAL,
    Accumulator,
    Apply,
    Buffer,
    CheckedIndex,
    Expr,
    Finish,
    For,
    Index,
    IndexValue,
    Let,
    Load,
    Local,
    Partial,
    Statement,
    Step,
    Store,
    contiguous_strides,
    expressions,
    walk,
)
from jitlab.lower.fusion.groups import Group
from jitlab.lower.fusion.recomputing import work
from jitlab.lower.fusion.stages import Stage, contraction
from jitlab.lower.sizes import Sizes
from jitlab.ops.base import Reduction
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass

from .inlining import Position, Reader
from .ranges import Ranges

if TYPE_CHECKING:
    from . import memory_order
else:
    memory_order = Later(f"{__package__}.memory_order")


@dataclass
class Pass:
    """One loop over the inner axes of a row (or one scalar step), with what it stores and accumulates."""

    inner: tuple[Poly, ...]
    stages: list[Stage] = field(default_factory=list)
    statements: list[Store | Step] = field(default_factory=list)
    accumulators: list[Accumulator] = field(default_factory=list)


class PlainSum(Sum):
    """A sum without compensation: of products, or of few elements."""

    compensated: ClassVar[bool] = False


class Nest:
    """Builds the body of one kernel. `ranges`: of the loops around it, where it stands in a body: there numbers stay in
    registers, and a reduction is one loop."""

    def __init__(
        self,
        group: Group,
        sizes: Sizes,
        place: Callable[[Node], Buffer | None],
        find: Callable[[Node, Position], Expr | None],
        make_reader: Callable[[Callable[[Node, Position], Expr | None]], Reader],
        temp: Callable[[str, tuple[Poly, ...], object], Buffer],
        name: Callable[[str], str],
        ranges: Ranges | None = None,
    ) -> None:
        self.shape = sizes.shape
        self.group, self.sizes, self.place, self.find, self.temp, self.name = group, sizes, place, find, temp, name
        self.ranges = ranges
        self.own = {stage.node: stage for stage in group.stages}
        self.again = set[Node]()
        for stage in group.stages:
            self.again |= stage.again
        self.reader = make_reader(self._resolve)
        self.results: dict[Node, Local] = {}

    def build(self) -> list[Statement]:
        if self.group.kind == "map":
            return self._map()
        if self.group.kind == "row":
            return self._rows() if self.group.outer else self._whole()
        if self.group.kind == "scan":
            return self._scan()
        return self._column()

    # -- the three shapes

    def _map(self) -> list[Statement]:
        """Every stage over one space, in one nest."""
        space = self.group.stages[0].space
        names = [f"a{axis}" for axis in range(len(space))]
        body: list[Statement] = [self._store(stage) for stage in self.group.stages]
        loops = [(v, n) for v, n in zip(names, space, strict=True)]
        if self.ranges is not None:
            return self._loops(loops, body)  # joined with its neighbours first
        return self._loops(*collapse(loops, body))

    def _rows(self) -> list[Statement]:
        """Outer loops shared by all stages; passes over the inner axes, one after the other."""
        k = len(self.group.outer)
        passes = self._passes(k)
        if memory_order.reduces_at_once(self.group) and memory_order.is_turned(order := self._order(passes[0])):
            return self._reduced(passes[0], order, [s for p in passes[1:] for s in p.statements], only_stored=False)
        inner = [p for p in passes if p.inner]
        in_order = all(self._extent_value(p.inner) <= self.shape.short_elements for p in inner)
        in_order = in_order and self._value(self.group.outer[-1]) >= self.shape.vector_elements
        in_order = in_order or all(memory_order.only_reduces(p.stages) and self._order(p)[-1] == k - 1 for p in inner)
        if not in_order:
            self._keep_expensive(passes, k)
        body: list[Statement] = []
        for p in passes:
            loops = [(f"a{k + axis}", n) for axis, n in enumerate(p.inner)]
            body.extend(self._loops(*collapse(loops, list(p.statements)), p.accumulators, lanes=not in_order))
        return self._loops([(f"a{axis}", n) for axis, n in enumerate(self.group.outer)], body)

    def _whole(self) -> list[Statement]:
        """A reduction of everything: partial results of blocks, then one of them all; scalar work follows."""
        looped = [stage for stage in self.group.stages if stage.space]
        statements: list[Statement] = []
        tail: list[Statement] = []  # what needs the results, in the order of the stages
        if looped:
            p = Pass(looped[0].space)
            for stage in looped:
                self._add(p, stage)
            order = self._order(p) if memory_order.only_reduces(looped) else range(len(p.inner))
            self._number(p, order)
            axes = [(f"a{axis}", p.inner[axis]) for axis in order]
            if self.ranges is None:
                blocks, finishes = self._blocks(p, axes)
                statements.append(blocks)
                tail.extend(finishes)
            else:
                loops, body = collapse(axes, list(p.statements))
                statements += self._loops(loops, body, p.accumulators, lanes=True)
            for accumulator, stage in zip(p.accumulators, (s for s in looped if s.kind == "reduce"), strict=True):
                self._bind(stage, accumulator)
                tail.extend(self._stored_result(stage))
        for stage in self.group.stages:
            if stage.space:
                continue
            if stage.kind == "map":
                tail.append(self._store(stage))
                continue
            p = Pass(())
            self._add(p, stage)
            tail.extend(self._loops([], list(p.statements), p.accumulators))
            self._bind(stage, p.accumulators[0])
            tail.extend(self._stored_result(stage))
        return [*statements, *tail] if self.ranges is not None else [*statements, For("z", (Index(ONE),), tail)]

    def _stored_result(self, stage: Stage) -> list[Statement]:
        return [self._store_result(stage)] if self.place(stage.node) is not None else []

    def _blocks(self, p: Pass, axes: list[tuple[str, Poly]]) -> tuple[Statement, list[Statement]]:
        loops, body = collapse(axes, list(p.statements))
        total = ONE
        for _, n in loops:
            total = total * n
        if len(loops) == 1:
            (var, n) = loops[0]
            size = self.shape.block_elements
            count = self.sizes.quotient(n, size, up=True)
            block, inside = "b", "j"
            at = Index.of(Poly(), {block: Poly.constant(size), inside: ONE})
            body = substitute(body, {var: at})
            left = Index.of(n, {block: Poly.constant(-size)})
            inner: Statement = For(inside, (Index(Poly.constant(size)), left), body, LANES, p.accumulators, finish=False)
        else:
            (block, count), *rest = loops
            (nest,) = self._loops(rest, body, p.accumulators, lanes=True)
            assert isinstance(nest, For)
            nest.finish = False
            inner = nest
        partials = {a.name: self._partials(a, count) for a in p.accumulators}
        leave: list[Statement] = [Partial(a, partials[a.name], Index.var(block)) for a in p.accumulators]
        outer = For(block, (Index(count),), [inner, *leave], PARALLEL)
        return outer, [Finish(a, partials[a.name], count, total) for a in p.accumulators]

    def _column(self) -> list[Statement]:
        """Kept axes outside, reduced ones inside."""
        looped = [s for s in self.group.stages if s.kind == "reduce"]
        after = [s for s in self.group.stages if s.kind == "map"]
        first = looped[0]
        p = Pass(first.space)
        for stage in looped:
            self._add(p, stage)
        rename = {f"a{n}": Index.var(f"a{axis}") for n, axis in enumerate(_axes(first, gone=False))}
        stored: list[Statement] = []
        for accumulator, stage in zip(p.accumulators, looped, strict=True):
            self._bind(stage, accumulator)
            if self.place(stage.node) is not None:
                stored.extend(substitute([self._store_result(stage)], rename, only_offsets=True))
        for stage in after:
            # A map over the kept axes counts them from 0: its a<position> is the nest's a<axis>.
            stored.extend(substitute([self._store(stage)], rename))
        order = self._order(p) if memory_order.only_reduces(looped) else range(len(first.space))
        return self._reduced(p, order, stored, only_stored=not after)

    def _reduced(self, p: Pass, order: Sequence[int], after: list[Statement], only_stored: bool) -> list[Statement]:
        """Kept axes outside, reduced ones inside, both in this order: one after the other where the last axis is kept, else
        over lanes. `after`: what becomes of the results, `only_stored` if no more than that."""
        first = next(s for s in self.group.stages if s.kind == "reduce")
        kept = [axis for axis in order if not first.reduced[axis]]
        gone = [axis for axis in order if first.reduced[axis]]
        last_kept = order[-1] == kept[-1]
        inner = [(f"a{axis}", first.space[axis]) for axis in gone]
        outer = [(f"a{axis}", first.space[axis]) for axis in kept]
        self._number(p, gone)
        steps: list[Statement] = list(p.statements)
        if memory_order.is_turned(order):
            inner, steps = collapse(inner, steps)
        alone = self.ranges is None and last_kept and [*order[:-2], order[-1]] == kept
        if alone and self._is_tall(p, first.space[gone[0]], outer[-1][1]):
            if len(outer) == 1 and only_stored and all(isinstance(a.op, PlainSum) for a in p.accumulators):
                return self._added_in_row_blocks(p, outer[0], gone[0], first.space[gone[0]], after)
            return self._in_row_blocks(p, outer, gone[0], first.space[gone[0]], after)
        return self._loops(outer, [*self._loops(inner, steps, p.accumulators, lanes=not last_kept), *after])

    def _order(self, p: Pass) -> Sequence[int]:
        """The axes of the space as they lie in memory, where vectors along the last one are whole."""
        first = p.stages[0]
        as_they_are = range(len(first.space))
        if any(a.op.keeps_position for a in p.accumulators) and sum(first.reduced) > 1:
            return as_they_are
        order = memory_order.order_of([s.value for s in p.statements if isinstance(s, Step)], len(first.space), self._value)
        is_long = memory_order.is_turned(order) and self._value(first.space[order[-1]]) >= self.shape.vector_elements
        return order if is_long else as_they_are

    def _number(self, p: Pass, order: Sequence[int]) -> None:
        """Elements are counted in the order in which the reduced axes are gone through."""
        gone = [axis for axis in order if p.stages[0].reduced[axis]]
        if memory_order.is_turned(gone):
            index = _position([(f"a{axis}", p.stages[0].space[axis]) for axis in gone])
            p.statements = [Step(s.accumulator, s.value, index, s.origins) for s in p.statements if isinstance(s, Step)]

    def _is_tall(self, p: Pass, rows: Poly, columns: Poly) -> bool:
        """Worth taking blocks of rows: the columns of one vector would touch a page a row."""
        size = p.accumulators[0].dtype.itemsize * self._value(rows) * self._value(columns)
        shape = self.shape
        is_tall = self._value(rows) >= 4 * shape.block_rows and size >= shape.tall_bytes
        return is_tall and self._value(columns) >= shape.wide_columns

    def _in_row_blocks(
        self, p: Pass, outer: list[tuple[str, Poly]], axis: int, rows: Poly, after: list[Statement]
    ) -> list[Statement]:
        """Rows in blocks: each gives a row of partial results, which are joined at the end. Memory is read along its rows."""
        *batch, (column, columns) = outer
        row, block, size = f"a{axis}", "b", self.shape.block_rows
        count = self.sizes.quotient(rows, size, up=True)
        position, length = Index(), ONE
        for v, n in reversed(batch):
            position = position + Index.var(v).scale(length)
            length = length * n
        base = position.scale(count * columns) + Index.var(column)
        partials = {
            a.name: tuple(self.temp("temp", (length * count * columns,), dtype) for dtype in accumulator_dtypes(a))
            for a in p.accumulators
        }
        at = Index.of(Poly(), {block: Poly.constant(size), row: ONE})
        left = Index.of(rows, {block: Poly.constant(-size)})
        steps = substitute(list(p.statements), {row: at})
        inner = For(row, (Index(Poly.constant(size)), left), steps, SERIAL, p.accumulators, finish=False)
        stored = [Partial(a, partials[a.name], base + Index.var(block).scale(columns)) for a in p.accumulators]
        first = self._loops([*batch, (block, count), (column, columns)], [inner, *stored])
        joined = [Finish(a, partials[a.name], count, rows, base, columns) for a in p.accumulators]
        return [*first, *self._loops(outer, [*joined, *after])]

    def _added_in_row_blocks(
        self, p: Pass, kept: tuple[str, Poly], axis: int, rows: Poly, stored: list[Statement]
    ) -> list[Statement]:
        """As `_in_row_blocks`, for sums that need no compensation: each block is added to the result."""
        row, block = f"a{axis}", "b"
        wide = self._value(kept[1]) * p.accumulators[0].dtype.itemsize >= self.shape.wide_row_bytes
        size = self.shape.few_block_rows if wide else self.shape.block_rows
        count = self.sizes.quotient(rows, size, up=True)
        at = Index.of(Poly(), {block: Poly.constant(size), row: ONE})
        left = Index.of(rows, {block: Poly.constant(-size)})
        steps = substitute(list(p.statements), {row: at})
        inner = For(row, (Index(Poly.constant(size)), left), steps, SERIAL, p.accumulators)
        started: list[Statement] = []
        added: list[Statement] = []
        for s in stored:
            assert isinstance(s, Store)
            zero = Apply(Cast(s.buffer.dtype), (IndexValue(Index()),), s.buffer.dtype)
            started.append(Store(s.buffer, s.offset, zero, s.origins))
            total = Apply(Add(), (Load(s.buffer, s.offset), s.value), s.buffer.dtype, origins=s.origins)
            added.append(Store(s.buffer, s.offset, total, s.origins))
        return [*self._loops([kept], started), For(block, (Index(count),), self._loops([kept], [inner, *added]))]

    def _scan(self) -> list[Statement]:
        """Every stage over one space; the scanned axis is the innermost loop, from its first element on or from its last."""
        first = next(stage for stage in self.group.stages if stage.kind == "scan")
        assert first.along is not None
        accumulators: list[Accumulator] = []
        body: list[Statement] = []
        for stage in self.group.stages:
            if stage.kind == "scan":
                value = self.reader.read(stage.node.inputs[0], self._position(stage.node))
                accumulators.append(Accumulator(self.name("r"), stage.node.op, value.dtype, stage.node.dtype))
                bound = self.name("s")
                at = Index.var(f"a{first.along}")
                body.append(Step(accumulators[-1], value, at, stage.node.origins, bound))
                self.results[stage.node] = Local(bound, stage.node.dtype)
                body.append(self._store_result(stage))
            else:
                body.append(self._store(stage))
        var, n = f"a{first.along}", first.space[first.along]
        if first.node.op.reverse:
            body = substitute(body, {var: Index.of(n - ONE, {var: Poly.constant(-1)})})
            for s in body:
                if isinstance(s, Step):
                    s.index = Index.var(var)
        others = [(f"a{axis}", m) for axis, m in enumerate(first.space) if axis != first.along]
        return self._loops(*collapse(others, self._loops([(var, n)], body, accumulators)))

    # -- passes

    def _passes(self, k: int) -> list[Pass]:
        passes: list[Pass] = []
        made: dict[Node, Pass] = {}
        results = Pass(())  # reductions that others want are stored when the row is done
        for stage in self.group.stages:
            inner = stage.space[k:]
            waits = [node for node, _ in stage.refs if node in made]
            last = passes[-1] if passes else None
            if last is None or last.inner != inner or any(self._blocks_pass(n, made[n], last, stage) for n in waits):
                last = Pass(inner)
                passes.append(last)
            self._add(last, stage)
            made[stage.node] = last
            if stage.kind == "reduce":
                self._bind(stage, last.accumulators[-1])
                if self.place(stage.node) is not None:
                    results.statements.append(self._store_result(stage))
        return [*passes, results] if results.statements else passes

    def _blocks_pass(self, node: Node, made_in: Pass, last: Pass, stage: Stage) -> bool:
        """Must `stage` wait for the pass `last` to end before it reads `node`?"""
        if made_in is not last:
            return False
        if self.own[node].kind == "reduce":
            return True
        full = tuple(f"a{axis}" for axis in range(len(stage.space)))
        positions = [p for n, p in stage.refs if n is node]
        return any([i for i in p if i.terms] != [Index.var(v) for v in full] for p in positions)

    def _add(self, p: Pass, stage: Stage) -> None:
        p.stages.append(stage)
        if stage.kind == "map":
            p.statements.append(self._store(stage))
            return
        node = stage.node
        if isinstance(node.op, Product):
            _, _, value = contraction(node, self.reader, self.sizes)
            op: Reduction = PlainSum(axes=(0,))
            count: Poly = self.sizes.of(node.inputs[0].shape[-1])
        else:
            op = node.op
            (x,) = node.inputs
            value = self.reader.read(x, self._position(x))
            count = ONE
            for axis in op.axes:
                count = count * self.sizes.of(x.shape[axis])
            if type(op) is Sum and self._is_short(count):
                op = PlainSum(op.axes)
        accumulator = Accumulator(self.name("r"), op, value.dtype, node.dtype, Index(count))
        p.accumulators.append(accumulator)
        p.statements.append(Step(accumulator, value, self._reduced_position(stage), node.origins))

    def _is_short(self, count: Poly) -> bool:
        """In a body: so few elements that a plain sum is exact enough?"""
        if self.ranges is None:
            return False
        if all(name in self.sizes.origins for name in count.symbols):
            return self.sizes.value(count) <= self.shape.plain_sum_elements
        most = self.ranges.greatest(count)
        return most is not None and most <= self.shape.plain_sum_elements

    def _bind(self, stage: Stage, accumulator: Accumulator) -> None:
        self.results[stage.node] = Local(accumulator.name, stage.node.dtype)

    def _reduced_position(self, stage: Stage) -> Index:
        """The element's number along the flattened reduced axes."""
        return _position([(f"a{axis}", stage.space[axis]) for axis in _axes(stage, gone=True)])

    def _keep_expensive(self, passes: Sequence[Pass], k: int) -> None:
        """What a pass computed at some cost and a later pass needs again stays in a row of scratch."""
        inner_vars = {f"a{axis}" for axis in range(k, k + 8)}
        made: dict[int, Pass] = {}
        kept: dict[int, Load] = {}
        for p in passes:
            statements: list[Store | Step] = []
            for s in p.statements:
                replaced: dict[int, Expr] = {}
                for root in expressions(s):
                    self._find_expensive(root, p, made, kept, inner_vars, k, replaced, set())
                statements.append(replace(s, replaced) if replaced else s)
            p.statements[:] = statements
            for s in p.statements:
                for root in expressions(s):
                    _mark(root, p, made)

    def _find_expensive(
        self, e: Expr, p: Pass, made: dict[int, Pass], kept: dict[int, Load], inner: set[str], k: int,
        replaced: dict[int, Expr], seen: set[int],
    ) -> None:  # fmt: skip
        if id(e) in seen:
            return
        seen.add(id(e))
        earlier = made.get(id(e))
        again = earlier is not None and earlier is not p and earlier.inner == p.inner
        most = self.shape.row_operations
        if earlier is not None and again and e.depends & inner and work(e, self.shape, most) >= most:
            if id(e) not in kept:
                kept[id(e)] = self._keep(e, earlier, k)
            replaced[id(e)] = kept[id(e)]
            return
        for part in e.parts:
            self._find_expensive(part, p, made, kept, inner, k, replaced, seen)

    def _keep(self, e: Expr, p: Pass, k: int) -> Load:
        strides = contiguous_strides(p.inner)
        offset = Index()
        for axis, stride in enumerate(strides):
            offset = offset + Index.var(f"a{k + axis}").scale(stride)
        for s in p.statements:
            if isinstance(s, Store) and s.value is e and not s.gathered and self._is_cached(s.buffer):
                return Load(s.buffer, s.offset)
        row = self.temp("row", p.inner, e.dtype)
        p.statements.insert(0, Store(row, offset, e, e.origins))
        return Load(row, offset)

    def _is_cached(self, buffer: Buffer) -> bool:
        """Is it a good place to read back from?"""
        return buffer.kind != "output" or self._extent_value(buffer.shape) * buffer.dtype.itemsize < self.shape.stream_bytes

    # -- statements

    def _store(self, stage: Stage) -> Store:
        node = stage.node
        buffer = self.place(node)
        assert buffer is not None
        position = self._position(node)
        return Store(buffer, buffer.offset(position), self.reader.read(node, position), node.origins, position=position)

    def _store_result(self, stage: Stage) -> Store:
        buffer = self.place(stage.node)
        assert buffer is not None
        return Store(buffer, buffer.offset(self._position(stage.node)), self.results[stage.node], stage.node.origins)

    def _position(self, node: Node) -> Position:
        names = iter(f"a{i}" for i in range(node.ndim))
        return tuple(Index() if n == 1 else Index.var(next(names)) for n in node.shape)

    def _resolve(self, node: Node, position: Position) -> Expr | None:
        if node in self.results:
            return self.results[node]
        stage = self.own.get(node)
        if stage is not None and stage.kind == "map" and position == self._position(node):
            return None  # made in this very iteration
        if node in self.again:
            return None
        return self.find(node, position)

    def _partials(self, accumulator: Accumulator, count: Poly) -> tuple[Buffer, ...]:
        return tuple(self.temp("temp", (count,), dtype) for dtype in accumulator_dtypes(accumulator))

    def _loops(
        self,
        loops: Sequence[tuple[str, Poly]],
        body: list[Statement],
        accumulators: Sequence[Accumulator] = (),
        lanes: bool = False,
    ) -> list[Statement]:
        """Loops whose iterations each store elements of their own; with accumulators, loops of a reduction, the innermost
        perhaps over lanes."""
        if not loops and accumulators:
            loops, lanes = [("one", ONE)], False
        kind = SERIAL if accumulators else PARALLEL
        for position in reversed(range(len(loops))):
            var, n = loops[position]
            is_last = position == len(loops) - 1
            body = [For(var, (Index(n),), body, LANES if lanes and is_last and accumulators else kind)]
        if accumulators:
            body[0].accumulators = list(accumulators)  # type: ignore[union-attr]
        return body

    def _value(self, n: Poly) -> int:
        return self.sizes.value(n)

    def _extent_value(self, extents: Sequence[Poly]) -> int:
        total = 1
        for n in extents:
            total *= self._value(n)
        return total


def _axes(stage: Stage, *, gone: bool) -> list[int]:
    """The axes of its space that it reduces, or those that it keeps."""
    return [axis for axis, is_gone in enumerate(stage.reduced) if is_gone == gone]


def _position(loops: Sequence[tuple[str, Poly]]) -> Index:
    """The number of an iteration among those of all the loops."""
    position = Index()
    for (var, _), stride in zip(loops, contiguous_strides([n for _, n in loops]), strict=True):
        position = position + Index.var(var).scale(stride)
    return position


class _Probe:
    """An emitter that only tells dtypes: enough for a reduction's start."""

    def __init__(self, dtype: object = None) -> None:
        self.dtype = dtype

    def constant(self, value: object, dtype: object) -> _Probe:
        return _Probe(np.dtype(dtype))  # type: ignore[call-overload]


def accumulator_dtypes(accumulator: Accumulator) -> tuple[object, ...]:
    """The dtypes of an accumulator's parts."""
    start = accumulator.op.start(_Probe(), accumulator.dtype)
    return tuple(part.dtype for part in (start if isinstance(start, tuple) else (start,)))


def collapse(
    loops: Sequence[tuple[str, Poly]], body: list[Statement]
) -> tuple[list[tuple[str, Poly]], list[Statement]]:
    """for a in 0..n: for b in 0..m -> for b in 0..n*m, where every access moves along a as m steps along b do."""
    result = list(loops)
    position = len(result) - 1
    while position > 0:
        (a, n), (b, m) = result[position - 1], result[position]
        if all(i.coefficient(a) == i.coefficient(b) * m for i in _indices(body)):
            body = substitute(body, {a: Index()})
            result[position - 1 : position + 1] = [(b, n * m)]
        position -= 1
    return result, body


def _indices(statements: Sequence[Statement]) -> list[Index]:
    found: list[Index] = []
    seen: set[int] = set()

    def visit(e: Expr) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        if isinstance(e, Load):
            found.append(e.offset)
        elif isinstance(e, IndexValue):
            found.append(e.index)
        for part in e.parts:
            visit(part)

    for s in walk(statements):
        if isinstance(s, Store):
            found.append(s.offset)
        elif isinstance(s, Step):
            found.append(s.index)
        for e in expressions(s):
            visit(e)
    return found


def substitute(
    statements: Sequence[Statement], values: dict[str, Index], *, only_offsets: bool = False, positions: bool = False
) -> list[Statement]:
    """The statements with loop variables replaced; shared expressions stay shared. `positions`: those by axis are kept."""
    memo: dict[int, Expr] = {}

    def at(position: Position | None) -> Position | None:
        return tuple(i.substitute(values) for i in position) if positions and position is not None else None

    def new(e: Expr) -> Expr:
        done = memo.get(id(e))
        if done is not None:
            return done
        result: Expr
        if isinstance(e, Load):
            gathered = tuple((new(g), k) for g, k in e.gathered)
            result = Load(e.buffer, e.offset.substitute(values), gathered, at(e.position), e.origins)
        elif isinstance(e, IndexValue):
            result = IndexValue(e.index.substitute(values), origins=e.origins)
        else:
            result = _rebuilt(e, new)
        memo[id(e)] = result
        return result

    out: list[Statement] = []
    for s in statements:
        if isinstance(s, Store):
            value = s.value if only_offsets else new(s.value)
            gathered = tuple((new(g), k) for g, k in s.gathered)
            out.append(Store(s.buffer, s.offset.substitute(values), value, s.origins, gathered, at(s.position)))
        elif isinstance(s, Step):
            out.append(Step(s.accumulator, new(s.value), s.index.substitute(values), s.origins, s.bound))
        elif isinstance(s, Let):
            out.append(Let(s.name, new(s.value), s.origins))
        else:
            assert isinstance(s, For)
            extent = tuple(i.substitute(values) for i in s.extent)
            body = substitute(s.body, values, positions=positions)
            out.append(For(s.var, extent, body, s.kind, s.accumulators, s.finish))
    return out


def replace(s: Store | Step, values: dict[int, Expr]) -> Store | Step:
    """The statement with whole expressions replaced, by identity."""
    new = _replacing(values)
    if isinstance(s, Store):
        return Store(s.buffer, s.offset, new(s.value), s.origins, tuple((new(g), k) for g, k in s.gathered), s.position)
    return Step(s.accumulator, new(s.value), s.index, s.origins, s.bound)


def replaced(e: Expr, values: dict[int, Expr]) -> Expr:
    """The expression with parts replaced, by identity."""
    return _replacing(values)(e)


def _replacing(values: dict[int, Expr]) -> Callable[[Expr], Expr]:
    memo: dict[int, Expr] = dict(values)

    def new(e: Expr) -> Expr:
        done = memo.get(id(e))
        if done is None:
            done = memo[id(e)] = _rebuilt(e, new)
        return done

    return new


def _rebuilt(e: Expr, new: Callable[[Expr], Expr]) -> Expr:
    parts = [new(part) for part in e.parts]
    if all(a is b for a, b in zip(parts, e.parts, strict=True)):
        return e
    if isinstance(e, Apply):
        n = len(e.indices)
        return Apply(e.op, tuple(parts[n:]), e.dtype, tuple(parts[:n]), e.origins)
    if isinstance(e, CheckedIndex):
        return CheckedIndex(parts[0], e.extent, e.code, origins=e.origins)
    assert isinstance(e, Load)
    gathered = tuple((part, k) for part, (_, k) in zip(parts, e.gathered, strict=True))
    return Load(e.buffer, e.offset, gathered, e.position, e.origins)


def _mark(e: Expr, p: Pass, made: dict[int, Pass]) -> None:
    if id(e) in made:
        return
    made[id(e)] = p
    for part in e.parts:
        _mark(part, p, made)

"""What a kernel moves, bytes read and written in memory, and what it computes; where a Program's temporaries lie: memory that
no later kernel reads is given to the next one that asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from jitlab.ir.extents import Poly
from jitlab.ir.graphs.graph import Node

from .program import (
    Apply,
    Buffer,
    Call,
    Expr,
    Finish,
    For,
    Gemm,
    Index,
    Kernel,
    Let,
    Load,
    Program,
    Repeat,
    Statement,
    Store,
    all_expressions,
    blocks,
    expressions,
    walk,
    written,
)

#: Each piece of scratch memory starts at a multiple of so many bytes.
ALIGNMENT = 128

Gathered = tuple[tuple[Expr, Poly], ...]


class Valued(Protocol):
    """Who knows the values of polynomials."""

    def value(self, p: Poly) -> int: ...


def traffic(kernel: Kernel, sizes: Valued) -> tuple[int, int]:
    """Bytes a kernel reads and writes in memory: each distinct element once, rows of scratch not at all. Where integers say
    which elements, as many as they can name: whether they name some twice only the data know. A loop of the user's that goes
    over arrays moves in each of its turns what it moves in one; of a loop without a count one turn is counted."""
    body = list(_opened(kernel.body, sizes))
    turns = [s for s in body if _sweeps(s)]
    if turns:
        rest = Kernel(kernel.name, kernel.kind, [s for s in body if not _sweeps(s)])
        bytes_read, bytes_written = traffic(rest, sizes)
        for s in turns:
            assert isinstance(s, Repeat)
            read_once, written_once = traffic(Kernel(kernel.name, kernel.kind, [*s.before, *s.body]), sizes)
            count = 1 if s.count is None else max(sizes.value(s.count), 0)
            bytes_read, bytes_written = bytes_read + count * read_once, bytes_written + count * written_once
        return bytes_read, bytes_written
    return _distinct(kernel, sizes)


def is_per_turn(kernel: Kernel) -> bool:
    """A loop of the user's whose turns only a run counts goes over arrays: of what it moves, one turn is counted."""
    return any(isinstance(s, Repeat) and s.count is None and _sweeps(s) for s in walk(kernel.body))


def _opened(body: Sequence[Statement], sizes: Valued) -> Iterator[Statement]:
    """The statements, those of loops that are around others for form's sake and run once among them."""
    for s in body:
        if isinstance(s, For) and not s.accumulators and any(not i.vars and sizes.value(i.const) == 1 for i in s.extent):
            yield from _opened(s.body, sizes)
        else:
            yield s


def _sweeps(s: Statement) -> bool:
    """Is it a loop of the user's with a whole loop, product or call in it?"""
    return isinstance(s, Repeat) and any(isinstance(part, (For, Gemm, Call)) for part in walk([*s.before, *s.body]))


def _distinct(kernel: Kernel, sizes: Valued) -> tuple[int, int]:
    """Bytes of the distinct elements that a kernel reads and writes."""
    read, written = touched(kernel, sizes)
    return sum(read.values()), sum(written.values())


def touched(kernel: Kernel, sizes: Valued) -> tuple[dict[str, int], dict[str, int]]:
    """The same of each buffer; what the kernel itself has written before is not read from memory."""
    loops: dict[str, int] = {}
    bound = {made.name for s in walk(kernel.body) for made in ((s,) if isinstance(s, Let) else getattr(s, "accumulators", ()))}
    read: dict[str, dict[Index, int]] = {}
    written: dict[str, dict[Index, int]] = {}
    whole: dict[str, int] = {}
    given: set[str] = set()  # read before anything is written there: what the kernel changes in place

    def note(table: dict[str, dict[Index, int]], buffer: Buffer, offset: Index, picks: Gathered = ()) -> None:
        if buffer.kind == "row":
            return
        size = buffer.dtype.itemsize
        for n in buffer.shape:
            size *= sizes.value(n)
        whole[buffer.name] = size
        moving = {*offset.vars, *offset.const.symbols, *(name for e, _ in picks for name in e.depends)}
        if not moving.isdisjoint(bound):  # a value that is bound in some loop
            moving |= loops.keys()
        touched = buffer.dtype.itemsize * math.prod(n for v, n in loops.items() if v in moving)
        parts = table.setdefault(buffer.name, {})
        parts[offset] = touched + (parts.get(offset, 0) if picks else 0)

    def visit(e: Expr, seen: set[int]) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        if isinstance(e, Load):
            if e.buffer.name not in written:
                given.add(e.buffer.name)
            note(read, e.buffer, e.offset, e.gathered)
        for part in e.parts:
            visit(part, seen)

    for s in walk(kernel.body):
        if isinstance(s, For):
            loops[s.var] = min(sizes.value(i.const) for i in s.extent if not i.vars)
            if s.var == "j" and "b" in loops:  # a block of a whole reduction: together the blocks cover everything
                left = next(i for i in s.extent if i.vars)
                loops["j"], loops["b"] = sizes.value(left.const), 1
        elif isinstance(s, Repeat):
            loops[s.symbol] = 1 if s.count is None else max(sizes.value(s.count), 0)
        elif isinstance(s, Store):
            for e in expressions(s):  # what it reads, before what it stores
                visit(e, set())
            note(written, s.buffer, s.offset, s.gathered)
        elif isinstance(s, Gemm):
            for buffer, offset, extent in ((s.a, s.a_offset, s.m * s.k), (s.b, s.b_offset, s.k * s.n)):
                count = sizes.value(extent)
                for v in offset.vars:
                    count *= loops.get(v, 1)
                note(read, buffer, offset)
                read[buffer.name][offset] = count * buffer.dtype.itemsize
            count = sizes.value(s.m * s.n)
            for v in s.out_offset.vars:
                count *= loops.get(v, 1)
            note(written, s.out, s.out_offset)
            written[s.out.name][s.out_offset] = count * s.out.dtype.itemsize
        elif isinstance(s, Call):
            given.update(buffer.name for buffer in s.ins if buffer.name not in written)
            for k, buffer in enumerate((*s.outs, *s.ins)):
                table = written if k < len(s.outs) else read
                note(table, buffer, Index())
                table[buffer.name][Index()] = whole[buffer.name]
        if not isinstance(s, Store):
            for e in expressions(s):
                visit(e, set())
    inner = {name for name in read if name in written} - given  # written by this kernel and still in cache
    return (
        {name: min(whole[name], sum(parts.values())) for name, parts in read.items() if name not in inner},
        {name: min(whole[name], sum(parts.values())) for name, parts in written.items()},
    )


def flops(kernel: Kernel, nodes: Sequence[Node], sizes: Valued) -> int:
    """What a call of a kernel computes for these operations, each as often as its loops compute it: what fusion computes for
    each reader once more counts once more, and of what a kernel needs a part of, that part."""
    found = {} if kernel.kind == "library" else _Evaluations(kernel, sizes).found
    total = 0.0
    for node in nodes:
        cost = node.op.cost(node.type, *(source.type for source in node.inputs)).flops
        times = found.get((node.name, type(node.op)))
        total += cost if times is None or not node.type.count else cost * times / node.type.count
    return round(total)


class _Evaluations:
    """How often the loops of a kernel compute each operation, by its name and kind. What a loop does not change is computed
    before it."""

    def __init__(self, kernel: Kernel, sizes: Valued) -> None:
        self.found: dict[tuple[str, Any], int] = {}
        self._sizes = sizes
        self._written = {f"={s.buffer.name}" for s in walk(kernel.body) if isinstance(s, Store)}
        self._bound: dict[str, int] = {}  # at which depth what is bound before is bound
        self._count(kernel.body, [])

    def _count(self, body: Sequence[Statement], around: list[tuple[str, int]]) -> None:
        """`around`: the variables of the loops around, from the outermost in, and their turns."""
        seen: set[int] = set()
        for s in body:
            todo = list(expressions(s))
            while todo:
                e = todo.pop()
                if id(e) not in seen:
                    seen.add(id(e))
                    todo += e.parts
                    if isinstance(e, Apply):
                        self._computed(e, around)
            if isinstance(s, Let):
                self._bound[s.name] = len(around)
            for block in blocks(s):
                self._count(block, self._inside(s, around))
            for accumulator in getattr(s, "accumulators", ()):
                self._bound[accumulator.name] = len(around)

    def _computed(self, e: Apply, around: list[tuple[str, int]]) -> None:
        depth = len(around)
        if self._written.isdisjoint(e.depends):
            own = [n for n, (var, _) in enumerate(around, 1) if var in e.depends]
            depth = max([0, *own, *(self._bound.get(name, 0) for name in e.depends)])
        times = math.prod(turns for _, turns in around[:depth])
        for name in {origin.name for origin in e.origins}:
            key = name, type(e.op)
            self.found[key] = self.found.get(key, 0) + times

    def _inside(self, s: Statement, around: list[tuple[str, int]]) -> list[tuple[str, int]]:
        if isinstance(s, Repeat):
            return [*around, (s.symbol, 1 if s.count is None else max(self._sizes.value(s.count), 0))]
        if not isinstance(s, For):
            return around
        if s.var == "j" and any(var == "b" for var, _ in around):  # a block of a whole reduction: together they are all of it
            whole = self._sizes.value(next(i for i in s.extent if i.vars).const)
            return [*((var, 1 if var == "b" else turns) for var, turns in around), (s.var, whole)]
        return [*around, (s.var, min(self._sizes.value(i.const) for i in s.extent if not i.vars))]


# ---- scratch memory


def lives(program: Program) -> dict[str, tuple[int, int]]:
    """The first and the last kernel that uses each temporary."""
    names = {buffer.name for buffer in program.temps}
    found: dict[str, tuple[int, int]] = {}
    for number, kernel in enumerate(program.kernels if len(names) > 1 else ()):  # one alone shares with nobody
        used = {b.name for s in walk(kernel.body) for b in (*written(s), *_read_whole(s))}
        used |= {e.buffer.name for e in all_expressions(kernel.body) if isinstance(e, Load)}
        for name in used & names:
            found[name] = (found.get(name, (number, number))[0], number)
    return found


def _read_whole(statement: object) -> tuple[Buffer, ...]:
    """What a statement reads as a whole."""
    if isinstance(statement, Gemm):
        return statement.a, statement.b
    if isinstance(statement, Call):
        return statement.ins
    return statement.partials if isinstance(statement, Finish) else ()


def scratch_places(program: Program, bytes_of: Callable[[Buffer], int]) -> tuple[list[int], int]:
    """The offset of each temporary, then of each row, in the scratch memory of a call, and the bytes of all.

    A temporary takes the first gap between those that are alive in one of its own kernels. Within a kernel no two share memory:
    its code relies on that. Rows have memory of their own.
    """
    known = lives(program)
    order = sorted(range(len(program.temps)), key=lambda i: known.get(program.temps[i].name, (0, 0)))
    places = [0] * len(program.temps)
    taken: list[tuple[int, int, int]] = []  # start, end and last kernel of what is alive, by start
    end = 0
    for i in order:
        first, last = known.get(program.temps[i].name, (0, len(program.kernels)))
        size = aligned(bytes_of(program.temps[i]))
        taken = [piece for piece in taken if piece[2] >= first]
        at = 0
        for start, stop, _ in taken:
            if start - at >= size:
                break
            at = max(at, stop)
        places[i] = at
        taken = sorted([*taken, (at, at + size, last)])
        end = max(end, at + size)
    for row in program.rows:
        places.append(end)
        end += aligned(bytes_of(row))
    return places, end


def aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT

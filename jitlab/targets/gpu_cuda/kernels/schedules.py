"""Schedules: which threads of the GPU run what of a phase. Decided by what the phase's loops are, and by their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from jitlab.ir.programs.program import (
    LANES,
    ONE,
    PARALLEL,
    Accumulator,
    Assign,
    Buffer,
    Call,
    Define,
    Finish,
    For,
    Gemm,
    If,
    Index,
    Let,
    Load,
    Repeat,
    Statement,
    Step,
    Store,
    all_expressions,
    walk,
)
from jitlab.ops.base import Reduction
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.program_phases import Phase

#: flat: an element of the outer loops a thread, or a vector of them; rows: a team of threads an iteration of the outer loops,
#: over whose inner loops they spread; block: all of it by one block, whose threads spread over each loop;
#: product: a tile of a product of matrices a block.
Kind = Literal["flat", "rows", "block", "product"]

WARP = 32

#: Blocks that may have a row together, at most: a lane each of the warp that joins their values. What they meet in starts with
#: so many bytes, where started blocks are counted.
MOST_PARTS, MEETING_HEAD = 32, 16

#: Of tiles through which arrays are read that lie the other way: their side, and the most bytes of shared memory for them.
TILE, TILE_BYTES = 32, 16 << 10

#: Threads that a multiprocessor has at once where rows are kept in registers: each may have 65536 / this many. Blocks of many
#: threads want two, so that one loads while the other one waits.
HELD_THREADS, HELD_LARGE_THREADS = 768, 1024


class Unscheduled(Exception):  # noqa: N818 - what it says is no error of anybody's
    """A phase that no schedule takes: the Program runs on the host. `code`: of the reason, in the message table."""

    def __init__(self, code: str, **operands: object) -> None:
        super().__init__(code)
        self.code, self.operands = code, operands


@dataclass(frozen=True)
class Limits:
    """How many threads a block has, by kind of schedule. A block's results do not depend on how many blocks there are."""

    flat_threads: int = 256
    row_threads: int = 256  # of a block; rows that are short have a warp each
    block_threads: int = 512
    warp_row_elements: int = 1024  # up to which a warp takes a row
    held_bytes: int = 128  # of a row, that a thread keeps in registers
    plane_columns: int = 256  # of an inner loop, from which on a block takes neighbours in one row


@dataclass(frozen=True)
class Schedule:
    """How a phase is run. `nest`: the outer loops that are spread over the grid, outermost first."""

    kind: Kind
    threads: int  # of a block
    team: int = 1  # threads that take an iteration of the nest together
    nest: tuple[For, ...] = ()
    lanes: int = 1  # neighbours of the innermost loop that a thread takes at a time, where they lie so
    in_tiles: bool = False  # flat: a block takes TILE × TILE iterations of the two innermost loops, through shared memory
    in_planes: bool = False  # flat: the grid has a second axis, for all loops but the innermost
    inputs: int = 0  # arrays that lie along the rows that are held
    held: int = 0  # of rows: vectors of a row that each thread keeps in registers, so that memory is read once; 0: none
    parts: int = 1  # of rows: blocks that have a row together, each a part of it in its registers
    meeting: Buffer | None = None  # zeros in which these give each other their values

    @property
    def held_blocks(self) -> int:
        """Blocks that a multiprocessor has at once, where rows are kept in registers."""
        return max((HELD_LARGE_THREADS if self.threads >= 512 and self.inputs == 1 else HELD_THREADS) // self.threads, 1)

    @property
    def text(self) -> str:
        """What was decided, as part of the key of code."""
        planes = " planes" if self.in_planes else " tiles" if self.in_tiles else f" by {self.parts}" if self.parts > 1 else ""
        return f"{self.kind} {self.threads} {self.team} {len(self.nest)} {self.lanes} {self.inputs} {self.held}{planes}"


@dataclass(frozen=True)
class Tile:
    """Of a product: `side` rows and columns, of which each of side/own × side/own threads has `own` × `own`, in groups of
    neighbours; `deep`: how much of the sums is taken at a time."""

    side: int
    own: int
    group: int  # neighbours that a thread reads from shared memory at a time
    deep: int = 8

    @property
    def across(self) -> int:
        """Threads along a side."""
        return self.side // self.own

    @property
    def threads(self) -> int:
        return self.across * self.across

    @property
    def each(self) -> int:
        """Elements of each operand's tile that a thread loads."""
        return self.side * self.deep // self.threads


def tile_of(dtype: np.dtype) -> Tile:
    """The tile for elements of this dtype."""
    return Tile(128, 8, 4) if dtype.itemsize == 4 else Tile(64, 4, 2)


def schedule_of(phase: Phase, sizes: Mapping[str, int], limits: Limits) -> Schedule:
    """The schedule of a phase. Raises Unscheduled."""
    for s in walk(phase.statements):
        if isinstance(s, Call):
            raise Unscheduled("gpu.library", operation=s.op.partition("(")[0])
    if any(isinstance(s, Define) for s in phase.statements):
        raise Unscheduled("gpu.size")
    outer = phase.outer
    products = [s for s in walk(phase.statements) if isinstance(s, Gemm)]
    if products:
        nest = _batches(outer) if outer is not None else ()
        body = nest[-1].body if nest else phase.statements
        if len(body) > 1 or body[0] is not products[0]:
            raise Unscheduled("gpu.product")
        return Schedule("product", tile_of(products[0].out.dtype).threads, nest=nest)
    if outer is None or outer.kind != PARALLEL:
        return Schedule("block", limits.block_threads)
    nest = nest_of(outer)
    body = nest[-1].body
    inside = [s for s in walk(body) if isinstance(s, For)]
    if any(isinstance(s, (Repeat, If)) for s in walk(body)) and inside:
        return Schedule("block", limits.block_threads)
    if has_rows(body) or any(isinstance(s, Finish) for s in body):
        return _of_rows(nest, body, sizes, limits)
    lanes, columns = lanes_of(nest[-1]), min(index.const.evaluate(sizes) for index in nest[-1].extent)
    if turned_loads(nest) and min(iterations(nest[-2:-1], sizes), columns) >= TILE:
        return Schedule("flat", limits.flat_threads, 1, nest, in_tiles=True)
    in_planes = len(nest) > 1 and columns >= limits.plane_columns
    return Schedule("flat", limits.flat_threads, 1, nest, lanes, in_planes=in_planes)


def turned_loads(nest: Sequence[For]) -> list[Load]:
    """What a nest reads in the order of its last loop but one, each once, where it stores in the order of the last one: through
    tiles in shared memory both are neighbours in memory. None where something else is done there, or what is read is stored."""
    if len(nest) < 2 or not all(isinstance(s, Store) and not s.gathered for s in nest[-1].body):
        return []
    across, along = nest[-2].var, nest[-1].var
    stores = [s for s in nest[-1].body if isinstance(s, Store)]
    if any(s.offset.coefficient(along) != ONE for s in stores):
        return []
    found = {}
    for e in all_expressions(stores):
        if isinstance(e, Load) and not e.gathered and e.offset.coefficient(across) == ONE:
            apart = e.offset.coefficient(along)
            if apart.terms and apart != ONE:
                found[e.buffer.name, e.offset] = e
    stored = {s.buffer.name for s in stores}
    fits = sum(e.buffer.dtype.itemsize for e in found.values()) * TILE * (TILE + 1) <= TILE_BYTES
    if not fits or any(e.buffer.name in stored or e.buffer.dtype.kind not in "fiu" for e in found.values()):
        return []
    return list(found.values())


def iterations(nest: Sequence[For], sizes: Mapping[str, int]) -> int:
    """Of loops whose extents depend on sizes alone."""
    total = 1
    for loop in nest:
        total *= max(min(index.const.evaluate(sizes) for index in loop.extent), 0)
    return total


def _of_rows(nest: tuple[For, ...], body: Sequence[Statement], sizes: Mapping[str, int], limits: Limits) -> Schedule:
    elements, threads = _row_elements(body, sizes), limits.row_threads
    lanes, widest = held_lanes(body)
    most = max(limits.held_bytes // (lanes * widest), 1) if lanes else 0
    loads = [a for s in body if isinstance(s, For) for a in side_by_side(s.body, s.var) if isinstance(a, Load)]
    inputs = len({a.buffer.name for a in loads if a.buffer.kind != "row"})
    of_part = threads if inputs > 1 else 2 * threads  # two blocks of many threads, or three of fewer, at once
    split = [(of_part, 1 << k) for k in range(1, MOST_PARTS.bit_length()) if lanes and elements % lanes == 0]
    for team, parts in ((WARP, 1), (threads // 2, 1), (threads, 1), (2 * threads, 1), *split):
        held = -(-elements // (team * lanes * parts)) if lanes else 0
        if 0 < held <= most and (team == WARP or elements > limits.warp_row_elements):
            of_block = threads if team == WARP else team
            return Schedule("rows", of_block, team, nest, lanes, inputs=inputs, held=held, parts=parts)
    return Schedule("rows", threads, threads if elements > limits.warp_row_elements else WARP, nest)


def words_of(accumulator: Accumulator) -> int:
    """Of 32 bits, that a running value has: a number, and its place where that counts."""
    widest: int = max(accumulator.dtype.itemsize, accumulator.op.result_dtype(accumulator.dtype).itemsize)
    return -(-widest // 4) + 2 * (type(accumulator.op).step is not Reduction.step)


def held_lanes(body: Sequence[Statement]) -> tuple[int, int]:
    """How many neighbours a thread can take in all loops of a row, where it can keep its part of the row in registers, and the
    bytes of their widest element; (0, 0) where it can't: they go through the same elements, and scratch is read where it was
    written."""
    loops = [s for s in body if isinstance(s, For)]
    if len(loops) < 2 or any(loop.extent != loops[0].extent for loop in loops):
        return 0, 0
    for loop in loops:
        if not all(isinstance(s, (Store, Step)) and not getattr(s, "bound", "") for s in loop.body):
            return 0, 0
        for access in (*loop.body, *all_expressions(loop.body)):
            if isinstance(access, (Load, Store)) and access.buffer.kind == "row" and not _is_own(access, loop):
                return 0, 0
    inside = {s.buffer.name for s in walk(body) if isinstance(s, Store) and s.buffer.kind != "row"}
    if any(isinstance(e, Load) and e.buffer.name in inside for e in all_expressions(body)):
        return 0, 0
    widths = [a.buffer.dtype.itemsize for loop in loops for a in side_by_side(loop.body, loop.var)]
    return min(lanes_of(loop) for loop in loops), max(widths, default=16)


def _is_own(access: Load | Store, loop: For) -> bool:
    """Is it the element that the iteration stands for?"""
    return not access.gathered and access.offset == Index.var(loop.var)


def has_rows(statements: Sequence[Statement]) -> bool:
    """Is there something in it that threads do together: a reduction along memory, or scratch for an iteration?"""
    inside = list(walk(statements))
    scratch = any(isinstance(s, Store) and s.buffer.kind == "row" for s in inside)
    return scratch or any(isinstance(s, For) and s.kind == LANES for s in inside)


def nest_of(outer: For) -> tuple[For, ...]:
    """A loop with those in it that may be taken together: all parallel, each alone in the one around it, of fixed extents."""
    found = [outer]
    while len(found[-1].body) == 1:
        (inner,) = found[-1].body
        if not isinstance(inner, For) or inner.kind != PARALLEL or inner.accumulators or _depends(inner.extent, found):
            break
        found.append(inner)
    return tuple(found)


def _batches(outer: For) -> tuple[For, ...]:
    """The loops around a product, one in the other: each of their iterations has a result of its own."""
    found = [outer]
    while len(found[-1].body) == 1 and isinstance(inner := found[-1].body[0], For) and not _depends(inner.extent, found):
        found.append(inner)
    last = found[-1].body[0]
    if not isinstance(last, Gemm) or any(not last.out_offset.coefficient(loop.var).terms for loop in found):
        raise Unscheduled("gpu.product")
    return tuple(found)


def _depends(extents: Sequence[Index], loops: Sequence[For]) -> bool:
    own = {loop.var for loop in loops}
    return any(own.intersection(index.vars) for index in extents)


def _row_elements(body: Sequence[Statement], sizes: Mapping[str, int]) -> int:
    """Of the longest loop that a team spreads over."""
    found = [min((i.const.evaluate(sizes) for i in s.extent), default=0) for s in walk(body) if isinstance(s, For)]
    return max(found, default=0)


def lanes_of(loop: For) -> int:
    """How many neighbours a thread can take: 16 bytes of the widest element; 1 where nothing lies side by side."""
    inside = list(walk(loop.body))
    if any(isinstance(s, (If, Repeat, Let, Assign)) or (isinstance(s, For) and s.kind == LANES) for s in inside):
        return 1
    if any(isinstance(s, Step) and s.bound for s in inside):
        return 1
    widest = max((access.buffer.dtype.itemsize for access in side_by_side(loop.body, loop.var)), default=16)
    return max(min(16 // widest, 8), 1)


def side_by_side(statements: Sequence[Statement], var: str) -> Iterator[Load | Store]:
    """The accesses that are neighbours for neighbouring values of a variable."""
    for access in (*walk(statements), *all_expressions(statements)):
        if isinstance(access, (Load, Store)) and not access.gathered and access.offset.coefficient(var) == ONE:
            yield access

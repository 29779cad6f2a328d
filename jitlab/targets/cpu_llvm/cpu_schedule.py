"""What makes a Program fast on a processor: loops over vectors, tiles of them, stores past the caches. It changes no bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from jitlab.ir.programs.program import (
    ASCENDING,
    LANES,
    ONE,
    PARALLEL,
    Buffer,
    Finish,
    For,
    Let,
    Load,
    Partial,
    Program,
    Statement,
    Step,
    Store,
    all_expressions,
    blocks,
    expressions,
    walk,
    work,
)
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

from .cpu_shape import stream_bytes

#: Vectors of columns that a reduction over rows takes at a time: a row of the tile is several cache lines.
TILE_VECTORS = 4

#: Rows of so many bytes are taken by as many vectors as they fill.
TILE_BYTES = 128

#: Rows that are scanned side by side, where an element of one takes less than so many operations: a step waits for the one
#: before it in its own row alone.
SCANNED_ROWS, SCANNED_WORK = 4, 16.0

#: Lengths of reductions inside a vector, and distances of its elements in memory, up to which they are numbers of the code.
SHORT = 12

#: Of two cache lines, which are fetched together: so many bytes from each other vectors past the caches start.
LINES_BYTES = 128


@dataclass
class Scheduled(Program):
    """A Program with the loops that take whole vectors, the outputs that are written past the caches, and the sizes that its
    code is made for alone."""

    vectors: dict[int, int] = field(default_factory=dict)  # id of a loop -> how many vectors it takes at a time
    streamed: frozenset[str] = frozenset()
    fixed: dict[str, int] = field(default_factory=dict)  # symbol -> its value
    unscheduled: str = ""  # the Program's text

    @lazy
    def text(self) -> str:
        """The Program's, and what was decided: loops by their number in it."""
        loops = (s for kernel in self.kernels for s in walk(kernel.body) if isinstance(s, For))
        chosen = [f"{n}: {s.var} x {self.vectors[id(s)]}" for n, s in enumerate(loops) if id(s) in self.vectors]
        fixed = ", ".join(f"{name} = {value}" for name, value in sorted(self.fixed.items()))
        streamed = ", ".join(sorted(self.streamed))
        return f"{self.unscheduled}\n  vectors {', '.join(chosen)}\n  streamed {streamed}\n  fixed {fixed}"


def scheduled(program: Program) -> Scheduled:
    """Program -> the same with what is fast."""
    p, loops = program, [s for kernel in program.kernels for s in _over_vectors(kernel.body)]
    vectors = {id(s): _tile(s, p.sizes) for s in loops}
    return Scheduled(
        p.inputs, p.outputs, p.temps, p.rows, p.scalars, p.symbols, p.kernels, p.variables, p.errors, p.calls, p.sizes,
        vectors, frozenset(_streamed(p, loops)), _fixed(p, loops), p.text,
    )  # fmt: skip


def _over_vectors(statements: Sequence[Statement]) -> Iterator[For]:
    """The loops that become loops over vectors: the innermost of maps, and those nearest to reductions in order."""
    for s in statements:
        if isinstance(s, For) and s.kind in (PARALLEL, ASCENDING) and _takes_vectors(s):
            yield s
        elif not (isinstance(s, For) and s.kind == LANES):
            for block in blocks(s):
                yield from _over_vectors(block)


def _takes_vectors(loop: For) -> bool:
    inside = list(walk(loop.body))
    loops = [s for s in inside if isinstance(s, For)]
    if not all(isinstance(s, (For, Store, Let, Step, Partial, Finish)) for s in inside):
        return False
    if not loops:
        return True
    steps = [s for s in inside if isinstance(s, Step)]
    if not steps or any(s.kind == LANES or (s.kind == PARALLEL and _has_steps(s)) for s in loops):
        return False
    are_neighbours = any(isinstance(s, Store) and s.offset.coefficient(loop.var) == ONE for s in inside)
    return are_neighbours or not any(s.bound for s in steps)  # a scan along memory is not turned


def scan_in_rows(loop: For) -> For | None:
    """The scan along memory that is all of a loop over rows, several of which are gone through side by side."""
    inner = loop.body[0] if len(loop.body) == 1 and loop.kind == PARALLEL else None
    if not isinstance(inner, For) or inner.kind == LANES or len(inner.extent) != 1 or inner.extent[0].vars:
        return None
    steps = [s for s in inner.body if isinstance(s, Step)]
    roots = [root for s in inner.body for root in expressions(s)]
    is_scan = bool(steps) and all(s.bound for s in steps) and all(isinstance(s, (Step, Store, Let)) for s in inner.body)
    is_cheap = sum(work(root) for root in roots) < SCANNED_WORK and not any(root.is_checked for root in roots)
    return inner if is_scan and is_cheap else None


def _has_steps(loop: For) -> bool:
    return any(isinstance(s, Step) for s in walk(loop.body))


def _tile(loop: For, sizes: Mapping[str, int]) -> int:
    """The vectors that a loop takes at a time: several in a reduction over long rows, where fewer pages are touched for each
    cache line."""
    sums = [s for s in loop.body if isinstance(s, For) and s.finish and _has_steps(s)]
    read = [e for e in all_expressions(sums) if isinstance(e, Load) and e.offset.coefficient(loop.var) == ONE]
    if not read:
        return 1
    dtypes = (*(e.buffer.dtype for e in read), *(a.dtype for s in sums for a in s.accumulators))
    row = loop.extent[0].const.evaluate(sizes) * max(dtype.itemsize for dtype in dtypes)
    return next((vectors for vectors in (TILE_VECTORS, 2) if row >= vectors * TILE_BYTES), 1)


def _fixed(program: Program, loops: Sequence[For]) -> dict[str, int]:
    """The sizes that vectors want to know: how long a short reduction in each lane is, how many of them there are, and how far
    apart near elements are."""
    known = set(program.symbols) & set(program.sizes)
    lanes = [s for kernel in program.kernels for s in walk(kernel.body) if isinstance(s, For) and s.kind == LANES]
    fixed: dict[str, int] = {}
    for loop in (*loops, *lanes):
        asked = [e.offset.coefficient(loop.var) for e in all_expressions([loop]) if isinstance(e, Load)]
        inside = [s for s in walk(loop.body) if isinstance(s, For)]
        asked += [s.extent[0].const for s in (loop, *inside) if inside and not s.extent[0].terms]
        for p in asked:
            if p.value is None and known.issuperset(p.symbols) and 1 < p.evaluate(program.sizes) <= SHORT:
                fixed.update((name, int(program.sizes[name])) for name in p.symbols)
    return fixed


def _streamed(program: Program, loops: Sequence[For]) -> set[str]:
    """The outputs that no cache holds whole, where each vector that is stored starts on a cache line."""
    least = stream_bytes()
    large = {b.name for b in program.outputs if b.dtype.kind in "fiu" and _bytes(b, program.sizes) >= least}
    if large:
        for loop in loops:
            for s in walk(loop.body):
                if isinstance(s, Store) and s.buffer.name in large and not _is_aligned(s, loop, program.sizes):
                    large.remove(s.buffer.name)
    return large


def _bytes(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    size = buffer.dtype.itemsize
    for n in buffer.shape:
        size *= n.evaluate(sizes)
    return size


def _is_aligned(s: Store, loop: For, sizes: Mapping[str, int]) -> bool:
    """Do all its vectors start on a cache line? (Those that are spread do not matter.)"""
    others = [s.offset.const, *(k for v, k in s.offset.terms if v != loop.var)]
    return all(k.evaluate(sizes) * s.buffer.dtype.itemsize % LINES_BYTES == 0 for k in others)

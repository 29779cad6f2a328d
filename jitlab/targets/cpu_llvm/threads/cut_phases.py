"""Which phases of a Program are cut into pieces, which threads do at once: those whose iterations may run at once, and which
take long enough. How many threads there are decides nothing: pieces are the same, and so are the bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from jitlab.ir.programs.program import PARALLEL, Assign, Call, Define, Gemm, Repeat, Statement, Store, walk
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.program_phases import UNKNOWN_TURNS, Phase, steps

#: A phase is cut from so many nanoseconds on, by the estimate below: waking a thread takes some 10 µs.
LEAST_NS = 100_000
#: A piece takes so long, at least and at most, and is one of MOST_PIECES where that is between.
PIECE_NS, LONG_PIECE_NS, MOST_PIECES = 10_000, 100_000, 256
#: For the estimate: operations on elements, and bytes, that a processor does in a nanosecond where all goes well.
STEPS_PER_NS, BYTES_PER_NS = 16, 20
#: Bytes that an operation on an element reads and writes, at most.
STEP_BYTES = 16
#: Iterations of a loop over vectors of which a piece is a multiple.
VECTORS = 256


@dataclass(frozen=True)
class Cut:
    """What is decided of one phase, whose outer loop has `extent` iterations and which takes some `nanoseconds`. `piece`: of
    how many iterations one is, 0 where it runs on one thread; then `why`, a code."""

    extent: int
    nanoseconds: int
    piece: int = 0
    why: str = ""

    @property
    def pieces(self) -> int:
        return -(-self.extent // self.piece)


def cut_of(phase: Phase, sizes: Mapping[str, int], is_vector: bool) -> Cut:
    """What is decided for these sizes. `is_vector`: its outer loop takes whole vectors."""
    known = defaultdict(lambda: UNKNOWN_TURNS, sizes)
    extent = 1
    if phase.outer is not None:
        extent = min(max(i.const.evaluate(known), 0) for i in phase.outer.extent)
    takes = max(_nanoseconds(phase, known), 1)
    why = why_whole(phase) or ("few" if extent < 2 else "small" if takes < LEAST_NS else "")
    if why:
        return Cut(extent, takes, why=why)
    wanted = min(max(takes // MOST_PIECES, PIECE_NS), LONG_PIECE_NS)
    piece = max(extent * wanted // takes, 1)
    if is_vector:
        piece = -(-piece // VECTORS) * VECTORS
    return Cut(extent, takes, piece) if piece < extent else Cut(extent, takes, why="few")


def why_whole(phase: Phase) -> str:
    """Why its iterations may not run at once; "" where they may."""
    inside = list(walk(phase.statements))
    if any(isinstance(s, (Gemm, Call)) for s in inside):
        return "library"  # which has threads of its own, or none that it could be called from
    if any(isinstance(s, Repeat) for s in inside):
        return "turns"
    if phase.outer is None:
        return "once"
    if phase.outer.kind != PARALLEL or any(_goes_on(s) for s in inside):
        return "order"
    if phase.is_whole and any(e.is_checked for e in phase.expressions):
        return "checks"  # an argument is changed up to the first iteration that fails
    return ""


def _goes_on(s: Statement) -> bool:
    """Does what a later iteration does hang on it: a variable, a size, elements that integers name, twice maybe?"""
    return isinstance(s, (Assign, Define)) or (isinstance(s, Store) and bool(s.gathered))


def _nanoseconds(phase: Phase, sizes: Mapping[str, int]) -> int:
    """What it takes, at least: what it computes, or what it moves."""
    computed = steps(phase.statements, sizes)
    moved = 0
    for buffer in phase.buffers:
        if buffer.kind != "row":
            size = buffer.dtype.itemsize
            for n in buffer.shape:
                size *= max(n.evaluate(sizes), 0)
            moved += size
    return max(computed // STEPS_PER_NS, min(moved, computed * STEP_BYTES) // BYTES_PER_NS)

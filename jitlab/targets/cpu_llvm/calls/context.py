"""What a call of machine code needs: an array of 8-byte slots (`ContextLayout`), and what its statuses mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from jitlab.ir.programs.program import Define, walk, written
from jitlab.support.later import Later
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.cpu_llvm.cpu_schedule import Scheduled
from jitlab.targets.llvm.program_phases import Phase, phases_of

if TYPE_CHECKING:
    from jitlab.targets.cpu_llvm.threads import cut_phases
else:
    cut_phases = Later("jitlab.targets.cpu_llvm.threads.cut_phases")

#: What `run` returns. PAUSED: call again. STOPPED: a signal's handler raised, the exception is in the context's ERROR slots.
#: FAILED + code: the check with that code failed.
DONE, PAUSED, STOPPED, FAILED = range(4)
#: What a region of the pool of threads returns where it did nothing: who opened it goes through the loop alone.
ALONE = -1


@dataclass(frozen=True)
class ContextLayout:
    """Which slot of the context holds what. The first are the runtime's own: where to go on, cycles until a pause, BLAS, where
    to note times, the functions by which signals are looked after, when that was done last, what calls libraries, an exception,
    the pool of threads, the bytes of the rows of scratch that each of them has, and more of BLAS."""

    program: Scheduled

    RESUME_PHASE, RESUME_AT, BUDGET, SGEMM, DGEMM, TIMES, LOOK, STARTED, CALL, ERROR = range(10)
    POOL, ROWS, SSYRK, DSYRK = 12, 13, 14, 15
    FIRST = 16
    BLAS: ClassVar[dict[str, int]] = {"sgemm": SGEMM, "dgemm": DGEMM, "ssyrk": SSYRK, "dsyrk": DSYRK}

    @lazy
    def buffers(self) -> dict[str, int]:
        p = self.program
        return {b.name: self.FIRST + i for i, b in enumerate((*p.inputs, *p.outputs, *p.temps, *p.rows))}

    @lazy
    def buffer_count(self) -> int:
        p = self.program
        return len(p.inputs) + len(p.outputs) + len(p.temps) + len(p.rows)

    @lazy
    def symbols(self) -> dict[str, int]:
        """Of sizes the caller passes, then of those a top-level Define binds."""
        start = self.FIRST + self.buffer_count
        return {name: start + i for i, name in enumerate((*self.program.symbols, *self.defined))}

    @lazy
    def defined(self) -> tuple[str, ...]:
        return tuple(s.symbol for phase in self.phases for s in phase.statements if isinstance(s, Define))

    @lazy
    def scalars(self) -> dict[str, int]:
        start = self.FIRST + self.buffer_count + len(self.symbols)
        return {name: start + 2 * i for i, (name, _) in enumerate(self.program.scalars)}

    @lazy
    def kept(self) -> dict[str, int]:
        """Variables and Locals that live longer than one call of a phase."""
        start = self.FIRST + self.buffer_count + len(self.symbols) + 2 * len(self.program.scalars)
        touched: dict[str, int] = {}
        for phase in self.phases:
            for name in phase.variables:
                touched[name] = touched.get(name, 0) + (1 if phase.outer is None else 2)  # chunks are calls of their own
        names = [name for name, times in touched.items() if times > 1]
        wanted = {name for phase in self.phases for name in phase.wanted if name not in phase.bound}
        names += [name for phase in self.phases for name in phase.bound if name in wanted]
        return {name: start + 2 * i for i, name in enumerate(dict.fromkeys(names))}

    @property
    def chunks(self) -> int:
        """The first of one slot a phase: how many iterations of its outer loop make a chunk."""
        return self.FIRST + self.buffer_count + len(self.symbols) + 2 * len(self.program.scalars) + 2 * len(self.kept)

    @lazy
    def phases(self) -> list[Phase]:
        return phases_of(self.program)

    @lazy
    def stored(self) -> frozenset[str]:
        """The buffers that some phase writes."""
        return frozenset(b.name for phase in self.phases for s in walk(phase.statements) for b in written(s))

    @property
    def calls(self) -> int:
        """The first of one slot a library call: the operation, as the function at CALL knows it."""
        return self.chunks + len(self.phases)

    @property
    def pieces(self) -> int:
        """The first of two slots a phase that may be cut: iterations of a piece, 0 where it is not; the most that helped."""
        return self.calls + len(self.program.calls)

    @lazy
    def cut(self) -> dict[int, int]:
        """The phases that may be cut -> their slots."""
        may = [number for number, phase in enumerate(self.phases) if not cut_phases.why_whole(phase)]
        return {number: self.pieces + 2 * at for at, number in enumerate(may)}

    @property
    def size(self) -> int:
        return self.pieces + 2 * len(self.cut)

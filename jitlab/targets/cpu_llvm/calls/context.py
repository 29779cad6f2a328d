"""What a call of machine code needs: an array of 8-byte slots (`ContextLayout`), and what its statuses mean."""

from __future__ import annotations

from jitlab.ir.programs.program import Define, walk, written
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.cpu_llvm.cpu_schedule import Scheduled
from jitlab.targets.llvm.program_phases import Phase, phases_of

#: What `run` returns. PAUSED: call again. STOPPED: a signal's handler raised, the exception is in the context's ERROR slots.
#: FAILED + code: the check with that code failed.
DONE, PAUSED, STOPPED, FAILED = range(4)


@dataclass(frozen=True)
class ContextLayout:
    """Which slot of the context holds what. The first are the runtime's own: where to go on, cycles until a pause, BLAS, where
    to note times, the functions by which signals are looked after, when that was done last, what calls libraries, and an
    exception."""

    program: Scheduled

    RESUME_PHASE, RESUME_AT, BUDGET, SGEMM, DGEMM, TIMES, LOOK, STARTED, CALL, ERROR = range(10)
    FIRST = 14

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
    def size(self) -> int:
        return self.calls + len(self.program.calls)

"""The context of a launch: 8-byte slots in NumPy's memory, from which the parameters of all kernels of a Program are taken."""

from __future__ import annotations

from collections.abc import Sequence

from jitlab.ir.programs.program import Program, walk, written
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.program_phases import Phase
from jitlab.targets.llvm.values import part_dtype

from .parts import Parts


@dataclass(frozen=True)
class ContextSlots:
    """Which slot holds what: where the status and what lives between phases lie on the device, buffers' addresses, sizes, and
    numbers (two slots each)."""

    program: Program
    parts: Parts

    STATUS, KEPT = range(2)
    FIRST = 2

    @property
    def phases(self) -> Sequence[Phase]:
        return self.parts.phases

    @lazy
    def buffers(self) -> dict[str, int]:
        p = self.program
        return {b.name: self.FIRST + i for i, b in enumerate((*p.inputs, *p.outputs, *p.temps, *p.rows))}

    @lazy
    def symbols(self) -> dict[str, int]:
        start = self.FIRST + len(self.buffers)
        turns = (loop.symbol for loop in self.parts.turns)
        return {name: start + i for i, name in enumerate((*self.program.symbols, *turns))}

    @lazy
    def scalars(self) -> dict[str, int]:
        start = self.FIRST + len(self.buffers) + len(self.symbols)
        return {name: start + 2 * i for i, (name, _) in enumerate(self.program.scalars)}

    def scalar_offset(self, name: str, part: int) -> int:
        """Where a part of a number lies, in bytes from the start."""
        return 8 * self.scalars[name] + part * part_dtype(dict(self.program.scalars)[name]).itemsize

    @lazy
    def kept(self) -> dict[str, int]:
        """Variables and Locals that live longer than a phase: numbers of places of 16 bytes."""
        touched: dict[str, int] = {}
        again = {number for loop in self.parts.turns for number in loop.phases}
        for number, phase in enumerate(self.phases):
            for name in phase.variables:
                touched[name] = touched.get(name, 0) + (2 if phase.outer is not None or number in again else 1)
        names = [name for name, times in touched.items() if times > 1]
        wanted = {name for phase in self.phases for name in phase.wanted if name not in phase.bound}
        names += [name for phase in self.phases for name in phase.bound if name in wanted]
        return {name: i for i, name in enumerate(dict.fromkeys(names))}

    @lazy
    def stored(self) -> frozenset[str]:
        """The buffers that some phase writes."""
        return frozenset(b.name for phase in self.phases for s in walk(phase.statements) for b in written(s))

    @property
    def size(self) -> int:
        return self.FIRST + len(self.buffers) + len(self.symbols) + 2 * len(self.program.scalars)

"""Parts of a Program, as the host goes through them: kernels to launch, and loops of the user's whose turns it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from jitlab.ir.extents import Poly
from jitlab.ir.programs.program import (
    ONE,
    PARALLEL,
    SERIAL,
    Finish,
    For,
    Load,
    Partial,
    Program,
    Repeat,
    Statement,
    Step,
    Store,
    all_expressions,
    walk,
)
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.program_phases import Phase, phases_in, steps

#: Operations on elements in a turn from which on the whole grid takes it: below, a block is done before a launch is.
LEAST_STEPS = 1 << 15


@dataclass(frozen=True)
class Turns:
    """A loop of the user's: the phases with these numbers are launched for `symbol` = 0, 1, ... below `count`."""

    symbol: str
    count: Poly
    phases: range


@dataclass
class Parts:
    """The phases of a Program in order, and what the host does with them."""

    phases: list[Phase] = field(default_factory=list)
    turns: list[Turns] = field(default_factory=list)

    @property
    def steps(self) -> Iterator[range | Turns]:
        """One after the other: a phase, as a range of one, or a loop over some."""
        number = 0
        for loop in [*self.turns, None]:
            end = len(self.phases) if loop is None else loop.phases.start
            yield from (range(k, k + 1) for k in range(number, end))
            if loop is not None:
                yield loop
                number = loop.phases.stop

    @property
    def text(self) -> str:
        """What was decided, as part of the key of code."""
        return "".join(f" {t.symbol}: {t.phases.start}..{t.phases.stop}" for t in self.turns)


def parts_of(program: Program) -> Parts:
    """The parts of a Program."""
    parts = Parts()
    for kernel in program.kernels:
        for phase in phases_in(kernel.name, kernel.body):
            inner = _counted(phase.statements, program.sizes)
            if inner is None:
                parts.phases.append(phase)
                continue
            before, loop, after = inner
            parts.phases += phases_in(kernel.name, before)
            start = len(parts.phases)
            parts.phases += phases_in(kernel.name, loop.body)
            assert loop.count is not None
            parts.turns.append(Turns(loop.symbol, loop.count, range(start, len(parts.phases))))
            parts.phases += phases_in(kernel.name, after)
    return parts


def _counted(
    statements: Sequence[Statement], sizes: Mapping[str, int]
) -> tuple[Sequence[Statement], Repeat, Sequence[Statement]] | None:
    """A loop of the user's whose turns the host counts, with what stands before and after it: its count is known before, and
    each turn has work for a whole grid."""
    (first, *others) = statements
    if others or not (isinstance(first, For) and first.kind == SERIAL and not first.accumulators):
        return None
    if len(first.extent) != 1 or first.extent[0].const != ONE or first.extent[0].terms or first.var in _variables(first.body):
        return None
    loops = [k for k, s in enumerate(first.body) if isinstance(s, Repeat)]
    if len(loops) != 1:
        return None
    loop = first.body[loops[0]]
    assert isinstance(loop, Repeat)
    if loop.count is None or loop.test is not None or loop.before or any(n not in sizes for n in loop.count.symbols):
        return None
    wide = [s for s in loop.body if isinstance(s, For) and s.kind == PARALLEL]
    if steps(wide, {**sizes, loop.symbol: 0}) < LEAST_STEPS:
        return None
    return first.body[: loops[0]], loop, first.body[loops[0] + 1 :]


def _variables(statements: Sequence[Statement]) -> set[str]:
    """The loop variables that the statements read."""
    found: set[str] = set()
    for access in (*walk(statements), *all_expressions(statements)):
        if isinstance(access, (Load, Store)):
            found.update(access.offset.vars)
        elif isinstance(access, For):
            found.update(v for index in access.extent for v in index.vars)
        elif isinstance(access, (Step, Partial)):
            found.update(access.index.vars)
        elif isinstance(access, Finish):
            found.update(access.base.vars)
        elif hasattr(access, "index"):
            found.update(access.index.vars)
    return found

"""A Program's LLVM module with the origin of each instruction: which operations it came from, or what else it is for.

The text without origins is that of `module_for`, instruction by instruction: this is written only when a user asks for the
code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitlab.ir import UNKNOWN, Origins
from jitlab.ir.programs.program import Accumulator, Expr, For, Load, Scalar, Statement, Step, all_expressions
from jitlab.ir.programs.program_lines import origins_in, steps_of
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.located_text import LocatedText, Places, debug_text, numbered_lines
from jitlab.targets.llvm.program_phases import Phase
from jitlab.targets.llvm.values import Val
from jitlab.targets.llvm.vector_emitter import VectorEmitter
from jitlab.targets.target import Place

from .calls.context import ContextLayout
from .cpu_schedule import Scheduled
from .emit.codegen import functions_of
from .emit.phase import PhaseWriter
from .emit.reductions import Running

#: What an instruction is for that came from no operation.
ENTRY, SIGNALS = "entry", "signals"


@dataclass(frozen=True)
class LocatedModule:
    """`lines` are those of `module_for`, each with the number of its place (0: none, a label or a declaration)."""

    lines: list[tuple[str, int]]
    places: Places
    debug: str  # the same module with a debug location at each instruction
    kernels: dict[str, str]  # name of a phase's function -> of its kernel


def located_module(program: Scheduled) -> LocatedModule:
    """The module of a Program, with places."""
    places = Places()
    layout = ContextLayout(program)
    steps = steps_of(program)
    statements = [s for kernel in program.kernels for s in kernel.body]
    scalars = {e.name: e.origins for e in all_expressions(statements) if isinstance(e, Scalar)}

    def write(layout: ContextLayout, phase: Phase, name: str) -> FunctionText:
        return _LocatedWriter(layout, phase, name, places, steps, scalars).function()

    functions = functions_of(layout, write)
    kernels = {f"phase{number}": phase.kernel for number, phase in enumerate(layout.phases)}
    return LocatedModule(numbered_lines(functions), places, debug_text(functions, places), kernels)


class _LocatedWriter(PhaseWriter):
    """Writes what PhaseWriter writes, and tells the text where it is."""

    text = LocatedText

    def __init__(
        self, layout: ContextLayout, phase: Phase, name: str, places: Places, steps: dict[str, Origins],
        scalars: dict[str, Origins],
    ) -> None:  # fmt: skip
        self._places, self._steps = places, steps
        self._scalars = {layout.scalars[scalar]: origins for scalar, origins in scalars.items() if scalar in layout.scalars}
        self._inside: dict[int, Origins] = {}
        super().__init__(layout, phase, name)
        self._text().at = places.number(Place(UNKNOWN, ENTRY, phase.kernel))

    def _text(self) -> LocatedText:
        assert isinstance(self.fn, LocatedText)
        return self.fn

    @contextmanager
    def _at(self, origins: Origins, role: str = "") -> Iterator[None]:
        """What is written inside came from these operations; from those around where there are none."""
        fn = self._text()
        before = fn.at
        if origins or role:
            fn.at = self._places.number(Place(origins, role, self.phase.kernel))
        yield
        fn.at = before

    @property
    def _now(self) -> Origins:
        return self._places[self._text().at].origins

    def _of(self, s: Statement) -> Origins:
        """The operations of a statement: a loop's are those inside."""
        known = self._inside.get(id(s))
        if known is None:
            known = origins_in(s, self._steps)
            self._inside[id(s)] = known
        return known

    def _kept_value(self, number: int, dtype: np.dtype) -> Val:
        with self._at(self._scalars.get(number, UNKNOWN)):
            return super()._kept_value(number, dtype)

    def _statement(self, s: Statement) -> None:
        with self._at(self._of(s)):
            super()._statement(s)

    def _for(self, s: For, lo: str, hi: str) -> None:
        with self._at(self._of(s)):
            super()._for(s, lo, hi)

    def _compute(self, expr: Expr) -> Val:
        origins = expr.origins | self._now if isinstance(expr, Load) else expr.origins
        with self._at(origins):
            return super()._compute(expr)

    def _step(self, step: Step, r: Running, slots: list[str], mask: Val | None) -> None:
        with self._at(step.origins):
            super()._step(step, r, slots, mask)

    def _initial(self, r: Running, emitter: VectorEmitter, lanes: int) -> tuple[Val, ...]:
        with self._at(self._steps.get(r.accumulator.name, UNKNOWN)):
            return super()._initial(r, emitter, lanes)

    def _combine(self, r: Running, e: VectorEmitter, left: tuple[Val, ...], right: tuple[Val, ...]) -> tuple[Val, ...]:
        with self._at(self._steps.get(r.accumulator.name, UNKNOWN)):
            return super()._combine(r, e, left, right)

    def _absorb(self, r: Running, value: tuple[Val, ...], e: VectorEmitter, lanes: int) -> None:
        with self._at(self._steps.get(r.accumulator.name, UNKNOWN)):
            super()._absorb(r, value, e, lanes)

    def _prepare_running(self, r: Running, e: VectorEmitter, lanes: int) -> None:
        with self._at(self._steps.get(r.accumulator.name, UNKNOWN)):
            super()._prepare_running(r, e, lanes)

    def _end(self, accumulator: Accumulator, s: For) -> None:
        with self._at(self._steps.get(accumulator.name, UNKNOWN)):
            super()._end(accumulator, s)

    def _spend(self, times: str, steps: int) -> None:
        with self._at(UNKNOWN, SIGNALS):
            super()._spend(times, steps)

    def _look_if_spent(self) -> None:
        with self._at(UNKNOWN, SIGNALS):
            super()._look_if_spent()

    def _look(self, condition: str, also: Any = None) -> None:
        with self._at(UNKNOWN, SIGNALS):
            super()._look(condition, also)

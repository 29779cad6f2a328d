"""Kernels of a Program with the operations that each instruction came from: what people look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jitlab.ir import UNKNOWN, Origins
from jitlab.ir.programs.program import Accumulator, Expr, Finish, For, Load, Statement, Step
from jitlab.ir.programs.program_lines import origins_in, steps_of
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.located_text import LocatedText, Places, debug_text, numbered_lines
from jitlab.targets.llvm.values import Val
from jitlab.targets.target import Place

from .kernel_module import TRIPLE, ScheduledKernels, with_meetings, written_kernels
from .kernel_writer import KernelWriter
from .product_writer import ProductWriter
from .slots import ContextSlots

#: What an instruction is for that came from no operation.
ENTRY = "entry"


@dataclass(frozen=True)
class LocatedKernels:
    """`lines` are those of the module's text, each with the number of its place (0: none, a label or a declaration)."""

    lines: list[tuple[str, int]]
    places: Places
    debug: str  # the same module with a debug location at each instruction
    functions: dict[str, str]  # name of a phase's function -> of its kernel

    @property
    def text(self) -> str:
        return TRIPLE + "".join(f"{text}\n" for text, _ in self.lines)


def located_kernels(program: ScheduledKernels) -> LocatedKernels:
    """The kernels of a Program, with places. Raises Unscheduled."""
    program = with_meetings(program)
    slots = ContextSlots(program, program.parts)
    places, steps = Places(), steps_of(program)

    class Located(KernelWriter):
        """Writes what KernelWriter writes, and tells the text where it is: what is for no statement, as numbers of iterations,
        is of all statements of the phase."""

        text = LocatedText

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            phase = self.phase
            self._inside: dict[int, Origins] = {}
            self._whole = UNKNOWN.union(*(self._of(s) for s in phase.statements))
            self._text().at = places.number(Place(self._whole, "", phase.kernel))

        def _text(self) -> LocatedText:
            assert isinstance(self.fn, LocatedText)
            return self.fn

        @contextmanager
        def _at(self, origins: Origins, role: str = "") -> Iterator[None]:
            """What is written inside came from these operations; from those around where there are none."""
            fn = self._text()
            before = fn.at
            if origins or role:
                fn.at = places.number(Place(origins, role, self.phase.kernel))
            yield
            fn.at = before

        def _of(self, s: Statement) -> Origins:
            """The operations of a statement: a loop's are those inside."""
            if id(s) not in self._inside:
                self._inside[id(s)] = origins_in(s, steps)
            return self._inside[id(s)]

        def _take_parameters(self) -> None:
            with self._at(UNKNOWN, ENTRY):
                super()._take_parameters()

        def _statement(self, s: Statement) -> None:
            with self._at(self._of(s)):
                super()._statement(s)

        def _compute(self, expr: Expr) -> Val:
            now = places[self._text().at].origins
            with self._at(expr.origins | now if isinstance(expr, Load) else expr.origins):
                return super()._compute(expr)

        def _step(self, s: Step) -> None:
            with self._at(s.origins):
                super()._step(s)

        def _begin(self, accumulator: Accumulator, s: For) -> None:
            with self._at(steps.get(accumulator.name, UNKNOWN)):
                super()._begin(accumulator, s)

        def _end(self, s: For) -> None:
            with self._at(UNKNOWN.union(*(steps.get(a.name, UNKNOWN) for a in s.accumulators))):
                super()._end(s)

        def _finish_partials(self, s: Finish) -> None:
            with self._at(steps.get(s.accumulator.name, UNKNOWN)):
                super()._finish_partials(s)

    class LocatedProduct(Located, ProductWriter):
        """The same of a product of matrices."""

    made = written_kernels(slots, program.schedules, lambda kind: LocatedProduct if kind == "product" else Located)
    functions = [text for text, _ in made]
    kernels = {f.name: phase.kernel for (_, f), phase in zip(made, slots.phases, strict=True)}
    return LocatedKernels(numbered_lines(functions), places, TRIPLE + debug_text(functions, places), kernels)

"""A Program's LLVM module with the origin of each instruction: which operations it came from, or what else it is for.

The text without origins is that of `module_for`, instruction by instruction: this is written only when a user asks for the
code. Each distinct origin has a number, and that number stands as the "line" of LLVM's debug locations, so that many operations
may share an instruction and passes carry the whole set along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from jitlab.ir import UNKNOWN, Origins
from jitlab.ir.programs.program import Accumulator, Expr, For, Load, Scalar, Statement, Step, all_expressions
from jitlab.ir.programs.program_lines import origins_in, steps_of
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.function_text import FunctionText, Phi, module_text
from jitlab.targets.llvm.program_phases import Phase
from jitlab.targets.llvm.values import Val
from jitlab.targets.llvm.vector_emitter import VectorEmitter
from jitlab.targets.target import Place

from .calls.context import ContextLayout
from .cpu_schedule import Scheduled
from .emit.codegen import functions_of
from .emit.phase import PhaseWriter
from .emit.reductions import Running

#: Numbers of metadata of ours; those of branch weights and non-temporal stores are below.
FIRST = 1000

#: What an instruction is for that came from no operation.
ENTRY, SIGNALS = "entry", "signals"


@dataclass
class Places:
    """The distinct places of a module. Number 0 is nowhere, as in LLVM's line tables."""

    numbers: dict[Place, int] = field(default_factory=dict)
    found: list[Place] = field(default_factory=lambda: [Place(UNKNOWN, "", "")])

    def number(self, place: Place) -> int:
        n = self.numbers.get(place)
        if n is None:
            n = self.numbers[place] = len(self.found)
            self.found.append(place)
        return n

    def __getitem__(self, number: int) -> Place:
        return self.found[number] if 0 <= number < len(self.found) else self.found[0]


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
    lines: list[tuple[str, int]] = []
    numbers = {f.name: f.numbers() for f in functions if isinstance(f, LocatedText)}
    at: Iterator[int] = iter(())
    for line in module_text(functions).splitlines():
        if line.startswith("define "):
            at = iter(numbers.get(line.partition("@")[2].partition("(")[0], ()))
            lines.append((line, 0))
        elif line.startswith("  "):
            lines.append((line, next(at, 0)))
        else:
            lines.append((line, 0))
    return LocatedModule(lines, places, _debug_text(functions, places), kernels)


class LocatedText(FunctionText):
    """A function that notes for each instruction the place that was current when it was written."""

    def __init__(self, name: str, params: Sequence[tuple[str, str]] = (), returns: str = "void") -> None:
        super().__init__(name, params, returns)
        self.at = 0
        self._at: list[int] = []
        self._at_ahead: list[int] = []
        self._at_allocas: list[int] = []

    def numbers(self) -> list[int]:
        """Of its instructions, in the order they are rendered."""
        own = [n for n, line in zip(self._at, self._lines, strict=True) if isinstance(line, Phi) or not line.endswith(":")]
        return [*self._at_allocas, *self._at_ahead, *own]

    def _note(self) -> None:
        self._at += [self.at] * (len(self._lines) - len(self._at))
        self._at_ahead += [self.at] * (len(self._ahead) - len(self._at_ahead))
        self._at_allocas += [self.at] * (len(self._allocas) - len(self._at_allocas))

    def instr(self, text: str) -> str:
        name = super().instr(text)
        self._note()
        return name

    def emit(self, text: str) -> None:
        super().emit(text)
        self._note()

    def ahead(self, text: str) -> str:
        name = super().ahead(text)
        self._note()
        return name

    def ahead_emit(self, text: str) -> None:
        super().ahead_emit(text)
        self._note()

    def block(self, name: str) -> None:
        super().block(name)
        self._note()

    def phi(self, type: str, incoming: Iterable[tuple[object, str]] = ()) -> Phi:
        phi = super().phi(type, incoming)
        self._note()
        return phi

    def alloca(self, type: str, align: int = 64) -> str:
        name = super().alloca(type, align)
        self._note()
        return name


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


def _debug_text(functions: Sequence[FunctionText], places: Places) -> str:
    """The module with debug locations: the number of a place is a line of a file that does not exist."""
    cu, flags, file, type = (f"!{FIRST + k}" for k in range(4))
    metadata = [
        f"!llvm.dbg.cu = !{{{cu}}}", f'!llvm.module.flags = !{{{flags}}}',
        f'{cu} = distinct !DICompileUnit(language: DW_LANG_C99, file: {file}, isOptimized: true, runtimeVersion: 0,'
        " emissionKind: LineTablesOnly)",
        f'{flags} = !{{i32 2, !"Debug Info Version", i32 3}}', f'{file} = !DIFile(filename: "origins", directory: "")',
        f"{type} = !DISubroutineType(types: !{{null}})",
    ]  # fmt: skip
    number = FIRST + 4
    where: dict[tuple[str, int], str] = {}
    subprograms: dict[str, str] = {}
    for f in functions:
        if not isinstance(f, LocatedText):
            continue
        numbers = f.numbers()
        subprograms[f.name] = f"!{number}"
        number += 1
        metadata.append(
            f'{subprograms[f.name]} = distinct !DISubprogram(name: "{f.name}", scope: {file}, file: {file}, line: 1,'
            f" type: {type}, scopeLine: 1, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {cu})"
        )
        for n in dict.fromkeys(numbers):
            where[f.name, n] = f"!{number}"
            number += 1
            metadata.append(f"{where[f.name, n]} = !DILocation(line: {n}, column: 1, scope: {subprograms[f.name]})")
    at = {f.name: iter(f.numbers()) for f in functions if isinstance(f, LocatedText)}
    name = ""
    out = []
    for line in module_text(functions).splitlines():
        if line.startswith("define "):
            name = line.partition("@")[2].partition("(")[0]
            if name in at:
                line = f"{line.removesuffix(' {')} !dbg {subprograms[name]} {{"
        elif line.startswith("  ") and name in at:
            line = f"{line}, !dbg {where[name, next(at[name])]}"
        out.append(line)
    return "\n".join([*out, *metadata]) + "\n"

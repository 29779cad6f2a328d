"""LLVM text whose instructions know their place: a function that notes it, and debug locations that LLVM's passes carry along.

Each distinct place has a number, and that number stands as the "line" of LLVM's debug locations, so that many operations may
share an instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from jitlab.ir import UNKNOWN
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.target import Place

from .function_text import FunctionText, Phi, module_text

#: Numbers of metadata of ours; those of branch weights and non-temporal stores are below.
FIRST = 1000


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


def numbered_lines(functions: Sequence[FunctionText]) -> list[tuple[str, int]]:
    """The lines of the functions' module, each with the number of its place (0: none, a label or a declaration)."""
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
    return lines


def debug_text(functions: Sequence[FunctionText], places: Places) -> str:
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

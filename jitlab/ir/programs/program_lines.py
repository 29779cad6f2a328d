"""A Program's text line by line, each line with the operations it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from jitlab.ir.types import UNKNOWN, Origin, Origins

from .program import Accumulator, Apply, Call, Expr, Finish, For, Partial, Printer, Program, Statement, Step, expressions, walk

#: Ends a line whose operations are known, before their number: no name holds it.
MARK = "\0"


def located_lines(program: Program, written: bool = False) -> list[tuple[str, Origins, str]]:
    """(line, operations, kernel) of `program.text`, or `written` as a program that uses NumPy would be. The head, which
    declares memory and sizes, came from no operation."""
    body: list[tuple[str, Origins, str]] = []
    steps = steps_of(program)
    for kernel in program.kernels:
        body.append((f"  kernel {kernel.name}:", UNKNOWN, kernel.name))
        printer = _Written(steps, program.calls) if written else _Located(steps)
        for statement in kernel.body:
            for line in printer.statement(statement):
                text, _, number = line.partition(MARK)
                body.append(("    " + text, printer.found[int(number or 0)], kernel.name))
    lines = program.text.splitlines()
    head = lines[: len(lines) - len(body)]
    return [*((line, UNKNOWN, "") for line in head), *body]


def steps_of(program: Program) -> dict[str, Origins]:
    """The operations of each accumulator, by its name."""
    found: dict[str, Origins] = {}
    for kernel in program.kernels:
        for s in walk(kernel.body):
            if isinstance(s, Step):
                found[s.accumulator.name] = found.get(s.accumulator.name, UNKNOWN) | s.origins
    return found


def origins_in(s: Statement, steps: dict[str, Origins]) -> Origins:
    """The operations that a statement came from; a loop over elements came from those inside. `steps`: of accumulators."""
    found: set[Origin] = set()
    for inner in walk([s]):
        if isinstance(inner, (Finish, Partial)):
            found |= _of(inner.accumulator, steps)
        elif not isinstance(inner, For):
            found |= inner.origins
    if not found:
        found.update(*(e.origins for inner in walk([s]) for e in expressions(inner)))
    return frozenset(found)


def _of(accumulator: Accumulator, steps: dict[str, Origins]) -> Origins:
    return steps.get(accumulator.name, UNKNOWN)


class _Located(Printer):
    """Prints the same and puts a mark and a number behind each line."""

    def __init__(self, steps: dict[str, Origins]) -> None:
        super().__init__()
        self.steps = steps
        self.found: list[Origins] = [UNKNOWN]

    def _mark(self, lines: list[str], origins: Origins) -> None:
        for i, line in enumerate(lines):
            if MARK not in line:
                lines[i] = f"{line}{MARK}{len(self.found)}"
        self.found.append(origins)

    def statement(self, s: Statement) -> list[str]:
        lines = super().statement(s)
        own = origins_in(s, self.steps) if isinstance(s, (For, Finish, Partial)) else s.origins
        moved = UNKNOWN.union(*(e.origins for e in expressions(s) if not isinstance(e, Apply)))
        self._mark(lines, own | moved or origins_in(s, self.steps))
        return lines

    def expr(self, e: Expr, lines: list[str]) -> str:
        count = len(lines)
        text = super().expr(e, lines)
        if isinstance(e, Apply) and len(lines) > count:
            own = lines[count:]
            self._mark(own, e.origins.union(*(part.origins for part in e.parts if not isinstance(part, Apply))))
            lines[count:] = own
        return text


class _Written(_Located):
    """The same in NumPy's words: "v2 = v1 - r0", "v3 = exp(v2)"."""

    def __init__(self, steps: dict[str, Origins], calls: Sequence[Any]) -> None:
        super().__init__(steps)
        self.calls = calls

    def kind(self, op: Any) -> str:
        return str(op).replace(op.name, op.word, 1)

    def library(self, call: Call) -> str:
        return self.kind(self.calls[call.number])

    def applied(self, e: Apply, arguments: Sequence[str]) -> str:
        word = str(e.op.word)
        if not word[0].isalpha() and len(arguments) > 1:
            return f" {word} ".join(arguments)
        given = [f"{f.name}={getattr(e.op, f.name)}" for f in fields(e.op) if not (e.indices and f.name == "shape")]
        return f"{word}({', '.join([*arguments, *given])})"

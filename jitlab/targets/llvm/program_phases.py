"""Phases: the parts of a Program that become a function, or a kernel, each; what statements write, change and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jitlab.ir.programs.program import (
    Assign,
    Buffer,
    Call,
    Expr,
    Finish,
    For,
    Gemm,
    If,
    Let,
    Load,
    Local,
    Partial,
    Program,
    Read,
    Repeat,
    Scalar,
    Statement,
    Step,
    Store,
    Variable,
    all_expressions,
    expressions,
    walk,
    work,
    written,
)
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

#: What a call of a library is taken for, in operations on elements.
CALL_STEPS = 1 << 14

#: For estimates: the turns of a loop without a count.
UNKNOWN_TURNS = 100

@dataclass(frozen=True)
class Phase:
    """A function of the code: statements that run once, or one loop that runs in chunks of its iterations (`outer`)."""

    kernel: str
    statements: list[Statement]
    outer: For | None

    @lazy
    def expressions(self) -> list[Expr]:
        """All that it evaluates, each once."""
        return list(all_expressions(self.statements))

    @lazy
    def changes(self) -> frozenset[str]:
        return changes(self.statements)

    @lazy
    def is_whole(self) -> bool:
        """Is it one chunk? What changes an argument is not left half done when a signal ends the call."""
        return self.outer is None or any(f"={b.name}" in self.changes for b in self.buffers if b.kind == "input")

    @lazy
    def buffers(self) -> tuple[Buffer, ...]:
        """What it reads and writes, each once."""
        found: dict[str, Buffer] = {}
        for s in walk(self.statements):
            for buffer in written(s):
                found[buffer.name] = buffer
            if isinstance(s, Gemm):
                found |= {s.a.name: s.a, s.b.name: s.b}
            elif isinstance(s, Call):
                found |= {b.name: b for b in s.ins}
            elif isinstance(s, Finish):
                found |= {b.name: b for b in s.partials}
        for e in self.expressions:
            if isinstance(e, Load):
                found[e.buffer.name] = e.buffer
        return tuple(found.values())

    @lazy
    def variables(self) -> dict[str, Variable]:
        found = {s.variable.name: s.variable for s in walk(self.statements) if isinstance(s, Assign)}
        return found | {e.variable.name: e.variable for e in self.expressions if isinstance(e, Read)}

    @lazy
    def bound(self) -> dict[str, np.dtype]:
        """The Locals that its top level binds."""
        found: dict[str, np.dtype] = {}
        for s in self.statements:
            if isinstance(s, Let):
                found[s.name] = s.value.dtype
            elif isinstance(s, Finish):
                found[s.accumulator.name] = s.accumulator.result
            elif isinstance(s, For) and s.finish:
                found |= {a.name: a.result for a in s.accumulators}
        return found

    @lazy
    def wanted(self) -> dict[str, np.dtype]:
        """The Locals that it reads."""
        return {e.name: e.dtype for e in self.expressions if isinstance(e, Local)}

    @lazy
    def scalars(self) -> frozenset[str]:
        """The numbers of the program that it reads."""
        return frozenset(e.name for e in self.expressions if isinstance(e, Scalar))


def phases_of(program: Program) -> list[Phase]:
    """In the order they run."""
    return [phase for kernel in program.kernels for phase in phases_in(kernel.name, kernel.body)]


def phases_in(kernel: str, statements: Sequence[Statement]) -> list[Phase]:
    """Those of some statements of a kernel. A loop is a phase of its own, unless its accumulators finish after it."""
    result: list[Phase] = []
    straight: list[Statement] = []
    for statement in statements:
        if isinstance(statement, For) and not statement.accumulators:
            if straight:
                result.append(Phase(kernel, straight, None))
            result.append(Phase(kernel, [statement], statement))
            straight = []
        else:
            straight.append(statement)
    if straight:
        result.append(Phase(kernel, straight, None))
    return result


def changes(statements: Sequence[Statement]) -> frozenset[str]:
    """What has another value after the statements, or in their next turn, in the words of `Expr.depends`."""
    names: set[str] = set()
    for s in walk(statements):
        names.update(f"={buffer.name}" for buffer in written(s))
        if isinstance(s, For):
            names.add(s.var)
            names.update(a.name for a in s.accumulators)
        elif isinstance(s, (Step, Finish)):
            names.add(s.accumulator.name)
            if isinstance(s, Step) and s.bound:
                names.add(s.bound)
        elif isinstance(s, Let):
            names.add(s.name)
        elif isinstance(s, Assign):
            names.add(f"={s.variable.name}")
        elif not isinstance(s, (Store, Gemm, Call, Partial)) and hasattr(s, "symbol"):
            names.add(s.symbol)
    return frozenset(names)


def steps(statements: Sequence[Statement], sizes: Mapping[str, int]) -> int:
    """Operations on elements in one run of the statements, about; what an expression shares counts once."""
    total = 0
    for s in statements:
        own = 1 + int(sum(work(e) for e in expressions(s)))
        if isinstance(s, For):
            known = [max(i.const.evaluate(sizes), 0) for i in s.extent if not i.vars]
            total += min(known, default=1) * steps(s.body, sizes)
        elif isinstance(s, Repeat):
            times = UNKNOWN_TURNS if s.count is None else max(s.count.evaluate(sizes), 0)
            total += times * (own + steps(s.before, sizes) + steps(s.body, sizes))
        elif isinstance(s, If):
            total += own + max(steps(s.then, sizes), steps(s.orelse, sizes))
        elif isinstance(s, Gemm):
            total += s.m.evaluate(sizes) * s.n.evaluate(sizes) * s.k.evaluate(sizes) // 8
        elif isinstance(s, Call):
            total += CALL_STEPS
        else:
            total += own
    return total

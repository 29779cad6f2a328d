"""Loops of a thread: counted ones, nests that are taken together, and vectors of neighbours where they lie so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from jitlab.ir.programs.program import Buffer, For, Index, Statement
from jitlab.targets.llvm.expressions import ExpressionWriter, InVector
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.values import part_dtype

from .gpu_emitter import THREAD, GpuEmitter
from .schedules import Schedule
from .teams import Team


class ThreadLoops(ExpressionWriter):
    """`team`: the threads that run a statement together; None where each runs it for itself."""

    def __init__(self, fn: FunctionText, schedule: Schedule) -> None:
        super().__init__(fn, THREAD)
        self.scalar = GpuEmitter(fn, 1, THREAD)
        self.schedule = schedule
        self.team: Team | None = None
        self.aligned_lanes = 0  # in a loop whose vectors start at multiples of their size

    def _block(self, statements: Sequence[Statement]) -> None:
        """Write the statements of a block."""
        raise NotImplementedError

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Inside, each thread runs what is its own."""
        team, self.team = self.team, None
        yield
        self.team = team

    def _count(self, first: str, end: str, step: str, body: Callable[[str], None]) -> None:
        """for i in first..end by step"""
        fn = self.fn
        head, inside, after = fn.label("loop"), fn.label("body"), fn.label("after")
        before = fn.current
        fn.branch(head)
        fn.block(head)
        i = fn.phi("i64", [(first, before)])
        fn.branch_if(fn.instr(f"icmp slt i64 {i}, {end}"), inside, after)
        fn.block(inside)
        with self.scope():
            body(str(i))
        i.add_incoming(fn.instr(f"add nsw i64 {i}, {step}"), fn.current)
        fn.branch(head)
        fn.block(after)

    def _body(self, s: For, i: str) -> None:
        self.vars[s.var] = i
        self._block(s.body)
        del self.vars[s.var]

    def _total(self, nest: Sequence[For]) -> str:
        """How many iterations a nest has."""
        total = self._extent(nest[0].extent)
        for loop in nest[1:]:
            total = self.fn.instr(f"mul nsw i64 {total}, {self._extent(loop.extent)}")
        return total

    @contextmanager
    def _placed(self, nest: Sequence[For], i: str) -> Iterator[None]:
        """In iteration number `i` of a nest."""
        fn = self.fn
        for loop in reversed(nest[1:]):
            extent = self._extent(loop.extent)
            self.vars[loop.var] = fn.instr(f"urem i64 {i}, {extent}")
            i = fn.instr(f"udiv i64 {i}, {extent}")
        if nest:
            self.vars[nest[0].var] = i
        yield
        for loop in nest:
            del self.vars[loop.var]

    # -- vectors

    @contextmanager
    def _in_vector(self, var: str, base: str, lanes: int) -> Iterator[None]:
        self.vector, self.aligned_lanes = InVector(var, base, None, GpuEmitter(self.fn, lanes, THREAD)), lanes
        yield
        self.vector, self.aligned_lanes = None, 0

    def _alignment(self, buffer: Buffer) -> int | None:
        return self.aligned_lanes * part_dtype(buffer.dtype).itemsize * (2 if buffer.dtype.kind == "c" else 1) or None

    def _fits(self, accesses: Sequence[tuple[Buffer, Index]], var: str, lanes: int) -> str:
        return self._fits_all(accesses, [var], lanes)

    def _fits_all(self, accesses: Sequence[tuple[Buffer, Index]], variables: Sequence[str], lanes: int) -> str:
        """Do vectors of so many neighbours, along one of these loops' variables, start at multiples of their size? An i1."""
        fn, bits = self.fn, "0"
        found: dict[tuple[str, str], None] = {}
        for buffer, offset in accesses:
            found[f"ptrtoint ptr {self._pointer(buffer)} to i64", str(lanes * buffer.dtype.itemsize - 1)] = None
            for p in (offset.const, *(k for v, k in offset.terms if v not in variables)):
                if p.value is None or p.value % lanes:
                    found[self._poly(p), str(lanes - 1)] = None
        for text, low in found:
            value = fn.instr(text) if text.startswith("ptrtoint") else text
            bits = fn.instr(f"or i64 {bits}, {fn.instr(f'and i64 {value}, {low}')}")
        return fn.instr(f"icmp eq i64 {bits}, 0")

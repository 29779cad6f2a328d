"""Rows that a team of threads keeps in registers: each element is read from memory once, however many loops go over the row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from jitlab.ir.programs.program import ONE, For, Load, Statement, Store
from jitlab.targets.llvm.expressions import ExpressionWriter
from jitlab.targets.llvm.values import BOOL, Val

from .schedules import side_by_side
from .teams import Team

if TYPE_CHECKING:
    from .kernel_writer import KernelWriter


class HeldRow:
    """The loops of a row, unrolled: a thread takes `held` vectors of it, the same ones in each loop. Of these the last one may
    lie beyond the row's end: it stands for the row's last vector then, and counts for nothing.

    `condition`: may a row be taken so, an i1 that is the same for all rows; `is_on`: what is written now is this way through
    the row; `is_in_loop`: in one of its loops; `counts`: whether the vector that is written now does, None where all do.
    """

    def __init__(self, writer: KernelWriter, body: Sequence[Statement], team: Team) -> None:
        self.writer, self.body, self.team = writer, body, team
        self.held, self.lanes = writer.schedule.held, writer.schedule.lanes
        self.is_on = False
        self.is_in_loop = False
        self.counts: Val | None = None
        self._known: dict[Hashable, Val] = {}  # of vectors of the row: what was loaded, or stored in scratch
        self._number = 0
        self._loop: For | None = None
        self.condition, self._places = self._prepare([s for s in body if isinstance(s, For)])

    def _prepare(self, loops: Sequence[For]) -> tuple[str, list[tuple[str, Val | None]]]:
        """May a row be taken so? And where the thread's vectors start, with whether they count."""
        w, fn, team = self.writer, self.writer.fn, self.team
        extent = w._extent(loops[0].extent)
        accesses = [(a.buffer, a.offset) for loop in loops for a in side_by_side(loop.body, loop.var) if a.buffer.kind != "row"]
        fits = w._fits_all(accesses, [loop.var for loop in loops], self.lanes)
        tail = fn.instr(f"and i64 {extent}, {self.lanes - 1}")
        each = team.size * self.lanes
        least = max((self.held - 1) * each, self.lanes)
        for text in (f"icmp eq i64 {tail}, 0", f"icmp sge i64 {extent}, {least}", f"icmp sle i64 {extent}, {self.held * each}"):
            fits = fn.instr(f"and i1 {fits}, {fn.instr(text)}")
        places: list[tuple[str, Val | None]] = []
        last = fn.instr(f"sub i64 {extent}, {self.lanes}")
        first = fn.instr(f"mul nsw i64 {team.rank}, {self.lanes}")
        for k in range(self.held):
            at = fn.instr(f"add nsw i64 {first}, {k * each}")
            if k < self.held - 1:
                places.append((at, None))
                continue
            inside = fn.instr(f"icmp slt i64 {at}, {extent}")
            places.append((fn.instr(f"select i1 {inside}, i64 {at}, i64 {last}"), Val(BOOL, inside)))
        return fits, places

    def either(self, held: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """All rows this way, or the other one where they do not fit."""
        w, fn = self.writer, self.writer.fn
        here, there, after = fn.label("held"), fn.label("not.held"), fn.label("rows.done")
        fn.branch_if(self.condition, here, there)
        for label, rows in ((here, held), (there, otherwise)):
            fn.block(label)
            with w.scope():
                rows()
            fn.branch(after)
        fn.block(after)

    def row(self) -> None:
        """A row this way."""
        w = self.writer
        self.is_on, self._known = True, {}
        alone, w.team = w.team, self.team
        w._turn([], lambda: w._block(self.body))
        w.team = alone
        self.is_on, self._known = False, {}

    def loop(self, s: For) -> None:
        """One of the row's loops, with all that it does."""
        w = self.writer
        self._loop, self.is_in_loop = s, True
        for number, (at, counts) in enumerate(self._places):
            self._number, self.counts = number, counts
            with w._alone(), w._in_vector(s.var, at, self.lanes):
                w._body(s, at)
        self._loop, self.is_in_loop, self.counts = None, False, None

    def _key(self, access: Load | Store) -> Hashable:
        assert self._loop is not None
        rest = tuple(term for term in access.offset.terms if term[0] != self._loop.var)
        return self._number, access.buffer.name, access.offset.const, rest

    def _is_vector(self, access: Load | Store) -> bool:
        assert self._loop is not None
        return not access.gathered and access.offset.coefficient(self._loop.var) == ONE

    def load(self, e: Load) -> Val:
        """A vector that is known, or else loaded."""
        if not self._is_vector(e):
            return ExpressionWriter._load(self.writer, e)
        key = self._key(e)
        if key not in self._known:
            self._known[key] = ExpressionWriter._load(self.writer, e)
        return self._known[key]

    def store(self, s: Store) -> None:
        """Scratch stays in registers; other memory is written where the vector counts."""
        w = self.writer
        value = w._eval(s.value)
        if s.buffer.kind == "row":
            self._known[self._key(s)] = w.e.splat(value)
            return
        if self.counts is None:
            ExpressionWriter._store(w, s)
        else:
            w._if(self.counts.text, lambda: ExpressionWriter._store(w, s))

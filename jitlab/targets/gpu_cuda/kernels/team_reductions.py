"""Reductions of a team: its threads divide the elements, and their running values are joined by a fixed tree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from jitlab.ir.programs.program import Accumulator, Buffer, Finish, For, Index, Step
from jitlab.targets.llvm.expressions import I64
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.values import Val

from .gpu_emitter import THREAD, GpuEmitter
from .running_values import RunningValue, combined, has_position, is_ordered, over_lanes
from .schedules import Schedule, lanes_of, side_by_side
from .teams import Team
from .thread_loops import ThreadLoops

if TYPE_CHECKING:
    from .held_rows import HeldRow


class TeamReductions(ThreadLoops):
    """Accumulators, and the loops that feed them."""

    def __init__(self, fn: FunctionText, schedule: Schedule) -> None:
        super().__init__(fn, schedule)
        self.running: dict[str, RunningValue] = {}
        self.partial: dict[str, tuple[Val, ...]] = {}
        self.together: set[str] = set()  # accumulators whose elements a team has divided among its threads
        self.holding: HeldRow | None = None  # a row that is kept in registers

    def _begin(self, accumulator: Accumulator, s: For) -> None:
        lanes, e = self.vector.emitter.width if self.vector is not None else 0, self.e
        is_held = self.holding is not None and self.holding.is_on
        if is_held:
            lanes = self.schedule.lanes
            e = GpuEmitter(self.fn, lanes, THREAD)
        assert isinstance(e, GpuEmitter)
        self.running[accumulator.name] = value = RunningValue(self.fn, accumulator, e, lanes, is_held)
        value.begin()

    def _step(self, s: Step) -> None:
        running = self.running[s.accumulator.name]
        index = self._index_value(s.index) if has_position(s.accumulator) else None
        where = self.holding.counts if self.holding is not None else None
        new = running.step(s, self._eval(s.value), index, where)
        if s.bound:
            self.locals[s.bound] = new

    def _divide(self, s: For, team: Team) -> None:
        """The elements of a reduction, divided among the threads of a team."""
        names = [inner.accumulator.name for inner in s.body if isinstance(inner, Step)]
        self.together.update(names)
        accesses = [(a.buffer, a.offset) for a in side_by_side(s.body, s.var)]
        lanes = self._lanes_of(s) if accesses else 1
        end = self._extent(s.extent)
        with self._alone():
            whole = "0"
            if lanes > 1:
                whole = self._divide_vectors(s, team, names, accesses, lanes, end)
            first = team.rank if whole == "0" else self.fn.instr(f"add nsw i64 {whole}, {team.rank}")
            self._count(first, end, str(team.size), lambda i: self._body(s, i))

    def _lanes_of(self, s: For) -> int:
        """Rows that do not fit in registers, although they did when the kernel was written, are rare: their code is short."""
        return 1 if self.schedule.held else lanes_of(s)

    def _divide_vectors(
        self, s: For, team: Team, names: Sequence[str], accesses: Sequence[tuple[Buffer, Index]], lanes: int, end: str
    ) -> str:
        """The elements that are taken in vectors; how many there are."""
        fn = self.fn
        fits = self._fits(accesses, s.var, lanes)
        whole = fn.instr(f"select i1 {fits}, i64 {fn.instr(f'and i64 {end}, {-lanes}')}, i64 0")
        scalars = {name: self.running[name] for name in names}
        with self._in_vector(s.var, "0", lanes):
            for name in names:
                self._begin(scalars[name].accumulator, s)

        def one(i: str) -> None:
            with self._in_vector(s.var, i, lanes):
                self._body(s, i)

        first = fn.instr(f"mul nsw i64 {team.rank}, {lanes}")
        self._count(first, whole, str(team.size * lanes), one)
        for name, running in scalars.items():
            wide = self.running[name]
            running.join(over_lanes(wide.accumulator, wide.e, wide.value()))
        self.running.update(scalars)
        return whole

    def _end(self, s: For) -> None:
        """The accumulators of a loop, when it is done: a team joins all their values at once."""
        ended = {a.name: self._ended(a) for a in s.accumulators}
        together = [a for a in s.accumulators if a.name in self.together]
        if together:
            self.together.difference_update(ended)
            ended |= self._joined([(a, ended[a.name]) for a in together])
        for accumulator in s.accumulators:
            if not s.finish:
                self.partial[accumulator.name] = ended[accumulator.name]
                continue
            count = self._index_text(accumulator.count) if accumulator.count is not None else "0"
            self._bind(accumulator, ended[accumulator.name], count)

    def _ended(self, accumulator: Accumulator) -> tuple[Val, ...]:
        """What the thread has of it."""
        running = self.running.pop(accumulator.name)
        is_wide = running.lanes and self.vector is None
        return over_lanes(accumulator, running.e, running.value()) if is_wide else running.value()

    def _joined(self, ended: Sequence[tuple[Accumulator, tuple[Val, ...]]]) -> dict[str, tuple[Val, ...]]:
        """The values of all threads of the team, by name of the accumulator."""
        e, starts = GpuEmitter(self.fn, 1, THREAD), [0]
        for _, values in ended:
            starts.append(starts[-1] + len(values))
        places = [slice(*ends) for ends in pairwise(starts)]

        def join(left: tuple[Val, ...], right: tuple[Val, ...]) -> tuple[Val, ...]:
            return tuple(v for (a, _), k in zip(ended, places, strict=True) for v in combined(a, e, left[k], right[k]))

        assert self.team is not None
        values = tuple(v for _, own in ended for v in own)
        found = self.team.joined(values, e, join, any(is_ordered(a) for a, _ in ended))
        return {a.name: found[k] for (a, _), k in zip(ended, places, strict=True)}

    def _bind(self, accumulator: Accumulator, value: tuple[Val, ...], count: str) -> None:
        e = self.e
        result = accumulator.op.finish(e, value if len(value) > 1 else value[0], e.value(count, I64))
        self.locals[accumulator.name] = e.cast(result, accumulator.result)

    def _finish_partials(self, s: Finish) -> None:
        """Partial results joined: by a team, or by the thread that wants them."""
        team, e = self.team, self.e
        assert isinstance(e, GpuEmitter)
        lanes = e.width if self.vector is not None else 0
        running = RunningValue(self.fn, s.accumulator, e, lanes)
        running.begin()
        template = running.now()
        at = s.base + Index.var("#").scale(s.stride)

        def one(i: str) -> None:
            self.vars["#"] = i
            values = tuple(
                self._partial_of(buffer, at, part, lanes) for buffer, part in zip(s.partials, template, strict=True)
            )
            running.join(values)
            del self.vars["#"]

        first, step = ("0", "1") if team is None else (team.rank, str(team.size))
        self._count(first, self._poly(s.count), step, one)
        value = running.value()
        if team is not None:
            value = team.joined(value, e, lambda a, b: combined(s.accumulator, e, a, b), is_ordered(s.accumulator))
        self._bind(s.accumulator, value, self._poly(s.total))

    def _partial_of(self, buffer: Buffer, at: Index, like: Val, lanes: int) -> Val:
        return self.e.load(self._address(buffer, at), like.dtype, lanes=lanes)

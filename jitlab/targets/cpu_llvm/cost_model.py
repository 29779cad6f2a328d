"""How long the kernels of a Program take on this processor, as far as that can be said beforehand.

Three things are counted, of which the slowest one takes the time of a loop: instructions, by their weights; what is loaded and
stored; and what comes from a cache further away or from memory, by how much else was touched since it was touched last. What a
library does is said for products of matrices alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitlab.ir import Poly
from jitlab.ir.programs.program import (
    LANES,
    ONE,
    Apply,
    Assign,
    Buffer,
    Call,
    CheckedIndex,
    Expr,
    For,
    Gemm,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Repeat,
    Statement,
    Step,
    Store,
    all_expressions,
    expressions,
    walk,
)
from jitlab.ir.programs.traffic import is_per_turn, touched, traffic
from jitlab.ir.size_facts import noting
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.program_phases import UNKNOWN_TURNS

from .cpu_schedule import SCANNED_ROWS, Scheduled, scan_in_rows
from .machine import features
from .speeds import SHIPPED_SPEEDS, Speeds

#: Nanoseconds of a byte that a loop over vectors loads and stores, of one element that lies apart from its neighbours, and of
#: one that an integer picks.
LOAD, STORE = 0.0022, 0.0045
APART, PICKED = 0.6, 0.35

#: As many bytes as a load or store takes that is not of a vector.
ALONE = 45

#: Of a loop that is entered, of lanes that are joined behind it, of a turn, of a step that waits for the one before, and of a
#: kernel.
ENTERED, JOINED, TURN, WAITING, KERNEL = 4.0, 12.0, 0.1, 0.5, 25.0

#: Of a call of a library for products, and the share of the peak that a large one reaches.
PRODUCT, SHARE = 300.0, 0.9

#: The rows or columns of which a product reaches half of that.
SKINNY = 16

#: The part of what is not the slowest that comes on top.
HIDDEN = 0.25


def predicted_seconds(
    program: Scheduled, sizes: Mapping[str, int] | None = None, speed: Speeds = SHIPPED_SPEEDS
) -> dict[str, float | None]:
    """Of each kernel in one call, by its name; None of what nobody can say. `sizes`: of the Program's symbols."""
    values = _Values(program.sizes if sizes is None else sizes)
    with noting(None):
        moving = _moving(program, values, speed)
        return {kernel.name: _kernel(program, kernel, values, moving[kernel.name], speed) for kernel in program.kernels}


class _Values:
    """Of polynomials; of symbols that only a run knows, a guess."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes: Mapping[str, int] = defaultdict(lambda: UNKNOWN_TURNS, sizes)

    def value(self, p: Poly) -> int:
        return int(p.evaluate(self.sizes))


def _kernel(program: Scheduled, kernel: Kernel, values: _Values, moving: _Moving, speed: Speeds) -> float | None:
    if any(isinstance(s, Call) for s in walk(kernel.body)) or is_per_turn(kernel):
        return None
    walked = _Walk(program, values, moving, speed)
    walked.statements(kernel.body)
    return (KERNEL + walked.ns) / 1e9


# ---- memory
#: Nanoseconds of what a kernel reads and writes of each buffer: ("read" or "written", its name).
_Moving = dict[tuple[str, str], float]


def _moving(program: Scheduled, values: _Values, speed: Speeds) -> dict[str, _Moving]:
    """Of each kernel, what comes from and goes to caches and memory when the Program runs again and again."""
    parts = [(kernel, *touched(kernel, values)) for kernel in program.kernels]
    sizes = [{name: max(read.get(name, 0), written.get(name, 0)) for name in {*read, *written}} for _, read, written in parts]
    found: dict[str, _Moving] = {}
    for number, (kernel, read, written) in enumerate(parts):
        turns = max(1.0, sum(traffic(kernel, values)) / max(sum(read.values()) + sum(written.values()), 1))
        own = found[kernel.name] = {}
        for name in sizes[number]:
            far = _since(sizes, number, name)
            own["read", name] = turns * speed.moving(read.get(name, 0), 0, far)
            own["written", name] = turns * speed.moving(0, written.get(name, 0), far, name in program.streamed)
    return found


def _since(sizes: Sequence[Mapping[str, int]], number: int, name: str) -> int:
    """Bytes that kernels touch between the last time one touched a buffer and this one, both included."""
    seen = dict(sizes[number])
    for back in range(1, len(sizes) + 1):
        other = sizes[(number - back) % len(sizes)]
        seen.update(other)
        if name in other:
            break
    return sum(seen.values())


# ---- instructions
@dataclass
class _Level:
    """A loop, or what is around all: how often what stands in it runs, its variable, the lanes of a turn and along which
    variable they are, and nanoseconds of its own instructions and of its loads and stores."""

    times: float
    names: frozenset[str] = frozenset()
    lanes: int = 0
    along: str = ""
    computing: float = 0.0
    loading: float = 0.0
    moving: float = 0.0

    @property
    def ns(self) -> float:
        """The slowest takes the time, and a part of what the next one takes is not hidden behind it."""
        _, second, first = sorted((self.computing, self.loading, self.moving))
        return first + HIDDEN * second


class _Walk:
    """Goes through the statements of a kernel and adds up what they take."""

    def __init__(self, program: Scheduled, values: _Values, moving: _Moving, speed: Speeds) -> None:
        self.program, self.values, self.speeds = program, values, speed
        self.weights = speed.weights
        self.moving = dict(moving)  # what nobody has moved yet
        self.vector_bytes = features().vector_bytes
        self.ns = 0.0
        self.levels = [_Level(1.0)]
        self.bound: dict[str, int] = {}  # what is bound, and at which depth
        self.repeats = 0
        self.waiting = WAITING
        self.written: set[str] = set()

    def statements(self, body: Sequence[Statement]) -> None:
        self.written = {f"={s.buffer.name}" for s in walk(body) if isinstance(s, Store)}
        self._block(body)
        self.ns += self.levels[0].ns

    def _block(self, body: Iterable[Statement]) -> None:
        seen: set[int] = set()
        for s in body:
            for e in expressions(s):
                self._expression(e, seen)
            self._statement(s)

    def _statement(self, s: Statement) -> None:
        if isinstance(s, For):
            self._for(s)
        elif isinstance(s, Repeat):
            self._repeat(s)
        elif isinstance(s, If):
            self._block(s.then)
            self._block(s.orelse)
        elif isinstance(s, Gemm):
            self._product(s)
        elif isinstance(s, Store):
            self._access(s.buffer, s.offset, bool(s.gathered), STORE, len(self.levels) - 1)
        elif isinstance(s, Step):
            self._step(s)
        elif isinstance(s, Let):
            self.bound[s.name] = len(self.levels) - 1

    def _for(self, s: For) -> None:
        turns = min(max(self.values.value(i.const), 0) for i in s.extent if not i.vars)
        if s.var == "j" and any("b" in level.names for level in self.levels):  # a block of a whole reduction
            turns = min(turns, *(self.values.value(i.const) for i in s.extent))
        tile = 1 if s.kind == LANES else self.program.vectors.get(id(s), 0)
        lanes = self._lanes(s) * tile
        around = self.levels[-1]
        level = _Level(around.times * turns, frozenset((s.var,)), lanes or around.lanes, s.var if lanes else around.along)
        if lanes:
            whole = lanes // tile
            level.times = around.times * whole * math.ceil(turns / whole)
        self.levels.append(level)
        waiting = self.waiting
        if not self.repeats and scan_in_rows(s) is not None:
            self.waiting /= SCANNED_ROWS
        self._block(s.body)
        self.waiting = waiting
        level.computing += level.times / max(level.lanes, 1) * TURN
        self.ns += self.levels.pop().ns
        joined = JOINED * len(s.accumulators) if lanes else 0.0
        self.ns += around.times / max(around.lanes, 1) * (ENTERED + joined)
        for accumulator in s.accumulators:
            self.bound[accumulator.name] = len(self.levels) - 1

    def _lanes(self, s: For) -> int:
        stored = (inner.buffer.dtype for inner in walk([s]) if isinstance(inner, Store))
        made = (e.dtype for e in all_expressions([s]) if isinstance(e, (Load, Apply)))
        widest = max([1, *(dtype.itemsize // (2 if dtype.kind == "c" else 1) for dtype in (*stored, *made))])
        return max((1 if self.repeats else 2) * self.vector_bytes // widest, 2)

    def _repeat(self, s: Repeat) -> None:
        turns = UNKNOWN_TURNS if s.count is None else max(self.values.value(s.count), 0)
        self.repeats += 1
        self.levels.append(_Level(self.levels[-1].times * turns, frozenset((s.symbol,))))
        if any(isinstance(inner, Assign) for inner in s.body):
            self.levels[-1].computing += self.levels[-1].times * WAITING
        self._block([*s.before, *s.body])
        self.ns += self.levels.pop().ns
        self.repeats -= 1

    def _product(self, s: Gemm) -> None:
        m, n, k = (self.values.value(n) for n in (s.m, s.n, s.k))
        work = (1 if s.is_square else 2) * m * n * k * (1.0 + SKINNY / max(min(m, n, k), 1))
        peak = self.speeds.peaks.flops_per_second / (1 if s.out.dtype.itemsize == 4 else 2)
        moved = sum(self.moving.pop(key, 0.0) for key in (("read", s.a.name), ("read", s.b.name), ("written", s.out.name)))
        self.ns += self.levels[-1].times * (PRODUCT + work / (SHARE * peak) * 1e9) + moved

    def _step(self, s: Step) -> None:
        op, level = s.accumulator.op, self.levels[-1]
        own = self.weights.operation(op, (s.value.dtype,), s.accumulator.result)
        waiting = 2 * self.waiting if s.bound and not level.lanes else 0.0
        level.computing += level.times * (own * self._scalar(level, s.value.dtype) + waiting)

    def _scalar(self, level: _Level, dtype: np.dtype[Any]) -> float:
        """How many times as long an instruction takes on an element where it has no lanes."""
        return 1.0 if level.lanes else self.vector_bytes / dtype.itemsize / 2

    def _depth(self, e: Expr) -> int:
        """The innermost loop that an expression changes in."""
        if not self.written.isdisjoint(e.depends):
            return len(self.levels) - 1
        own = [n for n, level in enumerate(self.levels) if not level.names.isdisjoint(e.depends)]
        return max([0, *own, *(self.bound.get(name, 0) for name in e.depends)])

    def _expression(self, e: Expr, seen: set[int]) -> None:
        todo = [e]
        while todo:
            e = todo.pop()
            if id(e) in seen:
                continue
            seen.add(id(e))
            todo += e.parts
            if isinstance(e, Load):
                self._access(e.buffer, e.offset, bool(e.gathered), LOAD, self._depth(e))
            elif isinstance(e, Apply) and e.op is not None:
                level = self.levels[self._depth(e)]
                own = self.weights.operation(e.op, tuple(part.dtype for part in e.args), e.dtype)
                level.computing += level.times * own * self._scalar(level, e.dtype)
            elif isinstance(e, CheckedIndex):
                level = self.levels[self._depth(e)]
                level.computing += level.times * 0.04 * self._scalar(level, e.dtype)

    def _access(self, buffer: Buffer, offset: Index, picked: bool, each: float, depth: int) -> None:
        level = self.levels[depth]
        level.moving += self.moving.pop(("read" if each == LOAD else "written", buffer.name), 0.0)
        if picked:
            level.loading += level.times * PICKED
        elif not level.lanes:
            level.loading += level.times * each * ALONE
        else:
            k = offset.coefficient(level.along)
            is_near = not k.terms or k == ONE
            level.loading += level.times * (each * buffer.dtype.itemsize if is_near else APART)

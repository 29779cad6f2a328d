"""Running values of reductions, as one thread has them: sums of floats with what rounding took away beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from jitlab.ir.programs.program import Accumulator, Step
from jitlab.ops.base import Reduction
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.values import Val

from .gpu_emitter import GpuEmitter


@dataclass
class RunningValue:
    """An accumulator's parts in memory that LLVM turns into registers, on `lanes` lanes (0: one for all). `lost`: of a
    compensated sum, what rounding took away so far (Knuth's two-sum)."""

    fn: FunctionText
    accumulator: Accumulator
    e: GpuEmitter
    lanes: int
    is_short: bool = False  # so few steps that nothing has to be kept of what rounding took away
    parts: list[list[str]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """The value before the first element."""
        start = self._start()
        self.parts = [self._memory(v) for v in start]
        for v, memory in zip(start, self.parts, strict=True):
            self._write(memory, v)
        if self.accumulator.op.compensated and not self.is_short and start[0].dtype.kind in "fc":
            self.lost = self._memory(start[0])
            self._write(self.lost, self.e.splat(self.e.constant(0, start[0].dtype), self.lanes))

    def _start(self) -> tuple[Val, ...]:
        start = _several(self.accumulator.op.start(self.e, self.accumulator.dtype))
        return tuple(self.e.splat(v, self.lanes) if self.lanes else v for v in start)

    def _memory(self, v: Val) -> list[str]:
        return [self.fn.alloca(self.e.type(v.dtype, self.lanes), 64) for _ in self.e.parts(v)]

    def _write(self, memory: Sequence[str], v: Val) -> None:
        v = self.e.splat(v, self.lanes) if self.lanes else v
        for place, text in zip(memory, self.e.parts(v), strict=True):
            self.fn.emit(f"store {self.e.type(v.dtype, self.lanes)} {text}, ptr {place}")

    def _read(self, memory: Sequence[str], like: Val) -> Val:
        type = self.e.type(like.dtype, self.lanes)
        return self.e.from_parts(like.dtype, [self.fn.instr(f"load {type}, ptr {place}") for place in memory], self.lanes)

    def now(self) -> tuple[Val, ...]:
        """The value as it stands, before what was lost is added."""
        return tuple(self._read(memory, v) for memory, v in zip(self.parts, self._start(), strict=True))

    def step(self, step: Step, x: Val, index: Val | None, where: Val | None = None) -> Val:
        """One more element of each lane, where `where` holds; the first part after it."""
        op, e = self.accumulator.op, self.e
        total = self.now()
        x = op.prepare(e, x)
        if self.lost:
            self._add(total[0], x, where)
            return total[0]
        new = _several(op.step(e, total if len(total) > 1 else total[0], x, index))
        if where is not None:
            new = tuple(e.select(where, v, old) for v, old in zip(new, total, strict=True))
        for memory, v in zip(self.parts, new, strict=True):
            self._write(memory, v)
        return new[0]

    def _add(self, total: Val, x: Val, where: Val | None) -> None:
        e = self.e
        if where is not None:
            x = e.select(where, x, e.constant(0, x.dtype))
        new = e.add(total, x)
        seen = e.sub(new, total)
        lost = e.add(e.sub(total, e.sub(new, seen)), e.sub(x, seen))
        lost = e.add(self._read(self.lost, total), lost)
        if where is not None:  # what is not there does not turn -0.0 to 0.0
            new = e.select(where, new, total)
        self._write(self.parts[0], new)
        self._write(self.lost, lost)

    def join(self, values: tuple[Val, ...]) -> None:
        """The value of other elements joins this one."""
        total = self.now()
        if self.lost:
            self._add(total[0], values[0], None)
            return
        for memory, v in zip(self.parts, combined(self.accumulator, self.e, total, values), strict=True):
            self._write(memory, v)

    def value(self) -> tuple[Val, ...]:
        """The value of all elements so far."""
        found = self.now()
        if not self.lost:
            return found
        total, lost = found[0], self._read(self.lost, found[0])
        if total.dtype.kind == "c":
            parts = [self._with(of(total), of(lost)) for of in (self.e.real, self.e.imag)]
            return (self.e.make_complex(*parts),)
        return (self._with(total, lost),)

    def _with(self, total: Val, lost: Val) -> Val:
        """Nothing is added where nothing was lost, as -0.0 would become 0.0, and where a sum is not finite."""
        e = self.e
        zero = e.constant(0, lost.dtype)
        counts = e.or_(e.lt(lost, zero), e.gt(lost, zero))
        return e.select(e.and_(counts, e.isfinite(lost)), e.add(total, lost), total)


def _several(value: object) -> tuple[Val, ...]:
    return value if isinstance(value, tuple) else (value,)


def combined(accumulator: Accumulator, e: GpuEmitter, left: tuple[Val, ...], right: tuple[Val, ...]) -> tuple[Val, ...]:
    """Two partial results as one."""
    if len(left) == 1:
        return _several(accumulator.op.combine(e, left[0], right[0]))
    return _several(accumulator.op.combine(e, left, right))


def over_lanes(accumulator: Accumulator, e: GpuEmitter, values: tuple[Val, ...]) -> tuple[Val, ...]:
    """The lanes of a partial result as one scalar."""
    packed = values if len(values) > 1 else values[0]
    return _several(e.reduce(packed, lambda a, b: accumulator.op.combine(e, a, b)))


def has_position(accumulator: Accumulator) -> bool:
    """Does a step want to know which element it is?"""
    return type(accumulator.op).step is not Reduction.step


#: Instructions that give the same bits for both orders of their operands.
_COMMUTING = frozenset(("add", "mul", "and_", "or_", "xor"))


def is_ordered(accumulator: Accumulator) -> bool:
    """Could a pair of partial results join to other bits in the other order?"""
    return getattr(accumulator.op, "instruction", "") not in _COMMUTING

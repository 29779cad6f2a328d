"""Reductions in Python: each thread's running value, and the tree in shared memory by which a block joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from jitlab.ir.programs.program import Accumulator, Step
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.expressions import I64
from jitlab.targets.llvm.values import Val

from .python_emitter import PythonEmitter, type_name
from .python_text import PythonText


@dataclass
class PythonRunning:
    """An accumulator of a thread. `names`: of its parts; `lost`: of a sum of floats, what rounding took away so far."""

    text: PythonText
    e: PythonEmitter
    accumulator: Accumulator
    values: tuple[Val, ...] = ()
    lost: Val | None = None
    start: tuple[Val, ...] = field(default=())

    def begin(self) -> None:
        """Its value before the first element."""
        name, op = self.accumulator.name, self.accumulator.op
        self.start = several(op.start(self.e, self.accumulator.dtype))
        count = len(self.start)
        names = [f"{name}_now" if count == 1 else f"{name}_now{k}" for k in range(count)]
        self.values = tuple(Val(v.dtype, own) for v, own in zip(self.start, names, strict=True))
        self._assign(self.start)
        if op.compensated and self.start[0].dtype.kind == "f":
            self.lost = Val(self.start[0].dtype, f"{name}_lost")
            self.text.emit(f"{self.lost.text} = {self.e.constant(0, self.lost.dtype).text}")

    def _assign(self, new: Sequence[Val]) -> None:
        for own, v in zip(self.values, new, strict=True):
            self.text.emit(f"{own.text} = {v.text}")

    def step(self, step: Step, x: Val, index: Val | None) -> Val:
        """One more element; the first part after it."""
        op = self.accumulator.op
        x = op.prepare(self.e, x)
        if self.lost is not None:
            self._add(x)
            return self.values[0]
        self._assign(several(op.step(self.e, packed(self.values), x, index)))
        return self.values[0]

    def _add(self, x: Val) -> None:
        """Knuth's two-sum: what is lost is exact, whichever is larger."""
        e, total, lost = self.e, self.values[0], self.lost
        assert lost is not None
        new = e.add(total, x)
        seen = e.sub(new, total)
        self.text.emit(f"{lost.text} += ({total.text} - ({new.text} - {seen.text})) + ({x.text} - {seen.text})")
        self._assign([new])

    def join(self, values: tuple[Val, ...]) -> None:
        """A partial result of other elements joins this one."""
        if self.lost is not None:
            self._add(values[0])
        else:
            self._assign(several(self.accumulator.op.combine(self.e, packed(self.values), packed(values))))

    def add_lost(self) -> None:
        """What rounding took away is put back, where the sum is finite."""
        if self.lost is not None:
            total, lost = self.values[0].text, self.lost.text
            self.text.emit(f"{total} = {total} + {lost} if {lost} != 0 and abs({lost}) < math.inf else {total}")
            self.lost = None

    def joined_by(self, threads: int, declare: Callable[[str], None]) -> None:
        """The value of all threads of a block, for each of them: a tree in shared memory."""
        text, name = self.text, self.accumulator.name
        self.add_lost()
        shared = []
        for k, v in enumerate(self.values):
            shared.append(f"shared_{name}" if len(self.values) == 1 else f"shared_{name}_{k}")
            declare(f"{shared[-1]} = cuda.shared.array({threads}, {type_name(v.dtype)})")
            text.emit(f"{shared[-1]}[thread] = {v.text}")
        text.emit("cuda.syncthreads()")
        text.emit(f"half = {threads // 2}")
        with text.inside("while half > 0:"):
            with text.inside("if thread < half:"):
                ours, theirs = (
                    tuple(Val(v.dtype, text.instr(f"{place}[{at}]")) for v, place in zip(self.values, shared, strict=True))
                    for at in ("thread", "thread + half")
                )
                made = several(self.accumulator.op.combine(self.e, packed(ours), packed(theirs)))
                for place, v in zip(shared, made, strict=True):
                    text.emit(f"{place}[thread] = {v.text}")
            text.emit("cuda.syncthreads()")
            text.emit("half //= 2")
        for v, place in zip(self.values, shared, strict=True):
            text.emit(f"{v.text} = {place}[0]")
        text.emit("cuda.syncthreads()")

    def finish(self, count: str) -> Val:
        """The result, as the name of the accumulator."""
        self.add_lost()
        acc, e = self.accumulator, self.e
        result = e.cast(acc.op.finish(e, packed(self.values), e.value(count, I64)), acc.result)
        self.text.emit(f"{acc.name} = {result.text}")
        return Val(acc.result, acc.name)


def several(value: Any) -> tuple[Val, ...]:
    """An accumulator's parts, one or more."""
    return value if isinstance(value, tuple) else (value,)


def packed(values: tuple[Val, ...]) -> Any:
    """Parts as operations take them."""
    return values if len(values) > 1 else values[0]

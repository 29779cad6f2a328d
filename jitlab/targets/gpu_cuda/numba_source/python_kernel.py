"""PythonKernelWriter: one phase of a Program as a function of numba.cuda's, as each thread runs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jitlab.ir import Origins, Poly
from jitlab.ir.programs.program import (
    ASCENDING,
    PARALLEL,
    Assign,
    Buffer,
    CheckedIndex,
    Expr,
    Finish,
    For,
    If,
    Index,
    Let,
    Load,
    Partial,
    Repeat,
    Statement,
    Step,
    Store,
    Variable,
    all_expressions,
    walk,
    written,
)
from jitlab.ir.programs.program_lines import origins_in
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.gpu_cuda.kernels.gpu_emitter import THREAD
from jitlab.targets.gpu_cuda.kernels.running_values import has_position
from jitlab.targets.gpu_cuda.kernels.schedules import Schedule, Unscheduled, has_rows, nest_of
from jitlab.targets.gpu_cuda.kernels.slots import ContextSlots
from jitlab.targets.llvm.expressions import I64, ExpressionWriter
from jitlab.targets.llvm.program_phases import Phase, changes
from jitlab.targets.llvm.values import Val

from .python_emitter import PythonEmitter, type_name
from .python_reductions import PythonRunning
from .python_text import PythonText

#: Threads of a block where the schedule leaves that open.
FLAT_THREADS, BLOCK_THREADS = 256, 128

#: Blocks of a grid, at most: what is left each takes in turns.
MOST_BLOCKS = 1 << 16


@dataclass(frozen=True)
class PythonKernel:
    """A kernel's lines below `def`, what it is called with, its threads a block, and its blocks as an expression of sizes."""

    name: str
    phase: Phase
    arguments: tuple[str, ...]
    lines: tuple[tuple[str, Origins], ...]
    threads: int
    blocks: str


class PythonKernelWriter(ExpressionWriter):
    """Writes the kernel of one phase. `team`: how many threads run a statement together, a block's; 0: each for itself."""

    def __init__(
        self, slots: ContextSlots, phase: Phase, schedule: Schedule, name: str, steps: Mapping[str, Origins]
    ) -> None:  # fmt: skip
        self.text = PythonText(name)
        super().__init__(self.text, THREAD)
        emitter: Any = PythonEmitter(self.text)
        self.scalar = emitter
        self.slots, self.phase, self.schedule, self.steps = slots, phase, schedule, dict(steps)
        self.threads = {"flat": FLAT_THREADS, "rows": schedule.team}.get(schedule.kind, BLOCK_THREADS)
        self.team = 0
        self.running: dict[str, PythonRunning] = {}
        self.partial: dict[str, tuple[Val, ...]] = {}
        self.shared: list[str] = []
        stored = {b.name for s in walk(phase.statements) for b in written(s)}
        self.ordered = stored & _read(phase.statements)  # buffers that are read and stored: threads wait for each other
        for b in phase.buffers:
            type_name(b.dtype)

    # -- the function

    def kernel(self) -> PythonKernel:
        """Raises Unscheduled where numba.cuda has nothing for it."""
        text, schedule, phase = self.text, self.schedule, self.phase
        if schedule.kind == "product":
            raise Unscheduled("gpu.numba_product")
        self._take_parameters()
        total = self._total(schedule.nest)
        blocks = "1"
        if schedule.kind == "flat":
            self._over(schedule.nest, f"cuda.grid(1), {total}, cuda.gridsize(1)", schedule.nest[-1].body)
            blocks = f"max(1, min(-(-({total}) // {self.threads}), {MOST_BLOCKS}))"
        else:
            text.emit("thread = cuda.threadIdx.x")
            self.team = self.threads
            if schedule.kind == "rows":
                self._over(schedule.nest, f"cuda.blockIdx.x, {total}, cuda.gridDim.x", schedule.nest[-1].body)
                blocks = f"max(1, min({total}, {MOST_BLOCKS}))"
            else:
                self._statements(phase.statements)
                self._leave()
        lines = [("    " + line, frozenset[Any]()) for line in dict.fromkeys(self.shared)] + text.lines
        return PythonKernel(text.name, phase, self._arguments(lines), tuple(lines), self.threads, blocks)

    def _take_parameters(self) -> None:
        text, phase, kept = self.text, self.phase, self.slots.kept
        for name, dtype in self.slots.program.scalars:
            if name in phase.scalars:
                type_name(dtype)
                self.scopes[0]["scalar", name] = Val(dtype, name)
        for name, variable in phase.variables.items():
            start = f"kept_{name}[0]" if name in kept else self.scalar.constant(0, variable.dtype).text
            text.emit(f"{name} = {start}")
        for name, dtype in phase.wanted.items():
            if name in kept and name not in phase.bound:
                self.locals[name] = Val(dtype, text.instr(f"kept_{name}[0]"))

    def _arguments(self, lines: Sequence[tuple[str, Origins]]) -> tuple[str, ...]:
        """What the lines name of what a launch knows."""
        named = set(re.findall(r"[^\W\d]\w*", "\n".join(line for line, _ in lines)))
        slots = self.slots
        known = [*slots.buffers, "status", *(f"kept_{name}" for name in slots.kept), *slots.scalars, *slots.symbols]
        return tuple(name for name in known if name in named)

    def _leave(self) -> None:
        """What later phases want is put where they find it."""
        phase, kept = self.phase, self.slots.kept
        found = [(name, self.locals[name].text) for name in phase.bound if name in kept]
        found += [(name, name) for name in phase.variables if name in kept and f"={name}" in phase.changes]
        if found:
            with self.text.inside("if thread == 0:"):
                for name, value in found:
                    self.text.emit(f"kept_{name}[0] = {value}")

    # -- statements

    def _statements(self, statements: Sequence[Statement]) -> None:
        for s in statements:
            with self.text.of(origins_in(s, self.steps)):
                self._statement(s)
            if not isinstance(s, (For, If, Repeat)):
                self._forget(changes([s]))

    def _statement(self, s: Statement) -> None:
        if isinstance(s, For):
            self._for(s)
        elif isinstance(s, Store):
            self._once(s.buffer, lambda: self._store(s))
        elif isinstance(s, Partial):
            self._once(s.partials[0], lambda: self._store_partial(s))
        elif isinstance(s, Finish):
            self._finish(s)
        elif isinstance(s, Step):
            running = self.running[s.accumulator.name]
            index = self._index_value(s.index) if has_position(s.accumulator) else None
            with self.text.of(s.origins):
                new = running.step(s, self._eval(s.value), index)
            if s.bound:
                self.locals[s.bound] = new
        elif isinstance(s, Let):
            self.text.emit(f"{s.name} = {self._eval(s.value).text}")
            self.locals[s.name] = Val(s.value.dtype, s.name)
        elif isinstance(s, Assign):
            self.text.emit(f"{s.variable.name} = {self._eval(s.value).text}")
        elif isinstance(s, If):
            self._branch(s)
        elif isinstance(s, Repeat):
            self._repeat(s)
        else:
            raise Unscheduled("gpu.numba_statement", statement=type(s).__name__)

    def _once(self, buffer: Buffer, store: Callable[[], None]) -> None:
        """By one thread of those that have come here together."""
        if not self.team:
            store()
            return
        waits = buffer.name in self.ordered
        self._wait(waits)
        with self.text.inside("if thread == 0:"), self._alone(), self.scope():
            store()
        self._wait(waits)

    def _wait(self, needed: bool = True) -> None:
        if needed and self.team:
            self.text.emit("cuda.syncthreads()")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        team, self.team = self.team, 0
        yield
        self.team = team

    def _block(self, statements: Sequence[Statement]) -> None:
        with self.scope():
            self._statements(statements)

    def _branch(self, s: If) -> None:
        condition = self._eval(s.condition).text
        self._wait(bool(self.ordered))
        with self.text.inside(f"if {condition}:"):
            self._block(s.then)
        if s.orelse:
            with self.text.inside("else:"):
                self._block(s.orelse)
        self._forget(changes([s]))

    def _repeat(self, s: Repeat) -> None:
        self._forget(changes([s]))
        if s.count is None:
            self.text.emit(f"{s.symbol} = -1")
        head = "while True:" if s.count is None else f"for {s.symbol} in range({self._poly(s.count)}):"
        with self.text.inside(head), self.scope():
            if s.count is None:
                self.text.emit(f"{s.symbol} += 1")
            self._statements(s.before)
            if s.test is not None:
                test = self._eval(s.test).text
                self._wait(bool(self.ordered))
                with self.text.inside(f"if not {test}:"):
                    self.text.emit("break")
            self._statements(s.body)
        self._forget(changes([s]))

    # -- loops

    def _for(self, s: For) -> None:
        self._forget(changes([s]))
        steps = {inner.accumulator.name for inner in s.body if isinstance(inner, Step)}
        for accumulator in s.accumulators:
            with self.text.of(self.steps.get(accumulator.name, frozenset())):
                self.running[accumulator.name] = running = PythonRunning(self.text, self.scalar, accumulator)  # type: ignore[arg-type]
                running.begin()
        stored = {b.name for inner in walk([s]) for b in written(inner)} & self.ordered
        if not self.team:
            self._over([s], self._extent(s.extent), s.body)
        elif any(isinstance(inner, Step) and inner.bound for inner in s.body):
            raise Unscheduled("gpu.scan")
        elif steps or (s.kind == PARALLEL and not has_rows(s.body)):
            nest = [s] if steps else nest_of(s)
            self._wait(bool(stored))
            with self._alone():
                self._over(nest, f"thread, {self._total(nest)}, {self.team_size}", nest[-1].body)
            self._wait(bool(stored))
        elif s.kind == ASCENDING:
            self._wait()
            with self.text.inside("if thread == 0:"), self._alone(), self.scope():
                self._over([s], self._extent(s.extent), s.body)
            self._wait()
        else:
            self._over([s], self._extent(s.extent), s.body)
        for accumulator in s.accumulators:
            with self.text.of(self.steps.get(accumulator.name, frozenset())):
                self._end(self.running.pop(accumulator.name), s, bool(self.team and accumulator.name in steps))

    @property
    def team_size(self) -> int:
        return self.threads

    def _end(self, running: PythonRunning, s: For, together: bool) -> None:
        name, count = running.accumulator.name, running.accumulator.count
        if together:
            running.joined_by(self.threads, self.shared.append)
        if s.finish:
            self.locals[name] = running.finish("0" if count is None else self._index_text(count))
        else:
            running.add_lost()
            self.partial[name] = running.values

    def _over(self, nest: Sequence[For], bounds: str, body: Sequence[Statement]) -> None:
        """A loop over all iterations of a nest: `bounds` are those of their numbers."""
        text = self.text
        name = nest[0].var if len(nest) == 1 else "index"
        with text.inside(f"for {name} in range({bounds}):"), self.scope():
            for loop in reversed(nest[1:]):
                extent = self._extent(loop.extent)
                text.emit(f"{loop.var} = {name} % ({extent})")
                rest = nest[0].var if loop is nest[1] else f"rest_{loop.var}"
                text.emit(f"{rest} = {name} // ({extent})")
                name = rest
            self._statements(body)
            if self.team and any(b.kind == "row" for b in self.phase.buffers):
                self._wait()  # the next iteration has the same scratch

    def _total(self, nest: Sequence[For]) -> str:
        extents = [self._extent(loop.extent) for loop in nest]
        return "*".join(text if text.isidentifier() or len(extents) == 1 else f"({text})" for text in extents)

    def _finish(self, s: Finish) -> None:
        """Partial results joined: by a team, or by the thread that wants them."""
        running = PythonRunning(self.text, self.scalar, s.accumulator)  # type: ignore[arg-type]
        running.begin()
        count = self._poly(s.count)
        bounds = f"thread, {count}, {self.threads}" if self.team else count
        with self.text.inside(f"for part in range({bounds}):"), self.scope():
            at = self._index_text(s.base + Index.var("part").scale(s.stride))
            running.join(tuple(
                Val(v.dtype, self.text.instr(f"{b.name}[{at}]")) for b, v in zip(s.partials, running.values, strict=True)
            ))  # fmt: skip
        if self.team:
            running.joined_by(self.threads, self.shared.append)
        self.locals[s.accumulator.name] = running.finish(self._poly(s.total))

    def _store_partial(self, s: Partial) -> None:
        for buffer, value in zip(s.partials, self.partial[s.accumulator.name], strict=True):
            self.text.emit(f"{buffer.name}[{self._index_text(s.index)}] = {value.text}")

    # -- expressions

    def _compute(self, expr: Expr) -> Val:
        origins = expr.origins | self.text.at if isinstance(expr, Load) else expr.origins
        with self.text.of(origins):
            return super()._compute(expr)

    def _place(self, access: Load | Store) -> str:
        text = self._index_text(access.offset)
        for index, stride in access.gathered:
            text += f" + {self._eval(index).text}*({self._poly(stride)})"
        buffer = access.buffer
        if buffer.kind == "row" and self.schedule.kind == "rows":
            size = "*".join(f"({n})" for n in buffer.shape) or "1"
            text = f"cuda.blockIdx.x*{size} + {text}"
        return f"{buffer.name}[{text}]"

    def _load(self, e: Load) -> Val:
        return Val(e.dtype, self.text.instr(self._place(e)))

    def _store(self, s: Store) -> None:
        value = self._eval(s.value).text
        self.text.emit(f"{self._place(s)} = {value}")

    def _checked(self, expr: CheckedIndex) -> Val:
        wrapped, bad = self._wrapped(expr)
        with self.text.inside(f"if {bad.text}:"):
            self.text.emit(f"status[0] = {expr.code + 1}")
        return self.scalar.select(bad, self.scalar.constant(0, I64), wrapped)

    def _read_variable(self, variable: Variable) -> Val:
        return Val(variable.dtype, variable.name)

    def _index_value(self, index: Index) -> Val:
        text = self._index_text(index)
        return Val(I64, text if text.isalnum() else f"({text})")

    def _poly(self, p: Poly) -> str:
        return str(p)

    def _index_text(self, index: Index) -> str:
        return str(index)

    def _extent(self, extents: Sequence[Index]) -> str:
        return str(extents[0]) if len(extents) == 1 else f"min({', '.join(map(str, extents))})"


def _read(statements: Sequence[Statement]) -> set[str]:
    names = {e.buffer.name for e in all_expressions(statements) if isinstance(e, Load)}
    return names | {b.name for s in walk(statements) if isinstance(s, Finish) for b in s.partials}

"""Program -> LLVM text: loops, vectors with masked tails, reductions in a fixed order, calls of a BLAS.

One module a Program. Each phase of each kernel is a function over a range of its outer loop; `run` calls them in order, a
chunk at a time, and returns PAUSED after about 50 ms so that Python can look after its signals (design D15). Everything a
call needs stands in its context, an array of 8-byte slots (`ContextLayout`).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jitlab.ir import Poly
from jitlab.ir.program import (
    ONE,
    Accumulator,
    Apply,
    Buffer,
    CheckedIndex,
    Expr,
    Finish,
    For,
    Gemm,
    Index,
    IndexValue,
    Load,
    Local,
    Partial,
    Program,
    Scalar,
    Statement,
    Step,
    Store,
    expressions,
    walk,
    work,
)
from jitlab.ops.base import Generated

from . import machine
from .emitter import VectorEmitter
from .function import FunctionText, module_text
from .values import Val

DONE, PAUSED, FAILED = 0, 1, 2  # FAILED + code: the check with that code failed

I64 = np.dtype("i8")
COMPLEX = "c"

#: Steps of one chain before a compensated sum starts the next (reductions): keeps |error| within (8 + log2 n) eps Σ|x|.
CHAIN = 8
LEVELS = 48

#: Bodies with this many operations an element run two accumulators, cheaper ones four.
HEAVY = 8.0

GEMM = {np.dtype("f4"): "sgemm", np.dtype("f8"): "dgemm"}


@dataclass(frozen=True)
class ContextLayout:
    """Which slot of the context holds what. The first eight are the runtime's own."""

    program: Program

    RESUME_PHASE, RESUME_AT, BUDGET, SGEMM, DGEMM, TIMES = range(6)
    FIRST = 8

    @cached_property
    def buffers(self) -> dict[str, int]:
        p = self.program
        return {b.name: self.FIRST + i for i, b in enumerate((*p.inputs, *p.outputs, *p.temps, *p.rows))}

    @cached_property
    def symbols(self) -> dict[str, int]:
        start = self.FIRST + len(self.buffers)
        return {name: start + i for i, name in enumerate(self.program.symbols)}

    @cached_property
    def scalars(self) -> dict[str, int]:
        start = self.FIRST + len(self.buffers) + len(self.symbols)
        return {name: start + 2 * i for i, (name, _) in enumerate(self.program.scalars)}

    @property
    def chunks(self) -> int:
        """The first of one slot a phase: how many iterations of its outer loop make a chunk."""
        return self.FIRST + len(self.buffers) + len(self.symbols) + 2 * len(self.program.scalars)

    @cached_property
    def phases(self) -> list[tuple[str, list[Statement], For | None]]:
        """(kernel, statements, the outer loop if there is one), in the order they run."""
        result: list[tuple[str, list[Statement], For | None]] = []
        for kernel in self.program.kernels:
            straight: list[Statement] = []
            for statement in kernel.body:
                if isinstance(statement, For):
                    if straight:
                        result.append((kernel.name, straight, None))
                    result.append((kernel.name, [statement], statement))
                    straight = []
                else:
                    straight.append(statement)
            if straight:
                result.append((kernel.name, straight, None))
        return result

    @property
    def size(self) -> int:
        return self.chunks + len(self.phases)


def module_for(program: Program) -> str:
    """The LLVM module of a Program; its entry is `i64 @run(ptr context)`."""
    layout = ContextLayout(program)
    functions = []
    for number, (_, statements, outer) in enumerate(layout.phases):
        functions.append(_Phase(layout, f"phase{number}", statements, outer).function())
    return module_text([*functions, _entry(layout)])


def _entry(layout: ContextLayout) -> FunctionText:
    """run(ctx): each phase in chunks; DONE, PAUSED (call again), or FAILED + code."""
    fn = FunctionText("run", [("ptr", "ctx")], returns="i64")
    slot = _slots(fn)
    counter = "llvm.readcyclecounter" if platform.machine().lower() in ("x86_64", "amd64") else "llvm.readsteadycounter"
    fn.declare(f"declare i64 @{counter}()")
    started = fn.instr(f"call i64 @{counter}()")
    budget = slot(layout.BUDGET)
    resume = slot(layout.RESUME_PHASE)
    times = fn.instr(f"load ptr, ptr {slot.pointer(layout.TIMES)}")
    timed = fn.instr(f"icmp ne ptr {times}, null")
    begun = fn.instr(f"or i64 {resume}, {slot(layout.RESUME_AT)}")
    first = fn.instr(f"and i1 {timed}, {fn.instr(f'icmp eq i64 {begun}, 0')}")
    note, dispatch = fn.label("note"), fn.label("dispatch")
    fn.branch_if(first, note, dispatch)
    fn.block(note)
    fn.emit(f"store i64 {started}, ptr {times}")
    fn.branch(dispatch)
    fn.block(dispatch)
    labels = [fn.label("phase") for _ in layout.phases]
    finished = fn.label("finished")
    cases = " ".join(f"i64 {i}, label %{label}" for i, label in enumerate(labels))
    fn.emit(f"switch i64 {resume}, label %{finished} [ {cases} ]")
    for number, (_, _, outer) in enumerate(layout.phases):
        after = labels[number + 1] if number + 1 < len(labels) else finished
        fn.block(labels[number])
        loop, body, paused, end, failed, on = (
            fn.label(hint) for hint in ("chunks", "chunk", "paused", "phase.end", "failed", "chunk.done")
        )
        at = slot(layout.RESUME_AT)
        extent = _poly(fn, slot, layout, outer.extent[0].const) if outer is not None else "1"
        size = slot(layout.chunks + number)
        before = fn.current
        fn.branch(loop)
        fn.block(loop)
        lo = fn.phi("i64", [(at, before)])
        fn.branch_if(fn.instr(f"icmp slt i64 {lo}, {extent}"), body, end)
        fn.block(body)
        next_ = fn.instr(f"add i64 {lo}, {size}")
        beyond = fn.instr(f"icmp sgt i64 {next_}, {extent}")
        hi = fn.instr(f"select i1 {beyond}, i64 {extent}, i64 {next_}")
        status = fn.instr(f"call i64 @phase{number}(ptr %ctx, i64 {lo}, i64 {hi})")
        fn.branch_if(fn.instr(f"icmp eq i64 {status}, {DONE}"), on, failed, likely=True)
        fn.block(failed)
        fn.ret(status)
        fn.block(on)
        now = fn.instr(f"call i64 @{counter}()")
        spent = fn.instr(f"sub i64 {now}, {started}")
        over = fn.instr(f"icmp ugt i64 {spent}, {budget}")
        lo.add_incoming(hi, fn.current)
        fn.branch_if(over, paused, loop, likely=False)
        fn.block(paused)
        fn.emit(f"store i64 {number}, ptr {slot.pointer(layout.RESUME_PHASE)}")
        fn.emit(f"store i64 {hi}, ptr {slot.pointer(layout.RESUME_AT)}")
        fn.ret(PAUSED)
        fn.block(end)
        fn.emit(f"store i64 0, ptr {slot.pointer(layout.RESUME_AT)}")
        stamp, go = fn.label("stamp"), fn.label("go")
        fn.branch_if(timed, stamp, go)
        fn.block(stamp)
        ticks = fn.instr(f"call i64 @{counter}()")
        place = fn.instr(f"getelementptr i64, ptr {times}, i64 {number + 1}")
        fn.emit(f"store i64 {ticks}, ptr {place}")
        fn.branch(go)
        fn.block(go)
        fn.branch(after)
    fn.block(finished)
    fn.emit(f"store i64 0, ptr {slot.pointer(layout.RESUME_PHASE)}")
    fn.emit(f"store i64 0, ptr {slot.pointer(layout.RESUME_AT)}")
    fn.ret(DONE)
    return fn


class _slots:
    """Loads of context slots."""

    def __init__(self, fn: FunctionText) -> None:
        self.fn = fn

    def pointer(self, number: int) -> str:
        return self.fn.instr(f"getelementptr i64, ptr %ctx, i64 {number}")

    def __call__(self, number: int, type: str = "i64") -> str:
        return self.fn.instr(f"load {type}, ptr {self.pointer(number)}")


def _poly(fn: FunctionText, slot: _slots, layout: ContextLayout, p: Poly) -> str:
    """The value of a polynomial over symbols, computed here."""
    total = "0"
    for monomial, k in p.terms:
        product = str(k)
        for name in monomial:
            value = slot(layout.symbols[name])
            product = value if product == "1" else fn.instr(f"mul i64 {product}, {value}")
        total = product if total == "0" else fn.instr(f"add i64 {total}, {product}")
    return total


@dataclass
class _Vector:
    """The vector loop we are in: its variable stands for `base + lane`."""

    var: str
    base: str
    mask: Val | None  # of the tail; None while all lanes count
    emitter: VectorEmitter


@dataclass
class _Running:
    """An accumulator's state while its loops run."""

    accumulator: Accumulator
    slots: list[str] = field(default_factory=list)  # memory of the parts, when it is not compensated
    stack: str = ""  # of partial sums, when it is
    count: str = ""
    lanes: int = 0


class _Phase:
    """Writes one phase's function."""

    def __init__(self, layout: ContextLayout, name: str, statements: Sequence[Statement], outer: For | None) -> None:
        self.layout = layout
        self.fn = FunctionText(name, [("ptr", "ctx"), ("i64", "lo"), ("i64", "hi")], returns="i64")
        self.statements, self.outer = list(statements), outer
        self.slot = _slots(self.fn)
        self.scalar = VectorEmitter(self.fn, 1)
        self.vector: _Vector | None = None
        self.vars: dict[str, str] = {}
        self.scopes: list[dict[Any, Any]] = [{}]
        self.locals: dict[str, Val] = {}
        self.running: dict[str, _Running] = {}
        self.partial: dict[str, tuple[Val, ...]] = {}
        self.streamed = False
        self.failures: dict[int, str] = {}
        self.keep: list[Expr] = []  # ids are keys: the objects have to live

    def function(self) -> FunctionText:
        for name, dtype in self.layout.program.scalars:
            self.scopes[0]["scalar", name] = self._load_scalar(name, dtype)
        for statement in self.statements:
            if statement is self.outer:
                assert isinstance(statement, For)
                self._for(statement, "%lo", "%hi")
            else:
                self._statement(statement)
        if self.streamed:
            self.fn.emit("fence seq_cst")
        self.fn.ret(DONE)
        for code, label in self.failures.items():
            self.fn.block(label)
            self.fn.ret(FAILED + code)
        return self.fn

    def _load_scalar(self, name: str, dtype: np.dtype) -> Val:
        number = self.layout.scalars[name]
        if dtype.kind == COMPLEX:
            pointer = self.slot.pointer(number)
            return self.scalar.load(pointer, dtype, lanes=0, align=8)
        return self.scalar.load(self.slot.pointer(number), dtype, lanes=0, align=8)

    @property
    def e(self) -> VectorEmitter:
        return self.vector.emitter if self.vector is not None else self.scalar

    # -- statements

    def _statement(self, s: Statement) -> None:
        if isinstance(s, For):
            self._for(s, "0", self._extent(s.extent))
        elif isinstance(s, Store):
            self._store(s)
        elif isinstance(s, Partial):
            for buffer, value in zip(s.partials, self.partial[s.accumulator.name], strict=True):
                mask = self.vector.mask if self.vector is not None else None
                self.e.store(self._address(buffer, s.index), value, mask=mask)
        elif isinstance(s, Finish):
            self._finish_partials(s)
        elif isinstance(s, Gemm):
            self._gemm(s)
        else:
            raise AssertionError(f"{s} outside its loop")

    def _for(self, s: For, lo: str, hi: str) -> None:
        for accumulator in s.accumulators:
            self._start(accumulator)
        self._hoist(s)
        steps = [inner for inner in s.body if isinstance(inner, Step)]
        if s.vector:
            self._vector_loop(s, lo, hi, steps)
        elif steps:
            self._stepping(steps, s, lo, hi, 1)
        else:
            self._serial_loop(lo, hi, lambda i: self._body(s, i))
        for accumulator in s.accumulators:
            self._end(accumulator, s)

    def _body(self, s: For, i: str) -> None:
        self.vars[s.var] = i
        self.scopes.append({})
        for inner in s.body:
            self._statement(inner)
        self.scopes.pop()
        del self.vars[s.var]

    def _serial_loop(self, lo: str, hi: str, body: Callable[[str], None], step: str = "1") -> str:
        """for i in lo..hi step `step`; returns where it stopped."""
        fn = self.fn
        head, inside, after = fn.label("loop"), fn.label("body"), fn.label("after")
        before = fn.current
        fn.branch(head)
        fn.block(head)
        i = fn.phi("i64", [(lo, before)])
        last = fn.instr(f"add i64 {i}, {step}") if step != "1" else None
        inside_condition = f"icmp sle i64 {last}, {hi}" if last is not None else f"icmp slt i64 {i}, {hi}"
        fn.branch_if(fn.instr(inside_condition), inside, after)
        fn.block(inside)
        self.scopes.append({})
        body(str(i))
        self.scopes.pop()
        following = last if last is not None else fn.instr(f"add i64 {i}, 1")
        i.add_incoming(following, fn.current)
        fn.branch(head)
        fn.block(after)
        return str(i)

    def _if(self, condition: str, then: Callable[[], None]) -> None:
        inside, after = self.fn.label("then"), self.fn.label("endif")
        self.fn.branch_if(condition, inside, after)
        self.fn.block(inside)
        self.scopes.append({})
        then()
        self.scopes.pop()
        self.fn.branch(after)
        self.fn.block(after)

    def _vector_loop(self, s: For, lo: str, hi: str, steps: list[Step]) -> None:
        assert self.vector is None, "vector loops do not nest"
        width = self._width(s)
        emitter = VectorEmitter(self.fn, width)
        if steps:
            self._stepping(steps, s, lo, hi, width, emitter)
            return

        def one(i: str, mask: Val | None) -> None:
            self.vector = _Vector(s.var, i, mask, emitter)
            self._body(s, i)
            self.vector = None

        end = self._serial_loop(lo, hi, lambda i: one(i, None), str(width))
        self._tail(end, hi, emitter, one)

    def _tail(self, at: str, hi: str, emitter: VectorEmitter, one: Callable[[str, Val | None], None]) -> None:
        """The last iterations, fewer than a vector, under a mask."""

        def masked() -> None:
            left = self.fn.instr(f"sub i64 {hi}, {at}")
            one(at, emitter.mask_first(left))

        self._if(self.fn.instr(f"icmp slt i64 {at}, {hi}"), masked)

    def _width(self, s: For) -> int:
        """Two native vectors of the widest element in the loop."""
        widest = 1
        for inner in walk([s]):
            if isinstance(inner, Store):
                widest = max(widest, _part_size(inner.buffer.dtype))
            for root in expressions(inner):
                widest = max(widest, _widest(root, set()))
        return max(2 * machine.vector_bytes() // widest, 2) * s.tile

    # -- reductions

    def _start(self, accumulator: Accumulator) -> None:
        self.running[accumulator.name] = _Running(accumulator)

    def _stepping(
        self, steps: list[Step], s: For, lo: str, hi: str, width: int, emitter: VectorEmitter | None = None
    ) -> None:
        """The innermost loop of reductions: several chains side by side, each started anew after CHAIN steps if compensated."""
        fn = self.fn
        outer_vector = self.vector
        inner = emitter if emitter is not None else self.e
        lanes = width if emitter is not None else (outer_vector.emitter.width if outer_vector is not None else 0)
        heavy = sum(work(root) for inner_s in s.body for root in expressions(inner_s)) >= HEAVY
        chains = 2 if heavy or emitter is None else 4
        accumulators = [self.running[step.accumulator.name] for step in steps]
        compensated = any(r.accumulator.op.compensated for r in accumulators)
        state = [[self._fresh(r, inner, lanes) for r in accumulators] for _ in range(chains)]

        def reset() -> None:
            for chain in state:
                for r, slots in zip(accumulators, chain, strict=True):
                    self._write(slots, self._initial(r, inner, lanes), inner)

        def one(i: str, mask: Val | None, chain: int) -> None:
            if emitter is not None:
                self.vector = _Vector(s.var, i, mask, emitter)
            self.vars[s.var] = i
            self.scopes.append({})
            for statement in s.body:
                if isinstance(statement, Step):
                    number = steps.index(statement)
                    self._step(statement, accumulators[number], state[chain][number], mask)
                else:
                    self._statement(statement)
            self.scopes.pop()
            del self.vars[s.var]
            self.vector = outer_vector

        def several(i: str) -> None:
            for chain in range(chains):
                one(i if chain == 0 else fn.instr(f"add i64 {i}, {chain * width}"), None, chain)

        def join() -> None:
            for number, r in enumerate(accumulators):
                values = [self._read(state[chain][number], r, inner, lanes) for chain in range(chains)]
                while len(values) > 1:
                    values = [
                        self._combine(r, inner, values[i], values[i + 1]) for i in range(0, len(values), 2)
                    ]
                self._absorb(r, values[0], inner, lanes)

        at = lo
        if compensated:
            block = str(CHAIN * chains * width)

            def whole(start: str) -> None:
                reset()
                end = fn.instr(f"add i64 {start}, {block}")
                self._serial_loop(start, end, several, str(chains * width))
                join()

            at = self._serial_loop(lo, hi, whole, block)

        def rest() -> None:
            reset()
            end = self._serial_loop(at, hi, several, str(chains * width))
            end = self._serial_loop(end, hi, lambda i: one(i, None, 0), str(width)) if width > 1 or chains > 1 else end
            if emitter is not None:
                self._tail(end, hi, emitter, lambda i, mask: one(i, mask, 1))
            join()

        self._if(fn.instr(f"icmp slt i64 {at}, {hi}"), rest)

    def _initial(self, r: _Running, emitter: VectorEmitter, lanes: int) -> tuple[Val, ...]:
        start = r.accumulator.op.start(emitter, r.accumulator.dtype)
        parts = start if isinstance(start, tuple) else (start,)
        return tuple(emitter.splat(part, lanes) if lanes else part for part in parts)

    def _fresh(self, r: _Running, emitter: VectorEmitter, lanes: int) -> list[str]:
        """Memory for a running value."""
        return [
            self.fn.alloca(emitter.type(part.dtype, lanes))
            for part in self._initial(r, emitter, lanes)
            for _ in emitter.parts(part)
        ]

    def _write(self, slots: list[str], values: Sequence[Val], emitter: VectorEmitter) -> None:
        texts = [(emitter.type(v.dtype, v.lanes), text) for v in values for text in emitter.parts(v)]
        for slot, (type, text) in zip(slots, texts, strict=True):
            self.fn.emit(f"store {type} {text}, ptr {slot}")

    def _read(self, slots: list[str], r: _Running, emitter: VectorEmitter, lanes: int) -> tuple[Val, ...]:
        values = []
        rest = iter(slots)
        for part in self._initial(r, emitter, lanes):
            type = emitter.type(part.dtype, lanes)
            texts = [self.fn.instr(f"load {type}, ptr {next(rest)}") for _ in emitter.parts(part)]
            values.append(emitter.from_parts(part.dtype, texts, lanes))
        return tuple(values)

    def _step(self, step: Step, r: _Running, slots: list[str], mask: Val | None) -> None:
        e = self.e
        op = r.accumulator.op
        lanes = e.width if self.vector is not None else 0
        total = self._read(slots, r, e, lanes)
        x = op.prepare(e, self._eval(step.value))
        index = self._index_value(step.index)
        packed = total if len(total) > 1 else total[0]
        new = op.step(e, packed, x, index)
        values = new if isinstance(new, tuple) else (new,)
        if lanes:
            values = tuple(e.splat(v, lanes) for v in values)
        if mask is not None:
            values = tuple(e.select(mask, v, old) for v, old in zip(values, total, strict=True))
        self._write(slots, values, e)

    def _combine(self, r: _Running, e: VectorEmitter, left: tuple[Val, ...], right: tuple[Val, ...]) -> tuple[Val, ...]:
        if len(left) == 1:
            joined = r.accumulator.op.combine(e, left[0], right[0])
        else:
            joined = r.accumulator.op.combine(e, left, right)
        return joined if isinstance(joined, tuple) else (joined,)

    def _absorb(self, r: _Running, value: tuple[Val, ...], e: VectorEmitter, lanes: int) -> None:
        """A finished chain joins the running value: directly, or through a stack of partial sums of equal weight."""
        if r.accumulator.op.compensated:
            self._push(r, value, e, lanes)
            return
        old = self._read(r.slots, r, e, lanes)
        self._write(r.slots, self._combine(r, e, old, value), e)

    def _push(self, r: _Running, value: tuple[Val, ...], e: VectorEmitter, lanes: int) -> None:
        """A binary counter of partial sums: level k holds the sum of 2**k chains."""
        fn = self.fn
        (part,) = value
        type = e.type(part.dtype, lanes)
        texts = e.parts(part)
        count = fn.instr(f"load i64, ptr {r.count}")
        head, carry, done = fn.label("carry"), fn.label("carry.add"), fn.label("carried")
        before = fn.current
        fn.branch(head)
        fn.block(head)
        bits = fn.phi("i64", [(count, before)])
        level = fn.phi("i64", [("0", before)])
        sums = [fn.phi(type, [(text, before)]) for text in texts]
        odd = fn.instr(f"trunc i64 {bits} to i1")
        fn.branch_if(odd, carry, done)
        fn.block(carry)
        stored = self._stack_read(r, str(level), type, len(texts))
        joined = self._combine(
            r, e, (e.from_parts(part.dtype, stored, lanes),), (e.from_parts(part.dtype, [str(s) for s in sums], lanes),)
        )
        for phi, text in zip(sums, e.parts(joined[0]), strict=True):
            phi.add_incoming(text, fn.current)
        bits.add_incoming(fn.instr(f"lshr i64 {bits}, 1"), fn.current)
        level.add_incoming(fn.instr(f"add i64 {level}, 1"), fn.current)
        fn.branch(head)
        fn.block(done)
        for k, phi in enumerate(sums):
            fn.emit(f"store {type} {phi}, ptr {self._stack_slot(r, str(level), type, len(texts), k)}")
        fn.emit(f"store i64 {fn.instr(f'add i64 {count}, 1')}, ptr {r.count}")

    def _stack_slot(self, r: _Running, level: str, type: str, parts: int, part: int) -> str:
        position = self.fn.instr(f"mul i64 {level}, {parts}")
        position = self.fn.instr(f"add i64 {position}, {part}") if part else position
        return self.fn.instr(f"getelementptr {type}, ptr {r.stack}, i64 {position}")

    def _stack_read(self, r: _Running, level: str, type: str, parts: int) -> list[str]:
        return [
            self.fn.instr(f"load {type}, ptr {self._stack_slot(r, level, type, parts, k)}") for k in range(parts)
        ]

    def _prepare_running(self, r: _Running, e: VectorEmitter, lanes: int) -> None:
        """Set the running value to its start; called before the loops that feed it."""
        r.lanes = lanes
        start = self._initial(r, e, lanes)
        if r.accumulator.op.compensated:
            (part,) = start
            parts = len(e.parts(part))
            r.stack = self.fn.alloca(f"[{LEVELS * parts} x {e.type(part.dtype, lanes)}]")
            r.count = self.fn.alloca("i64", 8)
            self.fn.emit(f"store i64 0, ptr {r.count}")
        else:
            r.slots = self._fresh(r, e, lanes)
            self._write(r.slots, start, e)

    def _total(self, r: _Running, e: VectorEmitter) -> tuple[Val, ...]:
        """The running value when its loops are done, still on all its lanes."""
        if not r.accumulator.op.compensated:
            return self._read(r.slots, r, e, r.lanes)
        fn = self.fn
        (start,) = self._initial(r, e, r.lanes)
        type = e.type(start.dtype, r.lanes)
        slots = self._fresh(r, e, r.lanes)
        self._write(slots, (start,), e)
        count = fn.instr(f"load i64, ptr {r.count}")
        head, test, add, skip, done = (fn.label(h) for h in ("flush", "flush.test", "flush.add", "flush.next", "flushed"))
        before = fn.current
        fn.branch(head)
        fn.block(head)
        bits = fn.phi("i64", [(count, before)])
        level = fn.phi("i64", [("0", before)])
        fn.branch_if(fn.instr(f"icmp ne i64 {bits}, 0"), test, done)
        fn.block(test)
        fn.branch_if(fn.instr(f"trunc i64 {bits} to i1"), add, skip)
        fn.block(add)
        parts = len(e.parts(start))
        stored = e.from_parts(start.dtype, self._stack_read(r, str(level), type, parts), r.lanes)
        total = self._read(slots, r, e, r.lanes)
        self._write(slots, self._combine(r, e, (stored,), total), e)
        fn.branch(skip)
        fn.block(skip)
        bits.add_incoming(fn.instr(f"lshr i64 {bits}, 1"), skip)
        level.add_incoming(fn.instr(f"add i64 {level}, 1"), skip)
        fn.branch(head)
        fn.block(done)
        return self._read(slots, r, e, r.lanes)

    def _end(self, accumulator: Accumulator, s: For) -> None:
        """After its loops: lanes that ran along the reduced axis are joined, the result is bound."""
        r = self.running.pop(accumulator.name)
        outer = self.vector
        own_lanes = outer.emitter.width if outer is not None else 0
        e = outer.emitter if outer is not None else (VectorEmitter(self.fn, r.lanes) if r.lanes else self.scalar)
        total = self._total(r, e)
        if r.lanes and not own_lanes:
            packed = total if len(total) > 1 else total[0]
            joined = e.reduce(packed, lambda a, b: accumulator.op.combine(e, a, b))
            total = joined if isinstance(joined, tuple) else (joined,)
            e = self.scalar
        if not s.finish:
            self.partial[accumulator.name] = total
            return
        count = self._index_text(accumulator.count) if accumulator.count is not None else "0"
        self._bind(accumulator, total, e, count)

    def _bind(self, accumulator: Accumulator, total: tuple[Val, ...], e: VectorEmitter, count: str) -> None:
        packed = total if len(total) > 1 else total[0]
        result = accumulator.op.finish(e, packed, e.value(count, I64))
        self.locals[accumulator.name] = e.cast(result, accumulator.result)

    def _finish_partials(self, s: Finish) -> None:
        """The partial results of a whole reduction, joined in order through the same tree."""
        r = _Running(s.accumulator)
        e, v = self.e, self.vector
        lanes = e.width if v is not None else 0
        self._prepare_running(r, e, lanes)
        template = self._initial(r, e, lanes)
        at_number = s.base + Index.var("#").scale(s.stride)

        def one(i: str) -> None:
            values = tuple(
                e.load(self._address(buffer, at_number), part.dtype, lanes=lanes, mask=v.mask if v is not None else None)
                for buffer, part in zip(s.partials, template, strict=True)
            )
            self._absorb(r, values, e, lanes)

        def at(i: str) -> None:
            self.vars["#"] = i
            one(i)

        self._serial_loop("0", self._poly(s.count), at)
        self._bind(s.accumulator, self._total(r, e), e, self._poly(s.total))

    # -- memory

    def _store(self, s: Store) -> None:
        value = self._eval(s.value)
        v = self.vector
        if s.gathered:
            offsets = self._gather_offsets(s)
            pointer = self._pointer(s.buffer)
            mask = v.mask if v is not None else None
            self.e.store_at(pointer, offsets, value, mask)
            return
        address = self._address(s.buffer, s.offset)
        k = s.offset.coefficient(v.var) if v is not None else Poly()
        if v is None or not k.terms:
            self.scalar.store(address, value if not value.lanes else self.e.extract(value, 0))
            return
        value = v.emitter.splat(value)
        if k == ONE:
            stream = s.buffer.stream and v.mask is None
            self.streamed |= stream
            v.emitter.store(address, value, align=64 if stream else None, mask=v.mask, nontemporal=stream)
        else:
            stride = self._times(self._poly(k), s.buffer.dtype.itemsize)
            v.emitter.store_strided(address, stride, value, self._left(v))

    def _load(self, e: Load) -> Val:
        v = self.vector
        if e.gathered:
            offsets = self._gather_offsets(e)
            return self.e.load_at(self._pointer(e.buffer), offsets, e.buffer.dtype, v.mask if v is not None else None)
        address = self._address(e.buffer, e.offset)
        k = e.offset.coefficient(v.var) if v is not None else Poly()
        if v is None or not k.terms:
            return self.scalar.load(address, e.buffer.dtype, lanes=0)
        if k == ONE:
            return v.emitter.load(address, e.buffer.dtype, mask=v.mask)
        stride = self._times(self._poly(k), e.buffer.dtype.itemsize)
        return v.emitter.load_strided(address, stride, e.buffer.dtype, self._left(v))

    def _left(self, v: _Vector) -> str | None:
        """How many lanes of the tail count, None in the main loop."""
        if v.mask is None:
            return None
        return self._memo(("left", v.mask.text), lambda: self._count_lanes(v))

    def _count_lanes(self, v: _Vector) -> str:
        assert v.mask is not None
        width = v.emitter.width
        bits = self.fn.instr(f"bitcast <{width} x i1> {v.mask.text} to i{width}")
        self.fn.declare(f"declare i{width} @llvm.ctpop.i{width}(i{width})")
        count = self.fn.instr(f"call i{width} @llvm.ctpop.i{width}(i{width} {bits})")
        if width == 64:
            return count
        return self.fn.instr(f"{'zext' if width < 64 else 'trunc'} i{width} {count} to i64")

    def _gather_offsets(self, access: Load | Store) -> Val:
        """Byte offsets of a gather, on all lanes."""
        e = self.e
        total = self._index_value(access.offset)
        for index, stride in access.gathered:
            step = e.value(self._poly(stride), I64)
            total = e.add(total, e.mul(self._eval(index), step))
        total = e.mul(total, e.constant(access.buffer.dtype.itemsize, I64))
        return e.splat(total, e.width) if self.vector is not None else total

    def _pointer(self, buffer: Buffer) -> str:
        return self._memo(("pointer", buffer.name), lambda: self.slot(self.layout.buffers[buffer.name], "ptr"))

    def _address(self, buffer: Buffer, offset: Index) -> str:
        """The address of buffer[offset] on the first lane."""
        pointer = self._pointer(buffer)
        position = self._index_text(offset)
        if position == "0":
            return pointer
        scaled = self._times(position, buffer.dtype.itemsize)
        return self.fn.instr(f"getelementptr i8, ptr {pointer}, i64 {scaled}")

    def _times(self, text: str, k: int) -> str:
        if text.lstrip("-").isdigit():
            return str(int(text) * k)
        return text if k == 1 else self.fn.instr(f"mul i64 {text}, {k}")

    # -- integers

    def _poly(self, p: Poly) -> str:
        if p.value is not None:
            return str(p.value)
        return self._memo(("poly", p), lambda: _poly(self.fn, self.slot, self.layout, p))

    def _index_text(self, index: Index) -> str:
        """The value of an index on the first lane."""
        return self._memo(("index", index), lambda: self._compute_index(index))

    def _compute_index(self, index: Index) -> str:
        total = self._poly(index.const)
        for var, k in index.terms:
            value = self.vars[var]
            factor = self._poly(k)
            term = value if factor == "1" else self.fn.instr(f"mul i64 {value}, {factor}")
            total = term if total == "0" else self.fn.instr(f"add i64 {total}, {term}")
        return total

    def _index_value(self, index: Index) -> Val:
        """The value of an index on each lane."""
        e = self.e
        first = e.value(self._index_text(index), I64)
        v = self.vector
        k = index.coefficient(v.var) if v is not None else Poly()
        if not k.terms:
            return first
        lanes = e.lane_index()
        return e.add(first, lanes if k == ONE else e.mul(lanes, e.value(self._poly(k), I64)))

    def _extent(self, extents: Sequence[Index]) -> str:
        least = self._index_text(extents[0])
        for other in extents[1:]:
            text = self._index_text(other)
            smaller = self.fn.instr(f"icmp slt i64 {text}, {least}")
            least = self.fn.instr(f"select i1 {smaller}, i64 {text}, i64 {least}")
        return least

    # -- expressions

    def _eval(self, expr: Expr) -> Val:
        for scope in reversed(self.scopes):
            found = scope.get(id(expr))
            if found is not None:
                return found  # type: ignore[no-any-return]
        value = self._compute(expr)
        self.keep.append(expr)
        self.scopes[-1][id(expr)] = value
        return value

    def _compute(self, expr: Expr) -> Val:
        if isinstance(expr, Load):
            return self._load(expr)
        if isinstance(expr, Scalar):
            return self.scopes[0]["scalar", expr.name]  # type: ignore[no-any-return]
        if isinstance(expr, Local):
            return self.locals[expr.name]
        if isinstance(expr, IndexValue):
            return self._index_value(expr.index)
        if isinstance(expr, CheckedIndex):
            return self._checked(expr)
        assert isinstance(expr, Apply)
        e = self.e
        args = [self._eval(a) for a in expr.args]
        if isinstance(expr.op, Generated):
            return expr.op.body(e, [self._eval(i) for i in expr.indices], *args)  # type: ignore[no-any-return]
        return expr.op.body(e, *args)  # type: ignore[no-any-return]

    def _checked(self, expr: CheckedIndex) -> Val:
        """The wrapped index; leaves the function with the check's code when a lane is out of range."""
        e = self.e
        n = e.value(self._poly(expr.extent), I64)
        value = self._eval(expr.value)
        index = e.cast(value, I64)
        wrapped = e.select(e.lt(index, e.constant(0, I64)), e.add(index, n), index)
        bad = e.or_(e.lt(wrapped, e.constant(0, I64)), e.ge(wrapped, n))
        if value.dtype == np.dtype("u8"):
            bad = e.or_(bad, e.lt(index, e.constant(0, I64)))
        v = self.vector
        if v is not None and v.mask is not None:
            bad = e.and_(bad, v.mask)
        fine = self.fn.label("in.range")
        if expr.code not in self.failures:
            self.failures[expr.code] = self.fn.label("out.of.range")
        self.fn.branch_if(e.any(bad), self.failures[expr.code], fine, likely=False)
        self.fn.block(fine)
        return wrapped

    def _hoist(self, s: For) -> None:
        """Compute before the loop what does not change in it; prepare running values for the loops inside."""
        bound: set[str] = {s.var}
        for inner in walk([s]):
            if isinstance(inner, For):
                bound.add(inner.var)
                bound.update(a.name for a in inner.accumulators)
            elif isinstance(inner, Store):
                bound.add(f"={inner.buffer.name}")
            elif isinstance(inner, Finish):
                bound.add(inner.accumulator.name)
        for inner in walk([s]):
            for root in expressions(inner):
                self._hoist_expr(root, bound, set())
        stepping, vector_width = self._innermost(s)
        for accumulator in s.accumulators:
            r = self.running[accumulator.name]
            if accumulator.name in stepping:
                width = vector_width[accumulator.name]
                if width and self.vector is None:
                    self._prepare_running(r, VectorEmitter(self.fn, width), width)
                else:
                    lanes = self.vector.emitter.width if self.vector is not None else 0
                    self._prepare_running(r, self.e, lanes)

    def _innermost(self, s: For) -> tuple[set[str], dict[str, int]]:
        """The accumulators that are stepped inside, and the width of the vector loop (0: none) that steps each."""
        names: set[str] = set()
        widths: dict[str, int] = {}

        def visit(loop: For, width: int) -> None:
            width = self._width(loop) if loop.vector else width
            for inner in loop.body:
                if isinstance(inner, For):
                    visit(inner, width)
                elif isinstance(inner, Step):
                    names.add(inner.accumulator.name)
                    widths[inner.accumulator.name] = width

        visit(s, 0)
        return names, widths

    def _hoist_expr(self, e: Expr, bound: set[str], seen: set[int]) -> None:
        if id(e) in seen or isinstance(e, (Scalar, Local)):
            return
        seen.add(id(e))
        if isinstance(e, (Load, Apply)) and not e.depends & bound and not _has_check(e):
            self._eval(e)
            return
        for part in e.parts:
            self._hoist_expr(part, bound, seen)

    def _memo(self, key: Any, make: Callable[[], str]) -> str:
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]  # type: ignore[no-any-return]
        value = make()
        self.scopes[-1][key] = value
        return value

    # -- library calls

    def _gemm(self, s: Gemm) -> None:
        fn = self.fn
        dtype = s.out.dtype
        slot = self.layout.SGEMM if dtype == np.dtype("f4") else self.layout.DGEMM
        function = self.slot(slot, "ptr")
        element = "float" if dtype == np.dtype("f4") else "double"
        m, n, k = (self._poly(p) for p in (s.m, s.n, s.k))

        def leading(p: Poly) -> str:
            text = self._poly(p)
            positive = fn.instr(f"icmp sgt i64 {text}, 1")
            return fn.instr(f"select i1 {positive}, i64 {text}, i64 1")

        a, b, out = (self._address(x, o) for x, o in ((s.a, s.a_offset), (s.b, s.b_offset), (s.out, s.out_offset)))
        ta, tb = (112 if t else 111 for t in (s.transpose_a, s.transpose_b))
        arguments = (
            f"i32 101, i32 {ta}, i32 {tb}, i64 {m}, i64 {n}, i64 {k}, {element} 1.0, ptr {a}, i64 {leading(s.lda)}, "
            f"ptr {b}, i64 {leading(s.ldb)}, {element} 0.0, ptr {out}, i64 {leading(s.n)}"
        )
        fn.emit(f"call void {function}({arguments})")


def _part_size(dtype: np.dtype) -> int:
    return dtype.itemsize // 2 if dtype.kind == COMPLEX else dtype.itemsize


def _widest(e: Expr, seen: set[int]) -> int:
    if id(e) in seen:
        return 1
    seen.add(id(e))
    own = _part_size(e.dtype) if isinstance(e, (Load, Apply)) else 1
    return max([own, *(_widest(part, seen) for part in e.parts)])


def _has_check(e: Expr) -> bool:
    return isinstance(e, CheckedIndex) or any(_has_check(part) for part in e.parts)

"""Reductions: running values in several chains, compensated sums as a tree of partial sums, in an order that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from jitlab.ir.programs.program import Accumulator, Finish, For, Index, Statement, Step, expressions, work
from jitlab.ops.base import Reduction
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.expressions import I64, ExpressionWriter, InVector
from jitlab.targets.llvm.features import Features
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.values import Val
from jitlab.targets.llvm.vector_emitter import VectorEmitter

#: Steps of one chain before a compensated sum starts the next (reductions): keeps |error| within (8 + log2 n) eps Σ|x|.
CHAIN = 8
LEVELS = 48

#: Chains of a loop over single elements.
SINGLE_CHAINS = 2

#: Elements of a loop of known length, and operations on all of them, up to which it is written out.
WRITTEN_OUT, WRITTEN_WORK = 16, 256.0

#: Bodies with this many operations an element run two accumulators, cheaper ones four.
HEAVY = 8.0


@dataclass
class Running:
    """An accumulator's state while its loops run."""

    accumulator: Accumulator
    slots: list[str] = field(default_factory=list)  # memory of the parts, when it is not compensated
    is_single: bool = False  # a compensated sum of one block: there is but one partial sum
    stack: str = ""  # of partial sums, when it is and there may be several
    count: str = ""
    lanes: int = 0


@dataclass
class Chains:
    """The innermost loop of reductions, whose steps go in turn to so many running values of their own."""

    loop: For
    steps: list[Step]
    running: list[Running]
    emitter: VectorEmitter | None  # of a loop over vectors
    inner: VectorEmitter
    lanes: int  # of the running values
    count: int
    round: int  # elements of one step of each chain
    block: int  # elements after which they are started anew, if compensated
    slots: list[list[list[str]]] = field(default_factory=list)  # memory: by chain, accumulator and part


class Reductions(ExpressionWriter):
    """Accumulators, and the blocks and loops they run in."""

    def __init__(self, fn: FunctionText, features: Features) -> None:
        super().__init__(fn, features)
        self.running: dict[str, Running] = {}
        self.partial: dict[str, tuple[Val, ...]] = {}

    def _statement(self, s: Statement) -> None:
        """Write any statement; the loops of reductions contain some."""
        raise NotImplementedError

    # -- blocks

    def _tail(self, at: str, hi: str, emitter: VectorEmitter, one: Callable[[str, Val | None], None]) -> None:
        """The last iterations, fewer than a vector, under a mask."""

        def masked() -> None:
            left = self.fn.instr(f"sub i64 {hi}, {at}")
            one(at, emitter.mask_first(left))

        self._if(self.fn.instr(f"icmp slt i64 {at}, {hi}"), masked)

    def _rest(self, at: str, hi: str, emitter: VectorEmitter, one: Callable[[str, Val], None]) -> None:
        """The last few vectors, each under a mask of what is left."""
        fn = self.fn
        head, inside, after = fn.label("rest"), fn.label("rest.body"), fn.label("rest.done")
        before = fn.current
        fn.branch(head)
        fn.block(head)
        i = fn.phi("i64", [(at, before)])
        left = fn.instr(f"sub i64 {hi}, {i}")
        fn.branch_if(fn.instr(f"icmp sgt i64 {left}, 0"), inside, after)
        fn.block(inside)
        with self.scope():
            one(str(i), emitter.mask_first(left))
        i.add_incoming(fn.instr(f"add i64 {i}, {emitter.width}"), fn.current)
        fn.branch(head)
        fn.block(after)

    # -- running values

    def _start(self, accumulator: Accumulator) -> None:
        self.running[accumulator.name] = Running(accumulator)

    def _stepping(
        self, steps: list[Step], s: For, lo: str, hi: str, width: int, emitter: VectorEmitter | None = None
    ) -> None:
        """The innermost loop of reductions: several chains side by side, each started anew after CHAIN steps if compensated."""
        fn = self.fn
        c = self._chains(steps, s, width, emitter)
        c.slots = [[self._fresh(r, c.inner, c.lanes) for r in c.running] for _ in range(c.count)]
        if self._write_out(c, lo, hi):
            return

        def several(i: str) -> None:
            for chain in range(c.count):
                self._one(c, i if chain == 0 else fn.instr(f"add i64 {i}, {chain * width}"), None, c.slots[chain])

        at = lo
        if c.block:

            def whole(start: str) -> None:
                self._reset(c)
                end = fn.instr(f"add i64 {start}, {c.block}")
                self._serial_loop(start, end, several, str(c.round))
                self._join(c)

            at = self._serial_loop(lo, hi, whole, str(c.block))

        def rest() -> None:
            self._reset(c)
            end = self._serial_loop(at, hi, several, str(c.round))
            if emitter is not None:
                self._rest(end, hi, emitter, lambda i, mask: self._one(c, i, mask, c.slots[0]))
            elif c.count > 1:
                self._serial_loop(end, hi, lambda i: self._one(c, i, None, c.slots[0]))
            self._join(c)

        self._if(fn.instr(f"icmp slt i64 {at}, {hi}"), rest)

    def _are_single(self, steps: list[Step], s: For, lo: str, hi: str) -> None:
        """Of a loop over single elements, not longer than a block, that has the whole sums: each is one partial sum."""
        own = {accumulator.name for accumulator in s.accumulators}
        for step in steps:
            r = self.running[step.accumulator.name]
            r.is_single = step.accumulator.name in own and 0 < _length(lo, hi) <= CHAIN * SINGLE_CHAINS

    def _write_out(self, c: Chains, lo: str, hi: str) -> bool:
        """Write a short loop over single elements without a loop, if its length is known: the same steps of the same chains."""
        length = _length(lo, hi)
        if c.emitter is not None or not 0 < length <= min(WRITTEN_OUT, c.block or WRITTEN_OUT):
            return False
        if length * sum(work(root) for s in c.loop.body for root in expressions(s)) > WRITTEN_WORK:
            return False
        self._reset(c)
        for i in range(length):
            self._one(c, str(i), None, c.slots[i % c.count if i < length - length % c.count else 0])
        self._join(c)
        return True

    def _chains(self, steps: list[Step], s: For, width: int, emitter: VectorEmitter | None) -> Chains:
        """The chains of a loop, without memory yet."""
        inner = emitter if emitter is not None else self.e
        lanes = width if emitter is not None else (self.vector.emitter.width if self.vector is not None else 0)
        heavy = sum(work(root) for inner_s in s.body for root in expressions(inner_s)) >= HEAVY
        count = SINGLE_CHAINS if heavy or emitter is None else 4
        if any(step.bound for step in steps):
            count = 1  # a scan: in order
        running = [self.running[step.accumulator.name] for step in steps]
        compensated = any(r.accumulator.op.compensated for r in running)
        return Chains(s, steps, running, emitter, inner, lanes, count, width * count, CHAIN * count * width * compensated)

    def _reset(self, c: Chains) -> None:
        for chain in c.slots:
            for r, slots in zip(c.running, chain, strict=True):
                self._write(slots, self._initial(r, c.inner, c.lanes), c.inner)

    def _one(self, c: Chains, i: str, mask: Val | None, slots: list[list[str]]) -> None:
        """The loop's body once, on a vector where it is over vectors; `slots`: of the chain that it is a step of."""
        outer = self.vector
        if c.emitter is not None:
            self.vector = InVector(c.loop.var, i, mask, c.emitter)
        self.vars[c.loop.var] = i
        with self.scope():
            for statement in c.loop.body:
                if isinstance(statement, Step):
                    number = c.steps.index(statement)
                    self._step(statement, c.running[number], slots[number], mask)
                else:
                    self._statement(statement)
        del self.vars[c.loop.var]
        self.vector = outer

    def _join(self, c: Chains) -> None:
        """The chains end: their values join the running ones."""
        for number, r in enumerate(c.running):
            values = [self._read(chain[number], r, c.inner, c.lanes) for chain in c.slots]
            while len(values) > 1:
                values = [self._combine(r, c.inner, values[i], values[i + 1]) for i in range(0, len(values), 2)]
            self._absorb(r, values[0], c.inner, c.lanes)

    def _initial(self, r: Running, emitter: VectorEmitter, lanes: int) -> tuple[Val, ...]:
        start = r.accumulator.op.start(emitter, r.accumulator.dtype)
        parts = start if isinstance(start, tuple) else (start,)
        return tuple(emitter.splat(part, lanes) if lanes else part for part in parts)

    def _fresh(self, r: Running, emitter: VectorEmitter, lanes: int) -> list[str]:
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

    def _read(self, slots: list[str], r: Running, emitter: VectorEmitter, lanes: int) -> tuple[Val, ...]:
        values = []
        rest = iter(slots)
        for part in self._initial(r, emitter, lanes):
            type = emitter.type(part.dtype, lanes)
            texts = [self.fn.instr(f"load {type}, ptr {next(rest)}") for _ in emitter.parts(part)]
            values.append(emitter.from_parts(part.dtype, texts, lanes))
        return tuple(values)

    def _step(self, step: Step, r: Running, slots: list[str], mask: Val | None) -> None:
        e = self.e
        op = r.accumulator.op
        lanes = e.width if self.vector is not None else 0
        total = self._read(slots, r, e, lanes)
        x = op.prepare(e, self._eval(step.value))
        index = self._index_value(step.index) if type(op).step is not Reduction.step else None
        packed = total if len(total) > 1 else total[0]
        new = op.step(e, packed, x, index)
        values = new if isinstance(new, tuple) else (new,)
        if lanes:
            values = tuple(e.splat(v, lanes) for v in values)
        if mask is not None:
            values = tuple(e.select(mask, v, old) for v, old in zip(values, total, strict=True))
        self._write(slots, values, e)
        if step.bound:
            self.locals[step.bound] = values[0]

    def _combine(self, r: Running, e: VectorEmitter, left: tuple[Val, ...], right: tuple[Val, ...]) -> tuple[Val, ...]:
        if len(left) == 1:
            joined = r.accumulator.op.combine(e, left[0], right[0])
        else:
            joined = r.accumulator.op.combine(e, left, right)
        return joined if isinstance(joined, tuple) else (joined,)

    def _absorb(self, r: Running, value: tuple[Val, ...], e: VectorEmitter, lanes: int) -> None:
        """A finished chain joins the running value: directly, or through a stack of partial sums of equal weight."""
        if r.accumulator.op.compensated and not r.is_single:
            self._push(r, value, e, lanes)
            return
        old = self._read(r.slots, r, e, lanes)
        first, second = (value, old) if r.is_single else (old, value)
        self._write(r.slots, self._combine(r, e, first, second), e)

    def _push(self, r: Running, value: tuple[Val, ...], e: VectorEmitter, lanes: int) -> None:
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

    def _stack_slot(self, r: Running, level: str, type: str, parts: int, part: int) -> str:
        position = self.fn.instr(f"mul i64 {level}, {parts}")
        position = self.fn.instr(f"add i64 {position}, {part}") if part else position
        return self.fn.instr(f"getelementptr {type}, ptr {r.stack}, i64 {position}")

    def _stack_read(self, r: Running, level: str, type: str, parts: int) -> list[str]:
        return [
            self.fn.instr(f"load {type}, ptr {self._stack_slot(r, level, type, parts, k)}") for k in range(parts)
        ]

    def _prepare_running(self, r: Running, e: VectorEmitter, lanes: int) -> None:
        """Set the running value to its start; called before the loops that feed it."""
        r.lanes = lanes
        start = self._initial(r, e, lanes)
        if r.accumulator.op.compensated and not r.is_single:
            (part,) = start
            parts = len(e.parts(part))
            r.stack = self.fn.alloca(f"[{LEVELS * parts} x {e.type(part.dtype, lanes)}]")
            r.count = self.fn.alloca("i64", 8)
            self.fn.emit(f"store i64 0, ptr {r.count}")
        else:
            r.slots = self._fresh(r, e, lanes)
            self._write(r.slots, start, e)

    def _total(self, r: Running, e: VectorEmitter) -> tuple[Val, ...]:
        """The running value when its loops are done, still on all its lanes."""
        if not r.accumulator.op.compensated or r.is_single:
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
        e = outer.emitter if outer is not None else (VectorEmitter(self.fn, r.lanes, self.features) if r.lanes else self.scalar)
        total = self._total(r, e)
        for memory in filter(None, (r.stack, r.count)):
            self.fn.release(memory)
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
        r = Running(s.accumulator)
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


def _length(lo: str, hi: str) -> int:
    """How many elements there are between two numbers of the code; 0 where they are not known."""
    return int(hi) - int(lo) if lo.isdigit() and hi.isdigit() else 0

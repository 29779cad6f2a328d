"""Phases: the statements of a Program as functions of LLVM text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jitlab.ir import Poly
from jitlab.ir.programs.program import (
    LANES,
    ONE,
    Apply,
    Assign,
    Buffer,
    Call,
    Define,
    Expr,
    Finish,
    For,
    Gemm,
    If,
    Index,
    Let,
    Load,
    Local,
    Partial,
    Repeat,
    Scalar,
    Statement,
    Step,
    Store,
    all_expressions,
    expressions,
    walk,
    work,
    written,
)
from jitlab.ops.random_draws import Draw
from jitlab.support.later import Later
from jitlab.targets.cpu_llvm.calls.context import DONE, FAILED, STOPPED, ContextLayout
from jitlab.targets.cpu_llvm.cpu_schedule import SCANNED_ROWS, scan_in_rows
from jitlab.targets.cpu_llvm.machine import features
from jitlab.targets.llvm.expressions import InVector
from jitlab.targets.llvm.function_text import FunctionText
from jitlab.targets.llvm.program_phases import Phase, changes
from jitlab.targets.llvm.values import Val
from jitlab.targets.llvm.vector_emitter import VectorEmitter

from .reductions import Chains, Reductions

if TYPE_CHECKING:
    from jitlab.targets.cpu_llvm.libraries import call_records, step_writer

    from . import drawing
else:
    drawing = Later(f"{__package__}.drawing")
    call_records = Later("jitlab.targets.cpu_llvm.libraries.call_records")
    step_writer = Later("jitlab.targets.cpu_llvm.libraries.step_writer")

#: Operations on elements between two looks at the clock, about.
LOOK_STEPS = 1 << 16


class Slots:
    """Places in the context, and what they hold. `ahead`: read where the function starts."""

    def __init__(self, fn: FunctionText, ahead: bool = False) -> None:
        self.instr = fn.ahead if ahead else fn.instr

    def pointer(self, number: int) -> str:
        return self.instr(f"getelementptr i64, ptr %ctx, i64 {number}")

    def __call__(self, number: int, type: str = "i64") -> str:
        return self.instr(f"load {type}, ptr {self.pointer(number)}")


def phase_function(layout: ContextLayout, phase: Phase, name: str) -> FunctionText:
    """The function of one phase: `i64 (ptr context, i64 lo, i64 hi, ptr of each buffer)`."""
    return PhaseWriter(layout, phase, name).function()


class PhaseWriter(Reductions):
    """Writes one phase's function. Buffers are parameters of their own, so that LLVM knows them apart."""

    text: type[FunctionText] = FunctionText

    def __init__(self, layout: ContextLayout, phase: Phase, name: str) -> None:
        params = [("ptr", "ctx"), ("i64", "lo"), ("i64", "hi")]
        for buffer in phase.buffers:
            facts = "noalias nonnull" + (" readonly" if buffer.name not in layout.stored else "")
            params.append((f"ptr {facts} align 64" if buffer.kind in ("temp", "row") else f"ptr {facts}", f"b.{buffer.name}"))
        fn = self.text(name, params, returns="i64")
        fn.attributes = "noinline nounwind"
        fn.linkage = "internal"
        super().__init__(fn, features())
        self.layout, self.phase, self.slot = layout, phase, Slots(fn)
        self.fixed = {name: Poly.constant(value) for name, value in layout.program.fixed.items()}
        self.widest: dict[int, int] = {}  # id of a loop -> bytes of its widest elements
        self.repeats = 0  # loops of the user's around
        self.turns = 0 if phase.outer is not None else 1  # loops around that look at the clock: all but a phase's own
        self.spent: str | None = None  # memory of the count of steps since the last look at the clock
        self.has_streamed = False
        self.stopped: str | None = None  # the block that leaves because a signal's handler raised

    def function(self) -> FunctionText:
        fn, phase = self.fn, self.phase
        for name, dtype in self.layout.program.scalars:
            if name not in phase.scalars:
                continue
            self.scopes[0]["scalar", name] = self._kept_value(self.layout.scalars[name], dtype)
        kept = self.layout.kept
        for name, variable in phase.variables.items():
            if name in kept:
                self._assign(variable, self._kept_value(kept[name], variable.dtype))
        for name, dtype in phase.wanted.items():
            if name in kept and name not in phase.bound:
                self.locals[name] = self._kept_value(kept[name], dtype)
        for statement in phase.statements:
            if statement is phase.outer:
                assert isinstance(statement, For)
                self._for(statement, "%lo", "%hi")
            else:
                self._statement(statement)
        for s in phase.statements:
            if isinstance(s, Define):
                fn.emit(f"store i64 {self.symbols[s.symbol]}, ptr {self.slot.pointer(self.layout.symbols[s.symbol])}")
        for name, variable in phase.variables.items():
            if name in kept and f"={name}" in phase.changes:
                self._keep_value(kept[name], self._read_variable(variable))
        for name in phase.bound:
            if name in kept:
                self._keep_value(kept[name], self.locals[name])
        if self.has_streamed:
            fn.emit("fence seq_cst")
        fn.ret(DONE)
        for code, label in self.failures.items():
            fn.block(label)
            fn.ret(FAILED + code)
        if self.stopped is not None:
            fn.block(self.stopped)
            fn.ret(STOPPED)
        return fn

    def _kept_value(self, number: int, dtype: np.dtype) -> Val:
        return self.scalar.load(self.slot.pointer(number), dtype, lanes=0, align=8)

    def _keep_value(self, number: int, value: Val) -> None:
        self.scalar.store(self.slot.pointer(number), value, align=8)

    def _passed(self, symbol: str) -> str:
        return Slots(self.fn, ahead=True)(self.layout.symbols[symbol])

    def _is_streamed(self, s: Store) -> bool:
        is_streamed = s.buffer.name in self.layout.program.streamed and self.vector is not None and self.vector.mask is None
        self.has_streamed |= is_streamed
        return is_streamed

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
        elif isinstance(s, Call):
            self._call(s)
        elif isinstance(s, Let):
            self.locals[s.name] = self._eval(s.value)
        elif isinstance(s, Assign):
            assert self.vector is None, f"{s.variable.name} is assigned in a vector loop"
            self._assign(s.variable, self._eval(s.value))
        elif isinstance(s, Define):
            self.symbols[s.symbol] = self._eval(s.value).text
        elif isinstance(s, If):
            self._branch(s)
        elif isinstance(s, Repeat):
            self._repeat(s)
        else:
            raise AssertionError(f"{s} outside its loop")
        if not isinstance(s, (For, If, Repeat)):
            self._forget(changes([s]))

    def _block(self, statements: list[Statement]) -> None:
        with self.scope():
            for s in statements:
                self._statement(s)

    def _branch(self, s: If) -> None:
        fn = self.fn
        condition = self._eval(s.condition)
        assert condition.lanes <= 1, "a branch that differs from lane to lane"
        then, orelse, after = fn.label("if"), fn.label("else"), fn.label("fi")
        fn.branch_if(condition.text, then, orelse if s.orelse else after)
        fn.block(then)
        self._block(s.then)
        fn.branch(after)
        if s.orelse:
            fn.block(orelse)
            self._block(s.orelse)
            fn.branch(after)
        fn.block(after)
        self._forget(changes([s]))

    # -- the user's loops

    def _repeat(self, s: Repeat) -> None:
        """`while` with a number: each turn asks the count, then the test, and looks at the clock now and then."""
        fn = self.fn
        self._forget(changes([s]))
        count = None if s.count is None else self._poly(s.count)
        head, after = fn.label("turn"), fn.label("turns.done")
        before = fn.current
        fn.branch(head)
        fn.block(head)
        i = fn.phi("i64", [("0", before)])
        self.turns += 1
        self.repeats += 1
        with self.scope():
            self.symbols[s.symbol] = str(i)
            if count is not None:
                body = fn.label("turn.body")
                fn.branch_if(fn.instr(f"icmp slt i64 {i}, {count}"), body, after)
                fn.block(body)
            for inner in s.before:
                self._statement(inner)
            if s.test is not None:
                test, body = self._eval(s.test), fn.label("turn.go")
                fn.branch_if(test.text, body, after)
                fn.block(body)
            for inner in s.body:
                self._statement(inner)
            self._look_in(s, str(i))
            i.add_incoming(fn.instr(f"add i64 {i}, 1"), fn.current)
            fn.branch(head)
        self.turns -= 1
        self.repeats -= 1
        fn.block(after)
        if self.turns:
            self._spend(str(i), _steps([*s.before, *s.body]))

    def _look_in(self, s: Repeat, i: str) -> None:
        """At the end of a turn: time to look at the clock? A loop without loops inside asks its own number."""
        fn = self.fn
        if not any(isinstance(inner, (For, Repeat, Gemm, Call)) for inner in walk([*s.before, *s.body])):
            every = 1 << max(0, (LOOK_STEPS // max(_steps([*s.before, *s.body]), 1)).bit_length() - 1)
            low = fn.instr(f"and i64 {i}, {every - 1}")
            self._look(fn.instr(f"icmp eq i64 {low}, {every - 1}"))
            return
        self._spend("1", _steps([*s.before, *s.body]))
        self._look_if_spent()

    def _spend(self, times: str, steps: int) -> None:
        """So many operations more since the last look."""
        if self.spent is None:
            self.spent = self.fn.alloca("i64", 8)
            self.fn.ahead_emit(f"store i64 0, ptr {self.spent}")
        more = self._times(times, steps)
        before = self.fn.instr(f"load i64, ptr {self.spent}")
        self.fn.emit(f"store i64 {self.fn.instr(f'add i64 {before}, {more}')}, ptr {self.spent}")

    def _look_if_spent(self) -> None:
        fn = self.fn
        assert self.spent is not None
        spent = fn.instr(f"load i64, ptr {self.spent}")

        def again() -> None:
            fn.emit(f"store i64 0, ptr {self.spent}")

        self._look(fn.instr(f"icmp ugt i64 {spent}, {LOOK_STEPS}"), again)

    def _look(self, condition: str, also: Callable[[], None] | None = None) -> None:
        """If so, let Python see its signals when its time has come; leave if a handler raised."""
        fn = self.fn
        look, fine = fn.label("look"), fn.label("looked")
        if self.stopped is None:
            self.stopped = fn.label("stopped")
        fn.branch_if(condition, look, fine, likely=False)
        fn.block(look)
        if also is not None:
            also()
        fn.called.add("look")
        raised = fn.instr("call i64 @look(ptr %ctx)")
        fn.branch_if(fn.instr(f"icmp eq i64 {raised}, 0"), fine, self.stopped, likely=True)
        fn.block(fine)

    # -- loops over elements

    def _for(self, s: For, lo: str, hi: str) -> None:
        self._forget(changes([s]))
        steps = [inner for inner in s.body if isinstance(inner, Step)]
        for accumulator in s.accumulators:
            self._start(accumulator)
        if steps and not self._tile(s):
            self._are_single(steps, s, lo, hi)
        self._hoist(s)
        if self._tile(s):
            self._vector_loop(s, lo, hi, steps)
        elif steps:
            self._stepping(steps, s, lo, hi, 1)
        elif (scan := self._scan_in_rows(s)) is not None:
            self._rows(s, scan, lo, hi)
        else:
            self._serial_loop(lo, hi, lambda i: self._body(s, i))
        for accumulator in s.accumulators:
            self._end(accumulator, s)
        if self.turns:
            self._spend_in(s, hi)

    def _spend_in(self, s: For, hi: str) -> None:
        """Loops count the steps of their turns; those around them look."""
        if any(isinstance(inner, (For, Repeat)) for inner in walk(s.body)):
            return
        self._spend(hi, max(_steps(s.body) // (8 if self._tile(s) else 1), 1))

    def _body(self, s: For, i: str) -> None:
        self.vars[s.var] = i
        self._block(s.body)
        if self.turns and self.vector is None and any(isinstance(inner, (For, Repeat)) for inner in s.body):
            if not any(b.kind == "input" for inner in walk(s.body) for b in written(inner)):
                self._look_if_spent()  # an argument is never left with half a statement done
        del self.vars[s.var]

    def _scan_in_rows(self, s: For) -> For | None:
        """The scan of which several rows are taken side by side."""
        return scan_in_rows(s) if self.vector is None and not self.turns else None

    def _rows(self, s: For, scan: For, lo: str, hi: str) -> None:
        """A loop over the rows of a scan, several at a time, then what is left of them."""
        for accumulator in scan.accumulators:
            self._start(accumulator)
        steps = [inner for inner in scan.body if isinstance(inner, Step)]

        def several(i: str) -> None:
            rows: list[tuple[str, Chains]] = []
            for row in range(SCANNED_ROWS):
                c = self._chains(steps, scan, 1, None)
                c.slots = [[self._fresh(r, c.inner, c.lanes) for r in c.running]]
                self._reset(c)
                rows.append((self.fn.instr(f"add i64 {i}, {row}") if row else i, c))

            def one(j: str) -> None:
                for self.vars[s.var], c in rows:
                    self._one(c, j, None, c.slots[0])

            self._serial_loop("0", self._extent(scan.extent), one)
            del self.vars[s.var]

        end = self._serial_loop(lo, hi, several, str(SCANNED_ROWS))
        for accumulator in scan.accumulators:
            del self.running[accumulator.name]
        self._serial_loop(end, hi, lambda i: self._body(s, i))

    def _vector_loop(self, s: For, lo: str, hi: str, steps: list[Step]) -> None:
        assert self.vector is None, "vector loops do not nest"
        width = self._width(s)
        emitter = VectorEmitter(self.fn, width, self.features)
        if steps:
            self._stepping(steps, s, lo, hi, width, emitter)
            return

        def one(i: str, mask: Val | None) -> None:
            self.vector = InVector(s.var, i, mask, emitter)
            self._body(s, i)
            self.vector = None

        self._each_vector(s, lo, hi, emitter, one)

    def _each_vector(
        self, s: For, lo: str, hi: str, emitter: VectorEmitter, one: Callable[[str, Val | None], None]
    ) -> None:
        end = self._serial_loop(lo, hi, lambda i: one(i, None), str(emitter.width))
        self._tail(end, hi, emitter, one)

    def _tile(self, s: For) -> int:
        """How many vectors it takes at a time; 0 where it takes none."""
        return 1 if s.kind == LANES else self.layout.program.vectors.get(id(s), 0)

    def _width(self, s: For) -> int:
        """Lanes for the widest element in the loop: two native vectors; one in loops of the user's, which may be short."""
        widest = self.widest.get(id(s), 0)
        if not widest:
            stored = (inner.buffer.dtype for inner in walk([s]) if isinstance(inner, Store))
            made = (e.dtype for e in all_expressions([s]) if isinstance(e, (Load, Apply)))
            steps = (inner for inner in walk([s]) if isinstance(inner, Step) and not inner.bound)
            least = 4 if any(step.accumulator.op.keeps_position for step in steps) else 1  # a position has 8 bytes
            widest = self.widest[id(s)] = max([least, *map(_part_size, (*stored, *made))])
        registers, tile = self._vectors(s)
        return max(registers * self.features.vector_bytes // widest, 2) * tile

    def _vectors(self, s: For) -> tuple[int, int]:
        """Registers of a vector, and vectors at a time."""
        return 1 if self.repeats else 2, self._tile(s)

    def _hoist(self, s: For) -> None:
        """Compute before the loop what does not change in it; prepare running values for the loops inside."""
        bound = changes([s])
        for inner in _nested(s):
            for root in expressions(inner):
                self._hoist_expr(root, bound, set())
        stepping, vector_width = self._innermost(s)
        for accumulator in s.accumulators:
            r = self.running[accumulator.name]
            if accumulator.name in stepping:
                width = vector_width[accumulator.name]
                if width and self.vector is None:
                    self._prepare_running(r, VectorEmitter(self.fn, width, self.features), width)
                else:
                    lanes = self.vector.emitter.width if self.vector is not None else 0
                    self._prepare_running(r, self.e, lanes)

    def _innermost(self, s: For) -> tuple[set[str], dict[str, int]]:
        """The accumulators that are stepped inside, and the width of the vector loop (0: none) that steps each."""
        names: set[str] = set()
        widths: dict[str, int] = {}

        def visit(loop: For, width: int) -> None:
            width = self._width(loop) if self._tile(loop) else width
            for inner in loop.body:
                if isinstance(inner, For):
                    visit(inner, width)
                elif isinstance(inner, Step):
                    names.add(inner.accumulator.name)
                    widths[inner.accumulator.name] = width

        visit(s, 0)
        return names, widths

    def _hoist_expr(self, e: Expr, bound: frozenset[str], seen: set[int]) -> None:
        if id(e) in seen or isinstance(e, (Scalar, Local)):
            return
        seen.add(id(e))
        if isinstance(e, (Load, Apply)) and not e.depends & bound and not e.is_checked:
            self._eval(e)
            return
        for part in e.parts:
            self._hoist_expr(part, bound, seen)

    # -- library calls

    def _gemm(self, s: Gemm) -> None:
        fn = self.fn
        letter, element = ("s", "float") if s.out.dtype == np.dtype("f4") else ("d", "double")
        function = self.slot(self.layout.BLAS[f"{letter}{'syrk' if s.is_square else 'gemm'}"], "ptr")
        m, n, k = (self._poly(p) for p in (s.m, s.n, s.k))

        def leading(p: Poly) -> str:
            text = self._poly(p)
            positive = fn.instr(f"icmp sgt i64 {text}, 1")
            return fn.instr(f"select i1 {positive}, i64 {text}, i64 1")

        a, b, out = (self._address(x, o) for x, o in ((s.a, s.a_offset), (s.b, s.b_offset), (s.out, s.out_offset)))
        ta, tb = (112 if t else 111 for t in (s.transpose_a, s.transpose_b))
        if s.is_square:
            arguments = (
                f"i32 101, i32 121, i32 {ta}, i64 {n}, i64 {k}, {element} 1.0, ptr {a}, i64 {leading(s.lda)}, "
                f"{element} 0.0, ptr {out}, i64 {leading(s.n)}"
            )
            fn.emit(f"call void {function}({arguments})")
            self._mirror(out, n, element)
            return
        arguments = (
            f"i32 101, i32 {ta}, i32 {tb}, i64 {m}, i64 {n}, i64 {k}, {element} 1.0, ptr {a}, i64 {leading(s.lda)}, "
            f"ptr {b}, i64 {leading(s.ldb)}, {element} 0.0, ptr {out}, i64 {leading(s.n)}"
        )
        fn.emit(f"call void {function}({arguments})")

    def _mirror(self, out: str, n: str, element: str) -> None:
        """What stands above the diagonal of a matrix is stored below it, too."""
        fn = self.fn

        def at(row: str, column: str) -> str:
            place = fn.instr(f"add i64 {fn.instr(f'mul i64 {row}, {n}')}, {column}")
            return fn.instr(f"getelementptr {element}, ptr {out}, i64 {place}")

        def row(i: str) -> None:
            def column(j: str) -> None:
                fn.emit(f"store {element} {fn.instr(f'load {element}, ptr {at(j, i)}')}, ptr {at(i, j)}")

            self.repeat(i, column)

        self.repeat(n, row)

    def _call(self, s: Call) -> None:
        """The function at CALL gets the operation and, for each array, its address, extents and strides. It writes 1 behind
        them when it is done: what it returns where an interrupt ends it nobody can say."""
        if isinstance(op := self.layout.program.calls[s.number], Draw):
            drawing.write_draw(self, s, op)
            return
        steps = call_records.steps_of(op, s)
        if steps is None:
            self._call_from_python(s, self.slot(self.layout.calls + s.number))
            return
        writer = step_writer.StepWriter(self, s, steps)
        writer.write(lambda: self._call_from_python(s, writer.word(call_records.NUMBER)))

    def _call_from_python(self, s: Call, operation: str) -> None:
        fn = self.fn
        words: list[str] = []
        for buffer, extents in zip((*s.outs, *s.ins), s.extents, strict=True):
            words.append(fn.instr(f"ptrtoint ptr {self._address(buffer, Index())} to i64"))
            words += [self._poly(n) for n in extents]
            words += [self._poly(n) for n in buffer.strides]
        table = fn.alloca(f"[{len(words) + 1} x i64]", 8)
        for k, word in enumerate([*words, "0"]):
            fn.emit(f"store i64 {word}, ptr {fn.instr(f'getelementptr i64, ptr {table}, i64 {k}')}")
        function = self.slot(self.layout.CALL, "ptr")
        fn.emit(f"call void {function}(i64 {operation}, ptr {table})")
        status = fn.instr(f"load i64, ptr {fn.instr(f'getelementptr i64, ptr {table}, i64 {len(words)}')}")
        self.fail_if(fn.instr(f"icmp ne i64 {status}, 1"), s.code)

    def fail_if(self, condition: str, code: int) -> None:
        """Leave, if so: the check with that code has failed."""
        fine = self.fn.label("called")
        if code not in self.failures:
            self.failures[code] = self.fn.label("raised")
        self.fn.branch_if(condition, self.failures[code], fine, likely=False)
        self.fn.block(fine)

    def start_of(self, buffer: Buffer) -> str:
        """Where the first element of a buffer lies."""
        return self._address(buffer, Index())

    def count_of(self, extents: Sequence[Poly]) -> str:
        """How many elements an array has."""
        return self._poly(math.prod(extents, start=ONE))

    def repeat(self, count: str, body: Callable[[str], None]) -> None:
        """The body for 0, 1, ... below `count`."""
        self._serial_loop("0", count, body)


def _nested(s: For) -> list[Statement]:
    """The statements of a nest that run in each of its turns: what stands in a branch or in a loop of the user's may not."""
    found: list[Statement] = []
    for inner in s.body:
        found += _nested(inner) if isinstance(inner, For) else [inner]
    return found


def _steps(statements: list[Statement]) -> int:
    """Operations in one run of the statements, what is in the loops among them left out."""
    total = 0
    for s in statements:
        total += 1 + int(sum(work(e) for e in expressions(s)))
        if isinstance(s, If):
            total += max(_steps(s.then), _steps(s.orelse))
    return total


def _part_size(dtype: np.dtype) -> int:
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize

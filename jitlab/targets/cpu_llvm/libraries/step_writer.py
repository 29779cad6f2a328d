"""Library calls in machine code: the steps of a call as calls of NumPy's compiled functions, loops around them, and copies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jitlab.ir import Poly
from jitlab.ir.programs.program import ONE, Call
from jitlab.ops.library_operations import Copying, InC, Lying, Place, SortLoop, UfuncLoop
from jitlab.support.lazy_dataclass import dataclass

from . import call_records
from .numpy_functions import FE_INVALID

if TYPE_CHECKING:
    from jitlab.targets.cpu_llvm.emit.phase import PhaseWriter

#: The last four bytes of a loop's results before it runs. What is left as it was may mean that there was no memory; it is a
#: NaN, whether of four bytes or the end of eight.
UNTOUCHED = 0x7FFABEEF

#: Temporaries of so many bytes in all are still in the cache of a core when they are read. Fewer cost more: NumPy makes the
#: tables of a transform anew in each call of its loop.
PART_BYTES = 1 << 19

#: The symbol of the length of a part of the arrays.
PART = "#part"

_FLOATS = {4: "float", 8: "double"}


@dataclass(eq=False)
class Lane:
    """An array in memory, its strides in bytes."""

    start: str
    dtype: np.dtype
    extents: tuple[Poly, ...]
    strides: tuple[Poly, ...]

    def last(self, axis: int) -> Lane:
        """With an axis as its last one."""
        order = [k for k in range(len(self.extents)) if k != axis] + [axis]
        return Lane(self.start, self.dtype, tuple(self.extents[k] for k in order), tuple(self.strides[k] for k in order))

    def part(self, start: str, axis: int, length: Poly) -> Lane:
        """A part along an axis, which begins at `start`."""
        extents = tuple(length if k == axis else n for k, n in enumerate(self.extents))
        return Lane(start, self.dtype, extents, self.strides)


class StepWriter:
    """Writes the steps of one call into a phase."""

    def __init__(self, writer: PhaseWriter, s: Call, steps: InC) -> None:
        self.writer, self.fn, self.steps = writer, writer.fn, steps
        self.record = writer.slot(writer.layout.calls + s.number, "ptr")
        self.function = call_records.FIRST
        self.arrays: dict[Place, Lane] = {}
        outs, ins = call_records.arrays_of(s)
        for kind, buffers, arrays in (("out", s.outs, outs), ("in", s.ins, ins)):
            for number, (buffer, (dtype, extents)) in enumerate(zip(buffers, arrays, strict=True)):
                strides = tuple(p.scale(dtype.itemsize) for p in buffer.strides)
                self.arrays[kind, number] = Lane(writer.start_of(buffer), dtype, extents, strides)
        self.troubled = ""

    def write(self, otherwise: Callable[[], None]) -> None:
        """`otherwise` writes the call from Python: for arrays without elements, results in the place of operands, where
        a function was not found, and where something unusual came up."""
        fn = self.fn
        inside, elsewhere, done = fn.label("in.c"), fn.label("from.python"), fn.label("called")
        counts = [self.writer.count_of(lane.extents) for lane in self.arrays.values()]
        possible = fn.instr(f"icmp ne i64 {self.word(call_records.IS_FOUND)}, 0")
        for count in dict.fromkeys(counts):
            possible = fn.instr(f"and i1 {possible}, {fn.instr(f'icmp sgt i64 {count}, 0')}")
        outs, ins = ([lane for (kind, _), lane in self.arrays.items() if kind == wanted] for wanted in ("out", "in"))
        for out, source in itertools.product(outs, ins):
            apart = fn.instr(f"icmp ne ptr {out.start}, {source.start}")  # NumPy stores when all is read
            possible = fn.instr(f"and i1 {possible}, {apart}")
        fn.branch_if(possible, inside, elsewhere)
        fn.block(inside)
        self.troubled = fn.alloca("i64", 8)
        fn.emit(f"store i64 0, ptr {self.troubled}")
        with self.writer.scope():
            self._steps(elsewhere)
        trouble = fn.instr(f"load i64, ptr {self.troubled}")
        fn.release(self.troubled)
        fn.branch_if(fn.instr(f"icmp eq i64 {trouble}, 0"), done, elsewhere, likely=True)
        fn.block(elsewhere)
        with self.writer.scope():
            otherwise()
        fn.branch(done)
        fn.block(done)

    def _steps(self, elsewhere: str) -> None:
        taken: list[str] = []
        axis = self._axis_of_parts()
        if axis is None:
            self._temps(self.steps.temps, taken, elsewhere)
            self._steps_once(taken, elsewhere)
        else:
            self._steps_in_parts(axis, taken, elsewhere)
        for place in taken:
            self.fn.emit(f"call void {self.word(call_records.FREE, 'ptr')}(ptr {place})")

    def _axis_of_parts(self) -> int | None:
        """The axis along which the steps may take one part after the other."""
        if self.steps.along is None or not self.steps.temps:
            return None
        _, extents = self.steps.temps[0]
        return next((axis for axis, n in enumerate(extents) if axis != self.steps.along and n != ONE), None)

    def _steps_in_parts(self, axis: int, taken: list[str], elsewhere: str) -> None:
        """The steps for one part of the arrays after the other, of which the temporaries hold `PART_BYTES`, or one place along
        the axis."""
        fn, whole, length = self.fn, dict(self.arrays), Poly.symbol(PART)
        count = self._text(self.steps.temps[0][1][axis])

        def least(a: str, b: str) -> str:
            return fn.instr(f"select i1 {fn.instr(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

        each = _total(_product([*n[:axis], *n[axis + 1 :]]).scale(dtype.itemsize) for dtype, n in self.steps.temps)
        room = fn.instr(f"udiv i64 {PART_BYTES}, {self._text(each)}")
        most = least(fn.instr(f"select i1 {fn.instr(f'icmp eq i64 {room}, 0')}, i64 1, i64 {room}"), count)
        with self.writer.scope():
            self.writer.symbols[PART] = most
            self._temps([(dtype, (*n[:axis], length, *n[axis + 1 :])) for dtype, n in self.steps.temps], taken, elsewhere)
        last = fn.instr(f"sub i64 {count}, 1")

        def one(number: str) -> None:
            first = fn.instr(f"mul i64 {number}, {most}")
            self.writer.symbols[PART] = least(most, fn.instr(f"sub i64 {count}, {first}"))
            for place, lane in whole.items():
                self.arrays[place] = lane.part(self._at(lane.start, first, lane.strides[axis]), axis, length)
            self._steps_once(taken, elsewhere)

        self.writer.repeat(fn.instr(f"add i64 {fn.instr(f'udiv i64 {last}, {most}')}, 1"), one)

    def _temps(self, temps: Sequence[Lying], taken: list[str], elsewhere: str) -> None:
        for number, (dtype, extents) in enumerate(temps):
            start = self._allocated(self._text(_product(extents).scale(dtype.itemsize)), taken, elsewhere)
            self.arrays["temp", number] = Lane(start, dtype, extents, _rows(extents, dtype.itemsize))

    def _steps_once(self, taken: list[str], elsewhere: str) -> None:
        for step in self.steps.steps:
            if isinstance(step, SortLoop):
                self._sorted(step, taken, elsewhere)
            elif isinstance(step, UfuncLoop):
                self._loop(step)
            else:
                self._copied(step)

    def word(self, number: int, type: str = "i64") -> str:
        return self.fn.instr(f"load {type}, ptr {self.fn.instr(f'getelementptr i64, ptr {self.record}, i64 {number}')}")

    def _next_function(self) -> tuple[str, str]:
        """The function of this step, and what it is given."""
        self.function += 2
        return self.word(self.function - 2, "ptr"), self.word(self.function - 1, "ptr")

    def _text(self, p: Poly) -> str:
        return self.writer._poly(p)

    def _allocated(self, size: str, taken: list[str], elsewhere: str) -> str:
        """A block of memory; without one, what was taken goes, and the call is made from Python."""
        fn = self.fn
        place = fn.instr(f"call ptr {self.word(call_records.ALLOCATE, 'ptr')}(i64 {size})")
        none, some = fn.label("none"), fn.label("some")
        fn.branch_if(fn.instr(f"icmp eq ptr {place}, null"), none, some, likely=False)
        fn.block(none)
        for other in taken:
            fn.emit(f"call void {self.word(call_records.FREE, 'ptr')}(ptr {other})")
        fn.branch(elsewhere)
        fn.block(some)
        taken.append(place)
        return place

    def _note_trouble(self, condition: str) -> None:
        fn = self.fn
        so_far = fn.instr(f"load i64, ptr {self.troubled}")
        found = fn.instr(f"or i64 {so_far}, {fn.instr(f'zext i1 {condition} to i64')}")
        fn.emit(f"store i64 {found}, ptr {self.troubled}")

    def _at(self, start: str, i: str, stride: Poly) -> str:
        fn, step = self.fn, self._text(stride)
        return fn.instr(f"getelementptr i8, ptr {start}, i64 {fn.instr(f'mul i64 {i}, {step}')}")

    def _each(self, lanes: Sequence[Lane], axes: int, body: Callable[[list[str]], None]) -> None:
        """The body for each place of the first axes of these arrays, which are as long in all of them."""

        def level(axis: int, starts: list[str]) -> None:
            if axis == axes:
                body(starts)
            elif lanes[0].extents[axis] == ONE:
                level(axis + 1, starts)
            else:
                self.writer.repeat(
                    self._text(lanes[0].extents[axis]),
                    lambda i: level(axis + 1, [self._at(p, i, x.strides[axis]) for p, x in zip(starts, lanes, strict=True)]),
                )

        level(0, [lane.start for lane in lanes])

    # ---- copies
    def _copied(self, step: Copying) -> None:
        to, source = self.arrays[step.to], self.arrays[step.source]
        if not step.upper:
            self._each((to, source), len(to.extents), lambda starts: self._element(to, starts[0], source, starts[1]))
            return
        rows, columns = (self._text(n) for n in to.extents[-2:])  # the source may have more rows

        def matrix(starts: list[str]) -> None:
            def row(i: str) -> None:
                def element(j: str) -> None:
                    first, second = (
                        self._at(self._at(p, i, x.strides[-2]), j, x.strides[-1])
                        for p, x in zip(starts, (to, source), strict=True)
                    )
                    self._element(to, first, source, second, self.fn.instr(f"icmp slt i64 {j}, {i}"))

                self.writer.repeat(columns, element)

            self.writer.repeat(rows, row)

        self._each((to, source), len(to.extents) - 2, matrix)

    def _element(self, to: Lane, at: str, source: Lane, source_at: str, is_zero: str = "") -> None:
        """One number, complex or not, to another precision where that differs."""
        fn, parts = self.fn, 2 if to.dtype.kind == "c" else 1
        size, source_size = to.dtype.itemsize // parts, source.dtype.itemsize // parts
        type, source_type = _FLOATS[size], _FLOATS[source_size]
        for k in range(parts):
            place = fn.instr(f"getelementptr i8, ptr {source_at}, i64 {k * source_size}")
            value = fn.instr(f"load {source_type}, ptr {place}, align {source_size}")
            if size != source_size:
                value = fn.instr(f"{'fpext' if size > source_size else 'fptrunc'} {source_type} {value} to {type}")
            if is_zero:
                value = fn.instr(f"select i1 {is_zero}, {type} 0.0, {type} {value}")
            fn.emit(f"store {type} {value}, ptr {fn.instr(f'getelementptr i8, ptr {at}, i64 {k * size}')}, align {size}")

    # ---- sorts
    def _sorted(self, step: SortLoop, taken: list[str], elsewhere: str) -> None:
        """Elements of a row that lie beside one another are sorted where they are; else in a row of their own."""
        fn = self.fn
        to, source = (self.arrays[place].last(step.axis) for place in (step.to, step.source))
        function, _ = self._next_function()
        count = self._text(to.extents[-1])

        def row_of(lane: Lane, is_wanted: bool) -> str:
            if not is_wanted or lane.strides[-1] == Poly.constant(lane.dtype.itemsize):
                return ""
            return self._allocated(self._text(lane.extents[-1].scale(lane.dtype.itemsize)), taken, elsewhere)

        own_source, own = row_of(source, step.finds_order), row_of(to, True)

        def row(starts: list[str]) -> None:
            there, values = own or starts[0], own_source or starts[1]
            if not step.finds_order:
                self._moved(there, None, source, starts[1], count)
                status = fn.instr(f"call i32 {function}(ptr {there}, i64 {count}, ptr null)")
            else:
                if own_source:
                    self._moved(own_source, None, source, starts[1], count)

                def number(i: str) -> None:
                    fn.emit(f"store i64 {i}, ptr {fn.instr(f'getelementptr i64, ptr {there}, i64 {i}')}")

                self.writer.repeat(count, number)
                status = fn.instr(f"call i32 {function}(ptr {values}, ptr {there}, i64 {count}, ptr null)")
            self._note_trouble(fn.instr(f"icmp ne i32 {status}, 0"))
            if own:
                self._moved(starts[0], to.strides[-1], Lane(own, to.dtype, (), (Poly.constant(to.dtype.itemsize),)), own, count)

        self._each((to, source), len(to.extents) - 1, row)

    def _moved(self, to: str, stride: Poly | None, source: Lane, start: str, count: str) -> None:
        """The elements of a row, bit by bit; without a stride they come to lie beside one another."""
        fn, item = self.fn, Poly.constant(source.dtype.itemsize)
        size = min(source.dtype.itemsize, 8)

        def one(i: str) -> None:
            at, source_at = self._at(to, i, stride or item), self._at(start, i, source.strides[-1])
            for k in range(0, source.dtype.itemsize, size):
                value = fn.instr(
                    f"load i{8 * size}, ptr {fn.instr(f'getelementptr i8, ptr {source_at}, i64 {k}')}, align {size}"
                )
                fn.emit(f"store i{8 * size} {value}, ptr {fn.instr(f'getelementptr i8, ptr {at}, i64 {k}')}, align {size}")

        self.writer.repeat(count, one)

    # ---- loops of ufuncs
    def _loop(self, step: UfuncLoop) -> None:
        """The ufunc's loop over the last axis of the stack, and loops around it over the others."""
        fn = self.fn
        function, given = self._next_function()
        if step.odd_name:
            length = self._text(self._operand(step.operands[0], step).extents[-1])
            is_odd = fn.instr(f"icmp ne i64 {fn.instr(f'and i64 {length}, 1')}, 0")
            odd = self._next_function()
            function, given = (
                fn.instr(f"select i1 {is_odd}, ptr {a}, ptr {b}") for a, b in zip(odd, (function, given), strict=True)
            )
        names = _core_names(step.signature)
        lanes = [self._operand(place, step) for place in step.operands]
        stack, strides = _stack(lanes, [len(part) for part in names])
        sizes: dict[str, Poly] = {}
        for lane, part in zip(lanes, names, strict=True):
            for name, extent in zip(part, lane.extents[len(lane.extents) - len(part) :], strict=True):
                sizes.setdefault(name, extent)
        dims = self._words([stack[-1], *sizes.values()])
        inner = [s for lane, part in zip(lanes, names, strict=True) for s in lane.strides[len(lane.strides) - len(part) :]]
        steps = self._words([*(own[-1] for own in strides), *inner])
        args = fn.alloca(f"[{len(lanes)} x ptr]", 8)
        result, k = lanes[-1], len(lanes) - 1
        ends = zip(
            (stack[-1], *result.extents[len(result.extents) - len(names[-1]) :]),
            (strides[k][-1], *inner[len(inner) - len(names[-1]) :]),
            strict=True,
        )
        last = _total((n - ONE) * stride for n, stride in ends) + Poly.constant(result.dtype.itemsize - 4)

        def one(starts: list[str]) -> None:
            for number, start in enumerate(starts):
                fn.emit(f"store ptr {start}, ptr {fn.instr(f'getelementptr ptr, ptr {args}, i64 {number}')}")
            end = fn.instr(f"getelementptr i8, ptr {starts[-1]}, i64 {self._text(last)}")
            fn.emit(f"store i32 {UNTOUCHED}, ptr {end}, align 4")
            if step.says_invalid:
                fn.instr(f"call i32 {self.word(call_records.CLEAR_FLAGS, 'ptr')}(i32 {FE_INVALID})")
            fn.emit(f"call void {function}(ptr {args}, ptr {dims}, ptr {steps}, ptr {given})")
            if step.says_invalid:
                flag = fn.instr(f"call i32 {self.word(call_records.TEST_FLAGS, 'ptr')}(i32 {FE_INVALID})")
                self._note_trouble(fn.instr(f"icmp ne i32 {flag}, 0"))
            self._look_at_end(end, always=step.may_raise)

        self._each(
            [Lane(lane.start, lane.dtype, tuple(stack), tuple(own)) for lane, own in zip(lanes, strides, strict=True)],
            len(stack) - 1,
            one,
        )
        for memory in (dims, steps, args):
            fn.release(memory)

    def _operand(self, place: Place, step: UfuncLoop) -> Lane:
        if place[0] != "factor":
            lane = self.arrays[place]
            return lane if step.axis is None else lane.last(step.axis)
        return Lane(self._factor(step), np.dtype("f8"), (), ())

    def _factor(self, step: UfuncLoop) -> str:
        """What NumPy multiplies a transform by, in memory: 1, 1 / n, or 1 / sqrt(n)."""
        fn = self.fn
        spectrum, out = (self._operand(place, step) for place in (step.operands[0], step.operands[-1]))
        type = "float" if out.dtype.char in "fF" else "double"
        length = out.extents[-1] if out.dtype.kind == "f" else spectrum.extents[-1]
        value = "1.0"
        if step.norm != "backward":
            value = fn.instr(f"sitofp i64 {self._text(length)} to {type}")
            if step.norm == "ortho":
                bits = "f32" if type == "float" else "f64"
                fn.declare(f"declare {type} @llvm.sqrt.{bits}({type})")
                value = fn.instr(f"call {type} @llvm.sqrt.{bits}({type} {value})")
            value = fn.instr(f"fdiv {type} 1.0, {value}")
        place = fn.alloca("double", 8)
        fn.emit(f"store {type} {value}, ptr {place}")
        return place

    def _words(self, values: Sequence[Poly]) -> str:
        fn = self.fn
        table = fn.alloca(f"[{len(values)} x i64]", 8)
        for k, value in enumerate(values):
            fn.emit(f"store i64 {self._text(value)}, ptr {fn.instr(f'getelementptr i64, ptr {table}, i64 {k}')}")
        return table

    def _look_at_end(self, end: str, *, always: bool) -> None:
        """Where a loop has left its result as it was, or `always`, Python may have an error, which the call from Python finds
        again."""
        fn = self.fn
        left = fn.instr(f"icmp eq i32 {fn.instr(f'load i32, ptr {end}, align 4')}, {UNTOUCHED}")
        self._note_trouble(left)
        unusual, fine = fn.label("untouched"), fn.label("fine")
        if always:
            fn.branch(unusual)
        else:
            fn.branch_if(left, unusual, fine, likely=False)
        fn.block(unusual)
        state = fn.instr(f"call i32 {self.word(call_records.ENSURE, 'ptr')}()")
        raised = fn.instr(f"call ptr {self.word(call_records.RAISED, 'ptr')}()")
        self._note_trouble(fn.instr(f"icmp ne ptr {raised}, null"))
        fn.emit(f"call void {self.word(call_records.FORGET, 'ptr')}()")
        fn.emit(f"call void {self.word(call_records.RELEASE, 'ptr')}(i32 {state})")
        fn.branch(fine)
        fn.block(fine)


def _product(extents: Sequence[Poly]) -> Poly:
    total = ONE
    for n in extents:
        total = total * n
    return total


def _total(parts: Iterable[Poly]) -> Poly:
    return sum(parts, start=Poly.constant(0))


def _rows(extents: Sequence[Poly], itemsize: int) -> tuple[Poly, ...]:
    """The strides of an array that lies row after row."""
    return tuple(_product(extents[k + 1 :]).scale(itemsize) for k in range(len(extents)))


def _stack(lanes: Sequence[Lane], core: Sequence[int]) -> tuple[list[Poly], list[list[Poly]]]:
    """The extents of the stack, one at least, and the strides of each operand in it: axes that lie behind one another in all of
    them are one."""
    ndim = max(len(lane.extents) - n for lane, n in zip(lanes, core, strict=True))
    extents, strides = [], []
    for axis in range(-ndim, 0):
        found = [_of_stack(lane, n, axis) for lane, n in zip(lanes, core, strict=True)]
        extents.append(next((n for n, _ in found if n != ONE), ONE))
        strides.append([stride for _, stride in found])
    joined: list[tuple[Poly, list[Poly]]] = []
    for n, own in zip(extents, strides, strict=True):
        if n == ONE:
            continue
        if joined and all(outer == n * inner for outer, inner in zip(joined[-1][1], own, strict=True)):
            joined[-1] = joined[-1][0] * n, own
        else:
            joined.append((n, own))
    joined = joined or [(ONE, [Poly.constant(0) for _ in lanes])]
    return [n for n, _ in joined], [[own[k] for _, own in joined] for k in range(len(lanes))]


def _of_stack(lane: Lane, core: int, axis: int) -> tuple[Poly, Poly]:
    """The extent and the stride of an operand along an axis of the stack, counted from its end."""
    place = len(lane.extents) - core + axis
    if place < 0 or lane.extents[place] == ONE:
        return ONE, Poly.constant(0)
    return lane.extents[place], lane.strides[place]


def _core_names(signature: str) -> list[tuple[str, ...]]:
    """The names of each operand's own axes."""
    parts = signature.replace("->", ",")[1:-1].split("),(")
    return [tuple(filter(None, part.split(","))) for part in parts]

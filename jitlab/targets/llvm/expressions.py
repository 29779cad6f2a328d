"""Expressions of loops as LLVM text: integers of extents and symbols, loads and stores, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitlab.ir import Poly
from jitlab.ir.programs.program import (
    ONE,
    Apply,
    Buffer,
    CheckedIndex,
    Expr,
    Index,
    IndexValue,
    Load,
    Local,
    Read,
    Scalar,
    Store,
    Variable,
)
from jitlab.ops.base import Generated
from jitlab.support.lazy_dataclass import dataclass

from .features import Features
from .function_text import FunctionText
from .values import Val
from .vector_emitter import VectorEmitter

I64 = np.dtype("i8")


def poly_text(instr: Callable[[str], str], value_of: Callable[[str], str], p: Poly) -> str:
    """The value of a polynomial over symbols, computed by `instr`."""
    total = "0"
    for monomial, k in p.terms:
        product = str(k)
        for name in monomial:
            value = value_of(name)
            product = value if product == "1" else instr(f"mul i64 {product}, {value}")
        total = product if total == "0" else instr(f"add i64 {total}, {product}")
    return total


@dataclass
class InVector:
    """The vector loop we are in: its variable stands for `base + lane`."""

    var: str
    base: str
    mask: Val | None  # of the tail; None while all lanes count
    emitter: VectorEmitter


class ExpressionWriter:
    """The state of a function while it is written, and the scalars in it. Buffers are its parameters.

    What was computed is kept by scopes, one a block that may not run, and forgotten when a statement changes what it
    depends on: an expression means its value at the statement that evaluates it.
    """

    def __init__(self, fn: FunctionText, features: Features) -> None:
        self.fn, self.features = fn, features
        self.scalar = VectorEmitter(fn, 1, features)
        self.vector: InVector | None = None
        self.vars: dict[str, str] = {}  # of For loops
        self.symbols: dict[str, str] = {}  # bound in this phase: by Repeat and Define
        self.scopes: list[dict[Any, Any]] = [{}]
        self.volatile: list[dict[str, set[int]]] = [{}]  # of each scope, the expressions that a change of a name changes
        self.locals: dict[str, Val] = {}
        self.memory: dict[str, list[str]] = {}  # of variables, by part
        self.failures: dict[int, str] = {}
        self.fixed: dict[str, Poly] = {}  # sizes that the code is made for alone
        self.keep: list[Expr] = []  # ids are keys: the objects have to live

    @property
    def e(self) -> VectorEmitter:
        return self.vector.emitter if self.vector is not None else self.scalar

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Of a block that may not run, or runs again: what is computed in it is not known after it."""
        symbols = dict(self.symbols)
        self.scopes.append({})
        self.volatile.append({})
        yield
        self.scopes.pop()
        self.volatile.pop()
        self.symbols = symbols

    def _forget(self, names: frozenset[str]) -> None:
        """What depends on these names has to be computed anew."""
        for scope, volatile in zip(self.scopes, self.volatile, strict=True):
            for name in names & volatile.keys():
                for key in volatile.pop(name):
                    scope.pop(key, None)

    # -- blocks

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
        with self.scope():
            body(str(i))
        following = last if last is not None else fn.instr(f"add i64 {i}, 1")
        i.add_incoming(following, fn.current)
        fn.branch(head)
        fn.block(after)
        return str(i)

    def _if(self, condition: str, then: Callable[[], object]) -> None:
        inside, after = self.fn.label("then"), self.fn.label("endif")
        self.fn.branch_if(condition, inside, after)
        self.fn.block(inside)
        with self.scope():
            then()
        self.fn.branch(after)
        self.fn.block(after)

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
            stream = self._is_streamed(s)
            align = min(64, v.emitter.width * s.buffer.dtype.itemsize) if stream else self._alignment(s.buffer)
            v.emitter.store(address, value, align, v.mask, stream)
        else:
            stride = self._times(self._poly(k), s.buffer.dtype.itemsize)
            v.emitter.store_strided(address, stride, value, self._left(v))

    def _is_streamed(self, s: Store) -> bool:
        """Are whole vectors, which then start on a cache line, stored past the caches?"""
        return False

    def _alignment(self, buffer: Buffer) -> int | None:
        """Of whole vectors of neighbours, in bytes; None: that of an element."""
        return None

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
            return v.emitter.load(address, e.buffer.dtype, align=self._alignment(e.buffer), mask=v.mask)
        stride = self._times(self._poly(k), e.buffer.dtype.itemsize)
        return v.emitter.load_strided(address, stride, e.buffer.dtype, self._left(v))

    def _left(self, v: InVector) -> str | None:
        """How many lanes of the tail count, None in the main loop."""
        if v.mask is None:
            return None
        return self._memo(("left", v.mask.text), lambda: self._count_lanes(v))

    def _count_lanes(self, v: InVector) -> str:
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
        return f"%b.{buffer.name}"

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

    def _variable_memory(self, variable: Variable) -> list[str]:
        """Where a variable lives: a register in the end, or its slot between calls."""
        places = self.memory.get(variable.name)
        if places is None:
            zero = self.scalar.constant(0, variable.dtype)
            type = self.scalar.type(variable.dtype, 0)
            parts = self.scalar.parts(zero)
            places = self.memory[variable.name] = [self.fn.alloca(type, 8) for _ in parts]
        return places

    def _assign(self, variable: Variable, value: Val) -> None:
        assert value.dtype == variable.dtype, f"{variable.name} is {variable.dtype}, not {value.dtype}"
        assert value.lanes <= 1, f"{variable.name} differs from lane to lane"
        type = self.scalar.type(value.dtype, 0)
        for place, text in zip(self._variable_memory(variable), self.scalar.parts(value), strict=True):
            self.fn.emit(f"store {type} {text}, ptr {place}")

    def _read_variable(self, variable: Variable) -> Val:
        type = self.scalar.type(variable.dtype, 0)
        texts = [self.fn.instr(f"load {type}, ptr {place}") for place in self._variable_memory(variable)]
        return self.scalar.from_parts(variable.dtype, texts, 0)

    # -- integers

    def _passed(self, symbol: str) -> str:
        """The value of a symbol that the caller passes, read where the function starts."""
        raise NotImplementedError

    def _symbol(self, name: str) -> str:
        bound = self.symbols.get(name)
        if bound is not None:
            return bound
        key = ("symbol", name)
        if key not in self.scopes[0]:
            self.scopes[0][key] = self._passed(name)
        return self.scopes[0][key]  # type: ignore[no-any-return]

    def _poly(self, p: Poly) -> str:
        p = p.substitute(self.fixed) if self.fixed else p
        if p.value is not None:
            return str(p.value)
        if any(name in self.symbols for name in p.symbols):
            return self._memo(("poly", p), lambda: poly_text(self.fn.instr, self._symbol, p))
        if ("poly", p) not in self.scopes[0]:
            self.scopes[0]["poly", p] = poly_text(self.fn.ahead, self._symbol, p)
        return self.scopes[0]["poly", p]  # type: ignore[no-any-return]

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
        if isinstance(expr, (Local, Scalar)):
            return value
        self.keep.append(expr)
        self.scopes[-1][id(expr)] = value
        for name in expr.depends:
            self.volatile[-1].setdefault(name, set()).add(id(expr))
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
        if isinstance(expr, Read):
            return self._read_variable(expr.variable)
        assert isinstance(expr, Apply)
        e = self.e
        args = [self._eval(a) for a in expr.args]
        if isinstance(expr.op, Generated):
            return expr.op.body(e, [self._eval(i) for i in expr.indices], *args)  # type: ignore[no-any-return]
        return expr.op.body(e, *args)  # type: ignore[no-any-return]

    def _wrapped(self, expr: CheckedIndex) -> tuple[Val, Val]:
        """An index as a position, and whether it is out of range."""
        e = self.e
        n = e.value(self._poly(expr.extent), I64)
        value = self._eval(expr.value)
        index = e.cast(value, I64)
        wrapped = e.select(e.lt(index, e.constant(0, I64)), e.add(index, n), index)
        bad = e.or_(e.lt(wrapped, e.constant(0, I64)), e.ge(wrapped, n))
        if value.dtype == np.dtype("u8"):
            bad = e.or_(bad, e.lt(index, e.constant(0, I64)))
        return wrapped, bad

    def _checked(self, expr: CheckedIndex) -> Val:
        """The wrapped index; leaves the function with the check's code when a lane is out of range."""
        e = self.e
        wrapped, bad = self._wrapped(expr)
        v = self.vector
        if v is not None and v.mask is not None:
            bad = e.and_(bad, v.mask)
        fine = self.fn.label("in.range")
        if expr.code not in self.failures:
            self.failures[expr.code] = self.fn.label("out.of.range")
        self.fn.branch_if(e.any(bad), self.failures[expr.code], fine, likely=False)
        self.fn.block(fine)
        return wrapped

    def _memo(self, key: Any, make: Callable[[], str]) -> str:
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]  # type: ignore[no-any-return]
        value = make()
        self.scopes[-1][key] = value
        return value

"""Program: loops over scalars, what the kernels of one cluster do. Its text is the key under which machine code is kept.

Extents and strides are polynomials over run-time symbols, so one Program serves every size. Names are canonical (inputs x0,
outputs y0, temporaries t0, symbols n0, scalars c0, loop variables i0): two traces that need the same code give the same text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from typing import Any, Literal

import numpy as np

from jitlab.ir.extents import Poly
from jitlab.ir.types import UNKNOWN, Origins, Sources, short_dtype
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

ZERO, ONE = Poly(), Poly.constant(1)

#: Iterations of a loop: one after the other; in any order, or at once; upwards, or several at once where each statement is done
#: for all of them before the next one, as one may read what a later one overwrites; over the lanes of a vector, each with
#: running values of its own, which are joined by a tree.
LoopKind = Literal["serial", "parallel", "ascending", "vector"]
SERIAL: LoopKind = "serial"
PARALLEL: LoopKind = "parallel"
ASCENDING: LoopKind = "ascending"
LANES: LoopKind = "vector"


@dataclass(frozen=True, slots=True)
class Index:
    """An integer that is affine in loop variables: `const + Σ coefficient * variable`."""

    const: Poly = ZERO
    terms: tuple[tuple[str, Poly], ...] = ()

    @classmethod
    def var(cls, name: str) -> Index:
        return cls(ZERO, ((name, ONE),))

    @classmethod
    def of(cls, const: Poly, terms: Mapping[str, Poly]) -> Index:
        return cls(const, tuple(sorted((v, c) for v, c in terms.items() if c.terms)))

    def __add__(self, other: Index) -> Index:
        terms = dict(self.terms)
        for v, c in other.terms:
            terms[v] = terms.get(v, ZERO) + c
        return Index.of(self.const + other.const, terms)

    def scale(self, k: Poly) -> Index:
        if k == ONE:
            return self
        return Index.of(self.const * k, {v: c * k for v, c in self.terms})

    def coefficient(self, var: str) -> Poly:
        return dict(self.terms).get(var, ZERO)

    @property
    def vars(self) -> tuple[str, ...]:
        return tuple(v for v, _ in self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """Its loop variables, and the symbols of its polynomials."""
        return (*self.vars, *self.const.symbols, *(name for _, c in self.terms for name in c.symbols))

    def substitute(self, values: Mapping[str, Index]) -> Index:
        total = Index(self.const)
        for v, c in self.terms:
            total = total + values.get(v, Index.var(v)).scale(c)
        return total

    def __str__(self) -> str:
        text = ""
        for v, c in self.terms:
            factor = "" if c == ONE else f"({c})*" if len(c.terms) > 1 else f"{c}*"
            text += ("+" if text else "") + factor + v
        if self.const.terms or not text:
            rest = str(self.const)
            text += ("" if rest.startswith("-") or not text else "+") + rest
        return text.replace("+-", "-")


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that a Program reads or writes. Strides are in elements. `row`: scratch for one iteration of the outer loops."""

    name: str
    kind: str  # "input", "output", "temp" or "row"
    dtype: np.dtype
    shape: tuple[Poly, ...]
    strides: tuple[Poly, ...]

    def offset(self, position: Sequence[Index]) -> Index:
        """How many elements from the start the element at a position lies."""
        total = Index()
        for index, stride in zip(position, self.strides, strict=True):
            total = total + index.scale(stride)
        return total

    @property
    def contiguous(self) -> bool:
        return self.strides == contiguous_strides(self.shape)

    def __str__(self) -> str:
        text = f"{self.name}: {short_dtype(self.dtype)}[{', '.join(map(str, self.shape))}]"
        if not self.contiguous:
            text += f" strides ({', '.join(map(str, self.strides))})"
        return text


class Expr:
    """A scalar of the loop body: its value at the statement that evaluates it. Shared sub-expressions are shared objects.

    `depends` names loop variables, symbols and Locals, and as "=name" the buffers and Variables whose contents matter.
    `origins`: the operations it stands for; they are no part of its meaning, nor of the Program's text.
    """

    dtype: np.dtype
    origins: Origins = UNKNOWN

    @lazy
    def depends(self) -> frozenset[str]:
        return frozenset(name for part in self.parts for name in part.depends)

    @lazy
    def is_checked(self) -> bool:
        """May evaluating it end the run, because an index is out of range?"""
        return any(part.is_checked for part in self.parts)

    @property
    def parts(self) -> tuple[Expr, ...]:
        return ()


@dataclass(eq=False)
class Load(Expr):
    """One element of a buffer, `offset` elements from its start; `gathered` adds integer scalars times strides to that.

    `position`: the same place, axis by axis, where it is known: what dependence tests ask.
    """

    buffer: Buffer
    offset: Index
    gathered: tuple[tuple[Expr, Poly], ...] = ()
    position: tuple[Index, ...] | None = None
    origins: Origins = UNKNOWN  # the views that say which element this is; who wants it is told by what reads it

    @lazy
    def dtype(self) -> np.dtype:
        return self.buffer.dtype

    @property
    def parts(self) -> tuple[Expr, ...]:
        return tuple(e for e, _ in self.gathered)

    @lazy
    def depends(self) -> frozenset[str]:
        own = {*self.offset.names, f"={self.buffer.name}"}  # its contents too: no load is moved out of a loop that writes them
        own.update(name for _, stride in self.gathered for name in stride.symbols)
        return frozenset(own).union(*(e.depends for e, _ in self.gathered))


@dataclass(eq=False)
class Scalar(Expr):
    """A number the caller passes (a constant of the program)."""

    name: str
    dtype: np.dtype
    origins: Origins = UNKNOWN


@dataclass(eq=False)
class Local(Expr):
    """A value bound before: a finished accumulator."""

    name: str
    dtype: np.dtype
    origins: Origins = UNKNOWN

    @lazy
    def depends(self) -> frozenset[str]:
        return frozenset((self.name,))


@dataclass(eq=False)
class IndexValue(Expr):
    """An index as an int64 scalar."""

    index: Index
    dtype: np.dtype = field(default_factory=lambda: np.dtype("i8"))
    origins: Origins = UNKNOWN

    @lazy
    def depends(self) -> frozenset[str]:
        return frozenset(self.index.names)


@dataclass(eq=False)
class Apply(Expr):
    """An operation's body on scalars; `generated` bodies take their indices first."""

    op: Any
    args: tuple[Expr, ...]
    dtype: np.dtype
    indices: tuple[Expr, ...] = ()
    origins: Origins = UNKNOWN

    @lazy
    def parts(self) -> tuple[Expr, ...]:
        return (*self.indices, *self.args)


@dataclass(eq=False)
class CheckedIndex(Expr):
    """An index read from an array: negative wraps, out of 0..extent-1 ends the run with IndexError code `code`."""

    value: Expr
    extent: Poly
    code: int
    dtype: np.dtype = field(default_factory=lambda: np.dtype("i8"))
    origins: Origins = UNKNOWN

    @lazy
    def depends(self) -> frozenset[str]:
        return self.value.depends.union(self.extent.symbols)

    @lazy
    def is_checked(self) -> bool:
        return True

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass
class Store:
    """buffer[offset] = value. `gathered` and `position` as in Load."""

    buffer: Buffer
    offset: Index
    value: Expr
    origins: Origins = UNKNOWN
    gathered: tuple[tuple[Expr, Poly], ...] = ()
    position: tuple[Index, ...] | None = None


@dataclass
class Accumulator:
    """A reduction's running value, started before the loop that lists it and bound as a Local after it."""

    name: str
    op: Any  # a Reduction
    dtype: np.dtype  # of the elements
    result: np.dtype
    count: Index | None = None  # how many elements are reduced


@dataclass
class Step:
    """One element into an accumulator; `index` is its position along the reduced axes. `bound` names the running value after
    it, a Local for the rest of the iteration: a scan's."""

    accumulator: Accumulator
    value: Expr
    index: Index
    origins: Origins = UNKNOWN
    bound: str = ""


@dataclass
class Finish:
    """Bind the accumulator's finished value to a Local from its partial results stored in `partials`."""

    accumulator: Accumulator
    partials: tuple[Buffer, ...]
    count: Poly  # number of partial results
    total: Poly  # number of elements they stand for
    base: Index = field(default_factory=Index)  # where the first one lies in each buffer,
    stride: Poly = ONE  # and how far apart they are


@dataclass
class Partial:
    """Store an accumulator as it stands (before finish) as partial result number `index`."""

    accumulator: Accumulator
    partials: tuple[Buffer, ...]
    index: Index


@dataclass
class For:
    """`for var in 0..min(extent)`. Its accumulators start before and finish after it. What its `kind` says is true of its
    iterations on any machine; a row of scratch that a parallel one writes is its own."""

    var: str
    extent: tuple[Index, ...]  # the least of these
    body: list[Statement]
    kind: LoopKind = SERIAL
    accumulators: list[Accumulator] = field(default_factory=list)
    finish: bool = True  # False: the accumulators are left as partial results


@dataclass
class Gemm:
    """out = a @ b by a library call, for each index of the batch loops around it. Offsets are in elements.

    `lda`, `ldb`: distance of rows; `transpose_a`: a is stored [k, m]. Row-major throughout.
    """

    out: Buffer
    out_offset: Index
    a: Buffer
    a_offset: Index
    lda: Poly
    transpose_a: bool
    b: Buffer
    b_offset: Index
    ldb: Poly
    transpose_b: bool
    m: Poly
    n: Poly
    k: Poly
    origins: Origins = UNKNOWN

    @property
    def is_square(self) -> bool:
        """Is it a matrix by its own transpose? Half of the result says all of it."""
        is_same = (self.a, self.a_offset, self.lda) == (self.b, self.b_offset, self.ldb)
        return is_same and self.transpose_a != self.transpose_b and self.m == self.n


@dataclass
class Call:
    """outs = op(*ins) by a library that knows arrays: whole buffers, with the extents that they have now. `number` is the
    operation's place in `Program.calls`, `code` that of the check that it did not raise; -1: it does not."""

    number: int
    op: str
    outs: tuple[Buffer, ...]
    ins: tuple[Buffer, ...]
    extents: tuple[tuple[Poly, ...], ...]  # of the outs, then of the ins
    code: int
    origins: Origins = UNKNOWN


@dataclass(eq=False)
class Variable:
    """A scalar that changes: what a loop carries, what a branch decides. It lives in a register where the loops allow it."""

    name: str
    dtype: np.dtype


@dataclass(eq=False)
class Read(Expr):
    """A variable's value at the statement that evaluates this; only a `Let` reads, so that its time is plain."""

    variable: Variable

    @lazy
    def dtype(self) -> np.dtype:
        return self.variable.dtype

    @lazy
    def depends(self) -> frozenset[str]:
        return frozenset((f"={self.variable.name}",))


@dataclass
class Let:
    """Evaluate now and bind a Local: `name` is read by `Local(name, dtype)` in what follows, loops and branches included."""

    name: str
    value: Expr
    origins: Origins = UNKNOWN


@dataclass
class Assign:
    """variable = value"""

    variable: Variable
    value: Expr
    origins: Origins = UNKNOWN


@dataclass
class Define:
    """Bind a run-time symbol of extents to an int64 scalar, for what follows in this block."""

    symbol: str
    value: Expr
    origins: Origins = UNKNOWN


@dataclass
class If:
    """One of two blocks; `condition` is a bool scalar, the same for all lanes."""

    condition: Expr
    then: list[Statement]
    orelse: list[Statement]
    origins: Origins = UNKNOWN


@dataclass
class Repeat:
    """A loop of the user's: `body` runs with `symbol` = 0, 1, ... (a symbol of extents, offsets and strides) below `count`,
    None: without end, while `test`, evaluated after the statements of `before` at the start of each turn, is true."""

    symbol: str
    count: Poly | None
    body: list[Statement]
    before: list[Statement] = field(default_factory=list)
    test: Expr | None = None
    origins: Origins = UNKNOWN


Statement = Store | Step | For | Gemm | Call | Finish | Partial | Let | Assign | Define | If | Repeat


@dataclass
class Kernel:
    """One fused nest or one library call; its phases (top-level statements) run one after the other."""

    name: str
    kind: str  # "nest" or "library"
    body: list[Statement]


@dataclass
class Program:
    """All kernels of one cluster. `symbols` and `scalars` are passed at run time, in this order."""

    inputs: list[Buffer]
    outputs: list[Buffer]
    temps: list[Buffer]
    rows: list[Buffer]
    scalars: list[tuple[str, np.dtype]]
    symbols: list[str]
    kernels: list[Kernel]
    variables: list[Variable] = field(default_factory=list)
    errors: list[Sources] = field(default_factory=list)  # where the check with code i stands
    calls: list[Any] = field(default_factory=list)  # the operations that a library computes
    sizes: dict[str, int] = field(default_factory=dict)  # what symbols were, or may be, when it was made: not in its text

    @lazy
    def text(self) -> str:
        """The Program as people read it, and as the cache knows it."""
        lines = [
            f"program({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))}):",
        ]
        if self.symbols:
            lines.append(f"  sizes {', '.join(self.symbols)}")
        if self.scalars:
            lines.append("  scalars " + ", ".join(f"{name}: {short_dtype(dtype)}" for name, dtype in self.scalars))
        if self.variables:
            lines.append("  variables " + ", ".join(f"{v.name}: {short_dtype(v.dtype)}" for v in self.variables))
        for buffer in (*self.temps, *self.rows):
            lines.append(f"  {buffer.kind} {buffer}")
        for kernel in self.kernels:
            lines.append(f"  kernel {kernel.name}:")
            printer = Printer()
            for statement in kernel.body:
                lines.extend("    " + line for line in printer.statement(statement))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text


def walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, outer before inner."""
    for statement in statements:
        yield statement
        for block in blocks(statement):
            yield from walk(block)


def blocks(statement: Statement) -> tuple[list[Statement], ...]:
    """The statements inside a statement."""
    if isinstance(statement, For):
        return (statement.body,)
    if isinstance(statement, Repeat):
        return statement.before, statement.body
    if isinstance(statement, If):
        return statement.then, statement.orelse
    return ()


def written(s: Statement) -> tuple[Buffer, ...]:
    """The buffers that a statement stores into, those inside its blocks left out."""
    if isinstance(s, Store):
        return (s.buffer,)
    if isinstance(s, Gemm):
        return (s.out,)
    if isinstance(s, Call):
        return s.outs
    return s.partials if isinstance(s, Partial) else ()


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions a statement evaluates itself (a loop's body not among them)."""
    if isinstance(statement, Store):
        return (*(e for e, _ in statement.gathered), statement.value)
    if isinstance(statement, (Step, Let, Assign, Define)):
        return (statement.value,)
    if isinstance(statement, If):
        return (statement.condition,)
    if isinstance(statement, Repeat) and statement.test is not None:
        return (statement.test,)
    return ()


def all_expressions(statements: Sequence[Statement]) -> Iterator[Expr]:
    """What the statements and those inside evaluate, each expression once."""
    seen: set[int] = set()
    todo = [e for s in walk(statements) for e in expressions(s)]
    while todo:
        e = todo.pop()
        if id(e) not in seen:
            seen.add(id(e))
            yield e
            todo.extend(e.parts)


def work(expr: Expr, enough: float = math.inf) -> float:
    """Operations to compute an expression once, shared parts counted once; `enough` or more where there are that many."""
    total, seen, todo = 0.0, {id(expr)}, [expr]
    while todo and total < enough:
        e = todo.pop()
        if isinstance(e, Apply) and e.op is not None:
            total += e.op.flops_per_element
        for part in e.parts:
            if id(part) not in seen:
                seen.add(id(part))
                todo.append(part)
    return total


def contiguous_strides(shape: Sequence[Poly]) -> tuple[Poly, ...]:
    """Strides, in elements, of a C-contiguous array."""
    strides: list[Poly] = []
    stride = ONE
    for n in reversed(shape):
        strides.append(stride)
        stride = stride * n
    return tuple(reversed(strides))


def _op_text(e: Apply) -> str:
    """The operation and its attributes; the shape of one that is made from its indices is what the loops around it say."""
    text = str(e.op)
    if not e.indices:
        return text
    rest = [f"{f.name}={getattr(e.op, f.name)}" for f in fields(e.op) if f.name != "shape"]
    return f"{e.op.name}({', '.join(rest)})" if rest else str(e.op.name)


class Printer:
    """Prints expressions once each: what is used twice is named."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.count = 0
        self.keep: list[Expr] = []

    def statement(self, s: Statement) -> list[str]:
        if isinstance(s, For):
            kind = "" if s.kind == SERIAL else f"{s.kind} "
            extent = str(s.extent[0]) if len(s.extent) == 1 else f"min({', '.join(map(str, s.extent))})"
            start = [f"{a.name} = {self.kind(a.op)} of {short_dtype(a.dtype)}" for a in s.accumulators]
            with_ = f" with {', '.join(start)}" if start else ""
            left = "" if s.finish else " left partial"
            lines = [f"{kind}for {s.var} in 0..{extent}{with_}{left}:"]
            outside = dict(self.names)  # what is computed in a loop has no name after it
            for inner in s.body:
                lines.extend("  " + line for line in self.statement(inner))
            self.names = outside
            return lines
        lines = []
        if isinstance(s, (If, Repeat)):
            return self.structured(s)
        if isinstance(s, Let):
            lines.append(f"let {s.name} = {self.expr(s.value, lines)}")
        elif isinstance(s, Assign):
            lines.append(f"{s.variable.name} := {self.expr(s.value, lines)}")
        elif isinstance(s, Define):
            lines.append(f"size {s.symbol} = {self.expr(s.value, lines)}")
        elif isinstance(s, Store):
            value = self.expr(s.value, lines)
            lines.append(f"{s.buffer.name}[{self.position(s, lines)}] = {value}")
        elif isinstance(s, Step):
            before = f"{s.bound} = " if s.bound else ""
            lines.append(f"{before}{s.accumulator.name} <- {self.expr(s.value, lines)} at {s.index}")
        elif isinstance(s, Partial):
            lines.append(f"{', '.join(p.name for p in s.partials)}[{s.index}] = {s.accumulator.name} as it stands")
        elif isinstance(s, Finish):
            names = ", ".join(p.name for p in s.partials)
            at = "" if s.stride == ONE else f"[{s.base}.. by {s.stride}]"
            kind = self.kind(s.accumulator.op)
            lines.append(f"{s.accumulator.name} = {kind} of {s.count} partial results {names}{at} of {s.total}")
        elif isinstance(s, Call):
            whole = [f"{b.name}[{', '.join(map(str, n))}]" for b, n in zip((*s.outs, *s.ins), s.extents, strict=True)]
            outs, ins = ", ".join(whole[: len(s.outs)]), ", ".join(whole[len(s.outs) :])
            lines.append(f"{outs} = call {self.library(s)} of {ins}{f' (or fail {s.code})' if s.code >= 0 else ''}")
        else:
            ta, tb = ".T" if s.transpose_a else "", ".T" if s.transpose_b else ""
            lines.append(
                f"{s.out.name}[{s.out_offset}..] = gemm {s.a.name}[{s.a_offset}.. by {s.lda}]{ta}"
                f" @ {s.b.name}[{s.b_offset}.. by {s.ldb}]{tb} ({s.m} x {s.k} x {s.n})"
            )
        return lines

    def structured(self, s: If | Repeat) -> list[str]:
        lines: list[str] = []
        if isinstance(s, If):
            lines.append(f"if {self.expr(s.condition, lines)}:")
            lines += self.block(s.then)
            return [*lines, "else:", *self.block(s.orelse)] if s.orelse else lines
        lines.append(f"repeat {s.symbol} in 0..{'?' if s.count is None else s.count}:")
        outside = dict(self.names)
        if s.test is not None:
            for inner in s.before:
                lines += ["  " + line for line in self.statement(inner)]
            made: list[str] = []
            test = self.expr(s.test, made)
            lines += ["  " + line for line in (*made, f"while {test}")]
        lines += self.block(s.body)
        self.names = outside
        return lines

    def block(self, statements: Sequence[Statement]) -> list[str]:
        outside = dict(self.names)  # what is computed in a block has no name after it
        lines = ["  " + line for inner in statements for line in self.statement(inner)]
        self.names = outside
        return lines

    def position(self, access: Load | Store, lines: list[str]) -> str:
        parts = [self.expr(e, lines) if k == ONE else f"({k})*{self.expr(e, lines)}" for e, k in access.gathered]
        if str(access.offset) != "0" or not parts:
            parts.insert(0, str(access.offset))
        return " + ".join(parts)

    def expr(self, e: Expr, lines: list[str]) -> str:
        if id(e) in self.names:
            return self.names[id(e)]
        self.keep.append(e)
        if isinstance(e, Load):
            text = f"{e.buffer.name}[{self.position(e, lines)}]"
        elif isinstance(e, (Scalar, Local)):
            text = e.name
        elif isinstance(e, Read):
            text = e.variable.name
        elif isinstance(e, IndexValue):
            text = f"({e.index})"
        elif isinstance(e, CheckedIndex):
            text = f"index({self.expr(e.value, lines)} of {e.extent}, {e.code})"
        else:
            assert isinstance(e, Apply)
            arguments = [self.expr(part, lines) for part in e.parts]
            name = f"v{self.count}"
            self.count += 1
            lines.append(f"{name} = {self.applied(e, arguments)}")
            self.names[id(e)] = name
            return name
        self.names[id(e)] = text
        return text

    def kind(self, op: Any) -> str:
        """What a reduction is called."""
        return str(op)

    def library(self, call: Call) -> str:
        return call.op

    def applied(self, e: Apply, arguments: Sequence[str]) -> str:
        return f"{_op_text(e)} {', '.join(arguments)}".rstrip()

"""Runs a Program on NumPy scalars, statement by statement: what the loops mean, without a target.

Vector loops whose body is stores do LANES iterations of a statement before the next statement, loads before stores, as
machine code does.
"""

from __future__ import annotations

import numpy as np

from jitlab.ir.program import (
    Apply,
    Assign,
    CheckedIndex,
    Define,
    Finish,
    For,
    Gemm,
    If,
    Index,
    IndexValue,
    Let,
    Load,
    Local,
    Partial,
    Read,
    Repeat,
    Scalar,
    Step,
    Store,
)
from jitlab.ops.base import Generated
from tests.ops.numpy_emitter import NumpyEmitter

LANES = 4


class OutOfRange(Exception):
    """A check failed; `code` says which."""

    def __init__(self, code: int) -> None:
        super().__init__(f"check {code}")
        self.code = code


def run_lowered(lowered, arrays):
    """The outputs of a lowered cluster for contiguous inputs (in the order of the cluster's inputs)."""
    program = lowered.program
    values = dict(zip(lowered.cluster.inputs, arrays, strict=True))
    machine = Machine(program, {s: lowered.symbol_values[s] for s in program.symbols})
    for buffer, node in zip(program.inputs, lowered.inputs, strict=True):
        value = values[node] if node in values else node.op.value
        machine.memory[buffer.name] = np.array(value, buffer.dtype).reshape(-1)
    for (name, _), op in zip(program.scalars, lowered.constants, strict=True):
        machine.scalars[name] = op.numpy()
    with np.errstate(all="ignore"):
        machine.run()
    places = [(machine.memory[b.name], node) for b, node in zip(program.outputs, lowered.outputs, strict=True)]
    names = {node: b.name for b, node in zip(program.inputs, lowered.inputs, strict=True)}
    places += [(machine.memory[names[base]], node) for node, base in lowered.in_place.items()]
    results = {node: flat.reshape([int(n) for n in node.shape])[()] for flat, node in places}
    return [results[node] for node in lowered.cluster.outputs]


class Machine:
    def __init__(self, program, symbols):
        self.program = program
        self.symbols = dict(symbols)
        self.vars = {}
        self.scalars = {}
        self.locals = {}
        self.variables = {}
        self.running = {}
        self.memory = {}
        self.e = NumpyEmitter()
        for buffer in (*program.outputs, *program.temps, *program.rows):
            if buffer.name not in self.memory:
                size = int(np.prod([n.evaluate(self.symbols) for n in buffer.shape], initial=1))
                fill = np.nan if buffer.dtype.kind in "fc" else 77
                self.memory[buffer.name] = np.full(max(size, 0), fill).astype(buffer.dtype)

    def run(self):
        for kernel in self.program.kernels:
            self.block(kernel.body)

    def block(self, statements):
        for s in statements:
            getattr(self, type(s).__name__.lower())(s)

    # -- statements

    def store(self, s):
        self.memory[s.buffer.name][self.place(s)] = self.eval(s.value)

    def step(self, s):
        r = s.accumulator
        value = r.op.prepare(self.e, self.eval(s.value))
        self.running[r.name] = r.op.step(self.e, self.running[r.name], value, np.int64(self.index(s.index)))

    def partial(self, s):
        total = self.running[s.accumulator.name]
        for buffer, part in zip(s.partials, total if isinstance(total, tuple) else (total,), strict=True):
            self.memory[buffer.name][self.index(s.index)] = part

    def finish(self, s):
        op = s.accumulator.op
        total = op.start(self.e, s.accumulator.dtype)
        for k in range(self.poly(s.count)):
            at = self.index(s.base) + k * self.poly(s.stride)
            parts = tuple(self.memory[b.name][at] for b in s.partials)
            total = op.combine(self.e, total, parts if len(parts) > 1 else parts[0])
        self.finished(s.accumulator, total, self.poly(s.total))

    def finished(self, r, total, count):
        self.locals[r.name] = self.e.cast(r.op.finish(self.e, total, np.int64(count)), r.result)

    def gemm(self, s):
        m, n, k = (self.poly(p) for p in (s.m, s.n, s.k))

        def matrix(buffer, offset, leading, transposed, rows, columns):
            if transposed:
                rows, columns = columns, rows
            start, leading = self.index(offset), self.poly(leading)
            flat = self.memory[buffer.name]
            found = np.array([[flat[start + i * leading + j] for j in range(columns)] for i in range(rows)], buffer.dtype)
            found = found.reshape(rows, columns)
            return found.T if transposed else found

        product = matrix(s.a, s.a_offset, s.lda, s.transpose_a, m, k) @ matrix(s.b, s.b_offset, s.ldb, s.transpose_b, k, n)
        start = self.index(s.out_offset)
        self.memory[s.out.name][start : start + m * n] = product.reshape(-1)

    def let(self, s):
        self.locals[s.name] = self.eval(s.value)

    def assign(self, s):
        value = self.eval(s.value)
        assert value.dtype == s.variable.dtype
        self.variables[s.variable.name] = value

    def define(self, s):
        self.symbols[s.symbol] = int(self.eval(s.value))

    def if_(self, s):
        self.block(s.then if self.eval(s.condition) else s.orelse)

    def repeat(self, s):
        number = 0
        count = None if s.count is None else self.poly(s.count)
        while count is None or number < count:
            self.symbols[s.symbol] = number
            self.block(s.before)
            if s.test is not None and not self.eval(s.test):
                break
            self.block(s.body)
            number += 1
        self.symbols.pop(s.symbol, None)

    def for_(self, s):
        for r in s.accumulators:
            self.running[r.name] = r.op.start(self.e, r.dtype)
        extent = min(self.index(i) for i in s.extent)
        if s.vector and all(isinstance(inner, (Store, Let)) for inner in s.body):
            outside = self.locals
            for first in range(0, extent, LANES):
                numbers = range(first, min(first + LANES, extent))
                own = {number: dict(outside) for number in numbers}
                for inner in s.body:
                    lanes = []
                    for number in numbers:
                        self.vars[s.var], self.locals = number, own[number]
                        if isinstance(inner, Let):
                            self.let(inner)
                        else:
                            lanes.append((self.place(inner), self.eval(inner.value)))
                    for place, value in lanes:
                        self.memory[inner.buffer.name][place] = value
            self.locals = outside
        else:
            for number in range(extent):
                self.vars[s.var] = number
                self.block(s.body)
        if s.finish:
            for r in s.accumulators:
                self.finished(r, self.running[r.name], self.index(r.count) if r.count is not None else 0)

    # -- values

    def poly(self, p):
        return p.evaluate(self.symbols)

    def index(self, i: Index) -> int:
        return self.poly(i.const) + sum(self.vars[v] * self.poly(k) for v, k in i.terms)

    def place(self, access):
        at = self.index(access.offset) + sum(int(self.eval(e)) * self.poly(k) for e, k in access.gathered)
        assert 0 <= at < len(self.memory[access.buffer.name]), f"{access.buffer.name}[{at}]"
        return at

    def eval(self, e):
        if isinstance(e, Load):
            return self.memory[e.buffer.name][self.place(e)]
        if isinstance(e, Scalar):
            return self.scalars[e.name]
        if isinstance(e, Local):
            return self.locals[e.name]
        if isinstance(e, Read):
            return self.variables[e.variable.name]
        if isinstance(e, IndexValue):
            return np.int64(self.index(e.index))
        if isinstance(e, CheckedIndex):
            index, n = int(self.eval(e.value)), self.poly(e.extent)
            index += n if index < 0 else 0
            if not 0 <= index < n:
                raise OutOfRange(e.code)
            return np.int64(index)
        assert isinstance(e, Apply)
        args = [self.eval(a) for a in e.args]
        if isinstance(e.op, Generated):
            return e.op.body(self.e, [self.eval(i) for i in e.indices], *args)
        return e.op.body(self.e, *args)


for statement in (Store, Step, For, Gemm, Finish, Partial, Let, Assign, Define, If, Repeat):
    name = statement.__name__.lower()
    if not hasattr(Machine, name):
        setattr(Machine, name, getattr(Machine, name + "_"))

"""Runs a Program on NumPy, statement by statement: what the loops mean, without a compiler.

A loop whose kind allows it does `lanes` iterations of a statement before the next statement, loads before stores, as machine
code does: its variable is an array of numbers then, and so is what depends on it.
"""

from __future__ import annotations

import numpy as np

from jitlab.ir.programs.program import (
    PARALLEL,
    SERIAL,
    CheckedIndex,
    Finish,
    For,
    Index,
    IndexValue,
    Let,
    Load,
    Local,
    Partial,
    Read,
    Scalar,
    Step,
    Store,
    walk,
)
from jitlab.ops.base import Generated

from .emitter import NumpyEmitter


class Failed(Exception):
    """A check failed; `code` says which."""

    def __init__(self, code):
        super().__init__(f"check {code}")
        self.code = code


def run_lowered(lowered, arrays):
    """The outputs of a lowered cluster for contiguous inputs (in the order of the cluster's inputs), which stay as they are."""
    program = lowered.program
    values = dict(zip(lowered.cluster.inputs, arrays, strict=True))
    machine = Machine(program, lowered.symbol_values, lanes=4)
    for buffer, node in zip(program.inputs, lowered.inputs, strict=True):
        value = values[node] if node in values else node.op.value
        machine.memory[buffer.name] = np.array(value, buffer.dtype).reshape(-1)
    machine.take_scalars(lowered)
    with np.errstate(all="ignore"):
        machine.run()
    places = [(machine.memory[b.name], node) for b, node in zip(program.outputs, lowered.outputs, strict=True)]
    names = {node: b.name for b, node in zip(program.inputs, lowered.inputs, strict=True)}
    places += [(machine.memory[names[base]], node) for node, base in lowered.in_place.items()]
    results = {node: flat.reshape([int(n) for n in node.shape])[()] for flat, node in places}
    return [results[node] for node in lowered.cluster.outputs]


class Running:
    """An accumulator's value on its way. `lanes`: where a vector loop runs along the reduced axis, one value each."""

    def __init__(self, accumulator, total, is_one_a_lane):
        self.accumulator, self.total = accumulator, total
        self.is_one_a_lane = is_one_a_lane  # each lane reduces for itself
        self.lanes, self.used = None, 0


class Machine:
    """The state of one run. `memory`: a flat array for each buffer; those that are not given are made here, without meaning.

    `order` gives the numbers of the iterations of a parallel loop in the order in which they run; each of them then finds rows
    of scratch without meaning. None: upwards, as serial loops always.
    """

    def __init__(self, program, symbols, lanes, order=None):
        self.program, self.lanes, self.order = program, lanes, order
        self.symbols = {name: symbols[name] for name in program.symbols}
        self.vars, self.scalars, self.locals, self.variables, self.running = {}, {}, {}, {}, {}
        self.memory = {}
        self.width = None  # how many lanes run now
        self.e = NumpyEmitter()

    def take_scalars(self, lowered):
        for (name, _), op in zip(self.program.scalars, lowered.constants, strict=True):
            self.scalars[name] = op.numpy()

    def run(self, after=lambda: None):
        """Every kernel; `after` is called when one is done."""
        for buffer in (*self.program.outputs, *self.program.temps, *self.program.rows):
            if buffer.name not in self.memory:
                size = int(np.prod([n.evaluate(self.symbols) for n in buffer.shape], initial=1))
                self.memory[buffer.name] = without_meaning(size, buffer.dtype)
        for kernel in self.program.kernels:
            self.block(kernel.body)
            after()

    def block(self, statements):
        for s in statements:
            getattr(self, f"run_{type(s).__name__.lower()}")(s)

    # -- statements

    def run_store(self, s):
        memo = {}
        value, place = self.eval(s.value, memo), self.place(s, memo)
        self.memory[s.buffer.name][place] = value

    def run_step(self, s):
        r, op = self.running[s.accumulator.name], s.accumulator.op
        value = op.prepare(self.e, self.eval(s.value))
        index = np.int64(self.index(s.index))
        if self.width is None or r.is_one_a_lane:
            r.total = op.step(self.e, r.total, value, index)
            if s.bound:
                self.locals[s.bound] = r.total
            return
        if r.lanes is None:
            parts = several(op.start(self.e, s.accumulator.dtype))
            r.lanes = tuple(np.full(self.lanes, part) for part in parts)
        now = tuple(lanes[: self.width] for lanes in r.lanes)
        for lanes, part in zip(r.lanes, several(op.step(self.e, single(now), value, index)), strict=True):
            lanes[: self.width] = part
        r.used = max(r.used, self.width)

    def run_partial(self, s):
        total = several(self.joined(self.running[s.accumulator.name]))
        for buffer, part in zip(s.partials, total, strict=True):
            self.memory[buffer.name][self.index(s.index)] = part

    def run_finish(self, s):
        op = s.accumulator.op
        total = op.start(self.e, s.accumulator.dtype)
        for k in range(self.poly(s.count)):
            at = self.index(s.base) + k * self.poly(s.stride)
            total = op.combine(self.e, total, single(tuple(self.memory[b.name][at] for b in s.partials)))
        self.finished(s.accumulator, total, self.poly(s.total))

    def joined(self, r):
        """The running value with that of its lanes."""
        if r.lanes is None:
            return r.total
        op, parts = r.accumulator.op, tuple(lanes[: r.used] for lanes in r.lanes)
        while len(parts[0]) > 1:
            half = len(parts[0]) // 2
            pairs = [single(tuple(part[k * half : (k + 1) * half] for part in parts)) for k in range(2)]
            made = several(op.combine(self.e, *pairs))
            parts = tuple(np.concatenate([part, old[2 * half :]]) for part, old in zip(made, parts, strict=True))
        return op.combine(self.e, r.total, single(tuple(part[0] for part in parts)))

    def finished(self, accumulator, total, count):
        self.locals[accumulator.name] = self.e.cast(accumulator.op.finish(self.e, total, np.int64(count)), accumulator.result)

    def run_gemm(self, s):
        m, n, k = (self.poly(p) for p in (s.m, s.n, s.k))

        def matrix(buffer, offset, leading, transposed, rows, columns):
            if transposed:
                rows, columns = columns, rows
            places = self.index(offset) + np.arange(rows)[:, None] * self.poly(leading) + np.arange(columns)
            found = self.memory[buffer.name][places]
            return found.T if transposed else found

        product = matrix(s.a, s.a_offset, s.lda, s.transpose_a, m, k) @ matrix(s.b, s.b_offset, s.ldb, s.transpose_b, k, n)
        start = self.index(s.out_offset)
        self.memory[s.out.name][start : start + m * n] = product.reshape(-1)

    def run_call(self, s):
        arrays = []
        for buffer, extents in zip((*s.outs, *s.ins), s.extents, strict=True):
            flat, shape = self.memory[buffer.name], tuple(self.poly(n) for n in extents)
            strides = tuple(self.poly(n) * flat.itemsize for n in buffer.strides)
            arrays.append(np.lib.stride_tricks.as_strided(flat, shape, strides))
        outs, ins = arrays[: len(s.outs)], arrays[len(s.outs) :]
        try:
            results = self.program.calls[s.number].numpy(*ins)
        except Exception:
            raise Failed(s.code) from None
        for out, result in zip(outs, results if len(outs) > 1 else (results,), strict=True):
            out[...] = result

    def run_let(self, s):
        self.locals[s.name] = self.eval(s.value)

    def run_assign(self, s):
        assert self.width is None, f"{s.variable.name} is assigned in a vector loop"
        value = self.eval(s.value)
        assert value.dtype == s.variable.dtype
        self.variables[s.variable.name] = value

    def run_define(self, s):
        self.symbols[s.symbol] = int(self.eval(s.value))

    def run_if(self, s):
        self.block(s.then if self.eval(s.condition) else s.orelse)

    def run_repeat(self, s):
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

    def run_for(self, s):
        for a in s.accumulators:
            self.running[a.name] = Running(a, a.op.start(self.e, a.dtype), self.width is not None)
        extent = min(self.index(i) for i in s.extent)
        is_free = s.kind == PARALLEL and self.order is not None
        rows = {i.buffer.name for i in walk(s.body) if isinstance(i, Store) and i.buffer.kind == "row"} if is_free else ()
        numbers = self.order(extent) if is_free else np.arange(extent)
        if self.width is None and not rows and takes_lanes(s):
            for first in range(0, extent, self.lanes):
                self.vars[s.var] = numbers[first : first + self.lanes]
                self.width = len(self.vars[s.var])
                self.block(s.body)
            self.width = None
        else:
            for number in numbers.tolist():
                self.vars[s.var] = number
                for name in rows:
                    self.memory[name] = without_meaning(self.memory[name].size, self.memory[name].dtype)
                self.block(s.body)
        if s.finish:
            for a in s.accumulators:
                self.finished(a, self.joined(self.running[a.name]), self.index(a.count) if a.count is not None else 0)

    # -- values

    def poly(self, p):
        return p.evaluate(self.symbols)

    def index(self, i: Index):
        return self.poly(i.const) + sum(self.vars[v] * self.poly(k) for v, k in i.terms)

    def place(self, access, memo):
        at = self.index(access.offset) + sum(self.eval(e, memo) * self.poly(k) for e, k in access.gathered)
        assert np.all(0 <= np.asarray(at)) and np.all(at < len(self.memory[access.buffer.name])), f"{access.buffer.name}[{at}]"
        return at

    def eval(self, e, memo=None):
        """The value of an expression now; what it shares is computed once."""
        memo = {} if memo is None else memo
        if id(e) not in memo:
            memo[id(e)] = self.compute(e, memo)
        return memo[id(e)]

    def compute(self, e, memo):
        if isinstance(e, Load):
            return self.memory[e.buffer.name][self.place(e, memo)]
        if isinstance(e, Scalar):
            return self.scalars[e.name]
        if isinstance(e, Local):
            return self.locals[e.name]
        if isinstance(e, Read):
            return self.variables[e.variable.name]
        if isinstance(e, IndexValue):
            return np.int64(self.index(e.index))
        if isinstance(e, CheckedIndex):
            index, n = self.eval(e.value, memo), self.poly(e.extent)
            index = np.where(index < 0, index + n, index)[()]
            if not np.all((index >= 0) & (index < n)):
                raise Failed(e.code)
            return np.int64(index)
        args = [self.eval(a, memo) for a in e.args]
        if isinstance(e.op, Generated):
            return e.op.body(self.e, [self.eval(i, memo) for i in e.indices], *args)
        return e.op.body(self.e, *args)


def takes_lanes(loop):
    """May its iterations be done statement by statement, and no loop inside wants that for itself?"""
    inside = list(walk(loop.body))
    free = any(isinstance(s, For) and s.kind != SERIAL for s in inside)
    return loop.kind != SERIAL and not free and all(isinstance(s, (For, Store, Let, Step, Partial, Finish)) for s in inside)


def without_meaning(size, dtype):
    """Elements that nobody may read before they were written."""
    return np.full(max(size, 0), np.nan if dtype.kind in "fc" else 77).astype(dtype)


def several(total):
    return total if isinstance(total, tuple) else (total,)


def single(parts):
    return parts if len(parts) > 1 else parts[0]

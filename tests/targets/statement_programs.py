"""Programs written by hand: run as machine code, and by an interpreter that takes them at their word."""

import ctypes

import numpy as np

from jitlab.ir import Poly
from jitlab.ir.programs.program import (
    Apply,
    Assign,
    Buffer,
    CheckedIndex,
    Define,
    For,
    If,
    Index,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Program,
    Read,
    Repeat,
    Scalar,
    Step,
    Store,
    contiguous_strides,
)
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.calls.signals import prepare
from jitlab.targets.cpu_llvm.cpu_schedule import scheduled
from jitlab.targets.cpu_llvm.emit import codegen

N = Poly.symbol


def number(value):
    return Poly.constant(value)


def buffer(name, kind, *shape, dtype="f8"):
    shape = tuple(n if isinstance(n, Poly) else number(n) if isinstance(n, int) else N(n) for n in shape)
    return Buffer(name, kind, np.dtype(dtype), shape, contiguous_strides(shape))


def at(*terms, const=0):
    """An index: numbers, symbols' names and (factor, loop variable) pairs, summed."""
    total = Index(number(const))
    for term in terms:
        if isinstance(term, Index):
            total = total + term
        elif isinstance(term, str):
            total = total + Index.var(term)
        else:
            total = total + Index(term)
    return total


def apply(op, *args, dtype=None):
    return Apply(op, args, np.dtype(dtype or np.result_type(*(a.dtype for a in args))))


def program(inputs, outputs, body, *, symbols=(), scalars=(), temps=(), rows=(), variables=(), errors=0):
    kernels = [Kernel(f"k{i}", "nest", part) for i, part in enumerate(body if isinstance(body[0], list) else [body])]
    return Program(
        list(inputs), list(outputs), list(temps), list(rows), list(scalars), list(symbols), kernels,
        variables=list(variables), errors=[frozenset()] * errors,
    )  # fmt: skip


class Running:
    """Machine code of a Program, and the context of one call."""

    def __init__(self, p, memory, symbols=None, scalars=None, tier="good", chunk=1, budget=10**8):
        """`memory`: an array for each buffer by name; rows and temps may be left out."""
        p.sizes = symbols or {}
        p = scheduled(p)
        self.program, self.layout = p, codegen.ContextLayout(p)
        self.text = codegen.module_for(p) if tier == "good" else codegen.quick_module_for(p)
        self.loaded = machine.load(machine.compile_object(self.text, tier), ["run"])
        self.entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.loaded.address("run"))
        symbols, layout = symbols or {}, self.layout
        self.context = np.zeros(layout.size, np.int64)
        self.context[layout.BUDGET] = budget
        prepare(self.context)
        self.memory = dict(memory)
        for b in (*p.temps, *p.rows):
            if b.name not in self.memory:
                size = int(np.prod([n.evaluate(symbols) for n in b.shape]))
                raw = np.zeros(size * b.dtype.itemsize + 128, np.uint8)
                self.memory[b.name] = raw[-raw.ctypes.data % 64 :][: size * b.dtype.itemsize].view(b.dtype)
        for name, slot in layout.buffers.items():
            self.context[slot] = self.memory[name].ctypes.data
        for name in p.symbols:
            self.context[layout.symbols[name]] = symbols[name]
        for name, dtype in p.scalars:
            value = np.frombuffer(np.array(scalars[name], dtype).tobytes().ljust(16, b"\0"), np.int64)
            self.context[layout.scalars[name] : layout.scalars[name] + 2] = value
        for phase in range(len(layout.phases)):
            self.context[layout.chunks + phase] = chunk

    def __call__(self):
        return self.entry(self.context.ctypes.data)

    def to_end(self):
        status = self()
        while status == codegen.PAUSED:
            status = self()
        return status


def run(p, memory, symbols=None, scalars=None, tier="good", **settings):
    """Run to the end; the status. Arrays in `memory` are written into."""
    return Running(p, memory, symbols, scalars, tier, **settings).to_end()


class Failed(Exception):
    """A checked index out of range."""


class Interpreter:
    """The statements of a Program one by one, on NumPy scalars. Vector loops run element by element."""

    def __init__(self, p, memory, symbols=None, scalars=None):
        self.program, self.memory = p, {name: a.reshape(-1) for name, a in memory.items()}
        self.names = dict(symbols or {})
        self.scalars = {name: np.dtype(dtype).type(scalars[name]) for name, dtype in p.scalars}
        self.variables, self.locals, self.totals = {}, {}, {}

    def run(self):
        try:
            with np.errstate(all="ignore"):
                for kernel in self.program.kernels:
                    self.block(kernel.body)
        except Failed as failed:
            return codegen.FAILED + failed.args[0]
        return codegen.DONE

    def index(self, i):
        return i.const.evaluate(self.names) + sum(self.names[v] * k.evaluate(self.names) for v, k in i.terms)

    def block(self, statements):
        for s in statements:
            self.statement(s)

    def statement(self, s):
        if isinstance(s, Store):
            value = self.value(s.value)
            self.memory[s.buffer.name][self.place(s)] = value
        elif isinstance(s, For):
            for a in s.accumulators:
                self.totals[a.name] = []
            for i in range(min(self.index(e) for e in s.extent)):
                self.names[s.var] = i
                self.block(s.body)
            self.names.pop(s.var, None)
            for a in s.accumulators:
                values = np.array(self.totals.pop(a.name), a.dtype)
                self.locals[a.name] = a.result.type(a.op.numpy(values))
        elif isinstance(s, Step):
            self.totals[s.accumulator.name].append(self.value(s.value))
        elif isinstance(s, Let):
            self.locals[s.name] = self.value(s.value)
        elif isinstance(s, Assign):
            self.variables[s.variable.name] = self.value(s.value)
        elif isinstance(s, Define):
            self.names[s.symbol] = int(self.value(s.value))
        elif isinstance(s, If):
            self.block(s.then if self.value(s.condition) else s.orelse)
        elif isinstance(s, Repeat):
            number = 0
            while s.count is None or number < s.count.evaluate(self.names):
                self.names[s.symbol] = number
                self.block(s.before)
                if s.test is not None and not self.value(s.test):
                    break
                self.block(s.body)
                number += 1
            self.names.pop(s.symbol, None)
        else:
            raise NotImplementedError(type(s).__name__)

    def place(self, access):
        return self.index(access.offset) + sum(int(self.value(e)) * k.evaluate(self.names) for e, k in access.gathered)

    def value(self, e):
        if isinstance(e, Load):
            place = self.place(e)
            assert place >= 0, f"{e.buffer.name}[{place}]"
            return self.memory[e.buffer.name][place]
        if isinstance(e, Scalar):
            return self.scalars[e.name]
        if isinstance(e, Local):
            return self.locals[e.name]
        if isinstance(e, Read):
            return self.variables[e.variable.name]
        if isinstance(e, IndexValue):
            return np.int64(self.index(e.index))
        if isinstance(e, CheckedIndex):
            value, n = int(self.value(e.value)), e.extent.evaluate(self.names)
            if not -n <= value < n:
                raise Failed(e.code)
            return np.int64(value + n if value < 0 else value)
        assert isinstance(e, Apply)
        return e.dtype.type(e.op.numpy(*(self.value(a) for a in e.parts)))


def assert_same(p, memory, symbols=None, scalars=None, **settings):
    """Machine code of both tiers leaves in memory what the interpreter leaves, and ends alike; returns what that is."""
    wanted = {name: a.copy() for name, a in memory.items()}
    end = Interpreter(p, wanted, symbols, scalars).run()
    for tier in ("quick", "good"):
        got = {name: a.copy() for name, a in memory.items()}
        status = run(p, got, symbols, scalars, tier, **settings)
        assert status == end, f"{tier}: status {status} instead of {end}\n{p}"
        for name, array in wanted.items():
            np.testing.assert_array_equal(got[name], array, err_msg=f"{tier}: {name} after\n{p}")
    return wanted

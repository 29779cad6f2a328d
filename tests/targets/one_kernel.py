"""Runs a body over arrays as one loop of whole (or masked) vectors: what the emitter's tests are built on."""

import ctypes
from functools import cache

import numpy as np

from jitlab.targets.cpu_llvm import machine
from jitlab.targets.llvm.function_text import FunctionText, module_text
from jitlab.targets.llvm.vector_emitter import VectorEmitter


def text_of(body, dtypes, result, width, features=None):
    """for i in range(0, n, width): result[i:] = body(inputs[i:]), the last vector masked. `features`: if not the machine's."""
    fn = FunctionText("k", [*(("ptr", f"in{k}") for k in range(len(dtypes))), ("ptr", "out"), ("i64", "n")])
    e = VectorEmitter(fn, width, features or machine.features())
    head, inside, done = fn.label("head"), fn.label("inside"), fn.label("done")
    fn.branch(head)
    fn.block(head)
    i = fn.phi("i64", [(0, "entry")])
    left = fn.instr(f"sub i64 %n, {i}")
    fn.branch_if(fn.instr(f"icmp sgt i64 {left}, 0"), inside, done)
    fn.block(inside)
    mask = e.mask_first(left) if width > 1 else None

    def address(name, dtype):
        offset = fn.instr(f"mul i64 {i}, {dtype.itemsize}")
        return fn.instr(f"getelementptr i8, ptr %{name}, i64 {offset}")

    xs = [e.load(address(f"in{k}", dtype), dtype, mask=mask) for k, dtype in enumerate(dtypes)]
    e.store(address("out", result), e.splat(body(e, *xs)), mask=mask)
    i.add_incoming(fn.instr(f"add i64 {i}, {width}"), fn.current)
    fn.branch(head)
    fn.block(done)
    fn.ret()
    return module_text([fn])


@cache
def loaded(text, tier):
    return machine.load(machine.compile_object(text, tier), ["k"])


def lanes(dtype):
    """Elements of the dtype in one vector; of complex numbers, as many as of their parts."""
    return machine.features().vector_bytes * (2 if dtype.kind == "c" else 1) // dtype.itemsize


def run(body, *arrays, result=None, width=None, tier="good", features=None):
    """The array of body's results; `result` is its dtype (default: the first array's)."""
    arrays = [np.ascontiguousarray(a) for a in arrays]
    dtype = np.dtype(result or arrays[0].dtype)
    text = text_of(body, [a.dtype for a in arrays], dtype, width or lanes(arrays[0].dtype), features)
    code = loaded(text, tier)
    out = np.empty(arrays[0].shape, dtype)
    types = [ctypes.c_void_p] * (len(arrays) + 1) + [ctypes.c_int64]
    function = ctypes.CFUNCTYPE(None, *types)(code.address("k"))
    function(*(a.ctypes.data for a in arrays), out.ctypes.data, out.size)
    return out


def call(text, *arguments, tier="good"):
    """Calls `k` of a module with pointers to arrays and int64 numbers."""
    code = loaded(text, tier)
    values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    types = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_int64 for a in arguments]
    ctypes.CFUNCTYPE(None, *types)(code.address("k"))(*values)


def equal(x, y):
    """Where two arrays agree bit for bit; NaN equals NaN, zeros differ by their sign."""
    assert x.dtype == y.dtype
    if x.dtype.kind == "c":
        return equal(x.real, y.real) & equal(x.imag, y.imag)
    if x.dtype.kind == "f":
        return ((x == y) & (np.signbit(x) == np.signbit(y))) | (np.isnan(x) & np.isnan(y))
    return x == y

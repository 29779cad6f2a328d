"""How long instructions of loop bodies take on this processor, and bytes from its caches: each from a loop of its own, timed
some times, of which the least counts. What else runs meanwhile only makes a time longer."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ops.elementwise.instruction_weights import KINDS
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.llvm.function_text import FunctionText, module_text
from jitlab.targets.llvm.values import Val
from jitlab.targets.llvm.vector_emitter import VectorEmitter

from . import machine
from .calls.buffers import aligned
from .peaks import peaks

#: Elements of an array that stays in the nearest cache, and runs over it in one call.
ELEMENTS, ROUNDS = 1024, 8
TIMES = 9

#: So often an instruction stands in the loop's body.
REPEATED = 8

#: Instructions of two operands.
BINARY = frozenset({"add", "div", "floor_divide"})

Body = Callable[..., Val]


@dataclass(frozen=True)
class Timed:
    """A loop that is timed: what it does to an element of each array, and what that makes."""

    body: Body
    dtypes: tuple[np.dtype[Any], ...]
    result: np.dtype[Any]


def instruction(name: str, dtype: np.dtype[Any]) -> Timed:
    """So many of an instruction, each on what the one before gave."""

    def body(e: VectorEmitter, *xs: Val) -> Val:
        value = xs[0]
        for _ in range(1 if name == "exp" else REPEATED):  # of its own result it soon gives infinity
            value = getattr(e, name)(value, *xs[1:])
        return value

    return Timed(body, (dtype,) * (1 + (name in BINARY)), dtype)


def _function(name: str, timed: Timed) -> FunctionText:
    """`rounds` times over arrays of `n` elements, whole vectors at a time as in kernels."""
    names = [f"in{k}" for k in range(len(timed.dtypes))]
    fn = FunctionText(name, [*(("ptr", each) for each in (*names, "out")), ("i64", "n"), ("i64", "rounds")])
    widest = max(_part_bytes(dtype) for dtype in (*timed.dtypes, timed.result))
    width = 2 * machine.features().vector_bytes // widest
    e = VectorEmitter(fn, width, machine.features())
    again, head, inside, after, done = (fn.label(word) for word in ("again", "head", "inside", "after", "done"))
    fn.branch(again)
    fn.block(again)
    round = fn.phi("i64", [("0", "entry")])
    fn.branch(head)
    fn.block(head)
    i = fn.phi("i64", [("0", again)])
    fn.branch_if(fn.instr(f"icmp slt i64 {i}, %n"), inside, after)
    fn.block(inside)

    def address(array: str, dtype: np.dtype[Any]) -> str:
        return fn.instr(f"getelementptr i8, ptr %{array}, i64 {fn.instr(f'mul i64 {i}, {dtype.itemsize}')}")

    values = [e.load(address(array, dtype), dtype) for array, dtype in zip(names, timed.dtypes, strict=True)]
    e.store(address("out", timed.result), e.splat(timed.body(e, *values)))
    i.add_incoming(fn.instr(f"add i64 {i}, {width}"), fn.current)
    fn.branch(head)
    fn.block(after)
    round.add_incoming(fn.instr(f"add i64 {round}, 1"), fn.current)
    fn.branch_if(fn.instr(f"icmp slt i64 {round}, %rounds"), again, done)
    fn.block(done)
    fn.ret()
    return fn


def _part_bytes(dtype: np.dtype[Any]) -> int:
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def _least(address: int, timed: Timed, elements: int = ELEMENTS, rounds: int = ROUNDS) -> float:
    """Nanoseconds of an element."""
    arrays = [aligned(elements * dtype.itemsize).view(dtype) for dtype in (*timed.dtypes, timed.result)]
    for number, array in enumerate(arrays):
        array[:] = np.linspace(0.3, 0.9, elements) if array.dtype.kind == "f" else number + 1
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays), ctypes.c_int64, ctypes.c_int64)(address)
    pointers = [array.ctypes.data for array in arrays]
    function(*pointers, elements, 1)
    return _best(lambda: function(*pointers, elements, rounds)) / (elements * (rounds + 1))


def _best(work: Callable[[], object], times: int = TIMES) -> float:
    """Nanoseconds."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter_ns()
        work()
        best = min(best, time.perf_counter_ns() - started)
    return best


#: Bytes of an array that stays in the second cache together with its copy, and in the third.
COPIED = {"second": 1 << 18, "third": 1 << 22}


def measure() -> dict[str, float]:
    """What `speeds.MEASURED` has: nanoseconds of an instruction of each kind, so many times on an element, and of a byte that
    is copied from and to each cache and memory."""
    f8 = np.dtype("f8")
    loops = {kind: instruction(name, np.dtype(dtype)) for kind, (name, dtype) in KINDS.items()}
    copy = Timed(lambda e, x: x, (f8,), f8)
    functions = [_function(f"k{number}", timed) for number, timed in enumerate((*loops.values(), copy))]
    names = [function.name for function in functions]
    loaded = machine.load(machine.compile_beside(module_text(functions)), names)
    found = {kind: _least(loaded.address(name), timed) for name, (kind, timed) in zip(names, loops.items(), strict=False)}
    for name, nbytes in COPIED.items():
        found[name] = _least(loaded.address(names[-1]), copy, nbytes // 8, max(1, (1 << 21) // nbytes)) / 16
    found["memory"] = 1e9 / peaks().bytes_per_second
    return found

"""A cluster's code for one combination of layouts, and the context that its launches start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jitlab import noting
from jitlab.ir import plain
from jitlab.ir.program import Buffer, Call, For, Gemm, If, Repeat, Statement, expressions, work
from jitlab.lower import Lowered
from jitlab.targets.cpu_llvm.context import Phase

from . import library
from .blas import gemm_address
from .buffers import ALIGNMENT
from .compiled import Compiled
from .signals import prepare

#: Cycles after which a native function comes up for air: some 50 ms.
BUDGET = 100_000_000

#: Operations on elements in one chunk of an outer loop, about.
CHUNK_STEPS = 1 << 18

#: What a call of a library is taken for, in such operations.
CALL_STEPS = 1 << 14

#: For estimates: the turns of a loop without a count.
UNKNOWN_TURNS = 100


@dataclass
class Variant:
    """A cluster lowered for one combination of layouts, with its code and a context to start from."""

    lowered: Lowered
    code: Compiled
    template: np.ndarray
    fixed: list[np.ndarray]  # what the template points to
    argument_slots: list[tuple[int, int]]  # (slot, input of the cluster)
    result_slots: list[tuple[int, tuple[int, ...], np.dtype]]
    scratch_slots: list[tuple[int, int]]  # (slot, offset in the scratch memory)
    scratch_bytes: int
    stride_slots: list[tuple[int, int, int]]  # (slot, input of the cluster, axis)
    ticks: int  # where in a context the processor's counter is noted: its last words
    about: noting.About | None = None  # what notes of its launches are about


def make_variant(lowered: Lowered, code: Compiled) -> Variant:
    """With its context filled: what is known before a call."""
    layout = code.layout
    template = np.zeros(layout.size + len(layout.phases) + 1, np.int64)
    template[layout.BUDGET] = BUDGET
    prepare(template)
    template[layout.SGEMM] = gemm_address("sgemm")
    template[layout.DGEMM] = gemm_address("dgemm")
    if lowered.program.calls:
        template[layout.CALL] = library.address()
        sites = library.call_sites(lowered.program)
        template[layout.calls : layout.calls + len(sites)] = sites
    for name, number in layout.symbols.items():
        template[number] = lowered.symbol_values[name]
    for number, op in zip(layout.scalars.values(), lowered.constants, strict=True):
        data = op.data.ljust(16, b"\0")
        template[number : number + 2] = np.frombuffer(data[:16], np.int64)
    fixed: list[np.ndarray] = []
    for position, node in enumerate(lowered.inputs):
        value = getattr(node.op, "value", None)
        if value is not None:
            array = np.ascontiguousarray(value)
            fixed.append(array)
            template[layout.FIRST + position] = array.ctypes.data
    for number, phase in enumerate(layout.phases):
        template[layout.chunks + number] = _chunk(lowered, phase)
    position_of = {node: i for i, node in enumerate(lowered.cluster.inputs)}
    first = layout.FIRST
    arguments = [(first + i, position_of[n]) for i, n in enumerate(lowered.inputs) if n in position_of]
    first += len(lowered.inputs)
    results = [(first + i, plain(n.shape), n.dtype) for i, n in enumerate(lowered.outputs)]
    first += len(lowered.outputs)
    scratch, used = [], 0
    for i, buffer in enumerate((*lowered.program.temps, *lowered.program.rows)):
        scratch.append((first + i, used))
        used += -(-_bytes(buffer, lowered) // ALIGNMENT) * ALIGNMENT
    strides = [
        (layout.symbols[symbol], position_of[lowered.inputs[number]], axis)
        for symbol, (number, axis) in lowered.strides.items()
    ]
    return Variant(lowered, code, template, fixed, arguments, results, scratch, used, strides, 8 * layout.size)


def _chunk(lowered: Lowered, phase: Phase) -> int:
    """Iterations of an outer loop between two looks at the clock: some 100 µs of work; for vectors a multiple of 256."""
    outer = phase.outer
    if phase.is_whole or outer is None:
        return 1 << 62
    each = max(_steps(outer.body, lowered.symbol_values), 1)
    wanted = max(CHUNK_STEPS // each, 1)
    return int(-(-wanted // 256) * 256) if outer.vector or wanted >= 256 else int(wanted)


def _steps(statements: Sequence[Statement], sizes: Mapping[str, int]) -> int:
    """Operations on elements in one run of the statements, about; what an expression shares counts once."""
    total = 0
    for s in statements:
        own = 1 + int(sum(work(e) for e in expressions(s)))
        if isinstance(s, For):
            known = [max(i.const.evaluate(sizes), 0) for i in s.extent if not i.vars]
            total += min(known, default=1) * _steps(s.body, sizes)
        elif isinstance(s, Repeat):
            times = UNKNOWN_TURNS if s.count is None else max(s.count.evaluate(sizes), 0)
            total += times * (own + _steps(s.before, sizes) + _steps(s.body, sizes))
        elif isinstance(s, If):
            total += own + max(_steps(s.then, sizes), _steps(s.orelse, sizes))
        elif isinstance(s, Gemm):
            total += s.m.evaluate(sizes) * s.n.evaluate(sizes) * s.k.evaluate(sizes) // 8
        elif isinstance(s, Call):
            total += CALL_STEPS
        else:
            total += own
    return total


def _bytes(buffer: Buffer, lowered: Lowered) -> int:
    size = buffer.dtype.itemsize
    for n in buffer.shape:
        size *= n.evaluate(lowered.symbol_values)
    return max(size, 1)


def kernel_times(variant: Variant, ticks: np.ndarray, duration: int) -> tuple[int, ...]:
    """The launch's time divided among its kernels as the processor's counter divided it."""
    total = int(ticks[-1] - ticks[0])
    if total <= 0:
        return ()
    times: dict[str, int] = {}
    for number, phase in enumerate(variant.code.layout.phases):
        times[phase.kernel] = times.get(phase.kernel, 0) + int(ticks[number + 1] - ticks[number])
    return tuple(duration * t // total for t in times.values())

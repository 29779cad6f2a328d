"""What launches a cluster's machine code: the context that its calls start from, and what a call puts into it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jitlab import events
from jitlab.ir import Lowered, plain
from jitlab.ir.programs.program import Buffer
from jitlab.ir.programs.traffic import aligned, scratch_places
from jitlab.support.later import Later
from jitlab.targets.cpu_llvm.compiling import MachineCode
from jitlab.targets.llvm.program_phases import Phase, steps
from jitlab.targets.target import END_NS, PROCESS_NS, START_NS, THREAD_NS, TICKS, Launcher

from . import host_calls
from .blas import blas_address
from .buffers import pool
from .context import DONE, FAILED, PAUSED, STOPPED, ContextLayout
from .device import address_of
from .signals import prepare, raise_stopped

if TYPE_CHECKING:
    from jitlab.targets.cpu_llvm.threads import cut_phases
    from jitlab.targets.cpu_llvm.threads import pool as pools
else:
    cut_phases = Later("jitlab.targets.cpu_llvm.threads.cut_phases")
    pools = Later("jitlab.targets.cpu_llvm.threads.pool")

#: Cycles after which a native function comes up for air: some 50 ms.
BUDGET = 100_000_000

#: Operations on elements in one chunk of an outer loop, about.
CHUNK_STEPS = 1 << 18


#: The template, the names of the phases, the slots in the scratch memory, and its bytes.
Kept = tuple[bytes, Sequence[str], list[tuple[int, int]], int]


class ContextLauncher(Launcher):
    """Runs the machine code of a cluster: a context to start from, with what is known before a call, and the slots of what is
    not."""

    code: MachineCode

    def __init__(self, lowered: Lowered, code: MachineCode, kept: Kept | None = None) -> None:
        """`kept`: what another one of the same code and lowering gave as `kept`; the code has a Program without it."""
        self.lowered, self.code = lowered, code
        self.constants: list[np.ndarray] = []  # what the template points to
        position_of = {node: i for i, node in enumerate(lowered.cluster.inputs)}
        first = ContextLayout.FIRST
        #: (slot, input of the cluster), and the slots of the results.
        self.inputs = [(first + i, position_of[n]) for i, n in enumerate(lowered.inputs) if n in position_of]
        first += len(lowered.inputs)
        self.outputs = range(first, first + len(lowered.outputs))
        self.results = [(plain(n.shape), n.dtype) for n in lowered.outputs]
        first += len(lowered.outputs)
        #: (slot, input of the cluster, axis)
        self.strides: list[tuple[int, int, int]] = []
        #: (slot, offset in the scratch memory)
        self.scratch: list[tuple[int, int]] = []
        self.scratch_bytes = 0
        if kept is not None:
            template, self.phases, self.scratch, self.scratch_bytes = kept
            self.template = np.frombuffer(template, np.int64).copy()
        else:
            layout = code.layout
            self.phases = [phase.kernel for phase in layout.phases]
            self.template = self._template()
            places, self.scratch_bytes = scratch_places(lowered.program, lambda buffer: _bytes(buffer, lowered))
            self.scratch += [(first + i, offset) for i, offset in enumerate(places)]
            self.strides += [
                (layout.symbols[symbol], position_of[lowered.inputs[number]], axis)
                for symbol, (number, axis) in lowered.strides.items()
            ]
        self._put_addresses()

    @property
    def kept(self) -> Kept:
        """What another process can make it of, beside its code; it has no strides and calls nothing."""
        return self._template().tobytes(), list(self.phases), self.scratch, self.scratch_bytes

    def _put_addresses(self) -> None:
        """Of this process."""
        template = self.template
        prepare(template)
        if template[ContextLayout.POOL]:
            template[ContextLayout.POOL] = pools.address()
        for name, slot in ContextLayout.BLAS.items():
            template[slot] = blas_address(name)
        for position, node in enumerate(self.lowered.inputs):
            value = getattr(node.op, "value", None)
            if value is not None:
                array = np.ascontiguousarray(value)
                self.constants.append(array)
                template[ContextLayout.FIRST + position] = array.ctypes.data

    def _template(self) -> np.ndarray:
        lowered, layout = self.lowered, self.code.layout
        template = np.zeros(layout.size, np.int64)
        template[layout.BUDGET] = BUDGET
        if lowered.program.calls:
            template[layout.CALL] = host_calls.address()
            sites = host_calls.call_sites(lowered.program)
            template[layout.calls : layout.calls + len(sites)] = sites
        for name, number in layout.symbols.items():
            template[number] = lowered.symbol_values[name]
        for number, op in zip(layout.scalars.values(), lowered.constants, strict=True):
            data = op.data.ljust(16, b"\0")
            template[number : number + 2] = np.frombuffer(data[:16], np.int64)
        for number, phase in enumerate(layout.phases):
            template[layout.chunks + number] = _chunk(lowered, phase, layout)
        for number, slot in layout.cut.items():
            phase = layout.phases[number]
            template[slot] = cut_phases.cut_of(phase, lowered.symbol_values, _is_vector(phase, layout)).piece
            template[layout.POOL] |= template[slot] > 0  # the address comes
        template[layout.ROWS] = sum(aligned(_bytes(buffer, lowered)) for buffer in lowered.program.rows)
        return template

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], times: np.ndarray | None) -> int | None:
        context = self.template.copy()
        for slot, position in self.inputs:
            context[slot] = address_of(inputs[position])
        for slot, out in zip(self.outputs, outputs, strict=True):
            context[slot] = address_of(out)
        for symbol, position, axis in self.strides:
            array = inputs[position]
            context[symbol] = array.strides[axis] // array.itemsize
        if times is not None:
            context[ContextLayout.TIMES] = address_of(times) + 8 * TICKS
        scratch = None  # lives as long as the launch
        if self.scratch_bytes:
            scratch = pool.take(self.scratch_bytes)
            start = address_of(scratch)
            for slot, offset in self.scratch:
                context[slot] = start + offset
        pointer = context.__array_interface__["data"][0]
        had = events.had_ns() if times is not None else (0, 0)
        started = time.perf_counter_ns()
        try:
            status = self.code.run(pointer)
            while status == PAUSED:  # back in Python: signals are looked after here
                status = self.code.run(pointer)
            if times is not None:
                times[START_NS], times[END_NS] = started, time.perf_counter_ns()
                times[PROCESS_NS : THREAD_NS + 1] = np.subtract(events.had_ns(), had)
            if status == STOPPED:
                raise_stopped(context)
        finally:
            if scratch is not None:
                pool.give(scratch)
        return None if status == DONE else status - FAILED


def _chunk(lowered: Lowered, phase: Phase, layout: ContextLayout) -> int:
    """Iterations of an outer loop between two looks at the clock: some 100 µs of work; for vectors a multiple of 256."""
    outer = phase.outer
    if phase.is_whole or outer is None:
        return 1 << 62
    each = max(steps(outer.body, lowered.symbol_values), 1)
    wanted = max(CHUNK_STEPS // each, 1)
    return int(-(-wanted // 256) * 256) if _is_vector(phase, layout) or wanted >= 256 else int(wanted)


def _is_vector(phase: Phase, layout: ContextLayout) -> bool:
    return id(phase.outer) in layout.program.vectors


def _bytes(buffer: Buffer, lowered: Lowered) -> int:
    size = buffer.dtype.itemsize
    for n in buffer.shape:
        size *= n.evaluate(lowered.symbol_values)
    return max(size, 1)

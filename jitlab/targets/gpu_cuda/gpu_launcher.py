"""What launches a cluster's kernels on a GPU, and what has the host do a cluster that no kernel takes."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from jitlab.ir import Lowered, plain
from jitlab.messages import Message
from jitlab.targets.target import END_NS, START_NS, TICKS, Launcher, Target

from .device_array import DeviceArray
from .device_blocks import Block
from .gpu_code import GpuCode, HostCode
from .gpu_driver import Shape2
from .kernels.kernel_module import ALIGNMENT, bytes_of, grid_of, teams_of
from .kernels.occupancy import launch_facts
from .kernels.parts import Turns

#: As in `Launcher.run`.
Times = np.ndarray[Any, Any] | None


class KernelLauncher(Launcher):
    """Launches the kernels of a cluster, one after the other: a context to start from, with what is known before a call."""

    code: GpuCode

    def __init__(self, lowered: Lowered, code: GpuCode) -> None:
        self.lowered, self.code = lowered, code
        kernels, driver = code.kernels, code.driver
        slots = kernels.slots
        position_of = {node: i for i, node in enumerate(lowered.cluster.inputs)}
        self.steps = list(slots.parts.steps)
        numbers = [step.phases.start if isinstance(step, Turns) else step.start for step in self.steps]
        self.phases = [slots.phases[number].kernel for number in numbers]
        self.results = [(plain(node.shape), node.dtype) for node in lowered.outputs]
        self.inputs = [(slots.FIRST + i, position_of[n]) for i, n in enumerate(lowered.inputs) if n in position_of]
        self.outputs = range(slots.FIRST + len(lowered.inputs), slots.FIRST + len(lowered.inputs) + len(lowered.outputs))
        self.constants: list[DeviceArray] = []  # what the template points to
        self.template = self._template(position_of)
        self.launches = []
        parts = zip(code.module.functions, kernels.functions, kernels.schedules, slots.phases, strict=True)
        for function, known, schedule, phase in parts:
            offsets = [parameter.offset for parameter in known.parameters]
            grid = grid_of(schedule, phase, lowered.symbol_values, driver)
            self.launches.append((function, grid, Shape2(schedule.threads), offsets))
        self.may_fail = bool(lowered.program.errors)
        #: (slot, offset in the scratch memory)
        self.scratch: list[tuple[int, int]] = []
        self.scratch_bytes = 0
        for slot, size in [(slots.STATUS, 8 * self.may_fail), (slots.KEPT, 16 * len(slots.kept)), *self._buffers()]:
            self.scratch.append((slot, self.scratch_bytes))
            self.scratch_bytes += -(-size // ALIGNMENT) * ALIGNMENT
        self._contexts: list[Context] = []  # that were used
        self._launched: Sequence[Mapping[str, Any]] | None = None

    def _template(self, position_of: dict[Any, int]) -> np.ndarray[Any, Any]:
        lowered, slots = self.lowered, self.code.kernels.slots
        template = np.zeros(slots.size, np.int64)
        for name in lowered.program.symbols:
            template[slots.symbols[name]] = lowered.symbol_values[name]
        for number, op in zip(slots.scalars.values(), lowered.constants, strict=True):
            template[number : number + 2] = np.frombuffer(op.data.ljust(16, b"\0")[:16], np.int64)
        for position, node in enumerate(lowered.inputs):
            if node not in position_of:
                array = self.code.device.array(node.op.value)
                self.constants.append(array)
                template[slots.FIRST + position] = array.address
        return template

    def _buffers(self) -> list[tuple[int, int]]:
        """Slot and bytes of each buffer of scratch: rows are there once for each team of the largest grid."""
        lowered, slots = self.lowered, self.code.kernels.slots
        program, schedules = slots.program, self.code.kernels.schedules
        teams = max((teams_of(s, grid) for (_, grid, _, _), s in zip(self.launches, schedules, strict=True)), default=1)
        sizes = lowered.symbol_values
        found = [(slots.buffers[b.name], bytes_of(b, sizes)) for b in program.temps]
        found += [(slots.buffers[b.name], bytes_of(b, sizes) * teams) for b in program.rows]
        return found

    def run(self, inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray], times: Times) -> int | None:
        driver = self.code.driver
        started = time.perf_counter_ns()
        context = self._context()
        slots = context.slots
        for slot, position in self.inputs:
            slots[slot] = inputs[position].address
        for slot, out in zip(self.outputs, outputs, strict=True):
            slots[slot] = out.address
        block = Block(driver, driver.shelf(self.scratch_bytes)) if self.scratch_bytes else None  # lives until all is enqueued
        if block is not None:
            for slot, offset in self.scratch:
                slots[slot] = block.address + offset
            if self.may_fail:
                driver.copy_in(block.address, np.zeros(2, np.int32))
        try:
            if times is not None:
                self._timed(context, times, started)
            else:
                for step in self.steps:
                    self._launch(step, context)
        finally:
            self._contexts.append(context)
        if self.may_fail:
            assert block is not None
            status = np.zeros(2, np.int32)
            driver.copy_out(status, block.address)
            if status[0]:
                return int(status[0]) - 1
        if times is not None:
            driver.wait()
            times[START_NS], times[END_NS] = started, time.perf_counter_ns()
        return None

    def run_flat(self, *arrays: DeviceArray) -> int | None:
        """The same for C code: inputs, then outputs."""
        count = len(self.lowered.cluster.inputs)
        return self.run(arrays[:count], arrays[count:], None)

    def launched(self) -> Sequence[Mapping[str, Any]]:
        if self._launched is None:
            driver, found = self.code.driver, []
            arch = int(driver.key.removeprefix("sm_")) if driver.key.startswith("sm_") else 0
            for step in self.steps:
                number = step.phases.start if isinstance(step, Turns) else step.start
                function, grid, threads, _ = self.launches[number]
                facts = launch_facts(grid, threads.x, driver.resources(function), arch)
                found.append({**facts, "simulated": driver.simulated})
            self._launched = found
        return self._launched

    def _context(self) -> Context:
        """One that nobody uses now."""
        try:
            return self._contexts.pop()
        except IndexError:
            return Context(self.template, [offsets for *_, offsets in self.launches])

    def _launch(self, step: range | Turns, context: Context) -> None:
        """A phase, or a loop over some."""
        if not isinstance(step, Turns):
            self._enqueue(step, context)
            return
        slot = self.code.kernels.slots.symbols[step.symbol]
        for turn in range(step.count.evaluate(self.lowered.symbol_values)):
            context.slots[slot] = turn
            self._enqueue(step.phases, context)

    def _enqueue(self, phases: range, context: Context) -> None:
        for number in phases:
            function, grid, threads, _ = self.launches[number]
            self.code.driver.launch(function, grid, threads, context.parameters[number])

    def _timed(self, context: Context, times: np.ndarray[Any, Any], started: int) -> None:
        """Launch with a mark before and after each kernel, and note when all was enqueued and the times between."""
        driver = self.code.driver
        marks = [driver.mark()]
        for step in self.steps:
            self._launch(step, context)
            marks.append(driver.mark())
        enqueued = 0 if driver.simulated else time.perf_counter_ns() - started
        driver.wait()
        spent = [driver.elapsed_ns(a, b) for a, b in zip(marks, marks[1:], strict=False)]
        times[TICKS:] = enqueued + np.concatenate([[0], np.cumsum(spent)])


class Context:
    """The slots of a launch, and for each kernel the addresses of its parameters in them."""

    def __init__(self, template: np.ndarray[Any, Any], offsets: Sequence[Sequence[int]]) -> None:
        self.slots = (ctypes.c_int64 * len(template)).from_buffer_copy(template.tobytes())
        start = ctypes.addressof(self.slots)
        self.parameters = [
            cast(Sequence[int], (ctypes.c_uint64 * len(each))(*(start + offset for offset in each))) for each in offsets
        ]


class HostLauncher(Launcher):
    """Has the host do a cluster, with arrays of NumPy's."""

    code: HostCode

    def __init__(self, lowered: Lowered, code: HostCode, host: Target) -> None:
        self.lowered, self.code = lowered, code
        self.launcher = host.launcher(lowered, code.host)
        self.phases, self.results, self.scratch_bytes = self.launcher.phases, self.launcher.results, 0
        self.on_host = Message(code.reason.code, dict(code.reason.operands))

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], times: Times) -> int | None:
        return self.launcher.run(inputs, outputs, times)

"""What launches a Program's kernels as numba.cuda compiles them: the very module that people read."""

from __future__ import annotations

import ctypes
import linecache
import time
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from jitlab import messages
from jitlab.errors import DeviceError
from jitlab.ir import Lowered, plain
from jitlab.ir.programs.program import Buffer
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.gpu_cuda.device_array import DeviceArray, GpuMemory
from jitlab.targets.gpu_cuda.gpu_driver import Driver
from jitlab.targets.gpu_cuda.kernels.kernel_module import ScheduledKernels
from jitlab.targets.target import END_NS, START_NS, TICKS, Compiled, Launcher

from .numba_module import NumbaModule, numba_module


@dataclass(eq=False)
class NumbaCode(Compiled):
    """The module of a Program, run: numba compiles a kernel when it is launched first."""

    module: NumbaModule = field(default=None, repr=False)  # type: ignore[assignment]
    names: dict[str, Any] = field(default_factory=dict, repr=False)  # what the module defines
    driver: Driver = field(default=None, repr=False)  # type: ignore[assignment]
    device: GpuMemory = field(default=None, repr=False)  # type: ignore[assignment]


def numba_code(key: str, program: ScheduledKernels, driver: Driver, device: GpuMemory) -> NumbaCode:
    """The code of a Program by numba. Raises Unscheduled where it has no such form, DeviceError where numba cannot be used."""
    module = numba_module(program)
    cuda(driver)
    file = f"<jitlab numba {abs(hash(module.timed)):x}>"
    linecache.cache[file] = (len(module.timed), None, module.timed.splitlines(keepends=True), file)
    names: dict[str, Any] = {}
    exec(compile(module.timed, file, "exec"), names)
    return NumbaCode(key, program, "numba", first_tier="numba", module=module, names=names, driver=driver, device=device)


def cuda(driver: Driver) -> Any:
    """numba.cuda, for the GPU that a driver drives. Raises DeviceError where it is not there, or is for another one."""
    try:
        from numba import config
        from numba import cuda as found
    except ImportError:
        raise DeviceError(messages.text("gpu.no_numba")) from None
    if bool(vars(config)["ENABLE_CUDASIM"]) != (driver.key == "simulated"):
        raise DeviceError(messages.text("gpu.other_numba"))
    if driver.key != "simulated" and getattr(found, "implementation", "") != "NVIDIA":
        raise DeviceError(messages.text("gpu.no_numba"))
    return found


class NumbaLauncher(Launcher):
    """Launches a cluster's kernels by the module's `run`, on the driver's stream."""

    code: NumbaCode

    def __init__(self, lowered: Lowered, code: NumbaCode) -> None:
        self.lowered, self.code = lowered, code
        self.cuda = cuda(code.driver)
        self.phases = code.module.phases
        self.results = [(plain(node.shape), node.dtype) for node in lowered.outputs]
        self.scratch_bytes = 0
        position_of = {node: i for i, node in enumerate(lowered.cluster.inputs)}
        #: Of each input of the Program, which of a call it is, or an array that is part of the program.
        self.inputs: list[int | DeviceArray] = [
            position_of[node] if node in position_of else code.device.array(node.op.value) for node in lowered.inputs
        ]
        self.numbers: list[Any] = [
            np.frombuffer(op.data, dtype)[0]
            for (_, dtype), op in zip(lowered.program.scalars, lowered.constants, strict=True)
        ]
        self.numbers += [lowered.symbol_values[name] for name in lowered.program.symbols]

    def run(self, inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray], times: Any) -> int | None:
        driver, program = self.code.driver, self.lowered.program
        started = time.perf_counter_ns()
        given = [inputs[each] if isinstance(each, int) else each for each in self.inputs]
        arrays = [self._flat(b, a) for b, a in zip((*program.inputs, *program.outputs), (*given, *outputs), strict=True)]
        status = np.zeros(1, np.int32)
        if program.errors:
            arrays.append(self.cuda.to_device(status))
        marks: list[Any] = []
        stream = 0 if driver.stream is None else self.cuda.external_stream(driver.stream)
        marks.append(driver.mark())
        self.code.names["run"](*arrays, *self.numbers, lambda: marks.append(driver.mark()), stream=stream)
        if times is not None or program.errors:
            driver.wait()
        if times is not None:
            times[START_NS], times[END_NS] = started, time.perf_counter_ns()
            spent = [driver.elapsed_ns(a, b) for a, b in zip(marks, marks[1:], strict=False)]
            times[TICKS:] = np.concatenate([[0], np.cumsum(spent)])
        failed = int(arrays[-1].copy_to_host()[0]) if program.errors else 0
        return failed - 1 if failed else None

    def _flat(self, b: Buffer, array: DeviceArray) -> Any:
        """An array's memory as the module takes it: one-dimensional, from the first element to the last one."""
        sizes = self.lowered.symbol_values
        shape = [n.evaluate(sizes) for n in b.shape]
        if 0 in shape:
            return self.cuda.device_array(1, b.dtype)
        count = 1 + sum((n - 1) * k.evaluate(sizes) for n, k in zip(shape, b.strides, strict=True))
        if self.code.driver.key == "simulated":
            memory: Any = (ctypes.c_char * (count * b.dtype.itemsize)).from_address(array.address)
            return np.frombuffer(memory, b.dtype)  # the simulator takes NumPy's arrays, and stores into them
        flat = DeviceArray(self.code.driver, array.owner, array.address, (count,), b.dtype)
        return self.cuda.as_cuda_array(flat, sync=False)

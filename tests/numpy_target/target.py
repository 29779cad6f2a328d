"""The NumPy target behind the interface of `jitlab/targets/target.py`, and how a test has programs run on it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import ClassVar

import numpy as np

from jitlab.ir import NestLimits, Shape
from jitlab.ir.programs.program_lines import located_lines
from jitlab.targets import devices
from jitlab.targets.target import (
    END_NS,
    START_NS,
    TICKS,
    Compiled,
    Device,
    Launcher,
    Listed,
    Listing,
    Place,
    Target,
)

from .interpreter import Failed, Machine, without_meaning


class HostArrays(Device):
    """NumPy's arrays, which have to lie row by row."""

    array_type = np.ndarray

    def array(self, value):
        return np.asarray(value)

    def layout_of(self, array):
        return "C" if array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative else ""

    def contiguous(self, array):
        return np.ascontiguousarray(array)

    def empty(self, shape, dtype):
        return without_meaning(int(np.prod(shape)), dtype).reshape(shape)

    def may_store_into(self, array, others):
        return array.flags.writeable and not any(np.may_share_memory(array, other) for other in others)


class Interpreted(Launcher):
    """Interprets the Program of a cluster."""

    lanes = 512

    def __init__(self, lowered, code):
        self.lowered, self.code = lowered, code
        self.phases = [kernel.name for kernel in lowered.program.kernels]
        self.results = [(tuple(int(n) for n in node.shape), node.dtype) for node in lowered.outputs]
        self.scratch_bytes = 0
        self.position = {node: i for i, node in enumerate(lowered.cluster.inputs)}

    def run(self, inputs, outputs, times, order=None):
        lowered, program = self.lowered, self.lowered.program
        machine = Machine(program, lowered.symbol_values, self.lanes, order)
        for buffer, node in zip(program.inputs, lowered.inputs, strict=True):
            array = inputs[self.position[node]] if node in self.position else np.ascontiguousarray(node.op.value)
            machine.memory[buffer.name] = array.reshape(-1)
            assert array.size == 0 or np.shares_memory(machine.memory[buffer.name], array)
        for buffer, out in zip(program.outputs, outputs, strict=True):
            machine.memory[buffer.name] = out.reshape(-1)
        machine.take_scalars(lowered)
        ticks = [time.perf_counter_ns()]
        with np.errstate(all="ignore"):
            try:
                machine.run(lambda: ticks.append(time.perf_counter_ns()))
            except Failed as failed:
                return failed.code
        if times is not None:
            times[START_NS], times[END_NS], times[TICKS:] = ticks[0], ticks[-1], ticks
        return None


def reverse(extent):
    return np.arange(extent)[::-1]


class InAnyOrder(Interpreted):
    """Interprets a Program with its parallel loops upwards, in reverse and in random order: the bits have to be the same.
    What differs is noted: a call that fails may be Python's."""

    wrong: ClassVar[list[str]] = []
    lanes = 4  # so few that lanes in another order do not all run at once
    looked = 0  # how many runs were compared; the first ones are enough

    def run(self, inputs, outputs, times):
        self.looked += 1
        if self.looked > 2:
            return super().run(inputs, outputs, times)
        random = np.random.default_rng(0)
        begun = [(order, [x.copy() for x in inputs], [y.copy() for y in outputs]) for order in (reverse, random.permutation)]
        failed = super().run(inputs, outputs, times)
        for order, *memory in begun:
            other = super().run(*memory, None, order)
            pairs = zip((*inputs, *outputs), (*memory[0], *memory[1]), strict=True)
            if (failed is None) != (other is None) or (failed is None and any(a.tobytes() != b.tobytes() for a, b in pairs)):
                self.wrong.append(self.lowered.program.text)
        return failed


class Lines(Listing):
    """What is interpreted: the lines of the Program."""

    functions = {}

    def __init__(self, program):
        self.program = program

    def lines(self, stage):
        return [Listed(text, Place(origins, "", kernel), not origins) for text, origins, kernel in located_lines(self.program)]


class NumpyTarget(Target):
    key = "numpy"
    stages = ("interpreted",)
    machine = "NumPy"
    #: Small blocks, so that small arrays take every way that lowering knows.
    shape = Shape(
        block_elements=50, plain_sum_elements=5, block_rows=4, few_block_rows=3, wide_row_bytes=200, tall_bytes=300,
        wide_columns=6, has_gemm=True, gemm_multiplications=100, recompute_operations=4.0,
        scalar_operations=4.0, row_operations=4.0,
        nests=NestLimits(stages=64, operations=1000, deep=128, again=40), jam_rows=2, vector_elements=3, short_elements=2,
        stream_bytes=1000,
    )  # fmt: skip

    def __init__(self, launcher=Interpreted):
        self.device, self.launcher_type = HostArrays(), launcher

    def compiled(self, program, origin):
        return Compiled(self.key, program, tier="interpreted", first_tier="interpreted")

    def launcher(self, lowered, code):
        return self.launcher_type(lowered, code)

    def listing(self, program):
        return Lines(program)


@contextmanager
def on_numpy(launcher=Interpreted):
    """Inside, what is compiled is compiled for this target."""
    before, devices.default = devices.default, "NUMPY"
    devices.DEVICES["NUMPY"] = NumpyTarget(launcher)
    try:
        yield devices.DEVICES["NUMPY"]
    finally:
        devices.default = before
        del devices.DEVICES["NUMPY"]

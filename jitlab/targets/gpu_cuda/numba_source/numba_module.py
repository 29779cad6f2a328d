"""A Program as a module of Python: its kernels as numba.cuda functions, and `run`, which launches them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitlab.ir import UNKNOWN, Origins
from jitlab.ir.programs.program import Buffer
from jitlab.ir.programs.program_lines import steps_of
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.gpu_cuda.kernels.kernel_module import ScheduledKernels
from jitlab.targets.gpu_cuda.kernels.parts import Turns
from jitlab.targets.gpu_cuda.kernels.slots import ContextSlots

from .python_emitter import type_name
from .python_kernel import PythonKernel, PythonKernelWriter
from .python_text import INDENT

HEAD = ("import math", "", "import numpy as np", "from numba import cuda", "", "")


@dataclass(frozen=True)
class SourceLine:
    """A line of the module; `kernel`: in which kernel of the Program, "" outside."""

    text: str
    origins: Origins = UNKNOWN
    kernel: str = ""


@dataclass(frozen=True)
class NumbaModule:
    """`lines` are what people read, `timed` what runs where each part is timed: `mark()` is called behind each.

    `phases`: the kernel of each part.
    """

    lines: tuple[SourceLine, ...]
    timed: str
    phases: tuple[str, ...]
    slots: ContextSlots

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines) + "\n"


def numba_module(program: ScheduledKernels) -> NumbaModule:
    """The module of a Program that has schedules. Raises Unscheduled where numba.cuda has nothing for it."""
    if program.host is not None:
        raise program.host
    slots = ContextSlots(program, program.parts)
    steps = steps_of(program)
    kernels = [
        PythonKernelWriter(slots, phase, schedule, f"kernel{number}", steps).kernel()
        for number, (phase, schedule) in enumerate(zip(slots.phases, program.schedules, strict=True))
    ]
    lines = [SourceLine(text) for text in HEAD]
    for kernel in kernels:
        name = kernel.phase.kernel
        lines += [SourceLine("@cuda.jit"), SourceLine(f"def {kernel.name}({', '.join(kernel.arguments)}):", kernel=name)]
        lines += [SourceLine(text, origins, name) for text, origins in kernel.lines]
        lines += [SourceLine(""), SourceLine("")]
    run = _Run(program, slots, kernels)
    shown = [*lines, *map(SourceLine, run.lines(False))]
    timed = "\n".join([*(line.text for line in lines), *run.lines(True)]) + "\n"
    steps_in = slots.parts.steps
    numbers = [step.phases.start if isinstance(step, Turns) else step.start for step in steps_in]
    return NumbaModule(tuple(shown), timed, tuple(slots.phases[number].kernel for number in numbers), slots)


@dataclass
class _Run:
    """The function that launches the kernels."""

    program: ScheduledKernels
    slots: ContextSlots
    kernels: Sequence[PythonKernel]

    @property
    def arguments(self) -> list[str]:
        return run_arguments(self.program)

    def lines(self, timed: bool) -> list[str]:
        p, last = self.program, ["mark"] if timed else []
        sizes = ", ".join(f"{name} = {p.sizes[name]}" for name in p.symbols if name in p.sizes)
        told = f' In this program {sizes}.' if sizes else ""
        found = [f"def run({', '.join([*self.arguments, *last, 'stream=0'])}):"]
        found.append(f'{INDENT}"""Launches the kernels. Arrays are one-dimensional, as their elements lie in memory.{told}"""')
        found += [f"{INDENT}{b.name} = {_made(b, '')}" for b in p.temps]
        found += [f"{INDENT}kept_{name} = cuda.device_array(1, {type_name(dtype)})" for name, dtype in self._kept().items()]
        for step in self.slots.parts.steps:
            if isinstance(step, Turns):
                found.append(f"{INDENT}for {step.symbol} in range({step.count}):")
                found += [2 * INDENT + line for number in step.phases for line in self._launch(self.kernels[number])]
            else:
                found += [INDENT + line for number in step for line in self._launch(self.kernels[number])]
            if timed:
                found.append(f"{INDENT}mark()")
        return found

    def _launch(self, kernel: PythonKernel) -> list[str]:
        blocks, rows = kernel.blocks, [b for b in kernel.phase.buffers if b.kind == "row"]
        given = f"({', '.join(kernel.arguments)})"
        if blocks == "1":
            return [*(f"{b.name} = {_made(b, '')}" for b in rows), f"{kernel.name}[1, {kernel.threads}, stream]{given}"]
        made = [f"{b.name} = {_made(b, 'blocks*')}" for b in rows]
        return [f"blocks = {blocks}", *made, f"{kernel.name}[blocks, {kernel.threads}, stream]{given}"]

    def _kept(self) -> dict[str, Any]:
        """What lives between kernels, with its dtype."""
        found: dict[str, Any] = {}
        for phase in self.slots.phases:
            found |= {name: v.dtype for name, v in phase.variables.items()} | phase.wanted | phase.bound
        return {name: found[name] for name in self.slots.kept}


def run_arguments(program: ScheduledKernels) -> list[str]:
    """What `run` takes, in order: inputs, outputs, where a failed check is noted, numbers, sizes."""
    arrays = [b.name for b in (*program.inputs, *program.outputs)]
    return [*arrays, *(["status"] if program.errors else []), *(name for name, _ in program.scalars), *program.symbols]


def _made(b: Buffer, times: str) -> str:
    size = "*".join(f"({n})" for n in b.shape) or "1"
    return f"cuda.device_array(max(1, {times}{size}), {type_name(b.dtype)})"

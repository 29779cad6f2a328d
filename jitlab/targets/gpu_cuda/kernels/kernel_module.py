"""All kernels of a Program: their schedules, their text as one module of LLVM, and the grids that they are launched with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from jitlab.config import COMPILERS
from jitlab.ir import UNKNOWN
from jitlab.ir.extents import Poly
from jitlab.ir.programs.program import (
    ONE,
    PARALLEL,
    Buffer,
    Finish,
    For,
    Gemm,
    Index,
    IndexValue,
    Program,
    Store,
    contiguous_strides,
    walk,
)
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.gpu_cuda.gpu_driver import Driver, KernelFunction, Shape2
from jitlab.targets.llvm.function_text import FunctionText, module_text
from jitlab.targets.llvm.program_phases import Phase

from .kernel_writer import KernelWriter
from .parts import Parts, Turns, parts_of
from .product_writer import ProductWriter
from .schedules import TILE, Limits, Schedule, Unscheduled, iterations, lanes_of, schedule_of, tile_of, words_of
from .slots import ContextSlots

TRIPLE = 'target triple = "nvptx64-nvidia-cuda"\n'

#: Each piece of scratch memory starts at a multiple of so many bytes, or elements.
ALIGNMENT = 256

#: Blocks that a grid has along an axis, at most.
MOST_BLOCKS, MOST_ROWS = (1 << 31) - 1, (1 << 16) - 1

#: Threads that a multiprocessor runs at once.
RESIDENT_THREADS = 2048

#: Blocks of a grid for each multiprocessor, at most: what is left each thread takes in turns. Many more than run at once end
#: closer together; one for each vector costs as much again.
BLOCKS_A_PROCESSOR = 256

#: Of rows, so many times as many as run at once, unless their scratch takes more than this.
ROUNDS, MOST_SCRATCH_BYTES = 8, 256 << 20


@dataclass
class ScheduledKernels(Program):
    """A Program with the schedule of each phase; `host`: why it runs on the host instead, None where it does not."""

    parts: Parts = field(default_factory=Parts)
    schedules: tuple[Schedule, ...] = ()
    host: Unscheduled | None = None
    unscheduled: str = ""  # the Program's text
    compiler: str = COMPILERS[0]  # as `jl.config.gpu_compiler` says

    @lazy
    def text(self) -> str:
        """The Program's, and what was decided."""
        what = f"host: {self.host.code}" if self.host is not None else ", ".join(s.text for s in self.schedules)
        by = "" if self.compiler == COMPILERS[0] else f" by {self.compiler}"
        return f"{self.unscheduled}\n  schedules {what}{self.parts.text}{by}"


def scheduled(program: Program, limits: Limits, compiler: str = COMPILERS[0]) -> ScheduledKernels:
    """Program -> the same with the schedules of its phases."""
    p, schedules, host = program, [], None
    parts = parts_of(p)
    try:
        for phase in parts.phases:
            schedules.append(schedule_of(phase, p.sizes, limits))
    except Unscheduled as reason:
        host = reason.with_traceback(None)  # whose frames hold arrays
    return ScheduledKernels(
        p.inputs, p.outputs, p.temps, p.rows, p.scalars, p.symbols, p.kernels, p.variables, p.errors, p.calls, p.sizes,
        parts, tuple(schedules), host, p.text, compiler,
    )  # fmt: skip


@dataclass(frozen=True)
class Kernels:
    """The text of a Program's kernels, one for each phase, and what their launches are made of."""

    text: str
    functions: tuple[KernelFunction, ...]
    schedules: tuple[Schedule, ...]
    slots: ContextSlots = field(repr=False)


def kernels_of(program: ScheduledKernels) -> Kernels:
    """The kernels of a Program that has schedules. Raises Unscheduled where one turns out not to be possible."""
    program = with_meetings(program)
    slots = ContextSlots(program, program.parts)
    written = written_kernels(slots, program.schedules, lambda kind: ProductWriter if kind == "product" else KernelWriter)
    text = TRIPLE + module_text([text for text, _ in written])
    return Kernels(text, tuple(function for _, function in written), program.schedules, slots)


def with_meetings(program: ScheduledKernels) -> ScheduledKernels:
    """The same with memory in which blocks meet that have a row together, and a phase before each such one that clears it."""
    phases: list[Phase] = []
    schedules: list[Schedule] = []
    buffers: list[Buffer] = []
    starts = []
    for schedule, phase in zip(program.schedules, program.parts.phases, strict=True):
        starts.append(len(phases))
        if schedule.parts > 1:
            meeting, loop = _meeting(f"meeting{len(buffers)}", phase, schedule)
            buffers.append(meeting)
            schedule = replace(schedule, meeting=meeting)
            phases.append(Phase(phase.kernel, [loop], loop))
            schedules.append(Schedule("flat", schedule.threads, 1, (loop,), lanes_of(loop)))
        phases.append(phase)
        schedules.append(schedule)
    if not buffers:
        return program
    starts.append(len(phases))
    turns = [Turns(t.symbol, t.count, range(starts[t.phases.start], starts[t.phases.stop])) for t in program.parts.turns]
    temps, parts = [*program.temps, *buffers], Parts(phases, turns)
    return replace(program, temps=temps, parts=parts, schedules=tuple(schedules))


def _meeting(name: str, phase: Phase, schedule: Schedule) -> tuple[Buffer, For]:
    """Memory in which blocks meet, so many words for each row and a row of them before, and the loop that clears it."""
    rows, words = ONE, 0
    for loop in schedule.nest:
        rows = rows * loop.extent[0].const
    for s in walk(phase.statements):
        if isinstance(s, (For, Finish)):
            words += sum(map(words_of, s.accumulators if isinstance(s, For) else [s.accumulator]))
    shape = (rows + ONE, Poly.constant(max(words, 1) * schedule.parts))
    buffer = Buffer(name, "temp", np.dtype("i8"), shape, contiguous_strides(shape))
    origins = UNKNOWN.union(*(e.origins for e in phase.expressions))
    store = Store(buffer, Index.var(name), IndexValue(Index()), origins)
    return buffer, For(name, (Index(shape[0] * shape[1]),), [store], PARALLEL)


def written_kernels(
    slots: ContextSlots, schedules: Sequence[Schedule], writer: Callable[[str], type[KernelWriter]]
) -> list[tuple[FunctionText, KernelFunction]]:  # fmt: skip
    """The function of each phase. `writer`: by kind of schedule. Raises Unscheduled."""
    return [
        writer(schedule.kind)(slots, phase, schedule, f"phase{number}").function()
        for number, (phase, schedule) in enumerate(zip(slots.phases, schedules, strict=True))
    ]


def grid_of(schedule: Schedule, phase: Phase, sizes: Mapping[str, int], driver: Driver) -> Shape2:
    """How many blocks a kernel is launched with for these sizes."""
    if schedule.kind == "block":
        return Shape2(1)
    if schedule.kind == "product":
        (product,) = [s for s in walk(phase.statements) if isinstance(s, Gemm)]
        side = tile_of(product.out.dtype).side
        tiles = [-(-extent.evaluate(sizes) // side) for extent in (product.m, product.n)]
        return Shape2(max(1, min(tiles[0] * tiles[1] * iterations(schedule.nest, sizes), MOST_BLOCKS)))
    most = driver.processors * BLOCKS_A_PROCESSOR
    if schedule.kind == "rows":
        teams = schedule.threads // schedule.team
        scratch = sum(bytes_of(b, sizes) for b in phase.buffers if b.kind == "row") * teams
        resident = driver.processors * (schedule.held_blocks if schedule.held else RESIDENT_THREADS // schedule.threads)
        if schedule.parts > 1:
            if resident < schedule.parts and not driver.has_turns:  # each block has rows of its own
                return Shape2(max(1, min(iterations(schedule.nest, sizes), resident)))
            rounds = ROUNDS * resident // schedule.parts
            at_once = rounds if not scratch else min(rounds, max(MOST_SCRATCH_BYTES // scratch, resident // schedule.parts))
            return Shape2(max(1, min(iterations(schedule.nest, sizes), at_once)) * schedule.parts)
        most = ROUNDS * resident if not scratch else min(ROUNDS * resident, max(MOST_SCRATCH_BYTES // scratch, resident))
        return Shape2(max(1, min(-(-iterations(schedule.nest, sizes) // teams), most)))
    if schedule.in_tiles:
        tiles = [-(-iterations((loop,), sizes) // TILE) for loop in schedule.nest[-2:]]
        return Shape2(max(1, min(iterations(schedule.nest[:-2], sizes) * tiles[0] * tiles[1], most)))
    each = schedule.threads * schedule.lanes
    if schedule.in_planes:
        across = max(-(-iterations(schedule.nest[-1:], sizes) // each), 1)
        return Shape2(min(across, most), max(1, min(iterations(schedule.nest[:-1], sizes), most // across, MOST_ROWS)))
    return Shape2(max(1, min(-(-iterations(schedule.nest, sizes) // each), most)))


def teams_of(schedule: Schedule, grid: Shape2) -> int:
    """How many teams a grid has, each of which has its own scratch."""
    teams = grid.x * schedule.threads // schedule.team
    return teams // schedule.parts if teams >= schedule.parts else teams


def bytes_of(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    """Of a buffer's elements, so many that the next one starts at a multiple of ALIGNMENT elements."""
    count = 1
    for n in buffer.shape:
        count *= n.evaluate(sizes)
    return -(-max(count, 1) // ALIGNMENT) * ALIGNMENT * buffer.dtype.itemsize

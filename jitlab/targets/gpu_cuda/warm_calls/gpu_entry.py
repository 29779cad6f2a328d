"""The C function behind a warm call with DeviceArrays: what it launches, in which order, with which memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitlab.ir import Graph, Node, plain
from jitlab.ir.plans.call_forms import (
    Again,
    ArrayOf,
    CallForm,
    GivingOut,
    NumberOf,
    ViewOf,
    leaves_of_form,
    outputs_of,
    with_views,
)
from jitlab.targets.cpu_llvm.calls.code_lines import Code
from jitlab.targets.cpu_llvm.calls.entry import CEntry, layout_is_known
from jitlab.targets.cpu_llvm.calls.entry_code import Result, Warm
from jitlab.targets.gpu_cuda.device_array import DeviceArray, from_numpy, rows
from jitlab.targets.gpu_cuda.gpu_driver import Driver, NativeLaunches
from jitlab.targets.gpu_cuda.gpu_launcher import KernelLauncher
from jitlab.targets.gpu_cuda.kernels.kernel_module import ALIGNMENT
from jitlab.targets.gpu_cuda.kernels.parts import Turns
from jitlab.targets.target import Launcher

from .device_arguments import slots_are_known
from .gpu_entry_code import GpuEntryCode, GpuLaunch, Kernel


class GpuEntry(CEntry):
    """A C function, which `make` compiles. Calls that somebody listens to go the Python way. `fixed`: numbers of the form, on
    the device."""

    def __init__(
        self, warm: Warm, launchers: Sequence[KernelLauncher], driver: Driver, native: NativeLaunches,
        fixed: Sequence[DeviceArray],
    ) -> None:  # fmt: skip
        super().__init__(warm, launchers)  # type: ignore[arg-type]
        self.driver, self.native, self.fixed = driver, native, fixed

    def written(self, busy: int, calls: int) -> Code:
        return GpuEntryCode(self.warm, busy, calls, self.driver, self.native, self.fixed).code


def gpu_entry(driver: Driver, graph: Graph, launchers: Sequence[Launcher], form: CallForm) -> GpuEntry | None:
    """A C function for these launches; None where a call has a part that only Python does. `form`: its arrays stand for
    DeviceArrays, and its numbers have a value."""
    native = driver.native
    if native is None or form.writes or isinstance(form.gives, GivingOut) or not layout_is_known() or not slots_are_known():
        return None
    views: list[ViewOf] = []
    with_views(form.gives, views.append)
    if views:
        return None
    found = {leaf.leaf: leaf for leaf in leaves_of_form(form)}
    place: dict[Node, tuple[str, int]] = {}
    fixed: list[DeviceArray] = []
    for node, leaf in zip(graph.parameters, form.inputs, strict=True):
        known = found[leaf]
        if isinstance(known, Again):
            return None
        if (known.dtype, known.shape if isinstance(known, ArrayOf) else ()) != (np.dtype(node.dtype), plain(node.shape)):
            return None
        if isinstance(known, NumberOf) and known.value is not None:
            place[node] = ("fixed", len(fixed))
            fixed.append(from_numpy(driver, np.asarray(known.value, known.dtype)))
        elif isinstance(known, ArrayOf) and known.shape and known.strides in (None, rows(known.shape, known.dtype.itemsize)):
            place[node] = ("leaf", leaf)
        else:
            return None
    used_outputs = {*outputs_of(form.gives)}
    made = {n: at for at, n in enumerate(graph.outputs) if at in used_outputs}
    place |= {n: ("output", at) for n, at in made.items()}
    launches: list[GpuLaunch] = []
    used = 0
    for launcher in launchers:
        if not isinstance(launcher, KernelLauncher) or launcher.lowered.in_place:
            return None
        launch, used = _launch(launcher, driver, place, used)
        if launch is None:
            return None
        launches.append(launch)
    results = {at: Result(np.dtype(n.dtype), plain(n.shape)) for n, at in made.items()}
    kept = [launcher for launcher in launchers if isinstance(launcher, KernelLauncher)]
    return GpuEntry(Warm(form, results, tuple(launches), used), kept, driver, native, fixed)  # type: ignore[arg-type]


def _launch(
    launcher: KernelLauncher, driver: Driver, place: dict[Node, tuple[str, int]], used: int
) -> tuple[GpuLaunch | None, int]:
    """A cluster's launch, and the bytes of scratch up to it; None where Python runs it, with arrays that C doesn't make."""
    lowered = launcher.lowered
    if launcher.may_fail or any(isinstance(step, Turns) for step in launcher.steps):
        nodes = (*lowered.cluster.inputs, *lowered.outputs)
        given = tuple(place[node] for node in nodes if node in place)
        if len(given) < len(nodes) or any(kind == "scratch" for kind, _ in given):
            return None, used
        return GpuLaunch(launcher.template, (), (), launcher.run_flat, given), used
    pointers = []
    for slot, node in enumerate((*lowered.inputs, *lowered.outputs), launcher.code.kernels.slots.FIRST):
        if node not in place and not hasattr(node.op, "value"):
            place[node] = ("scratch", used)
            used += -(-max(node.type.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        if node in place:
            pointers.append((slot, *place[node]))
    if launcher.scratch_bytes:
        pointers += [(slot, "scratch", used + offset) for slot, offset in launcher.scratch]
    used += launcher.scratch_bytes
    numbers = [number for step in launcher.steps if not isinstance(step, Turns) for number in step]
    kernels = []
    for number in numbers:
        function, grid, threads, offsets = launcher.launches[number]
        kernels.append(Kernel(*driver.native_function(function), grid, threads, tuple(offsets)))
    return GpuLaunch(launcher.template, tuple(pointers), tuple(kernels)), used


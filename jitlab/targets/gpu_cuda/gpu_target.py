"""A GPU as a target: kernels by LLVM's NVPTX, launched by a driver; what no kernel takes the processor does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from jitlab.config import COMPILERS, config
from jitlab.ir import Graph, Lowered, NestLimits, Shape
from jitlab.ir.plans.call_forms import CallForm
from jitlab.ir.programs.program import Program
from jitlab.support.later import Later
from jitlab.targets.cpu_llvm.calls.blas import blas_address
from jitlab.targets.cpu_llvm.cpu_target import CPU
from jitlab.targets.target import Compiled, DevicePeaks, Entry, Launcher, Listing, Origin, Target

from .device_array import GpuMemory
from .gpu_code import GpuCode, HostCode
from .gpu_driver import Driver
from .gpu_launcher import HostLauncher, KernelLauncher
from .gpu_peaks import ASSUMED, measured
from .kernel_listing import KernelListing
from .kernels.kernel_module import ScheduledKernels, kernels_of, scheduled
from .kernels.schedules import Limits, Unscheduled
from .numba_source.numba_launcher import NumbaCode, NumbaLauncher, numba_code

gpu_entry = Later("jitlab.targets.gpu_cuda.warm_calls.gpu_entry")

#: The key of the driver of a GPU that the processor plays.
SIMULATED = "simulated"

#: What loops are cut by: the same on every GPU, so that a program gives the same bits on each.
SHAPE = dict(
    block_elements=1 << 14, plain_sum_elements=1 << 30, block_rows=256, few_block_rows=256, wide_row_bytes=1 << 40,
    tall_bytes=1 << 18, wide_columns=1, gemm_multiplications=1 << 62, recompute_operations=16.0,
    scalar_operations=1 << 62, row_operations=16.0,
    nests=NestLimits(stages=64, operations=1000, deep=128, again=80), jam_rows=1, vector_elements=1, short_elements=0,
    stream_bytes=1 << 62,
)  # fmt: skip


class GpuTarget(Target):
    """The kernels of one GPU, behind the interface."""

    key = "gpu_cuda"
    stages = ("numba", "llvm", "ptx", "sass")

    device: GpuMemory

    def __init__(self, driver: Driver, limits: Limits | None = None) -> None:
        self.driver, self.limits = driver, limits or Limits()
        self.device = GpuMemory(driver)
        self._peaks: DevicePeaks | None = None

    @property
    def machine(self) -> str:
        return self.driver.key

    @property
    def shape(self) -> Shape:
        return Shape(has_gemm=bool(blas_address("dgemm")), **SHAPE)  # type: ignore[arg-type]

    def scheduled(self, program: Program) -> ScheduledKernels:
        return scheduled(program, self.limits, config.gpu_compiler)

    def compiled(self, program: Program, origin: Origin) -> Compiled:
        assert isinstance(program, ScheduledKernels)
        reason = program.host
        if reason is None and program.compiler == COMPILERS[1]:
            try:
                return numba_code(self.key, program, self.driver, self.device)
            except Unscheduled:
                pass  # LLVM makes its kernels, and the stage says why
        if reason is None:
            try:
                kernels = kernels_of(program)
            except Unscheduled as unscheduled:
                reason = unscheduled.with_traceback(None)  # whose frames hold arrays
            else:
                module = self.driver.load(kernels.text, kernels.functions)
                return GpuCode(self.key, program, "ptx", first_tier="ptx", kernels=kernels, module=module, driver=self.driver,
                               device=self.device)  # fmt: skip
        host = CPU.compiled(CPU.scheduled(program), origin)
        return HostCode(self.key, program, "host", first_tier="host", host=host, reason=reason, driver=self.driver)

    def launcher(self, lowered: Lowered, code: Compiled) -> Launcher:
        if isinstance(code, HostCode):
            return HostLauncher(lowered, code, CPU)
        if isinstance(code, NumbaCode):
            return NumbaLauncher(lowered, code)
        return KernelLauncher(lowered, cast(GpuCode, code))

    def entry(self, graph: Graph, launchers: Sequence[Launcher], form: CallForm) -> Entry | None:
        return gpu_entry.gpu_entry(self.driver, graph, launchers, form)  # type: ignore[no-any-return]

    def device_peaks(self) -> DevicePeaks:
        if self._peaks is None:
            self._peaks = ASSUMED if self.driver.key == SIMULATED else measured(self.driver)
        return self._peaks

    def last_tier(self, program: Program) -> str:
        return "ptx"

    def listing(self, program: Program) -> Listing:
        return KernelListing(scheduled(program, self.limits), self.driver.key)

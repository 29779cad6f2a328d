"""LLVM text -> PTX, by the NVPTX target that llvmlite brings: it needs neither a GPU nor NVIDIA's software."""

from __future__ import annotations

from functools import cache
from typing import Any

from jitlab.errors import InternalError
from jitlab.support.address_space import ask_for
from jitlab.targets.cpu_llvm import machine

TRIPLE = "nvptx64-nvidia-cuda"

#: Architectures, each with the least PTX that has it and the LLVM that knows it. LLVM ends the process when it is asked for one
#: with less, and makes code for a very old GPU where it does not know the name.
KNOWN = {
    70: (60, 15), 72: (61, 15), 75: (63, 15), 80: (70, 15), 86: (71, 15), 87: (74, 16), 89: (78, 16), 90: (78, 16),
    100: (86, 20), 101: (86, 20), 103: (88, 21), 110: (90, 22), 120: (87, 20), 121: (88, 21),
}  # fmt: skip

#: Code is not made for those: their kernels would have no shuffles under a mask.
OLDEST = 70


def arch_for(major: int, minor: int) -> str:
    """The newest architecture that LLVM knows and a GPU of this compute capability runs: the driver goes on from there. "" for
    a GPU that is too old."""
    wanted = 10 * major + minor
    if wanted < OLDEST:
        return ""
    llvm_version = machine.llvm().llvm_version_info[0]
    return f"sm_{max(arch for arch, (_, since) in KNOWN.items() if arch <= wanted and since <= llvm_version)}"


def least_ptx(arch: str) -> int:
    """The lowest version of PTX that has an architecture: 78 for 7.8. Drivers that are older than it can't load its code."""
    return KNOWN[int(arch.removeprefix("sm_"))][0]


def ptx_of(text: str, arch: str, ptx_version: int = 0) -> str:
    """PTX of a module of LLVM text. `ptx_version`: 0 for the lowest one that the architecture has."""
    ptx_version = ptx_version or least_ptx(arch)
    if ptx_version < least_ptx(arch):
        raise ValueError(f"{arch} has PTX {least_ptx(arch) / 10} and later, {ptx_version / 10} was asked for")
    return machine.alone(lambda: _emitted(text, _target_machine(arch, ptx_version)))


def _emitted(text: str, target_machine: Any) -> str:
    ask_for(machine.COMPILER_BYTES + machine.BYTES_PER_CHARACTER * len(text), "compiling a kernel")
    llvm = machine.llvm()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM does not take a kernel for the GPU: {error}") from None
    module.triple, module.data_layout = TRIPLE, str(target_machine.target_data)
    builder = llvm.create_pass_builder(target_machine, llvm.create_pipeline_tuning_options(speed_level=3))
    machine.run_passes(module, builder)
    return str(target_machine.emit_assembly(module))


@cache
def _target_machine(arch: str, ptx_version: int) -> Any:
    return _nvptx().create_target_machine(cpu=arch, features=f"+ptx{ptx_version}", opt=3)


@cache
def _nvptx() -> Any:
    llvm = machine.llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(TRIPLE)
    except RuntimeError:
        import llvmlite

        raise InternalError(
            f"llvmlite {llvmlite.__version__} makes no code for GPUs", why="LLVM was built without its NVPTX target",
            hint="pip install -U llvmlite",
        ) from None  # fmt: skip

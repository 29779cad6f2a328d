"""LLVM text -> PTX, by the NVPTX target that llvmlite brings: it needs neither a GPU nor NVIDIA's software. PTX -> SASS, a
GPU's own instructions, by NVIDIA's assembler and disassembler: only people look at it, where these are installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jitlab import messages
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

#: NVIDIA's programs that SASS takes, each with the package that brings it; seconds that one may take.
PROGRAMS = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
PATIENCE = 60
_PTX_LINE = re.compile(r'\s*//## File "\.nv_debug_ptx_txt", line (\d+)')

#: The least PTX whose threads can sleep.
WITH_SLEEP = 63

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
    """PTX of a module of LLVM text. `ptx_version`: 0 for the lowest one that the architecture and its instructions have."""
    ptx_version = ptx_version or max(least_ptx(arch), WITH_SLEEP if "@llvm.nvvm.nanosleep" in text else 0)
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


def nvidia_program(name: str) -> str | None:
    """Where a program of NVIDIA's is: on the path, in a CUDA toolkit, or in one of NVIDIA's packages for Python."""
    toolkits = [os.path.join(os.environ[root], "bin") for root in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(root)]
    spec = importlib.util.find_spec("nvidia")
    packages = [found for root in (spec and spec.submodule_search_locations) or () for found in Path(root).glob("*/bin")]
    places = (None, *toolkits, *map(str, packages))
    return next((found for place in places if (found := shutil.which(name, path=place))), None)


def sass_of(text: str, arch: str) -> list[tuple[str, int]]:
    """Lines of the SASS of a module of PTX, each with the number of the line of PTX that it was made of; 0: of none. Raises
    LookupError, whose sentence says what is missing, or what NVIDIA's programs say."""
    programs = {name: nvidia_program(name) for name in PROGRAMS}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        packages = " ".join(PROGRAMS[name] for name in missing)
        raise LookupError(messages.text("gpu.no_sass", programs=" and ".join(missing), packages=packages))
    with tempfile.TemporaryDirectory(prefix="jitlab-sass-") as folder:
        source, cubin = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(text, encoding="utf-8")
        _said_by(str(programs["ptxas"]), "--generate-line-info", f"-arch={arch}", "-o", str(cubin), str(source))
        return list(_numbered(_said_by(str(programs["nvdisasm"]), "--print-code", "--print-line-info-ptx", str(cubin))))


def _said_by(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().partition("\n")[0]
        raise LookupError(messages.text("gpu.sass_failed", program=Path(command[0]).stem, said=said or error)) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LookupError(messages.text("gpu.sass_failed", program=Path(command[0]).stem, said=error)) from None
    return done.stdout


def _numbered(text: str) -> Iterator[tuple[str, int]]:
    """A remark says which line of PTX the instructions behind it are of, up to the next one."""
    number = 0
    for line in text.splitlines():
        if found := _PTX_LINE.match(line):
            number = int(found[1])
            continue
        if line.startswith(".text."):
            number = 0
        yield line.rstrip(), number if is_sass(line) else 0


def is_sass(line: str) -> bool:
    """Is a line of a disassembly an instruction?"""
    return line.lstrip().startswith("/*")

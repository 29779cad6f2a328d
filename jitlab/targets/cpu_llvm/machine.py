"""The processor: its vectors, LLVM text -> object code -> addresses, and objects kept on disk. Loads llvmlite when used."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

Tier = Literal["quick", "good"]

_lock = threading.Lock()  # llvmlite's target machines and JIT are shared by all threads


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def cpu_name() -> str:
    return str(_llvm().get_host_cpu_name())


@cache
def cpu_features() -> str:
    """Sorted `+a,-b,...`, as LLVM takes them."""
    return ",".join(sorted(str(_llvm().get_host_cpu_features().flatten()).split(",")))


@cache
def vector_bytes() -> int:
    """Of one vector register."""
    features = set(cpu_features().split(","))
    if "+avx512f" in features and "+avx512dq" in features and "+avx512vl" in features:
        return 64
    return 32 if "+avx2" in features else 16


def lanes(dtype: Any) -> int:
    """Elements of the dtype in one vector; of complex numbers, as many as of their parts."""
    dtype = np.dtype(dtype)
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return vector_bytes() // size


@cache
def _target_machine(codegen: int) -> Any:
    target = _llvm().Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu_name(), features=cpu_features(), opt=codegen, reloc="pic", codemodel="small"
    )


def _parse(text: str, machine: Any) -> Any:
    module = _llvm().parse_assembly(text)
    module.triple = _llvm().get_process_triple()
    module.data_layout = str(machine.target_data)
    return module


def _module(text: str, tier: Tier) -> tuple[Any, Any]:
    """The module after the tier's passes, and the machine that emits it."""
    if tier == "quick":
        machine = _target_machine(0)
        return _parse(text, machine), machine
    machine = _target_machine(2)
    module = _parse(text, machine)
    options = _llvm().create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_unrolling = options.loop_interleaving = False
    builder = _llvm().create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module, machine


def compile_object(text: str, tier: Tier = "good") -> bytes:
    """Position-independent object code of an LLVM module.

    quick: no passes, least code generation. good: passes without unrolling and vectorising, which the text has done.
    """
    with _lock:
        module, machine = _module(text, tier)
        return bytes(machine.emit_object(module))


def optimized(text: str, tier: Tier = "good") -> str:
    """The module's text after the tier's passes."""
    with _lock:
        return str(_module(text, tier)[0])


def asm(text: str, tier: Tier = "good") -> str:
    """Its assembly."""
    with _lock:
        module, machine = _module(text, tier)
        return str(machine.emit_assembly(module))


@dataclass(frozen=True)
class Loaded:
    """Code in memory, for as long as this lives."""

    addresses: dict[str, int]
    tracker: Any

    def address(self, name: str) -> int:
        return self.addresses[name]


@cache
def _jit() -> Any:
    target = _llvm().Target.from_default_triple()
    machine = target.create_target_machine(cpu=cpu_name(), features=cpu_features(), opt=2, jit=True)
    return _llvm().create_lljit_compiler(machine)


_libraries = 0


def load(object_bytes: bytes, symbols: list[str] | tuple[str, ...], imports: dict[str, int] | None = None) -> Loaded:
    """Links object code into the process. `imports` are addresses of names the code calls, beside the process's own."""
    global _libraries
    with _lock:
        builder = _llvm().JITLibraryBuilder().add_object_img(object_bytes).add_current_process()
        for name, address in (imports or {}).items():
            builder = builder.import_symbol(name, address)
        for name in symbols:
            builder = builder.export_symbol(name)
        _libraries += 1
        tracker = builder.link(_jit(), f"jitlab.{_libraries}")
        return Loaded({name: int(tracker[name]) for name in symbols}, tracker)

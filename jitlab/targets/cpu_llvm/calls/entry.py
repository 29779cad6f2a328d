"""The C function behind a warm call: checks exact arguments, makes the results, runs the machine code.

It knows the layout of NumPy's array object (public through its macros and stable in 2.x); `layout_is_known` verifies that on
a real array first. Whatever differs from the one signature it was made for goes on to `self`, the Python way.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.ir import Graph, Node, plain
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.target import Entry

from .buffers import ALIGNMENT, POOLED_BYTES
from .context import ContextLayout
from .entry_code import (
    DATA,
    DESCR,
    DIMS,
    FLAGS,
    HEAD,
    NDIM,
    NEW_FROM_DESCR,
    WANTED_FLAGS,
    Argument,
    Launch,
    Result,
    Warm,
    entry_text,
)

if TYPE_CHECKING:
    from .launcher import ContextLauncher

FASTCALL_KEYWORDS = 0x82

#: Scratch that a warm call may have on the stack.
SCRATCH_BYTES = 1 << 14


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_void_p), ("meth", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_void_p))


class CEntry(Entry):
    """A C function, which `make` compiles."""

    def __init__(self, warm: Warm, launchers: Sequence[ContextLauncher]) -> None:
        self.warm = warm
        self._keep = [(launcher.code, launcher.constants) for launcher in launchers]

    def make(self, busy: ctypes.c_int64, calls: ctypes.c_int64, otherwise: Any, name: str) -> tuple[Any, Any]:
        text = entry_text(replace(self.warm, site=self.site), ctypes.addressof(busy), ctypes.addressof(calls), _api())
        loaded = machine.load(machine.compile_object(text, "quick"), ["warm"])
        slowly: Any = partial(otherwise)
        slowly.keep = keep = (loaded, self, busy, calls)  # what the C function reads goes with it, not with who made it
        return builtin(defined(name.encode(), loaded.address("warm")), slowly), keep


def builtin(definition: int, bound: Any) -> Any:
    """A builtin function of this definition, whose code is given `bound` as its first argument."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return new(definition, bound, None)


def defined(name: bytes, code: int) -> int:
    """The address of a definition, its name behind it. The function reads it also when the collector of cycles visits or frees
    the function, in any order with what else goes, and when Python ends: nothing may free it before, so nothing does."""
    size = ctypes.sizeof(_MethodDef)
    allocate = ctypes.pythonapi.PyMem_RawMalloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    place = allocate(size + len(name) + 1)
    if not place:
        raise MemoryError(f"no room for the {size} bytes of a C function's definition")
    ctypes.memmove(place + size, name, len(name) + 1)
    definition = _MethodDef.from_address(place)
    definition.name, definition.meth, definition.flags, definition.doc = place + size, code, FASTCALL_KEYWORDS, None
    return int(place)


def c_entry(
    graph: Graph, launchers: Sequence[ContextLauncher], form: type | None, scalars: Sequence[bool]
) -> CEntry | None:
    """A C function for plans with small results and little scratch; its arguments are contiguous. What a launcher stores into
    arguments is no result: nothing of it may fail."""
    stored = {new: old for launcher in launchers for new, old in launcher.lowered.in_place.items()}
    made = [(n, is_scalar) for n, is_scalar in zip(graph.outputs, scalars, strict=True) if n not in stored]
    if not layout_is_known() or any(n.type.nbytes >= POOLED_BYTES for n, _ in made):
        return None
    place: dict[Node, tuple[str, int]] = {n: ("argument", i) for i, n in enumerate(graph.parameters)}
    place |= {new: place[old] for new, old in stored.items()}
    place |= {n: ("result", i) for i, (n, _) in enumerate(made)}
    launches, used = [], 0
    for launcher in launchers:
        lowered, pointers = launcher.lowered, []
        for slot, node in enumerate((*lowered.inputs, *lowered.outputs), ContextLayout.FIRST):
            if node not in place and not hasattr(node.op, "value"):
                place[node] = ("scratch", used)
                used += -(-max(node.type.nbytes, 1) // ALIGNMENT) * ALIGNMENT
            if node in place:
                pointers.append((slot, *place[node]))
        pointers += [(slot, "scratch", used + offset) for slot, offset in launcher.scratch]
        used += launcher.scratch_bytes
        launches.append(Launch(launcher.template, launcher.code.address, tuple(pointers)))
    if used > SCRATCH_BYTES:
        return None
    written = set(stored.values())
    arguments = tuple(Argument(np.dtype(n.dtype), plain(n.shape), n in written) for n in graph.parameters)
    results = tuple(Result(np.dtype(n.dtype), plain(n.shape), is_scalar) for n, is_scalar in made)
    entry = CEntry(Warm(arguments, results, form, tuple(launches), used), launchers)
    entry.stored = [(at, graph.parameters.index(stored[n])) for at, n in enumerate(graph.outputs) if n in stored]
    return entry


@cache
def layout_is_known() -> bool:
    """Does an array object of this process look as the emitted code expects? False leaves every call to Python."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or not sys.byteorder == "little":
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    array = np.zeros((3, 5), np.float32)
    try:
        api = _api()
    except (AttributeError, ValueError):
        return False

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(id(array) + offset).value

    dims = (ctypes.c_int64 * 2).from_address(word(DIMS))
    return bool(
        api[NEW_FROM_DESCR]
        and word(HEAD - 8) == id(np.ndarray)
        and word(DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(id(array) + NDIM).value == 2
        and tuple(dims) == (3, 5)
        and word(DESCR) == id(np.dtype(np.float32))
        and ctypes.c_int32.from_address(id(array) + FLAGS).value & WANTED_FLAGS == WANTED_FLAGS
    )


def _api() -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(
        pointer(np._core._multiarray_umath._ARRAY_API, None),  # type: ignore[attr-defined]
        ctypes.POINTER(ctypes.c_void_p),
    )

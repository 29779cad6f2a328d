"""The C function behind a warm call: checks exact arguments, makes the results, runs the machine code.

It knows the layout of NumPy's array object (public through its macros and stable in 2.x); `layout_is_known` verifies that on
a real array first. Whatever differs from the one form it was made for goes on to what it stands in front of, the Python way.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from jitlab.ir import TRACED_DTYPES, Graph, Node, plain
from jitlab.ir.plans.call_forms import ArrayOf, CallForm, ViewOf, leaves_of_form, outputs_of, with_stored, with_views
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.target import Entry

from .argument_code import ALIGNED, DATA, DESCR, DIMS, FLAGS, NDIM, ROWS, STRIDES, WRITEABLE
from .buffers import ALIGNMENT, POOLED_BYTES
from .code_lines import HEAD, Code, are_known
from .context import ContextLayout
from .entry_code import NEW_FROM_DESCR, EntryCode, Launch, Result, Seen, Warm

if TYPE_CHECKING:
    from .launcher import ContextLauncher

FASTCALL_KEYWORDS = 0x82

class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_void_p), ("meth", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_void_p))


class CEntry(Entry):
    """A C function, which `make` compiles."""

    def __init__(self, warm: Warm, launchers: Sequence[ContextLauncher]) -> None:
        self.warm = warm
        self._keep = [(launcher.code, launcher.constants) for launcher in launchers]

    def make(self, busy: ctypes.c_int64, calls: ctypes.c_int64, otherwise: Any, name: str) -> tuple[Any, Any]:
        code = self.written(ctypes.addressof(busy), ctypes.addressof(calls))
        loaded = _loaded(code.text("warm"))
        table = np.array(code.words, np.int64).tobytes()
        keep = loaded, self, busy, calls, code.kept  # what the C function reads goes with it, not with who made it
        return builtin(defined(name.encode(), loaded.address("warm")), (otherwise, table, keep)), keep

    def written(self, busy: int, calls: int) -> Code:
        """Its code, for words at these addresses."""
        return EntryCode(replace(self.warm, site=self.site), busy, calls, numpy_api()).code


def _loaded(text: str) -> machine.Loaded:
    """The code of C functions that do the same in their forms: one of a text, compiled once on a machine."""
    known = _codes.get(text)
    if known is None:
        known = machine.load(machine.object_cache().compile(text, "quick")[0], ["warm"])
        known = _codes.setdefault(text, known)
    _recent.append(known)
    return known


_codes: WeakValueDictionary[str, machine.Loaded] = WeakValueDictionary()
_recent: deque[machine.Loaded] = deque(maxlen=64)  # stay, though no function runs them


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


def c_entry(graph: Graph, launchers: Sequence[ContextLauncher], form: CallForm) -> CEntry | None:
    """A C function for these launches. What a launcher stores into arguments is no result: nothing of it may fail."""
    stored = {new: old for launcher in launchers for new, old in launcher.lowered.in_place.items()}
    leaf_of = dict(zip(graph.parameters, form.inputs, strict=True))
    kept = {at: leaf_of[stored[n]] for at, n in enumerate(graph.outputs) if n in stored}
    form = replace(form, gives=with_stored(form.gives, kept))
    used_outputs = {*outputs_of(form.gives), *(position for _, position in form.writes)}
    made = {n: at for at, n in enumerate(graph.outputs) if n not in stored and at in used_outputs}
    if not layout_is_known():
        return None
    views = _views(graph, form, made.values())
    if views is None:
        return None
    form = replace(form, gives=with_views(form.gives, views.__getitem__))
    found = {leaf.leaf: leaf for leaf in leaves_of_form(form)}
    if any(_type(found[leaf]) != (np.dtype(n.dtype), plain(n.shape)) for n, leaf in leaf_of.items()):
        return None
    leaves = {number: leaf for number, leaf in found.items() if isinstance(leaf, ArrayOf)}
    copied = (leaf for leaf, at in form.writes if graph.outputs[at] in made)
    if any(leaves[leaf].strides is not None for leaf in copied):
        return None
    place: dict[Node, tuple[str, int]] = {n: ("leaf", leaf) for n, leaf in leaf_of.items()}
    strides = {n: leaves[leaf].strides for n, leaf in leaf_of.items() if leaf in leaves}
    place |= {new: place[old] for new, old in stored.items()}
    place |= {n: ("output", at) for n, at in made.items()}
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
        is_long = any(n.type.nbytes >= POOLED_BYTES for n in (*lowered.inputs, *lowered.outputs))
        is_long |= bool(launcher.template[ContextLayout.POOL])
        launches.append(Launch(_template(launcher, strides), launcher.code.address, tuple(pointers), is_long))
    results = {at: Result(np.dtype(n.dtype), plain(n.shape)) for n, at in made.items()}
    return CEntry(Warm(form, results, tuple(launches), used), launchers)


def _views(graph: Graph, form: CallForm, made: Collection[int]) -> dict[ViewOf, Seen] | None:
    """The views among what a call gives; None where one is not of a new array, or NumPy would copy."""
    found: dict[ViewOf, Seen] = {}
    asked: list[ViewOf] = []
    with_views(form.gives, asked.append)
    for view in asked:
        node = graph.outputs[view.position]
        whole = seen = np.empty(plain(node.shape), node.dtype)
        for step in view.steps:
            seen = step.numpy(seen)
        if view.position not in made or not isinstance(seen, np.ndarray) or not np.may_share_memory(seen, whole):
            return None
        behind = seen.ctypes.data - whole.ctypes.data
        found[view] = Seen(view.position, whole.dtype, seen.shape, seen.strides, behind)
    return found


def _type(leaf: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    return leaf.dtype, leaf.shape if isinstance(leaf, ArrayOf) else ()


def _template(launcher: ContextLauncher, strides: Mapping[Node, tuple[int, ...] | None]) -> np.ndarray:
    """What a launch starts from, with the strides of the form's arrays."""
    if not launcher.strides:
        return launcher.template
    template = launcher.template.copy()
    for symbol, position, axis in launcher.strides:
        node = launcher.lowered.cluster.inputs[position]
        known = strides[node]
        assert known is not None, "an array in rows has no strides to be told"
        template[symbol] = known[axis] // node.dtype.itemsize
    return template


@cache
def layout_is_known() -> bool:
    """Does an array object of this process look as the emitted code expects? False leaves every call to Python."""
    if not are_known() or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    array = np.zeros((3, 5), np.float32)
    try:
        api = numpy_api()
    except (AttributeError, ValueError):
        return False

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(id(array) + offset).value

    dims, strides = ((ctypes.c_int64 * 2).from_address(word(offset)) for offset in (DIMS, STRIDES))
    wanted = ROWS | ALIGNED | WRITEABLE
    return bool(
        api[NEW_FROM_DESCR]
        and word(HEAD - 8) == id(np.ndarray)
        and word(DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(id(array) + NDIM).value == 2
        and tuple(dims) == (3, 5)
        and tuple(strides) == (20, 4)
        and word(DESCR) == id(np.dtype(np.float32))
        and all(_holds_its_value(dtype.type(1)) for dtype in TRACED_DTYPES)
        and ctypes.c_int32.from_address(id(array) + FLAGS).value & wanted == wanted
    )


def _holds_its_value(scalar: Any) -> bool:
    return bool(ctypes.string_at(id(scalar) + HEAD, scalar.itemsize) == scalar.tobytes())


def numpy_api() -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(
        pointer(np._core._multiarray_umath._ARRAY_API, None),  # type: ignore[attr-defined]
        ctypes.POINTER(ctypes.c_void_p),
    )

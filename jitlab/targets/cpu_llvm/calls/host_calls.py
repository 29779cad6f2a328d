"""What compiled code calls for operations that a library computes whole: NumPy, on arrays in its own memory.

Machine code knows an operation by a number, which stands in the context of the call, and hands over addresses, extents and
strides. What the operation raises is kept until the call is back in Python.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.ir.programs.program import Call, Program, walk
from jitlab.ops.random_draws import Draw, c_function
from jitlab.support import locks
from jitlab.support.later import Later
from jitlab.support.transactions import quietly

if TYPE_CHECKING:
    from jitlab.targets.cpu_llvm.libraries import call_records, python_calls
else:
    call_records = Later("jitlab.targets.cpu_llvm.libraries.call_records")
    python_calls = Later("jitlab.targets.cpu_llvm.libraries.python_calls")

_Function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
_Note = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))

#: An operation, the dtype and rank of each array, and how many of them are results.
Site = tuple[Any, tuple[tuple[np.dtype, int], ...], int]

#: Arrays that are kept for calls on the same memory: scratch comes from a pool, so its addresses come again.
MOST_KEPT = 64


def call_sites(program: Program) -> list[int]:
    """What the function knows each of the program's calls by, in their order; of a draw the address of its C function, and of
    what goes by C pointers that of its record."""
    found = {s.number: s for kernel in program.kernels for s in walk(kernel.body) if isinstance(s, Call)}
    return [
        c_function(op.function) if isinstance(op, Draw) else _word_of(op, found.get(number))
        for number, op in enumerate(program.calls)
    ]


def raised() -> BaseException | None:
    """What the last operation of this thread raised in compiled code; asked once."""
    error, _thread.error = getattr(_thread, "error", None), None
    return error


def address() -> int:
    """Where the function for the context's CALL slot lies: C's own; where arrays are not as they are known, one of Python's."""
    if _by_c():
        return python_calls.address()
    return ctypes.cast(_function, ctypes.c_void_p).value or 0


def _by_c() -> bool:
    from .entry import layout_is_known

    return layout_is_known()


def _word_of(op: Any, call: Call | None) -> int:
    if call is None:  # written for a body that was thrown away
        return -1
    steps = call_records.steps_of(op, call)
    number = _number_of(op, call)
    return number if steps is None else call_records.address_of_record(number, call, steps)


def _number_of(op: Any, call: Call) -> int:
    arrays = tuple((b.dtype, len(extents)) for b, extents in zip((*call.outs, *call.ins), call.extents, strict=True))
    site = (op, arrays, len(call.outs))
    with locks.Released(_lock), _lock:
        if site not in _numbers:
            _numbers[site] = _record_of(op, arrays, len(call.outs)) if _by_c() else len(_sites)
            _lengths.append(sum(1 + 2 * ndim for _, ndim in arrays))
            _sites.append(site)
        return _numbers[site]


def _record_of(op: Any, arrays: tuple[tuple[np.dtype, int], ...], results: int) -> int:
    """Where the record of a call lies, and stays."""
    function = op.numpy if op.is_silent else quietly(op.numpy)
    record = python_calls.record(function, arrays, results, ctypes.cast(_note, ctypes.c_void_p).value or 0)
    _records.append((record, function, arrays))
    return int(record.ctypes.data)


def _take(parts: Any) -> None:
    _thread.error = python_calls.interrupt_of(parts[:3])


_note = _Note(_take)


def _call(number: int, words: Any) -> None:
    try:
        op, kinds, count = _sites[number]
        key = (number, *words[: _lengths[number]])
        arrays = _kept.get(key)
        if arrays is None:
            if len(_kept) >= MOST_KEPT:
                _kept.clear()
            arrays = _kept[key] = _arrays(kinds, key[1:])
        results = quietly(op.numpy)(*arrays[count:])
        for out, result in zip(arrays[:count], results if count > 1 else (results,), strict=True):
            if np.shape(result) != out.shape:
                raise AssertionError(f"{op} gave an array of shape {np.shape(result)} where {out.shape} was promised")
            out[...] = result
    except BaseException as error:  # KeyboardInterrupt too: between here and Python lies code that knows of none
        _thread.error = error
        return
    words[_lengths[number]] = 1


_function = _Function(_call)


def _arrays(kinds: Sequence[tuple[np.dtype, int]], words: Sequence[int]) -> list[np.ndarray]:
    """The arrays that addresses, extents and strides describe, one after the other."""
    arrays, at = [], 0
    for dtype, ndim in kinds:
        arrays.append(_array(words[at], dtype, words[at + 1 : at + 1 + ndim], words[at + 1 + ndim : at + 1 + 2 * ndim]))
        at += 1 + 2 * ndim
    return arrays


def _array(place: int, dtype: np.dtype, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """The array that lies there; its memory is the caller's."""
    if 0 in shape:
        return np.empty(shape, dtype)
    steps = [step * dtype.itemsize for step in strides]
    low = sum((n - 1) * step for n, step in zip(shape, steps, strict=True) if step < 0)
    high = sum((n - 1) * step for n, step in zip(shape, steps, strict=True) if step > 0) + dtype.itemsize
    memory: Any = (ctypes.c_char * (high - low)).from_address(place + low)
    return np.ndarray(tuple(shape), dtype, memory, -low, tuple(steps))


_sites: list[Site] = []
_lengths: list[int] = []  # the words of each
_kept: dict[tuple[int, ...], list[np.ndarray]] = {}
_numbers: dict[Site, int] = {}
_records: list[Any] = []  # with what they point to
_lock = locks.shared("library")
_thread = threading.local()

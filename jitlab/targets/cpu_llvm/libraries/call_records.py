"""What machine code reads of a library call that it makes by C pointers: words in memory, so that its text has no addresses.

The first words are the number by which `host_calls` knows the call, whether everything was found, and C functions that any
call may need; behind them stand, for each step that is a function of NumPy's, its address and what it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir.programs.program import Call
from jitlab.ops.library_operations import Copying, InC, Library, Lying, Place, SortLoop, UfuncLoop

from . import numpy_functions

#: Words of a record.
NUMBER, IS_FOUND, TEST_FLAGS, CLEAR_FLAGS, ENSURE, RAISED, FORGET, RELEASE, ALLOCATE, FREE, FIRST = range(11)


def arrays_of(call: Call) -> tuple[list[Lying], list[Lying]]:
    """The results and the operands of a call."""
    found = [(b.dtype, extents) for b, extents in zip((*call.outs, *call.ins), call.extents, strict=True)]
    return found[: len(call.outs)], found[len(call.outs) :]


def steps_of(op: Any, call: Call) -> InC | None:
    """The call by C pointers; None where it is made from Python alone."""
    return op.in_c(*arrays_of(call)) if isinstance(op, Library) else None


def address_of_record(number: int, call: Call, steps: InC) -> int:
    """Where the record of a call lies, which `host_calls` knows by this number. It stays."""
    outs, ins = arrays_of(call)
    arrays = {"out": outs, "in": ins, "temp": steps.temps}
    words = [word for step in steps.steps if not isinstance(step, Copying) for word in _function_of(step, arrays)]
    flags = numpy_functions.flag_functions()
    python = ("PyGILState_Ensure", "PyErr_Occurred", "PyErr_Clear", "PyGILState_Release", "PyMem_RawMalloc", "PyMem_RawFree")
    general = [*flags, *(numpy_functions.python_function(name) for name in python)]
    is_found = all(words[::2]) and (all(flags) or not any(isinstance(s, UfuncLoop) and s.says_invalid for s in steps.steps))
    key = (number, is_found, *general, *words)
    if key not in _records:
        _records[key] = np.array(key, np.int64)
    return int(_records[key].ctypes.data)


def _function_of(step: UfuncLoop | SortLoop, arrays: Any) -> Sequence[int]:
    def dtype(place: Place) -> np.dtype[Any]:
        found: np.dtype[Any] = arrays[place[0]][place[1]][0]
        return found

    if isinstance(step, SortLoop):
        return numpy_functions.sort_function(dtype(step.source), step.kind, step.finds_order), 0
    letters = [dtype(place).char if place[0] != "factor" else "" for place in step.operands]
    if "" in letters:
        letters[letters.index("")] = "f" if letters[0] in "fF" else "d"
    inputs = step.signature.partition("->")[0].count("(")
    types = f"{''.join(letters[:inputs])}->{''.join(letters[inputs:])}"
    names = (step.name, step.odd_name) if step.odd_name else (step.name,)
    return [word for name in names for word in numpy_functions.loop(step.module, name, step.signature, types)]


_records: dict[tuple[int, ...], np.ndarray] = {}

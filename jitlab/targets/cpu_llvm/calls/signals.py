"""What machine code needs so that Python's signal handlers run while it does: between calls, or within the user's loops."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from jitlab.support.lazy import made_once

from .context import ContextLayout

#: What `look` calls: take the interpreter's lock, let other threads have it, run handlers that are due, take the exception
#: that one raised, give the lock back.
FUNCTIONS = (
    "PyGILState_Ensure", "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals", "PyErr_Fetch", "PyGILState_Release",
)  # fmt: skip


@made_once
def look_table() -> np.ndarray:
    """The addresses of FUNCTIONS; empty on an interpreter that has none."""
    if sys.implementation.name != "cpython":
        return np.zeros(0, np.int64)
    return np.array([ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in FUNCTIONS], np.int64)


def prepare(template: np.ndarray) -> None:
    """Let code that is started from this context ask for signals."""
    if len(look_table()):
        template[ContextLayout.LOOK] = look_table().ctypes.data


def raise_stopped(context: np.ndarray) -> None:
    """Raise the exception that a signal's handler raised while code ran from this context."""
    at = ContextLayout.ERROR
    restore = ctypes.pythonapi.PyErr_Restore
    restore.restype, restore.argtypes = None, [ctypes.c_void_p] * 3
    restore(*(int(word) or None for word in context[at : at + 3]))  # ctypes raises what is set after the call
    raise AssertionError("stopped without an exception")

"""NumPy's functions that do on arrays what Python's do on numbers and lists: what to write where a call of the latter is not
captured."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.capture.positions import here
from jitlab.capture.refusals import Cut
from jitlab.ops.table import FUNCTIONS

#: Python's modules, and what NumPy calls their functions: of `math` and `cmath` the same where nothing is said.
_CALLED = {
    "math": {"fsum": "sum", "pow": "power", "isclose": "", "dist": ""}, "cmath": {"isclose": ""},
    "statistics": {"mean": "mean", "fmean": "mean", "median": "median"}, "builtins": {"sorted": "sort"},
}  # fmt: skip


def counterpart(function: Any) -> str:
    """"np.sqrt" for `math.sqrt`: it is captured; "" where there is none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", "")
    if not isinstance(module, str) or module not in _CALLED:
        return ""
    called = _CALLED[module].get(name, name if module.endswith("math") else "")
    found = getattr(np, called, None) if called else None
    return f"np.{called}" if found is not None and found in FUNCTIONS else ""


def note_cut(error: Exception, function: Any) -> None:
    """A call ends the recording by this error."""
    if not hasattr(error, "_jitlab_cut"):
        instead = counterpart(function)
        error._jitlab_cut = Cut(_name(function), instead, here()) if instead else None  # type: ignore[attr-defined]


def _name(function: Any) -> str:
    """As the program may write it."""
    module, name = function.__module__, function.__name__
    return name if module == "builtins" else f"{module}.{name}"

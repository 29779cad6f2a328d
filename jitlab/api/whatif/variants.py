"""The same Python function compiled in another way, with traces of its own: for comparing levels and scopes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jitlab.api.functions.jit import Jit, jit
from jitlab.api.functions.pickling import kind_of
from jitlab.api.functions.tracing import Function


def compiled_as(function: Any, level: str, scopes: bool = True) -> Any:
    """A twin of a jl.function or jl.jit object at a level ("O0", "O1"), with its jit_scopes or as if there were none. A plain
    Python function becomes a jl.jit."""
    if isinstance(function, Jit):
        twin: Any = kind_of(function)(function.python_function, replace(function.options, jit_level=level))
        twin._stages = replace(twin._stages, scopes=scopes)
        return twin
    if isinstance(function, Function):
        twin = kind_of(function)(function.python_function, **function._settings)
        twin.options = replace(twin.options, level=level, scopes=scopes)
        return twin
    made = jit(function, jit_level=level)
    if isinstance(made, Jit):
        made._stages = replace(made._stages, scopes=scopes)
    return made

"""Running: machine code kept by Program text, buffers that are recycled, clusters and host operations in order."""

from .buffers import pool
from .compiled import Compiled, Origin, compiled, forget_compiled
from .executable import Executable, executable_of, plan_of, watching
from .layouts import layout_of

trim = pool.trim

__all__ = [
    "Compiled",
    "Executable",
    "Origin",
    "compiled",
    "executable_of",
    "forget_compiled",
    "layout_of",
    "plan_of",
    "pool",
    "trim",
    "watching",
]

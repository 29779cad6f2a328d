"""What people call: `function`, and the stages behind it."""

from .jit import Jit, jit
from .stages import Options, compile_trace
from .tracing import Function, function

__all__ = ["Function", "Jit", "Options", "compile_trace", "function", "jit"]

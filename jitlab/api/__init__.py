"""What people call: `function`, and the stages behind it."""

from .stages import Options, compile_trace
from .tracing import Function, function

__all__ = ["Function", "Options", "compile_trace", "function"]

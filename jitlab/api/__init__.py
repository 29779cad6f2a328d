"""What people call: `function`, and the stages behind it."""

from .concrete import ConcreteFunction
from .decorator import function
from .eagerly import functions_run_eagerly, run_functions_eagerly
from .jit import Jit, jit
from .printing import print_
from .stages import ClusteringOptions, Options, compile_trace
from .tracing import Function

__all__ = [
    "ClusteringOptions",
    "ConcreteFunction",
    "Function",
    "Jit",
    "Options",
    "compile_trace",
    "function",
    "functions_run_eagerly",
    "jit",
    "print_",
    "run_functions_eagerly",
]

"""What people call: `function`, and the stages behind it."""

from jitlab.ir import Options

from .calling import numpy_function, py_func, py_function
from .concrete import ConcreteFunction
from .decorator import function
from .eagerly import functions_run_eagerly, run_functions_eagerly
from .flow import cond, while_loop
from .jit import Jit, jit
from .printing import print_
from .stages import compile_trace
from .tracing import Function

__all__ = [
    "ConcreteFunction",
    "Function",
    "Jit",
    "Options",
    "compile_trace",
    "cond",
    "function",
    "functions_run_eagerly",
    "jit",
    "numpy_function",
    "print_",
    "py_func",
    "py_function",
    "run_functions_eagerly",
    "while_loop",
]

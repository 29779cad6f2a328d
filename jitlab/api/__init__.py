"""What people call: `function`, and the stages behind it.

Parts, in the order of the data: settling, kept_decisions, functions, gpu_calls, stitched, deciding_cells,
defined_again, size_families, control_functions, host_callbacks, printing, retraces, explaining, check, whatif, practice.
"""

from typing import TYPE_CHECKING

from jitlab.compile import compile_trace
from jitlab.ir import Options
from jitlab.support.later import names_of

from .functions.dispatch import functions_run_eagerly, run_functions_eagerly
from .functions.jit import Jit, jit

if TYPE_CHECKING:
    from .control_functions import cond, while_loop
    from .functions.concrete import ConcreteFunction
    from .functions.decorator import function
    from .functions.tracing import Function
    from .host_callbacks import numpy_function, py_func, py_function
    from .printing import print_
else:
    __getattr__ = names_of(
        __name__,
        {
            "control_functions": "cond while_loop",
            "functions.concrete": "ConcreteFunction",
            "functions.decorator": "function",
            "functions.tracing": "Function",
            "host_callbacks": "numpy_function py_func py_function",
            "printing": "print_",
        },
    )

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

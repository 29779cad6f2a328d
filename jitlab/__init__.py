"""Compiles the NumPy of a notebook cell or a function, and shows what happened.

In a notebook: `%load_ext jitlab`, then `%%jit` above a cell; `%jitlab help` lists what there is to ask.
In a program: `@jl.function` or `@jl.jit` above a function; `print(jl.explain(f, *args))` says what became of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .support.later import collected_once, names_of

with collected_once():
    from . import errors
    from .api import jit
    from .config import config

if TYPE_CHECKING:
    from .api import (
        ConcreteFunction,
        Function,
        cond,
        function,
        functions_run_eagerly,
        print_,
        run_functions_eagerly,
        while_loop,
    )
    from .api.retraces.places import ledger
    from .autograph import TensorArray
    from .capture import Tensor
    from .cluster import jit_scope
    from .differentiation import grad, gradients, hessian, stop_gradient, value_and_grad
    from .graph import (
        Graph,
        Session,
        constant,
        control_dependencies,
        device,
        global_variables_initializer,
        name_scope,
        placeholder,
    )
    from .notebook.widgets.explorer import explorer
    from .report import Report, expect, explain, record
    from .specs import TensorShape, TensorSpec
    from .targets.devices import DeviceArray, simulated_gpu, to_device, trim
    from .variable import Variable
else:  # what a first call does not need is loaded when somebody asks for it
    __getattr__ = names_of(
        __name__,
        {
            "api": "ConcreteFunction Function cond function functions_run_eagerly print_ run_functions_eagerly while_loop",
            "api.retraces.places": "ledger",
            "autograph": "TensorArray",
            "capture": "Tensor",
            "cluster": "jit_scope",
            "differentiation": "grad gradients hessian stop_gradient value_and_grad",
            "graph": "Graph Session constant control_dependencies device global_variables_initializer name_scope placeholder",
            "notebook": "",
            "notebook.widgets.explorer": "explorer",
            "report": "Report expect explain record",
            "specs": "TensorShape TensorSpec",
            "targets.devices": "DeviceArray simulated_gpu to_device trim",
            "variable": "Variable",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "ConcreteFunction",
    "DeviceArray",
    "Function",
    "Graph",
    "Report",
    "Session",
    "Tensor",
    "TensorArray",
    "TensorShape",
    "TensorSpec",
    "Variable",
    "cond",
    "config",
    "constant",
    "control_dependencies",
    "device",
    "errors",
    "expect",
    "explain",
    "explorer",
    "function",
    "functions_run_eagerly",
    "global_variables_initializer",
    "grad",
    "gradients",
    "hessian",
    "jit",
    "jit_scope",
    "ledger",
    "name_scope",
    "placeholder",
    "print_",
    "record",
    "run_functions_eagerly",
    "simulated_gpu",
    "stop_gradient",
    "to_device",
    "trim",
    "value_and_grad",
    "while_loop",
]


def __dir__() -> list[str]:
    """The public names, so that completion offers those alone; and Python's own of a module."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext jitlab`."""
    from .notebook.extension import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext jitlab`."""
    from .notebook.extension import unload_ipython_extension as unload

    unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where `jupyter-builder develop` finds the extension of an editable install."""
    return [{"src": "labextension", "dest": "jitlab"}]

"""`jl.explorer(f, *args)`: one function with its arguments, level and scopes as controls, and what they make of its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitlab.errors import UnsupportedError


def explorer(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """An ipywidget in which a function is run with other arguments, another level, with and without its scopes.

    Numbers get a slider or a field; arrays keep their values and get sizes and a dtype that can be changed. Nothing runs before
    *Run* is pressed; each run works on copies.

    Args:
        function: a jl.function, a jl.jit or a Python function, which is then compiled as by jl.jit.
        *args: the first arguments.
        **kwargs: the first keyword arguments.

    Returns:
        An ipywidgets.VBox with `.arguments`, `.level`, `.scopes`, `.run()`, `.check()` and `.report`.

    Raises:
        OptionError: `function` cannot be called.
        UnsupportedError: ipywidgets is not installed.

    Example:
        >>> box = jl.explorer(lambda x, k: np.tanh(x) * k, np.ones(3), 2.0)
        >>> report = box.run()
        >>> len(report.kernels)
        1
    """
    try:
        from .exploring import Explorer
    except ImportError as error:
        if error.name not in ("ipywidgets", "traitlets"):
            raise
        raise UnsupportedError(
            "jl.explorer is made of ipywidgets, which is not installed in this kernel.",
            hint="pip install ipywidgets, or jl.explain(f, *args), which shows the same report without controls",
        ) from None
    return Explorer(function, args, kwargs)

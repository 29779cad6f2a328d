"""`jl.print_` prints at every run, in program order; Python's `print` prints once, while a function is traced."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from jitlab.capture import Capture, Tensor, current_capture
from jitlab.capture.numpy_calls.host_fallback import Template, add_host_call, must_compile, rehearsing
from jitlab.messages import Message
from jitlab.support.containers import CONTAINERS, of_items

#: Of a longer axis so many elements are shown at each end.
SUMMARIZE = 3


def print_(
    *inputs: Any, sep: str = " ", end: str = "\n", output_stream: TextIO | None = None, summarize: int = SUMMARIZE
) -> Any:
    """A print that is part of the graph: it happens at each run of a traced function, where Python's happens at trace alone.

    Args:
        *inputs: arrays and Python values; of lists, tuples and dicts what they hold is shown.
        sep: what stands between them.
        end: what stands behind the last one.
        output_stream: a file; None: `sys.stderr`.
        summarize: how many elements are shown at either end of a longer axis, a count; -1: all.

    Returns:
        None; in a graph the operation that prints.

    Raises:
        InvalidArgumentError: it stands in a function under `jit_compile=True`, where printing has no compiled form.

    Example:
        >>> import sys
        >>> @jl.function
        ... def told(x):
        ...     jl.print_("sum", x.sum(), output_stream=sys.stdout)
        ...     return x * 2
        >>> told(np.ones(2)), told(np.zeros(2))
        sum 2
        sum 0
        (array([2., 2.]), array([0., 0.]))
    """
    capture = current_capture() or next((x.capture for x in inputs if isinstance(x, Tensor) and x.capture.is_open), None)
    if capture is None:
        _printed(inputs, sep, end, output_stream, summarize)
        return None
    capture.perform(_record, list(inputs), sep, end, output_stream, summarize)
    return capture.last_operation()  # type: ignore[attr-defined]


def _record(capture: Capture, inputs: Sequence[Any], sep: str, end: str, stream: TextIO | None, summarize: int) -> None:
    capture.effect(print_, None)
    if capture.strict:
        raise must_compile(capture, "PrintV2", "printing has no compiled form")
    template = Template(capture)
    made = tuple(template.of(_value(x)) for x in inputs)

    def show(values: Sequence[Any]) -> tuple[()]:
        if rehearsing.get() is None:
            _printed(values, sep, end, stream, summarize)
        return ()

    show.__name__ = "print"
    add_host_call(capture, show, (made,), {}, template.nodes, (), "effect", Message("stays.prints"), effects=True)


def _value(x: Any) -> Any:
    if getattr(type(x), "__jitlab_variable__", False) is True:
        return x.read_value()
    return of_items(_value, x) if isinstance(x, CONTAINERS) else x


def _printed(values: Sequence[Any], sep: str, end: str, stream: TextIO | None, summarize: int) -> None:
    text = sep.join(x if isinstance(x, str) else _text(x, summarize) for x in values)
    (stream or sys.stderr).write(text + end)


def _text(x: Any, summarize: int) -> str:
    if isinstance(x, str):
        return repr(x)
    if isinstance(x, dict):
        return "{" + ", ".join(f"{_text(key, summarize)}: {_text(item, summarize)}" for key, item in x.items()) + "}"
    if isinstance(x, list):
        return "[" + ", ".join(_text(item, summarize) for item in x) + "]"
    if isinstance(x, tuple):
        return "(" + ", ".join(_text(item, summarize) for item in x) + ("," if len(x) == 1 else "") + ")"
    if getattr(type(x), "__jitlab_variable__", False) is True:
        x = x.numpy()
    if isinstance(x, (np.ndarray, np.generic)):
        return _array_text(np.asarray(x), summarize)
    return str(x)


def _array_text(x: np.ndarray[Any, Any], summarize: int) -> str:
    if x.ndim == 0:
        return _number(x[()])
    n = len(x)
    shown = range(n) if summarize < 0 or n <= 2 * summarize else [*range(summarize), -1, *range(n - summarize, n)]
    separator = " " if x.ndim == 1 else "\n" * (x.ndim - 1) + " "
    return "[" + separator.join("..." if i < 0 else _array_text(x[i], summarize) for i in shown) + "]"


def _number(x: Any) -> str:
    """1 for 1.0, and as few digits as tell the number apart."""
    if isinstance(x, np.bool_):
        return "1" if x else "0"
    if isinstance(x, np.complexfloating):
        return f"({_number(x.real)},{_number(x.imag)})"
    if isinstance(x, np.floating):
        is_handy = x == 0 or 1e-4 <= abs(x) < 1e16 or not np.isfinite(x)
        return np.format_float_positional(x, trim="-") if is_handy else np.format_float_scientific(x, trim="-")
    return str(x)

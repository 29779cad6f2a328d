"""What steers the conversion of control flow: functions that stay as they are, options of loops, TensorArray.

Conversion itself is the first stage of capture (docs/internals/capture.md); it is on wherever it can be.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from jitlab.capture import current_capture
from jitlab.capture.control.looping import set_options
from jitlab.capture.tracers.tensor_array import TensorArray


class Feature(enum.Enum):
    """What conversion may do besides control flow. All of it is always on: the names are accepted."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """A decorator that leaves a function's control flow to Python, also where a converted function calls it.

    Args:
        func: the function; without it the result is the decorator.

    Returns:
        The function itself.

    Example:
        >>> @jl.autograph.do_not_convert
        ... def sign(x):
        ...     return 1 if x.sum() > 0 else -1
        >>> sign(np.ones(2))
        1
    """
    if func is None:
        return do_not_convert
    if hasattr(func, "__dict__"):
        func.__jitlab_do_not_convert__ = True  # type: ignore[attr-defined]
    return func


def set_loop_options(
    parallel_iterations: int | None = None, swap_memory: bool | None = None, maximum_iterations: Any = None,
    shape_invariants: Sequence[tuple[Any, Any]] | None = None,
) -> None:  # fmt: skip
    """Options of the loop in whose body it is the first statement.

    Args:
        parallel_iterations: accepted, and of no effect: iterations run one after the other.
        swap_memory: accepted, and of no effect.
        maximum_iterations: an int after which the loop ends in any case.
        shape_invariants: pairs of an array and a shape: these may change their shape in the loop, and the call then runs as
            Python, since a recording is exact.

    Returns:
        None.

    Example:
        >>> @jl.function
        ... def halvings(x):
        ...     n = 0
        ...     while x.max() > 1:
        ...         jl.autograph.set_loop_options(maximum_iterations=3)
        ...         x, n = x / 2, n + 1
        ...     return n
        >>> int(halvings(np.array([1000.0])))
        3
    """
    capture = current_capture()
    if capture is not None:
        set_options(capture, maximum_iterations, [value for value, _ in shape_invariants or ()])


__all__ = ["Feature", "TensorArray", "do_not_convert", "set_loop_options"]

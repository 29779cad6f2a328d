"""What steers the conversion of control flow: functions that stay as they are, options of loops, TensorArray.

Conversion itself is the first stage of capture (docs/internals/capture.md); it is on wherever it can be.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from jitlab.capture import current_capture
from jitlab.capture.looping import set_options
from jitlab.capture.tensor_array import TensorArray


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
    """A decorator: the function's control flow stays Python's, also when a converted function calls it."""
    if func is None:
        return do_not_convert
    if hasattr(func, "__dict__"):
        func.__jitlab_do_not_convert__ = True  # type: ignore[attr-defined]
    return func


def set_loop_options(
    parallel_iterations: int | None = None, swap_memory: bool | None = None, maximum_iterations: Any = None,
    shape_invariants: Sequence[tuple[Any, Any]] | None = None,
) -> None:  # fmt: skip
    """First statement of a loop's body: options of the loop.

    `maximum_iterations` ends it; `shape_invariants` lets the arrays in it change their shape, and the call then runs as Python,
    since a recording is exact. The others are accepted: there is nothing here that they could change.
    """
    capture = current_capture()
    if capture is not None:
        set_options(capture, maximum_iterations, [value for value, _ in shape_invariants or ()])


__all__ = ["Feature", "TensorArray", "do_not_convert", "set_loop_options"]

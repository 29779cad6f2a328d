"""Python numbers made of arrays: `x.item()`, `x.tolist()`, `round(x)` and functions of `math` of what only a run knows.

Under `jl.function` a function of `math` is Python's own code, called by the program. Under `jl.jit` and in cells it counts as
NumPy's function does (docs/reference/numerics.md), and where it would raise, or give what 64 bits do not hold, Python takes
the call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.guards.leaves import leaf_node
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Node, Symbolic
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.python_math import FLOATS, IN_DOUBLE, ROUNDED, TESTS, PythonMath, near_a_tie

from .conditions import python_number
from .exactness import watch_function
from .number_kinds import as_one, check_known, has_mixed

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

#: So many elements `tolist` makes numbers of, an operation each.
MOST_LISTED = 256
_NUMBERS = {"b": bool, "i": int, "u": int, "f": float}


def python_values(x: Tensor, method: str, *at: Any) -> Any:
    """What `x.item()` and `x.tolist()` give: Python numbers; NotImplemented for what they cannot be recorded for."""
    if at:
        at = at[0] if type(at[0]) is tuple and len(at) == 1 else at
        if method != "item" or len(at) not in (1, x.ndim) or any(type(n) is not int for n in at):
            return NotImplemented
        x = x[at] if len(at) == x.ndim else x.reshape(-1)[at]
    kind = _NUMBERS.get(x.dtype.kind)
    is_watched = x.capture.policy.keeps_kinds  # an int that is too large is found by the run
    if kind is None or (x.dtype == np.uint64 and not is_watched) or int(x.size) > MOST_LISTED:
        return NotImplemented
    if x.capture.has_kinds:
        check_known(x.capture, x)
    if method == "item":
        if int(x.size) != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return python_number(kind, x.reshape(()))
    return [python_values(part, method) for part in x] if x.ndim else python_number(kind, x)


def round_of_traced(capture: Arrays, x: Tensor, digits: Any = None) -> Any:
    """`round` of a number that only a run knows; NotImplemented for other calls, and for what NumPy's scalars make of it."""
    if not x.is_scalar or x.dtype.kind not in "iuf" or not capture.policy.keeps_kinds:
        return NotImplemented
    if digits is None:
        whole: Any = np.rint(x) if x.dtype.kind == "f" else x
        return python_number(int, whole)
    if x.weak is None or type(digits) is not int or not 0 <= digits <= 15:
        return NotImplemented
    if x.weak is int:
        return python_number(int, x)
    scale: Any = np.float64(10.0**digits)
    scaled = x * scale
    if digits:
        watch_function(capture, "decimal_digits", near_a_tie(scaled.node()))
    return capture.python_number((np.rint(scaled) / scale).node())


def math_of_traced(capture: Arrays, function: Any, args: tuple[Any, ...]) -> Any:
    """A function of `math` of numbers, one of which has no value yet; NotImplemented for other calls."""
    if function not in FLOATS and function not in TESTS and function not in ROUNDED:
        return NotImplemented
    first = next((x for x in args if isinstance(x, Tensor)), None)
    if not capture.policy.keeps_kinds:
        return NotImplemented if first is None or not all(map(_is_number, args)) else _by_python(function, first, args)
    if not any(isinstance(x, (Tensor, Symbolic)) for x in args) or not all(map(_is_any_number, args)):
        return NotImplemented
    if function in ROUNDED:
        has_numbers = first is not None and has_mixed(first)
        return NotImplemented if first is None or len(args) != 1 or has_numbers else _rounded(function, first)
    if function is math.log and len(args) == 2:
        numbers = (math_of_traced(capture, math.log, (x,)) for x in args)
        of_x, of_base = (math.log(x) if log is NotImplemented else log for log, x in zip(numbers, args, strict=True))
        return of_x / of_base
    counted = IN_DOUBLE.get(function)
    if counted is None or len(args) != counted.inputs:
        return NotImplemented
    operands = [_as_double(x) for x in args]
    result = counted.value(*operands)
    if counted.raises is not None:
        watch_function(capture, "math_raises", counted.raises(result, *operands))
    return capture.python_number(result)


def _by_python(function: Any, first: Tensor, args: tuple[Any, ...]) -> Any:
    """The call of Python's own function."""
    if function in ROUNDED:
        return _rounded(function, first) if len(args) == 1 else NotImplemented
    try:
        function(*(1.0 for _ in args))
    except TypeError:  # too many, or too few
        return NotImplemented
    except ValueError:  # atanh(1)
        pass
    kinds = tuple(getattr(x.weak, "__name__", "") if isinstance(x, Tensor) else type(x).__name__ for x in args)
    nodes = [x.node() if isinstance(x, Tensor) else constant(np.asarray(x)[()]) for x in args]
    return first.capture.python_number(apply(PythonMath(function.__name__, kinds), *nodes))


def _rounded(function: Any, x: Tensor) -> Any:
    """floor, ceil or trunc: an int."""
    if x.weak in (int, bool):
        return python_number(int, x)
    has_it = hasattr(x.dtype.type, f"__{function.__name__}__")
    if x.dtype.kind != "f" and (has_it or not x.capture.policy.keeps_kinds) or function is math.trunc and not has_it:
        return NotImplemented
    rounded: Any = ROUNDED[function](x if x.dtype.kind == "f" else x.astype(np.float64))  # by way of a float
    return python_number(int, rounded)


def _as_double(x: Any) -> Node:
    return cast(leaf_node(as_one(x)), np.float64)


def _is_number(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0 and x.dtype.kind in "biuf"
    return type(x) in (bool, float) or (type(x) is int and -(2**63) <= x < 2**63)


def _is_any_number(x: Any) -> bool:
    return isinstance(x, Symbolic) or _is_number(x.value if isinstance(x, Number) else x)


__all__ = ["math_of_traced", "python_values", "round_of_traced"]

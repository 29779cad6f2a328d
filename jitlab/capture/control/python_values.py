"""Python numbers made of arrays: `x.item()`, `x.tolist()` and functions of `math` of what only a run knows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitlab.capture.tracers.tensor import Tensor
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.python_math import FLOATS, ROUNDED, TESTS, PythonMath

from .conditions import python_number

#: So many elements `tolist` makes numbers of, an operation each.
MOST_LISTED = 256
_NUMBERS = {"b": bool, "i": int, "u": int, "f": float}


def python_values(x: Tensor, method: str) -> Any:
    """What `x.item()` and `x.tolist()` give: Python numbers; NotImplemented for what they cannot be recorded for."""
    kind = _NUMBERS.get(x.dtype.kind)
    if kind is None or x.dtype == np.uint64 or int(x.size) > MOST_LISTED:
        return NotImplemented
    if method == "item":
        if int(x.size) != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return python_number(kind, x.reshape(()))
    return [python_values(part, method) for part in x] if x.ndim else python_number(kind, x)


def math_of_traced(function: Any, args: tuple[Any, ...]) -> Any:
    """A function of `math` of numbers, one of which has no value yet; NotImplemented for other calls."""
    if function not in FLOATS and function not in TESTS and function not in ROUNDED:
        return NotImplemented
    first = next((x for x in args if isinstance(x, Tensor)), None)
    if first is None or not all(map(_is_number, args)):
        return NotImplemented
    if function in ROUNDED:
        has_it = first.dtype == np.float64 or (first.dtype.kind == "f" and function is not math.trunc)  # np.float32 has none
        if len(args) != 1 or not (has_it or first.weak is int):
            return NotImplemented
        rounded: Any = ROUNDED[function](first) if first.dtype.kind == "f" else first
        return python_number(int, rounded)
    try:
        function(*(1.0 for _ in args))
    except TypeError:  # too many, or too few
        return NotImplemented
    except ValueError:  # atanh(1)
        pass
    kinds = tuple(getattr(x.weak, "__name__", "") if isinstance(x, Tensor) else type(x).__name__ for x in args)
    nodes = [x.node() if isinstance(x, Tensor) else constant(np.asarray(x)[()]) for x in args]
    return first.capture.python_number(apply(PythonMath(function.__name__, kinds), *nodes))


def _is_number(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0 and x.dtype.kind in "biuf"
    return type(x) in (bool, float) or (type(x) is int and -(2**63) <= x < 2**63)


__all__ = ["math_of_traced", "python_values"]

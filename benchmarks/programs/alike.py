"""What a call gives and leaves, as plain values that can be compared."""

from __future__ import annotations

import math
import random
import types
from collections import deque
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def state(x: Any, _inside: tuple[int, ...] = ()) -> Any:
    """Lists, texts and numbers: an array is its dtype, shape and elements, an object what it holds."""
    if isinstance(x, (np.ndarray, np.generic)):
        return [type(x).__name__, str(x.dtype), list(x.shape), x.tolist()]
    if isinstance(x, np.random.Generator):
        return ["Generator", repr(x.bit_generator.state)]
    if isinstance(x, np.random.RandomState):
        return ["RandomState", repr(x.get_state())]
    if isinstance(x, random.Random):
        return ["Random", repr(x.getstate())]
    if isinstance(x, (bool, int, float, complex, str)):
        return x
    if x is None or isinstance(x, (bytes, range, slice, types.FunctionType, type)):
        return [type(x).__name__, repr(x)]
    if id(x) in _inside:
        return ["what it stands in", len(_inside) - _inside.index(id(x))]
    inside = (*_inside, id(x))
    if isinstance(x, dict):
        return [type(x).__name__, *([state(key, inside), state(value, inside)] for key, value in x.items())]
    if isinstance(x, (list, tuple, deque)):
        return [type(x).__name__, *(state(item, inside) for item in x)]
    if isinstance(x, (set, frozenset)):
        return [type(x).__name__, *sorted(repr(state(item, inside)) for item in x)]
    if is_dataclass(x) and not isinstance(x, type):
        return [type(x).__name__, *([field.name, state(getattr(x, field.name), inside)] for field in fields(x))]
    if isinstance(x, (types.BuiltinFunctionType, types.ModuleType)):
        return [type(x).__name__, x.__name__]
    return [type(x).__name__, *([name, state(value, inside)] for name, value in sorted(vars(x).items()))]


def difference(found: Any, wanted: Any, bound: float = 0.0, path: str = "") -> str:
    """Where two states differ first, or "": floats may be `bound` apart, relative to the larger one, or so near to zero."""
    if type(found) is not type(wanted):
        return f"{path}: {found!r} for {wanted!r}"
    if isinstance(wanted, list):
        if len(found) != len(wanted):
            return f"{path}: {found!r} for {wanted!r}"
        each = (difference(a, b, bound, f"{path}[{n}]") for n, (a, b) in enumerate(zip(found, wanted, strict=True)))
        return next(filter(None, each), "")
    if isinstance(wanted, complex):
        parts = ((found.real, wanted.real), (found.imag, wanted.imag))
        return next(filter(None, (difference(a, b, bound, path) for a, b in parts)), "")
    if isinstance(wanted, float):
        same = math.isclose(found, wanted, rel_tol=bound, abs_tol=bound) or (found != found and wanted != wanted)
        return "" if same else f"{path}: {found!r} for {wanted!r}"
    return "" if found == wanted else f"{path}: {found!r} for {wanted!r}"

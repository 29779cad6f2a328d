"""Subscripts with Numbers in them: their text, their code, and what they are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.capture.guards.gathering import Constants

from .number import Number
from .tensor import Tensor


def index_text(index: Any) -> str:
    if isinstance(index, tuple):
        return "(" + ",".join(map(index_text, index)) + ")"
    if isinstance(index, slice):
        return ":".join(map(index_text, (index.start, index.stop, index.step)))
    return index.text if isinstance(index, Number) else repr(index)


def index_code(index: Any, constants: Constants) -> str:
    """The index as Python text over the numbers."""
    if isinstance(index, tuple):
        return "(" + "".join(index_code(part, constants) + ", " for part in index) + ")"
    if isinstance(index, slice):
        return f"slice({', '.join(index_code(part, constants) for part in (index.start, index.stop, index.step))})"
    return index.text if isinstance(index, Number) else constants.text(index)


def has_number(index: Any) -> bool:
    if isinstance(index, tuple):
        return any(map(has_number, index)) and not any(isinstance(part, (Tensor, list, np.ndarray)) for part in index)
    if isinstance(index, slice):
        return any(isinstance(bound, Number) for bound in (index.start, index.stop, index.step))
    return isinstance(index, Number)


def index_now(index: Any) -> Any:
    return index_at(index, lambda number: number.value)


def index_at(index: Any, value: Callable[[Number], Any]) -> Any:
    if isinstance(index, tuple):
        return tuple(index_at(part, value) for part in index)
    if isinstance(index, slice):
        return slice(*(index_at(part, value) for part in (index.start, index.stop, index.step)))
    return value(index) if isinstance(index, Number) else index

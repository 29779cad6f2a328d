"""What NumPy writes as subscripts: `np.mgrid[0:n, 0:m]` and `np.ogrid[...]` of numbers, `np.r_` and `np.c_` of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.number import as_known
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Moving

from .functions import call_function

if TYPE_CHECKING:
    from jitlab.capture.state import Capture


def of_grid(capture: Capture, owner: Any, key: Any) -> Any:
    """`owner[key]`; NotImplemented for other owners, and for what NumPy has to look at."""
    parts = key if isinstance(key, tuple) else (key,)
    if owner is np.r_ or owner is np.c_:
        if any(isinstance(capture.value(part), Tensor) for part in parts):
            return capture.perform(call_function, owner.__getitem__, (key,), {})
    elif owner is np.mgrid or owner is np.ogrid:
        axes = [_numbers(part) for part in parts]
        known = [axis for axis in axes if axis is not None]
        if len(known) == len(axes):
            return _grid(capture, known, owner is np.ogrid) if isinstance(key, tuple) else _vector(capture, *known[0])
    return NotImplemented


_REAL = (int, float, np.integer, np.floating)


def _numbers(part: Any) -> tuple[Any, Any, Any] | None:
    """Start, stop and step of a slice of real numbers, the step of an imaginary one as that."""
    if not isinstance(part, slice):
        return None
    start, stop, step = (as_known(x) for x in (part.start, part.stop, part.step))
    start, step = 0 if start is None else start, 1 if step is None else step
    is_real = all(isinstance(x, _REAL) and not isinstance(x, (bool, Moving)) for x in (start, stop))
    is_step = type(step) is complex or (isinstance(step, _REAL) and not isinstance(step, (bool, Moving)) and step != 0)
    return (start, stop, step) if is_real and is_step else None


def _vector(capture: Capture, start: Any, stop: Any, step: Any) -> Any:
    if not isinstance(step, complex):
        return capture.perform(call_function, np.arange, (start, stop, step), {})
    kind = np.result_type(*map(_plain, (start, stop)), abs(step))
    return _counted(capture, int(abs(step)), kind, _between(start, stop, step), start)


def _grid(capture: Capture, axes: Sequence[tuple[Any, Any, Any]], sparse: bool) -> Any:
    """By NumPy's own rule: numbers of one dtype, each times the step and from the start on."""
    sizes = [_size(*axis) for axis in axes]
    if any(int(size) < 0 for size in sizes):
        return NotImplemented
    kind = np.result_type(0, *(abs(x) if isinstance(x, complex) else _plain(x) for axis in axes for x in axis))
    vectors = [
        _counted(capture, size, kind, _between(start, stop, step), start)
        for size, (start, stop, step) in zip(sizes, axes, strict=True)
    ]
    grid = [
        capture.perform(call_function, np.reshape, (v, tuple(-1 if axis == k else 1 for axis in range(len(axes)))), {})
        for k, v in enumerate(vectors)
    ]
    if sparse:
        return tuple(grid)
    whole = [capture.perform(call_function, np.broadcast_to, (v, tuple(sizes)), {}) for v in grid]
    return capture.perform(call_function, np.stack, (whole,), {}).astype(kind)


def _plain(x: Any) -> Any:
    return int(x) if isinstance(x, int) else x


def _size(start: Any, stop: Any, step: Any) -> int:
    if isinstance(step, complex):
        return int(abs(step))
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step == 1:
        size: int = stop - start
        return size
    return int(math.ceil((_plain(stop) - _plain(start)) / _plain(step)))


def _between(start: Any, stop: Any, step: Any) -> Any:
    """The step that an imaginary one, a count, stands for."""
    if not isinstance(step, complex):
        return _plain(step)
    count = int(abs(step))
    return (_plain(stop) - _plain(start)) / float(count - 1) if count != 1 else 1


def _counted(capture: Capture, size: int, kind: np.dtype[Any], step: Any, start: Any) -> Any:
    numbers = capture.perform(call_function, np.arange, (size,), {"dtype": kind})
    return numbers * step + _plain(start)


__all__ = ["of_grid"]

"""Windows that slide over an array: a view in NumPy, many of whose elements are the same place in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import ArrayType, Node, plain
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.numpy_api.arguments import as_axis, as_count
from jitlab.support.lazy_dataclass import dataclass

from .creation import numbers_along
from .indexing import Take
from .views import transpose


@dataclass(frozen=True)
class Windows:
    """The windows of `sizes` elements along `axes`, as new last axes: a step on the way from a base to what is seen.

    `shape` is the windows' own, of `len(base.shape) + len(sizes)` axes. They are only read: NumPy's are read-only.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    def of(self, base: Node) -> Node:
        """Their value: each element picked from where it lies in the base, in the kernel that reads it."""
        value = base
        for along, size in zip(self.axes, self.sizes, strict=True):
            places = ar.add(numbers_along(value.shape[along] - size + 1, 0, 2), numbers_along(size, 1, 2))
            value = apply(Take(along), value, places)
            value = transpose(value, [*(axis for axis in range(value.ndim) if axis != along + 1), along + 1])
        return value

    def strides(self, base: Sequence[int]) -> tuple[int, ...]:
        """Those of the windows, of those of the base."""
        return (*base, *(base[axis] for axis in self.axes))

    def view(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """NumPy's own view of a real array."""
        return np.lib.stride_tricks.sliding_window_view(array, plain(self.sizes), self.axes)


def sliding_window_view(
    x: ArrayType, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False
) -> list[Windows]:
    """The steps of `np.lib.stride_tricks.sliding_window_view`. Unsupported when they may be written into, or be a subclass."""
    if subok or writeable:
        raise Unsupported("argument_of", name="subok" if subok else "writeable")
    sizes = tuple(as_count(n) for n in (window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)))
    if any(int(n) < 0 for n in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes = tuple(range(x.ndim))
        if len(sizes) != x.ndim:
            raise ValueError(
                "Since axis is None, must provide window_shape for all dimensions of `x`; got "
                f"{len(sizes)} window_shape elements and `x.ndim` is {x.ndim}."
            )
    else:
        axes = tuple(as_axis(a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
        if len(sizes) != len(axes):
            raise ValueError(
                "Must provide matching length window_shape and axis; got "
                f"{len(sizes)} window_shape elements and {len(axes)} axes elements."
            )
    left = list(x.shape)
    for along, size in zip(axes, sizes, strict=True):
        left[along] = left[along] - size + 1
        if int(left[along]) < 1:
            raise ValueError("window shape cannot be larger than input array shape")
    return [Windows(axes, sizes, (*left, *sizes))]

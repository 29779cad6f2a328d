"""Windows that slide over an array: a view in NumPy, many of whose elements are the same place in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Extent, Node, plain
from jitlab.ops.base import Cost, Operation, Unsupported
from jitlab.ops.build_nodes import apply
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.numpy_api.arguments import as_axis, as_count
from jitlab.support.lazy_dataclass import dataclass

from .creation import numbers_along, zeros
from .indexing import ScatterAdd
from .views import transpose


class SlidingWindows(Operation):
    """The windows of `size` elements along `axis`, as a new last axis: element (…, i, …, j) is x[…, i + j, …].

    As a view it is read where it is used, and takes no memory: only how it moves along `axis` is no View's, of two axes.
    """

    axis: int
    size: int
    flops_per_element: ClassVar[float] = 0
    numpy_word: ClassVar[str] = "sliding_window_view"

    def __hash__(self) -> int:
        return hash((SlidingWindows, self.axis, self.size.expr if isinstance(self.size, Extent) else self.size))

    def numpy(self, x: Any) -> Any:
        return np.lib.stride_tricks.sliding_window_view(x, int(self.size), self.axis)

    def result(self, *types: ArrayType) -> ArrayType:
        (x,) = types
        windows = x.shape[self.axis] - self.size + 1
        return x.with_shape((*x.shape[: self.axis], windows, *x.shape[self.axis + 1 :], self.size))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        last = g.ndim - 1
        front = (self.axis, last, *(axis for axis in range(last) if axis != self.axis))
        places = ar.add(numbers_along(out.shape[self.axis], 0, 2), numbers_along(self.size, 1, 2))
        return [apply(ScatterAdd((self.axis,)), zeros(x.shape, x.dtype), transpose(g, front), places)]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, out.nbytes, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(0, 3), np.arange(7.0)
        yield cls(1, 2), np.arange(12.0).reshape(3, 4)
        yield cls(0, 1), np.arange(12).reshape(3, 4)
        yield cls(1, 4), np.arange(12, dtype=np.float32).reshape(3, 4)


@dataclass(frozen=True)
class Windows:
    """The windows of `sizes` elements along `axes`, as new last axes: a step on the way from a base to what is seen.

    `shape` is the windows' own, of `len(base.shape) + len(sizes)` axes. They are only read: NumPy's are read-only.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    def of(self, base: Node) -> Node:
        """Their value: each element read where it lies in the base, in the kernel that needs it."""
        value = base
        for along, size in zip(self.axes, self.sizes, strict=True):
            value = apply(SlidingWindows(along, size), value)
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

"""`x.flat` of a recorded array: its elements row by row, to be read, written, counted and gone through once."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from jitlab.capture.control.iterables import Combined, Counted, of_product
from jitlab.ir import Moving, Symbolic, plain, poly
from jitlab.ops.layout.views import Reshape

from .number import as_known
from .subscripts import assign, get_item, set_item
from .tensor import Tensor, no_value


class Flat(Combined):
    """The iterator over an array's elements, which are those of the array at the time they are asked for."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        parts = [Counted(0, n, 1) for n in x.type.shape]
        super().__init__(parts, lambda: (x[at] for at in itertools.product(*parts)), math.prod, of_product, lambda *at: x[at])

    def values(self) -> Tensor:
        """A copy of one axis."""
        x = self.x
        return x.capture.fresh(x.capture.graph.add(Reshape((x.type.size,)), x.node()))

    def taken(self) -> Tensor:
        """The elements that are left, all: there are none after that."""
        self.used_up(self.x.capture, True)  # type: ignore[arg-type]  # every capture is a Capture
        return self.values()

    def __len__(self) -> int:
        return int(self.x.size)

    def __getitem__(self, index: Any) -> Any:
        found = get_item(self.x.capture, self.x.reshape(-1), self._known(index))
        return found.copy() if found._cell is self.x._cell else found

    def __setitem__(self, index: Any, value: Any) -> None:
        x, capture, index = self.x, self.x.capture, self._known(index)
        place = self._place(index)
        if place is not None:
            return set_item(capture, x, place, self._fitting(get_item(capture, x, place), value))
        seen = x.reshape(-1)
        if seen._cell is x._cell:
            return set_item(capture, seen, index, self._fitting(get_item(capture, seen, index), value))
        changed = self.values()  # it lies otherwise in memory
        set_item(capture, changed, index, self._fitting(get_item(capture, changed, index), value))
        assign(capture, x, changed.reshape(x.shape), "unsafe")

    def _place(self, index: Any) -> tuple[Any, ...] | None:
        """The element of one number, along each axis; None for other subscripts."""
        capture, shape = self.x.capture, self.x.type.shape
        if isinstance(index, (int, np.integer)):
            index = int(index) + (int(self.x.size) if index < 0 else 0)
        elif not isinstance(index, Symbolic) or any(isinstance(n, Moving) for n in shape):
            return None
        number = poly(index.extent if isinstance(index, Symbolic) else index)
        bounds = capture.bounds
        if not bounds.proves_nonnegative(number) or not bounds.proves_nonnegative(poly(self.x.type.size) - number - poly(1)):
            return None
        return tuple(map(capture.integer, of_product(capture, index.extent if isinstance(index, Symbolic) else index, shape)))  # type: ignore[arg-type]

    def _known(self, index: Any) -> Any:
        """A subscript; what is no place, slice, or vector of places or truths is NumPy's to judge."""
        index = as_known(self.x.capture.deep_value(index))
        is_vector = isinstance(index, Tensor) and index.ndim < 2 and index.dtype.kind in "iub"
        is_list = type(index) is list and all(type(place) is int for place in index)
        is_place = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
        if self.x.is_scalar or not (is_vector or is_list or is_place or isinstance(index, (slice, Symbolic))):
            raise no_value(self.x, ".flat")
        return index

    def _fitting(self, target: Any, value: Any) -> Any:
        """What is stored: fewer elements would be repeated, and more left out."""
        value = self.x.capture.deep_value(value)
        is_real = self.x.dtype.kind != "c" and (not isinstance(value, Tensor) or value.dtype.kind != "c")
        if is_real and isinstance(value, (Tensor, bool, int, float)):
            if not isinstance(value, Tensor) or not value.ndim:
                return value
            shapes = plain(value.type.shape), plain(target.type.shape)
            if math.prod(shapes[0]) == math.prod(shapes[1]) and len(shapes[1]) == 1:
                return value.reshape(-1)
        raise no_value(self.x, ".flat")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise no_value(self.x, f".flat.{name}")


__all__ = ["Flat"]

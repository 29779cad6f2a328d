"""TensorArray: arrays of one shape, written one by one, also inside loops that are traced.

Each `write` gives a new TensorArray, to be bound to the name again. In a traced loop its elements are rows of one array, which
the loop carries; its size has to be known when the loop begins: as it was given, or from the bounds of the index written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.positions import describe, here
from jitlab.errors import ControlFlowValueError, Signal
from jitlab.ir import Symbolic

from .tensor import Tensor, current_capture


class Plan:
    """What is learnt of a TensorArray while a loop is traced: how many elements, of which type."""

    def __init__(self) -> None:
        self.size = 0
        self.element: tuple[tuple[int, ...], np.dtype[Any]] | None = None


class TensorArray:
    """Arrays of one shape that are written and read by number, also inside loops that are traced.

    Each `write` gives a new TensorArray; bind it to the name again.

    Args:
        dtype: of the elements; None: that of the first one written.
        size: how many elements there are, an int; 0 or None: as many as are written.
        dynamic_size: True: writing behind the last element makes it longer.
        clear_after_read: accepted, and of no effect: elements stay.
        tensor_array_name: accepted, and of no effect.
        infer_shape: accepted, and of no effect: elements have one shape.
        element_shape: of an element, a tuple; it is needed where elements are read before any is written.
        name: accepted, and of no effect.

    Raises:
        ControlFlowValueError: an element that nothing has given a shape yet is read, or scalars are concatenated.
        IndexError: an element outside its size is written or read.
        ValueError: an element of another dtype is written.

    Example:
        >>> @jl.function
        ... def squares(n):
        ...     found = jl.TensorArray(np.int64, size=n)
        ...     for i in range(n):
        ...         found = found.write(i, i * i)
        ...     return found.stack()
        >>> squares(4)
        array([0, 1, 4, 9])
    """

    def __init__(
        self, dtype: Any = None, size: Any = None, dynamic_size: bool | None = None, clear_after_read: bool | None = None,
        tensor_array_name: str | None = None, infer_shape: bool = True, element_shape: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self.element_shape = element_shape
        self._items: dict[int, Any] = {}
        self._rows: Any = None  # in a traced loop: the elements as one array
        self._size = 0 if size is None else int(size)
        self._plan = Plan()

    def _like(self, *, items: dict[int, Any] | None = None, rows: Any = None, size: int | None = None) -> TensorArray:
        new = TensorArray(self.dtype, self._size if size is None else size, self.dynamic_size, element_shape=self.element_shape)
        new._items = {} if items is None else items
        new._rows, new._plan = rows, self._plan
        return new

    # ---- elements
    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The TensorArray whose element `index` is `value`; bind it to the name again."""
        value = self._element(value)
        capture = current_capture()
        if self._rows is None and not _is_traced(index) and not (capture is not None and capture.blocks):
            number = int(index)
            self._check(number, growing=True)
            return self._like(items={**self._items, number: value}, size=max(self._size, number + 1))
        assert capture is not None
        self._plan.element = tuple(int(n) for n in np.shape(value)), self._dtype_of(value)
        if isinstance(index, Symbolic) or not _is_traced(index):
            most = capture.bounds.greatest(index.extent) if isinstance(index, Symbolic) else int(index)
        else:
            most = None
        if most is None or most >= self._size:
            if not self.dynamic_size:
                if most is None:
                    most = self._size - 1  # checked where it is written
                else:
                    self._check(most, growing=True)
            elif most is None or any(b.graph.name in ("then", "else") for b in capture.blocks):
                raise NotReplayable("data_dependent_shape", "tensor_array")
            self._plan.size = max(self._plan.size, most + 1)
        if self._rows is None or self._plan.size > self._size:
            raise Unprepared
        rows = self._rows.copy()
        rows[index] = value
        return self._like(rows=rows)

    def read(self, index: Any, name: str | None = None) -> Any:
        """The element with the number `index`."""
        if self._rows is None and _is_traced(index):
            return self.stack()[index]
        if self._rows is not None:
            return self._rows[index]
        number = int(index)
        self._check(number)
        if number not in self._items:
            return self._zero(number)
        return self._items[number]

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The TensorArray whose elements are the parts of `value` along its first axis."""
        return self._like(items={n: value[n] for n in range(len(value))}, size=len(value))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The TensorArray with the parts of `value` at the numbers `indices`."""
        new = self
        for place, number in enumerate(np.asarray(indices).tolist()):
            new = new.write(number, value[place])
        return new

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The TensorArray whose elements are consecutive stretches of `value`, as long as `lengths` says."""
        ends = np.cumsum(np.asarray(lengths)).tolist()
        return self._like(items={n: value[s:e] for n, (s, e) in enumerate(zip([0, *ends], ends, strict=False))}, size=len(ends))

    # ---- all of them
    def stack(self, name: str | None = None) -> Any:
        """The elements as one array."""
        if self._rows is not None:
            return self._rows.copy()
        if not self._size:
            return self._none_of(self.element_shape or ())
        return np.stack([self.read(n) for n in range(self._size)])

    def concat(self, name: str | None = None) -> Any:
        """The elements one after the other, along their first axis."""
        rows = self._rows
        elements = [self.read(n) for n in range(self._size)] if rows is None else []
        shape = self.element_shape if rows is None else rows.shape[1:]
        if any(np.ndim(element) == 0 for element in elements) or (shape is not None and len(shape) == 0):
            raise _misused("scalars of a TensorArray are concatenated.", "a scalar has no axis to join along", "take stack()")
        if rows is not None:
            return rows.reshape(rows.shape[0] * rows.shape[1], *rows.shape[2:])
        if elements:
            return np.concatenate(elements)
        if shape is None:
            raise _misused("a TensorArray of no elements is concatenated.", "what they would be like is not known", GIVE)
        return self._none_of(shape[1:])

    def gather(self, indices: Any, name: str | None = None) -> Any:
        """The elements with the numbers `indices`, as one array."""
        if self._rows is not None or isinstance(indices, Tensor):
            return np.take(self.stack(), indices, axis=0)
        return np.stack([self.read(n) for n in np.asarray(indices).tolist()])

    def size(self, name: str | None = None) -> int:
        """How many elements."""
        return self._size

    def identity(self) -> TensorArray:
        return self

    def close(self, name: str | None = None) -> None:
        """Forget the elements."""
        self._items, self._rows = {}, None

    def __repr__(self) -> str:
        return f"<TensorArray of {self._size}, dtype={self.dtype}>"

    # ---- in loops
    def rows(self) -> Any:
        """The elements as one array that a loop can carry; None while their type is not known."""
        if self._rows is not None:
            if self._plan.size <= self._size:
                return self._rows
            more = np.zeros((self._plan.size - self._size, *self._rows.shape[1:]), self._rows.dtype)
            return np.concatenate([self._rows, more])
        if self._items:
            first = next(iter(self._items.values()))
            self._plan.element = tuple(int(n) for n in np.shape(first)), self._dtype_of(first)
        if self._plan.element is None:
            return None
        shape, dtype = self._plan.element
        rows = np.zeros((max(self._size, self._plan.size), *shape), dtype)
        from jitlab.capture.numpy_calls.functions import call_function
        capture = current_capture()
        made = rows if capture is None else capture.perform(call_function, np.zeros, (rows.shape, dtype), {})
        for number, value in self._items.items():
            made[number] = value
        return made

    def with_rows(self, rows: Any) -> TensorArray:
        return self._like(rows=rows, size=int(rows.shape[0]))

    def _element(self, value: Any) -> Any:
        if self.dtype is not None and not isinstance(value, Tensor):
            return np.asarray(value, self.dtype)[()]
        if self.dtype is not None and value.dtype != self.dtype:
            if value.weak is None:
                raise ValueError(f"a TensorArray of {self.dtype} is written an element of {value.dtype}")
            return value.astype(self.dtype)
        return value

    def _dtype_of(self, value: Any) -> np.dtype[Any]:
        return self.dtype if self.dtype is not None else value.dtype if isinstance(value, Tensor) else np.asarray(value).dtype

    def _zero(self, number: int) -> Any:
        if self._items:
            first = next(iter(self._items.values()))
            return np.zeros(np.shape(first), self._dtype_of(first))[()]
        if self.element_shape is not None and None not in self.element_shape:
            return np.zeros(tuple(self.element_shape), self.dtype)[()]
        raise _misused(f"element {number} of a TensorArray is read before it is written.", "its shape is not known yet", GIVE)

    def _none_of(self, shape: Sequence[int | None]) -> Any:
        """No elements of this shape, which has to be known."""
        if None in shape:
            raise _misused("a TensorArray of no elements becomes an array.", "its element_shape leaves a size open", GIVE)
        return np.zeros((0, *shape), self.dtype or np.float32)

    def _check(self, number: int, growing: bool = False) -> None:
        if number < 0 or (number >= self._size and not (growing and self.dynamic_size)):
            raise IndexError(f"index {number} is outside a TensorArray of {self._size} elements that does not grow")


class Unprepared(Signal):
    """A TensorArray is written in a loop before its elements are one array: the body is traced again with them so."""


GIVE = "write one first, or give element_shape with every size"


def _misused(what: str, why: str, hint: str) -> ControlFlowValueError:
    return ControlFlowValueError(what, where=describe(here()), why=why, hint=hint)


def _is_traced(x: Any) -> bool:
    return isinstance(x, (Tensor, Symbolic))


__all__ = ["TensorArray", "Unprepared"]

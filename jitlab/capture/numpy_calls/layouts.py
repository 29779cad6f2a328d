"""How arrays lie in memory: the order of their axes, which results have of their operands, and what hangs on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.support.lazy_dataclass import dataclass

Strides = tuple[int, ...]

_WRITEABLE = 0x400  # in the flags' number, of NumPy's C interface
_ONE_BYTE = np.empty(1, np.int8)


def is_writeable(array: np.ndarray[Any, Any]) -> bool:
    """`flags.writeable`, without the warning that NumPy gives to who reads it of what np.broadcast_arrays gave."""
    return bool(array.flags.num & _WRITEABLE)


@dataclass(frozen=True)
class Layout:
    """What a trace needs of an input: its axes lie in this order, one in another; `exact`: they are as far apart, too."""

    input: int
    strides: Strides  # in bytes
    shape: tuple[int, ...]
    exact: bool
    is_rows: bool  # C contiguous

    @classmethod
    def of(cls, input: int, array: np.ndarray[Any, Any], exact: bool) -> Layout:
        return cls(input, array.strides, array.shape, exact, array.flags.c_contiguous)

    def fits(self, array: np.ndarray[Any, Any]) -> bool:
        return array.strides == self.strides or (not self.exact and self.order == order_of(array.strides, self.shape))

    @property
    def order(self) -> tuple[int, ...]:
        return order_of(self.strides, self.shape)


def c_strides(shape: Sequence[int]) -> Strides:
    """In elements, row by row."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(int(n), 1)
    return tuple(reversed(strides))


def order_of(strides: Strides, shape: Sequence[int]) -> tuple[int, ...]:
    """The axes that are longer than one, from the widest steps to the narrowest; of equal ones the first, as in C order.
    Axes along which an element is repeated stand behind a bar."""
    long = [axis for axis, n in enumerate(shape) if int(n) > 1]
    repeated = [axis for axis in long if not strides[axis]]
    moving = sorted((axis for axis in long if strides[axis]), key=lambda axis: -abs(strides[axis]))
    return (*moving, -1, *repeated) if repeated else tuple(moving)


def in_order(order: Sequence[int], shape: Sequence[int]) -> Strides | None:
    """Strides of a new array whose axes lie in that order; None: row by row."""
    if list(order) == sorted(order):
        return None
    strides, step = [0] * len(shape), 1
    for axis in (*reversed(order), *(a for a in range(len(shape)) if a not in order)):
        strides[axis] = step
        step *= max(int(shape[axis]), 1)
    return tuple(strides)


def found_strides(array: np.ndarray[Any, Any], shape: Sequence[int]) -> Strides | None:
    """Strides of a new array of this shape that lies as NumPy's own does: its axes in that order, one behind the other, or as
    far apart as they are where elements of others lie between them (each array of `np.nonzero(m)`). None: row by row."""
    order = order_of(array.strides, array.shape)
    if -1 in order:
        return None
    dense = in_order(order, array.shape) or c_strides(array.shape)
    found = tuple(by // array.itemsize for by in array.strides)
    has_gaps = any(n > 1 and a != b for n, a, b in zip(array.shape, found, dense, strict=True)) and array.size > 1
    return found if has_gaps else in_order(order, shape)


def f_strides(shape: Sequence[int]) -> Strides | None:
    """Column by column."""
    return in_order([axis for axis in range(len(shape) - 1, -1, -1) if int(shape[axis]) != 1], shape)


def is_in_rows(strides: Strides, shape: Sequence[int]) -> bool:
    """NumPy calls it C contiguous."""
    return 0 in shape or all(n == 1 or s == c for n, s, c in zip(shape, strides, c_strides(shape), strict=True))


def is_in_columns(strides: Strides, shape: Sequence[int]) -> bool:
    """NumPy calls it F contiguous."""
    return is_in_rows(strides[::-1], shape[::-1])


def ghost(shape: Sequence[int], strides: Strides) -> np.ndarray[Any, Any]:
    """An array of the same layout, of at most two elements an axis, to ask NumPy about. Nobody may touch its elements."""
    return np.lib.stride_tricks.as_strided(_ONE_BYTE, [min(int(n), 2) for n in shape], strides)


def kept_strides(operands: Sequence[tuple[Sequence[int], Strides]], shape: Sequence[int]) -> Strides | None:
    """Of an elementwise result, which keeps its operands' order of axes."""
    ghosts = [ghost(n, strides) for n, strides in operands if n]
    flags: Any = [*(["readonly"] for _ in ghosts), ["writeonly", "allocate"]]
    iterator = np.nditer([*ghosts, None], ["zerosize_ok"], flags, order="K")
    return in_order(order_of(iterator.operands[-1].strides, shape), shape)


def like_strides(shape: Sequence[int], strides: Strides, new: Sequence[int]) -> Strides | None:
    """Of a copy that keeps the order of axes (`np.empty_like`), also under another shape."""
    kept = np.empty_like(np.lib.stride_tricks.as_strided(_ONE_BYTE, [2] * len(shape), strides)).strides
    return in_order(order_of(kept, new), new)


def reshaped_strides(shape: tuple[int, ...], strides: Strides, new: tuple[int, ...]) -> Strides | None:
    """Strides after a reshape without copy, None when NumPy would copy. Asks NumPy, about memory nobody touches."""
    if 0 in shape:
        return c_strides(new)
    whole = np.lib.stride_tricks.as_strided(_ONE_BYTE, shape, strides)
    try:
        return whole.reshape(new, copy=False).strides
    except ValueError:
        return None


def stand_in(shape: Sequence[int], strides: Strides, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A real array of that layout for a function of NumPy's to work on: ones on the diagonals of matrices, else zeros."""
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    made = np.zeros([int(shape[axis]) if strides[axis] else 1 for axis in order], dtype).transpose(np.argsort(order))
    if len(shape) > 1:
        diagonal = range(min(made.shape[-2:]))
        made[..., diagonal, diagonal] = 1
    return np.broadcast_to(made, shape) if 0 in strides else made

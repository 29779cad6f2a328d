"""Rules for what gives a view in NumPy: the steps, each a View, a Reshape or Windows, from a base of a known type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ir import ArrayType, Extent, Moving, Node, NotRolled, as_length, at_least, fixed, is_one, poly, same_extent
from jitlab.ops.base import Operation, Unsupported, shape_text
from jitlab.ops.layout.concatenation import part_view
from jitlab.ops.layout.views import (
    Reshape,
    View,
    broadcast_view,
    expand_dims_view,
    identity_map,
    normalize_axis,
    squeeze_view,
    transpose_view,
)
from jitlab.ops.layout.windows import Windows, sliding_window_view

from .arguments import as_axis, as_count, as_shape

Steps = list[Operation]
#: Steps to apply in turn (none: the array itself), or a list of those for functions that give several views;
#: None: no view for this type, ask FUNCTIONS, METHODS or ATTRIBUTES instead.
ViewRule = Callable[..., "Steps | list[Windows] | list[Steps] | None"]


def transpose(x: ArrayType, axes: Any = None) -> Steps:
    if axes is not None and not isinstance(axes, (list, tuple, np.ndarray)):
        axes = (axes,)
    order = None if axes is None else [_axis(a) for a in axes]
    if order is not None and len(order) != x.ndim:
        raise ValueError("axes don't match array")
    if order is not None and len({normalize_axis(a, x.ndim) for a in order}) != x.ndim:
        raise ValueError("repeated axis in transpose")
    return [transpose_view(x, order)]


def transpose_method(x: ArrayType, *axes: Any) -> Steps:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (list, tuple))):
        return transpose(x, axes[0])
    return transpose(x, axes or None)


def matrix_transpose(x: ArrayType, /) -> Steps:
    if x.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return swapaxes(x, -1, -2)


def transpose_of_matrices(x: ArrayType, /) -> Steps:
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


def linalg_diagonal(x: ArrayType, /, *, offset: Any = 0) -> Steps:
    if x.ndim < 2:
        return diagonal(x)  # refused
    return diagonal(x, offset, -2, -1)


def swapaxes(x: ArrayType, axis1: Any, axis2: Any) -> Steps:
    a, b = as_axis(axis1, x.ndim), as_axis(axis2, x.ndim)
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return [transpose_view(x, order)]


def expand_dims(x: ArrayType, axis: Any) -> Steps:
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return [expand_dims_view(x, [_axis(a) for a in axes])]


def squeeze(x: ArrayType, axis: Any = None) -> Steps:
    if axis is None:
        return [squeeze_view(x)] if any(is_one(n) for n in x.shape) else []
    axes = axis if isinstance(axis, tuple) else (axis,)
    if x.ndim == 0 and not isinstance(axis, tuple) and _axis(axis) in (0, -1):
        return []
    if len({normalize_axis(a, x.ndim) for a in axes}) < len(axes):
        raise ValueError("duplicate value in 'axis'")
    return [squeeze_view(x, [_axis(a) for a in axes])]


def reshape(x: ArrayType, /, shape: Any = None, order: Any = "C", *, copy: Any = None) -> Steps | None:
    if copy not in (None, False):
        return None
    if shape is None:
        raise TypeError("reshape() missing 1 required positional argument: 'shape'")
    if order == "F":
        target = _new_shape(x, shape)
        flipped = transpose_view(x)
        there = ArrayType(target[::-1], x.dtype)
        return [flipped, Reshape(target[::-1]), transpose_view(there)]
    if order != "C":
        raise Unsupported("argument_of", name="order")
    return [Reshape(_new_shape(x, shape))]


def reshape_method(x: ArrayType, *shape: Any, order: Any = "C", copy: Any = None) -> Steps | None:
    if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)):
        return reshape(x, shape[0], order, copy=copy)
    if not shape:
        raise TypeError("reshape() takes exactly 1 argument (0 given)")
    return reshape(x, shape, order, copy=copy)


def _new_shape(x: ArrayType, shape: Any) -> tuple[int, ...]:
    """The shape asked for, -1 worked out. Raises ValueError as NumPy does."""
    if isinstance(shape, Node):
        raise Unsupported("traced_shape", "data_dependent")
    given = [as_count(n) for n in shape] if isinstance(shape, (tuple, list, np.ndarray)) else [as_count(shape)]
    open_axes = [axis for axis, n in enumerate(given) if int(n) < 0]
    if len(open_axes) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = math.prod(n for n in given if int(n) >= 0)
    if any(isinstance(n, Moving) for n in (known, x.size)):
        if open_axes:
            given[open_axes[0]] = as_length(x.size // known)  # refused where that is no polynomial
        else:
            same_extent(known, x.size)
        return tuple(given)
    misfit = f"cannot reshape array of size {int(x.size)} into shape {shape_text(given).replace('-1', 'newaxis')}"
    if open_axes:
        if int(known) == 0 or int(x.size) % int(known):
            raise ValueError(misfit)
        rest = x.size // known
        given[open_axes[0]] = rest if int(rest) * int(known) == int(x.size) else int(x.size) // int(known)
    elif int(known) != int(x.size):
        raise ValueError(misfit)
    return tuple(given)


def ravel(x: ArrayType, order: Any = "C") -> Steps:
    if order in ("C", "K", "A"):
        return [] if x.ndim == 1 else [Reshape((x.size,))]
    if order == "F":
        return [transpose_view(x), Reshape((x.size,))]
    raise Unsupported("argument_of", name="order")


def flip(x: ArrayType, axis: Any = None) -> Steps:
    axes = range(x.ndim) if axis is None else _axes(axis, x.ndim)
    entries = tuple((n - 1 if int(n) else 0, -1, a) if a in axes else (0, 1, a) for a, n in enumerate(x.shape))
    return [View(entries, x.shape)]


def rot90(x: ArrayType, k: Any = 1, axes: Any = (0, 1)) -> Steps:
    a, b = axes
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    if a == b or abs(a - b) == x.ndim:
        raise ValueError("Axes must be different.")
    if not (-x.ndim <= a < x.ndim and -x.ndim <= b < x.ndim):
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={x.ndim}.")
    a, b, k = normalize_axis(a, x.ndim), normalize_axis(b, x.ndim), (k if isinstance(k, float) else operator.index(k)) % 4
    if k == 0:
        return [View(identity_map(x.ndim), x.shape)]
    if k == 2:
        return flip(x, (a, b))
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    turned = transpose_view(x, order)
    if k == 1:
        return [*flip(x, b), turned]
    return [turned, *flip(ArrayType(turned.shape, x.dtype), b)]


def broadcast_to(x: ArrayType, shape: Any, subok: Any = False) -> Steps:
    return [broadcast_view(x, as_shape(shape))]


def diagonal(x: ArrayType, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Steps:
    return [diagonal_view(x, offset, axis1, axis2)]


def diagonal_view(x: ArrayType, offset: Any, axis1: Any, axis2: Any) -> View:
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    a, b, k = as_axis(axis1, x.ndim), as_axis(axis2, x.ndim), operator.index(offset)
    if a == b:
        raise ValueError("axis1 and axis2 cannot be the same")
    down, right = max(-k, 0), max(k, 0)
    rows, columns = x.shape[a] - down, x.shape[b] - right
    length = rows if at_least(columns - rows, 0) else columns
    rest = [axis for axis in range(x.ndim) if axis not in (a, b)]
    length = length if at_least(length, 1) else 0
    entries: list[tuple[int, int, int | None]] = []
    for axis in range(x.ndim):
        if axis in (a, b):
            start = down if axis == a else right
            entries.append((start if int(length) else 0, 1, len(rest)))
        else:
            entries.append((0, 1, rest.index(axis)))
    return View(tuple(entries), (*(x.shape[axis] for axis in rest), length))


def atleast(ndim: int) -> ViewRule:
    def rule(x: ArrayType, *others: Any) -> Steps:
        if others:
            raise Unsupported("several_arrays")
        if x.ndim >= ndim:
            return []
        if ndim == 3:
            return [expand_dims_view(x, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.ndim])]
        return [expand_dims_view(x, tuple(range(ndim - x.ndim)))]

    return rule


def array_split(x: ArrayType, indices_or_sections: Any, axis: Any = 0) -> list[Steps]:
    axis = as_axis(axis, x.ndim)
    n = x.shape[axis]
    if not fixed(n):
        raise NotRolled("extents", "moving_split", length=poly(n))
    bounds = _bounds(indices_or_sections, n)
    if bounds is None:
        sections = as_count(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        if isinstance(n // sections, Extent) and int(n) % int(sections) == 0:
            return [[part_view(x, axis, (n // sections) * i, n // sections)] for i in range(int(sections))]
        each, extras = divmod(int(n), int(sections))
        starts = [0]
        for i in range(int(sections)):
            starts.append(starts[-1] + each + (i < extras))
        return [[part_view(x, axis, a, b - a)] for a, b in zip(starts, starts[1:], strict=False)]
    from jitlab.ops.layout.indexing import slice_extents

    parts: list[Steps] = []
    for low, high in zip([0, *bounds], [*bounds, n], strict=True):
        start, length, _ = slice_extents(slice(low, high), n)
        parts.append([part_view(x, axis, start, length)])
    return parts


def _bounds(indices_or_sections: Any, n: int) -> list[int] | None:
    if isinstance(indices_or_sections, Node):
        raise Unsupported("traced_sections", "data_dependent")
    if isinstance(indices_or_sections, (list, tuple, np.ndarray)):
        return [as_count(i) for i in indices_or_sections]
    return None


def diag(x: ArrayType, k: Any = 0) -> Steps | None:
    return diagonal(x, k) if x.ndim == 2 else None


def real(x: ArrayType, **options: Any) -> Steps | None:
    """The real part of real numbers is the array itself."""
    return None if x.dtype.kind == "c" else []


def conj_of_real(x: ArrayType, **options: Any) -> Steps | None:
    """`x.conj()` of real numbers is the array itself (`np.conj(x)` is a new one)."""
    return None if x.dtype.kind == "c" or options else []


def _axis(axis: Any) -> int:
    if isinstance(axis, Node):
        raise Unsupported("traced_axis", "data_dependent")
    return operator.index(axis)


def _axes(axis: Any, ndim: int) -> list[int]:
    axes = [as_axis(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ValueError("repeated axis")
    return axes


VIEWS: dict[Any, ViewRule] = {
    np.transpose: transpose,
    np.matrix_transpose: transpose_of_matrices,
    np.linalg.matrix_transpose: transpose_of_matrices,
    np.linalg.diagonal: linalg_diagonal,
    np.permute_dims: transpose,
    np.swapaxes: swapaxes,
    np.expand_dims: expand_dims,
    np.squeeze: squeeze,
    np.reshape: reshape,
    np.ravel: ravel,
    np.rot90: rot90,
    np.broadcast_to: broadcast_to,
    np.diagonal: diagonal,
    np.atleast_1d: atleast(1),
    np.atleast_2d: atleast(2),
    np.atleast_3d: atleast(3),
    np.array_split: array_split,
    np.real: real,
    np.real_if_close: real,
    np.diag: diag,
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
}

def to_device(x: ArrayType, device: Any, /, *, stream: Any = None) -> Steps:
    if stream is not None:
        raise ValueError("The stream argument in to_device() is not supported")
    if device != "cpu":
        raise ValueError(f"Unsupported device: {device}. Only 'cpu' is accepted.")
    return []


VIEW_METHODS: dict[str, ViewRule] = {
    "to_device": to_device,
    "transpose": transpose_method,
    "swapaxes": swapaxes,
    "squeeze": squeeze,
    "reshape": reshape_method,
    "ravel": ravel,
    "diagonal": diagonal,
    "conj": conj_of_real,
    "conjugate": conj_of_real,
}

VIEW_ATTRIBUTES: dict[str, ViewRule] = {
    "T": transpose,
    "mT": matrix_transpose,
    "real": real,
}

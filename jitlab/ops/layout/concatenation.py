"""Arrays put together: concatenate, and what NumPy makes of it: stack, pad, tile, repeat, roll."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Extent, Node, NotRolled, fixed, poly, same_extent, same_shape
from jitlab.ops.base import Operation
from jitlab.ops.build_nodes import apply, as_node, cast, constant, dtype_of, result_dtype

from .creation import fill
from .views import (
    Update,
    View,
    broadcast_to,
    expand_dims,
    identity_map,
    normalize_axis,
    reshape,
)

INT64 = np.dtype("i8")


class Concatenate(Operation):
    """The inputs one after the other along `axis`."""

    axis: int
    tf_name: ClassVar[str | None] = "ConcatV2"
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return np.concatenate(arrays, axis=self.axis)

    def result(self, *types: ArrayType) -> ArrayType:
        first = types[0]
        if first.ndim == 0:
            raise ValueError("zero-dimensional arrays cannot be concatenated")
        for position, other in enumerate(types):
            if other.ndim != first.ndim:
                raise ValueError(
                    f"all the input arrays must have same number of dimensions, but the array at index 0 has {first.ndim} "
                    f"dimension(s) and the array at index {position} has {other.ndim} dimension(s)"
                )
            for axis, (m, n) in enumerate(zip(first.shape, other.shape, strict=True)):
                if axis != self.axis and not same_extent(m, n):
                    raise ValueError(
                        "all the input array dimensions except for the concatenation axis must match exactly, but along "
                        f"dimension {axis}, the array at index 0 has size {int(m)} and the array at index {position} has "
                        f"size {int(n)}"
                    )
        shape = list(first.shape)
        for axis in range(first.ndim):  # a symbol where one input has one: it is the more general
            shape[axis] = next((t.shape[axis] for t in types if hasattr(t.shape[axis], "expr")), shape[axis])
        shape[self.axis] = sum(t.shape[self.axis] for t in types)
        return ArrayType(tuple(shape), first.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return split(g, self.axis, [x.shape[self.axis] for x in inputs])

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.arange(6.0).reshape(2, 3)
        yield cls(0), x, 2 * x[:1], -x
        yield cls(1), x, 2 * x[:, :0], -x[:, :2]


def concatenate(parts: Sequence[Node], axis: int | None, dtype: Any = None) -> Node:
    """`np.concatenate(parts, axis, dtype=dtype)`."""
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        parts, axis = [reshape(x, (x.type.size,)) for x in parts], 0
    if parts[0].ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = normalize_axis(axis, parts[0].ndim)
    common = result_dtype(*parts) if dtype is None else np.dtype(dtype)
    return apply(Concatenate(axis), *(cast(x, common) for x in parts))


def split(x: Node, axis: int, lengths: Sequence[int]) -> list[Node]:
    """Consecutive parts of x."""
    parts, start = [], 0
    for n in lengths:
        parts.append(apply(part_view(x.type, axis, start, n), x))
        start = n + start
    return parts


def part_view(x: ArrayType, axis: int, start: int, length: int) -> View:
    """The view of x[..., start:start + length, ...]."""
    entries = tuple((start if a == axis else 0, 1, a) for a in range(x.ndim))
    return View(entries, (*x.shape[:axis], length, *x.shape[axis + 1 :]))


def stack(parts: Sequence[Node], axis: int, dtype: Any = None) -> Node:
    """`np.stack(parts, axis, dtype=dtype)`."""
    if not parts:
        raise ValueError("need at least one array to stack")
    if not all(same_shape(x.shape, parts[0].shape) for x in parts):
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(x, (axis,)) for x in parts], axis, dtype)


def array(value: Any, dtype: Any = None) -> Node:
    """`np.array(value, dtype)` of nested lists of nodes and numbers."""
    if isinstance(value, Node):
        return value if dtype is None else cast(value, dtype)
    leaves = list(_leaves(value))
    if not any(isinstance(leaf, (Node, Extent)) for leaf in leaves):
        return constant(value, dtype)
    if dtype is None:
        dtype = np.result_type(*(INT64 if isinstance(leaf, Extent) else dtype_of(leaf) for leaf in leaves))
    return _nested(value, np.dtype(dtype))


def _nested(value: Any, dtype: np.dtype) -> Node:
    if not isinstance(value, (list, tuple)):
        return as_node(value, dtype)
    if not any(isinstance(leaf, (Node, Extent)) for leaf in _leaves(value)):
        return constant(value, dtype)
    parts = [_nested(part, dtype) for part in value]
    if not all(same_shape(part.shape, parts[0].shape) for part in parts):
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions."
        )
    return stack(parts, 0)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def pad(x: Node, widths: Sequence[tuple[int, int]], values: Sequence[tuple[Any, Any]]) -> Node:
    """`np.pad` of constants: later axes are written over earlier ones, as NumPy does."""
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, widths, strict=True))
    common = values[0][0] if values else 0
    result = fill(shape, common, x.dtype)
    inside = tuple((before, 1, axis) for axis, (before, _) in enumerate(widths))
    result = apply(Update(inside, x.shape), result, x)
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, values, strict=True)):
        for start, length, value in ((0, before, low), (before + x.shape[axis], after, high)):
            if value is not common and length:
                region = part_view(result.type, axis, start, length)
                result = apply(Update(region.map, region.shape), result, fill(region.shape, value, x.dtype))
    return result


def repeat(x: Node, count: int, axis: int | None) -> Node:
    """`np.repeat(x, count, axis)` for one count."""
    count = operator.index(count)
    if count < 0:
        raise ValueError("repeats may not contain negative values.")
    if axis is None:
        x, axis = reshape(x, (x.type.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    shape = x.shape
    wide = broadcast_to(expand_dims(x, (axis + 1,)), (*shape[: axis + 1], count, *shape[axis + 1 :]))
    return reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def tile(x: Node, counts: Sequence[int]) -> Node:
    """`np.tile(x, counts)`."""
    counts = (1,) * (x.ndim - len(counts)) + tuple(counts)
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    x = expand_dims(x, tuple(range(len(counts) - x.ndim)))
    pairs = tuple(itertools.chain.from_iterable(zip(counts, shape, strict=True)))
    wide = broadcast_to(expand_dims(x, tuple(range(0, 2 * len(counts), 2))), pairs)
    return reshape(wide, tuple(n * count for n, count in zip(shape, counts, strict=True)))


def roll(x: Node, shift: int, axis: int | None) -> Node:
    """`np.roll(x, shift, axis)` for one shift."""
    if axis is None:
        return reshape(roll(reshape(x, (x.type.size,)), shift, 0), x.shape)
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if not fixed(n):
        raise NotRolled("extents", "moving_axis", name="np.roll", length=poly(n))
    if int(n) == 0 or shift % int(n) == 0:
        return x
    whole = shift - shift % int(n)  # a multiple of n: shifts beyond the length wrap
    first = n - (shift - whole)
    return concatenate(split(x, axis, [first, shift - whole])[::-1], axis)


def diagonal_of(v: Node, k: int) -> Node:
    """`np.diag(v, k)` of a vector: a matrix with it on the k-th diagonal."""
    n = v.shape[0] + abs(k)
    diagonal = ((max(-k, 0), 1, 0), (max(k, 0), 1, 0))
    return apply(Update(diagonal, v.shape), fill((n, n), 0, v.dtype), v)


def whole(x: ArrayType) -> View:
    """x seen as it is."""
    return View(identity_map(x.ndim), x.shape)

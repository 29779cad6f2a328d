"""Views, relabellings and updates: how arrays share memory in NumPy, made functional."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Extent, Moving, Node, alike, at_least, is_one, plain, same_extent, same_shape
from jitlab.ops.base import Cost, Operation, shape_text
from jitlab.ops.build_nodes import apply

#: One entry for each base axis: (offset, step, axis of the view that runs along it, or None for a fixed position).
AxisMap = tuple[tuple[int, int, int | None], ...]


#: How a program writes each kind of view.
VIEW_WORDS = {
    "StridedSlice": "[...]", "Slice": "[...]", "ExpandDims": "[None]", "BroadcastTo": "broadcast_to", "Transpose": "transpose",
}  # fmt: skip


def _by_origin(n: Any) -> Any:
    return n.expr if isinstance(n, Extent) else n


class View(Operation):
    """Part of a base, seen through strides: slices, elements, transposes, flips, new axes, broadcasts and compositions."""

    map: AxisMap
    shape: tuple[int, ...]
    flops_per_element: ClassVar[float] = 0

    @property
    def name(self) -> str:
        """TensorFlow's name for what this view is."""
        axes = [axis for _, _, axis in self.map]
        full = all(offset == 0 and step == 1 for offset, step, axis in self.map if axis is not None)
        if None in axes or not full:
            return "StridedSlice"
        used = [axis for axis in axes if axis is not None]
        rest = [n for axis, n in enumerate(self.shape) if axis not in used]
        if used == sorted(used):
            return "BroadcastTo" if any(n != 1 for n in rest) else "ExpandDims" if rest else "Slice"
        return "Transpose"

    @property
    def word(self) -> str:
        return VIEW_WORDS[self.name]

    def __hash__(self) -> int:  # by what sizes come from: nobody asks for their values
        return hash((View, *(tuple(map(_by_origin, entry)) for entry in self.map), *map(_by_origin, self.shape)))

    def numpy(self, x: Any) -> Any:
        """A NumPy view (0-d: an element)."""
        x = np.asarray(x)
        strides = [0] * len(self.shape)
        start: list[Any] = []
        empty = 0 in plain(self.shape)
        for (offset, step, axis), stride in zip(self.map, x.strides, strict=True):
            start.append(slice(0 if empty else int(offset), None))
            if axis is not None:
                strides[axis] += stride * int(step)
        base = x[tuple(start)] if start else x
        return np.lib.stride_tricks.as_strided(base, plain(self.shape), strides)[()]

    def result(self, *types: ArrayType) -> ArrayType:
        (x,) = types
        assert len(self.map) == x.ndim, f"a view of {len(self.map)} axes over {x}"
        return ArrayType(self.shape, x.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        from jitlab.ops.reducing.axis_reductions import Sum

        from .creation import zeros

        (x,) = inputs
        used = {axis for _, _, axis in self.map}
        summed = tuple(axis for axis, n in enumerate(self.shape) if axis not in used and not is_one(n))
        if summed:  # a broadcast: sum over the axes that repeat
            g = expand_dims(apply(Sum(summed), g), summed)
        shape = tuple(1 if axis in summed else n for axis, n in enumerate(self.shape))
        return [apply(Update(self.map, shape), zeros(x.shape, x.dtype), g)]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, out.nbytes, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.arange(12.0).reshape(3, 4)
        yield cls(((0, 1, 1), (0, 1, 0)), (4, 3)), x
        yield cls(((2, -1, 0), (1, 2, 1)), (3, 2)), x
        yield cls(((1, 1, None), (0, 1, 1)), (1, 4)), x

    def __str__(self) -> str:
        return f"{self.name}[{_map_text(self.map)}]"


class Update(Operation):
    """The base with the mapped region replaced by a value of shape `shape`: the only way an array changes."""

    map: AxisMap
    shape: tuple[int, ...]
    numpy_word: ClassVar[str] = "[...] ="
    tf_name: ClassVar[str | None] = "TensorScatterUpdate"
    flops_per_element: ClassVar[float] = 0

    def numpy(self, base: Any, value: Any) -> Any:
        result = np.array(base)
        view = View(self.map, self.shape).numpy(result) if 0 not in plain(self.shape) else None
        if view is not None:
            if np.ndim(view) == 0:
                result[tuple(int(offset) for offset, _, _ in self.map)] = value
            else:
                view[...] = value
        return result[()]

    def result(self, *types: ArrayType) -> ArrayType:
        base, value = types
        assert base.dtype == value.dtype, f"an update of {base} with {value}"
        assert alike(value.shape, self.shape), f"an update of a region {plain(self.shape)} with {value}"
        return base

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        from .creation import zeros

        _, value = inputs
        taken = apply(View(self.map, self.shape), g)  # before it is written over, so that the update can be in place
        return [apply(Update(self.map, self.shape), g, zeros(value.shape, g.dtype)), taken]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        _, value = types
        return Cost(0, value.nbytes, value.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.arange(12.0).reshape(3, 4)
        yield cls(((0, 2, 0), (1, 1, 1)), (2, 3)), x, np.full((2, 3), 7.0)

    def __str__(self) -> str:
        return f"{self.name}[{_map_text(self.map)}]"


class Reshape(Operation):
    """The same elements in C order under another shape."""

    shape: tuple[int, ...]
    flops_per_element: ClassVar[float] = 0

    def __hash__(self) -> int:
        return hash((Reshape, *map(_by_origin, self.shape)))

    def numpy(self, x: Any) -> Any:
        return np.reshape(x, plain(self.shape))[()]

    def result(self, *types: ArrayType) -> ArrayType:
        (x,) = types
        assert alike((x.size,), (math.prod(self.shape),)), f"{x} as shape {plain(self.shape)}"
        return x.with_shape(self.shape)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return [reshape(g, x.shape)]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls((4, 3)), np.arange(12.0).reshape(3, 4)


def identity_map(ndim: int) -> AxisMap:
    return tuple((0, 1, axis) for axis in range(ndim))


def compose(outer: View, inner: View) -> View:
    """The one view that `outer` of `inner` is."""
    entries: list[tuple[int, int, int | None]] = []
    for offset, step, axis in inner.map:
        if axis is None:
            entries.append((offset, step, None))
            continue
        offset2, step2, axis2 = outer.map[axis]
        entries.append((offset + offset2 * step, step * step2, axis2))
    return View(tuple(entries), outer.shape)


def transpose_view(x: ArrayType, axes: Sequence[int] | None = None) -> View:
    """The view of `np.transpose(x, axes)`."""
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple(normalize_axis(a, x.ndim) for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise ValueError("axes don't match array")
    where = {axis: position for position, axis in enumerate(order)}
    return View(tuple((0, 1, where[axis]) for axis in range(x.ndim)), tuple(x.shape[axis] for axis in order))


def expand_dims_view(x: ArrayType, axes: Sequence[int]) -> View:
    """The view of `np.expand_dims(x, axes)`."""
    ndim = x.ndim + len(axes)
    new = {normalize_axis(axis, ndim) for axis in axes}
    if len(new) != len(axes):
        raise ValueError("repeated axis")
    old = [axis for axis in range(ndim) if axis not in new]
    shape: list[int] = [1] * ndim
    for axis, n in zip(old, x.shape, strict=True):
        shape[axis] = n
    return View(tuple((0, 1, axis) for axis in old), tuple(shape))


def squeeze_view(x: ArrayType, axes: Sequence[int] | None = None) -> View:
    """The view of `np.squeeze(x, axes)`."""
    ones = range(x.ndim) if axes is None else [normalize_axis(a, x.ndim) for a in axes]
    gone = {axis for axis in ones if axes is not None or _is_always_one(x.shape[axis])}
    if not all(_is_always_one(x.shape[axis]) for axis in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    kept = [axis for axis in range(x.ndim) if axis not in gone]
    entries = tuple((0, 1, kept.index(axis)) if axis in kept else (0, 1, None) for axis in range(x.ndim))
    return View(entries, tuple(x.shape[axis] for axis in kept))


def broadcast_view(x: ArrayType, shape: Sequence[int]) -> View:
    """The view of `np.broadcast_to(x, shape)`."""
    shape = tuple(shape)
    extra = len(shape) - x.ndim
    if extra < 0 or not all(is_one(n) or same_extent(n, m) for n, m in zip(x.shape, shape[extra:], strict=True)):
        raise ValueError(
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{plain(x.shape)} and requested shape {plain(shape)}"
        )
    entries: list[tuple[int, int, int | None]] = []
    for axis, n in enumerate(x.shape):
        repeated = is_one(n) and not is_one(shape[axis + extra])
        entries.append((0, 1, None) if repeated else (0, 1, axis + extra))
    return View(tuple(entries), shape)


def transpose(x: Node, axes: Sequence[int] | None = None) -> Node:
    return apply(transpose_view(x.type, axes), x)


def expand_dims(x: Node, axes: Sequence[int]) -> Node:
    return apply(expand_dims_view(x.type, axes), x) if axes else x


def squeeze(x: Node, axes: Sequence[int] | None = None) -> Node:
    return apply(squeeze_view(x.type, axes), x)


def broadcast_to(x: Node, shape: Sequence[int]) -> Node:
    if alike(x.shape, shape) and same_shape(x.shape, shape):
        return x
    return apply(broadcast_view(x.type, shape), x)


def assigned(value: Node, shape: Sequence[int]) -> Node:
    """The value broadcast to a region that it is written into; leading axes of length 1 may be dropped."""
    while value.ndim > len(shape) and is_one(value.shape[0]):
        value = reshape(value, value.shape[1:])
    try:
        return broadcast_to(value, shape)
    except ValueError:
        before, after = shape_text(value.shape), shape_text(shape)
        raise ValueError(f"could not broadcast input array from shape {before} into shape {after}") from None


def reshape(x: Node, shape: Sequence[int]) -> Node:
    if alike(x.shape, shape):
        same_shape(x.shape, shape)
        return x
    if any(isinstance(n, Moving) for n in (*x.shape, *shape)):
        same_extent(x.type.size, math.prod(shape))
    return apply(Reshape(tuple(shape)), x)


def _is_always_one(n: int) -> bool:
    """1 in every iteration; one that may be 1 in some of them only is refused."""
    return is_one(n) or (isinstance(n, Moving) and not at_least(n, 2))


def normalize_axis(axis: Any, ndim: int) -> int:
    """A non-negative axis. Raises numpy.exceptions.AxisError outside -ndim..ndim-1."""
    position: int = operator.index(axis)
    if not -ndim <= position < ndim:
        raise np.exceptions.AxisError(position, ndim)
    return position % ndim


def _map_text(entries: AxisMap) -> str:
    parts = []
    for offset, step, axis in entries:
        if axis is None:
            parts.append(_offset_text(offset))
        else:
            start = f"{_offset_text(offset)}+" if isinstance(offset, Moving) or int(offset) else ""
            parts.append(start + ("" if step == 1 else f"{step}*") + f"@{axis}")
    return ", ".join(parts)


def _offset_text(offset: int) -> str:
    return str(offset.expr) if isinstance(offset, Moving) else str(offset)

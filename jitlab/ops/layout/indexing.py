"""Indexing: basic subscripts as views, and integer arrays as Take, Gather and their updates."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Extent, Moving, Node, plain
from jitlab.ops.base import Cost, Operation, Unsupported, broadcast_shapes, shape_text
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise, fitting

from . import moving_subscripts
from .creation import numbers_along, zeros
from .views import Update, View, assigned, reshape, transpose


class Take(Operation):
    """The elements of x at integer positions along `axis`; negative ones count from the end, others raise IndexError."""

    axis: int
    tf_name: ClassVar[str | None] = "GatherV2"
    may_raise: ClassVar[bool] = True
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        x, indices = arrays
        return np.asarray(x)[(slice(None),) * self.axis + (indices,)]

    def result(self, *types: ArrayType) -> ArrayType:
        x, indices = types
        assert indices.dtype.kind in "iu", f"positions {indices}"
        return x.with_shape((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :]))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, indices = inputs
        rank = indices.ndim
        front = (*range(self.axis, self.axis + rank), *range(self.axis), *range(self.axis + rank, g.ndim))
        return [apply(ScatterAdd((self.axis,)), zeros(x.shape, x.dtype), transpose(g, front), indices), None]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, out.nbytes + types[1].nbytes, out.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.arange(12.0).reshape(3, 4)
        yield cls(0), x, np.array([2, 0, -1, 2])
        yield cls(1), x, np.array([[1, 3], [-4, 0]], np.int8)
        yield cls(1), x, np.int64(2)
        yield cls(0), x, np.zeros((0,), np.uint8)


class Gather(Operation):
    """x at the positions that several integer arrays give along `axes`; the axes of the positions come first."""

    axes: tuple[int, ...]
    numpy_word: ClassVar[str] = "[...]"
    tf_name: ClassVar[str | None] = "GatherNd"
    may_raise: ClassVar[bool] = True
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        x, *indices = arrays
        return np.moveaxis(np.asarray(x), self.axes, range(len(self.axes)))[tuple(indices)]

    def result(self, *types: ArrayType) -> ArrayType:
        x, *indices = types
        assert len(indices) == len(self.axes)
        return x.with_shape((*index_shape(*indices), *rest_shape(x, self.axes)))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, *indices = inputs
        return [apply(ScatterAdd(self.axes), zeros(x.shape, x.dtype), g, *indices), *(None for _ in indices)]

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, out.nbytes + sum(t.nbytes for t in types[1:]), out.nbytes)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.arange(24.0).reshape(2, 3, 4)
        yield cls((1, 2)), x, np.array([2, 0, -1]), np.array([0, 3, 1])
        yield cls((0, 2)), x, np.array([[1], [0]]), np.array([0, 3, -1])


class Scatter(Operation, family=True):
    """x with values put at the positions that integer arrays give along `axes`; a value has the positions' axes first."""

    axes: tuple[int, ...]
    may_raise: ClassVar[bool] = True
    flops_per_element: ClassVar[float] = 0

    def result(self, *types: ArrayType) -> ArrayType:
        x, value, *indices = types
        assert x.dtype == value.dtype and len(indices) == len(self.axes)
        assert plain(value.shape) == plain((*index_shape(*indices), *rest_shape(x, self.axes)))
        return x

    def place(self, result: Any) -> Any:
        """A view of the result whose first axes are those that are indexed."""
        return np.moveaxis(result, self.axes, range(len(self.axes)))

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        value = types[1].nbytes
        return Cost(int(types[1].size) if self.flops_per_element else 0, value + sum(t.nbytes for t in types[2:]), value)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        x = np.arange(12.0).reshape(3, 4)
        yield cls((0,)), x, 0.5 * np.arange(8.0).reshape(2, 4), np.array([2, -3])
        yield cls((1,)), x, 0.5 * np.arange(9.0).reshape(3, 3), np.array([1, 1, 0])
        yield cls((0, 1)), x, np.arange(3.0), np.array([2, 0, 1]), np.array([1, -1, 0])


class ScatterUpdate(Scatter):
    """x[indices] = value; of repeated positions the last one stays."""

    numpy_word: ClassVar[str] = "[...] ="

    def numpy(self, *arrays: Any) -> Any:
        x, value, *indices = arrays
        result = np.array(x)
        self.place(result)[tuple(indices)] = value
        return result

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """A value that a later one overwrote gets nothing: the positions' order numbers, scattered likewise, tell which."""
        from jitlab.ops.elementwise.arithmetic import equal
        from jitlab.ops.elementwise.arithmetic import select as choose

        from .creation import Range

        _, value, *indices = inputs
        taken = apply(Gather(self.axes), g, *indices)  # before it is written over, so that the update can be in place
        kept = apply(ScatterUpdate(self.axes), g, zeros(value.shape, g.dtype), *indices)
        shape = index_shape(*(i.type for i in indices))
        order = reshape(apply(Range((ArrayType(shape, g.dtype).size,)), constant(0), constant(1)), shape)
        rows = tuple(g.shape[axis] for axis in self.axes)
        numbers = apply(ScatterUpdate(tuple(range(len(rows)))), zeros(rows, order.dtype), order, *indices)
        last = equal(apply(Gather(tuple(range(len(rows)))), numbers, *indices), order)
        last = reshape(last, (*shape, *(1 for _ in range(value.ndim - len(shape)))))
        return [kept, choose(last, taken, constant(0, g.dtype)), *(None for _ in indices)]


class ScatterAdd(Scatter):
    """x[indices] += value with repeated positions added up, as `np.add.at` does."""

    numpy_word: ClassVar[str] = "add.at"
    tf_name: ClassVar[str | None] = "TensorScatterAdd"
    flops_per_element: ClassVar[float] = 1

    def numpy(self, *arrays: Any) -> Any:
        x, value, *indices = arrays
        result = np.array(x)
        np.add.at(self.place(result), tuple(indices), value)
        return result

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        _, _, *indices = inputs
        return [g, apply(Gather(self.axes), g, *indices), *(None for _ in indices)]


def positions_along(shape: Sequence[int], where: Node, axis: int) -> list[Node]:
    """An index array for each axis: `where` on `axis`, each element's own place on the others."""
    return [where if other == axis else numbers_along(n, other, len(shape)) for other, n in enumerate(shape)]


def index_shape(*indices: ArrayType) -> tuple[int, ...]:
    """The shape that index arrays broadcast to. Raises IndexError as NumPy does."""
    try:
        return broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        text = " ".join(shape_text(i.shape) for i in indices)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {text}"
        ) from None


def rest_shape(x: ArrayType, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(x.shape) if axis not in axes)


def is_basic(index: Any) -> bool:
    """Is the subscript made of integers, slices, None and Ellipsis only, so that NumPy gives a view?"""
    parts = index if isinstance(index, tuple) else (index,)
    return all(p is None or p is Ellipsis or isinstance(p, slice) or _is_integer(p) for p in parts)


def basic_index(x: ArrayType, index: Any) -> View:
    """The view of `x[index]` for integers, slices, None and Ellipsis. Raises IndexError as NumPy does."""
    parts = _expand(x.ndim, index if isinstance(index, tuple) else (index,))
    entries: list[tuple[int, int, int | None]] = []
    shape: list[int] = []
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        axis = len(entries)
        n = x.shape[axis]
        if isinstance(part, slice):
            start, length, step = slice_extents(part, n)
            entries.append((start, step, len(shape)))
            shape.append(length)
        else:
            entries.append((checked_position(part, n, axis), 1, None))
    return View(tuple(entries), tuple(shape))


def slice_extents(s: slice, n: int) -> tuple[int, int, int]:
    """Start, length and step of a slice over an axis of n elements, clamped as Python does; Extents stay Extents."""
    if isinstance(n, Moving) or any(map(moving_subscripts.is_symbolic, (s.start, s.stop, s.step))):
        return moving_subscripts.slice_extents(s, n)
    for bound in (s.start, s.stop, s.step):
        if isinstance(bound, Node):
            raise Unsupported("slice_bounds", "data_dependent")
    step = 1 if s.step is None else _integer(s.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low: int = 0 if step > 0 else -1
    high: int = n if step > 0 else n - 1

    def clamped(bound: Any, default: int) -> int:
        if bound is None:
            return default
        bound = _integer(bound)
        if bound < 0:
            bound = n + bound
        return low if bound < low else high if bound > high else bound

    start = clamped(s.start, low if step > 0 else high)
    stop = clamped(s.stop, high if step > 0 else low)
    span = stop - start if step > 0 else start - stop
    stride = abs(int(step))
    if span <= 0:
        return 0, 0, int(step)
    return start, span if stride == 1 else _rounded_up(span, stride), int(step)


def checked_position(position: Any, n: int, axis: int) -> int:
    """A non-negative position on an axis of n elements. Raises IndexError as NumPy does."""
    if isinstance(n, Moving) or moving_subscripts.is_symbolic(position):
        return moving_subscripts.position(position if moving_subscripts.is_symbolic(position) else _integer(position), n, axis)
    i = _integer(position)
    if not -n <= i < n:
        if moving_subscripts.in_loop():  # the body may run no time: the error waits until it does
            return moving_subscripts.position(i, n, axis)
        raise IndexError(f"index {int(i)} is out of bounds for axis {axis} with size {int(n)}")
    return n + i if i < 0 else i


def read_index(x: Node, index: Any) -> Node:
    """`x[index]` as a value: a view where the subscript is basic, else Take or Gather of a view."""
    index = _with_positions(x.type, index)
    if is_basic(index):
        return apply(basic_index(x.type, index), x)
    plan = _Advanced(x.type, index)
    base = plan.view_of(x)
    indices = plan.checked_nodes()
    if len(plan.axes) == 1:
        (axis,) = plan.axes
        result, rank = apply(Take(axis), base, *indices), indices[0].ndim
        if plan.position == axis or not rank:
            return result
        return transpose(result, (*range(axis, axis + rank), *range(axis), *range(axis + rank, result.ndim)))
    result = apply(Gather(plan.axes), base, *indices)
    return transpose(result, plan.order(result.ndim)) if plan.position else result


def write_index(x: Node, index: Any, value: Any, add: bool = False) -> Node:
    """x after `x[index] = value` (after `np.add.at(x, index, value)` when `add`)."""
    index = _with_positions(x.type, index)
    if not add:
        from .masks import masked_write

        written = masked_write(x, index, value)
        if written is not None:
            return written
    value = as_node(fitting(value, x.dtype), x.dtype)
    if is_basic(index):
        view = basic_index(x.type, index)
        value = assigned(value, view.shape)
        if add:
            from jitlab.ops.elementwise.arithmetic import add as plus

            value = plus(apply(view, x), value)
        return apply(Update(view.map, view.shape), x, value)
    plan = _Advanced(x.type, index)
    base = plan.view_of(x)
    indices = plan.checked_nodes()
    rank = len(plan.rest) + len(plan.index_shape)
    order = plan.order(rank)
    shape = (*plan.index_shape, *plan.rest)
    value = assigned(value, tuple(shape[axis] for axis in order))
    value = transpose(value, tuple(order.index(axis) for axis in range(rank))) if plan.position else value
    kind = ScatterAdd if add else ScatterUpdate
    if kind is ScatterAdd and x.dtype.kind == "b":
        raise Unsupported("adding_bools")
    result = apply(kind(plan.axes), base, value, *indices)
    return result if plan.whole else apply(Update(plan.view.map, plan.view.shape), x, result)


class _Advanced:
    """A subscript with integer arrays: the view that its basic parts make, and what is indexed in that view."""

    def __init__(self, x: ArrayType, index: Any) -> None:
        written = index if isinstance(index, tuple) else (index,)
        parts = _expand(x.ndim, written, advanced=True)
        arrays = [p for p in parts if not (p is None or isinstance(p, slice) or _is_integer(p))]
        self.indices = [_index_array(p) for p in arrays]
        found = _places(parts)
        places = _places(written)
        together = places == list(range(places[0], places[-1] + 1))  # integers count as arrays here
        basic, axes, first = [], [], 0
        self.extents: list[tuple[int, int]] = []  # of each axis that an array indexes: its size, and its number in x
        axis = view_axis = 0
        for k, part in enumerate(parts):
            if k == found[0]:
                first = view_axis
            if any(part is a for a in arrays):
                axes.append(view_axis)
                basic.append(slice(None))
                check_known(part, x.shape[axis], axis)
                self.extents.append((x.shape[axis], axis))
            else:
                basic.append(part)
            axis += part is not None
            view_axis += not _is_integer(part)
        self.view = basic_index(x, tuple(basic))
        self.whole = all(isinstance(p, slice) and p == slice(None) for p in basic)
        self.axes = tuple(axes)
        self.index_shape = index_shape(*(_type_of(i) for i in self.indices))
        self.rest = rest_shape(ArrayType(self.view.shape, x.dtype), axes)
        self.position = first if together else 0

    def view_of(self, x: Node) -> Node:
        return x if self.whole else apply(self.view, x)

    def checked_nodes(self) -> list[Node]:
        """The index arrays, looked through where no element may be read that would tell that one is out of range."""
        unread = may_be_empty(self.rest) and int(ArrayType(self.index_shape, np.dtype("i8")).size)
        return [
            inside(i, *extent) if unread else i
            for i, extent in zip((i if isinstance(i, Node) else constant(i) for i in self.indices), self.extents, strict=True)
        ]

    def order(self, rank: int) -> tuple[int, ...]:
        """Axes of (positions, rest) in NumPy's order of the result."""
        n = len(self.index_shape)
        return (*range(n, n + self.position), *range(n), *range(n + self.position, rank))


def _expand(ndim: int, parts: tuple[Any, ...], advanced: bool = False) -> list[Any]:
    """The parts of a subscript with Ellipsis and missing ones spelt out as full slices."""
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    for p in parts:
        if not (p is None or p is Ellipsis or isinstance(p, slice) or _is_integer(p) or advanced):
            if isinstance(p, (Node, list, tuple, np.ndarray, np.bool_, bool)):
                raise Unsupported("array_subscript")
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
                "are valid indices"
            )
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    fill = [slice(None)] * (ndim - used)
    for k, p in enumerate(parts):
        if p is Ellipsis:
            return [*parts[:k], *fill, *parts[k + 1 :]]
    return [*parts, *fill]


def _places(parts: Sequence[Any]) -> list[int]:
    """Where integers and arrays stand among the parts of a subscript."""
    return [k for k, p in enumerate(parts) if not (p is None or p is Ellipsis or isinstance(p, slice))]


def _is_integer(p: Any) -> bool:
    """A number that can index: Python's and NumPy's integers, and 0-d integer arrays; no bools, no nodes outside of loops."""
    if moving_subscripts.is_symbolic(p):
        return True
    if isinstance(p, (bool, np.bool_, Node)):
        return False
    return isinstance(p, (int, np.integer)) or (isinstance(p, np.ndarray) and p.ndim == 0 and p.dtype.kind in "iu")


def _integer(p: Any) -> int:
    return p if isinstance(p, Extent) else operator.index(p)


def _rounded_up(span: int, stride: int) -> int:
    exact = span // stride
    return exact if isinstance(exact, Extent) and int(exact) * stride == int(span) else -(-int(span) // stride)


def _index_array(p: Any) -> Any:
    """An integer node or array. Bools that the data decide are refused."""
    if isinstance(p, Node):
        if p.dtype.kind == "b":
            raise Unsupported("reading_mask", "data_dependent")
        if p.dtype.kind not in "iu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return p
    if isinstance(p, (list, tuple)) and any(isinstance(v, Node) for v in _leaves(p)):
        from .concatenation import array

        return _index_array(array(p))
    if isinstance(p, (str, bytes, dict, float, complex)):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid"
            " indices"
        )
    values = np.asarray(p)
    if values.size == 0 and isinstance(p, (list, tuple)):
        values = values.astype(np.int64)
    if values.dtype.kind == "b":
        raise Unsupported("written_mask")
    if values.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return values


def _leaves(p: Any) -> Iterator[Any]:
    if isinstance(p, (list, tuple)):
        for v in p:
            yield from _leaves(v)
    else:
        yield p


def _type_of(i: Any) -> ArrayType:
    return i.type if isinstance(i, Node) else ArrayType(i.shape, i.dtype)


def check_known(p: Any, n: int, axis: int) -> None:
    """IndexError now when the positions are written in the program and one is out of range."""
    if isinstance(p, Node) or any(isinstance(v, Node) for v in _leaves(p)):
        return
    if isinstance(n, Moving):
        return  # checked at run time
    values = np.asarray(p)
    wrong = values[(values < -int(n)) | (values >= int(n))] if values.size else values
    if wrong.size:
        raise IndexError(f"index {wrong.flat[0]} is out of bounds for axis {axis} with size {int(n)}")


def may_be_empty(shape: Sequence[int]) -> bool:
    """Has an array of this shape no element, or is that known at run time only?"""
    return any(not moving_subscripts.is_positive(n) if isinstance(n, Moving) else n == 0 for n in shape)


def inside(places: Node, n: int, axis: int) -> Node:
    """Positions along an axis of n elements, once all of them are found to be in range, as NumPy looks for before it reads."""
    from jitlab.ops.elementwise.comparison import GreaterEqual, Less, LogicalAnd
    from jitlab.ops.reducing import axis_reductions
    from jitlab.ops.runtime_checks import checked

    flat = reshape(cast(places, np.dtype("i8")), (places.type.size,))
    good = elementwise(LogicalAnd(), elementwise(GreaterEqual(), flat, 0 - n), elementwise(Less(), flat, n))
    every = axis_reductions.reduce(axis_reductions.All, good, (0,))
    first = apply(Take(0), flat, axis_reductions.reduce(axis_reductions.ArgMin, good, (0,)))
    said = f"index {{}} is out of bounds for axis {axis} with size {{}}"
    return checked(places, every, "IndexError", said, first, as_node(n))


def _with_positions(x: ArrayType, index: Any) -> Any:
    from .masks import with_positions

    return with_positions(x, index)

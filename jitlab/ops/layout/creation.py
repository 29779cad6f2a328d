"""Arrays made from numbers: zeros, arange, linspace, eye."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, plain
from jitlab.ops.base import Generated
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.emitter import Emitter

from .views import expand_dims

BOOL, INT64 = np.dtype(bool), np.dtype("i8")


class Fill(Generated):
    """One value everywhere: zeros, ones, full. (`empty` too: a fresh array has no other meaning in a graph.)"""

    numpy_word: ClassVar[str] = "full"
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        (value,) = arrays
        return np.full(plain(self.shape), value, np.asarray(value).dtype)[()]

    def result(self, *types: ArrayType) -> ArrayType:
        (value,) = types
        return ArrayType(self.shape, value.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g]  # summed down to the 0-d value like any broadcast

    def body(self, e: Emitter, index: Sequence[Any], *scalars: Any) -> Any:
        return scalars[0]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls((2, 3)), np.float64(1.5)
        yield cls((0, 3)), np.int8(3)
        yield cls(()), np.True_


class Range(Generated):
    """arange: its first element, its second, and the rest at the same distance; NumPy computes first + i * (second - first)."""

    shape: tuple[int]
    numpy_word: ClassVar[str] = "arange"
    flops_per_element: ClassVar[float] = 2

    def numpy(self, *arrays: Any) -> Any:
        first, second = arrays
        dtype = np.asarray(first).dtype
        wide = np.dtype("f4") if dtype == np.dtype("f2") else dtype
        start, delta = wide.type(first), wide.type(second) - wide.type(first)
        result = (start + np.arange(int(self.shape[0])).astype(wide) * delta).astype(dtype)
        result[1:2] = second
        return result

    def result(self, *types: ArrayType) -> ArrayType:
        first, _ = types
        return ArrayType(self.shape, first.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        from jitlab.ops.elementwise.arithmetic import multiply, subtract

        place = apply(Range(self.shape), constant(0, g.dtype), constant(1, g.dtype))
        return [multiply(g, subtract(1, place)), multiply(g, place)]

    def body(self, e: Emitter, index: Sequence[Any], *scalars: Any) -> Any:
        first, second = scalars
        dtype = first.dtype
        wide = np.dtype("f4") if dtype == np.dtype("f2") else dtype
        start = e.cast(first, wide)
        delta = e.sub(e.cast(second, wide), start)
        element = e.cast(e.add(start, e.mul(e.cast(index[0], wide), delta)), dtype)
        if dtype.kind != "f":
            return element
        return e.select(e.eq(index[0], e.constant(1, INT64)), second, element)  # start + (second - start) may round

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls((5,)), np.float64(0.1), np.float64(0.3)
        yield cls((5,)), np.float16(0.1), np.float16(0.3)
        yield cls((5,)), np.int64(7), np.int64(5)
        yield cls((1,)), np.int64(7), np.int64(5)
        yield cls((0,)), np.float32(7), np.float32(5)


class LinSpace(Generated):
    """linspace(first, last), `steps` apart: steps is one less than the length when the end point belongs to it."""

    shape: tuple[int]
    endpoint: bool
    flops_per_element: ClassVar[float] = 3

    def numpy(self, *arrays: Any) -> Any:
        first, last, _ = arrays
        return np.linspace(first, last, int(self.shape[0]), self.endpoint, dtype=np.asarray(first).dtype)

    def result(self, *types: ArrayType) -> ArrayType:
        first, _, _ = types
        return ArrayType(self.shape, first.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        from jitlab.ops.elementwise.arithmetic import divide, equal, multiply, select, subtract, zero_like

        _, _, steps = inputs
        place = apply(Range(self.shape), constant(0, g.dtype), constant(1, g.dtype))
        part = select(equal(steps, 0), zero_like(g), divide(place, cast(steps, g.dtype)))
        return [multiply(g, subtract(1, part)), multiply(g, part), None]

    def body(self, e: Emitter, index: Sequence[Any], *scalars: Any) -> Any:
        first, last, steps = scalars
        dtype = first.dtype
        (i,) = index
        delta, count, x = e.sub(last, first), e.cast(steps, dtype), e.cast(i, dtype)
        step = e.div(delta, count)
        flat = e.eq(step, e.constant(0, dtype))  # too small a step: divide first, as NumPy does
        scaled = e.select(flat, e.mul(e.div(x, count), delta), e.mul(x, step))
        none = e.eq(steps, e.constant(0, INT64))  # one element: there is no step
        element = e.add(e.select(none, e.mul(x, delta), scaled), first)
        if not self.endpoint:
            return element
        return e.select(e.and_(e.eq(i, steps), e.invert(none)), last, element)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls((5,), True), np.float64(0.1), np.float64(0.7), np.int64(4)
        yield cls((5,), False), np.float32(3), np.float32(-2), np.int64(5)
        yield cls((1,), True), np.float64(3), np.float64(-2), np.int64(0)


class Eye(Generated):
    """True on the k-th diagonal."""

    shape: tuple[int, int]
    k: int
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return np.eye(int(self.shape[0]), int(self.shape[1]), int(self.k), BOOL)

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType(self.shape, BOOL)

    def body(self, e: Emitter, index: Sequence[Any], *scalars: Any) -> Any:
        i, j = index
        return e.eq(e.sub(j, i), e.constant(int(self.k), INT64))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield (cls((3, 4), 0),)
        yield (cls((3, 2), -1),)


class Tri(Generated):
    """True at and below the k-th diagonal."""

    shape: tuple[int, int]
    k: int
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return np.tri(int(self.shape[0]), int(self.shape[1]), int(self.k), BOOL)

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType(self.shape, BOOL)

    def body(self, e: Emitter, index: Sequence[Any], *scalars: Any) -> Any:
        i, j = index
        return e.le(e.sub(j, i), e.constant(int(self.k), INT64))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield (cls((3, 4), 0),)
        yield (cls((3, 2), -1),)


def fill(shape: Sequence[int], value: Any, dtype: Any = None) -> Node:
    """`np.full(shape, value, dtype)` of one number or 0-d node."""
    node = value if isinstance(value, Node) else constant(value, dtype)
    return apply(Fill(tuple(shape)), node if dtype is None else cast(node, dtype))


def zeros(shape: Sequence[int], dtype: Any) -> Node:
    return fill(shape, 0, dtype)


def numbers_along(n: int, axis: int, ndim: int, dtype: np.dtype = INT64) -> Node:
    """0, 1, ... n-1 along one of ndim axes."""
    numbers = apply(Range((n,)), constant(0, dtype), constant(1, dtype))
    return expand_dims(numbers, tuple(a for a in range(ndim) if a != axis))

"""Pooling: the greatest element or the mean of each window, one operation and one kernel each.

Arrays are [N, C, *S] inside, as in `convolution`. Of equal greatest elements the first takes the gradient, as TensorFlow and
XLA have it; the mean of a window counts what lies inside the array alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, plain
from jitlab.ops.base import Cost
from jitlab.ops.build_nodes import apply

from .convolution import KINDS, Geometry, Windowed, X, window_counts


class Pooling(Windowed, family=True):
    """An operation on windows of `kernel` elements."""

    kernel: tuple[int, ...]
    stem_name: ClassVar[str]

    @property
    def name(self) -> str:
        ndim = self.geometry.ndim
        return self.stem_name if ndim == 2 else f"{self.stem_name}{KINDS[ndim]}"

    def pooled(self, x: ArrayType) -> ArrayType:
        return ArrayType((*x.shape[:2], *window_counts(x.shape[2:], self.kernel, self.geometry)), x.dtype)

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        fewest = min(int(t.size) for t in (out, *types))
        return Cost(fewest * int(np.prod(self.kernel)), sum(t.nbytes for t in types), out.nbytes)

    def seen(self, x: np.ndarray, fill: Any) -> np.ndarray:
        """The windows of x, [N, C, *P, K elements in order]."""
        counts = window_counts(x.shape[2:], self.kernel, self.geometry)
        windows = self.geometry.windows(self.geometry.spread(x, fill), self.kernel, counts)
        return windows.reshape(*windows.shape[: 2 + self.geometry.ndim], -1)

    def scattered(self, values: Any, size: Sequence[int], dtype: Any) -> np.ndarray:
        """The sum over windows of what `values(number of the element in the window)` gives, on an x of `size`."""
        first = values(0)
        whole = [max(n + low + high, 0) for n, (low, high) in zip(size, self.geometry.padding, strict=True)]
        padded = np.zeros((*first.shape[:2], *whole), dtype)
        for number, (_, places) in enumerate(self.geometry.taps(self.kernel, first.shape[2:])):
            padded[places] += values(number)
        return self.geometry.gathered(padded, size)

    @classmethod
    def geometries(cls) -> Iterator[tuple[tuple[Any, ...], np.ndarray]]:
        yield (Geometry((2, 2), ((0, 1), (0, 0)), (1, 1), (1, 1)), (2, 2)), X
        yield (Geometry((1, 2), ((1, 1), (0, 0)), (1, 1), (1, 2)), (3, 2)), X
        yield (Geometry((2,), ((0, 0),), (1,), (1,)), (3,)), X[..., 0]


def least(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


class MaxPool(Pooling):
    """The greatest element of each window; NaN where it has one."""

    numpy_word: ClassVar[str] = "max_pool"
    stem_name: ClassVar[str] = "MaxPool"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (self.pooled(types[0]),)

    def numpy(self, *arrays: Any) -> Any:
        (x,) = arrays
        return self.seen(x, least(x.dtype)).max(axis=-1)

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [apply(MaxPoolGrad(self.geometry, self.kernel), inputs[0], g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for fields, x in cls.geometries():
            yield cls(*fields), x
        yield cls(Geometry((2,), ((0, 0),), (1,), (1,)), (2,)), np.arange(12, dtype=np.int8).reshape(1, 2, 6)


class MaxPoolGrad(Pooling):
    """The cotangents y[N, C, *P] of the greatest elements, put where those are in x[N, C, *S]."""

    numpy_word: ClassVar[str] = "max_pool"
    stem_name: ClassVar[str] = "MaxPoolGrad"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, y = types
        return (ArrayType(x.shape, y.dtype),)

    def numpy(self, *arrays: Any) -> Any:
        x, y = arrays
        if not y.size:
            return np.zeros(x.shape, y.dtype)
        best = self.seen(x, least(x.dtype)).argmax(axis=-1)
        return self.scattered(lambda number: np.where(best == number, y, 0), x.shape[2:], y.dtype)

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [None, apply(MaxPoolPick(self.geometry, self.kernel), inputs[0], g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for fields, x in cls.geometries():
            yield cls(*fields), x, MaxPool(*fields).numpy(x)


class MaxPoolPick(Pooling):
    """Of each window the element of z[N, C, *S] where x[N, C, *S] has its greatest one."""

    numpy_word: ClassVar[str] = "max_pool"
    stem_name: ClassVar[str] = "MaxPoolGradGrad"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, z = types
        return (self.pooled(x).with_dtype(z.dtype),)

    def numpy(self, *arrays: Any) -> Any:
        x, z = arrays
        best = self.seen(x, least(x.dtype)).argmax(axis=-1)
        return np.take_along_axis(self.seen(z, 0), best[..., None], axis=-1)[..., 0]

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [None, apply(MaxPoolGrad(self.geometry, self.kernel), inputs[0], g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for fields, x in cls.geometries():
            yield cls(*fields), x, x * 2 + 1


class Mean(Pooling, family=True):
    """Means of windows, and what is linear in the same way."""

    def inside(self, size: Sequence[int], dtype: Any) -> np.ndarray:
        """How many elements of each window are not padding."""
        counts: np.ndarray = np.maximum(self.seen(np.ones((1, 1, *size), dtype), 0).sum(axis=-1), 1)
        return counts


class AvgPool(Mean):
    """The mean of each window, of those of its elements that lie inside the array."""

    numpy_word: ClassVar[str] = "avg_pool"
    stem_name: ClassVar[str] = "AvgPool"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (self.pooled(types[0]),)

    def numpy(self, *arrays: Any) -> Any:
        (x,) = arrays
        return self.seen(x, 0).sum(axis=-1) / self.inside(x.shape[2:], x.dtype)

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [apply(AvgPoolGrad(self.geometry, self.kernel, plain(inputs[0].shape[2:])), g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for fields, x in cls.geometries():
            yield cls(*fields), x


class AvgPoolGrad(Mean):
    """The transpose of `AvgPool` of an x of spatial `size`: each window's cotangent in equal shares to its elements."""

    size: tuple[int, ...]
    numpy_word: ClassVar[str] = "avg_pool"
    stem_name: ClassVar[str] = "AvgPoolGrad"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (y,) = types
        return (ArrayType((*y.shape[:2], *self.size), y.dtype),)

    def numpy(self, *arrays: Any) -> Any:
        (y,) = arrays
        if not y.size:
            return np.zeros((*y.shape[:2], *self.size), y.dtype)
        share = y / self.inside(self.size, y.dtype)
        return self.scattered(lambda number: share, self.size, y.dtype)

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [apply(AvgPool(self.geometry, self.kernel), g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for (geometry, kernel), x in cls.geometries():
            yield cls(geometry, kernel, x.shape[2:]), AvgPool(geometry, kernel).numpy(x)

"""Convolutions and pooling over windows of one to three spatial axes, one operation and one kernel each.

Inside, arrays have their channels first: x[N, C, *S], filters w[O, C / groups, *K], results [N, O, *P]; the rules turn other
layouts by views. The three products (result, gradient of x, gradient of w) are bilinear and each is a derivative of the others
(V. Dumoulin and F. Visin, "A guide to convolution arithmetic for deep learning", 2016, chapters 2 and 4). NumPy computes them:
windows are a strided view, and the sums of products are one call of the BLAS for each group.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, plain
from jitlab.ops.base import Cost
from jitlab.ops.build_nodes import apply
from jitlab.ops.elementwise.arithmetic import conj
from jitlab.ops.library_operations import Library
from jitlab.support.lazy_dataclass import dataclass

Pairs = tuple[tuple[int, int], ...]
X = np.random.default_rng(0).normal(size=(2, 4, 5, 6))
W = np.random.default_rng(1).normal(size=(6, 4, 2, 3))
KINDS = {1: "1D", 2: "2D", 3: "3D"}


def window_counts(size: Sequence[int], kernel: Sequence[int], g: Geometry) -> tuple[int, ...]:
    """How many windows fit along each axis."""
    counts = []
    for n, k, stride, (low, high), spread, dilation in zip(
        size, kernel, g.strides, g.padding, g.lhs_dilation, g.rhs_dilation, strict=True
    ):
        room = (n - 1) * spread + 1 + low + high - ((k - 1) * dilation + 1)
        counts.append(room // stride + 1 if int(room) >= 0 else 0)
    return tuple(counts)


@dataclass(frozen=True)
class Geometry:
    """How windows lie on an array: one entry for each spatial axis."""

    strides: tuple[int, ...]
    padding: Pairs
    lhs_dilation: tuple[int, ...]  # zeros between the elements of x
    rhs_dilation: tuple[int, ...]  # the distance of neighbours in a window
    groups: int = 1  # groups of channels that do not mix

    @property
    def ndim(self) -> int:
        return len(self.strides)

    def spread(self, x: np.ndarray, fill: Any = 0) -> np.ndarray:
        """x[N, C, *S] with its padding, and zeros between its elements; negative padding crops."""
        size = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], self.lhs_dilation, strict=True)]
        whole = [max(n + low + high, 0) for n, (low, high) in zip(size, self.padding, strict=True)]
        result = np.full((*x.shape[:2], *whole), fill, x.dtype)
        if x.size and result.size:
            result[self._inside(x.shape[2:], whole)] = x[self._kept(x.shape[2:], whole)]
        return result

    def gathered(self, padded: np.ndarray, size: Sequence[int]) -> np.ndarray:
        """The part of a padded array that lies on an x of `size`: the transpose of `spread`."""
        result = np.zeros((*padded.shape[:2], *size), padded.dtype)
        if result.size and padded.size:
            result[self._kept(size, padded.shape[2:])] = padded[self._inside(size, padded.shape[2:])]
        return result

    def _kept(self, size: Sequence[int], whole: Sequence[int]) -> tuple[slice, ...]:
        """Of x's elements, those that padding does not crop."""
        parts = [slice(None), slice(None)]
        for n, (low, _), d, total in zip(size, self.padding, self.lhs_dilation, whole, strict=True):
            first = max(-(low // d), 0)
            parts.append(slice(first, max(min(n, (total - 1 - low) // d + 1), first)))
        return tuple(parts)

    def _inside(self, size: Sequence[int], whole: Sequence[int]) -> tuple[slice, ...]:
        """Where those lie in the padded array."""
        parts = [slice(None), slice(None)]
        kept = self._kept(size, whole)[2:]
        for some, (low, _), d in zip(kept, self.padding, self.lhs_dilation, strict=True):
            start = low + some.start * d
            parts.append(slice(start, start + (some.stop - some.start) * d, d))
        return tuple(parts)

    def windows(self, padded: np.ndarray, kernel: Sequence[int], counts: Sequence[int]) -> np.ndarray:
        """A view [N, C, *P, *K] of a padded array: each window at its place."""
        steps = padded.strides[2:]
        strides = (
            *padded.strides[:2],
            *(s * step for s, step in zip(self.strides, steps, strict=True)),
            *(d * step for d, step in zip(self.rhs_dilation, steps, strict=True)),
        )
        return np.lib.stride_tricks.as_strided(padded, (*padded.shape[:2], *counts, *kernel), strides, writeable=False)

    def taps(self, kernel: Sequence[int], counts: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each position in a window, and where the windows have it in a padded array."""
        for tap in itertools.product(*map(range, kernel)):
            places = [slice(None), slice(None)]
            for k, stride, dilation, count in zip(tap, self.strides, self.rhs_dilation, counts, strict=True):
                places.append(slice(k * dilation, k * dilation + (count - 1) * stride + 1, stride))
            yield tap, tuple(places)


class Windowed(Library, family=True):
    """An operation on windows of an array."""

    geometry: Geometry

    @property
    def stem(self) -> str:
        return self.name.lower()


class Convolution(Windowed, family=True):
    """Sums of products of windows with filters."""

    suffix: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return f"Conv{KINDS[self.geometry.ndim]}{self.suffix}"

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        sizes = sorted(int(t.size) for t in (out, *types))
        types_and_out = (*types, out)
        spatial = max(1, int(np.prod(plain(min(types_and_out, key=lambda t: int(t.size)).shape[2:]))))
        flops = 2 * sizes[-1] * spatial * max(1, sizes[0] // max(sizes[1], 1) + 1)
        return Cost(flops, sum(t.nbytes for t in types), out.nbytes)

    @classmethod
    def shapes(cls) -> Iterator[tuple[Any, ...]]:
        """Geometries with x and w that they fit."""
        yield Geometry((1, 1), ((0, 0), (1, 1)), (1, 1), (1, 1), 1), X, W
        yield Geometry((2, 1), ((1, 0), (0, 2)), (1, 1), (1, 2), 2), X, W[:, :2]
        yield Geometry((1,), ((1, 1),), (2,), (1,), 1), X[..., 0], W[..., 0]


class Conv(Convolution):
    """The sums of products of each window of x with each filter: x[N, C, *S], w[O, C / groups, *K] -> [N, O, *P].

    What machine learning calls a convolution: the filters are not turned round.
    """

    numpy_word: ClassVar[str] = "conv"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, w = types
        return (ArrayType((x.shape[0], w.shape[0], *window_counts(x.shape[2:], w.shape[2:], self.geometry)), x.dtype),)

    def numpy(self, *arrays: Any) -> Any:
        x, w = arrays
        kernel, g = w.shape[2:], self.geometry
        n = g.ndim
        counts = window_counts(x.shape[2:], kernel, g)
        seen = g.windows(g.spread(x), kernel, counts)
        inner, outer = x.shape[1] // g.groups, w.shape[0] // g.groups
        result = np.empty((x.shape[0], w.shape[0], *counts), x.dtype)
        axes = ([1, *range(2 + n, 2 + 2 * n)], [1, *range(2, 2 + n)])
        for k in range(g.groups):
            part = np.tensordot(seen[:, k * inner : (k + 1) * inner], w[k * outer : (k + 1) * outer], axes)
            result[:, k * outer : (k + 1) * outer] = np.moveaxis(part, -1, 1)
        return result

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, w = inputs
        size, kernel = plain(x.shape[2:]), plain(w.shape[2:])
        return [
            apply(ConvInput(self.geometry, size), g, conj(w)),
            apply(ConvFilter(self.geometry, kernel), conj(x), g),
        ]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for geometry, x, w in cls.shapes():
            yield cls(geometry), x, w


class ConvInput(Convolution):
    """The transpose of `Conv` along x, spatial `size`: y[N, O, *P], w[O, C / groups, *K] -> [N, C, *size]."""

    size: tuple[int, ...]
    numpy_word: ClassVar[str] = "conv"
    suffix: ClassVar[str] = "BackpropInput"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        y, w = types
        return (ArrayType((y.shape[0], w.shape[1] * self.geometry.groups, *self.size), y.dtype),)

    def numpy(self, *arrays: Any) -> Any:
        y, w = arrays
        g = self.geometry
        kernel, counts = w.shape[2:], y.shape[2:]
        inner, outer = w.shape[1], w.shape[0] // g.groups
        channels = inner * g.groups
        whole = [
            max((n - 1) * d + 1 + low + high, 0) for n, d, (low, high) in zip(self.size, g.lhs_dilation, g.padding, strict=True)
        ]
        padded = np.zeros((y.shape[0], channels, *whole), y.dtype)
        if y.size:
            for k in range(g.groups):
                mine = slice(k * inner, (k + 1) * inner)
                rows = np.moveaxis(y[:, k * outer : (k + 1) * outer], 1, -1)
                for tap, places in g.taps(kernel, counts):
                    part = rows @ w[(slice(k * outer, (k + 1) * outer), slice(None), *tap)]
                    padded[(places[0], mine, *places[2:])] += np.moveaxis(part, -1, 1)
        return g.gathered(padded, self.size)

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        y, w = inputs
        kernel = plain(w.shape[2:])
        return [apply(Conv(self.geometry), g, conj(w)), apply(ConvFilter(self.geometry, kernel), g, conj(y))]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for geometry, x, w in cls.shapes():
            yield cls(geometry, x.shape[2:]), Conv(geometry).numpy(x, w), w


class ConvFilter(Convolution):
    """The transpose of `Conv` along w, of the spatial extents `kernel`:
    x[N, C, *S], y[N, O, *P] -> [O, C / groups, *kernel]."""

    kernel: tuple[int, ...]
    numpy_word: ClassVar[str] = "conv"
    suffix: ClassVar[str] = "BackpropFilter"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, y = types
        return (ArrayType((y.shape[1], x.shape[1] // self.geometry.groups, *self.kernel), x.dtype),)

    def numpy(self, *arrays: Any) -> Any:
        x, y = arrays
        g, counts = self.geometry, y.shape[2:]
        n = g.ndim
        seen = g.windows(g.spread(x), self.kernel, counts)
        inner, outer = x.shape[1] // g.groups, y.shape[1] // g.groups
        result = np.empty((y.shape[1], inner, *self.kernel), x.dtype)
        axes = [0, *range(2, 2 + n)]
        for k in range(g.groups):
            mine = slice(k * outer, (k + 1) * outer)
            result[mine] = np.tensordot(y[:, mine], seen[:, k * inner : (k + 1) * inner], (axes, axes))
        return result

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        size = plain(x.shape[2:])
        return [apply(ConvInput(self.geometry, size), conj(y), g), apply(Conv(self.geometry), conj(x), g)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for geometry, x, w in cls.shapes():
            yield cls(geometry, w.shape[2:]), x, Conv(geometry).numpy(x, w)

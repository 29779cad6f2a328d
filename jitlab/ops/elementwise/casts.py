"""Casts and choices; the other operations on elements are in arithmetic.py, comparison.py and functions.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.ops.base import Elementwise, broadcast_shapes
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.emitter import Emitter

X = np.linspace(-2.0, 2.0, 8)


class Cast(Elementwise):
    """x as another dtype."""

    dtype: np.dtype
    numpy_word: ClassVar[str] = "astype"
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        x = np.asarray(arrays[0])
        return (x.real if x.dtype.kind == "c" and self.dtype.kind not in "cb" else x).astype(self.dtype)[()]

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0].with_dtype(self.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return [cast(g, x.dtype) if x.dtype.kind in "fc" and g.dtype.kind in "fc" else None]

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.cast(xs[0], self.dtype)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(np.dtype("f4")), X
        yield cls(np.dtype("c16")), X
        yield cls(np.dtype("i4")), X
        yield cls(np.dtype("bool")), X
        yield cls(np.dtype("f8")), X + 1j
        yield cls(np.dtype("u1")), np.arange(-3, 5)


class Select(Elementwise):
    """x where the bool condition holds, else y."""

    numpy_word: ClassVar[str] = "where"
    instruction: ClassVar[str] = "select"
    operands = (X > 0.5, X, -2 * X), (X > 0.5, np.arange(8, dtype=np.int8), np.int8(3))

    def numpy(self, *arrays: Any) -> Any:
        return np.where(*arrays)[()]

    def result(self, *types: ArrayType) -> ArrayType:
        condition, x, y = types
        assert condition.dtype == np.dtype(bool) and x.dtype == y.dtype, f"a choice by {condition} of {x} and {y}"
        return ArrayType(broadcast_shapes(condition.shape, x.shape, y.shape), x.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        condition, _, _ = inputs
        zero = constant(0, g.dtype)
        return [None, apply(Select(), condition, g, zero), apply(Select(), condition, zero, g)]

"""Formulas over the emitter's scalars, written with Python's operators: what bodies of many steps are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.ops.emitter import Emitter


class Scalar:
    """A value of the emitter. Python numbers become constants of the other operand's dtype."""

    __slots__ = ("e", "v")

    def __init__(self, e: Emitter, v: Any) -> None:
        self.e = e
        self.v = v

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.v.dtype
        return dtype

    def of(self, other: Any) -> Any:
        return other.v if isinstance(other, Scalar) else self.e.constant(other, self.v.dtype)

    def like(self, number: float) -> Scalar:
        """The number as a value of this dtype."""
        return self._made(self.of(number))

    def call(self, name: str, *others: Any) -> Scalar:
        """An instruction of the emitter by its name."""
        return self._made(getattr(self.e, name)(self.v, *map(self.of, others)))

    def cast(self, dtype: Any) -> Scalar:
        return self._made(self.e.cast(self.v, np.dtype(dtype)))

    def _made(self, v: Any) -> Scalar:
        return Scalar(self.e, v)

    def __add__(self, other: Any) -> Scalar:
        return self.call("add", other)

    def __radd__(self, other: float) -> Scalar:
        return self.like(other) + self

    def __sub__(self, other: Any) -> Scalar:
        return self.call("sub", other)

    def __rsub__(self, other: float) -> Scalar:
        return self.like(other) - self

    def __mul__(self, other: Any) -> Scalar:
        return self.call("mul", other)

    def __rmul__(self, other: float) -> Scalar:
        return self.like(other) * self

    def __truediv__(self, other: Any) -> Scalar:
        return self.call("div", other)

    def __rtruediv__(self, other: float) -> Scalar:
        return self.like(other) / self

    def __neg__(self) -> Scalar:
        return self.call("neg")

    def __abs__(self) -> Scalar:
        return self.call("abs")

    def __lt__(self, other: Any) -> Scalar:
        return self.call("lt", other)

    def __le__(self, other: Any) -> Scalar:
        return self.call("le", other)

    def __gt__(self, other: Any) -> Scalar:
        return self.call("gt", other)

    def __ge__(self, other: Any) -> Scalar:
        return self.call("ge", other)

    def __and__(self, other: Scalar) -> Scalar:
        return self.call("and_", other)

    def __or__(self, other: Scalar) -> Scalar:
        return self.call("or_", other)

    def __xor__(self, other: Scalar) -> Scalar:
        return self.call("xor", other)

    def __invert__(self) -> Scalar:
        return self.call("invert")

    def equals(self, other: Any) -> Scalar:
        return self.call("eq", other)

    def is_nan(self) -> Scalar:
        return self.call("isnan")

    def is_inf(self) -> Scalar:
        return self.call("isinf")

    def is_finite(self) -> Scalar:
        return self.call("isfinite")

    def is_negative(self) -> Scalar:
        """The sign bit."""
        return self.call("signbit")


def where(condition: Scalar, x: Any, y: Any) -> Scalar:
    like = x if isinstance(x, Scalar) else y
    return Scalar(like.e, like.e.select(condition.v, like.of(x), like.of(y)))


def fma(x: Scalar, y: Any, z: Any) -> Scalar:
    return x.call("fma", y, z)


def copysign(x: Scalar, y: Any) -> Scalar:
    return x.call("copysign", y)


def sqrt(x: Scalar) -> Scalar:
    return x.call("sqrt")


def two_sum(x: Scalar, y: Any) -> tuple[Scalar, Scalar]:
    """x + y rounded, and what the rounding left (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    s = x + y
    back = s - x
    return s, (x - (s - back)) + (y - back)


def two_product(x: Scalar, y: Any) -> tuple[Scalar, Scalar]:
    """x * y rounded, and what the rounding left."""
    p = x * y
    return p, fma(x, y, -p)

"""Formulas over the emitter's scalars, written with Python's operators: what bodies of many steps are made of."""

from __future__ import annotations

from typing import Any, Self, TypeVar

import numpy as np


class Scalar:
    """A value of the emitter. Python numbers become constants of the other operand's dtype."""

    __slots__ = ("e", "v")

    def __init__(self, e: Any, v: Any) -> None:
        self.e = e
        self.v = v

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.v.dtype
        return dtype

    def of(self, other: Any) -> Any:
        return other.v if isinstance(other, Scalar) else self.e.constant(other, self.v.dtype)

    def like(self, number: float) -> Self:
        """The number as a value of this dtype."""
        return type(self)(self.e, self.of(number))

    def call(self, name: str, *others: Any) -> Self:
        """An instruction of the emitter by its name."""
        return type(self)(self.e, getattr(self.e, name)(self.v, *map(self.of, others)))

    def cast(self, dtype: Any) -> Self:
        return type(self)(self.e, self.e.cast(self.v, np.dtype(dtype)))

    def __add__(self, other: Any) -> Self:
        return self.call("add", other)

    def __radd__(self, other: float) -> Self:
        return self.like(other) + self

    def __sub__(self, other: Any) -> Self:
        return self.call("sub", other)

    def __rsub__(self, other: float) -> Self:
        return self.like(other) - self

    def __mul__(self, other: Any) -> Self:
        return self.call("mul", other)

    def __rmul__(self, other: float) -> Self:
        return self.like(other) * self

    def __truediv__(self, other: Any) -> Self:
        return self.call("div", other)

    def __rtruediv__(self, other: float) -> Self:
        return self.like(other) / self

    def __neg__(self) -> Self:
        return self.call("neg")

    def __abs__(self) -> Self:
        return self.call("abs")

    def __lt__(self, other: Any) -> Self:
        return self.call("lt", other)

    def __le__(self, other: Any) -> Self:
        return self.call("le", other)

    def __gt__(self, other: Any) -> Self:
        return self.call("gt", other)

    def __ge__(self, other: Any) -> Self:
        return self.call("ge", other)

    def __and__(self, other: Any) -> Self:
        return self.call("and_", other)

    def __or__(self, other: Any) -> Self:
        return self.call("or_", other)

    def __xor__(self, other: Any) -> Self:
        return self.call("xor", other)

    def __invert__(self) -> Self:
        return self.call("invert")

    def equals(self, other: Any) -> Self:
        return self.call("eq", other)

    def differs(self, other: Any) -> Self:
        return self.call("ne", other)

    def is_nan(self) -> Self:
        return self.call("isnan")

    def is_inf(self) -> Self:
        return self.call("isinf")

    def is_finite(self) -> Self:
        return self.call("isfinite")

    def is_negative(self) -> Self:
        """The sign bit."""
        return self.call("signbit")


S = TypeVar("S", bound=Scalar)


def where(condition: S, x: Any, y: Any) -> S:
    like = x if isinstance(x, Scalar) else y
    return type(condition)(like.e, like.e.select(condition.v, like.of(x), like.of(y)))


def fma(x: S, y: Any, z: Any) -> S:
    return x.call("fma", y, z)


def copysign(x: S, y: Any) -> S:
    return x.call("copysign", y)


def sqrt(x: S) -> S:
    return x.call("sqrt")


def two_sum(x: S, y: Any) -> tuple[S, S]:
    """x + y rounded, and what the rounding left (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    s = x + y
    back = s - x
    return s, (x - (s - back)) + (y - back)


def two_product(x: S, y: Any) -> tuple[S, S]:
    """x * y rounded, and what the rounding left."""
    p = x * y
    return p, fma(x, y, -p)

"""Comparison, logic and bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from jitlab.ops.base import Elementwise
from jitlab.ops.emitter import Emitter

from . import complex_bodies
from .arithmetic import BOOLS, COMPLEX_SPECIALS, I8, J8, SPECIALS, X, Y, Z

BOOL = np.dtype(bool)


class Comparison(Elementwise, family=True):
    """A bool from two numbers. A signed and an unsigned 64-bit integer are compared as they are, as NumPy does."""


    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def signed_below(self, e: Emitter, negative: Any, otherwise: Any) -> Any:
        """The answer for a signed x and an unsigned y: what a negative x gives, else the comparison of equals."""
        raise NotImplementedError

    def body(self, e: Emitter, *xs: Any) -> Any:
        x, y = xs
        if x.dtype == y.dtype:
            return self.compare(e, x, y)
        signed, left = (x, True) if x.dtype.kind == "i" else (y, False)
        below = e.lt(signed, e.constant(0, signed.dtype))
        zero, one = e.constant(0, np.dtype("i1")), e.constant(1, np.dtype("i1"))
        when_below = self.compare(e, zero, one) if left else self.compare(e, one, zero)
        unsigned = np.dtype("u8")
        return e.select(below, when_below, self.compare(e, e.cast(x, unsigned), e.cast(y, unsigned)))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), X, Y
        yield cls(), I8, J8
        yield cls(), BOOLS, ~BOOLS
        yield cls(), SPECIALS, np.roll(SPECIALS, 1)
        yield cls(), I8.astype(np.int64), J8.astype(np.uint64)
        yield cls(), Z, np.where(BOOLS, Z, Z.real)
        yield cls(), COMPLEX_SPECIALS, COMPLEX_SPECIALS.real + 1j


class Less(Comparison):
    """x < y."""

    ufunc: ClassVar[np.ufunc] = np.less

    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        return complex_bodies.compare(e, "lt", x, y) if x.dtype.kind == "c" else e.lt(x, y)


class LessEqual(Comparison):
    """x <= y."""

    ufunc: ClassVar[np.ufunc] = np.less_equal

    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        return complex_bodies.compare(e, "le", x, y) if x.dtype.kind == "c" else e.le(x, y)


class Greater(Comparison):
    """x > y."""

    ufunc: ClassVar[np.ufunc] = np.greater

    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        return complex_bodies.compare(e, "gt", x, y) if x.dtype.kind == "c" else e.gt(x, y)


class GreaterEqual(Comparison):
    """x >= y."""

    ufunc: ClassVar[np.ufunc] = np.greater_equal

    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        return complex_bodies.compare(e, "ge", x, y) if x.dtype.kind == "c" else e.ge(x, y)


class Equal(Comparison):
    """x == y."""

    ufunc: ClassVar[np.ufunc] = np.equal

    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        return e.eq(x, y)


class NotEqual(Comparison):
    """x != y."""

    ufunc: ClassVar[np.ufunc] = np.not_equal

    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        return e.ne(x, y)


class Logical(Elementwise, family=True):
    """A bool from the truth of its operands, of any dtype."""

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), BOOLS, np.roll(BOOLS, 1)
        yield cls(), X, np.roll(X, 1) * (X > 0)


class LogicalAnd(Logical):
    """x and y."""

    ufunc: ClassVar[np.ufunc] = np.logical_and

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.and_(*(e.cast(x, BOOL) for x in xs))


class LogicalOr(Logical):
    """x or y."""

    ufunc: ClassVar[np.ufunc] = np.logical_or

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.or_(*(e.cast(x, BOOL) for x in xs))


class LogicalXor(Logical):
    """Exactly one of x and y."""

    ufunc: ClassVar[np.ufunc] = np.logical_xor

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.xor(*(e.cast(x, BOOL) for x in xs))


class LogicalNot(Elementwise):
    """not x."""

    ufunc: ClassVar[np.ufunc] = np.logical_not

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.invert(e.cast(xs[0], np.dtype(bool)))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), BOOLS


class Bitwise(Elementwise, family=True):
    """Bits of integers; of bools: logic."""

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), I8, J8
        yield cls(), BOOLS, np.roll(BOOLS, 1)


class BitwiseAnd(Bitwise):
    """x & y."""

    ufunc: ClassVar[np.ufunc] = np.bitwise_and

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.and_(*xs)


class BitwiseOr(Bitwise):
    """x | y."""

    ufunc: ClassVar[np.ufunc] = np.bitwise_or

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.or_(*xs)


class BitwiseXor(Bitwise):
    """x ^ y."""

    ufunc: ClassVar[np.ufunc] = np.bitwise_xor

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.xor(*xs)


class Invert(Elementwise):
    """~x; of bools: not."""

    ufunc: ClassVar[np.ufunc] = np.invert

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.invert(*xs)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), I8
        yield cls(), BOOLS


class LeftShift(Elementwise):
    """x << y; 0 when y is negative or as wide as x."""

    ufunc: ClassVar[np.ufunc] = np.left_shift

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.shift_left(*xs)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), I8, np.arange(8, dtype=np.int8)
        yield cls(), I8, J8


class RightShift(Elementwise):
    """x >> y, keeping the sign; 0 or -1 when y is negative or as wide as x."""

    ufunc: ClassVar[np.ufunc] = np.right_shift

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.shift_right(*xs)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), I8, np.arange(8, dtype=np.int8)
        yield cls(), I8, J8


class Test(Elementwise, family=True):
    """A bool that tells what kind of number x is."""

    of_integers: ClassVar[bool] = False  # the answer for every integer
    joins_parts_by_or: ClassVar[bool] = True  # how the answers of real and imaginary part make one

    def test(self, e: Emitter, x: Any) -> Any:
        raise NotImplementedError

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        if x.dtype.kind == "c":
            parts = self.test(e, e.real(x)), self.test(e, e.imag(x))
            return e.or_(*parts) if self.joins_parts_by_or else e.and_(*parts)
        return self.test(e, x) if x.dtype.kind == "f" else e.constant(self.of_integers, np.dtype(bool))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), SPECIALS
        yield cls(), I8
        yield cls(), np.array([complex(a, b) for a, b in zip(SPECIALS, np.roll(SPECIALS, 1), strict=True)])


class IsNan(Test):
    """Is x NaN?"""

    ufunc: ClassVar[np.ufunc] = np.isnan

    def test(self, e: Emitter, x: Any) -> Any:
        return e.isnan(x)


class IsInf(Test):
    """Is x infinite?"""

    ufunc: ClassVar[np.ufunc] = np.isinf

    def test(self, e: Emitter, x: Any) -> Any:
        return e.isinf(x)


class IsFinite(Test):
    """Is x neither infinite nor NaN?"""

    ufunc: ClassVar[np.ufunc] = np.isfinite
    of_integers: ClassVar[bool] = True
    joins_parts_by_or: ClassVar[bool] = False

    def test(self, e: Emitter, x: Any) -> Any:
        return e.isfinite(x)


class Signbit(Elementwise):
    """Is the sign of x negative? (Also of -0.0 and of NaN.)"""

    ufunc: ClassVar[np.ufunc] = np.signbit

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.signbit(*xs)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), SPECIALS

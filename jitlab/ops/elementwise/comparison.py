"""Comparison, logic and bits."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from jitlab.ops.base import Elementwise, Operands
from jitlab.ops.emitter import Emitter

from . import complex_bodies
from .arithmetic import BOOLS, COMPLEX_SPECIALS, I8, J8, SPECIALS, X, Y, Z

BOOL = np.dtype(bool)


class Comparison(Elementwise, family=True):
    """A bool from two numbers. A signed and an unsigned 64-bit integer are compared as they are, as NumPy does."""

    operands = (
        (X, Y), (I8, J8), (BOOLS, ~BOOLS), (SPECIALS, np.roll(SPECIALS, 1)), (I8.astype(np.int64), J8.astype(np.uint64)),
        (Z, np.where(BOOLS, Z, Z.real)), (COMPLEX_SPECIALS, COMPLEX_SPECIALS.real + 1j),
    )

    def compare(self, e: Emitter, x: Any, y: Any) -> Any:
        ordered = x.dtype.kind == "c" and self.instruction not in ("eq", "ne")
        return complex_bodies.compare(e, self.instruction, x, y) if ordered else super().body(e, x, y)

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


class Less(Comparison):
    """x < y."""

    ufunc: ClassVar[np.ufunc] = np.less
    instruction: ClassVar[str] = "lt"


class LessEqual(Comparison):
    """x <= y."""

    ufunc: ClassVar[np.ufunc] = np.less_equal
    instruction: ClassVar[str] = "le"


class Greater(Comparison):
    """x > y."""

    ufunc: ClassVar[np.ufunc] = np.greater
    instruction: ClassVar[str] = "gt"


class GreaterEqual(Comparison):
    """x >= y."""

    ufunc: ClassVar[np.ufunc] = np.greater_equal
    instruction: ClassVar[str] = "ge"


class Equal(Comparison):
    """x == y."""

    ufunc: ClassVar[np.ufunc] = np.equal
    instruction: ClassVar[str] = "eq"


class NotEqual(Comparison):
    """x != y."""

    ufunc: ClassVar[np.ufunc] = np.not_equal
    instruction: ClassVar[str] = "ne"


class Logical(Elementwise, family=True):
    """A bool from the truth of its operands, of any dtype."""

    operands: ClassVar[Operands] = ((BOOLS, np.roll(BOOLS, 1)), (X, np.roll(X, 1) * (X > 0)))

    def body(self, e: Emitter, *xs: Any) -> Any:
        return super().body(e, *(e.cast(x, BOOL) for x in xs))


class LogicalAnd(Logical):
    """x and y."""

    ufunc: ClassVar[np.ufunc] = np.logical_and
    instruction: ClassVar[str] = "and_"


class LogicalOr(Logical):
    """x or y."""

    ufunc: ClassVar[np.ufunc] = np.logical_or
    instruction: ClassVar[str] = "or_"


class LogicalXor(Logical):
    """Exactly one of x and y."""

    ufunc: ClassVar[np.ufunc] = np.logical_xor
    instruction: ClassVar[str] = "xor"


class LogicalNot(Logical):
    """not x."""

    ufunc: ClassVar[np.ufunc] = np.logical_not
    instruction: ClassVar[str] = "invert"
    operands = ((BOOLS,),)


class Bitwise(Elementwise, family=True):
    """Bits of integers; of bools: logic."""

    operands = (I8, J8), (BOOLS, np.roll(BOOLS, 1))


class BitwiseAnd(Bitwise):
    """x & y."""

    ufunc: ClassVar[np.ufunc] = np.bitwise_and
    instruction: ClassVar[str] = "and_"


class BitwiseOr(Bitwise):
    """x | y."""

    ufunc: ClassVar[np.ufunc] = np.bitwise_or
    instruction: ClassVar[str] = "or_"


class BitwiseXor(Bitwise):
    """x ^ y."""

    ufunc: ClassVar[np.ufunc] = np.bitwise_xor
    instruction: ClassVar[str] = "xor"


class Invert(Elementwise):
    """~x; of bools: not."""

    ufunc: ClassVar[np.ufunc] = np.invert
    operands = (I8,), (BOOLS,)


class LeftShift(Elementwise):
    """x << y; 0 when y is negative or as wide as x."""

    ufunc: ClassVar[np.ufunc] = np.left_shift
    instruction: ClassVar[str] = "shift_left"
    operands = (I8, np.arange(8, dtype=np.int8)), (I8, J8)


class RightShift(Elementwise):
    """x >> y, keeping the sign; 0 or -1 when y is negative or as wide as x."""

    ufunc: ClassVar[np.ufunc] = np.right_shift
    instruction: ClassVar[str] = "shift_right"
    operands = (I8, np.arange(8, dtype=np.int8)), (I8, J8)


class Test(Elementwise, family=True):
    """A bool that tells what kind of number x is."""

    of_integers: ClassVar[bool] = False  # the answer for every integer
    joins_parts_by_or: ClassVar[bool] = True  # how the answers of real and imaginary part make one
    operands = (SPECIALS,), (I8,), (np.array([complex(a, b) for a, b in zip(SPECIALS, np.roll(SPECIALS, 1), strict=True)]),)

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        if x.dtype.kind == "c":
            parts = self.body(e, e.real(x)), self.body(e, e.imag(x))
            return e.or_(*parts) if self.joins_parts_by_or else e.and_(*parts)
        return super().body(e, x) if x.dtype.kind == "f" else e.constant(self.of_integers, BOOL)


class IsNan(Test):
    """Is x NaN?"""

    ufunc: ClassVar[np.ufunc] = np.isnan


class IsInf(Test):
    """Is x infinite?"""

    ufunc: ClassVar[np.ufunc] = np.isinf


class IsFinite(Test):
    """Is x neither infinite nor NaN?"""

    ufunc: ClassVar[np.ufunc] = np.isfinite
    of_integers: ClassVar[bool] = True
    joins_parts_by_or: ClassVar[bool] = False


class Signbit(Elementwise):
    """Is the sign of x negative? (Also of -0.0 and of NaN.)"""

    ufunc: ClassVar[np.ufunc] = np.signbit
    operands = ((SPECIALS,),)

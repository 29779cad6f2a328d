"""Vectors of integers divided by one number: a multiplication by its reciprocal, whose quotient is made exact.

The result is Python's: quotients are rounded down, a remainder has the divisor's sign; 0 and 0 for a zero divisor, and the
lowest integer by -1 is itself. What does not depend on the vector, LLVM moves out of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .values import F32, F64, I16, U32, Val

if TYPE_CHECKING:
    from .llvm_arithmetic import Arithmetic


def quotient_and_remainder(e: Arithmetic, x: Val, y: Val) -> tuple[Val, Val]:
    """Divisors 0, 1 and -1 are put in at the end: of what they leave, all bits are zero."""
    dtype = x.dtype
    zero, one, ones = e.constant(0, dtype), e.constant(1, dtype), e.constant(_ones(dtype), dtype)
    by_zero, is_trivial = e.eq(y, zero), e.le(y, one)
    if dtype.kind == "i":
        by_minus_one = e.eq(y, ones)
        is_trivial = e.or_(e.or_(by_zero, by_minus_one), e.eq(y, one))
    divide = {1: _bytes, 8: _wide}.get(dtype.itemsize, _narrow)
    quotient, rest = divide(e, x, e.select(is_trivial, e.constant(2, dtype), y))
    itself = e.select(e.and_(is_trivial, e.invert(by_zero)), ones, zero)
    found = e.select(is_trivial, zero, ones)
    quotient = e.or_(e.and_(quotient, found), e.and_(x, itself))
    if dtype.kind == "i":
        sign = e.select(by_minus_one, ones, zero)
        quotient = e.sub(e.xor(quotient, sign), sign)
    return quotient, e.and_(rest, found)


def _ones(dtype: np.dtype) -> int:
    """All bits: -1, where it has a sign."""
    return -1 if dtype.kind == "i" else int(np.iinfo(dtype).max)


def _bytes(e: Arithmetic, x: Val, y: Val) -> tuple[Val, Val]:
    """Of 8 bits, |y| >= 2: n / |y| is n * m >> 16 with m = 2**16 / |y| rounded up, which is too large by less than |y| / 2**16,
    so that n <= 255 of them stay below 1 / |y|. A negative number is rounded down as ~(~n / |y|)."""
    number, divisor = e.cast(x, I16), e.cast(y, I16)
    zero, ones = e.constant(0, I16), e.constant(-1, I16)
    size = e._convert("zext", e.abs(divisor), U32)
    factor = e._convert("trunc", e.plain("udiv", e.add(e.constant(0xFFFF, U32), size), size), I16)
    side = e.select(e.lt(divisor, zero), ones, zero)
    number = e.sub(e.xor(number, side), side)
    sign = e.select(e.lt(number, zero), ones, zero)
    product = e.mul(e._convert("zext", e.xor(number, sign), U32), e._convert("zext", factor, U32))
    quotient = e.xor(e._convert("trunc", e.plain("lshr", product, e.constant(16, U32)), I16), sign)
    found = e._convert("trunc", quotient, x.dtype)
    return found, e.sub(x, e.mul(found, y))


def _narrow(e: Arithmetic, x: Val, y: Val) -> tuple[Val, Val]:
    """Of 16 and 32 bits: (x + 1/2) / y, where 1/2 has y's sign, is at least 1 / 2|y| from each integer. The float holds x, and
    the product with 1/y is off by less than that: what is below it is the quotient."""
    float_type = F32 if x.dtype.itemsize < 4 else F64
    to_float, to_int = ("sitofp", "fptosi") if x.dtype.kind == "i" else ("uitofp", "fptoui")
    divisor = e._convert(to_float, y, float_type)
    reciprocal = e.div(e.constant(1, float_type), divisor)
    half = e.mul(e.copysign(e.constant(0.5, float_type), divisor), reciprocal)
    quotient = e.fma(e._convert(to_float, x, float_type), reciprocal, half)
    found = e._convert(to_int, e.floor(quotient) if x.dtype.kind == "i" else quotient, x.dtype)
    return found, e.sub(x, e.mul(found, y))


def _wide(e: Arithmetic, x: Val, y: Val) -> tuple[Val, Val]:
    """Of 64 bits, |y| >= 2: a float64 has the first 50 bits of a quotient; what it leaves is divided once more, which leaves at
    most about half of y, of either sign. The difference to x fits, whatever wraps on the way to it."""
    reciprocal = e.div(e.constant(1, F64), e._convert("sitofp", y, F64))

    def nearest(rest: Val) -> Val:
        return e._convert("fptosi", e.rint(e.mul(e._convert("sitofp", rest, F64), reciprocal)), x.dtype)

    first = nearest(x)
    rest = e.sub(x, e.mul(first, y))
    second = nearest(rest)
    rest = e.sub(rest, e.mul(second, y))
    zero = e.constant(0, x.dtype)
    below = e.and_(e.ne(rest, zero), e.lt(e.xor(rest, y), zero))
    quotient = e.add(first, second)
    return e.select(below, e.sub(quotient, e.constant(1, x.dtype)), quotient), e.select(below, e.add(rest, y), rest)

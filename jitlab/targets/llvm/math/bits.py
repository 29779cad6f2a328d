"""Functions of a number's bits: neighbours, mantissas and exponents of floats; divisors and bit counts of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitlab.targets.llvm.values import F16, F32, I32, SIGNED, U8, UNSIGNED, Val

if TYPE_CHECKING:
    from jitlab.targets.llvm.llvm_arithmetic import Arithmetic

MANTISSA = {2: 10, 4: 23, 8: 52}  # stored bits


def nextafter(e: Arithmetic, x: Val, y: Val) -> Val:
    """The float after x on the way to y: its bits one up or down."""
    bits = e.bits(x)
    one, zero = e.constant(1, bits.dtype), e.constant(0, x.dtype)
    outwards = e.eq(e.gt(y, x), e.gt(x, zero))
    moved = e.unbits(e.add(bits, e.select(outwards, one, e.constant(-1, bits.dtype))))
    least = e.copysign(e.unbits(one), y)
    moved = e.select(e.eq(x, zero), least, moved)
    moved = e.select(e.eq(x, y), x if x.dtype == F16 else y, moved)  # NumPy's, where two zeros meet
    return e.select(e.or_(e.isnan(x), e.isnan(y)), e.constant(np.nan, x.dtype), moved)


def _exponent_field(e: Arithmetic, x: Val) -> tuple[Val, Val, Val]:
    """x with denormals scaled up, its exponent field, and the power it was scaled by (integers of its size)."""
    mantissa = MANTISSA[x.dtype.itemsize]
    info = np.finfo(x.dtype)
    small = e.lt(e.abs(x), e.constant(info.smallest_normal, x.dtype))
    scaled = e.select(small, e.mul(x, e.constant(2.0 ** (mantissa + 1), x.dtype)), x)
    bits = e.bits(e.abs(scaled))
    field = e.plain("lshr", bits, e.constant(mantissa, bits.dtype))
    return scaled, field, e.select(small, e.constant(mantissa + 1, bits.dtype), e.constant(0, bits.dtype))


def mantissa(e: Arithmetic, x: Val) -> Val:
    """m with x = m * 2**exponent, 0.5 <= |m| < 1; 0, infinities and NaN are their own."""
    if x.dtype == F16:
        return e.cast(mantissa(e, e.cast(x, F32)), F16)
    stored, bias = MANTISSA[x.dtype.itemsize], (1 << (8 * x.dtype.itemsize - MANTISSA[x.dtype.itemsize] - 2)) - 1
    scaled, _, _ = _exponent_field(e, x)
    bits = e.bits(scaled)
    signed = bits.dtype
    exponent_mask = ((1 << (8 * signed.itemsize - 1 - stored)) - 1) << stored
    half = e.or_(e.and_(bits, e.constant(~exponent_mask, signed)), e.constant((bias - 1) << stored, signed))
    usual = e.and_(e.isfinite(x), e.ne(x, e.constant(0, x.dtype)))
    return e.select(usual, e.unbits(half), x)


def exponent(e: Arithmetic, x: Val) -> Val:
    """The int32 exponent that belongs to `mantissa`; 0 for 0, infinities and NaN."""
    if x.dtype == F16:
        return exponent(e, e.cast(x, F32))
    bias = (1 << (8 * x.dtype.itemsize - MANTISSA[x.dtype.itemsize] - 2)) - 1
    _, field, scaled_by = _exponent_field(e, x)
    result = e.sub(e.sub(field, e.constant(bias - 1, field.dtype)), scaled_by)
    usual = e.and_(e.isfinite(x), e.ne(x, e.constant(0, x.dtype)))
    return e.cast(e.select(usual, result, e.constant(0, field.dtype)), I32)


def ldexp(e: Arithmetic, x: Val, power: Val) -> Val:
    """x * 2**power, rounded once: at most the last of three factors reaches the denormals."""
    if x.dtype == F16:
        return e.cast(ldexp(e, e.cast(x, F32), power), F16)
    stored = MANTISSA[x.dtype.itemsize]
    bias = (1 << (8 * x.dtype.itemsize - stored - 2)) - 1
    signed = SIGNED[x.dtype.itemsize]
    limit = e.constant(4 * bias, power.dtype)
    left = e.cast(e.maximum(e.minimum(power, limit), e.constant(-4 * bias, power.dtype)), signed)
    result = x
    for _ in range(3):
        # down, steps leave room for all digits of x, so that the last one alone rounds
        low, high = e.constant(-(bias - 1) + stored + 1, signed), e.constant(bias, signed)
        last = e.constant(-(bias - 1), signed)
        fits = e.ge(left, last)
        step = e.select(fits, e.minimum(left, high), low)
        factor = e.unbits(e.plain("shl", e.add(step, e.constant(bias, signed)), e.constant(stored, signed)))
        result = e.mul(result, factor)
        left = e.sub(left, step)
    # what is left beyond three steps is infinite or 0
    rest = e.constant(0, signed)
    huge, tiny = e.gt(left, rest), e.lt(left, rest)
    result = e.select(huge, e.mul(result, e.constant(np.inf, x.dtype)), result)
    result = e.select(tiny, e.mul(result, e.constant(0, x.dtype)), result)
    return e.select(e.and_(e.isfinite(x), e.ne(x, e.constant(0, x.dtype))), result, x)


def gcd(e: Arithmetic, x: Val, y: Val) -> Val:
    """The greatest common divisor of |x| and |y|, by Euclid's algorithm as long as any lane has a remainder."""
    unsigned = UNSIGNED[x.dtype.itemsize]
    lanes, (a, b) = e._together(*(Val(unsigned, v.text, v.lanes) for v in (e.abs(x), e.abs(y))))
    zero, one = e.constant(0, unsigned), e.constant(1, unsigned)
    type = e.type(unsigned, lanes)
    before, body, after = e.fn.current, e.fn.label("gcd"), e.fn.label("gcd.done")
    e.fn.branch(body)
    e.fn.block(body)
    phis = e.fn.phi(type), e.fn.phi(type)
    for phi, start in zip(phis, (a, b), strict=True):
        phi.add_incoming(e.operand(start), before)
    now_a, now_b = (Val(unsigned, str(phi), lanes) for phi in phis)
    some = e.ne(now_b, zero)
    rest = e.plain("urem", now_a, e.select(some, now_b, one))
    next_a, next_b = e.select(some, now_b, now_a), e.select(some, rest, zero)
    for phi, last in zip(phis, (next_a, next_b), strict=True):
        phi.add_incoming(e.operand(last), e.fn.current)
    e.fn.branch_if(e.any(e.ne(next_b, zero)), body, after)
    e.fn.block(after)
    return Val(x.dtype, next_a.text, next_a.lanes)


def lcm(e: Arithmetic, x: Val, y: Val) -> Val:
    """The least common multiple of |x| and |y|; it wraps as NumPy's."""
    unsigned = UNSIGNED[x.dtype.itemsize]
    a, b, divisor = (Val(unsigned, v.text, v.lanes) for v in (e.abs(x), e.abs(y), gcd(e, x, y)))
    zero, one = e.constant(0, unsigned), e.constant(1, unsigned)
    product = e.mul(e.plain("udiv", a, e.select(e.eq(divisor, zero), one, divisor)), b)
    return Val(x.dtype, product.text, product.lanes)


def bit_count(e: Arithmetic, x: Val) -> Val:
    """How many bits of |x| are set, a uint8."""
    a = e.abs(x)
    return e.cast(e.intrinsic("ctpop", Val(UNSIGNED[x.dtype.itemsize], a.text, a.lanes)), U8)



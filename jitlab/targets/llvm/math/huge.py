"""Remainders of numbers that are huge against what they are divided by, exact by integers: where no C library has them.

All take scalars: they are rare, and their code should stay small.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from jitlab.ops.elementwise.scalars import copysign, where

from .num import Num, fast_two_sum

U64 = np.dtype(np.uint64)

#: Words of 64 bits of 2/pi that a float64 may need; the first one is of zeros, of what is before the point.
WORDS = 20


@cache
def pi_bits(count: int) -> int:
    """pi * 2**count, rounded down, by Machin's formula."""
    guard = 32

    def arctan_of_inverse(n: int) -> int:
        total, power, k = 0, (1 << (count + guard)) // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= n * n
            k += 2
        return total

    return (16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)) >> guard


@cache
def _table() -> str:
    """The bits of 2/pi as a variable of the module: each 64 of them an integer."""
    count = 64 * (WORDS - 1)
    bits = (1 << (2 * count + 65)) // pi_bits(count + 64)
    words = [bits >> 64 * (WORDS - 1 - k) & ((1 << 64) - 1) for k in range(WORDS)]
    return f"@jl.two_over_pi = internal constant [{WORDS} x i64] [{', '.join(f'i64 {word}' for word in words)}], align 8"


def _word(index: Num) -> Num:
    """One of the words of 2/pi."""
    e = index.e
    e.fn.declare(_table())
    place = e.fn.instr(f"getelementptr i64, ptr @jl.two_over_pi, i64 {index.v.text}")
    return Num(e, e.value(e.fn.instr(f"load i64, ptr {place}, align 8"), U64))


def _high(x: Num, y: Num) -> Num:
    """The upper word of a product of words."""
    fn = x.e.fn
    wide = fn.instr(f"mul i128 {fn.instr(f'zext i64 {x.v.text} to i128')}, {fn.instr(f'zext i64 {y.v.text} to i128')}")
    return Num(x.e, x.e.value(fn.instr(f"trunc i128 {fn.instr(f'lshr i128 {wide}, 64')} to i64"), U64))


def _less(x: Num, y: Num) -> Num:
    """1 where x < y: what a sum x carries, that y is one term of."""
    return (x < y).cast(U64)


def _shifted(x: Num, following: Num, count: Num) -> Num:
    """x shifted left by less than a word, with the bits that come from the following one."""
    return Num(x.e, x.e.plain("shl", x.v, count.v)) | Num(x.e, x.e.plain("lshr", (following >> 1).v, (63 - count).v))


def reduced_angle(a: Num) -> tuple[Num, Num, Num]:
    """r, what rounding r lost, and n's low bits, with a = n pi/2 + r, |r| <= pi/4, for a finite a > 2**16 (Payne and Hanek).

    a is m * 2**e. Bits of 2/pi that give multiples of 4 are left out, and the next two or three words make m * 2/pi modulo 4.
    No float comes closer to a multiple of pi/2 than 2**-61, so that the remainder has more bits than r and what it lost.
    """
    f = a.format
    count = f.itemsize // 4 + 1
    bits = a.bits().cast(U64)
    m = (bits & ((1 << f.mantissa) - 1)) | (1 << f.mantissa)
    start = (bits >> f.mantissa) - (f.bias + f.mantissa - 62)
    shift, first = start & 63, start >> 6
    words = [_word(first + k) for k in range(count + 1)]
    turns = _product(m, [_shifted(words[k], words[k + 1], shift) for k in range(count)])
    # of the turns a quarter is two bits, and the rest a fraction of it, which is negative where it is above 1/2
    fraction = [(x << 2) | (following >> 62) for x, following in zip(turns, turns[1:], strict=False)] + [turns[-1] << 2]
    negative = fraction[0] >> 63
    quadrant = (turns[0] >> 62) + negative
    fraction = [x ^ (0 - negative) for x in fraction]
    zeros = Num(a.e, a.e.intrinsic("ctlz", fraction[0].v, tail="i1 false")) & 63
    r, tail = _angle(fraction, zeros, a.v.dtype)
    signed = np.dtype(f"i{f.itemsize}")
    sign = negative.cast(signed) << (8 * f.itemsize - 1)
    return (r.bits() ^ sign).unbits(), (tail.bits() ^ sign).unbits(), quadrant.cast(signed)


def _product(m: Num, words: list[Num]) -> list[Num]:
    """m times the number of these words, but for what is above them."""
    result = [m * words[-1]]
    above = _high(m, words[-1])
    for word in reversed(words[:-1]):
        low = m * word
        total = low + above
        result.insert(0, total)
        if len(result) < len(words):
            above = _high(m, word) + _less(total, low)
    return result


def _angle(fraction: list[Num], zeros: Num, dtype: np.dtype) -> tuple[Num, Num]:
    """pi/2 times a fraction that starts with so many zeros, as the sum of two floats."""
    e = zeros.e
    pi = [Num(e, e.constant(pi_bits(126) >> shift & ((1 << 64) - 1), U64)) for shift in (64, 0)]  # of pi/4
    lead = _shifted(fraction[0], fraction[1], zeros)
    product = _high(lead, pi[0])
    mantissa, bias = (23, 127) if dtype.itemsize == 4 else (52, 1023)
    low_mask = (1 << (63 - mantissa)) - 1
    rest, unit = product & low_mask, 0
    if dtype.itemsize == 8:
        low = lead * pi[0]
        some = low + _high(lead, pi[1])
        total = some + _high(_shifted(fraction[1], fraction[2], zeros), pi[0])
        product = product + _less(some, low) + _less(total, some)
        rest, unit = ((product & low_mask) << mantissa + 1) | (total >> (63 - mantissa)), mantissa + 1
    scale = ((bias - 63 - zeros.cast(f"i{dtype.itemsize}")) << mantissa).unbits()
    r = (product & ~low_mask).cast(dtype) * scale
    return fast_two_sum(r, rest.cast(dtype) * (scale * 2.0**-unit))


def fmod(x: Num, y: Num) -> Num:
    """The remainder of a finite x, of its sign, where |x / y| is finite and not below 2**mantissa: x's digits are shifted in,
    as many at a time as a word has room for."""
    e, f = x.e, x.format
    (digits, exponent), (divisor, least) = (_whole(abs(v)) for v in (x, y))
    starts, type = (digits, exponent - least), e.type(U64, 0)
    before, body, after = e.fn.current, e.fn.label("digits"), e.fn.label("digits.done")
    e.fn.branch(body)
    e.fn.block(body)
    phis = [e.fn.phi(type, [(start.v.text, before)]) for start in starts]
    rest, left = (Num(e, e.value(phi, U64)) for phi in phis)
    room = 63 - f.mantissa
    count = where(left < room, left, room)
    rest = Num(e, e.plain("urem", e.plain("shl", rest.v, count.v), divisor.v))
    left = left - count
    for phi, last in zip(phis, (rest, left), strict=True):
        phi.add_incoming(last.v.text, body)
    e.fn.branch_if(left.differs(0).v.text, body, after)
    e.fn.block(after)
    # times 2**(least - bias - mantissa), in two steps as that may be denormal
    both = (least + (f.bias - f.mantissa)).cast(f"i{f.itemsize}")
    half = both >> 1
    size = rest.cast(x.v.dtype) * (half << f.mantissa).unbits() * ((both - half) << f.mantissa).unbits()
    return copysign(size, x)


def _whole(a: Num) -> tuple[Num, Num]:
    """m and k with a = m * 2**(k - bias - mantissa)."""
    f = a.format
    bits = a.bits().cast(U64)
    field = bits >> f.mantissa
    is_normal = field > 0
    m = (bits & ((1 << f.mantissa) - 1)) | where(is_normal, field.like(1 << f.mantissa), 0)
    return m, where(is_normal, field, 1)

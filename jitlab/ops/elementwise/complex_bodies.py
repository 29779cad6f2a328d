"""Functions of complex numbers from functions of their parts, with the special values of C99's Annex G.

A function takes the parts of z = x + iy, float64, and gives the parts of its result; complex64 is computed in complex128 and
rounded. Sources: W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit" (1987), for
the roots, the inverse functions and the tangents; T. E. Hull, T. F. Fairgrieve and P. T. P. Tang, "Implementing complex
elementary functions using exception handling" (1994), for logarithms near 1. Where their errors could be above 3 ULP, the
sums that lose digits are kept as a float and what its rounding left. Measured against 250 bits, each part is within 3 ULP of
the true value, but: tan and tanh within 4 (NumPy's are as well), powers within 2 |b log(a)| + 4, and the real part of expm1,
near its zeros, within 3 ULP of its terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ops.emitter import Emitter

from .scalars import Scalar, copysign, fma, sqrt, two_product, two_sum, where

Parts = tuple[Scalar, Scalar]

INF, NAN = math.inf, math.nan
LN2 = math.log(2.0)
#: 1 / log(2), 1 / log(10) as a float and what its rounding left.
LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
LOG10_E = (0.4342944819032518, 1.098319650216765e-17)


def exp(x: Scalar, y: Scalar) -> Parts:
    """Above exp's range by halves: exp(x) cos(y) may be finite still."""
    big = (x > 700.0) & (x < INF)
    h = where(big, x * 0.5, x).call("exp")
    again = where(big, h, 1.0)
    turns = y.is_finite()
    flat = x.equals(-INF) & ~turns
    real = where(flat, 0.0, h * y.call("cos") * again)
    imag = where(flat, copysign(x.like(0.0), y), h * y.call("sin") * again)
    real = where(x.equals(INF) & ~turns, INF, real)
    still = y.equals(0.0)
    return where(still, h * again, real), where(still, y, imag)


def exp2(x: Scalar, y: Scalar) -> Parts:
    """exp(z log(2)), as NumPy has it."""
    return exp(x * LN2, y * LN2)


def expm1(x: Scalar, y: Scalar) -> Parts:
    """NumPy's formula. Its real part, exp(x) cos(y) - 1, is where that is near 0 only as good as its terms are."""
    half = (y * 0.5).call("sin")
    return fma(x.call("expm1"), y.call("cos"), -(half * half * 2.0)), x.call("exp") * y.call("sin")


def log(x: Scalar, y: Scalar) -> Parts:
    return _log_modulus(x, y, "log"), y.call("arctan2", x)


def log2(x: Scalar, y: Scalar) -> Parts:
    return _log_modulus(x, y, "log2", LOG2_E), _times(y.call("arctan2", x), LOG2_E)


def log10(x: Scalar, y: Scalar) -> Parts:
    return _log_modulus(x, y, "log10", LOG10_E), _times(y.call("arctan2", x), LOG10_E)


def log1p(x: Scalar, y: Scalar) -> Parts:
    """log(1 + z): near 0 from |1 + z|**2 - 1 = 2 x + x**2 + y**2."""
    u = x + 1.0
    xx, xx_low = two_product(x, x)
    yy, yy_low = two_product(y, y)
    total, left = two_sum(x + x, xx)
    total, more = two_sum(total, yy)
    excess = total + ((left + more) + (xx_low + yy_low))
    near = (abs(x) < 4.0) & (abs(y) < 2.0) & (excess > -0.75) & (excess < 3.0)
    modulus = where(near, where(near, excess, 0.0).call("log1p") * 0.5, _log_modulus(u, y, "log"))
    return modulus, y.call("arctan2", u)


def _times(x: Scalar, factor: tuple[float, float]) -> Scalar:
    return fma(x, factor[0], x * factor[1])


def _log_modulus(x: Scalar, y: Scalar, log: str, factor: tuple[float, float] | None = None) -> Scalar:
    """The logarithm of |z| to the base of `log`: of a scaled sum of squares, or by log1p of what |z|**2 is above 1."""
    x, y = abs(x), abs(y)
    a, b = where(x > y, x, y), where(x > y, y, x)
    huge, small = a > 2.0**500, a < 2.0**-450
    scale = where(huge, 2.0**-600, where(small, 2.0**600, x.like(1.0)))
    power = where(huge, 600.0, where(small, -600.0, x.like(0.0)))
    a, b = a * scale, b * scale
    square = fma(a, a, b * b)
    near = (square > 0.25) & (square < 4.0) & power.equals(0.0)
    aa, aa_low = two_product(a, a)
    bb, bb_low = two_product(b, b)
    rest, left = two_sum(aa, -1.0)
    rest, more = two_sum(rest, bb)
    low, lowest = two_sum(aa_low, bb_low)
    rest, last = two_sum(rest, left + more + low)
    near_one = where(near, rest + (last + lowest), 0.0).call("log1p") * 0.5
    if factor is None:
        far = fma(power, LN2, where(near, 1.0, square).call(log) * 0.5)
    else:
        near_one = _times(near_one, factor)
        of_two = 1.0 if log == "log2" else math.log10(2.0)
        far = fma(power, of_two, where(near, 1.0, square).call(log) * 0.5)
    modulus = where(near, near_one, far)
    return where(x.equals(INF) | y.equals(INF), INF, modulus)


def root(u: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """sqrt((|u| + |u + ib|) / 2), and what its rounding left."""
    u = abs(u)
    h = sqrt(fma(u, u, b * b))
    uu, uu_low = two_product(u, u)
    bb, bb_low = two_product(b, b)
    big, small = where(uu > bb, uu, bb), where(uu > bb, bb, uu)
    total = big + small
    left = (big - total) + small
    h_low = where(h > 0.0, (fma(-h, h, total) + (left + (uu_low + bb_low))) / (h + h), 0.0)
    s, s_low = two_sum(u * 0.5, h * 0.5)
    t = sqrt(s)
    return t, where(t > 0.0, (fma(-t, t, s) + fma(h_low, 0.5, s_low)) / (t + t), 0.0)


def other_part(b: Scalar, t: Scalar, t_low: Scalar) -> tuple[Scalar, Scalar]:
    """b / (2 t), and what its rounding left."""
    twice = where(t > 0.0, t + t, 1.0)
    q = b / twice
    return q, (fma(-q, twice, b) - q * (t_low + t_low)) / twice


def square_root(x: Scalar, y: Scalar) -> Parts:
    u, b = abs(x), abs(y)
    big = where(u > b, u, b)
    huge, small = big > 2.0**500, big < 2.0**-450
    one = x.like(1.0)
    scale = where(huge, 2.0**-600, where(small, 2.0**600, one))
    back = where(huge, 2.0**300, where(small, 2.0**-300, one))
    t, t_low = root(u * scale, b * scale)
    t, t_low = t * back, t_low * back
    q, q_low = other_part(b, t, t_low)
    t, q = t + t_low, q + q_low
    left = x.is_negative()
    real, imag = where(left, q, t), where(left, t, q)
    nan = x.is_nan() | y.is_nan()
    none = u.equals(0.0) & b.equals(0.0)
    real, imag = where(none, 0.0, real), where(none, 0.0, imag)
    # infinities
    real, imag = where(nan, NAN, real), where(nan, NAN, imag)
    right, end = x.equals(INF), x.equals(-INF)
    real = where(end, where(y.is_nan(), NAN, x.like(0.0)), where(right, INF, real))
    imag = where(end, INF, where(right, where(y.is_nan(), NAN, x.like(0.0)), imag))
    tall = b.equals(INF)
    real, imag = where(tall, INF, real), where(tall, INF, imag)
    return real, copysign(imag, y)


def _halves(x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Whether |x| is beyond where cosh is finite; the factors of sinh(|x|), of cosh(x), and a second one of both."""
    a = abs(x)
    big = (a > 700.0) & (a < INF)
    h = where(big, a * 0.5, 0.0).call("exp")
    return where(big, h * 0.5, a.call("sinh")), where(big, h * 0.5, a.call("cosh")), where(big, h, 1.0), big


def sinh(x: Scalar, y: Scalar) -> Parts:
    """sinh(x) cos(y), cosh(x) sin(y)"""
    s, c, again, _ = _halves(x)
    turns, still = y.is_finite(), y.equals(0.0)
    cos, sin = y.call("cos"), y.call("sin")
    real = where(turns, s * cos * again, where(x.equals(0.0) | x.is_inf(), s, NAN))
    real = where(still, s * again, real)
    imag = where(still, 0.0, abs(c * sin * again))
    real = where(x.equals(0.0), 0.0, real)
    flip = turns & (cos < 0.0)
    sign = where(flip ^ (x.is_negative() & ~(x.is_inf() & ~turns)), -1.0, x.like(1.0))
    return copysign(real, sign), copysign(imag, where(turns & ~still, sin, y))


def cosh(x: Scalar, y: Scalar) -> Parts:
    """cosh(x) cos(y), sinh(x) sin(y)"""
    s, c, again, _ = _halves(x)
    turns, still = y.is_finite(), y.equals(0.0)
    cos, sin = y.call("cos"), y.call("sin")
    real = where(still, c * again, where(~turns & x.is_inf(), INF, c * cos * again))
    origin = x.equals(0.0)
    imag = where(still | origin, 0.0, abs(s * sin * again))
    one = x.like(1.0)
    sign = where(x.is_negative(), -one, one) * copysign(one, where(turns & ~still, sin, y))
    imag = where(x.is_nan() & still, 0.0, imag)
    sign = where(x.is_nan(), y, where(origin & ~turns, one, sign))
    return real, copysign(imag, sign)


def sin(x: Scalar, y: Scalar) -> Parts:
    """sin(z) = -i sinh(iz)"""
    imag, real = sinh(y, x)
    return real, imag


def cos(x: Scalar, y: Scalar) -> Parts:
    """cos(z) = cosh(iz)"""
    return cosh(-y, x)


def tanh(x: Scalar, y: Scalar) -> Parts:
    """(sinh 2x + i sin 2y) / (cosh 2x + cos 2y); where that cancels, (sinh x cosh x + i sin y cos y) / (sinh² x + cos² y)."""
    a = abs(x)
    far = a > 22.0
    wide = (a > 0.75) & (abs(y) < 2.0**1000)
    inner, angle = where(far, 22.0, a), where(wide, y + y, y)
    inner = where(wide, inner + inner, inner)
    s, c = inner.call("sinh"), inner.call("cosh")
    sine, cosine = angle.call("sin"), angle.call("cos")
    below = where(wide, c + cosine, fma(cosine, cosine, s * s))
    product = where(wide, sine, sine * cosine)
    decay = (-a).call("exp")
    outer = product * where(wide, 2.0, x.like(4.0)) * decay * decay
    real = where(far, 1.0, where(wide, s, s * c) / below)
    imag = where(far, outer, product / below)
    turns = y.is_finite()
    end = a.equals(INF)
    imag = where(end, where(turns, copysign(x.like(0.0), product), copysign(x.like(0.0), y)), imag)
    real = where(end | turns, real, where(x.equals(0.0), x, NAN))
    still = y.equals(0.0)
    imag = where(still, y, imag)
    nan = x.is_nan()
    real, imag = where(nan, NAN, real), where(nan & ~still, NAN, imag)
    return copysign(real, x), imag


def tan(x: Scalar, y: Scalar) -> Parts:
    """tan(z) = -i tanh(iz)"""
    imag, real = tanh(y, x)
    return real, imag


FAR = 2.0**500  # from here on arccosh(z) is log(2 z)
TINY = 2.0**-28  # z**3 is nothing beside z


def _roots_of_one(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar]:
    """For z = |x| + i|y|, a = sqrt(1 - z), b = sqrt(1 + z): is z far out; Re(a), Re(b), Re(a b); arccosh(z)'s real part."""
    x, y = abs(x), abs(y)
    far = (x > FAR) | (y > FAR)
    height = where(far, (x * 0.25).call("hypot", y * 0.25), 1.0).call("log") + 3.0 * LN2
    x, y = where(far, 1.0, x), where(far, 1.0, y)
    (left, left_low), (right, right_low) = two_sum(x.like(1.0), -x), two_sum(x.like(1.0), x)
    edge = left.equals(0.0) & (y < 2.0**-450)  # the square of y would be lost, and it is all there is
    p, p_low = root(left, y * where(edge, 2.0**600, x.like(1.0)))
    shrink = where(edge, 2.0**-300, x.like(1.0))
    p, p_low = p * shrink, p_low * shrink
    q, q_low = other_part(y, p, p_low)
    r, r_low = root(right, y)
    m, m_low = other_part(y, r, r_low)
    p_low, q_low = _moved(p, p_low, q, q_low, left, left_low)
    r_low, m_low = _moved(r, r_low, m, m_low, right, right_low)
    outside = x > 1.0
    a1, a1_low = where(outside, q, p), where(outside, q_low, p_low)
    a2, a2_low = where(outside, p, q), where(outside, p_low, q_low)
    product = _sum_of_products(a1, a1_low, r, r_low, a2, a2_low, m, m_low)
    near = _sum_of_products(a1, a1_low, m, m_low, a2, a2_low, r, r_low).call("arcsinh")
    return far, a1 + a1_low, r + r_low, product, where(far, height, near)


def _moved(t: Scalar, t_low: Scalar, q: Scalar, q_low: Scalar, u: Scalar, u_low: Scalar) -> tuple[Scalar, Scalar]:
    """The low parts of the root of w = u + iv when u is u + u_low: dt = t d|u| / (2 |w|), dq = -q d|u| / (2 |w|)."""
    w = t * t + q * q
    change = where(w > 0.0, where(u < 0.0, -u_low, u_low) / (w + w), 0.0)
    return fma(t, change, t_low), fma(-q, change, q_low)


def _sum_of_products(
    a: Scalar, a_low: Scalar, b: Scalar, b_low: Scalar, c: Scalar, c_low: Scalar, d: Scalar, d_low: Scalar
) -> Scalar:
    """a b + c d, all of them positive, with their low parts."""
    first, first_low = two_product(a, b)
    second, second_low = two_product(c, d)
    total, left = two_sum(first, second)
    low = fma(a, b_low, fma(a_low, b, first_low)) + fma(c, d_low, fma(c_low, d, second_low))
    return total + (left + low)


def arcsin(x: Scalar, y: Scalar) -> Parts:
    far, _, _, product, height = _roots_of_one(x, y)
    a, b = abs(x), abs(y)
    real = a.call("arctan2", where(far, b, product))
    tiny = (a < TINY) & (b < TINY)
    real, height = where(tiny, a, real), where(tiny, b, height)
    end = b.equals(INF)
    real = where(end, where(a.equals(INF), math.pi / 4, x.like(0.0)), where(a.equals(INF), math.pi / 2, real))
    height = where(end | a.equals(INF), INF, height)
    nan = x.is_nan() | y.is_nan()
    real = where(nan & ~x.equals(0.0), NAN, real)
    height = where(x.equals(0.0) & y.is_nan(), NAN, height)
    height = where(nan & ~end & ~a.equals(INF), NAN, height)
    real = where(x.equals(0.0) & y.is_nan(), 0.0, real)
    height = where(x.is_nan() & y.equals(0.0), NAN, height)
    return copysign(real, x), copysign(height, y)


def arcsinh(x: Scalar, y: Scalar) -> Parts:
    """arcsinh(z) = -i arcsin(iz)"""
    imag, real = arcsin(y, x)
    return real, imag


def _arccos(x: Scalar, y: Scalar) -> Parts:
    """The real part, and the size of the imaginary one."""
    far, a1, b1, _, height = _roots_of_one(x, y)
    left = x.is_negative()
    a, b = abs(x), abs(y)
    real = where(far, b, where(left, b1, a1)).call("arctan2", where(far, x, where(left, a1, b1)))
    real = where(far, real, real * 2.0)
    height = where((a < TINY) & (b < TINY), b, height)
    wide, tall = a.equals(INF), b.equals(INF)
    quarter = x.like(math.pi / 4)
    real = where(wide, where(left, math.pi, x.like(0.0)), real)
    real = where(tall, where(wide, where(left, 3.0 * quarter, quarter), quarter * 2.0), real)
    height = where(wide | tall, INF, height)
    nan = x.is_nan() | y.is_nan()
    real = where(nan, where(x.equals(0.0), math.pi / 2, x.like(NAN)), real)
    return real, where(nan & ~wide & ~tall, NAN, height)


def arccos(x: Scalar, y: Scalar) -> Parts:
    real, height = _arccos(x, y)
    return real, copysign(height, -copysign(x.like(1.0), y))


def arccosh(x: Scalar, y: Scalar) -> Parts:
    real, height = _arccos(x, y)
    return height, copysign(real, where(y.is_nan(), 1.0, y))


def arctanh(x: Scalar, y: Scalar) -> Parts:
    """log1p(4 x / ((1 - x)² + y²)) / 4, and half the angle of (1 - x)(1 + x) - y² + 2 i y."""
    a, b = abs(x), abs(y)
    big = (a > 2.0**60) | (b > 2.0**60)
    p, q = where(big, 1.0, a), where(big, 1.0, b)
    below = 1.0 - p
    squares = fma(below, below, q * q)
    edge = p.equals(1.0) & (q < 2.0**-500)
    real = (p * 4.0 / where(edge, 1.0, squares)).call("log1p") * 0.25
    real = where(edge, (LN2 - where(edge, b, 1.0).call("log")) * 0.5, real)
    high, low = two_product(below, 1.0 + p)
    imag = (q + q).call("arctan2", fma(-q, q, high) + low) * 0.5
    # far out: 1 / z
    greater, lesser = where(a > b, a, b), where(a > b, b, a)
    outer = (a / greater * 0.5) / fma(lesser * 0.5, lesser / greater, greater * 0.5)
    infinite = a.equals(INF) | b.equals(INF)
    real = where(big, where(infinite, 0.0, outer), real)
    imag = where(big, math.pi / 2, imag)
    nan = x.is_nan() | y.is_nan()
    real = where(nan, where(infinite | x.equals(0.0), 0.0, x.like(NAN)), real)
    imag = where(nan, where(b.equals(INF), math.pi / 2, x.like(NAN)), imag)
    return copysign(real, x), copysign(imag, y)


def arctan(x: Scalar, y: Scalar) -> Parts:
    """arctan(z) = -i arctanh(iz)"""
    imag, real = arctanh(y, x)
    return real, imag


def power(e: Emitter, a: Any, b: Any) -> Any:
    """NumPy's: whole exponents up to 100 by squaring, others exp(b log(a))."""
    x, y, u, v = (Scalar(e, part) for part in (e.real(a), e.imag(a), e.real(b), e.imag(b)))
    size, angle = log(x, y)
    real, imag = exp(*_product(u, v, size, angle))
    result = e.make_complex(real.v, imag.v)
    whole = v.equals(0.0) & u.call("trunc").equals(u) & (abs(u) < 100.0)
    count = where(whole, abs(u), 0.0)
    one = e.constant(1, a.dtype)
    product, base, some = one, a, ~((u > 0.0) & (u < 4.0))  # of 1, 2 and 3 NumPy has a, a a and a a a
    for _ in range(7):
        half = (count * 0.5).call("floor")
        odd = ~half.equals(count * 0.5)
        product = e.select(odd.v, e.select(some.v, e.mul(product, base), base), product)
        some, count = some | odd, half
        base = e.mul(base, base)
    product = e.select((whole & (u < 0.0)).v, e.div(one, product), product)
    result = e.select(whole.v, product, result)
    nothing = x.equals(0.0) & y.equals(0.0)
    zero, nan = e.constant(0, a.dtype), e.constant(complex(NAN, NAN), a.dtype)
    of_zero = e.select((u > 0.0).v, zero, nan)
    result = e.select(nothing.v, of_zero, result)
    return e.select((u.equals(0.0) & v.equals(0.0)).v, one, result)


def _product(a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Parts:
    """(a + ib)(c + id) as Annex G multiplies: what is infinite stays so beside a NaN."""
    real, imag = fma(a, c, -(b * d)), fma(a, d, b * c)
    left, right = a.is_inf() | b.is_inf(), c.is_inf() | d.is_inf()
    overflows = (a * c).is_inf() | (b * d).is_inf() | (a * d).is_inf() | (b * c).is_inf()
    zero = a.like(0.0)

    def boxed(x: Scalar, infinite: Scalar, other: Scalar) -> Scalar:
        x = where(infinite, copysign(where(x.is_inf(), 1.0, zero), x), x)
        return where(x.is_nan() & (other | overflows), copysign(zero, x), x)

    a, b, c, d = boxed(a, left, right), boxed(b, left, right), boxed(c, right, left), boxed(d, right, left)
    lost = real.is_nan() & imag.is_nan() & (left | right | overflows)
    return where(lost, (a * c - b * d) * INF, real), where(lost, (a * d + b * c) * INF, imag)


def reciprocal(e: Emitter, z: Any) -> Any:
    """NumPy's: Smith's way, which divides by the greater part first."""
    x, y = Scalar(e, e.real(z)), Scalar(e, e.imag(z))
    by_real = abs(y) <= abs(x)
    ratio = where(by_real, y, x) / where(by_real, x, y)
    below = where(by_real, x + y * ratio, x * ratio + y)
    one = x.like(1.0)
    return e.make_complex((where(by_real, one, ratio) / below).v, (where(by_real, -ratio, -one) / below).v)


def sign(e: Emitter, z: Any) -> Any:
    """z / |z|, and 0 of 0; of one infinite part its direction."""
    x, y = Scalar(e, e.real(z)), Scalar(e, e.imag(z))
    length = x.call("hypot", y)
    some = ~length.equals(0.0)
    real, imag = where(some, x / length, 0.0), where(some, y / length, 0.0)
    one, zero, far = x.like(1.0), x.like(0.0), length.is_inf()
    real = where(far, where(x.is_inf(), where(y.is_inf(), NAN, copysign(one, x)), zero), real)
    imag = where(far, where(y.is_inf(), where(x.is_inf(), NAN, copysign(one, y)), zero), imag)
    nan = length.is_nan()
    return e.make_complex(where(nan, NAN, real).v, where(nan, NAN, imag).v)


def compare(e: Emitter, order: str, a: Any, b: Any) -> Any:
    """NumPy's order of complex numbers (`lt`, `le`, `gt`, `ge`): by real parts, of equal ones by imaginary parts."""
    x, y, u, v = (Scalar(e, part) for part in (e.real(a), e.imag(a), e.real(b), e.imag(b)))
    strictly = x.call(order[0] + "t", u) & ~(y.is_nan() | v.is_nan())
    return (strictly | (x.equals(u) & y.call(order, v))).v


#: By the name of the ufunc.
BODIES: dict[str, Callable[[Scalar, Scalar], Parts]] = {
    "sqrt": square_root,
    **{f.__name__: f for f in (exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, sinh, cosh, tanh)},
    **{f.__name__: f for f in (arcsin, arccos, arctan, arcsinh, arccosh, arctanh)},
}

WIDE = np.dtype("c16")


def body(e: Emitter, name: str, z: Any) -> Any:
    """The ufunc `name` of one complex number."""
    wide = e.cast(z, WIDE)
    real, imag = BODIES[name](Scalar(e, e.real(wide)), Scalar(e, e.imag(wide)))
    return e.cast(e.make_complex(real.v, imag.v), z.dtype)

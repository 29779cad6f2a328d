"""Functions of floats in branch-free vector code, within 3 ULP of the true value everywhere.

Coefficients are in coefficients.py. `fma` is used freely here; the hi/lo splittings need that no fast-math flag
ever reaches this code. Where a rare argument needs more (sines of huge numbers), a cold block takes over for its lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jitlab.ops.elementwise.scalars import copysign, fma, sqrt, two_product, two_sum, where
from jitlab.support.later import Later

from .num import Num, fast_two_sum, lane_by_lane, rarely

if TYPE_CHECKING:
    from jitlab.targets.llvm.llvm_arithmetic import Arithmetic
    from jitlab.targets.llvm.values import Val

    from . import huge
else:
    huge = Later(f"{__package__}.huge")

INF, NAN = float("inf"), -float("nan")  # of an invalid operation, as hardware makes it: with its sign set
LOG_2 = 0.6931471805599453


def trunc(x: Num) -> Num:
    return x.call("trunc")


def floor(x: Num) -> Num:
    return x.call("floor")


def clamp(x: Num, low: float, high: float) -> Num:
    """NaN stays."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def poly(x: Num, coefficients: Sequence[float]) -> Num:
    """Horner's rule; lowest power first."""
    result: Num | float = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = fma(x, result, c)
    assert isinstance(result, Num)
    return result


def poly_wide(x: Num, coefficients: Sequence[float]) -> Num:
    """Estrin's rule: pairs, pairs of pairs; more multiplications, shorter chains."""
    terms: list[Num | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs: list[Num | float] = [fma(power, terms[i + 1], terms[i]) for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[len(pairs) * 2 :]
        if len(terms) > 1:
            power = power * power
    assert isinstance(terms[0], Num)
    return terms[0]


class _Function:
    """A function of Nums as a method of the emitter; float16 is computed in float32 and rounded."""

    def __init__(self, body: Callable[..., Num]) -> None:
        self.body = body
        self.name = body.__name__
        self.__doc__ = body.__doc__

    half: ClassVar[np.dtype[Any]] = np.dtype(np.float16)

    def __get__(self, e: Arithmetic, owner: type) -> Callable[..., Val]:
        return partial(self, e)

    def __call__(self, e: Arithmetic, *xs: Val) -> Val:
        return e.called(self.name, self.written, *xs) if e.fn.shares else self.written(e, *xs)

    def written(self, e: Arithmetic, *xs: Val) -> Val:
        """Where it is called."""
        half = xs[0].dtype == self.half
        nums = [Num(e, e.cast(x, np.float32) if half else x) for x in xs]
        result: Val = self.body(*nums).v
        return e.cast(result, self.half) if half else result


# exponentials


def _reduce_exp(x: Num) -> tuple[Num, Num]:
    """r and n (added to the magic number, so its low bits are the integer) with x = n log(2) + r, |r| < 0.35."""
    f = x.format
    (inv_ln2, _), (high, low) = x.constants("INV_LN2"), x.constants("LN2")
    ticks = fma(x, inv_ln2, f.magic)
    n = ticks - f.magic
    return fma(n, -low, fma(n, -high, x)), ticks


def _scale(x: Num, ticks: Num) -> Num:
    """x * 2**n in two steps, so that neither overflows before the result does."""
    f = x.format
    both = ticks.bits() + (2 * f.bias - f.magic_bits)
    first = both >> 1
    second = both - first
    return x * (first << f.mantissa).unbits() * (second << f.mantissa).unbits()


def _power_of_two(ticks: Num, plus: int = 0) -> Num:
    """2**(n + plus), for a normal result."""
    f = ticks.format
    return ((ticks.bits() + (f.bias + plus - f.magic_bits)) << f.mantissa).unbits()


def _exp_less_one(r: Num) -> Num:
    """exp(r) - 1 for |r| < 0.35."""
    return fma(r * r, (poly_wide if r.format.itemsize == 8 else poly)(r, r.constants("EXP")), r)


@_Function
def exp(x: Num) -> Num:
    x = clamp(x, -746.0, 710.0) if x.format.itemsize == 8 else clamp(x, -104.0, 89.0)
    r, ticks = _reduce_exp(x)
    return _scale(_exp_less_one(r) + 1.0, ticks)


@_Function
def exp2(x: Num) -> Num:
    f = x.format
    x = clamp(x, -1076.0, 1025.0) if f.itemsize == 8 else clamp(x, -151.0, 129.0)
    ticks = x + f.magic
    r = x - (ticks - f.magic)
    return _scale(fma(r, (poly_wide if f.itemsize == 8 else poly)(r, x.constants("EXP2")), 1.0), ticks)


@_Function
def expm1(x: Num) -> Num:
    c = clamp(x, -50.0, 710.0) if x.format.itemsize == 8 else clamp(x, -25.0, 89.0)
    r, ticks = _reduce_exp(c)
    half = _power_of_two(ticks, -1)  # so that it is finite up to the end of exp's range
    h = fma(_exp_less_one(r), half, half - 0.5)
    return where(abs(x) < x.format.tiny, x, h + h)


def _hyperbolic(x: Num) -> tuple[Num, Num, Num]:
    """|x| up to where cosh is infinite; for it, exp(r) - 1 and 2**(n-2): a quarter of exp(|x|) is always finite."""
    a = abs(x)
    end = 710.6 if x.format.itemsize == 8 else 89.6
    a = where(a > end, end, a)
    r, ticks = _reduce_exp(a)
    return a, _exp_less_one(r), _power_of_two(ticks, -2)


@_Function
def cosh(x: Num) -> Num:
    _, p, scale = _hyperbolic(x)
    h = (p + 1.0) * scale * 2.0
    return h + 0.25 / h


@_Function
def sinh(x: Num) -> Num:
    a, p, scale = _hyperbolic(x)
    q = fma(p, scale, scale - 0.25)
    y = q / (q * 4.0 + 1.0) + q
    z = a * a
    small = fma(z * a, poly(z, x.constants("SINH")), a)
    return copysign(where(a < 1.0, small, y + y), x)


@_Function
def tanh(x: Num) -> Num:
    a = abs(x)
    limit = 22.0 if x.format.itemsize == 8 else 10.0
    a = where(a > limit, limit, a)
    r, ticks = _reduce_exp(a + a)
    scale = _power_of_two(ticks)
    t = fma(_exp_less_one(r), scale, scale - 1.0)
    return copysign(t / (t + 2.0), x)


# logarithms


def _split_log(x: Num, denormals: bool = True) -> tuple[Num, Num]:
    """k and f with x = 2**k (1 + f), 1 + f from sqrt(1/2) to sqrt(2), for a positive finite x."""
    f = x.format
    small = x < f.least_normal
    bits = (where(small, x * 2.0 ** (f.mantissa + 2), x) if denormals else x).bits() + (f.one - f.sqrt_half_bits)
    shifted = ((bits >> f.mantissa) | ((f.bias + f.mantissa) << f.mantissa)).unbits()
    offset = 2.0**f.mantissa + f.bias
    k = shifted - (where(small, x.like(offset + f.mantissa + 2), offset) if denormals else offset)
    z = ((bits & ((1 << f.mantissa) - 1)) + f.sqrt_half_bits).unbits()
    return k, z - 1.0


def _log_edges(x: Num, y: Num) -> Num:
    """y, but log's values where x is not positive and finite."""
    y = where(x < INF, y, x)  # infinity and NaN
    return where(x > 0.0, y, where(x.equals(0.0), x.like(-INF), where(x < 0.0, NAN, y)))


def _log_rest(f: Num) -> tuple[Num, Num, Num]:
    """s, R, h with log(1+f) = f - (h - s (h + R)): f**2/2 is exact enough to take it out."""
    s = f / (f + 2.0)
    z = s * s
    return s, z * poly(z, f.constants("LOG")), f * 0.5 * f


@_Function
def log(x: Num) -> Num:
    k, f = _split_log(x)
    return _log_edges(x, _log_join(k, f))


def _log_join(k: Num, f: Num) -> Num:
    """k log(2) + log(1 + f)"""
    high, low = k.constants("LN2")
    s, rest, h = _log_rest(f)
    y = fma(s, h + rest, k * low)
    return fma(k, high, f - (h - y))


@_Function
def log1p(x: Num) -> Num:
    form = x.format
    u = x + 1.0
    # what 1 + x lost: the greater one first
    back = u - x
    lost = where(x > 1.0, 1.0 - back, x - (u - 1.0))
    bits = u.bits() + (form.one - form.sqrt_half_bits)
    exponent = bits >> form.mantissa
    shifted = (exponent | ((form.bias + form.mantissa) << form.mantissa)).unbits()
    k = shifted - (2.0**form.mantissa + form.bias)
    z = ((bits & ((1 << form.mantissa) - 1)) + form.sqrt_half_bits).unbits()
    scale = ((2 * form.bias - exponent) << form.mantissa).unbits()  # 2**-k
    lost = where(x < 2.0 ** (form.mantissa + 4), lost * scale, 0.0)
    y = _log_join(k, (z - 1.0) + lost)
    y = where(abs(x) < form.tiny, x, y)
    y = where(x < INF, y, x)
    return where(x > -1.0, y, where(x.equals(-1.0), x.like(-INF), where(x < -1.0, NAN, y)))


def _log_of_base(x: Num, inverse: str, power: tuple[float, float]) -> Num:
    """k * power + log(1+f) / log(base), both with their low parts: exact where the result is an integer."""
    k, f = _split_log(x)
    s, rest, h = _log_rest(f)
    high = f - h
    low = (f - high) - h + s * (h + rest)
    high, low = fast_two_sum(high, low)
    (inv_high, inv_low), (power_high, power_low) = x.constants(inverse), power
    product, product_low = two_product(high, inv_high)
    tail = fma(high, inv_low, fma(low, inv_high, product_low)) + k * power_low
    total, total_low = two_sum(k * power_high, product)
    return _log_edges(x, total + (total_low + tail))


@_Function
def log2(x: Num) -> Num:
    return _log_of_base(x, "INV_LN2", (1.0, 0.0))


@_Function
def log10(x: Num) -> Num:
    high, low = x.constants("LOG10_2")
    return _log_of_base(x, "INV_LN10", (high, low))


# inverse hyperbolic functions, through log1p


def _log_twice(x: Num) -> Num:
    """log(2 x) for a large x."""
    k, f = _split_log(x)
    return _log_edges(x, _log_join(k + 1.0, f))


@_Function
def arcsinh(x: Num) -> Num:
    a = abs(x)
    huge = 2.0 ** (x.format.mantissa // 2 + 2)
    square = a * a
    small = log1p.body(a + square / (sqrt(square + 1.0) + 1.0))
    y = where(a > huge, _log_twice(a), small)
    return copysign(where(a < x.format.tiny, a, y), x)


@_Function
def arccosh(x: Num) -> Num:
    huge = 2.0 ** (x.format.mantissa // 2 + 2)
    t = x - 1.0
    y = where(x > huge, _log_twice(x), log1p.body(t + sqrt(t * (t + 2.0))))
    return where(x < 1.0, NAN, y)


@_Function
def arctanh(x: Num) -> Num:
    a = abs(x)
    y = log1p.body((a + a) / (1.0 - a)) * 0.5
    return copysign(where(a < x.format.tiny, a, y), x)


# circular functions

# |x| up to which three parts of pi/2 leave a good remainder
LIMITS = {8: 2.0**30, 4: 1e5}


def _quadrant(x: Num) -> tuple[Num, Num, Num]:
    """n, x - n (first part of pi/2), which is exact, and n's low bits as an integer."""
    f = x.format
    ticks = fma(x, x.constants("TWO_OVER_PI")[0], f.magic)
    n = ticks - f.magic
    return n, fma(n, -x.constants("PIO2")[0], x), ticks.bits()


def _reduce_angle(x: Num) -> tuple[Num, Num]:
    """r and n's low bits with x = n pi/2 + r."""
    n, first, quadrant = _quadrant(x)
    _, middle, low = x.constants("PIO2")
    return fma(n, -low, fma(n, -middle, first)), quadrant


def _reduce_angle_twice(x: Num) -> tuple[Num, Num, Num]:
    """The same with r as a sum of two floats."""
    n, first, quadrant = _quadrant(x)
    _, middle, low = x.constants("PIO2")
    product, product_low = two_product(n, -middle)
    r, r_low = two_sum(first, product)
    r, r_low = fast_two_sum(r, r_low + fma(n, -low, product_low))
    return r, r_low, quadrant


def _sin_poly(r: Num, z: Num) -> Num:
    return fma(z * r, poly(z, r.constants("SIN")), r)


def _cos_poly(r: Num, z: Num) -> Num:
    half = z * 0.5
    w = 1.0 - half
    return w + fma(z * z, poly(z, r.constants("COS")), (1.0 - w) - half)


#: x, r, what r lost of the angle, n -> a function of x = n pi/2 + r
_OfAngle = Callable[[Num, Num, Num, Num], Num]


def _circular(x: Num, name: str, fast: Callable[[Num], Num], of_angle: _OfAngle) -> Num:
    """Lanes of huge arguments go, for float32, through float64, and then to the C library one by one; without that one, they
    are reduced by integers."""
    is_huge, usual = abs(x) > LIMITS[x.format.itemsize], fast(x)

    def slow() -> Num:
        if not x.e.features.has_libm:
            return lane_by_lane(f"{name}.huge", is_huge, lambda one: _of_huge(one, of_angle), usual, x)
        if x.format.itemsize == 4:
            return _circular(x.cast(np.float64), name, fast, of_angle).cast(np.float32)
        return Num(x.e, x.e.call(name, x.v))

    return rarely(is_huge, slow, usual)


def _of_huge(x: Num, of_angle: _OfAngle) -> Num:
    a = abs(x)
    return where(a < INF, of_angle(x, *huge.reduced_angle(a)), NAN)


@_Function
def sin(x: Num) -> Num:
    return _circular(x, "sin", _fast_sin, _sin_of_angle)


def _fast_sin(x: Num) -> Num:
    r, quadrant = _reduce_angle(abs(x))
    return _sin_of_angle(x, r, r, quadrant)


def _sin_of_angle(x: Num, r: Num, _: Num, quadrant: Num) -> Num:
    # of |x|, then the sign: so that -0.0 keeps its own
    return _quarter(r, quadrant, x.bits() & x.format.sign)


@_Function
def cos(x: Num) -> Num:
    return _circular(x, "cos", _fast_cos, _cos_of_angle)


def _fast_cos(x: Num) -> Num:
    r, quadrant = _reduce_angle(x)
    return _cos_of_angle(x, r, r, quadrant)


def _cos_of_angle(_x: Num, r: Num, _: Num, quadrant: Num) -> Num:
    return _quarter(r, quadrant + 1, None)


def _quarter(r: Num, quadrant: Num, sign: Num | None) -> Num:
    f = r.format
    z = r * r
    y = where((quadrant & 1).differs(0), _cos_poly(r, z), _sin_poly(r, z))
    turned = (quadrant & 2) << (8 * f.itemsize - 2)
    return (y.bits() ^ (turned if sign is None else turned ^ sign)).unbits()


@_Function
def tan(x: Num) -> Num:
    return _circular(x, "tan", _fast_tan, _tan_of_angle)


def _fast_tan(x: Num) -> Num:
    return _tan_of_angle(x, *_reduce_angle_twice(abs(x)))


def _tan_of_angle(x: Num, r: Num, tail: Num, quadrant: Num) -> Num:
    """Of |x|, then the sign."""
    f = x.format
    z = r * r
    rest = fma(z * r, poly(z, x.constants("TAN")), tail)
    t = r + rest
    t = r + fma(tail, t * t, rest)
    odd = (quadrant & 1).differs(0)
    one = t.like(1.0)
    y = where(odd, -one, t) / where(odd, t, one)
    return (y.bits() ^ (x.bits() & f.sign)).unbits()


def _atan_of_ratio(a: Num, b: Num) -> Num:
    """arctan(a / b) for a >= 0 and b > 0, by way of pi/4 or pi/2 where the ratio is above tan(pi/8)."""
    high, low = a.constants("PIO4")
    middle, large = a > b * 0.41421356, a > b * 2.41421356
    above = where(large, -b, where(middle, a - b, a))
    below = where(large, a, where(middle, a + b, b))
    t = above / below
    z = t * t
    zero = a.like(0.0)
    y = fma(z * t, poly(z, a.constants("ATAN")), t)
    y = y + where(large, 2 * low, where(middle, low, zero))
    return y + where(large, 2 * high, where(middle, high, zero))


@_Function
def arctan(x: Num) -> Num:
    a = abs(x)
    return copysign(_atan_of_ratio(a, a.like(1.0)), x)


@_Function
def arctan2(y: Num, x: Num) -> Num:
    high, low = x.constants("PIO4")
    a, b = abs(y), abs(x)
    both = a.equals(INF) & b.equals(INF)
    # scaled to where sums do not overflow and denormals do not round
    end, up = 2.0 ** (x.format.bias - 2), 2.0 ** (x.format.mantissa + 8)
    one = x.like(1.0)
    scale = where((a > end) | (b > end), 0.25, where((a < 1 / (up * up)) & (b < 1 / (up * up)), up, one))
    a, b = where(both, 1.0, a * scale), where(both, 1.0, b * scale)
    r = where(a.equals(0.0), 0.0, _atan_of_ratio(a, b))
    r = where(x.is_negative(), 4 * high - (r - 4 * low), r)
    return where(x.is_nan() | y.is_nan(), x + y, copysign(r, y))


def _asin_parts(x: Num) -> tuple[Num, Num, Num]:
    """s, rest and whether |x| is above 1/2: s + rest is arcsin(|x|), then arcsin(sqrt((1 - |x|) / 2))."""
    a = abs(x)
    large = a > 0.5
    z = where(large, (1.0 - a) * 0.5, a * a)
    root = sqrt(z)
    lost = where(root > 0.0, fma(-root, root, z) / (root + root), 0.0)
    s = where(large, root, a)
    return s, fma(s * z, poly(z, x.constants("ASIN")), where(large, lost, 0.0)), large


@_Function
def arcsin(x: Num) -> Num:
    high, low = x.constants("PIO2")[:2]
    s, rest, large = _asin_parts(x)
    y, y_low = fast_two_sum(x.like(high), s * -2.0)
    return copysign(where(large, y + (y_low + (low - 2.0 * rest)), s + rest), x)


@_Function
def arccos(x: Num) -> Num:
    high, low = x.constants("PIO2")[:2]
    s, rest, large = _asin_parts(x)
    negative = x < 0.0
    middle = high - (copysign(s, x) + (copysign(rest, x) - low))
    twice = (s + rest) * 2.0
    outer = where(negative, 2 * high - (2.0 * s + (2.0 * rest - 2 * low)), twice)
    return where(large, outer, middle)


# powers and remainders


@_Function
def hypot(x: Num, y: Num) -> Num:
    x, y = abs(x), abs(y)
    greater = x > y
    a, b = where(greater, x, y), where(greater, y, x)
    # exponents above and below which squares need scaling, and by what
    high, low, shrink, grow = (500, -400, -600, 600) if x.format.itemsize == 8 else (60, -50, -70, 100)
    huge, small = a > 2.0**high, a < 2.0**low
    one = a.like(1.0)
    scale = where(huge, 2.0**shrink, where(small, 2.0**grow, one))
    back = where(huge, 2.0**-shrink, where(small, 2.0**-grow, one))
    a, b = a * scale, b * scale
    h = sqrt(fma(a, a, b * b)) * back
    return where(x.equals(INF) | y.equals(INF), INF, h)


@_Function
def pow(x: Num, y: Num) -> Num:
    """C99's table of special cases around |x|**y."""
    a = abs(x)
    widens = x.format.itemsize == 4 and x.e.features.widens_float32
    size = _magnitude_in_double if widens else _magnitude
    result = size(a, clamp(y, -1e22, 1e22))
    infinite_y = abs(y).equals(INF)
    unusual = a.equals(0.0) | a.equals(INF) | infinite_y
    shrinks = (a > 1.0) ^ (y > 0.0)
    zero = a.like(0.0)
    result = where(unusual, where(shrinks, zero, INF), result)
    whole = trunc(y).equals(y)
    half = y * 0.5
    odd = whole & trunc(half).differs(half)
    negative = x.is_negative()
    result = where(negative & odd, -result, result)
    result = where((x < 0.0) & (x > -INF) & ~whole, NAN, result)
    result = where(x.is_nan() | y.is_nan(), x + y, result)
    return where(x.equals(1.0) | y.equals(0.0) | (a.equals(1.0) & infinite_y), 1.0, result)


def _magnitude_in_double(a: Num, y: Num) -> Num:
    """a**y for float32, right to a few thousandths of its ULP."""
    k, f = _split_log(a.cast(np.float64), denormals=False)
    s, h = f / (f + 2.0), f * 0.5 * f
    z = s * s
    log_a = fma(k, LOG_2, f - (h - s * (h + z * poly(z, f.constants("LOG_SHORT")))))
    x = clamp(y.cast(np.float64) * log_a, -110.0, 90.0)
    r, ticks = _reduce_exp(x)
    e = fma(r * r, poly(r, r.constants("EXP_SHORT")), r)
    return ((e + 1.0) * _power_of_two(ticks)).cast(np.float32)


def _magnitude(a: Num, y: Num) -> Num:
    """a**y with the logarithm as a sum of two floats, good to 65 bits, of float32 to 35."""
    k, f = _split_log(a)
    # s = f / (2 + f)
    below, below_low = fast_two_sum(a.like(2.0), f)
    inverse = 1.0 / below
    s = f * inverse
    s_low = inverse * (fma(-s, below, f) - s * below_low)
    # z = s*s, p = 2/3 + z (2/5 + ...)
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    third, third_low = a.constants("TWO_THIRDS")
    q = poly(z, a.constants("LOG_TAIL"))
    t, t_low = two_product(z, q)
    p, p_low = fast_two_sum(a.like(third), t)
    p_low = p_low + fma(z_low, q, t_low + third_low)
    # c = s z p
    w, w_low = two_product(s, z)
    w_low = fma(s, z_low, fma(s_low, z, w_low))
    c, c_low = two_product(w, p)
    c_low = fma(w, p_low, fma(w_low, p, c_low))
    # k log(2) + 2 s + c
    high, low = a.constants("LN2")
    total, total_low = fast_two_sum(k * high, s + s)
    total, more = two_sum(total, c)
    total_low = total_low + more + (fma(k, low, s_low + s_low) + c_low)
    total, total_low = fast_two_sum(total, total_low)
    # times y
    x, x_low = two_product(total, y)
    x_low = fma(total_low, y, x_low)
    least, most = (-746.0, 710.0) if a.format.itemsize == 8 else (-104.0, 89.0)
    inside = (x > least) & (x < most)
    x = clamp(x, least, most)
    x_low = where(inside, x_low, 0.0)
    # exp
    form = a.format
    ticks = fma(x, a.constants("INV_LN2")[0], form.magic)
    n = ticks - form.magic
    first = fma(n, -high, x)  # exact
    r, r_low = two_sum(first, fma(n, -low, x_low))
    e = fma(r * r, poly_wide(r, a.constants("EXP")), r_low)
    whole, rest = fast_two_sum(a.like(1.0), r)
    return _scale(whole + (rest + e), ticks)


#: A number, and what was lost of it; None: nothing.
_Whole = tuple[Num, Num | None]


def whole_power(e: Arithmetic, x: Val, power: int) -> Val:
    """x**3, x**4, ... as products, rounded once or nearly so: float16 and float32 in a float that holds the square exactly, and
    what the products of float64 lose is added again, also those of float32 where that stays what it is. (Where no instruction
    does that, x**3 and x**4 are within 2 ULP.)"""
    base = Num(e, x)
    is_wide = x.dtype.itemsize < (8 if e.features.widens_float32 else 4) or not e.features.fuses_multiply_add
    if is_wide:
        base = base.cast(np.float32 if x.dtype.itemsize == 2 else np.float64)
    times = _product if is_wide else _whole_product
    factor: _Whole = base, None
    factors: list[_Whole] = []  # x, x**2, x**4, ... of which the power is made
    while True:
        if power & 1:
            factors.append(factor)
        power >>= 1
        if not power:
            break
        factor = times(factor, factor)
    result = factors.pop()
    while factors:
        result = times(result, factors.pop())
    high, low = result
    if low is None:
        return e.cast(high.v, x.dtype)
    total = high + low
    known: Val = where(abs(total) > 0.0, total, high).v  # NaN: a product is infinite; the sign of a zero is the product's
    return known


def _product(one: _Whole, other: _Whole) -> _Whole:
    return one[0] * other[0], None


def _whole_product(one: _Whole, other: _Whole) -> _Whole:
    """With what is lost."""
    (x, dx), (y, dy) = one, other
    high, low = two_product(x, y)
    if dx is not None:
        low = low + dx * (x + x if one is other else y)
    if dy is not None and one is not other:
        low = low + x * dy
    return high, low


@_Function
def cbrt(x: Num) -> Num:
    a = abs(x)
    k, f = _split_log(a)
    third = fma(k, 1 / 3, x.format.magic)
    rest = k - (third - x.format.magic) * 3.0  # -1, 0 or 1
    z = f + 1.0
    up, down = rest > 0.0, rest < 0.0
    one = z.like(1.0)
    # r approximates m ** (-1/3)
    r = poly(z, x.constants("CBRT")) * where(up, 2 ** (-1 / 3), where(down, 2 ** (1 / 3), one))
    m = z * where(up, 2.0, where(down, 0.5, one))
    for _ in range(2 if x.format.itemsize == 8 else 1):
        e = fma(-m * r, r * r, 1.0)
        r = fma(r * e, fma(e, 2 / 9, 1 / 3), r)
    square = r * r
    y = m * square
    y = fma(fma(-y * y, y, m) * square, 1 / 3, y)
    return where((a > 0.0) & (a < INF), copysign(y * _power_of_two(third), x), x)


@_Function
def erf(x: Num) -> Num:
    a = abs(x)
    end = 6.0 if x.format.itemsize == 8 else 4.0  # from here on it rounds to 1
    a = where(a > end, end, a)
    z = a * a
    small = fma(a, poly(where(a < 1.0, z, 1.0), x.constants("ERF")), a)
    t = 1.0 / (where(a < 1.0, 1.0, a) + 3.0)
    r, ticks = _reduce_exp(-z)
    large = 1.0 - (_exp_less_one(r) + 1.0) * _power_of_two(ticks) * poly(t, x.constants("ERFC"))
    return copysign(where(a < 1.0, small, large), x)


def _erfcx_outside(x: Num) -> Num:
    """exp(x*x) erfc(x) for x >= 0.8."""
    below, low = two_sum(x, x.like(3.0))
    t = 1.0 / below
    y = poly(t - 0.125, x.constants("ERFCX")) / below
    return fma(-y * t, low, y)


def _exp_square(x: Num, sign: float) -> Num:
    """exp(x*x) or exp(-x*x), with what x*x lost."""
    z, low = two_product(x, x)
    e = exp.body(z * sign)
    y = fma(e, where(e > 0.0, low, 0.0) * sign, e)
    return y if sign < 0 else where(e < INF, y, e)


@_Function
def erfc(x: Num) -> Num:
    if x.format.itemsize == 4:  # nine steps of float32 lose too much
        return erfc.body(x.cast(np.float64)).cast(np.float32)
    a = abs(x)
    near = a < 0.8
    outside = where(near, 0.8, where(a > 28.0, 28.0, a))
    large = _exp_square(outside, -1.0) * _erfcx_outside(outside)
    return where(near, 1.0 - erf.body(x), where(x < 0.0, 2.0 - large, where(x.is_nan(), x, large)))


@_Function
def erfcx(x: Num) -> Num:
    """exp(x*x) erfc(x)"""
    if x.format.itemsize == 4:
        return erfcx.body(x.cast(np.float64)).cast(np.float32)
    a = abs(x)
    near = a < 0.8
    outside = where(near, 0.8, a)
    large = where(outside < INF, _erfcx_outside(where(outside < INF, outside, 1.0)), 0.0)
    end = 27.0
    inside = where(a > end, end, a)
    square = where(a > end, INF, _exp_square(inside, 1.0))
    middle = square * (1.0 - erf.body(where(near, x, 0.0)))
    left = where(a > end, INF, square * 2.0 - large)
    return where(x.is_nan(), x, where(near, middle, where(x < 0.0, left, large)))


@_Function
def fmod(x: Num, y: Num) -> Num:
    return _fmod(x, y)


def _fmod(x: Num, y: Num) -> Num:
    """C's fmod: exact. In one step while the quotient has its units digit, else by the C library or by integers."""
    b = abs(y)
    signed = x / y
    quotient = abs(signed)
    a = abs(x)
    r = fma(-trunc(quotient), b, a)
    r = where(r < 0.0, r + b, r)  # the quotient was rounded up to an integer
    r = where(a < b, a, r)
    invalid = signed * (x - x)  # the NaN of an operand, or that of an invalid operation: with the sign that C's has
    usual = where(quotient < 2.0**x.format.mantissa, copysign(r, x), invalid)
    usual = where(y.equals(y), usual, invalid)
    rare = (quotient >= 2.0**x.format.mantissa) & (a < INF) & (b > 0.0)

    def slow() -> Num:
        if not x.e.features.has_libm:
            return lane_by_lane("fmod.huge", rare, huge.fmod, usual, x, y)
        return Num(x.e, x.e.call("fmod" if x.format.itemsize == 8 else "fmodf", x.v, y.v))

    return rarely(rare, slow, usual)


@_Function
def remainder(x: Num, y: Num) -> Num:
    return _divmod(x, y)[1]


@_Function
def floor_divide(x: Num, y: Num) -> Num:
    return _divmod(x, y)[0]


def _divmod(x: Num, y: Num) -> tuple[Num, Num]:
    """NumPy's npy_divmod."""
    rest = _fmod(x, y)
    by_zero = y.equals(0.0)
    quotient = (x - rest) / y
    turned = rest.differs(0.0) & ((y < 0.0) ^ (rest < 0.0))
    modulus = where(turned, rest + y, where(rest.equals(0.0), copysign(rest, y), rest))
    quotient = where(turned, quotient - 1.0, quotient)
    down = floor(quotient)
    down = where(quotient - down > 0.5, down + 1.0, down)
    plain = x / y
    down = where(quotient.equals(0.0), copysign(quotient, plain), down)
    return where(by_zero, plain, down), where(by_zero, rest, modulus)

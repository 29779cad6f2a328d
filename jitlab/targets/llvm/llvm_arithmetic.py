"""Arithmetic, comparisons, bits, casts and functions with NumPy's meaning, as LLVM text.

Nothing here may meet LLVM's undefined behaviour: divisors, shift counts and float-to-integer operands are selected
into range first, on every lane. No instruction carries fast-math flags, `nsw`, `nuw`, `exact` or `inbounds`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.support.later import Later
from jitlab.targets.llvm.math import bits, math

from .instructions import Instructions
from .values import (
    BOOL,
    C64,
    C128,
    F16,
    F32,
    F64,
    I16,
    I32,
    I64,
    SIGNED,
    U16,
    U32,
    Val,
    is_literal,
    literal,
    part_dtype,
)  # fmt: skip

if TYPE_CHECKING:
    from . import invariant_division
else:
    invariant_division = Later(f"{__package__}.invariant_division")


class Arithmetic(Instructions):
    """What operations' bodies call (`ops/emitter.py`), on lanes or on scalars."""

    # float16

    def _wide(self, x: Val) -> Val:
        """float16 as float32, in which it computes."""
        if x.dtype != F16:
            return x
        if self.features.converts_half:
            return self._convert("fpext", x, F32)
        bits = self._convert("zext", self.bits(x), U32)
        sign = self.plain("shl", self.and_(bits, self.constant(0x8000, U32)), self.constant(16, U32))
        rest = self.plain("shl", self.and_(bits, self.constant(0x7FFF, U32)), self.constant(13, U32))
        finite = self.bits(self.mul(self.unbits(rest), self.constant(2.0**112, F32)))
        special = self.or_(rest, self.constant(0x7F800000, U32))
        whole = self.select(self.lt(rest, self.constant(0x0F800000, U32)), finite, special)
        return self.unbits(self.or_(whole, sign))

    def _narrow(self, x: Val, dtype: np.dtype[Any]) -> Val:
        if x.dtype == dtype:
            return x
        if self.features.converts_half:
            return self._convert("fptrunc", x, dtype)
        bits = Val(U32, self.bits(x).text, x.lanes)
        sign = self.plain("lshr", self.and_(bits, self.constant(1 << 31, U32)), self.constant(16, U32))
        size = self.and_(bits, self.constant(0x7FFFFFFF, U32))
        # normal: half of the last place less one, and one if that is odd, carries to the nearest even
        odd = self.and_(self.plain("lshr", size, self.constant(13, U32)), self.constant(1, U32))
        carried = self.add(self.add(size, self.constant(0xFFF - (112 << 23), U32)), odd)
        result = self.plain("lshr", carried, self.constant(13, U32))
        # denormal: adding 1/2 rounds to its last place
        half = self.constant(0.5, F32)
        shifted = Val(U32, self.bits(self.add(self.unbits(size), half)).text, x.lanes)
        denormal = self.sub(shifted, self.constant(0x3F000000, U32))
        result = self.select(self.lt(size, self.constant(0x38800000, U32)), denormal, result)
        infinite = self.constant(0x7C00, U32)
        special = self.select(self.gt(size, self.constant(0x7F800000, U32)), self.constant(0x7E00, U32), infinite)
        result = self.select(self.lt(size, self.constant(0x47800000, U32)), result, special)
        return self.unbits(self._convert("trunc", self.or_(result, sign), U16))

    # arithmetic

    def _arithmetic(self, opcode: str, x: Val, y: Val) -> Val:
        if x.dtype.kind == "f":
            if x.dtype.itemsize > 2:
                return self.plain("f" + opcode, x, y)
            return self._narrow(self.plain("f" + opcode, self._wide(x), self._wide(y)), x.dtype)
        return self.plain(opcode, x, y)

    def _split(self, x: Val) -> tuple[Val, Val]:
        part = part_dtype(x.dtype)
        return Val(part, x.text, x.lanes), Val(part, x.imag, x.lanes)

    def add(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "c":
            (a, b), (c, d) = self._split(x), self._split(y)
            return self.make_complex(self.add(a, c), self.add(b, d))
        if x.dtype.kind == "b":
            return self.or_(x, y)
        return self._arithmetic("add", x, y)

    def sub(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "c":
            (a, b), (c, d) = self._split(x), self._split(y)
            return self.make_complex(self.sub(a, c), self.sub(b, d))
        return self._arithmetic("sub", x, y)

    def mul(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "c":
            (a, b), (c, d) = self._split(x), self._split(y)
            if self.features.fuses_multiply_add:  # where NumPy's arrays do
                real = self.fma(a, c, self.neg(self.mul(b, d)))
                return self.make_complex(real, self.fma(a, d, self.mul(b, c)))
            real = self.sub(self.mul(a, c), self.mul(b, d))
            return self.make_complex(real, self.add(self.mul(a, d), self.mul(b, c)))
        if x.dtype.kind == "b":
            return self.and_(x, y)
        return self._arithmetic("mul", x, y)

    def div(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "c":
            return self._complex_div(x, y)
        return self._arithmetic("div", x, y)

    def _complex_div(self, x: Val, y: Val) -> Val:
        """NumPy's: Smith's way, which scales by the greater part of the divisor."""
        (a, b), (c, d) = self._split(x), self._split(y)
        size_c, size_d = self.abs(c), self.abs(d)
        by_real = self.ge(size_c, size_d)
        big, small = self.select(by_real, c, d), self.select(by_real, d, c)
        ratio = self.div(small, big)
        scale = self.div(self.constant(1, c.dtype), self.add(big, self.mul(small, ratio)))
        first, second = self.select(by_real, a, b), self.select(by_real, b, a)
        # by real: (a + b r) s, (b - a r) s; by imaginary: (a r + b) s, (b r - a) s
        real = self.mul(self.add(first, self.mul(second, ratio)), scale)
        by_real_imag = self.sub(b, self.mul(a, ratio))
        by_imag_imag = self.sub(self.mul(b, ratio), a)
        imag = self.mul(self.select(by_real, by_real_imag, by_imag_imag), scale)
        zero = self.constant(0, c.dtype)
        by_zero = self.and_(self.eq(size_c, zero), self.eq(size_d, zero))
        real = self.select(by_zero, self.div(a, size_c), real)
        imag = self.select(by_zero, self.div(b, size_c), imag)
        return self.make_complex(real, imag)

    def floor_divide(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "f":
            return math.floor_divide(self, x, y)
        return self._integer_division(x, y)[0]

    def remainder(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "f":
            return math.remainder(self, x, y)
        return self._integer_division(x, y)[1]

    def _integer_division(self, x: Val, y: Val) -> tuple[Val, Val]:
        """Quotient and remainder towards minus infinity; 0 and 0 for a zero divisor."""
        dtype = x.dtype
        if x.lanes > 1 and not y.lanes and dtype != np.dtype("u8"):
            return invariant_division.quotient_and_remainder(self, x, y)
        zero, one = self.constant(0, dtype), self.constant(1, dtype)
        unsafe = by_zero = self.eq(y, zero)
        if dtype.kind == "i":  # lowest // -1 is lowest // 1 and leaves 0
            lowest = self.constant(np.iinfo(dtype).min, dtype)
            unsafe = self.or_(by_zero, self.and_(self.eq(x, lowest), self.eq(y, self.constant(-1, dtype))))
        divisor = self.select(unsafe, one, y)
        quotient = self._truncated_quotient(x, divisor, constant=is_literal(y.text))
        rest = self.sub(x, self.mul(quotient, divisor))
        if dtype.kind == "i":
            opposite = self.lt(self.xor(rest, divisor), zero)
            below = self.and_(self.ne(rest, zero), opposite)
            quotient = self.select(below, self.sub(quotient, one), quotient)
            rest = self.select(below, self.add(rest, divisor), rest)
        return self.select(by_zero, zero, quotient), rest

    def _truncated_quotient(self, x: Val, y: Val, constant: bool) -> Val:
        """x / y towards zero; y is not zero and the quotient fits. Vectors go through a float with enough bits."""
        lanes = max(x.lanes, y.lanes)
        through = {1: F32, 2: F32, 4: F64}.get(x.dtype.itemsize)
        if lanes <= 1 or constant or through is None:
            return self.plain("sdiv" if x.dtype.kind == "i" else "udiv", x, y)
        to_float, to_int = ("sitofp", "fptosi") if x.dtype.kind == "i" else ("uitofp", "fptoui")
        quotient = self.plain("fdiv", self._convert(to_float, x, through), self._convert(to_float, y, through))
        return self._convert(to_int, quotient, x.dtype)

    def fma(self, x: Val, y: Val, z: Val) -> Val:
        if x.dtype.itemsize > 2:
            return self.intrinsic("fma", x, y, z)
        return self._narrow(self.intrinsic("fma", self._wide(x), self._wide(y), self._wide(z)), x.dtype)

    def neg(self, x: Val) -> Val:
        if x.dtype.kind == "c":
            real, imag = self._split(x)
            return self.make_complex(self.neg(real), self.neg(imag))
        if x.dtype == F16:
            return self.unbits(self.xor(self.bits(x), self.constant(0x8000, I16)))
        if x.dtype.kind == "f":
            return Val(x.dtype, self.fn.instr(f"fneg {self.type(x.dtype, x.lanes)} {self.operand(x)}"), x.lanes)
        return self.plain("sub", self.constant(0, x.dtype), x)

    def abs(self, x: Val) -> Val:
        if x.dtype.kind == "c":
            return math.hypot(self, *self._split(x))
        if x.dtype.kind in "bu":
            return x
        if x.dtype.kind == "i":
            return self.intrinsic("abs", x, tail="i1 false")
        if x.dtype == F16:
            return self.unbits(self.and_(self.bits(x), self.constant(0x7FFF, I16)))
        return self.intrinsic("fabs", x)

    def sign(self, x: Val) -> Val:
        zero, one = self.constant(0, x.dtype), self.constant(1, x.dtype)
        result = self.select(self.gt(x, zero), one, zero)
        if x.dtype.kind != "u":
            result = self.select(self.lt(x, zero), self.constant(-1, x.dtype), result)
        return self.select(self.isnan(x), x, result) if x.dtype.kind == "f" else result

    def _rounding(self, name: str, x: Val) -> Val:
        if x.dtype.kind in "biu":
            return x
        return self._narrow(self.intrinsic(name, self._wide(x)), x.dtype)

    def sqrt(self, x: Val) -> Val:
        return self._rounding("sqrt", x)

    def floor(self, x: Val) -> Val:
        return self._rounding("floor", x)

    def ceil(self, x: Val) -> Val:
        return self._rounding("ceil", x)

    def trunc(self, x: Val) -> Val:
        return self._rounding("trunc", x)

    def rint(self, x: Val) -> Val:
        return self._rounding("rint", x)

    def copysign(self, x: Val, y: Val) -> Val:
        if x.dtype == F16:
            sign = self.and_(self.bits(y), self.constant(0x8000, I16))
            return self.unbits(self.or_(self.bits(self.abs(x)), sign))
        return self.intrinsic("copysign", x, y)

    def minimum(self, x: Val, y: Val) -> Val:
        return self._extreme(x, y, least=True, nan_wins=True)

    def maximum(self, x: Val, y: Val) -> Val:
        return self._extreme(x, y, least=False, nan_wins=True)

    def fmin(self, x: Val, y: Val) -> Val:
        return self._extreme(x, y, least=True, nan_wins=False)

    def fmax(self, x: Val, y: Val) -> Val:
        return self._extreme(x, y, least=False, nan_wins=False)

    def _extreme(self, x: Val, y: Val, *, least: bool, nan_wins: bool) -> Val:
        if x.dtype.kind == "b":
            return self.and_(x, y) if least else self.or_(x, y)
        if x.dtype.kind in "iu":
            return self.intrinsic(f"{'s' if x.dtype.kind == 'i' else 'u'}{'min' if least else 'max'}", x, y)
        wide_x, wide_y = self._wide(x), self._wide(y)
        if x.dtype == F16:  # x if equal
            better = self._compare("fcmp ole" if least else "fcmp oge", wide_x, wide_y)
        else:  # y if equal
            better = self._compare("fcmp olt" if least else "fcmp ogt", wide_x, wide_y)
        result = self.select(better, x, y)
        absent = wide_x if nan_wins else wide_y
        return self.select(self._compare("fcmp uno", absent, absent), x, result)

    # comparison

    def _ordering(self, predicate: str, x: Val, y: Val) -> Val:
        if x.dtype.kind == "f":
            return self._compare(f"fcmp o{predicate}", self._wide(x), self._wide(y))
        return self._compare(f"icmp {'s' if x.dtype.kind == 'i' else 'u'}{predicate}", x, y)

    def lt(self, x: Val, y: Val) -> Val:
        return self._ordering("lt", x, y)

    def le(self, x: Val, y: Val) -> Val:
        return self._ordering("le", x, y)

    def gt(self, x: Val, y: Val) -> Val:
        return self._ordering("gt", x, y)

    def ge(self, x: Val, y: Val) -> Val:
        return self._ordering("ge", x, y)

    def eq(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "c":
            (a, b), (c, d) = self._split(x), self._split(y)
            return self.and_(self.eq(a, c), self.eq(b, d))
        if x.dtype.kind == "f":
            return self._compare("fcmp oeq", self._wide(x), self._wide(y))
        return self._compare("icmp eq", x, y)

    def ne(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "c":
            (a, b), (c, d) = self._split(x), self._split(y)
            return self.or_(self.ne(a, c), self.ne(b, d))
        if x.dtype.kind == "f":
            return self._compare("fcmp une", self._wide(x), self._wide(y))
        return self._compare("icmp ne", x, y)

    def isnan(self, x: Val) -> Val:
        if x.dtype.kind == "c":
            real, imag = self._split(x)
            return self.or_(self.isnan(real), self.isnan(imag))
        if x.dtype.kind != "f":
            return self._everywhere(False, x)
        x = self._wide(x)
        return self._compare("fcmp uno", x, x)

    def isinf(self, x: Val) -> Val:
        if x.dtype.kind == "c":
            real, imag = self._split(x)
            return self.or_(self.isinf(real), self.isinf(imag))
        if x.dtype.kind != "f":
            return self._everywhere(False, x)
        x = self._wide(x)
        return self.eq(self.abs(x), self.constant(np.inf, x.dtype))

    def isfinite(self, x: Val) -> Val:
        if x.dtype.kind == "c":
            real, imag = self._split(x)
            return self.and_(self.isfinite(real), self.isfinite(imag))
        if x.dtype.kind != "f":
            return self._everywhere(True, x)
        x = self._wide(x)
        return self.lt(self.abs(x), self.constant(np.inf, x.dtype))

    def _everywhere(self, value: bool, x: Val) -> Val:
        return Val(BOOL, literal(value, BOOL), x.lanes)

    def signbit(self, x: Val) -> Val:
        bits = self.bits(x)
        return self._compare("icmp slt", bits, self.constant(0, bits.dtype))

    def select(self, condition: Val, x: Val, y: Val) -> Val:
        if x.dtype.kind == "c":
            (a, b), (c, d) = self._split(x), self._split(y)
            return self.make_complex(self.select(condition, a, c), self.select(condition, b, d))
        lanes, (condition, x, y) = self._together(condition, x, y)
        type = self.type(x.dtype, lanes)
        chosen = f"{self.type(BOOL, lanes)} {self.operand(condition)}"
        text = self.fn.instr(f"select {chosen}, {type} {self.operand(x)}, {type} {self.operand(y)}")
        return Val(x.dtype, text, lanes)

    # bits

    def and_(self, x: Val, y: Val) -> Val:
        return self.plain("and", x, y)

    def or_(self, x: Val, y: Val) -> Val:
        return self.plain("or", x, y)

    def xor(self, x: Val, y: Val) -> Val:
        return self.plain("xor", x, y)

    def invert(self, x: Val) -> Val:
        ones = self.constant(True, BOOL) if x.dtype.kind == "b" else Val(x.dtype, "-1")
        return self.plain("xor", x, ones)

    def _shift_in_range(self, x: Val, y: Val) -> tuple[Val, Val]:
        """Whether the count is in [0, bits), and the count or 0."""
        fits = self._compare("icmp ult", y, self.constant(8 * x.dtype.itemsize, y.dtype))
        return fits, self.select(fits, y, self.constant(0, y.dtype))

    def shift_left(self, x: Val, y: Val) -> Val:
        fits, count = self._shift_in_range(x, y)
        return self.select(fits, self.plain("shl", x, count), self.constant(0, x.dtype))

    def shift_right(self, x: Val, y: Val) -> Val:
        fits, count = self._shift_in_range(x, y)
        if x.dtype.kind == "u":
            return self.select(fits, self.plain("lshr", x, count), self.constant(0, x.dtype))
        all_the_way = self.constant(8 * x.dtype.itemsize - 1, x.dtype)
        return self.plain("ashr", x, self.select(fits, count, all_the_way))

    # casts

    def cast(self, x: Val, dtype: Any) -> Val:
        dtype = np.dtype(dtype)
        source = x.dtype
        if source == dtype:
            return x
        if source.kind == "c":
            real, imag = self._split(x)
            if dtype.kind == "c":
                part = part_dtype(dtype)
                return self.make_complex(self.cast(real, part), self.cast(imag, part))
            if dtype.kind == "b":
                return self.or_(self.cast(real, BOOL), self.cast(imag, BOOL))
            return self.cast(real, dtype)
        if dtype.kind == "c":
            part = part_dtype(dtype)
            return self.make_complex(self.cast(x, part), self.constant(0, part))
        if dtype.kind == "b":
            return self.ne(x, self.constant(0, source))
        if source.kind == "f":
            return self._float_to_float(x, dtype) if dtype.kind == "f" else self._float_to_integer(x, dtype)
        if dtype.kind == "f":
            opcode = "sitofp" if source.kind == "i" else "uitofp"
            if dtype == F16:
                return self._narrow(self._convert(opcode, x, F32), F16)
            return self._convert(opcode, x, dtype)
        if source.kind == "b" or dtype.itemsize > source.itemsize:
            return self._convert("sext" if source.kind == "i" else "zext", x, dtype)
        if dtype.itemsize < source.itemsize:
            return self._convert("trunc", x, dtype)
        return Val(dtype, x.text, x.lanes)

    def _float_to_float(self, x: Val, dtype: np.dtype[Any]) -> Val:
        if dtype.itemsize > x.dtype.itemsize:
            x = self._wide(x)
            return self._convert("fpext", x, dtype) if x.dtype != dtype else x
        if (x.dtype, dtype) != (F64, F16):
            return self._narrow(x, F16) if dtype == F16 else self._convert("fptrunc", x, dtype)
        # by way of float32 with rounding to odd, so that only the second rounding counts
        near = self._convert("fptrunc", x, F32)
        back = self._convert("fpext", near, F64)
        bits = self.bits(near)
        zero, one = self.constant(0, I32), self.constant(1, I32)
        inexact = self._compare("fcmp one", back, x)
        even = self.eq(self.and_(bits, one), zero)
        too_big = self.gt(self.abs(back), self.abs(x))
        step = self.select(too_big, self.constant(-1, I32), one)
        odd = self.add(bits, self.select(self.and_(inexact, even), step, zero))
        return self._narrow(self.unbits(odd), F16)

    def _float_to_integer(self, x: Val, dtype: np.dtype[Any]) -> Val:
        """What C gives on this machine. Narrow integers are the low bits of an int32."""
        half, x = x.dtype == F16, self._wide(x)
        if dtype.itemsize < 4:
            return self.cast(self._float_to_integer(x, I32), dtype)
        if self.features.saturates_casts:
            sign = "s" if dtype.kind == "i" else "u"
            name = f"llvm.fpto{sign}i.sat.{self._suffix(dtype, x.lanes)}.{self._suffix(x.dtype, x.lanes)}"
            source, target = self.type(x.dtype, x.lanes), self.type(dtype, x.lanes)
            self.fn.declare(f"declare {target} @{name}({source})")
            return Val(dtype, self.fn.instr(f"call {target} @{name}({source} {self.operand(x)})"), x.lanes)
        if half and dtype == U32:  # NumPy does these one by one, by way of int64, and the others in vectors
            return self.cast(self._float_to_integer(x, I64), dtype)
        if dtype.kind == "u":  # in the upper half, what is left over the middle, with the top bit turned
            signed = SIGNED[dtype.itemsize]
            half_range = 2 ** (8 * dtype.itemsize - 1)
            middle = self.constant(half_range, x.dtype)
            small = self._compare("fcmp ult", x, middle)  # NaN too
            low = self._float_to_integer(self.select(small, x, self.sub(x, middle)), signed)
            top = self.select(small, self.constant(0, signed), self.constant(half_range, signed))
            return self.cast(self.xor(low, top), dtype)
        bound = 2.0 ** (8 * dtype.itemsize - 1)
        lowest = self.constant(np.iinfo(dtype).min, dtype)
        if x.dtype == F64 and dtype == I32:
            above = self._compare("fcmp ogt", x, self.constant(-bound - 1, x.dtype))
        else:
            above = self._compare("fcmp oge", x, self.constant(-bound, x.dtype))
        fits = self.and_(above, self.lt(x, self.constant(bound, x.dtype)))
        whole = self._convert("fptosi", self.select(fits, x, self.constant(0, x.dtype)), dtype)
        return self.select(fits, whole, lowest)

    # complex

    def real(self, x: Val) -> Val:
        return self._split(x)[0] if x.dtype.kind == "c" else x

    def imag(self, x: Val) -> Val:
        return self._split(x)[1] if x.dtype.kind == "c" else self.constant(0, x.dtype)

    def make_complex(self, real: Val, imag: Val) -> Val:
        lanes, (real, imag) = self._together(real, imag)
        return Val(C64 if real.dtype == F32 else C128, real.text, lanes, imag.text)

    # functions

    exp = math.exp
    exp2 = math.exp2
    expm1 = math.expm1
    log = math.log
    log2 = math.log2
    log10 = math.log10
    log1p = math.log1p
    sin = math.sin
    cos = math.cos
    tan = math.tan
    tanh = math.tanh
    sinh = math.sinh
    cosh = math.cosh
    arctan = math.arctan
    arcsin = math.arcsin
    arccos = math.arccos
    arctan2 = math.arctan2
    arcsinh = math.arcsinh
    arccosh = math.arccosh
    arctanh = math.arctanh
    cbrt = math.cbrt
    erf = math.erf
    erfc = math.erfc
    erfcx = math.erfcx
    hypot = math.hypot

    def fmod(self, x: Val, y: Val) -> Val:
        """C's remainder, of the dividend's sign; 0 for an integer zero divisor."""
        if x.dtype.kind == "f":
            return math.fmod(self, x, y)
        zero, one = self.constant(0, x.dtype), self.constant(1, x.dtype)
        unsafe = self.eq(y, zero)
        if x.dtype.kind == "i":
            unsafe = self.or_(unsafe, self.eq(y, self.constant(-1, x.dtype)))
        divisor = self.select(unsafe, one, y)
        return self.sub(x, self.mul(self._truncated_quotient(x, divisor, constant=is_literal(y.text)), divisor))

    nextafter = bits.nextafter
    mantissa = bits.mantissa
    exponent = bits.exponent
    ldexp = bits.ldexp
    gcd = bits.gcd
    lcm = bits.lcm
    bit_count = bits.bit_count

    def pow(self, x: Val, y: Val) -> Val:
        if x.dtype.kind == "f":
            power, exact = self.known(y), self.features.fuses_multiply_add
            if power in (-1, 0.5, 1, 2, 3, 4) or (power in (5, 6, 7, 8) and (exact or x.dtype.itemsize < 8)):
                return self._easy_pow(x, power)
            if y.lanes == 0 and power is None:
                return self._uniform_pow(x, y)
            return math.pow(self, x, y)
        return self._integer_pow(x, y)

    def _easy_pow(self, x: Val, power: float) -> Val:
        """As NumPy has it for one exponent (0.5 is sqrt: NaN for -inf, not C's inf)."""
        if power == 0.5:
            return self.sqrt(x)
        if power == -1:
            return self.div(self.constant(1, x.dtype), x)
        if power == 1:
            return x
        return self.mul(x, x) if power == 2 else math.whole_power(self, x, int(power))

    def _uniform_pow(self, x: Val, y: Val) -> Val:
        """One exponent for all lanes: most often 2 or 0.5, so they have their own blocks."""
        type, done = self.type(x.dtype, x.lanes), self.fn.label("power.done")
        results: list[tuple[object, str]] = []
        for power in (2.0, 0.5):
            easy, other = self.fn.label("power.easy"), self.fn.label("power.other")
            self.fn.branch_if(self.eq(y, self.constant(power, y.dtype)).text, easy, other)
            self.fn.block(easy)
            results.append((self.operand(self._easy_pow(x, power)), self.fn.current))
            self.fn.branch(done)
            self.fn.block(other)
        results.append((self.operand(math.pow(self, x, y)), self.fn.current))
        self.fn.branch(done)
        self.fn.block(done)
        return Val(x.dtype, str(self.fn.phi(type, results)), x.lanes)

    def known(self, x: Val) -> float | None:
        """The number a float literal stands for."""
        if not is_literal(x.text):
            return None
        if x.dtype == F16:
            return float(np.frombuffer(bytes.fromhex(x.text.removeprefix("0xH"))[::-1], np.float16)[0])
        return float(struct.unpack(">d", bytes.fromhex(x.text.removeprefix("0x")))[0])

    def _integer_pow(self, x: Val, y: Val) -> Val:
        """By squaring, as long as any lane's exponent has bits left."""
        one, zero = self.constant(1, x.dtype), self.constant(0, x.dtype)
        if is_literal(y.text):
            result, base, left = one, x, int(y.text)
            while left > 0:
                result = self.mul(result, base) if left & 1 else result
                left >>= 1
                base = self.mul(base, base) if left else base
            return result
        lanes, (x, y) = self._together(x, y)
        type = self.type(x.dtype, lanes)
        before, body, after = self.fn.current, self.fn.label("power"), self.fn.label("power.done")
        self.fn.branch(body)
        self.fn.block(body)
        result_phi, base_phi, left_phi = (self.fn.phi(type) for _ in range(3))
        for phi, start in ((result_phi, self.splat(one, lanes) if lanes else one), (base_phi, x), (left_phi, y)):
            phi.add_incoming(self.operand(start), before)
        result, base, now = (Val(x.dtype, str(phi), lanes) for phi in (result_phi, base_phi, left_phi))
        odd = self.ne(self.and_(now, one), zero)
        result = self.select(odd, self.mul(result, base), result)
        base, now = self.mul(base, base), self.plain("lshr", now, one)
        for phi, last in ((result_phi, result), (base_phi, base), (left_phi, now)):
            phi.add_incoming(self.operand(last), body)
        self.fn.branch_if(self.any(self.ne(now, zero)), body, after)
        self.fn.block(after)
        return result

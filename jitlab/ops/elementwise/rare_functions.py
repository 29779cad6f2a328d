"""The rarer ufuncs: logarithms of sums, neighbours and parts of floats, divisors and bits of integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.ops.base import Elementwise, Unsupported, broadcast_shapes
from jitlab.ops.build_nodes import apply, cast, elementwise
from jitlab.ops.emitter import Emitter
from jitlab.ops.numpy_api.arguments import node, refuse
from jitlab.ops.registry import rule

from .arithmetic import I8, J8, SPECIAL_PAIR, SPECIALS, Imag, Real, X, Y, equal, multiply, negative, subtract, unless_zero
from .math_functions import Exp, Exp2, Trunc
from .scalars import Scalar, where


class LogSum(Elementwise, family=True):
    """The logarithm of a sum of powers, from the logarithms of the powers."""

    flops_per_element: ClassVar[float] = 40
    exact: ClassVar[bool] = False
    operands = (X, Y), SPECIAL_PAIR

    def total(self, greater: Scalar, below: Scalar) -> Scalar:
        """greater + log(1 + power(-below))"""
        raise NotImplementedError

    def body(self, e: Emitter, *xs: Any) -> Any:
        x, y = (Scalar(e, v) for v in xs)
        greater = x.call("maximum", y)
        below = where(x.equals(y), 0.0, abs(x - y))  # equal infinities have no difference
        return where(x.is_nan() | y.is_nan(), x + y, self.total(greater, below)).v

    def power(self, x: Node) -> Node:
        raise NotImplementedError

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [unless_zero(g, multiply(g, self.power(subtract(x, out)))) for x in inputs]


class LogAddExp(LogSum):
    """log(exp(x) + exp(y))."""

    ufunc: ClassVar[np.ufunc] = np.logaddexp

    def total(self, greater: Scalar, below: Scalar) -> Scalar:
        return greater + (-below).call("exp").call("log1p")

    def power(self, x: Node) -> Node:
        return elementwise(Exp(), x)


class LogAddExp2(LogSum):
    """log2(2**x + 2**y)."""

    ufunc: ClassVar[np.ufunc] = np.logaddexp2

    def total(self, greater: Scalar, below: Scalar) -> Scalar:
        return greater + (-below).call("exp2").call("log1p") * (1 / math.log(2.0))

    def power(self, x: Node) -> Node:
        return elementwise(Exp2(), x)


class Heaviside(Elementwise):
    """0 where x < 0, y where x is 0, 1 where x > 0."""

    ufunc: ClassVar[np.ufunc] = np.heaviside
    operands = (X, Y), SPECIAL_PAIR

    def body(self, e: Emitter, *xs: Any) -> Any:
        x, y = xs
        zero, one = e.constant(0, x.dtype), e.constant(1, x.dtype)
        step = e.select(e.lt(x, zero), zero, e.select(e.eq(x, zero), y, one))
        return e.select(e.isnan(x), x, step)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, _ = inputs
        return [None, multiply(g, equal(x, 0))]


class NextAfter(Elementwise):
    """The float next to x on the way to y."""

    ufunc: ClassVar[np.ufunc] = np.nextafter
    operands = tuple((SPECIALS.astype(dtype), np.roll(SPECIALS, 3).astype(dtype)) for dtype in ("f8", "f4", "f2"))


class Spacing(Elementwise):
    """The distance to the next float away from 0, with the sign of x; of float16, as NumPy has it, to the one above."""

    ufunc: ClassVar[np.ufunc] = np.spacing
    operands = (
        (SPECIALS,), (np.array([1e-310, -3.0, 1.7e308, 5e-324], np.float64),), (SPECIALS.astype(np.float32),),
        (np.array([1, -1, 0, -0.0, 65504, -3, np.inf, np.nan], np.float16),),
    )

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        infinity, zero = e.constant(np.inf, x.dtype), e.constant(0, x.dtype)
        if x.dtype == np.dtype("f2"):
            step = e.sub(e.nextafter(x, infinity), x)
            return e.select(e.isinf(x), e.constant(np.nan, x.dtype), step)
        size = e.abs(x)
        step = e.sub(e.nextafter(size, infinity), size)
        step = e.select(e.eq(x, zero), step, e.copysign(step, x))
        return e.select(e.isinf(x), e.constant(np.nan, x.dtype), step)


class Ldexp(Elementwise):
    """x * 2**n for an integer n."""

    ufunc: ClassVar[np.ufunc] = np.ldexp
    operands = (
        (X, np.arange(-4, 4)), (SPECIALS, np.array([3, -3, 0, 5, 5, 2000, -1074, -5000])),
        (np.array([1.75, 1.5, 3e-310, 1.25]), np.array([-1074, -1073, 1000, -1070], np.int32)),
        (np.array([1.75, 1.5, 3e-40, 1.25], "f4"), np.array([-149, -148, 100, 127], np.int32)),
    )

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [elementwise(Ldexp(), g, inputs[1]), None]


class FloatPart(Elementwise, family=True):
    """One of the two results of a ufunc of floats."""

    parts: ClassVar[np.ufunc]
    index: ClassVar[int]
    operands = (
        (X * 0.65,),  # away from where the parts jump
        (SPECIALS,), (np.array([1e-310, -3.75, 1e308, 5e-324, np.inf]),),
        (np.array([1e-40, -3.75, 1e38, 1.0], np.float32),),
    )

    def numpy(self, *arrays: Any) -> Any:
        return self.parts(*arrays)[self.index]

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0].with_dtype(self.parts.resolve_dtypes((types[0].dtype, None, None))[1 + self.index])


class Mantissa(FloatPart):
    """The first result of frexp: x = mantissa * 2**exponent."""

    numpy_word: ClassVar[str] = "frexp"
    parts: ClassVar[np.ufunc] = np.frexp
    index: ClassVar[int] = 0
    instruction: ClassVar[str] = "mantissa"

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [elementwise(Ldexp(), g, negative(apply(Exponent(), inputs[0])))]


class Exponent(FloatPart):
    """The second result of frexp, an int32."""

    numpy_word: ClassVar[str] = "frexp"
    parts: ClassVar[np.ufunc] = np.frexp
    index: ClassVar[int] = 1
    instruction: ClassVar[str] = "exponent"


class Fraction(FloatPart):
    """The first result of modf: what is behind the point, with the sign of x."""

    numpy_word: ClassVar[str] = "modf"
    parts: ClassVar[np.ufunc] = np.modf
    index: ClassVar[int] = 0

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        zero = e.constant(0, x.dtype)
        return e.copysign(e.select(e.isinf(x), zero, e.sub(x, e.trunc(x))), x)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g]


class OfIntegers(Elementwise, family=True):
    """A function of two integers."""

    flops_per_element: ClassVar[float] = 40
    operands = (
        (I8, J8), (np.array([12, 0, -18, 2**62]), np.array([18, 0, 12, 2**40])),
        (np.array([12, 0, 255], np.uint8), np.array([18, 7, 15], np.uint8)),
    )


class Gcd(OfIntegers):
    """The greatest common divisor of |x| and |y|."""

    ufunc: ClassVar[np.ufunc] = np.gcd


class Lcm(OfIntegers):
    """The least common multiple of |x| and |y|."""

    ufunc: ClassVar[np.ufunc] = np.lcm


class BitwiseCount(Elementwise):
    """How many bits of |x| are set, a uint8."""

    ufunc: ClassVar[np.ufunc] = np.bitwise_count
    tf_name: ClassVar[str | None] = "PopulationCount"
    instruction: ClassVar[str] = "bit_count"
    operands = (I8,), (np.array([0, 1, 2**63, 2**64 - 1], np.uint64),)


class Complex(Elementwise):
    """The complex number of two parts."""

    instruction: ClassVar[str] = "make_complex"
    operands = (X, Y), (SPECIALS.astype(np.float32), SPECIALS[::-1].astype(np.float32))

    def numpy(self, *arrays: Any) -> Any:
        real, imag = np.broadcast_arrays(*arrays)
        result = np.empty(real.shape, np.result_type(real, np.complex64))
        result.real, result.imag = real, imag
        return result[()]

    def result(self, *types: ArrayType) -> ArrayType:
        real, imag = types
        assert real.dtype == imag.dtype, f"parts {real} and {imag}"
        return ArrayType(broadcast_shapes(real.shape, imag.shape), np.result_type(real.dtype, np.complex64))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [apply(Real(), g), apply(Imag(), g)]


def _float_loop(ufunc: np.ufunc, x: Any) -> Node:
    value = node(x)
    dtype = ufunc.resolve_dtypes((value.dtype, None, None))[0]
    if dtype.kind != "f" or dtype.itemsize > 8:
        raise Unsupported("ufunc_of", "dtype", name=ufunc.__name__, dtype=value.dtype)
    return cast(value, dtype)


@rule(np.frexp)
def frexp(x: Any, /, out: Any = None, **options: Any) -> tuple[Node, Node]:
    refuse(out=out, **options)
    value = _float_loop(np.frexp, x)
    return apply(Mantissa(), value), apply(Exponent(), value)


@rule(np.modf)
def modf(x: Any, /, out: Any = None, **options: Any) -> tuple[Node, Node]:
    refuse(out=out, **options)
    value = _float_loop(np.modf, x)
    return apply(Fraction(), value), apply(Trunc(), value)

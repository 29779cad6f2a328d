"""Functions of one element: exponentials, logarithms, circular and hyperbolic functions, roundings."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.ops.base import Operands
from jitlab.ops.build_nodes import elementwise
from jitlab.ops.emitter import Emitter

from . import complex_bodies
from .arithmetic import I8, SPECIALS, Sqrt, Square, Unary, X, Z, add, divide, multiply, negative, subtract


class Function(Unary, family=True):
    """A function of floats that a target computes within 3 ULP; of complex numbers by `complex_bodies`."""

    flops_per_element: ClassVar[float] = 20
    exact: ClassVar[bool] = False
    operands: ClassVar[Operands] = (X * 0.75,), (SPECIALS,), (SPECIALS.astype(np.float32),), (Z,)

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        return complex_bodies.body(e, type(self).ufunc.__name__, x) if x.dtype.kind == "c" else super().body(e, x)


class Logarithm(Function, family=True):
    """A logarithm; its samples are positive."""

    singular: ClassVar[bool] = True
    operands = (X + 2.5,), (SPECIALS,), (Z,)


class Exp(Function):
    """e ** x."""

    ufunc: ClassVar[np.ufunc] = np.exp
    singular: ClassVar[bool] = True

    def derivative(self, x: Node, out: Node) -> Node:
        return out


class Exp2(Function):
    """2 ** x."""

    ufunc: ClassVar[np.ufunc] = np.exp2
    singular: ClassVar[bool] = True

    def derivative(self, x: Node, out: Node) -> Node:
        return multiply(out, math.log(2))


class Expm1(Function):
    """e ** x - 1, exact near 0."""

    ufunc: ClassVar[np.ufunc] = np.expm1
    singular: ClassVar[bool] = True

    def derivative(self, x: Node, out: Node) -> Node:
        return add(out, 1)


class Log(Logarithm):
    """The natural logarithm."""

    ufunc: ClassVar[np.ufunc] = np.log

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, x)


class Log2(Logarithm):
    """The logarithm to base 2."""

    ufunc: ClassVar[np.ufunc] = np.log2

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1 / math.log(2), x)


class Log10(Logarithm):
    """The logarithm to base 10."""

    ufunc: ClassVar[np.ufunc] = np.log10

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1 / math.log(10), x)


class Log1p(Logarithm):
    """log(1 + x), exact near 0."""

    ufunc: ClassVar[np.ufunc] = np.log1p

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, add(x, 1))


class Sin(Function):
    """The sine of x radians."""

    ufunc: ClassVar[np.ufunc] = np.sin

    def derivative(self, x: Node, out: Node) -> Node:
        return elementwise(Cos(), x)


class Cos(Function):
    """The cosine of x radians."""

    ufunc: ClassVar[np.ufunc] = np.cos

    def derivative(self, x: Node, out: Node) -> Node:
        return negative(elementwise(Sin(), x))


class Tan(Function):
    """The tangent of x radians."""

    ufunc: ClassVar[np.ufunc] = np.tan

    def derivative(self, x: Node, out: Node) -> Node:
        return add(elementwise(Square(), out), 1)


class Tanh(Function):
    """The hyperbolic tangent."""

    ufunc: ClassVar[np.ufunc] = np.tanh

    def derivative(self, x: Node, out: Node) -> Node:
        return subtract(1, elementwise(Square(), out))


class Sinh(Function):
    """The hyperbolic sine."""

    ufunc: ClassVar[np.ufunc] = np.sinh
    singular: ClassVar[bool] = True

    def derivative(self, x: Node, out: Node) -> Node:
        return elementwise(Cosh(), x)


class Cosh(Function):
    """The hyperbolic cosine."""

    ufunc: ClassVar[np.ufunc] = np.cosh
    singular: ClassVar[bool] = True

    def derivative(self, x: Node, out: Node) -> Node:
        return elementwise(Sinh(), x)


class Arctan(Function):
    """The angle in -pi/2..pi/2 whose tangent is x."""

    ufunc: ClassVar[np.ufunc] = np.arctan
    tf_name: ClassVar[str | None] = "Atan"

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, add(elementwise(Square(), x), 1))


class Inverse(Function, family=True):
    """An inverse function of a limited domain."""

    singular: ClassVar[bool] = True
    operands = (X * 0.45,), (SPECIALS,), (Z,)


class Arcsin(Inverse):
    """The angle in -pi/2..pi/2 whose sine is x."""

    ufunc: ClassVar[np.ufunc] = np.arcsin
    tf_name: ClassVar[str | None] = "Asin"

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, elementwise(Sqrt(), subtract(1, elementwise(Square(), x))))


class Arccos(Inverse):
    """The angle in 0..pi whose cosine is x."""

    ufunc: ClassVar[np.ufunc] = np.arccos
    tf_name: ClassVar[str | None] = "Acos"

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(-1, elementwise(Sqrt(), subtract(1, elementwise(Square(), x))))


class Arcsinh(Function):
    """The inverse of the hyperbolic sine."""

    ufunc: ClassVar[np.ufunc] = np.arcsinh
    tf_name: ClassVar[str | None] = "Asinh"

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, elementwise(Sqrt(), add(elementwise(Square(), x), 1)))


class Arccosh(Inverse):
    """The inverse of the hyperbolic cosine, for x of 1 and more."""

    ufunc: ClassVar[np.ufunc] = np.arccosh
    tf_name: ClassVar[str | None] = "Acosh"
    operands = (X + 3.5,), (SPECIALS,), (Z,)

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, elementwise(Sinh(), out))


class Arctanh(Inverse):
    """The inverse of the hyperbolic tangent, for x in -1..1."""

    ufunc: ClassVar[np.ufunc] = np.arctanh
    tf_name: ClassVar[str | None] = "Atanh"

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, subtract(1, elementwise(Square(), x)))


class Cbrt(Function):
    """The cube root, of negative numbers too."""

    ufunc: ClassVar[np.ufunc] = np.cbrt
    singular: ClassVar[bool] = True
    operands = Function.operands[:3]  # it has no complex one

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1 / 3, elementwise(Square(), out))


class Erf(Function):
    """The error function of floats: `scipy.special.erf`."""

    instruction: ClassVar[str] = "erf"
    operands = ((X * 0.75,),)

    def numpy(self, *arrays: Any) -> Any:
        special = sys.modules.get("scipy.special")
        if special is not None:
            return special.erf(arrays[0])
        return np.vectorize(math.erf, otypes=[np.float64])(arrays[0]).astype(np.asarray(arrays[0]).dtype)[()]

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def derivative(self, x: Node, out: Node) -> Node:
        return multiply(elementwise(Exp(), negative(elementwise(Square(), x))), 2 / math.sqrt(math.pi))


class Rounding(Unary, family=True):
    """A whole number near x; integers stay as they are. Its derivative is 0 wherever it has one."""

    operands: ClassVar[Operands] = (X,), (np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e300, 4503599627370497.5]),), (SPECIALS,), (I8,)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [None]

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        if x.dtype.kind == "c":
            return e.make_complex(self.body(e, e.real(x)), self.body(e, e.imag(x)))
        return super().body(e, x) if x.dtype.kind == "f" else x


class Floor(Rounding):
    """The largest whole number not above x."""

    ufunc: ClassVar[np.ufunc] = np.floor


class Ceil(Rounding):
    """The smallest whole number not below x."""

    ufunc: ClassVar[np.ufunc] = np.ceil


class Trunc(Rounding):
    """x without its fraction."""

    ufunc: ClassVar[np.ufunc] = np.trunc


class Rint(Rounding):
    """The nearest whole number, of two the even one."""

    ufunc: ClassVar[np.ufunc] = np.rint
    operands = (*Rounding.operands[:3], (Z,))

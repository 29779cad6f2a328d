"""Arithmetic on elements: sums, products, quotients, powers, extremes, and the parts of complex numbers.

Cotangents of complex values follow ∂L/∂re + i·∂L/∂im, so a holomorphic f sends g to g·conj(f'(x)). Where a derivative can
be infinite (a quotient, a root, a power, an exponential, and what is computed from those), a zero cotangent stays zero: the
branch that `np.where` did not take never puts a NaN into a gradient (docs/internals/gradients.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.messages import Message
from jitlab.ops.base import Elementwise, broadcast_shapes
from jitlab.ops.build_nodes import apply, cast, constant, elementwise
from jitlab.ops.emitter import Emitter
from jitlab.ops.leaf_operations import Constant
from jitlab.support.transactions import variable

from . import complex_bodies

X = np.linspace(-2.0, 2.0, 8)  # no zero among them, no tie with Y
Y = np.array([0.5, -1.5, 2.0, 3.0, -0.25, 1.0, 4.0, 2.5])
Z = X + 1j * Y
DIVISORS = np.array([0.7, -1.5, 1.3, 3.0, -0.3, 1.1, 4.0, 0.9])
I8 = np.array([-128, -7, -1, 0, 1, 7, 100, 127], np.int8)
J8 = np.array([-1, 2, 0, 0, 3, -2, 100, 1], np.int8)
BOOLS = np.array([True, False, True, True, False, False, True, False])
SPECIALS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 2.5])
SPECIAL_PAIR = SPECIALS, SPECIALS[::-1].copy()
COMPLEX_SPECIALS = np.array([complex(x, y) for x, y in zip(SPECIALS, SPECIALS[::-1], strict=True)])


class Unary(Elementwise, family=True):
    """A function of one element, with its derivative."""

    singular: ClassVar[bool] = False  # the derivative can be infinite

    def derivative(self, x: Node, out: Node) -> Node:
        """The derivative at x."""
        raise NotImplementedError

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        derivative = conj(self.derivative(x, out))
        return [unless_zero(g, multiply(g, derivative)) if self.singular else along(g, derivative, x)]


class Add(Elementwise):
    """x + y; of bools: or."""

    ufunc: ClassVar[np.ufunc] = np.add
    tf_name: ClassVar[str | None] = "AddV2"
    operands = (X, Y), (I8, J8), (BOOLS, ~BOOLS), (Z, Z[::-1])

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g, g]


class Sub(Elementwise):
    """x - y."""

    ufunc: ClassVar[np.ufunc] = np.subtract
    instruction: ClassVar[str] = "sub"
    operands = (X, Y), (I8, J8), (Z, Z[::-1])

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g, negative(g)]


class Mul(Elementwise):
    """x * y; of bools: and."""

    ufunc: ClassVar[np.ufunc] = np.multiply
    instruction: ClassVar[str] = "mul"
    operands = (X, Y), (I8, J8), (BOOLS, ~BOOLS), (Z, Z[::-1])

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        return [along(g, conj(y), y), along(g, conj(x), x)]


class RealDiv(Elementwise):
    """x / y of floats or complex numbers; NumPy makes float64 of integers first."""

    ufunc: ClassVar[np.ufunc] = np.true_divide
    flops_per_element: ClassVar[float] = 4
    instruction: ClassVar[str] = "div"
    operands = (X, Y), (Z, Z[::-1]), (np.array([1.0, -1.0, 0.0]), np.array([0.0, 0.0, 0.0]))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        _, y = inputs
        gx = divide(g, conj(y))
        gy = negative(multiply(gx, conj(out)))
        if isinstance(y.op, Constant) and np.all(y.op.value != 0):
            return [gx, gy]
        return [unless_zero(g, gx), unless_zero(g, gy)]


class FloorDiv(Elementwise):
    """x // y, rounded down; an integer divided by zero gives zero."""

    ufunc: ClassVar[np.ufunc] = np.floor_divide
    flops_per_element: ClassVar[float] = 8
    operands = (X, Y), (I8, J8), SPECIAL_PAIR

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [None, None]


class FloorMod(Elementwise):
    """x % y with the sign of y; the remainder of an integer by zero is zero."""

    ufunc: ClassVar[np.ufunc] = np.remainder
    flops_per_element: ClassVar[float] = 10
    operands = (X, DIVISORS), (I8, J8), SPECIAL_PAIR

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        return [g, negative(multiply(g, elementwise(FloorDiv(), x, y)))]


class Fmod(Elementwise):
    """The remainder of x by y with the sign of x, as C has it."""

    ufunc: ClassVar[np.ufunc] = np.fmod
    tf_name: ClassVar[str | None] = "TruncateMod"
    flops_per_element: ClassVar[float] = 20
    operands = (X, DIVISORS), (I8, J8), SPECIAL_PAIR

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        from .math_functions import Trunc

        x, y = inputs
        return [g, negative(multiply(g, elementwise(Trunc(), divide(x, y))))]


class Neg(Unary):
    """-x; unsigned integers wrap."""

    ufunc: ClassVar[np.ufunc] = np.negative
    instruction: ClassVar[str] = "neg"
    operands = (X,), (I8,), (Z,)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [negative(g)]


class Abs(Unary):
    """|x|; of a complex number its length, a float."""

    ufunc: ClassVar[np.ufunc] = np.absolute
    operands = (X,), (I8,), (BOOLS,), (Z,)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        if x.dtype.kind != "c":
            return [multiply(g, elementwise(Sign(), x))]
        direction = select(equal(out, 0), zero_like(x), divide(x, out))  # no derivative at the tip of the cone
        return [unless_zero(g, multiply(g, direction))]

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        if x.dtype.kind == "c":
            return e.hypot(e.real(x), e.imag(x))
        return x if x.dtype.kind in "bu" else e.abs(x)


class Sign(Unary):
    """-1, 0 or 1; NaN of NaN; of a complex number z/|z|."""

    ufunc: ClassVar[np.ufunc] = np.sign
    operands = (X,), (I8,), (SPECIALS,), (COMPLEX_SPECIALS,)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        if x.dtype.kind != "c":
            return [None]
        # x = |x| out, and of a turn by t at the length r only i t / r counts
        length = elementwise(Abs(), x)
        across = multiply(out, multiply(1j, apply(Imag(), multiply(conj(out), g))))
        return [unless_zero(g, select(equal(length, 0), zero_like(x), divide(across, length)))]

    def body(self, e: Emitter, *xs: Any) -> Any:
        return complex_bodies.sign(e, *xs) if xs[0].dtype.kind == "c" else e.sign(*xs)


class Square(Unary):
    """x * x: what NumPy computes for `x**2`."""

    ufunc: ClassVar[np.ufunc] = np.square
    operands = (X,), (I8,), (Z,)

    def derivative(self, x: Node, out: Node) -> Node:
        return multiply(x, 2)

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.mul(xs[0], xs[0])


class Reciprocal(Unary):
    """1 / x; of an integer rounded towards zero."""

    ufunc: ClassVar[np.ufunc] = np.reciprocal
    flops_per_element: ClassVar[float] = 4
    singular: ClassVar[bool] = True
    operands = (X,), (SPECIALS,), (Z,)

    def derivative(self, x: Node, out: Node) -> Node:
        return negative(elementwise(Square(), out))

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return Message("stays.integer_reciprocal") if types[0].dtype.kind in "iu" else None

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        return complex_bodies.reciprocal(e, x) if x.dtype.kind == "c" else e.div(e.constant(1, x.dtype), x)


class Sqrt(Unary):
    """The square root; NaN of negative numbers."""

    ufunc: ClassVar[np.ufunc] = np.sqrt
    flops_per_element: ClassVar[float] = 6
    singular: ClassVar[bool] = True
    operands = (X + 2.5,), (SPECIALS,), (Z,)

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(0.5, out)

    def body(self, e: Emitter, *xs: Any) -> Any:
        return complex_bodies.body(e, "sqrt", *xs) if xs[0].dtype.kind == "c" else e.sqrt(*xs)


class Pow(Elementwise):
    """x ** y. Capture refuses integers with exponents that may be negative: NumPy raises ValueError for those."""

    ufunc: ClassVar[np.ufunc] = np.power
    flops_per_element: ClassVar[float] = 40
    exact: ClassVar[bool] = False
    operands = (X + 2.5, Y), (I8, np.abs(J8 % 5)), SPECIAL_PAIR, (Z, Z[::-1] * 0.5)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        if isinstance(y.op, Constant) and y.ndim == 0:
            exponent = y.op.value.item()
            if exponent == 0:
                return [None, None]
            derivative = multiply(_power(x, exponent - 1, y.dtype), exponent)
            safe = exponent.real >= 1 if isinstance(exponent, complex) else exponent >= 1
            gx = multiply(g, conj(derivative))
            gx = gx if safe else unless_zero(g, gx)
        else:
            derivative = multiply(y, elementwise(Pow(), x, subtract(y, 1)))
            gx = unless_zero(g, multiply(g, conj(select(equal(y, 0), zero_like(y), derivative))))
        from .math_functions import Log

        one = constant(1, x.dtype)
        positive = greater(x, 0) if x.dtype.kind != "c" else not_equal(x, 0)
        log = elementwise(Log(), select(positive, x, one))  # 0**y is 0 around y > 0; x < 0 has no derivative along y
        return [gx, unless_zero(g, multiply(g, conj(multiply(out, log))))]

    def with_known(self, node: Node) -> tuple[Elementwise, tuple[Node, ...]]:
        x, y = node.inputs
        most = MOST_FACTORS.get(x.dtype.kind)
        if most is None or not isinstance(y.op, Constant) or y.ndim:
            return self, node.inputs
        power = y.op.value.item()
        return (IntegerPower(int(power)), (x,)) if 2 <= power <= most and power % 1 == 0 else (self, node.inputs)

    def body(self, e: Emitter, *xs: Any) -> Any:
        return complex_bodies.power(e, *xs) if xs[0].dtype.kind == "c" else e.pow(*xs)


#: Up to these exponents a loop computes a power that the program writes as products: of integers modulo 2**n, of floats with
#: what the products lose added again, so that nearly all have NumPy's bits.
MOST_FACTORS = {"i": 15, "u": 15, "f": 8}


class IntegerPower(Elementwise):
    """x ** power by products: what a loop computes for `Pow` where the program says a small whole exponent."""

    power: int
    numpy_word: ClassVar[str] = "**"
    flops_per_element: ClassVar[float] = 2
    exact: ClassVar[bool] = False

    def numpy(self, *arrays: Any) -> Any:
        return np.power(arrays[0], np.asarray(arrays[0]).dtype.type(self.power))

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def body(self, e: Emitter, *xs: Any) -> Any:
        return e.pow(xs[0], e.constant(self.power, xs[0].dtype))

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(3), X
        yield cls(4), SPECIALS
        yield cls(13), I8


class Extreme(Elementwise, family=True):
    """The larger or smaller of two. Where they tie, each gets half of the cotangent."""

    order: ClassVar[str]  # "ge": the larger one, "le": the smaller one
    nan_wins: ClassVar[bool] = True
    operands = (
        (X, Y), (I8, J8), (BOOLS, ~BOOLS), (SPECIALS, np.roll(SPECIALS, 2)), (COMPLEX_SPECIALS, np.roll(COMPLEX_SPECIALS, 2)),
        (Z, Z[::-1]),
    )

    def wins(self, x: Node, y: Node) -> Node:
        """Where x alone is the result."""
        before = greater(x, y) if self.order == "ge" else greater(y, x)
        return before if self.nan_wins else either(before, is_nan(y))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        none, tie = zero_like(g), equal(x, y)
        half = multiply(g, 0.5)
        return [
            select(self.wins(x, y), g, select(tie, half, none)),
            select(self.wins(y, x), g, select(tie, half, none)),
        ]

    def body(self, e: Emitter, *xs: Any) -> Any:
        x, y = xs
        if x.dtype.kind == "c":
            first = complex_bodies.compare(e, self.order, x, y)
            return e.select(e.or_(first, _has_nan(e, x if self.nan_wins else y)), x, y)
        if x.dtype.kind == "b":
            return e.or_(x, y) if self.order == "ge" else e.and_(x, y)
        return super().body(e, x, y)


class Maximum(Extreme):
    """The larger of x and y; NaN if either is NaN."""

    ufunc: ClassVar[np.ufunc] = np.maximum
    order: ClassVar[str] = "ge"


class Minimum(Extreme):
    """The smaller of x and y; NaN if either is NaN."""

    ufunc: ClassVar[np.ufunc] = np.minimum
    order: ClassVar[str] = "le"


class Fmax(Extreme):
    """The larger of x and y; the other one if one is NaN."""

    ufunc: ClassVar[np.ufunc] = np.fmax
    order: ClassVar[str] = "ge"
    nan_wins: ClassVar[bool] = False


class Fmin(Extreme):
    """The smaller of x and y; the other one if one is NaN."""

    ufunc: ClassVar[np.ufunc] = np.fmin
    order: ClassVar[str] = "le"
    nan_wins: ClassVar[bool] = False


class Clip(Elementwise):
    """x, but low where it is below that, then high where that is above high; NaN if one is NaN. In between g passes."""

    tf_name: ClassVar[str | None] = "ClipByValue"
    flops_per_element: ClassVar[float] = 2
    operands = (
        (X, np.float64(-1.2), np.float64(0.9)), (X, Y - 1.5, Y), (I8, np.int8(-5), np.int8(100)),
        (SPECIALS, np.float64(0.0), np.float64(2.0)), (X, np.float64(1.0), np.float64(-1.0)),
        (X, np.float64(np.nan), np.float64(1.0)), (Z, np.complex128(-1 - 1j), np.complex128(1 + 1j)),
    )

    def numpy(self, *arrays: Any) -> Any:
        return np.clip(*arrays)

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType(broadcast_shapes(*(t.shape for t in types)), types[0].dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, low, high = inputs
        none = zero_like(g)
        below, above = greater(low, x), greater(elementwise(Maximum(), x, low), high)
        return [
            select(either(below, above), none, g),
            select(above, none, select(below, g, none)),
            select(above, g, none),
        ]

    def body(self, e: Emitter, *xs: Any) -> Any:
        x, low, high = xs
        if x.dtype.kind == "c":
            above = e.select(e.or_(complex_bodies.compare(e, "lt", x, low), _has_nan(e, low)), low, x)
            above = e.select(_has_nan(e, x), x, above)
            result = e.select(e.or_(complex_bodies.compare(e, "gt", above, high), _has_nan(e, high)), high, above)
            return e.select(_has_nan(e, above), above, result)
        if x.dtype.kind != "f":
            x = e.select(e.lt(x, low), low, x)
            return e.select(e.gt(x, high), high, x)
        x = e.select(e.or_(e.lt(x, low), e.isnan(low)), low, x)  # -0.0 stays beside a bound of 0.0
        return e.select(e.or_(e.gt(x, high), e.isnan(high)), high, x)


class Hypot(Elementwise):
    """sqrt(x*x + y*y) without overflow on the way."""

    ufunc: ClassVar[np.ufunc] = np.hypot
    flops_per_element: ClassVar[float] = 12
    exact: ClassVar[bool] = False
    operands = (X, Y), SPECIAL_PAIR

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        origin = equal(out, 0)
        return [select(origin, zero_like(g), multiply(g, divide(x, out))) for x in inputs]


class Arctan2(Elementwise):
    """The angle of the point (y, x), first operand y, in -pi..pi."""

    ufunc: ClassVar[np.ufunc] = np.arctan2
    tf_name: ClassVar[str | None] = "Atan2"
    flops_per_element: ClassVar[float] = 40
    exact: ClassVar[bool] = False
    operands = (X, Y), SPECIAL_PAIR

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        y, x = inputs
        scaled = divide(g, add(elementwise(Square(), x), elementwise(Square(), y)))
        return [unless_zero(g, multiply(scaled, x)), unless_zero(g, negative(multiply(scaled, y)))]


class Copysign(Elementwise):
    """|x| with the sign of y."""

    ufunc: ClassVar[np.ufunc] = np.copysign
    operands = (X, Y), SPECIAL_PAIR

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        from .comparison import Signbit

        x, y = inputs
        same = equal(elementwise(Signbit(), x), elementwise(Signbit(), y))
        return [select(same, g, negative(g)), None]


class Part(Elementwise, family=True):
    """A real part of a complex number."""

    operands = (Z,), (Z.astype(np.complex64),)

    def numpy(self, *arrays: Any) -> Any:
        return np.array(getattr(np, self.instruction)(arrays[0]))[()]

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0].with_dtype(real_dtype(types[0].dtype))


class Real(Part):
    """The real part of a complex number."""

    instruction: ClassVar[str] = "real"

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [cast(g, inputs[0].dtype)]


class Imag(Part):
    """The imaginary part of a complex number."""

    instruction: ClassVar[str] = "imag"

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [multiply(cast(g, inputs[0].dtype), 1j)]


class Conj(Elementwise):
    """The complex conjugate."""

    ufunc: ClassVar[np.ufunc] = np.conjugate
    operands = (Z,), (X,)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [conj(g)]

    def body(self, e: Emitter, *xs: Any) -> Any:
        (x,) = xs
        return e.make_complex(e.real(x), e.neg(e.imag(x))) if x.dtype.kind == "c" else x


def _has_nan(e: Emitter, z: Any) -> Any:
    return e.or_(e.isnan(e.real(z)), e.isnan(e.imag(z)))


def add(x: Any, y: Any) -> Node:
    return elementwise(Add(), x, y)


def subtract(x: Any, y: Any) -> Node:
    return elementwise(Sub(), x, y)


def multiply(x: Any, y: Any) -> Node:
    return elementwise(Mul(), x, y)


def divide(x: Any, y: Any) -> Node:
    return elementwise(RealDiv(), x, y)


def negative(x: Any) -> Node:
    return elementwise(Neg(), x)


def conj(x: Node) -> Node:
    """The conjugate, x itself when it is real."""
    return apply(Conj(), x) if x.dtype.kind == "c" else x


def real_dtype(dtype: np.dtype) -> np.dtype:
    """complex128 -> float64; a real dtype stays."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def zero_like(x: Node) -> Node:
    """The number 0 in the dtype of x."""
    return constant(0, x.dtype)


def unless_zero(g: Node, value: Node) -> Node:
    """`value`, g times a derivative, but 0 where it is NaN though g is 0: nothing flows through an infinite derivative then.

    Where the derivative is finite nothing is selected, so that the second derivative sees it although g is 0 there.
    """
    return select(both(equal(g, 0), is_nan(value)), zero_like(value), value)


def along(g: Node, derivative: Node, *from_values: Node) -> Node:
    """g times a derivative that is computed from these values: `unless_zero` where one of them may be infinite or NaN."""
    result = multiply(g, derivative)
    return unless_zero(g, result) if any(may_be_infinite(x) for x in from_values) else result


#: What may be infinite or NaN though no argument is, in the graph whose gradient is being taken; the pass says it.
at_risk: ContextVar[Collection[Node]] = variable("jitlab_at_risk", ())


def may_be_infinite(x: Node) -> bool:
    return x in at_risk.get()


def equal(x: Any, y: Any) -> Node:
    from .comparison import Equal

    return elementwise(Equal(), x, y)


def not_equal(x: Any, y: Any) -> Node:
    from .comparison import NotEqual

    return elementwise(NotEqual(), x, y)


def greater(x: Any, y: Any) -> Node:
    from .comparison import Greater

    return elementwise(Greater(), x, y)


def either(x: Node, y: Node) -> Node:
    from .comparison import LogicalOr

    return elementwise(LogicalOr(), x, y)


def both(x: Node, y: Node) -> Node:
    from .comparison import LogicalAnd

    return elementwise(LogicalAnd(), x, y)


def is_nan(x: Node) -> Node:
    from .comparison import IsNan

    return elementwise(IsNan(), x)


def select(condition: Node, x: Node, y: Node) -> Node:
    from .casts import Select

    return apply(Select(), condition, x, y)


def _power(x: Node, exponent: Any, dtype: np.dtype) -> Node:
    """x to a known power."""
    match exponent:
        case 0:
            return constant(1, dtype)
        case 1:
            return x
        case 2:
            return elementwise(Square(), x)
    return elementwise(Pow(), x, exponent)

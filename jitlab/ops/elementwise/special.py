"""scipy.special: what machine learning needs of it has loop bodies or is made of other operations; the rest calls SciPy.

The rules are known by dotted names, so that `import jitlab` does not load SciPy. Dtypes are those of SciPy's own ufuncs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import TRACED_DTYPES, ArrayType, Node
from jitlab.ops.base import Elementwise, Operands, Unsupported, broadcast_shapes
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise, promotion_dtypes
from jitlab.ops.emitter import Emitter
from jitlab.ops.layout.views import broadcast_to, squeeze
from jitlab.ops.library_operations import InC, Library, Lying, UfuncLoop, call
from jitlab.ops.numpy_api.arguments import as_axes, node, operand, refuse
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule

from . import arithmetic as ar
from . import comparison as co
from . import math_functions as fu
from .arithmetic import (
    SPECIAL_PAIR,
    SPECIALS,
    Unary,
    X,
    Y,
    add,
    divide,
    equal,
    multiply,
    negative,
    select,
    subtract,
    unless_zero,
    zero_like,
)
from .rare_functions import LogAddExp
from .scalars import Scalar, fma, where

FLOATS = (np.dtype("f4"), np.dtype("f8"))
ROOT_PI = math.sqrt(math.pi)


def scipy_special(name: str) -> Any:
    """A function of scipy.special, loaded when it is first run."""
    import scipy.special

    return getattr(scipy.special, name)


class Special(Library):
    """A ufunc of scipy.special that SciPy computes: `name` of operands in the dtypes of one of its loops."""

    function: str
    library: ClassVar[str] = "SciPy"
    flops_per_element: ClassVar[float] = 60

    @property
    def name(self) -> str:
        return "".join(word[:1].upper() + word[1:] for word in self.function.split("_"))

    @property
    def word(self) -> str:
        return self.function

    @property
    def stem(self) -> str:
        return self.function

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        dtype = scipy_special(self.function).resolve_dtypes((*(t.dtype for t in types), None))[-1]
        return (ArrayType(broadcast_shapes(*(t.shape for t in types)), dtype),)

    def numpy(self, *arrays: Any) -> Any:
        return scipy_special(self.function)(*arrays)

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC:
        places = (*(("in", number) for number in range(len(ins))), ("out", 0))
        signature = f"{','.join(['()'] * len(ins))}->()"
        return InC((UfuncLoop("scipy.special", self.function, signature, places, may_raise=True),))

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        derivatives = DERIVATIVES.get(self.function)
        if derivatives is None:
            raise NotImplementedError(f"{self.function} has no gradient")
        return [None if each is None else unless_zero(g, multiply(g, each)) for each in derivatives(out, *inputs)]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("gammaln"), X + 2.6
        yield cls("psi"), X + 2.6
        yield cls("erfinv"), X * 0.4
        yield cls("i1e"), X
        yield cls("gammaln"), SPECIALS.astype(np.float32)


def special(name: str, *xs: Node) -> Node:
    """The call of SciPy's ufunc; the operands have the dtypes of one of its loops."""
    result = call(Special(name), *xs)
    assert isinstance(result, Node)
    return result


def _exp(x: Any) -> Node:
    return elementwise(fu.Exp(), x)


def _square(x: Any) -> Node:
    return elementwise(ar.Square(), x)


def _digamma(x: Node) -> Node:
    return special("psi", x)


#: By name of the ufunc: the derivative along each operand, from the result and the operands (NIST's Handbook of
#: Mathematical Functions, 5.2, 7.17, 10.29).
DERIVATIVES: dict[str, Callable[..., list[Node | None]]] = {
    "gammaln": lambda out, x: [_digamma(x)],
    "gamma": lambda out, x: [multiply(out, _digamma(x))],
    "rgamma": lambda out, x: [negative(multiply(out, _digamma(x)))],
    "psi": lambda out, x: [apply(Zeta2(), x)],
    "beta": lambda out, a, b: [multiply(out, subtract(_digamma(z), _digamma(add(a, b)))) for z in (a, b)],
    "betaln": lambda out, a, b: [subtract(_digamma(z), _digamma(add(a, b))) for z in (a, b)],
    "erfinv": lambda out, x: [multiply(_exp(_square(out)), ROOT_PI / 2)],
    "erfcinv": lambda out, x: [multiply(_exp(_square(out)), -ROOT_PI / 2)],
    "ndtri": lambda out, x: [multiply(_exp(multiply(_square(out), 0.5)), math.sqrt(2 * math.pi))],
    "i0": lambda out, x: [special("i1", x)],
    "i0e": lambda out, x: [subtract(special("i1e", x), multiply(elementwise(ar.Sign(), x), out))],
    "i1": lambda out, x: [subtract(special("i0", x), _over(out, x, 0.5))],
    "i1e": lambda out, x: [
        subtract(special("i0e", x), add(multiply(elementwise(ar.Sign(), x), out), _over(out, x, 0.5)))
    ],
    "exp10": lambda out, x: [multiply(out, math.log(10))],
}


def _over(y: Node, x: Node, at_zero: float) -> Node:
    """y / x, and its limit at x = 0."""
    return select(equal(x, 0), constant(at_zero, x.dtype), divide(y, x))


class Zeta2(Library):
    """The trigamma function: `scipy.special.polygamma(1, x)`."""

    numpy_word: ClassVar[str] = "polygamma"
    library: ClassVar[str] = "SciPy"
    flops_per_element: ClassVar[float] = 60
    operands = ((X + 2.6,),)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return types[:1]

    def numpy(self, *arrays: Any) -> Any:
        (x,) = arrays
        return np.asarray(scipy_special("zeta")(2, x)).astype(np.asarray(x).dtype)[()]


class ScipyFunction(Unary, family=True):
    """A function of float32 or float64 with a loop body; its meaning is SciPy's ufunc of that name."""

    scipy_name: ClassVar[str]
    flops_per_element: ClassVar[float] = 40
    exact: ClassVar[bool] = False
    singular: ClassVar[bool] = True
    operands: ClassVar[Operands] = (X * 1.5,), (np.append(SPECIALS, [5.0, -5.0]),), ((X * 2).astype(np.float32),)

    def numpy(self, *arrays: Any) -> Any:
        return scipy_special(self.scipy_name)(*arrays)

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def of(self, x: Scalar) -> Scalar:
        """The emitter's instruction, where it has one."""
        return x.call(self.scipy_name)

    def body(self, e: Emitter, *xs: Any) -> Any:
        return self.of(Scalar(e, xs[0])).v


class Erfc(ScipyFunction):
    """1 - erf(x), without loss where erf(x) is near 1."""

    scipy_name: ClassVar[str] = "erfc"

    def derivative(self, x: Node, out: Node) -> Node:
        return multiply(_exp(negative(_square(x))), -2 / ROOT_PI)


class Erfcx(ScipyFunction):
    """exp(x**2) erfc(x)."""

    scipy_name: ClassVar[str] = "erfcx"

    def derivative(self, x: Node, out: Node) -> Node:
        return subtract(multiply(multiply(x, out), 2), 2 / ROOT_PI)


class Expit(ScipyFunction):
    """The logistic sigmoid 1 / (1 + exp(-x))."""

    scipy_name: ClassVar[str] = "expit"
    tf_name: ClassVar[str | None] = "Sigmoid"
    singular: ClassVar[bool] = False

    def of(self, x: Scalar) -> Scalar:
        power = (-abs(x)).call("exp")
        return where(x < 0.0, power, 1.0) / (power + 1.0)

    def derivative(self, x: Node, out: Node) -> Node:
        return multiply(out, apply(Expit(), negative(x)))


class LogExpit(ScipyFunction):
    """log(expit(x)), without loss at either end."""

    numpy_word: ClassVar[str] = "log_expit"
    scipy_name: ClassVar[str] = "log_expit"
    singular: ClassVar[bool] = False

    def of(self, x: Scalar) -> Scalar:
        return where(x < 0.0, x, 0.0) - (-abs(x)).call("exp").call("log1p")

    def derivative(self, x: Node, out: Node) -> Node:
        return apply(Expit(), negative(x))


class Logit(ScipyFunction):
    """log(x / (1 - x)), without loss near 1/2."""

    scipy_name: ClassVar[str] = "logit"
    operands = (X * 0.2 + 0.5,), (SPECIALS,)

    def of(self, x: Scalar) -> Scalar:
        middle = (x > 0.3) & (x < 0.65)
        s = where(middle, (x - 0.5) * 2.0, 0.0)
        return where(middle, s.call("log1p") - (-s).call("log1p"), (x / (1.0 - x)).call("log"))

    def derivative(self, x: Node, out: Node) -> Node:
        return divide(1, multiply(x, subtract(1, x)))


class Ndtr(ScipyFunction):
    """The distribution function of the normal distribution: erfc(-x / sqrt(2)) / 2."""

    scipy_name: ClassVar[str] = "ndtr"
    operands = (X * 1.5,), (SPECIALS,)  # far to the left SciPy's own loses digits

    def of(self, x: Scalar) -> Scalar:
        root, rest = math.sqrt(0.5), -4.833646656726457e-17
        t = x * -root
        tail = t.call("erfc") * 0.5
        low = fma(x, -root, -t) - x * rest if x.dtype == np.dtype("f8") else x.like(0.0)
        return where((t > 1.0) & (tail > 0.0), fma(tail, t * low * -2.0, tail), tail)  # what t lost counts 2 t times

    def derivative(self, x: Node, out: Node) -> Node:
        return multiply(_exp(multiply(_square(x), -0.5)), 1 / math.sqrt(2 * math.pi))


class LogNdtr(ScipyFunction):
    """log(ndtr(x)): far to the left by the scaled complementary error function."""

    numpy_word: ClassVar[str] = "log_ndtr"
    scipy_name: ClassVar[str] = "log_ndtr"

    def of(self, x: Scalar) -> Scalar:
        t = x * math.sqrt(0.5)
        left = x < -1.0
        tail = (where(left, -t, 1.0).call("erfcx") * 0.5).call("log") - x * x * 0.5
        return where(left, tail, (where(left, 0.0, t).call("erfc") * -0.5).call("log1p"))

    def derivative(self, x: Node, out: Node) -> Node:
        return multiply(_exp(subtract(multiply(_square(x), -0.5), out)), 1 / math.sqrt(2 * math.pi))


class TimesLog(Elementwise, family=True):
    """x times a logarithm of y; 0 where x is 0 and y is not NaN."""

    scipy_name: ClassVar[str]
    logarithm: ClassVar[str]
    flops_per_element: ClassVar[float] = 22
    exact: ClassVar[bool] = False
    operands = (X, Y**2 + 0.1), SPECIAL_PAIR

    def numpy(self, *arrays: Any) -> Any:
        return scipy_special(self.scipy_name)(*arrays)

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType(broadcast_shapes(*(t.shape for t in types)), types[0].dtype)

    def body(self, e: Emitter, *xs: Any) -> Any:
        x, y = (Scalar(e, v) for v in xs)
        return where(x.equals(0.0) & ~y.is_nan(), 0.0, x * y.call(self.logarithm)).v


class Xlogy(TimesLog):
    """x log(y)."""

    scipy_name: ClassVar[str] = "xlogy"
    logarithm: ClassVar[str] = "log"

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        return [unless_zero(g, multiply(g, elementwise(fu.Log(), y))), unless_zero(g, multiply(g, _ratio(x, y)))]


class Xlog1py(TimesLog):
    """x log(1 + y)."""

    scipy_name: ClassVar[str] = "xlog1py"
    logarithm: ClassVar[str] = "log1p"

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x, y = inputs
        return [unless_zero(g, multiply(g, elementwise(fu.Log1p(), y))), unless_zero(g, multiply(g, _ratio(x, add(y, 1))))]


def _ratio(x: Node, y: Node) -> Node:
    return select(equal(x, 0), zero_like(x), divide(x, y))


def entr(x: Node) -> Node:
    """-x log(x); 0 of 0, -inf of negative numbers."""
    inside = negative(apply(Xlogy(), x, x))
    return select(ar.greater(zero_like(x), x), constant(-np.inf, x.dtype), inside)


def rel_entr(x: Node, y: Node) -> Node:
    """x log(x / y); 0 where x is 0 and y is not negative, inf outside."""
    return _divergence(x, y, lambda log, x, y: log, zero_like(x))


def kl_div(x: Node, y: Node) -> Node:
    """x log(x / y) - x + y; y where x is 0, inf outside."""
    return _divergence(x, y, lambda log, x, y: add(subtract(log, x), y), y)


def _divergence(x: Node, y: Node, of: Callable[[Node, Node, Node], Node], at_zero: Node) -> Node:
    both = elementwise(co.LogicalAnd(), ar.greater(x, 0), ar.greater(y, 0))
    one = constant(1, x.dtype)
    p, q = select(both, x, one), select(both, y, one)
    inside = of(multiply(p, elementwise(fu.Log(), divide(p, q))), p, q)
    edge = elementwise(co.LogicalAnd(), equal(x, 0), elementwise(co.GreaterEqual(), y, 0))
    result = select(edge, add(at_zero, zero_like(x)), constant(np.inf, x.dtype))
    nan = ar.either(ar.is_nan(x), ar.is_nan(y))
    return select(nan, constant(np.nan, x.dtype), select(both, inside, result))


def one(op: Elementwise) -> Callable[..., Node]:
    return lambda *xs: apply(op, *xs)


#: The ufuncs of scipy.special: by name, what is built of operands that are float32 or float64; None: SciPy computes it.
UFUNCS: dict[str, Callable[..., Node] | None] = {
    **{kind.scipy_name: one(kind()) for kind in (Erfc, Erfcx, Expit, LogExpit, Logit, Ndtr, LogNdtr, Xlogy, Xlog1py)},
    **{kind.ufunc.__name__: one(kind()) for kind in (fu.Expm1, fu.Log1p, fu.Cbrt, fu.Exp2)},
    "erf": one(fu.Erf()),
    "entr": entr,
    "rel_entr": rel_entr,
    "kl_div": kl_div,
    "exp10": lambda x: elementwise(ar.Pow(), 10.0, x),
    **dict.fromkeys(("gammaln", "loggamma", "gamma", "rgamma", "psi", "beta", "betaln", "erfinv", "erfcinv", "ndtri")),
    **dict.fromkeys(("i0", "i0e", "i1", "i1e", "gammainc", "gammaincc", "j0", "j1", "dawsn", "erfi")),
}


def ufunc_rule(name: str, build: Callable[..., Node] | None) -> Callable[..., Node]:
    """The rule of a ufunc of SciPy: the loop it picks, in jitlab's own operations for real floats."""

    def rule(*operands: Any, out: Any = None, **options: Any) -> Node:
        refuse(out=out, **options)
        ufunc = getattr(sys.modules["scipy.special"], name)
        if len(operands) != ufunc.nin:
            raise Unsupported("argument_of", name="out")
        xs = [operand(x) for x in operands]
        loop = ufunc.resolve_dtypes((*promotion_dtypes(xs), None))
        if any(d not in TRACED_DTYPES for d in loop):
            raise Unsupported("scipy_in", "dtype", name=name, dtype=loop[-1])
        made = [as_node(x, d) for x, d in zip(xs, loop, strict=False)]
        return build(*made) if build is not None and all(d in FLOATS for d in loop) else special(name, *made)

    return rule


for _name, _build in UFUNCS.items():
    rule(f"scipy.special.{_name}")(ufunc_rule(_name, _build))


@rule("scipy.special.softplus")
def softplus(x: Any, **options: Any) -> Node:
    """log(1 + exp(x))"""
    refuse(**options)
    value = _floating(x)
    return apply(LogAddExp(), value, zero_like(value))


@rule("scipy.special.softmax")
def softmax(x: Any, axis: Any = None) -> Node:
    value = _floating(x)
    axes = as_axes(axis, value.ndim)
    powers = _exp(subtract(value, re.reduce(re.Max, value, axes, keepdims=True)))
    return divide(powers, re.reduce(re.Sum, powers, axes, keepdims=True))


@rule("scipy.special.log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Node:
    value = _floating(x)
    axes = as_axes(axis, value.ndim)
    below = subtract(value, _finite(re.reduce(re.Max, value, axes, keepdims=True)))
    total = re.reduce(re.Sum, _exp(below), axes, keepdims=True)
    return subtract(below, elementwise(fu.Log(), total))


@rule("scipy.special.logsumexp")
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: Any = False, return_sign: Any = False
) -> Node | tuple[Node, Node]:
    """log(sum(b exp(a))), and the sign of the sum where `return_sign` asks for it."""
    value = _floating(a)
    weights = None if b is None else _floating(b)
    if weights is not None:
        dtype = np.result_type(value.dtype, weights.dtype)
        shape = broadcast_shapes(value.shape, weights.shape)
        value, weights = (broadcast_to(cast(x, dtype), shape) for x in (value, weights))
        none = constant(-np.inf, dtype)
        value = select(equal(weights, 0), none, value)  # a weight of 0 takes its term away, an infinite one too
    axes = as_axes(axis, value.ndim)
    greatest = _finite(re.reduce(re.Max, value, axes, keepdims=True))
    terms = _exp(subtract(value, greatest))
    terms = terms if weights is None else select(equal(weights, 0), zero_like(terms), multiply(weights, terms))
    total = re.reduce(re.Sum, terms, axes, keepdims=True)
    sign = elementwise(ar.Sign(), total)
    result = add(elementwise(fu.Log(), elementwise(ar.Abs(), total) if return_sign else total), greatest)
    if axes and not keepdims:
        result, sign = squeeze(result, axes), squeeze(sign, axes)
    return (result, sign) if return_sign else result


def _finite(x: Node) -> Node:
    """x, but 0 where it is not finite: infinite terms keep what exp makes of them."""
    return select(elementwise(co.IsFinite(), x), x, zero_like(x))


def _floating(x: Any) -> Node:
    """float32 and float64 as they are, integers and bools as float64."""
    value = node(x)
    if value.dtype.kind in "biu":
        return cast(value, "f8")
    if value.dtype not in FLOATS:
        raise Unsupported("scipy_of", "dtype", dtype=value.dtype)
    return value


class I0(Library):
    """`np.i0`: the modified Bessel function of order 0, of real numbers."""

    flops_per_element: ClassVar[float] = 60
    operands = (X,), ((X * 5).astype(np.float32),)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (types[0].with_dtype(np.i0(np.zeros(1, types[0].dtype)).dtype),)

    def numpy(self, *arrays: Any) -> Any:
        return np.i0(arrays[0])

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        x = cast(inputs[0], "f8")
        return [cast(multiply(g, special("i1", x)), inputs[0].dtype)]


@rule(np.i0)
def i0(x: Any) -> Node:
    value = node(x)
    if value.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    result = call(I0(), value)
    assert isinstance(result, Node)
    return result

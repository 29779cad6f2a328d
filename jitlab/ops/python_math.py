"""Functions of Python's `math` of numbers that only a run knows: Python's own code as one call inside a cluster, or the
operation that gives the value, and where Python raises instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.support.lazy_dataclass import dataclass

from .base import Operation
from .build_nodes import constant, elementwise
from .elementwise import arithmetic as ar
from .elementwise import comparison as cm
from .elementwise import math_functions as fu
from .elementwise.special import Erfc
from .library_operations import Library

#: Those that give a float, and those that give a bool, for any numbers; and that of which NumPy's float is made an int.
FLOATS = frozenset(
    f for name in (
        "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2 expm1 fabs fmod gamma hypot"
        " lgamma log log10 log1p log2 nextafter pow radians remainder sin sinh sqrt tan tanh ulp"
    ).split()
    if (f := getattr(math, name, None)) is not None
)  # fmt: skip
TESTS = frozenset({math.isnan, math.isinf, math.isfinite, math.isclose})
ROUNDED = {math.floor: np.floor, math.ceil: np.ceil, math.trunc: np.trunc}

_KINDS = {"bool": bool, "int": int, "float": float}


class PythonMath(Library):
    """A function of `math` of single numbers. What it raises (`math domain error`) reaches the user at the line of the call."""

    function: str
    kinds: tuple[str, ...]  # of each input the number of Python's own that it is, "" for a NumPy scalar
    exact: ClassVar[bool] = True
    library: ClassVar[str] = "Python"
    may_raise: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"Math{self.function.capitalize()}"

    @property
    def word(self) -> str:
        return f"math.{self.function}"

    def numpy(self, *arrays: Any) -> Any:
        found = zip(self.kinds, arrays, strict=True)
        numbers = [_KINDS[kind](x) if kind else np.asarray(x)[()] for kind, x in found]
        result = getattr(math, self.function)(*numbers)
        return np.bool_(result) if type(result) is bool else np.float64(result)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (ArrayType((), np.dtype(bool if getattr(math, self.function) in TESTS else "f8")),)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("sqrt", ("",)), np.array(2.0, np.float32)
        yield cls("hypot", ("int", "float")), np.array(3), np.array(-4.5)
        yield cls("isnan", ("float",)), np.array(np.nan)


@dataclass(frozen=True)
class InDouble:
    """How a function of `math` counts in double: by the operation of its value."""

    inputs: int
    value: Callable[..., Node]
    raises: Callable[..., Node] | None = None  # of the value and the operands: does Python raise there?


#: What a float64 is below that did not get too large on the way, whatever its last digits.
_LARGEST = 1.79769313486231e308


def _compares(op: Operation, bound: float, value: Node, x: Node) -> Node:
    return elementwise(op, x, bound)


def _size_compares(op: Operation, bound: float, value: Node, x: Node) -> Node:
    return elementwise(op, elementwise(ar.Abs(), x), bound)


def _is_infinite(value: Node, x: Node) -> Node:
    return elementwise(cm.IsInf(), x)


def _is_too_large(value: Node, *xs: Node) -> Node:
    large = elementwise(cm.GreaterEqual(), elementwise(ar.Abs(), value), _LARGEST)
    return reduce(partial(elementwise, cm.LogicalAnd()), (elementwise(cm.IsFinite(), x) for x in xs), large)


def _is_undefined(value: Node, *xs: Node) -> Node:
    """Python's rule for functions of C: no number of numbers, or too large a one of finite ones."""
    known = reduce(partial(elementwise, cm.LogicalOr()), (elementwise(cm.IsNan(), x) for x in xs))
    new = elementwise(cm.LogicalAnd(), elementwise(cm.IsNan(), value), elementwise(cm.LogicalNot(), known))
    return elementwise(cm.LogicalOr(), new, _is_too_large(value, *xs))


def is_root_of_none(x: Any, y: Any) -> Node:
    """NumPy's power takes roots where the exponent is 0.5: of -0.0 and of -infinity they are not C's power."""
    return elementwise(cm.LogicalAnd(), elementwise(cm.LessEqual(), x, 0.0), elementwise(cm.Equal(), y, 0.5))


def _is_no_power(value: Node, *xs: Node) -> Node:
    return elementwise(cm.LogicalOr(), _is_undefined(value, *xs), is_root_of_none(*xs))


def _by(op: Operation, raises: Callable[..., Node] | None = None, inputs: int = 1) -> InDouble:
    return InDouble(inputs, partial(elementwise, op), raises)


def _times(factor: float) -> InDouble:
    return InDouble(1, lambda x: elementwise(ar.Mul(), x, constant(factor)))


_IN_DOUBLE: dict[str, InDouble] = {
    "sqrt": _by(ar.Sqrt(), partial(_compares, cm.Less(), 0.0)),
    **{
        name: _by(op, partial(_compares, cm.LessEqual(), bound))
        for name, op, bound in (
            ("log", fu.Log(), 0.0), ("log2", fu.Log2(), 0.0), ("log10", fu.Log10(), 0.0), ("log1p", fu.Log1p(), -1.0)
        )
    },
    **{name: _by(op, _is_infinite) for name, op in (("sin", fu.Sin()), ("cos", fu.Cos()), ("tan", fu.Tan()))},
    "asin": _by(fu.Arcsin(), partial(_size_compares, cm.Greater(), 1.0)),
    "acos": _by(fu.Arccos(), partial(_size_compares, cm.Greater(), 1.0)),
    "acosh": _by(fu.Arccosh(), partial(_compares, cm.Less(), 1.0)),
    "atanh": _by(fu.Arctanh(), partial(_size_compares, cm.GreaterEqual(), 1.0)),
    **{
        name: _by(op, _is_too_large)
        for name, op in (
            ("exp", fu.Exp()), ("exp2", fu.Exp2()), ("expm1", fu.Expm1()), ("sinh", fu.Sinh()), ("cosh", fu.Cosh())
        )
    },
    **{
        name: _by(op)
        for name, op in (
            ("atan", fu.Arctan()), ("tanh", fu.Tanh()), ("asinh", fu.Arcsinh()), ("cbrt", fu.Cbrt()), ("erf", fu.Erf()),
            ("erfc", Erfc()), ("fabs", ar.Abs()), ("isnan", cm.IsNan()), ("isinf", cm.IsInf()), ("isfinite", cm.IsFinite()),
        )
    },
    "atan2": _by(ar.Arctan2(), inputs=2), "copysign": _by(ar.Copysign(), inputs=2),
    "hypot": _by(ar.Hypot(), _is_too_large, 2), "pow": _by(ar.Pow(), _is_no_power, 2),
    "fmod": _by(ar.Fmod(), _is_undefined, 2), "degrees": _times(180 / math.pi), "radians": _times(math.pi / 180),
}  # fmt: skip
#: The functions that count in double.
IN_DOUBLE: dict[Any, InDouble] = {getattr(math, name): how for name, how in _IN_DOUBLE.items() if hasattr(math, name)}


def near_a_tie(scaled: Node) -> Node:
    """May a number times a power of ten, rounded, lie on the other side of a half? Or are there no digits behind the point?"""
    size = elementwise(ar.Abs(), scaled)
    part = elementwise(ar.Sub(), size, elementwise(fu.Floor(), size))
    distance = elementwise(ar.Abs(), elementwise(ar.Sub(), part, 0.5))
    near = elementwise(cm.LessEqual(), distance, elementwise(ar.Mul(), size, 2.0**-50))
    return elementwise(cm.LogicalOr(), near, elementwise(cm.GreaterEqual(), size, 2.0**51))

"""Functions of Python's `math` of numbers that only a run knows: Python's own code as one call inside a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType

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

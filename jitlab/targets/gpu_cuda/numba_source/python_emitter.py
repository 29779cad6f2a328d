"""PythonEmitter: the instructions of operations' bodies as Python that numba.cuda compiles, and its simulator runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.targets.gpu_cuda.kernels.schedules import Unscheduled
from jitlab.targets.llvm.values import BOOL, Val

from .python_text import PythonText

#: Written between two operands; integers of less than 64 bits are cut to their size after it.
BETWEEN = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and_": "&", "or_": "|", "xor": "^"}
#: The same for bools.
OF_BOOLS = {"add": "or", "mul": "and", "and_": "and", "or_": "or", "xor": "!="}
COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}

#: What numba.cuda has of functions of floats, both on a GPU and in its simulator: NumPy's where it takes them.
FUNCTIONS = {
    **{name: f"np.{name}" for name in ("log", "log2", "log10", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arctan",
                                       "arcsin", "arccos", "arcsinh", "arccosh", "arctanh", "arctan2", "hypot")},
    **{name: f"math.{name}" for name in ("exp", "exp2", "expm1", "log1p", "sqrt", "erf", "erfc", "fmod", "copysign")},
}  # fmt: skip

#: Rounded to an int by these; a float from 2^52 on, or 2^23 of 32 bits, is a whole number as it is.
ROUNDED = {"floor": "math.floor", "ceil": "math.ceil", "trunc": "math.trunc", "rint": "round"}
WHOLE_FROM = {4: 2.0**23, 8: 2.0**52}


def type_name(dtype: np.dtype[Any]) -> str:
    """As Python calls it. Raises Unscheduled for numbers that kernels of numba.cuda's have no arithmetic for here."""
    if dtype.kind not in "biuf" or dtype.itemsize * (dtype.kind == "f") == 2:
        raise Unscheduled("gpu.numba_dtype", dtype=str(dtype))
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


class PythonEmitter:
    """The emitter of one thread. A value is a Python expression of its dtype; what is not here raises Unscheduled."""

    width = 1

    def __init__(self, text: PythonText) -> None:
        self.text = text

    def __getattr__(self, name: str) -> Callable[..., Val]:
        if name in FUNCTIONS:
            return lambda *xs: self._typed(xs[0].dtype, f"{FUNCTIONS[name]}({', '.join(x.text for x in xs)})")
        if name in COMPARED:
            return lambda x, y: self._named(BOOL, f"{x.text} {COMPARED[name]} {y.text}")
        if name in BETWEEN:
            return lambda x, y: self._between(name, x, y)
        if name in ROUNDED:
            return lambda x: self._rounded(ROUNDED[name], x)
        raise Unscheduled("gpu.numba_instruction", instruction=name)

    # -- values

    def _named(self, dtype: np.dtype[Any], text: str) -> Val:
        return Val(dtype, self.text.instr(text))

    def _typed(self, dtype: np.dtype[Any], text: str) -> Val:
        """What Python would compute with another type."""
        return self._named(dtype, f"{type_name(dtype)}({text})")

    def _kept(self, dtype: np.dtype[Any], text: str) -> Val:
        """What Python computes with the dtype of the operands, but for small integers."""
        is_small = dtype.kind in "iu" and dtype.itemsize < 8
        return self._typed(dtype, text) if is_small else self._named(dtype, text)

    def _between(self, name: str, x: Val, y: Val) -> Val:
        if x.dtype.kind == "b":
            return self._named(BOOL, f"{x.text} {OF_BOOLS[name]} {y.text}")
        return self._kept(x.dtype, f"{x.text} {BETWEEN[name]} {y.text}")

    def _rounded(self, function: str, x: Val) -> Val:
        limit = self.constant(WHOLE_FROM[x.dtype.itemsize], x.dtype).text
        made = f"{type_name(x.dtype)}(math.copysign({function}({x.text}), {x.text}))"
        return self._named(x.dtype, f"{made} if abs({x.text}) < {limit} else {x.text}")

    def value(self, text: str, dtype: np.dtype[Any]) -> Val:
        return Val(np.dtype(dtype), text)

    def splat(self, x: Val, lanes: int = 0) -> Val:
        return x

    def constant(self, value: Any, dtype: np.dtype[Any]) -> Val:
        dtype = np.dtype(dtype)
        name = type_name(dtype)
        with np.errstate(all="ignore"):
            plain = np.asarray(value).astype(dtype)[()].item()
        if dtype.kind == "f" and not math.isfinite(plain):
            text = "math.nan" if math.isnan(plain) else "math.inf" if plain > 0 else "-math.inf"
        else:
            text = repr(plain)
        if dtype.kind == "b" or dtype == np.dtype("i8") or dtype == np.dtype("f8"):
            return Val(dtype, text if plain == abs(plain) else f"({text})")
        return Val(dtype, f"{name}({text})")

    def cast(self, x: Val, dtype: np.dtype[Any]) -> Val:
        dtype = np.dtype(dtype)
        if dtype == x.dtype:
            return x
        if dtype.kind == "b":
            return self._named(BOOL, f"{x.text} != 0")
        return self._typed(dtype, x.text)

    # -- arithmetic

    def neg(self, x: Val) -> Val:
        return self._kept(x.dtype, f"-{x.text}")

    def abs(self, x: Val) -> Val:
        return x if x.dtype.kind in "bu" else self._kept(x.dtype, f"abs({x.text})")

    def invert(self, x: Val) -> Val:
        return self._named(BOOL, f"not {x.text}") if x.dtype.kind == "b" else self._kept(x.dtype, f"~{x.text}")

    def sign(self, x: Val) -> Val:
        one, less, zero = (self.constant(k, x.dtype).text for k in (1, -1 if x.dtype.kind in "if" else 0, 0))
        rest = f"({zero} if {x.text} == {zero} else {x.text})" if x.dtype.kind == "f" else zero
        return self._named(x.dtype, f"{one} if {x.text} > {zero} else ({less} if {x.text} < {zero} else {rest})")

    def fma(self, x: Val, y: Val, z: Val) -> Val:
        return self._kept(x.dtype, f"{x.text} * {y.text} + {z.text}")

    def pow(self, x: Val, y: Val) -> Val:
        if x.dtype.kind != "f":
            raise Unscheduled("gpu.numba_instruction", instruction="pow")
        return self._typed(x.dtype, f"{x.text} ** {y.text}")

    def floor_divide(self, x: Val, y: Val) -> Val:
        return self._divided("//", x, y)

    def remainder(self, x: Val, y: Val) -> Val:
        return self._divided("%", x, y)

    def _divided(self, sign: str, x: Val, y: Val) -> Val:
        text = f"{type_name(x.dtype)}({x.text} {sign} {y.text})"
        if x.dtype.kind == "f":
            return self._named(x.dtype, text)
        zero = self.constant(0, x.dtype).text
        return self._named(x.dtype, f"{text} if {y.text} != {zero} else {zero}")

    def shift_left(self, x: Val, y: Val) -> Val:
        return self._shifted("<<", x, y, self.constant(0, x.dtype).text)

    def shift_right(self, x: Val, y: Val) -> Val:
        out = self.constant(0, x.dtype).text
        if x.dtype.kind == "i":
            out = f"({self.constant(-1, x.dtype).text} if {x.text} < 0 else {out})"
        return self._shifted(">>", x, y, out)

    def _shifted(self, sign: str, x: Val, y: Val, out: str) -> Val:
        text = f"{type_name(x.dtype)}({x.text} {sign} {y.text})"
        return self._named(x.dtype, f"{text} if 0 <= {y.text} < {8 * x.dtype.itemsize} else {out}")

    # -- choices

    def select(self, condition: Val, x: Val, y: Val) -> Val:
        return self._named(x.dtype, f"{x.text} if {condition.text} else {y.text}")

    def minimum(self, x: Val, y: Val) -> Val:
        return self._first(x, y, f"{x.text} < {y.text}", x)

    def maximum(self, x: Val, y: Val) -> Val:
        return self._first(x, y, f"{x.text} > {y.text}", x)

    def fmin(self, x: Val, y: Val) -> Val:
        return self._first(y, x, f"{y.text} < {x.text}", x)

    def fmax(self, x: Val, y: Val) -> Val:
        return self._first(y, x, f"{y.text} > {x.text}", x)

    def _first(self, x: Val, y: Val, condition: str, or_nan: Val) -> Val:
        """x where the condition holds, or where `or_nan` is NaN; else y."""
        nan = f" or {or_nan.text} != {or_nan.text}" if x.dtype.kind == "f" else ""
        return self._named(x.dtype, f"{x.text} if {condition}{nan} else {y.text}")

    def isnan(self, x: Val) -> Val:
        return self._named(BOOL, f"{x.text} != {x.text}")

    def isinf(self, x: Val) -> Val:
        return self._named(BOOL, f"abs({x.text}) == math.inf")

    def isfinite(self, x: Val) -> Val:
        return self._named(BOOL, f"abs({x.text}) < math.inf")

    def signbit(self, x: Val) -> Val:
        return self._named(BOOL, f"math.copysign(1.0, {x.text}) < 0.0")

    def real(self, x: Val) -> Val:
        type_name(x.dtype)
        return x

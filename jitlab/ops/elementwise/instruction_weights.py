"""How long the instructions of loop bodies take: nanoseconds an element in a loop over vectors whose operands are in registers.

The numbers are shipped; a machine's own measurement of a few of them says how much faster or slower each kind is there. All
that weighs one way of computing against another asks here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from jitlab.ops.base import Elementwise, Generated, Reduction
from jitlab.support.lazy_dataclass import dataclass

#: Of float64 and of float32, measured on a core of 3.8 GHz with vectors of 64 bytes; loads and stores are not in them.
FLOATS: dict[str, tuple[float, float]] = {
    "add": (0.016, 0.008), "sub": (0.016, 0.008), "mul": (0.016, 0.008), "fma": (0.016, 0.008), "neg": (0.008, 0.004),
    "abs": (0.008, 0.004), "copysign": (0.012, 0.006), "sign": (0.10, 0.06), "floor": (0.01, 0.005), "ceil": (0.01, 0.005),
    "trunc": (0.01, 0.005), "rint": (0.01, 0.005), "minimum": (0.09, 0.047), "maximum": (0.09, 0.047), "fmin": (0.022, 0.012),
    "fmax": (0.022, 0.012), "isinf": (0.012, 0.006), "isfinite": (0.012, 0.006),
    "div": (0.124, 0.038), "sqrt": (0.233, 0.07),
    "exp": (0.32, 0.16), "exp2": (0.22, 0.125), "expm1": (0.30, 0.12), "log": (0.52, 0.235), "log2": (0.87, 0.44),
    "log10": (0.88, 0.38), "log1p": (0.61, 0.27), "sin": (0.42, 0.21), "cos": (0.42, 0.21), "tan": (0.76, 0.32),
    "tanh": (0.37, 0.175), "sinh": (0.53, 0.235), "cosh": (0.345, 0.165), "arctan": (0.46, 0.18), "arcsin": (0.57, 0.245),
    "arccos": (0.64, 0.28), "arctan2": (1.0, 0.52), "arcsinh": (1.6, 0.74), "arccosh": (1.4, 0.69), "arctanh": (0.86, 0.47),
    "cbrt": (0.83, 0.45), "erf": (0.97, 0.28), "erfc": (2.2, 2.5), "erfcx": (2.4, 2.4), "pow": (2.87, 1.5),
    "hypot": (0.22, 0.2), "floor_divide": (0.64, 0.32), "remainder": (0.5, 0.26), "fmod": (0.3, 0.155),
    "mantissa": (0.07, 0.045), "exponent": (0.07, 0.045), "ldexp": (0.1, 0.06), "nextafter": (0.11, 0.14),
}  # fmt: skip

#: Of integers by their bytes a division, and in additions what is made of several.
DIVISIONS: dict[int, float] = {8: 1.75, 4: 0.22, 2: 0.1, 1: 0.09}
SLOW_INTEGERS: dict[str, float] = {"pow": 8.0, "gcd": 60.0, "lcm": 60.0, "bit_count": 2.0, "mul": 2.0}

#: One more instruction on a byte of each element: an addition, a comparison, a selection, a cast.
PLAIN = 0.001
CAST = 0.02

#: What is measured on a machine for all of a kind.
KINDS: dict[str, tuple[str, str]] = {
    "plain": ("add", "f8"), "division": ("div", "f8"), "root": ("sqrt", "f8"), "function": ("exp", "f8"),
    "integers": ("floor_divide", "i4"),
}  # fmt: skip
_KIND_OF = {"div": "division", "floor_divide": "division", "remainder": "division", "fmod": "division", "sqrt": "root"}

Counts = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Weights:
    """Of one machine. `kinds`: how many times as long as shipped each of KINDS takes."""

    kinds: tuple[tuple[str, float], ...] = ()

    def instruction(self, name: str, dtype: np.dtype[Any]) -> float:
        """Of one instruction on operands of this type."""
        ns, kind = _shipped(name, dtype.kind, dtype.itemsize)
        return ns * dict(self.kinds).get(kind, 1.0)

    def operation(self, op: Any, operands: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> float:
        """Of an operation on one element."""
        counts = counted(op, operands, result)
        return sum(times * self.instruction(name, np.dtype(dtype)) for (name, dtype), times in counts.items())


SHIPPED = Weights()


@lru_cache(2048)
def in_additions(
    op: Any, operands: tuple[np.dtype[Any], ...], result: np.dtype[Any], kinds: tuple[tuple[str, float], ...] = ()
) -> float:
    """What an operation on one element takes, in additions of floats of the widest operand's bytes."""
    weights, widest = Weights(kinds), max(dtype.itemsize for dtype in (*operands, result))
    return weights.operation(op, operands, result) / SHIPPED.instruction("add", np.dtype("f8" if widest > 4 else "f4"))


@cache
def _shipped(name: str, kind: str, size: int) -> tuple[float, str]:
    """The number as it is shipped, and which of KINDS it is."""
    if kind == "c":  # what takes longer than its parts are functions of their own
        ns, of = _shipped(name, "f", size // 2)
        return ns * {"mul": 6.0, "div": 3.5, "add": 2.0, "sub": 2.0}.get(name, 2.0), of
    if name == "cast":
        return CAST, "plain"
    if kind == "f" and name in FLOATS:
        of = _KIND_OF.get(name, "function" if FLOATS[name][0] > FLOATS["sign"][0] else "plain")
        return FLOATS[name][0 if size > 4 else 1] + 2 * CAST * (size < 4), of
    if name in ("floor_divide", "remainder", "fmod"):
        return DIVISIONS.get(size, DIVISIONS[8]), "integers"
    return PLAIN * size * SLOW_INTEGERS.get(name, 1.0), "plain"


@dataclass
class Typed:
    """A value of which the type is known, and of a constant the value."""

    dtype: np.dtype[Any]
    value: Any = None


_BOOL = np.dtype(bool)
_TESTS = frozenset("lt le gt ge eq ne isnan isinf isfinite signbit".split())
_FREE = frozenset({"constant", "real", "imag", "make_complex"})
_RESULTS: dict[str, np.dtype[Any]] = {"exponent": np.dtype("i4"), "bit_count": np.dtype("u1")}


@dataclass
class Counting:
    """An emitter (`emitter.py`) that counts its instructions, each by the type of its operands."""

    found: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def instruction(*operands: Any) -> Typed:
            first: Any = operands[1] if name == "select" else operands[0]
            given: np.dtype[Any] = first.dtype if isinstance(first, Typed) else np.dtype(operands[-1])
            if name == "pow" and isinstance(power := operands[1].value, (int, float)) and 2 * power % 1 == 0:
                self.found["mul", given.str[1:]] += max(int(abs(power)).bit_length(), 1)
                self.found["sqrt", given.str[1:]] += power % 1 != 0
            elif name not in _FREE and not (name == "cast" and given == np.dtype(operands[1])):
                self.found[name, given.str[1:]] += 1
            if name in ("constant", "cast"):
                wanted: np.dtype[Any] = np.dtype(operands[1])
                return Typed(wanted, operands[0] if name == "constant" else None)
            if name in _TESTS:
                return Typed(_BOOL)
            if name == "make_complex" or name in ("real", "imag", "abs") and given.kind == "c":
                return Typed(np.dtype(f"c{2 * given.itemsize}" if name == "make_complex" else f"f{given.itemsize // 2}"))
            return Typed(_RESULTS.get(name) or given)

        return instruction


@lru_cache(2048)
def counted(op: Any, operands: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> Counts:
    """The instructions of an operation's body, or of one step of a reduction. Of what has none of these: as many additions as
    it says."""
    e, values = Counting(), [Typed(dtype) for dtype in operands]
    try:
        run(op, e, values)
    except Exception:  # of somebody's own operation, that wants more of an emitter than one has to have
        return {("add", result.str[1:]): max(int(getattr(op, "flops_per_element", 1)), 1)}
    return dict(e.found)


def run(op: Any, e: Counting, values: list[Typed]) -> None:
    """The body of an operation, or one step of a reduction or a scan."""
    if isinstance(op, Elementwise):
        op.body(e, *values)
    elif isinstance(op, Generated):
        op.body(e, [Typed(np.dtype("i8"))] * len(op.shape), *values)
    elif isinstance(op, Reduction):
        (x,) = values
        start = op.start(e, x.dtype)
        op.step(e, start, op.prepare(e, x), Typed(np.dtype("i8")))
    else:
        raise NotImplementedError(op)

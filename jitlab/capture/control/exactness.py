"""Where Python's own numbers would not be what 64 bits hold: ints that grow beyond them, and divisions by zero, which raise.

A traced Python number is an int64 or a float64. An operator of such numbers alone whose result may be another number, or an
error, is watched: where the run finds one, Python takes the call (or the statements of a cell) from its beginning. What is
known of the numbers says which need no watching: constants, sizes, indices, remainders; and what grows by a small step at a
time never gets there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.numpy_calls.numpy_traits import ReflectedUfunc
from jitlab.capture.positions import here
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Extent, Node, Symbolic
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise
from jitlab.ops.elementwise.arithmetic import Abs, Add, Mul, Pow
from jitlab.ops.elementwise.comparison import Equal, Greater, GreaterEqual, IsFinite, Less, LogicalAnd, LogicalNot, LogicalOr
from jitlab.ops.leaf_operations import Length
from jitlab.ops.python_math import is_root_of_none
from jitlab.ops.runtime_checks import Check

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

Range = tuple[int, int]

#: What sizes, indices and steps of a sum are below: nobody adds them up to 2**63.
SMALL: Range = (-(2**48), 2**48)
#: What a float64 tells of a product or a power that fits.
_SURE = 2.0**62


def range_of(capture: Arrays, x: Any) -> Range | None:
    """Between which numbers a Python int is, as far as that is known."""
    if isinstance(x, Symbolic) or type(x) is Extent:
        return SMALL
    if type(x) in (bool, int):
        return int(x), int(x)
    if not isinstance(x, Tensor):
        return None
    node = x.node()
    if x.weak is bool:
        return 0, 1
    low, high = capture.ranges.get(node) or capture.bounds.noted.get(node) or (None, None)
    if low is not None and high is not None:
        return low, high
    return SMALL if isinstance(node.op, Length) else None


def watch(capture: Arrays, name: str, operands: Sequence[Any], result: Tensor) -> None:
    """An operator of Python numbers alone has been recorded: what its result may be, or what is asked at each run."""
    name, operands = _forward(name, operands)
    if name in _DIVISIONS:
        _watch_divisor(capture, operands[1])
    if name in _EXACT and not _is_exact(capture, name, operands):
        sizes = [cast(as_node(_lowered(capture, x)), np.float64) for x in operands]
        _take_over(capture, _or(*(_is_large(x, _EXACT_FLOATS) for x in sizes)), "large_int")
    if result.dtype.kind == "i":
        ranges = [range_of(capture, x) for x in operands]
        found = _RANGES[name](*ranges) if name in _RANGES else None
        if found is not None and -(2**63) <= found[0] and found[1] < 2**63:
            capture.ranges[result.node()] = found
        elif name in _GROWING and not _is_step(name, ranges):
            sizes = [cast(as_node(_lowered(capture, x)), np.float64) for x in operands]
            _take_over(capture, _GROWING[name](*sizes), "large_int")
    elif name == "pow" and result.dtype.kind == "f":  # too large, or a complex number
        finite = [elementwise(IsFinite(), _lowered(capture, x)) for x in (*operands, result)]
        wrong = _and(_and(*finite[:2]), elementwise(LogicalNot(), finite[2]))
        roots = is_root_of_none(*map(capture.lower, operands))
        _take_over(capture, _or(wrong, roots), "large_power")


def _lowered(capture: Arrays, x: Any) -> Any:
    """The operand, for a rule. A Python number of the caller's stays one that each run takes anew."""
    if isinstance(x, Number) and type(x.value) in (int, float):
        try:
            return x.capture.number_node(x, np.dtype(type(x.value))).node()
        except OverflowError:
            pass
    return capture.lower(x)


def _is_exact(capture: Arrays, name: str, operands: Sequence[Any]) -> bool:
    """Does a float64 hold the ints of a division or a comparison?"""
    kinds = {x.weak if isinstance(x, Tensor) else type(x.value if isinstance(x, Number) else x) for x in operands}
    if not kinds & {int} or (name == "truediv") == (float in kinds):
        return True
    ranges = [range_of(capture, x) for x in operands]
    floats = [isinstance(x, float) or (isinstance(x, Tensor) and x.weak is float) for x in operands]
    return all(
        is_float or (r is not None and -_EXACT_FLOATS <= r[0] and r[1] <= _EXACT_FLOATS)
        for is_float, r in zip(floats, ranges, strict=True)
    )


def _forward(name: str, operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """The operator that a reflected one is."""
    return (name[1:], operands[::-1]) if name[0] == "r" and name[1:] in _REFLECTED else (name, operands)


def divisor_of(name: str, operands: Sequence[Any]) -> Any:
    """By what the operator divides; None for other operators."""
    name, operands = _forward(name.strip("_"), operands)
    return operands[1] if name in _DIVISIONS else None


def _watch_divisor(capture: Arrays, x: Any) -> None:
    known = range_of(capture, x)
    if isinstance(x, (Tensor, Number)) and not (known is not None and (known[0] > 0 or known[1] < 0)):
        _take_over(capture, elementwise(Equal(), _lowered(capture, x), 0), "by_zero")


def watch_int(capture: Arrays, x: Tensor) -> None:
    """`int(x)` is recorded: of nan it raises, of inf as well, and of a large number it is no int64."""
    if capture.policy.keeps_kinds and (x.dtype.kind == "f" or x.dtype == np.dtype("u8")):
        small = elementwise(Less(), elementwise(Abs(), cast(x.node(), np.float64)), _SURE)
        _take_over(capture, elementwise(LogicalNot(), small), "large_int")


def watch_function(capture: Arrays, what: str, wrong: Node) -> None:
    """A function of Python's numbers is recorded: where `wrong` holds, it raises, or gives other digits."""
    _take_over(capture, wrong, what)


def watch_way(capture: Arrays, taken: Node, side: bool) -> None:
    """Of a branch one side is recorded: where the run takes the other, that when `taken` is `side`, Python takes the call."""
    _take_over(capture, taken if side else elementwise(LogicalNot(), taken), "other_way")


def watch_turns(capture: Arrays, wrong: Node, most: int) -> None:
    """A loop of which only a run knows when it ends is given so many turns."""
    _take_over(capture, wrong, "many_turns", most=most)


def watch_cast(capture: Arrays, function: Any, operands: Sequence[Any], dtype: np.dtype[Any]) -> None:
    """Python ints become numbers of an integer dtype: NumPy's OverflowError for those that it does not hold."""
    if not capture.policy.keeps_kinds or dtype.kind not in "iu" or dtype == np.dtype("i8"):
        return
    is_type = isinstance(function, type) and issubclass(function, np.generic)
    if is_type or isinstance(function, (np.ufunc, ReflectedUfunc)) or function in _HOLD_OPERANDS:
        least, most = np.iinfo(dtype).min, min(int(np.iinfo(dtype).max), 2**63 - 1)
        for x in operands:
            known = range_of(capture, x) if type(x) is Tensor and x.weak is int else (0, 0)
            if known is None or known[0] < least or known[1] > most:
                node = _lowered(capture, x)
                wrong = elementwise(LogicalOr(), elementwise(Less(), node, least), elementwise(Greater(), node, most))
                _take_over(capture, wrong, "large_int")


#: Functions but for ufuncs whose results hold their operands' values; None: an assignment.
_HOLD_OPERANDS: tuple[Any, ...] = (np.full, np.full_like, np.where, np.clip, np.array, np.asarray, np.select, None)


def _take_over(capture: Arrays, wrong: Node, what: str, **args: Any) -> None:
    """Where `wrong` holds in a run, Python does what was recorded. `what`: of a message."""
    source = here()
    if capture.guarded:
        raise NotReplayable("value", "in_try", what=NotReplayable("value", what, **args).said)
    apply(Check(lambda: NotReplayable("value", what, source=source, **args)), cast(wrong, np.int64))


#: Below this a float64 is each int.
_EXACT_FLOATS = 2.0**53
#: Python compares ints with floats, and divides ints, as they are.
_EXACT = frozenset({"truediv", "lt", "le", "gt", "ge", "eq", "ne"})
_DIVISIONS = frozenset({"truediv", "floordiv", "mod", "divmod"})
_REFLECTED = _DIVISIONS | {"add", "sub", "mul", "pow", "lshift", "rshift", "and", "or", "xor"}


# ---- ranges


def _of_ends(function: Callable[[int, int], int]) -> Callable[..., Range | None]:
    """Of what rises or falls in each operand."""

    def found(x: Range | None, y: Range | None) -> Range | None:
        if x is None or y is None:
            return None
        ends = [function(a, b) for a in x for b in y]
        return min(ends), max(ends)

    return found


def _of_mod(x: Range | None, y: Range | None) -> Range | None:
    if y is None:
        return None
    return (min(y[0] + 1, 0), max(y[1] - 1, 0))


def _of_floordiv(x: Range | None, y: Range | None) -> Range | None:
    return None if x is None else (min(x[0], -x[1], 0), max(x[1], -x[0], 0))


def _of_pow(x: Range | None, y: Range | None) -> Range | None:
    if x is None or y is None or y[0] < 0 or max(map(abs, x)) > 1 and y[1] * math.log2(max(map(abs, x))) > 64:
        return None
    most = max(map(abs, x)) ** y[1]
    return (-most if x[0] < 0 else 0), max(most, 1)


def _of_lshift(x: Range | None, y: Range | None) -> Range | None:
    return None if x is None or y is None or y[0] < 0 or y[1] > 63 else _of_ends(operator.lshift)(x, y)


def _of_and(x: Range | None, y: Range | None) -> Range | None:
    ends = [r[1] for r in (x, y) if r is not None and r[0] >= 0]
    return (0, min(ends)) if ends else None


def _of_sign(x: Range | None) -> Range | None:
    return None if x is None else (min(-x[1], x[0]), max(-x[0], x[1]))


_RANGES: dict[str, Callable[..., Range | None]] = {
    "add": _of_ends(operator.add), "sub": _of_ends(operator.sub), "mul": _of_ends(operator.mul), "mod": _of_mod,
    "floordiv": _of_floordiv, "pow": _of_pow, "lshift": _of_lshift, "and": _of_and, "neg": _of_sign, "abs": _of_sign,
    "pos": lambda x: x,
}  # fmt: skip


def _is_step(name: str, ranges: Sequence[Range | None]) -> bool:
    """Does it add something small, or change nothing but the sign?"""
    if name in ("add", "sub"):
        return any(r is not None and SMALL[0] <= r[0] and r[1] <= SMALL[1] for r in ranges)
    return name == "mul" and any(r is not None and -1 <= r[0] and r[1] <= 1 for r in ranges)


# ---- what is too large


def _and(x: Node, y: Node) -> Node:
    return elementwise(LogicalAnd(), x, y)


def _or(x: Node, y: Node) -> Node:
    return elementwise(LogicalOr(), x, y)


def _is_large(x: Node, bound: float = _SURE) -> Node:
    return elementwise(GreaterEqual(), elementwise(Abs(), x), bound)


def _sum(x: Node, y: Node) -> Node:
    return elementwise(GreaterEqual(), elementwise(Add(), elementwise(Abs(), x), elementwise(Abs(), y)), _SURE)


def _product(x: Node, y: Node) -> Node:
    return _is_large(elementwise(Mul(), x, y))


def _power(x: Node, y: Node) -> Node:
    return elementwise(LogicalOr(), _is_large(elementwise(Pow(), x, y)), elementwise(Less(), y, 0.0))


def _shifted(x: Node, y: Node) -> Node:
    wrong = elementwise(LogicalOr(), elementwise(Less(), y, 0.0), elementwise(Greater(), y, 62.0))
    return elementwise(LogicalOr(), wrong, _product(x, elementwise(Pow(), constant(2.0), y)))


_GROWING: dict[str, Callable[..., Node]] = {
    "add": _sum, "sub": _sum, "mul": _product, "pow": _power, "lshift": _shifted, "neg": _is_large, "abs": _is_large,
    "rshift": lambda x, y: elementwise(Less(), y, 0.0), **dict.fromkeys(("floordiv", "divmod"), lambda x, y: _is_large(x)),
}  # fmt: skip


__all__ = ["divisor_of", "range_of", "watch", "watch_cast", "watch_function", "watch_int", "watch_turns", "watch_way"]

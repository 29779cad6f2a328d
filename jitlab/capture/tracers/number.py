"""Number: a Python int or float of a cell while it is captured, so that a loop's index or a changing rate need no new trace.

It is an expression over the numbers that names hold, computed again by Python at each run. It becomes a 0-d input where it
meets an array, and a guard (the trace holds for this value only) where anything else wants its value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.effort import NUMBER_NS
from jitlab.ir import Extent

from .tensor import Tensor

if TYPE_CHECKING:
    from jitlab.capture.drivers.pieces import CellCapture

#: The longest expression that a number is made of, in characters, and the most operations inside one another: Python compiles
#: 200 parentheses. `x = r * x * (1 - x)` in a loop doubles it each time.
LONGEST, DEEPEST = 2000, 100


class Number:
    """A Python number with the expression that gives it.

    `text` is Python over v0, v1, ... (what the names hold) and the capture's constants; `label` is what people read. `depth`
    counts the operations inside one another.
    """

    __slots__ = ("capture", "depth", "label", "text", "value")
    __array_ufunc__ = None  # NumPy's scalars leave operators to us

    def __init__(self, capture: CellCapture, value: Any, text: str, label: str, depth: int = 0) -> None:
        self.capture = capture
        self.depth = depth
        self.value = value
        self.text = text
        self.label = label

    def known(self) -> Any:
        """The value; from now on the trace holds for it only."""
        self.capture.guard_number(self)
        return self.value

    def __bool__(self) -> bool:
        truth = derived(self.capture, bool, self)
        self.capture.guard_number(truth)
        return bool(truth.value)

    def __index__(self) -> int:
        return operator.index(self.known())

    def __int__(self) -> int:
        return int(self.known())

    def __float__(self) -> float:
        return float(self.known())

    def __complex__(self) -> complex:
        return complex(self.known())

    def __hash__(self) -> int:
        return hash(self.known())

    def __repr__(self) -> str:
        return repr(self.known())

    def __str__(self) -> str:
        return str(self.known())

    def __format__(self, spec: str) -> str:
        return format(self.known(), spec)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.known(), name)


def as_known(x: Any) -> Any:
    """An argument for a rule or for NumPy: a Number as its value, for which alone the trace holds from now on."""
    return x.known() if isinstance(x, Number) else x


def derived(capture: CellCapture, function: Callable[..., Any], *operands: Any) -> Number:
    """`function(*operands)` of Numbers and Python values, as a Number. Python's own exception for operands it refuses.

    Where the expression grows too long, the trace holds for the values that the operands have.
    """
    capture.spend(NUMBER_NS)
    operands = tuple(int(x) if isinstance(x, Extent) else x for x in operands)  # a size is one number here
    numbers = [x for x in operands if isinstance(x, Number)]
    depth = 1 + max((x.depth for x in numbers), default=0)
    if depth > DEEPEST or sum(len(x.text) + len(x.label) for x in numbers) > LONGEST:
        operands, depth = tuple(map(as_known, operands)), 1
    value = function(*(x.value if isinstance(x, Number) else x for x in operands))
    texts = [x.text if isinstance(x, Number) else capture.constants.text(x) for x in operands]
    labels = [x.label if isinstance(x, Number) else repr(x) for x in operands]
    sign = _SIGNS.get(function)
    if sign is not None and len(operands) == 2:
        return Number(capture, value, f"({texts[0]} {sign} {texts[1]})", f"{labels[0]} {sign} {labels[1]}", depth)
    if sign is not None:
        return Number(capture, value, f"({sign}{texts[0]})", f"{sign}{labels[0]}", depth)
    name = function.__name__
    text = f"{capture.function_name(function)}({', '.join(texts)})"
    return Number(capture, value, text, f"{name}({', '.join(labels)})", depth)


_SIGNS: dict[Any, str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.lshift: "<<", operator.rshift: ">>", operator.and_: "&", operator.or_: "|",
    operator.xor: "^", operator.matmul: "@", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
    operator.eq: "==", operator.ne: "!=", operator.neg: "-", operator.pos: "+", operator.invert: "~",
}  # fmt: skip


def _binary(function: Callable[[Any, Any], Any], reflected: bool) -> Any:
    def method(self: Number, other: Any) -> Any:
        if isinstance(other, Tensor):
            return NotImplemented
        if isinstance(other, (np.generic, np.ndarray)):
            traced = self.capture.value(other)
            if isinstance(traced, Tensor):
                return function(traced, self) if reflected else function(self, traced)
            other = traced
        if not isinstance(other, (Number, bool, int, float, complex, str, bytes, list, tuple)) or isinstance(other, np.generic):
            return NotImplemented
        if isinstance(other, (str, bytes, list, tuple)):
            known = self.known()
            return function(other, known) if reflected else function(known, other)
        return derived(self.capture, function, other, self) if reflected else derived(self.capture, function, self, other)

    return method


for _name in "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor matmul".split():
    _function = getattr(operator, _name)
    setattr(Number, f"__{_name.rstrip('_')}__", _binary(_function, False))
    setattr(Number, f"__r{_name.rstrip('_')}__", _binary(_function, True))
for _name in "lt le gt ge eq ne".split():
    setattr(Number, f"__{_name}__", _binary(getattr(operator, _name), False))
for _name in "neg pos abs invert".split():
    _unary = getattr(operator, _name)
    setattr(Number, f"__{_name}__", lambda self, function=_unary: derived(self.capture, function, self))
setattr(Number, "__round__", lambda self, *digits: derived(self.capture, round, self, *digits))  # noqa: B010

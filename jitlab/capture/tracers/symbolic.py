"""Integers without a fixed value: the index of a rolled loop, what is computed from it, and lengths that move with it.

A loop's body is traced once, with a `LoopIndex` where Python would have an int. Sums and products stay polynomials, so that
subscripts and comparisons can be proved from the loops' bounds; everything else becomes a 0-d Tensor that gives way in
promotion as a Python int does. What needs the number itself raises NotRolled: the loop then takes another form.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.numpy_calls.functions import apply_operator, call_function
from jitlab.ir import Bounds, Extent, Graph, Moving, Node, NotRolled, Symbolic, at_least, poly
from jitlab.ir.bounds import State, sample
from jitlab.ops.build_nodes import apply, as_node, is_python_number, weak
from jitlab.ops.elementwise.arithmetic import Pow
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.layout.moving_subscripts import define, rounded_up

from .number import Number
from .tensor import Tensor

if TYPE_CHECKING:
    from .arrays import Arrays

INT64 = np.dtype("i8")


#: Types of Python's own numbers.
_PYTHON_NUMBERS = frozenset({bool, int, float, complex})


class Loops:
    """What a capture knows of the loops that it rolls: their symbols and bounds, and the numbers that depend on them."""

    root: Graph

    def __init__(self) -> None:
        self.bounds = Bounds()  # of what moves with a loop, and the sizes of the inputs
        self.ranges: dict[Node, tuple[int, int]] = {}  # of traced Python ints: between which numbers they are
        self.loops: list[tuple[str, State]] = []  # the symbols of the loops whose bodies are traced, and what was known before
        self.tracers: tuple[Any, ...] = ()  # the loops that are being traced, innermost last
        self.rolls = True  # loops become Loops where they can
        self.only_rolled = False  # loops of the program itself that cannot be rolled are not captured
        self.why_unrolled = ""  # the reason of the last loop that was not rolled
        self.loose_shapes: frozenset[str] = frozenset()  # names whose shapes `set_loop_options` lets change
        self.half_defined: dict[str, Any] | None = None  # names that one side of an `if` in a loop alone gives: forms and types

    def fresh(self, node: Node, *, is_scalar: bool = False) -> Tensor:
        raise NotImplementedError

    def enter_loop(self, count: int | None) -> Moving:
        """The symbol of a new innermost loop: the number of its iteration, below `count` (None: nothing is known).

        Until `leave_loop` it counts as known that there is an iteration. Raises NotRolled where no sample can stand for all.
        """
        if count is not None and int(count) < 1:
            raise NotRolled("extents", "few_iterations", count=poly(count))
        bounds = self.bounds
        state = bounds.state()
        symbol = bounds.unique("i")
        self.loops.append((symbol, state))
        bounds.add(symbol, 0, None if count is None else count - 1)
        if count is not None:
            bounds.assume(count - 1)
        bounds.depth += 1
        return Moving.symbol(symbol, sample(0, None if count is None else int(count) - 1, len(self.loops) - 1))

    def leave_loop(self) -> None:
        """The innermost loop's body ends: its symbol, and those that it defined, are forgotten."""
        _, state = self.loops.pop()
        self.bounds.restore(state, names=False)

    def has_no_value(self, n: int) -> bool:
        """Does only a run know an extent: does it move with a loop, or do the data decide it?"""
        return isinstance(n, Moving) or self.is_of_data(n)

    def is_of_data(self, n: int) -> bool:
        """Is it a length that the data decide?"""
        return bool(self.root.sizes) and isinstance(n, Extent) and any(name in self.root.sizes for name in n.expr.symbols)

    def integer(self, n: int) -> Any:
        """What an extent is in the program: itself, a LoopIndex where it moves, a traced number where the data decide it (where
        the program's numbers are those of a trace, the recording is for that length only)."""
        if isinstance(n, Moving):
            return LoopIndex(self, n)  # type: ignore[arg-type]  # every capture is Arrays
        if not self.is_of_data(n):
            return n
        return self.python_number(as_node(n)) if self.policy.keeps_kinds else int(n)  # type: ignore[attr-defined]

    def python_number(self, node: Node) -> Tensor:
        """A Python number whose value is a node of its own: it gives way in promotion (see `ops.build.weak`)."""
        return self.fresh(weak(node), is_scalar=True)

    def is_python_number(self, x: Any) -> bool:
        """A Python number of the program, traced or not."""
        if isinstance(x, Tensor):
            return x.weak is not None
        return isinstance(x, (Symbolic, Number, Extent)) or type(x) in _PYTHON_NUMBERS

    def as_python(self, result: Any, operands: Sequence[Any]) -> Any:
        """What Python's operators and builtins give for Python numbers alone is one."""
        if isinstance(result, tuple):
            return tuple(self.as_python(part, operands) for part in result)
        if isinstance(result, Tensor) and not result.ndim and all(map(self.is_python_number, operands)):
            return self.python_number(result.node())
        return result

    def may_define(self, x: Tensor) -> bool:
        """An integer found at run time that may become a symbol: inside a loop that is being rolled."""
        return self.bounds.depth > 0 and not x.ndim and x.dtype.kind in "iu"


class LoopIndex(Symbolic):
    """A Python int that has no fixed value: `extent` is the polynomial it is."""

    __slots__ = ("capture",)

    def __init__(self, capture: Arrays, extent: Moving) -> None:
        self.capture = capture
        self.extent = extent

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """The second net: real arrays and NumPy scalars meet an index where calls are not converted."""
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self.capture.perform(call_function, function, inputs, kwargs)

    def tensor(self) -> Tensor:
        """The number as a 0-d int64 that is weak."""
        return self.capture.python_number(as_node(self.extent))

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """Numbers that it is never below and never above, where known."""
        return self.capture.bounds.least(self.extent), self.capture.bounds.greatest(self.extent)

    def is_never(self, value: int) -> bool:
        return self.capture.bounds.proves_unequal(self.extent, value)

    def array_operator(self, name: str, other: Any) -> Any:
        """The operator of arrays and floats, with the number as a 0-d Tensor."""
        if isinstance(other, Number):  # an input where it meets arrays, as elsewhere
            return self.capture.perform(apply_operator, f"__{name}__", self.tensor(), other)
        if isinstance(other, Symbolic):
            other = other.extent
        if isinstance(other, (bool, int, float, complex, np.generic, np.ndarray)):
            return self.capture.perform(apply_operator, f"__{name}__", self.tensor(), self.capture.value(other))
        return NotImplemented  # a Tensor's turn, or Python's error

    # ---- arithmetic that ints have and polynomials have not
    def __truediv__(self, other: Any) -> Any:
        _check_divisor(self.capture, other)
        return self.array_operator("truediv", other)

    def __rtruediv__(self, other: Any) -> Any:
        _check_divisor(self.capture, self if _is_number(other) else 1)
        return self.array_operator("rtruediv", other)

    def __floordiv__(self, other: Any) -> Any:
        divisor = _integer_of(other)
        if divisor is None or isinstance(divisor, Moving):
            _check_divisor(self.capture, other)
            return self.array_operator("floordiv", other)
        if int(divisor) == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        try:
            return self.capture.integer(self.extent // divisor)
        except NotRolled:
            quotient = self.array_operator("floordiv", divisor)
        low, high = self.bounds
        if low is not None and high is not None:
            ends = sorted((low // int(divisor), high // int(divisor)))
            self.capture.bounds.noted[quotient.node()] = (ends[0], ends[1])
        return quotient

    def __rfloordiv__(self, other: Any) -> Any:
        _check_divisor(self.capture, self if _is_number(other) else 1)
        return self.array_operator("rfloordiv", other)

    def __mod__(self, other: Any) -> Any:
        divisor = _integer_of(other)
        if divisor is None or isinstance(divisor, Moving):
            _check_divisor(self.capture, other)
            return self.array_operator("mod", other)
        if int(divisor) == 0:
            raise ZeroDivisionError("integer modulo by zero")
        bounds = self.capture.bounds
        if int(divisor) > 0:
            if bounds.proves_nonnegative(self.extent) and bounds.proves_nonnegative(poly(divisor - 1) - self.extent.expr):
                return self
            if all(k % int(divisor) == 0 for monomial, k in self.extent.expr.terms if monomial):
                return dict(self.extent.expr.terms).get((), 0) % int(divisor)
        rest = self.array_operator("mod", divisor)
        ends = (0, int(divisor) - 1) if int(divisor) > 0 else (int(divisor) + 1, 0)
        bounds.noted[rest.node()] = ends
        return rest

    def __rmod__(self, other: Any) -> Any:
        _check_divisor(self.capture, self if _is_number(other) else 1)
        return self.array_operator("rmod", other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise NotRolled("index_value", "power_modulus")
        if type(exponent) is int and 0 <= exponent <= 8:
            power: int = 1
            for _ in range(exponent):
                power = self.extent * power
            return self.capture.integer(power)
        if isinstance(exponent, (int, float)) and not isinstance(exponent, np.generic):
            low = self.bounds[0]
            if low is None or low < (1 if exponent < 0 else 0):
                raise NotRolled("index_value", "root_of", value=self.extent.expr)
            if isinstance(exponent, int) and exponent >= 0:
                self._too_large()
            return self.capture.perform(apply_operator, "__pow__", _as_float(self.tensor()), float(exponent))
        return self.array_operator("pow", exponent)

    def __rpow__(self, base: Any) -> Any:
        low, high = self.bounds
        if isinstance(base, (int, float)) and not isinstance(base, np.generic):
            if low is None or low < 0:
                raise NotRolled("index_value", "exponent", value=self.extent.expr)
            if isinstance(base, float):
                return self.capture.perform(apply_operator, "__rpow__", _as_float(self.tensor()), base)
            if high is None or abs(int(base)) ** min(high, 64) >= 2**63:
                self._too_large()
            return self.capture.python_number(apply(Pow(), as_node(base), as_node(self.extent)))
        return self.array_operator("rpow", base)

    def _too_large(self) -> Any:
        raise NotRolled("index_value", "large", what=f"a power of {self.extent.expr}")

    def __rshift__(self, count: Any) -> Any:
        if type(count) is int and 0 <= count < 63:
            return self // (1 << count)
        return self.array_operator("rshift", count)

    def __lshift__(self, count: Any) -> Any:
        if type(count) is int and 0 <= count < 32:
            return self.capture.integer(self.extent * (1 << count))
        raise NotRolled("index_value", "large", what=f"{self.extent.expr} shifted")

    def __rlshift__(self, base: Any) -> Any:
        return base * 2**self if type(base) is int else self.array_operator("rlshift", base)

    def __neg__(self) -> Any:
        return self.capture.integer(-self.extent)

    def __pos__(self) -> LoopIndex:
        return self

    def __invert__(self) -> Any:
        return self.capture.integer(-self.extent - 1)

    def __abs__(self) -> Any:
        sign = self.capture.bounds.decides(self.extent)
        return abs(self.tensor()) if sign is None else self if sign else -self

    def __round__(self, digits: Any = None) -> LoopIndex:
        if digits is not None and operator.index(digits) < 0:
            raise NotRolled("index_value", "rounded", value=self.extent.expr)
        return self

    def __trunc__(self) -> LoopIndex:
        return self

    __floor__ = __ceil__ = __trunc__

    # ---- comparisons
    def __eq__(self, other: object) -> Any:
        return self._equality("eq", other, True)

    def __ne__(self, other: object) -> Any:
        return self._equality("ne", other, False)

    def _equality(self, name: str, other: object, equal: bool) -> Any:
        value = _integer_of(other)
        if value is None:
            return self.array_operator(name, other)
        if self.capture.bounds.proves_equal(self.extent, value):
            return equal
        if self.capture.bounds.proves_unequal(self.extent, value):
            return not equal
        return self.array_operator(name, value)

    # ---- what it has not: a value
    def __bool__(self) -> bool:
        if self.is_never(0):
            return True
        raise NotRolled("index_value", "zero_at_times", value=self.extent.expr)

    def __hash__(self) -> int:
        raise NotRolled("index_value", "index_looked_up", value=self.extent.expr)

    def __int__(self) -> int:
        return operator.index(self)

    def __float__(self) -> float:
        return float(operator.index(self))

    def __complex__(self) -> complex:
        return complex(operator.index(self))

    def __str__(self) -> str:
        raise NotRolled("index_value", "text_of", value=self.extent.expr)

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<index {self.extent.expr}>"

    def bit_length(self) -> int:
        return operator.index(self)

    @property
    def real(self) -> LoopIndex:
        return self

    @property
    def imag(self) -> int:
        return 0


def _polynomial(name: str, function: Callable[[int, int], int], reflected: bool) -> Any:
    def method(self: LoopIndex, other: Any) -> Any:
        value = _integer_of(other)
        if value is None:
            return self.array_operator(("r" if reflected else "") + name, other)
        return self.capture.integer(function(value, self.extent) if reflected else function(self.extent, value))

    return method


def _comparison(name: str, least: Callable[[int, int], int]) -> Any:
    """`least(a, b)` is 0 or more exactly where the comparison holds."""

    def method(self: LoopIndex, other: Any) -> Any:
        value = _integer_of(other)
        if value is None:
            return self.array_operator(name, other)
        answer = self.capture.bounds.decides(least(self.extent, value))
        return self.array_operator(name, value) if answer is None else answer

    return method


def _array_only(name: str) -> Any:
    return lambda self, other: self.array_operator(name, other)


for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
    setattr(LoopIndex, f"__{_name}__", _polynomial(_name, _function, False))
    setattr(LoopIndex, f"__r{_name}__", _polynomial(_name, _function, True))
for _name, _least in (
    ("lt", lambda a, b: b - a - 1), ("le", lambda a, b: b - a), ("gt", lambda a, b: a - b - 1), ("ge", lambda a, b: a - b),
):  # fmt: skip
    setattr(LoopIndex, f"__{_name}__", _comparison(_name, _least))
for _name in ("and", "or", "xor"):
    setattr(LoopIndex, f"__{_name}__", _array_only(_name))
    setattr(LoopIndex, f"__r{_name}__", _array_only(f"r{_name}"))
setattr(LoopIndex, "__rrshift__", _array_only("rrshift"))  # noqa: B010


class SymbolicRange:
    """`range(start, stop, step)` of which not every number is known: its loop runs `count` times, if that is above 0."""

    __slots__ = ("capture", "start", "step", "stop")

    def __init__(self, capture: Arrays, start: int, stop: int, step: int) -> None:
        self.capture, self.start, self.stop, self.step = capture, start, stop, step

    @property
    def count(self) -> int:
        """How many iterations; it may come out below 0 where Python's range is empty."""
        span = self.stop - self.start if self.rises else self.start - self.stop
        return rounded_up(span, self.step if self.rises else -self.step)

    @property
    def rises(self) -> bool:
        return at_least(self.step, 1)

    def at(self, number: int) -> Any:
        """The element of this number (0, 1, ...; the symbol of the loop): an int or a LoopIndex."""
        return self.capture.integer(self.start + number * self.step)

    def __reversed__(self) -> SymbolicRange:
        last = self.start + (self.count - 1) * self.step
        return SymbolicRange(self.capture, last, self.start - self.step, -self.step)

    def __iter__(self) -> Any:
        raise NotRolled("index_value", "other_range")

    def __len__(self) -> int:
        raise NotRolled("index_value", "other_range_length")


def symbolic_range(capture: Arrays, *args: Any) -> SymbolicRange:
    """`range(*args)` of ints, LoopIndexes and 0-d integer Tensors: one read from an array becomes a symbol here."""
    if not 1 <= len(args) <= 3:
        return range(*args)  # type: ignore[return-value]  # Python's TypeError
    numbers = [_as_extent(capture, x) for x in args]
    start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else 1
    if not isinstance(step, Moving):
        if int(step) == 0:
            raise ValueError("range() arg 3 must not be zero")
        step = int(step)
    elif not capture.bounds.proves_unequal(step, 0):
        raise NotRolled("index_value", "range_step", step=step.expr)
    return SymbolicRange(capture, start, stop, step)


def _as_extent(capture: Arrays, x: Any) -> int:
    if isinstance(x, Tensor):
        if x.ndim or x.dtype.kind not in "iu":
            raise TypeError(f"{x.dtype.name!r} object cannot be interpreted as an integer")
        return define(x.node())
    value = _integer_of(x)
    return operator.index(x) if value is None else value


def has_symbolic(x: Any) -> bool:
    """Is it, or does it hold, an integer without a fixed value?"""
    if isinstance(x, (Symbolic, SymbolicRange)):
        return True
    if isinstance(x, (list, tuple)):
        return any(map(has_symbolic, x))
    return isinstance(x, dict) and any(map(has_symbolic, x.values()))


def call_builtin(capture: Arrays, function: Any, args: Sequence[Any]) -> Any:
    """A builtin of loop indices, traced Python numbers and arrays whose lengths move; NotImplemented: it is no such case."""
    if not args:
        return NotImplemented
    rule = _BUILTINS.get(function)
    return NotImplemented if rule is None else rule(capture, *args)


def _range(capture: Arrays, *args: Any) -> Any:
    in_loop = capture.bounds.depth > 0
    moves = any(isinstance(x, LoopIndex) or (in_loop and isinstance(x, Tensor)) for x in args)
    return symbolic_range(capture, *args) if moves else NotImplemented


def _int(capture: Arrays, x: Any = 0, *rest: Any) -> Any:
    if isinstance(x, LoopIndex) and not rest:
        return x
    if isinstance(x, Tensor) and not rest and (x.weak in (int, bool) or capture.bounds.depth and _is_integer_scalar(x)):
        return _as_number(x, INT64)
    return NotImplemented


def _float(capture: Arrays, x: Any = 0.0) -> Any:
    if isinstance(x, LoopIndex):
        return _as_float(x.tensor())
    if isinstance(x, Tensor) and (x.weak in (int, bool, float) or capture.bounds.depth and _is_real_scalar(x)):
        return _as_float(x)
    return NotImplemented


def _bool(capture: Arrays, x: Any = False) -> Any:
    if isinstance(x, LoopIndex):
        return x != 0
    if isinstance(x, Tensor) and x.weak is not None:
        return capture.perform(apply_operator, "__ne__", x, x.weak(0))
    return NotImplemented


def _len(capture: Arrays, x: Any) -> Any:
    if isinstance(x, Tensor) and x.ndim and capture.has_no_value(x.type.shape[0]):
        return capture.integer(x.type.shape[0])
    if isinstance(x, SymbolicRange):
        return _extreme(max)(capture, capture.integer(x.count), 0)
    return NotImplemented


def _reversed(capture: Arrays, x: Any) -> Any:
    return x.__reversed__() if isinstance(x, SymbolicRange) else NotImplemented


def _type(capture: Arrays, x: Any, *rest: Any) -> Any:
    if rest:
        return NotImplemented
    if isinstance(x, (LoopIndex, SymbolicRange)):
        return int if isinstance(x, LoopIndex) else range
    return x.weak if isinstance(x, Tensor) and x.weak is not None else NotImplemented


def _isinstance(capture: Arrays, x: Any, classes: Any) -> Any:
    kind = _type(capture, x)
    if kind is NotImplemented:
        return NotImplemented
    options = classes if isinstance(classes, tuple) else (classes,)
    return any(issubclass(kind, c) for c in options if isinstance(c, type))


def _operator(function: Callable[..., Any]) -> Any:
    """A builtin that asks its first operand (abs, round, divmod, pow)."""

    def called(capture: Arrays, *args: Any) -> Any:
        return function(*args) if any(isinstance(x, LoopIndex) for x in args) else NotImplemented

    return called


def _extreme(function: Any) -> Any:
    """max and min of two or more numbers, some without a fixed value."""

    def called(capture: Arrays, *args: Any) -> Any:
        if len(args) < 2 or not any(isinstance(x, LoopIndex) for x in args):
            return NotImplemented
        extents = [_integer_of(x) for x in args]
        if any(e is None for e in extents):
            return capture.perform(call_function, function, args, {})
        bounds = capture.bounds
        kept: list[int] = []
        for e in extents:
            assert e is not None
            if any(_beats(capture, function, other, e) for other in kept):
                continue
            kept = [other for other in kept if not _beats(capture, function, e, other)]
            kept.append(e)
        if len(kept) == 1:
            return capture.integer(kept[0])
        tensors = [capture.python_number(as_node(e)) for e in kept]
        result = capture.perform(call_function, function, tensors, {})
        lows, highs = [bounds.least(e) for e in kept], [bounds.greatest(e) for e in kept]
        known_lows, known_highs = [x for x in lows if x is not None], [x for x in highs if x is not None]
        if function is max:
            low, high = max(known_lows, default=None), max(known_highs) if len(known_highs) == len(highs) else None
        else:
            low, high = min(known_lows) if len(known_lows) == len(lows) else None, min(known_highs, default=None)
        bounds.noted[result.node()] = (low, high)
        return result

    return called


def _beats(capture: Arrays, function: Any, one: int, other: int) -> bool:
    """Is `one` always chosen over `other`, or the same number?"""
    difference = poly(one) - poly(other)
    return capture.bounds.proves_nonnegative(difference if function is max else difference.scale(-1))


_BUILTINS: dict[Any, Any] = {
    range: _range, int: _int, float: _float, bool: _bool, len: _len, reversed: _reversed, type: _type, isinstance: _isinstance,
    max: _extreme(max), min: _extreme(min), **{f: _operator(f) for f in (abs, round, divmod, pow)},
}  # fmt: skip


def _integer_of(x: Any) -> int | None:
    """The extent of a Python int, known or not; None for anything else."""
    if isinstance(x, Symbolic):
        return x.extent
    if isinstance(x, Number) and isinstance(x.value, int):
        return int(x.known())
    if isinstance(x, int):
        return x if isinstance(x, Extent) else int(x)
    return None


def _is_number(x: Any) -> bool:
    return is_python_number(x) or isinstance(x, Number)


def _check_divisor(capture: Arrays, x: Any) -> None:
    """Python's division by zero is an error: a divisor has to be known to be none."""
    value = _integer_of(x)
    if value is None:
        if isinstance(x, float) and not isinstance(x, np.generic) and x == 0:
            raise ZeroDivisionError("float division by zero")
    elif not capture.bounds.proves_unequal(value, 0):
        if not isinstance(value, Moving):
            raise ZeroDivisionError("division by zero")
        raise NotRolled("zero_division", "may_be_zero", value=value.expr)


def _is_integer_scalar(x: Tensor) -> bool:
    return x.is_scalar and x.dtype.kind in "biu" and x.dtype.itemsize <= 8 and x.dtype != np.dtype("u8")


def _is_real_scalar(x: Tensor) -> bool:
    return x.is_scalar and x.dtype.kind in "biuf"


def _as_float(x: Tensor) -> Tensor:
    return _as_number(x, np.dtype("f8"))


def _as_number(x: Tensor, dtype: np.dtype) -> Tensor:
    """A Python number of this dtype: a node of its own, unless it is one already."""
    node = x.node()
    return x if node.weak is not None and node.dtype == dtype else x.capture.python_number(apply(Cast(dtype), node))


__all__ = ["LoopIndex", "NotRolled", "SymbolicRange", "call_builtin", "has_symbolic", "symbolic_range"]

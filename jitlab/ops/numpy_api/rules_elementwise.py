"""Rules for NumPy's elementwise functions and Python's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ir import TRACED_DTYPES, Extent, Moving, Node, NotRolled, at_least, current_bounds, plain
from jitlab.ops import registry
from jitlab.ops.base import Elementwise, Unsupported, broadcast_shapes
from jitlab.ops.build_nodes import (
    apply,
    as_node,
    cast,
    constant,
    dtype_of,
    elementwise,
    fitting,
    is_python_number,
    result_dtype,
    shape_of,
)
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise import comparison as co
from jitlab.ops.elementwise import math_functions as fu
from jitlab.ops.elementwise.casts import Select
from jitlab.ops.elementwise.rare_functions import Complex
from jitlab.ops.layout.creation import fill
from jitlab.ops.layout.views import broadcast_to
from jitlab.ops.linear_algebra.matrix_products import matmul

from .arguments import as_count, as_dtype, check_cast, node, nodes, operand, refuse

Rule = Callable[..., Any]


def ufunc_rule(op: Elementwise, ufunc: np.ufunc | None = None) -> Rule:
    """The rule of a ufunc that is one operation; `ufunc` picks the loop when it is not the operation's own."""
    ufunc = ufunc or type(op).ufunc
    build = _compare if isinstance(op, co.Comparison) else _power if isinstance(op, ar.Pow) else None

    def rule(
        *operands: Any,
        out: Any = None,
        where: Any = True,
        casting: Any = "same_kind",
        order: Any = "K",
        dtype: Any = None,
        subok: Any = True,
        signature: Any = None,
        sig: Any = None,
    ) -> Node:
        signature = sig if signature is None else signature
        refuse(out=out, subok=subok, order=order)
        if len(operands) > ufunc.nin:
            raise Unsupported("argument_of", name="out")
        if len(operands) < ufunc.nin:
            raise TypeError(f"{ufunc.__name__}() takes from {ufunc.nin} to {ufunc.nin + 1} positional arguments")
        xs = [operand(x) for x in operands]
        if dtype is not None or signature is not None or casting != "same_kind" or ufunc is not type(op).ufunc:
            result = _in_loop(op, ufunc, xs, _signature(ufunc, dtype, signature), casting)
        else:
            result = build(op, *xs) if build else elementwise(op, *xs)
        return result if where is True else _masked(result, where)

    return rule


def _signature(ufunc: np.ufunc, dtype: Any, signature: Any) -> Any:
    """What `dtype=` and `signature=` ask of the loop, as `resolve_dtypes` wants it."""
    if signature is None:
        return None if dtype is None else (*(None for _ in range(ufunc.nin)), as_dtype(dtype))
    if dtype is not None:
        raise TypeError("cannot specify both 'signature' and 'dtype'")
    if isinstance(signature, str):
        signature = tuple(signature.replace("->", ""))
    if not isinstance(signature, tuple):
        raise TypeError("the signature object to ufunc must be a string or a tuple.")
    if len(signature) == 1:
        raise TypeError("Use `dtype` or  fill the tuple with more than one 'None'.")
    return tuple(None if s is None else as_dtype(s) for s in signature)


def _in_loop(op: Elementwise, ufunc: np.ufunc, xs: list[Any], signature: Any, casting: Any = "same_kind") -> Node:
    """The operation in the loop of another ufunc, or in the one that `dtype=`, `signature=` and `casting=` choose."""
    from jitlab.ops.build_nodes import promotion_dtypes

    options = {} if signature is None else {"signature": signature}
    loop = ufunc.resolve_dtypes((*promotion_dtypes(xs), None), casting=casting, **options)
    if any(d not in TRACED_DTYPES for d in loop):
        raise Unsupported("argument_of", "dtype", name="dtype")
    if isinstance(op, ar.Pow):
        _check_exponent(loop[0], xs[1], xs[0])
    return apply(op, *(as_node(x, d) for x, d in zip(xs, loop, strict=False)))


def _masked(result: Node, where: Any) -> Node:
    """`where=` without `out=`: NumPy leaves memory as it found it where the mask is False; that is 0 here."""
    mask = node(where)
    check_cast(mask.dtype, bool)
    return apply(Select(), mask, result, constant(0, result.dtype))


def _compare(op: Elementwise, x: Any, y: Any) -> Node:
    """A comparison; a Python integer that the other's dtype cannot hold has a known answer."""
    for mine, other, turned in ((x, y, False), (y, x, True)):
        if type(mine) is int and not isinstance(other, (bool, int, float, complex)):
            dtype = dtype_of(other)
            if dtype.kind in "iu" and not np.iinfo(dtype).min <= mine <= np.iinfo(dtype).max:
                anything = dtype.type(0)
                known = type(op).ufunc(anything, mine) if turned else type(op).ufunc(mine, anything)
                return fill(shape_of(other), bool(known), np.dtype(bool))
        if isinstance(mine, Node) and mine.weak is int and not is_python_number(other) and dtype_of(other).kind in "iu":
            wide = dtype_of(other) if dtype_of(other) == np.dtype("u8") else mine.dtype  # the other's may not hold it
            return apply(op, *(as_node(v, mine.dtype if v is mine else wide) for v in (x, y)))
    return elementwise(op, x, y)


def _power(op: Elementwise, x: Any, y: Any) -> Node:
    """`np.power(x, y)` with NumPy's short cuts for exponents that are Python numbers."""
    if type(y) in (int, float) and isinstance(x, Node):
        dtype = op.ufunc.resolve_dtypes((x.dtype, type(y), None))[-1]
        if y == 2:
            return elementwise(ar.Square(), cast(x, dtype))
        if dtype.kind in "fc" and x.ndim:  # a NumPy scalar takes no short cuts
            if y == 0.5:
                return elementwise(ar.Sqrt(), cast(x, dtype))
            if y == -1:
                return elementwise(ar.Reciprocal(), cast(x, dtype))
        if y == 1 and dtype == x.dtype:
            return x
    _check_exponent(op.ufunc.resolve_dtypes((*_dtypes(x, y), None))[-1], y, x)
    return elementwise(op, x, y)


def _check_exponent(dtype: np.dtype, y: Any, x: Any) -> None:
    """NumPy refuses integers to negative integer powers: known for numbers, decided by the data for arrays."""
    if dtype.kind != "i":
        return
    if isinstance(y, Moving):
        if at_least(y, 0):
            return
        raise NotRolled("index_value", "negative_power", value=y.expr)
    if isinstance(y, Node):
        from jitlab.ops.leaf_operations import Constant

        if isinstance(y.op, Constant):
            y = y.op.value
        elif y.dtype.kind in "bu" or _is_never_negative(y):
            return
        else:
            raise Unsupported("integer_power", "data_dependent")
    if np.any(np.asarray(y) < 0) and 0 not in plain(shape_of(x)):
        raise ValueError("Integers to negative integer powers are not allowed.")


def _is_never_negative(x: Node) -> bool:
    """A traced integer whose bounds are known: `i % 3` of a loop's index."""
    bounds = current_bounds.get()
    low = None if bounds is None else bounds.noted.get(x, (None, None))[0]
    return low is not None and low >= 0


def _dtypes(*xs: Any) -> list[Any]:
    from jitlab.ops.build_nodes import promotion_dtypes

    return promotion_dtypes(xs)


def positive(x: Any, /, out: Any = None, **options: Any) -> Node:
    refuse(out=out, **options)
    value = node(x)
    np.positive.resolve_dtypes((value.dtype, None))
    return value


def divmod_(x: Any, y: Any, /, out: Any = None, **options: Any) -> tuple[Node, Node]:
    refuse(out=out, **options)
    x, y = operand(x), operand(y)
    return elementwise(ar.FloorDiv(), x, y), elementwise(ar.FloorMod(), x, y)


def where(condition: Any, x: Any = None, y: Any = None, /) -> Node:
    if x is None and y is None:
        raise Unsupported("where_alone", "data_dependent")
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    return choose(node(condition), operand(x), operand(y))


def choose(condition: Node, x: Any, y: Any) -> Node:
    """`np.where` with weak Python numbers."""
    dtype = _common([x, y])
    return apply(Select(), cast(condition, bool), *(as_node(_wrapped(value, dtype), dtype) for value in (x, y)))


def _wrapped(x: Any, dtype: np.dtype) -> Any:
    """`np.where` makes an array of a Python int, and casts that: what does not fit wraps."""
    return np.asarray(x).astype(dtype) if type(x) is int and dtype.kind in "iu" else x


def _common(xs: list[Any]) -> np.dtype:
    if all(map(is_python_number, xs)):
        return np.result_type(*map(dtype_of, xs))
    return result_dtype(*(int(x) if isinstance(x, Extent) else x for x in xs))


def _literal(x: Any, dtype: np.dtype) -> Node:
    if type(x) is int and dtype.kind in "iu":
        x = dtype.type(x)
    return as_node(x, dtype)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Node:
    conditions, choices = nodes(condlist), [operand(c) for c in choicelist]
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    if not conditions:
        raise ValueError("select with an empty condition list is not possible")
    for position, condition in enumerate(conditions):
        if condition.dtype.kind != "b":
            raise TypeError(f"invalid entry {position} in condlist: should be boolean ndarray")
    dtype = _common([*choices, operand(default)])
    result = _literal(operand(default), dtype)
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        result = apply(Select(), condition, _literal(choice, dtype), result)
    return broadcast_to(result, broadcast_shapes(*(c.shape for c in conditions), *(shape_of(c) for c in choices)))


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Node:
    refuse(out=out)
    low = a_min if a_min is not None else min
    high = a_max if a_max is not None else max
    x = node(a)
    if x.dtype.kind in "iu":  # a Python integer at or beyond the dtype's own bounds bounds nothing
        info = np.iinfo(x.dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return positive(x)
    if low is None:
        return elementwise(ar.Minimum(), x, operand(high))
    if high is None:
        return elementwise(ar.Maximum(), x, operand(low))
    low, high = operand(low), operand(high)
    loop = np._core.umath.clip.resolve_dtypes((*_dtypes(x, low, high), None))  # type: ignore[attr-defined]
    return apply(ar.Clip(), *(as_node(fitting(v, d), d) for v, d in zip((x, low, high), loop, strict=False)))


def round_(a: Any, decimals: Any = 0, out: Any = None) -> Node:
    refuse(out=out)
    decimals = int(as_count(decimals))
    x = node(a)
    if x.dtype.kind == "c":
        return apply(Complex(), *(round_(apply(part, x), decimals) for part in (ar.Real(), ar.Imag())))
    if x.dtype.kind in "iu" and decimals >= 0:
        return x
    if decimals == 0:
        return elementwise(fu.Rint(), x)  # of bools a float16
    factor = float(10 ** abs(decimals))
    if x.dtype.kind == "b":
        name = "multiply" if decimals > 0 else "divide"
        text = f"Cannot cast ufunc '{name}' output from dtype('float64') to dtype('bool') with casting rule 'same_kind'"
        raise TypeError(text)
    if x.dtype.kind in "iu":
        return cast(ar.multiply(elementwise(fu.Rint(), ar.divide(x, factor)), factor), x.dtype)
    if decimals > 0:
        return ar.divide(elementwise(fu.Rint(), ar.multiply(x, factor)), factor)
    return ar.multiply(elementwise(fu.Rint(), ar.divide(x, factor)), factor)


def fix(x: Any, out: Any = None) -> Node:
    refuse(out=out)
    return elementwise(fu.Trunc(), node(x))


def real(val: Any) -> Node:
    x = node(val)
    return apply(ar.Real(), x) if x.dtype.kind == "c" else x


def imag(val: Any) -> Node:
    x = node(val)
    return apply(ar.Imag(), x) if x.dtype.kind == "c" else fill(x.shape, 0, x.dtype)


def angle(z: Any, deg: Any = False) -> Node:
    x = node(z)
    if x.dtype.kind == "c":
        result = elementwise(ar.Arctan2(), apply(ar.Imag(), x), apply(ar.Real(), x))
    else:
        result = elementwise(ar.Arctan2(), 0, x)
    return ar.multiply(result, 180 / np.pi) if deg else result


def conjugate(x: Any, /, out: Any = None, **options: Any) -> Node:
    refuse(out=out, **options)
    value = node(x)
    return elementwise(ar.Conj(), value) if value.dtype.kind in "cb" else value


def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Node:
    value = node(x)
    if not copy:
        raise Unsupported("nan_in_place")
    if value.dtype.kind == "c":
        parts = (nan_to_num(apply(part, value), True, nan, posinf, neginf) for part in (ar.Real(), ar.Imag()))
        return apply(Complex(), *parts)
    if value.dtype.kind != "f":
        return value
    info = np.finfo(value.dtype)
    result = value
    for test, replacement in (
        (elementwise(co.IsNan(), value), nan),
        (elementwise(co.Equal(), value, np.inf), info.max if posinf is None else posinf),
        (elementwise(co.Equal(), value, -np.inf), info.min if neginf is None else neginf),
    ):
        result = apply(Select(), test, as_node(operand(replacement), value.dtype), result)
    return result


def scaled(number: float, ufunc: np.ufunc) -> Rule:
    """x times a number in the dtype of the ufunc's loop: deg2rad and rad2deg."""

    def rule(x: Any, /, out: Any = None, **options: Any) -> Node:
        refuse(out=out, **options)
        x = operand(x)
        dtype = ufunc.resolve_dtypes((*_dtypes(x), None))[-1]
        return ar.multiply(as_node(x, dtype), constant(number, dtype))

    return rule


def scalar_type_rule(scalar: Any) -> Rule:
    """np.float64(x) and the like."""
    dtype = np.dtype(scalar)

    def rule(x: Any = 0, /) -> Node:
        return _literal(operand(x), dtype)

    return rule


def python_extreme(op: type[Elementwise]) -> Rule:
    """Python's max and min of numbers: the first one that no other beats, as comparisons see it."""

    def rule(first: Any, *rest: Any, **options: Any) -> Node:
        if options or not rest:
            raise Unsupported("max_of_one")
        xs = [operand(x) for x in (first, *rest)]
        if any(shape_of(x) for x in xs):
            raise Unsupported("max_of_arrays")
        strong = {dtype_of(x) for x in xs if type(x) is bool or not is_python_number(x)} or {dtype_of(x) for x in xs}
        dtype = _common(xs)
        if len(strong) != 1 or strong != {dtype}:
            raise Unsupported("max_of_dtypes", "dtype")
        best = _literal(xs[0], dtype)
        for x in xs[1:]:
            other = _literal(x, dtype)
            best = apply(Select(), elementwise(op(), other, best), other, best)
        return best

    return rule


def python_round(number: Any, ndigits: Any = None) -> Node:
    x = node(number)
    if x.ndim or ndigits is None or x.dtype.kind != "f":
        raise Unsupported("round")
    return round_(x, ndigits)


def python_abs(x: Any, /) -> Node:
    return elementwise(ar.Abs(), operand(x))


def rule_of(ufunc: np.ufunc) -> Rule:
    """The rule of a ufunc that is an operation."""
    return ufunc_rule(registry.FUNCTIONS[ufunc]())


FUNCTIONS: dict[Any, Rule] = {
    np.fabs: ufunc_rule(ar.Abs(), np.fabs),
    np.float_power: ufunc_rule(ar.Pow(), np.float_power),
    np.positive: positive,
    np.divmod: divmod_,
    np.conjugate: conjugate,
    np.deg2rad: scaled(np.pi / 180, np.deg2rad),
    np.radians: scaled(np.pi / 180, np.radians),
    np.rad2deg: scaled(180 / np.pi, np.rad2deg),
    np.degrees: scaled(180 / np.pi, np.degrees),
    np.where: where,
    np.select: select,
    np.clip: clip,
    np.round: round_,
    np.around: round_,
    np.fix: fix,
    np.real: real,
    np.imag: imag,
    np.angle: angle,
    np.nan_to_num: nan_to_num,
    abs: python_abs,
    max: python_extreme(co.Greater),
    min: python_extreme(co.Less),
    round: python_round,
    divmod: divmod_,
    **{
        np.dtype(name).type: scalar_type_rule(np.dtype(name).type)
        for name in (
            *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64", "complex64", "complex128"),
        )
    },
}

METHODS: dict[str, Rule] = {
    "clip": lambda x, min=None, max=None, out=None: clip(x, min, max, out),
    "round": round_,
    "conj": conjugate,
    "conjugate": conjugate,
}

ATTRIBUTES: dict[str, Rule] = {"real": real, "imag": imag}


def _operators() -> dict[str, Rule]:
    binary = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "truediv": np.true_divide,
        "floordiv": np.floor_divide,
        "mod": np.remainder,
        "pow": np.power,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "lshift": np.left_shift,
        "rshift": np.right_shift,
    }
    rules: dict[str, Rule] = {}
    for name, ufunc in binary.items():
        rules[f"__{name}__"] = rule_of(ufunc)
        rules[f"__r{name}__"] = _turned(rule_of(ufunc))
    rules["__pow__"] = _power_operator
    rules["__divmod__"], rules["__rdivmod__"] = divmod_, _turned(divmod_)
    rules["__matmul__"] = lambda x, y: matmul(node(x), node(y))
    rules["__rmatmul__"] = _turned(rules["__matmul__"])
    others: Any = (
        *(("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)),
        *(("eq", np.equal), ("ne", np.not_equal), ("neg", np.negative), ("abs", np.absolute), ("invert", np.invert)),
    )
    for name, ufunc in others:
        rules[f"__{name}__"] = rule_of(ufunc)
    rules["__pos__"] = positive
    return rules


def _power_operator(x: Any, y: Any) -> Node:
    """`x ** y`: the square of bools is their own, int8; `np.power` makes int64 of them first."""
    if type(y) is int and y == 2 and isinstance(x, Node) and (x.ndim or x.dtype.kind != "b"):
        return elementwise(ar.Square(), x)
    result: Node = rule_of(np.power)(x, y)
    return result


def _turned(rule: Rule) -> Rule:
    return lambda y, x: rule(x, y)


OPERATORS: dict[str, Rule] = _operators()

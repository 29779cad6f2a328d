"""The methods of ufuncs: `reduce`, `accumulate`, `reduceat`, `outer` and `at` of every function of two elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node
from jitlab.messages import Message
from jitlab.ops import registry
from jitlab.ops.base import Elementwise, Reduction, Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, dtype_of, elementwise
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise.math_functions import Exp, Exp2
from jitlab.ops.emitter import Emitter
from jitlab.ops.layout.indexing import write_index
from jitlab.ops.layout.views import expand_dims, reshape
from jitlab.ops.library_operations import Library, call
from jitlab.ops.reducing.axis_reductions import among_equals, highest, lowest
from jitlab.ops.reducing.scans import accumulate_rule, keeps
from jitlab.ops.registry import BINARY, PAIRWISE, UNARY, rule, update

from .arguments import NoValue, as_axes, as_axis, as_dtype, node, operand, refuse
from .rules_reductions import Kind, extreme_rule, flag, mask_of, masked, started, sum_rule, truth_rule

INTS = np.array([[100, 100, -3], [7, -128, 127]], np.int8)
FLOATS = np.array([[0.5, -1.5, 2.0], [3.0, np.nan, 1.0]])

#: Partial results may be joined in any order, and nothing but the elements counts.
REORDERED: tuple[np.ufunc, ...] = (
    *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor, np.fmax, np.fmin, np.gcd, np.lcm, np.hypot),
    *(np.logaddexp, np.logaddexp2),
)


@cache
def operation_of(ufunc: np.ufunc) -> Elementwise | None:
    """The operation that a ufunc is, if it is one."""
    from jitlab.ops.table import FUNCTIONS

    kind = registry.FUNCTIONS[ufunc] if FUNCTIONS.get(ufunc) is not None else None  # looked up: its module is loaded
    return kind() if isinstance(kind, type) else None


class Fold(Reduction):
    """`ufunc.reduce` of a function whose order does not count: `np.bitwise_or.reduce`, `np.logaddexp.reduce`, ..."""

    op: Elementwise

    @property
    def name(self) -> str:
        return f"Reduce{self.op.name}"

    @property
    def word(self) -> str:
        return f"{type(self.op).ufunc.__name__}.reduce"

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return type(self.op).exact and type(self.op).ufunc is not np.hypot

    @property
    def has_identity(self) -> bool:  # type: ignore[override]
        return type(self.op).ufunc.identity is not None

    @property
    def numpy_name(self) -> str:  # type: ignore[override]
        return type(self.op).ufunc.__name__

    def numpy(self, x: Any) -> Any:
        return type(self.op).ufunc.reduce(x, axis=self.axes)

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return self.op.why_not_compiled(types[0], types[0])

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        return type(self.op).ufunc in (np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.hypot)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        """Equal extremes share the cotangent; of the others, the derivative in each element."""
        (x,) = inputs
        ufunc = type(self.op).ufunc
        mine, result = expand_dims(g, self.axes), expand_dims(out, self.axes)
        if ufunc in (np.fmax, np.fmin):
            return [among_equals(g, out, x, self.axes)]
        if ufunc is np.hypot:
            derivative = ar.divide(x, ar.select(ar.equal(result, 0), constant(1, out.dtype), result))
        else:
            derivative = elementwise(Exp() if ufunc is np.logaddexp else Exp2(), ar.subtract(x, result))
        return [ar.multiply(mine, derivative)]

    def start(self, e: Emitter, dtype: np.dtype) -> Any:
        return e.constant(neutral_of(type(self.op).ufunc, dtype), dtype)

    def combine(self, e: Emitter, left: Any, right: Any) -> Any:
        return self.op.body(e, left, right)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        from jitlab.ops.elementwise.arithmetic import Fmax
        from jitlab.ops.elementwise.comparison import BitwiseOr, LogicalXor

        yield cls((0,), BitwiseOr()), INTS
        yield cls((0, 1), LogicalXor()), FLOATS > 0
        yield cls((1,), Fmax()), FLOATS
        yield cls((1,), Fmax()), INTS


def neutral_of(ufunc: np.ufunc, dtype: np.dtype) -> Any:
    """What changes no element."""
    if ufunc is np.fmax or ufunc is np.fmin:
        if dtype.kind == "f":
            return np.nan
        if dtype.kind == "c":
            return complex(np.nan, np.nan)
        return (lowest if ufunc is np.fmax else highest)(dtype)
    if ufunc is np.bitwise_and:
        return True if dtype.kind == "b" else -1 if dtype.kind == "i" else np.iinfo(dtype).max
    return 1 if ufunc is np.lcm else ufunc.identity


class UfuncMethod(Library):
    """A method of a ufunc that NumPy runs: what has no loop body, and `reduceat`. Inputs: the array, then what it wants."""

    ufunc_name: str
    method: str  # "reduce", "accumulate", "reduceat", "outer" or "at"
    axes: tuple[int, ...] = ()
    dtype: np.dtype | None = None
    keepdims: bool = False
    has_initial: bool = False
    has_mask: bool = False
    indices: int = 0  # of `at`: index arrays
    exact: ClassVar[bool] = True

    @property
    def may_raise(self) -> bool:  # type: ignore[override]
        return self.method in ("at", "reduceat")

    @property
    def name(self) -> str:
        return f"{self.method.capitalize()}{''.join(part.capitalize() for part in self.ufunc_name.split('_'))}"

    @property
    def word(self) -> str:
        return f"{self.ufunc_name}.{self.method}"

    def numpy(self, *arrays: Any) -> Any:
        ufunc = getattr(np, self.ufunc_name)
        x, *rest = arrays
        if self.method == "outer":
            return ufunc.outer(x, *rest)
        if self.method == "at":
            result = np.array(x)
            positions, values = rest[: self.indices], rest[self.indices :]
            ufunc.at(result, tuple(positions), *values)
            return result
        if self.method == "reduce":
            options: dict[str, Any] = {}
            if self.has_mask:
                options["where"] = rest.pop()
            if self.has_initial:
                options["initial"] = rest.pop()[()]
            axes = self.axes[0] if len(self.axes) == 1 else self.axes
            return ufunc.reduce(x, axis=axes, dtype=self.dtype, keepdims=self.keepdims, **options)
        return getattr(ufunc, self.method)(x, *rest, axis=self.axes[0], dtype=self.dtype)

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, *rest = types
        dtype = self.dtype or x.dtype
        if self.method == "outer":
            dtype = getattr(np, self.ufunc_name).resolve_dtypes((x.dtype, rest[0].dtype, None))[-1]
            return (ArrayType((*x.shape, *rest[0].shape), dtype),)
        if self.method == "reduce":
            shape = tuple(
                1 if axis in self.axes else n for axis, n in enumerate(x.shape) if self.keepdims or axis not in self.axes
            )
            return (ArrayType(shape, dtype),)
        if self.method == "reduceat":
            return (ArrayType(tuple(rest[0].shape[0] if a in self.axes else n for a, n in enumerate(x.shape)), dtype),)
        return (ArrayType(x.shape, dtype),)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        f8, i1 = np.dtype("f8"), np.dtype("i1")
        yield cls("subtract", "reduce", (1,), f8), FLOATS
        yield cls("maximum", "reduceat", (1,), f8), FLOATS, np.array([0, 2, 1])
        yield cls("nextafter", "accumulate", (1,), f8), FLOATS
        yield cls("multiply", "at", (), i1, indices=1), INTS, np.array([0, 0]), np.array([[1, 2, 3]], np.int8)


def by_numpy(
    ufunc: np.ufunc, method: str, x: Node, *others: Node, axis: int | tuple[int, ...] = (), dtype: np.dtype | None = None,
    **options: Any,
) -> Node:  # fmt: skip
    """The method as one library call."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    result = call(UfuncMethod(ufunc.__name__, method, axes, dtype, **options), x, *others)
    assert isinstance(result, Node)
    return result


def reduce_rule(ufunc: np.ufunc) -> Any:
    """The rule of `ufunc.reduce`."""

    def reduce_of(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NoValue,
        where: Any = True,
    ) -> Node:
        refuse(out=out)
        x = node(array)
        axes = as_axes(axis, x.ndim)
        wanted = _reduced_dtype(ufunc, x.dtype) if dtype is None else as_dtype(dtype)
        initial = NoValue if initial is None else initial
        if ufunc in _OWN:
            result: Node = _OWN[ufunc](x, axes, dtype, flag(keepdims), initial, where)
            return result
        op = operation_of(ufunc)
        if ufunc in REORDERED and op is not None and keeps(ufunc, wanted):
            kind = Kind(lambda axes: Fold(axes, op), ufunc, neutral_of(ufunc, wanted))
            x = cast(x, wanted)
            x = masked(kind, x, where, initial)
            return started(kind, x, axes, flag(keepdims), initial)
        if len(axes) > 1 and ufunc.identity is None:
            raise ValueError(f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified")
        if ufunc.identity is None and initial is NoValue and any(int(x.shape[a]) == 0 for a in axes):
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        others = []
        if initial is not NoValue:
            others.append(as_node(operand(initial), wanted))
        if where is not True:
            others.append(mask_of(where))
        return by_numpy(
            ufunc, "reduce", x, *others, axis=axes, dtype=wanted, keepdims=flag(keepdims),
            has_initial=initial is not NoValue, has_mask=where is not True,
        )  # fmt: skip

    return reduce_of


def reduceat_rule(ufunc: np.ufunc) -> Any:
    def reduceat(array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Node:
        refuse(out=out)
        x, where = node(array), node(indices)
        wanted = ufunc.reduceat(np.zeros(1, x.dtype), [0]).dtype if dtype is None else as_dtype(dtype)
        if where.dtype.kind not in "iu" or where.ndim != 1:
            raise Unsupported("positions_vector")
        return by_numpy(ufunc, "reduceat", x, cast(where, np.intp), axis=as_axis(axis, x.ndim), dtype=wanted)

    return reduceat


def outer_rule(ufunc: np.ufunc) -> Any:
    """The rule of `ufunc.outer`."""

    def outer(A: Any, B: Any, /, **options: Any) -> Node:
        from jitlab.ops.table import FUNCTIONS

        x, y, of_pair = node(A), node(B), FUNCTIONS.get(ufunc)
        if of_pair is None:
            refuse(**options)
            return by_numpy(ufunc, "outer", x, y)
        result: Node = of_pair(reshape(x, (*x.shape, *(1 for _ in y.shape))), y, **options)
        return result

    return outer


def at_rule(ufunc: np.ufunc) -> Any:
    """The rule of `ufunc.at`: the array after it."""

    def at(a: Any, indices: Any, b: Any, /) -> Node:
        x, value = node(a), operand(b)
        ufunc.at(np.ones(1, x.dtype), [0], value if not isinstance(value, Node) else np.ones(1, value.dtype))  # may it?
        weak = type(value) if type(value) in (int, float, complex) else dtype_of(value)
        if ufunc.resolve_dtypes((x.dtype, weak, None))[-1] != x.dtype:
            pass  # rounded after each step: NumPy's
        elif ufunc is np.subtract and x.dtype.kind in "iufc":  # x - v is x + (-v), to the bit
            from jitlab.ops.elementwise.arithmetic import negative

            return write_index(x, indices, negative(as_node(value, x.dtype)), add=True)
        elif ufunc is np.add and x.dtype.kind != "b":
            return write_index(x, indices, value, add=True)
        return _at_positions(ufunc, x, indices, as_node(value))

    return at


def at_unary_rule(ufunc: np.ufunc) -> Any:
    def at(a: Any, indices: Any, /) -> Node:
        return _at_positions(ufunc, node(a), indices)

    return at


def _at_positions(ufunc: np.ufunc, x: Node, indices: Any, *values: Node) -> Node:
    parts = indices if isinstance(indices, tuple) else (indices,)
    positions = [node(p) for p in parts if not isinstance(p, slice) and p is not None and p is not Ellipsis]
    if len(positions) != len(parts) or any(p.dtype.kind not in "iu" for p in positions):
        raise Unsupported("positions_integers")
    return by_numpy(ufunc, "at", x, *positions, *values, dtype=x.dtype, indices=len(positions))


def _reduced_dtype(ufunc: np.ufunc, dtype: np.dtype) -> np.dtype:
    result: np.dtype = ufunc.reduce(np.ones(1, dtype)).dtype
    return result


def _sum_like(ufunc: np.ufunc) -> Any:
    rule_ = sum_rule(ufunc)
    return lambda x, axes, dtype, keepdims, initial, where: rule_(x, axes, dtype, None, keepdims, initial, where)


def _extreme_like(ufunc: np.ufunc) -> Any:
    rule_ = extreme_rule(ufunc)

    def reduce_of(x: Node, axes: Sequence[int], dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        return rule_(x if dtype is None else cast(x, as_dtype(dtype)), tuple(axes), None, keepdims, initial, where)

    return reduce_of


def _truth_like(ufunc: np.ufunc) -> Any:
    rule_ = truth_rule(ufunc)

    def reduce_of(x: Node, axes: Sequence[int], dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        if dtype is not None and as_dtype(dtype) != np.dtype(bool):
            raise Unsupported("argument_of", name="dtype")
        result = rule_(x, tuple(axes), None, keepdims, where=where)
        if initial is NoValue:
            return result
        from jitlab.ops.elementwise.comparison import LogicalAnd, LogicalOr

        return apply(LogicalOr() if ufunc is np.logical_or else LogicalAnd(), result, as_node(operand(initial), np.dtype(bool)))

    return reduce_of


#: Those whose reduction is an operation of its own.
_OWN = {
    np.add: _sum_like(np.add),
    np.multiply: _sum_like(np.multiply),
    np.maximum: _extreme_like(np.maximum),
    np.minimum: _extreme_like(np.minimum),
    np.logical_or: _truth_like(np.logical_or),
    np.logical_and: _truth_like(np.logical_and),
}

for _ufunc in BINARY:
    rule(_ufunc.reduce)(reduce_rule(_ufunc))
    rule(_ufunc.accumulate)(accumulate_rule(_ufunc))
    rule(_ufunc.reduceat)(reduceat_rule(_ufunc))
    update(_ufunc.at)(at_rule(_ufunc))

for _ufunc in PAIRWISE:
    rule(_ufunc.outer)(outer_rule(_ufunc))

for _ufunc in UNARY:
    update(_ufunc.at)(at_unary_rule(_ufunc))

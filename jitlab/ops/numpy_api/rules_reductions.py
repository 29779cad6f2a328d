"""Rules for reductions: sums, extremes, truth, positions, with `where=`, `initial=`, `dtype=` and `keepdims=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ir import Node, at_least
from jitlab.ops.base import Reduction, Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise, fitting
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.layout.creation import fill
from jitlab.ops.layout.views import broadcast_to, expand_dims, transpose
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule
from jitlab.support.lazy_dataclass import dataclass

from .arguments import NoValue, as_axes, as_axis, as_dtype, check_cast, node, operand, refuse

Rule = Callable[..., Any]
BOOL, INT64, FLOAT64 = np.dtype(bool), np.dtype("i8"), np.dtype("f8")


@dataclass(frozen=True)
class Kind:
    """How the arguments of a reduction work: what reduces, the function that joins two results, what changes none."""

    build: Callable[[tuple[int, ...]], Reduction]
    ufunc: np.ufunc
    neutral: Any


def masked(kind: Kind, x: Node, where: Any, initial: Any) -> Node:
    """x where `where` lets it through, else what does not count. Raises ValueError as NumPy does where nothing does not."""
    if where is True or where is NoValue:
        return x
    if kind.ufunc.identity is None and initial is NoValue:
        raise ValueError(
            f"reduction operation '{kind.ufunc.__name__}' does not have an identity, so to use a where mask one has to "
            "specify 'initial'"
        )
    return ar.select(mask_for(where, x), x, constant(kind.neutral, x.dtype))


def mask_for(where: Any, x: Node) -> Node:
    """The mask over the elements of x."""
    return broadcast_to(mask_of(where), x.shape)


def mask_of(where: Any) -> Node:
    """The mask of a reduction; NumPy takes bools only."""
    mask = node(np.asarray(where, bool) if is_written(where) else where)
    check_cast(mask.dtype, bool)
    return mask


def is_written(x: Any) -> bool:
    """A list of numbers that the program wrote down."""
    return isinstance(x, (list, tuple)) and all(is_written(v) or isinstance(v, (int, float)) for v in x)


def started(kind: Kind, x: Node, axes: tuple[int, ...], keepdims: bool, initial: Any) -> Node:
    """The reduction over `axes`, with `initial` joined to it."""
    if initial is NoValue:
        return reduced(kind, x, axes, keepdims)
    first = as_node(fitting(operand(initial), x.dtype), x.dtype)
    if kind.ufunc.identity is None and not all(at_least(x.shape[axis], 1) for axis in axes):
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes)
        return fill(shape, first)
    from jitlab.ops.table import FUNCTIONS

    result: Node = FUNCTIONS[kind.ufunc](first, reduced(kind, x, axes, keepdims))
    return result


def reduced(kind: Kind, x: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    if not axes:
        return x
    result = apply(kind.build(axes), x)
    return expand_dims(result, axes) if keepdims else result


def flag(keepdims: Any) -> bool:
    return keepdims is not NoValue and bool(keepdims)


def sum_rule(ufunc: np.ufunc) -> Rule:
    """sum and prod."""
    build = re.Sum if ufunc is np.add else re.Prod
    kind = Kind(build, ufunc, ufunc.identity)

    def rule(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NoValue,
        where: Any = NoValue,
    ) -> Node:
        refuse(out=out)
        x = node(a)
        axes = as_axes(axis, x.ndim)
        wanted = build(()).result_dtype(x.dtype) if dtype is None else as_dtype(dtype)
        if wanted == BOOL:  # sums of bools as bools are ors, products ands
            either = ufunc is np.add
            truth = Kind(re.Any_ if either else re.All, np.logical_or if either else np.logical_and, not either)
            x = cast(x, BOOL)
            return started(truth, masked(truth, x, where, initial), axes, flag(keepdims), initial)
        if dtype is None and initial is NoValue and (where is NoValue or where is True):
            return re.reduce(build, x, axes, flag(keepdims))
        if where is not NoValue and where is not True or initial is not NoValue:
            signed = ufunc is np.add and initial is not NoValue
            counted = Kind(re.SignedSum, ufunc, re.negative_zero(wanted)) if signed else kind
            x = masked(counted, cast(x, wanted), where, initial)
            return started(counted, x, axes, flag(keepdims), initial)
        return cast(re.reduce(build, cast(x, wanted), axes, flag(keepdims)), wanted)

    return rule


def extreme_rule(ufunc: np.ufunc) -> Rule:
    """max and min."""
    build = re.Max if ufunc is np.maximum else re.Min

    def rule(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NoValue, where: Any = NoValue
    ) -> Node:
        refuse(out=out)
        x = node(a)
        axes = as_axes(axis, x.ndim)
        if initial is NoValue and (where is NoValue or where is True):
            return re.reduce(build, x, axes, flag(keepdims))
        kind = Kind(build, ufunc, (re.lowest if ufunc is np.maximum else re.highest)(x.dtype))
        return started(kind, masked(kind, x, where, initial), axes, flag(keepdims), initial)

    return rule


def truth_rule(ufunc: np.ufunc) -> Rule:
    """any and all."""
    build = re.Any_ if ufunc is np.logical_or else re.All
    kind = Kind(build, ufunc, ufunc.identity)

    def rule(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = NoValue) -> Node:
        refuse(out=out)
        x = node(a)
        if where is not NoValue and where is not True:
            x = masked(kind, cast(x, BOOL), where, NoValue)
        return re.reduce(build, x, as_axes(axis, x.ndim), flag(keepdims))

    return rule


def arg_rule(kind: type[Reduction]) -> Rule:
    """argmax and argmin."""

    def rule(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Node:
        refuse(out=out)
        x = node(a)
        if isinstance(axis, tuple):
            raise TypeError("'tuple' object cannot be interpreted as an integer")
        return re.reduce(kind, x, as_axes(axis, x.ndim), flag(keepdims))

    return rule


for _name, _function in {
    "sum": sum_rule(np.add),
    "prod": sum_rule(np.multiply),
    "any": truth_rule(np.logical_or),
    "all": truth_rule(np.logical_and),
    "argmax": arg_rule(re.ArgMax),
    "argmin": arg_rule(re.ArgMin),
}.items():
    rule(getattr(np, _name), method=_name)(_function)
rule(np.max, np.amax, method="max")(extreme_rule(np.maximum))
rule(np.min, np.amin, method="min")(extreme_rule(np.minimum))


@rule(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Node:
    x = node(a)
    return re.reduce(re.CountNonzero, x, as_axes(axis, x.ndim), flag(keepdims))


# -- means and spreads


@rule(np.mean, method="mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = NoValue
) -> Node:
    refuse(out=out)
    x = node(a)
    axes = as_axes(axis, x.ndim, number=False)
    if dtype is not None:
        if as_dtype(dtype).kind not in "fc":
            raise Unsupported("integer_mean", "dtype")
        x = cast(x, as_dtype(dtype))
    if where is NoValue or where is True:
        return re.reduce(re.Mean, x, axes, flag(keepdims))
    narrow = x.dtype
    x = cast(x, FLOAT64 if narrow.kind in "biu" else "f4" if narrow == np.dtype("f2") else narrow)
    mask = mask_for(where, x)
    total = re.reduce(re.Sum, ar.select(mask, x, ar.zero_like(x)), axes, flag(keepdims))
    count = re.reduce(re.CountNonzero, mask, axes, flag(keepdims))
    return cast(ar.divide(total, cast(count, x.dtype)), narrow if narrow.kind in "fc" else FLOAT64)


def degrees_of_freedom(ddof: Any, correction: Any) -> Any:
    """What `ddof=` and `correction=`, two names of one argument, say. Raises ValueError when both do."""
    if correction is not NoValue:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    if isinstance(ddof, Node):
        raise Unsupported("traced_freedom")
    return ddof


@rule(np.var, method="var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = NoValue,
    mean: Any = NoValue,
    correction: Any = NoValue,
) -> Node:
    refuse(out=out)
    ddof = degrees_of_freedom(ddof, correction)
    x = node(a)
    axes = as_axes(axis, x.ndim, number=False)
    narrow = x.dtype if dtype is None else as_dtype(dtype)
    if narrow.kind in "biu" and dtype is not None:
        raise Unsupported("integer_variance", "dtype")
    if x.dtype.kind == "c" and narrow.kind != "c":
        raise Unsupported("complex_variance", "dtype")
    narrow = FLOAT64 if narrow.kind in "biu" else narrow
    x = cast(x, narrow if narrow != np.dtype("f2") else "f4")  # NumPy sums float16 in float32
    mask = None if where is NoValue or where is True else mask_for(where, x)
    real = ar.real_dtype(x.dtype)
    if mask is None:
        count: Any = re.count_of(x.type, axes)
        number = as_node(count, real)
    else:
        number = cast(re.reduce(re.CountNonzero, mask, axes, keepdims=True), real)

    def kept(values: Node) -> Node:
        return values if mask is None else ar.select(mask, values, ar.zero_like(values))

    if mean is NoValue:
        middle = ar.divide(re.reduce(re.Sum, kept(x), axes, keepdims=True), number)
    else:
        middle = node(mean)
    square = squared(ar.subtract(x, middle))
    total = re.reduce(re.Sum, kept(square), axes, flag(keepdims))
    if mask is None:
        freedom = _degrees_of_freedom(count, ddof, square.dtype)
    else:
        number = cast(re.reduce(re.CountNonzero, mask, axes, flag(keepdims)), square.dtype)
        freedom = elementwise(ar.Maximum(), ar.subtract(number, as_node(float(ddof), square.dtype)), constant(0, square.dtype))
    return cast(ar.divide(total, freedom), ar.real_dtype(narrow))


@rule(np.std, method="std")
def std(*args: Any, **options: Any) -> Node:
    return elementwise(ar.Sqrt(), var(*args, **options))


def squared(x: Node) -> Node:
    """|x|², real."""
    if x.dtype.kind != "c":
        return elementwise(ar.Square(), x)
    return ar.add(elementwise(ar.Square(), apply(ar.Real(), x)), elementwise(ar.Square(), apply(ar.Imag(), x)))


def _degrees_of_freedom(count: int, ddof: Any, dtype: np.dtype) -> Node:
    from jitlab.ir import Extent

    if isinstance(count, Extent) and float(ddof).is_integer():
        return as_node(elementwise(ar.Maximum(), as_node(count - int(ddof)), 0), dtype)
    return constant(max(int(count) - ddof, 0), dtype)


@rule(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    x = node(a)
    axes = as_axes(axis, x.ndim, number=False)
    if weights is None:
        result = re.reduce(re.Mean, x, axes, flag(keepdims))
        if not returned:
            return result
        count = as_node(re.count_of(x.type, axes), result.dtype)
        return result, broadcast_to(count, result.shape)
    w = node(weights)
    dtype = np.result_type(x.dtype, w.dtype, *([FLOAT64] if x.dtype.kind in "biu" else []))
    if tuple(map(int, x.shape)) != tuple(map(int, w.shape)):
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        given = [as_axis(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,))]  # the axes of the weights
        if tuple(map(int, w.shape)) != tuple(int(x.shape[a]) for a in given):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        w = transpose(w, sorted(range(w.ndim), key=given.__getitem__))
        w = expand_dims(w, [a for a in range(x.ndim) if a not in axes])
        w = broadcast_to(w, x.shape)
    w = cast(w, dtype)
    scale = re.reduce(re.Sum, w, axes, flag(keepdims))
    result = ar.divide(re.reduce(re.Sum, ar.multiply(cast(x, dtype), w), axes, flag(keepdims)), scale)
    return (result, broadcast_to(scale, result.shape)) if returned else result

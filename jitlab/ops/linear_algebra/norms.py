"""Norms, condition numbers and ranks: sums, extremes and singular values, so that they fuse with what is around them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitlab.ir import Node, at_least
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, cast, constant, elementwise
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise.comparison import Greater
from jitlab.ops.layout.creation import zeros
from jitlab.ops.layout.views import expand_dims, transpose
from jitlab.ops.numpy_api.arguments import as_axis, node
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule

from .linear_systems import Inv, check_square, linalg_dtype, matrices, square
from .singular_values import SvdVals, rounding_of

FLOAT64, INT64 = np.dtype("f8"), np.dtype("i8")


@rule(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Node:
    """`np.linalg.norm`: of vectors along one axis, of matrices along two; all elements when neither axis nor order is given."""
    value = _inexact(node(x))
    if isinstance(ord, Node):
        raise Unsupported("traced_order", "data_dependent")
    if axis is None:
        if ord is None or (ord in ("f", "fro") and value.ndim == 2) or (_is(ord, 2) and value.ndim == 1):
            return _root_of_squares(value, tuple(range(value.ndim)), bool(keepdims))
        axes = tuple(range(value.ndim))
    elif isinstance(axis, tuple):
        axes = axis
    else:
        try:
            axes = (int(axis),)
        except Exception as error:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from error
    if len(axes) == 1:
        return _vector_norm(value, ord, as_axis(axes[0], value.ndim), bool(keepdims))
    if len(axes) == 2:
        row, column = (as_axis(a, value.ndim) for a in axes)
        if row == column:
            raise ValueError("Duplicate axes given.")
        return _matrix_norm(value, ord, row, column, bool(keepdims))
    raise ValueError("Improper number of dimensions to norm.")


def _vector_norm(x: Node, order: Any, axis: int, keepdims: bool) -> Node:
    axes = (axis,)
    if order is None or _is(order, 2):
        return _root_of_squares(x, axes, keepdims)
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if _is(order, 0):
        return re.reduce(re.Sum, cast(ar.not_equal(x, 0), ar.real_dtype(x.dtype)), axes, keepdims)
    size = elementwise(ar.Abs(), x)
    if _is(order, math.inf):
        return _largest(size, axes, keepdims)
    if _is(order, -math.inf):
        return re.reduce(re.Min, size, axes, keepdims)
    if not _is(order, 1):
        power = order.item() if isinstance(order, (np.generic, np.ndarray)) else order
        if not isinstance(power, (int, float)):
            raise Unsupported("norm_order", order=repr(order))
        total = re.reduce(re.Sum, elementwise(ar.Pow(), size, power), axes, keepdims)
        return elementwise(ar.Pow(), total, np.reciprocal(power, dtype=total.dtype))
    return re.reduce(re.Sum, size, axes, keepdims)


def _matrix_norm(x: Node, order: Any, row: int, column: int, keepdims: bool) -> Node:
    both = tuple(sorted((row, column)))
    if order is None or order in ("fro", "f"):
        return _root_of_squares(x, both, keepdims)
    if _is(order, 2) or _is(order, -2) or order == "nuc":
        moved = transpose(x, [*(a for a in range(x.ndim) if a not in both), row, column])
        values = apply(SvdVals(), matrices(moved))
        last = (values.ndim - 1,)
        if order == "nuc":
            result = re.reduce(re.Sum, values, last)
        else:
            result = _largest(values, last) if order > 0 else re.reduce(re.Min, values, last)
        return expand_dims(result, both) if keepdims else result
    for wanted, summed, kept in ((1, row, column), (math.inf, column, row)):
        if _is(order, wanted) or _is(order, -wanted):
            sums = re.reduce(re.Sum, elementwise(ar.Abs(), x), (summed,))
            axes = (kept - 1 if kept > summed else kept,)
            result = _largest(sums, axes) if order > 0 else re.reduce(re.Min, sums, axes)
            return expand_dims(result, both) if keepdims else result
    raise ValueError("Invalid norm order for matrices.")


def _root_of_squares(x: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    if x.dtype.kind == "c":
        squares = ar.add(elementwise(ar.Square(), apply(ar.Real(), x)), elementwise(ar.Square(), apply(ar.Imag(), x)))
    else:
        squares = elementwise(ar.Square(), x)
    return elementwise(ar.Sqrt(), re.reduce(re.Sum, squares, axes, keepdims))


def _largest(x: Node, axes: tuple[int, ...], keepdims: bool = False) -> Node:
    """The largest of numbers that are 0 or more; of none of them 0."""
    if all(at_least(x.shape[a], 1) for a in axes):
        return re.reduce(re.Max, x, axes, keepdims)
    result = zeros(tuple(n for a, n in enumerate(x.shape) if a not in axes), x.dtype)
    return expand_dims(result, axes) if keepdims else result


def _inexact(x: Node) -> Node:
    return cast(x, FLOAT64) if x.dtype.kind in "biu" else x


def _is(order: Any, number: float) -> bool:
    return not isinstance(order, str) and bool(order == number)


@rule(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Node:
    """`np.linalg.cond`: infinite where the matrix is singular, NaN only where it has one."""
    given = node(x)
    if isinstance(p, Node):
        raise Unsupported("traced_order", "data_dependent")
    if given.ndim >= 2 and not all(at_least(n, 1) for n in given.shape):
        if not all(at_least(n, 1) for n in given.shape[-2:]):
            raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p is None or _is(p, 2) or _is(p, -2):
        value = matrices(given)
        s = apply(SvdVals(), value)
        ends = [_last(s, 0), _last(s, s.shape[-1] - 1)]
        ratio = ar.divide(*(ends[::-1] if p is not None and p < 0 else ends))
    else:
        check_square(given)
        value = square(given)
        matrix = _inexact(given)
        axes = (-2, -1)
        ratio = ar.multiply(norm(matrix, p, axes), norm(apply(Inv(quiet=True), value), p, axes))
        ratio = cast(ratio, ar.real_dtype(linalg_dtype(given.dtype)))
    broken = re.reduce(re.Any_, ar.is_nan(value), (value.ndim - 2, value.ndim - 1))
    lost = ar.greater(ar.is_nan(ratio), broken)  # NaN without one in the matrix
    infinite = constant(np.inf, ratio.dtype)
    return ar.select(lost, infinite, ratio)


@rule(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Node:
    """`np.linalg.matrix_rank`: how many singular values are above the tolerance."""
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    x = node(A)
    if x.ndim < 2:
        return cast(re.reduce(re.Any_, ar.not_equal(x, 0), tuple(range(x.ndim))), INT64)
    value = square(x) if hermitian else matrices(x)
    s = apply(SvdVals(bool(hermitian)), value)
    last = (s.ndim - 1,)
    if tol is None:
        if rtol is None:
            relative = rounding_of(x.shape[-2:], s.dtype)
        else:
            relative = _column(rtol)
        bound = ar.multiply(_largest(s, last, keepdims=True), relative)
    else:
        bound = _column(tol)
    return re.reduce(re.CountNonzero, elementwise(Greater(), s, bound), last)


def _column(x: Any) -> Node:
    value = node(x)
    return expand_dims(value, (value.ndim,))


def _last(s: Node, k: int) -> Node:
    from jitlab.ops.layout.indexing import read_index

    return read_index(s, (Ellipsis, k))

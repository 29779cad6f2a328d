"""Products of arrays: dot, outer, inner, tensordot, kron, cross and their kin, all made of MatMul, multiplications and sums.

`einsum` has a file of its own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import Node, same_extent
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, cast, result_dtype
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.layout import concatenation
from jitlab.ops.layout.indexing import read_index
from jitlab.ops.layout.views import expand_dims, reshape, squeeze, transpose
from jitlab.ops.numpy_api.arguments import as_axis, as_dtype, node, refuse
from jitlab.ops.numpy_api.rules_views import diagonal_view
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule

from . import matrix_products
from .linear_systems import numpys_error

BOOL = np.dtype(bool)


@rule(np.dot, method="dot")
def dot(a: Any, b: Any, out: Any = None) -> Node:
    refuse(out=out)
    return matrix_products.dot(node(a), node(b))


@rule(np.matmul)
def matmul(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Node:
    refuse(out=out, **options)
    return matrix_products.matmul(node(x1), node(x2))


@rule(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Node:
    refuse(out=out)
    x, y = node(a), node(b)
    return matrix_products.outer(reshape(x, (x.type.size,)), reshape(y, (y.type.size,)))


@rule(np.inner)
def inner(a: Any, b: Any, /) -> Node:
    x, y = node(a), node(b)
    if x.ndim == 0 or y.ndim == 0:
        return ar.multiply(x, y)
    if not same_extent(x.shape[-1], y.shape[-1]):
        numpys_error(np.inner, x.type, y.type)
    return tensordot(x, y, ((-1,), (-1,)))


@rule(np.vdot)
def vdot(a: Any, b: Any, /) -> Node:
    x, y = node(a), node(b)
    if not same_extent(x.type.size, y.type.size):
        numpys_error(np.vdot, x.type, y.type)
    return matrix_products.matmul(ar.conj(reshape(x, (x.type.size,))), reshape(y, (y.type.size,)))


@rule(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Node:
    x, y = node(a), node(b)
    if isinstance(axes, (list, tuple)):
        mine, theirs = (list(v) if isinstance(v, (list, tuple)) else [v] for v in axes)
    else:
        mine, theirs = list(range(-operator.index(axes), 0)), list(range(operator.index(axes)))
    if len(mine) != len(theirs):
        raise ValueError("shape-mismatch for sum")
    mine, theirs = [as_axis(m, x.ndim) for m in mine], [as_axis(t, y.ndim) for t in theirs]
    if not all(same_extent(x.shape[m], y.shape[t]) for m, t in zip(mine, theirs, strict=True)):
        raise ValueError("shape-mismatch for sum")
    left = [axis for axis in range(x.ndim) if axis not in mine]
    right = [axis for axis in range(y.ndim) if axis not in theirs]
    summed = math.prod([x.shape[m] for m in mine])
    rows, columns = [x.shape[axis] for axis in left], [y.shape[axis] for axis in right]
    matrix = reshape(moved(x, [*left, *mine]), (math.prod(rows), summed))
    other = reshape(moved(y, [*theirs, *right]), (summed, math.prod(columns)))
    return reshape(matrix_products.matmul(matrix, other), (*rows, *columns))


@rule(np.vecdot)
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: Any = -1, keepdims: Any = False, **options: Any) -> Node:
    """Sums of conj(x1) * x2 along one axis, the others broadcast."""
    refuse(out=out, **options)
    x, y = node(x1), node(x2)
    if x.ndim == 0 or y.ndim == 0:
        numpys_error(np.vecdot, x.type, y.type)
    x, y = _last(x, axis), _last(y, axis)
    if not same_extent(x.shape[-1], y.shape[-1]):
        numpys_error(np.vecdot, x.type, y.type)
    dtype = np.dtype(np.vecdot.resolve_dtypes((x.dtype, y.dtype, None))[-1])
    x, y = ar.conj(cast(x, dtype)), cast(y, dtype)
    if x.ndim == 1 and y.ndim == 1:
        result = matrix_products.matmul(x, y)
    else:
        result = sum_of_products(x, y, 1)
    return expand_dims(result, (as_axis(axis, result.ndim + 1),)) if keepdims else result


@rule(getattr(np, "matvec", None))  # since NumPy 2.2
def matvec(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Node:
    """Each matrix of x1 times each vector of x2."""
    refuse(out=out, **options)
    x, y = node(x1), node(x2)
    if x.ndim < 2 or y.ndim < 1 or not same_extent(x.shape[-1], y.shape[-1]):
        numpys_error(np.matvec, x.type, y.type)
    return matrix_products.matmul(x, y) if y.ndim == 1 else squeeze(matrix_products.matmul(x, expand_dims(y, (y.ndim,))), (-1,))


@rule(getattr(np, "vecmat", None))
def vecmat(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Node:
    """The conjugate of each vector of x1 times each matrix of x2."""
    refuse(out=out, **options)
    x, y = node(x1), node(x2)
    if x.ndim < 1 or y.ndim < 2 or not same_extent(x.shape[-1], y.shape[-2]):
        numpys_error(np.vecmat, x.type, y.type)
    x = ar.conj(x)
    if x.ndim == 1:
        return matrix_products.matmul(x, y)
    return squeeze(matrix_products.matmul(expand_dims(x, (x.ndim - 1,)), y), (-2,))


@rule(np.kron)
def kron(a: Any, b: Any) -> Node:
    """Every element of a times all of b, in blocks."""
    x, y = node(a), node(b)
    if x.ndim == 0 or y.ndim == 0:
        return ar.multiply(x, y)
    ndim = max(x.ndim, y.ndim)
    x, y = (expand_dims(v, tuple(range(ndim - v.ndim))) for v in (x, y))
    shape = tuple(n * m for n, m in zip(x.shape, y.shape, strict=True))
    blocks = ar.multiply(
        expand_dims(x, tuple(range(1, 2 * ndim, 2))), expand_dims(y, tuple(range(0, 2 * ndim, 2)))
    )
    return reshape(blocks, shape)


@rule(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Node:
    """Cross products of vectors with three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = node(a), node(b)
    if x.ndim < 1 or y.ndim < 1:
        raise ValueError("At least one array has zero dimension")
    x, y = _last(x, axisa), _last(y, axisb)
    lengths = [3 if same_extent(v.shape[-1], 3) else int(v.shape[-1]) for v in (x, y)]
    if not {2, 3}.issuperset(lengths):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if 2 in lengths:
        raise Unsupported("two_components")
    dtype = result_dtype(x, y)
    (x0, x1, x2), (y0, y1, y2) = ([read_index(cast(v, dtype), (Ellipsis, k)) for k in range(3)] for v in (x, y))
    parts = [
        ar.subtract(ar.multiply(x1, y2), ar.multiply(x2, y1)),
        ar.subtract(ar.multiply(x2, y0), ar.multiply(x0, y2)),
        ar.subtract(ar.multiply(x0, y1), ar.multiply(x1, y0)),
    ]
    return concatenation.stack(parts, as_axis(axisc, parts[0].ndim + 1))


@rule(np.trace, method="trace")
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Node:
    refuse(out=out)
    x = node(a)
    diagonal = apply(diagonal_view(x.type, offset, axis1, axis2), x)
    if dtype is None:
        return re.reduce(re.Sum, diagonal, (diagonal.ndim - 1,))
    wanted = as_dtype(dtype)
    if wanted == BOOL:
        raise Unsupported("bool_sum", "dtype")
    return cast(re.reduce(re.Sum, cast(diagonal, wanted), (diagonal.ndim - 1,)), wanted)


# helpers, also of `einsum`


def sum_of_products(x: Node, y: Node, axes: int) -> Node:
    """x * y summed over the last `axes` axes, in the dtype that both have."""
    both = ar.multiply(x, y)
    if not axes:
        return both
    return cast(re.reduce(re.Sum, both, tuple(range(both.ndim - axes, both.ndim))), x.dtype)


def moved(x: Node, order: Sequence[int]) -> Node:
    """x with its axes in this order."""
    return x if list(order) == list(range(x.ndim)) else transpose(x, order)


def _last(x: Node, axis: Any) -> Node:
    """x with this axis moved to the end."""
    axis = as_axis(axis, x.ndim)
    return moved(x, [a for a in range(x.ndim) if a != axis] + [axis])

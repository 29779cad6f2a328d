"""Rules for NumPy's functions of whole arrays: reductions, linear algebra."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.ir import Node, plain, same_extent

from . import arithmetic as ar
from . import linear
from . import reductions as re
from .arguments import NoValue, as_axes, as_axis, node, operand, refuse
from .base import Unsupported
from .build import apply, cast, elementwise
from .creation import zeros
from .indexing import read_index
from .rules_elementwise import UFUNCS
from .views import reshape, transpose

Rule = Callable[..., Any]
BOOL, INT64, FLOAT64 = np.dtype(bool), np.dtype("i8"), np.dtype("f8")


# reductions


def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Node:
    from .rules_views import diagonal_view

    refuse(out=out, dtype=dtype)
    x = node(a)
    diagonal = apply(diagonal_view(x.type, offset, axis1, axis2), x)
    return re.reduce(re.Sum, diagonal, (diagonal.ndim - 1,))


def python_sum(iterable: Any, /, start: Any = 0) -> Node:
    """Python's sum: elements of the first axis added up; integers keep their dtype unless Python's own are among them."""
    if isinstance(iterable, (list, tuple)):
        result = operand(start)
        for part in iterable:
            result = ar.add(result, operand(part))
        if not isinstance(result, Node):
            raise Unsupported("the sum of nothing")
        return result
    x = node(iterable)
    if x.ndim == 0:
        raise TypeError("'numpy.float64' object is not iterable")
    dtype = np.dtype(np.add.resolve_dtypes((x.dtype, int, None))[-1])
    total = cast(re.reduce(re.Sum, cast(x, dtype), (0,)), dtype)
    return total if type(start) is int and start == 0 else ar.add(total, operand(start))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Node:
    """`np.linalg.norm` as the root of the sum of squares; other norms are left to NumPy."""
    value = node(x)
    if ord is not None and not (ord == 2 and (isinstance(axis, int) or value.ndim == 1)):
        raise Unsupported("the argument `ord=`")
    if isinstance(axis, tuple) and len(axis) > 2:
        raise ValueError("Improper number of dimensions to norm.")
    if value.dtype.kind in "biu":
        value = cast(value, FLOAT64)
    if value.dtype.kind == "c":
        square = ar.add(elementwise(ar.Square(), apply(ar.Real(), value)), elementwise(ar.Square(), apply(ar.Imag(), value)))
    else:
        square = elementwise(ar.Square(), value)
    return elementwise(ar.Sqrt(), re.reduce(re.Sum, square, as_axes(axis, value.ndim), _flag(keepdims)))


def _flag(keepdims: Any) -> bool:
    return keepdims is not NoValue and bool(keepdims)


def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = NoValue, append: Any = NoValue) -> Node:
    refuse(prepend=prepend, append=append)
    x = node(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if n == 0:
        return x
    if x.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = as_axis(axis, x.ndim)
    for _ in range(operator.index(n)):
        before = (slice(None),) * axis
        later, sooner = read_index(x, (*before, slice(1, None))), read_index(x, (*before, slice(None, -1)))
        x = UFUNCS[np.not_equal](later, sooner) if x.dtype.kind == "b" else ar.subtract(later, sooner)
    return x


# linear algebra


def dot(a: Any, b: Any, out: Any = None) -> Node:
    refuse(out=out)
    return linear.dot(node(a), node(b))


def matmul(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Node:
    refuse(out=out, **options)
    return linear.matmul(node(x1), node(x2))


def outer(a: Any, b: Any, out: Any = None) -> Node:
    refuse(out=out)
    x, y = node(a), node(b)
    return linear.outer(reshape(x, (x.type.size,)), reshape(y, (y.type.size,)))


def inner(a: Any, b: Any, /) -> Node:
    x, y = node(a), node(b)
    if x.ndim == 0 or y.ndim == 0:
        return ar.multiply(x, y)
    if not same_extent(x.shape[-1], y.shape[-1]):
        raise ValueError(
            f"shapes {_text(x.shape)} and {_text(y.shape)} not aligned: {int(x.shape[-1])} (dim {x.ndim - 1}) != "
            f"{int(y.shape[-1])} (dim {y.ndim - 1})"
        )
    return tensordot(x, y, ((-1,), (-1,)))


def vdot(a: Any, b: Any, /) -> Node:
    x, y = node(a), node(b)
    x, y = reshape(x, (x.type.size,)), reshape(y, (y.type.size,))
    if not same_extent(x.shape[0], y.shape[0]):
        raise ValueError("cannot reshape array" if x.ndim != y.ndim else f"vectors of {x.shape[0]} and {y.shape[0]} elements")
    return linear.matmul(ar.conj(x), y)


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
    summed = _product([x.shape[m] for m in mine])
    rows, columns = [x.shape[axis] for axis in left], [y.shape[axis] for axis in right]
    matrix = reshape(_moved(x, [*left, *mine]), (_product(rows), summed))
    other = reshape(_moved(y, [*theirs, *right]), (summed, _product(columns)))
    return reshape(linear.matmul(matrix, other), (*rows, *columns))


def _moved(x: Node, order: Sequence[int]) -> Node:
    return x if list(order) == list(range(x.ndim)) else transpose(x, order)


def _product(extents: Sequence[int]) -> int:
    total: int = 1
    for n in extents:
        total = n * total
    return total


def _text(shape: Sequence[int]) -> str:
    return str(plain(shape)).replace(" ", "")


FUNCTIONS: dict[Any, Rule] = {
    sum: python_sum,
    np.linalg.norm: norm,
    np.trace: trace,
    np.diff: diff,
    np.dot: dot,
    np.matmul: matmul,
    np.outer: outer,
    np.inner: inner,
    np.vdot: vdot,
    np.tensordot: tensordot,
}


def outer_rule(rule: Rule) -> Rule:
    def outer_of(a: Any, b: Any, /, **options: Any) -> Node:
        x, y = node(a), node(b)
        result: Node = rule(reshape(x, (*x.shape, *(1 for _ in y.shape))), y, **options)
        return result

    return outer_of


METHODS: dict[str, Rule] = {
    "trace": trace,
    "dot": dot,
}

UPDATES: dict[Any, Rule] = {}
UPDATE_METHODS: dict[str, Rule] = {}

__all__ = ["FUNCTIONS", "METHODS", "UPDATES", "UPDATE_METHODS", "zeros"]

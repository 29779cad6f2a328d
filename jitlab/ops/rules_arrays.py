"""Rules for NumPy's functions of whole arrays: reductions, creation, joining, linear algebra, picking by index."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.ir import Extent, Moving, Node, NotRolled, Symbolic, plain, same_extent

from . import arithmetic as ar
from . import joining, linear
from . import reductions as re
from .arguments import NoValue, as_axes, as_axis, as_count, as_dtype, as_shape, node, nodes, operand, refuse
from .base import Unsupported, broadcast_shapes
from .build import apply, as_node, cast, constant, dtype_of, elementwise
from .creation import Eye, LinSpace, Range, Tri, fill, zeros
from .indexing import Gather, Take, read_index, write_index
from .moving import length_of_range
from .rules_elementwise import UFUNCS, choose
from .views import View, broadcast_to, expand_dims, reshape, transpose

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


# creation


def filled_rule(value: int) -> Rule:
    """zeros, ones, and empty as zeros."""

    def rule(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Node:
        refuse(order=order, like=like)
        return fill(as_shape(shape), value, FLOAT64 if dtype is None else as_dtype(dtype))

    return rule


def uninitialised(
    shape: Any, dtype: Any = None, buffer: Any = None, offset: Any = 0, strides: Any = None, order: Any = None
) -> Node:
    """`np.ndarray(shape, dtype)`: what `np.empty` gives."""
    refuse(buffer=buffer, strides=strides)
    refuse(order="C" if order is None else order)
    return fill(as_shape(shape), 0, FLOAT64 if dtype is None else as_dtype(dtype))


def filled_like_rule(value: int) -> Rule:
    def rule(
        a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None
    ) -> Node:
        refuse(order=order, subok=subok)
        x = node(a)
        return fill(x.shape if shape is None else as_shape(shape), value, x.dtype if dtype is None else as_dtype(dtype))

    return rule


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Node:
    refuse(order=order, like=like)
    value = operand(fill_value)
    wanted = np.dtype(as_node(value).dtype) if dtype is None else as_dtype(dtype)
    return _full(as_shape(shape), value, wanted)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Node:
    refuse(order=order, subok=subok)
    x = node(a)
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    return _full(x.shape if shape is None else as_shape(shape), operand(fill_value), wanted)


def _full(shape: tuple[int, ...], value: Any, dtype: np.dtype) -> Node:
    if type(value) is int and dtype.kind in "iu":
        value = dtype.type(value)
    value = as_node(value, dtype)
    return broadcast_to(value, shape) if value.ndim else fill(shape, value)


def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any) -> Node:
    """`np.arange`; its length has to be known, so the bounds are numbers of the program."""
    refuse(like=like)
    given = dict(zip(("start", "stop", "step", "dtype"), args, strict=False))
    if set(given) & set(named) or len(args) > 4 or set(named) - {"start", "stop", "step"}:
        raise Unsupported("the arguments of this arange")
    given.update(named)
    dtype = given.pop("dtype", dtype)
    start, stop, step = given.get("start", 0), given.get("stop"), given.get("step")
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    numbers = start, stop, step = tuple(n.extent if isinstance(n, Symbolic) else n for n in (start, stop, step))
    if any(isinstance(n, Node) for n in numbers):
        raise Unsupported("arange with traced bounds: how many elements there are depends on the data", "data_dependent")
    if not all(isinstance(n, (int, float, np.integer, np.floating)) and not isinstance(n, bool) for n in numbers):
        raise Unsupported("arange of other numbers than integers and floats", "dtype")
    wanted = _range_dtype(*numbers) if dtype is None else as_dtype(dtype)
    if wanted.kind not in "iuf":
        raise Unsupported("arange of this dtype", "dtype")
    length = _range_length(*numbers)
    return apply(Range((length,)), as_node(_in(start, wanted), wanted), as_node(_in(start + step, wanted), wanted))


def _in(number: Any, dtype: np.dtype) -> Any:
    return number if isinstance(number, Extent) else dtype.type(number)


def _range_dtype(*numbers: Any) -> np.dtype:
    return np.dtype(np.result_type(*(np.asarray(int(n) if isinstance(n, Extent) else n).dtype for n in numbers)))


def _range_length(start: Any, stop: Any, step: Any) -> int:
    """How many elements arange has; an Extent where the bounds are."""
    if isinstance(step, Moving) or (isinstance(step, float) and any(isinstance(n, Moving) for n in (start, stop))):
        raise NotRolled("extents", "np.arange with steps that move with the loop")
    if step == 0:
        raise ZeroDivisionError("division by zero")
    if any(isinstance(n, Moving) for n in (start, stop)):
        return length_of_range(start, stop, step)
    if all(isinstance(n, (int, np.integer)) for n in (start, stop, step)):
        span = stop - start if step > 0 else start - stop
        if int(span) <= 0:
            return 0
        stride = abs(int(step))
        exact = span // stride if isinstance(span, Extent) else 0
        if isinstance(exact, Extent) and int(exact) * stride == int(span):
            return exact
        return -(-int(span) // stride)
    length = np.ceil((float(stop) - float(start)) / float(step))
    if np.isnan(length):
        raise ValueError("arange: cannot compute length")
    return max(int(length), 0)


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    num = as_count(num)
    if int(num) < 0:
        raise ValueError(f"Number of samples, {int(num)}, must be non-negative.")
    first, last = operand(start), operand(stop)
    if any(np.ndim(x) if not isinstance(x, Node) else x.ndim for x in (first, last)) or retstep:
        raise Unsupported("linspace between arrays, or with its step")
    inexact = np.dtype(np.result_type(dtype_of(first), dtype_of(last), *([] if _any_inexact(first, last) else [FLOAT64])))
    if inexact.kind == "c":
        raise Unsupported("linspace of complex numbers", "dtype")
    wanted = inexact if dtype is None else as_dtype(dtype)
    steps = num - 1 if endpoint else num
    result = apply(LinSpace((num,), bool(endpoint)), as_node(first, inexact), as_node(last, inexact), as_node(steps, INT64))
    if wanted.kind in "iu":
        from .functions import Floor

        result = elementwise(Floor(), result)
    return cast(result, wanted)


def _any_inexact(*xs: Any) -> bool:
    return any(dtype_of(x).kind in "fc" for x in xs)


def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Node:
    refuse(order=order, like=like)
    shape = as_shape((N, N if M is None else M))
    return cast(apply(Eye((shape[0], shape[1]), operator.index(k))), as_dtype(dtype))


def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Node:
    return eye(n, dtype=FLOAT64 if dtype is None else dtype, like=like)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Node:
    refuse(like=like)
    shape = as_shape((N, N if M is None else M))
    return cast(apply(Tri((shape[0], shape[1]), operator.index(k))), as_dtype(dtype))


def tril(m: Any, k: Any = 0) -> Node:
    return _triangle(node(m), operator.index(k), below=True)


def triu(m: Any, k: Any = 0) -> Node:
    return _triangle(node(m), operator.index(k), below=False)


def _triangle(x: Node, k: int, below: bool) -> Node:
    if x.ndim == 1:
        x = broadcast_to(x, (x.shape[0], x.shape[0]))
    if x.ndim == 0:
        raise Unsupported("a triangle of a number")
    mask = apply(Tri((x.shape[-2], x.shape[-1]), k if below else k - 1))
    nothing = constant(0, x.dtype)
    return ar.select(mask, x, nothing) if below else ar.select(mask, nothing, x)


def diag(v: Any, k: Any = 0) -> Node:
    from .rules_views import diagonal_view

    x, k = node(v), operator.index(k)
    if x.ndim == 1:
        return joining.diagonal_of(x, k)
    if x.ndim == 2:
        return apply(diagonal_view(x.type, k, 0, 1), x)
    raise ValueError("Input must be 1- or 2-d.")


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: Any = 0,
    ndmax: Any = 0,
    like: Any = None,
) -> Node:
    refuse(order=order, like=like)
    if ndmax or isinstance(copy, Node):
        raise Unsupported("the argument `ndmax=`")
    result = node(object) if dtype is None else _literal_array(object, as_dtype(dtype))
    missing = int(ndmin) - result.ndim
    return expand_dims(result, tuple(range(missing))) if missing > 0 else result


def asarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Node:
    refuse(order=order, **options)
    return array(a, dtype)


def _literal_array(value: Any, dtype: np.dtype) -> Node:
    if isinstance(value, int) and dtype.kind in "iu" and not isinstance(value, Extent):
        value = dtype.type(value)
    return as_node(operand(value), dtype)


def meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> tuple[Node, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    arrays = [reshape(node(x), (node(x).type.size,)) for x in xi]
    rank = len(arrays)
    axes = list(range(rank))
    if indexing == "xy" and rank > 1:
        axes[0], axes[1] = 1, 0
    shape: list[int] = [1] * rank
    for x, axis in zip(arrays, axes, strict=True):
        shape[axis] = x.shape[0]
    parts = [expand_dims(x, tuple(a for a in range(rank) if a != axis)) for x, axis in zip(arrays, axes, strict=True)]
    return tuple(parts if sparse else [broadcast_to(x, shape) for x in parts])


def broadcast_arrays(*args: Any, subok: Any = False) -> tuple[Node, ...]:
    refuse(subok=subok or None)
    arrays = [node(a) for a in args]
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def indices(dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    shape, wanted = as_shape(dimensions), as_dtype(dtype)
    parts = [_along(as_node(0), n, axis, len(shape), wanted) for axis, n in enumerate(shape)]
    if sparse:
        return tuple(parts)
    return joining.stack([broadcast_to(x, shape) for x in parts], 0)


def _along(zero: Node, n: int, axis: int, ndim: int, dtype: np.dtype) -> Node:
    """0, 1, ... n-1 along one of ndim axes."""
    numbers = apply(Range((n,)), cast(zero, dtype), constant(1, dtype))
    return expand_dims(numbers, tuple(a for a in range(ndim) if a != axis))


# joining


def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Node:
    refuse(out=out, casting=casting)
    parts = nodes(arrays)
    return joining.concatenate(parts, None if axis is None else operator.index(axis), _joined_dtype(parts, dtype))


def _joined_dtype(parts: Sequence[Node], dtype: Any) -> np.dtype | None:
    if dtype is None:
        return None
    wanted = as_dtype(dtype)
    for part in parts:
        if not np.can_cast(part.dtype, wanted, "same_kind"):
            raise TypeError(f"Cannot cast array data from {part.dtype!r} to {wanted!r} according to the rule 'same_kind'")
    return wanted


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Node:
    refuse(out=out, casting=casting)
    parts = nodes(arrays)
    return joining.stack(parts, operator.index(axis), _joined_dtype(parts, dtype))


def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Node:
    refuse(casting=casting)
    parts = [_at_least(x, 2) for x in nodes(tup)]
    return joining.concatenate(parts, 0, _joined_dtype(parts, dtype))


def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Node:
    refuse(casting=casting)
    parts = [_at_least(x, 1) for x in nodes(tup)]
    return joining.concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, _joined_dtype(parts, dtype))


def dstack(tup: Any) -> Node:
    return joining.concatenate([_at_least(x, 3) for x in nodes(tup)], 2)


def column_stack(tup: Any) -> Node:
    parts = [transpose(_at_least(x, 2)) if x.ndim < 2 else x for x in nodes(tup)]
    return joining.concatenate(parts, 1)


def _at_least(x: Node, ndim: int) -> Node:
    """np.atleast_1d, 2d, 3d: a vector is a row in 2-d, and its axis is the middle one in 3-d."""
    if x.ndim >= ndim:
        return x
    if ndim == 3:
        return expand_dims(x, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.ndim])
    return expand_dims(x, tuple(range(ndim - x.ndim)))


def append(arr: Any, values: Any, axis: Any = None) -> Node:
    return joining.concatenate([node(arr), node(values)], None if axis is None else operator.index(axis))


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Node:
    x = node(array)
    if mode != "constant" or set(options) - {"constant_values"}:
        raise Unsupported("the argument `mode=`")
    if any(isinstance(v, Node) for v in _leaves(pad_width)) or isinstance(pad_width, dict):
        raise Unsupported("widths that are traced or a dict", "data_dependent")
    widths = [tuple(_widths(pair)) for pair in _pairs(pad_width, x.ndim)]
    for pair in widths:
        if min(int(n) for n in pair) < 0:
            raise ValueError("index can't contain negative values")
    values = _pairs(options.get("constant_values", 0), x.ndim)
    if all(pair == values[0] and pair[0] == pair[1] for pair in values) and values:
        values = [(values[0][0],) * 2] * x.ndim  # one and the same object: written once
    return joining.pad(x, [(before, after) for before, after in widths], values)


def _widths(pair: tuple[Any, Any]) -> list[int]:
    for n in pair:
        if isinstance(n, (float, np.floating)):
            raise TypeError("`pad_width` must be of integral type.")
    return [as_count(n) for n in pair]


def _pairs(given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """(before, after) for each axis from a number, (n,), (before, after), ((before, after),) or a list of those."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, (list, tuple)):
        return [(given, given)] * ndim
    if not any(isinstance(v, (list, tuple)) for v in given):
        if len(given) == 1:
            return [(given[0], given[0])] * ndim
        if len(given) == 2:
            return [(given[0], given[1])] * ndim
        raise ValueError(f"operands could not be broadcast together with remapped shapes: {len(given)} and ({ndim}, 2)")
    pairs = [tuple(v) if isinstance(v, (list, tuple)) else (v, v) for v in given]
    pairs = [pair * 2 if len(pair) == 1 else pair for pair in pairs]
    if len(pairs) == 1:
        pairs = pairs * ndim
    if len(pairs) != ndim or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"operands could not be broadcast together with remapped shapes: {len(given)} and ({ndim}, 2)")
    return [(a, b) for a, b in pairs]


def _leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def repeat(a: Any, repeats: Any, axis: Any = None) -> Node:
    if isinstance(repeats, (Node, list, tuple, np.ndarray)):
        raise Unsupported("a count for each element", "data_dependent")
    return joining.repeat(node(a), as_count(repeats), axis)


def tile(A: Any, reps: Any) -> Node:
    if isinstance(reps, (Node, np.ndarray)):
        raise Unsupported("counts that are an array", "data_dependent")
    counts = tuple(as_count(n) for n in reps) if isinstance(reps, (list, tuple)) else (as_count(reps),)
    if any(int(n) < 0 for n in counts):
        raise ValueError("negative dimensions are not allowed")
    return joining.tile(node(A), counts)


def roll(a: Any, shift: Any, axis: Any = None) -> Node:
    x = node(a)
    if isinstance(shift, Node) or isinstance(axis, Node):
        raise Unsupported("a shift that is a traced value", "data_dependent")
    if isinstance(shift, (tuple, list)) or isinstance(axis, (tuple, list)):
        shifts, axes = np.broadcast_arrays(np.asarray(shift), np.asarray(axis))
        if axis is None or shifts.ndim > 1:
            raise Unsupported("several shifts of a flat array")
        for one, along in zip(shifts.flat, axes.flat, strict=True):
            x = joining.roll(x, int(one), int(along))
        return x
    return joining.roll(x, operator.index(shift), axis)


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


# picking by index


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Node:
    refuse(out=out)
    if mode != "raise":
        raise Unsupported("the argument `mode=`")
    x = node(a)
    if axis is None:
        x, axis = reshape(x, (x.type.size,)), 0
    axis = as_axis(axis, x.ndim)
    where = node(indices)
    if where.dtype.kind not in "biu" or where.dtype == np.dtype("u8"):
        raise TypeError(f"Cannot cast array data from {where.dtype!r} to dtype('int64') according to the rule 'safe'")
    if int(x.shape[axis]) == 0 and int(where.type.size):
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return apply(Take(axis), x, cast(where, INT64) if where.dtype.kind == "b" else where)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Node:
    x, where = node(arr), node(indices)
    if where.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if where.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        x, axis = reshape(x, (x.type.size,)), 0
    if x.ndim != where.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = as_axis(axis, x.ndim)
    positions = []
    for other, n in enumerate(x.shape):
        positions.append(where if other == axis else _along(constant(0), n, other, x.ndim, INT64))
    broadcast_shapes(*(p.shape for p in positions))
    return apply(Gather(tuple(range(x.ndim))), x, *positions)


def getitem(x: Any, index: Any) -> Node:
    """`x[index]` as a value: basic subscripts, integer arrays and mixtures of both."""
    return read_index(node(x), index)


def setitem(x: Any, index: Any, value: Any) -> Node:
    """x after `x[index] = value`."""
    return write_index(node(x), index, operand(value))


# methods


def astype(
    x: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True, device: Any = None
) -> Node:
    refuse(order=order)
    value, wanted = node(x), as_dtype(dtype)
    if not np.can_cast(value.dtype, wanted, casting):
        raise TypeError(f"Cannot cast array data from {value.dtype!r} to {wanted!r} according to the rule '{casting}'")
    return cast(value, wanted)


def copy(x: Any, order: Any = "K", subok: Any = False) -> Node:
    """A value is its own copy: what is written later makes a new value."""
    refuse(order=order)
    return node(x)


def flatten(x: Any, order: Any = "C") -> Node:
    value = node(x)
    if order not in ("C", "K", "A"):
        value = transpose(value)
    return reshape(value, (value.type.size,))


# functions that write into their first argument: each rule gives its new value


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Node:
    x, value = node(dst), operand(src)
    if not np.can_cast(dtype_of(value) if type(value) not in (int, float, complex) else x.dtype, x.dtype, casting):
        raise TypeError(f"Cannot cast array data from {dtype_of(value)!r} to {x.dtype!r} according to the rule '{casting}'")
    if type(value) in (int, float, complex):
        refuse(casting=casting)
        if np.dtype(np.result_type(x.dtype, value)) != x.dtype:
            raise Unsupported("copying a number of another kind")
        value = x.dtype.type(value)  # a Python integer has to fit
    new = broadcast_to(as_node(value, x.dtype), x.shape)
    return new if where is True else choose(broadcast_to(node(where), x.shape), new, x)


def fill_method(x: Any, value: Any) -> Node:
    target = node(x)
    number = operand(value)
    if isinstance(number, Node) and number.ndim:
        raise ValueError("setting an array element with a sequence.")
    return _full(target.shape, number, target.dtype)


def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> Node:
    from .rules_views import diagonal_view
    from .views import Update

    x, value = node(a), operand(val)
    if x.ndim != 2 or wrap or (isinstance(value, Node) and value.ndim):
        raise Unsupported("filling other diagonals than a matrix's with a number")
    view: View = diagonal_view(x.type, 0, 0, 1)
    return apply(Update(view.map, view.shape), x, _full(view.shape, value, x.dtype))


FUNCTIONS: dict[Any, Rule] = {
    sum: python_sum,
    np.linalg.norm: norm,
    np.trace: trace,
    np.zeros: filled_rule(0),
    np.ones: filled_rule(1),
    np.empty: filled_rule(0),
    np.ndarray: uninitialised,
    np.zeros_like: filled_like_rule(0),
    np.ones_like: filled_like_rule(1),
    np.empty_like: filled_like_rule(0),
    np.full: full,
    np.full_like: full_like,
    np.arange: arange,
    np.linspace: linspace,
    np.eye: eye,
    np.identity: identity,
    np.tri: tri,
    np.tril: tril,
    np.triu: triu,
    np.diag: diag,
    np.array: array,
    np.asarray: asarray,
    np.asanyarray: asarray,
    np.ascontiguousarray: lambda a, dtype=None, **options: _at_least(asarray(a, dtype, **options), 1),
    np.copy: copy,
    np.meshgrid: meshgrid,
    np.indices: indices,
    np.broadcast_arrays: broadcast_arrays,
    np.concatenate: concatenate,
    np.stack: stack,
    np.vstack: vstack,
    np.hstack: hstack,
    np.dstack: dstack,
    np.column_stack: column_stack,
    np.append: append,
    np.pad: pad,
    np.repeat: repeat,
    np.tile: tile,
    np.roll: roll,
    np.diff: diff,
    np.dot: dot,
    np.matmul: matmul,
    np.outer: outer,
    np.inner: inner,
    np.vdot: vdot,
    np.tensordot: tensordot,
    np.take: take,
    np.take_along_axis: take_along_axis,
}


def outer_rule(rule: Rule) -> Rule:
    def outer_of(a: Any, b: Any, /, **options: Any) -> Node:
        x, y = node(a), node(b)
        result: Node = rule(reshape(x, (*x.shape, *(1 for _ in y.shape))), y, **options)
        return result

    return outer_of



METHODS: dict[str, Rule] = {
    "trace": trace,
    "astype": astype,
    "copy": copy,
    "flatten": flatten,
    "dot": dot,
    "take": take,
    "repeat": repeat,
    "__getitem__": getitem,
}

UPDATES: dict[Any, Rule] = {np.copyto: copyto, np.fill_diagonal: fill_diagonal}
UPDATE_METHODS: dict[str, Rule] = {"fill": fill_method, "__setitem__": setitem}

__all__ = ["FUNCTIONS", "METHODS", "UPDATES", "UPDATE_METHODS", "zeros"]

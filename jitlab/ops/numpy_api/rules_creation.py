"""Rules for NumPy's functions that make arrays: zeros, full, arange, linspace, eye, array, meshgrid and their kin."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ir import Extent, Moving, Node, NotRolled, Symbolic
from jitlab.ops.base import Unsupported, broadcast_shapes
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise, result_dtype
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise.comparison import LogicalOr
from jitlab.ops.elementwise.math_functions import Floor, Log10
from jitlab.ops.layout import concatenation
from jitlab.ops.layout.creation import Eye, LinSpace, Range, Tri, fill, numbers_along
from jitlab.ops.layout.moving_subscripts import length_of_range
from jitlab.ops.layout.views import Update, View, assigned, broadcast_to, expand_dims, normalize_axis, reshape, transpose
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule
from jitlab.ops.runtime_checks import checked

from .arguments import as_count, as_dtype, as_shape, node, operand, refuse
from .rules_joining import at_least

Rule = Callable[..., Any]
INT64, FLOAT64 = np.dtype("i8"), np.dtype("f8")


def filled_rule(value: int) -> Rule:
    """zeros, ones, and empty as zeros."""

    def filled(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Node:
        refuse(order=order, like=like)
        check_device(device)
        return fill(as_shape(shape), value, FLOAT64 if dtype is None else as_dtype(dtype))

    return filled


def check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


rule(np.zeros, np.empty)(filled_rule(0))
rule(np.ones)(filled_rule(1))


@rule(np.ndarray)
def uninitialised(
    shape: Any, dtype: Any = None, buffer: Any = None, offset: Any = 0, strides: Any = None, order: Any = None
) -> Node:
    """`np.ndarray(shape, dtype)`: what `np.empty` gives."""
    refuse(buffer=buffer, strides=strides)
    refuse(order="C" if order is None else order)
    return fill(as_shape(shape), 0, FLOAT64 if dtype is None else as_dtype(dtype))


def filled_like_rule(value: int) -> Rule:
    def filled_like(
        a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None
    ) -> Node:
        refuse(order=order, subok=subok)
        check_device(device)
        x = node(a)
        return fill(x.shape if shape is None else as_shape(shape), value, x.dtype if dtype is None else as_dtype(dtype))

    return filled_like


rule(np.zeros_like, np.empty_like)(filled_like_rule(0))
rule(np.ones_like)(filled_like_rule(1))


@rule(np.full)
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Node:
    refuse(order=order, like=like)
    check_device(device)
    value = operand(fill_value)
    wanted = np.dtype(as_node(value).dtype) if dtype is None else as_dtype(dtype)
    return filled_with(as_shape(shape), value, wanted)


@rule(np.full_like)
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
    check_device(device)
    x = node(a)
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    return filled_with(x.shape if shape is None else as_shape(shape), operand(fill_value), wanted)


def filled_with(shape: tuple[int, ...], value: Any, dtype: np.dtype) -> Node:
    """One value, or an array of them that broadcasts, everywhere."""
    if type(value) is int and dtype.kind in "iu":
        value = dtype.type(value)
    value = as_node(value, dtype)
    return assigned(value, shape) if value.ndim else fill(shape, value)


@rule(np.arange)
def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any) -> Node:
    """`np.arange`; its length has to be known, so the bounds are numbers of the program."""
    refuse(like=like)
    check_device(device)
    given = dict(zip(("start", "stop", "step", "dtype"), args, strict=False))
    if set(given) & set(named) or len(args) > 4 or set(named) - {"start", "stop", "step"}:
        raise Unsupported("arange_arguments")
    given.update(named)
    dtype = given.pop("dtype", dtype)
    start, stop, step = given.get("start"), given.get("stop"), given.get("step")
    if stop is None:
        if start is None or "start" in named:
            raise TypeError("arange() requires stop to be specified.")
        start, stop = 0, start
    start = 0 if start is None else start
    step = 1 if step is None else step
    numbers = start, stop, step = tuple(n.extent if isinstance(n, Symbolic) else n for n in (start, stop, step))
    if any(isinstance(n, Node) for n in numbers):
        raise Unsupported("arange_bounds", "data_dependent")
    if not all(isinstance(n, (int, float, np.integer, np.floating)) for n in numbers):
        made = np.arange(*numbers, dtype=dtype)  # complex numbers, strings: NumPy decides
        as_dtype(made.dtype)
        return constant(made)
    numbers = start, stop, step = tuple(int(n) if isinstance(n, bool) else n for n in numbers)
    wanted = _range_dtype(*numbers) if dtype is None else as_dtype(dtype)
    length = _range_length(*numbers)
    from_negative_zero = wanted.kind == "f" and isinstance(start, (float, np.floating)) and str(start) == "-0.0"
    if wanted.kind not in "iuf" or from_negative_zero:  # -0.0 + 0 * step, as a loop has the first element, is 0.0
        if wanted.kind in "cbf" and not any(isinstance(n, Extent) for n in (*numbers, length)):
            return constant(np.arange(*numbers, dtype=wanted))
        raise Unsupported("arange_dtype", "dtype")
    first = _in(start, wanted)
    second = _in(start + step, wanted) if int(length) > 1 else first
    return apply(Range((length,)), as_node(first, wanted), as_node(second, wanted))


def _in(number: Any, dtype: np.dtype) -> Any:
    return number if isinstance(number, Extent) else dtype.type(number)


def _range_dtype(*numbers: Any) -> np.dtype:
    return np.dtype(np.result_type(*(np.asarray(int(n) if isinstance(n, Extent) else n).dtype for n in numbers)))


def _range_length(start: Any, stop: Any, step: Any) -> int:
    """How many elements arange has; an Extent where the bounds are."""
    if isinstance(step, Moving) or (isinstance(step, float) and any(isinstance(n, Moving) for n in (start, stop))):
        raise NotRolled("extents", "moving_steps")
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
    span = float(stop) - float(start)
    steps = span / float(step)
    if steps == 0 and span:  # less than a number can say
        return 0 if np.signbit(steps) else 1
    length = np.ceil(steps)
    if np.isnan(length):
        raise ValueError("arange: cannot compute length")
    if np.isinf(length):
        raise OverflowError("cannot convert float infinity to integer")
    return max(int(length), 0)


@rule(np.linspace)
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
    check_device(device)
    num = as_count(num)
    if int(num) < 0:
        raise ValueError(f"Number of samples, {int(num)}, must be non-negative.")
    first, last = operand(start), operand(stop)
    inexact = np.dtype(result_dtype(first, last, 0.0))
    if inexact.kind not in "fc":
        inexact = FLOAT64
    wanted = inexact if dtype is None else as_dtype(dtype)
    steps = num - 1 if endpoint else num
    arrays = any(np.ndim(x) if not isinstance(x, Node) else x.ndim for x in (first, last))
    one, other = as_node(first, inexact), as_node(last, inexact)
    count = as_node(steps, INT64)
    step: Any = None
    if arrays or inexact.kind == "c" or (wanted.kind in "iu" and retstep):
        result, step = _linspace_between(one, other, num, bool(endpoint), steps, axis)
    else:
        if int(axis) not in (0, -1):
            raise np.exceptions.AxisError(int(axis), 1)
        result = apply(LinSpace((num,), bool(endpoint)), one, other, count)
    if wanted.kind in "iu":
        result = elementwise(Floor(), result)
    result = cast(result, wanted)
    if not retstep:
        return result
    if int(steps) <= 0:
        return result, constant(np.nan)
    return result, step if step is not None else ar.divide(ar.subtract(other, one), cast(count, inexact))


def _linspace_between(
    start: Node, stop: Node, num: int, endpoint: bool, steps: int, axis: Any
) -> tuple[Node, Node | None]:
    """Arrays of linear sequences; NumPy divides first when any step is too small to be told from 0."""
    delta = ar.subtract(stop, start)
    numbers = apply(Range((num,)), constant(0, INT64), constant(1, INT64))
    y = cast(expand_dims(numbers, tuple(range(1, delta.ndim + 1))), ar.real_dtype(delta.dtype))
    y = cast(y, delta.dtype)
    step = None
    if int(steps) > 0:
        count = as_node(steps, delta.dtype)
        step = ar.divide(delta, count)
        flat = re.reduce(re.Any_, ar.equal(step, constant(0, step.dtype)), tuple(range(step.ndim)))
        flat = broadcast_to(flat, broadcast_shapes(y.shape, delta.shape))
        y = ar.select(flat, ar.multiply(ar.divide(y, count), delta), ar.multiply(y, step))
    else:
        y = ar.multiply(y, delta)
    y = ar.add(y, start)
    if endpoint and int(num) > 1:
        whole = [y.shape[a] for a in range(1, y.ndim)]
        last = expand_dims(broadcast_to(stop, whole), (0,))
        region = ((num - 1, 1, 0), *((0, 1, a) for a in range(1, y.ndim)))
        y = apply(Update(tuple(region), last.shape), y, last)
    return first_axis_to(y, axis), step


def first_axis_to(y: Node, axis: Any) -> Node:
    """np.moveaxis(y, 0, axis)."""
    to = normalize_axis(axis, y.ndim)
    order = list(range(1, y.ndim))
    order.insert(to, 0)
    return transpose(y, order) if to else y


@rule(np.logspace)
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0
) -> Node:
    """base ** linspace(start, stop)."""
    from jitlab.ops.table import FUNCTIONS

    first, last, foot = operand(start), operand(stop), operand(base)
    if isinstance(foot, Node) and foot.ndim:
        shape = broadcast_shapes(foot.shape, *(as_node(x).shape for x in (first, last)))
        missing = len(shape)
        first, last, foot = (_of_rank(as_node(x), missing) for x in (first, last, foot))
        foot = expand_dims(foot, (axis if axis >= 0 else axis + missing + 1,))
    y = linspace(first, last, num, endpoint, axis=axis)
    result: Node = FUNCTIONS[np.power](foot, y)
    return result if dtype is None else cast(result, as_dtype(dtype))


def _of_rank(x: Node, ndim: int) -> Node:
    return expand_dims(x, tuple(range(ndim - x.ndim)))


@rule(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0
) -> Node:
    """Numbers of equal ratio; the ends are exactly those that were asked for."""
    from jitlab.ops.table import FUNCTIONS

    first, last = operand(start), operand(stop)
    num = as_count(num)
    kind = np.dtype(np.result_type(result_dtype(first, last, float(int(num))), FLOAT64 if dtype is None else as_dtype(dtype)))
    wanted = kind if dtype is None else as_dtype(dtype)
    one, other = as_node(first, kind), as_node(last, kind)
    zero = constant(0, kind)
    if any(not isinstance(given, Node) and given == 0 for given in (first, last)):
        raise ValueError("Geometric sequence cannot include zero")
    none = elementwise(LogicalOr(), _any(ar.equal(one, zero)), _any(ar.equal(other, zero)))
    if any(isinstance(given, Node) for given in (first, last)):
        one = checked(one, ar.equal(none, False), "ValueError", "Geometric sequence cannot include zero")
    sign: Node = FUNCTIONS[np.sign](one)
    begin, end = ar.divide(one, sign), ar.divide(other, sign)
    exponents = (elementwise(Log10(), begin), elementwise(Log10(), end))
    result = logspace(*exponents, num=num, endpoint=endpoint, base=10.0, dtype=kind)
    for place, value, is_there in ((0, begin, int(num) > 0), (num - 1, end, int(num) > 1 and endpoint)):
        if is_there:
            row = expand_dims(broadcast_to(value, result.shape[1:]), (0,))
            region = ((place, 1, 0), *((0, 1, a) for a in range(1, result.ndim)))
            result = apply(Update(tuple(region), row.shape), result, row)
    return cast(first_axis_to(ar.multiply(result, sign), axis), wanted)


def _any(x: Node) -> Node:
    return re.reduce(re.Any_, x, tuple(range(x.ndim)))


@rule(np.eye)
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Node:
    refuse(order=order, like=like)
    check_device(device)
    shape = as_shape((N, N if M is None else M))
    return cast(apply(Eye((shape[0], shape[1]), operator.index(k))), FLOAT64 if dtype is None else as_dtype(dtype))


@rule(np.identity)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Node:
    return eye(n, dtype=FLOAT64 if dtype is None else dtype, like=like)


@rule(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Node:
    refuse(like=like)
    shape = as_shape((N, N if M is None else M))
    return cast(apply(Tri((shape[0], shape[1]), operator.index(k))), as_dtype(dtype))


@rule(np.array)
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
        raise Unsupported("argument_of", name="ndmax")
    result = node(object) if dtype is None else _literal_array(object, as_dtype(dtype))
    missing = int(ndmin) - result.ndim
    return expand_dims(result, tuple(range(missing))) if missing > 0 else result


@rule(np.asarray, np.asanyarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None) -> Node:
    """A value; that NumPy gives the array itself where it can is a view's rule."""
    refuse(order=order, like=like)
    check_device(device)
    if copy is False and (not isinstance(a, Node) or (dtype is not None and as_dtype(dtype) != a.dtype)):
        raise ValueError(
            "Unable to avoid copy while creating an array as requested.\nIf using `np.array(obj, copy=False)` replace it with "
            "`np.asarray(obj)` to allow a copy when needed (no behavior change in NumPy 1.x)."
        )
    return array(a, dtype)


@rule(np.ascontiguousarray, np.asfortranarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Node:
    refuse(like=like)
    return at_least(array(a, dtype), 1)


@rule(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Node:
    """A fresh array in C order meets every requirement but Fortran's."""
    refuse(like=like)
    wanted = {str(r).upper() for r in ([requirements] if isinstance(requirements, str) else requirements or ())}
    if wanted - {"C", "C_CONTIGUOUS", "CONTIGUOUS", "A", "ALIGNED", "W", "WRITEABLE", "O", "OWNDATA", "E", "ENSUREARRAY"}:
        raise Unsupported("argument_of", name="requirements")
    return array(a, dtype)


@rule(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Node:
    from jitlab.ops.table import FUNCTIONS

    refuse(order=order)
    x = array(a, dtype)
    if x.dtype.kind not in "fc":
        return x
    finite = re.reduce(re.All, FUNCTIONS[np.isfinite](x), tuple(range(x.ndim)))
    return checked(x, finite, "ValueError", "array must not contain infs or NaNs")


def _literal_array(value: Any, dtype: np.dtype) -> Node:
    if isinstance(value, int) and dtype.kind in "iu" and not isinstance(value, Extent):
        value = dtype.type(value)
    if isinstance(value, (list, tuple)) and _is_written(value):
        return constant(np.array(value, dtype))  # each number becomes one of the dtype, not of one that they have in common
    return as_node(operand(value), dtype)


def _is_written(value: Any) -> bool:
    """Numbers that the program wrote down, in lists."""
    return type(value) in (bool, int, float, complex) or (isinstance(value, (list, tuple)) and all(map(_is_written, value)))


@rule(np.meshgrid)
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


@rule(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: Any = False) -> tuple[Node, ...]:
    refuse(subok=subok or None)
    arrays = [node(a) for a in args]
    try:
        shape = broadcast_shapes(*(x.shape for x in arrays))
    except ValueError as error:
        shapes = str(error).removeprefix("operands could not be broadcast together")
        raise ValueError(f"shape mismatch: objects cannot be broadcast to a single shape{shapes}") from None
    return tuple(broadcast_to(x, shape) for x in arrays)


@rule(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    shape, wanted = as_shape(dimensions), as_dtype(dtype)
    parts = [numbers_along(n, axis, len(shape), wanted) for axis, n in enumerate(shape)]
    if sparse:
        return tuple(parts)
    return concatenation.stack([broadcast_to(x, shape) for x in parts], 0) if parts else fill((0,), 0, wanted)


@rule(np.vander)
def vander(x: Any, N: Any = None, increasing: Any = False) -> Node:
    """Powers of a vector side by side, each the last one times the vector."""
    from jitlab.ops.table import FUNCTIONS

    v = node(x)
    if v.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = int(v.shape[0]) if N is None else operator.index(N)
    if count < 0:
        raise ValueError("negative dimensions are not allowed")
    v = cast(v, np.promote_types(v.dtype, int))
    if count == 0:
        return fill((v.shape[0], 0), 0, v.dtype)
    ones = fill((v.shape[0], 1), 1, v.dtype)
    powers = FUNCTIONS[np.cumprod](broadcast_to(expand_dims(v, (1,)), (v.shape[0], count - 1)), axis=1)
    result = concatenation.concatenate([ones, powers], 1)
    return result if increasing else apply(View(((0, 1, 0), (count - 1, -1, 1)), result.shape), result)

"""Operators and NumPy's functions of Tensors: views, nodes that a rule builds, writes into arrays, else host operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import errors
from jitlab.capture.control.exactness import divisor_of, watch, watch_cast
from jitlab.capture.control.number_kinds import check_known, extreme, has_mixed, is_mixed, may_be_python, of_each_kind
from jitlab.capture.positions import describe, here
from jitlab.capture.tracers.masked import REDUCTIONS, Selection, reduced, selected, with_whole
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.subscripts import assign, check_writable
from jitlab.capture.tracers.tensor import Lock, Step, Tensor, no_value
from jitlab.ir import Symbolic, ValueWanted, plain, same_shape
from jitlab.ops.base import Unsupported, broadcast_shapes
from jitlab.ops.build_nodes import as_node
from jitlab.ops.layout.views import Reshape, transpose_view
from jitlab.ops.layout.windows import Windows
from jitlab.ops.numpy_api.call_binding import bound
from jitlab.ops.table import ATTRIBUTES, FUNCTIONS, OPERATORS, UPDATE_METHODS, UPDATES, VIEW_ATTRIBUTES, VIEWS
from jitlab.support.later import Later

from .conversions import CONVERSIONS, NO_COPY, converted, copy_refused
from .explanations import explained, explaining
from .host_fallback import host_operation
from .layouts import c_strides, is_in_columns, is_in_rows, kept_strides
from .numpy_source import from_source, is_from_source
from .numpy_traits import (
    ADDS_IN_OUT,
    DTYPE_FUNCTIONS,
    IGNORES_OUT,
    KEEPS_ZERO_D,
    TYPE_FUNCTIONS,
    UPDATES_BY_METHOD,
    WRITES_FIRST,
    IntoCopy,
    OnCopy,
    dtype_function,
    is_at,
    is_of_fft,
    operator_function,
)
from .ordering import set_order
from .plain_operators import plain_operator

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays
    from jitlab.ops.linear_algebra import einsum
else:
    einsum = Later("jitlab.ops.linear_algebra.einsum")

#: Elements of an array whose views are compared place by place.
MOST_PLACES = 1 << 20
_ATLEAST = frozenset({np.atleast_1d, np.atleast_2d, np.atleast_3d})
#: Functions that read elements in an order.
_ORDERED_READS = frozenset({np.ravel, np.reshape, np.ndarray.ravel, np.ndarray.flatten, np.ndarray.reshape})

#: Python's functions of numbers that give one of its own.
PYTHON_FUNCTIONS = frozenset({abs, max, min, round, divmod})
_ARITHMETIC = frozenset({abs, round, divmod})
#: NumPy's functions that give a bool of Python's.
GIVES_BOOL = frozenset({np.allclose, np.array_equal, np.array_equiv})


#: What operators take beside arrays.
_OPERANDS = (Tensor, bool, int, float, complex, Number, Symbolic, np.generic, np.ndarray, list)


# ---- operators
def apply_operator(capture: Arrays, name: str, *operands: Any) -> Any:
    """`+`, `-x`, `==`, ... of Tensors; NotImplemented for operands that are no arrays."""
    if capture.has_kinds and any(map(is_mixed, operands)):
        if is_mixed(divisor := divisor_of(name, operands)) and all(map(may_be_python, operands)):
            check_known(capture, divisor)  # which raises where it is zero, or gives inf
        return of_each_kind(capture, lambda found: apply_operator(capture, name, *found), operands)
    if (plain := plain_operator(capture, name, operands)) is not None:
        return plain
    capture.check_open()
    capture.check_plain(*operands)
    if not all([isinstance(x, _OPERANDS) for x in operands]):
        return NotImplemented
    _check_repeated(operands)
    if any([isinstance(x, Selection) for x in operands]) and (whole := with_whole(operands)) is not None:
        return selected(capture, apply_operator(capture, name, *whole[0]), whole[1])
    rule = OPERATORS.get(name)
    if rule is None:
        return host_operation(capture, operator_function(name), operands, {})
    if name.strip("_") not in _OF_BOOLS:
        operands = (*_ints_for_bools(capture, operands),)
    lists = [np.asarray(x) if isinstance(x, list) and not _has_tensor(x) else x for x in operands]
    return _watched(capture, name.strip("_"), operands, apply_rule(capture, rule, operator_function(name), lists, {}))


def _watched(capture: Arrays, name: str, operands: Sequence[Any], result: Any) -> Any:
    """What an operator, abs, divmod or pow gives: of Python's numbers one of those, in their bounds."""
    result = capture.as_python(result, operands)
    if capture.policy.keeps_kinds and all(map(capture.is_python_number, operands)):
        first = result[0] if isinstance(result, tuple) else result
        if isinstance(first, Tensor) and first.weak:
            watch(capture, name, operands, first)
    return result


def _check_repeated(operands: Sequence[Any]) -> None:
    """A list and one of Python's own numbers: `[0] * n`."""
    if any([isinstance(x, list) for x in operands]):
        for x in operands:
            if isinstance(x, Tensor) and x.weak is not None:
                raise no_value(x, "a use as an index or a count")


def _ints_for_bools(capture: Arrays, operands: Sequence[Any]) -> Sequence[Any]:
    """Python's arithmetic of bools alone is that of ints."""
    if not operands or not all(map(_is_python_bool, operands)):
        return operands
    return tuple(capture.python_number(as_node(capture.lower(x), np.int64)) for x in operands)


def _is_python_bool(x: Any) -> bool:
    return type(x) is bool or (isinstance(x, Tensor) and x.weak is bool)


#: Operators that give a bool of bools; to the others Python's bools are ints.
_OF_BOOLS = frozenset({"and", "or", "xor", "rand", "ror", "rxor", "eq", "ne", "lt", "le", "gt", "ge"})


def inplace(capture: Arrays, name: str, target: Tensor, other: Any) -> Any:
    """`target op= other`: writes into the array; a scalar is bound anew."""
    if capture.has_kinds and not target.is_scalar:
        check_known(capture, target)
    result = apply_operator(capture, name, target, other)
    if result is NotImplemented or target.is_scalar:
        return result
    if isinstance(target, Selection) and target.is_lazy and isinstance(result, Selection):
        _check_output_cast(capture, name, target.whole, other, result.whole)
        result = result if result.dtype == target.dtype else result.astype(target.dtype)
        if not target.take_over(result):
            assign(capture, target, result, "unsafe")
        return target
    _check_output_cast(capture, name, target, other, result)
    _check_output_shape(operator_function(name), (target, other), target, result)
    assign(capture, target, result, "unsafe")
    return target


def _check_output_cast(capture: Arrays, name: str, target: Tensor, other: Any, result: Tensor) -> None:
    if result.dtype == target.dtype or np.can_cast(result.dtype, target.dtype, "same_kind"):
        return
    ufunc = operator_function(name)
    empty = [np.empty((0,) * min(x.ndim, 1), x.dtype) if isinstance(x, Tensor) else x for x in (target, other)]
    with explaining(capture, ufunc, (target, other)):
        ufunc(*empty, out=np.empty(0, target.dtype))  # NumPy's own exception
        raise TypeError(f"Cannot cast {ufunc.__name__!r} output from {result.dtype!r} to {target.dtype!r}")


def _check_output_shape(function: Any, operands: Sequence[Any], target: Tensor, value: Tensor) -> None:
    """What is written into an array is no larger than that array."""
    if not same_shape(broadcast_shapes(value.type.shape, target.type.shape), target.type.shape):
        shapes = (str(plain(t.type.shape)).replace(" ", "") for t in (target, value))
        text = "non-broadcastable output operand with shape {} doesn't match the broadcast shape {}".format(*shapes)
        error = ValueError(text)
        raise explained(error, function, operands) or error


# ---- functions
def call_function(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A NumPy function (or ufunc, or method of a ufunc) of Tensors."""
    if capture.policy.keeps_kinds and (function is max or function is min) and not kwargs:
        found = extreme(capture, function, args)
        if found is not NotImplemented:
            return found
    if capture.has_kinds and has_mixed([args, kwargs]):
        return of_each_kind(capture, lambda found: call_function(capture, function, *found), (args, kwargs))
    capture.check_open()
    capture.check_plain(getattr(function, "__self__", None), *args, *kwargs.values())
    args = [capture.operand(x) for x in args]
    kwargs = {key: capture.operand(x) for key, x in kwargs.items()}
    args, kwargs = bound(function, args, kwargs)
    out = kwargs.pop("out", None)
    if out is not None and not (isinstance(out, tuple) and all(o is None for o in out)):
        return into(capture, function, args, kwargs, out, lambda: call_function(capture, function, args, kwargs))
    if any(isinstance(x, Selection) for x in args):
        found = _call_on_selection(capture, function, args, kwargs)
        if found is not None:
            return found
    if function in TYPE_FUNCTIONS and args and isinstance(args[0], Tensor):
        return TYPE_FUNCTIONS[function](*args, **kwargs)
    if function in DTYPE_FUNCTIONS:
        return dtype_function(function, args, kwargs)
    if function in _ATLEAST and len(args) > 1:
        return tuple(call_function(capture, function, (x,), {}) if _has_tensor(x) else function(x) for x in args)
    if function is np.isfortran and args and isinstance(args[0], Tensor):
        return is_fortran(capture, args[0])
    if function in CONVERSIONS and args:
        same = convert(capture, function, args, kwargs)
        if same is not None:
            return same
    args, kwargs = in_known_order(capture, function, args, kwargs)
    if function is np.ravel and args and isinstance(args[0], Tensor) and kwargs.get("order", "C") in ("C", "F"):
        return raveled(capture, args[0], kwargs.get("order", "C"))
    if function in (np.real, np.imag) and len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        return real_or_imag(capture, args[0], function.__name__)
    if is_from_source(function):
        return apply_source(capture, function, args, kwargs)
    if function in WRITES_FIRST or is_at(function):
        return write_first(capture, function, args, kwargs)
    in_place = _IN_PLACE.get(function)
    if in_place is not None and kwargs.get("copy") is False:
        return in_place(capture, *args, **{**kwargs, "copy": True})
    if function is np.broadcast_arrays and not kwargs:
        return _broadcast_arrays(capture, args)
    if function is np.ix_ and not kwargs:
        return _index_grid(capture, args)
    if function in VIEWS and args and isinstance(args[0], Tensor):
        view = view_of(capture, VIEWS[function], function, args[0], args[1:], kwargs)
        if view is not None:
            return view
    if function is np.einsum and len(args) == 2 and isinstance(args[1], Tensor):
        view = view_of(capture, einsum.einsum_view, function, args[1], args[:1], kwargs)
        if view is not None:
            view._locked = args[1]._locked  # einsum's diagonals may be written into, np.diagonal's may not
            return view if view.shape else capture.fresh(view.node(), is_scalar=True)
    rule = FUNCTIONS.get(function)
    if rule is None:
        with explaining(capture, function, args):
            return host_operation(capture, function, args, kwargs)
    if function in _ARITHMETIC:
        args = _ints_for_bools(capture, args)
    result = apply_rule(capture, rule, function, args, kwargs)
    if function in GIVES_BOOL and isinstance(result, Tensor):
        return capture.python_number(result.node())
    if function in _ARITHMETIC and not kwargs:
        return _watched(capture, function.__name__, args, result)
    return capture.as_python(result, args) if function in PYTHON_FUNCTIONS else result


def convert(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor | None:
    """What NumPy's conversions share with their argument; None where they copy."""
    with explaining(capture, function, args):
        same = converted(capture, function, args, kwargs)
        if same is None and copy_refused(function, args, kwargs):
            raise ValueError(NO_COPY)
    if same is not None and function is np.asarray_chkfinite:
        apply_rule(capture, FUNCTIONS.get(function), function, args, {})
    return same


def is_fortran(capture: Arrays, x: Tensor) -> bool:
    """Column by column in memory, and not row by row."""
    capture.layout.orders = capture.layout.values = capture.layout.views = True
    shape = plain(x.type.shape)
    return x.decided_by_layout(lambda strides: is_in_columns(strides, shape) and not is_in_rows(strides, shape))


def _index_grid(capture: Arrays, vectors: Sequence[Any]) -> Any:
    """`np.ix_`: vectors of positions are seen along an axis of their own."""
    made = apply_rule(capture, FUNCTIONS[np.ix_], np.ix_, vectors, {})
    if not isinstance(made, tuple):
        return made
    return tuple(
        x.reshape(grid.shape) if isinstance(x, Tensor) and x.dtype.kind != "b" else grid
        for x, grid in zip(vectors, made, strict=True)
    )


def _nan_to_num_in_place(capture: Arrays, x: Any, **options: Any) -> Any:
    """`np.nan_to_num(x, copy=False)` stores into x, and gives it."""
    result = call_function(capture, np.nan_to_num, (x,), options)
    if not isinstance(x, Tensor) or x.is_scalar:
        return result
    if x.dtype.kind in "fc":
        assign(capture, x, result, "unsafe")
    return x if x.ndim else result


def _meshgrid_of_views(capture: Arrays, *xi: Any, copy: bool, sparse: Any = False, indexing: Any = "xy") -> Any:
    """`np.meshgrid(..., copy=False)`: each is a view of its argument."""
    call_function(capture, np.meshgrid, xi, {"indexing": indexing})  # refuses what NumPy refuses
    axes = [1, 0, *range(2, len(xi))] if indexing == "xy" and len(xi) > 1 else range(len(xi))
    shapes = [tuple(-1 if other == axis else 1 for other in range(len(xi))) for axis in axes]
    views = [call_function(capture, np.reshape, (x, shape), {}) for x, shape in zip(xi, shapes, strict=True)]
    return views if sparse else call_function(capture, np.broadcast_arrays, views, {})  # a list or a tuple, as NumPy has it


def _broadcast_arrays(capture: Arrays, arrays: Sequence[Any]) -> Any:
    """Each is a view of its argument, or the argument itself."""
    made = apply_rule(capture, FUNCTIONS[np.broadcast_arrays], np.broadcast_arrays, arrays, {})
    if not isinstance(made, tuple):
        return made
    views = []
    for x, copy in zip(arrays, made, strict=True):
        x = x if isinstance(x, Tensor) and not x.is_scalar else call_function(capture, np.array, (x,), {})
        if plain(x.type.shape) != plain(copy.type.shape):
            lock = Lock.REFUSES if x.readonly else Lock.WARNS
            x = call_function(capture, np.broadcast_to, (x, copy.shape), {})
            x._locked = lock
        views.append(x)
    return tuple(views)


#: What gives copies, but for `copy=False`.
_IN_PLACE: dict[Any, Any] = {np.nan_to_num: _nan_to_num_in_place, np.meshgrid: _meshgrid_of_views}


def _call_on_selection(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function that needs no more of `x[mask]` than x and the mask; None for others."""
    if isinstance(function, np.ufunc) and function.nout == 1 and function.signature is None and not kwargs:
        whole = with_whole(args)
        return None if whole is None else selected(capture, call_function(capture, function, whole[0], {}), whole[1])
    name = REDUCTIONS.get(function) if isinstance(args[0], Selection) else None
    return None if name is None else reduced(capture, args[0], name, args[1:], kwargs)


def view_of(capture: Arrays, rule: Any, function: Any, x: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What shares memory with x, in NumPy as here; None: this function gives a copy of such an x."""
    with explaining(capture, function, (x, *args)):
        try:
            steps = rule(x.type, *capture.lower(list(args)), **capture.lower(kwargs))
        except (Unsupported, ValueWanted) as refusal:
            return _refused(capture, function, refusal, (x,), args, kwargs, partial(view_of, capture, rule, function, x))
        if steps is None:
            return None
        if steps and isinstance(steps[0], list):  # several views
            return [_along(capture, x, way, function) for way in steps]
        return _along(capture, x, steps, function)


def raveled(capture: Arrays, x: Tensor, order: str) -> Tensor:
    """`x.ravel(order)`: a view where the elements lie one behind another, else a copy."""
    x = x if order == "C" else x.along([transpose_view(x.type)])
    flat = Reshape((x.type.size,))
    capture.layout.read(x)
    shape = plain(x.type.shape)
    if x.decided_by_layout(lambda strides: is_in_rows(strides, shape)):
        return x.along([flat])
    return capture.fresh(capture.graph.add(flat, x.node()))


def _along(capture: Arrays, x: Tensor, steps: Sequence[Step], function: Any) -> Tensor:
    if not steps:
        return Tensor(x._cell, x._path) if x.is_scalar and function in KEEPS_ZERO_D else x
    result = x.along(steps)
    result._locked = Lock.REFUSES if function is np.broadcast_to else result._locked
    result.is_scalar = x.is_scalar and not result.shape and function not in KEEPS_ZERO_D
    return result


def apply_rule(capture: Arrays, rule: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """New arrays: what a rule builds, else what NumPy gives."""
    with explaining(capture, function, args):
        try:
            args = capture.resolved(function, args)
            lowered, named = capture.lower(list(args)), capture.lower(kwargs)
            result = rule(*lowered, **named)
        except (Unsupported, ValueWanted) as refusal:
            return _refused(capture, function, refusal, (), args, kwargs, partial(apply_rule, capture, rule, function))
        if result is NotImplemented:
            return result
        wrapped = capture.wrap(result, zero_d_is_array=function in KEEPS_ZERO_D)
        set_order(capture, function, args, kwargs, wrapped)
        if isinstance(wrapped, Tensor):
            watch_cast(capture, function, args, wrapped.dtype)
        return wrapped


def apply_source(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What NumPy's own source of a function gives."""
    with explaining(capture, function, args):
        try:
            return from_source(capture, function, args, kwargs)
        except Unsupported as refusal:
            return _refused(capture, function, refusal, (), args, kwargs, partial(apply_source, capture, function))


def _refused(
    capture: Arrays, function: Any, refusal: Unsupported | ValueWanted, array: Sequence[Tensor], args: Sequence[Any],
    kwargs: dict[str, Any], again: Callable[..., Any],
) -> Any:  # fmt: skip
    """The call with integers of the inputs as Python's own, if that is what it needs; else NumPy runs it."""
    if isinstance(refusal, ValueWanted):
        refusal = Unsupported("traced_number", "data_dependent")
    counted = capture.counted(list(args)), capture.counted(kwargs)
    if refusal.code == "data_dependent" and not _same_items((args, kwargs), counted):
        return again(*counted)
    return host_operation(capture, function, (*array, *args), kwargs, refusal)


def in_known_order(
    capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """A call in which `order="A"` or "K" of an array is "C" or "F", as it lies."""
    if function not in _ORDERED_READS or not args or not isinstance(args[0], Tensor):
        return args, kwargs
    order, x = kwargs.get("order"), args[0]
    if order not in ("A", "K"):
        return args, kwargs
    if x.ndim < 2:
        return args, kwargs if function in (np.reshape, np.ndarray.reshape) and order == "K" else {**kwargs, "order": "C"}
    capture.layout.orders = capture.layout.values = True
    shape = plain(x.type.shape)
    if x.decided_by_layout(lambda strides: is_in_rows(strides, shape)):
        return args, {**kwargs, "order": "C"}
    if x.decided_by_layout(lambda strides: is_in_columns(strides, shape)):
        return args, {**kwargs, "order": "F"}
    if order == "A":
        return args, {**kwargs, "order": "C"}
    if function in (np.reshape, np.ndarray.reshape):
        return args, kwargs  # NumPy refuses
    memory = x.decided_by_layout(lambda strides: kept_strides([(shape, strides)], shape) or c_strides(shape))
    turned = x.along([transpose_view(x.type, sorted(range(x.ndim), key=lambda axis: -memory[axis]))])
    return [turned, *args[1:]], {**kwargs, "order": "C"}


def real_or_imag(capture: Arrays, x: Tensor, name: str) -> Any:
    """The attribute of a table: of complex numbers their parts, as a copy that knows whose they are."""
    if name in VIEW_ATTRIBUTES:
        view = view_of(capture, VIEW_ATTRIBUTES[name], name, x, (), {})
        if view is not None:
            return view
    tensor = capture.wrap(ATTRIBUTES[name](x.node()), zero_d_is_array=not x.is_scalar)
    if x.is_scalar:
        return tensor
    if x.dtype.kind == "c":
        tensor._cell.detached = True  # NumPy's is a view of the parts
        tensor._cell.stands_for_part_of(x._cell)
        tensor._cell.part = x, name
        tensor._cell.strides = tuple(2 * by for by in x.element_strides())
    else:  # zeros that cannot be written into
        set_order(capture, np.zeros_like, (x,), {"order": "A"}, tensor)
        tensor._locked = Lock.REFUSES
    return tensor


# ---- results that are written into arrays of the program's
def into(
    capture: Arrays, function: Any, operands: Sequence[Any], kwargs: dict[str, Any], out: Any, again: Callable[[], Any]
) -> Any:
    """`function(..., out=out)`: what `again`, the call without, gives is written into `out`."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if isinstance(function, np.ufunc):
        casting, where = kwargs.pop("casting", "same_kind"), kwargs.pop("where", True)
        return _write_out(capture, function, operands, again(), out, casting, where)
    if is_of_fft(function, IGNORES_OUT):
        return again()
    _check_traced(out)
    if function in (np.concatenate, np.stack) and kwargs.get("dtype") is not None:
        with explaining(capture, function, operands):
            raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if function in ADDS_IN_OUT and kwargs.get("dtype") is None and np.can_cast(operands[0].dtype, out.dtype):
        kwargs["dtype"] = out.dtype
    value = again()
    if value.dtype == out.dtype and plain(value.type.shape) == plain(out.type.shape):
        assign(capture, out, value, "no")
    else:  # each function has rules of its own for what it writes
        reason = Unsupported("other_out", "dtype")
        _update_on_host(capture, IntoCopy(function), out, (out, *operands), kwargs, reason)
    return out


def _write_out(
    capture: Arrays, function: Any, args: Sequence[Any], result: Any, out: Any, casting: str, where: Any
) -> Any:
    """The results of a ufunc into the arrays of `out`, which are what it gives."""
    for target, value in zip(out, result, strict=True) if isinstance(out, tuple) else [(out, result)]:
        if target is None:
            continue
        _check_traced(target)
        if where is not True:
            value = call_function(capture, np.where, (where, value, target), {})
        _check_output_shape(function, args, target, value)
        assign(capture, target, value, casting)
    return out


def _check_traced(out: Any) -> None:
    if not isinstance(out, Tensor):
        raise errors.CaptureError(
            f"out= is a {type(out).__name__} that is not traced", where=describe(here()),
            why="only plain arrays of numbers can be written into", hint="leave out= away",
        )  # fmt: skip


def _update_on_host(
    capture: Arrays, function: Any, target: Tensor, args: Sequence[Any], kwargs: dict[str, Any], reason: Unsupported
) -> None:
    """`function(copy of the target, ...)` gives the target's new value."""
    check_writable(capture, target)
    new = host_operation(capture, function, args, kwargs, reason)
    target._cell.write(target._path, new.node())


def write_first(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """A function that writes into its first argument."""
    target = args[0]
    if not isinstance(target, Tensor) or target.is_scalar:
        raise TypeError(f"argument 1 of {function.__name__} must be numpy.ndarray, not {type(target).__name__}")
    if function is np.copyto and len(args) > 1 and _sees_the_same(args[1], target):
        return None  # NumPy looks no further, not even at whether it may write
    try:
        check_writable(capture, target)
    except ValueError:
        if not any(map(_has_tensor, (*args[1:], *kwargs.values()))):  # NumPy's own error, which may be about another argument
            function(np.broadcast_to(np.zeros((), target.dtype), plain(target.shape)), *args[1:], **kwargs)
        raise
    with explaining(capture, function, args):
        rule = UPDATES.get(function) or UPDATE_METHODS.get(UPDATES_BY_METHOD.get(function))
        try:
            if rule is None:
                raise Unsupported("no_body", "no_loop_body", name=function.__name__)
            new = rule(*capture.lower(list(args)), **capture.lower(kwargs))
        except Unsupported as refusal:
            return _update_on_host(capture, OnCopy(function), target, args, kwargs, refusal)
    target._cell.write(target._path, new)
    return None


def _sees_the_same(x: Any, y: Tensor) -> bool:
    """Two views of an array in which each element stands at the same place."""
    if not isinstance(x, Tensor) or x._cell is not y._cell or x.shape != y.shape:
        return False
    if x._path == y._path:
        return True
    shape = x._cell.node.shape
    if 0 in shape or not all(type(n) is int for n in (*shape, *x.shape)) or math.prod(shape) > MOST_PLACES:
        return False
    places = np.arange(math.prod(shape)).reshape(shape)
    return np.array_equal(_seen(x, places), _seen(y, places))


def _seen(x: Tensor, whole: Any) -> Any:
    for step in x._path:
        whole = step.view(whole) if isinstance(step, Windows) else step.numpy(whole)
    return whole


def _same_items(before: Any, after: Any) -> bool:
    """Nothing was replaced in the arguments (Tensors have no truth to compare by)."""
    if isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        return len(before) == len(after) and all(map(_same_items, before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return all(_same_items(before[key], after[key]) for key in before)
    return before is after


def _has_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or (isinstance(x, (list, tuple)) and any(_has_tensor(item) for item in x))

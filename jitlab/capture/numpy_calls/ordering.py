"""In which order the axes of new arrays lie in memory: as in those that NumPy makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Moving, plain
from jitlab.ir.size_facts import noting
from jitlab.ops.layout.views import View
from jitlab.support.containers import CONTAINERS, leaves, of_items

from .conversions import required_order
from .layouts import (
    Strides,
    f_strides,
    found_strides,
    is_in_columns,
    is_in_rows,
    kept_strides,
    like_strides,
    order_of,
    stand_in,
)
from .numpy_traits import ReflectedUfunc, keeps_order, read_item

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

#: Functions that are told the order of their result, or keep that of their argument, and the order without `order=`.
ORDERS: dict[Any, str] = {
    **dict.fromkeys((np.zeros, np.ones, np.full, np.empty, np.ndarray, np.eye, np.ascontiguousarray, np.ndarray.copy), "C"),
    **dict.fromkeys((np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.nan_to_num), "K"),
    **dict.fromkeys((np.array, np.asarray, np.asanyarray, np.asarray_chkfinite, np.copy, np.ndarray.astype, np.astype), "K"),
    np.asfortranarray: "F", np.require: "A",
}  # fmt: skip

#: Functions whose results may lie in another order even when their arguments lie row by row.
_WITH_GAPS = frozenset({np.unravel_index, np.histogram2d, np.histogramdd})  # elements of others lie between theirs
_OWN_ORDERS = _WITH_GAPS | {np.einsum, np.linspace, np.logspace, np.geomspace, read_item}

#: What lays its result out alike, and takes zeros.
_ALIKE: dict[Any, Any] = {np.geomspace: np.linspace}

#: Functions the order of whose results only the order of their operands' axes decides.
_BY_AXES = frozenset({np.matmul, np.dot, read_item})


def set_order(capture: Arrays, function: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
    """Note of each new array how its axes lie."""
    made = [x for x in result if isinstance(x, Tensor)] if isinstance(result, (list, tuple)) else [result]
    least = 1 if function in _WITH_GAPS else 2
    made = [x for x in made if isinstance(x, Tensor) and x.ndim >= least and not x._path]
    if not made or any(isinstance(n, Moving) for x in made for n in x.type.shape):
        return
    operands = [x for x in leaves((args, kwargs)) if isinstance(x, Tensor) and x.ndim > 1]
    if any(isinstance(n, Moving) for x in operands for n in x.type.shape):
        return
    capture.layout.orders = capture.layout.orders or bool(operands)
    for number, x in enumerate(made):
        strides = _strides(function, args, kwargs, operands, x, number if isinstance(result, (list, tuple)) else None)
        if strides is not None:
            x._cell.strides = strides


def _strides(
    function: Any, args: Sequence[Any], kwargs: dict[str, Any], operands: Sequence[Tensor], made: Tensor, number: int | None
) -> Strides | None:
    order = kwargs.get("order") or ORDERS.get(function) or ("K" if keeps_order(function) else None)
    if all(map(_lies_in_rows, operands)) and order != "F" and function is not np.require and function not in _OWN_ORDERS:
        return None  # whatever the sizes are
    if order == "K" and function not in ORDERS or function in _BY_AXES:
        at_least_two(operands)
        with noting(None):
            return _strides_of_order(function, order, args, kwargs, operands, made, number)
    return _strides_of_order(function, order, args, kwargs, operands, made, number)


def axes_order(x: Tensor) -> Strides | None:
    """How a new array lies that keeps the order of an array's axes; None: row by row."""
    if x.ndim < 2 or _lies_in_rows(x) or any(isinstance(n, Moving) for n in x.type.shape):
        return None
    at_least_two([x])
    with noting(None):
        shape = plain(x.type.shape)
        return kept_strides([(shape, x.element_strides())], shape)


def at_least_two(operands: Sequence[Tensor]) -> None:
    """Where every axis is longer than one, the order of the axes of arrays that lie one behind the other in memory, and of
    their views, is that of their places: no other size decides it. One that is not longer is no axis."""
    for x in operands:
        for n in x.type.shape:
            bool(n < 2)  # noted


def _strides_of_order(
    function: Any, order: Any, args: Sequence[Any], kwargs: dict[str, Any], operands: Sequence[Tensor], made: Tensor,
    number: int | None,
) -> Strides | None:  # fmt: skip
    shape = plain(made.type.shape)
    known = [(plain(x.type.shape), x.element_strides()) for x in operands]
    in_c_order = all(list(o := order_of(strides, n)) == sorted(o) for n, strides in known)
    if function is np.require:
        order = required_order(kwargs.get("requirements"))
    if function in ORDERS or keeps_order(function):
        if order == "A":
            order = "F" if known and all(is_in_columns(s, n) and not is_in_rows(s, n) for n, s in known) else "C"
        if order == "F":
            return f_strides(shape)
        if order == "C" or in_c_order:
            return None
        if function in ORDERS:
            first = args[0]
            if not isinstance(first, Tensor) or first.ndim != len(shape):
                return None
            return like_strides(plain(first.type.shape), first.element_strides(), shape)
        elementwise = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.ndim]
        return kept_strides([(plain(x.type.shape), x.element_strides()) for x in elementwise], shape)
    return None if in_c_order and function not in _OWN_ORDERS else _tried(function, args, kwargs, shape, number)


def _lies_in_rows(x: Tensor) -> bool:
    """Whatever its sizes are: it sees a part of an array that lies row by row, or all of it, and maybe more axes."""
    return x._cell.strides is None and all(isinstance(step, View) and _keeps_axes(step) for step in x._path)


def _keeps_axes(view: View) -> bool:
    axes = [axis for _, _, axis in view.map if axis is not None]
    others = [n for axis, n in enumerate(view.shape) if axis not in axes]
    ahead = all(type(step) is int and step == 1 for _, step, axis in view.map if axis is not None)
    return ahead and axes == sorted(set(axes)) and all(type(n) is int and n == 1 for n in others)


def _tried(
    function: Any, args: Sequence[Any], kwargs: dict[str, Any], shape: Sequence[int], number: int | None
) -> Strides | None:
    """NumPy itself does it to stand-ins of the same layout."""
    called = function.ufunc if isinstance(function, ReflectedUfunc) else _ALIKE.get(function, function)
    arguments = reversed(args) if isinstance(function, ReflectedUfunc) else args
    try:
        with np.errstate(all="ignore"):
            result = called(*map(_stand_in, arguments), **_stand_in(dict(kwargs)))
    except Exception:  # the stand-ins' values are none that it takes
        return None
    found = result if number is None else result[number]
    if not isinstance(found, np.ndarray) or found.shape != tuple(shape) or 0 in found.shape:
        return None
    return found_strides(found, shape)


def _stand_in(x: Any) -> Any:
    if isinstance(x, Tensor):
        made = stand_in(plain(x.type.shape), x.element_strides(), x.dtype)
        return made[()] if x.is_scalar else made
    return of_items(_stand_in, x) if type(x) in CONTAINERS else x

"""Rules for NumPy's functions that pick elements by position, change their dtype, or write into their first argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.ir import Node, plain, same_shape
from jitlab.ops.base import Operation, Unsupported, broadcast_shapes
from jitlab.ops.build_nodes import apply, as_node, cast, constant, dtype_of, elementwise, result_dtype
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise.comparison import GreaterEqual, Less, LogicalAnd
from jitlab.ops.layout.indexing import (
    Gather,
    ScatterUpdate,
    Take,
    check_known,
    inside,
    may_be_empty,
    positions_along,
    read_index,
    rest_shape,
    write_index,
)
from jitlab.ops.layout.views import assigned, broadcast_to, expand_dims, reshape, transpose
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule, update
from jitlab.ops.runtime_checks import checked

from .arguments import along, as_axis, as_dtype, as_shape, check_cast, known, node, nodes, operand, refuse
from .rules_creation import filled_with
from .rules_elementwise import choose as where
from .rules_joining import cycled

INT64 = np.dtype("i8")
MODES = ("raise", "clip", "wrap")


@rule(np.take, method="take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Node:
    refuse(out=out)
    x, axis = along(node(a), axis)
    places = _positions(indices)
    if int(x.shape[axis]) == 0 and int(places.type.size):
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if mode == "raise" and not isinstance(indices, Node):
        check_known(indices, x.shape[axis], axis)
    if mode == "raise" and may_be_empty(rest_shape(x.type, (axis,))) and int(places.type.size):
        places = inside(places, x.shape[axis], axis)
    return apply(Take(axis), x, _inside(places, x.shape[axis], mode))


def _positions(indices: Any) -> Node:
    """Integer positions; bools count as 0 and 1 here."""
    found = node(indices)
    if found.type.size == 0 and isinstance(indices, (list, tuple)):
        found = cast(found, INT64)
    check_cast(found.dtype, INT64)
    return cast(found, INT64) if found.dtype.kind == "b" else found


def _inside(places: Node, n: int, mode: Any) -> Node:
    """Positions on an axis of n elements under `mode=`; those of "raise" are checked where they are used."""
    mode = {0: "clip", 1: "wrap", 2: "raise"}.get(mode, mode) if not isinstance(mode, str) else mode
    if mode not in MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if mode == "raise":
        return places
    places = cast(places, INT64)
    if mode == "wrap":
        return elementwise(ar.FloorMod(), places, n)
    return elementwise(ar.Minimum(), elementwise(ar.Maximum(), places, 0), n - 1)


@rule(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Node:
    x, axis, places = _places_along(node(arr), node(indices), axis)
    broadcast_shapes(*(p.shape for p in places))
    return apply(Gather(tuple(range(x.ndim))), x, *places)


def _places_along(x: Node, along: Node, axis: Any) -> tuple[Node, int, list[Node]]:
    if along.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if along.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        x, axis = reshape(x, (x.type.size,)), 0
    if x.ndim != along.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = as_axis(axis, x.ndim)
    return x, axis, positions_along(x.shape, along, axis)


@update(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Node:
    given = node(arr)
    x, axis, places = _places_along(given, node(indices), axis)
    return reshape(write_index(x, tuple(places), operand(values)), given.shape)


@rule(np.choose, method="choose")
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Node:
    """Element by element the array whose number `a` says."""
    refuse(out=out)
    which = _positions(a)
    several = [read_index(choices, k) for k in range(int(choices.shape[0]))] if isinstance(choices, Node) else nodes(choices)
    if not several:
        raise ValueError("0-length sequence.")
    common = result_dtype(*(several if isinstance(choices, Node) else map(operand, choices)))
    shape = broadcast_shapes(which.shape, *(x.shape for x in several))
    which = cast(which, INT64)
    if mode == "raise":
        which = _checked_below(which, len(several), "invalid entry in choice array")
    else:
        which = _inside(which, len(several), mode)
    result = broadcast_to(cast(several[-1], common), shape)
    for number, x in reversed(list(enumerate(several[:-1]))):
        result = where(ar.equal(which, number), cast(x, common), result)
    return broadcast_to(result, shape)


@rule(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Node:
    """`np.compress` by a condition that the program wrote down."""
    refuse(out=out)
    x = node(a)
    kept = np.asarray(known(condition, "a condition"))
    if kept.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    x, axis = along(x, axis)
    places = np.flatnonzero(kept)
    n = int(x.shape[axis])
    if places.size and places[-1] >= n:
        raise IndexError(f"index {places[places >= n][0]} is out of bounds for axis {axis} with size {n}")
    return apply(Take(axis), x, constant(places))


@rule(method="compress")
def compress_method(a: Any, condition: Any, axis: Any = None, out: Any = None) -> Node:
    return compress(condition, a, axis, out)


@rule(np.ix_)
def ix_(*args: Any) -> tuple[Node, ...]:
    """Vectors of positions, each along an axis of its own."""
    result = []
    for axis, given in enumerate(args):
        x = node(given)
        if x.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if int(x.shape[0]) == 0 and not isinstance(given, Node):
            x = cast(x, INT64)
        if x.dtype.kind == "b":
            x = constant(np.flatnonzero(known(x, "a mask")))
        result.append(expand_dims(x, tuple(a for a in range(len(args)) if a != axis)))
    return tuple(result)


@rule(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Node, ...]:
    """The positions along each axis of flat positions."""
    extents, places = as_shape(shape), node(indices)
    if places.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    total = math.prod(plain(extents))
    rest = cast(places, INT64)
    rest = _checked_below(rest, total, f"index {{}} is out of bounds for array with size {total}", _first_outside)
    found: list[Node] = []
    for n in extents if order == "F" else extents[::-1]:
        found.append(elementwise(ar.FloorMod(), rest, n))
        rest = elementwise(ar.FloorDiv(), rest, n)
    return tuple(found if order == "F" else found[::-1])


def _checked_below(x: Node, n: int, message: str, *named: Callable[[Node, Node], Node]) -> Node:
    """x, as long as all are from 0 to n - 1; the message names numbers that are found of x and where it is inside."""
    inside = elementwise(LogicalAnd(), elementwise(GreaterEqual(), x, 0), elementwise(Less(), x, n))
    every = re.reduce(re.All, inside, tuple(range(x.ndim)))
    return checked(x, every, "ValueError", message, *(number(x, inside) for number in named))


def _first_outside(x: Node, inside: Node) -> Node:
    """The value that an error names."""
    flat, good = reshape(x, (x.type.size,)), reshape(inside, (x.type.size,))
    if int(flat.shape[0]) == 0:
        return constant(0)
    return apply(Take(0), flat, re.reduce(re.ArgMin, good, (0,)))


@rule(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Node:
    """Flat positions from those along each axis."""
    extents = as_shape(dims)
    parts = [read_index(multi_index, k) for k in range(int(multi_index.shape[0]))] if isinstance(multi_index, Node) else (
        [node(p) for p in multi_index]
    )
    if len(parts) != len(extents):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(extents)}")
    if any(p.dtype.kind not in "iu" for p in parts):
        raise TypeError("only int indices permitted")
    modes = mode if isinstance(mode, (tuple, list)) else (mode,) * len(parts)
    shape = broadcast_shapes(*(p.shape for p in parts))
    result: Node = constant(0)
    stride: int = 1
    each = list(zip(parts, extents, modes, strict=True))
    for part, n, how in each[::-1] if order == "C" else each:
        place = cast(part, INT64)
        if how == "raise":
            place = _checked_below(place, n, "invalid entry in coordinates array")
        else:
            place = _inside(place, n, how)
        result = ar.add(result, ar.multiply(place, stride))
        stride = n * stride
    return broadcast_to(result, shape)


def getitem(x: Any, index: Any) -> Node:
    """`x[index]` as a value: basic subscripts, integer arrays and mixtures of both."""
    return read_index(node(x), index)


def setitem(x: Any, index: Any, value: Any) -> Node:
    """x after `x[index] = value`."""
    return write_index(node(x), index, operand(value))


rule(method="__getitem__")(getitem)
update(method="__setitem__")(setitem)


# dtypes and copies


@rule(np.reshape)
def reshaped(x: Any, /, shape: Any = None, order: Any = "C", *, copy: Any = None) -> Node:
    """`np.reshape(x, shape, copy=True)`: a value; without the copy it is a view."""
    from .rules_views import reshape as view_of

    value = node(x)
    return _applied(view_of(value.type, shape, order), value)


@rule(method="reshape")
def reshaped_by_method(x: Any, *shape: Any, order: Any = "C", copy: Any = None) -> Node:
    from .rules_views import reshape_method as view_of

    value = node(x)
    return _applied(view_of(value.type, *shape, order=order), value)


def _applied(steps: Sequence[Operation] | None, x: Node) -> Node:
    for step in steps or ():
        x = apply(step, x)
    return x


@rule(np.astype)
def astype_function(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Node:
    if not isinstance(x, (Node, np.ndarray)):
        raise TypeError(f"Input should be a NumPy array. It is of type {type(x)}.")
    return astype(x, dtype, device=device)


@rule(method="astype")
def astype(
    x: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True, device: Any = None
) -> Node:
    from .rules_creation import check_device

    refuse(order=order)
    check_device(device)
    value, wanted = node(x), as_dtype(dtype)
    check_cast(value.dtype, wanted, casting)
    return cast(value, wanted)


@rule(np.copy, method="copy")
def copy(x: Any, order: Any = "K", subok: Any = False) -> Node:
    """A value is its own copy: what is written later makes a new value."""
    refuse(order=order)
    return node(x)


@rule(method="flatten")
def flatten(x: Any, order: Any = "C") -> Node:
    value = node(x)
    if order not in ("C", "K", "A"):
        if order != "F":
            raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
        value = transpose(value)
    return reshape(value, (value.type.size,))


# functions that write into their first argument: each rule gives its new value


@update(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Node:
    x, value = node(dst), operand(src)
    check_cast(dtype_of(value) if type(value) not in (int, float, complex) else x.dtype, x.dtype, casting)
    if type(value) in (int, float, complex):
        refuse(casting=casting)
        if np.dtype(np.result_type(x.dtype, value)) != x.dtype:
            raise Unsupported("copied_number")
        value = x.dtype.type(value)  # a Python integer has to fit
    new = assigned(as_node(value, x.dtype), x.shape)
    return new if where is True else _choose(broadcast_to(node(where), x.shape), new, x)


_choose = where


@update(method="fill")
def fill_method(x: Any, value: Any) -> Node:
    target = node(x)
    number = operand(value)
    if isinstance(number, Node) and number.ndim:
        raise ValueError("setting an array element with a sequence.")
    return filled_with(target.shape, number, target.dtype)


@update(np.put, method="put")
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> Node:
    """Values at flat positions: too few are repeated, too many left out."""
    x, places, values = node(a), _positions(ind), operand(v)
    values = as_node(x.dtype.type(values) if type(values) is int and x.dtype.kind in "iu" else values, x.dtype)
    places, values = reshape(places, (places.type.size,)), reshape(values, (values.type.size,))
    if int(places.shape[0]) == 0 or int(values.shape[0]) == 0:
        return x
    flat = reshape(x, (x.type.size,))
    if int(flat.shape[0]) == 0:
        raise IndexError("cannot replace elements of an empty array")
    taken = cycled(values, places.shape[0])
    return reshape(apply(ScatterUpdate((0,)), flat, taken, _inside(places, flat.shape[0], mode)), x.shape)


@update(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> Node:
    """Values where a mask holds; they are repeated to the size of the array, so each stands where the mask tells."""
    x, condition, given = node(a), node(mask), operand(values)
    if int(condition.type.size) != int(x.type.size):
        raise ValueError("putmask: mask and data must be the same size")
    if type(given) not in (int, float, complex) and not np.can_cast(dtype_of(given), x.dtype, "same_kind"):
        raise TypeError(f"Cannot cast array data from {dtype_of(given)!r} to {x.dtype!r} according to the rule 'safe'")
    new = as_node(x.dtype.type(given) if type(given) is int and x.dtype.kind in "iu" else given, x.dtype)
    if int(new.type.size) == 0:
        return x
    if plain(new.shape) != plain(x.shape) or not same_shape(new.shape, x.shape):
        if int(new.type.size) == 1:
            new = broadcast_to(reshape(new, ()), x.shape)
        else:
            new = reshape(cycled(reshape(new, (new.type.size,)), x.type.size), x.shape)
    return _choose(reshape(cast(condition, np.dtype(bool)), x.shape), new, x)


@update(np.place)
def place(arr: Any, mask: Any, vals: Any) -> Node:
    """The first True of a mask takes the first value, the second the second, and so on, again from the first."""
    from jitlab.ops.table import FUNCTIONS

    x, condition, given = node(arr), cast(node(mask), np.dtype(bool)), operand(vals)
    if int(condition.type.size) != int(x.type.size):
        raise ValueError("place: mask and data must be the same size")
    values = as_node(given, x.dtype)
    values = reshape(values, (values.type.size,))
    condition = reshape(condition, x.shape)
    if int(values.shape[0]) == 0:
        none = re.reduce(re.Any_, condition, tuple(range(x.ndim)))
        return checked(x, ar.equal(none, False), "ValueError", "Cannot insert from an empty array!")
    if int(values.shape[0]) == 1:
        return _choose(condition, broadcast_to(reshape(values, ()), x.shape), x)
    order = FUNCTIONS[np.cumsum](reshape(condition, (x.type.size,)))
    number = elementwise(ar.FloorMod(), ar.subtract(order, 1), values.shape[0])
    return _choose(condition, reshape(apply(Take(0), values, number), x.shape), x)


@update(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> Node:
    """The main diagonal of an array; of a tall matrix again below it where it wraps."""
    x, value = node(a), operand(val)
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim == 2:
        rows, columns = (int(n) for n in x.shape)
        step = columns + 1
        end = rows * columns if wrap else min(columns * columns, rows * columns)
    else:
        if len(set(plain(x.shape))) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        n = int(x.shape[0])
        step, end = 1 + sum(n**k for k in range(1, x.ndim)), n**x.ndim
    if x.ndim == 2 and not (wrap and rows > columns) and not (isinstance(value, Node) and value.ndim):
        from jitlab.ops.layout.views import Update

        from .rules_views import diagonal_view

        view = diagonal_view(x.type, 0, 0, 1)
        return apply(Update(view.map, view.shape), x, filled_with(view.shape, value, x.dtype))
    places = np.arange(0, end, step)
    given = as_node(x.dtype.type(value) if type(value) is int and x.dtype.kind in "iu" else value, x.dtype)
    flat = reshape(given, (given.type.size,))
    if not len(places) or not int(flat.shape[0]):
        return x
    new = apply(ScatterUpdate((0,)), reshape(x, (x.type.size,)), cycled(flat, len(places)), constant(places))
    return reshape(new, x.shape)


"""Subscripts and assignments of Tensors: `x[index]`, `x[index] = value`, and the writes that they share with functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import errors
from jitlab.capture.control.chosen_memory import Picked, pick
from jitlab.capture.control.number_kinds import check_known, check_position
from jitlab.capture.numpy_calls.explanations import explaining
from jitlab.capture.numpy_calls.host_fallback import NotReplayable, host_operation
from jitlab.capture.numpy_calls.numpy_traits import OnCopy, read_item
from jitlab.capture.numpy_calls.ordering import set_order
from jitlab.capture.positions import describe, here
from jitlab.ir import Node, alike, is_one, plain, same_shape
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import as_node
from jitlab.ops.layout.indexing import basic_index, is_basic, read_index, write_index
from jitlab.ops.layout.views import broadcast_to, reshape

from .masked import Selection, select, written_whole
from .number import as_known
from .tensor import Lock, Tensor

if TYPE_CHECKING:
    from .arrays import Arrays


def get_item(capture: Arrays, x: Tensor, index: Any) -> Any:
    """`x[index]`: an alias for a basic subscript, a copy for arrays of positions."""
    if capture.has_kinds:
        check_known(capture, x)
        check_position(capture, index)
    capture.check_open()
    capture.check_plain(index)
    moving = capture.moving_view(x, index)
    if moving is not None:
        return moving
    if (found := _of_data(capture, x, index)) is not None:
        return found
    index = _index_value(capture, index)
    selection = select(capture, x, index)
    if selection is not None:
        return selection
    with explaining(capture, "a subscript", (x, index)):
        if x.is_scalar and not (index == () if isinstance(index, tuple) else index is Ellipsis):
            raise IndexError("invalid index to scalar variable.")
        if is_basic(index):
            view = basic_index(x.type, index)
            if not view.shape and not _has_ellipsis(index):
                return capture.fresh(x.along([view]).node(), is_scalar=True)
            return x.along([view])
        try:
            made = capture.wrap(read_index(x.node(), capture.lower(index)))
        except Unsupported as refusal:
            return host_operation(capture, read_item, (x, index), {}, refusal)
        set_order(capture, read_item, (x, index), {}, made)
        return pick(x, index, made)


def _of_data(capture: Arrays, x: Tensor, index: Any) -> Any:
    """`x[a:b]` whose bounds the data decide, so that they decide on its length; None for every other subscript."""
    if not isinstance(index, slice) or not capture.policy.keeps_kinds or capture.bounds.depth or x.is_scalar or not x.ndim:
        return None
    bounds = [b for b in (index.start, index.stop, index.step) if isinstance(b, Tensor)]
    if not bounds or any(b.ndim or b.dtype.kind not in "iu" or b._cell.input is not None for b in bounds):
        return None
    with explaining(capture, "a subscript", (x, index)):
        return host_operation(capture, read_item, (x, index), {}, Unsupported("slice_bounds", "data_dependent"))


def set_item(capture: Arrays, x: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`."""
    if capture.has_kinds:
        check_known(capture, x)
        check_position(capture, index)
    capture.check_open()
    capture.check_plain(index, value)
    if x.is_scalar:
        raise TypeError(f"'numpy.{x.dtype.name}' object does not support item assignment")
    check_writable(capture, x)  # before the index and the value are looked at
    moving = capture.moving_view(x, index)
    if moving is not None:
        return assign(capture, moving, value, "unsafe")
    index, value = _index_value(capture, index), capture.deep_value(value)
    with explaining(capture, "an assignment to a subscript", (x, value)):
        if is_basic(index):
            return assign(capture, x.along([basic_index(x.type, index)]), value, "unsafe")
        if type(value) is Tensor and isinstance(value._cell.memory, Picked) and value._cell.memory.is_part(value, x, index):
            return None  # `x[k] += 1`: it is there already
        if isinstance(value, Selection) and (whole := written_whole(x, index, value)) is not None:
            return assign(capture, x, whole, "unsafe")
        try:
            new = write_index(x.node(), capture.lower(index), capture.value_to_write(value, x.dtype))
        except Unsupported as refusal:
            new = host_operation(capture, OnCopy(np.ndarray.__setitem__), (x, index, value), {}, refusal).node()
        x._cell.write(x._path, new)


def _index_value(capture: Arrays, index: Any) -> Any:
    """A subscript in which arrays are Tensors, and 0-d integer arguments used as a position in a slice are numbers."""
    if isinstance(index, tuple):
        return tuple(_index_value(capture, part) for part in index)
    if isinstance(index, slice):
        return slice(*(capture.slice_bound(b) for b in (index.start, index.stop, index.step)))
    if isinstance(index, Tensor) and capture.may_define(index):
        return index.node()
    return as_known(capture.deep_value(index))


def assign(capture: Arrays, x: Tensor, value: Any, casting: str) -> None:
    """Write `value` into everything that `x` sees."""
    check_writable(capture, x)
    capture.check_plain(value)
    value = capture.deep_value(value)
    if isinstance(value, Tensor):
        if value._cell is x._cell and value._path == x._path:
            return
    with explaining(capture, "an assignment", (x, value)):
        if isinstance(value, Tensor) and not np.can_cast(value.dtype, x.dtype, casting):  # type: ignore[arg-type]
            raise TypeError(f"Cannot cast array data from {value.dtype!r} to {x.dtype!r} according to the rule '{casting}'")
        node = as_node(capture.value_to_write(value, x.dtype), x.dtype)
        x._cell.write(x._path, _broadcast_value(node, x.type.shape))


def check_writable(capture: Arrays, x: Tensor) -> None:
    """Raises what writing into x raises in NumPy, or cannot be traced."""
    if x.readonly and (x._locked or not (x._cell.input is not None and capture.is_moving(x._cell.input))):
        raise ValueError("assignment destination is read-only")
    if x._locked is Lock.WARNS:
        raise NotReplayable("aliasing", "writes_broadcast")
    if x._cell.detached:
        by_data = x._cell.by_data
        raise errors.CaptureError(
            "writing through this array cannot be traced", where=describe(here()),
            why="it is a view of another array, of which part only the data says, and jitlab recorded its value" if by_data
            else "NumPy's function that made it returned a view of another array, and jitlab recorded a copy",
            hint="write into the array itself, or take a .copy() first",
        )  # fmt: skip
    if any(cell.readonly or cell.detached or cell.is_locked() for cell in x._cell.reaches()):
        raise NotReplayable("aliasing", "writes_chosen")


def set_attribute(capture: Arrays, x: Tensor, name: str, value: Any) -> None:
    """`x.name = value`."""
    if name == "real" and x.dtype.kind != "c":
        return assign(capture, x, value, "unsafe")
    raise errors.CaptureError(
        f"assigning to `.{name}` of an array cannot be traced", where=describe(here()), hint="make a new array instead"
    )


def _has_ellipsis(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and any(part is Ellipsis for part in index))


def _broadcast_value(node: Node, shape: tuple[int, ...]) -> Node:
    """The value of an assignment: leading axes of length 1 may be too many."""
    if alike(node.shape, shape) and same_shape(node.shape, shape):
        return node
    given = node.shape
    while node.ndim > len(shape) and is_one(node.shape[0]):
        node = reshape(node, node.shape[1:])
    try:
        return broadcast_to(node, shape)
    except ValueError:
        before, after = (str(plain(s)).replace(" ", "") for s in (given, shape))
        raise ValueError(f"could not broadcast input array from shape {before} into shape {after}") from None

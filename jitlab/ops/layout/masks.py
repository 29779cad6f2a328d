"""Bools in subscripts: a mask that the program wrote down is positions; one that only a run knows can be written through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import ArrayType, Node, fixed, is_one, same_extent
from jitlab.ops.base import Unsupported, shape_text
from jitlab.ops.build_nodes import apply, as_node, cast, constant, fitting
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.leaf_operations import Constant
from jitlab.ops.runtime_checks import checked

from .views import Update, broadcast_to, reshape

BOOL = np.dtype(bool)


def with_positions(x: ArrayType, index: Any) -> Any:
    """The subscript with positions for each mask that is known; a True of its own is a new axis."""
    parts = index if isinstance(index, tuple) else (index,)
    if not any(_may_be_mask(p) for p in parts):
        return index
    picking = sum(not (p is None or p is Ellipsis or isinstance(p, slice)) for p in parts)
    made: list[Any] = []
    axis = 0
    masks = [_mask(p) for p in parts]
    used = sum(1 if m is None else m.ndim for p, m in zip(parts, masks, strict=True) if p is not None and p is not Ellipsis)
    for part, mask in zip(parts, masks, strict=True):
        if mask is None:
            made.append(part)
            axis += (x.ndim - used) if part is Ellipsis else part is not None
        elif mask.ndim:
            _check_fit(mask.shape, x, axis)
            made += np.nonzero(mask)
            axis += mask.ndim
        elif picking == 1 and bool(mask):
            made.append(None)
        else:
            raise Unsupported("bool_subscript")
    return tuple(made)


def _may_be_mask(p: Any) -> bool:
    if isinstance(p, Node):
        return p.dtype == BOOL and isinstance(p.op, Constant)
    return isinstance(p, (bool, np.bool_, list, np.ndarray))


def _mask(p: Any) -> np.ndarray[Any, Any] | None:
    if not _may_be_mask(p):
        return None
    if isinstance(p, Node):
        return np.asarray(p.op.value)
    if isinstance(p, list) and not (p and _all_bools(p)):
        return None
    values = np.asarray(p)
    return values if values.dtype == BOOL else None


def _all_bools(p: Any) -> bool:
    return all(map(_all_bools, p)) if isinstance(p, list) else isinstance(p, (bool, np.bool_))


def _check_fit(mask: Sequence[int], x: ArrayType, first: int) -> None:
    if first + len(mask) > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {first + len(mask)} were indexed")
    for axis, (m, n) in enumerate(zip(mask, x.shape[first:], strict=False), first):
        if not same_extent(m, n):
            raise IndexError(
                "boolean index did not match indexed array along "
                f"axis {axis}; size of axis is {int(n)} but size of corresponding boolean axis is {int(m)}"
            )


def masked_write(x: Node, index: Any, value: Any) -> Node | None:
    """x after `x[index] = value` for a subscript with one mask that only a run knows; None where there is none."""
    parts = index if isinstance(index, tuple) else (index,)
    places = [k for k, p in enumerate(parts) if isinstance(p, Node) and p.dtype == BOOL]
    if not places:
        return None
    if len(places) > 1:
        raise Unsupported("several_masks", "data_dependent")
    (place,) = places
    mask: Node = parts[place]
    if len(parts) == 1:
        _check_fit(mask.shape, x.type, 0)
        return _written(x, mask, value, 0)
    from .indexing import basic_index, is_basic

    others = (*parts[:place], *parts[place + 1 :])
    if not is_basic(others) or mask.ndim == 0:
        raise Unsupported("mask_among_positions", "data_dependent")
    view = basic_index(x.type, (*parts[:place], *(slice(None),) * mask.ndim, *parts[place + 1 :]))
    before = parts[:place]
    if Ellipsis in [p for p in before if not isinstance(p, Node)]:
        after = sum(p is not None for p in parts[place + 1 :])
        first_base = x.ndim - after - mask.ndim
    else:
        first_base = sum(p is not None for p in before)
    _check_fit(mask.shape, x.type, first_base)
    axis = view.map[first_base][2]
    assert axis is not None
    moved = any(_is_number(p) for p in others)
    return apply(Update(view.map, view.shape), x, _written(apply(view, x), mask, value, axis, only_numbers=moved))


def _is_number(p: Any) -> bool:
    return not (p is None or p is Ellipsis or isinstance(p, slice))


def _written(x: Node, mask: Node, value: Any, first: int, only_numbers: bool = False) -> Node:
    """x with the value where the mask holds; the mask's axes begin at `first`."""
    after = x.ndim - first - mask.ndim
    node = as_node(fitting(value, x.dtype), x.dtype)
    while node.ndim > first + 1 + after and is_one(node.shape[0]):
        node = reshape(node, node.shape[1:])
    condition = reshape(mask, (*(1 for _ in range(first)), *mask.shape, *(1 for _ in range(after))))
    if node.ndim > after and (not is_one(node.shape[node.ndim - after - 1])):
        if only_numbers or node.ndim > after + 1 or first:
            raise Unsupported("mask_among_subscripts", "data_dependent")
        node = _in_order(node, mask)
    elif node.ndim > after:  # one for all: the axis of the picked elements becomes those of the mask
        lead = node.ndim - after - 1
        node = reshape(node, (*node.shape[:lead], *(1 for _ in range(mask.ndim)), *node.shape[lead + 1 :]))
        if only_numbers and lead:
            raise Unsupported("mask_among_subscripts", "data_dependent")
    try:
        node = broadcast_to(node, x.shape)
    except ValueError:
        before, shape = map(shape_text, (node.shape, x.shape[first + mask.ndim :]))
        raise ValueError(f"shape mismatch: value array of shape {before} could not be broadcast to indexing result of shape "
                         f"(...,{shape[1:]}") from None  # fmt: skip
    return ar.select(broadcast_to(condition, x.shape), node, x)


def _in_order(values: Node, mask: Node) -> Node:
    """The first True takes the first value, the second the second; there have to be as many of both."""
    from jitlab.ops.table import FUNCTIONS

    from .indexing import Take

    flat = reshape(mask, (mask.type.size,))
    count = FUNCTIONS[np.count_nonzero](flat)
    n = as_node(values.shape[0], np.dtype("i8"))
    text = (
        "NumPy boolean array indexing assignment cannot assign {} input values to the {} output values where the mask is true"
    )
    order = ar.subtract(FUNCTIONS[np.cumsum](cast(flat, np.dtype("i8"))), 1)
    order = checked(order, ar.equal(count, n), "ValueError", text, n, count)
    if fixed(values.shape[0]) and values.shape[0] == 0:
        zero = constant(0, values.dtype)
        return broadcast_to(zero, (*mask.shape, *values.shape[1:]))
    return apply(Take(0), values, reshape(order, mask.shape))


__all__ = ["masked_write", "with_positions"]

"""Rules for NumPy's functions that put arrays together, or make longer ones of them: concatenate, block, insert, tile, roll."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import Extent, Node, Symbolic
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, constant, elementwise, result_dtype
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.layout import concatenation
from jitlab.ops.layout.creation import Range, zeros
from jitlab.ops.layout.indexing import Take, read_index
from jitlab.ops.layout.views import assigned, expand_dims, reshape, transpose
from jitlab.ops.registry import rule

from .arguments import along, as_axis, as_count, as_dtype, as_shape, check_cast, flattened, known, node, nodes, operand, refuse

INT64 = np.dtype("i8")
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


@rule(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Node:
    refuse(out=out)
    parts = nodes(arrays)
    wanted = _joined_dtype(parts, dtype, casting)
    if axis is None and wanted is None and parts:  # only here NumPy takes Python's numbers, which are weak
        wanted = result_dtype(*map(operand, arrays))
    return concatenation.concatenate(parts, None if axis is None else operator.index(axis), wanted)


def _joined_dtype(parts: Sequence[Node], dtype: Any, casting: Any) -> np.dtype | None:
    if casting not in CASTINGS:
        raise ValueError(f"casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe' (got {casting!r})")
    if not parts or (dtype is None and casting in ("safe", "same_kind", "unsafe")):
        return None
    wanted = np.result_type(*(part.dtype for part in parts)) if dtype is None else as_dtype(dtype)
    for part in parts:
        check_cast(part.dtype, wanted, casting)
    return None if dtype is None else wanted


@rule(np.stack)
def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Node:
    refuse(out=out)
    parts = nodes(arrays)
    return concatenation.stack(parts, operator.index(axis), _joined_dtype(parts, dtype, casting))


def at_least(x: Node, ndim: int) -> Node:
    """np.atleast_1d, 2d, 3d: a vector is a row in 2-d, and its axis is the middle one in 3-d."""
    if x.ndim >= ndim:
        return x
    if ndim == 3:
        return expand_dims(x, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.ndim])
    return expand_dims(x, tuple(range(ndim - x.ndim)))


@rule(np.block)
def block(arrays: Any) -> Node:
    """Blocks side by side: the innermost lists along the last axis, those around them along the one before."""
    leaves: list[Node] = []
    np.block(_emptied(arrays, leaves))  # raises what NumPy raises for lists of unequal depth
    depth, first = 0, arrays
    while isinstance(first, list):
        depth, first = depth + 1, first[0]
    return _joined_block(arrays, depth, max(depth, *(leaf.ndim for leaf in leaves)))


def _emptied(arrays: Any, leaves: list[Node]) -> Any:
    """The lists with an empty array for each block."""
    if isinstance(arrays, list):
        return [_emptied(part, leaves) for part in arrays]
    if type(arrays) is tuple:
        return arrays
    leaves.append(node(arrays))
    return np.empty(0)


def _joined_block(arrays: Any, depth: int, ndim: int) -> Node:
    if not isinstance(arrays, list):
        x = node(arrays)
        return expand_dims(x, tuple(range(ndim - x.ndim)))
    return concatenation.concatenate([_joined_block(part, depth - 1, ndim) for part in arrays], ndim - depth)


@rule(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Node:
    """`np.insert` before positions that the program wrote down."""
    x, axis = flattened(node(arr), axis)
    n = x.shape[axis]
    obj = known(obj, "positions")
    places = np.arange(int(n))[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool:
        if places.ndim != 1:
            raise ValueError("boolean array argument obj to insert must be one dimensional")
        places = np.flatnonzero(places)
    elif places.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    elif places.size == 0 and not isinstance(obj, np.ndarray):
        places = places.astype(np.intp)
    given = cast(node(values), x.dtype)
    if places.size == 1:
        (place,) = (operator.index(p) for p in places.flat)
        if not -int(n) <= place <= int(n):
            raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {int(n)}")
        at = n + place if place < 0 else place
        given = expand_dims(given, tuple(range(x.ndim - given.ndim)))
        if places.ndim == 0:  # the first axis of the values is the one that is inserted along
            given = transpose(given, (*range(1, axis + 1), 0, *range(axis + 1, given.ndim)))
        between = assigned(given, (*x.shape[:axis], given.shape[axis], *x.shape[axis + 1 :]))
        parts = concatenation.split(x, axis, [at, n - at])
        return concatenation.concatenate([parts[0], between, parts[1]], axis)
    count = places.size
    places = places.astype(np.intp)
    if count and (places.min() < -int(n) or places.max() > int(n)):
        wrong = next(int(p) for p in places if not -int(n) <= p <= int(n))
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {int(n)}")
    places = np.where(places < 0, places + int(n), places)
    given = assigned(given, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    order = places.argsort(kind="mergesort")
    places[order] += np.arange(count)
    source = np.full(int(n) + count, -1)
    source[places] = int(n) + np.arange(count)
    source[source < 0] = np.arange(int(n))
    return apply(Take(axis), concatenation.concatenate([x, given], axis, x.dtype), constant(source))


@rule(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Node:
    """`np.delete` of positions that the program wrote down."""
    x, axis = flattened(node(arr), axis)
    n = x.shape[axis]
    obj = known(obj, "positions")
    if isinstance(obj, (int, np.integer)) and not isinstance(obj, bool):
        place = operator.index(obj)
        if not -int(n) <= place < int(n):
            raise IndexError(f"index {place} is out of bounds for axis {axis} with size {int(n)}")
        at = n + place if place < 0 else place
        before = (slice(None),) * axis
        kept = [read_index(x, (*before, slice(None, at))), read_index(x, (*before, slice(at + 1, None)))]
        return concatenation.concatenate(kept, axis)
    return apply(Take(axis), x, constant(np.delete(np.arange(int(n)), obj)))


@rule(np.repeat, method="repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Node:
    """One count for all elements, or counts that the program wrote down."""
    x = node(a)
    if isinstance(repeats, Node) and isinstance(repeats.dtype, np.dtype) and repeats.dtype.kind not in "biu":
        raise TypeError(f"Cannot cast array data from {repeats.dtype!r} to dtype('int64') according to the rule 'safe'")
    counts = known(repeats, "a count for each element")
    x, axis = along(x, axis)
    if np.ndim(counts) == 0:
        return concatenation.repeat(x, as_count(counts), axis)
    counts = np.asarray(counts)
    if counts.size == 1:
        return concatenation.repeat(x, as_count(counts.reshape(())[()]), axis)
    return apply(Take(axis), x, constant(np.repeat(np.arange(int(x.shape[axis])), counts)))


@rule(np.tile)
def tile(A: Any, reps: Any) -> Node:
    counts = known(reps, "counts")
    listed = isinstance(counts, (list, tuple)) or np.ndim(counts) > 0
    counts = tuple(as_count(n) for n in counts) if listed else (as_count(counts),)
    if any(int(n) < 0 for n in counts):
        raise ValueError("negative dimensions are not allowed")
    return concatenation.tile(node(A), counts)


@rule(np.resize)
def resize(a: Any, new_shape: Any) -> Node:
    """The elements in C order, again from the first when there are too few."""
    shape = as_shape(new_shape) if not _is_negative(new_shape) else None
    if shape is None:
        raise ValueError("all elements of `new_shape` must be non-negative")
    x = node(a)
    flat = reshape(x, (x.type.size,))
    if int(flat.shape[0]) == 0:
        return zeros(shape, x.dtype)
    return reshape(cycled(flat, math.prod(shape)), shape)


def cycled(flat: Node, length: int) -> Node:
    """A vector cut or repeated to a length."""
    if int(flat.shape[0]) == int(length):
        return flat
    if int(flat.shape[0]) < int(length):
        flat = concatenation.tile(flat, (-(-int(length) // int(flat.shape[0])),))
    return concatenation.split(flat, 0, [length])[0]


def _is_negative(shape: Any) -> bool:
    return any(isinstance(n, (int, np.integer)) and n < 0 for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))


@rule(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Node:
    x = node(a)
    if isinstance(axis, Node):
        raise Unsupported("traced_axis", "data_dependent")
    if isinstance(shift, Symbolic):
        shift = as_node(shift)
    if isinstance(shift, Node) and shift.ndim == 0 and (axis is None or not isinstance(axis, (tuple, list))):
        return _rolled_by(x, shift, axis)
    shift = known(shift, "shifts")
    if not isinstance(shift, (tuple, list, np.ndarray)) and not isinstance(axis, (tuple, list)):
        return concatenation.roll(x, shift if isinstance(shift, Extent) else operator.index(shift), axis)
    if axis is None:
        return concatenation.roll(x, sum(operator.index(s) for s in np.ravel(shift)), None)
    shifts, axes = np.broadcast_arrays(np.asarray(shift), np.asarray(axis))
    if shifts.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    if not x.ndim and not axes.size:
        np.roll(0, (), ())  # raises
    for one, place in zip(shifts.flat, axes.flat, strict=True):
        x = concatenation.roll(x, int(one), int(place))
    return x


def _rolled_by(x: Node, shift: Node, axis: Any) -> Node:
    """By a number that only a run knows: positions along the axis, computed."""
    if shift.dtype.kind not in "iu":
        raise Unsupported("shift", "data_dependent")
    if axis is None:
        return reshape(_rolled_by(reshape(x, (x.type.size,)), shift, 0), x.shape)
    axis = as_axis(axis, x.ndim)
    n = x.shape[axis]
    if int(n) == 0:
        return x
    places = apply(Range((n,)), constant(0), constant(1))
    return apply(Take(axis), x, elementwise(ar.FloorMod(), ar.subtract(places, cast(shift, INT64)), n))

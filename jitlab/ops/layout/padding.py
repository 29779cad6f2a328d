"""`np.pad`: borders are views of the array (edge, reflect, symmetric, wrap), ramps, or statistics of it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ir import Extent, Moving, Node, NotRolled, fixed, poly
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, as_node, cast, elementwise
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise.math_functions import Rint
from jitlab.ops.numpy_api.arguments import as_count, known, node, operand
from jitlab.ops.registry import rule

from . import concatenation
from .views import View, broadcast_to, reshape, squeeze

Pairs = list[tuple[Any, Any]]
#: What each mode may be given.
OPTIONS: dict[str, tuple[str, ...]] = {
    "empty": (), "edge": (), "wrap": (), "constant": ("constant_values",), "linear_ramp": ("end_values",),
    "maximum": ("stat_length",), "mean": ("stat_length",), "median": ("stat_length",), "minimum": ("stat_length",),
    "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
}  # fmt: skip


@rule(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Node:
    """The array inside a border of `pad_width` elements; axes are padded one after another, later ones over the earlier."""
    x = node(array)
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        raise Unsupported("border_function")
    if mode not in OPTIONS:
        raise ValueError(f"mode '{mode}' is not supported")
    unknown = set(options) - set(OPTIONS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode in ("constant", "empty"):
        values = pairs(options.get("constant_values", 0), x.ndim)
        first = values[0][0] if values else 0
        if not any(isinstance(v, Node) for pair in values for v in pair) and all(v == first for pair in values for v in pair):
            values = [(_fill(first, x.dtype),) * 2] * x.ndim  # one and the same object: written once
        return concatenation.pad(x, widths, [(_fill(a, x.dtype), _fill(b, x.dtype)) for a, b in values])
    kind = options.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise Unsupported("argument_of", name="reflect_type")
    ends = pairs(options.get("end_values", 0), x.ndim)
    lengths = _lengths(options.get("stat_length"), x.ndim, mode)
    for axis, (before, after) in enumerate(widths):
        if int(x.shape[axis]) == 0 and (int(before) or int(after)) and mode in ("edge", "wrap", "reflect", "symmetric"):
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    for axis, (before, after) in enumerate(widths):
        if not int(before) and not int(after):
            continue
        if not fixed(x.shape[axis]):
            raise NotRolled("extents", "moving_axis", name="np.pad", length=poly(x.shape[axis]))
        if mode == "linear_ramp":
            x = _with_ramps(x, axis, (before, after), ends[axis])
        elif mode in STATISTICS:
            x = _with_statistics(x, axis, (before, after), STATISTICS[mode], lengths[axis])
        elif kind == "odd" and mode != "wrap" and int(x.shape[axis]) > 1:
            x = _with_odd_reflections(x, axis, (int(before), int(after)), mode == "symmetric")
        else:
            x = _with_copies(x, axis, (int(before), int(after)), mode)
    return x


def _fill(value: Any, dtype: np.dtype) -> Any:
    """A constant as NumPy assigns it: a Python integer has to fit."""
    return dtype.type(value) if type(value) is int and dtype.kind in "iu" else value


def _widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(given, dict):
        filled: list[Any] = [(0, 0)] * ndim
        for axis, width in given.items():
            filled[operator.index(axis)] = tuple(width) if isinstance(width, (tuple, list)) else (width, width)
        given = filled
    widths = []
    for pair in pairs(known(given, "widths"), ndim):
        for n in pair:
            if isinstance(n, (float, np.floating, complex)):
                raise TypeError("`pad_width` must be of integral type.")
        widths.append((as_count(pair[0]), as_count(pair[1])))
    if any(int(n) < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    return widths


def _lengths(given: Any, ndim: int, mode: str) -> Pairs:
    if given is None:
        return [(None, None)] * ndim
    lengths = [(as_count(a), as_count(b)) for a, b in pairs(known(given, "lengths"), ndim)]
    for pair in lengths:
        if any(int(n) < 0 for n in pair):
            raise ValueError("index can't contain negative values")
        if mode in ("maximum", "minimum") and 0 in (int(n) for n in pair):
            raise ValueError("stat_length of 0 yields no value for padding")
    return lengths


def pairs(given: Any, ndim: int) -> Pairs:
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


def _with_copies(x: Node, axis: int, widths: tuple[int, int], mode: str) -> Node:
    """Borders that are elements of the array: NumPy pads the positions, each run of them is a view."""
    n = x.shape[axis]
    before, after = widths
    places = np.pad(np.arange(int(n)), widths, mode)  # type: ignore[call-overload]
    left = [_run(x, axis, run, mode == "wrap") for run in _runs(places[:before])]
    right = [_run(x, axis, run, mode != "wrap") for run in _runs(places[before + int(n) :])]
    return concatenation.concatenate([*left, x, *right], axis)


def _runs(places: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """(first, step, length) of the parts in which positions go on in equal steps of -1, 0 or 1."""
    runs: list[tuple[int, int, int]] = []
    for place in places.tolist():
        if runs:
            first, step, length = runs[-1]
            if length == 1 and abs(place - first) <= 1:
                runs[-1] = first, place - first, 2
                continue
            if length > 1 and place == first + step * length:
                runs[-1] = first, step, length + 1
                continue
        runs.append((place, 1, 1))
    return runs


def _run(x: Node, axis: int, run: tuple[int, int, int], from_end: bool) -> Node:
    """A run of positions along an axis as a view; counted from the end it fits arrays of other lengths."""
    first, step, length = run
    n = x.shape[axis]
    start = n - (int(n) - first) if from_end and isinstance(n, Extent) and not isinstance(n, Moving) else first
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    entries: list[tuple[int, int, int | None]] = [(0, 1, a) for a in range(x.ndim)]
    entries[axis] = (start, step, axis) if step else (start, 1, None)
    return apply(View(tuple(entries), shape), x)


def _part(x: Node, axis: int, start: int, length: int, step: int = 1) -> Node:
    entries = tuple((start, step, a) if a == axis else (0, 1, a) for a in range(x.ndim))
    return apply(View(entries, (*x.shape[:axis], length, *x.shape[axis + 1 :])), x)


def _with_odd_reflections(x: Node, axis: int, widths: tuple[int, int], with_edge: bool) -> Node:
    """2 edge - reflection, again and again when the border is wider than the array."""
    before, after = widths
    period = int(x.shape[axis])
    while before or after:
        n = x.shape[axis]
        whole = int(n) // period * period if with_edge else (int(n) - 1) // (period - 1) * (period - 1)
        skip = 0 if with_edge else 1
        parts = [x]
        if before:
            length = min(whole, before)
            chunk = _part(x, axis, skip + length - 1, length, -1)
            parts.insert(0, _odd(_part(x, axis, 0, 1), chunk))
            before -= length
        if after:
            length = min(whole, after)
            chunk = _part(x, axis, n - 1 - skip, length, -1)
            parts.append(_odd(_part(x, axis, n - 1, 1), chunk))
            after -= length
        x = concatenation.concatenate(parts, axis)
    return x


def _odd(edge: Node, chunk: Node) -> Node:
    return ar.subtract(ar.multiply(edge, 2), chunk)


def _with_ramps(x: Node, axis: int, widths: tuple[int, int], ends: tuple[Any, Any]) -> Node:
    """From the end values in equal steps to the edges."""
    from jitlab.ops.numpy_api.rules_creation import linspace

    n = x.shape[axis]
    parts = [x]
    for side, (width, end, place) in enumerate(zip(widths, ends, (0, n - 1), strict=True)):
        edge = squeeze(_part(x, axis, place, 1), (axis,))
        ramp = linspace(operand(end), edge, width, endpoint=False, dtype=x.dtype, axis=axis)
        if side:
            parts.append(_part(ramp, axis, ramp.shape[axis] - 1, ramp.shape[axis], -1) if int(width) else ramp)
        else:
            parts.insert(0, ramp)
    return concatenation.concatenate(parts, axis, x.dtype)


STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": np.amax, "minimum": np.amin, "mean": np.mean, "median": np.median,
}  # fmt: skip


def _with_statistics(x: Node, axis: int, widths: tuple[int, int], function: Any, lengths: tuple[Any, Any]) -> Node:
    """A statistic of the elements next to the border, all along it."""
    from jitlab.ops.table import FUNCTIONS

    statistic = FUNCTIONS.get(function)
    if statistic is None:
        raise Unsupported("border_of", name=function.__name__)
    n = x.shape[axis]
    sides = []
    for side, (width, length) in enumerate(zip(widths, lengths, strict=True)):
        length = n if length is None or int(length) > int(n) else length
        near = x if length is n else _part(x, axis, n - length if side else 0, length)
        value = reshape(statistic(near, axis=axis), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        if x.dtype.kind in "iu" and value.dtype.kind == "f":
            value = elementwise(Rint(), value)
        value = cast(as_node(value), x.dtype)
        sides.append(broadcast_to(value, (*x.shape[:axis], width, *x.shape[axis + 1 :])))
    return concatenation.concatenate([sides[0], x, sides[1]], axis)


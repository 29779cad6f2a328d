"""Rules for what NumPy writes as subscripts: `np.r_[a, 1.0, b]`, `np.c_[a, b]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.ir import Extent, Node, Symbolic
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import as_node, cast, result_dtype
from jitlab.ops.layout import concatenation
from jitlab.ops.layout.views import expand_dims, transpose
from jitlab.ops.registry import rule

from .arguments import node
from .rules_creation import arange, linspace


@rule(np.r_.__getitem__)
def rows(key: Any) -> Node:
    return _joined(key, 0, 1, -1)


@rule(np.c_.__getitem__)
def columns(key: Any) -> Node:
    return _joined(key, -1, 2, 0)


def _joined(key: Any, axis: int, ndim: int, place: int) -> Node:
    """The parts one after the other along `axis`, each of `ndim` axes at least; `place` is where the axes of one with fewer
    begin. A text at the front may say otherwise."""
    parts: list[Node] = []
    kinds: list[Any] = []
    for number, item in enumerate(key if isinstance(key, tuple) else (key,)):
        if isinstance(item, str):
            if number:
                raise ValueError("special directives must be the first entry.")
            axis, ndim, place = _directive(item, axis, ndim, place)
            continue
        is_number = isinstance(item, (bool, int, float, complex, np.generic, Extent, Symbolic))
        x = _range(item) if isinstance(item, slice) else node(item)
        before = x.ndim
        if before < ndim:
            x = expand_dims(x, tuple(range(ndim - before)))
            if place != -1 and not is_number:
                x = transpose(x, _turned(ndim, before, place, isinstance(item, slice)))
        parts.append(x)
        kinds.append(item if is_number and not isinstance(item, (Extent, Symbolic)) else as_node(x))
    common = result_dtype(*kinds) if kinds else None
    return concatenation.concatenate([cast(x, common) for x in parts], axis)


def _turned(ndim: int, before: int, place: int, is_range: bool) -> list[int]:
    axes = list(range(ndim))
    if is_range:
        axes[-1], axes[place] = axes[place], axes[-1]
        return axes
    missing = ndim - before
    first = place if place >= 0 else place + missing + 1
    return axes[:first] + axes[missing:] + axes[first:missing]


def _range(s: slice) -> Node:
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if isinstance(step, (complex, np.complexfloating)):
        result: Node = linspace(start, s.stop, num=int(abs(complex(step))))
        return result
    return arange(start, s.stop, step)


def _directive(text: str, axis: int, ndim: int, place: int) -> tuple[int, int, int]:
    if text in ("r", "c"):
        raise Unsupported("matrix", "foreign_type")
    numbers: list[str] = text.split(",")
    try:
        if len(numbers) == 1:
            return int(numbers[0]), ndim, place
        axis, ndim = int(numbers[0]), int(numbers[1])
        return axis, ndim, int(numbers[2]) if len(numbers) == 3 else place
    except ValueError:
        raise ValueError(f"unknown special directive {text!r}") from None

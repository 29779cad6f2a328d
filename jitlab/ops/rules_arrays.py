"""Rules for functions of whole arrays: differences, Python's sum, and `outer` of ufuncs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ir import Node

from . import arithmetic as ar
from . import reductions as re
from .arguments import NoValue, as_axis, node, operand, refuse
from .base import Unsupported
from .build import cast
from .indexing import read_index
from .rules_elementwise import UFUNCS
from .views import reshape

Rule = Callable[..., Any]


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


FUNCTIONS: dict[Any, Rule] = {
    sum: python_sum,
    np.diff: diff,
}


def outer_rule(rule: Rule) -> Rule:
    def outer_of(a: Any, b: Any, /, **options: Any) -> Node:
        x, y = node(a), node(b)
        result: Node = rule(reshape(x, (*x.shape, *(1 for _ in y.shape))), y, **options)
        return result

    return outer_of


METHODS: dict[str, Rule] = {}

UPDATES: dict[Any, Rule] = {}
UPDATE_METHODS: dict[str, Rule] = {}

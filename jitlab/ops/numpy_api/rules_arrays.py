"""The rule for Python's sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.ir import Node
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import cast
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.reducing import axis_reductions as re
from jitlab.ops.registry import rule

from .arguments import node, operand


@rule(sum)
def python_sum(iterable: Any, /, start: Any = 0) -> Node:
    """Python's sum: elements of the first axis added up; integers keep their dtype unless Python's own are among them."""
    if isinstance(iterable, (list, tuple)):
        result = operand(start)
        for part in iterable:
            result = ar.add(result, operand(part))
        if not isinstance(result, Node):
            raise Unsupported("sum_of_nothing")
        return result
    x = node(iterable)
    if x.ndim == 0:
        raise TypeError("'numpy.float64' object is not iterable")
    dtype = np.dtype(np.add.resolve_dtypes((x.dtype, int, None))[-1])
    total = cast(re.reduce(re.Sum, cast(x, dtype), (0,)), dtype)
    return total if type(start) is int and start == 0 else ar.add(total, operand(start))

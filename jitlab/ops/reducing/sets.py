"""What gives as many elements as the data say stays with NumPy, and says so: sets, positions, selections, counts of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitlab.ir import Node
from jitlab.ops.base import Unsupported
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.layout.indexing import Take
from jitlab.ops.layout.views import reshape
from jitlab.ops.numpy_api.arguments import node
from jitlab.ops.registry import rule

#: Functions whose result is as long as the data make it.
DATA_DEPENDENT = (
    "unique unique_all unique_counts unique_inverse unique_values nonzero argwhere flatnonzero union1d intersect1d setdiff1d "
    "setxor1d trim_zeros bincount"
).split()


def left_to_numpy(name: str) -> Callable[..., Any]:
    """The rule that refuses, with the reason."""

    def refused(*args: Any, **options: Any) -> Any:
        raise Unsupported("count_of", "data_dependent", name=name)

    refused.__name__ = name
    return refused


for _name in DATA_DEPENDENT:
    rule(getattr(np, _name), method="nonzero" if _name == "nonzero" else None)(left_to_numpy(_name))


@rule(np.extract)
def extract(condition: Any, arr: Any) -> Node:
    x = node(arr)
    return apply(Take(0), reshape(x, (x.type.size,)), constant(np.flatnonzero(_known(condition, "extract"))))


def _known(condition: Any, name: str) -> np.ndarray[Any, Any]:
    if isinstance(condition, Node) or any(isinstance(c, Node) for c in np.ravel(np.asarray(condition, object))):
        raise Unsupported("count_of", "data_dependent", name=name)
    return np.asarray(condition, bool)

"""Building nodes: operations applied to nodes, Python numbers and small arrays, with NumPy's promotion (NEP 50)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import Extent, Node, current_graph, plain

from .base import Elementwise, Operation
from .sources import Constant, Length

INT64 = np.dtype("i8")


def apply(op: Operation, *inputs: Node) -> Node:
    """Append `op(*inputs)` to the graph being built."""
    graph = current_graph()
    assert graph is not None, "no graph is being built"
    return graph.add(op, *inputs)


def constant(value: Any, dtype: Any = None) -> Node:
    """A node for a number or a small array that the program wrote down."""
    array = np.asarray(value, dtype)
    return apply(Constant(array.dtype, array.shape, array.tobytes()))


def as_node(value: Any, dtype: Any = None) -> Node:
    """The node itself (cast if a dtype is asked for), or a constant."""
    if isinstance(value, Extent):
        return cast(apply(Length(value)), INT64 if dtype is None else dtype)
    if not isinstance(value, Node):
        return constant(value, dtype)
    return value if dtype is None else cast(value, dtype)


def cast(x: Node, dtype: Any) -> Node:
    """`x.astype(dtype)`, x itself when it has that dtype."""
    from .elementwise import Cast

    return x if x.dtype == np.dtype(dtype) else apply(Cast(np.dtype(dtype)), x)


def elementwise(op: Operation, *operands: Any) -> Node:
    """Apply an elementwise operation; operands (nodes, Python numbers, NumPy scalars) are cast to the loop that NumPy picks."""
    assert isinstance(op, Elementwise)
    loop = type(op).ufunc.resolve_dtypes((*promotion_dtypes(operands), None))
    return apply(op, *(as_node(_checked(x, dtype), dtype) for x, dtype in zip(operands, loop, strict=False)))


def promotion_dtypes(operands: Sequence[Any]) -> list[Any]:
    """What `ufunc.resolve_dtypes` wants to know: dtypes, and int, float, complex for Python's weak numbers."""
    wanted: list[Any] = [_dtype_for_promotion(x) for x in operands]
    if all(isinstance(w, type) for w in wanted):
        return [np.asarray(x).dtype for x in operands]
    return wanted


def shape_of(x: Any) -> tuple[int, ...]:
    return x.shape if isinstance(x, Node) else plain(np.shape(x))


def dtype_of(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, Node) else np.asarray(x).dtype


def result_dtype(*operands: Any) -> np.dtype:
    """`np.result_type` of nodes and Python numbers."""
    return np.result_type(*(x.dtype if isinstance(x, Node) else x for x in operands))


def _dtype_for_promotion(x: Any) -> Any:
    """A dtype, or int, float, complex for Python's own numbers, which are weak."""
    if isinstance(x, Node):
        return x.dtype
    if type(x) is bool:
        return np.dtype(bool)
    for kind in (int, float, complex):
        if isinstance(x, kind) and not isinstance(x, np.generic):
            return kind
    return np.asarray(x).dtype


def _checked(x: Any, dtype: np.dtype) -> Any:
    """A Python integer that does not fit is NumPy's OverflowError, not a wrap."""
    if isinstance(x, int) and not isinstance(x, (bool, np.generic)) and dtype.kind in "iu":
        fitting = dtype.type(x)
        return x if isinstance(x, Extent) else fitting
    return x

"""Building nodes: operations applied to nodes, Python numbers and small arrays, with NumPy's promotion (NEP 50)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import Extent, Moving, Node, NotRolled, Symbolic, at_least, current_graph, plain

from .base import Elementwise, Operation
from .leaf_operations import Constant, Length

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
    if isinstance(value, Symbolic):
        value = value.extent
    if isinstance(value, Extent):
        return cast(apply(Length(value)), INT64 if dtype is None else dtype)
    if not isinstance(value, Node):
        return constant(value, dtype)
    return value if dtype is None else cast(value, dtype)


def cast(x: Node, dtype: Any) -> Node:
    """`x.astype(dtype)`, x itself when it has that dtype."""
    from .elementwise.casts import Cast

    return x if x.dtype == np.dtype(dtype) else apply(Cast(np.dtype(dtype)), x)


def elementwise(op: Operation, *operands: Any) -> Node:
    """Apply an elementwise operation; operands (nodes, Python numbers, NumPy scalars) are cast to the loop that NumPy picks."""
    assert isinstance(op, Elementwise)
    loop = type(op).ufunc.resolve_dtypes((*promotion_dtypes(operands), None))
    return apply(op, *[as_node(fitting(x, dtype), dtype) for x, dtype in zip(operands, loop, strict=False)])


def promotion_dtypes(operands: Sequence[Any]) -> list[Any]:
    """What `ufunc.resolve_dtypes` wants to know: dtypes, and int, float, complex for Python's weak numbers."""
    wanted: list[Any] = [_dtype_for_promotion(x) for x in operands]
    if all([isinstance(w, type) for w in wanted]):
        return [dtype_of(x) for x in operands]
    return wanted


def shape_of(x: Any) -> tuple[int, ...]:
    return x.shape if isinstance(x, Node) else plain(np.shape(x))


def dtype_of(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, Node) else np.asarray(x).dtype


def result_dtype(*operands: Any) -> np.dtype:
    """`np.result_type` of nodes and Python numbers."""
    return np.result_type(*(_number_like(x) if isinstance(x, Node) else x for x in operands))


def is_python_number(x: Any) -> bool:
    """A number of Python's own, written in the program or traced: weak in promotion, unless it is a bool."""
    if isinstance(x, Node):
        return x.weak is not None
    return type(x) in (bool, int, float, complex) or isinstance(x, Extent)


def weak(x: Node) -> Node:
    """The node marked as a Python number: a 0-d int64, float64, complex128 or bool that gives way in NumPy's promotion.

    Traced Python numbers are such nodes: an index of a rolled loop, a float or an int that a loop carries, and what Python's
    operators make of those alone. NumPy's functions give NumPy scalars, which are not weak. Mark nodes of your own only (a
    new Parameter, Item or result): the mark belongs to the node, and everybody who reads it sees it.
    """
    kind = {"i": int, "f": float, "c": complex, "b": bool}[x.dtype.kind]
    assert not x.shape and x.dtype.itemsize == {int: 8, float: 8, complex: 16, bool: 1}[kind], f"a Python number that is {x}"
    x.weak = kind
    return x


def _number_like(x: Node) -> Any:
    """What stands for a node in `np.result_type`."""
    return x.dtype if x.weak is None or x.weak is bool else x.weak(0)


def _dtype_for_promotion(x: Any) -> Any:
    """A dtype, or int, float, complex for Python's own numbers, which are weak."""
    if isinstance(x, Node):
        return x.dtype if x.weak is None or x.weak is bool else x.weak
    if type(x) is bool:
        return np.dtype(bool)
    for kind in (int, float, complex):
        if isinstance(x, kind) and not isinstance(x, np.generic):
            return kind
    return np.asarray(x).dtype


def fitting(x: Any, dtype: np.dtype) -> Any:
    """A Python integer that does not fit is NumPy's OverflowError, not a wrap."""
    if isinstance(x, Symbolic):
        x = x.extent
    if isinstance(x, int) and not isinstance(x, (bool, np.generic)) and dtype.kind in "iu":
        if isinstance(x, Moving) and dtype == INT64:
            return x
        if isinstance(x, Moving):
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
            if not (at_least(x - least, 0) and at_least(most - x, 0)):
                raise NotRolled("index_value", "large_for", value=x.expr, dtype=dtype)
            return x
        fitted = dtype.type(x)
        return x if isinstance(x, Extent) else fitted
    return x

"""What the rules of the table share: how NumPy's arguments become nodes, axes, shapes and dtypes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jitlab.ir import TRACED_DTYPES, Extent, Moving, Node, Symbolic, as_length
from jitlab.ops.base import Elementwise, Generated, Reduction, Unsupported
from jitlab.ops.build_nodes import as_node
from jitlab.ops.elementwise.arithmetic import Add, Mul, Sub
from jitlab.ops.layout.concatenation import Concatenate, array
from jitlab.ops.layout.views import Reshape, View, normalize_axis, reshape
from jitlab.ops.leaf_operations import Constant, Length

NoValue: Any = np._NoValue

#: Operations whose values are known at capture when those of their inputs are.
_FIXED = (Constant, Length, Elementwise, Generated, Reduction, Concatenate, View, Reshape)


#: What Python's operators of ints are.
_OF_LENGTHS: dict[type, Any] = {Add: operator.add, Sub: operator.sub, Mul: operator.mul}


def operand(x: Any) -> Any:
    """An operand of an elementwise function: nodes and numbers as they are (Python's are weak), arrays and lists as nodes."""
    if isinstance(x, Node) or type(x) in (bool, int, float, complex) or isinstance(x, Extent):
        return x
    if isinstance(x, Symbolic):
        return x.extent
    if isinstance(x, np.generic):
        _check_dtype(x.dtype)
        return x
    if isinstance(x, np.ndarray):
        if type(x) is not np.ndarray:
            raise Unsupported("array_class", "foreign_type", kind=type(x).__name__)
        _check_dtype(x.dtype)
        return as_node(x)
    if isinstance(x, (list, tuple)):
        return _listed(x)
    raise Unsupported("operand_class", "foreign_type", kind=type(x).__name__)


def node(x: Any) -> Node:
    """An array argument: what `np.asarray` makes of it."""
    return as_node(operand(x))


def nodes(xs: Any) -> list[Node]:
    """A sequence of arrays."""
    if isinstance(xs, Node):
        raise Unsupported("array_for_sequence")
    if not isinstance(xs, (list, tuple)):
        raise Unsupported("sequence_class", "foreign_type", kind=type(xs).__name__)
    return [node(x) for x in xs]


def refuse(**arguments: Any) -> None:
    """Unsupported unless each argument has the value that means "not given"."""
    for name, value in arguments.items():
        if value is None or value is NoValue or (name in ("where", "subok") and value is True):
            continue
        if name == "order" and value in ("K", "C", "A", "F") or name == "casting" and value == "same_kind":
            continue
        raise Unsupported("argument_of", name=name)


def known(x: Any, what: str) -> Any:
    """The value of an argument that the program wrote down, `np.array([0, 2])` too; Unsupported where only a run knows it."""
    if isinstance(x, Node):
        is_fixed = isinstance(x.op, _FIXED) and not (isinstance(x.op, Length) and isinstance(x.op.extent, Moving))
        if not is_fixed or any(isinstance(n, Moving) for n in x.shape):
            raise Unsupported("of_run", "data_dependent", what=what)
        return x.op.numpy(*(known(source, what) for source in x.inputs))
    if isinstance(x, Symbolic):
        raise Unsupported("moves", "data_dependent", what=what)
    return type(x)(known(part, what) for part in x) if type(x) in (list, tuple) else x


def as_dtype(dtype: Any) -> np.dtype:
    """The dtype that was asked for. Raises TypeError as NumPy does, Unsupported for those that are not traced."""
    if isinstance(dtype, Node):
        raise Unsupported("traced_dtype")
    result: np.dtype = np.dtype(dtype)
    _check_dtype(result)
    if np.dtype(result.str).num != result.num:
        raise Unsupported("other_dtype", "dtype", name=result.type.__name__, dtype=result)
    return result


def check_cast(dtype: np.dtype, wanted: Any, casting: str = "safe") -> None:
    """NumPy's TypeError where the rule `casting` keeps one dtype from becoming the other."""
    if not np.can_cast(dtype, wanted, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {dtype!r} to {np.dtype(wanted)!r} according to the rule '{casting}'")


def as_axes(axis: Any, ndim: int, number: bool = True) -> tuple[int, ...]:
    """Sorted non-negative axes of a reduction; None is all of them. `number`: 0 and -1 are allowed for 0-d."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, Node):
        raise Unsupported("traced_axis", "data_dependent")
    given = axis if isinstance(axis, tuple) else (axis,)
    if number and ndim == 0 and not isinstance(axis, tuple) and operator.index(axis) in (0, -1):
        return ()
    axes = sorted(normalize_axis(a, ndim) for a in given)
    if len(set(axes)) < len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(axes)


def as_axis(axis: Any, ndim: int) -> int:
    if isinstance(axis, Node):
        raise Unsupported("traced_axis", "data_dependent")
    return normalize_axis(axis, ndim)


def along(x: Node, axis: Any) -> tuple[Node, int]:
    """The array and the axis that is gone along: without one, and of a 0-d array, all elements in a row."""
    is_number = x.ndim == 0 and axis is not None and not isinstance(axis, Node) and operator.index(axis) in (0, -1)
    return flattened(x, None if is_number else axis)


def flattened(x: Node, axis: Any) -> tuple[Node, int]:
    """The array and the axis that is gone along: without one all elements in a row."""
    return (reshape(x, (x.type.size,)), 0) if axis is None else (x, as_axis(axis, x.ndim))


def as_count(n: Any) -> int:
    """An integer of a shape or a repetition; Extents stay what they are."""
    if isinstance(n, Node):
        length = length_of(n)
        if length is None:
            raise Unsupported("traced_size", "data_dependent")
        return length
    if isinstance(n, Symbolic):
        return as_length(n.extent)
    return n if isinstance(n, Extent) else operator.index(n)


def length_of(n: Node) -> int | None:
    """The extent that a Python number of the program is, computed of lengths that the data decide; None: it is none."""
    if isinstance(n.op, Length) and not isinstance(n.op.extent, Moving):
        return n.op.extent
    if isinstance(n.op, Constant) and n.weak is int:
        return int(n.op.value)
    if n.weak is not int or type(n.op) not in _OF_LENGTHS:
        return None
    parts = [length_of(source) for source in n.inputs]
    return None if None in parts else _OF_LENGTHS[type(n.op)](*parts)


def as_shape(shape: Any) -> tuple[int, ...]:
    """The shape argument of zeros, full, ...; raises ValueError for negative extents."""
    if isinstance(shape, (tuple, list)):
        result = tuple(as_count(n) for n in shape)
    elif isinstance(shape, np.ndarray):
        result = tuple(int(n) for n in shape)
    else:
        result = (as_count(shape),)
    if any((int(n) if isinstance(n, Moving) else n) < 0 for n in result):
        raise ValueError("negative dimensions are not allowed")
    return result


def _listed(x: Any) -> Node:
    for leaf in _leaves(x):
        if isinstance(leaf, np.ndarray):
            raise Unsupported("list_of_arrays")
        operand(leaf)
    return array(_with_extents(x))


def _with_extents(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_with_extents(part) for part in x]
    return x.extent if isinstance(x, Symbolic) else x


def _leaves(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        for part in x:
            yield from _leaves(part)
    else:
        yield x


def _check_dtype(dtype: np.dtype) -> None:
    if dtype not in TRACED_DTYPES or not dtype.isnative:
        raise Unsupported("of_dtype", "dtype", dtype=dtype)

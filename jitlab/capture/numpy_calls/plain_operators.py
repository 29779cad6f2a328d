"""Operators of plain arrays of one float dtype and Python's numbers: what most programs are made of, recorded in few steps. The
nodes are those that the rules of `ops` build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import ArrayType, Extent, Graph, Node, current_graph
from jitlab.ops import registry
from jitlab.ops.base import broadcast_shapes
from jitlab.ops.elementwise.arithmetic import Square
from jitlab.ops.leaf_operations import Constant

from .ordering import set_order

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

_BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide}
_COMPARED = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
#: Of an operator: the operation, its ufunc, whether the operands come the other way round, and whether it gives bools.
_PLAIN: dict[str, tuple[Any, np.ufunc, bool, bool]] = {
    **{f"__{name}__": (registry.FUNCTIONS[u](), u, False, False) for name, u in (*_BINARY.items(), ("neg", np.negative))},
    **{f"__r{name}__": (registry.FUNCTIONS[u](), u, True, False) for name, u in _BINARY.items()},
    **{f"__{name}__": (registry.FUNCTIONS[u](), u, False, True) for name, u in _COMPARED.items()},
    "__pow__": (Square(), np.power, False, False),
}
_BOOL = np.dtype(bool)
_EXACT = 1 << 53  # ints up to here are floats


def plain_operator(capture: Arrays, name: str, operands: tuple[Any, ...]) -> Tensor | None:
    """What an operator gives; None where it is to be recorded otherwise."""
    plain, graph = _PLAIN.get(name), capture.graph
    if plain is None or type(graph) is not Graph or current_graph() is not graph:
        return None
    op, ufunc, is_turned, gives_bool = plain
    if ufunc is np.power:
        if type(operands[1]) is not int or operands[1] != 2:
            return None
        operands = operands[:1]
    dtype = _dtype(operands)
    if dtype is None:
        return None
    capture.check_open()
    capture.before_operator()
    given = operands[::-1] if is_turned else operands
    nodes = {id(x): _node(x, graph) for x in operands if type(x) is Tensor}
    try:
        shape = _shape([nodes[id(x)].type.shape for x in given if type(x) is Tensor])
    except ValueError:  # which is explained elsewhere
        return None
    if shape is None:
        return None
    sources = graph.position()
    inputs = []
    for x in given:
        if type(x) is Tensor:
            inputs.append(nodes[id(x)])
        else:
            value = Constant(dtype, (), np.asarray(x, dtype).tobytes())
            inputs.append(graph.append(Node(value, (), ArrayType((), dtype), name=value.stem, sources=sources)))
    type_ = ArrayType(shape, _BOOL if gives_bool else dtype)
    made = capture.fresh(graph.append(Node(op, inputs, type_, name=op.stem, sources=sources)), is_scalar=True)
    if len(shape) > 1:
        set_order(capture, ufunc, operands, {}, made)
    return made


def _dtype(operands: tuple[Any, ...]) -> np.dtype | None:
    """The float dtype of all arrays among these; None where something else is among them, or none is."""
    dtype = None
    for x in operands:
        kind = type(x)
        if kind is Tensor:
            node = x._cell.node
            if dtype is None:
                dtype = node.type.dtype
            if node.type.dtype is not dtype or (node.weak is not None and not x._path):
                return None
        elif kind is not float and (kind is not int or not -_EXACT <= x <= _EXACT):
            return None
    return dtype if dtype is not None and dtype.kind == "f" else None


def _node(x: Tensor, graph: Graph) -> Node:
    """Its value now."""
    cell = x._cell
    if x._path or cell.memory is not None or cell.input is not None or cell.stale or cell.home is not graph:
        return x.node()
    return cell.node


def _shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """What these make together; None where some extent has no fixed value."""
    for shape in shapes:
        for n in shape:
            if type(n) is not Extent and type(n) is not int:
                return None
    return shapes[0] if all([shape is shapes[0] for shape in shapes]) else broadcast_shapes(*shapes)

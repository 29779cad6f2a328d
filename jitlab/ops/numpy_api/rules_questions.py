"""Rules for questions about values: are they close, equal, real?."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.ir import Node, same_extent
from jitlab.ops.base import Unsupported, broadcast_shapes
from jitlab.ops.build_nodes import apply, as_node, constant, dtype_of, elementwise, weak
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.elementwise import comparison as co
from jitlab.ops.reducing.axis_reductions import All
from jitlab.ops.registry import rule

from .arguments import node, operand, refuse


@rule(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Node:
    x, y = operand(a), operand(b)
    if dtype_of(y).kind in "biu":
        y = as_node(y, np.result_type(dtype_of(y), np.dtype("f8")))
    near = elementwise(
        co.LessEqual(), elementwise(ar.Abs(), ar.subtract(x, y)), ar.add(atol, ar.multiply(rtol, elementwise(ar.Abs(), y)))
    )
    result = elementwise(co.LogicalAnd(), near, elementwise(co.IsFinite(), y))
    result = elementwise(co.LogicalOr(), result, elementwise(co.Equal(), x, y))
    return elementwise(co.LogicalOr(), result, _both_nan(x, y)) if equal_nan else result


def _both_nan(x: Any, y: Any) -> Node:
    return elementwise(co.LogicalAnd(), elementwise(co.IsNan(), x), elementwise(co.IsNan(), y))


@rule(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Node:
    return _python_truth(isclose(a, b, rtol, atol, equal_nan))


def _python_truth(condition: Node) -> Node:
    """`bool(condition.all())`: Python's own."""
    return weak(apply(All(tuple(range(condition.ndim))), condition))


@rule(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Node:
    x, y = node(a1), node(a2)
    if x.ndim != y.ndim or not all(map(same_extent, x.shape, y.shape)):
        return weak(constant(False))
    result = elementwise(co.Equal(), x, y)
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        result = elementwise(co.LogicalOr(), result, _both_nan(x, y))
    return _python_truth(result)


@rule(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Node:
    x, y = node(a1), node(a2)
    try:
        broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return weak(constant(False))
    return _python_truth(elementwise(co.Equal(), x, y))


@rule(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Node:
    infinite, negative = _infinity_and_sign(x, out)
    return elementwise(co.LogicalAnd(), infinite, elementwise(co.LogicalNot(), negative))


@rule(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Node:
    return elementwise(co.LogicalAnd(), *_infinity_and_sign(x, out))


def _infinity_and_sign(x: Any, out: Any) -> tuple[Node, Node]:
    refuse(out=out)
    value = node(x)
    if value.dtype.kind == "c":
        raise TypeError(f"This operation is not supported for {value.dtype} values because it would be ambiguous.")
    return elementwise(co.IsInf(), value), elementwise(co.Signbit(), value)


@rule(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> Node:
    value = node(a)
    if value.dtype.kind == "c":
        raise Unsupported("real_result", "data_dependent")
    return value

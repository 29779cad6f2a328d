"""Rules about diagonals and triangles: tril, triu, diag, diagflat, and the positions of triangles and diagonals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jitlab.ir import Node
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.elementwise import arithmetic as ar
from jitlab.ops.numpy_api.arguments import node
from jitlab.ops.registry import rule

from . import concatenation
from .creation import Tri
from .views import broadcast_to, reshape


@rule(np.tril)
def tril(m: Any, k: Any = 0) -> Node:
    return _triangle(node(m), operator.index(k), below=True)


@rule(np.triu)
def triu(m: Any, k: Any = 0) -> Node:
    return _triangle(node(m), operator.index(k), below=False)


def _triangle(x: Node, k: int, below: bool) -> Node:
    if x.ndim == 0:
        raise TypeError("tri() missing a matrix: the array has no axes")
    if x.ndim == 1:
        x = broadcast_to(x, (x.shape[0], x.shape[0]))
    mask = apply(Tri((x.shape[-2], x.shape[-1]), k if below else k - 1))
    nothing = constant(0, x.dtype)
    return ar.select(mask, x, nothing) if below else ar.select(mask, nothing, x)


@rule(np.diag)
def diag(v: Any, k: Any = 0) -> Node:
    from jitlab.ops.numpy_api.rules_views import diagonal_view

    x, k = node(v), operator.index(k)
    if x.ndim == 1:
        return concatenation.diagonal_of(x, k)
    if x.ndim == 2:
        return apply(diagonal_view(x.type, k, 0, 1), x)
    raise ValueError("Input must be 1- or 2-d.")


@rule(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Node:
    x = node(v)
    return concatenation.diagonal_of(reshape(x, (x.type.size,)), operator.index(k))


@rule(np.tril_indices_from)
def tril_indices_from(arr: Any, k: Any = 0) -> tuple[Node, ...]:
    return _positions(np.tril_indices, node(arr), k)


@rule(np.triu_indices_from)
def triu_indices_from(arr: Any, k: Any = 0) -> tuple[Node, ...]:
    return _positions(np.triu_indices, node(arr), k)


def _positions(function: Any, x: Node, k: Any) -> tuple[Node, ...]:
    if x.ndim != 2:
        raise ValueError("input array must be 2-d")
    return tuple(constant(i) for i in function(int(x.shape[0]), k=operator.index(k), m=int(x.shape[1])))


@rule(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[Node, ...]:
    x = node(arr)
    if x.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len({int(n) for n in x.shape}) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return tuple(constant(i) for i in np.diag_indices(int(x.shape[0]), x.ndim))

"""A reverse pass of twenty lines: enough to test the gradient rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.ir import Graph, Node, interpret, plain
from jitlab.ops import apply, cast, constant
from jitlab.ops.build_nodes import elementwise
from jitlab.ops.elementwise.arithmetic import Add, Mul
from jitlab.ops.layout.views import expand_dims
from jitlab.ops.reducing.axis_reductions import Sum


def gradients(graph: Graph, weights: Any) -> Graph:
    """The graph with the cotangents of its parameters as outputs, where its one output has the cotangent `weights`."""
    (out,) = graph.outputs
    before = list(graph.nodes)
    with graph.building():
        cotangents: dict[Node, Node] = {out: constant(np.asarray(weights, out.dtype))}
        for node in reversed(before):
            g = cotangents.get(node)
            if g is None or not node.inputs:
                continue
            for source, part in zip(node.inputs, node.op.gradient(g, node, *node.inputs), strict=True):
                if part is None or source.dtype.kind not in "fc":
                    continue
                part = fitted(part, source)
                old = cotangents.get(source)
                cotangents[source] = part if old is None else elementwise(Add(), old, part)
        zero = [elementwise(Mul(), x, 0) for x in graph.parameters]
    graph.outputs = [cotangents.get(x, z) for x, z in zip(graph.parameters, zero, strict=True)]
    return graph


def fitted(g: Node, x: Node) -> Node:
    """The cotangent summed down to the shape of x, in its dtype."""
    extra = g.ndim - x.ndim
    if extra:
        g = apply(Sum(tuple(range(extra))), g)
    axes = tuple(a for a, (m, n) in enumerate(zip(plain(g.shape), plain(x.shape), strict=True)) if m != n)
    if axes:
        g = expand_dims(apply(Sum(axes), g), axes)
    return cast(g, x.dtype)


def finite_differences(graph: Graph, arrays: list[Any], weights: Any, step: float = 1e-6) -> list[Any]:
    """The same cotangents from differences of the real part of sum(conj(weights) * output)."""

    def loss(values: list[Any]) -> float:
        (out,) = interpret(graph, values)
        return float(np.real(np.sum(np.conj(weights) * out)))

    results = []
    for position, array in enumerate(arrays):
        array = np.asarray(array)
        if array.dtype.kind not in "fc":
            results.append(None)
            continue
        slope = np.zeros(array.shape, array.dtype)
        for index in np.ndindex(array.shape):
            for direction in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):
                ends = []
                for sign in (1, -1):
                    moved = array.copy()
                    moved[index] += sign * step * direction
                    ends.append(loss([*arrays[:position], moved, *arrays[position + 1 :]]))
                slope[index] += direction * (ends[0] - ends[1]) / (2 * step)
        results.append(slope)
    return results


"""Calls of NumPy's functions through the table against NumPy itself, and slopes against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitlab.ir import ArrayType, Graph, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops import apply, cast, constant
from jitlab.ops.elementwise.arithmetic import Real, add, conj, multiply
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.passes.gradient import gradients
from tests.ops.backprop import finite_differences
from tests.ops.programs import F as F
from tests.ops.programs import Program, same


def agrees(function: Any, *args: Any, messages: bool = True, **options: Any) -> None:
    """The function's rule gives what NumPy gives: values, dtypes, shapes, or the same error in the same words."""
    program = Program(function, args, options)
    try:
        want, error = program.expected(), None
    except Exception as raised:
        want, error = None, raised
    try:
        graph, arrays = program.graph()
        got, mine = interpret(verify(graph), arrays), None
    except Exception as raised:
        got, mine = [], raised
    if error is not None or mine is not None:
        assert error is not None and isinstance(mine, type(error)), f"{program}: {mine!r} instead of {error!r}"
        assert not messages or str(mine) == str(error), f"{program}: {mine!r} instead of {error!r}"
        return
    wanted = list(want) if isinstance(want, (list, tuple)) else [want]
    assert len(got) == len(wanted), f"{program}: {len(got)} results"
    for a, b in zip(got, wanted, strict=True):
        try:
            same(a, b, exact=False)
        except AssertionError as wrong:
            raise AssertionError(f"{program}: {wrong}") from None


def right_slope(build: Any, *arrays: Any, hermitian: bool = False, second: bool = False) -> None:
    """The gradient of `build(*nodes)` is the finite difference, and with `second` the gradient's gradient, too.

    `hermitian`: of the first array one triangle is read; its gradient is that of both.
    """
    graph, out = _graph(build, arrays)
    weights = _weights(graph, out, arrays)
    graph.outputs = [out]
    want = finite_differences(graph, list(arrays), weights)
    if hermitian:
        want[0] = (want[0] + np.conj(np.swapaxes(want[0], -1, -2))) / 2
    with graph.building():
        graph.outputs = gradients(graph, [out], graph.parameters, [constant(weights)], unconnected="zero")
    got = interpret(verify(graph), arrays)
    for mine, theirs in zip(got, want, strict=True):
        scale = max(1.0, float(np.max(np.abs(theirs), initial=0)))
        np.testing.assert_allclose(mine, theirs, rtol=3e-5, atol=3e-7 * scale)
    if second:
        right_slope(_slope_of(build, weights), *arrays)


def _slope_of(build: Any, weights: np.ndarray) -> Any:
    """A number made of the gradient of `build`."""

    def slope(*nodes: Any) -> Any:
        from jitlab.ir import current_graph

        graph = current_graph()
        assert graph is not None
        slopes = gradients(graph, [build(*nodes)], nodes, [constant(weights)], unconnected="zero")
        random, total = np.random.default_rng(7), constant(0.0)
        for g in slopes:
            assert g is not None
            term = multiply(g, conj(constant(random.normal(size=tuple(map(int, g.shape))).astype(g.dtype))))
            term = apply(Real(), term) if term.dtype.kind == "c" else term
            total = add(total, apply(Sum(tuple(range(term.ndim))), term) if term.ndim else term)
        return cast(total, "f8")

    return slope


def _graph(build: Any, arrays: Any) -> tuple[Graph, Any]:
    graph = Graph()
    nodes = [graph.add(Parameter(ArrayType(np.shape(a), np.asarray(a).dtype)), name=f"x{k}") for k, a in enumerate(arrays)]
    with graph.building():
        return graph, build(*nodes)


def _weights(graph: Graph, out: Any, arrays: Any) -> np.ndarray:
    random = np.random.default_rng(3)
    shape = tuple(map(int, out.shape))
    weights = random.normal(size=shape)
    return weights + 1j * random.normal(size=shape) if out.dtype.kind == "c" else np.asarray(weights)

"""Helpers: run a graph as machine code, and compare with NumPy in the meaning of equal of docs/reference/numerics.md."""

import numpy as np

from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir import ArrayType, Extent, Graph, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops.leaf_operations import Length, Parameter
from jitlab.ops.library_operations import Library, call


def parameter(graph, array, name="x"):
    """A parameter for an array, an extent symbol for each axis longer than 1."""
    shape = tuple(
        Extent.symbol(f"{name}_{axis}", n) if n > 1 else n for axis, n in enumerate(np.shape(array))
    )
    return graph.add(Parameter(ArrayType(shape, np.asarray(array).dtype)), name=name)


def graph_of(op, *arrays):
    graph = Graph(op.name)
    if isinstance(op, Length):  # a size of no array here
        graph.sizes[op.extent.expr.symbols[0]] = int(op.extent)
    with graph.building():
        nodes = [parameter(graph, a, f"x{i}") for i, a in enumerate(arrays)]
        result = call(op, *nodes) if isinstance(op, Library) else graph.add(op, *nodes)
        graph.outputs = list(result) if isinstance(result, tuple) else [result]
    return verify(graph)


def run_compiled(graph, arrays, level="O1"):
    """The graph's outputs from machine code: everything in one cluster."""
    return runnable(cluster(graph, jit_compile=True), function=graph.name, level=level).run(arrays)


def assert_equal(got, want, *, functions=False, terms=None, magnitude=None):
    """dtype, shape and type as NumPy's; bits, or what docs/reference/numerics.md allows for functions and sums."""
    assert type(got) is type(want), f"{type(got)} instead of {type(want)}"
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if want.dtype.kind not in "fc" or not (functions or terms):
        same = np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
        assert same, f"{got!r} instead of {want!r}"
        if want.dtype.kind == "f":
            a, b = np.asarray(got), np.asarray(want)
            real = ~np.isnan(b)
            assert np.array_equal(np.signbit(a[real]), np.signbit(b[real]))
        return
    eps = np.finfo(want.dtype).eps
    if terms:
        limit = (8 + np.log2(max(terms, 1))) * eps * np.asarray(magnitude) * 2 + np.finfo(want.dtype).tiny
        wrong = ~(np.abs(np.asarray(got) - np.asarray(want)) <= limit) & ~(np.isnan(got) & np.isnan(want)) & (got != want)
        assert not np.any(wrong), f"{got!r} instead of {want!r}, off by {np.max(np.abs(got - want))}"
    else:
        np.testing.assert_allclose(got, want, rtol=8 * eps, atol=np.finfo(want.dtype).tiny)


def reference(graph, arrays):
    return interpret(graph, arrays)

"""Stores into arguments: what a call may overwrite, it does, and says so."""

import numpy as np

from jitlab.cluster import cluster
from jitlab.ir import ArrayType, Copied, Extent, Graph, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.lower import lower
from jitlab.ops.build_nodes import apply, elementwise
from jitlab.ops.elementwise.arithmetic import Add, Mul
from jitlab.ops.layout.views import Update, View
from jitlab.ops.leaf_operations import Parameter
from jitlab.targets.devices import default_target
from tests.numpy_target.interpreter import run_lowered

N = Extent.symbol("n", 6)
VECTOR = ArrayType((N,), np.dtype("f8"))


def shifted(two_results):
    """x[1:] = 2 * x[:-1]; with `two_results`, y = x + 1 before."""
    graph = Graph("shift")
    x = graph.add(Parameter(VECTOR), name="x")
    with graph.building():
        y = elementwise(Add(), x, 1.0)
        part = elementwise(Mul(), apply(View(((0, 1, 0),), (N - 1,)), x), 2.0)
        new = apply(Update(((1, 1, 0),), (N - 1,)), x, part)
        graph.outputs = [new, y] if two_results else [new]
    return verify(graph)


def lowered(graph, donated):
    (whole,) = cluster(graph, jit_compile=True).clusters
    given = {graph.parameters[0]} if donated else set()
    return lower(whole, graph.symbol_values(), ["C"] * len(whole.inputs), default_target().shape, donated=given)


def test_a_donated_argument_is_overwritten_in_place():
    graph = shifted(False)
    low = lowered(graph, True)
    assert low.in_place == {graph.outputs[0]: graph.parameters[0]} and low.outputs == []
    assert [copy.reason.code for copy in low.kept] == [Copied.OVERLAP]
    x = np.arange(6.0)
    assert np.array_equal(run_lowered(low, [x])[0], interpret(graph, [x])[0])


def test_an_argument_that_is_kept_is_copied():
    graph = shifted(False)
    low = lowered(graph, False)
    assert low.in_place == {} and [copy.reason.code for copy in low.kept] == [Copied.INPUT_KEPT]
    x = np.arange(6.0)
    assert np.array_equal(run_lowered(low, [x])[0], interpret(graph, [x])[0])


def test_what_reads_the_old_argument_comes_first():
    graph = shifted(True)
    low = lowered(graph, True)
    assert low.in_place == {graph.outputs[0]: graph.parameters[0]} and low.outputs == [graph.outputs[1]]
    x = np.arange(6.0)
    got = dict(zip(low.cluster.outputs, run_lowered(low, [x]), strict=True))
    for node, want in zip(graph.outputs, interpret(graph, [x]), strict=True):
        assert np.array_equal(got[node], want)

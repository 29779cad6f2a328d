"""Loops and branches run: random ones as machine code, those that cannot be compiled op by op; errors are NumPy's."""

import numpy as np
import pytest

from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir import ArrayType, Extent, Graph, Moving, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops.build_nodes import apply, elementwise
from jitlab.ops.control_flow import Loop
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.indexing import Take
from jitlab.ops.layout.views import Update, View
from jitlab.ops.leaf_operations import Parameter
from tests.lower.bodies import RandomProgram


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_loops_are_numpys_in_both_tiers(first):
    for seed in range(first, first + 10):
        program = RandomProgram(seed)
        before = [a.copy() for a in program.arrays]
        executable = runnable(cluster(program.graph, jit_compile=True))
        quick = executable.run(program.arrays)
        executable.settle()
        good = executable.run(program.arrays)
        for got, again, want in zip(quick, good, interpret(program.graph, before), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10, err_msg=f"seed {seed}")
            assert got.tobytes() == again.tobytes(), f"seed {seed}"
        for array, old in zip(program.arrays, before, strict=True):
            np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("first", range(200, 220, 10))
def test_random_loops_store_their_results_into_arguments(first):
    for seed in range(first, first + 10):
        program = RandomProgram(seed)
        graph, arrays = program.graph, [a.copy() for a in program.arrays]
        free = list(range(len(graph.outputs)))
        writes = []
        for number, parameter in enumerate(graph.parameters):  # say that some outputs are new versions of parameters
            found = [n for n in free if graph.outputs[n].type == parameter.type]
            if found:
                writes.append((number, found[0]))
                free.remove(found[0])
        got = runnable(cluster(graph, jit_compile=True), writes=writes).run_in_place(arrays)
        for array, want in zip(got, interpret(graph, program.arrays), strict=True):
            np.testing.assert_allclose(array, want, rtol=1e-9, atol=1e-10, err_msg=f"seed {seed}")


def picking(n, op):
    """for i in range(n): y[i] = x[k[i]] + 1"""
    size = Extent.symbol("n", n)
    graph, body = Graph("picking"), Graph("body", sizes={"n": n})
    types = [ArrayType((size,), np.dtype(t)) for t in ("f8", "f8", "i8")]
    i = Moving.symbol("i0", max(n // 2, 2))
    y, x, k = (body.add(Parameter(t), name=name) for t, name in zip(types, "yxk", strict=True))
    with body.building():
        value = elementwise(Add(), apply(op, x, apply(View(((i, 1, None),), ()), k)), 1.0)
        body.outputs = [apply(Update(((i, 1, None),), ()), y, value)]
    inputs = [graph.add(Parameter(t), name=name) for t, name in zip(types, "yxk", strict=True)]
    with graph.building():
        graph.outputs = [apply(Item(0, types[0]), apply(Loop(body, (types[0],), "i0", size), *inputs))]
    return verify(graph)


def test_an_index_out_of_range_inside_a_loop_is_numpys_error():
    arrays = [np.zeros(9), np.arange(9.0), np.array([3, 1, 4, 1, 5, -9, 2, 6, 5])]
    executable = runnable(cluster(picking(9, Take(0)), jit_compile=True))
    (got,) = executable.run(arrays)
    np.testing.assert_array_equal(got, arrays[1][arrays[2]] + 1)
    arrays[2][7] = 9
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 9"):
        executable.run(arrays)
    np.testing.assert_array_equal(arrays[0], 0)


def test_a_loop_outside_every_cluster_runs_op_by_op():
    arrays = [np.zeros(9), np.arange(9.0), np.array([3, 1, 4, 1, 5, -9, 2, 6, 5])]
    clustering = cluster(picking(9, Take(0)), jit_compile=False)
    assert not clustering.clusters
    (got,) = runnable(clustering).run(arrays)
    np.testing.assert_array_equal(got, arrays[1][arrays[2]] + 1)
    np.testing.assert_array_equal(arrays[0], 0)

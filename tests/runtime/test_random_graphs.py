"""Random programs: whatever is fused, the result is NumPy's."""

import numpy as np
import pytest

from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir import Overrides, interpret

from .random_graphs import random_graph


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 10))
@pytest.mark.parametrize("level", ["O0", "O1"])
def test_compiled_equals_interpreted(first, level):
    for seed in range(first, first + 10):
        graph, arguments = random_graph(seed)
        want = interpret(graph, arguments)
        got = runnable(cluster(graph, jit_compile=True), level=level).run(arguments)
        for a, b in zip(got, want, strict=True):
            assert np.shape(a) == np.shape(b), f"seed {seed}\n{graph}"
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10, err_msg=f"seed {seed}\n{graph}")


def test_long_programs():
    for seed in range(1000, 1008):
        graph, arguments = random_graph(seed, length=50)
        got = runnable(cluster(graph, jit_compile=True)).run(arguments)
        for a, b in zip(got, interpret(graph, arguments), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=f"seed {seed}\n{graph}")


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_what_is_wished_together_is_computed_again_and_is_the_same(first):
    joined = 0
    for seed in range(first, first + 20):
        graph, arguments = random_graph(seed, length=30)
        plain = runnable(cluster(graph, jit_compile=True))
        plain.prepare()
        apart = [edge for edge in edges_of(plain) if not together(plain, edge)]
        wished = runnable(cluster(graph, jit_compile=True, overrides=Overrides(fuse=tuple(apart))))
        wished.prepare()
        if not any(together(wished, edge) for edge in apart):
            continue
        joined += 1
        for a, b in zip(wished.run(arguments), plain.run(arguments), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10, err_msg=f"seed {seed}\n{graph}")
    assert joined


def edges_of(executable):
    nodes = executable.graph.nodes
    return [(source.name, node.name) for node in nodes for source in node.inputs if source in nodes]


def together(executable, edge):
    return any(set(edge) <= {node.name for node in kernel.nodes} for kernel in executable.plan.kernels)

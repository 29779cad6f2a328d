"""Random programs: whatever is fused, the result is NumPy's."""

import numpy as np
import pytest

from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir import interpret

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

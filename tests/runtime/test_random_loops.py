"""Random loops over overlapping slices as machine code: NumPy's results."""

import numpy as np
import pytest

from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir import interpret
from tests.lower.bodies import RandomProgram


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_compiled_loops_are_numpys(first):
    for seed in range(first, first + 10):
        program = RandomProgram(seed)
        want = interpret(program.graph, program.arrays)
        got = runnable(cluster(program.graph, jit_compile=True)).run([a.copy() for a in program.arrays])
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10, err_msg=f"seed {seed}\n{program.graph}")

"""Calls of NumPy, compiled: samples of every table entry, and what hypothesis makes of shapes, dtypes and layouts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir import interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops import Unsupported
from jitlab.passes import run_passes
from tests.ops import programs, test_table


def outcome(program):
    """Compile and run one call; "" when it gives what the graph means on NumPy, else what differs."""
    try:
        program.expected()
        graph, arrays = program.graph()
        want = interpret(verify(graph), arrays)
    except Exception:  # NumPy refuses it, or no graph holds it: tests/ops looks at that
        return "refused"
    try:
        with np.errstate(all="ignore"):
            got = runnable(cluster(run_passes(graph))).run(arrays)
    except Exception as error:
        return f"{program}: {type(error).__name__}: {error}"
    exact = program.exact and all(node.op.exact and not is_hypotenuse(node) for node in graph.nodes)
    try:
        for mine, theirs in zip(got, want, strict=True):
            close(mine, theirs, exact)
    except AssertionError as error:
        return f"{program}: {error}"
    return ""


def is_hypotenuse(node):
    """The length of a complex number and its roots are functions, within 3 ULP."""
    return node.op.name in ("Abs", "Sign", "Sqrt") and node.inputs[0].dtype.kind == "c"


def close(got, want, exact):
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
    elif exact and want.dtype.kind == "f":
        np.testing.assert_array_equal(got, want)
    else:
        eps = np.finfo(want.dtype).eps
        finite = np.abs(want[np.isfinite(want)])
        np.testing.assert_allclose(got, want, rtol=16 * eps, atol=64 * eps * max(1.0, float(np.max(finite, initial=0))))


@pytest.mark.long
@pytest.mark.parametrize("first", range(10))
@pytest.mark.parametrize("family", test_table.FAMILIES)
def test_sample_calls(family, first):
    found = [outcome(p) for p in list(test_table.FAMILIES[family]())[first::10]]
    wrong = [text for text in found if text not in ("", "refused")]
    assert "" in found
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong[:30])


@pytest.mark.parametrize("calls", ["elementwise_calls", "reduction_calls", "subscript_calls", "product_calls"])
def test_made_calls(calls):
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(getattr(programs, calls)())
    def check(program):
        assert outcome(program) in ("", "refused")

    check()
    assert Unsupported is not None

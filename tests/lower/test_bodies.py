"""Random loops over overlapping slices: the Program gives what NumPy gives, and would not without the dependence tests."""

import numpy as np
import pytest

from jitlab.cluster import cluster
from jitlab.ir import interpret
from jitlab.lower import lower, memory
from jitlab.lower.program_builder import Shared
from jitlab.lower.schedule.dependence import Relation
from jitlab.targets.devices import default_target
from tests.lower.bodies import RandomProgram
from tests.numpy_target.interpreter import run_lowered


def wrong(seed):
    """Is the result of this random program not NumPy's?"""
    program = RandomProgram(seed)
    graph = program.graph
    want = interpret(graph, program.arrays)
    (whole,) = cluster(graph, jit_compile=True).clusters
    values = dict(zip(graph.parameters, program.arrays, strict=True))
    lowered = lower(whole, graph.symbol_values(), ["C"] * len(whole.inputs), default_target().shape)
    got = run_lowered(lowered, [values[node] for node in whole.inputs])
    made = dict(zip(whole.outputs, got, strict=True))
    return any(
        not np.allclose(made.get(node, values.get(node)), w, rtol=1e-9, atol=1e-10, equal_nan=True)
        for node, w in zip(graph.outputs, want, strict=True)
    )


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_loops_are_numpys(first):
    assert [seed for seed in range(first, first + 20) if wrong(seed)] == []


def test_without_the_dependence_test_many_would_be_wrong(monkeypatch):
    monkeypatch.setattr(Shared, "harmless", frozenset(Relation))
    assert sum(wrong(seed) for seed in range(60)) >= 10


def test_without_looking_for_later_reads_some_would_be_wrong(monkeypatch):
    monkeypatch.setattr(memory, "_clashes", lambda *arguments: iter(()))
    assert sum(wrong(seed) for seed in range(60)) >= 5

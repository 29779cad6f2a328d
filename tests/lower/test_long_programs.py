"""A program may be as long as it likes: nests are bounded, and no recursion goes as deep as the program."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.lower import memory
from jitlab.lower.fusion import stages
from jitlab.targets.devices import default_target

X = np.linspace(0, 1, 5)
MOST = default_target().shape.nests


def chain(x, n):
    for _ in range(n):
        x = x * 1.0001
    return x


def fan(x, n):
    total = x
    for y in [x * (1 + k / n) for k in range(n // 2)]:
        total = total + y
    return total


def tree(x, n):
    level = [x * (1 + k / n) for k in range(n // 2)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + level[len(level) & ~1 :]
    return level[0]


def run(write, n, level="O1"):
    """What `write` gives, recorded operation by operation; the report."""
    graph = jl.Graph()
    with graph.as_default():
        x = jl.placeholder(np.float64, X.shape, name="x")
        with jl.jit_scope():
            y = write(x, n)
    with jl.record() as recording:
        result = jl.Session(graph).run(y, {x: X})
    return result, recording.report()


def test_a_chain_of_3_000_operations_is_cut_into_nests_that_give_numpys_bits():
    result, report = run(chain, 3000)
    assert np.array_equal(result, chain(X, 3000))
    assert len(report.kernels) == -(-3000 // MOST.deep)
    assert {edge.reason.code for edge in report.boundaries} == {"too_long"}


@pytest.mark.parametrize("write", [fan, tree])
def test_no_nest_of_a_wide_program_is_longer_than_one_may_be(write):
    n = MOST.operations + 200
    result, report = run(write, n)
    assert np.array_equal(result, write(X, n))
    assert 1 < len(report.kernels) <= 1 + n // MOST.deep
    assert all(len(kernel.ops) <= MOST.operations for kernel in report.kernels)


def all_kept(x):
    kept = [x + 1]
    for _ in list(range(MOST.stages + 5)):
        kept.append(kept[-1] * 1.5)
    return tuple(kept)


def test_a_nest_that_stores_as_much_as_one_may_is_the_reason_where_the_next_begins():
    report = jl.explain(jl.jit(all_kept), X)
    (edge,) = report.boundaries
    assert (edge.reason.code, edge.reason.evidence) == ("too_many_values", (str(MOST.stages + 1), str(MOST.stages)))
    assert f"a kernel's loops store and reduce at most {MOST.stages} values" in edge.reason.text and edge.would_fuse_if is None
    assert [len(kernel.ops) for kernel in report.kernels] == [MOST.stages, 6]


def test_a_short_program_is_one_nest():
    assert len(run(chain, MOST.deep - 1)[1].kernels) == 1


@pytest.mark.parametrize("write", [
    lambda x, r, k: np.stack([(x[i : i + 3] * r[:, i % 4 : i % 4 + 3]).ravel() for i in range(k)]),
    lambda x, r, k: [(x[i : i + 3] * r[:, i % 4 : i % 4 + 3]).ravel().sum() for i in range(k)],
    lambda x, r, k: unravelled(x, r, k),
], ids=["operands of one", "one each", "one after the other"])  # fmt: skip
def test_what_has_to_be_stored_first_costs_no_new_start_of_the_whole(write, monkeypatch):
    looked_at = []
    stage = stages._stage
    monkeypatch.setattr(stages, "_stage", lambda node, *rest: looked_at.append(node) or stage(node, *rest))
    x, r, k = np.arange(60 * 3.0).reshape(60, 3), np.arange(30.0).reshape(3, 10), 40
    traced = jl.jit(write, fullgraph=True)
    np.testing.assert_array_equal(traced(x, r, k), write(x, r, k))
    assert 0 < len(looked_at) < 8 * k


def unravelled(x, r, k):
    y = x.ravel()
    for _ in list(range(k)):
        y = (y.reshape(60, 3) * 1.01 + r[0, :3]).ravel()
    return y


def swaps(x):
    """Each iteration reads what lies in memory before it changes."""
    while x.size > 3:
        mid = x.size // 2
        x[mid], x[-2] = x[-2], x[mid]
        x = x[:-2]
    return x


def test_values_to_be_kept_are_found_together_however_many_there_are(monkeypatch):
    looked = []
    real = memory.stages_of
    monkeypatch.setattr(memory, "stages_of", lambda *args: looked.append(1) or real(*args))
    rounds = []
    for n in (20, 80):
        looked.clear()
        mine, theirs = np.arange(n), np.arange(n)
        assert np.array_equal(jl.jit(swaps)(mine), swaps(theirs)) and np.array_equal(mine, theirs)
        rounds.append(len(looked))
    assert rounds[0] == rounds[1] < 5

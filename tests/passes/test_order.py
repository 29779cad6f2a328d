"""exec_order: real topological orders, the same results."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.passes import order_operations


def two_chains(x):
    a = np.exp(x)
    b = np.sin(a)
    c = np.cos(b)
    d = np.tanh(a)
    e = np.sqrt(d)
    return c, e


CHAIN_ORDER = {"bfs": ["exp", "sin", "tanh", "cos", "sqrt"], "dfs": ["exp", "sin", "cos", "tanh", "sqrt"]}


@pytest.mark.parametrize("order", ["bfs", "dfs"])
def test_operations_run_in_the_order_asked_for(order):
    f = jl.jit(two_chains, exec_order=order, jit_level="O0")
    x = np.linspace(0.1, 1, 7)
    with jl.record() as recording:
        found = f(x)
    for mine, numpys in zip(found, two_chains(x), strict=True):
        np.testing.assert_allclose(mine, numpys, rtol=1e-12)
    report = recording.report()
    assert [op.name.lower() for op in report.ops] == CHAIN_ORDER[order]


def test_the_orders_of_a_graph():
    f = jl.jit(two_chains)
    f(np.ones(3))
    graph = f._last.graph
    operations = lambda nodes: [node.op.name.lower() for node in nodes if not node.op.is_parameter]  # noqa: E731
    for order, expected in CHAIN_ORDER.items():
        assert operations(order_operations(graph, order).nodes) == expected


def test_every_node_comes_after_what_it_reads():
    def program(x, y):
        for i in range(4):
            x = np.tanh(x + y[i]) @ np.ones((3, 3))
            y = y * 2 - x.sum()
        return x, y, x + y.mean()

    f = jl.jit(program)
    f(np.ones((3, 3)), np.ones(4))
    graph = f._last.graph
    for order in ("bfs", "dfs"):
        seen = set(graph.parameters)
        for node in order_operations(graph, order).nodes:
            assert set(node.inputs) <= seen
            seen.add(node)


@pytest.mark.parametrize("order", ["bfs", "dfs"])
def test_effects_stay_in_program_order(order):
    def program(rng, x):
        a = rng.random(3)
        b = x * 2 + rng.random(3)
        c = np.exp(b) + rng.random(3)
        return a, b, c

    f = jl.jit(program, exec_order=order)
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    for mine, numpys in zip(f(one, np.ones(3)), program(two, np.ones(3)), strict=True):
        np.testing.assert_allclose(mine, numpys, rtol=1e-12)

"""Gradients through loops and branches: right, compiled, and with no more memory than they need."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir import Graph
from jitlab.passes import control_gradient, run_passes
from tests.gradients import loop_programs
from tests.gradients.loop_programs import PROGRAMS


def along(function, x, step=1e-6):
    """A direction, and the difference of the function along it."""
    way = np.random.default_rng(1).normal(size=x.shape)
    return way, (function(x + step * way) - function(x - step * way)) / (2 * step)


def nodes_of(graph: Graph):
    for node in graph.nodes:
        yield node
        for body in getattr(node.op, "graphs", ()):
            yield from nodes_of(body)


@pytest.mark.parametrize(("program", "x"), PROGRAMS, ids=[f"{p.__name__}-{k}" for k, (p, _) in enumerate(PROGRAMS)])
def test_the_gradient_is_the_difference_and_compiles(program, x, monkeypatch):
    monkeypatch.setattr(control_gradient, "LEAST_BLOCK", 7)  # loops without a bound take several blocks
    monkeypatch.setattr(control_gradient, "MOST_BLOCK", 7)
    way, difference = along(program, x)
    with jl.expect(clusters=1, fallbacks=0):
        slope = jl.grad(program)(x)
    assert np.sum(slope * way) == pytest.approx(difference, rel=1e-5, abs=1e-7)


def slope_graph(program, x):
    slope = jl.function(jl.grad(program))
    return run_passes(slope.get_concrete_function(x).graph)


def test_a_loop_stays_a_loop():
    loops = [node for node in slope_graph(loop_programs.number_carried, np.ones(2)).nodes if node.op.name == "While"]
    assert len(loops) == 2  # forwards, backwards


def test_a_recurrence_in_place_saves_numbers_not_arrays():
    graph = slope_graph(loop_programs.recurrence_in_place, np.ones(30))
    forward = next(node for node in graph.nodes if node.op.name == "While")
    assert [t.shape for t in forward.op.types] == [(30,), (29,), (29,)]  # what it carries, and a number an iteration, twice


def test_sums_of_what_is_only_read_save_nothing():
    def program(x):
        s = 0.0
        for i in range(20):
            s = s + x[i] * 3.0
        return s

    graph = slope_graph(program, np.ones(20))
    assert len([node for node in graph.nodes if node.op.name == "While"]) == 1  # backwards alone


def test_what_flows_to_an_array_read_in_a_loop_is_added_in_place():
    """One full array, made before the loop: none in its body."""
    graph = slope_graph(loop_programs.recurrence_in_place, np.ones(30))
    *_, backward = (node for node in graph.nodes if node.op.name == "While")
    assert not [node for node in nodes_of(backward.op.body) if node.op.name in ("Fill", "AddV2") and node.shape == (30,)]


def test_ten_thousand_iterations():
    def recurrence(x):
        y = np.zeros(10_000)
        y[0] = x[0]
        for i in range(1, 10_000):
            y[i] = np.sin(y[i - 1]) * 0.9 + x[i] * y[i - 1]
        return y.sum()

    x = np.random.default_rng(0).normal(size=10_000) * 0.1
    way, difference = along(recurrence, x)
    with jl.expect(clusters=1, fallbacks=0):
        slope = jl.grad(recurrence)(x)
    assert np.sum(slope * way) == pytest.approx(difference, rel=1e-5)


def test_value_and_gradient_run_the_loop_once():
    graph = run_passes(jl.function(jl.value_and_grad(loop_programs.array_carried)).get_concrete_function(np.ones(4)).graph)
    assert len([node for node in graph.nodes if node.op.name == "While"]) == 2


@pytest.mark.parametrize("program", [loop_programs.left_by_return, loop_programs.many_steps, loop_programs.arrays_swapped])
def test_the_second_derivative(program, monkeypatch):
    monkeypatch.setattr(control_gradient, "LEAST_BLOCK", 20)
    monkeypatch.setattr(control_gradient, "MOST_BLOCK", 20)
    x = next(x for p, x in PROGRAMS if p is program)
    weights = np.linspace(-1.0, 2.0, x.size)

    def once(x):
        return (jl.grad(program)(x) * weights).sum()

    slope = jl.grad(program)
    way, difference = along(lambda x: (slope(x) * weights).sum(), x, 1e-5)
    assert np.sum(jl.grad(once)(x) * way) == pytest.approx(difference, rel=1e-4, abs=1e-7)


def test_a_loop_of_gradient_steps():
    def loss(w):
        total = 0.0
        for i in range(20):
            total = total + (w[0] * i - 3.0 * i + w[1]) ** 2
        return total / 20

    @jl.function(jit_compile=True)
    def train(w):
        for _ in range(30):
            w = w - 0.004 * jl.grad(loss)(w)
        return w

    w = np.zeros(2)
    for _ in range(30):
        i = np.arange(20)
        r = w[0] * i - 3.0 * i + w[1]
        w = w - 0.004 * np.array([2 * (r * i).mean(), 2 * r.mean()])
    np.testing.assert_allclose(train(np.zeros(2)), w, rtol=1e-9)


def test_a_graph_without_a_capture_has_the_gradient_too():
    """The pass alone, on a graph that was finished before: it names its symbols apart from those that stand there."""
    from jitlab.ir import interpret
    from jitlab.ir.graphs.verify import verify
    from jitlab.passes import gradients

    graph = jl.function(loop_programs.recurrence_in_place).get_concrete_function(np.ones(30)).graph
    x = np.linspace(0.1, 0.5, 30)
    graph.outputs = gradients(graph, graph.outputs, graph.parameters)
    way, difference = along(loop_programs.recurrence_in_place, x)
    assert np.sum(interpret(verify(graph), [x])[0] * way) == pytest.approx(difference, rel=1e-6)


def test_an_unbounded_loop_with_effects_says_what_to_do():
    def program(x):
        while x < 100.0:
            jl.print_(x)
            x = x * 1.5
        return x

    with pytest.raises(jl.errors.NoGradientError, match="no bound on its iterations"):
        jl.function(jl.grad(program))(np.float64(1.0))

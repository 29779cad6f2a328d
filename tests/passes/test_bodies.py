"""Passes on loops and branches: bodies are simplified too, and handed in is only what they need."""

import numpy as np
import pytest

from jitlab.ir import ArrayType, Graph, interpret, verify
from jitlab.ops import Add, Item, Less, Loop, Mul, Parameter, as_node
from jitlab.ops.build import apply, elementwise
from jitlab.passes import PASSES
from jitlab.passes.bodies import drop_unused_inputs, with_bodies
from tests.lower.bodies import RandomProgram

f64 = np.dtype("f8")


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_loops_keep_every_bit(first):
    for seed in range(first, first + 20):
        program = RandomProgram(seed)
        want = interpret(program.graph, program.arrays)
        graph = program.graph
        for one in PASSES:
            graph = verify(with_bodies(one)(graph))
            for a, b in zip(interpret(graph, program.arrays), want, strict=True):
                assert np.array_equal(a, b, equal_nan=True), f"seed {seed}, {one.__name__}\n{graph}"


def loop_graph(step, count, *, read):
    """A loop that carries `count` numbers, of which the results `read` are used."""
    graph = Graph("f")
    starts = [graph.add(Parameter(ArrayType((), f64)), name=f"x{k}") for k in range(count)]
    body = Graph("body")
    parameters = [body.add(Parameter(s.type), name=f"p{k}") for k, s in enumerate(starts)]
    with body.building():
        body.outputs = list(step(*parameters))
    with graph.building():
        node = apply(Loop(body, tuple(s.type for s in starts), "i0", 3), *starts)
        graph.outputs = [elementwise(Mul(), apply(Item(k, f64_scalar), node), 2.0) for k in read]
    return verify(graph)


f64_scalar = ArrayType((), f64)


def loop_of(graph):
    return next(node for node in graph.nodes if isinstance(node.op, Loop))


def test_what_no_iteration_changes_is_captured():
    graph = loop_graph(lambda a, b: (elementwise(Add(), a, b), b), 2, read=[0, 1])
    after = verify(drop_unused_inputs(graph))
    assert len(loop_of(after).op.types) == 1 and len(loop_of(after).inputs) == 2
    assert interpret(after, [1.0, 2.0]) == interpret(graph, [1.0, 2.0])


def test_what_changes_nothing_that_is_read_goes():
    def step(a, b, c):
        return elementwise(Add(), a, 1.0), elementwise(Add(), b, c), elementwise(Add(), c, b)

    graph = loop_graph(step, 3, read=[0])
    after = verify(drop_unused_inputs(graph))
    assert len(loop_of(after).op.types) == len(loop_of(after).inputs) == 1
    assert interpret(after, [1.0, 2.0, 3.0]) == interpret(graph, [1.0, 2.0, 3.0])


def test_what_the_next_value_needs_stays():
    graph = loop_graph(lambda a, b: (elementwise(Add(), a, b), elementwise(Add(), b, 1.0)), 2, read=[0])
    assert drop_unused_inputs(graph) is graph


def test_a_result_given_out_stays_a_result():
    graph = loop_graph(lambda a: (a,), 1, read=[0])
    graph.outputs = [graph.outputs[0].inputs[0]]
    after = drop_unused_inputs(verify(graph))
    assert after is graph and interpret(after, [3.0]) == [3.0]


def test_what_the_test_reads_stays():
    graph = loop_graph(lambda a, b: (elementwise(Add(), a, 1.0), elementwise(Mul(), b, 2.0)), 2, read=[0])
    loop = loop_of(graph)
    test = Graph("test")
    asked = [test.add(Parameter(p.type), name=f"q{k}") for k, p in enumerate(loop.op.body.parameters)]
    with test.building():
        test.outputs = [apply(Less(), asked[1], as_node(100.0, f64))]
    with graph.building():
        node = apply(Loop(loop.op.body, loop.op.types, "i0", None, test), *loop.inputs)
        graph.outputs = [elementwise(Mul(), apply(Item(0, f64_scalar), node), 2.0)]
    after = verify(drop_unused_inputs(verify(graph)))
    assert interpret(after, [1.0, 3.0]) == interpret(graph, [1.0, 3.0])


def test_bodies_are_simplified():
    graph = loop_graph(lambda a: (elementwise(Add(), elementwise(Mul(), a, 1.0), 1.0),), 1, read=[0])
    for one in PASSES:
        graph = verify(with_bodies(one)(graph))
    assert [node.op.name for node in loop_of(graph).op.body.nodes] == ["Const", "AddV2"]

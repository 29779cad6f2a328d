"""Passes on loops and branches: bodies are simplified too, and handed in is only what they need."""

import numpy as np
import pytest

from jitlab.ir import ArrayType, Graph, Moving, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops import as_node
from jitlab.ops.build_nodes import apply, elementwise
from jitlab.ops.control_flow import Loop
from jitlab.ops.elementwise.arithmetic import Add, Mul
from jitlab.ops.elementwise.comparison import Less
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.creation import zeros
from jitlab.ops.layout.views import Update, View
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.linear_algebra.matrix_products import MatMul
from jitlab.passes import PASSES, hoisting
from jitlab.passes.each_body import drop_unused_inputs, with_bodies
from jitlab.passes.hoisting import hoist_products
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
            if one is hoist_products:
                continue  # sums in another order
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


def products(a, b, move, n):
    """for i in range(n): out[i] = product of what `move` takes of a and b in iteration i"""
    graph, body = Graph("products"), Graph("body")
    x, y = (graph.add(Parameter(ArrayType(m.shape, f64)), name=name) for m, name in ((a, "a"), (b, "b")))
    i = Moving.symbol("i0", n // 2)
    inner = [body.add(Parameter(m.type), name=name) for m, name in ((x, "a"), (y, "b"))]
    with body.building():
        row = apply(MatMul(), *move(*inner, i))
        out = body.add(Parameter(ArrayType((n, *row.shape), f64)), name="out")
        body.parameters = [out, *inner]
        entries = ((i, 1, None), *((0, 1, axis) for axis in range(row.ndim)))
        body.outputs = [apply(Update(entries, row.shape), out, row)]
    with graph.building():
        loop = apply(Loop(body, (out.type,), "i0", n), zeros(out.shape, f64), x, y)
        graph.outputs = [apply(Item(0, out.type), loop)]
    return verify(graph)


def row_of(m, i, length):
    return apply(View(((i, 1, None), (0, 1, 0)), (length,)), m)


def column_of(m, i, length):
    return apply(View(((0, 1, 0), (i, 1, None)), (length,)), m)


MOVES = {
    "a row with a matrix": lambda a, b, i: (row_of(a, i, 40), b),
    "a row with a part of a matrix": lambda a, b, i: (row_of(a, i, 40), apply(View(((0, 1, 0), (i, 1, 1)), (40, 30)), b)),
    "a matrix with a column": lambda a, b, i: (a, column_of(b, i + 1, 40)),
    "every second row": lambda a, b, i: (row_of(a, 2 * i + 1, 40), b),
    "a row with a column": lambda a, b, i: (row_of(a, i, 40), column_of(b, 3, 40)),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_products_of_rows_become_one_product(move, monkeypatch):
    monkeypatch.setattr(hoisting, "WORTH", 0)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (61, 40)), rng.uniform(-1, 1, (40, 61))
    graph = products(a, b, move, 30)
    after = verify(hoist_products(graph))
    assert [node.op.name for node in after.nodes].count("MatMul") == 1
    assert "MatMul" not in [node.op.name for node in loop_of(after).op.body.nodes]
    assert np.allclose(interpret(after, [a, b])[0], interpret(graph, [a, b])[0], rtol=1e-12)

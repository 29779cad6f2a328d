"""Loops and branches as nodes: what they mean, op by op."""

import numpy as np
import pytest

from jitlab.ir import ArrayType, Extent, Graph, interpret
from jitlab.ir.graphs.verify import verify
from jitlab.ops import as_node
from jitlab.ops.build_nodes import apply, elementwise
from jitlab.ops.control_flow import Branch, Define, Loop
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.elementwise.comparison import Less
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.views import Update, View
from jitlab.ops.leaf_operations import Parameter

f64 = np.dtype("f8")


def parameter(graph, name, shape=(), dtype=f64):
    return graph.add(Parameter(ArrayType(shape, np.dtype(dtype))), name=name)


def body_of(name, *types):
    graph = Graph(name)
    return graph, [parameter(graph, f"p{k}", *t) for k, t in enumerate(types)]


def running_sum(n):
    """for i in range(n - 1): x[i + 1] += x[i]"""
    graph = Graph("running")
    x = parameter(graph, "x", (n,))
    body, (inner,) = body_of("body", ((n,),))
    i = Extent.symbol("i0", n // 2)
    with body.building():
        here, following = (apply(View(((at, 1, None),), ()), inner) for at in (i, i + 1))
        body.outputs = [apply(Update(((i + 1, 1, None),), ()), inner, apply(Add(), following, here))]
    with graph.building():
        loop = apply(Loop(body, (x.type,), "i0", n - 1), x)
        graph.outputs = [apply(Item(0, x.type), loop)]
    return verify(graph)


def test_a_loop_writes_where_its_symbol_says():
    x = np.arange(6.0)
    (result,) = interpret(running_sum(6), [x])
    assert np.array_equal(result, np.cumsum(np.arange(6.0))) and np.array_equal(x, np.arange(6.0))


def test_a_loop_ends_when_its_test_says_no():
    graph = Graph("doubling")
    x = parameter(graph, "x")
    body, (inner,) = body_of("body", ())
    test, (asked,) = body_of("test", ())
    with body.building():
        body.outputs = [apply(Add(), inner, inner)]
    with test.building():
        test.outputs = [apply(Less(), asked, as_node(100.0, f64))]
    with graph.building():
        loop = apply(Loop(body, (x.type,), "i0", None, test), x)
        graph.outputs = [apply(Item(0, x.type), loop)]
    assert interpret(verify(graph), [np.float64(3.0)]) == [192.0]
    assert interpret(graph, [np.float64(200.0)]) == [200.0]


@pytest.mark.parametrize(("x", "result"), [(3.0, 6.0), (-3.0, -3.0)])
def test_a_branch_gives_the_values_of_one_side(x, result):
    graph = Graph("branch")
    value = parameter(graph, "x")
    then, (a,) = body_of("then", ())
    orelse, (b,) = body_of("orelse", ())
    with then.building():
        then.outputs = [apply(Add(), a, a)]
    orelse.outputs = [b]
    with graph.building():
        condition = apply(Less(), as_node(0.0, f64), value)
        graph.outputs = [apply(Item(0, value.type), apply(Branch(then, orelse, (value.type,)), condition, value))]
    assert interpret(verify(graph), [np.float64(x)]) == [result]


def test_a_symbol_can_be_an_integer_that_was_read():
    graph = Graph("prefix")
    x, n = parameter(graph, "x", (5,)), parameter(graph, "n", (), "i8")
    with graph.building():
        apply(Define("d0", 0, 5), n)
        length = Extent.symbol("d0", 2)
        graph.outputs = [apply(View(((0, 1, 0),), (length,)), x)]
    assert interpret(graph, [np.arange(5.0), np.int64(4)])[0].tolist() == [0, 1, 2, 3]


def test_nested_loops_see_the_symbols_around_them():
    """for i in range(n): for j in range(i): total += i * 10 + j"""
    graph = Graph("nested")
    start = parameter(graph, "start", (), "i8")
    outer, (total,) = body_of("outer", ((), "i8"))
    inner, (running,) = body_of("inner", ((), "i8"))
    i, j = Extent.symbol("i0", 3), Extent.symbol("i1", 2)
    with inner.building():
        inner.outputs = [elementwise(Add(), running, as_node(i * 10 + j))]
    with outer.building():
        outer.outputs = [apply(Item(0, total.type), apply(Loop(inner, (total.type,), "i1", i), total))]
    with graph.building():
        graph.outputs = [apply(Item(0, start.type), apply(Loop(outer, (start.type,), "i0", 5), start))]
    assert interpret(verify(graph), [np.int64(0)]) == [sum(i * 10 + j for i in range(5) for j in range(i))]
    assert "While(i1 in 0..i0)" in str(graph)

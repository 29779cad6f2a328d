"""Each decision tells the smallest change that would flip it: thirty of them are made, and flip it.

A row is a small program, the operation (or the edge) in question, and the change that is told for it. The change is made in the
program itself: another mark, another order, another setting. Then the operation is compiled, the edge contracted.
"""

import dataclasses
import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from jitlab.cluster import cluster, flip_search, jit_scope
from jitlab.ir import ArrayType, Change, Clustering, ClusteringOptions, Edge, Flip, Graph, Node
from jitlab.ops.build_nodes import apply, cast
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.elementwise.math_functions import Exp
from jitlab.ops.leaf_operations import Parameter
from tests.cluster.cluster_graphs import OFF, OURS, SESSION, VECTOR, FloatsOnly, Making, NoLoop, Slow, making

GPU, OTHER_GPU = "/device:GPU:0", "/device:GPU:1"
INTEGERS = ArrayType((3,), np.dtype("i4"))

Table = list[tuple[str, Callable[[Making], tuple[Node, ...]], ClusteringOptions, Change]]


def disallowed(g):
    with jit_scope(compile_ops=False):
        y = g.sin(g.x)
    return (y,)


def disallowed_by_a_function(g):
    with jit_scope(compile_ops=lambda node: node.op != "Exp"):
        y = g.exp(g.sin(g.x))
    return (y,)


def disallowed_inside(g):
    with jit_scope():
        y = g.sin(g.x)
        with jit_scope(compile_ops=False):
            z = g.cos(y)
    return (z,)


def sin(g):
    return (g.sin(g.x),)


def sin_cos(g):
    y = g.sin(g.x)
    return y, g.cos(y)


def strict(g):
    with jit_scope(strict=True):
        y = g.sin(g.x)
    return (g.cos(y),)


def two_scopes(g):
    with jit_scope():
        y = g.sin(g.x)
    with jit_scope():
        z = g.cos(y)
    return y, z


def marked_and_not(g):
    with jit_scope():
        y = g.sin(g.x)
    return y, g.cos(y)


def allowed_and_not(g):
    with jit_scope():
        y = g.sin(g.x)
    with jit_scope(compile_ops=False):
        z = g.cos(y)
    return y, z


def way_through_what_is_disallowed(g):
    y = g.sin(g.x)
    with jit_scope(compile_ops=False):
        z = g.cos(y)
    return y, g.add(y, z)


def way_through_what_has_no_loop(g):
    y = g.sin(g.x)
    z = g.host(y)
    return y, g.add(y, z)


def way_through_another_scope(g):
    with jit_scope():
        y = g.sin(g.x)
    with jit_scope():
        z = g.cos(y)
    w = g.add(y, z)
    w.attrs.update(y.attrs)
    return y, w


def way_through_an_excluded(g):
    y = g.sin(g.x)
    return y, g.add(y, g.exp(y))


def exotic(g):
    return (g.make(FloatsOnly(), g.argument(INTEGERS)),)


def exotic_marked(g):
    with jit_scope():
        return (g.make(FloatsOnly(), g.argument(INTEGERS)),)


def exotic_then_sin(g):
    y = g.make(FloatsOnly(), g.argument(VECTOR.with_dtype(np.dtype("f4"))))
    return y, g.sin(y)


def deep(g):
    return (g.branch(g.x, 12).inputs[0],)


def slow(g):
    return (g.make(Slow(), g.x),)


def on_no_device(g):
    with jit_scope():
        return (g.sin(g.x, device="/device:TPU:0"),)


def on_two(g):
    y = g.sin(g.x, device=GPU)
    return y, g.cos(y, device=OTHER_GPU)


def waits_for_another_device(g):
    a, b = g.sin(g.x, device=GPU), g.exp(g.x, device=OTHER_GPU)
    return a, g.cos(g.add(a, b, device=GPU), device=GPU).inputs[0]


def reads_what_was_assigned(g):
    w = g.assign(g.sin(g.x))
    return w, g.read(w)


def product(g):
    m = g.argument(ArrayType((3, 3), np.dtype("f8")))
    return (g.dot(m, m),)


def chain(g):
    y = g.sin(g.x)
    z = g.cos(y)
    g.exp(z)
    return y, z


ONES = dataclasses.replace(SESSION, min_size=1)
TABLE: Table = [
    ("compile_ops=False", disallowed, SESSION, Change.ALLOW),
    ("compile_ops=False, OFF", disallowed, OFF, Change.ALLOW),
    ("compile_ops=False in a function", disallowed, OURS, Change.ALLOW),
    ("compile_ops a function", disallowed_by_a_function, SESSION, Change.ALLOW),
    ("compile_ops=False inside True", disallowed_inside, OFF, Change.ALLOW),
    ("OFF", sin, OFF, Change.MARK),
    ("OFF in a function", sin, dataclasses.replace(OURS, level="OFF"), Change.MARK),
    ("strict", strict, OURS, Change.MARK),
    ("too small", sin, SESSION, Change.MIN_SIZE),
    ("too small, of two", lambda g: sin_cos(g)[1:], dataclasses.replace(SESSION, min_size=3), Change.MIN_SIZE),
    ("no fuel", sin, dataclasses.replace(ONES, fuel=0), Change.FUEL),
    ("fuel for one", lambda g: sin_cos(g)[1:], dataclasses.replace(ONES, fuel=1), Change.FUEL),
    ("not listed", sin, dataclasses.replace(ONES, listed=frozenset(["Cos"])), Change.LIST),
    ("not fusible", product, dataclasses.replace(ONES, listed=frozenset(["Cos"]), fusible=True), Change.LIST),
    ("excluded", sin, dataclasses.replace(ONES, excluded=frozenset(["Sin", "Cos"])), Change.DO_NOT_EXCLUDE),
    ("dtype", exotic, OURS, Change.CAST),
    ("dtype, marked", exotic_marked, OFF, Change.CAST),
    ("too deep", deep, SESSION, Change.NEST_LESS),
    ("slow", slow, ONES, Change.MUST),
    ("no compiler", on_no_device, SESSION, Change.PLACE),
    ("edge: scopes", two_scopes, OFF, Change.ONE_SCOPE),
    ("edge: one end not marked", marked_and_not, OFF, Change.MARK),
    ("edge: none marked", sin_cos, OFF, Change.LEVEL),
    ("edge: one end not allowed", allowed_and_not, SESSION, Change.ALLOW),
    ("edge: too small", sin_cos, dataclasses.replace(SESSION, min_size=3), Change.MIN_SIZE),
    ("edge: too large", chain, dataclasses.replace(SESSION, max_size=2), Change.MAX_SIZE),
    ("edge: dtype of one end", exotic_then_sin, OURS, Change.CAST),
    ("edge: one end excluded", sin_cos, dataclasses.replace(OURS, excluded=frozenset(["Cos"])), Change.DO_NOT_EXCLUDE),
    ("edge: two GPUs", on_two, SESSION, Change.PLACE),
    ("edge: waits for another GPU", waits_for_another_device, SESSION, Change.PLACE),
    ("edge: variable", reads_what_was_assigned, ONES, Change.USE_VALUE),
    ("edge: a way through what is not allowed", way_through_what_is_disallowed, OURS, Change.ALLOW),
    ("edge: a way through what is excluded", way_through_an_excluded,
     dataclasses.replace(OURS, excluded=frozenset(["Exp"])), Change.DO_NOT_EXCLUDE),
    ("edge: a way through another scope", way_through_another_scope, OFF, Change.ONE_SCOPE),
    ("edge: a way through what has no loop", way_through_what_has_no_loop, OURS, Change.COMPUTE_TWICE),
]  # fmt: skip


@pytest.mark.parametrize(("build", "options", "change"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_change_that_is_told_flips_the_decision(build, options, change):
    with making() as g:
        asked = build(g)
        users = g.graph.users()
        g.graph.outputs = [node for node in g.graph.nodes if not users[node]]
        before = cluster(g.graph, options)
        what = edge_between(before, *asked) if len(asked) == 2 else asked[0]
        assert not together(before, asked)
        flip = flip_search.Advisor(before)(what)
        assert flip is not None and flip.change is change and flip.said
        graph, settings, asked = changed(g.graph, options, flip, asked, before)
        assert together(cluster(graph, **settings), asked)


def test_there_are_thirty():
    assert len(TABLE) >= 30 and {change for *_, change in TABLE} == set(Change)


def edge_between(clustering: Clustering, a: Node, b: Node) -> Edge:
    return next(edge for edge in clustering.apart if (edge.producer, edge.consumer) == (a, b))


def together(clustering: Clustering, nodes: tuple[Node, ...]) -> bool:
    """Is it in a cluster; are they in one?"""
    return any(set(nodes) <= set(c.members) for c in clustering.clusters)


def changed(
    graph: Graph, options: ClusteringOptions, flip: Flip, asked: tuple[Node, ...], before: Clustering
) -> tuple[Graph, dict[str, Any], tuple[Node, ...]]:
    """The program after the change: the graph, how it is clustered, and the operations in question there."""
    by_name = {node.name: node for node in graph.nodes}
    named = [by_name[name] for name in flip.names]
    match flip.change:
        case Change.ALLOW | Change.MARK:
            for node in named:
                node.attrs["_XlaCompile"] = True
                node.attrs["_XlaScope"] = flip.value or node.attrs.get("_XlaScope", "jit_scope_9")
        case Change.ONE_SCOPE:
            for node in named:
                node.attrs["_XlaScope"] = flip.value
        case Change.PLACE:
            for node in named:
                node.attrs["device"] = flip.value
        case Change.LEVEL:
            options = dataclasses.replace(options, level=flip.value)
        case Change.MIN_SIZE:
            options = dataclasses.replace(options, min_size=flip.value)
        case Change.MAX_SIZE:
            options = dataclasses.replace(options, max_size=flip.value)
        case Change.FUEL:
            options = dataclasses.replace(options, fuel=flip.value)
        case Change.LIST:
            options = dataclasses.replace(options, listed=options.listed | {flip.value})
        case Change.DO_NOT_EXCLUDE:
            options = dataclasses.replace(options, excluded=options.excluded - {flip.value})
        case Change.MUST:
            return graph, {"jit_compile": True}, asked
        case Change.NEST_LESS:
            with making() as g:
                y = g.branch(g.x, flip.value)
                g.graph.outputs = [y]
            return g.graph, {"options": options}, (y.inputs[0],)
        case Change.CAST:
            return rebuilt(graph, options, asked, {named[0]: lambda node, inputs: [cast(x, flip.value) for x in inputs]})
        case Change.USE_VALUE:
            return rebuilt(graph, options, asked, {named[1]: None})
        case Change.COMPUTE_TWICE:

            def second(node: Node, inputs: list[Node]) -> list[Node]:
                again = apply(named[0].op, *[new[source] for source in named[0].inputs])
                again.attrs.update(named[0].attrs)
                new["again"] = again
                return [again if source is new[named[0]] else source for source in inputs]

            new: dict[Any, Node] = {}
            return rebuilt(graph, options, asked, {named[1]: second}, new)
    return graph, {"options": options}, asked


def rebuilt(
    graph: Graph,
    options: ClusteringOptions,
    asked: tuple[Node, ...],
    other: dict[Node, Any],
    new: dict[Any, Node] | None = None,
) -> tuple[Graph, dict[str, Any], tuple[Node, ...]]:
    """The graph made anew, with other inputs for some operations; None: what it read takes the operation's place."""
    new = {} if new is None else new
    made = Graph(graph.name)
    for node in graph.parameters:
        new[node] = made.add(node.op, name=node.name)
    with made.building():
        for node in graph.nodes:
            inputs = [new[source] for source in node.inputs]
            if node in other and other[node] is None:
                new[node] = inputs[0]
                continue
            if node in other:
                inputs = other[node](node, inputs)
            new[node] = made.append(
                Node(node.op, inputs, node.op.result(*(x.type for x in inputs)), name=node.name, attrs=node.attrs)
            )
    made.outputs = [new[node] for node in graph.outputs]
    made.marked_only = graph.marked_only
    first = new.get("again", new[asked[0]])
    return made, {"options": options}, (first, *(new[node] for node in asked[1:]))


def test_what_is_told_is_true_in_random_graphs():
    """Every change told is made on a graph of its own."""
    r = random.Random(3)
    told = 0
    for _ in range(100):
        seed, count = r.random(), r.randint(2, 14)
        options = dataclasses.replace(
            r.choice([SESSION, OFF, OURS]),
            **r.choice([{}, {"max_size": 3}, {"excluded": frozenset(["Exp"])}, {"fuel": 3}, {"listed": frozenset(["AddV2"])}]),
        )
        for number in range(len(questions(cluster(random_graph(seed, count), options)))):
            graph = random_graph(seed, count)
            before = cluster(graph, options)
            what = questions(before)[number]
            flip = flip_search.Advisor(before)(what)
            asked = (what.producer, what.consumer) if isinstance(what, Edge) else (what,)
            if flip is None:  # test_undoing_all.py: several changes, or none at all
                continue
            graph, settings, asked = changed(graph, options, flip, asked, before)
            assert together(cluster(graph, **settings), asked), flip
            told += 1
    assert told > 300


def questions(clustering: Clustering) -> list[Any]:
    return [*(n for n in clustering.stays if n.op.name not in ("Placeholder", "Const")), *clustering.apart]


def random_graph(seed: float, count: int) -> Graph:
    r = random.Random(seed)
    graph = Graph("random")
    with graph.building():
        values = [graph.add(Parameter(VECTOR), name="x")]
        for _ in range(count):
            op = r.choice([Exp(), Add(), Add(), NoLoop()])
            operands = [r.choice(values[-5:]) for _ in range(2)][: 1 if isinstance(op, Exp) else 2]
            with r.choice([nullcontext, nullcontext, jit_scope, lambda: jit_scope(False)])():
                values.append(apply(op, *operands))
    graph.outputs = values[-2:]
    return graph


def test_in_a_large_graph_only_what_is_certain_is_told(monkeypatch):
    monkeypatch.setattr(flip_search, "MOST_WORK", 2)
    with making() as g:
        y, z = sin_cos(g)
        w = g.host(z)
        for options, expected in ((OFF, Change.MARK), (dataclasses.replace(SESSION, min_size=5), Change.MIN_SIZE)):
            clustering = cluster(g.graph, options)
            advisor = flip_search.Advisor(clustering)
            assert advisor(y).change is expected
            assert advisor(edge_between(clustering, y, z)) is None and advisor(w) is None

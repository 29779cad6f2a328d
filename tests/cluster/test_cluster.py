"""Auto-clustering: what the contract says was observed upstream, and a reason for each decision."""

import itertools
import random
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from jitlab.cluster import cluster, jit_scope, reset_names
from jitlab.errors import InvalidArgumentError
from jitlab.ir import Apart, ArrayType, Clustering, Extent, Graph, Joined, Node, Source, Stays, interpret, positions
from jitlab.messages import Message
from jitlab.ops.build_nodes import apply, cast, constant, elementwise
from jitlab.ops.control_flow import Branch, Loop
from jitlab.ops.elementwise.arithmetic import Add, Mul
from jitlab.ops.elementwise.math_functions import Exp
from jitlab.ops.graph_state import Identity
from jitlab.ops.host_operations import HostCall, Input, Item
from jitlab.ops.leaf_operations import Length, Parameter
from tests.cluster.cluster_graphs import FloatsOnly, NoLoop, Print

VECTOR = ArrayType((3,), np.dtype("f8"))


@pytest.fixture(autouse=True)
def graph():
    reset_names()
    graph = Graph("f")
    with graph.building():
        graph.add(Parameter(VECTOR), name="x")
        yield graph


def add(*operands: Node) -> Node:
    return apply(Add(), *operands)


def exp(operand: Node) -> Node:
    return apply(Exp(), operand)


def done(graph: Graph, *outputs: Node, **options: Any) -> Clustering:
    graph.outputs = list(outputs)
    return cluster(graph, **{"min_size": 2, **options})


def sets(clustering: Clustering) -> list[set[str]]:
    return [{node.name for node in c.nodes} for c in clustering.clusters]


def codes(clustering: Clustering) -> dict[str, Stays]:
    return {node.name: reason.code for node, reason in clustering.stays.items()}


def edges(clustering: Clustering) -> list[tuple[str, str, Apart]]:
    return [(edge.producer.name, edge.consumer.name, edge.reason.code) for edge in clustering.apart]


def test_a_chain_is_one_cluster_with_its_borders(graph):
    (x,) = graph.parameters
    y = exp(add(x, x))
    (c,) = done(graph, y).clusters
    assert (c.name, c.inputs, c.outputs, c.reason.code) == ("cluster_0", [x], [y], Joined.AUTO)


def test_consumers_join_first_when_the_size_is_limited(graph):
    s0 = exp(graph.parameters[0])
    s1 = exp(s0)
    s2 = exp(s1)
    clustering = done(graph, s2, max_size=2)
    assert sets(clustering) == [{"exp_1", "exp_2"}]
    assert codes(clustering) == {"exp": Stays.SIZE}
    assert edges(clustering) == [("exp", "exp_1", Apart.SIZE)]
    (edge,) = clustering.apart
    assert edge.reason.text == "Separate from cluster_0: together they would have 3 operations, and a cluster has at most 2"
    assert edge.reason.evidence == (3, 2) and edge.bytes == 24


def test_a_path_through_a_host_operation_keeps_its_ends_apart(graph):
    a = exp(graph.parameters[0])
    u = apply(NoLoop(), a)
    c = add(u, a)
    d = exp(c)
    e = exp(d)
    clustering = done(graph, e)
    assert sets(clustering) == [{c.name, d.name, e.name}]
    assert codes(clustering) == {"exp": Stays.SIZE, "noloop": Stays.NO_LOOP_BODY}
    assert clustering.steps[:2] == [a, u]
    reasons = {(edge.producer, edge.consumer): edge.reason for edge in clustering.apart}
    assert reasons[a, c].text == "Separate from cluster_0: noloop has to run between them"
    assert reasons[a, c].evidence == ("noloop",)
    assert reasons[a, u].code is reasons[u, c].code is Apart.NOT_COMPILED
    assert reasons[u, c].text == "NumPy runs noloop"


def test_an_edge_refused_first_is_joined_when_the_path_has_been_joined(graph):
    a = exp(graph.parameters[0])
    b = exp(a)
    c = add(a, b)
    assert sets(done(graph, c)) == [{a.name, b.name, c.name}]


def test_an_edge_that_closes_no_cycle_joins_beside_one_that_would(graph):
    a = exp(graph.parameters[0])
    u = apply(NoLoop(), a)
    b = exp(a)
    c = add(u, exp(b))
    clustering = done(graph, c, min_size=1)
    assert len(clustering.clusters) == 2
    joined = next(cl for cl in clustering.clusters if c in cl.nodes)
    assert b in joined.nodes and a not in joined.nodes  # consumers first


def test_two_independent_chains_are_two_clusters_even_in_one_scope(graph):
    (x,) = graph.parameters
    with jit_scope():
        a, b = exp(exp(x)), add(add(x, x), x)
    for level in ("ON", "OFF"):
        assert len(done(graph, a, b, level=level).clusters) == 2


def test_scope_numbers_count_when_the_level_is_off_only(graph):
    with jit_scope():
        a = exp(graph.parameters[0])
    with jit_scope():
        b = exp(a)
    assert sets(done(graph, b, level="ON")) == [{"exp", "exp_1"}]
    off = done(graph, b, level="OFF")
    assert sets(off) == [{"exp"}, {"exp_1"}]
    assert [c.scope for c in off.clusters] == ["jit_scope_0", "jit_scope_1"]
    assert edges(off) == [("exp", "exp_1", Apart.SCOPES)]
    assert off.apart[0].reason.text == "Separate from cluster_2: jit_scope_0 and jit_scope_1 are compiled separately"
    assert off.apart[0].reason.evidence == ("jit_scope_0", "jit_scope_1")


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: exp(x), 0),
        (lambda x: exp(exp(x)), 1),
        (lambda x: exp(apply(Identity(), apply(Identity(), x))), 0),
        (lambda x: elementwise(Add(), x, constant(2.0)), 0),
    ],
    ids=["sin", "sin, cos", "identity, identity, sin", "const, add"],
)
def test_identities_and_constants_do_not_count_for_the_least_size(graph, build, expected):
    assert len(done(graph, build(graph.parameters[0])).clusters) == expected


def test_a_marked_operation_is_a_cluster_by_itself(graph):
    (x,) = graph.parameters
    with jit_scope():
        y = add(x, x)
    for level in ("OFF", "ON"):
        (c,) = done(graph, y, level=level).clusters
        assert c.nodes == [y] and c.reason.code is Joined.MARKED and c.reason.text == "marked by jit_scope"


def test_unmarked_operations_stay_out_when_the_level_is_off(graph):
    clustering = done(graph, exp(exp(graph.parameters[0])), level="OFF")
    assert not clustering.clusters and set(codes(clustering).values()) == {Stays.JIT_OFF}


def test_seed_x_and_loss_may_compile_together_while_y_never_does(graph):
    (a,) = graph.parameters
    with jit_scope():
        x = apply(Mul(), a, a)
    with jit_scope(compile_ops=False):
        y = apply(Mul(), a, a)
    loss = add(x, y)
    on = done(graph, loss, level="ON")
    assert sets(on) == [{x.name, loss.name}] and codes(on) == {y.name: Stays.DISALLOWED}
    assert on.steps == [y, on.clusters[0]]
    assert on.clusters[0].reason.text == "marked by jit_scope, with 1 operation that can be compiled with it"
    off = done(graph, loss, level="OFF")
    assert sets(off) == [{x.name}]
    assert codes(off) == {y.name: Stays.DISALLOWED, loss.name: Stays.JIT_OFF}


@pytest.mark.parametrize("level", ["ON", "OFF"])
def test_seed_an_outer_scope_of_false_leaves_only_x(graph, level):
    (a,) = graph.parameters
    with jit_scope(compile_ops=False):
        with jit_scope():
            x = apply(Mul(), a, a)
        y = apply(Mul(), a, a)
        loss = add(x, y)
    assert sets(done(graph, loss, level=level)) == [{x.name}]
    assert {n.attrs["_XlaScope"] for n in (x, y, loss)} == {"jit_scope_0"}


def test_seed_compiled_not_compiled_and_by_name(graph):
    (a,) = graph.parameters
    with jit_scope():
        c = apply(Mul(), a, a)
    with jit_scope(compile_ops=False):
        d = apply(Mul(), a, c)
    with jit_scope(compile_ops=lambda node_def: "mul" in node_def.op.lower()):
        product = apply(Mul(), a, a)
        e = add(product, d)
    clustering = done(graph, e, level="OFF")
    assert sets(clustering) == [{c.name}, {product.name}]
    assert codes(clustering) == {d.name: Stays.DISALLOWED, e.name: Stays.DISALLOWED}


def test_a_node_without_a_scope_joins_either_and_then_carries_it(graph):
    (x,) = graph.parameters
    with jit_scope():
        a = exp(x)
    b = exp(a)
    b.attrs["_XlaCompile"] = True  # marked by hand, in no scope
    with jit_scope():
        c = exp(b)
    assert sets(done(graph, c, level="OFF")) == [{"exp"}, {"exp_1", "exp_2"}]


def test_strict_compiles_marked_operations_only(graph):
    with jit_scope(strict=True):
        a = exp(graph.parameters[0])
    b = exp(a)
    clustering = done(graph, b, level="ON")
    assert sets(clustering) == [{"exp"}]
    assert "strict=True" in clustering.stays[b].text


def test_jit_compile_false_leaves_everything_but_marked_operations_to_numpy(graph):
    a = exp(graph.parameters[0])
    with jit_scope():
        b = exp(a)
    clustering = done(graph, b, jit_compile=False)
    assert sets(clustering) == [{"exp_1"}] and codes(clustering) == {"exp": Stays.LEVEL}


def test_jit_compile_true_is_one_cluster_even_of_separate_and_disallowed_parts(graph):
    (x,) = graph.parameters
    with jit_scope(compile_ops=False):
        a = exp(x)
    b = add(x, x)
    clustering = done(graph, a, b, jit_compile=True)
    (c,) = clustering.clusters
    assert c.nodes == [a, b] and c.reason.code is Joined.MUST and not clustering.apart and not clustering.stays


def test_jit_compile_true_names_what_cannot_be_compiled_and_where(graph):
    with positions(lambda: Source("<cell 3>", 7)):
        y = apply(NoLoop(), exp(graph.parameters[0]))
    with pytest.raises(InvalidArgumentError) as caught:
        done(graph, y, jit_compile=True, function="step")
    first, where, *_ = str(caught.value).splitlines()
    for fragment in ("Detected unsupported operations when trying to compile graph", "step", "_XlaMustCompile=true", "NoLoop"):
        assert fragment in first
    assert "line 7" in where


def test_a_graph_without_operations_has_no_cluster(graph):
    two = constant(2.0)
    for jit_compile in (True, None, False):
        clustering = done(graph, two, graph.parameters[0], jit_compile=jit_compile)
        assert clustering.steps == [two] and not clustering.stays


def test_a_constant_is_listed_by_each_cluster_that_uses_it_and_joins_none(graph):
    (x,) = graph.parameters
    two = constant(2.0)
    a, b = exp(add(x, two)), exp(apply(Mul(), x, two))
    clustering = done(graph, a, b)
    assert [two in c.nodes for c in clustering.clusters] == [True, True]
    assert all(two not in c.inputs for c in clustering.clusters) and two not in clustering.steps


def test_a_constant_that_a_host_operation_reads_is_a_step(graph):
    two = constant(np.full(3, 2.0))
    y = apply(NoLoop(), two)
    clustering = done(graph, exp(add(y, two)))
    assert clustering.steps[:2] == [two, y] and two in clustering.clusters[0].nodes


def test_constants_count_for_the_largest_size(graph):
    (x,) = graph.parameters
    y = elementwise(Mul(), elementwise(Add(), x, constant(1.0)), constant(2.0))
    assert sets(done(graph, y, max_size=3)) == []
    assert len(done(graph, y, max_size=4).clusters) == 1


def test_effects_stay_in_program_order_and_out_of_clusters(graph):
    (x,) = graph.parameters
    p = apply(Print(), exp(exp(x)))
    q = apply(Print(), x)
    clustering = done(graph, q)
    assert [step for step in clustering.steps if isinstance(step, Node)] == [p, q]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("no_loop_body", Stays.NO_LOOP_BODY),
        ("argument", Stays.NO_LOOP_BODY),
        ("dtype", Stays.DTYPE),
        ("foreign_type", Stays.FOREIGN_TYPE),
        ("data_dependent", Stays.DATA_DEPENDENT_SHAPE),
        ("stateful_random", Stays.STATEFUL_RANDOM),
    ],
)
def test_a_host_call_and_its_items_stay_out_for_the_calls_own_reason(graph, code, expected):
    call = HostCall(np.divmod, (Input(0), 2.0), {}, (VECTOR, VECTOR), code, Message("stays.no_body", {"name": "divmod"}))
    both = apply(call, graph.parameters[0])
    one = apply(Item(1, VECTOR), both)
    clustering = done(graph, exp(exp(one)))
    assert codes(clustering) == {both.name: expected, one.name: expected}
    assert clustering.stays[both].text == "jitlab has no compiled code for divmod"


def test_an_operation_that_has_a_loop_for_floats_only_stays_out_for_its_dtype(graph):
    z = graph.add(Parameter(VECTOR.with_dtype(np.dtype("c16"))))
    y = apply(FloatsOnly(), z)
    assert codes(done(graph, y)) == {y.name: Stays.DTYPE}


def test_a_shared_axis_length_joins_nothing(graph):
    (x,) = graph.parameters
    n = cast(apply(Length(Extent.symbol("n0", 3))), "i8")
    a, b = apply(Mul(), x, cast(n, "f8")), exp(x)
    clustering = done(graph, a, b, min_size=1)
    assert [n in c.nodes for c in clustering.clusters] == [True, False]


def test_names_are_never_used_again(graph):
    y = exp(exp(graph.parameters[0]))
    assert [done(graph, y).clusters[0].name for _ in range(2)] == ["cluster_0", "cluster_1"]


def test_every_operation_and_edge_of_random_graphs_is_accounted_for():
    for seed in range(200):
        r = random.Random(seed)
        graph = random_graph(r, r.randint(1, 30))
        clustering = cluster(graph, level=r.choice(["ON", "OFF"]), min_size=r.randint(1, 3), max_size=r.choice([3, 2**31 - 1]))
        where = {node: c for c in clustering.clusters for node in c.nodes if node.op.name != "Const"}
        run: set[Node] = set(graph.parameters)
        for step in clustering.steps:
            inside = [step] if isinstance(step, Node) else step.nodes
            if not isinstance(step, Node):
                assert set(step.inputs) <= run and set(step.outputs) <= set(step.nodes)
            for node in inside:
                assert all(s in run or s.op.name == "Const" for s in node.inputs)
                run.add(node)
        operations = [node for node in graph.nodes if node.op.name != "Const"]
        assert {n for n in operations if n in where} | set(clustering.stays) == set(operations)
        assert not set(where) & set(clustering.stays)
        between = {
            (p, n) for n in operations for p in n.inputs if p in operations and (p not in where or where[p] is not where.get(n))
        }
        assert len(clustering.apart) == len(between) == len({(e.producer, e.consumer) for e in clustering.apart})


def test_running_the_steps_is_running_the_graph():
    r = random.Random(7)
    graph = random_graph(r, 40)
    clustering = cluster(graph, min_size=1)
    nodes = [node for step in clustering.steps for node in ([step] if isinstance(step, Node) else step.nodes)]
    replay = Graph("replay", graph.parameters, list(dict.fromkeys(nodes)), graph.outputs)
    x = np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(interpret(replay, [x]), interpret(graph, [x]))


def random_graph(r: random.Random, count: int) -> Graph:
    graph = Graph("random")
    with graph.building():
        values = [graph.add(Parameter(VECTOR), name="x")]
        for _ in range(count):
            scope = r.choice([nullcontext(), nullcontext(), jit_scope(), jit_scope(False)])
            with scope:
                op = r.choice([Exp(), Add(), Add(), NoLoop()])
                operands = [constant(np.ones(3)) if r.random() < 0.1 else r.choice(values[-8:]) for _ in range(2)]
                values.append(apply(op, *operands[: 1 if isinstance(op, Exp) else 2]))
    graph.outputs = values[-2:]
    return graph


def steps_of(graph: Graph) -> int:
    """Lines that the clusterer runs for a graph: what a clock would measure on a machine of its own."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if "cluster" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        cluster(graph)
    finally:
        sys.settrace(before)
    return count


def test_the_work_grows_as_the_graph_does():
    def large(count):
        r = random.Random(1)
        graph = Graph("large")
        with graph.building():
            values = [graph.add(Parameter(VECTOR), name="x")]
            for i in range(count):
                values.append(apply(NoLoop() if i % 10 == 0 else Add(), r.choice(values[-50:]), r.choice(values)))
        graph.outputs = values[-1:]
        return graph

    assert steps_of(large(4000)) < 6 * steps_of(large(1000))  # four times as many operations; 16 would be quadratic


def test_cluster_numbers_follow_program_order(graph):
    chains = [exp(exp(graph.parameters[0])) for _ in range(3)]
    clustering = done(graph, *chains)
    firsts = [graph.nodes.index(c.nodes[0]) for c in clustering.clusters]
    assert [c.name for c in clustering.clusters] == [f"cluster_{i}" for i in range(3)]
    assert all(a < b for a, b in itertools.pairwise(firsts))


def loop_over(op):
    """for _ in range(3): x = op(x) + x"""
    body = Graph("body")
    x = body.add(Parameter(VECTOR), name="x")
    with body.building(), positions(lambda: Source("f.py", 7)):
        body.outputs = [apply(Add(), apply(op, x), x)]
    graph = Graph("f")
    start = graph.add(Parameter(VECTOR), name="x")
    with graph.building():
        loop = apply(Loop(body, (VECTOR,), "i0", 3), apply(Exp(), start))
        graph.outputs = [apply(Exp(), apply(Item(0, VECTOR), loop))]
    return graph


def test_a_loop_is_one_node_of_a_cluster_and_its_results_stay_with_it():
    (whole,) = cluster(loop_over(Exp())).clusters
    assert [node.op.name for node in whole.nodes] == ["Exp", "While", "Item", "Exp"]


def test_a_loop_is_left_to_numpy_for_what_its_body_holds():
    result = cluster(loop_over(NoLoop()))
    assert len(result.clusters) == 2
    reasons = {node.op.name: reason for node, reason in result.stays.items()}
    assert set(reasons) == {"While", "Item"}
    assert reasons["While"].text == "noloop (line 7) in its body: jitlab cannot compile it"


def test_twenty_branches_inside_one_another_are_asked_once_each():
    def nested(depth):
        graph = Graph(f"branch_{depth}")
        x, where = graph.add(Parameter(VECTOR), name="x"), graph.add(Parameter(ArrayType((), np.dtype(bool))), name="where")
        with graph.building():
            if depth:
                branch = apply(Branch(nested(depth - 1), nested(0), (VECTOR, VECTOR)), where, x, where)
                graph.outputs = [apply(Item(0, VECTOR), branch), apply(Item(1, VECTOR), branch)]
            else:
                graph.outputs = [apply(Exp(), x), x]
        return graph

    assert len(cluster(nested(20)).clusters) == 1
    assert steps_of(nested(20)) < 3 * steps_of(nested(10))  # asked for each result, it would be a thousand times as much

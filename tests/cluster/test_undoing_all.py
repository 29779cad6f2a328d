"""All that keeps an operation out of a cluster, or an edge apart, is told, reason by reason: with each undone on the graph, the
options or the marks that were clustered, the same decision joins it; with any one of them left, it does not."""

import dataclasses
import random
from contextlib import nullcontext
from typing import ClassVar

import numpy as np
import pytest

from jitlab.cluster import Advisor, cluster, jit_scope
from jitlab.ir import Apart, ArrayType, Change, Edge, Graph, Node, Stays
from jitlab.messages import Message
from jitlab.ops.build_nodes import apply
from jitlab.ops.control_flow import Branch, Loop
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.elementwise.math_functions import Cos, Exp
from jitlab.ops.host_operations import HostCall, Input
from jitlab.ops.leaf_operations import Parameter
from tests.cluster.cluster_graphs import FLAG, OFF, OURS, SESSION, VECTOR, FloatsOnly, NoLoop, making
from tests.cluster.test_flips import changed, together

#: What no change of marks, options, types or copies undoes.
NO_UNDO = frozenset({
    Stays.NO_LOOP_BODY, Stays.FOREIGN_TYPE, Stays.DATA_DEPENDENT_SHAPE, Stays.EFFECT, Stays.UNSUPPORTED_WHILE,
    Stays.UNSUPPORTED_IF, Stays.UNSUPPORTED_FUNCTION, Stays.STATEFUL_RANDOM, Stays.CHECK, Stays.ARGUMENT,
})  # fmt: skip
MOST_STEPS = 12
SETTINGS = (
    {}, {}, {"max_size": 3}, {"excluded": frozenset(["Exp"])}, {"fuel": 3}, {"listed": frozenset(["AddV2"])}, {"min_size": 3},
    {"excluded": frozenset(["Exp", "Cos"]), "fuel": 4}, {"level": "OFF", "max_size": 2},
)  # fmt: skip
INTEGERS = ArrayType((3,), np.dtype("i4"))


def random_graph(seed):
    """Operations with and without loops, of two dtypes, in scopes and on devices."""
    r = random.Random(seed)
    graph = Graph("random")
    devices = r.choice([("",), ("",), ("", "/device:GPU:0", "/device:GPU:1"), ("", "/device:TPU:0")])
    with graph.building():
        values = [graph.add(Parameter(VECTOR), name="x")]
        numbers = [graph.add(Parameter(INTEGERS), name="n")]
        for _ in range(r.randint(2, 14)):
            op = r.choice([Exp(), Cos(), Add(), Add(), Add(), NoLoop(), FloatsOnly()])
            with r.choice([nullcontext, nullcontext, nullcontext, jit_scope, lambda: jit_scope(False)])():
                if isinstance(op, FloatsOnly):
                    numbers.append(made := apply(op, r.choice(numbers[-2:])))
                else:
                    operands = [r.choice(values[-5:]) for _ in range(2 if isinstance(op, (Add, NoLoop)) else 1)]
                    values.append(made := apply(op, *operands))
            if device := r.choice(devices):
                made.attrs["device"] = device
    graph.outputs = [*values[-2:], numbers[-1]]
    return graph


class Case:
    """A graph that is made anew for each way of clustering it, and one decision on it."""

    def __init__(self, seed, options):
        self.seed, self.options = seed, options
        self.names = ()

    def after(self, flips):
        """The clustering with these changes made, and the operations in question there."""
        graph, settings = random_graph(self.seed), {"options": self.options}
        clustering = cluster(graph, **settings)
        named = {node.name: node for node in graph.nodes}
        asked = tuple(named[name] for name in self.names)
        for flip in flips:
            if not set(flip.names) <= {node.name for node in graph.nodes}:
                continue  # it is about what another change makes, which is left out
            graph, made, asked = changed(graph, settings["options"], flip, asked, clustering)
            settings |= made
            clustering = cluster(graph, **settings)
        return clustering, asked

    def holds(self, flips):
        return together(*self.after(flips))


def reason_now(clustering, asked):
    """The decision on these operations, as it is told: an operation that stayed out, or an edge."""
    if len(asked) == 1:
        return asked[0]
    ends = {*asked, *(node for node in asked[1].inputs if isinstance(node.op, Cast))}  # a change may have put one between
    return next(edge for edge in clustering.apart if {edge.producer, edge.consumer} <= ends)


def codes_of(clustering, what):
    """Why: for an edge of which an end is not compiled, why that is not."""
    if not isinstance(what, Edge):
        return {clustering.stays[what].code}
    if what.reason.code is not Apart.NOT_COMPILED:
        return {what.reason.code}
    return {clustering.stays[end].code for end in (what.producer, what.consumer) if end in clustering.stays}


def all_undone(case, seen):
    """What is told undone, reason after reason, until the operations are joined; None where a reason has no undo."""
    flips = []
    for _ in range(MOST_STEPS):
        clustering, asked = case.after(flips)
        if together(clustering, asked):
            return flips
        what, advisor = reason_now(clustering, asked), Advisor(clustering)
        codes = codes_of(clustering, what)
        seen.update(codes)
        found = [flip for flip, *_ in (advisor._for_edge if isinstance(what, Edge) else advisor._for_node)(what)]
        found = [flip for flip in found if flip.change is not Change.MUST]
        if not found:
            assert codes & NO_UNDO, (codes, what)
            return None
        certain = [flip for flip in found if flip.change in (Change.COMPUTE_TWICE, Change.MAX_SIZE)]
        flips.append(next((flip for flip in found if case.holds([*flips, flip])), (certain or found)[-1]))
    raise AssertionError((case.seed, case.names, flips))


def needed(case, flips):
    """Those without which it does not hold."""
    for flip in flips[::-1]:
        rest = [other for other in flips if other is not flip]
        if case.holds(rest):
            return needed(case, rest)
    return flips


@pytest.mark.long
@pytest.mark.parametrize("thirty", range(25))
def test_undoing_all_that_is_told_joins_what_was_apart_and_nothing_less_does(thirty):
    seen, several = set(), 0
    for seed in range(30 * thirty, 30 * thirty + 30):
        r = random.Random(seed)
        case = Case(seed, dataclasses.replace(r.choice([SESSION, OFF, OURS]), **r.choice(SETTINGS)))
        clustering, _ = case.after([])
        out = [(node.name,) for node in clustering.stays if node.op.name not in ("Placeholder", "Const")]
        edges = [(edge.producer.name, edge.consumer.name) for edge in clustering.apart]
        for case.names in r.sample(out, min(2, len(out))) + r.sample(edges, min(3, len(edges))):
            flips = all_undone(case, seen)
            if flips is not None:
                assert flips and case.holds(least := needed(case, flips))
                assert not any(case.holds([other for other in least if other is not flip]) for flip in least)
                several += len(least) > 1
    assert several > 1 and {Apart.CYCLE, Stays.DISALLOWED} <= seen


# ---- what nothing undoes


class Call(Branch):
    """What has a body and is no loop or branch."""

    tf_name: ClassVar[str | None] = "PartitionedCall"


class Effect(FloatsOnly):
    has_effects: ClassVar[bool] = True


def host_call(code):
    return lambda g: apply(HostCall(np.add, (Input(0), 1.0), {}, (VECTOR,), code, Message("stays.draws")), g.x)


def loop(g):
    body = Graph("body")
    body.outputs = [body.append(apply_to(NoLoop(), body.add(Parameter(VECTOR), name="x")))]
    return apply(Loop(body, (VECTOR,), "i0", 5), g.x)


def apply_to(op, x):
    return Node(op, (x,), op.result(x.type))


def call(g):
    body = Graph("body")
    body.outputs = [body.append(apply_to(NoLoop(), body.add(Parameter(VECTOR), name="x")))]
    return apply(Call(body, body, (VECTOR,)), g.argument(FLAG), g.x)


PLANTED = {
    Stays.NO_LOOP_BODY: lambda g: g.host(g.x), Stays.FOREIGN_TYPE: host_call("foreign_type"),
    Stays.DATA_DEPENDENT_SHAPE: host_call("data_dependent"), Stays.EFFECT: lambda g: apply(Effect(), g.x),
    Stays.UNSUPPORTED_WHILE: loop, Stays.UNSUPPORTED_IF: lambda g: g.branch(g.x, inner=NoLoop()).inputs[0],
    Stays.UNSUPPORTED_FUNCTION: call, Stays.STATEFUL_RANDOM: host_call("stateful_random"), Stays.CHECK: host_call("check"),
    Stays.ARGUMENT: lambda g: g.x,
}  # fmt: skip


def test_what_nothing_undoes_is_a_closed_list():
    assert PLANTED.keys() == NO_UNDO


@pytest.mark.parametrize("code", PLANTED, ids=lambda code: code.name)
def test_no_change_is_told_for_what_nothing_undoes(code):
    with making() as g:
        node = PLANTED[code](g)
        g.graph.outputs = [g.sin(g.x), *([] if node is g.x else [node])]
        clustering = cluster(g.graph, SESSION)
    assert clustering.stays[node].code is code
    assert Advisor(clustering)(node) is None
    edges = [edge for edge in clustering.apart if node in (edge.producer, edge.consumer)]
    assert all(Advisor(clustering)(edge) is None for edge in edges)

"""Random graphs with control edges, variables, devices and scopes: each cluster is allowed, each edge that is left has to be.

The rules are written down once more here, slowly, and share nothing with the clusterer's.
"""

import itertools
import random
from contextlib import nullcontext

import pytest

from jitlab.cluster import jit_scope
from jitlab.ir import Apart, Stays
from tests.cluster.cluster_graphs import OFF, SESSION, clustered, making

READS, WRITES = {"ReadVariableOp", "AssignAddVariableOp"}, {"AssignVariableOp", "AssignAddVariableOp"}


def random_program(g, r, marked=0.25):
    """`marked`: the share of operations in a scope of their own, or in that of the operations before."""
    values, control = [g.x], []
    for _ in range(r.randint(3, 16)):
        options = {}
        if control and r.random() < 0.2:
            options["after"] = tuple(r.sample(control, 1))
        if r.random() < 0.3:
            options["device"] = r.choice(["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"])
        x, y = r.choice(values[-5:]), r.choice(values)
        make = r.choice([g.exp, g.exp, g.add, g.add, g.host, g.read, g.assign, g.count])
        scope = r.random()
        with jit_scope(scope < marked) if scope < marked + 0.05 else nullcontext():
            node = make(x, y, **options) if make in (g.add, g.host) else make(x, **options)
        if "_XlaScope" in node.attrs and r.random() < 0.7:
            node.attrs["_XlaScope"] = "jit_scope_0"
        values.append(node)
        control.append(node)
    return values[-1]


class Model:
    """The groups of a clustering, too small ones included, with the edges between them."""

    def __init__(self, g, clustering, options):
        self.options = options
        nodes = g.graph.nodes
        by_name = {node.name: node for node in nodes}
        self.edges = {(source, node) for node in nodes for source in node.inputs if source in nodes}
        self.edges |= {(by_name[name], node) for node in nodes for name in node.attrs.get("^", ())}
        homes = {node: c.name for c in clustering.clusters for node in c.members}
        self.group = {node: homes.get(node, node.name) for node in nodes}
        self.members = {name: [n for n in nodes if self.group[n] == name] for name in self.group.values()}
        self.candidates = {n for n in nodes if n in homes or clustering.stays[n].code is Stays.SIZE}
        self.nodes = nodes

    def reachable(self, edges):
        reach = {}
        for node in reversed(self.nodes):
            after = {b for a, b in edges if a is node}
            reach[node] = after.union(*(reach[b] for b in after)) if after else set()
        return reach

    def quotient_has_cycle(self, group):
        arrows = {(group[a], group[b]) for a, b in self.edges if group[a] != group[b]}
        left = {name for arrow in arrows for name in arrow}
        while left:
            free = {name for name in left if not any(b == name and a in left for a, b in arrows)}
            if not free:
                return True
            left -= free
        return False

    def allowed(self, members):
        """May these operations be one cluster, cycles aside?"""
        devices = {node.attrs.get("device") or "/device:CPU:0" for node in members}
        gpus = {device for device in devices if "GPU" in device}
        if len(gpus) > 1:
            return False
        pinned = {node.attrs.get("device") or "/device:CPU:0" for node in members if node.op.name in READS | WRITES}
        if pinned and gpus and pinned != gpus:
            return False
        if self.options is OFF and len({node.attrs["_XlaScope"] for node in members if "_XlaScope" in node.attrs}) > 1:
            return False
        reach = self.reachable(self.edges)
        for a, b in itertools.permutations(members, 2):
            if b in reach[a] and a.op.name in WRITES and b.op.name in READS:
                return False
        return len(members) <= self.options.max_size


@pytest.mark.parametrize("options", [SESSION, OFF], ids=["ON", "OFF"])
def test_2_3_every_cluster_is_allowed_and_no_two_could_be_joined(options):
    r = random.Random(11)
    kinds = set()
    for _ in range(150):
        with making() as g:
            clustering = clustered(g, random_program(g, r, 0.8 if options is OFF else 0.25), options=options)
        model = Model(g, clustering, options)
        assert not model.quotient_has_cycle(model.group)
        for c in clustering.clusters:
            assert model.allowed(c.members)
        for edge in clustering.apart:
            a, b = model.group[edge.producer], model.group[edge.consumer]
            kinds.add(edge.reason.code)
            if edge.reason.code is Apart.NOT_COMPILED or edge.reason.code is Apart.CROSS_DEVICE:
                continue
            if {edge.producer, edge.consumer} & set(clustering.stays):
                continue  # too small: its group is not told
            joined = [*model.members[a], *model.members[b]]
            group = {node: a if name == b else name for node, name in model.group.items()}
            if edge.reason.code is Apart.CYCLE:
                assert model.allowed(joined) and model.quotient_has_cycle(group)
            else:
                assert not model.allowed(joined)
    assert kinds >= ({Apart.CYCLE, Apart.DEVICES, Apart.RESOURCES} | ({Apart.SCOPES} if options is OFF else set()))


def test_steps_respect_every_edge_of_control():
    r = random.Random(5)
    for _ in range(100):
        with making() as g:
            clustering = clustered(g, random_program(g, r), options=SESSION)
        ran = set()
        for step in clustering.steps:
            inside = getattr(step, "members", [step])
            for node in inside:
                assert all(name in ran | {n.name for n in inside} for name in node.attrs.get("^", ()))
            ran |= {node.name for node in inside}

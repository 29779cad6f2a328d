"""Clusters by the contract: each test names its paragraph of the contract; the exact clusters are those upstream makes."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.cluster import cluster, for_functions, for_session, jit_scope, reset_names
from jitlab.compile import runnable
from jitlab.config import config
from jitlab.errors import InvalidArgumentError
from jitlab.flags import read_flags
from jitlab.ir import Apart, Clustering, Joined, Stays
from jitlab.ops.build_nodes import constant
from tests.cluster.cluster_graphs import (
    MATRIX,
    OFF,
    OURS,
    SESSION,
    VECTOR,
    FloatsOnly,
    Slow,
    clustered,
    codes,
    making,
    names,
    refusals,
    sets,
)

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "cluster.md"
CPU, GPU, OTHER_GPU, XLA = "/device:CPU:0", "/device:GPU:0", "/device:GPU:1", "/device:XLA_CPU:0"


@pytest.fixture(autouse=True)
def _numbers():
    reset_names()


@pytest.fixture
def g():
    with making() as made:
        yield made


def session(level=1, tf=""):
    return for_session(read_flags({"TF_XLA_FLAGS": tf}), level)


# ---- the level


@pytest.mark.parametrize(("level", "clusters"), [(-1, 0), (0, 0), (1, 1), (2, 1)], ids=["OFF", "DEFAULT", "ON_1", "ON_2"])
def test_2_1_the_level_of_a_session(g, level, clusters):
    assert len(clustered(g, g.cos(g.sin(g.x)), options=session(level)).clusters) == clusters


@pytest.mark.parametrize(
    ("flag", "level", "expected"), [(0, 1, "ON"), (0, -1, "OFF"), (2, -1, "ON"), (1, 0, "ON"), (-1, 2, "OFF")]
)
def test_2_1_auto_jit_wins_over_the_level_unless_it_is_0(flag, level, expected):
    assert session(level, f"--tf_xla_auto_jit={flag}").level == expected


def test_2_1_a_flag_wins_over_the_configuration_of_functions(monkeypatch):
    monkeypatch.setattr(config, "global_jit_level", "ON")
    assert for_functions(read_flags({})) == OURS
    off = for_functions(
        read_flags({"TF_XLA_FLAGS": "--tf_xla_auto_jit=-1 --tf_xla_min_cluster_size=3 --tf_xla_max_cluster_size=9"})
    )
    assert (off.level, off.min_size, off.max_size) == ("OFF", 3, 9)


@pytest.mark.parametrize(("devices", "clusters"), [((GPU, GPU), 1), ((CPU, CPU), 0), ((GPU, OTHER_GPU), 0)])
def test_2_1_single_gpu_is_for_graphs_with_one_gpu(g, devices, clusters):
    y = g.cos(g.sin(g.x, device=devices[0]), device=devices[1])
    assert len(clustered(g, y, options=session(0, "--tf_xla_auto_jit=single-gpu(1)")).clusters) == clusters


# ---- candidates


def rejected(g):
    """Operations that several rules reject, from the first rule to the last; each has what the later ones have, too."""
    with jit_scope(compile_ops=False):
        yield g.host(g.x, device="/device:TPU:0"), Stays.DISALLOWED
    yield g.host(g.x, device="/device:TPU:0"), Stays.NO_COMPILER
    yield g.host(g.x), Stays.JIT_OFF
    with jit_scope():
        yield g.host(g.x), Stays.NO_LOOP_BODY
        yield g.make(Slow(), g.x), Stays.SLOW
        yield g.mul(g.x, g.x), Stays.NOT_LISTED
        yield g.sin(g.x), Stays.EXCLUDED
        yield g.cos(g.x), None
        yield g.cos(g.x), Stays.FUEL


def test_2_2_the_first_rule_that_rejects_is_the_reason(g):
    expected = dict(rejected(g))
    options = session(0, "--tf_xla_ops_to_cluster=Sin,Cos --tf_xla_cluster_exclude_ops=Sin --tf_xla_clustering_fuel=1")
    clustering = clustered(g, *expected, options=options)
    assert {node: getattr(clustering.stays.get(node), "code", None) for node in expected} == expected


def test_2_2_fuel_counts_each_operation_that_is_accepted(g):
    a = g.sin(g.x)
    u = g.host(a)
    b = g.cos(a)
    c = g.exp(b)
    options = dataclasses.replace(OURS, fuel=2)
    clustering = clustered(g, c, u, options=options)
    assert sets(clustering) == [names(a, b)] and codes(clustering) == {u.name: Stays.NO_LOOP_BODY, c.name: Stays.FUEL}


def test_2_2_arguments_are_no_candidates(g):
    clustering = clustered(g, g.cos(g.sin(g.x)))
    assert clustering.stays[g.x].code is Stays.ARGUMENT


def test_2_2_a_constant_of_text_is_not_compilable(g):
    text = constant(np.array("words"))
    y = g.cos(g.sin(g.x))
    clustering = clustered(g, text, y)
    assert clustering.stays[text].code is Stays.DTYPE and sets(clustering) == [{"sin", "cos"}]


def test_2_2_what_draws_or_checks_is_not_wanted(g):
    r = g.draw()
    y = g.cos(g.sin(r))
    assert codes(clustered(g, y)) == {r.name: Stays.STATEFUL_RANDOM}


@pytest.mark.parametrize(("depth", "code"), [(10, None), (11, Stays.DEPTH)])
def test_2_2_bodies_are_followed_ten_deep(g, depth, code):
    y = g.branch(g.x, depth)
    clustering = clustered(g, y)
    assert getattr(clustering.stays.get(y), "code", None) is code
    assert len(clustered(g, y, options=OURS).clusters) == 1  # as deep as they like in functions


def test_2_2_a_body_with_what_cannot_be_compiled_is_refused_with_its_name(g):
    y = g.branch(g.x, 2, FloatsOnly())
    assert not clustered(g, y).stays.get(y)
    z = g.branch(g.x, 2, type(g.host(g.x).op)())
    reason = clustered(g, z).stays[z]
    assert reason.code is Stays.UNSUPPORTED_IF and reason.evidence == ("If", "NoLoop", "no_loop_body")


def test_2_2_slow_operations_are_compiled_in_functions_and_where_they_must(g):
    slow = g.make(Slow(), g.sin(g.x))
    assert codes(clustered(g, slow)) == {"sin": Stays.SIZE, slow.name: Stays.SLOW}
    assert sets(clustered(g, slow, options=OURS)) == [{"sin", slow.name}]
    assert sets(clustered(g, slow, jit_compile=True)) == [{"sin", slow.name}]


# ---- contraction


def test_2_3_consumers_come_first_when_the_size_is_limited(g):
    s0 = g.exp(g.x)
    s1 = g.exp(s0)
    s2 = g.exp(s1)
    assert sets(clustered(g, s2, max_size=2)) == [names(s1, s2)]


def test_2_3_a_way_through_what_is_not_compiled_keeps_its_ends_apart(g):
    a = g.exp(g.x)
    u = g.host(a)
    c = g.add(u, a)
    d = g.exp(c)
    e = g.exp(d)
    clustering = clustered(g, e)
    assert sets(clustering) == [names(c, d, e)] and codes(clustering)[a.name] is Stays.SIZE
    (edge,) = [edge for edge in clustering.apart if edge.reason.code is Apart.CYCLE]
    assert edge.reason.evidence == (u.name,)


def test_2_3_only_edges_join(g):
    with jit_scope():
        a, b = g.cos(g.sin(g.x)), g.exp(g.exp(g.x))
    for level in (0, 1):
        assert len(clustered(g, a, b, options=session(level)).clusters) == 2


def test_2_3_control_edges_join_too(g):
    a = g.cos(g.sin(g.x))
    b = g.exp(g.exp(g.x, after=(a,)))
    assert len(clustered(g, a, b).clusters) == 1


def test_2_3_a_way_of_control_edges_is_a_way(g):
    a = g.cos(g.sin(g.x))
    u = g.host(g.x, after=(a,))
    b = g.exp(g.add(a, a, after=(u,)))
    clustering = clustered(g, b, u)
    assert len(clustering.clusters) == 2
    assert ("cos", "add", Apart.CYCLE) in refusals(clustering)
    assert clustering.steps == [clustering.clusters[0], u, clustering.clusters[1]]


def test_2_3_scopes_count_when_the_level_is_off_only(g):
    with jit_scope():
        a = g.sin(g.x)
    with jit_scope():
        b = g.cos(a)
    assert sets(clustered(g, b)) == [{"sin", "cos"}]
    off = clustered(g, b, options=OFF)
    assert sets(off) == [{"sin"}, {"cos"}] and refusals(off) == [("sin", "cos", Apart.SCOPES)]


def test_2_3_what_has_no_scope_is_a_bridge_and_then_carries_one(g):
    with jit_scope():
        a = g.sin(g.x)
    b = g.exp(a, _XlaCompile=True)
    with jit_scope():
        c = g.cos(b)
    assert sets(clustered(g, c, options=OFF)) == [names(a), names(b, c)]


def test_2_3_the_largest_size_counts_constants(g):
    y = g.plus(g.plus(g.x, 1.0), 2.0)
    sizes = {most: [c.reason.evidence[0] for c in clustered(g, y, max_size=most).clusters] for most in (2, 3, 4)}
    assert sizes == {2: [], 3: [3], 4: [4]}  # 2: a constant and its reader, which alone is too small


@pytest.mark.parametrize(("devices", "count", "where"), [((CPU, GPU), 1, GPU), (("", GPU), 1, GPU), ((GPU, OTHER_GPU), 0, "")])
def test_2_3_a_cpu_and_one_gpu_mix_two_gpus_never_do(g, devices, count, where):
    y = g.cos(g.sin(g.x, device=devices[0]), device=devices[1])
    clustering = clustered(g, y)
    assert len(clustering.clusters) == count
    if count:
        assert clustering.clusters[0].device == where
    else:
        assert refusals(clustering) == [("sin", "cos", Apart.DEVICES)]
        assert clustering.apart[0].reason.evidence == (GPU, OTHER_GPU)


def test_2_3_a_variable_stays_where_it_is(g):
    v = g.read(g.x, device=CPU)
    y = g.cos(g.sin(v, device=GPU), device=GPU)
    clustering = clustered(g, y)
    assert sets(clustering) == [{"sin", "cos"}] and refusals(clustering)[0][2] is Apart.DEVICES


def test_2_3_what_waits_for_another_device_is_not_joined(g):
    a = g.sin(g.x, device=GPU)
    b = g.exp(g.x, device=OTHER_GPU)
    c = g.add(a, b, device=GPU)
    d = g.cos(c, device=GPU)
    clustering = clustered(g, d)
    assert sets(clustering) == [names(c, d)]
    reasons = {(edge.producer, edge.consumer): edge.reason for edge in clustering.apart}
    assert reasons[a, c].code is Apart.CROSS_DEVICE and reasons[b, c].code is Apart.DEVICES
    assert reasons[a, c].evidence == (OTHER_GPU, GPU)


def test_2_3_what_nobody_reads_but_all_wait_for_joins_last(g):
    """NoOp, phase 1: what only waits for others joins two chains when everything else has been joined."""
    a, b = g.cos(g.sin(g.x)), g.exp(g.exp(g.x))
    done = g.group(a, b)
    clustering = clustered(g, a, b)
    assert sets(clustering) == [names(*g.graph.nodes)]
    assert clustering.steps == clustering.clusters and done in clustering.clusters[0].silent


def test_2_3_repeating_changes_nothing(g):
    a, b = g.cos(g.sin(g.x)), g.exp(g.x)
    c = g.add(a, g.add(b, g.host(b)))
    assert sets(clustered(g, c)) == sets(clustered(g, c))


# ---- which clusters are kept


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda g: g.sin(g.x), 0),
        (lambda g: g.cos(g.sin(g.x)), 1),
        (lambda g: g.sin(g.identity(g.identity(g.x))), 0),
        (lambda g: g.plus(g.x, 2.0), 0),
    ],
    ids=["sin", "sin, cos", "identity, identity, sin", "const, add"],
)
def test_2_4_identities_and_constants_do_not_count(g, build, count):
    assert len(clustered(g, build(g)).clusters) == count


def test_2_4_a_marked_operation_is_a_cluster_by_itself(g):
    with jit_scope():
        y = g.add(g.x, g.x)
    (c,) = clustered(g, y, options=OFF).clusters
    assert c.nodes == [y] and c.reason.code is Joined.MARKED


def test_2_4_a_lone_marked_constant_is_a_cluster(g):
    with jit_scope():
        two = constant(2.0)
    clustering = clustered(g, two, options=OFF)
    (c,) = clustering.clusters
    assert c.nodes == [two] and runnable(clustering).run([np.ones(3)]) == [2.0]
    assert not clustered(g, two, options=OURS).clusters  # a number of a function is no operation


def test_2_4_a_branch_is_kept_whatever_its_size(g):
    y = g.branch(g.x)
    assert len(clustered(g, y, min_size=9).clusters) == 1


def test_2_4_names_are_never_used_again(g):
    y = g.cos(g.sin(g.x))
    assert [clustered(g, y).clusters[0].name for _ in range(2)] == ["cluster_0", "cluster_1"]


# ---- variables


def access(g, kind, x, after=()):
    return {"read": g.read, "write": g.assign, "both": g.count}[kind](x, after=after)


@pytest.mark.parametrize("first", ["read", "write", "both"])
@pytest.mark.parametrize("second", ["read", "write", "both"])
def test_2_5_two_of_variables_share_a_cluster_if_the_first_reads_or_the_second_writes(g, first, second):
    a = access(g, first, g.x)
    y = g.cos(g.sin(a))
    b = access(g, second, g.exp(y))
    together = first == "read" or second == "write"
    clustering = clustered(g, b)
    assert any(set(c.nodes) >= {a, b} for c in clustering.clusters) == together
    assert together or Apart.RESOURCES in {code for *_, code in refusals(clustering)}


def test_2_5_read_add_assign_is_one_cluster(g):
    assert len(clustered(g, g.assign(g.plus(g.read(g.x), 1.0))).clusters) == 1


def test_2_5_assign_then_read_then_sin_cos_are_two_clusters(g):
    w = g.assign(g.plus(g.x, 1.0))
    r = g.read(g.argument(), after=(w,))
    y = g.cos(g.sin(r))
    clustering = clustered(g, y, w)
    assert len(clustering.clusters) == 2
    (edge,) = [edge for edge in clustering.apart if edge.reason.code is Apart.RESOURCES]
    assert edge.reason.evidence == (w.name, r.name)


def test_2_5_any_path_counts_and_variables_are_not_told_apart(g):
    w = g.assign(g.sin(g.x))
    u = g.host(w)
    r = g.read(g.argument(), after=(u,))
    y = g.add(g.exp(r), g.cos(g.x))
    for c in clustered(g, y).clusters:
        assert not {w, r} <= set(c.nodes)


def test_2_5_what_has_a_body_reads_and_writes(g):
    w = g.branch(g.x)
    r = g.read(g.argument(), after=(w.inputs[0],))
    y = g.add(w, g.sin(r))
    assert all(not {w, r} <= set(c.nodes) for c in clustered(g, y).clusters)


def test_2_5_a_flag_takes_the_rule_away(g):
    w = g.assign(g.sin(g.x))
    y = g.cos(g.read(w))
    tf = "--tf_xla_disable_resource_variable_safety_checks_for_debugging"
    assert len(clustered(g, y).clusters) == 2 and len(clustered(g, y, options=session(1, tf)).clusters) == 1


# ---- control flow


def test_2_6_a_branch_is_compiled_whole_with_what_is_around_it(g):
    y = g.cos(g.branch(g.sin(g.x)))
    (c,) = clustered(g, y).clusters
    assert [node.op.name for node in c.nodes] == ["Sin", "If", "Item", "Cos"]


def test_2_6_a_stateful_operation_between_two_parts_splits_them(g):
    a = g.cos(g.sin(g.x))
    p = g.print(a)
    b = g.exp(g.add(a, p))
    clustering = clustered(g, b)
    assert len(clustering.clusters) == 2 and (a.name, "add", Apart.CYCLE) in refusals(clustering)


def test_2_7_internal_scopes_are_never_set(g):
    with jit_scope():
        y = g.cos(g.sin(g.x))
    clustered(g, y)
    assert all("_XlaInternalScope" not in node.attrs for node in g.graph.nodes)


# ---- flags (tests/cluster/test_flags.py has their forms)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", [{"sin", "cos", "exp"}]),
        ("--tf_xla_min_cluster_size=3", [{"sin", "cos", "exp"}]),
        ("--tf_xla_min_cluster_size=4", []),
        ("--tf_xla_max_cluster_size=2", [{"cos", "exp"}]),
        ("--tf_xla_clustering_fuel=2", [{"sin", "cos"}]),
        ("--tf_xla_clustering_fuel=0", []),
        ("--tf_xla_ops_to_cluster=Cos,Exp", [{"cos", "exp"}]),
        ("--tf_xla_ops_to_cluster=PW", [{"sin", "cos", "exp"}]),
        ("--tf_xla_cluster_exclude_ops=Exp", [{"sin", "cos"}]),
        ("--tf_xla_auto_jit=-1", []),
    ],
)
def test_2_8_what_a_flag_does_to_sin_cos_exp(g, flags, expected):
    y = g.exp(g.cos(g.sin(g.x)))
    assert sets(clustered(g, y, options=session(1, flags))) == expected


# ---- fusible


@pytest.mark.parametrize("flags", ["--tf_xla_auto_jit=fusible", "--tf_xla_fusion_only", "--tf_xla_ops_to_cluster=FUSIBLE"])
def test_2_9_fusible_leaves_products_out(g, flags):
    m = g.argument(MATRIX)
    product = g.dot(m, m)
    y = g.exp(g.sin(product))
    clustering = clustered(g, y, options=session(1, flags))
    assert sets(clustering) == [{"sin", "exp"}]
    code = Stays.NOT_LISTED if "ops_to" in flags else Stays.NOT_FUSIBLE
    assert codes(clustering) == {product.name: code}


def test_2_9_fusible_leaves_variables_out(g):
    y = g.assign(g.cos(g.sin(g.read(g.x))))
    assert sets(clustered(g, y, options=session(1, "--tf_xla_auto_jit=fusible"))) == [{"sin", "cos"}]


@pytest.mark.parametrize(
    ("group", "inside", "outside"),
    [
        ("PW", {"AddV2", "Exp", "Cast"}, {"Sum", "MatMul", "Fill"}),
        ("RED", {"Sum", "Max", "Mean", "Prod", "All", "Any"}, {"Exp", "ArgMax"}),
        ("PWRED", {"ArgMax", "ArgMin"}, {"Sum"}),
        ("SMALL", {"Reshape", "Fill", "Range", "ConcatV2", "Transpose", "Const"}, {"MatMul", "GatherV2"}),
        (
            "FUSIBLE",
            {"AddV2", "Sum", "ArgMax", "Reshape"},
            {"MatMul", "ReadVariableOp", "AssignVariableOp", "GatherV2", "While"},
        ),
    ],
)
def test_2_9_groups_name_operations(group, inside, outside):
    listed = session(1, f"--tf_xla_ops_to_cluster={group}").listed
    assert inside <= listed and not outside & listed


def test_2_9_an_unknown_operation_in_the_list_is_an_error():
    with pytest.raises(InvalidArgumentError, match="is not supported by XLA"):
        session(1, "--tf_xla_ops_to_cluster=Exp,Expo")


# ---- reasons and the summary

#: What upstream may say and jitlab never has a reason to.
NEVER_SAID = {
    "source or sink node": "graphs have no such nodes",
    "not allowed control trigger": "there is no such operation",
    "DT_VARIANT producer/consumer": "arrays alone are values",
    "Stack op": "there is no such operation",
    "TensorArray op": "a TensorArray is an array while it is captured",
    "resource variable op in called function": "bodies read variables as arguments",
    "operation with numerical accuracy issues": "those it names are slow operations, which is asked before",
    "could not instantiate call": "functions are captured into their callers",
    "must-be-constant stateful op": "shapes are never computed by operations",
}
SAID = {
    "unsupported op", "unsupported function", "unsupported while", "unsupported if", "top level _Arg or _Retval",
    "stateful random op", "Assert or CheckNumerics", "slow operation", "function depth limit exceeded",
    "disallowed by _XlaCompile attribute", "global jit disabled", "not fusable op but fusion_only enabled",
}  # fmt: skip


def test_2_10_each_of_upstreams_reasons_is_a_code_or_never_needed():
    said = {code.upstream for code in Stays}
    assert said >= SAID and not said & set(NEVER_SAID)
    assert "the two nodes have mismatching XLA scopes" in {code.value for code in Apart}


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this copy")
def test_2_10_the_page_has_every_code():
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{code.name.lower()}` | {code.meaning} | {code.upstream} |\n" in page for code in Stays)
    assert all(f"| `{code.name.lower()}` | {code.value} |\n" in page for code in Apart)


def test_2_10_each_operation_and_edge_outside_of_clusters_has_one_reason(g):
    nodes = dict(rejected(g))
    total = g.x
    for node in nodes:
        total = g.add(total, node)
    clustering = clustered(g, total, options=session(0))
    inside = {node for c in clustering.clusters for node in c.members}
    assert set(clustering.stays) | inside == {*g.graph.nodes, *g.graph.parameters} and not set(clustering.stays) & inside
    assert all(edge.reason.text and isinstance(edge.reason.code, Apart) for edge in clustering.apart)


def test_2_10_the_summary_of_a_graph(g):
    u = g.host(g.plus(g.cos(g.sin(g.x)), 1.0))
    activity = plan(clustered(g, g.exp(u))).activity()
    assert activity == {
        "unclustered_node_count": 3,
        "clustered_node_count": 4,
        "clusters": [
            {
                "name": "cluster_0",
                "size": 4,
                "op_histogram": [{"op": op, "count": 1} for op in ("AddV2", "Const", "Cos", "Sin")],
            }
        ],
        "unclustered_op_histogram": [{"op": op, "count": 1} for op in ("Exp", "NoLoop", "Placeholder")],
    }


def plan(clustering: Clustering):
    return runnable(clustering, function="f").plan


# ---- must compile


def test_2_11_must_compile_is_one_unit_and_never_falls_back(g):
    a, b = g.sin(g.x), g.exp(g.x)
    (c,) = clustered(g, a, b, jit_compile=True).clusters
    assert c.nodes == [a, b] and c.reason.code is Joined.MUST
    with pytest.raises(InvalidArgumentError, match="_XlaMustCompile=true"):
        clustered(g, g.host(a), jit_compile=True)


@pytest.mark.parametrize(("jit_compile", "expected"), [(True, [True, True]), (False, [False, None]), (None, [None, None])])
def test_2_11_a_function_has_the_attribute_where_the_option_is_given(jit_compile, expected):
    f = jl.function(lambda x: np.sin(x), jit_compile=jit_compile)
    attr = f.get_concrete_function(np.ones(3)).function_def.attr
    assert [getattr(attr.get(name), "b", None) for name in ("_XlaMustCompile", "_noinline")] == expected


def test_2_11_compiled_clusters_give_what_numpy_gives(g):
    y = g.cos(g.plus(g.sin(g.x), 2.0))
    x = np.linspace(0, 1, 3)
    for options in (SESSION, OFF, OURS):
        (got,) = runnable(clustered(g, y, options=options)).run([x])
        np.testing.assert_allclose(got, np.cos(np.sin(x) + 2.0), rtol=1e-15)


# ---- seed examples


def test_7_forced_placement_compiles_whatever_the_level_says(g):
    y = g.add(g.x, g.x, device=XLA)
    z = g.exp(y)
    clustering = clustered(g, z, options=OFF)
    (c,) = clustering.clusters
    assert c.nodes == [y] and c.device == XLA and c.reason.code is Joined.PLACED
    assert refusals(clustered(g, g.cos(z)))[0][2] is Apart.DEVICES  # and what is on it never mixes with the CPU


def test_the_policy_of_functions_ignores_what_only_a_session_counts(g):
    y = g.plus(g.plus(g.x, 1.0), 2.0)
    assert len(cluster(g.graph, OURS).clusters) == 1 and VECTOR == y.type

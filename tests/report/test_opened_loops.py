"""What a person wrote in a loop or a branch is in the report: operations, nests, edges, lines."""

import numpy as np
import pytest

import jitlab as jl


def heat(u, n):
    for _ in range(n):
        a = np.zeros_like(u)
        a[1:-1] = (u[2:] + u[:-2]) * 0.5
        u = np.cumsum(a + 1)
    return u


def newton(x, tolerance):
    guess = x / 2
    error = tolerance + 1
    while error > tolerance:
        better = (x / guess + guess) / 2
        error = np.abs(better - guess).max()
        guess = better
    return guess


def side(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + 1


def nested(a, n):
    for i in range(n):
        for j in range(n):
            a[i, j] = a[i, j] * 2 + np.sin(a[j, i])
    return a


@pytest.fixture(scope="module")
def report():
    return jl.explain(jl.jit(heat), np.random.rand(500), 30)


def line(function, offset):
    return function.__code__.co_firstlineno + offset


def test_the_operations_of_a_body_are_operations_of_the_report(report):
    inside = {op.name: op for op in report.ops if op.parent == "loop"}
    assert {op.op for op in inside.values()} >= {"AddV2", "Mul", "Cumsum", "TensorScatterUpdate"}
    assert all(op.cluster == report.clusters[0].name and op.kernel == "k0" for op in inside.values())
    assert inside["loop/cumsum"].lines == (line(heat, 4),)
    assert inside["loop/cumsum"].inputs == ("loop/add_1",)
    assert len({op.name for op in report.ops}) == len(report.ops)


def test_a_verdict_counts_what_was_written_in_the_loop_and_kernels_stay_the_entries(report):
    assert report.verdict["operations"] == report.verdict["compiled"] == len(report.ops) > 7
    assert report.verdict["kernels"] == len(report.kernels) == 1
    assert set(report.clusters[0].lines) == {line(heat, k) for k in (1, 2, 3, 4)}


def test_nests_of_a_loop_say_what_is_fused_inside_and_why_the_rest_is_not(report):
    nests = report.kernels[0].nests
    assert [nest.kind for nest in nests] == ["nest", "nest", "nest"]
    assert nests[-1].ops == ("loop/add_1", "loop/cumsum") and nests[-1].lines == (line(heat, 4),)
    edge = next(e for e in report.boundaries if e.consumer == "loop/add_1")
    assert edge.producer == "loop/update" and edge.reason.code == "updated" and edge.bytes == 4000
    assert report.why("loop/add_1", "loop/cumsum").fused
    answer = report.why_not("loop/update", "loop/add_1")
    why = "the array is written piece by piece, so it must be complete before it is read"
    assert not answer.fused and why in answer.text
    text = str(report)
    assert f"np.cumsum(a + 1) (line {line(heat, 4)})" in text and f": {why}" in " ".join(text.split())


def test_a_copy_is_told_by_the_variables_name(report):
    why = "`u` is changed in place, and the caller's array must keep its values"
    assert f"Copied: {why}; 4.0 kB (line {line(heat, 1)})" in str(report)
    assert all(copy["cluster"] for copy in report.data["copies"])


def test_a_while_loop_opens_its_test_too():
    report = jl.explain(jl.jit(newton), np.random.rand(300) + 1, 1e-9)
    names = {op.name: op for op in report.ops}
    assert any(name.startswith("loop/test/") for name in names)
    realdiv = next(op for name, op in names.items() if name.startswith("loop/realdiv"))
    assert realdiv.lines == (line(newton, 4),) and realdiv.parent == "loop"
    kinds = {nest.kind for kernel in report.kernels for nest in kernel.nests}
    assert "nest" in kinds


def test_both_sides_of_a_branch_are_there():
    report = jl.explain(jl.jit(side), np.ones(200))
    sides = {op.name: op.lines for op in report.ops if op.parent == "branch"}
    assert sides == {"branch/then/mul": (line(side, 2),), "branch/else/sub": (line(side, 4),)}
    after = next(op for op in report.ops if op.op == "AddV2")
    assert after.inputs == ("branch",)


def test_a_loop_in_a_loop_names_both():
    report = jl.explain(jl.jit(nested), np.random.rand(40, 40), 40)
    parents = {op.name: op.parent for op in report.ops}
    inner = next(name for name, parent in parents.items() if parent == "loop" and name.startswith("loop/loop"))
    assert any(parent == inner for parent in parents.values())
    sine = next(op for op in report.ops if op.op == "Sin")
    assert sine.parent == inner and sine.lines == (line(nested, 3),) and sine.kernel == "k0"


def test_a_loop_that_numpy_runs_is_one_fallback_with_its_operations_inside():
    report = jl.explain(jl.function(heat, jit_compile=False), np.random.rand(50), np.int64(30))
    inside = [op for op in report.ops if op.parent]
    assert inside and all(op.cluster is None and op.reason for op in inside)
    assert not {f.name for f in report.fallbacks} & {op.name for op in inside}
    assert report.verdict["operations"] == report.verdict["host"] == len(report.ops)
    assert "◇ for _ in range(n), NumPy" in str(report)


def told(f, *args):
    return {op["name"]: op for op in jl.explain(jl.jit(f), *args).data["ops"]}


def test_a_loop_says_how_often_it_turns_where_that_is_known():
    assert told(heat, np.random.rand(50), 30)["loop"]["iterations"] == 30
    loops = told(nested, np.random.rand(20, 20), 20)
    assert loops["loop"]["iterations"] == loops["loop/loop"]["iterations"] == 20
    assert not loops["loop"]["ends_early"]
    unknown = told(newton, np.array([2.0, 9.0]), 1e-9)["loop"]
    assert unknown["iterations"] is None and unknown["ends_early"]


def test_of_a_loop_that_changes_its_length_or_breaks_no_number_is_guessed():
    def triangle(a):
        for i in range(a.shape[0]):
            for j in range(i, a.shape[1]):
                a[i, j] = a[i, j] * 2 + a[j, i]
        return a

    assert told(triangle, np.random.rand(20, 20))["loop/loop"]["iterations"] is None

    def halved(x):
        for _ in range(40):
            x = x / 2
            if x.max() < 1:
                break
        return x

    loop = told(halved, np.random.rand(9) * 50)["loop"]
    assert (loop["iterations"], loop["ends_early"]) == (40, True)


def test_each_operation_of_a_body_says_on_which_side_it_is():
    sides = {op["name"]: op["side"] for op in told(side, np.random.rand(9)).values() if "parent" in op}
    assert set(sides.values()) == {"then", "else"}
    assert all(f"/{of}/" in name for name, of in sides.items())
    loop = [op["side"] for op in told(newton, np.array([2.0]), 1e-9).values() if "parent" in op]
    assert set(loop) == {"test", "body"}

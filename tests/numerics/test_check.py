"""`f.check(*args)`: the error of each cluster's outputs beside NumPy, the bound of each, and who broke it."""

import json
import math

import numpy as np
import pytest

import jitlab as jl
from jitlab.api.check.check_text import verdict
from jitlab.config import config
from jitlab.ir.programs.program import Apply
from jitlab.lower.schedule.inlining import Reader
from jitlab.ops.elementwise.arithmetic import Square
from jitlab.ops.elementwise.math_functions import Tanh
from jitlab.ops.reducing.axis_reductions import Sum
from jitlab.passes import pipeline
from jitlab.runtime.compiled import forget_compiled

rng = np.random.default_rng(5)


@pytest.fixture
def own_code(monkeypatch):
    """What is compiled here is this test's: machine code is found by its Program's text, which a broken body doesn't change."""
    monkeypatch.setattr(config, "cache", False)
    forget_compiled()
    yield monkeypatch
    monkeypatch.undo()
    forget_compiled()


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def chain(x):
    a = x * 2 + 1
    b = np.tanh(a)
    c = b * b
    d = np.sqrt(c + 3)
    return d - x


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("make", [jl.function, jl.jit])
def test_a_softmax_is_within_its_bound_and_says_how_it_was_checked(make, dtype):
    check = make(softmax).check(rng.normal(size=(40, 30)).astype(dtype))
    (row,) = check.outputs
    assert check.ok and row.ok and row.op == "RealDiv" and row.guilty is None
    assert row.max_ulp < row.bound_ulp < 200 and row.lines == (row.lines[0],)
    assert row.reference == ("NumPy in float64" if dtype == "f4" else "NumPy in long double")
    assert any(text.startswith("exp is jitlab's own") for text in row.rewrites)
    assert any(text.startswith("sum adds in lanes and blocks") for text in row.rewrites)


def forces(p):
    d = p[:, None, :] - p[None, :, :]
    inverse = 1 / ((d * d).sum(axis=2) + np.eye(len(p)))
    sixth = inverse**3
    pair = 24 * inverse * sixth * (2 * sixth - 1)
    return (pair[:, :, None] * d).sum(axis=1), (4 * sixth * (sixth - 1)).sum(axis=1)


def test_where_terms_cancel_error_and_bound_are_of_one_element_and_the_text_says_so():
    places = np.stack(np.meshgrid(*[np.arange(5) * 1.2] * 3), -1).reshape(-1, 3)
    check = jl.function(forces).check(places + 0.05 * np.random.default_rng(0).normal(size=places.shape))
    force = next(row for row in check.outputs if row.shape == (125, 3))
    energy = next(row for row in check.outputs if row.shape == (125,))
    assert check.ok and force.cancels and force.max_ulp > 100
    assert 0 < force.nearest.ulp <= force.bound_ulp == force.nearest.bound_ulp and force.nearest.abs <= force.nearest.bound_abs
    assert not energy.cancels
    text = " ".join(str(check).split())
    assert text.startswith(f"forces: all {len(check.outputs)} outputs within their bounds")
    assert "there the terms nearly cancel, so ULP of what is left mean little; the bound goes with the terms" in text
    entry = json.loads(json.dumps(force.to_json(), allow_nan=False))["nearest"]
    assert entry["ulp"] == force.nearest.ulp and len(entry["index"]) == 2


def test_what_is_exact_has_to_be_the_same_bits():
    check = jl.function(lambda x, n: (x * 3 - 1, n // 3, x > 0, x[::-1])).check(rng.normal(size=50), np.arange(-5, 5))
    assert check.ok and len(check.outputs) >= 3
    assert all(row.bound_ulp == 0 and row.differing == 0 and row.rewrites == () for row in check.outputs)


def test_special_values_stay_where_numpy_has_them():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 5e-324])
    check = jl.function(lambda x: (np.exp(x), np.sum(x), x * x, np.log(np.abs(x)))).check(x)
    assert check.ok, str(check)
    assert all(row.nan == row.inf == 0 for row in check.outputs)


def test_loops_branches_and_what_is_read_by_index_have_bounds():
    @jl.jit
    def f(x, w, at):
        y = x @ w
        total = np.zeros(4)
        for k in range(20):
            total = total * 0.5 + np.sin(y[k])
        return total, np.argmax(y, axis=1), y[at], np.sort(y, axis=1), np.cumsum(y, axis=0)

    check = f.check(rng.normal(size=(20, 6)), rng.normal(size=(6, 4)), np.array([3, 1, 3]))
    assert check.ok, str(check)
    assert {row.op for row in check.outputs} >= {"ArgMax", "Sort"}
    assert all(row.bound_ulp is not None for row in check.outputs if row.op != "While")


def test_a_library_call_is_compared_and_says_that_no_bound_is_stated():
    a = rng.normal(size=(5, 5)) + 5 * np.eye(5)
    (row,) = jl.function(lambda a, b: np.linalg.solve(a, b) * 2).check(a, rng.normal(size=5)).outputs
    assert row.ok and row.bound_ulp is None and "Solve" in row.note


def test_what_has_no_bound_is_counted_apart_and_rows_have_the_names_of_the_program():
    @jl.function
    def f(a, b):
        doubled = b * 2
        solved = np.linalg.solve(a, b) + 1
        return doubled, solved

    a = rng.normal(size=(5, 5)) + 5 * np.eye(5)
    check = f.check(a, rng.normal(size=5))
    rows = {row.called: row for row in check.outputs}
    assert check.ok and rows["doubled"].bound_ulp == 0 and rows["solved"].bound_ulp is None
    text = " ".join(str(check).split())
    assert text.startswith("f: 1 output within its bound, 1 without a stated bound, compared with NumPy")
    assert "■ `doubled` float64[5]" in text and rows["solved"].to_json()["called"] == "solved"
    assert verdict(2, 0, 2) == "2 outputs compared, no bound is stated for them"
    assert verdict(3, 1, 1) == "1 of 3 outputs outside their bounds"


def test_a_check_changes_nothing_of_the_caller():
    state = jl.Variable(np.ones(3))

    @jl.function
    def step(x):
        state.assign(state.value() * 2)
        x[0] = 5.0
        return x + state.value() + np.random.rand(3)

    x = np.zeros(3)
    step(x.copy())
    before, drawn = state.numpy().copy(), np.random.get_state()[1].copy()
    with jl.record() as recording:
        check = step.check(x)
    assert check.outputs or check.refusal
    assert np.array_equal(state.numpy(), before) and np.array_equal(x, np.zeros(3))
    assert np.array_equal(np.random.get_state()[1], drawn)
    assert recording.report().clusters == []  # an experiment is no run


def test_a_function_that_acts_on_the_world_is_refused_with_its_line():
    @jl.function
    def f(x):
        jl.print(x.sum()) if hasattr(jl, "print") else jl.print_("sum", x.sum())
        return x * 2

    check = f.check(np.ones(3))
    assert not check.ok and "acts on the world outside" in check.refusal and "line" in check.refusal


def test_a_check_that_would_keep_too_much_is_refused_with_the_bytes(monkeypatch):
    monkeypatch.setattr(config, "copy_limit_bytes", 1000)
    check = jl.function(chain).check(np.ones(500))
    assert not check.ok and "more than jl.config.copy_limit_bytes, which is 1.0 kB" in check.refusal


def test_a_wrong_body_is_found_by_halving(own_code):
    body = Tanh.body
    own_code.setattr(Tanh, "body", lambda self, e, *xs: e.mul(body(self, e, *xs), e.constant(1.0001, xs[0].dtype)))
    check = jl.function(chain).check(rng.normal(size=64))
    (row,) = check.outputs
    assert not check.ok and row.guilty.edge == ("tanh", None)
    assert "jitlab's own" in row.guilty.rewrite and "`b` (line" in row.guilty.text
    assert row.guilty.runs <= math.log2(6) + 2
    assert "✗" in str(check) and row.guilty.text.split(":")[0] in " ".join(str(check).split())


def test_a_wrong_sum_is_found_though_everything_after_it_is_wrong_too(own_code):
    own_code.setattr(Sum, "combine", lambda self, e, left, right: left)
    check = jl.function(softmax).check(rng.random((40, 300)))
    (row,) = check.outputs
    assert row.guilty.edge == ("sum", None) and "adds in lanes and blocks" in row.guilty.rewrite


def test_a_wrong_pass_is_found_with_the_operation_it_changed(own_code):
    def reassociate(graph):
        """(a + b) + c -> a + (b + c)"""
        from jitlab.ops.elementwise.arithmetic import Add

        for node in graph.nodes:
            if isinstance(node.op, Add) and isinstance(node.inputs[0].op, Add) and node.name == "add_1":
                a, b = node.inputs[0].inputs
                node.inputs[0].inputs, node.inputs = (b, node.inputs[1]), (a, node.inputs[0])
        return graph

    def copied(graph):
        made = graph.rewrite(lambda node: None)
        return reassociate(made)

    copied.__name__ = "reassociate"
    own_code.setattr(pipeline, "PASSES", (*pipeline.PASSES[:5], copied, *pipeline.PASSES[5:]))
    check = jl.function(lambda a, b, c: ((a + b) + c) * 2).check(*rng.normal(size=(3, 100)))
    row = next(row for row in check.outputs if row.cluster is None)
    assert not row.ok and row.guilty.rewrite == "the pass reassociate"
    assert row.guilty.runs <= math.log2(len(pipeline.PASSES)) + 2


def test_the_answer_is_plain_json_with_the_keys_of_the_report():
    data = json.loads(json.dumps(jl.function(softmax).check(rng.normal(size=(4, 5))).to_json(), allow_nan=False))
    (entry,) = data["numerics"]
    assert data["ok"] and {
        "cluster", "plan", "output", "lines", "max_abs", "max_rel", "max_ulp", "bound_ulp", "ok", "guilty",
    } <= set(entry)  # fmt: skip


def test_the_text_fits_a_terminal(own_code):
    body = Tanh.body
    own_code.setattr(Tanh, "body", lambda self, e, *xs: e.mul(body(self, e, *xs), e.constant(1.0001, xs[0].dtype)))
    text = str(jl.function(chain).check(rng.normal(size=64)))
    assert max(map(len, text.splitlines())) <= 100 and "\x1b" not in text


@pytest.mark.parametrize("producer, consumer", [("mul", "add"), ("add", "tanh"), ("mul_1", "add_1"), ("sqrt", "sub")])
def test_a_wrong_fusion_is_found_by_its_edge(own_code, producer, consumer):
    """Where the producer is computed inside the consumer's loop its value is squared; read from memory it is right."""
    compute, made = Reader.compute, {}

    def wrong(self, node, position):
        expr = compute(self, node, position)
        made[id(expr)] = expr, node.name
        if node.name == consumer and isinstance(expr, Apply):
            expr.args = tuple(
                Apply(Square(), (a,), a.dtype) if made.get(id(a), ("", ""))[1] == producer else a for a in expr.args
            )
        return expr

    own_code.setattr(Reader, "compute", wrong)
    (row,) = jl.function(chain).check(rng.normal(size=64) + 3).outputs
    assert not row.ok and row.guilty.edge == (producer, consumer)
    told = row.guilty.text.partition(" makes it wrong")[0]  # each by the program's name for it and its own
    assert told.startswith("Fusing `") and "` into `" in told
    assert "inside the loop of" in row.guilty.rewrite
    edges = 8
    assert row.guilty.runs <= math.log2(edges) + 2


def test_empty_arrays_have_bounds_too():
    check = jl.jit(lambda x: np.sort(np.arcsin(x), axis=0)).check(np.zeros((0, 3)))
    assert check.ok and check.outputs[0].differing == 0

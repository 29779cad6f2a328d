"""`f.check` beside the function's own Python: mistakes of capture are found; what Python changes is put back."""

import json
import linecache

import numpy as np
import pytest

import jitlab as jl
from jitlab.ops.table import METHODS

rng = np.random.default_rng(2)
MAKERS = pytest.mark.parametrize("make", [jl.function, jl.jit])
rate = 0.5
seen = []


@MAKERS
def test_what_was_captured_rightly_is_said_to_be(make):
    check = make(lambda x: (x * 2, {"sum": x.sum(axis=0), "three": 3})).check(rng.normal(size=(30, 4)))
    assert check.ok and check.python.ran and not check.python.guilty and check.python.results == 3
    assert "■ against Python: " in str(check)
    assert json.loads(json.dumps(check.to_json(), allow_nan=False))["python"]["ok"]


@MAKERS
def test_what_rounding_explains_is_no_mistake(make):
    def f(x):
        return np.var(x, axis=1), np.linalg.norm(x), np.tanh(x) @ x.T, np.std(x), x.mean(), np.logaddexp(x, 1).prod()

    check = make(f).check(rng.normal(size=(50, 50)).astype("f4"))
    assert check.python.ran and check.python.ok, check.python


@MAKERS
def test_a_mistake_of_capture_is_found_although_every_cluster_is_right(make, monkeypatch):
    monkeypatch.setitem(METHODS, "cumsum", METHODS["cumprod"])

    def f(x):
        y = x + 1
        return y, y.cumsum()

    check = make(f).check(np.arange(4.0))
    assert all(row.ok for row in check.outputs) and not check.ok
    assert check.python.guilty == "capture" and check.python.output == "result[1]"
    assert [linecache.getline(__file__, line).strip() for line in check.python.lines] == ["return y, y.cumsum()"]
    text = " ".join(str(check).split())
    assert "✗ against Python: result[1] (line" in text and "2 elements; at [3] Python 10.0, compiled 24.0" in text
    assert "capture is guilty, not a rewrite" in text


def test_a_write_that_capture_did_not_see_is_found(monkeypatch):
    def f(x):
        x += 1
        return x * 2

    function = jl.function(f)
    function.python_function = f
    x = np.ones(3)
    function.check(x)
    for recording in function._recent.values():
        recording.trace.writes.clear()
    found = function.check(x).python
    assert found.guilty == "capture" and found.output == "x afterwards" and np.array_equal(x, np.ones(3))


class Model:
    def __init__(self):
        self.weight, self.steps, self.log = np.ones(3), 0, []

    def step(self, x, state):
        self.weight += x
        self.steps += 1
        self.log.append(float(1))
        seen.append(1)
        state.assign(self.weight * rate)
        x[0] = 7
        print("stepping")
        return x, np.random.rand(3), self.weight[::-1]


def test_what_python_changes_is_put_back_and_what_it_prints_is_held_back(capsys):
    model, state, x = Model(), jl.Variable(np.zeros(3)), np.arange(3.0)
    f = jl.function(model.step)
    f(x.copy(), state)
    capsys.readouterr()
    np.random.seed(1)
    before = model.weight.copy(), model.steps, list(model.log), list(seen), state.numpy(), x.copy()
    check = f.check(x, state)
    after = model.weight, model.steps, model.log, seen, state.numpy(), x
    assert check.ok and check.python.ran and check.python.results == 3, str(check)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert np.random.rand() == np.random.RandomState(1).rand() and capsys.readouterr().out == ""


def test_a_function_keeps_what_it_read_and_is_compared_with_that(monkeypatch):
    f = jl.function(lambda x: x * rate)
    f(np.ones(3))
    monkeypatch.setitem(globals(), "rate", 0.25)
    check = f.check(np.ones(3))
    assert check.ok and "with rate as when it was traced" in check.python.text and rate == 0.25


def test_a_call_inside_runs_as_python_too(monkeypatch):
    monkeypatch.setitem(METHODS, "cumsum", METHODS["cumprod"])
    inner = jl.jit(lambda x: x.cumsum())
    outer = jl.function(lambda x: inner(x) * 2)
    assert outer.check(np.arange(4.0) + 1).python.guilty == "capture"


def test_where_python_can_not_run_again_a_line_says_why(tmp_path, monkeypatch):
    def writes(x):
        (tmp_path / "kept.txt").write_text("once")
        return x * 2

    f = jl.function(writes)
    f(np.ones(3))
    (tmp_path / "kept.txt").unlink()
    found = f.check(np.ones(3))
    assert found.ok and not found.python.ran and str(found.python) == "against Python: not run: it writes the file 'kept.txt'"
    assert not (tmp_path / "kept.txt").exists()

    held = open(tmp_path / "read.txt", "w+")
    g = jl.function(lambda x: x * len(held.read(3) or "") + 1)
    g(np.ones(3))
    held.close()
    assert g.check(np.ones(3)).python.text == "not run: it raises ValueError: I/O operation on closed file"
    h = jl.function(lambda x: x * table[0, 0])
    h(np.ones(3))
    monkeypatch.setattr(jl.config, "copy_limit_bytes", 900)
    said = h.check(np.ones(3)).python.text
    assert said == "not run: copies of what it may change take more than jl.config.copy_limit_bytes (900 B)"


table = np.ones((20, 20))


def test_a_scope_marks_nothing_for_python_and_is_no_obstacle():
    def f(x):
        with jl.jit_scope():
            return x * 2

    check = jl.function(f).check(np.ones(3))
    assert check.ok and check.python.ran
    with pytest.raises(RuntimeError):
        f(np.ones(3))


def test_a_mistake_of_a_pass_is_not_laid_on_capture(monkeypatch):
    from jitlab.ops.build_nodes import apply
    from jitlab.ops.elementwise.arithmetic import Sub
    from jitlab.passes import pipeline
    from jitlab.passes.rewriting import rewrite

    def swap(graph):
        """a - b -> b - a, which is wrong"""
        return rewrite(graph, lambda node: isinstance(node.op, Sub) or None, lambda node, _: apply(node.op, *node.inputs[::-1]))

    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES[:5], swap, *pipeline.PASSES[5:]))
    check = jl.jit(lambda w, g: w - g * 2).check(*rng.normal(size=(2, 30)))
    assert not check.ok and check.python.guilty == "pass" and "capture is guilty" not in str(check)
    assert "The graph as it was traced gives what Python gives: a pass changed it" in check.python.text
    assert any(row.guilty is not None and row.guilty.rewrite == "the pass swap" for row in check.outputs)


@MAKERS
def test_a_function_of_numpy_that_is_rounded_otherwise_than_the_graph_is_no_mistake(make):
    check = make(lambda x: np.rad2deg(x)).check(np.linspace(-6, 6, 400).astype("f2"))
    assert check.python.ok and "no more than rounding explains" in check.python.text

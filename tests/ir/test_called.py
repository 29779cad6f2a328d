"""What the program calls each value: its name, else its expression, the head of its loop, the helper it is made in."""

import linecache

import numpy as np

import jitlab as jl
from jitlab.ir import ArrayType, Graph, Source, name_values
from jitlab.ops.elementwise.math_functions import Exp
from jitlab.ops.leaf_operations import Parameter

CELL = "<ipython-input-called-1>"


def squared_distances(a):
    d = a[:, None] - a[None, :]
    return d**2


@jl.jit
def energy(x, eps):
    r2 = squared_distances(x) + 1.0
    inv6 = (
        1.0
        / r2 ** 3
    )  # fmt: skip
    f: np.ndarray = eps * (inv6 * inv6 - inv6)
    m = f.mean(axis=1)
    s = np.exp(f - m[:, None])
    s /= s.sum(axis=0)
    low, high = np.minimum(s, 0.5), np.maximum(s, 0.5)
    total = 0.0
    for i in range(1, 40):
        total = total + low[i] @ high[i - 1]
    return total, np.where((big := s > 1e-3), s, np.log(s + m[:, None] + inv6 + f + r2 + low + high)), big


def said(report, *keys):
    return [tuple(op.get(key, "") for key in keys) for op in report.data["ops"]]


def test_a_value_is_called_as_the_program_calls_it():
    report = jl.explain(energy, np.random.default_rng(0).random(50), 2.0)
    called = {name: word for name, word in said(report, "name", "called")}
    assert called["realdiv"] == "inv6"  # over several lines, in parentheses
    assert called["pow"] == "r2 ** 3"  # without a name: the expression
    assert called["mul_1"] == "f" and called["mean"] == "m"
    assert called["realdiv_1"] == "s"  # s /= ...
    assert called["sum"] == "s.sum(axis=0)"
    assert called["minimum"] == "low" and called["maximum"] == "high"
    assert called["greater"] == "big"
    assert called["loop"] == "for i in range(1, 40)" and called["loop/matmul"] == "low[i] @ high[i - 1]"


def test_an_operation_of_a_helper_says_which():
    report = jl.explain(energy, np.random.default_rng(0).random(50), 2.0)
    helped = {(word, helper) for word, helper in said(report, "called", "within") if helper}
    assert helped == {("a[:, None]", "squared_distances"), ("a[None, :]", "squared_distances"), ("d", "squared_distances"),
                      ("d**2", "squared_distances")}  # fmt: skip


def test_of_several_operations_of_one_expression_the_last_has_the_name():
    @jl.jit
    def spread(x):
        v = np.std(x, axis=0)
        return v + 1

    words = [word for word, in said(jl.explain(spread, np.ones((50, 40))), "called")]
    assert words.count("v") == 1 and words[-2:] == ["v", "v + 1"]
    assert set(words[:-2]) == {"part of np.std(x, axis=0)"}


def test_what_an_expression_only_shows_in_another_shape_is_its_value():
    @jl.jit
    def scaled(x):
        return x / x.sum(axis=1, keepdims=True)

    words = [word for word, in said(jl.explain(scaled, np.ones((50, 40))), "called")]
    assert words == ["x.sum(axis=1, keepdims=True)"] * 2 + ["x / x.sum(axis=1, keepdims=True)"]


def test_a_turn_of_a_loop_that_is_written_out_is_a_value():
    @jl.jit
    def three(x):
        for _ in range(3):
            x = np.tanh(x)
        return x

    assert [word for word, in said(jl.explain(three, np.ones(50)), "called")] == ["x"] * 3


def test_what_a_derivative_is_made_of_is_no_value_of_the_program():
    def loss(x):
        y = np.exp(x)
        return np.maximum(y, 2).sum()

    report = jl.explain(jl.function(jl.value_and_grad(loss)), np.linspace(0, 3, 50))
    assert [op.called for op in report.ops].count("y") == 1
    made = next(op for op in report.ops if op.called == "gradient of np.maximum(y, 2)")
    assert str(made).startswith("gradient of `np.maximum(y, 2)` (")


def test_long_and_foreign_expressions_are_cut_between_characters():
    @jl.jit
    def f(größe):
        return np.exp(größe * größe + größe * größe) * "µ".__len__() + np.exp(größe * größe * größe)

    words = [word for word, in said(jl.explain(f, np.ones(50)), "called")]
    assert "größe * größe" in words and all(len(word) <= 40 for word in words)
    assert "np.exp(größe * größe * größe)" in words


def test_a_text_that_does_not_parse_gives_expressions_without_names():
    text = "%magic\ny = np.exp(x)\n"
    linecache.cache[CELL] = (len(text), None, text.splitlines(True), CELL)
    graph = Graph("g")
    kind = ArrayType((3,), np.dtype(float))
    x = graph.add(Parameter(kind), name="x", sources=frozenset())
    y = graph.add(Exp(), x, sources=frozenset({Source(CELL, 2, 4, 2, 13)}))
    z = graph.add(Exp(), y, sources=frozenset({Source("<nowhere>", 2, 4, 2, 13)}))
    name_values(graph)
    assert (y.called, y.within) == ("np.exp(x)", "") and z.called == ""

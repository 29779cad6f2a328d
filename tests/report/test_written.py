"""Operations are shown as the program writes them, and are asked for so."""

import importlib.util
import re

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab.ops import operations

X, W = np.random.default_rng(1).random((6, 4)), np.random.default_rng(2).random((4, 3))


def written(f, *args):
    return [op.written for op in jl.explain(jl.jit(f), *args).ops]


def test_an_expression_is_what_stands_there():
    def layer(x, w):
        p = np.maximum(x @ w, 0)
        return p[2:, 1:-1] / 2, np.where(p > 1, p, -p)[:, None]

    found = jl.explain(jl.jit(layer), X, W).ops
    texts = ["x @ w", "np.maximum(x @ w, 0)", "p[2:, 1:-1]", "p[2:, 1:-1] / 2", "p > 1", "-p", "np.where(p > 1, p, -p)"]
    assert [op.written for op in found] == texts
    assert [op.word for op in found] == ["@", "maximum", "[...]", "/", ">", "negative", "where"]
    assert [op.op for op in found][:3] == ["MatMul", "Maximum", "StridedSlice"]
    assert str(found[1]) == f"`p` (line {layer.__code__.co_firstlineno + 1})"


def test_of_a_long_expression_the_operands_go_first():
    def long(signal, noise):
        return np.cumsum((signal - 0.5 * noise**2) * 0.25 + signal * np.sqrt(noise), axis=1), (signal * noise + 1.25) / (
            noise * signal * noise + signal
        )

    found = written(long, X, X)
    assert "np.cumsum(…, axis=1)" in found and "(signal * noise + 1.25) / (…)" in found
    assert all(len(text) <= 40 and "\n" not in text for text in found)


def test_lambdas_comprehensions_and_lines_are_no_hindrance():
    def several(x):
        rows = [np.exp(x[i] * (i + 1)) for i in range(2)]
        return sum(rows) + (lambda y: np.tanh(
            y
            + 1
        ))(x[0])  # fmt: skip

    found = written(several, X)
    assert "np.exp(x[i] * (i + 1))" in found and "np.tanh(y + 1)" in found and "y + 1" in found


def test_a_helper_in_another_file_has_its_own_text(tmp_path):
    path = tmp_path / "helper_of_names.py"
    path.write_text("import numpy as np\n\n\ndef dist(a, b):\n    return np.sqrt((a - b) ** 2)\n")
    spec = importlib.util.spec_from_file_location("helper_of_names", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert written(lambda x: module.dist(x, 1.5) * 2, X) == [
        "a - b",
        "(a - b) ** 2",
        "np.sqrt((a - b) ** 2)",
        "module.dist(x, 1.5) * 2",
    ]


def test_without_source_numpys_word_stands_there():
    assert [op.written for op in samples.softmax_report(retraces=0).ops][:3] == ["MatMul", "AddV2", "Max"]  # fake ones


def test_a_part_of_an_expression_is_told_by_numpys_word():
    found = jl.explain(jl.jit(lambda x: x.std(axis=0)), X).ops
    parts = [op for op in found if (op.called or "").startswith("part of")]
    assert parts and all(op.written == op.word for op in parts)
    assert re.fullmatch(r"part of `x\.std\(axis=0\)` \(.+, line \d+\)", str(parts[0]))


def test_control_characters_of_a_text_do_nothing():
    def f(d):
        return np.exp(d["\x1b[31m‮"])

    name = "\x1b[31m‮"
    found = jl.explain(jl.jit(lambda x: np.exp(x)), X)
    assert "\x1b" not in str(found)
    assert "\x1b" not in str(jl.explain(jl.jit(f), {name: X}))


def twice(x):
    y = np.exp(x) * 2
    return np.exp(x) * 2 + y.sum() + np.tanh(y)


def test_why_takes_what_the_program_writes_and_asks_for_a_line():
    first = twice.__code__.co_firstlineno
    report = jl.explain(jl.jit(twice), X)
    assert report.why("y", "np.tanh(y)").fused == report.why("mul", "tanh").fused
    assert report.why(f"np.exp(x), line {first + 1}", f"np.exp( x )*2, line {first + 1}").fused

    def again(x, k):
        a = np.sqrt(x + k)
        x = x * k
        return a, np.sqrt(x + k)

    report, line = jl.explain(jl.jit(again), X, X), again.__code__.co_firstlineno
    with pytest.raises(jl.errors.OptionError, match=rf'"x \+ k, line {line + 1}" or "x \+ k, line {line + 3}"'):
        report.why("x + k", "np.sqrt(x + k)")
    assert report.why(f"x + k, line {line + 3}", f"np.sqrt(x + k), line {line + 3}").fused


def test_what_ifs_and_expectations_take_both():
    @jl.function
    def softmax(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    by_text = softmax.whatif(X, cut=("e", "e.sum(axis=1, keepdims=True)"), seconds=0.001)
    by_kind = softmax.whatif(X, cut=("Exp", "Sum"), seconds=0.001)
    assert by_text.title == by_kind.title == "Split `e` from `e.sum(axis=1, keepdims=True)`"
    with jl.expect(fused=[("e", "e.sum(axis=1, keepdims=True)"), ("exp", "sum")]):
        softmax(X)


@pytest.mark.parametrize("kind", sorted(operations(), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_no_operations_word_is_the_graphs(kind):
    for op, *_ in kind.samples():
        assert op.word and not re.search(r"[A-Z]|V2$", op.word)


def test_the_program_is_shown_in_the_programs_names():
    def decayed(T, k):
        return np.sqrt(T) * k

    report = jl.explain(jl.jit(decayed), np.ones(50), np.ones(50))
    text = str(report.code(report.clusters[0].name, "program"))
    assert "v0 = sqrt(T[i])" in text and "v1 = v0 * k[i]" in text


@pytest.mark.parametrize(
    "f, said",
    [(lambda x: np.sort(x * 2), "call sort(axis="), (lambda x: np.sin(x @ x), "@"), (lambda x: np.fft.fft(x), "call fft("),
     (lambda x: np.linalg.solve(x, x), "call solve"), (lambda x: np.cumsum(x), "= cumsum("), (lambda x: x.sum(), "= sum("),
     (lambda x: np.logaddexp.reduce(x), "logaddexp.reduce"), (lambda x: np.median(x, axis=0), "call ")],
    ids=["sort", "product", "fft", "solve", "scan", "sum", "fold", "median"],
)  # fmt: skip
def test_library_calls_and_reductions_of_the_program_shown_have_numpys_words(f, said):
    report = jl.explain(jl.jit(f), np.eye(4) + np.ones((4, 4)))
    texts = [str(report.code(cluster.name, "program")) for cluster in report.clusters]
    assert any(said in text for text in texts)
    assert not any(re.search(r"call [A-Z]|with r\d = [A-Z]", text) for text in texts)

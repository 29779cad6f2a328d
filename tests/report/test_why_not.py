"""Each edge between kernels and each operation that is not compiled has its one reason; what is told to flip it is compiled."""

import gc
import re
import traceback
import warnings

import numpy as np
import pytest
import report_samples as samples

import jitlab as jl
from jitlab.api.whatif import alternatives
from jitlab.errors import OptionError
from jitlab.ir import NotFused
from jitlab.report import read_report
from jitlab.support.transactions import Undisturbed
from tests.fuzz import fuzzing

X = np.random.default_rng(5).random((60, 20))


def outermost(op, ops):
    while op.parent is not None:
        op = ops[op.parent]
    return op


@pytest.mark.parametrize("first", [0, 20])
def test_every_edge_has_exactly_one_reason_in_random_programs(first):
    edges = 0
    for seed in range(first, first + 20):
        program = fuzzing.make(seed)
        with warnings.catch_warnings(), jl.record() as recording:
            warnings.simplefilter("ignore")
            fuzzing.transformed(program)(*(x.copy() for x in program.inputs.values()))
        report = recording.report()
        shared = [set(kernel.ops) | {kernel.cluster} for kernel in report.kernels]
        for plan in {op.plan for op in report.ops}:
            ops = {op.name: op for op in report.ops if op.plan == plan}
            cut = [(edge.producer, edge.consumer) for edge in report.boundaries if edge.plan == plan]
            for op in ops.values():
                assert op.cluster or op.parent or op.reason, (seed, op)
                for source in (ops[name] for name in op.inputs if name in ops):
                    end = op if source.parent is not None else outermost(op, ops)
                    if any({op.name, source.name, source.cluster} <= kernel for kernel in shared):
                        continue
                    edges += 1
                    assert cut.count((source.name, end.name)) == 1, (seed, source.name, op.name)
                    assert report.why_not(source.name, op.name).code not in ("unknown", "no_edge")
    assert edges > 20


@pytest.mark.parametrize(
    ("program", "a", "b", "words"),
    [
        (lambda x: x / x.sum(), "Sum", "RealDiv", "every element must be read before the first result is known"),
        (lambda x: np.sort(np.exp(x), axis=1) * 2, "Sort", "Mul", "a library call reads whole arrays and returns whole arrays"),
        (lambda x: np.fft.fft(x) + 1, "FFT", "AddV2", "a library call reads whole arrays"),
        (lambda x: np.linalg.inv(x[:20] + 20 * np.eye(20)) * 2, "MatrixInverse", "Mul", "a library call reads whole arrays"),
    ],
)
def test_what_no_change_of_the_program_fuses_says_why(program, a, b, words):
    f = jl.function(program)
    answer = jl.explain(f, X).why_not(a, b, check=True)
    assert answer.would_fuse_if is None and answer.checked is None
    assert "No change of the program fuses them: " in str(answer) and words in str(answer)


def test_a_large_product_is_a_librarys_work():
    large = np.ones((300, 200))
    answer = jl.explain(f := jl.function(lambda x: np.tanh(x @ x.T)), large).why_not("MatMul", "Tanh")
    assert answer.would_fuse_if is None and "a product of this size is faster in the library" in str(answer) and f is not None


# ---- another program: told where it was compiled and fuses, true when it is written so


def centred(x):
    return x - x.mean(axis=0)


def centred_turned(x):
    y = x.T
    return np.ascontiguousarray(y - y.mean(axis=1, keepdims=True))


def scaled(x):
    return x / np.sqrt((x * x).sum(axis=0)) + 1


def scaled_turned(x):
    y = x.T
    return np.ascontiguousarray(y / np.sqrt((y * y).sum(axis=1))[:, None] + 1)


def blocks(x):
    y = x.reshape(3, -1, x.shape[1])
    return y - y.max(axis=(0, 1))


def blocks_turned(x):
    y = np.moveaxis(x.reshape(3, -1, x.shape[1]), (0, 1), (-2, -1))
    return np.ascontiguousarray(y - y.max(axis=(1, 2))[:, None, None])


def layer(x):
    return np.tanh(x @ x[:2].T + 1)


def layer_summed(x):
    return np.tanh((x[:, None, :] * x[:2]).sum(axis=2) + 1)


def picked_after(x):
    return np.exp(x)[np.array([2, 0, 2])] + 1


def picked_before(x):
    return np.exp(x[np.array([2, 0, 2])]) + 1


@pytest.mark.parametrize(("shape", "dtype"), [((12, 20), "f8"), ((6, 33), "f4"), ((3, 2), "f8")])
@pytest.mark.parametrize(
    ("program", "other", "a", "b", "text"),
    [
        (centred, centred_turned, "Mean", "Sub", "mean reduced the last axis, that of x.T, and the result"),
        (scaled, scaled_turned, "Sum", "Sqrt", "sum reduced the last axis, that of (x * x).T, and the result"),
        (blocks, blocks_turned, "Max", "Sub", "max reduced the last axis, that of np.moveaxis(y, (0, 1), (-2, -1))"),
        (layer, layer_summed, "MatMul", "AddV2", "@ were a sum of products, (x[:, None, :] * x[:2]).sum(axis=2): "),
        (picked_after, picked_before, "Exp", "GatherV2", "take were applied to x first, and exp to the elements picked."),
    ],
)
def test_another_program_that_would_fuse_two_operations_does(program, other, a, b, text, shape, dtype):
    x = np.random.default_rng(1).random(shape).astype(dtype)
    f, g = jl.function(program), jl.function(other)
    before = jl.explain(f, x)
    answer = before.why_not(a, b, check=True)
    assert answer.checked is True and f"Would fuse if {text}" in str(answer), str(answer)
    after = jl.explain(g, x)
    assert len(after.kernels) < len(before.kernels)
    result, expected = g(x), f(x)
    if program is centred or program is scaled:
        result = result.T
    elif program is blocks:
        result = np.moveaxis(result, (-2, -1), (0, 1))
    np.testing.assert_allclose(result, expected, rtol=1e-12 if dtype == "f8" else 2e-5, atol=1e-6)


def flips(f, *arguments):
    return [edge.would_fuse_if for edge in jl.explain(f, *arguments).boundaries if edge.would_fuse_if]


@pytest.mark.parametrize("shape", [(9, 9), (9, 4)])
@pytest.mark.parametrize(
    ("program", "not_told"),
    [
        (lambda x, y: x - x.sum(axis=0)[::-1], "reduced the last axis"),
        (lambda x, y: (x.T @ y) / x.sum(axis=0)[:, None], "reduced the last axis"),
        (lambda x, y: x.T / x.sum(axis=0)[:, None], "reduced the last axis"),
        (lambda x, y: np.tanh((x @ y[:3].T).T + y[:3, :1]), "a sum of products"),
        (lambda x, y: np.exp((x.T @ y)[::-1].T) + y.T[: y.shape[1], : y.shape[1]].sum(), "a sum of products"),
    ],
)
def test_what_is_read_along_other_axes_has_no_other_way(program, not_told, shape):
    """Neither told, though the shapes of a square array would allow it, nor does looking for it end the report."""
    x, y = np.random.default_rng(1).random((2, *shape))
    f = jl.jit(program)
    report = jl.explain(f, x, y)
    np.testing.assert_allclose(f(x, y), program(x, y))
    assert report.ops and not [text for text in flips(f, x, y) if not_told in text]


def test_a_fault_in_looking_for_another_way_costs_no_report(monkeypatch, caplog):
    monkeypatch.setitem(alternatives.WAYS, NotFused.REDUCED_OUTER_AXIS, lambda region, edge: 1 / 0)
    monkeypatch.setattr(Undisturbed, "_logged", set())
    x = np.random.default_rng(1).random((12, 20))
    report = jl.explain(f := jl.function(centred), x)
    assert report.boundaries and report.kernels and f is not None
    assert not [edge for edge in report.boundaries if edge.would_fuse_if]
    assert "could not find what would change a decision" in caplog.text


SUMMED = r"@ were a sum of products(, (?P<code>.*)|): \d+ multiplications in loops instead of a library call"


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (lambda x, p: np.exp(x @ p["w"]), "(x[:, None, :] * p['w'].T).sum(axis=2)"),
        (lambda x, p: np.exp(np.dot(x + 1, p["w"])), "((x + 1)[:, None, :] * p['w'].T).sum(axis=2)"),
        (lambda x, p: np.exp(x).dot((p["w"] * 2)[:, ::2]), "(np.exp(x)[:, None, :] * (p['w'] * 2)[:, ::2].T).sum(axis=2)"),
        (lambda x, p: np.exp(np.einsum("ij,jk->ik", x, p["w"])), None),
        (lambda x, p: np.cov(x, rowvar=False), None),
    ],
)
def test_code_is_only_told_of_a_product_that_is_the_programs_own(program, code):
    x, p = np.random.default_rng(1).random((9, 4)), {"w": np.random.default_rng(2).random((4, 6))}
    found = [re.match(SUMMED, flip) for flip in flips(jl.jit(program), x, p)]
    found = [match for match in found if match]
    assert found and {match["code"] for match in found} == {code}
    if code is not None:
        product = eval(code, {"np": np}, {"x": x, "p": p})
        expected = program(x, p)
        np.testing.assert_allclose(product if expected.shape == (9, 3) else np.exp(product), expected)


def test_what_a_gradient_multiplies_is_never_told_in_code():
    def loss(p, x):
        return np.maximum(x @ p["w"], 0).sum()

    p, x = {"w": np.random.default_rng(1).random((4, 6))}, np.random.default_rng(2).random((9, 4))
    told = flips(jl.function(jl.grad(loss)), p, x)
    codes = [match["code"] for flip in told if (match := re.match(SUMMED, flip)) and match["code"]]
    assert set(codes) <= {"(x[:, None, :] * p['w'].T).sum(axis=2)"}
    assert any("where were recomputed" in flip for flip in told)


def test_a_product_that_is_slower_as_a_sum_is_left_to_the_library():
    x, w = np.ones((32, 20)), np.ones((20, 64))
    report = jl.explain(jl.jit(lambda x, w: np.maximum(x @ w, 0)), x, w)
    assert not any(edge.would_fuse_if for edge in report.boundaries)
    assert "a product of this size is faster in the library" in str(report.why_not("MatMul", "Maximum"))


# ---- fusion: told, compiled, true


def read_by_a_product(x):
    e = np.exp(x)
    return e @ x.T, e.sum(axis=1)


def summed_both_ways(x):
    e = np.tanh(x)
    return e, e.sum(), e.sum(axis=0)


def sorted_and_scaled(x):
    e = np.exp(x)
    return np.sort(e, axis=1), e * 2


def column_means(x):
    e = np.sqrt(x)
    return e - e.mean(axis=0)


def picked(x):
    e = np.exp(x)
    return e[np.array([3, 1])] + 1, e * 2


def moved_across(x):
    e = np.exp(x)
    return e, (e.T * 2).sum(axis=1)


def level_zero(x):
    return np.exp(x) * 2 + 1


def softmax(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


def norms(x):
    y = x * x + 1
    return y / y.sum(), np.cumsum(y, axis=0)


PROGRAMS = [
    read_by_a_product, summed_both_ways, sorted_and_scaled, column_means, picked, moved_across, softmax, norms, level_zero,
]  # fmt: skip


@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_would_fuse_two_operations_does(program, level):
    f = jl.jit(program, jit_level=level)
    report = jl.explain(f, X)
    told = [edge for edge in report.boundaries if edge.would_fuse_if is not None]
    for edge in told:
        answer = report.why_not(edge.producer, edge.consumer, check=True)
        assert answer.checked is True, (edge.producer, edge.consumer, str(answer))
        assert str(answer).endswith("Checked: compiled so, it does.")


def test_a_fusion_that_nothing_flips_tells_nothing():
    report = jl.explain(jl.jit(lambda x: x / x.sum()), X)
    answer = report.why_not("Sum", "RealDiv", check=True)
    assert answer.would_fuse_if is None and answer.checked is None and answer.code == "whole_reduction"


def test_an_index_array_is_the_reason_of_what_it_reads():
    @jl.function
    def rows(x, i):
        e = np.exp(x)
        return e, e[i] * 2

    answer = jl.explain(rows, X, np.array([3, 1])).why_not("Exp", "GatherV2")
    assert answer.code == "gathered" and "may read any element of it" in str(answer)


# ---- clusters


def kept_out(x):
    with jl.jit_scope(compile_ops=False):
        t = np.tanh(x)
    return t * 2


def two_scopes(x):
    with jl.jit_scope(strict=True):
        e = np.exp(x)
    with jl.jit_scope(strict=True):
        return e * 2


def unmarked(x):
    with jl.jit_scope(strict=True):
        e = np.exp(x)
    return e * 2


def around(x):
    e = np.exp(x)
    with jl.jit_scope(compile_ops=False):
        t = np.tanh(e)
    return e * t


@pytest.mark.parametrize(
    ("program", "a", "b"),
    [
        (kept_out, "Tanh", "Mul"), (two_scopes, "Exp", "Mul"), (unmarked, "Exp", "Mul"), (around, "Exp", "Mul"),
        (around, "Exp", "Tanh"), (around, "Tanh", "Mul"),
    ],
)  # fmt: skip
def test_what_would_join_two_operations_does(program, a, b):
    report = jl.explain(jl.function(program), X)
    gc.collect()  # nobody but the report has the function
    answer = report.why_not(a, b, check=True)
    assert answer.would_fuse_if is not None and answer.checked is True, str(answer)


def test_a_report_whose_function_is_gone_says_so():
    report = jl.explain(jl.function(lambda x: np.exp(x) * 2, jit_compile=None), X)
    with jl.record() as recording:
        jl.function(two_scopes)(X)
    twice = recording.report()
    gc.collect()
    with pytest.raises(jl.errors.OptionError, match="not there any more"):
        twice.why_not("Exp", "Mul", check=True)
    assert report.why_not("Exp", "Mul", check=True).fused


def test_why_and_why_not_agree_on_what_is_computed_again():
    def forces(pos, mass):
        d = pos[None, :, :] - pos[:, None, :]
        r2 = (d**2).sum(-1) + 1e-3
        weight = r2**-1.5
        np.fill_diagonal(weight, 0)
        return (d * weight[..., None] * mass[None, :, None]).sum(1)

    report = jl.explain(jl.jit(forces), np.random.default_rng(0).random((50, 3)), np.ones(50))
    for a in report.ops:
        for b in report.ops:
            if a is not b:
                assert report.why(a.name, b.name).fused == report.why_not(a.name, b.name).fused, (a.name, b.name)
    assert any("computed again" in report.why(a.name, b.name).text for a in report.ops for b in report.ops if a is not b)


def test_what_is_asked_wrongly_shows_the_asking_line_and_no_frame_of_ours():
    @jl.function
    def shifted(samples):
        return np.exp(samples * 2).sum()

    x = np.ones(50)
    report = jl.explain(shifted, x)
    an_input = "'samples' is an input: no operation makes it\n  try: say one that reads it: 'samples * 2'"
    wrong = [
        (lambda: report.why_not("samples", "exp"), an_input),
        (lambda: report.why("exp", "nonsense"), "this report has no operation 'nonsense'\n  try: one of samples * 2"),
        (lambda: shifted.whatif(x, cut=("Exp", "Log")), "this plan has no operation 'Log'"),
        (lambda: jl.expect(kernelz=1), "jl.expect does not know 'kernelz'"),
    ]  # fmt: skip
    for ask, says in wrong:
        with pytest.raises(jl.errors.OptionError) as caught:
            ask()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert str(caught.value).startswith(says)
        assert {frame.filename for frame in frames} == {__file__}


def test_two_names_of_one_operation_and_what_is_no_name_are_refused():
    made = samples.softmax_report()
    with pytest.raises(OptionError, match="are one operation, Exp"):
        made.why("exp", "exp")
    with pytest.raises(OptionError, match="1 is no name of an operation"):
        made.why_not(1, 2)


def test_operations_of_a_saved_report_that_stand_in_one_another_and_read_all_are_answered():
    data = samples.softmax_report(retraces=0).to_json()
    for op in data["ops"]:
        op |= {"inputs": [other["name"] for other in data["ops"]], "parent": op["name"]}
    data["ops"][0]["parent"], data["ops"][1]["parent"] = data["ops"][1]["name"], data["ops"][0]["name"]
    made = read_report(data)
    for edge in made.boundaries:
        assert str(made.why_not(edge.producer, edge.consumer)) and str(made.why_not("matmul", "mul_1"))


def test_what_lies_between_two_operations_is_told_of_them():
    def program(x):
        return np.exp(x - x.max(axis=0)).mean()

    report = jl.explain(jl.function(program), np.random.default_rng(1).random((50, 40)))
    said = str(report.why_not("max", "mean"))
    ends = [f"`{text}` (line " for text in ("x.max(axis=0)", "np.exp(x - x.max(axis=0)).mean()")]
    assert said.startswith(ends[0]) and f") and {ends[1]}" in said and ") are not fused: between them, " in said


def test_a_sentence_on_a_loop_in_order_does_not_say_that_it_holds_no_reduction():
    def walk(x):
        paths = np.cumsum(x, axis=1)
        return paths.mean(axis=0), (paths**2).mean(axis=0)

    report = jl.explain(jl.jit(walk), np.random.default_rng(1).random((200, 100)))
    said = [edge.reason.text for edge in report.boundaries if edge.reason.detail == "own_order"]
    assert said and all("` is reduced in loops of its own" in text for text in said)

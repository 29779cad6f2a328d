"""`f.whatif`: another plan beside the one that is built, measured, and the lines that keep it."""

import json

import numpy as np
import pytest

import jitlab as jl
from jitlab.api.whatif.experiments import LEAST_ROUNDS, Experiment, Trial
from jitlab.api.whatif.keeping import kernels_of
from jitlab.api.whatif.plan_questions import Place, Question
from jitlab.api.whatif.whatif import ask
from jitlab.ir import NO_OVERRIDES, Overrides
from jitlab.support.statistics import NO_CHANGE, Change

pytestmark = pytest.mark.usefixtures("compiled")
X = np.random.default_rng(7).random((300, 40))
QUICK = 0.02  # seconds that a comparison may take here: what is tested is not the time
PLENTY = 1e6  # seconds, where what a run takes is planned: as many rounds as there may be, and every cut


def softmax(x):
    m = x.max(axis=1, keepdims=True)
    e = np.exp(x - m)
    s = e.sum(axis=1, keepdims=True)
    return e / s


def executable_of(function, *args):
    return function._replayable(args, {})[0].executable


def kernels(executable):
    return [{node.name for node in kernel.nodes} for kernel in executable.plan.kernels]


def changed(function, *args, **overrides):
    """The compiled function's executable, and the changed one, both planned."""
    executable = executable_of(function, *args)
    result = []
    for wanted in (NO_OVERRIDES, Overrides(**overrides)):
        made = executable.changed(wanted)
        made.prepare(function._replayable(args, {})[1])
        result.append(made)
    return result


def refusal_of(function, *args, **question):
    with pytest.raises(jl.errors.ImpossiblePlanError) as caught:
        function.whatif(*args, seconds=QUICK, **question)
    return caught.value


# ---- cuts


def test_a_cut_stores_the_producer_and_measures_both_plans():
    f = jl.function(softmax)
    answer = f.whatif(X, cut=("Exp", "Sum"), seconds=QUICK)
    assert (answer.before.kernels, answer.after.kernels) == (1, 2)
    assert answer.after.bytes - answer.before.bytes == 2 * X.nbytes
    assert (answer.before.temporaries, answer.after.temporary_bytes) == (0, X.nbytes)
    assert answer.rounds >= LEAST_ROUNDS and answer.before.seconds > 0
    assert answer.title == "Split `e` from `e.sum(axis=1, keepdims=True)`" and len(answer.lines) == 2
    assert answer.after.largest_error_ulp < 30
    assert [line.partition(" (")[0] for line in answer.moved] == ["`e.sum(axis=1, keepdims=True)`", "`s`", "`e / s`"]
    assert "now runs in k1" in answer.moved[0]


def diamond(x):
    a = np.exp(x)
    b = a * 2
    return (b + a) / np.sqrt(a)


def moments(x):
    m = x.mean(axis=1)
    v = ((x - m[:, None]) ** 2).mean(axis=1)
    return (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5)


def two_results(x):
    e = np.exp(x) + 1
    return e * 2, e.sum(axis=0), np.log(e)


def moved(x):
    y = np.tanh(x[::2].T)
    return (y * 3).reshape(-1)[5:] + 1


def scan(x):
    return np.cumsum(np.exp(x), axis=1) * 2 - 1


@pytest.mark.parametrize("program", [softmax, diamond, moments, two_results, moved, scan])
def test_each_cut_of_a_fused_edge_makes_one_kernel_more_and_the_same_numbers(program):
    f = jl.function(program)
    expected = f(X)
    executable = executable_of(f, X)
    pairs = Place(executable.plan).fused_edges()
    assert pairs
    for pair in pairs:
        before, after = changed(f, X, cut=(pair,))
        instead = sum(kernel == {"stridedslice"} for kernel in kernels(before))  # stored for flat reads, as what is cut is now
        instead -= sum(kernel == {"stridedslice"} for kernel in kernels(after))
        assert len(kernels(after)) == len(kernels(before)) + 1 - instead, pair
        assert not any(set(pair) <= kernel for kernel in kernels(after)), pair
        for mine, theirs in zip(after.run([X]), expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-13)
        (reason,) = {e.reason.code.name for e in after.plan.boundaries if (e.producer.name, e.consumer.name) == pair}
        assert reason == "CUT"


def test_a_cut_inside_a_loop_stores_there():
    @jl.jit
    def steps(x):
        for i in range(1, 100):
            x[i] = np.exp(x[i - 1]) / (1 + np.sqrt(x[i]))
        return x

    x = X.copy()
    expected = steps(X.copy())
    answer = steps.whatif(x, cut=("Exp", "RealDiv"), seconds=QUICK)
    np.testing.assert_array_equal(x, X)
    assert answer.keep.lines[0].strip() == 'with jl.jit_scope(cut=("exp", "/")):'
    _, after = changed(steps, x, cut=(tuple(answer.question.cut[0]),))
    np.testing.assert_array_equal(after.run([X])[0], expected)
    assert answer.question.cut[0][0].endswith("/exp")


@pytest.fixture
def planted(monkeypatch):
    """A run takes 0.1 ns a byte that the plan moves and 1 µs a kernel, disturbed as a machine that others use disturbs it."""
    noise = np.random.default_rng(11)

    def run(trial):
        kernels = trial.executable.plan.kernels
        seconds = sum(k.bytes_read + k.bytes_written for k in kernels) * 1e-10 + len(kernels) * 1e-6
        burst = 3 if noise.random() < 0.03 else 1
        return seconds * burst * float(np.exp(0.01 * noise.standard_normal()))

    monkeypatch.setattr(Trial, "run", run)


def test_planted_cuts_are_ranked_by_what_they_cost(planted):
    """Storing the large array costs more than storing one number a row."""

    @jl.function
    def rows(x):
        m = x.max(axis=1)
        return (x * 2 + 1 - m[:, None]).sum(axis=1) + m

    x = np.random.default_rng(0).random((500, 400))
    rows(x)
    found = rows.whatif(x, sweep=True, seconds=PLENTY)
    assert found.tried == len(Place(executable_of(rows, x).plan).fused_edges()) and found.stopped is None
    lost = [edge.seconds_lost for edge in found.edges]
    assert lost == sorted(lost, reverse=True)
    order = [(edge.producer, edge.consumer) for edge in found.edges]
    big = max(order.index(pair) for pair in order if pair[0] in ("mul", "add"))
    small = order.index(("sum", "add_1"))
    assert big < small
    assert found.edges[0].change.significant and found.edges[0].bytes_more >= 2 * x.nbytes
    assert all(edge.change.ratio > 1.5 for edge in found.edges if edge.bytes_more >= x.nbytes)
    json.dumps(found.to_json())
    assert "splits tried" in str(found)


def test_a_sweep_stops_when_its_time_is_over_and_goes_on_from_there():
    f = jl.function(softmax)
    executable, memory = executable_of(f, X), {}
    from jitlab.api.whatif.whatif import sweep

    class Enough(Exception):
        pass

    def after_three(done, total):
        if done == 3:
            raise Enough

    with pytest.raises(Enough):
        sweep(executable, [X], seconds=PLENTY, between=after_three, memory=memory)
    assert len(memory["tried"]) == 3
    whole = sweep(executable, [X], seconds=PLENTY, memory=memory)
    assert whole.tried == 7 and whole.stopped is None
    short = sweep(executable, [X], seconds=0.0)
    assert short.tried == 0 and "7 of 7 splits were not tried" in short.stopped


@pytest.mark.parametrize("second", [0.9, 0.99, 1.0, 1.2])
def test_a_sweep_recommends_what_is_faster_twice(monkeypatch, second):
    """Of many splits some look faster by chance: on a loaded machine it recommended what was within noise."""
    said = []

    def change(experiment):
        said.append(experiment.question)
        ratio = second if said.count(experiment.question) > 1 else 0.95
        return Change(ratio, ratio, ratio, abs(ratio - 1) > 0.02, "measured")

    monkeypatch.setattr(Experiment, "change", change)
    found = jl.function(softmax).whatif(X, sweep=True, seconds=PLENTY)
    assert found.edges and len(said) == 2 * len(found.edges)
    for edge in found.edges:
        expected = (0.95, "measured") if second == 0.9 else (second, NO_CHANGE)
        assert (edge.change.ratio, edge.change.word) == expected
        assert edge.change.significant is (second == 0.9)
    assert found.measurable == (len(found.edges) if second == 0.9 else 0)


@pytest.mark.slow
def test_cuts_that_read_the_same_say_the_names_of_the_program_and_a_stop_says_how_to_go_on():
    @jl.function
    def f(x):
        first, second = np.exp(x), np.sqrt(x)
        return first.sum() + second.sum() + (first * second).sum() + ((first - 1) * (second - 1)).sum()

    found = f.whatif(X, sweep=True, seconds=PLENTY)
    rows = [(edge.title, edge.lines) for edge in found.edges]
    assert len(set(rows)) == len(rows) and found.tried == len(rows)
    short = f.whatif(X, sweep=True, seconds=0)
    assert short.tried == 0 and "not tried. With seconds=10 there is time" in short.stopped


def test_the_same_plan_twice_has_no_measurable_change(planted):
    f = jl.function(softmax)
    experiment = Experiment(executable_of(f, X), [X], Question())
    experiment.build()
    assert kernels_of(experiment.before.executable) == kernels_of(experiment.after.executable)
    experiment.measure(0.0, most=60)
    assert not experiment.change().significant
    assert experiment.change().word == "no measurable change"


# ---- fuse


def test_a_value_that_others_read_is_computed_again_for_a_forced_consumer():
    @jl.function
    def gram(x):
        e = np.exp(x)
        return e.T @ e, e.sum(axis=0)

    expected = gram(X)
    answer = gram.whatif(X, fuse=("Exp", "Sum"), seconds=QUICK)
    assert any(line.startswith("`e` (line") and "is computed a second time" in line for line in answer.moved)
    _, after = changed(gram, X, fuse=(("exp", "sum"),))
    for mine, theirs in zip(after.run([X]), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert answer.keep.lines[0].strip() == 'with jl.jit_scope(fuse=("exp", "sum")):'


def test_two_scopes_are_one_cluster_when_their_edge_is_forced():
    @jl.function
    def apart(x):
        with jl.jit_scope(strict=True):
            e = np.exp(x)
        with jl.jit_scope(strict=True):
            return e * 2

    answer = apart.whatif(X, fuse=("Exp", "Mul"), seconds=QUICK)
    assert (answer.before.clusters, answer.after.clusters) == (2, 1)
    assert (answer.before.kernels, answer.after.kernels) == (2, 1)


def test_an_operation_that_a_scope_keeps_out_compiles_when_it_is_forced():
    @jl.function
    def kept(x):
        with jl.jit_scope(compile_ops=False):
            e = np.exp(x)
        return e * 2

    answer = kept.whatif(X, fuse=("Exp", "Mul"), seconds=QUICK)
    assert (answer.before.kernels, answer.after.kernels) == (1, 1)
    assert any(line.startswith("`e` (line") and "now runs in k0" in line for line in answer.moved)


def test_a_forced_pair_that_would_make_a_cycle_answers_with_its_path():
    @jl.function
    def around(x):
        e = np.exp(x)
        with jl.jit_scope(compile_ops=False):
            t = np.tanh(e)
        return e * t

    error = refusal_of(around, X, fuse=("Exp", "Mul"))
    assert error.code == "cycle"
    assert [step["op"] for step in error.path] == ["Exp", "Tanh", "Mul"]
    assert all(len(step["lines"]) == 1 for step in error.path)
    assert "`t` (line" in str(error) and ") in NumPy has to run between them" in str(error)
    assert [step["cluster"] is None for step in error.path] == [False, True, False]


@pytest.mark.parametrize(
    ("program", "pair", "code", "words"),
    [
        (lambda x: x - x.mean(axis=0), ("Mean", "Sub"), "space", "reduced over an outer axis"),
        (lambda x: x / x.sum(), ("Sum", "RealDiv"), "space", "is known only when all elements have been read"),
        (lambda x: np.maximum(x.T @ x + 1, 0), ("MatMul", "AddV2"), "library", "library call"),
        (lambda x: np.partition(np.exp(x), 3, axis=1) * 2, ("Partition", "Mul"), "library", "library call"),
        (lambda x: np.exp(x) * 2, ("Exp", "Mul"), "fused", "already share k0"),
        (lambda x: np.exp(x) * 2, ("Mul", "Exp"), "not_adjacent", "the other way round"),
        (lambda x: np.exp(x) * np.tanh(x), ("Exp", "Tanh"), "not_adjacent", "does not read"),
    ],
)  # fmt: skip
def test_an_impossible_fusion_says_what_forbids_it(program, pair, code, words):
    error = refusal_of(jl.function(program), X, fuse=pair)
    assert error.code == code
    assert words in str(error)
    assert {pair[0].lower(), pair[1].lower()} <= {str(step["op"]).lower() for step in error.path}


def test_a_dtype_without_a_loop_forbids_a_fusion():
    @jl.jit
    def words(x):
        return np.char.upper(x)

    @jl.function
    def wide(x):
        return np.asarray(np.linalg.eigvals(x)).real * 2

    names = np.array(["a", "b"])
    words(names)  # a dtype that is not traced runs as Python
    with pytest.raises(jl.errors.OptionError):
        words.whatif(names, keep_out="Upper")
    error = refusal_of(wide, X[:8, :8], fuse=("Eigvals", "Real")) if "eigvals" in plan_names(wide, X[:8, :8]) else None
    assert error is None or error.code == "shape"


def plan_names(function, *args):
    return {node.name for node in executable_of(function, *args).graph.nodes}


# ---- keep out, targets, names


def test_an_operation_is_kept_out():
    f = jl.function(softmax)
    answer = f.whatif(X, keep_out="Exp", seconds=QUICK)
    assert (answer.before.clusters, answer.after.clusters) == (1, 2)
    assert any(line.startswith("`e` (line") and "now runs in NumPy" in line for line in answer.moved)


def test_what_has_to_compile_is_not_kept_out():
    f = jl.function(softmax, jit_compile=True)
    assert refusal_of(f, X, keep_out="Exp").code == "must_compile"


def test_another_target_is_refused_as_long_as_there_is_none():
    f = jl.function(softmax)
    assert refusal_of(f, X, target="cuda").code == "target"
    assert "compiles for the CPU" in str(refusal_of(f, X, target="cuda"))


def test_unknown_and_ambiguous_names_list_what_there_is():
    @jl.function
    def twice(x):
        return np.exp(x) * 2 + np.exp(x * 3) * 4

    for question, words in (
        ({"cut": ("Log", "Mul")}, "it has np.exp(x), np.exp(x) * 2, x * 3"),
        ({"keep_out": "Exp"}, 'say which: "np.exp(x), line'),
        ({"cut": ("Exp", "Mul")}, "2 edges go from Exp to Mul"),
        ({"cut": "Exp"}, "no list of pairs"),
        ({}, "asked nothing"),
        ({"sweep": True, "cut": ("Exp", "Mul")}, "takes no cut"),
    ):
        with pytest.raises(jl.errors.OptionError) as caught:
            twice.whatif(X, **question)
        assert words in str(caught.value), question
    assert twice.whatif(X, cut=("exp_1", "mul_2"), seconds=QUICK).title == "Split `np.exp(x * 3)` from `np.exp(x * 3) * 4`"


# ---- the user sees nothing


def test_the_function_its_arguments_and_random_state_stay_as_they_are():
    rng = np.random.default_rng(3)
    v = jl.Variable(np.zeros(40))

    @jl.jit
    def step(x):
        x *= 2
        noise = rng.standard_normal(40)
        v.assign_add(noise)
        return np.exp(-x) + v

    x = X.copy()
    step(x)
    executable = executable_of(step, x)
    plan, runs = kernels_of(executable), []
    before = x.copy(), v.numpy().copy(), rng.bit_generator.state, np.random.get_state()[1].copy()
    with jl.record() as recording:
        answer = step.whatif(x, cut=("Neg", "Exp"), seconds=QUICK)
        runs += recording.report().clusters
    assert answer.refusal is None
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(v.numpy(), before[1])
    assert rng.bit_generator.state == before[2]
    np.testing.assert_array_equal(np.random.get_state()[1], before[3])
    assert kernels_of(executable) == plan and executable_of(step, x) is executable
    assert not runs, "what a what-if runs is no part of the user's program"


def test_an_effect_is_not_repeated(tmp_path):
    @jl.jit
    def told(x):
        y = np.exp(x)
        np.save(tmp_path / "y.npy", y)
        return y * 2

    with pytest.raises(jl.errors.OptionError, match="pieces|world outside"):
        told.whatif(X, cut=("Exp", "Mul"))


def test_too_many_bytes_are_not_copied(monkeypatch):
    monkeypatch.setattr(jl.config, "copy_limit_bytes", 1000)
    with pytest.raises(jl.errors.OptionError, match="copy_limit_bytes = 192000"):
        jl.function(softmax).whatif(X, cut=("Exp", "Sum"))


# ---- the answer


def test_the_answer_is_json_and_text(planted):
    answer = jl.function(softmax).whatif(X, cut=("Exp", "Sum"), seconds=PLENTY)
    data = json.loads(json.dumps(answer.to_json()))
    assert set(data["change"]) == {"ratio", "low", "high", "significant", "word"}
    assert data["question"]["kind"] == "cut" and data["question"]["edges"] == [["exp", "sum"]]
    assert data["question"]["plan"] == "softmax #1" and data["refusal"] is None
    assert data["after"]["kernels"] == 2 and data["keep"]["lines"]
    text = str(answer)
    assert text.startswith("Split `e` from `e.sum(axis=1, keepdims=True)` (lines ") and max(map(len, text.splitlines())) <= 110
    assert answer._repr_mimebundle_() == {"text/plain": text}
    assert data["advice"] == answer.advice and data["change"]["word"] == answer.change.word


def test_a_refusal_is_json_too():
    f = jl.function(lambda x: x / x.sum())
    trace, inputs = f._replayable((X,), {})
    answer = ask(trace.executable, inputs, Question.of(fuse=("Sum", "RealDiv")))
    data = json.loads(json.dumps(answer.to_json()))
    assert data["before"] is data["after"] is data["change"] is None
    assert data["refusal"]["code"] == "space" and len(data["refusal"]["path"]) == 2
    assert "is known only when all elements have been read" in str(answer)


def test_the_advice_is_one_thing_to_do(planted):
    f = jl.function(softmax)
    keep_it = f.whatif(X, cut=("Exp", "Sum"), seconds=PLENTY)
    assert keep_it.advice.startswith("Keep the fusion. It saves ") and keep_it.advice.endswith("192 kB in every run.")

    @jl.function
    def apart(x):
        with jl.jit_scope(strict=True):
            e = np.exp(x)
        with jl.jit_scope(strict=True):
            return e * 2

    fuse_them = apart.whatif(X, fuse=("Exp", "Mul"), seconds=PLENTY)
    assert fuse_them.advice.startswith("Fuse them. That saves ") and fuse_them.advice.endswith("192 kB of traffic.")
    assert f.whatif(X, cut=("Max", "ExpandDims"), seconds=PLENTY).change.word.startswith("slower by")
    assert "To keep the change, " in str(fuse_them)
    assert "To keep the change, " not in str(keep_it) and "To have it changed all the same, " in str(keep_it)


def test_what_others_took_of_the_processors_meanwhile_is_said(planted, monkeypatch):
    share = 0.1
    monkeypatch.setattr("jitlab.api.whatif.whatif.Load.others", lambda load: share)
    f = jl.function(softmax)

    def asked():
        answer = f.whatif(X, cut=("Exp", "Sum"), seconds=PLENTY)
        data = json.loads(json.dumps(answer.to_json()))
        assert data["others"] == share and (data["note"] or "") == answer.note and answer.note in str(answer)
        return answer.note

    assert asked() == ""
    share = 0.623
    assert asked() == "Other programs took 62 % of the processors meanwhile."
    monkeypatch.setattr(Experiment, "change", lambda self: Change(1.0, 0.7, 1.4, False, NO_CHANGE))
    assert asked() == "Other programs took 62 % of the processors meanwhile: measure again when they are done."


def test_an_error_is_told_in_units_of_what_is_typical_of_the_array():
    from jitlab.api.check.replaying import largest_error_ulp

    values, off = np.array([1.0, 2.0, 1e-9]), np.array([0.0, 0.0, 2.2e-16])
    assert largest_error_ulp([values], [values + off]) < 2  # the last one all but cancelled
    assert largest_error_ulp([np.full(3, 1e300)], [np.full(3, 1e300) * (1 + 3e-16)]) == 1
    assert largest_error_ulp([np.zeros(3)], [np.zeros(3)]) == 0
    assert largest_error_ulp([np.array([np.inf, 1.0])], [np.array([np.inf, 1.0])]) == 0
    assert largest_error_ulp([np.ones(2)], [np.array([1.0, np.nan])]) is None

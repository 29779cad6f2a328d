"""Calls of `jit` that take less time as Python run as Python: what decides, what does not, and what is said. All times are
planned: a call takes what the test says."""

import random
import threading

import numpy as np
import pytest

import jitlab as jl
from jitlab.api import settling
from jitlab.api.functions import jit as jit_module
from jitlab.api.settling import COMPILED, ENOUGH, FIRST_CALLS, PATIENCE, PYTHON, Trial
from jitlab.errors import OptionError


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "measure")
    monkeypatch.setattr(jit_module, "_is_measurable", lambda: True)


@pytest.fixture
def plan(monkeypatch):
    """What a call takes each way, in nanoseconds: change it in the test."""
    takes = {COMPILED: 1000, PYTHON: 1000}
    planned = Planned(takes)
    monkeypatch.setattr(settling, "clock", lambda: planned.now)
    before = settling.tried

    def tried(trial, ways, is_ready):
        return before(trial, {way: planned.timed(way, call) for way, call in ways.items()}, is_ready)

    monkeypatch.setattr(settling, "tried", tried)
    return planned


class Planned:
    def __init__(self, takes):
        self.takes, self.now, self.ways = takes, 0, []

    def timed(self, way, call):
        def run():
            result = call()
            self.ways.append(way)
            takes = self.takes[way]
            self.now += takes() if callable(takes) else takes
            return result

        return run


def in_pieces():
    log = []

    @jl.jit
    def f(x):
        y = np.tanh(x) + 1
        log.append(float(y[0]))
        return y * 2

    return f, log


def trial_of(f):
    (trial,) = f._trials.values()
    return trial


def test_what_is_faster_as_python_runs_as_python(plan):
    f, log = in_pieces()
    plan.takes.update({COMPILED: 9000, PYTHON: 3000})
    x = np.linspace(0, 1, 10)
    for _ in range(30):
        np.testing.assert_allclose(f(x), (np.tanh(x) + 1) * 2, rtol=1e-15)
    assert trial_of(f).way == PYTHON
    assert len(log) == 30 and set(log) == {1.0}  # each call had its effect once
    decided = len(plan.ways)
    assert plan.ways[:FIRST_CALLS] == [COMPILED] * FIRST_CALLS
    assert decided < FIRST_CALLS + 2 * ENOUGH + 4  # later ones are not tried any more
    assert "runs as Python: up to 15 elements Python takes less time: 3.0 µs beside 9.0 µs compiled" in str(f.ledger)


def test_what_is_faster_compiled_stays_compiled(plan):
    f, log = in_pieces()
    plan.takes.update({COMPILED: 2000, PYTHON: 3000})
    for _ in range(30):
        f(np.linspace(0, 1, 10))
    assert trial_of(f).way == COMPILED and len(log) == 30
    assert "as Python" not in str(f.ledger)


def test_five_percent_are_no_reason(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 1000, PYTHON: 960})
    for _ in range(40):
        f(np.ones(3))
    assert trial_of(f).way == COMPILED


def test_each_size_class_and_dtype_is_decided_by_itself(plan):
    f, _ = in_pieces()
    small, large, single = np.ones(10), np.ones(1000), np.ones(10, np.float32)
    for x, python in ((small, 300), (large, 30_000), (single, 30_000)):
        plan.takes.update({COMPILED: 3000, PYTHON: python})
        for _ in range(30):
            f(x)
    assert [trial.way for trial in f._trials.values()] == [PYTHON, COMPILED, COMPILED]
    plan.ways.clear()
    f(np.zeros(11))  # of the class of 8 to 15 elements
    assert not plan.ways and len(f._trials) == 3


def test_a_call_that_is_clear_needs_two_of_each(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 40_000, PYTHON: 1000})
    for _ in range(30):
        f(np.ones(3))
    assert [len(times) for times in trial_of(f).times.values()] == [2, 2]


def test_a_whole_call_that_is_long_is_never_python(plan):
    @jl.jit
    def whole(x):
        return np.tanh(x) * 2

    plan.takes.update({COMPILED: 50_000, PYTHON: 1})
    for _ in range(20):
        whole(np.ones(10_000))
    assert trial_of(whole).way == COMPILED and PYTHON not in plan.ways


def test_a_short_whole_call_may_be_python(plan):
    @jl.jit
    def whole(x):
        return x * 2

    plan.takes.update({COMPILED: 900, PYTHON: 400})
    for _ in range(20):
        assert whole(np.ones(3)).tolist() == [2, 2, 2]
    assert trial_of(whole).way == PYTHON


def test_a_long_call_is_seldom_tried_the_other_way(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 30_000_000, PYTHON: 300_000_000})
    for _ in range(60):
        f(np.ones(3))
    spent = {way: plan.takes[way] * plan.ways.count(way) for way in plan.takes}
    assert plan.ways.count(PYTHON) == 1 and trial_of(f).way == ""
    assert spent[PYTHON] <= 0.2 * spent[COMPILED]


def test_exceptions_are_no_measure_and_happen_once(plan):
    log = []

    @jl.jit
    def f(x, fails):
        y = np.tanh(x)
        log.append(y.shape)
        if fails:
            raise LookupError("mine")
        return y

    plan.takes.update({COMPILED: 9000, PYTHON: 3000})
    for n in range(40):
        if n % 2:
            with pytest.raises(LookupError, match="mine"):
                f(np.ones(3), True)
        else:
            f(np.ones(3), False)
    assert len(log) == 40


def test_what_is_captured_again_at_each_call_is_decided_all_the_same(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 9_000_000, PYTHON: 3000})
    for n in range(PATIENCE + 6):
        f(np.ones(512 + n))  # each length is another trace
    assert trial_of(f).way == PYTHON


def test_a_trial_waits_for_those_inside_it(plan):
    inner, _ = in_pieces()

    @jl.jit
    def outer(x):
        print(end="")
        return inner(x)

    plan.takes.update({COMPILED: 9000, PYTHON: 3000})
    for _ in range(12):
        outer(np.ones(3))
        (trial,) = outer._trials.values()
        if not inner._trials or not trial_of(inner).way:
            assert not trial.way and not any(trial.times.values()) or trial.calls > PATIENCE


def test_what_only_python_can_run_is_python_at_once(plan):
    @jl.jit
    def f(x):
        def pairs():
            yield from (x, x)

        yield from pairs()

    for _ in range(3):
        assert len(list(f(np.ones(3)))) == 2
    assert trial_of(f).way == PYTHON
    assert str(trial_of(f).reason) == "nothing in it can be compiled"


@pytest.mark.parametrize("how", [{"fullgraph": True}, {"capture_mode": "trace"}])
def test_who_asks_for_compiled_code_gets_it(plan, how):
    f = jl.jit(lambda x: x * 2, **how)
    for _ in range(20):
        f(np.ones(3))
    assert not f._trials and not plan.ways


def test_off_and_model_measure_nothing(plan, monkeypatch):
    plan.takes.update({COMPILED: 9000, PYTHON: 1})
    for setting in ("off", "model"):
        monkeypatch.setattr(jl.config, "settle", setting)
        f, _ = in_pieces()
        for _ in range(20):
            f(np.ones(3))
        assert not plan.ways
        assert all(trial.way == "" for trial in f._trials.values())


def test_a_decision_goes_with_the_setting(plan, monkeypatch):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 9000, PYTHON: 1000})
    for _ in range(20):
        f(np.ones(3))
    assert trial_of(f).way == PYTHON
    monkeypatch.setattr(jl.config, "settle", "off")
    with jl.record() as recording:
        f(np.ones(3))
    assert recording.report().kernels


def test_the_setting_is_checked():
    with pytest.raises(OptionError, match=r'"measure", "model" or "off"'):
        jl.config.settle = "always"


def test_a_recording_says_so_and_does_not_change_the_way(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 9000, PYTHON: 1000})
    for _ in range(20):
        f(np.ones(3))
    with jl.record() as recording:
        f(np.ones(3))
    report = recording.report()
    assert not report.kernels
    (statement,) = report.statements
    assert statement.reason.code == "settled" and "beside 9.0 µs compiled" in statement.reason.text


def test_explain_and_expect_see_the_compiled_call(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 9000, PYTHON: 1000})
    for _ in range(20):
        f(np.ones(3))
    assert jl.explain(f, np.ones(3)).kernels
    with jl.expect(kernels=">=1"):
        f(np.ones(3))


def test_threads_come_to_one_decision(plan):
    f, log = in_pieces()
    plan.takes.update({COMPILED: 9000, PYTHON: 1000})

    def work():
        for _ in range(30):
            f(np.ones(3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log) == 120 and trial_of(f).way == PYTHON


def test_kinds_that_are_remembered_are_bounded(plan, monkeypatch):
    monkeypatch.setattr(jit_module, "MOST_KINDS", 5)
    f = jl.jit(lambda x: x)
    for bits in range(12):
        f([0] * 2**bits)
    assert len(f._trials) <= 5


# ---- the rule by itself, on simulated calls


def simulated(seed):
    """A function's calls with noise: what each way takes at the best, and how the machine disturbs it."""
    draw = random.Random(seed)
    compiled = 10 ** draw.uniform(3, 7)
    python = compiled * 10 ** draw.uniform(-1.5, 1.5)
    jitter = draw.choice([0.01, 0.05, 0.2])
    preempted = draw.choice([0, 0.02, 0.1])

    def takes(best):
        time = best * (1 + draw.expovariate(1 / jitter))
        return int(time + (draw.uniform(1e5, 4e6) if draw.random() < preempted else 0))

    return {COMPILED: compiled, PYTHON: python}, takes


def test_little_time_is_lost_over_a_thousand_functions():
    """After the calls that every function makes compiled, in which its code is made."""
    shares = []
    for seed in range(1000):
        best, takes = simulated(seed)
        trial, ways = Trial(4, pieces=True), []
        for _ in range(1000):
            way = trial.next_way()
            assert not trial.way or way == trial.way  # what is decided stays
            trial.took(way, takes(best[way]))
            trial.calls += 1
            ways.append(way)
        shares.append(sum(best[way] / min(best.values()) - 1 for way in ways[FIRST_CALLS:]) / len(ways))
    assert sum(shares) / len(shares) < 0.05


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.8, 1.25, 2, 10])
def test_a_clear_ratio_is_found_under_noise(ratio):
    right = 0
    for seed in range(200):
        draw = random.Random(seed)
        trial = Trial(4, pieces=True)
        while not trial.way and trial.calls < 100:
            way = trial.next_way()
            best = 10_000 if way == COMPILED else 10_000 * ratio
            trial.took(way, int(best * (1 + draw.expovariate(1 / 0.05))))
            trial.calls += 1
        right += trial.way == (PYTHON if ratio < 1 else COMPILED)
    assert right >= 195


def test_a_decision_for_pieces_is_none_for_a_trace_of_other_calls(plan):
    @jl.jit
    def f(x, log):
        if log is not None:
            log.append(float(x[0]))
        return x * 2

    f(np.ones(3), None)  # captured whole, and still undecided
    plan.takes.update({COMPILED: 1000, PYTHON: 9000})
    for _ in range(20):
        f(np.ones(3), [])
    plan.takes.update({COMPILED: 9000, PYTHON: 1000})
    for _ in range(20):
        f(np.ones(3), None)
    assert [(trial.pieces, trial.way) for trial in f._trials.values()] == [(False, PYTHON), (True, COMPILED)]

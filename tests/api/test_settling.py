"""Calls of `jit` that take less time as Python run as Python: what decides, what does not, and what is said. All times are
planned: a call takes what the test says."""

import builtins
import cmath
import linecache
import math
import random
import statistics
import threading

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api import settling
from jitlab.api.functions import jit as jit_module
from jitlab.api.settling import AGAIN, COMPILED, ENOUGH, FIRST_CALLS, LONG_NS, MOST, PATIENCE, PYTHON, SHARE, UNSURE, Trial
from jitlab.capture.numpy_calls.counterparts import counterpart
from jitlab.errors import OptionError
from jitlab.ops.table import FUNCTIONS


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
    monkeypatch.setattr(settling, "busy_clock", lambda: planned.now - planned.waited)
    before = settling.tried

    def tried(trial, ways, is_ready):
        return before(trial, {way: planned.timed(way, call) for way, call in ways.items()}, is_ready)

    monkeypatch.setattr(settling, "tried", tried)
    return planned


class Planned:
    def __init__(self, takes):
        self.takes, self.now, self.waited, self.ways = takes, 0, 0, []

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
        log.__iadd__([float(y[0])])
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
    assert "  runs as Python up to 15 elements: 3.0 µs beside 9.0 µs compiled in pieces (5 calls each); " in str(f.ledger)
    assert "each); because += changes a list (line " in str(f.ledger)


def test_the_ledger_has_every_call(plan):
    whole = jl.jit(lambda x: x * 0.25)
    plan.takes.update({COMPILED: 900, PYTHON: 400})
    for call in range(1, 61):  # C hands the last ones on
        whole(np.ones(3))
        (trace,) = whole.ledger
        tried, settled = whole.ledger.python_calls
        assert tried == plan.ways.count(PYTHON) and trace.costs.all_calls + tried + settled == call
        if call == 7:
            assert (tried, settled) == (1, 0) and "\n  1 call ran as Python (tried)" in f"{whole.ledger}"
    assert ": 1 trace, 60 calls, " in f"{whole.ledger}"
    assert f"\n  {tried + settled} calls ran as Python ({tried} tried, {settled} settled)\n" in f"{whole.ledger}"


def test_what_is_faster_compiled_stays_compiled(plan):
    f, log = in_pieces()
    plan.takes.update({COMPILED: 2000, PYTHON: 3000})
    for _ in range(30):
        f(np.linspace(0, 1, 10))
    assert trial_of(f).way == COMPILED and len(log) == 30
    assert "runs as Python" not in str(f.ledger)


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


def test_an_int_counts_as_so_many_elements(plan):
    @jl.jit
    def f(x, steps):
        for _ in range(steps):
            x = x * 0.5
        return x

    for steps, python in ((2, 3000), (100, 90_000)):
        plan.takes.update({COMPILED: 9000, PYTHON: python})
        for _ in range(30):
            np.testing.assert_array_equal(f(np.ones(3), steps), np.full(3, 0.5**steps))
    assert [trial.way for trial in f._trials.values()] == [PYTHON, COMPILED]


def test_a_call_that_is_clear_needs_two_of_each(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 40_000, PYTHON: 1000})
    for _ in range(30):
        f(np.ones(3))
    assert [len(times) for times in trial_of(f).times.values()] == [2, 2]


@pytest.mark.parametrize("compiled, python", [(50_000, 9000), (50_000, 40_000), (50_000, 60_000), (50_000, 500_000)])
def test_a_whole_call_of_many_elements_is_tried_as_the_others(plan, compiled, python):
    @jl.jit
    def whole(x):
        return np.tanh(x) * 2

    plan.takes.update({COMPILED: compiled, PYTHON: python})
    for _ in range(20):
        whole(np.ones(10_000))
    assert trial_of(whole).way == (PYTHON if python < compiled else COMPILED)
    assert plan.ways.count(PYTHON) <= ENOUGH or python < compiled


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


@pytest.mark.parametrize("elements", [3, 10_000])
def test_a_long_call_that_python_does_in_less_time_is_compiled_once(plan, elements):
    """The call that captures it tells, and what was captured in it is taken off."""
    f, log = in_pieces()
    plan.takes.update({COMPILED: 2_000_000_000, PYTHON: 50_000_000})
    for _ in range(60):
        f(np.ones(elements))
    assert plan.ways[:2] == [COMPILED, PYTHON]
    assert plan.ways.count(COMPILED) - 1 <= SHARE * 60 and len(log) == 60


def test_a_call_that_waited_for_the_processor_is_not_a_long_one(plan):
    """Others had it: one such call among the first ones would decide for Python."""
    f, _ = in_pieces()

    def waits():
        plan.waited += 500_000_000
        return 500_002_000

    for number in range(30):
        plan.takes.update({COMPILED: waits if number in (0, 2) else 2000, PYTHON: 300_000})
        f(np.ones(3))
    assert trial_of(f).way == COMPILED and plan.ways.count(PYTHON) <= ENOUGH


def test_exceptions_are_no_measure_and_happen_once(plan):
    log = []

    @jl.jit
    def f(x, fails):
        y = np.tanh(x)
        log.__iadd__([y.shape])
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


def test_an_interrupt_is_no_measure(plan):
    log = []

    @jl.jit
    def f(x, stops):
        y = np.tanh(x)
        log.__iadd__([y.shape])
        if stops:
            raise KeyboardInterrupt
        return y

    plan.takes.update({COMPILED: 9000, PYTHON: 3000})
    f(np.ones(3), False)
    for _ in range(30):
        before = sum(map(len, trial_of(f).times.values()))
        with pytest.raises(KeyboardInterrupt):
            f(np.ones(3), True)
        assert sum(map(len, trial_of(f).times.values())) == before == 0
    assert len(log) == 31 and not trial_of(f).way


def test_long_calls_that_capture_something_each_time_are_decided_soon(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 90_000_000, PYTHON: 3000})
    for n in range(FIRST_CALLS + 6):
        f(np.ones(512 + n))  # each length is another trace
    assert trial_of(f).way == PYTHON


def test_what_is_captured_again_at_each_call_is_decided_all_the_same(plan):
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 9_000_000, PYTHON: 3000})
    for n in range(PATIENCE + 6):
        f(np.ones(512 + n))  # each length is another trace
    assert trial_of(f).way == PYTHON


def test_calls_that_capture_something_each_time_are_decided_before_better_code_is_made(plan, monkeypatch):
    """They keep the compiler busy: it may never be done."""
    monkeypatch.setattr(jit_module, "_is_measurable", lambda: False)
    f, log = in_pieces()
    plan.takes.update({COMPILED: 9_000_000, PYTHON: 3000})
    for n in range(AGAIN + 6):
        f(np.ones(512 + n))  # each length is another trace
    assert trial_of(f).way == PYTHON and len(log) == AGAIN + 6


@pytest.mark.parametrize("compiled, python", [(9000, 3000), (3000, 9000)])
def test_while_better_code_is_made_calls_go_the_way_that_takes_less_time(plan, monkeypatch, compiled, python):
    ready = [False]
    monkeypatch.setattr(jit_module, "_is_measurable", lambda: ready[0])
    f, _ = in_pieces()
    plan.takes.update({COMPILED: compiled, PYTHON: python})
    for _ in range(60):
        f(np.ones(3))
    assert not trial_of(f).way and not any(trial_of(f).times.values())  # none of them decides
    shorter, longer = sorted(plan.takes, key=plan.takes.get)
    assert plan.ways.count(longer) == (FIRST_CALLS if longer == COMPILED else 1)
    ready[0] = True
    plan.takes.update({COMPILED: 1000})  # it was worth the waiting
    for _ in range(20):
        f(np.ones(3))
    assert trial_of(f).way == COMPILED


def test_functions_in_pieces_that_call_others_are_pythons_too_while_better_code_is_made(plan, monkeypatch):
    monkeypatch.setattr(jit_module, "_is_measurable", lambda: False)
    outer = jl.jit(steps_of_two)
    plan.takes.update({COMPILED: 900_000, PYTHON: 3000})
    log = []
    for _ in range(3 * FIRST_CALLS + 8):
        outer(np.ones(3), log)
    calls = 3 * FIRST_CALLS + 8
    assert len(log) == 3 * calls and plan.ways[-4:] == [PYTHON] * 4  # of the outermost one alone


def note_first(x, log):
    y = np.tanh(x) + 1
    log.__iadd__([float(y[0])])
    return y * 2


def steps_of_two(x, log):
    y = note_first(np.exp(x), log)
    log.__iadd__([float(y[0])])
    return note_first(y, log) + 1


def test_calls_are_decided_by_those_that_capture_nothing_where_there_are_such(plan):
    """Some things may be captured in the first calls one after the other."""
    f, _ = in_pieces()
    plan.takes.update({COMPILED: 9_000_000, PYTHON: 3000})
    for n in range(AGAIN + 1):
        f(np.ones(512 + n))
    assert trial_of(f).times[COMPILED]
    plan.takes[COMPILED] = 1000
    for _ in range(20):
        f(np.ones(512))
    assert trial_of(f).way == COMPILED and set(trial_of(f).times[COMPILED]) == {1000}


def test_a_trial_waits_for_those_inside_it(plan):
    inner, _ = in_pieces()

    @jl.jit
    def outer(x):
        y = np.tanh(x) * 2
        print(*())
        return inner(y)

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
    told = "; ".join(map(str, trial_of(f).said))
    assert told.startswith("runs as Python: nothing in it can be compiled; because Unsupported expression 'YieldFrom' in line ")
    assert told.endswith(": a generator stops in the middle")
    heard = []
    with events.listen(heard.append):
        f(np.ones(3))
    assert [(event.kind, event.reason) for event in heard] == [("statement-ran", "statement")]  # there is no plan beside it


@pytest.mark.parametrize("how", [{"fullgraph": True}, {"capture_mode": "trace"}])
def test_who_asks_for_compiled_code_gets_it(plan, how):
    f = jl.jit(lambda x: x * 2, **how)
    for _ in range(20):
        f(np.ones(3))
    assert not f._trials and not plan.ways


@pytest.mark.parametrize("setting, ways", [("off", []), ("model", [PYTHON, ""])])
def test_off_and_model_measure_nothing(plan, monkeypatch, setting, ways):
    plan.takes.update({COMPILED: 9000, PYTHON: 1})
    monkeypatch.setattr(jl.config, "settle", setting)
    f, _ = in_pieces()
    for elements in (3, 5000):
        for _ in range(20):
            f(np.ones(elements))
    assert not plan.ways
    assert [trial.way for trial in f._trials.values()] == ways  # the model counts


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


def decided(plan, python, f=None):
    """A function for which it is decided that calls run as Python, or compiled, by what Python takes."""
    if f is None:
        f, _ = in_pieces()
    plan.takes.update({COMPILED: 9000, PYTHON: python})
    for _ in range(20):
        f(np.ones(3))
    return f


CHANGES = [("settle", "model"), ("global_jit_level", "OFF"), ("min_cluster_size", 2), ("max_cluster_size", 100)]


@pytest.mark.parametrize("name, value", CHANGES)
@pytest.mark.parametrize("python, way", [(1000, PYTHON), (90_000, COMPILED)])
def test_a_setting_that_bears_on_it_reopens_a_decision(plan, monkeypatch, python, way, name, value):
    f, whole = decided(plan, python), decided(plan, python, jl.jit(lambda x: np.tanh(x) * 2))
    assert trial_of(f).way == trial_of(whole).way == way
    plan.ways.clear()
    monkeypatch.setattr(jl.config, "history_runs", 7)  # that has nothing to do with it
    f(np.ones(3)), whole(np.ones(3))
    assert trial_of(f).way == trial_of(whole).way == way and not plan.ways
    monkeypatch.setattr(jl.config, name, value)
    assert not f._trials and not whole._trials
    f(np.ones(3)), whole(np.ones(3))
    assert plan.ways == ([] if name == "settle" else [COMPILED, COMPILED])  # C answers neither
    decided(plan, 1000, whole)
    assert trial_of(whole).way == ("" if name == "settle" else PYTHON)


@pytest.mark.parametrize("python", [1000, 90_000])
def test_other_code_reopens_a_decision(plan, python):
    def body(x):
        return x * 2

    f = decided(plan, python, jl.jit(body))
    assert trial_of(f).way
    f.python_function = lambda x: x * 3
    assert f(np.ones(3)).tolist() == [3, 3, 3] and not trial_of(f).way and trial_of(f).calls == 1

    g = jl.jit(body)
    for _ in range(FIRST_CALLS + 1):
        g(np.ones(3))
    body.__code__ = (lambda x: x * 5).__code__
    assert g(np.ones(3)).tolist() == [5, 5, 5] and trial_of(g).calls == 1


def test_a_function_that_is_made_again_is_undecided(plan):
    functions = []
    for _ in range(2):
        names = {"jl": jl}
        exec(compile("f = jl.jit(lambda x: x * 2)", "<a cell>", "exec"), names)
        functions.append(decided(plan, 1000, names["f"]))
    plan.ways.clear()
    made = {"jl": jl}
    exec(compile("f = jl.jit(lambda x: x * 2)", "<a cell>", "exec"), made)
    made["f"](np.ones(3))
    assert plan.ways == [COMPILED] and [trial_of(f).way for f in functions] == [PYTHON, PYTHON]


def test_settings_change_while_threads_make_functions_and_call_them(plan):
    wrong, ended = [], threading.Event()

    def work():
        while not ended.is_set():
            try:
                f, log = in_pieces()
                for _ in range(9):
                    f(np.ones(3))
                assert len(log) == 9
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    before = jl.config.min_cluster_size
    try:
        for n in range(60):
            jl.config.min_cluster_size = 1 + n % 2
            decided(plan, 1000, jl.jit(lambda x: x * 2))
    finally:
        jl.config.min_cluster_size = before
        ended.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_what_is_reopened_while_a_call_is_under_way_stays_open(plan):
    """The call was one of those that C hands on from then on."""
    f, _ = in_pieces()
    decided(plan, 1000, f)
    kind, trial = next(iter(f._trials.items()))
    f.reopen()
    f._called_as_python(kind, trial, (np.ones(3),), {})
    trial.as_python = 100
    f._called_as_python(kind, trial, (np.ones(3),), {})
    assert not any(f.in_front._calls.values())
    plan.ways.clear()
    f(np.ones(3))
    assert plan.ways == [COMPILED]


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
    check_plan_and_run(recording.report(), calls=1)


def check_plan_and_run(report, *, calls):
    """What is counted is the plan; that this run was Python's stands beside it."""
    assert report.verdict["compiled"] == report.verdict["operations"] == 4 and len(report.kernels) == 3
    assert not report.statements and not report.facts["statements"]
    assert {cluster.calls for cluster in report.clusters} == {0} and report.verdict["seconds"] is None
    (ran,) = report.as_python
    assert ran.calls == calls and ran.seconds > 0 and ran.function == "f"
    assert set(ran.plans) == {plan["name"] for plan in report.to_json()["plans"]}
    assert ran.text.startswith("runs as Python up to 3 elements: 1.0 µs beside 9.0 µs compiled in pieces (2 calls each); ")
    assert [said.code for said in ran.said] == ["in_pieces", "because_in_line"]
    assert f"This run: f ({calls} call" in str(report) and "run by Python" not in str(report)
    assert "f, this run" in report.to_html()
    assert type(report)(report.to_json()).as_python == report.as_python


def test_calls_that_c_hands_on_are_in_the_report_too(plan, monkeypatch):
    monkeypatch.setattr(jit_module, "DIRECT_FIRST", settling.DIRECT)
    f, log = in_pieces()
    decided(plan, 1000, f)
    with jl.record() as recording:
        for _ in range(300):
            f(np.ones(3))
    check_plan_and_run(recording.report(), calls=300)
    assert len(log) == 320


def test_who_hears_each_event_hears_of_them(plan):
    f, _ = in_pieces()
    decided(plan, 1000, f)
    heard = []
    with events.listen(heard.append):
        f(np.ones(3))
    (event,) = [event for event in heard if event.kind == "called-as-python"]
    assert event.about.function == "f" and event.duration_ns > 0 and "statement-ran" not in {e.kind for e in heard}


WRITTEN = {
    "math.fsum(y)": "`math.fsum` wants a Python number (line LINE); `np.sum` would keep it compiled",
    "math.gcd(int(y[0] * 9), 3)": "`math.gcd` wants a Python number (line LINE); `np.gcd` would keep it compiled",
    "sum(sorted(y))": "`sorted` wants a Python number (line LINE); `np.sort` would keep it compiled",
    "statistics.median(y)": "median may change or print something (line LINE); `np.median` would keep it compiled",
    "math.lgamma(y[0])": None, "len(list(map(math.lgamma, y)))": None, "statistics.pvariance(y)": None,
    "math.isclose(y[0], y[1])": None,  # NumPy's allows for another difference
}  # fmt: skip


@pytest.mark.parametrize("written", WRITTEN)
def test_what_would_keep_it_compiled_is_said_where_numpy_has_it(plan, written):
    names = {"math": math, "statistics": statistics, "np": np}
    source = f"def f(x):\n    y = np.tanh(x)\n    return y * {written}\n"
    file = f"<written {written}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), names)
    f = decided(plan, 1000, jl.jit(names["f"]))
    assert trial_of(f).way == PYTHON and trial_of(f).pieces
    told = WRITTEN[written]
    assert (told is not None) == ("would keep it compiled" in str(f.ledger))
    assert told is None or told.replace("LINE", "3") in str(f.ledger)


def test_each_function_that_is_advised_is_one_that_is_captured():
    for module in (math, cmath, statistics, builtins):
        for function in vars(module).values():
            if callable(function) and (name := counterpart(function)):
                assert getattr(np, name.removeprefix("np.")) in FUNCTIONS
    assert [counterpart(f) for f in (math.sqrt, math.fsum, cmath.exp, sorted, statistics.mean)] == [
        "np.sqrt", "np.sum", "np.exp", "np.sort", "np.mean",
    ]  # fmt: skip
    assert not any(map(counterpart, (math.isclose, math.comb, print, len, np.sqrt, counterpart, 5)))


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


def run_trial(takes, calls=100):
    """A trial whose calls take `takes(way, number of the call)`, and the ways that they went."""
    trial, ways = Trial(4, pieces=True), []
    for number in range(calls):
        way = trial.next_way()
        assert not trial.way or way == trial.way  # what is decided stays
        trial.took(way, int(takes(way, number)))
        trial.calls += 1
        ways.append(way)
    return trial, ways


@pytest.mark.parametrize("ratio", [0.5, 2])
@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_work_that_hangs_on_data_in_turn_is_no_difference_of_the_ways(ratio, period):
    """Every second call (third, ...) has a hundred times as much to do: each way meets both."""
    cost = {COMPILED: 10_000, PYTHON: 10_000 * ratio}
    trial, _ = run_trial(lambda way, number: cost[way] * (1 if number % period else 100))
    assert trial.way == (PYTHON if ratio < 1 else COMPILED)


def test_a_short_call_by_chance_does_not_decide():
    """Minima lie where the work hangs on data: the medians have to agree."""
    trial, _ = run_trial(lambda way, number: 10_000 if way == COMPILED else (100 if number == 6 else 12_000))
    assert trial.way == COMPILED


@pytest.mark.parametrize("sigma", [0.5, 1, 2])
def test_work_that_hangs_on_data_seldom_decides_for_the_slower_way(sigma):
    wrong = 0
    for seed in range(300):
        draw = random.Random(seed)
        cost = {COMPILED: 10_000, PYTHON: 20_000}
        trial, _ = run_trial(lambda way, number, d=draw, c=cost: c[way] * d.lognormvariate(0, sigma), 200)
        wrong += trial.way == PYTHON
    assert wrong <= 300 * 0.05


def test_calls_that_wait_for_something_else_stay_compiled():
    """A sleep, a lock, a file: the ways tie."""
    for seed in range(100):
        draw = random.Random(seed)
        trial, ways = run_trial(lambda way, number, d=draw: 5e6 + d.expovariate(1e-5) + (900 if way == PYTHON else 300))
        assert trial.way == COMPILED and ways.count(PYTHON) <= MOST


@pytest.mark.parametrize("ratio", [0.6, 1.6])
@pytest.mark.parametrize("growth", [0, 0.01, 0.03])
def test_state_that_grows_makes_both_ways_dearer(ratio, growth):
    """A list that each call makes longer, a cache: later calls take longer, whichever way they go."""
    cost = {COMPILED: 10_000, PYTHON: 10_000 * ratio}
    trial, _ = run_trial(lambda way, number: cost[way] * (1 + growth) ** number)
    assert trial.way == (PYTHON if ratio < 1 else COMPILED)


@pytest.mark.parametrize("ratio", [0.66, 1.5])
def test_a_machine_that_others_use_too_hides_no_large_difference(ratio):
    """Most calls are disturbed by about as much as the ways differ."""
    right = 0
    for seed in range(200):
        draw = random.Random(seed)
        cost = {COMPILED: 9e6, PYTHON: 9e6 * ratio}
        busy = lambda draw=draw: draw.expovariate(1 / 3e6) if draw.random() < 0.7 else 0  # noqa: E731
        trial, _ = run_trial(lambda way, number, c=cost, busy=busy: c[way] + busy(), 200)
        right += trial.way == (PYTHON if ratio < 1 else COMPILED)
    assert right >= 190


def test_medians_that_noise_turns_round_are_no_decision_yet():
    """While the shortest calls say that Python takes less time, and the medians do not, more calls are compared."""
    draw = random.Random(1)  # the medians of the first ten are the wrong way round
    best = {COMPILED: 10_000, PYTHON: 8000}
    trial, _ = run_trial(lambda way, number: best[way] + (0 if number < 8 else 9000 * draw.random()))
    assert trial.way == PYTHON and len(trial.times[PYTHON]) > UNSURE


def test_of_a_few_calls_each_is_compiled():
    """What the first call costs is no matter of this decision."""
    trial, ways = run_trial(lambda way, number: 9000 if way == COMPILED else 10, FIRST_CALLS)
    assert ways == [COMPILED] * FIRST_CALLS and not trial.way and not any(trial.times.values())


@pytest.mark.parametrize("python", [21e6, 60e6, 1e9, 100e9])
def test_little_of_the_time_of_long_calls_is_lost_to_the_slower_way(python):
    cost = {COMPILED: 20.5e6, PYTHON: python}
    for way, other in ((COMPILED, PYTHON), (PYTHON, COMPILED)):
        takes = {way: cost[COMPILED], other: cost[PYTHON]}
        assert min(takes.values()) > LONG_NS
        _, ways = run_trial(lambda way, number, takes=takes: takes[way], 400)
        first = takes[other] - takes[way]  # one call tells what the other way takes
        lost = ways[FIRST_CALLS + 2 :].count(other) * first
        assert lost <= max(first, SHARE * sum(takes[way] for way in ways)) + first


def simulated(seed, shortest=3, longest=7):
    """A function's calls with noise: what each way takes at the best, and how the machine disturbs it."""
    draw = random.Random(seed)
    compiled = 10 ** draw.uniform(shortest, longest)
    python = compiled * 10 ** draw.uniform(-1.5, 1.5)
    jitter = draw.choice([0.01, 0.05, 0.2])
    preempted = draw.choice([0, 0.02, 0.1])

    def takes(best):
        time = best * (1 + draw.expovariate(1 / jitter))
        return int(time + (draw.uniform(1e5, 4e6) if draw.random() < preempted else 0))

    return {COMPILED: compiled, PYTHON: python}, takes


@pytest.mark.parametrize("span", [(3, 7), (6, 9)])  # a microsecond to ten milliseconds, a millisecond to a second
def test_little_time_is_lost_over_a_thousand_functions(span):
    """After the calls that every function makes compiled, in which its code is made."""
    shares, wrong = [], 0
    for seed in range(1000):
        best, takes = simulated(seed, *span)
        trial, ways = run_trial(lambda way, number, best=best, takes=takes: takes(best[way]), 1000)
        shares.append(sum(best[way] / min(best.values()) - 1 for way in ways[FIRST_CALLS:]) / len(ways))
        ratio = best[PYTHON] / best[COMPILED]
        wrong += trial.way == (COMPILED if ratio < 0.85 else PYTHON if ratio > 1.1 else None)
    assert sum(shares) / len(shares) < 0.05
    assert wrong <= 20  # decided for the slower way, and clearly


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
            log.__iadd__([float(x[0])])
        return x * 2

    f(np.ones(3), None)  # captured whole, and still undecided
    plan.takes.update({COMPILED: 1000, PYTHON: 9000})
    for _ in range(20):
        f(np.ones(3), [])
    plan.takes.update({COMPILED: 9000, PYTHON: 1000})
    for _ in range(20):
        f(np.ones(3), None)
    assert [(trial.pieces, trial.way) for trial in f._trials.values()] == [(False, PYTHON), (True, COMPILED)]


def test_what_runs_as_python_says_why_it_is_in_pieces_and_where(plan):
    log = []

    @jl.jit
    def f(x):
        y = np.tanh(x) + 1
        log.__iadd__(["called"])
        return y * 2

    plan.takes.update({COMPILED: 9000, PYTHON: 3000})
    for _ in range(30):
        f(np.ones(10))
    line = f.python_function.__code__.co_firstlineno + 3
    assert f"because += changes a list (line {line})" in str(f.ledger)

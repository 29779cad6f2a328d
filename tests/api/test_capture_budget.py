"""What a call of `jit` may take to be captured and compiled: work is counted, never timed. What would be more is Python's, and
whoever asks to compile gets all of it."""

import subprocess
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab.api.settling import COMPILED, PYTHON
from jitlab.capture import effort
from jitlab.capture.drivers import driver
from jitlab.config import config


@pytest.fixture(autouse=True, params=["measure", "model"])
def settles(monkeypatch, request):
    monkeypatch.setattr(config, "settle", request.param)


def cubes(values, x):
    return sum((x - v) ** 3 for v in values)


def trial_of(f):
    return list(f._trials.values())[-1]


@pytest.fixture
def captures(monkeypatch):
    """Counts what is captured: operations."""
    found = []
    before = effort.effort_of
    monkeypatch.setattr("jitlab.capture.tracers.arrays.effort_of", lambda nodes: found.extend(nodes) or before(nodes))
    return found


def test_a_comprehension_that_would_be_a_program_of_very_many_operations_is_pythons(captures):
    x = np.linspace(0, 1, 4)
    values = [np.float64(n) for n in range(900)]
    f = jl.jit(cubes)
    assert (f(values[:5], x) == cubes(values[:5], x)).all()
    assert not trial_of(f).is_limited and captures
    captures.clear()
    for _ in range(3):
        assert (f(values, x) == cubes(values, x)).all()
    known = len(captures)
    assert trial_of(f).is_limited and known * effort.ELEMENTWISE_NS < 3 * effort.MOST_NS
    for _ in range(5):
        f(values, x)
    assert len(captures) == known  # nothing is captured in vain again
    assert "not all of it is compiled" in str(f.ledger)
    f(values[:5], x)  # calls of another kind are compiled as they were
    assert not list(f._trials.values())[0].is_limited


@pytest.mark.parametrize("asked", ["fullgraph", "off", "explain", "record with expect"])
def test_who_asks_to_compile_gets_all_of_it(monkeypatch, asked):
    monkeypatch.setattr(effort, "MOST_NS", 5_000_000)
    x, values = np.linspace(0, 1, 4), [np.float64(n) for n in range(30)]
    f = jl.jit(cubes, fullgraph=asked == "fullgraph")
    if asked == "off":
        monkeypatch.setattr(config, "settle", "off")
    if asked == "explain":
        assert len(jl.explain(f, values, x).kernels) == 1
    elif asked == "record with expect":
        with jl.expect(kernels=1, statements=0):
            f(values, x)
    else:
        f(values, x)
    assert f.experimental_get_tracing_count() == 1


def test_what_was_done_before_is_done_once(monkeypatch):
    monkeypatch.setattr(effort, "MOST_NS", 20_000_000)
    log = []

    @jl.jit
    def f(values, x):
        y = np.tanh(x) * 2
        log.append(len(values))
        z = y * sum((x - v) ** 3 for v in values)
        log.append("end")
        return z

    x, values = np.linspace(0, 1, 4), [np.float64(n) for n in range(400)]
    for number in range(4):
        np.testing.assert_allclose(f(values, x), np.tanh(x) * 2 * cubes(values, x), rtol=1e-14)
        assert log == [400, "end"] * (number + 1)
    assert trial_of(f).is_limited


def test_a_piece_before_the_budgets_end_stays_compiled(monkeypatch):
    monkeypatch.setattr(config, "settle", "model")
    monkeypatch.setattr(effort, "MOST_NS", 100_000_000)
    log = []

    @jl.jit
    def f(values, x):
        y = np.tanh(x) * 2 + np.exp(x)
        log.append(float(y[0]))
        return y, sum((x[:4] - v) ** 3 for v in values)

    x, values = np.linspace(0, 1, 100_000), [np.float64(n) for n in range(700)]
    for _ in range(6):
        found = f(values, x)
    np.testing.assert_allclose(found[0], np.tanh(x) * 2 + np.exp(x), rtol=1e-14)
    (piece, *_) = f.ledger.pieces.values()
    assert trial_of(f).is_limited and trial_of(f).way == "" and piece.calls == 6


def test_python_numbers_guards_and_results_count_too(monkeypatch):
    monkeypatch.setattr(effort, "MOST_NS", 10_000_000)

    def numbers(xs):
        return [3.7 * x * (1 - x) for x in xs]

    def items(table):
        return [row["a"] for row in table]

    def made(n):
        return [0] * n

    rows = [{"a": n} for n in range(900)]
    for function, few, many in ((numbers, [0.5] * 10, [0.5] * 900), (items, rows[:3], rows), (made, 3, 5000)):
        f = jl.jit(function)
        assert f(few) == function(few) and f(many) == function(many)
        assert trial_of(f).is_limited, function


def test_the_program_does_not_see_it(monkeypatch):
    """Not even where it catches what is raised inside a call of its own."""
    monkeypatch.setattr(effort, "MOST_NS", 3_000_000)
    seen = []

    def helper(values, x):
        try:
            return sum((x - v) ** 3 for v in values)
        except Exception as error:
            seen.append(error)
            return None

    def outer(values, x):
        return helper(values, x) * 2

    x, values = np.linspace(0, 1, 4), [np.float64(n) for n in range(300)]
    f = jl.jit(outer)
    for _ in range(4):
        np.testing.assert_allclose(f(values, x), cubes(values, x) * 2, rtol=1e-14)
    assert not seen


def test_the_count_is_the_same_each_time():
    code = (
        "import numpy as np, jitlab as jl\n"
        "def cubes(values, x): return sum((x - v) ** 3 for v in values)\n"
        "f = jl.jit(cubes)\n"
        "for n in (5, 40): f([np.float64(i) for i in range(n)], np.ones(3))\n"
        "print([t.effort.left for t in f._trials.values()])\n"
    )
    found = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(found) == 1


def test_calls_that_are_decided_have_a_budget_each(monkeypatch):
    monkeypatch.setattr(effort, "MOST_NS", 12_000_000)
    f = jl.jit(lambda x: np.tanh(x) * 2 + x.shape[0])  # what looks at a size is recorded for each
    f(np.ones(512))
    trial_of(f).way = COMPILED
    for n in range(513, 540):  # each length is another trace
        f(np.ones(n))
    assert not trial_of(f).is_limited and f.experimental_get_tracing_count() == 28


def test_calls_in_which_nothing_is_compiled_are_python_after_two():
    found = {}

    @jl.jit
    def f(words):
        for word in words:
            found[word] = found.get(word, 0) + 1
        return len(found)

    for number in range(4):
        assert f(["a", "b", "a"]) == 2 and found == {"a": 2 * number + 2, "b": number + 1}
        assert trial_of(f).way == (PYTHON if number else "")
    assert "nothing in it can be compiled" in str(f.ledger)


def test_calls_that_seldom_come_to_what_is_compiled_are_not_pythons_after_two():
    known = {}

    @jl.jit
    def f(x, key):
        if key not in known:
            known[key] = np.tanh(x) * 2 + np.exp(x)
        return known[key]

    for number in range(12):
        np.testing.assert_allclose(f(np.ones(9000), number // 4), np.tanh(1) * 2 + np.exp(1) + np.zeros(9000), rtol=1e-14)
    assert config.settle == "measure" or not trial_of(f).way


def test_the_model_decides_by_counts(monkeypatch):
    monkeypatch.setattr(config, "settle", "model")

    def program(x):
        y = np.tanh(x) + 1
        log.__iadd__([float(y[0])])
        return y * 2

    log = []
    f = jl.jit(program)
    for n in (10, 100_000):
        for _ in range(12):
            np.testing.assert_allclose(f(np.full(n, 0.5)), (np.tanh(np.full(n, 0.5)) + 1) * 2, rtol=1e-14)
    assert [trial.way for trial in f._trials.values()] == [PYTHON, ""] and len(log) == 24
    assert "entering its 2 pieces takes longer than Python takes" in str(f.ledger)


@pytest.mark.parametrize("nested", [True, False])
def test_a_loop_that_enters_no_piece_is_given_up(monkeypatch, nested):
    """Even if it has a branch that was never run, or a loop in it that was given up."""
    walked = []
    before = driver.Driver.uncaptured
    monkeypatch.setattr(driver.Driver, "uncaptured", lambda self, at, reason: walked.append(at) or before(self, at, reason))

    @jl.jit
    def f(words, x):
        found = []
        for n, word in enumerate(words):
            if n > 1_000_000:
                found.append(np.tanh(x) * 2)
            if nested:
                for letter in word:
                    found.append(letter)
            found.append(word)
        return found

    words = ["ab"] * 3000
    wanted = [letter for word in words for letter in ((*word, word) if nested else (word,))]
    assert f(words, np.ones(3)) == wanted
    assert len(walked) < 3000


class Cloud:
    def __init__(self, points):
        self.points = points


def test_objects_that_are_new_at_each_call_are_captured_three_times(captures):
    @jl.jit
    def f(x, cloud):
        return np.tanh(x) * cloud.points

    for n in range(6):
        np.testing.assert_allclose(f(np.full(3, 0.5), Cloud(np.full(3, n))), np.full(3, np.tanh(0.5) * n), rtol=1e-14)
    assert f.experimental_get_tracing_count() <= 3
    if config.settle == "model":
        assert "each for another object" in str(f.ledger)


def test_pieces_of_objects_that_are_new_each_time_are_pythons_after_three(monkeypatch):
    monkeypatch.setattr(config, "settle", "model")
    log = []

    @jl.jit
    def f(cloud):
        log.__iadd__([1])
        return np.tanh(cloud.points) * 2

    with jl.record() as recording:
        for n in range(20):
            np.testing.assert_allclose(f(Cloud(np.full(5000, n / 4))), np.full(5000, np.tanh(n / 4) * 2), rtol=1e-14)
    (piece,) = f.ledger.pieces.values()
    assert piece.traces == 3 and len(log) == 20 and trial_of(f).way == PYTHON
    assert "each time for another object" in str([s.reason.text for s in recording.report().statements])


@pytest.mark.parametrize("shapes", [1, 2])
def test_pieces_in_a_loop_of_objects_that_are_new_each_time_are_pythons_soon(monkeypatch, shapes):
    """Each runs several times in the call that it is captured in, for its shape, and never again."""
    monkeypatch.setattr(config, "settle", "model")
    log = []

    @jl.jit
    def f(cloud):
        total = 0.0
        for turn in range(6):
            log.__iadd__([1])
            total += (np.tanh(cloud.points[turn % shapes]) * 2).sum()
        return total

    for n in range(12):
        points = [np.full(4000, n / 4), np.full((40, 100), n / 8)]
        assert f(Cloud(points)) == pytest.approx(sum(np.sum(np.tanh(points[k % shapes]) * 2) for k in range(6)), rel=1e-12)
    (piece,) = f.ledger.pieces.values()
    assert piece.traces <= 4 * shapes and len(log) == 72


def test_one_object_that_comes_again_with_other_shapes_is_captured_for_each(monkeypatch):
    monkeypatch.setattr(config, "settle", "model")

    @jl.jit
    def f(cloud):
        log.__iadd__([1])
        return np.tanh(cloud.points) * 2

    log, cloud = [], Cloud(np.ones((2, 2500)))
    for shape in ((2, 2500), (5000,), (5, 1000), (1, 1, 5000), (10, 500, 1), (2, 2500)):
        cloud.points = np.ones(shape)
        for _ in range(2):
            np.testing.assert_allclose(f(cloud), np.full(shape, np.tanh(1) * 2), rtol=1e-14)
    (piece,) = f.ledger.pieces.values()
    assert piece.traces >= 4 and all(trial.way != PYTHON for trial in f._trials.values())


def test_one_object_that_is_used_again_is_captured_as_often_as_it_changes(monkeypatch):
    monkeypatch.setattr(config, "settle", "model")
    f = jl.jit(lambda cloud: np.tanh(cloud.points) * 2)
    for _ in range(6):
        cloud = Cloud(np.ones(300))
        for _ in range(3):
            f(cloud)
    assert f.experimental_get_tracing_count() == 6
    for n in range(300, 306):  # another size is no other object
        cloud.points = np.ones(n)
        f(cloud)
    assert f.experimental_get_tracing_count() == 11

"""Programs in which the data decide on sizes: captured whole, with one machine code for all lengths, and right for each."""

import threading
import warnings

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api import Options, compile_trace
from tests.cell_runs import run_cell

pytestmark = pytest.mark.usefixtures("compiled")
SIZES = (40, 7, 2, 1, 0, 41)


def mask(x):
    return np.log1p(x[x > 0]) * 2


def standardised(x):
    y = x[x > 0]
    return (y - y.mean()) / (y.std() + 1e-9)


def rows(x):
    return (np.outer(x, np.arange(1, 4.0))[x > 0] ** 2).sum(axis=0)


def gram(x):
    y = np.outer(x, np.arange(3.0))[x > 0]
    return (y.T @ y) * 0.5, y.T


def positions(x):
    (i,) = np.nonzero(x > 0)
    return x[i] * i, i[::-1]


def distinct(x):
    u, counts = np.unique(np.round(x, 1), return_counts=True)
    return u / 2, -(counts / counts.sum() * np.log(counts / counts.sum())).sum()


def histogram(x):
    k = (np.abs(x) * 5).astype(int)
    h = np.zeros(k.max(initial=0) + 1)
    np.add.at(h, k, 1.0)
    return h / (h.sum() + 1)


def counted(x):
    k = (np.abs(x) * 5).astype(int)
    return np.bincount(k, weights=x) / np.bincount(k).clip(1)


def up_to(x):
    k = int(np.count_nonzero(x > 0))
    return np.sin(np.arange(k) * 0.1) + 1


def repeated(x):
    return np.exp(np.repeat(x, (np.abs(x) * 3).astype(int))) + 1


def first(x):
    n = int((x > 0).sum())
    return np.sort(x)[:n] * 2 + 1


def last(x):
    n = np.count_nonzero(x > 0)
    return (np.sort(x)[len(x) - n :] ** 2).sum()


def two(x):
    a, b = x[x > 0], x[x <= 0]
    return np.concatenate([np.sqrt(a), b * 2]), a.size, len(b)


def like(x):
    y = x[x > 0]
    z = np.zeros_like(y)
    z[:] = y * 2
    return z + np.arange(len(y)) - np.ones(y.shape[0])


def behind(x):
    y = x[x > 0]
    return y[1:] - y[:-1], np.cumsum(y)[2:]


def halves(x):
    y = x[x > 0]
    return y[::2] * 2, y[: len(y) // 2] - 1


def back(x):
    out = np.zeros_like(x)
    m = x > 0
    out[m] = np.sqrt(x[m]) + np.cumsum(x[m])
    return out


def one_hot(x):
    k = (np.abs(x) * 5).astype(int)
    return np.eye(k.max(initial=0) + 1)[k].sum(axis=0) * 2


GENERAL = (
    mask, standardised, rows, gram, positions, distinct, histogram, counted, up_to, repeated, first, last, two, like, behind,
    back, one_hot,
)  # fmt: skip
PROGRAMS = (*GENERAL, halves)
#: Their lengths are Python numbers, which `jl.function` does not make of what is traced.
ASK_FOR_NUMBERS = (up_to, first, last)
CASES = [(f, jl.jit) for f in PROGRAMS] + [(f, jl.function) for f in PROGRAMS if f not in ASK_FOR_NUMBERS]


def data(n, kind, rng):
    x = rng.normal(size=n)
    return {"some": x, "all": np.abs(x) + 0.1, "none": -np.abs(x) - 0.1}[kind]


def ended(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args), None
        except Exception as error:
            return None, (type(error), str(error))


def same(ours, wanted, numbers=True):
    (result, error), (right, expected) = ours, wanted
    assert error == expected
    if error is None:
        pairs = zip(result, right, strict=True) if isinstance(right, tuple) else [(result, right)]
        for mine, theirs in pairs:
            assert type(mine) is type(theirs) or not numbers  # `jl.function` gives NumPy scalars
            assert np.asarray(mine).dtype == np.asarray(theirs).dtype and np.shape(mine) == np.shape(theirs)
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("settle", ["off", "model"])
@pytest.mark.parametrize(("function", "wrap"), CASES)
def test_values_are_numpys_for_every_length(monkeypatch, function, wrap, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    rng, compiled = np.random.default_rng(5), wrap(function)
    for _ in range(2):
        for n in SIZES:
            for kind in ("some", "all", "some", "none"):
                x = data(n, kind, rng)
                same(ended(compiled, x.copy()), ended(function, x.copy()), wrap is jl.jit)


@pytest.mark.parametrize(
    ("function", "wrap"), [(f, wrap) for f, wrap in CASES if f is not halves and (f not in (two, like) or wrap is jl.jit)]
)
def test_two_recordings_serve_all_lengths(monkeypatch, function, wrap):
    """After three calls nothing runs as Python: the recordings of two lengths came out the same."""
    monkeypatch.setattr(jl.config, "settle", "off")
    rng, compiled = np.random.default_rng(6), wrap(function)
    for size in (1, 2, 3):  # other lengths, positions and counts each time
        compiled(rng.normal(0.2 * size, size, 400))
    heard = []
    with events.listen(heard.append):
        for size in range(4, 9):
            x = rng.normal(0.2 * size, size, 400)
            same(ended(compiled, x.copy()), ended(function, x.copy()))
    assert not [event for event in heard if isinstance(event, events.StatementRan)]
    assert len([event for event in heard if isinstance(event, events.HostOperationRan)]) >= 5


def test_two_recordings_serve_all_lengths_of_what_is_drawn(monkeypatch):
    """Draws are the same operations in both recordings, from the same generator and from another one."""
    monkeypatch.setattr(jl.config, "settle", "off")

    def f(rng):
        x = rng.normal(size=300)
        rng.shuffle(x)
        y = x[x > 0]
        return np.log1p(y) * rng.random(), x

    mine, right = np.random.default_rng(1), np.random.default_rng(1)
    for compiled, args in ((jl.jit(f), (mine,)), (jl.jit(lambda: f(mine)), ())):
        heard = []
        for number in range(7):
            with events.listen(heard.append if number > 2 else lambda event: None):
                same((compiled(*args), None), (f(right), None))
            assert mine.bit_generator.state == right.bit_generator.state
        assert not [event for event in heard if isinstance(event, (events.StatementRan, events.Traced))]
        drawn = [event.op for event in heard if isinstance(event, events.HostOperationRan)]
        assert drawn.count("RandomStandardNormal") == 4
    compiled = jl.jit(f)
    for seed in range(6):
        with events.listen((heard := []).append):
            same((compiled(np.random.default_rng(seed)), None), (f(np.random.default_rng(seed)), None))
    assert not [event for event in heard if isinstance(event, (events.StatementRan, events.Traced))]


def test_what_python_needs_a_length_for_is_cut(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")

    def f(x):
        y = x[x > 0]
        if f"{len(y)}" == "3":
            return y * 2
        return y + 1

    compiled, rng = jl.jit(f), np.random.default_rng(1)
    for n in (3, 5, 3, 0, 8):
        x = np.concatenate([np.abs(rng.normal(size=n)) + 0.1, -np.ones(4)])
        np.testing.assert_array_equal(compiled(x), f(x))
    with jl.record() as recording:
        compiled(x)
    assert [cluster.ops for cluster in recording.report().clusters] == [("greater",), ("add",)]


def test_masks_that_do_not_agree_are_numpys_error(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")

    def f(x, y):
        return x[x > 0] + y[y > 0]

    compiled, rng = jl.jit(f), np.random.default_rng(2)
    for n, m in ((3, 3), (5, 5), (4, 4), (6, 5), (4, 4), (1, 5), (5, 1), (0, 1), (0, 5), (7, 7)):
        x, y = (np.concatenate([np.abs(rng.normal(size=k)) + 0.1, -np.ones(9 - k)]) for k in (n, m))
        same(ended(compiled, x, y), ended(f, x, y))


def test_a_part_whose_length_the_data_decide_is_numpys_view(monkeypatch):
    """What is written through it, and into what it is a part of, is seen on both sides."""
    monkeypatch.setattr(jl.config, "settle", "off")

    def through(x):
        s = x * 1
        part = s[: int((x > 0).sum())]
        part += 10
        return s

    def under(x):
        s = x * 1
        part = s[: int((x > 0).sum())]
        s *= 2
        return part + 1

    def given(x):
        return x[: int((x > 0).sum())]

    rng = np.random.default_rng(3)
    for f in (through, under, given):
        compiled = jl.jit(f)
        for n in (9, 9, 9, 5, 1, 0, 9):
            x = rng.normal(size=n)
            same(ended(compiled, x), ended(f, x))
        assert f is not given or np.shares_memory(compiled(x), x)


def test_effects_wait_for_the_length(monkeypatch, capsys):
    """A run that is given up has printed nothing, stored nothing and drawn nothing."""
    monkeypatch.setattr(jl.config, "settle", "off")

    def f(x, rng):
        noise = rng.normal(size=3)
        jl.print_("before", noise.sum())
        x += 1
        y = x[x > 1]
        jl.print_("after", y.sum())
        return y * 2 + noise[0]

    compiled, ours, theirs = jl.jit(f), np.random.default_rng(7), np.random.default_rng(7)
    for n in (8, 8, 8, 0, 1, 8):
        x = np.concatenate([np.abs(np.random.default_rng(n).normal(size=n)) + 0.1, -np.ones(9 - n)])
        mine, right = x.copy(), x.copy()
        result = compiled(mine, ours)
        told = capsys.readouterr().out
        np.testing.assert_array_equal(result, f(right, theirs))
        assert told == capsys.readouterr().out
        np.testing.assert_array_equal(mine, right)
        assert ours.bit_generator.state == theirs.bit_generator.state


def test_gradients_are_there_or_said_not_to_be():
    def picked(x):
        return (np.sort(x[np.flatnonzero(x > 0)]) ** 2).sum()

    def summed(x):
        return np.cumsum(x[x > 0]).sum()

    gradient = jl.grad(picked)
    for x in ([3.0, -1.0, 2.0], [-1.0, 5.0, 4.0]):
        np.testing.assert_array_equal(gradient(np.array(x)), np.where(np.array(x) > 0, 2 * np.array(x), 0))
    with pytest.raises(jl.errors.NoGradientError, match="indexing has no gradient"):
        jl.grad(summed)(np.array([3.0, -1.0, 2.0]))


def test_a_check_follows_the_lengths(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    compiled, rng = jl.jit(standardised), np.random.default_rng(8)
    for _ in range(3):
        compiled(rng.normal(size=50))
    checked = compiled.check(rng.normal(size=50))
    assert checked.ok, checked


def test_a_function_without_a_rule_whose_results_have_other_lengths_is_learnt(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")

    def f(x):
        v = np.trim_zeros(np.clip(x, 0, None))
        return v / v.sum()

    compiled, rng = jl.jit(f), np.random.default_rng(9)
    for n in range(20, 26):
        x = np.concatenate([-np.ones(30 - n), np.abs(rng.normal(size=n)) + 0.1])
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-12)
    with events.listen((heard := []).append):
        for n in (7, 9, 13):
            x = np.concatenate([-np.ones(30 - n), np.abs(rng.normal(size=n)) + 0.1])
            np.testing.assert_allclose(compiled(x), f(x), rtol=1e-12)
    assert not [event for event in heard if isinstance(event, events.StatementRan)]


def test_threads_meet_other_lengths_at_once(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    compiled = jl.jit(standardised)
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(40):
            x = rng.normal(size=60)
            try:
                np.testing.assert_allclose(compiled(x), standardised(x), rtol=1e-9)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert compiled.experimental_get_tracing_count() <= 4


def test_a_cell_goes_on_with_another_length():
    space = {"np": np, "x": None}
    rng = np.random.default_rng(10)
    source = "y = x[x > 0]\nz = np.log1p(y) * 2\nk = len(y)\nw = z.sum() / k\nv = y[1:] - 1\n"
    runs = []
    for _ in range(6):
        space["x"] = x = rng.normal(size=50)
        runs.append(run_cell(source, space, "<cell of data>", executor=lambda trace: compile_trace(trace, Options())))
        y = x[x > 0]
        np.testing.assert_allclose(space["z"], np.log1p(y) * 2, rtol=1e-12)
        np.testing.assert_array_equal(space["v"], y[1:] - 1)
        assert (space["k"], type(space["k"]), type(space["w"])) == (len(y), int, np.float64)
    assert sum(len(run.traces) for run in runs) == 2
    assert [bool(run.statements) for run in runs] == [False, True, False, False, False, False]

"""A `jit` function's trace serves other sizes where all that was asked of its sizes has the same answer: a recording for them
would have come out the same, which is tried here."""

from __future__ import annotations

import itertools
import linecache
import random
import warnings

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir import Extent
from jitlab.ir.extents import Poly
from jitlab.ir.size_facts import SizeFacts, noting
from jitlab.lower import lower
from jitlab.passes import run_passes
from jitlab.runtime.other_sizes import Late, Served, form_of

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")


def defined(text, decorate=jl.jit):
    """A new function of its own: nothing is taken over of another."""
    file = f"<sizes {next(_numbers)}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    names = {"np": np}
    exec(compile(text, file, "exec"), names)
    return decorate(names["f"])


def served_sizes(f):
    return sum(f.ledger.resizes.values())


def trace_of(f, *args):
    """The one that is recorded for these arguments, whatever others serve."""
    return f._replayable(args, {})[0]


SOFTMAX = "def f(x):\n    e = np.exp(x - x.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)\n"


def test_another_batch_runs_nothing_but_machine_code():
    f = defined(SOFTMAX)
    for n in (64, 65):
        f(np.ones((n, 100)))
    assert f.experimental_get_tracing_count() == 2
    for n in range(66, 90):
        x = np.linspace(0, 1, n * 100).reshape(n, 100)
        np.testing.assert_allclose(f(x), f.python_function(x), rtol=1e-14)
    assert f.experimental_get_tracing_count() == 2 and served_sizes(f) == 24
    assert "served 24 other sizes, too" in str(f.ledger)
    assert str(f.ledger).startswith("f: 2 traces (1 retrace), 26 calls")


def test_an_axis_that_never_varied_is_not_taken_for_one_that_does():
    f = defined(SOFTMAX)
    for n in (64, 65):
        f(np.ones((n, 100)))
    f(np.ones((66, 101)))
    assert f.experimental_get_tracing_count() == 3
    f(np.ones((77, 107)))
    assert f.experimental_get_tracing_count() == 3


def test_a_size_that_comes_again_and_again_has_a_trace_of_its_own():
    f = defined("def f(x):\n    return x * 2 + 1\n")
    for n in (10, 20, *[30] * 10, 40):
        np.testing.assert_array_equal(f(np.arange(n)), np.arange(n) * 2 + 1)
    assert f.experimental_get_tracing_count() == 3 and served_sizes(f) == 2


def test_who_listens_is_told_of_a_trace():
    f = defined("def f(x):\n    return x * 2 + 1\n")
    f(np.ones(10)), f(np.ones(20))
    with jl.record() as rec:
        f(np.ones(30))
        f(np.ones(20))
    assert len(rec.report().traces) == 1
    assert f.experimental_get_tracing_count() == 3


def test_sizes_for_which_a_stage_decides_otherwise_have_their_own():
    """Results that no cache holds are stored past the caches."""
    f = defined("def f(x):\n    return x * 2 + 1\n")
    for n in (1000, 2000, 2_200_000, 2_300_000, 2_400_000, 3000):
        x = np.arange(float(n))
        np.testing.assert_array_equal(f(x), x * 2 + 1)
    assert f.experimental_get_tracing_count() == 4 and served_sizes(f) == 2


@pytest.mark.parametrize("sizes", [(0,), (1,), (2,), (7, 0), (1, 1)])
def test_small_and_empty_axes_are_other_programs(sizes):
    f = defined("def f(x):\n    return x - x.sum(axis=-1, keepdims=True)\n")
    for n in (10, 20):
        f(np.ones((n, 30)[: len(sizes)]))
    x = np.ones(sizes)
    np.testing.assert_array_equal(f(x), f.python_function(x))


def test_operands_that_stop_to_match_raise_numpys_error():
    f = defined("def f(x, y):\n    return x + y\n")
    for n in (10, 20):
        f(np.ones((3, n)), np.ones(n))
    with pytest.raises(ValueError, match="could not be broadcast"):
        f(np.ones((3, 30)), np.ones(31))
    for shapes in [((3, 30), (1,)), ((1, 30), (30,)), ((30,), (30,)), ((3, 1), (30,))]:
        x, y = map(np.ones, shapes)
        np.testing.assert_array_equal(f(x, y), x + y)


def test_what_the_function_sees_of_sizes_keeps_its_traces_apart():
    for text in ("x / x.shape[0]", "x / len(x)", "x / x.size", "x * np.ones(x.shape)[0]", "x + x.strides[0]", "x / x.nbytes"):
        f = defined(f"def f(x):\n    return {text}\n")
        for n in (10, 20, 30, 40):
            x = np.arange(n) + 1.0
            np.testing.assert_array_equal(f(x), f.python_function(x))
        assert served_sizes(f) == 0


def test_captured_arrays_are_those_of_the_names():
    f = defined("def f(x):\n    return x * w\n")
    w = f.python_function.__globals__["w"] = np.arange(1.0)
    for n in (10, 20, 30):
        np.testing.assert_array_equal(f(np.ones(n)), np.ones(n) * w)
    assert served_sizes(f) == 1
    w[0] = 7
    np.testing.assert_array_equal(f(np.ones(31)), np.full(31, 7.0))
    f.python_function.__globals__["w"] = np.arange(32.0)
    np.testing.assert_array_equal(f(np.ones(32)), np.arange(32.0))


def test_arrays_that_lie_otherwise_and_read_only_ones():
    f = defined("def f(x):\n    return x * 2 + 1\n")
    f(np.ones((10, 4))), f(np.ones((20, 5)))
    for x in (np.ones((30, 6)).T, np.ones((60, 6))[::2], np.asfortranarray(np.ones((30, 6))), np.ones((31, 6))):
        x.flags.writeable = False
        got, wanted = f(x), f.python_function(x)
        np.testing.assert_array_equal(got, wanted)
        assert got.strides == wanted.strides and got.flags.writeable


def test_numbers_and_the_same_array_twice():
    f = defined("def f(x, y, k):\n    return x * k + y\n")
    for n in (10, 20, 30):
        np.testing.assert_array_equal(f(np.ones(n), np.ones(n), 2.5), np.full(n, 3.5))
    assert served_sizes(f) == 1
    x = np.arange(40.0)
    np.testing.assert_array_equal(f(x, x, 1.5), x * 2.5)
    np.testing.assert_array_equal(f(x, x + 1, -0.0), x * -0.0 + x + 1)
    np.testing.assert_array_equal(f(x, x + 1, 3), x * 3 + x + 1)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("jitlab.api.size_families.MOST_SIZES", 8)
    f = defined("def f(x):\n    return x + 1\n")
    for n in range(10, 60):
        f(np.ones(n))
    assert len(f._sizes) == 8 and f.experimental_get_tracing_count() == 2


def test_questions_about_sizes_are_noted():
    n, m = Extent.symbol("n", 50), Extent.symbol("m", 7)
    asked = {
        lambda: n == 50: [51], lambda: n != 3: [3], lambda: n < 60: [60, 61], lambda: n >= m: [6], lambda: n * m > 300: [10],
        lambda: n % 4: [51], lambda: n // 3: [45], lambda: bool(n - 50): [51], lambda: 3 == n: [3],
        lambda: (n, m) == (5, 7): [5], lambda: 2**n: [51],
        lambda: int(n): [51], lambda: f"{n}": [51], lambda: hash(n): [51], lambda: float(n): [51], lambda: n / 2: [51],
        lambda: divmod(n, 3): [51], lambda: abs(n): [51], lambda: n.bit_length(): [51], lambda: n.real: [51],
        lambda: max(n, 60): [61], lambda: n in {50: 1}: [51], lambda: n > 2.5: [51], lambda: sorted([n, m]): [6],
    }  # fmt: skip
    for question, others in asked.items():
        facts = SizeFacts()
        with noting(facts):
            question()
        assert facts.hold({"n": 50, "m": 7})
        for other in others:
            assert not facts.hold({"n": other, "m": 7})
    facts = SizeFacts()
    with noting(facts):
        (n + m) * 2 - n, n * 2 // 2, -n, +n
        with noting(None):
            assert n == 50
    assert facts.facts == {}
    with noting(facts):
        assert Extent(3, Poly.symbol("q")) == 3
    assert not facts.hold({"n": 1, "m": 1})


# ---- random programs

AXES = ("0", "-1", "None", "(0, 1)")
REDUCED = ("sum", "max", "min", "prod", "any", "all", "mean", "std", "argmax")
#: Sizes near what stages ask for: vectors, blocks, tiles, and those that broadcast.
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257, 300, 513)


def random_program(rng):
    """Of x[n, m], y[m], z[n, 1], k: lines of operations."""
    names, lines = ["x", "y", "z"], []
    for number in range(rng.randint(1, 6)):
        a, b, c = (rng.choice([*names, *names[3:]]) for _ in range(3))
        line = rng.choice([
            f"{a} {rng.choice('+-*')} {b}", f"{a} * k + {b}", f"np.exp(-np.abs({a}))", f"np.where({a} > {b}, {a}, {c})",
            f"np.maximum({a}, {b}) - 0.5", f"{a}.astype(np.float32)", f"np.sqrt(np.abs({a})) / (1 + np.abs({b}))",
            f"{a}.{rng.choice(REDUCED[:4])}(axis={rng.choice(AXES[:3])}, keepdims=True)",
            f"x.{rng.choice(REDUCED)}(axis={rng.choice(AXES)})", f"np.clip({a}, -1, 1)", f"(x * {b}).T", "x @ x.T", "x @ y",
            "x[:, None]", "x.T * z[:, 0]", "y[None] + x", "x[1:] - x[:-1]", "x[::2]", "np.concatenate([x, x])", "x.reshape(-1)",
            f"np.cumsum({a}, axis=-1)",
        ])  # fmt: skip
        lines.append(f"    t{number} = {line}\n")
        names.append(f"t{number}")
    results = rng.sample(names[3:], min(2, len(names) - 3))
    return f"def f(x, y, z, k):\n{''.join(lines)}    return {', '.join(results)},\n"


def arguments(rng, n, m):
    made = np.random.default_rng(rng.randrange(10**6))
    shapes = [(n, m), (rng.choice([m, m, m, 1]),), (rng.choice([n, n, n, 1]), 1)]
    return [made.uniform(-2, 2, shape) for shape in shapes]


def check_as_recorded(text, f, args):
    """What serves these arguments is what a recording for them is: program, numbers, results to the bit."""
    key, at = f._keyed(args)
    made = f._sizes.get(key)
    if made is None or made.gather(at) is None:
        return 0
    fresh = defined(text)
    fresh(*args)
    real = trace_of(fresh, *args)
    serving = made.run.__self__
    assert isinstance(serving, Served)
    assert form_of(real.executable) == form_of(made.executable)
    variants = [real.executable._variants[key].launcher for key in real.executable._variants]
    for (_, launcher), other in zip(serving._steps, variants, strict=True):
        assert launcher.lowered.symbol_values == other.lowered.symbol_values
        assert launcher.results == other.results and launcher.scratch_bytes == other.scratch_bytes
        mine, theirs = ([int(t[number]) for t, number in _numbers_of(each)] for each in (launcher, other))
        assert mine == theirs
    for mine, theirs in zip(f(*args), fresh(*args), strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        assert type(mine) is type(theirs) and getattr(mine, "strides", ()) == getattr(theirs, "strides", ())
        assert mine.tobytes() == theirs.tobytes()
    return 1


def _numbers_of(launcher):
    layout = launcher.code.layout
    slots = [*layout.symbols.values(), *(layout.chunks + n for n in range(len(layout.phases)))]
    return [(launcher.template, slot) for slot in slots]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300))
def test_random_programs_of_random_sizes(seed):
    rng = random.Random(seed)
    text = random_program(rng)
    f = defined(text)
    for turn in range(16):
        sizes = SIZES[7:] if turn < 4 or rng.random() < 0.5 else SIZES
        n, m = rng.choice(sizes), rng.choice(sizes)
        args = [*arguments(rng, n, rng.choice([m, m, m, n])), rng.choice([0.5, -0.0, 2])]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                wanted = f.python_function(*args)
            except Exception as error:
                with pytest.raises(type(error)):
                    f(*args)
                continue
            got = f(*args)
            for mine, theirs in zip(got, wanted, strict=True):
                assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
            check_as_recorded(text, f, args)


def test_a_cell_that_runs_again_serves_the_sizes_that_it_served():
    names = {"np": np, "jl": jl}
    text = "@jl.jit\n" + SOFTMAX
    linecache.cache["<sizes again>"] = len(text), None, text.splitlines(True), "<sizes again>"
    for _ in range(3):
        exec(compile(text, "<sizes again>", "exec"), names)
        f = names["f"]
        for n in (64, 65, 66, 67):
            f(np.ones((n, 100)))
    assert f.experimental_get_tracing_count() == 0 and served_sizes(f) == 2


def test_would_hit_knows_of_sizes_that_are_served():
    f = defined(SOFTMAX)
    f(np.ones((64, 100)))
    assert not f.would_hit(np.ones((66, 100)))
    f(np.ones((65, 100)))
    assert f.would_hit(np.ones((66, 100))) and not f.would_hit(np.ones((66, 101)))
    assert served_sizes(f) == 0


def test_who_watches_runs_is_told():
    from jitlab.runtime import watching

    f = defined("def f(x):\n    return x * 2 + 1\n")
    f(np.ones(10)), f(np.ones(20))
    seen = []
    with watching(lambda executable, arguments: seen.append(arguments[0].shape)):
        f(np.ones(30))
    assert seen == [(30,)]


# ---- traces of which only the stages are spared


@pytest.mark.parametrize("decorate", [jl.function, jl.jit])
def test_a_trace_of_another_size_runs_no_stage(decorate, compiled, monkeypatch):
    """The function's Python runs, since it sees the size."""
    f = defined("def f(x):\n    return (x - x.mean()) / x.shape[0]\n", decorate)
    stages = []
    monkeypatch.setattr("jitlab.compile.run_passes", lambda graph, tell: stages.append("passes") or run_passes(graph, tell))
    monkeypatch.setattr("jitlab.compile.lower", lambda *args, **named: stages.append("lower") or lower(*args, **named))
    for count, n in enumerate(range(64, 84), 1):
        x = np.linspace(0, 1, n * 100).reshape(n, 100)
        np.testing.assert_allclose(f(x), f.python_function(x), rtol=1e-12, atol=1e-17)
        assert f.experimental_get_tracing_count() == len(f.ledger) == count
        assert stages == ["passes", "lower"] * min(count, 2)


@pytest.mark.parametrize("decorate", [jl.function, jl.jit])
def test_who_looks_at_it_or_listens_sees_the_stages(decorate, compiled):
    f = defined("def f(x):\n    return (x - x.mean()) / x.shape[0]\n", decorate)
    for n in (64, 65, 66, 67, 68):
        f(np.ones((n, 100)))
    late = [trace_of(f, np.ones((n, 100))) for n in (66, 67, 68)]
    assert all(isinstance(trace.executable, Late) and not trace.executable.is_made for trace in late)
    assert "[66, 100]" in late[0].executable.graph.outputs[0].type.describe()
    with jl.record() as rec:
        f(np.ones((67, 100)))
    assert "4 of 4 operations compiled" in str(rec.report()) and late[1].executable.is_made
    for _ in range(8):
        np.testing.assert_array_equal(f(np.ones((68, 100))), np.zeros((68, 100)))
    assert late[2].executable.is_made  # C runs it by now
    assert f.check(np.ones((66, 100))).ok


@pytest.mark.long
@pytest.mark.parametrize("decorate", [jl.function, jl.jit])
@pytest.mark.parametrize("seed", range(100))
def test_late_stages_come_out_the_same(seed, decorate, compiled):
    rng = random.Random(seed)
    text = random_program(rng).replace("k + y", "k / x.shape[0] + len(y)")
    f = defined(text, decorate)
    for turn in range(12):
        sizes = SIZES[7:] if turn < 4 or rng.random() < 0.5 else SIZES
        args = [*arguments(rng, rng.choice(sizes), rng.choice(sizes)), rng.choice([0.5, -0.0, 2])]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                wanted = f.python_function(*args)
            except Exception as error:
                with pytest.raises(type(error)):
                    f(*args)
                continue
            got = f(*args)
            for mine, theirs in zip(got, wanted, strict=True):
                assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
            late = [x.executable for x in _traces(f) if isinstance(x.executable, Late) and not x.executable.is_made]
            for executable in late:
                launchers = [launcher for _, launcher in executable._served._steps]
                executable.prepare()
                real = [lowered for lowered in executable._lowerings.values()]
                for mine, other in zip(launchers, real, strict=True):
                    assert mine.lowered.symbol_values == other.symbol_values
                    assert executable.only_target.scheduled(other.program).text == mine.code.program.text


def _traces(f):
    return [getattr(entry, "trace", None) or entry[0] for entry in f._recent.values()]

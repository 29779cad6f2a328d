"""Plans kept on disk are found by all that they depend on, and run what the stages would have made."""

import random
import warnings

import numpy as np
import pytest

import jitlab as jl
from jitlab import compile as stages
from jitlab import events
from jitlab.ops.base import Operation
from jitlab.runtime import forget_compiled, kept_plans
from jitlab.runtime.kept_plans import FromDisk
from jitlab.targets.cpu_llvm import compiling, machine
from jitlab.targets.cpu_llvm.cpu_target import CPU
from tests.api.test_size_families import SIZES, arguments, defined, random_program, trace_of

SOFTMAX = """
def f(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A folder of its own, and no plan of another test."""
    made = machine.ObjectCache(tmp_path)
    monkeypatch.setattr(machine, "object_cache", lambda: made)
    monkeypatch.setattr(CPU, "keeps_plans", True)
    monkeypatch.setattr(jl.config, "cache", True)
    monkeypatch.setattr(Operation, "has_others", False)  # which another test may have made
    anew()
    return made


def anew():
    """What another process would begin with: nothing but what is on disk."""
    compiling.background().submit(lambda: None).result()
    forget_compiled()
    compiling._kept.clear()


def is_found(f, *args):
    return isinstance(trace_of(f, *args).executable, FromDisk)


def has_plan(executable):
    """Is there a plan of it that can be kept?"""
    steps = kept_plans._steps(executable) if executable.only_target is CPU else None
    return steps is not None and kept_plans._plan(executable.graph, steps, CPU) is not None


def called(text, *args, decorate=jl.jit):
    f = defined(text, decorate)
    return f, f(*args)


def same_bits(mine, theirs):
    assert type(mine) is type(theirs)
    if isinstance(mine, tuple):
        return len(mine) == len(theirs) and all(map(same_bits, mine, theirs))
    return mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("decorate", [jl.function, jl.jit])
def test_who_finds_a_plan_runs_no_stage(decorate, monkeypatch):
    x = np.random.default_rng(0).normal(size=(30, 50))
    f, first = called(SOFTMAX, x, decorate=decorate)
    assert not is_found(f, x)
    anew()
    ran = []
    for name in ("run_passes", "cluster", "lower"):
        monkeypatch.setattr(stages, name, lambda *_, name=name, **__: ran.append(name))
    f, second = called(SOFTMAX, x, decorate=decorate)
    assert is_found(f, x) and not trace_of(f, x).executable.is_made
    assert same_bits(first, second) and same_bits(first, f(x)) and not ran


def test_equal_code_elsewhere_in_a_program_finds_it():
    x = np.linspace(1, 2, 40)
    called("def f(x):\n    return np.sqrt(x) * 2 + 1\n", x)
    anew()
    f, _ = called("\n\ndef f(x):\n    def twice(y):\n        return y * 2\n\n    return twice(np.sqrt(x)) + 1\n", x)
    assert is_found(f, x)


ONE = "def f(x):\n    return x * 2.5 + x.sum()\n"


@pytest.mark.parametrize(("text", "args"), [
    (ONE.replace("2.5", "2.25"), [np.linspace(0, 1, 40)]),
    (ONE.replace("*", "-"), [np.linspace(0, 1, 40)]),
    (ONE.replace("sum", "max"), [np.linspace(0, 1, 40)]),
    (ONE, [np.linspace(0, 1, 41)]),
    (ONE, [np.linspace(0, 1, 40).reshape(4, 10)]),
    (ONE, [np.linspace(0, 1, 40).astype(np.float32)]),
    (ONE, [np.arange(40)]),
    (ONE.replace("2.5", "np.float32(2.5)"), [np.linspace(0, 1, 40)]),
])  # fmt: skip
def test_what_differs_in_anything_is_another_plan(text, args):
    _, one = called(ONE, np.linspace(0, 1, 40))
    anew()
    f, got = called(text, *args)
    assert not is_found(f, *args)
    np.testing.assert_allclose(got[0], f.python_function(*args)[0], rtol=1e-6)
    f, again = called(ONE, np.linspace(0, 1, 40))
    assert is_found(f, np.linspace(0, 1, 40)) and same_bits(again, one)


def test_numbers_that_compare_equal_are_told_apart():
    x = np.linspace(-1, 1, 8)
    for turn in range(2):
        for literal in ("0.0", "-0.0", "0", "np.nan", "-np.nan", "1", "True"):
            text = f"def f(x):\n    return np.copysign(1.0, x * {literal})\n"
            f, got = called(text, x)
            np.testing.assert_array_equal(got, f.python_function(x), literal)
            assert turn == 0 or is_found(f, x)
        anew()


def test_another_level_or_options_of_clusters_are_another_plan(monkeypatch):
    x = np.linspace(0, 1, 40)
    called(ONE, x)
    anew()
    f, _ = called(ONE, x, decorate=lambda g: jl.jit(g, jit_level="O0"))
    assert not is_found(f, x)
    monkeypatch.setattr(jl.config, "min_cluster_size", 3)
    f, _ = called(ONE, x)
    assert not is_found(f, x)


def test_beside_operations_of_others_none_is_kept_or_found(monkeypatch):
    x = np.linspace(0, 1, 40)
    called(ONE, x)
    anew()
    monkeypatch.setattr(Operation, "has_others", True)
    f, _ = called(ONE, x)
    anew()
    assert not is_found(f, x)


def test_scopes_are_asked_anew():
    x = np.linspace(0, 1, 40)
    text = "def f(x):\n    with jl.jit_scope():\n        y = x * 2\n    return y + x.sum()\n"
    for _ in range(2):
        f, _ = called("import jitlab as jl\n" + text, x, decorate=jl.function)
        assert not is_found(f, x)
        anew()


@pytest.mark.parametrize("text", [
    "def f(x):\n    return x[x.argmax()] + x[np.array([3, 50])]\n",
    "def f(x):\n    return np.linalg.norm(x.reshape(5, 8)) + np.linalg.inv(np.eye(3) * x[1])\n",
    "def f(x):\n    for i in range(100):\n        x = x * 0.5 + i\n    return x\n",
])  # fmt: skip
def test_what_can_fail_or_calls_back_goes_through_the_stages(text):
    x = np.linspace(1, 2, 60 if "50" in text else 40)
    for _ in range(2):
        f, got = called(text, x)
        np.testing.assert_allclose(got, f.python_function(x), rtol=1e-12)
        anew()


def test_without_the_cache_nothing_is_kept_or_found(store, monkeypatch):
    x = np.linspace(0, 1, 40)
    monkeypatch.setattr(jl.config, "cache", False)
    called(ONE, x)
    anew()
    assert store.is_empty
    monkeypatch.setattr(jl.config, "cache", True)
    called(ONE, x)
    anew()
    monkeypatch.setattr(jl.config, "cache", False)
    f, _ = called(ONE, x)
    assert not is_found(f, x)


@pytest.mark.parametrize("damage", [
    lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-1]), lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:-3] + b"\1\2\3"),
], ids=["gone", "short", "empty", "other"])  # fmt: skip
def test_of_damaged_files_none_is_used(store, tmp_path, damage):
    x = np.linspace(0, 1, 40)
    _, wanted = called(ONE, x)
    anew()
    files = sorted(path for path in (tmp_path / "objects").iterdir() if not path.name.startswith("sources"))
    assert len(files) == 2  # the plan, its code
    for path in files:
        kept = path.read_bytes()
        damage(path)
        f, got = called(ONE, x)
        assert same_bits(got, wanted) and not is_found(f, x)
        anew()
        path.write_bytes(kept)
        assert same_bits(called(ONE, x)[1], wanted)
        anew()


def test_who_looks_at_it_or_listens_sees_the_stages():
    x = np.random.default_rng(0).normal(size=(30, 50))
    f, _ = called(SOFTMAX, x)
    plan = str(trace_of(f, x).executable.graph)
    with jl.record() as rec:
        f(x)
    told = [(kernel.name, kernel.bytes_read) for kernel in rec.report().kernels]
    anew()
    f, _ = called(SOFTMAX, x)
    executable = trace_of(f, x).executable
    assert isinstance(executable, FromDisk) and not executable.is_made
    with jl.record() as rec:
        f(x)
    assert executable.is_made and [(kernel.name, kernel.bytes_read) for kernel in rec.report().kernels] == told
    assert str(executable.graph) == plan and f.check(x).ok


def test_who_listens_from_the_start_gets_the_stages_events():
    x = np.linspace(0, 1, 40)
    called(ONE, x)
    anew()
    heard = []
    with events.listen(lambda event: heard.append(type(event))):
        f, _ = called(ONE, x)
    assert events.PassRan in heard and events.PlanMade in heard and not is_found(f, x)


def test_arrays_that_lie_otherwise_have_code_of_their_own():
    x = np.random.default_rng(0).normal(size=(30, 50))
    f, _ = called(SOFTMAX, x)
    wanted = f(np.asfortranarray(x))
    g = defined(SOFTMAX, jl.function)
    forms = [g(np.asfortranarray(x)), g(np.repeat(x, 2, axis=1)[:, ::2])]
    anew()
    f, _ = called(SOFTMAX, x)
    assert is_found(f, x) and same_bits(f(np.asfortranarray(x)), wanted)
    g = defined(SOFTMAX, jl.function)
    assert all(map(same_bits, [g(np.asfortranarray(x)), g(np.repeat(x, 2, axis=1)[:, ::2])], forms))


@pytest.mark.parametrize("decorate", [jl.function, jl.jit])
def test_calls_that_come_often_are_answered_by_c(decorate):
    x = np.linspace(0, 1, 40)
    _, wanted = called(ONE, x, decorate=decorate)
    anew()
    f = defined(ONE, decorate)
    for _ in range(40):
        assert same_bits(f(x), wanted)
    assert trace_of(f, x).is_warm or trace_of(f, x).costs.native_calls


def test_other_sizes_are_served_as_if_the_stages_had_run():
    sizes = (64, 65, 66, 67)
    f = defined(SOFTMAX)
    wanted = [f(np.linspace(0, 1, n * 20).reshape(n, 20)) for n in sizes]
    count = f.experimental_get_tracing_count()
    anew()
    f = defined(SOFTMAX)
    got = [f(np.linspace(0, 1, n * 20).reshape(n, 20)) for n in sizes]
    assert all(map(same_bits, got, wanted)) and f.experimental_get_tracing_count() == count == 2
    assert is_found(f, np.zeros((64, 20)))


def test_results_may_be_arguments_and_constants():
    x = np.linspace(0, 1, 40)
    text = "def f(x):\n    return x, x + np.array([1.0, 2.0] * 20), 3 * x.sum()\n"
    first = called(text, x)[1]
    anew()
    f, second = called(text, x)
    assert second[0] is x and same_bits(first, second) and is_found(f, x)


def test_matrix_products_find_this_process_library():
    x = np.random.default_rng(0).normal(size=(80, 80))
    text = "def f(x):\n    return np.tanh(x @ x) + 1\n"
    first = called(text, x)[1]
    anew()
    f, second = called(text, x)
    assert is_found(f, x) and same_bits(first, second)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_random_programs_are_what_they_were(seed):
    rng = random.Random(seed)
    text = random_program(rng)
    calls = [[*arguments(rng, rng.choice(SIZES), rng.choice(SIZES)), rng.choice([0.5, -0.0, 2])] for _ in range(4)]
    results, kinds = [], []
    for _ in range(2):
        results.append([])
        kinds.append([])
        for args in calls:
            f = defined(text)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    results[-1].append(f(*args))
                except Exception as error:
                    results[-1].append(repr(error))
                    continue
            compiling.background().submit(lambda: None).result()
            executable = trace_of(f, *args).executable
            kinds[-1].append(isinstance(executable, FromDisk) or has_plan(executable))
            assert len(kinds) < 2 or isinstance(executable, FromDisk) == kinds[0][len(kinds[1]) - 1]
        anew()
    for mine, theirs in zip(*results, strict=True):
        assert mine == theirs if isinstance(mine, str) else same_bits(mine, theirs)

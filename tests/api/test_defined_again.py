"""A `jit` function that is defined again with equal code takes over what was recorded, where nothing it reads is another."""

from __future__ import annotations

import gc
import linecache
import os
import random
import subprocess
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.api import settling
from jitlab.api.settling import COMPILED, PYTHON
from jitlab.capture.guards.equal_code import Defined
from jitlab.targets.cpu_llvm.calls.python_way import _definition
from jitlab.targets.devices import default_target

ROOT = Path(__file__).parents[2]

CELL = """
def helper(x, k=2.0, *, shift=1):
    return np.abs(x) * k + shift

@jl.jit
def f(x, y=0.5):
    return helper(x) + y * scale
"""
X = np.linspace(-1, 1, 7)


@pytest.fixture
def names():
    return {"np": np, "jl": jl, "scale": 3.0, "__name__": "cell"}


def run(text, names, file="<cell>"):
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), names)
    return names["f"]


def plain(f, *args):
    return f.python_function(*args)


def test_a_cell_that_runs_again_records_nothing(names):
    first = run(CELL, names)
    first(X)
    with jl.record() as rec:
        for _ in range(3):
            f = run(CELL, names)
            np.testing.assert_array_equal(f(X), np.abs(X) * 2 + 1 + 1.5)
            assert f.experimental_get_tracing_count() == 0
    assert not rec.report().traces and not rec.report().retraces
    assert first.experimental_get_tracing_count() == 1


def test_the_ledger_says_where_the_trace_is_from(names):
    run(CELL, names)(X)
    before = [(total.misses, total.retraces) for total in jl.ledger() if total.function == "f"]
    f = run(CELL, names)
    assert f.would_hit(X)
    f(X)
    f(X)
    head, line = str(f.ledger).splitlines()
    assert head.startswith("f: 0 traces, 2 calls")
    assert line == "  #1 taken over from the same code, defined before: 2 calls"
    assert len(f.ledger) == 0
    assert [(total.misses, total.retraces) for total in jl.ledger() if total.function == "f"] == before


def test_what_differs_from_the_trace_of_before_is_the_cause(names):
    run(CELL, names)(X)
    f = run(CELL, names)
    assert not f.would_hit(X[:3])
    f(X[:3])
    (miss,) = f.ledger
    assert miss.number == 2 and [change.cause for change in miss.changes] == ["shape"]
    assert "`x` was float64[7] and is now float64[3]" in str(f.ledger)
    f(X)
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(("old", "new"), [
    ("k=2.0", "k=3.0"), ("k=2.0", "k=-0.0"), ("k=2.0", "k=2"), ("shift=1", "shift=2"), ("shift=1", "shift=1.0"), ("* k", "+ k"),
    ("np.abs", "np.square"), ("def helper", "global helper\ndef helper"), ("return helper", "return 2 * helper"),
    ("x, k=2.0", "x, j=2, k=2.0"), ("y=0.5", "y=1.5"), ("y=0.5", "y=-0.5"),
])  # fmt: skip
def test_other_code_or_other_defaults_are_others(names, old, new):
    run(CELL, names)(X)
    f = run(CELL.replace(old, new), names)
    result = f(X)
    np.testing.assert_array_equal(result, plain(f, X))
    assert result.dtype == plain(f, X).dtype
    again = run(CELL, names)
    np.testing.assert_array_equal(again(X), plain(again, X))


@pytest.mark.parametrize("change", ["helper.__defaults__ = (5.0,)", "helper.__kwdefaults__ = {'shift': 7}", "scale = True",
    "scale = 7.0", "scale = np.float32(2)", "scale = np.ones(7)", "helper.__code__ = (lambda x, k, *, shift: x - k).__code__",
    "np = __import__('types').SimpleNamespace(abs=np.square)", "helper = lambda x: x + 5"])  # fmt: skip
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_changes_is_seen(names, change, when):
    old = run(CELL, names)
    old(X)
    f = run(CELL, names)
    if when == "after":
        f(X)
    exec(change, names)
    for function in (f, old, f):
        np.testing.assert_array_equal(function(X), plain(function, X))


def test_both_functions_see_the_change_of_their_own_helper(names):
    text = CELL.replace("helper(x)", "helper(x) + own(x)") + "\ndef own(x, k=1.0):\n    return x * k\n"
    old = run(text, names)
    old(X)
    own = names["own"]
    f = run(text, names)
    f(X)
    assert f.experimental_get_tracing_count() == 0
    own.__defaults__ = (9.0,)
    np.testing.assert_array_equal(f(X), plain(f, X))
    names["own"].__defaults__ = (5.0,)
    np.testing.assert_array_equal(f(X), plain(f, X))
    np.testing.assert_array_equal(old(X), plain(old, X))
    names["own"] = own
    np.testing.assert_array_equal(f(X), plain(f, X))
    np.testing.assert_array_equal(old(X), plain(old, X))


def test_a_closure_is_no_equal_code(names):
    text = "def made(k):\n    @jl.jit\n    def f(x):\n        return x * k\n    return f\nf = made(k)\n"
    for k in (2.0, 3.0, np.arange(7.0)):
        names["k"] = k
        np.testing.assert_array_equal(run(text, names)(X), X * k)


def test_a_function_with_attributes_is_no_equal_code(names):
    text = CELL.replace("helper(x)", "helper(x) + helper.extra") + "\nhelper.extra = scale\n"
    for scale in (1.0, 2.0, 3):
        names["scale"] = scale
        f = run(text, names)
        np.testing.assert_array_equal(f(X), plain(f, X))


def test_other_globals_are_others(names):
    run(CELL, names)(X)
    others = {**names, "scale": 9.0}
    f = run(CELL, others)
    np.testing.assert_array_equal(f(X), plain(f, X))
    assert f.experimental_get_tracing_count() == 1


def test_a_helper_that_is_defined_again_alone(names):
    f = run(CELL, names)
    f(X)
    head, _, _ = CELL.partition("@jl.jit")
    for _ in range(30):
        run(head, names)
        np.testing.assert_array_equal(f(X), plain(f, X))
    assert f.experimental_get_tracing_count() == 1
    run(head.replace("* k", "- k"), names, "<other>")
    np.testing.assert_array_equal(f(X), plain(f, X))
    assert f.experimental_get_tracing_count() == 2


def test_decorated_helpers(names):
    text = CELL.replace("def helper", "@jl.jit\ndef helper")
    run(text, names)(X)
    f = run(text, names)
    np.testing.assert_array_equal(f(X), np.abs(X) * 2 + 1 + 1.5)
    assert f.experimental_get_tracing_count() == 0
    names["helper"].python_function.__defaults__ = (5.0,)
    np.testing.assert_array_equal(f(X), np.abs(X) * 5 + 1 + 1.5)


def test_a_module_that_is_loaded_again(names):
    module = types.ModuleType("of_helpers")
    module.np = np
    text = "def helper(x):\n    return x * 2 + 1\n"
    exec(compile(text, "<helpers>", "exec"), vars(module))
    linecache.cache["<helpers>"] = len(text), None, text.splitlines(True), "<helpers>"
    names["of_helpers"] = module
    f = run("@jl.jit\ndef f(x):\n    return of_helpers.helper(x) - 1\n", names)
    f(X)
    exec(compile(text, "<helpers>", "exec"), vars(module))
    np.testing.assert_array_equal(f(X), X * 2)
    assert f.experimental_get_tracing_count() == 1
    exec(compile(text.replace("2", "3"), "<helpers>", "exec"), vars(module))
    linecache.cache["<helpers>"] = len(text), None, text.replace("2", "3").splitlines(True), "<helpers>"
    np.testing.assert_array_equal(f(X), X * 3)


def test_pieces_find_a_helper_that_is_defined_again(names):
    text = CELL.replace("    return helper", "    seen.append(1)\n    return helper")
    names["seen"] = []
    f = run(text, names)
    f(X)
    traces = sum(piece.traces for piece in f.ledger.pieces.values())
    for _ in range(20):
        run(text.partition("@jl.jit")[0], names)
        np.testing.assert_array_equal(f(X), np.abs(X) * 2 + 1 + 1.5)
    assert sum(piece.traces for piece in f.ledger.pieces.values()) == traces
    assert len(names["seen"]) == 21


def test_effects_happen_at_each_call(names):
    text = CELL.replace("    return helper", "    seen.append(1)\n    return helper")
    names["seen"] = []
    for n in range(4):
        run(text, names)(X)
        assert len(names["seen"]) == n + 1


def test_what_is_taken_over_keeps_nothing_of_the_one_before(names):
    old = run(CELL, names)
    array = np.linspace(0, 1, 7)
    old(array)
    gone = [weakref.ref(old), weakref.ref(array)]
    for n in range(4):
        old = run(CELL, names)
        old(X)
        if n < 3:  # the trace itself knows its first functions
            gone += map(weakref.ref, (old, old.python_function, names["helper"]))
    del array
    gc.collect()
    assert not any(reference() for reference in gone)
    assert not any(old._earlier.traces.values())


def test_a_cell_may_run_any_number_of_times(names):
    first = run(CELL, names)
    for number in range(sys.getrecursionlimit() + 20):
        f = run(CELL, names) if number else first
        assert f(X).tolist() == plain(f, X).tolist()
    (costs,) = (trace.costs for trace, _ in f._recent.values())
    assert costs.whole is not None and costs.whole.whole is None  # no chain of all those between


def test_a_class_of_the_users_is_not_kept(names):
    text = "class Model:\n    def forward(self, x):\n        return x + 1\nmodel = Model()\n" + CELL.replace(
        "helper(x)", "model.forward(x)"
    )
    run(text, names)(X)
    gone = weakref.ref(names["Model"])
    np.testing.assert_array_equal(run(text, names)(X), X + 1 + 1.5)
    gc.collect()
    assert gone() is None


def test_what_nobody_takes_over_is_bounded(names, monkeypatch):
    monkeypatch.setattr(jl.config, "max_traces", 4)
    for n in range(1, 12):
        f = run(CELL, names)
        for m in range(3):
            f(np.ones(10 * n + m))
        assert sum(map(len, f._earlier.traces.values())) <= 4


def test_which_way_calls_go_is_taken_over(names, monkeypatch):
    """A definition that is executed again decides nothing anew, and has its own C in front."""
    monkeypatch.setattr(jl.config, "settle", "measure")
    text = "@jl.jit\ndef f(x):\n    y = np.tanh(x)\n    seen.append(1)\n    return y + 1\n"
    names["seen"] = []
    first = run(text, names)
    first(X)
    (trial,) = first._trials.values()
    trial.way, trial.times = PYTHON, {COMPILED: [9000] * 5, PYTHON: [3000] * 5}
    for number in range(2, 30):
        f = run(text, names)
        np.testing.assert_array_equal(f(X), np.tanh(X) + 1)
        (taken,) = f._trials.values()
        assert taken.way == PYTHON and taken is not trial and taken.times == trial.times and taken.as_python == 1
        assert not f._recent and len(names["seen"]) == number  # nothing was captured, and each call ran once
    first._trials[next(iter(first._trials))].times[PYTHON].append(1)
    assert taken.times[PYTHON] == [3000] * 5
    jl.config.settle = "model"
    f = run(text, names)
    f(X)
    assert next(iter(f._trials.values())).way == "" and len(names["seen"]) == 30  # decided under another setting


def test_kinds_of_calls_that_are_taken_over_keep_no_class(names, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "measure")
    text = "class Box:\n    n = 2.0\n@jl.jit\ndef f(x, box):\n    seen.append(1)\n    return x * box.n\n"
    names["seen"], gone = [], []
    for _ in range(5):
        f = run(text, names)
        f(X, names["Box"]())
        gone.append(weakref.ref(names["Box"]))
        assert len(f._earlier.trials) == 0
    del names["Box"], f
    del names["f"]
    gc.collect()
    assert not any(reference() for reference in gone)


def test_c_functions_of_one_name_share_a_definition(names, monkeypatch):
    """Each name of a function that is defined again is another one, to events; C reads the text alone."""
    monkeypatch.setattr(jl.config, "settle", "measure")
    _definition.cache_clear()
    for _ in range(20):
        f = run("@jl.jit\ndef f(x):\n    return len(x)\n", names)
        for _ in range(settling.DIRECT_FIRST + 3 if not default_target().is_loaded else 12):
            assert f([1, 2]) == 2
    assert _definition.cache_info().currsize <= 1


#: Calls of Python functions in the definition and the call after it.
CALLS = {"one-liner": 327, "softmax": 355, "Black-Scholes": 449}
AGAIN = """
import sys
from benchmarks.latency import child
from benchmarks.latency.functions import FIRST
import jitlab as jl
program = sys.argv[1]
names, arguments = {"np": child.np, "decorate": jl.jit}, child.arguments(program)
text = FIRST[program][0].replace("\\ndef f(", "\\n@decorate\\ndef f(")
child.defined(text, names)["f"](*arguments)
calls = [0]
def count(frame, event, argument):
    calls[0] += event == "call"
sys.setprofile(count)
child.defined(text, names)["f"](*arguments)
sys.setprofile(None)
print(calls[0])
"""


@pytest.mark.parametrize("program", CALLS)
def test_a_definition_that_is_executed_again_makes_few_calls(program, tmp_path):
    """30 % more than were counted when this was written fail."""
    environment = os.environ | {"JITLAB_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT), "JITLAB_SETTLE": "measure"}
    run_again = [sys.executable, "-c", AGAIN, program]
    done = subprocess.run(run_again, capture_output=True, text=True, env=environment, cwd=ROOT, check=True)
    assert int(done.stdout) <= 1.3 * CALLS[program], done.stdout


def test_settings_of_the_compiler_count(names, monkeypatch):
    run(CELL, names)(X)
    monkeypatch.setattr(jl.config, "global_jit_level", "OFF")
    f = run(CELL, names)
    f(X)
    assert f.experimental_get_tracing_count() == 1


VARIANTS = {
    "np.abs(x)": ("np.abs(x)", "np.square(x)", "x"), "k=2.0": ("k=2.0", "k=0.0", "k=-0.0"),
    "shift=1": ("shift=1", "shift=True"),
    "y * scale": ("y * scale", "scale"), "y=0.5": ("y=0.5", "y=2"), "@jl.jit\n": ("@jl.jit\n", "@jl.jit(jit_level='O0')\n"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_random_cells(names, seed):
    """Cells of a few texts run in any order, names change between: each call gives what Python gives."""
    rng = random.Random(seed)
    for _ in range(25):
        text = CELL
        for part, choices in VARIANTS.items():
            if rng.random() < 0.2:
                text = text.replace(part, rng.choice(choices))
        names["scale"] = rng.choice([3.0, -0.0, 2, True, np.float32(2), np.arange(7.0)])
        f = run(text, names, f"<cell {abs(hash(text))}>")
        for _ in range(2):
            x = np.linspace(-1, 1, rng.choice([7, 7, 7, 1]))
            if rng.random() < 0.2:
                names["helper"].__defaults__ = (rng.choice([2.0, 4.0, 0.0, -0.0]),)
            got, wanted = f(x), plain(f, x)
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype == wanted.dtype and (np.signbit(got) == np.signbit(wanted)).all()


def test_equal_values_that_differ_are_told_apart():
    def made(value):
        return eval("lambda x, k=value: x", {"value": value})  # each time another code object

    one = Defined.of(made(1))
    for value, same in [(1, True), (1.0, False), (True, False), ((1, 2.0), False)]:
        other = types.FunctionType(made(value).__code__, one.function.__globals__, "<lambda>", (value,))
        assert (one.exchange(other) is not None) is same
    zero = Defined.of(types.FunctionType(one.code, {}, "z", (0.0,)))
    assert zero.exchange(types.FunctionType(one.code, zero.function.__globals__, "z", (-0.0,))) is None

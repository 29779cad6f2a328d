"""A `jit` function that is defined again with equal code takes over what was recorded, where nothing it reads is another."""

from __future__ import annotations

import gc
import linecache
import random
import sys
import types
import weakref

import numpy as np
import pytest

import jitlab as jl
from jitlab.capture.guards.equal_code import Defined

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

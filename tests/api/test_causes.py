"""The cause of a retrace is the guard that failed, with what it was about: never a default. Undoing it makes a hit."""

from __future__ import annotations

import types

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.events import Cause
from tests.cell_runs import run_cell

SIZE = 3
ADDED = np.ones(6)
PARTS = [np.ones(6), np.zeros(6)]
NAMES = {"a": 2.0, "b": 3.0}
MODULE = types.ModuleType("tools")
MODULE.f, MODULE.mode, MODULE.added = np.sin, "fast", np.ones(6)


class Model:
    order = 2

    def __init__(self):
        self.size = 3

    def scaled(self, x):
        return x * 2


def scaled(x, by=2.0):
    return x * by


MODEL, CODE = Model(), (lambda x, by=2.0: x - by).__code__


def with_closure():
    size, kept = 3, np.ones(6)

    def reshaped(x):
        return x.reshape(size, -1).sum() + kept

    cells = dict(zip(reshaped.__code__.co_freevars, reshaped.__closure__, strict=True))
    return reshaped, cells


RESHAPED, CELLS = with_closure()


class put:
    """A change that can be undone: `put(owner, name, value)`."""

    def __init__(self, owner, name, value):
        self.owner, self.name, self.value = owner, name, value

    def __enter__(self):
        self.before = self.get()
        self.set(self.value)

    def __exit__(self, *_):
        self.set(self.before)

    def get(self):
        return self.owner[self.name] if isinstance(self.owner, (dict, list)) else getattr(self.owner, self.name)

    def set(self, value):
        if isinstance(self.owner, (dict, list)):
            self.owner[self.name] = value
        else:
            setattr(self.owner, self.name, value)


X, OTHER = np.arange(6.0), np.arange(6.0)
WIDE = np.arange(12.0).reshape(3, 4)

#: Calls of one function whose leaves are equal, or tell nothing of it: two arguments lists, the cause and its path.
CALLS = {
    "two arrays are one": (lambda a, b: a + b, (X, OTHER), (X, X), "aliasing", "b"),
    "one array is two": (lambda a, b: a + b, (X, X), (X, OTHER), "aliasing", "b"),
    "two items are one array": (lambda p: p[0] + p[1], ([X, OTHER],), ([X, X],), "aliasing", "p[1]"),
    "an argument is the array of a name": (lambda a: a + ADDED, (X,), (ADDED,), "aliasing", "ADDED"),
    "two lists are one": (lambda p, q: (p is q, p[0]), ([1.0], [1.0]), ([1.0],) * 2, "aliasing", "q"),
    "one list is two": (lambda p, q: (p is q, p[0]), ([1.0],) * 2, ([1.0], [1.0]), "aliasing", "q"),
    "columns, not rows": (lambda a: a.ravel("K") * 2, (WIDE,), (np.asfortranarray(WIDE),), "layout", "a"),
    "steps between elements": (lambda a: a.view("i8") * 2, (WIDE,), (np.asfortranarray(WIDE),), "layout", "a"),
    "the order of a dict": (lambda d: [k for k in d], ({"u": 1, "v": 2},), ({"v": 2, "u": 1},), "structure", "d"),
    "a float decides a branch": (lambda a, k: a + 1 if k > 3 else a - 1, (X, 1.0), (X, 5.0), "python_value", "bool(k > 3)"),
    "another branch reads more": (lambda a, k: a + ADDED if k > 3 else a, (X, 1.0), (X, 5.0), "python_value", "bool(k > 3)"),
    "a number of NumPy's": (lambda a, k: a * k, (X, 2.0), (X, np.float64(2)), "argument_type", "k"),
    "a type that is not read": (lambda a, flag: a + 1, (X, 1), (X, 1.0), "argument_type", "flag"),
    "another object": (lambda a, o: a.reshape(o.size, -1), (X, Model()), (X, Model()), "python_value", "o"),
}  # fmt: skip

#: What a call finds outside its arguments: a function, the change, the cause and its path.
WORLD = {
    "a global number": (lambda a: a.reshape(SIZE, -1) * 2, put(globals(), "SIZE", 2), "global", "SIZE"),
    "a global is another kind": (lambda a: a * SIZE, put(globals(), "SIZE", 2.0), "global", "SIZE"),
    "a global array of another dtype": (lambda a: a + ADDED, put(globals(), "ADDED", np.ones(6, "f4")), "global", "ADDED"),
    "a global function": (lambda a: scaled(a), put(globals(), "scaled", lambda x: x * 3), "global", None),
    "a closure's number": (RESHAPED, put(CELLS["size"], "cell_contents", 2), "closure", "size"),
    "a closure's array": (RESHAPED, put(CELLS["kept"], "cell_contents", np.ones(6, "f4")), "closure", "kept"),
    "a helper's default": (lambda a: scaled(a), put(scaled, "__defaults__", (3.0,)), "global", "defaults of scaled"),
    "a helper's code": (lambda a: scaled(a), put(scaled, "__code__", CODE), "global", None),
    "a module's function": (lambda a: MODULE.f(a), put(MODULE, "f", np.cos), "global", "tools.f"),
    "a module's string": (lambda a: a if MODULE.mode == "fast" else -a, put(MODULE, "mode", "slow"), "global", "tools.mode"),
    "a module's array": (lambda a: a + MODULE.added, put(MODULE, "added", np.ones(6, "f4")), "dtype", "tools.added"),
    "an attribute": (lambda a: a.reshape(MODEL.size, -1) * 2, put(MODEL, "size", 2), "python_value", "Model.size"),
    "a method": (lambda a: MODEL.scaled(a), put(Model, "scaled", lambda self, x: x * 3), "global", None),
    "an item of a dict": (lambda a: a * NAMES["a"], put(NAMES, "a", 3), "global", 'NAMES["a"]'),
    "a longer list": (lambda a: a + PARTS[0], put(globals(), "PARTS", [X, X, X]), "global", "PARTS"),
    "two items that become one array": (lambda a: PARTS[0] + PARTS[1], put(PARTS, 1, PARTS[0]), "aliasing", "PARTS[1]"),
}  # fmt: skip


def last(function):
    return list(function.ledger)[-1]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_misses_says_which_guard_failed_and_undoing_it_hits(name):
    program, first, second, cause, path = CALLS[name]
    f = jl.jit(program)
    f(*first)
    explained = f.explain_key(*second)
    f(*second)
    assert [miss.number for miss in f.ledger] == [1, 2], "it was no miss"
    change = last(f).changes[0]
    assert change.cause == cause and (path is None or change.path == path), change
    assert change.before and change.after and change.before != change.after
    assert explained.changes[0] == change
    assert f.would_hit(*first) and f.would_hit(*second)


@pytest.mark.parametrize("name", WORLD)
def test_a_name_that_is_another_is_the_cause_and_undoing_it_hits(name):
    program, change, cause, path = WORLD[name]
    f = jl.jit(program)
    f(X)
    with change:
        f(X)
        assert [miss.number for miss in f.ledger] == [1, 2], "it was no miss"
        assert f.would_hit(X)
    found = last(f).changes[0]
    assert found.cause == cause and (path is None or found.path == path), found
    assert found.before and found.after and found.before != found.after
    assert f.would_hit(X)
    assert "unknown" not in str(f.ledger)


@pytest.mark.parametrize("name", WORLD)
def test_a_piece_of_a_function_says_it_too(name, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    program, change, _, path = WORLD[name]
    inner = jl.autograph.do_not_convert(lambda a: None)

    def in_pieces(a):
        try:
            inner(a)
        finally:
            pass
        return program(a)

    f = jl.jit(in_pieces)
    for _ in range(2):
        f(X)
    with change, recorded() as told:
        f(X)
    assert told and all(event.causes[0] not in ("unknown", "first_call") for event in told), told
    assert path is None or path in [event.argument for event in told]
    with recorded() as told:
        f(X)
    assert not told


class recorded:
    """Listens to what is traced."""

    def __enter__(self):
        found = []
        self.listening = events.listen(lambda e: found.append(e) if isinstance(e, events.Traced) else None)
        self.listening.__enter__()
        return found

    def __exit__(self, *error):
        self.listening.__exit__(*error)


@pytest.mark.parametrize(
    ("cell", "before", "after", "cause", "path"),
    [
        ("z = x + y", {"x": X, "y": OTHER}, {"x": X, "y": X}, "aliasing", "y"),
        ("z = x + y", {"x": X, "y": X}, {"x": X, "y": OTHER}, "aliasing", "y"),
        ("z = w.ravel('K') + 1", {"w": WIDE}, {"w": np.asfortranarray(WIDE)}, "layout", "w"),
        ("z = x + 1 if k > 3 else x - 1", {"x": X, "k": 1}, {"x": X, "k": 5}, "python_value", "bool(k > 3)"),
        ("z = x * k", {"x": X, "k": 1}, {"x": X, "k": 1.0}, "argument_type", "k"),
        ("z = x[k:] + 1", {"x": X, "k": 1}, {"x": X, "k": 2}, "shape", "a part of x"),
        ("z = p[0] + p[1]", {"p": [X, OTHER]}, {"p": [X, X]}, "aliasing", "p[1]"),
    ],
)
def test_a_cell_that_runs_again_says_which_guard_failed(cell, before, after, cause, path):
    names = dict(before)
    run_cell(cell, names, "<cell>")
    names.update(after)
    with recorded() as told:
        run_cell(cell, names, "<cell>")
    assert [(event.causes[0], event.argument) for event in told] == [(cause, path)]
    with recorded() as told:
        run_cell(cell, names, "<cell>")
        names.update(before)
        run_cell(cell, names, "<cell>")
    assert not told


def test_a_recording_that_was_made_to_be_looked_at_is_no_retrace():
    f = jl.function(lambda x: np.nonzero(x))
    f.get_concrete_function(jl.TensorSpec([3], np.float64))
    assert f.explain_key(np.ones(3)).causes == ("first_call",)
    f(np.ones(3))
    assert last(f).causes == ("first_call",) and not last(f).is_retrace


def test_what_nobody_knows_any_more_is_said_as_such():
    """A global is another while the call looks for its trace, and the old one again when the reason is asked for."""
    f = jl.jit(lambda a: a + 1)
    f(X)
    trace = f._last
    original, trace.gather = trace.gather, lambda a: None
    f(X)
    trace.gather = original
    change = last(f).changes[0]
    assert change.cause == Cause.UNKNOWN and "changed while it was looked up" in change.after
    assert change.after in str(f.ledger) and change.after in last(f).told(change)


@pytest.mark.parametrize("kind", [list, dict])
def test_containers_that_are_one_object_are_one_in_every_call(kind):
    f = jl.jit(lambda p, q: p is q)
    made = [kind({"a": 1.0}) for _ in range(2)]
    for p, q in [made, (made[0], made[0]), made]:
        assert f(p, q) is (p is q)

"""What one part of jitlab tells another by raising it, planted in every hook: the outcome is Python's, no name is shown."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
import textwrap

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.capture.guards.leaves import LeafType, Mismatch
from jitlab.capture.guards.signature import Foreign
from jitlab.capture.hooks import Hooks
from jitlab.capture.refusals import Refusal
from jitlab.errors import JitlabError, Signal, Unfit
from jitlab.ir import ArrayType
from jitlab.messages import Message
from jitlab.ops.base import Unsupported
from tests.cell_runs import run_cell

for module in pkgutil.walk_packages(jl.__path__, "jitlab."):
    if module.name.startswith(("jitlab.capture", "jitlab.ops", "jitlab.lower", "jitlab.ir", "jitlab.api")):
        importlib.import_module(module.name)

FACTOR = 2.0


class Box:
    def __init__(self):
        self.weight = 3.0
        self.kept = {}


BOX = Box()


def helper(x, k=1.0):
    return x * k


def program(x, n):
    """Every hook is met in it."""
    y = helper(x, k=2.0) * FACTOR + BOX.weight
    items = [y, x]
    a, b = items[0], items[1]
    y = a if n > 1 and not n > 5 else b
    if (y > 100).any():
        y = y - 1
    for i in range(20):
        y[i % 3] += b[0]
        if y[0] > 50:
            break
    while y.sum() < 10:
        y = y * 2
    assert y.sum() > -1e9, "small"
    for one in (1.0, 2.0):
        y = y + one
    return y, len(items), 0 < n < 9


CELL = textwrap.dedent("\n".join(inspect.getsource(program).split("\n")[2:-2]))


def made(kind):
    """An instance, with an argument of each that its constructor wants."""
    if kind is Mismatch:
        return kind("dtype", *[LeafType(ArrayType((), np.dtype(name)), None, True) for name in ("f8", "i8")])
    if kind.__name__ == "_Refused":
        return kind(Refusal("value", Message("refused.raised", {"text": "planted"})))
    if kind is Unsupported:
        return kind("draws")
    if issubclass(kind, Unfit) and not issubclass(kind, Foreign):
        return kind("value", "raised", text="planted")
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    wanted = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return kind(*("value" if name == "code" else f"planted {name}" for name in wanted))


def of(kind):
    """The classes that derive from one, near and far."""
    return {kind} | {each for nearer in kind.__subclasses__() for each in of(nearer)}


SIGNALS = sorted(of(Signal) - {Signal}, key=lambda kind: (kind.__module__, kind.__name__))
HOOKS = sorted(name for name, f in vars(Hooks).items() if inspect.isfunction(f))


def outcome(call):
    try:
        return repr(call())
    except Exception as error:
        return error


@pytest.fixture
def plant(monkeypatch):
    def planted(hook, kind, at):
        original, count = getattr(Hooks, hook), [0]

        def raising(self, *args, **kwargs):
            count[0] += 1
            if count[0] == at:
                raise made(kind)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(Hooks, hook, raising)
        return count

    return planted


def behind(error):
    """The errors of a chain, as their types and texts."""
    while error is not None:
        yield f"{type(error).__module__}.{type(error).__name__}: {error}"
        error = error.__cause__ or error.__context__


def check_nothing_internal(texts):
    for text in texts:
        text = re.sub(r"\bUnsupported (function|statement|expression|call)\b", "", text)  # the contract's words
        for name in [*(kind.__name__ for kind in SIGNALS), "LeafType", "ArrayType", "Refusal", "Extent"]:
            assert not re.search(rf"\b{name}\b", text), (name, text)
        assert "Tensor object" not in text and "jitlab.capture" not in text and "jitlab.ir" not in text


@pytest.mark.long
@pytest.mark.parametrize("kind", SIGNALS, ids=lambda kind: f"{kind.__module__.split('.')[-1]}.{kind.__name__}")
@pytest.mark.parametrize("hook", HOOKS)
def test_a_signal_from_a_hook_ends_in_what_python_does(hook, kind, plant):
    x, want = np.arange(3.0), repr(program(np.arange(3.0), 2))
    plant(hook, kind, 1)
    told = []
    with events.listen(lambda event: told.append(str(getattr(event, "text", "")))):
        compiled = jl.jit(program)
        for _ in range(3):
            assert outcome(lambda: compiled(x.copy(), 2)) == want
    check_nothing_internal([*told, str(compiled.ledger)])


@pytest.mark.long
@pytest.mark.parametrize("kind", SIGNALS, ids=lambda kind: f"{kind.__module__.split('.')[-1]}.{kind.__name__}")
@pytest.mark.parametrize("hook", [name for name in HOOKS if name not in ("lookup", "loop")])
def test_a_function_gives_the_value_or_an_error_of_its_own(hook, kind, plant):
    x = np.arange(3.0)
    plant(hook, kind, 1)
    compiled = jl.function(lambda x: program(x, 2)[0])
    found = outcome(lambda: compiled(x.copy()))
    assert isinstance(found, JitlabError) or found == repr(program(x.copy(), 2)[0]), found
    check_nothing_internal(behind(found) if isinstance(found, Exception) else [])


WHOLE = {
    "fullgraph": lambda f: jl.jit(f, fullgraph=True), "bytecode": lambda f: jl.jit(f, fullgraph=True, capture_mode="bytecode"),
    "jit_compile": lambda f: jl.function(f, jit_compile=True),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", SIGNALS, ids=lambda kind: f"{kind.__module__.split('.')[-1]}.{kind.__name__}")
@pytest.mark.parametrize("hook", ["call", "item", "for_", "while_", "if_"])
@pytest.mark.parametrize("option", WHOLE)
def test_a_function_that_must_be_captured_whole_says_what_ended_it(option, hook, kind, plant):
    x = np.arange(3.0)
    plant(hook, kind, 1)
    compiled = WHOLE[option](lambda x: program(x, 2)[0])
    found = outcome(lambda: compiled(x.copy()))
    assert isinstance(found, JitlabError) or found == repr(program(x.copy(), 2)[0]), found
    check_nothing_internal([str(found).removeprefix("Unsupported function ")] if isinstance(found, Exception) else [])


def else_of_an_unrolled_loop(x):
    n = x.sum()
    for i in range(5):
        if x[i] > 0.5:
            break
    else:
        n = n + 1
    return n


def step_of_unknown_sign(x):
    k = 1
    while x[k] < 0.99 and k < 9:
        x[k::k] *= 1.1
        k = k + 1
    return k


@pytest.mark.parametrize(
    ("program", "clause"),
    [(else_of_an_unrolled_loop, "decides whether the `else` of an unrolled"), (step_of_unknown_sign, "step may be 0")],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.parametrize("mode", ["ast", "bytecode"])
def test_what_no_program_holds_is_an_error_of_fullgraph_with_its_line(mode, program, clause):
    with pytest.raises(jl.errors.UnsupportedError, match=clause) as refused:
        jl.jit(program, fullgraph=True, capture_mode=mode)(np.full(20, 0.1))
    assert "test_internal_signals.py, line " in refused.value.where


@pytest.mark.long
@pytest.mark.parametrize("kind", SIGNALS, ids=lambda kind: f"{kind.__module__.split('.')[-1]}.{kind.__name__}")
@pytest.mark.parametrize("hook", ["lookup", "call", "item", "function", "for_", "while_", "if_", "loop", "place"])
def test_a_signal_in_a_cell_leaves_what_python_leaves(hook, kind, plant):
    def left(run):
        names = {**globals(), "x": np.arange(3.0), "n": 2}
        for _ in range(2):
            run(names)
        return repr([names[key] for key in ("y", "a", "b", "items", "i")])

    want = left(lambda names: exec(CELL, names))
    plant(hook, kind, 1)
    told = []
    with events.listen(lambda event: told.append(str(getattr(event, "text", "")))):
        assert left(lambda names: run_cell(CELL, names, "<cell>")) == want
    check_nothing_internal(told)


@pytest.mark.parametrize("way", [jl.jit, jl.function])
@pytest.mark.parametrize("mistake", [AssertionError("planted"), *map(made, SIGNALS)], ids=lambda e: type(e).__name__)
def test_a_mistake_while_loops_are_made_leaves_the_call_to_python(mistake, way, monkeypatch):
    def failing(*args, **kwargs):
        raise mistake

    monkeypatch.setattr("jitlab.compile.lower", failing)
    told, x = [], np.arange(3.0)
    with events.listen(lambda event: told.append(str(getattr(event, "text", "")))):
        compiled = way(lambda x: np.sin(x) * 2)
        for _ in range(2):
            np.testing.assert_allclose(compiled(x), np.sin(x) * 2, rtol=1e-15)
    check_nothing_internal(told)


STRICT = {
    "fullgraph": lambda f: jl.jit(f, fullgraph=True),
    "fullgraph, read from bytecode": lambda f: jl.jit(f, fullgraph=True, capture_mode="bytecode"),
    "a path, fullgraph": lambda f: jl.jit(f, fullgraph=True, capture_mode="trace"),
    "jit_compile": lambda f: jl.function(f, jit_compile=True),
    "no conversion": lambda f: jl.function(f, autograph=False),
    "gradient": lambda f: jl.grad(lambda x: f(x).sum()),
    "concrete": lambda f: lambda x: jl.function(f).get_concrete_function(x)(x),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", SIGNALS, ids=lambda kind: f"{kind.__module__.split('.')[-1]}.{kind.__name__}")
@pytest.mark.parametrize("hook", [name for name in HOOKS if name not in ("lookup", "loop")])
@pytest.mark.parametrize("way", STRICT)
def test_an_error_that_is_raised_instead_has_nothing_internal_behind_it(way, hook, kind, plant):
    plant(hook, kind, 1)
    found = outcome(lambda: STRICT[way](lambda x: program(x, 2)[0])(np.arange(3.0)))
    check_nothing_internal(behind(found) if isinstance(found, Exception) else [])


@pytest.mark.long
@pytest.mark.parametrize("kind", SIGNALS, ids=lambda kind: f"{kind.__module__.split('.')[-1]}.{kind.__name__}")
@pytest.mark.parametrize("hook", ["call", "item", "for_", "while_", "if_", "place"])
def test_reports_and_the_panel_name_nothing_internal(hook, kind, plant, recwarn):
    plant(hook, kind, 1)
    with jl.record() as recording:
        jitted, traced = jl.jit(program), jl.function(lambda x: program(x, 2)[0])
        for _ in range(2):
            outcome(lambda: jitted(np.arange(3.0), 2))
            outcome(lambda: traced(np.arange(3.0)))
    report = recording.report()
    explained = str(outcome(lambda: jl.explain(jitted, np.arange(3.0), 2)))
    told = json.dumps({key: value for key, value in report.data.items() if key not in ("sources", "cells")})
    warned = [str(warning.message) for warning in recwarn]
    check_nothing_internal([str(report), explained, told, *warned, str(jitted.ledger), str(traced.ledger)])


def while_makes_other_shapes(v):
    while v.sum() > 3:
        v = v[v > 1] * 0.5
    return v


def while_makes_a_dict(n):
    v, i = {"a": np.zeros([1, 2])}, 0
    while i < n:
        v = {"a": np.zeros([1, int(i) + 2])}
        i = i + np.int64(1)
    return v["a"]


def calls_unique(x):
    for _ in range(30):
        x = np.unique(x) * 2
    return x


@pytest.mark.parametrize(
    ("program", "x"),
    [(while_makes_other_shapes, np.array([1.0, 2, 3, 8])), (while_makes_a_dict, np.int64(2)), (calls_unique, np.arange(3.0))],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.parametrize("way", [name for name in STRICT if name != "gradient"])
def test_a_loop_that_cannot_be_compiled_is_told_in_words(way, program, x):
    found = outcome(lambda: STRICT[way](program)(x))
    if isinstance(found, Exception):
        assert [type(found).__name__] == [line.split(":")[0].split(".")[-1] for line in behind(found)], list(behind(found))
        assert "read_item" not in str(found) and "line" in str(found)
        check_nothing_internal(behind(found))
    else:
        assert found == repr(program(x))


def error_in_the_air(x):
    return type(sys.exc_info()[1]).__name__


def raises_anew(x):
    x[0] = 1.0
    raise  # noqa: PLE0704 - Python says that there is nothing to raise


def fails_in_its_own_words(x):
    raise KeyError("mine")


class Own(np.ndarray):
    """Arrays that are never traced."""


WAYS = {"jit": jl.jit, "a path": lambda f: jl.jit(f, capture_mode="trace"), "function": jl.function}
ARGUMENTS = {
    "plain": lambda: np.ones(3), "a subclass": lambda: np.ones(3).view(Own), "objects": lambda: np.array([1, 2], object),
    "another byte order": lambda: np.ones(3, ">f8"), "overlapping elements": lambda: np.lib.stride_tricks.as_strided(
        np.zeros(2), (3,), (0,)),
}  # fmt: skip


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_python_runs_finds_no_error_of_ours_in_the_air(way, argument):
    make = ARGUMENTS[argument]
    for _ in range(2):
        assert WAYS[way](error_in_the_air)(make()) == "NoneType"
    for program, text in ((raises_anew, "No active exception"), (fails_in_its_own_words, "mine")):
        error = outcome(lambda program=program: WAYS[way](program)(make()))
        assert isinstance(error, (RuntimeError, KeyError)) and text in str(error), error
        assert error.__suppress_context__ or error.__context__ is None, list(behind(error))
        check_nothing_internal(behind(error))


def test_what_the_user_had_in_the_air_stays_behind_the_error():
    f = jl.jit(while_makes_other_shapes, fullgraph=True)
    try:
        try:
            raise KeyError("mine")
        except KeyError:
            f(np.array([1.0, 2, 3, 8]))
    except Exception as error:
        assert [line.split(":")[0] for line in behind(error)] == ["jitlab.errors.UnsupportedError", "builtins.KeyError"]

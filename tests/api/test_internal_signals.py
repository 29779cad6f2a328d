"""What one part of jitlab tells another by raising it, planted in every hook: the outcome is Python's, no name is shown."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import textwrap

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.capture.cells import run_cell
from jitlab.capture.hooks import Hooks
from jitlab.capture.leaves import LeafType, Mismatch
from jitlab.capture.refusals import Refusal
from jitlab.errors import JitlabError, Signal
from jitlab.ir import ArrayType

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
        return kind(*[LeafType(ArrayType((), np.dtype(name)), None, True) for name in ("f8", "i8")], "dtype")
    if kind.__name__ == "_Refused":
        return kind(Refusal("value", "planted"))
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    wanted = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return kind(*("value" if name == "code" else f"planted {name}" for name in wanted))


SIGNALS = sorted({kind for kind in Signal.__subclasses__()}, key=lambda kind: (kind.__module__, kind.__name__))
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


def check_nothing_internal(texts):
    for text in texts:
        for kind in SIGNALS:
            assert kind.__name__.strip("_") not in text, (kind, text)
        assert "Tensor object" not in text and "jitlab.capture" not in text


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
    check_nothing_internal([f"{type(found).__name__}: {found}"] if isinstance(found, Exception) else [])


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

    monkeypatch.setattr("jitlab.runtime.executable.lower", failing)
    told, x = [], np.arange(3.0)
    with events.listen(lambda event: told.append(str(getattr(event, "text", "")))):
        compiled = way(lambda x: np.sin(x) * 2)
        for _ in range(2):
            np.testing.assert_allclose(compiled(x), np.sin(x) * 2, rtol=1e-15)
    check_nothing_internal(told)

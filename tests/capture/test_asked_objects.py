"""What is asked of the user's objects is asked at each call: absent attributes, text, comparisons, `vars`, defaults."""

from __future__ import annotations

import dataclasses
import functools
import linecache
import operator
import threading
import types
from dataclasses import dataclass, field

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X = np.arange(3.0) + 1


@dataclass
class Settings:
    rate: float = 1.0
    layers: list = field(default_factory=list)


class Model:
    rate = 1.0


class Rated:
    def __init__(self):
        self.rate = 1.0

    def __eq__(self, other):
        return self.rate == getattr(other, "rate", other)

    __hash__ = None


def function():
    pass


def setting(name, value):
    return lambda held: setattr(held, name, value)


def or_else(x, held):
    try:
        return x * held.bias
    except AttributeError:
        return x


def through_a_default(x, held, factors=()):
    return x * (len(held) + len(factors))


def with_list(x, held=[]):  # noqa: B006 - this is what is tested
    return x * len(held)


def with_array(x, held=np.ones(3)):  # noqa: B008
    return x * held


def with_object(x, /, held=Settings(), *, factor=2):  # noqa: B008
    return x * held.rate * factor


def positional(x, held={}, factor=2, /):  # noqa: B006
    return x * len(held) * factor


def by_keyword(x, *, held={}):  # noqa: B006
    return x * len(held)


def scaled(held, x, factor=1.0):
    return x * len(held) * factor


#: What there is, how it becomes another, and what a program asks of it.
CASES = {
    "hasattr": (Model, setting("bias", 3.0), lambda x, held: x * hasattr(held, "bias")),
    "getattr with a default": (Model, setting("bias", 3.0), lambda x, held: x * getattr(held, "bias", 1.0)),
    "except AttributeError": (Model, setting("bias", 3.0), or_else),
    "an absent attribute of a function": (
        lambda: types.FunctionType(function.__code__, {}), setting("bias", 3.0), lambda x, held: x * getattr(held, "bias", 1),
    ),
    "an absent attribute of a thread": (threading.local, setting("bias", 3.0), lambda x, held: x * getattr(held, "bias", 1)),
    "an attribute of the object hides the class's": (Model, setting("rate", 3.0), lambda x, held: x * held.rate),
    "a dataclass: ==": (Settings, setting("rate", 2.0), lambda x, held: x * (held == Settings(2.0))),
    "a dataclass: !=": (Settings, setting("rate", 2.0), lambda x, held: x * (held != Settings(2.0))),
    "a dataclass: in": (Settings, setting("rate", 2.0), lambda x, held: x * (held in [Settings(2.0)])),
    "a dataclass: in compared lists": (Settings, setting("rate", 2.0), lambda x, held: x * ([held] == [Settings(2.0)])),
    "a dataclass: index": (Settings, setting("rate", 2.0), lambda x, held: x * [Settings(1.0), Settings(2.0)].index(held)),
    "a dataclass: f-string": (Settings, setting("rate", 2.0), lambda x, held: (x + 1, f"{held}")),
    "a dataclass: f-string of a list": (Settings, setting("rate", 2.0), lambda x, held: (x + 1, f"{[held]!r:>60}")),
    "a dataclass: %": (Settings, setting("rate", 2.0), lambda x, held: (x + 1, "%s %d" % (held, 1))),  # noqa: UP031
    "a dataclass: format": (Settings, setting("rate", 2.0), lambda x, held: (x + 1, "{} {a}".format(1, a=held))),  # noqa: UP032
    "a dataclass: str of a list": (Settings, setting("rate", 2.0), lambda x, held: (x + 1, str([held]))),
    "a dataclass: repr": (Settings, setting("rate", 2.0), lambda x, held: (x + 1, repr(held))),
    "a dataclass: asdict": (Settings, setting("rate", 2.0), lambda x, held: x * dataclasses.asdict(held)["rate"]),
    "a dataclass: replace": (Settings, setting("rate", 2.0), lambda x, held: x * dataclasses.replace(held, layers=[]).rate),
    "a class's own ==": (Rated, setting("rate", 2.0), lambda x, held: x * (held == 2.0)),
    "a class's own == in a condition": (Rated, setting("rate", 2.0), lambda x, held: x if held == 2.0 else -x),
    "a SimpleNamespace: ==": (
        lambda: types.SimpleNamespace(a=1), setting("a", 2), lambda x, held: x * (held == types.SimpleNamespace(a=2)),
    ),
    "vars": (Settings, setting("rate", 2.0), lambda x, held: x * vars(held)["rate"]),
    "vars: len": (Model, setting("bias", 2.0), lambda x, held: x * len(vars(held))),
    "dir": (Model, setting("bias", 2.0), lambda x, held: x * ("bias" in dir(held))),
    "__dict__": (Settings, setting("rate", 2.0), lambda x, held: x * held.__dict__["rate"]),
    "operator.attrgetter": (Settings, setting("rate", 2.0), lambda x, held: x * operator.attrgetter("rate")(held)),
    "operator.eq": (Settings, setting("rate", 2.0), lambda x, held: x * operator.eq(held, Settings(2.0))),
    "operator.itemgetter": (lambda: [1.0], lambda held: held.insert(0, 2.0), lambda x, held: x * operator.itemgetter(0)(held)),
    "a list that is a default": (lambda: with_list.__defaults__[0], lambda held: held.append(1), lambda x, held: with_list(x)),
    "an array that is a default": (
        lambda: with_array.__defaults__[0], lambda held: held.__iadd__(1), lambda x, held: with_array(x),
    ),
    "an object that is a default": (
        lambda: with_object.__defaults__[0], lambda held: setattr(held, "rate", held.rate + 1), lambda x, held: with_object(x),
    ),
    "a default by position alone": (
        lambda: positional.__defaults__[0], lambda held: held.update({len(held): 1}), lambda x, held: positional(x),
    ),
    "a default by keyword alone": (
        lambda: by_keyword.__kwdefaults__["held"], lambda held: held.update({len(held): 1}), lambda x, held: by_keyword(x),
    ),
    "a default that is not used": (lambda: [1], lambda held: held.append(1), with_list),
    "a list in a partial function": (lambda: functools.partial(scaled, [1]), lambda held: held.args[0].append(1),
                                     lambda x, held: held(x)),
    "a keyword of a partial function": (lambda: functools.partial(scaled, [1], factor=1.0),
                                        lambda held: held.keywords.update(factor=3.0), lambda x, held: held(x)),
}  # fmt: skip


def outcomes(call, make, change):
    held, found = make(), []
    for n in range(5):
        if n in (2, 4):
            change(held)
        found.append(repr(call(X, held)))
    return found


def as_cell(program):
    names = {"program": program}

    def call(x, held):
        names.update(x=x, held=held)
        run_cell("result = program(x, held)\nagain = result", names, "<cell>")
        return names["again"]

    return call


def without_defaults():
    for f in (with_list, positional):
        f.__defaults__[0].clear()
    by_keyword.__kwdefaults__["held"].clear()
    with_array.__defaults__[0][:] = 1
    with_object.__defaults__[0].rate = 1.0


@pytest.mark.parametrize("way", [jl.jit, as_cell], ids=["jit", "a cell"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_of_an_object_is_asked_at_each_call(case, way):
    make, change, program = CASES[case]
    without_defaults()
    wanted = outcomes(program, make, change)
    without_defaults()
    assert outcomes(way(program), make, change) == wanted


#: Methods of a class or a metaclass, and what asks for them.
SPECIAL = {
    "len": ("def __len__(self): return self.n", "len(held)"),
    "getitem": ("def __getitem__(self, k): return self.n * k", "held[2]"),
    "contains": ("def __contains__(self, k): return k == self.n", "(3 in held)"),
    "not in": ("def __contains__(self, k): return k == self.n", "(3 not in held)"),
    "bool": ("def __bool__(self): return self.n > 3", "(1 if held else 2)"),
    "iter": ("def __iter__(self): return iter([self.n])", "sum(held)"),
    "behind a star": ("def __iter__(self): return iter([self.n])", "[*held][0]"),
    "arguments behind a star": ("def __iter__(self): return iter([self.n])", "(lambda *values: values)(*held)[0]"),
    "reversed": ("def __reversed__(self): return iter([self.n])", "sum(reversed(held))"),
    "operator": ("def __add__(self, k): return self.n + k", "(held + 1)"),
    "float": ("def __float__(self): return float(self.n)", "float(held)"),
    "int": ("def __int__(self): return self.n", "int(held)"),
    "round": ("def __round__(self): return self.n", "round(held)"),
    "index": ("def __index__(self): return self.n", "range(9)[held]"),
    "index of a list": ("def __index__(self): return self.n", "[5, 6, 7, 8, 9, 1, 2][held]"),
    "slice": ("def __index__(self): return self.n", "len([5, 6, 7, 8, 9, 1, 2][held:])"),
    "index of an array": ("def __index__(self): return self.n", "np.arange(9.0)[held]"),
    "shape": ("def __index__(self): return self.n", "np.zeros(held).size"),
    "repeated list": ("def __index__(self): return self.n", "len([1] * held)"),
    "property": ("p = property(lambda self: self.n)", "held.p"),
    "method": ("def m(self): return self.n", "held.m()"),
    "call": ("def __call__(self): return self.n", "held()"),
    "str": ("def __str__(self): return 'a' * self.n", "len(str(held))"),
    "f-string": ("def __format__(self, how): return 'a' * self.n", "len(f'{held}')"),
    "==": ("def __eq__(self, k): return self.n == k\n    __hash__ = None", "(held == 4)"),
    "isinstance": ("def __instancecheck__(self, k): return self.n > 3", "isinstance(x, held)"),
    "issubclass": ("def __subclasscheck__(self, k): return self.n > 3", "issubclass(int, held)"),
}
ALONE = ("isinstance", "issubclass")


@pytest.mark.parametrize("way", [jl.jit, as_cell], ids=["jit", "a cell"])
@pytest.mark.parametrize(
    ("case", "kind"), [*((case, "metaclass") for case in SPECIAL), *((case, "class") for case in SPECIAL if case not in ALONE)]
)
def test_the_methods_by_which_an_object_or_a_class_answers_are_called_each_time(case, kind, way):
    method, use = SPECIAL[case]
    name, space = f"<methods {case} {kind}>", {"np": np}
    base = "(type)" if kind == "metaclass" else ""
    source = f"class Kind{base}:\n    {method}\ndef program(x, held):\n    return x * {use}\n"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), space)

    def make():
        return space["Kind"]("Held", (), {"n": 2}) if kind == "metaclass" else vars_of(space["Kind"]())

    def vars_of(held):
        held.n = 2
        return held

    def change(held):
        held.n += 1

    wanted = outcomes(space["program"], make, change)
    assert outcomes(way(space["program"]), make, change) == wanted
    assert len(set(wanted)) > 1


def test_a_helper_that_keeps_what_it_computed_in_a_default_is_pythons():
    def fibonacci(n, known={}):  # noqa: B006
        if n not in known:
            known[n] = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
        return known[n]

    def program(x, n):
        return x * fibonacci(n)

    compiled = jl.jit(program)
    for n in (3, 7, 7, 5, 9):
        fibonacci.__defaults__[0].clear()
        wanted = program(X, n), dict(fibonacci.__defaults__[0])
        fibonacci.__defaults__[0].clear()
        np.testing.assert_array_equal(compiled(X, n), wanted[0])
        assert fibonacci.__defaults__[0] == wanted[1]


@pytest.mark.parametrize(
    "program",
    [
        lambda x, m: x * getattr(m, "bias", 1.0),
        lambda x, m: x * m.rate if hasattr(m, "bias") else -x,
        lambda x, m: x * vars(m)["gain"],
        lambda x, m: x * m.rate if m.kind == "linear" else -x,
        lambda x, m: with_array(x) * m.rate,
    ],
)
def test_what_is_guarded_is_captured_whole(program):
    model = Model()
    model.gain, model.kind = 2.0, "linear"
    compiled = jl.jit(program)
    compiled(X, model)
    assert "in pieces" not in str(compiled.ledger)


def test_a_miss_tells_the_attribute_that_came():
    model, compiled = Model(), jl.jit(lambda x, model: x * getattr(model, "bias", 1.0))
    compiled(X, model)
    model.bias = 2.0
    compiled(X, model)
    assert "`Model.bias` was absent and is now there" in str(compiled.ledger)

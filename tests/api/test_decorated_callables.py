"""Decorated functions and methods, callable objects, look-ups by a value of an array: each way runs them as Python does."""

from __future__ import annotations

import contextlib
import functools
import linecache

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

LOG = []


def plain(f):
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)

    return wrapper


def wrapped(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        LOG.append(f.__name__)
        return f(*args, **kwargs) + 1

    return wrapper


def times(k):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*a, **named):
            return k * f(*a, **named)

        return wrapper

    return decorate


class Counting:
    """A decorator that is a class."""

    def __init__(self, f):
        self.f, self.calls = f, 0
        functools.update_wrapper(self, f)

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.f(*args, **kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


@contextlib.contextmanager
def scope(n):
    LOG.append(("in", n))
    try:
        yield n * 2
    finally:
        LOG.append(("out", n))


@functools.cache
def table(n):
    LOG.append(("table", n))
    return np.arange(float(n))


@functools.cache
def constant(n):
    return n * 2.5


def with_extra(cls):
    cls.extra = 3.0
    return cls


@with_extra
class Model:
    k = 2.0

    def __init__(self, w=3.0):
        self.w = w

    def f(self, x):
        return x * self.w

    @plain
    def g(self, x, *, by=2.0):
        return x * by + self.w

    @wrapped
    def h(self, x):
        return x - self.w

    @staticmethod
    @wrapped
    def static(x):
        return x * 5

    @classmethod
    def of_class(cls, x):
        return x * cls.k

    @property
    def twice(self):
        return self.w * 2

    @functools.cached_property  # noqa: TID251 - as the user writes it
    def row(self):
        return np.full(3, self.w)

    @times(3.0)
    def tripled(self, x):
        return x + self.w

    by_seven = functools.partialmethod(g, by=7.0)

    @Counting
    def counted(self, x):
        return x + self.w

    @functools.singledispatchmethod
    def kind(self, x):
        return x * 1

    @kind.register
    def _(self, x: np.ndarray):
        return x * self.w

    @functools.lru_cache  # noqa: B019 - what a user may write
    def cached(self, n):
        return n * self.w

    def __call__(self, x):
        return x + 100

    def __matmul__(self, x):
        return x * 9

    def __getitem__(self, i):
        return self.w * i

    def __len__(self):
        return 4

    def __contains__(self, item):
        return item == 3


@plain
def three(x):
    return x * 3


@Counting
def six(x):
    return x + 6


@functools.singledispatch
def kind_of(x):
    return x


@kind_of.register
def _(x: np.ndarray):
    return x * 12


@kind_of.register
def _(x: np.float64):
    return x * 13


MODEL = Model()
NAMES = {0: "zero", 1: "one", 2: "two"}
ROWS = {1.0: np.ones(3), 2.0: np.zeros(3)}
FUNCTIONS = {"a": np.sin, "b": three}
partly = functools.partial(lambda a, b: a - b, 3.0)

#: Expressions of x that each way gives.
EVERYWHERE = [
    "Model().f(x)", "Model(2.0).g(x)", "MODEL.h(x)", "MODEL.static(x) + Model.static(x)",
    "Model.of_class(x) + MODEL.of_class(x)", "x * MODEL.twice", "x * MODEL.row", "MODEL.tripled(x)", "MODEL.by_seven(x)",
    "MODEL.counted(x)", "MODEL.kind(x)",
    "MODEL.cached(2.0) * x", "MODEL(x)", "MODEL @ x", "MODEL[2] * x + len(MODEL) + (3 in MODEL)",
    "three(x) + wrapped(three)(x)", "six(x)", "kind_of(x)", "kind_of(x[1])", "partly(x)", "x + table(3)", "x * constant(4)",
    "Model.extra * x",
    "FUNCTIONS['a'](x) + FUNCTIONS['b'](x)", "[NAMES[i] for i in (0, 1, 2)], x + 1", "Model.f(MODEL, x)",
    "getattr(MODEL, 'f')(x) + getattr(MODEL, 'absent', 1.0)", "(lambda *a, **k: three(*a, **k))(x)",
    "functools.reduce(lambda a, b: a + b, [x, x * 2, x * 3])", "sum(map(lambda v: v * 2, [x, x]))", "NAMES[len(x) - 1]",
    "NAMES[x.shape[0] - 2]", "[Model(w).f(x) for w in (1.0, 2.0)]", "x * (x.__class__ is np.ndarray)",
]  # fmt: skip

#: A recording of jl.function holds no values: there these are errors that say so.
BY_VALUE = [
    "NAMES[int(x[0])]", "NAMES[x[0]]", "ROWS[x[1]] + x", "ROWS[float(x[1])] * x", "FUNCTIONS['ab'[int(x[1])]](x)",
    "NAMES.get(int(x[2]), '?')", "NAMES.get(x[2], '?')", "x[1] in NAMES", "x[1] in {1.0, 2.0}", "NAMES[x.argmax()]",
    "{x[1]: 1}[1.0]", "len({x[0], x[1], x[0]})", "constant(x[1])", "table(int(x[2]))",
]  # fmt: skip


def with_a_scope(x):
    with scope(3) as k:
        y = x * k
    return y + 1


def in_a_try(x):
    try:
        return NAMES[x[2] + 7]
    except KeyError as error:
        return "missing", str(error.args)


def matched(x):
    match x.sum():
        case float():
            return x + 1
        case _:
            return x - 1


def program(text):
    """A function whose source can be read."""
    name, source = f"<{text}>", f"def made_here(x):\n    return ({text})\n"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), globals())
    return globals().pop("made_here")


def run(function):
    for cached in (table, constant, Model.cached):
        cached.cache_clear()
    LOG.clear()
    six.calls = Model.__dict__["counted"].calls = 0
    MODEL.__dict__.pop("row", None)
    found = []
    for _ in range(3):
        try:
            found.append(repr(function(np.array([0.0, 1.0, 2.0]))))
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found, list(LOG), six.calls, Model.__dict__["counted"].calls


def as_cell(text):
    def run_it(x):
        names = {**globals(), "x": x}
        run_cell(f"result = ({text})", names, "<cell>")
        return names["result"]

    return run_it


WAYS = {"jit": jl.jit, "bytecode": lambda f: jl.jit(f, capture_mode="bytecode")}


@pytest.mark.parametrize("text", [*EVERYWHERE, *BY_VALUE])
@pytest.mark.parametrize("way", ["jit", "cell"])
def test_an_expression_gives_what_python_gives(way, text):
    want = run(program(text))
    assert run(as_cell(text) if way == "cell" else jl.jit(program(text))) == want


@pytest.mark.parametrize("function", [with_a_scope, in_a_try, matched])
@pytest.mark.parametrize("way", WAYS)
def test_a_function_gives_what_python_gives(way, function):
    assert run(WAYS[way](function)) == run(function)


@pytest.mark.parametrize("text", EVERYWHERE)
def test_a_recording_gives_the_same_value(text):
    assert run(jl.function(program(text)))[0] == run(program(text))[0]


@pytest.mark.parametrize("text", BY_VALUE)
def test_a_recording_never_finds_by_identity_what_python_finds_by_value(text):
    found = run(jl.function(program(text)))[0]
    assert all(isinstance(one, tuple) and one[0] == "ValueOfTracedArrayError" for one in found), found


def test_a_pattern_of_a_class_says_that_a_recording_has_no_value():
    with pytest.raises(jl.errors.ValueOfTracedArrayError, match="a pattern of `match`"):
        jl.function(matched)(np.ones(3))

"""A function that a call in pieces calls, and that cannot be traced whole, is cut like the outermost one, at any depth."""

import inspect
import linecache
import sys
import threading
import traceback
import warnings

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.capture import effort
from tests.cell_runs import CellResult, run_cell

#: Modules with a function `f(x, log)`.
PROGRAMS = {
    "a print in a helper": """
def helper(v):
    w = np.tanh(v) * 2
    print(w.shape)
    return np.exp(w) + v

def f(x, log):
    y = np.sin(x) + 1
    return helper(y) * 2
""",
    "three deep": """
def inner(v, log):
    w = np.tanh(v) * 2
    log.__iadd__([len(w)])
    return np.exp(w) + v

def middle(v, log):
    w = inner(v * 2, log) + 1
    return w * np.sqrt(np.abs(w))

def f(x, log):
    y = np.sin(x) + 1
    z = middle(y, log)
    return z + y
""",
    "called twice in a statement": """
def helper(v, log, by=2):
    w = np.tanh(v) * by
    log.append(by)
    return np.exp(w) + v

def f(x, log):
    return helper(x, log) - helper(x + 1, log, by=3) * helper(x, log, by=np.float64(4))
""",
    "in a loop": """
def helper(v, log):
    w = np.tanh(v) * 2
    log.append(round(float(w[0]), 9))
    return np.exp(w) * 0.1

def f(x, log):
    for i in range(5):
        x = helper(x, log) + i
    return x
""",
    "a method": """
class Model:
    def __init__(self, n):
        self.w, self.calls = np.arange(n) * 0.5, 0

    def layer(self, v):
        self.calls += 1
        return np.tanh(v * self.w)

    def run(self, v):
        return self.layer(self.layer(v) + 1) * 2

model = Model(3)

def f(x, log):
    y = model.run(x[:3]) + 1
    log.append(model.calls)
    return y
""",
    "super": """
class Base:
    def step(self, v, log):
        log.append("base")
        return np.cos(v) + 1

class Model(Base):
    def step(self, v, log):
        log.append("model")
        return super().step(v * 2, log) * 3

model = Model()

def f(x, log):
    return model.step(x, log) + np.exp(x)
""",
    "class and static methods": """
class Model:
    scale = 3.0

    @classmethod
    def one(cls, v, log):
        log.append(cls.__name__)
        return np.tanh(v) * cls.scale

    @staticmethod
    def two(v, log):
        log.append("two")
        return np.exp(v) / 2

def f(x, log):
    return Model.one(x, log) + Model.two(x, log) + Model().one(x, log)
""",
    "recursion": """
def halves(v, log):
    log.append(len(v))
    if len(v) < 2:
        return np.tanh(v).sum()
    m = len(v) // 2
    return halves(v[:m], log) + halves(v[m:], log) * 2

def f(x, log):
    return halves(x, log) * 3 + np.sin(x)
""",
    "mutual recursion": """
def even(v, n, log):
    log.append("even")
    return np.tanh(v) if n == 0 else odd(v + 1, n - 1, log) * 2

def odd(v, n, log):
    log.append("odd")
    return np.sin(v) if n == 0 else even(v * 2, n - 1, log) + 1

def f(x, log):
    return even(x, 5, log)
""",
    "deep recursion": """
def down(v, n, log):
    if n == 0:
        log.append("bottom")
        return v * 2
    return down(v, n - 1, log) + 1

def f(x, log):
    return down(x, 400, log)
""",
    "a generator": """
def parts(v, log):
    for i in range(3):
        log.append(i)
        yield np.tanh(v) * i

def total(v, log):
    s = 0
    for part in parts(v, log):
        s = s + part
    return s

def f(x, log):
    return total(x, log) + sum(parts(x, log))
""",
    "locals": """
def helper(v, log):
    w = v * 2
    log.append(sorted(locals()))
    return w

def f(x, log):
    return helper(x, log) + np.exp(x)
""",
    "arguments that it changes": """
def helper(v, log):
    v += 1
    log.append(v.sum())
    v[0] = 7
    return v

def f(x, log):
    y = helper(x, log)
    y[1] = 3
    return y is x, x * 2
""",
    "views": """
def helper(v, log):
    w = v[::2]
    log.append(len(w))
    w += 1
    return w

def f(x, log):
    w = helper(x, log)
    w[0] = 5
    return w.base is x, round(float(x.sum()), 9), np.exp(x)
""",
    "it raises": """
def helper(v, log):
    w = np.tanh(v) * 2
    log.append("in")
    if w.sum() > 1:
        raise ValueError("too much")
    return w

def f(x, log):
    y = x + 1
    return helper(y, log) * 2
""",
    "it raises, and is caught": """
def helper(v, log):
    log.append("in")
    return v[7] + np.exp(v)

def f(x, log):
    try:
        y = helper(x, log)
    except IndexError as error:
        raise KeyError("none") from error
    return y
""",
    "it raises in a handler": """
def helper(v, log):
    log.append("in")
    return v / 0 if len(log) > 99 else {}["a"]

def f(x, log):
    try:
        y = x[9]
    except IndexError:
        y = helper(x, log)
    return y
""",
    "order of evaluation": """
state = [1.0]

def first(v):
    print("first")
    state[0] = 5.0
    return np.exp(v)

def second(v):
    print("second")
    return v * state[0]

def f(x, log):
    state[0] = 1.0
    return (x * state[0]).sum() + first(x) + second(x)
""",
    "another function under the name": """
def one(v):
    print("one")
    return np.exp(v)

def two(v):
    print("two")
    return np.sin(v)

helper = one

def f(x, log):
    global helper
    y = helper(x) + 1
    helper = two if helper is one else one
    return y
""",
    "what is told of the function": """
def helper(v, log):
    helper.calls = getattr(helper, "calls", 0) + 1
    log.append((helper.__name__, helper.calls))
    return np.exp(v)

def f(x, log):
    y = helper(x, log)
    log.append(helper.calls)
    return y
""",
    "defaults that it changes": """
def helper(v, seen=[]):
    seen.append(len(v))
    print(seen)
    return np.exp(v) * len(seen)

def f(x, log):
    y = helper(x) + helper(x)
    helper.__defaults__ = ([],)
    return y + helper(x)
""",
    "stars": """
def helper(*args, **options):
    print(len(args), sorted(options))
    return np.exp(args[0]) + options.get("by", 2)

def f(x, log):
    more = {"by": 3.0}
    return helper(x) + helper(*[x, x], **more) + helper(x, by=1.0, other=2)
""",
    "in a comprehension": """
def helper(v, i, log):
    log.append(i)
    return np.tanh(v) * i

def f(x, log):
    parts = [helper(x, i, log) for i in range(4)]
    later = (helper(x, i, log) for i in range(2))
    chosen = sorted([2, 1], key=lambda i: helper(x, i, log)[0])
    return sum(parts) + sum(later), chosen
""",
    "as an argument": """
def helper(v, log):
    log.append("in")
    return np.tanh(v)

def apply(function, v, log):
    print(function.__name__)
    return function(v, log) * 2

def f(x, log):
    return apply(helper, x, log) + list(map(helper, [x], [log]))[0]
""",
    "on several lines": """
class Chain:
    def __init__(self, v):
        self.v = v

    def then(self, by, log):
        log.append(by)
        if by > 5:
            raise ValueError(by)
        return Chain(np.tanh(self.v) * by)

def f(x, log):
    made = (
        Chain(x)
        .then(2, log)
        .then(
            7 if x[0] > 0.5 else 3, log
        )
    )
    return made.v
""",
    "a global that both write": """
count = 0

def helper(v):
    global count
    count += 1
    return np.exp(v) * count

def f(x, log):
    global count
    y = helper(x)
    count = 10
    z = helper(x)
    log.append(count)
    count = 0
    return y + z
""",
    "no arrays at all": """
def helper(text, log):
    log.append(text)
    return text.upper()

def f(x, log):
    return helper("a", log) + helper("b", log), np.exp(x)
""",
    "a decorated one": """
import functools

def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        print("before")
        return function(*args)
    return wrapper

@traced
def helper(v, log):
    log.append("in")
    return np.tanh(v)

def f(x, log):
    return helper(x, log) + 1
""",
}  # fmt: skip


def made(text):
    """The module of a text, with its source."""
    text = "import numpy as np\n" + text
    name = f"<helpers {len(linecache.cache)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    names = {"__name__": "helpers"}
    exec(compile(text, name, "exec"), names)
    return names


def outcome(call, x, capsys):
    x, log = x.copy(), []
    try:
        result = repr(call(x, log))
    except Exception as error:
        result = told(error)
    return result, repr(x), log, capsys.readouterr().out


def told(error):
    """An error, the lines of the program in its traceback, and the errors behind it."""
    lines = [(e.name, e.lineno) for e in traceback.extract_tb(error.__traceback__) if e.filename.startswith("<helpers")]
    behind = [None if e is None else told(e) for e in (error.__cause__, error.__context__)]
    return type(error), str(error).split("\n")[0], lines, behind, error.__suppress_context__


class InCell(CellResult):
    """A cell whose helpers run in pieces of their own, as in a notebook."""

    def helper(self, function):
        return jl.jit(function)


def as_cell(f):
    names = {"f": f}

    def call(x, log):
        names.update(x=x, log=log)
        run_cell("result = f(x, log)\nagain = result", names, "<cell>", result=InCell())
        return names["again"]

    return call


@pytest.mark.parametrize("settle", ["off", "model", "measure"])
@pytest.mark.parametrize("way", [jl.jit, as_cell], ids=["jit", "cell"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_call_is_pythons(name, way, settle, monkeypatch, capsys):
    monkeypatch.setattr(jl.config, "settle", settle)
    plain, call = made(PROGRAMS[name])["f"], way(made(PROGRAMS[name])["f"])
    for n in (3, 3, 4, 3, 1, 3, 3, 4, 3, 3):
        x = np.linspace(0, 1, n)
        assert outcome(call, x, capsys) == outcome(plain, x, capsys)


def reasons(f, *args):
    """Why Python ran statements of a call, and the functions of which something was captured."""
    heard = []
    with events.listen(heard.append):
        f(*args)
    said = [event for event in heard if event.kind == "statement-ran"]
    return [(event.reason, event.lines[0][1]) for event in said], [e.function for e in heard if e.kind == "traced"]


def test_the_pieces_of_each_helper_are_compiled(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    f = jl.jit(made(PROGRAMS["three deep"])["f"])
    ran, traced = reasons(f, np.ones(3), [])
    assert set(map(str, traced)) == {"inner", "middle", "f"}
    assert ran == [("effect", 5), ("compiled_function", 9), ("compiled_function", 14)]
    ran, traced = reasons(f, np.ones(3), [])
    assert traced == [] and [reason for reason, _ in ran] == ["effect", "compiled_function", "compiled_function"]
    text = str(f.ledger)
    assert "  calls middle: 2 traces" in text and "    calls inner: 2 traces" in text


def test_what_a_report_lists_is_what_python_runs(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    f = jl.jit(made(PROGRAMS["three deep"])["f"])
    f(np.ones(3), [])
    report = jl.explain(f, np.ones(3), [])
    assert [statement.lines for statement in report.statements] == [(5,)]
    assert sum(len(cluster.ops) for cluster in report.clusters) == 12


def test_a_helper_of_which_nothing_is_compiled_is_pythons(monkeypatch):
    """Its caller is, too, where nothing else is compiled in it."""
    monkeypatch.setattr(jl.config, "settle", "model")
    names = made("def helper(v, log):\n    log.append(len(log))\n\ndef f(x, log):\n    helper(x, log)\n    helper(x, log)\n")
    f = jl.jit(names["f"])
    for _ in range(30):
        log = []
        f(np.ones(3), log)
        assert log == [0, 1]
    assert str(f.ledger).count("runs as Python: nothing in it can be compiled") == 2  # and of its helper


def test_a_caller_stays_in_pieces_for_what_its_helper_compiles(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "model")
    text = "def helper(v, log):\n    log.__iadd__([1])\n" + "    v = np.tanh(v @ v) * 2\n" * 20 + "    return v\n"
    f = jl.jit(made(text + "def f(x, log):\n    return helper(x, log)\n")["f"])
    x = np.full((60, 60), 0.1)
    for _ in range(20):
        f(x, [])
    assert "runs as Python" not in str(f.ledger)
    heard = []
    with events.listen(heard.append):
        f(x, [])
    assert [str(event.function) for event in heard if event.kind == "function-called"] == ["helper"]


@pytest.mark.parametrize("line", ["warnings.warn('old', stacklevel=2)", "log.append(sys._getframe(1).f_lineno)"])
def test_a_helper_that_looks_at_its_caller_finds_it(line, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    text = f"import sys, warnings\ndef helper(v, log):\n    {line}\n    return np.exp(v)\n\n"
    text += "def f(x, log):\n    y = np.sin(x)\n    return helper(y, log)\n"
    found = []
    for call in (made(text)["f"], jl.jit(made(text)["f"])):
        log = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                call(np.ones(3), log)
        found.append((log, [(w.filename[:8], w.lineno) for w in caught]))
    assert found[0] == found[1] and found[0] != ([], [])


def test_a_function_that_is_made_anew_is_pythons(monkeypatch):
    """What was made for it would never serve again."""
    monkeypatch.setattr(jl.config, "settle", "off")
    text = "def f(x, log):\n    def helper(v):\n        log.append(1)\n        return np.exp(v)\n    return helper(x) + 1\n"
    f, log = jl.jit(made(text)["f"]), []
    for _ in range(3):
        np.testing.assert_allclose(f(np.zeros(2), log), [2, 2])
    assert len(log) == 3 and "calls helper" not in str(f.ledger)


def test_a_helper_has_the_level_of_its_caller(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    text = "def helper(v, log):\n    log.append(1)\n    return np.exp(v) * 2 + 1\n\n"
    f = jl.jit(made(text + "def f(x, log):\n    return helper(x, log)\n")["f"], jit_level="O0")
    report = jl.explain(f, np.ones(3), [])
    assert [len(cluster.kernels) for cluster in report.clusters] == [3]


def test_all_helpers_of_a_call_have_one_budget(monkeypatch):
    """A first call does not take a second for each function that it calls."""
    monkeypatch.setattr(jl.config, "settle", "model")
    monkeypatch.setattr(effort, "MOST_NS", 20_000_000)
    text = "".join(
        f"def helper{n}(v, log):\n    log.append({n})\n" + "    v = np.tanh(v) + 1\n" * 8 + "    return v\n\n" for n in range(9)
    )
    calls = "".join(f"    x = helper{n}(x, log[0])\n    print()\n" for n in range(9))
    names = made(text + "def f(x, log):\n" + calls + "    return x\n")
    f, log = jl.jit(names["f"]), [[]]
    _, traced = reasons(f, np.ones(3), log)
    assert 0 < len(set(map(str, traced))) < 9 and log == [list(range(9))]


def test_a_helper_in_a_loop_of_python_s_stays_compiled(monkeypatch):
    """A function that is written again with its pieces calls it no longer as it is."""
    monkeypatch.setattr(jl.config, "settle", "model")
    text = "def helper(v, log):\n    log.append(1)\n" + "    v = np.tanh(v @ v) * 2\n" * 20 + "    return v\n\n"
    text += "def f(x, log):\n    x = np.exp(x @ x) / 9\n    print(end='')\n"
    text += "    for part in log[0]:\n        x = helper(x, part)\n"
    f, heard = jl.jit(made(text + "    return x\n")["f"]), []
    for _ in range(30):
        f(np.full((60, 60), 0.01), [[[], []]])
    with events.listen(heard.append):
        f(np.full((60, 60), 0.01), [[[], []]])
    assert [str(event.function) for event in heard if event.kind == "function-called"].count("helper") == 2


def test_threads_share_a_helper(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    names = made(PROGRAMS["three deep"])
    f, wrong = jl.jit(names["f"]), []
    expected = {n: made(PROGRAMS["three deep"])["f"](np.ones(n), []) for n in (2, 3)}

    def calls(n):
        for _ in range(30):
            log = []
            if not np.allclose(f(np.ones(n), log), expected[n]) or log != [n]:
                wrong.append(log)

    threads = [threading.Thread(target=calls, args=(n,)) for n in (2, 3, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_recursion_as_deep_as_python_allows_is(monkeypatch):
    """Of functions that call themselves only the outermost call is in pieces."""
    monkeypatch.setattr(jl.config, "settle", "off")
    text = "def down(v, n, log):\n    log.append(n)\n    return down(v, n - 1, log) + 1 if n else v\n\n"
    f = jl.jit(made(text + "def f(x, n, log):\n    return down(x, n, log)\n")["f"])
    depth = sys.getrecursionlimit() - len(inspect.stack()) - 150
    for _ in range(4):
        assert f(np.ones(1), depth, [])[0] == depth + 1

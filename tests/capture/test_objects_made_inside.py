"""An object that a call makes for itself is structure of what is captured: its class and code are guarded, and no two calls
differ by it. Where it leaves the call, or Python would ask it unseen, the call goes in pieces."""

import linecache
import traceback

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import CellResult, run_cell

LINE = """
class Line:
    scale = 2.0
    made = 0

    def __init__(self, a, by=1.0):
        self.a = np.diff(a)
        self.by = by
        self.parts = [a, a * 2]

    def at(self, t):
        return self.a * t * self.scale + self.by

    @property
    def total(self):
        return self.a.sum() + self.parts[1][0]

    @classmethod
    def through(cls, a):
        return cls(a, by=3.0)

    @staticmethod
    def twice(v):
        return v * 2

    def moved(self, by):
        self.a += by
        self.by = self.by + by
        return self
"""

#: `f(x)`: the text of a module.
PROGRAMS = {
    "a method": LINE + "def f(x):\n    sp = Line(x)\n    return sp.at(0.5).sum() + sp.by\n",
    "a property": LINE + "def f(x):\n    return Line(x, 4.0).total * 2\n",
    "class and static methods": LINE + (
        "def f(x):\n    sp = Line.through(x)\n    return sp.twice(sp.a) + Line.twice(x[1:]) + sp.by\n"
    ),
    "changed": LINE + (
        "def f(x):\n    sp = Line(x)\n    sp.moved(2).moved(x[0])\n    sp.extra = sp.a * 2\n"
        "    return sp.extra, sp.by\n"
    ),
    "two of a class": LINE + (
        "def f(x):\n    p, q = Line(x), Line(x * 2, 5)\n    r = p\n    r.a = q.a\n"
        "    return p.a, p is r, p is q, p == q, p != r\n"
    ),
    "views": LINE + "def f(x):\n    sp = Line(x)\n    sp.parts[0][0] = 7\n    return x * 2, sp.parts[1], sp.parts[0] is x\n",
    "in a loop": LINE + (
        "def f(x):\n    s = 0.0\n    for k in range(6):\n        sp = Line(x * k, k)\n"
        "        s = s + sp.at(k).sum()\n    return s\n"
    ),
    "in a long loop": LINE + (
        "def f(x):\n    s = 0.0\n    for k in range(300):\n        sp = Line(x * k)\n        s = s + sp.a[0]\n"
        "    return s\n"
    ),
    "across a loop": LINE + (
        "def f(x):\n    sp = Line(x)\n    for k in range(40):\n        sp.by = sp.by + k * 0.5\n"
        "        sp.a = sp.a * 0.5\n    return sp.by, sp.a\n"
    ),
    "in a list": LINE + (
        "def f(x):\n    lines = [Line(x * k) for k in range(3)]\n    lines.append(Line(x))\n"
        "    return sum(l.at(1.0).sum() for l in lines), len(lines)\n"
    ),
    "a traced branch": LINE + "def f(x):\n    sp = Line(x)\n    if x.sum() > 2:\n        sp.by = 9.0\n    return sp.by, sp.a\n",
    "made in a branch": LINE + (
        "def f(x):\n    if x.sum() > 2:\n        y = Line(x).a\n    else:\n        y = Line(x * 2).at(1)\n"
        "    return y + 1\n"
    ),
    "it is given back": LINE + (
        "def f(x):\n    sp = Line(x)\n    sp.n = 3\n    return sp.__dict__ if sp.n > 4 else [sp.at(1.0), sp]\n"
    ),
    "its method is given back": LINE + "def f(x):\n    sp = Line(x)\n    return sp.at\n",
    "its dict": LINE + "def f(x):\n    return vars(Line(x))\n",
    "kept outside": LINE + (
        "kept = []\ndef f(x):\n    sp = Line(x)\n    kept.append(sp)\n    return sp.at(1.0), len(kept), kept[0].a\n"
    ),
    "kept by its class": LINE + "def f(x):\n    sp = Line(x)\n    Line.made += 1\n    return sp.at(1.0), Line.made, sp.made\n",
    "inherited": LINE + (
        "class Base:\n    def __init__(self, n):\n        self.n = n\n"
        "    def run(self, v):\n        return v * self.n + self.more()\n"
        "class Own(Base):\n    def __init__(self, n):\n        super().__init__(n)\n        self.m = n + 1\n"
        "    def more(self):\n        return self.m\n"
        "def f(x):\n    return Own(3).run(x), isinstance(Own(1), Base), type(Own(2)).__name__\n"
    ),
    "no such attribute": LINE + (
        "def f(x):\n    sp = Line(x)\n    return hasattr(sp, 'tangent'), getattr(sp, 'tangent', 5.0) * x\n"
    ),
    "an error in it": (
        "class Bad:\n    def __init__(self, a):\n        self.a = a[5] * 2\ndef f(x):\n    y = x + 1\n"
        "    return Bad(y).a\n"
    ),
    "an error in it is caught": (
        "class Bad:\n    def __init__(self, a):\n        self.a = a[5] * 2\n"
        "def f(x):\n    try:\n        return Bad(x).a\n    except IndexError as e:\n        return str(e)\n"
    ),
    "arguments that do not fit": LINE + "def f(x):\n    return Line(x, 1, 2, 3)\n",
    "init that returns": "class Bad:\n    def __init__(self, a):\n        return 5\ndef f(x):\n    return Bad(x), x\n",
    "slots": (
        "class P:\n    __slots__ = ('a', 'b')\n    def __init__(self, a):\n        self.a, self.b = a, a * 2\n"
        "def f(x):\n    p = P(x)\n    p.a = p.a + p.b\n    return p.a * 3\n"
    ),
    "a print in it": LINE + (
        "class Loud(Line):\n    def __init__(self, a):\n        print('made', len(a))\n        super().__init__(a)\n"
        "def f(x):\n    return Loud(x).at(1.0)\n"
    ),
    "operators": (
        "class V:\n    def __init__(self, a):\n        self.a = a\n    def __add__(self, o):\n        print('add')\n"
        "        return V(self.a + o.a)\ndef f(x):\n    return (V(x) + V(x * 2)).a\n"
    ),
    "equality": (
        "class V:\n    def __init__(self, a):\n        self.a = a\n    def __eq__(self, o):\n        print('eq')\n"
        "        return True\ndef f(x):\n    return V(x) == V(x * 2), x\n"
    ),
    "truth": (
        "class V:\n    def __init__(self, a):\n        self.a = a\n    def __len__(self):\n        print('len')\n"
        "        return 0\ndef f(x):\n    return (1 if V(x) else 2) * x\n"
    ),
    "it is called": (
        "class V:\n    def __init__(self, a):\n        self.a = a\n    def __call__(self, v):\n"
        "        return v * self.a\ndef f(x):\n    return V(x)(x + 1) + V(2)(x)\n"
    ),
    "made-up attributes": (
        "class V:\n    def __init__(self, a):\n        self.a = a\n    def __getattr__(self, name):\n"
        "        return len(name) * 3.0\ndef f(x):\n    return V(x).a + V(x).other\n"
    ),
    "own stores": (
        "class V:\n    def __init__(self, a):\n        self.a = a\n    def __setattr__(self, name, value):\n"
        "        print(name)\n        object.__setattr__(self, name, value)\ndef f(x):\n    return V(x).a * 2\n"
    ),
    "a cached property": (
        "import functools\nclass V:\n    def __init__(self, a):\n        self.a = a\n    @functools.cached_property\n"
        "    def total(self):\n        print('total')\n        return self.a.sum()\ndef f(x):\n    v = V(x)\n"
        "    return v.total + v.total\n"
    ),
    "a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass V:\n    a: object\n    b: float = 2.0\ndef f(x):\n"
        "    v = V(x)\n    return v.a * v.b, v == V(x, 3.0) if len(x) == 1 else v.b\n"
    ),
    "a key": LINE + (
        "def f(x):\n    p, q = Line(x), Line(x)\n    d = {p: 1, q: 2}\n"
        "    return d[q] * p.a, p in d, len({p, q, p})\n"
    ),
    "text": LINE + "def f(x):\n    return len(str(Line(x))) > 0, x * 2\n",
    "to a library": LINE + (
        "import copy\ndef f(x):\n    p = Line(x)\n    q = copy.copy(p)\n    q.by = 8.0\n"
        "    return p.by, q.by, q.a * 2\n"
    ),
    "a generator of numbers": (
        "class V:\n    def __init__(self, n):\n        self.r = np.random.RandomState(n)\n    def draw(self, k):\n"
        "        return self.r.random(k)\ndef f(x):\n    v = V(3)\n    return v.draw(2) + x[:2].sum(), v.draw(2)\n"
    ),
    "a class made inside": (
        "def f(x):\n    class V:\n        def __init__(self, a):\n            self.a = a * 2\n    return V(x).a + 1\n"
    ),
    "a counter of its class": (
        "class V:\n    count = 0\n    def __init__(self, a):\n        V.count += 1\n        self.a = a * V.count\n"
        "def f(x):\n    return V(x).a + V(x).a\n"
    ),
}  # fmt: skip


def made(text):
    text = "import numpy as np\n" + text
    name = f"<objects {len(linecache.cache)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    names = {"__name__": "objects"}
    exec(compile(text, name, "exec"), names)
    return names


def shown(x):
    """What a result is, objects by their classes and what they hold."""
    if isinstance(x, (list, tuple)):
        return [shown(item) for item in x]
    if isinstance(x, dict):
        return {key: shown(item) for key, item in x.items()}
    if isinstance(x, (np.ndarray, np.generic, float)):
        return type(x).__name__, np.round(x, 9).tolist()
    if hasattr(x, "__self__"):
        return x.__name__, shown(x.__self__)
    return (type(x).__name__, shown(vars(x))) if hasattr(x, "__dict__") else repr(x)


def outcome(call, x, capsys):
    x = x.copy()
    try:
        result = shown(call(x))
    except Exception as error:
        lines = [e.lineno for e in traceback.extract_tb(error.__traceback__) if e.filename.startswith("<objects")]
        result = type(error), str(error).split("\n")[0], lines
    return result, shown(x), capsys.readouterr().out


def as_cell(f):
    names = {"f": f}

    def call(x):
        names.update(x=x)
        run_cell("result = f(x)\nagain = result", names, "<cell>", result=CellResult())
        return names["again"]

    return call


@pytest.mark.parametrize("settle", ["off", "model", "measure"])
@pytest.mark.parametrize("way", [jl.jit, as_cell], ids=["jit", "cell"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_call_is_pythons(name, way, settle, monkeypatch, capsys):
    monkeypatch.setattr(jl.config, "settle", settle)
    plain, call = made(PROGRAMS[name])["f"], way(made(PROGRAMS[name])["f"])
    for n in (3, 3, 4, 3, 6, 3, 3, 4, 3, 3):
        x = np.linspace(0, 1.5, n)
        assert outcome(call, x, capsys) == outcome(plain, x, capsys)


WHOLE = ["a method", "a property", "class and static methods", "changed", "two of a class", "in a list", "inherited", "slots",
         "no such attribute", "made in a branch", "in a loop"]  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_call_is_captured_whole_once(name, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    f = jl.jit(made(PROGRAMS[name])["f"], fullgraph=True)
    for _ in range(4):
        f(np.linspace(0, 1.5, 5))
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "what",
    [
        "Line.scale = 5.0",
        "Line.at = lambda self, t: self.a - t",
        "Line.__init__ = lambda self, a: setattr(self, 'a', a) or setattr(self, 'by', 7.0)",
        "Line.a = property(lambda self: 3.0, lambda self, v: None)",
        "Line.by = 8.0",
        "Line.__getattribute__ = lambda self, name: 2.0 if name == 'by' else object.__getattribute__(self, name)",
        "Line = type('Line', (Line,), {'at': lambda self, t: self.a * 0})",
    ],
)
def test_another_class_or_code_is_another_trace(what, monkeypatch, capsys):
    monkeypatch.setattr(jl.config, "settle", "off")
    mine, theirs = made(PROGRAMS["a method"]), made(PROGRAMS["a method"])
    call, x = jl.jit(mine["f"]), np.linspace(0, 1.5, 4)
    for _ in range(20):
        assert outcome(call, x, capsys) == outcome(theirs["f"], x, capsys)
    exec(what, mine)
    exec(what, theirs)
    for _ in range(12):
        assert outcome(call, x, capsys) == outcome(theirs["f"], x, capsys)


def test_each_call_gives_an_object_of_its_own(monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    call = jl.jit(made(PROGRAMS["it is given back"])["f"])
    found = [call(np.arange(4.0))[1] for _ in range(4)]
    assert len(set(map(id, found))) == 4 and all(type(sp.a) is np.ndarray for sp in found)

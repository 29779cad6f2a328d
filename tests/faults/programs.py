"""Functions that nobody has called before, of many kinds, each with calls whose outcomes are Python's.

A kind is source text that defines `f`; `K` stands for a number that makes one function another, and `how` for the decorator.
`calls(rng)` gives the arguments of a few calls: first ones, another size, another layout.
"""

import linecache
import sys
import threading
import warnings
from dataclasses import dataclass
from itertools import count

import numpy as np

HEAD = "import numpy as np\nimport jitlab as jl\n"


@dataclass(frozen=True)
class Kind:
    name: str
    how: str
    body: str
    calls: object
    traces: int  # how many the calls need


def vectors(*sizes):
    """Calls with vectors of these sizes; equal sizes are the same vector, a negative one is that vector from behind."""

    def calls(rng):
        made = {size: rng.standard_normal(size) for size in dict.fromkeys(map(abs, sizes))}
        return [(made[size] if size > 0 else made[-size][::-1],) for size in sizes]

    return calls


_vectors = vectors(7, 7, 12, -7)
_often = vectors(*[7] * 7)
_large = vectors(9_000, 9_000, 30_000)  # results in blocks of the pool


def _matrices(rng):
    a = rng.standard_normal((4, 5))
    return [(a,), (np.asfortranarray(a),), (rng.standard_normal((3, 5)),)]


def _counted(rng):
    return [(rng.standard_normal(5), 5), (rng.standard_normal(5), 5), (rng.standard_normal(6), 4)]


LOOP = """
@HOW
def f(x, n):
    s = np.zeros_like(x)
    for k in range(n):
        s[k] = np.sin(x[k]) * K + s[k - 1]
    x[:] = np.exp(-x * x) + K
    return s.sum() + x.mean(), x * 2
"""
BRANCH = """
@HOW
def f(x):
    if x.sum() > 0:
        y = x * K
    else:
        y = x - K
    while y.max() > 3:
        y = y / 2
    return y + 1
"""
HELPER = """
def helper(a, b=K):
    return np.tanh(a) * b + a.sum()

@HOW
def f(x):
    def inner(v):
        return helper(v, K + 1) - v
    return inner(x) + helper(x) * sum([helper(x[i:i + 1]) for i in range(3)])
"""
PIECES = """
seen = {}

@HOW
def f(x):
    y = np.cos(x) + K
    seen[len(seen) % 3] = float(y[0])
    name = {True: "a", False: "b"}[bool(y[0] > 0)]
    z = y * (2 if name == "a" else 3)
    w = np.sort(z)[::-1]
    return w + y.sum()
"""
VARIABLE = """
class Model:
    def __init__(self):
        self.w = None

    @HOW
    def step(self, x):
        if self.w is None:
            self.w = jl.Variable(np.full(3, float(K)))
        return self.w * x.sum() + 1

model = Model()

def f(x):
    return np.asarray(model.step(x))
"""
NESTED = """
@HOW
def g(x):
    return x * K + np.exp(x)

@HOW
def f(x):
    return g(x) + g(x[1:]).sum()
"""
SMALL = """
@HOW
def f(x):
    return np.exp(x) * K + x.sum()
"""
MATRIX = """
@HOW
def f(a):
    b = a @ a.T
    u, s, vt = np.linalg.svd(b + K * np.eye(len(b)))
    return s, (b * s).sum(axis=0)
"""
METHOD = """
class Model:
    k = K

    @HOW
    def step(self, x):
        return x * self.k + np.sin(x)

model = Model()

def f(x):
    return model.step(x)
"""
PUT_OFF = """
import io
from tests.faults.programs import print_into

log, table = [], {}

class Model:
    pass
model = Model()

@HOW
def g(x):
    y = np.sin(x) * K
    log.append(y.sum())
    table["y"] = y[0]
    print(f"K {y[0]:.3f}")
    z = y + 1
    CUT
    model.z = z.sum()
    log.append(z.sum())
    w = z * 2
    log.append(w)
    return w + 1

def f(x):
    log.clear(), table.clear(), vars(model).clear()
    text = io.StringIO()
    try:
        print_into(text)
        result = g(x)
    except BaseException:
        given = [bool(log), "y" in table, bool(text.getvalue()), hasattr(model, "z"), len(log) > 1, len(log) > 2]
        assert given == sorted(given, reverse=True), f"given out in another order: {given}"
        raise
    finally:
        print_into(None)
    return result, log[0], table["y"], model.z, log[1], log[2], float(len(log)), float(len(text.getvalue()))
"""
PUT_OFF_BY_METHODS = """
from collections import deque

log, table, seen, last = [], {}, set(), deque()

class Model:
    pass
model = Model()

@HOW
def g(x):
    y = np.sin(x) * K
    model.n += 1
    log.extend([y.sum(), y[0]])
    table.update(y=y[0])
    z = y + 1
    CUT
    seen.discard("x")
    last.appendleft(z.sum())
    model.n += 1
    w = z * 2
    table.setdefault("w", w.sum())
    log.extend((w[0],))
    model.done += 1
    return w + 1

def f(x):
    log.clear(), table.clear(), seen.add("x"), last.clear()
    model.n = model.done = 0
    try:
        result = g(x)
    except BaseException:
        given = [model.n > 0, len(log) > 1, "y" in table, "x" not in seen, bool(last), model.n > 1, "w" in table]
        given += [len(log) > 2, model.done > 0]
        assert given == sorted(given, reverse=True), f"given out in another order: {given}"
        raise
    return result, log[0], log[1], log[2], table["y"], table["w"], last[0], float(len(log) + len(seen) + model.n + model.done)
"""
COUNTS = """
table, counts, groups = {}, {}, {}

class Model:
    pass
model = Model()

@HOW
def g(x):
    own = {"n": 0, "sums": []}
    for i in range(12):
        x = np.sin(x) + K
        table["log"] += [i]
        table["n"] += 1
        counts[i % 2] = counts.get(i % 2, 0) + 1
        groups.setdefault(i % 3, []).append(i)
        model.v = model.v + 1
        own["n"] += 1
        own["sums"] += [x.sum()]
    return x, own["n"], np.array(own["sums"]), model.v * 1

def f(x):
    table.clear(), groups.clear(), counts.clear(), table.update(n=0, log=[])
    model.v = np.zeros(3)
    try:
        result = g(x)
    except BaseException:
        seen = len(table["log"]), table["n"], sum(counts.values()), sum(map(len, groups.values())), model.v[0]
        assert sorted(seen, reverse=True) == list(seen) and seen[-1] >= seen[0] - 1, f"not what Python leaves: {seen}"
        assert table["log"] == list(range(seen[0])) and (model.v == model.v[0]).all()
        assert not vars(model).keys() - {"v"} and type(model.v) is np.ndarray
        raise
    assert table["n"] == 12 and len(groups) == 3
    return result
"""
PUT_OFF_IN_A_LOOP = """
import io
from tests.faults.programs import print_into

log, table = [], {}

@HOW
def g(x):
    w = x * 0.0
    for i in range(24):
        w = w + np.sin(x) * K
        log.append((i, w[0]))
        if i % 2 == 0:
            print(i)
        table[i] = w.sum()
    if table is not None and w.sum() * 0 == 0:
        log.append("end")
    return w + 1

def f(x):
    log.clear(), table.clear()
    text = io.StringIO()
    try:
        print_into(text)
        result = g(x)
    except BaseException:
        printed, turns = len(text.getvalue().split()), len(log) - (log[-1:] == ["end"])
        assert [entry[0] for entry in log[:turns]] == list(range(turns)), "turns in another order"
        assert turns - 1 <= len(table) <= turns and (len(table) == 24 or len(log) == turns)
        assert (len(table) + 1) // 2 <= printed <= (turns + 1) // 2, (len(table), printed, turns)
        raise
    finally:
        print_into(None)
    firsts, sums = np.array([entry[1] for entry in log[:-1]]), np.array(list(table.values()))
    return result, firsts, sums, float(len(log)), float(len(text.getvalue()))
"""
CELLS = """
from jitlab.api import Options, compile_trace
from tests.cell_runs import run_cell

cells = [
    "y = np.sin(x) * K\\nseen = [float(y[0])]",
    "for i in range(3):\\n    y = y + i * np.cos(x)\\nh = y.shape[0] - 1",
    "if y.sum() > 0:\\n    z = y[:h] * 2\\nelse:\\n    z = -y[:h]\\nseen.append(len(z))\\nr = z.sum() + x, z.copy()",
]
space = {"np": np}

def f(x):
    space["x"] = x
    for number, source in enumerate(cells):
        if "@HOW":
            run_cell(source, space, f"<cell {number}>", executor=lambda trace: compile_trace(trace, Options()))
        else:
            exec(compile(source, f"<cell {number}>", "exec"), space)
    return space["r"]
"""
LISTS = """
@HOW
def f(x):
    w, losses, path = x * 0.0, [0.5], []
    for i in range(24):
        w = w + np.sin(x) * K
        losses.append(float(w[0]) * i)
        path.append(w)
    return np.array(path), np.stack(path)[:, 0], losses[-1], sum(losses) / len(losses), float(max(losses))
"""
CELL_LOOP = """
from jitlab.api import Options, compile_trace
from tests.cell_runs import run_cell

source = "seen, y = [], np.sin(x) * K\\nfor k in range(20):\\n    y = y * 0.5\\n    seen.append(k)\\n    t = k\\n"
source += "r = y * 2, len(seen), t"
space = {"np": np}

def f(x):
    for name in ("seen", "k", "t", "r"):
        space.pop(name, None)
    space["x"] = x
    try:
        if "@HOW":
            run_cell(source, space, "<cell>", executor=lambda trace: compile_trace(trace, Options()))
        else:
            exec(compile(source, "<cell>", "exec"), space)
    except BaseException:
        seen, k, t = (space.get(name, start) for name, start in (("seen", []), ("k", -1), ("t", -1)))
        assert seen == list(range(len(seen))) and k in (len(seen) - 1, len(seen)) and t in (k - 1, k), (seen, k, t)
        raise
    return space["r"][0], float(sum(space["r"][1:]))
"""
FUNCTION, JIT = "jl.function", "jl.jit"

KINDS = [
    Kind("loop", FUNCTION, LOOP, _counted, 2),
    Kind("branch", FUNCTION, BRANCH, _vectors, 2),
    Kind("helper", FUNCTION, HELPER, _vectors, 2),
    Kind("variable", FUNCTION, VARIABLE, _vectors, 0),
    Kind("nested", FUNCTION, NESTED, _vectors, 2),
    Kind("warm", FUNCTION, SMALL, _often, 1),
    Kind("matrix", FUNCTION, MATRIX, _matrices, 2),
    Kind("method", FUNCTION, METHOD, _vectors, 0),
    Kind("wide", "jl.function(reduce_retracing=True)", SMALL, _vectors, 2),
    Kind("strict", "jl.function(jit_compile=True)", SMALL, _vectors, 2),
    Kind("large", FUNCTION, SMALL, _large, 2),
    Kind("jit loop", JIT, LOOP, _counted, 0),
    Kind("jit branch", JIT, BRANCH, _vectors, 0),
    Kind("jit helper", JIT, HELPER, _vectors, 0),
    Kind("jit pieces", JIT, PIECES, _vectors, 0),
    Kind("jit nested", JIT, NESTED, _vectors, 0),
    Kind("jit warm", JIT, SMALL, _often, 1),
    Kind("jit matrix", JIT, MATRIX, _matrices, 0),
    Kind("jit method", JIT, METHOD, _vectors, 0),
    Kind("jit path", 'jl.jit(capture_mode="trace")', SMALL, _vectors, 0),
    Kind("jit large", JIT, SMALL, _large, 0),
    Kind("jit put off", JIT, PUT_OFF.replace("CUT", "pass"), _vectors, 0),
    Kind("jit put off often", JIT, PUT_OFF.replace("CUT", "pass"), _often, 0),
    Kind("jit put off in pieces", JIT, PUT_OFF.replace("CUT", "[].sort()"), _vectors, 0),
    Kind("jit put off by methods", JIT, PUT_OFF_BY_METHODS.replace("CUT", "pass"), _vectors, 0),
    Kind("jit put off by methods often", JIT, PUT_OFF_BY_METHODS.replace("CUT", "pass"), _often, 0),
    Kind("jit put off by methods in pieces", JIT, PUT_OFF_BY_METHODS.replace("CUT", "[].sort()"), _vectors, 0),
    Kind("jit put off in a loop", JIT, PUT_OFF_IN_A_LOOP, _vectors, 0),
    Kind("jit put off in a loop often", JIT, PUT_OFF_IN_A_LOOP, _often, 0),
    Kind("jit counts", JIT, COUNTS, _vectors, 0),
    Kind("jit counts often", JIT, COUNTS, _often, 0),
    Kind("jit lists", JIT, LISTS, _vectors, 0),
    Kind("jit lists often", JIT, LISTS, _often, 0),
    Kind("cells", "compiled", CELLS, _vectors, 0),
    Kind("cell loop", "compiled", CELL_LOOP, _vectors, 0),
    Kind("jit bytecode", 'jl.jit(capture_mode="bytecode")', BRANCH, _vectors, 0),
]
BY_NAME = {kind.name: kind for kind in KINDS}
_numbers = count(1)


class _OfThreads(threading.local):
    """A stream whose `write` is each thread's own; printing into it runs no code that is not Python's own."""

    def __init__(self, stream):
        self.stream, self.write = stream, stream.write

    def __getattr__(self, name):
        return getattr(self.stream, name)


_printed = _OfThreads(sys.stdout)


def print_into(text):
    """What this thread prints from now on goes there, and where it went before for None. `contextlib.redirect_stdout` is for
    all threads at once: what one prints would be found in the text of another."""
    sys.stdout = _printed  # it stays: other threads may be in the midst of printing
    _printed.write = (_printed.stream if text is None else text).write


def namespace_of(kind, constant, how=None):
    """The names that the program of a kind binds, under a file name of its own."""
    name = f"<fault {next(_numbers)}>"
    how = kind.how if how is None else how
    source = HEAD + kind.body.replace("@HOW", f"@{how}" if how else "").replace("K", str(constant))
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    linecache.cache.pop(f"<fault {int(name[7:-1]) - 200}>", None)  # nobody calls that one any more
    space = {"__name__": "faults"}
    exec(compile(source, name, "exec"), space)
    return space


def copied(args):
    """Arguments of their own for each call, which lie in memory as the first do."""
    return tuple(x.copy(order="K") if isinstance(x, np.ndarray) and x.base is None else _reversed(x) for x in args)


def _reversed(x):
    return x[::-1].copy()[::-1] if isinstance(x, np.ndarray) else x


def same(found, expected):
    if isinstance(expected, tuple):
        return isinstance(found, tuple) and len(found) == len(expected) and all(map(same, found, expected))
    return np.shape(found) == np.shape(expected) and np.allclose(found, expected, rtol=1e-9, atol=1e-9, equal_nan=True)


@dataclass
class Case:
    """A fresh function, what calls it, and what those give."""

    kind: Kind
    constant: int
    seed: int

    def __post_init__(self):
        self.space = namespace_of(self.kind, self.constant)
        self.f = self.space["f"]
        self.calls = self.kind.calls(np.random.default_rng(self.seed))
        plain = namespace_of(self.kind, self.constant, "")["f"]
        self.expected = []
        for args in self.calls:
            own = copied(args)
            self.expected.append((plain(*own), own))

    def run(self):
        """All calls; what is wrong with them, "" where nothing is."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, (args, (result, left)) in enumerate(zip(self.calls, self.expected, strict=True)):
                own = copied(args)
                found = self.f(*own)
                if not same(found, result):
                    return f"call {number}: {found!r}, not {result!r}"
                if not same(own, left):
                    return f"call {number} leaves {own!r}, not {left!r}"
        return ""

    @property
    def traced(self):
        count = getattr(self.f, "experimental_get_tracing_count", None)
        return count() if count is not None else None

"""Functions in pieces that are written again as one function, each piece a call: what they give, raise, print and leave is what
Python's do, also where a piece does not serve; and a call of one costs no Python between its statements."""

import gc
import linecache
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import jitlab as jl
from jitlab.api.functions import jit as jit_module
from jitlab.api.settling import COMPILED, DIRECT
from jitlab.api.stitched import Piece

pytestmark = pytest.mark.usefixtures("stays_compiled")
CALLS = 14


class Log(list):
    """What is appended to is put off for lists alone."""


def defined(text, **names):
    """The function of a text, and the same under `jit`; each with names of its own."""
    found = []
    for file in ("<plain>", "<jit>"):
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        own = {"np": np, "jl": jl, "log": Log(), "scale": 2.0, **names}
        exec(compile(text, file, "exec"), own)
        found.append(own["f"])
    return found[0], jl.jit(found[1])


def outcome(f, args, kwargs):
    """What a call gives or raises, with the lines of the error, and what it leaves in its arguments and its log."""
    own = getattr(f, "python_function", f).__globals__
    own["log"].clear()
    try:
        result, error = f(*args, **kwargs), None
    except Exception as raised:
        lines = [frame.lineno for frame in traceback.extract_tb(raised.__traceback__) if frame.filename in ("<plain>", "<jit>")]
        result, error = None, (type(raised), str(raised), lines)
    return result, error, args, list(own["log"])


def assert_same(mine, plain, rtol=1e-13):
    assert type(mine) is type(plain)
    if isinstance(plain, (list, tuple)):
        assert len(mine) == len(plain)
        for pair in zip(mine, plain, strict=True):
            assert_same(*pair, rtol)
    elif isinstance(plain, np.ndarray):
        assert mine.dtype == plain.dtype and mine.flags.writeable == plain.flags.writeable
        np.testing.assert_allclose(mine, plain, rtol)
    elif isinstance(plain, (float, np.floating)):
        np.testing.assert_allclose(mine, plain, rtol)
    elif not callable(plain):
        assert mine == plain


def check(plain, jit, calls, stitched=True, rtol=1e-13):
    for make in calls:
        given, kwargs = make()
        want = outcome(plain, given, kwargs)
        given, kwargs = make()
        assert_same(outcome(jit, given, kwargs), want, rtol)
    assert stitched is None or (jit._stitched is not None) == stitched


def vector(n=6, dtype=float):
    return np.linspace(0.5, 2, n).astype(dtype)


PROGRAMS = {
    "print between": "def f(x):\n    y = x * 2 + 1\n    log.append(len(y))\n    return y * 3 - 1\n",
    "in steps": (
        "def f(x):\n    log.append(float(np.log(x).mean()))\n    log.append((x[0], np.exp(x).sum()))\n"
        "    return x + 1\n"
    ),
    "no result": "def f(x):\n    y = x * 2\n    log.append(y.sum())\n    y += 1\n    log.append(y.sum())\n",
    "in place": "def f(x):\n    x *= 2\n    log.append(x[0])\n    x[1:] += x[:-1] * 0.5\n    return x\n",
    "branches": (
        "def f(x):\n    if x.sum() > 3:\n        y = x * 2\n        log.append(1)\n        z = y + 1\n"
        "    else:\n        z = x - 1\n"
        "    log.append(z.sum())\n    return z * scale\n"
    ),
    "for": (
        "def f(x):\n    total = 0.0\n    for k in range(5):\n        y = np.sin(x) * k\n        if k == 1:\n"
        "            continue\n"
        "        log.append(k)\n        total = total + y.sum()\n        if k == 3:\n            break\n    else:\n"
        "        log.append('else')\n    return total\n"
    ),
    "for over arrays": (
        "def f(x):\n    out = type(log)()\n    for row in np.stack([x, x + 1]) * 2:\n        out.append(row * 2)\n"
        "        log.append(row[0])\n    return out\n"
    ),
    "while": (
        "def f(x):\n    n = 0\n    while np.abs(x).max() > 1:\n        x = x * 0.5\n        log.append(n)\n        n += 1\n"
        "        if n == 50:\n            return None\n    return x, n\n"
    ),
    "with": (
        "import contextlib\ndef f(x):\n    with contextlib.suppress(KeyError):\n        y = x * 2\n        log.append(y[0])\n"
        "        z = y + 1\n        raise KeyError\n    return z + 1\n"
    ),
    "try": (
        "def f(x):\n    y = x * 2\n    try:\n        z = y + 1\n        log.append(z.sum())\n        raise ValueError\n"
        "    except ValueError as error:\n        log.append(str(error))\n        w = y * 3\n    finally:\n"
        "        log.append('end')\n"
        "    return w - 1\n"
    ),
    "keywords": (
        "def f(x, *more, k=2, **rest):\n    y = x * k\n    log.append(len(more))\n    for m in more:\n        y = y + m\n"
        "    log.append(sorted(rest))\n    return y * rest.get('w', 1)\n"
    ),
    "closures": (
        "def make():\n    n = 0\n    def f(x):\n        nonlocal n\n        y = x * 2\n        n += 1\n"
        "        g = lambda v: v + n\n"
        "        log.append(g(1) - n)\n        return y + 1, [v * 2 for v in y[:2].tolist()]\n    return f\nf = make()\n"
    ),
    "a class": (
        "class M:\n    def __init__(self):\n        self.w, self.__n = 2.0, 0\n    def f(self, x):\n        y = x * self.w\n"
        "        self.__n += 1\n        log.append(self.__n > 0)\n        return y + 1\nm = M()\ndef f(x):\n"
        "    y = m.f(x)\n    log.append(y[0])\n    return y * 2\n"
    ),
    "numbers": (
        "def f(x):\n    n = len(x)\n    y = x * n\n    log.append(n)\n    m = y.shape[0] + 1\n    z = y / m\n"
        "    return z, m, float(z[0])\n"
    ),
    "several results": (
        "def f(x):\n    a, b = x * 2, x + 1\n    log.append(1)\n    c = a, b\n    d = [a * b, c]\n"
        "    log.append(2)\n    return d, a\n"
    ),
    "same object": (
        "def f(x):\n    y = x\n    log.append(y is x)\n    z = y * 2\n    w = z[::2]\n"
        "    log.append(w.base is z)\n    w[0] = 9\n    return z, y is x\n"
    ),
    "global": (
        "count = 0\ndef f(x):\n    global count\n    y = x * 2\n    count += 1\n    log.append(count)\n"
        "    return y + 1\n"
    ),
    "draws": (
        "rng = np.random.default_rng(3)\ndef f(x):\n    y = x + rng.random(6)\n    log.append(y.sum())\n"
        "    return y * rng.random()\n"
    ),
    "states": (
        "def f(x):\n    y = x * 2\n    with np.errstate(divide='raise'):\n        log.append(1)\n        try:\n"
        "            z = y / (x - x)\n        except FloatingPointError:\n            z = y\n            log.append('raised')\n"
        "    return z + 1\n"
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_does_what_python_does(program):
    """All are stitched but the one that calls a method, which runs in pieces itself."""
    plain, jit = defined(PROGRAMS[program])
    more = program == "keywords"
    check(plain, jit, [lambda: ((vector(), *([1.5, vector()] * more)), {"w": 3} if more else {})] * CALLS, program != "a class")


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_does_so_for_other_arguments_too(program):
    """Each piece meets what it was not made for: sizes, dtypes, layouts, classes, arrays that cannot be written."""

    class Own(np.ndarray):
        pass

    plain, jit = defined(PROGRAMS[program])
    frozen = vector()
    frozen.flags.writeable = False
    some = [vector(), vector(6, np.float32), vector(6), vector(12)[::2], vector().view(Own), frozen, vector(6, int), vector()]
    check(plain, jit, [lambda x=x: ((x.copy() if x.flags.writeable else x,), {}) for x in some for _ in range(5)], None, 1e-6)


def test_it_costs_no_python_between_its_statements():
    """One frame, the function's: C answers the call and its pieces."""
    _, f = defined(PROGRAMS["print between"])
    x = vector()
    for _ in range(20 + DIRECT):
        f(x)
    (trial,) = f._trials.values()
    assert trial.way == COMPILED and trial.is_in_front and trial.pieces
    frames = []
    sys.setprofile(lambda frame, event, argument: frames.append(frame.f_code.co_name) if event == "call" else None)
    f(x)
    sys.setprofile(None)
    assert frames == ["f"]
    said = "  compiled in pieces up to 7 elements: 1.0 µs beside 9.0 µs as Python (2 calls each), entering 2 pieces included"
    assert said in str(f.ledger)
    pieces = [piece.calls for piece in f.ledger.pieces.values()]
    f(x)
    assert [piece.calls for piece in f.ledger.pieces.values()] == [n + 1 for n in pieces] and len(pieces) == 2


def test_what_does_not_serve_is_captured_at_the_next_call(monkeypatch):
    plain, f = defined(PROGRAMS["print between"])
    missed = []
    before = Piece.__call__
    monkeypatch.setattr(Piece, "__call__", lambda self, *values: missed.append(values) or before(self, *values))
    for n in (6, 7, 8, 6, 7, 8):
        for _ in range(10):
            assert_same(f(vector(n)), plain(vector(n)))
    assert [(piece.traces) for piece in f.ledger.pieces.values()] == [3, 3]
    missed.clear()
    for n in (6, 7, 8):
        f(vector(n))
    assert not missed  # C serves all three


def test_what_changes_outside_is_seen():
    text = "def g(u):\n    return u * scale\ndef f(x):\n    y = g(x)\n    log.append(1)\n    return y + scale\n"
    plain, f = defined(text)
    own = f.python_function.__globals__
    for scale in (2.0, 3.0, 2, np.float32(5), vector()):
        for names in (plain.__globals__, own):
            names["scale"] = scale
        for _ in range(8):
            assert_same(f(vector()), plain(vector()))
    for names in (plain.__globals__, own):
        exec("def g(u):\n    return u - 1\n", names)
    for _ in range(8):
        assert_same(f(vector()), plain(vector()))


def test_arguments_that_are_one_or_overlap():
    text = (
        "def f(a, b):\n    c = b + 1\n    log.append(1)\n    a += b\n    log.append(a is b)\n"
        "    a[1:] = b[:-1] * 2\n    return a, c\n"
    )
    plain, jit = defined(text)

    def overlapping():
        base = vector(8)
        return (base[:6], base[2:]), {}

    def one():
        x = vector()
        return (x, x), {}

    def apart():
        return (vector(), vector()), {}

    check(plain, jit, [apart, one, overlapping, apart, overlapping] * 9)


@pytest.mark.parametrize("state", ["raise", "ignore", "call"])
def test_floating_point_errors_are_asked_for_in_between(state):
    """After anything of Python's a piece runs as NumPy where NumPy is to raise, or to call."""
    text = (
        "def f(x, quiet):\n    y = x * 2\n    if not quiet:\n        np.seterr(divide=state)\n    log.append(1)\n"
        "    z = y / (x - x)\n    return z + 1\n"
    )
    called = []
    plain, jit = defined(text, state=state)
    before = np.geterr(), np.geterrcall()
    try:
        np.seterrcall(lambda *what: called.append(what))
        for quiet in [True] * 10 + [False] * 3:
            for f in (plain, jit):
                np.seterr(divide="ignore", invalid="ignore")
                called.clear()
                found = outcome(f, (vector(), quiet), {})
                if f is plain:
                    want, calls = found, len(called)
            assert_same(found[:2], want[:2])
            assert len(called) == calls and bool(calls) == (state == "call" and not quiet)
            assert (want[1] is not None) == (state == "raise" and not quiet)
    finally:
        np.seterr(**before[0])
        np.seterrcall(before[1])


def test_errors_show_the_functions_own_lines_once():
    text = (
        "def f(x, k):\n    y = x * 2\n    log.append(len(y))\n    z = y + k\n    w = z @ k\n"
        "    log.append(w)\n    return w / k[0]\n"
    )
    plain, jit = defined(text)
    good, bad, worse = vector(), vector(5), None
    check(plain, jit, [lambda k=k: ((vector(), k), {}) for k in [good] * 10 + [bad, worse, good, bad, bad, worse, good] * 3])


def test_a_name_that_is_not_bound_is_the_error_that_it_is():
    text = "def f(x, k):\n    if k:\n        y = x * 2\n    log.append(1)\n    z = x + 1\n    log.append(2)\n    return z * y\n"
    plain, jit = defined(text)
    check(plain, jit, [lambda k=k: ((vector(), k), {}) for k in [1] * 10 + [0, 1, 0, 0, 1] * 3])


def test_nothing_is_kept_alive():
    text = (
        "def f(x):\n    y = x * 2\n    log.append(ref(y))\n    y = None\n    log.append(log[-1]() is None)\n    z = x + 1\n"
        "    log.append(ref(z))\n    del_me = z * 2\n    return 1\n"
    )
    _, f = defined(text, ref=weakref.ref)
    for n in range(CALLS):
        f.python_function.__globals__["log"].clear()
        x = vector()
        gone = weakref.ref(x)
        f(x)
        del x
        log = f.python_function.__globals__["log"]
        assert n < CALLS - 4 or (log[1] is True and log[2]() is None and gone() is None), n
    assert f._stitched is not None
    gone = [weakref.ref(f), weakref.ref(f._stitched), weakref.ref(f._stitched.function)]
    del f
    gc.collect()
    assert not any(reference() for reference in gone)


def test_names_of_a_frame_that_somebody_looks_at():
    """What a callee sees of its caller: its names, and none of ours that hold anything."""
    text = "def f(x):\n    y = x * 2\n    log.append(look())\n    return y + 1\n"

    def look():
        return {name: value for name, value in sys._getframe(1).f_locals.items() if not name.startswith("__jl_")}

    plain, f = defined(text, look=look)
    for _ in range(CALLS):
        f(vector())
        plain(vector())
    assert f._stitched is not None
    assert_same(list(f.python_function.__globals__["log"][-1]), list(plain.__globals__["log"][-1]))


def test_a_recording_meets_the_pieces_and_changes_nothing():
    plain, f = defined(PROGRAMS["print between"])
    for _ in range(20):
        f(vector())
    with jl.record() as recording:
        assert_same(f(vector()), plain(vector()))
    report = recording.report()
    assert len(report.statements) == 1 and sum(cluster.calls for cluster in report.clusters) == 2
    assert len(jl.explain(f, vector()).kernels) == 2


def test_scopes_in_it_mark_nothing():
    text = "def f(x):\n    y = x * 2\n    log.append(1)\n    with jl.jit_scope():\n        log.append(2)\n    return y + 1\n"
    plain, f = defined(text)
    for _ in range(25):
        assert_same(f(vector()), vector() * 2 + 1)
    assert f._stitched is not None


def test_other_code_is_other_code():
    plain, f = defined(PROGRAMS["print between"])
    for _ in range(20):
        f(vector())
    other, _ = defined("def f(x):\n    y = x * 5\n    log.append(len(y))\n    return y\n")
    f.python_function = other
    for _ in range(20):
        assert_same(f(vector()), vector() * 5)
    jl.config.settle = "model"
    assert_same(f(vector()), vector() * 5)


def test_recursion_and_threads():
    text = "def f(x, n):\n    y = x * 2\n    log.append(n)\n    if n:\n        y = y + g(x, n - 1)\n    return y + 1\n"
    plain, f = defined(text)
    plain.__globals__["g"], f.python_function.__globals__["g"] = plain, f
    want = plain(vector(), 4)
    for _ in range(CALLS):
        assert_same(f(vector(), 4), want)
    wrong = []

    def work(n):
        for k in range(40):
            x = vector(4 + (n + k) % 5)
            if not np.allclose(f(x, 2), plain(x, 2)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_another_one_each_time_stays_the_drivers(monkeypatch):
    """It is written again so often, and then no more."""
    monkeypatch.setattr(jit_module, "WRITTEN_AGAIN", 3)
    plain, f = defined(PROGRAMS["print between"])
    for n in range(4, 40):
        for _ in range(4):
            assert_same(f(vector(n)), plain(vector(n)))
    assert f._stitched is None and f._left == 0

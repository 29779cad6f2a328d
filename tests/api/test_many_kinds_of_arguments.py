"""One program, called in turn with arguments of many kinds: plain, one array twice, overlapping, strided, read-only, of other
dtypes and libraries. A trace that is found for a call it was not made for would show."""

from __future__ import annotations

import linecache
import random
import textwrap

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

BODIES = [
    "y = a + b; y[0] = b[1]; r = y",
    "a[:2] = b[1:3]; r = a, b",
    "v = a[k:]; v[...] = b[:len(v)]; r = a, v",
    "a += b; b *= 2; r = a, b",
    "y = a if a.sum() > b.sum() else b; y[0] = -1; r = y",
    "r = [p is q for p in (a, b) for q in (a, b)], a * k",
    "L[0] = L[0] + a; r = L[0], len(L)",
    "D['n'] = D.get('n', 0) + 1; r = a * D['n']",
    "y = a.ravel(); y[0] = 5; r = a, y",
    "y = np.asarray(a, dtype=float); y[0] = 5; r = a, y",
    "y = a.astype(float, copy=False); y[1] = 6; r = a, y",
    "for i in range(k):\n    a[i] = a[i] + b[i]\nr = a",
    "if k > 2:\n    b = a\nb[1] = 4; r = a, b",
    "np.add(a, b, out=a); np.subtract(a, b, out=b); r = a, b",
    "t = a; a = a * 2; t[0] = 9; r = a, t",
    "a[b > 1] = k; b[a > 1] = -k; r = a, b",
    "a.sort(); r = a, b, a is b",
    "a, b = b, a; a[0] = k; r = a, b",
]


def base(n=6, dtype=float):
    return (np.arange(1, n + 1) % 4).astype(dtype)


def read_only(x):
    x.flags.writeable = False
    return x


def unaligned():
    x = np.frombuffer(bytearray(49), np.uint8)[1:49].view(float)
    x[...] = base()
    return x


KINDS = [
    lambda: (base(), base() * 2, 2), lambda: (x := base(), x, 2), lambda: (x := base(), x[::-1], 2),
    lambda: ((x := base(8))[1:7], x[:6], 3), lambda: ((x := base(8))[:6], x[2:], 3), lambda: (base(6, "f4"), base(), 1),
    lambda: (base(6, int), base(6, int), 2), lambda: ((x := base(12))[::2], x[1::2], 2),
    lambda: ((x := base(36).reshape(6, 6))[:, 0], x[:, 1], 4), lambda: ((x := base(36).reshape(6, 6))[:, 0], x[0], 4),
    lambda: (base(), base(), 2.0), lambda: (base(), base(), True), lambda: (read_only(base()), base(), 2),
    lambda: (np.broadcast_to(np.float64(3), (6,)), base(), 2), lambda: (base(9), base(6), 2), lambda: (base(0), base(0), 0),
    lambda: (unaligned(), base(), 2), lambda: (base()[::-1], base(), 2), lambda: (base(6, complex), base(), 2),
    lambda: (base(6, bool), base(6, bool), 1), lambda: (base(6, ">f8"), base(), 2), lambda: (base(6, object), base(), 2),
    lambda: (np.ma.array(base(), mask=[0, 1, 0, 0, 0, 0]), base(), 2),
]  # fmt: skip


def told(x):
    if isinstance(x, np.ndarray):
        return type(x).__name__, str(x.dtype), x.shape, repr(x.tolist()), x.flags.writeable
    if isinstance(x, (tuple, list)):
        return type(x).__name__, *map(told, x)
    return type(x).__name__, repr(x)


def session(run, order):
    found, kept, counts = [], [1.0], {}
    for n in order:
        a, b, k = KINDS[n]()
        kept[:] = [1.0]
        try:
            result = told(run(a, b, k, kept, counts))
        except Exception as error:
            result = type(error).__name__
        found.append((n, result, told(a), told(b), told(kept), dict(counts)))
    return found


def function(body):
    source = f"def program(a, b, k, L, D):\n{textwrap.indent(body, '    ')}\n    return r\n"
    name = f"<{body}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {"np": np}
    exec(compile(source, name, "exec"), names)
    return names["program"]


def in_cells(body, run):
    names = {"np": np}

    def cell(a, b, k, kept, counts):
        names.update(a=a, b=b, k=k, L=kept, D=counts)
        run(body, names)
        return names["r"]

    return cell


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("body", BODIES)
def test_calls_of_many_kinds_in_turn_give_what_python_gives(body, seed):
    order = 2 * list(range(len(KINDS)))
    random.Random(seed).shuffle(order)
    program = function(body)
    compiled = jl.jit(program)
    assert session(compiled, order) == session(program, order)
    assert all("unknown" not in miss.causes for miss in compiled.ledger)
    want = session(in_cells(body, exec), order)
    assert session(in_cells(body, lambda text, names: run_cell(text, names, "<cell>")), order) == want

"""Notebooks as lists of cells. Under `%%jit` each leaves what it leaves without."""

from __future__ import annotations

from typing import Any

import numpy as np


class Box:
    """An object of the user's."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def grow(self, by: Any) -> Any:
        self.w = self.w * by
        return self.w


def namespace() -> dict[str, Any]:
    x = np.arange(12.0).reshape(3, 4)
    return {
        "np": np, "x": x, "y": x[1:], "z": x, "v": np.arange(5.0), "i8": np.arange(4), "k": 3, "r": 0.5, "s": "text",
        "params": [np.ones((2, 2)), np.zeros(2)], "state": {"w": np.arange(3.0), "step": 1}, "box": Box(np.arange(3.0)), "Box": Box,
    }  # fmt: skip


NOTEBOOKS: dict[str, list[str]] = {
    "last expression": ["a = x * 2\na.sum(axis=0)", "_ + 1", "_1[0]"],
    "semicolon": ["x * 2;", "a = 1\nx.sum();  # comment", "x.sum()"],
    "none is not shown": ["None", "print(x.sum())"],
    "string shown": ["s", "s.upper()", "[x.sum(), s]"],
    "append": ["out = []\nfor i in range(3):\n    out.append(v * i + 1)\nout"],
    "append of a function": ["def f(u):\n    return np.tanh(u) * k\nout = []\nout.append(f(x))\nout.append(f(v).sum())\nout"],
    "append to a rebound list": ["out = []\ndef f(u):\n    global out\n    out = [1]\n    return u * 2\nold = out\nout.append(f(v))"],
    "append to nothing": ["nothing.append(v * 2)"],
    "append that fails": ["s.append(v * 2)", "v += 1\nk.append(np.add(v, 1, out=v))"],
    "store into a list": ["params[0] = params[0] @ params[0] + 1\nparams[1] = v[:2] * 2\nb = params[1]"],
    "store into a dict": ["state['w'] = state['w'] * 2\nstate['new'] = np.exp(v)\nstate['step'] += 1\nstate['w'] += 1\nw = state['w']"],
    "store into an attribute": ["box.w = box.w * 2 + 1\nbox.w += 1\nbox.n = box.w.sum()\nbox.w[0] = 5\nw = box.w"],
    "store under a computed key": ["state[int(v.sum())] = v * 2\nstate[f'{k}'] = 1\nparams[k - 2] = x.T @ x"],
    "store out of range": ["params[7] = v * 2", "state['nothing'] += v * 2", "box.nothing += v * 2"],
    "method with an effect": ["a = box.grow(2) + v[:3]\nb = box.w * 2\nc = box.grow(v[:3] * 2).sum()"],
    "print of numpy": ["print(x.sum(), np.tanh(v)[1], 'k', k)\nprint(f'{x.mean():.3f} {k!r:>4}')\nprint(v * 2, sep='', end='|')"],
    "value of numpy": ["a = float(x.sum()) * 2 + v\nb = int(v.max()) + k\nc = (v * 2).tolist()\nd = x.sum().item() + 1"],
    "condition on numpy": ["if x.sum() > 3 and k:\n    a = v * 2\nelif np.any(v > 3):\n    a = 2\nelse:\n    a = 3"],
    "elif on numpy": ["if x.sum() < 3:\n    a = v * 2\nelif np.any(v > 3):\n    a = v + 2\nelse:\n    a = 3"],
    "while on numpy": ["n = 0\nwhile np.abs(v).sum() < 1000:\n    v = v * 2\n    n += 1\nelse:\n    m = v + 1\n(n, m)"],
    "while over a number": ["n = 0\nwhile n < x.shape[0] and v[n] < 10:\n    v[n] += 1\n    n += 1"],
    "ambiguous condition": ["a = v * 2\nif v > 2:\n    b = 1\nc = 2"],
    "for over computed rows": ["t = 0\nfor row in x * 2:\n    t = t + row\nt"],
    "for over a number": ["a = v * 2\nfor i in 5:\n    b = 1"],
    "for that unpacks too few": ["for a, b in x:\n    pass"],
    "for with a generator that raises": ["def g():\n    yield v * 2\n    raise KeyError('g')\nfor u in g():\n    w = u + 1"],
    "walrus": ["if (n := x.sum()) > 3:\n    a = n * 2\nb = (c := v * 2) + 1\n[d := u * 2 for u in v]\n(c, d)"],
    "while walrus": ["n = 0\nwhile (t := v.sum() + n) < 20:\n    n += 3"],
    "chained and conditional": ["a = v if x.sum() > 3 else -v\nb = 0 < v[1] < 3\nc = x.sum() > 3 or nothing\nd = not v.sum()"],
    "short circuit": ["log = []\ndef f(u):\n    log.append(1)\n    return u\na = f(v).sum() < 0 and f(x).sum()\nb = f(v).sum() > 0 or f(x)"],
    "with": ["with np.errstate(all='ignore'):\n    a = v / 0\n    b = a * 2\nc = b + 1"],
    "errstate raise": ["with np.errstate(divide='raise'):\n    a = v + 1\n    b = a / (v * 0)\n    c = 1", "a = v / 0;"],
    "seterr": ["old = np.seterr(divide='raise')\ntry:\n    v / 0\nexcept FloatingPointError as e:\n    a = str(e)\nnp.seterr(**old);"],
    "with two": ["import contextlib, io\nwith io.StringIO() as f, contextlib.redirect_stdout(f):\n    print(x.sum())\n    a = v * 2\nt = f.getvalue()\ndel f"],
    "with that suppresses": ["import contextlib\nwith contextlib.suppress(KeyError):\n    a = v * 2\n    b = {}['k']\n    c = 1\nd = a + 1"],
    "with that raises on entry": ["class C:\n    def __enter__(self): raise KeyError('in')\n    def __exit__(self, *a): pass\na = v * 2\nwith C() as c:\n    b = 1"],
    "with that raises on exit": ["class C:\n    def __enter__(self): return self\n    def __exit__(self, *a): raise KeyError('out')\nwith C() as c:\n    b = v * 2\nd = 1"],
    "with nothing of a manager": ["a = v * 2\nwith k as b:\n    c = 1"],
    "break in with": ["import contextlib\nfor i in range(5):\n    with contextlib.nullcontext(i) as j:\n        v[i] += j\n        if v.sum() > 15:\n            break\n        a = v * 2\nelse:\n    b = 1"],
    "continue in try": ["for i in range(4):\n    try:\n        if i == 1:\n            continue\n        v[i] = v[i] * 2\n    finally:\n        x[0, i] = -1\nelse:\n    done = v.sum()"],
    "break in finally": ["for i in range(4):\n    try:\n        v[i] = v[9]\n    finally:\n        a = v + i\n        break\nb = 1"],
    "try": ["try:\n    a = v + np.zeros(3)\nexcept ValueError as e:\n    a = str(e)\nelse:\n    b = 1\nfinally:\n    c = v * 2"],
    "try else": ["try:\n    a = v * 2\nexcept ValueError as e:\n    a = 'failed'\nelse:\n    b = a + 1\nfinally:\n    c = v * 2"],
    "try that does not catch": ["try:\n    a = v * 2\n    b = a[9]\nexcept KeyError:\n    b = 1\nfinally:\n    c = v * 3\nd = 1"],
    "raise in except": ["try:\n    a = v[9]\nexcept IndexError as e:\n    raise KeyError('k') from e"],
    "raise again": ["try:\n    a = v[9]\nexcept IndexError:\n    b = x * 2\n    raise"],
    "traceback in except": ["import traceback\ntry:\n    a = v * 2\n    b = {}['k']\nexcept KeyError as e:\n    n = [(f.line, f.name) for f in traceback.extract_tb(e.__traceback__)]\n    m = str(e)"],
    "error type is wrong": ["try:\n    a = v[9]\nexcept k:\n    b = 1"],
    "nested try": ["for i in range(3):\n    try:\n        try:\n            a = v[i + 3] * 2\n        except KeyError:\n            b = 1\n        finally:\n            c = i\n    except IndexError:\n        d = x * i\n        break"],
    "delete": ["a = v * 2\nb = a + 1\ndel a", "a"],
    "function and class": ["def f(u, w=k):\n    return u * w + x.sum()\nclass A:\n    rate = k * 2\n    def __init__(self): self.w = v.copy()\n    def step(self): return self.w * self.rate\no = A()\nb = o.step() + f(v)\no.w = o.w + 1", "c = o.step()\nf = lambda u: u + 1\nd = f(v)\ndel o, A"],
    "redefined function": ["def f(u):\n    return u * 2\na = f(v)", "def f(u):\n    return u * 3\nb = f(v)", "c = f(v)"],
    "decorators": ["import functools\n@functools.lru_cache\ndef f(n):\n    return n * 2\na = v * f(k)\n@functools.wraps(f)\ndef g(u):\n    return u + 1\nb = g(v)\ndel f, g"],
    "magics between": ["a = v * 2\n%precision 3\nb = a + 1\n!echo hello\nc = b * 2\nd = %pwd\ne = !echo word\ntype(d), list(e)"],
    "display between": ["from IPython.display import display\na = v * 2\ndisplay(a.sum())\nb = a + 1\ndisplay('b', b.shape)\nb"],
    "await": ["import asyncio\nasync def f(u):\n    await asyncio.sleep(0)\n    return u * 2\na = v * 3\nb = await f(a)\nc = b + 1\nc"],
    "await in a loop": ["import asyncio\nt = 0\nfor i in range(3):\n    await asyncio.sleep(0)\n    t = t + v * i\nt.sum()"],
    "async for": ["async def g():\n    for i in range(3):\n        yield v * i\nt = []\nasync for u in g():\n    t.append(u)\nd = [u + 1 async for u in g()]\nlen(d)"],
    "await that raises": ["async def f():\n    raise KeyError('k')\na = v * 2\nb = await f()\nc = 1"],
    "return outside": ["a = v * 2\nreturn a\nb = 1"],
    "break outside": ["a = v * 2\nbreak", "a = 1\nif k:\n    continue"],
    "not Python": ["a = v *\nb = 1", "a = (v * 2"],
    "bad indent": ["if k:\na = 1"],
    "unknown name": ["a = v * 2\nb = a + nothing\nc = 1"],
    "error in a function": ["def f(u):\n    w = u * 2\n    return w[9]\na = f(v)"],
    "error in a comprehension": ["a = [u / w for u, w in zip([1, 2], [1, 0])]"],
    "error half-way": ["v += 1\nx[0] = 7\na = v + np.zeros(3)\nb = 1"],
    "assert": ["assert x.sum() > 3\nassert np.allclose(v, v * 1), 'close'\nassert x.sum() < 3, 'small'\na = 1"],
    "exit": ["raise SystemExit"],
    "interrupt": ["a = v * 2\nraise KeyboardInterrupt\nb = 1"],
    "globals": ["a = v * 2\nglobals()['b'] = a + 1\nc = b * 2\nd = 'a' in dir()\neval('v * 2')"],
    "names of a loop": ["for i, (a, *b) in enumerate([(1, 2), (3, 4, 5)]):\n    c = v * a\ni, a, b"],
    "comprehension": ["a = [u * 2 for u in x]\nb = {i: v * i for i in range(2)}\nc = {int(u) for u in v}\nd = sum(u.sum() for u in a)\nd"],
    "star": ["a, *b = v * 2\n(c, d), e = v[:2], x\nf = [*v[:2], *x[0]]\nf"],
    "annotation": ["a: np.ndarray = v * 2\nb: int\na"],
    "augmented": ["k += 1\nr *= 2\nv += k * r\nv[1:] -= 1\nx[0] += v[:4] * float(r)\nx[np.argmax(v[:3])] *= 2\ns += '!'\ns"],
    "match": ["match x.shape:\n    case (3, n):\n        a = v * n\n    case _:\n        a = 0\na"],
    "aliasing": ["a = x\nb = x[1:]\nc = b.T\nc += 1\nd = [a, b]\ne = d[0]\na is e"],
    "swap": ["params[0], params[1] = params[1] * 2, params[0] + 1\na, b = v, x\na, b = b, a"],
    "list made and changed": ["l = [v, v * 2]\nl[0] = l[0] + 1\nl.append(l[1])\nl2 = l\nl2[1] = 3\nn = len(l)"],
    "dict made and changed": ["d = {}\nfor n in ('a', 'b'):\n    d[n] = v * len(n)\n    d[n][0] = 7\nd"],
    "sorted": ["a = sorted(v * -1)\nb = max(v * 2, key=lambda u: -u)\nd = list(map(lambda u: u * 2, v))"],
    "global statement": ["def f():\n    global v\n    v = v + 1\n    return v * 2\na = f() + f()\nv"],
    "random": ["rng = np.random.default_rng(3)\na = rng.normal(size=4)\nprint(rng.random())\nb = np.random.rand(2) * v[:2]"],
    "import": ["import math\nfrom math import pi as p\na = math.sin(k) * v * p"],
    "future": ["from __future__ import annotations\ndef f(u: nothing) -> nothing:\n    return u * 2\na = f(v)\nf.__annotations__"],
    "ends with a loop": ["for i in range(3):\n    v[i] * 2\n    i"],
    "tuple shown": ["v[0], x.sum()", "_[0]"],
    "mutated then shown": ["v[0] = 5\nv", "v[1] = 6\n_"],
    "printed in the middle of work": ["a = v * 2\nprint('one', a[0])\na += 1\nprint('two', a[0], a.sum())\na *= 2"],
    "errors in a print": ["print(v * 2, nothing, x * 2)", "print(v[9], v * 2)", "print('a', x @ v)"],
    "keyword arguments": ["a = dict(a=v * 2, b=k, c=x.sum())\nprint(*[1, 2], sep=str(int(v.sum())))\nb = list(zip(v * 2, x[0]))"],
    "nothing": ["# only a comment", "\n\n", "pass"],
    "docstring": ["'''text'''\na = v * 2"],
}

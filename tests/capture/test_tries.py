"""`try` in what is captured: its body, `else` and `finally` are compiled, and a handler is Python's, taken when something is
raised. Values, errors with what is behind them, effects and arguments are Python's at each call."""

import linecache

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from tests.cell_runs import run_cell

ONES, ZEROS = np.ones(3), np.zeros(3)
SINGULAR = np.zeros((2, 2))
REGULAR = np.array([[2.0, 1.0], [0.5, 3.0]])

#: Programs `f(x, k, log)`: the text of the body, and what x and k are in calls of which some raise and some do not.
PROGRAMS = {
    "a library's error": (
        "try:\n    y = np.linalg.inv(x)\nexcept np.linalg.LinAlgError:\n    y = np.linalg.pinv(x) + 7\nreturn y * k",
        [(REGULAR, 2.0), (SINGULAR, 2.0), (REGULAR * 2, 3.0)],
    ),
    "a key": (
        "d = {'a': 2.0, 'b': 3.0}\ntry:\n    v = d[k]\nexcept KeyError as e:\n    v = len(str(e)) / 2\nreturn np.sin(x) * v",
        [(ONES, "a"), (ONES, "?"), (ONES * 2, "b"), (ONES, "???")],
    ),
    "an index": (
        "try:\n    return x[k] * 2\nexcept IndexError:\n    return -1.0",
        [(ONES, 1), (ONES, 7), (ONES, 2), (ONES[:1], 1)],
    ),
    "a division": (
        "try:\n    r = 1.0 / k\nexcept ZeroDivisionError:\n    r = -1.0\nelse:\n    r = r + 1\nreturn x * r",
        [(ONES, 2.0), (ONES, 0.0), (ONES, 0), (ONES, 4)],
    ),
    "an element divides": (
        "try:\n    return float(x[0]) / float(x[1]) + x\nexcept ZeroDivisionError as e:\n    return str(e)",
        [(ONES, 0), (ZEROS, 0), (ONES * 2, 0)],
    ),
    "finally puts back": (
        "x += 1\ntry:\n    y = np.sqrt(x).sum() / (1 // k)\nfinally:\n    x -= 1\nreturn y",
        [(ONES, 1), (ONES, 0), (ONES, 1.0), (ONES, 2)],
    ),
    "finally over a return": (
        "try:\n    return x.sum() + x[k]\nfinally:\n    x *= 3",
        [(ONES, 1), (ONES, 5), (ZEROS, 2)],
    ),
    "finally that returns": ("try:\n    y = x[k] * 2\nfinally:\n    return x + 1", [(ONES, 1), (ONES, 5)]),
    "finally that breaks": (
        "for i in range(4):\n    try:\n        y = x[i] * 2\n    finally:\n        break\nreturn y",
        [(ONES, 1), (ONES[:0], 5)],
    ),
    "finally that goes on": (
        "s = 0.0\nfor i in range(5):\n    try:\n        s = s + x[i]\n    finally:\n        continue\nreturn s",
        [(ONES, 1), (np.ones(6), 5)],
    ),
    "a raise": (
        "try:\n    if x.sum() > k:\n        raise ValueError('too much')\n    y = x * 2\nexcept ValueError as e:\n"
        "    y = str(e)\nreturn y",
        [(ONES, 5), (ONES, 1), (ZEROS, 1)],
    ),
    "raised from": (
        "try:\n    return x[k] + 1\nexcept IndexError as e:\n    raise KeyError(k) from e",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "raised from None": (
        "try:\n    return x[k] + 1\nexcept IndexError:\n    raise KeyError(k) from None",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "raised in a handler": (
        "try:\n    return x[k] + 1\nexcept IndexError:\n    return x + (1 // (k - 9))",
        [(ONES, 1), (ONES, 9), (ONES, 11)],
    ),
    "raised again": (
        "try:\n    return x[k] + 1\nexcept IndexError:\n    log.append('seen')\n    raise",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "raised in finally": (
        "try:\n    y = x[k] + 1\nfinally:\n    z = 1 // (k - 9)\nreturn y + z",
        [(ONES, 1), (ONES, 9), (ONES, 11)],
    ),
    "raised in else": (
        "try:\n    y = x[0] + 1\nexcept IndexError:\n    y = 7.0\nelse:\n    y = y + x[k]\nreturn y * 2",
        [(ONES, 1), (ONES, 9), (ONES[:0], 1)],
    ),
    "nested, the outer handler": (
        "try:\n    try:\n        y = x[k] + 1\n    except KeyError:\n        y = 1.0\n    finally:\n        x *= 2\n"
        "except IndexError:\n    y = x.sum()\nreturn y",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "nested, in the handler": (
        "try:\n    y = x[k] + 1\nexcept IndexError:\n    try:\n        y = x[k - 7] * 5\n    except IndexError as e:\n"
        "        y = repr(e.__context__)\nreturn y",
        [(ONES, 1), (ONES, 9), (ONES, 20), (ONES, 2)],
    ),
    "the name is deleted": (
        "e = 5\ntry:\n    y = x[k]\nexcept IndexError as e:\n    y = 0.0\nreturn y * 2, e",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "an unbound name": (
        "try:\n    y = x[k] * 2\n    z = y + 1\nexcept IndexError:\n    pass\nreturn z",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "a store before the raise": (
        "try:\n    x[0] = 5\n    y = x[k] * 2\n    x[1] += 1\nexcept IndexError:\n    x[2] -= 1\n    y = -1.0\nreturn y",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "a loop that goes on": (
        "s = 0.0\nfor i in range(8):\n    try:\n        s += x[i] * k\n    except IndexError:\n        continue\n"
        "    s += 0.5\nreturn s",
        [(np.ones(8), 2.0), (ONES, 2.0), (np.ones(9), 1.0)],
    ),
    "a loop that breaks": (
        "s = 0.0\nfor i in range(8):\n    try:\n        s += x[i]\n    except IndexError:\n        break\nelse:\n"
        "    s = -s\nreturn s",
        [(np.ones(8), 2.0), (ONES, 2.0)],
    ),
    "a long loop inside": (
        "s = 0.0\ntry:\n    for i in range(200):\n        s += x[i] * i\nexcept IndexError:\n    s = -s\nreturn s",
        [(np.ones(200), 2.0), (ONES, 2.0), (np.ones(201), 1.0)],
    ),
    "a while that tries": (
        "i = 0\nwhile i < 50:\n    try:\n        x = x + 1 / (k - i)\n    except ZeroDivisionError:\n"
        "        x = x * 0\n    i += 1\nreturn x",
        [(ONES, 100), (ONES, 20), (ONES, 99.5)],
    ),
    "bare": ("try:\n    y = x.reshape(k)\nexcept:\n    y = x * 0\nreturn y + 1", [(ONES, 3), (ONES, 4), (ONES, (1, 3))]),
    "bare around a loop": (
        "try:\n    for i in range(40):\n        x = x + x[k]\nexcept:\n    x = x * 0\nreturn x",
        [(ONES, 1), (ONES, 4)],
    ),
    "several kinds": (
        "try:\n    y = x[k] / 2\nexcept (KeyError, TypeError):\n    y = 1.0\nexcept IndexError:\n    y = 2.0\nreturn x + y",
        [(ONES, 1), (ONES, 4), (ONES, "a"), (ONES, None)],
    ),
    "a kind that is no class": ("try:\n    y = x[k]\nexcept 5:\n    y = 1.0\nreturn x + y", [(ONES, 1), (ONES, 4)]),
    "a kind that has no name": ("try:\n    y = x[k]\nexcept Missing:\n    y = 1.0\nreturn x + y", [(ONES, 1), (ONES, 4)]),
    "effects in all of it": (
        "log.append('begun')\ntry:\n    y = x[k] * 2\n    log.append('body')\n"
        "except IndexError:\n    log.append('handler')\n    y = 0.0\n"
        "else:\n    log.append('else')\nfinally:\n    log.append('finally')\nreturn np.tanh(x) + y",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "a print in the handler": (
        "try:\n    y = np.exp(x)[k]\nexcept IndexError as e:\n    print('no', e)\n    y = 0.0\nreturn x + y",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "a helper that raises": (
        "def helper(v):\n    if k > 5:\n        raise LookupError(k)\n    return v * 2\n"
        "try:\n    y = helper(x)\nexcept LookupError as e:\n    y = e.args[0] + x\nreturn y",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "a helper that tries": (
        "def helper(v, i):\n    try:\n        return v[i]\n    except IndexError:\n        return v.sum()\n"
        "return helper(x, 1) + helper(x * 2, k)",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
    "an assert": (
        "try:\n    assert x.sum() < k, 'large'\n    return x * 2\nexcept AssertionError as e:\n    return str(e)",
        [(ONES, 5), (ONES, 1), (ZEROS, 5)],
    ),
    "a text that is no number": (
        "try:\n    n = float(k)\nexcept (TypeError, ValueError):\n    n = np.nan\nreturn x * n",
        [(ONES, "2.5"), (ONES, "two"), (ONES, "3"), (ONES, None)],
    ),
    "an attribute": (
        "try:\n    n = k.real_part\nexcept AttributeError:\n    n = k.real\nreturn x * n",
        [(ONES, 2.0), (ONES, 3j)],
    ),
    "groups": (
        "try:\n    y = x[k] * 2\nexcept* IndexError as group:\n    y = len(group.exceptions)\nreturn y + x",
        [(ONES, 1), (ONES, 9)],
    ),
    "an import in the handler": (
        "try:\n    y = x[k] * 2\nexcept IndexError:\n    import math\n    y = math.pi\nreturn y + x",
        [(ONES, 1), (ONES, 9)],
    ),
    "errors that NumPy is asked for": (
        "with np.errstate(all='raise'):\n    try:\n        y = x / k\n    except FloatingPointError as e:\n"
        "        y = str(e)\nreturn y",
        [(ONES, 2.0), (ONES, np.float64(0)), (ZEROS, 2)],
    ),
    "what another element is": (
        "try:\n    n = int(x[0])\nexcept (ValueError, OverflowError) as e:\n    n = -len(str(e))\nreturn x[1:] * n",
        [(ONES, 0), (np.full(3, np.nan), 0), (np.full(3, np.inf), 0), (ONES * 2, 0)],
    ),
    "a draw before it": (
        "r = np.random.RandomState(3)\ny = r.random(3)\ntry:\n    y = y + x[k]\nexcept IndexError:\n"
        "    y = y + r.random(3)\nreturn y",
        [(ONES, 1), (ONES, 9), (ONES, 2)],
    ),
}


def made(body):
    """The function of a text, with its source."""
    text = "def f(x, k, log):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    names = {"np": np}
    name = f"<try {len(linecache.cache)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"), names)
    return names["f"]


def told(error):
    """An error, what is behind it, and where in the program it was raised."""
    lines, entry = [], error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename.startswith(("<try", "<cell")):
            lines.append(entry.tb_lineno)
        entry = entry.tb_next
    behind = [None if e is None else told(e)[:2] for e in (error.__cause__, error.__context__)]
    text = str(error).split("\n")[0]  # notes of jitlab's stand below
    return type(error), text, behind, error.__suppress_context__, lines[-1:]


def outcome(call, x, k, capsys):
    x, log = x.copy(), []
    try:
        result = repr(call(x, k, log))
    except Exception as error:
        result = told(error)
    return result, repr(x), log, capsys.readouterr().out


def as_cell(f):
    """The body as a helper of a cell."""
    names = {"f": f, "np": np}

    def call(x, k, log):
        names.update(x=x, k=k, log=log)
        run_cell("result = f(x, k, log)\nagain = result", names, "<cell>")
        return names["again"]

    return call


def inside(f):
    """The function as a helper of another one, that is told the same."""
    return jl.jit(lambda x, k, log: f(x, k, log))


WAYS = {"jit": jl.jit, "cell": as_cell, "inside": inside}


@pytest.mark.parametrize("settle", ["off", "model", "measure"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_call_is_pythons(name, way, settle, monkeypatch, capsys):
    monkeypatch.setattr(jl.config, "settle", settle)
    body, cases = PROGRAMS[name]
    plain, call = made(body), WAYS[way](made(body))
    for _ in range(6):
        for x, k in cases:
            assert outcome(call, x, k, capsys) == outcome(plain, x, k, capsys)


CELLS = {
    "a key": "d = {'a': 2.0}\ntry:\n    v = d[k] * x\nexcept KeyError as e:\n    v = str(e)\nw = v",
    "an index": "try:\n    y = x[k] * 2\n    z = y + 1\nexcept IndexError:\n    y = 'none'\nelse:\n    z = z * 2\nfinally:\n"
        "    u = x + 1\nw = y",
    "a name that is deleted": "e = 5\ntry:\n    y = x[k]\nexcept IndexError as e:\n    y = 0.0\nw = y * 2",
    "an if": "y = x * 2\ntry:\n    if k > 5:\n        raise ValueError(k)\n    y = y + 1\nexcept ValueError as e:\n"
        "    y = e.args\nw = y",
    "in a loop": "y = 0.0\nfor i in range(6):\n    try:\n        y += x[i]\n    except IndexError:\n        continue\n"
        "    y += 1\nw = y",
    "stores": "try:\n    x[0] = 5\n    y = x[k] * 2\nexcept IndexError:\n    x[1] = 7\nw = x + 1",
    "raised": "y = x + 1\ntry:\n    y = y + x[k]\nfinally:\n    y = y * 2\nw = y",
    "nested": "try:\n    try:\n        y = x[k] + 1\n    finally:\n        z = x * 2\nexcept Exception as e:\n"
        "    y = repr(e)\nw = y",
}


def left(run, names, text):
    """What a cell leaves in its namespace, and the error that it ends with."""
    try:
        run(text, names)
        error = None
    except Exception as raised:
        error = told(raised)[:3]
    return error, repr(sorted((name, value) for name, value in names.items() if name not in ("np", "__builtins__")))


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_leaves_what_python_leaves(name):
    names = {"np": np}  # one namespace: traces read names from it
    for k in (1, 9, 2, "a", 2, 0, 1) * 3:
        start = {"np": np, "x": np.ones(3), "k": k}
        names.clear()
        names.update(np=np, x=np.ones(3), k=k)
        expected = left(lambda text, found: exec(compile(text, "<cell>", "exec"), found), start, CELLS[name])
        assert left(lambda text, found: run_cell(text, found, "<cell>"), names, CELLS[name]) == expected


WHOLE = (
    "a library's error", "an index", "a division", "an element divides", "finally puts back", "a raise", "raised from", "bare",
    "nested, the outer handler", "a store before the raise", "an assert", "an import in the handler", "a long loop inside",
)  # fmt: skip
IN_PIECES = {
    "finally that returns": "a `finally` that jumps",
    "groups": "groups of errors",
    "bare around a loop": "catches interrupts",
    "effects in all of it": "append",
}


def reasons(f, *args):
    heard = []
    with events.listen(heard.append):
        f(*args)
    return [str(event.text) for event in heard if event.kind == "statement-ran"]


@pytest.mark.parametrize("name", WHOLE)
def test_where_nothing_is_raised_the_call_is_captured_whole(name, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    body, cases = PROGRAMS[name]
    f = jl.jit(made(body))
    x, k = cases[0]
    for _ in range(3):
        f(x.copy(), k, [])
    assert f.experimental_get_tracing_count() == 1 and not reasons(f, x.copy(), k, [])


@pytest.mark.parametrize("name", IN_PIECES)
def test_what_cannot_be_recorded_says_why(name, monkeypatch):
    monkeypatch.setattr(jl.config, "settle", "off")
    body, cases = PROGRAMS[name]
    f = jl.jit(made(body))
    assert any(IN_PIECES[name] in text for text in reasons(f, cases[0][0].copy(), cases[0][1], []))


def test_a_try_with_a_handler_for_interrupts_is_pythons(monkeypatch):
    """An interrupt ends what is compiled, whatever the program would catch."""
    monkeypatch.setattr(jl.config, "settle", "off")
    for kinds in ("KeyboardInterrupt", "(ValueError, SystemExit)", "builtins.KeyboardInterrupt"):
        f = jl.jit(made(f"try:\n    y = x * 2\nexcept {kinds}:\n    y = x\nreturn y"))
        assert any("interrupts" in text for text in reasons(f, ONES, 0, []))

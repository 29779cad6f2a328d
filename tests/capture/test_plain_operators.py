"""Operators of plain arrays are recorded in few steps: the same nodes, results and errors as by their rules."""

import itertools
import linecache

import numpy as np
import pytest

import jitlab as jl
from jitlab.capture import CallCapture, record_call
from jitlab.capture.numpy_calls import functions, plain_operators

OPERATORS = "+ - * / < <= > >= == != ** // %".split()
ARRAYS = {
    "f8": np.linspace(-2, 2, 6), "f8 too": np.linspace(1, 3, 6), "matrix": np.linspace(-1, 1, 12).reshape(2, 6),
    "columns": np.asfortranarray(np.linspace(-1, 1, 12).reshape(2, 6)), "row": np.ones((1, 6)), "one": np.ones(1),
    "f4": np.linspace(0, 1, 6, dtype=np.float32), "f2": np.linspace(0, 1, 6, dtype=np.float16), "i8": np.arange(6),
    "bool": np.arange(6) > 2, "c16": np.linspace(0, 1j, 6), "scalar": np.float64(1.5), "0-d": np.array(2.5),
    "strided": np.linspace(-2, 2, 12)[::2], "empty": np.ones(0), "big": np.linspace(-2, 2, 6).astype(">f8"),
}  # fmt: skip
NUMBERS = ["2", "2.5", "-1", "0", "-0.0", "np.nan", "1e300", "True", "2j", "1 << 60", "np.float32(3)"]


def defined(text, name="<plain>"):
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"np": np}
    exec(compile(text, name, "exec"), names)
    return names["f"]


def recorded(text, *arrays):
    """The nodes of a recording; or why there is none."""
    f, capture = defined(text), CallCapture("f", strict=False)
    arrays = (*arrays, *(f.__defaults__ or ()))
    try:
        names = f.__code__.co_varnames[: f.__code__.co_argcount]
        trace = record_call(capture, f, names, arrays, lambda given: (tuple(given), {}), 1)
    except Exception as error:
        return type(error), str(error)
    graph = trace.graph
    nodes = [
        (node.name, str(node.op), str(node.type), sorted(node.sources), [source.name for source in node.inputs])
        for node in (*graph.parameters, *graph.nodes)
    ]
    return nodes, [node.name for node in graph.outputs], trace.shared, trace.rows


def compared(monkeypatch, text, *arrays):
    """Both ways; how many nodes the short one made."""
    made, shape = [], plain_operators._shape

    def counted(shapes):  # (nothing reads an array while it runs: code of a test is code of a user's)
        made.append(found := shape(shapes))
        return found

    with monkeypatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(plain_operators, "_shape", counted)
        plain = recorded(text, *arrays)
        patch.setattr(functions, "plain_operator", lambda capture, name, operands: None)
        by_rule = recorded(text, *arrays)
    assert plain == by_rule, text
    return sum(found is not None for found in made)


def of(expression):
    """A program that shows the order of what it makes in memory, and whether that is a scalar."""
    names = "x, y" if "y" in expression else "x"
    return f"def f({names}):\n    z = {expression}\n    return z, np.ravel(z, order='K'), np.isscalar(z)\n"


@pytest.mark.parametrize("sign", OPERATORS)
def test_arrays_with_arrays(monkeypatch, sign):
    made = 0
    for a, b in itertools.product([ARRAYS[name] for name in ("f8", "columns", "f4", "scalar", "strided")], ARRAYS.values()):
        made += compared(monkeypatch, of(f"x {sign} y"), a, b)
    assert (made > 0) is (sign not in ("**", "//", "%"))


@pytest.mark.parametrize("sign", OPERATORS)
def test_arrays_with_numbers(monkeypatch, sign):
    made = 0
    for a, number in itertools.product(ARRAYS.values(), NUMBERS):
        made += compared(monkeypatch, of(f"x {sign} ({number})"), a)
        made += compared(monkeypatch, of(f"({number}) {sign} x"), a)
    assert (made > 0) is (sign not in ("//", "%"))


PROGRAMS = [
    "def f(x):\n    y = x[1:]\n    return y * y - x[:-1]\n",
    "def f(x):\n    y = x.copy()\n    y[2:4] = 7\n    return y * 2 + y[::-1]\n",
    "def f(x):\n    x[0] = 3\n    return x * 2, -x\n",
    "def f(x):\n    return -(x * x.shape[0]) + len(x)\n",
    "def f(x):\n    return (x.sum() * 2 + 1) * x\n",
    "def f(x):\n    for i in range(40):\n        x = x * 0.5 + i\n    return x\n",
    "def f(x):\n    t = 0.0\n    for i in range(x.shape[0]):\n        t = t + x[i] * 2\n    return t\n",
    "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    else:\n        x = x - 1\n    return x * 2\n",
    "def f(x):\n    return x[x > 0] * 2 + 1\n",
    "def f(x):\n    return (x * 2)[None, :] + (x / 3)[:, None]\n",
    "def f(x):\n    return [x, x] * 2, (x * 2 == x + x).all()\n",
    "def f(x):\n    return x + np.ones(5)\n",
    "def f(x, s=2.5):\n    return s * x - s + (s < x)\n",
    "def f(x):\n    y = x\n    y += 1.0\n    return x * y\n",
]
#: A loop that is rolled; a number of the call's.
BY_RULE = (PROGRAMS[5], PROGRAMS[12])


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs(monkeypatch, text):
    x = np.linspace(-2, 2, 6)
    made = compared(monkeypatch, text, x.copy())
    try:
        expected = defined(text)(x.copy())
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error).split("(")[0]):
            jl.jit(defined(text))(x.copy())
        return
    assert (made > 0) is (text not in BY_RULE)
    given = jl.jit(defined(text))(x.copy())
    assert str(given) == str(expected)
    assert type(given) is type(expected)


def test_a_users_operator_is_not_captured_unseen():
    """`__add__` of a class of the user's may do more than work on arrays: it is Python's at each call."""
    text = """
log = []
class Counted:
    def __init__(self, x):
        self.x = x
    def __add__(self, other):
        log.append(1)
        return self.x + other.x * 2.0

def f(x):
    return Counted(x) + Counted(x)
"""
    linecache.cache["<counted>"] = (len(text), None, text.splitlines(True), "<counted>")
    names = {"np": np}
    exec(compile(text, "<counted>", "exec"), names)
    f, x = jl.jit(names["f"]), np.ones(3)
    for n in range(1, 8):
        assert f(x).tolist() == [3.0] * 3
        assert len(names["log"]) == n

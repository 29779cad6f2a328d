"""Functions without readable source are read from their bytecode: straight lines and `if`."""

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.capture.rewrite.bytecode import read_definition

PROGRAMS = {
    "arithmetic": "def f(x, y):\n    return (x + y) * 2 - x / y ** 2 + -x",
    "names": "def f(x, y):\n    a = x * 2\n    b = a + y\n    a = b * a\n    return a, b",
    "swap": "def f(x, y):\n    x, y = y, x\n    a, b = y * 2, x\n    return x - y, a, b",
    "calls": "def f(x, y):\n    return np.tanh(x).sum() + np.clip(y, a_min=0.2, a_max=0.9).mean(axis=0)",
    "subscripts": "def f(x, y):\n    return x[1:] + y[:-1] * x[0] + x[::2].sum() + y[1]",
    "stores": "def f(x, y):\n    z = np.zeros(5)\n    z[1:] = x[:-1]\n    z[0] = 3.0\n    z += y\n    z[2] *= 4\n    return z",
    "if": "def f(x, y):\n    if x.shape[0] > 3:\n        z = x * 2\n    else:\n        z = y\n    return z + 1",
    "early return": "def f(x, y):\n if x is None:\n  return y\n if y.ndim == 1 and x.ndim != 2:\n  return x - y\n return x",
    "traced if": "def f(x, y):\n    if x.sum() > 2:\n        return x * y\n    return x + y",
    "ternary": "def f(x, y):\n    return x * (2 if y.ndim == 1 else 3)",
    "containers": "def f(x, y):\n    return {'a': [x + 1, (y, 2.5)], 'b': x.T}",
    "comparisons": "def f(x, y):\n    return np.where(x >= y, x, y), x != y",
    "defaults": "def f(x, y, *rest, k=2.0, **more):\n    return x * k + y",
}  # fmt: skip


def without_source(text):
    namespace = {"np": np}
    exec(text, namespace)
    return namespace["f"]


def same(a, b):
    if isinstance(a, dict):
        assert list(a) == list(b)
        return all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        return all(map(same, a, b))
    assert type(a) is type(b)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_captured_whole_and_gives_pythons_results(name):
    f = without_source(PROGRAMS[name])
    jitted = jl.jit(capture_mode="bytecode", fullgraph=True)(f)
    for x, y in ((np.linspace(0.1, 1, 5), np.linspace(1, 2, 5)), (np.linspace(2, 3, 5), np.linspace(1, 2, 5))):
        assert same(jitted(x, y), f(x, y))


def test_mode_ast_runs_it_as_python_and_says_why():
    f = without_source(PROGRAMS["arithmetic"])
    heard = []
    with events.listen(heard.append):
        assert same(jl.jit(f)(np.ones(3), np.ones(3)), f(np.ones(3), np.ones(3)))
    assert [event.reason for event in heard if event.kind == "statement-ran"] == ["source"]


def test_a_loop_is_left_to_python():
    f = without_source("def f(x):\n    for i in range(3):\n        x = x + i\n    return x")
    assert read_definition(f) is None
    assert same(jl.jit(capture_mode="bytecode")(f)(np.ones(3)), np.full(3, 4.0))


def test_effects_happen_on_every_call():
    f = without_source("def f(x, log):\n    y = x * 2\n    log.append(1)\n    return y + 1")
    log = []
    jitted = jl.jit(capture_mode="bytecode")(f)
    for _ in range(3):
        assert same(jitted(np.ones(3), log), np.full(3, 3.0))
    assert log == [1, 1, 1]

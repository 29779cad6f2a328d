"""A name that means Python's own in a first call, and something of the program's later: each call sees what it means then."""

import importlib.util

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

X = np.array([-1.0, 2.0])


@pytest.fixture
def program(tmp_path):
    """Makes a module of some source and names."""

    def made(source, **names):
        path = tmp_path / "of_builtins.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("of_builtins", path)
        module = importlib.util.module_from_spec(spec)
        vars(module).update(np=np, jl=jl, **names)
        spec.loader.exec_module(module)
        return module

    return made


WAYS = {"whole": "", "in pieces": "    log.append(1)\n"}


@pytest.mark.parametrize("way", WAYS)
def test_a_function_that_is_defined_under_a_builtins_name_is_called(program, way):
    module = program(f"@jl.jit\ndef f(x):\n{WAYS[way]}    return abs(x) + max(x[0], 2.0)\n", log=[])
    for _ in range(12):
        np.testing.assert_array_equal(module.f(X), [3.0, 4.0])
    module.abs = lambda v: v * 100
    np.testing.assert_array_equal(module.f(X), X * 100 + 2)
    module.max = lambda a, b: 7.0
    np.testing.assert_array_equal(module.f(X), X * 100 + 7)
    del module.abs, module.max
    np.testing.assert_array_equal(module.f(X), [3.0, 4.0])


@pytest.mark.parametrize("way", WAYS)
def test_a_variable_under_a_builtins_name_is_read_at_each_call(program, way):
    module = program(f"@jl.jit\ndef f(x):\n{WAYS[way]}    return x * input + filter\n", log=[], input=2.0, filter=np.ones(2))
    for _ in range(12):
        np.testing.assert_array_equal(module.f(X), X * 2 + 1)
    module.input = 3.0
    np.testing.assert_array_equal(module.f(X), X * 3 + 1)
    module.filter = np.zeros(2)
    np.testing.assert_array_equal(module.f(X), X * 3)


def test_a_cell_sees_what_a_name_means_now():
    names = {"np": np, "x": X}
    source = "y = abs(x) * 2\n"
    for _ in range(3):
        run_cell(source, names, "<a cell>")
        np.testing.assert_array_equal(names["y"], [2.0, 4.0])
    names["abs"] = lambda v: v
    run_cell(source, names, "<a cell>")
    np.testing.assert_array_equal(names["y"], [-2.0, 4.0])


def test_the_retrace_says_which_name_means_something_else(program):
    module = program("@jl.jit\ndef f(x):\n    return abs(x) + 1\n")
    module.f(X)
    module.abs = np.negative
    (change,) = module.f.explain_key(X).changes
    assert (change.path, change.before) == ("abs", "Python's own")
    assert not module.f.would_hit(X)
    np.testing.assert_array_equal(module.f(X), 1 - X)

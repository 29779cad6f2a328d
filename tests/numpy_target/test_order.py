"""A loop is parallel or serial: the iterations of a parallel one run in any order, and every Program gives the same bits."""

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir.programs.program import PARALLEL, For, walk
from jitlab.lower.schedule import statements
from jitlab.notebook.extension import unload_ipython_extension
from jitlab.runtime import Executable
from tests.lower.bodies import RandomProgram
from tests.notebook.shells import new_shell
from tests.notebooks.test_lessons import LESSONS
from tests.numpy_target.target import InAnyOrder, on_numpy
from tests.numpy_target.test_lessons import left
from tests.ops import test_table
from tests.runtime import test_compiled_operations, test_compiled_table


@pytest.fixture
def any_order():
    InAnyOrder.wrong.clear()
    with on_numpy(InAnyOrder):
        yield
    assert InAnyOrder.wrong == []


@pytest.mark.parametrize(("op", "arrays"), list(test_compiled_operations.samples()))
def test_an_operation_gives_the_same_bits_in_any_order(any_order, op, arrays):
    test_compiled_operations.test_compiled_equals_numpy(op, arrays)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(20))
@pytest.mark.parametrize("family", test_table.FAMILIES)
def test_sample_calls_give_the_same_bits_in_any_order(any_order, family, first):
    found = [test_compiled_table.outcome(p) for p in list(test_table.FAMILIES[family]())[first::20]]
    assert [text for text in found if text not in ("", "refused")] == []


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lessons_programs_give_the_same_bits_in_any_order(any_order, lesson, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jitlab.notebook.saved_outputs.cache_folder", lambda: tmp_path)
    shell = new_shell()
    try:
        left(shell, lesson)
    finally:
        unload_ipython_extension(shell)
        InteractiveShell.clear_instance()


def run(seed):
    program = RandomProgram(seed)
    runnable(cluster(program.graph, jit_compile=True)).run(program.arrays)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_loops_give_the_same_bits_in_any_order(any_order, first):
    for seed in range(first, first + 20):
        run(seed)


def shifted(x):
    x[:-1] = x[1:] * 2
    return x



def scattered(x, i):
    y = np.zeros(5)
    y[i] = x
    return y


def stencil(a, b):
    b[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1]
    return b


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def thirds(x):
    x[2:] = x[:-2] + x[2:]
    x[:-3] += x[3:]
    return x


X, V = np.arange(42.0).reshape(6, 7), np.arange(9.0)


@pytest.mark.parametrize("array", [V, np.arange(2000.0), X], ids=["short", "long", "rows"])
@pytest.mark.parametrize("function", [shifted, thirds])
def test_were_a_serial_loop_called_parallel_the_bits_would_differ(any_order, monkeypatch, function, array):
    if array is X and function is thirds:
        array = np.arange(60.0).reshape(10, 6)
    np.testing.assert_array_equal(jl.jit(function)(array.copy()), function(array.copy()))
    assert InAnyOrder.wrong == []
    monkeypatch.setattr(statements, "ASCENDING", PARALLEL)
    jl.jit(function)(array.copy())
    assert InAnyOrder.wrong
    InAnyOrder.wrong.clear()


@pytest.mark.parametrize(("function", "arrays", "wanted"), [
    (shifted, [V], "a"),  # each iteration reads what the next one overwrites
    (shifted, [X], "a"),
    (lambda x: x * 2 + 1, [V], "p"),
    (lambda x: x.T * 2, [X], "p"),
    (stencil, [X, X + 1], "pp"),
    (softmax, [X], "pvvp"),
    (lambda x: x.sum(axis=1), [X], "pv"),
    (lambda x: np.cumsum(x, axis=1), [X], "ps"),
    (lambda x: np.cumsum(x, axis=0), [X], "ps"),
    (lambda x: np.concatenate([x, x * 2], axis=1), [X], "pppp"),
    (lambda x, i: x[i] * 2, [V, np.array([1, 1, 0])], "p"),
    (scattered, [np.arange(3.0), np.array([1, 1, 0])], "ps"),
])  # fmt: skip
def test_loops_are_parallel_where_no_iteration_touches_what_another_writes(function, arrays, wanted, monkeypatch):
    programs, real = [], Executable._lower
    monkeypatch.setattr(Executable, "_lower", lambda *args: programs.append(real(*args)) or programs[-1])
    jl.jit(function)(*(a.copy() for a in arrays))
    found = ""
    for lowered in programs:
        for kernel in lowered.program.kernels:
            found += "".join(s.kind[0] for s in walk(kernel.body) if isinstance(s, For))
    assert found == wanted

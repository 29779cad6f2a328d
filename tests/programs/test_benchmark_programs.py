"""The programs of the benchmark give and leave what plain Python does: under `jl.jit` whichever way their calls go, in a cell,
and, where it can record them, under `jl.function`."""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
import types

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from benchmarks.programs import markets
from benchmarks.programs.alike import difference, state
from benchmarks.programs.record import given
from benchmarks.programs.registry import PROGRAMS
from jitlab.api import settling
from jitlab.api.functions import jit as jit_module
from jitlab.api.settling import COMPILED, PATIENCE, PYTHON
from jitlab.notebook.extension import unload_ipython_extension
from tests.notebook.shells import new_shell

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = sorted(PROGRAMS)
#: Sums and functions differ in the last bits (docs/reference/numerics.md); programs add up some tens of them.
BOUND = 1e-11

#: What `jl.function` does not record: the error, and why.
NOT_RECORDED = {
    "k_nearest": (jl.errors.ValueOfTracedArrayError, "an element of an array as the key of a dict"),
    "kmeans": (jl.errors.CaptureError, "rows taken out by a mask, in a loop that a traced value ends"),
    "predator_prey": (jl.errors.CaptureError, "a generator as the result"),
    "simplify_line": (jl.errors.ValueOfTracedArrayError, "parts whose lengths the data decide, in calls of itself"),
}


def result_of(call, arguments):
    try:
        result = call(*arguments.args, **arguments.kwargs)
        return list(result) if isinstance(result, types.GeneratorType) else result
    except Exception as error:
        return type(error), str(error)


def outcome(call, program, capsys, calls):
    """What some calls give, and leave in arguments, on the page and in random generators."""
    np.random.seed(1)
    random.seed(1)
    left = []
    for _ in range(calls):
        arguments = program.arguments("small")
        result = result_of(call, arguments)
        left.append((result, arguments.args, arguments.kwargs, [result is x for x in arguments.args]))
    return state([left, capsys.readouterr().out, np.random.random(), random.random()])


def assert_same(call, program, capsys, calls):
    found = outcome(call, program, capsys, calls)
    assert not difference(found, outcome(program.function, program, capsys, calls), BOUND)


@pytest.fixture
def planned(monkeypatch):
    """Calls are measured by a clock that goes on by what each way is planned to take."""
    now, ways, before = [0], [], settling.tried

    def tried(trial, both, is_ready):
        def timed(way):
            result = both[way]()
            ways.append(way)
            now[0] += 1000 if way == PYTHON else 9000
            return result

        return before(trial, {way: lambda way=way: timed(way) for way in both}, is_ready)

    monkeypatch.setattr(jl.config, "settle", "measure")
    monkeypatch.setattr(jit_module, "_is_measurable", lambda: True)
    monkeypatch.setattr(settling, "clock", lambda: now[0])
    monkeypatch.setattr(settling, "tried", tried)
    return ways


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_program_gives_what_python_gives(name, capsys):
    assert_same(jl.jit(PROGRAMS[name].function), PROGRAMS[name], capsys, 2)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_program_gives_what_python_gives_while_it_settles(name, capsys, planned):
    compiled = jl.jit(PROGRAMS[name].function)
    assert_same(compiled, PROGRAMS[name], capsys, PATIENCE + 6)
    assert set(planned) <= {COMPILED, PYTHON}
    assert all(trial.way == PYTHON for trial in compiled._trials.values())


@pytest.fixture(scope="module")
def shell():
    shell = new_shell()
    yield shell
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


def in_a_cell(shell, function, source):
    """A call as a cell: its text calls the function, which a cell has defined."""
    name = function.__name__
    shell.user_ns.update({key: value for key, value in function.__globals__.items() if not key.startswith("__")})
    shell.run_cell(source).raise_error()

    def call(*args, **kwargs):
        shell.user_ns.update(args=args, kwargs=kwargs)
        shell.run_cell(f"%%jit -q\nresult = {name}(*args, **kwargs)").raise_error()
        return shell.user_ns.pop("result")

    return call


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_cell_that_calls_a_program_gives_what_python_gives(name, capsys, shell):
    function = PROGRAMS[name].function
    assert_same(in_a_cell(shell, function, inspect.getsource(function)), PROGRAMS[name], capsys, 2)


def body_of(function):
    """The body of a function as the text of a cell, or "" where it returns early or yields: its result is named `result`."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    *body, last = definition.body
    early = (ast.Return, ast.Yield, ast.YieldFrom)
    if not isinstance(last, ast.Return) or any(isinstance(node, early) for part in body for node in ast.walk(part)):
        return ""
    return ast.unparse(ast.Module([*body, ast.Assign([ast.Name("result")], last.value, lineno=0)], []))


BODIES = {name: text for name in NAMES if (text := body_of(PROGRAMS[name].function))}


def names_left(run, function, arguments):
    """What a body leaves: all names that it binds."""
    outside = {key: value for key, value in function.__globals__.items() if not key.startswith("__")}
    bound = inspect.signature(function).bind(*arguments.args, **arguments.kwargs)
    bound.apply_defaults()
    names = {**outside, **bound.arguments}
    before = set(outside) - set(bound.arguments)
    names = run(names)
    kept = {key: value for key, value in names.items() if key not in before and not key.startswith("_")}
    return state({key: value for key, value in sorted(kept.items()) if not isinstance(value, types.FunctionType)})


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(BODIES))
def test_a_body_as_a_cell_leaves_what_python_leaves(name, capsys, shell):
    program, text = PROGRAMS[name], BODIES[name]

    def as_python(names):
        exec(text, names)
        return names

    def as_cell(names):
        known = set(shell.user_ns)
        shell.user_ns.update(names)
        shell.run_cell("%%jit -q\n" + text).raise_error()
        left = {key: value for key, value in shell.user_ns.items() if key in names or key not in known}
        for key in left:
            del shell.user_ns[key]
        return left

    found, wanted = (
        [names_left(run, program.function, program.arguments("small")), capsys.readouterr().out] for run in (as_cell, as_python)
    )
    assert not difference(found, wanted, BOUND)


def without_kinds(x):
    """A state in which Python's numbers and NumPy's scalars are one, as results of `jl.function` are arrays."""
    if isinstance(x, (bool, int, float, complex)):
        return [str(np.asarray(x).dtype), [], x]
    if isinstance(x, list) and len(x) == 4 and isinstance(x[1], str) and isinstance(x[2], list):
        return x[1:]
    return [without_kinds(item) for item in x] if isinstance(x, list) else x


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_jl_function_gives_the_values_or_says_why_not(name, capsys):
    program, recorded = PROGRAMS[name], jl.function(PROGRAMS[name].function)
    for _ in range(2):
        mine, theirs = program.arguments("small"), program.arguments("small")
        wanted = result_of(program.function, theirs)
        if name in NOT_RECORDED:
            with pytest.raises(NOT_RECORDED[name][0]):
                recorded(*mine.args, **mine.kwargs)
            continue
        found = recorded(*mine.args, **mine.kwargs)
        assert not difference(without_kinds(state(found)), without_kinds(state(wanted)), BOUND)
        left = [[x for x in arguments.args if isinstance(x, (np.ndarray, list, dict))] for arguments in (mine, theirs)]
        assert not difference(state(left[0]), state(left[1]), BOUND)


def test_jl_function_records_most():
    assert set(NOT_RECORDED) <= set(PROGRAMS)
    assert len(NOT_RECORDED) <= 0.05 * len(PROGRAMS)


#: Calls that end with an exception of the program's.
RAISING = {
    "median_filter": given(np.ones(5), kernel_size=4),
    "newton_root": given([1.0, 0.0, 1.0], 0.0),
    "bisection": given([1.0, 2.0], 5.0, 9.0),
    "evaluate_rpn": given(["1", "+"]),
    "topological": given({1: [2], 2: [1]}),
    "black_scholes": given(1.0, 1.0, 0.0, 0.1, 0.2),
}


@pytest.mark.parametrize("name", sorted(RAISING))
def test_an_exception_is_the_programs(name):
    function, arguments = getattr(markets, name, None) or PROGRAMS[name].function, RAISING[name]
    compiled = jl.jit(function)
    wanted = result_of(function, arguments)
    assert issubclass(wanted[0], Exception)
    for _ in range(2):
        assert result_of(compiled, arguments) == wanted

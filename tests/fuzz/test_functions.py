"""Random functions of aliases, views, writes, branches, loops, containers and exceptions leave what Python leaves."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.api import settling
from tests.fuzz import functions, outcomes


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100))
def test_a_random_function_leaves_what_python_leaves(seed):
    program = functions.make(seed)
    for way in outcomes.ways_of(program):
        text = outcomes.failure(program, way)
        if text:
            outcomes.judge(text, str(outcomes.least(program, way)))


def test_equal_seeds_give_equal_programs_of_every_kind():
    texts = [str(functions.make(seed)) for seed in range(150)]
    assert texts == [str(functions.make(seed)) for seed in range(150)]
    whole = "\n".join(texts)
    parts = "for i in;while;break;try:;raise;.copy();.append(;Box(;print(;return (;[::-1];out=;given;.sum() >;LOG;slice(1"
    parts += ";itertools.product(;.flat;math.;.tolist();any(;float(;.item(;np.ndindex("
    assert not [part for part in parts.split(";") if part not in whole]


LOST = "v1 = a if a.sum() > 0 else a.copy()\nv1[0] = 7\nv2 = a * 2\nfor i in range(3):\n    v2 = v2 + i\nreturn (v1, v2)"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda f: lambda a: f(a.copy()), "call 0"),  # a write is lost, and who is who
        (lambda f: lambda a: (*f(a)[:1], np.float64(1)), "float64"),  # a type
        (lambda f: lambda a: [*f(a)], "list"),
        (lambda f: lambda a: f(a) and 1 / 0, "ZeroDivisionError"),
        (lambda f: lambda a: print("more") or f(a), "more"),
    ],
)
def test_what_differs_is_found_and_made_small(wrong, said, monkeypatch):
    """The judge itself: with an argument that is copied, a result of another type, an exception or a print too many."""
    program = functions.make(0)
    argument = program.arguments[0]
    argument.dtype, argument.shape, argument.layout, argument.of = "f8", ("N",), "C", ""
    program = functions.Program([argument], [], LOST.splitlines(), 0)
    assert not outcomes.failure(program, "jit")
    monkeypatch.setitem(outcomes.WAYS, "jit", wrong)
    assert said in outcomes.failure(program, "jit")
    assert len(outcomes.least(program, "jit").function) < len(program.function)


def test_what_is_ours_in_a_result_is_found(monkeypatch):
    program = functions.Program([], [], ["return 1"], 0)
    with jl.Graph().as_default():
        ours = jl.constant(1.0).node()
    monkeypatch.setitem(outcomes.WAYS, "jit", lambda f: lambda: ours)
    assert "left" in outcomes.failure(program, "jit")


@pytest.mark.filterwarnings("ignore")
def test_ways_that_settle_are_decided_both_ways(monkeypatch):
    found, decided = [], settling.Trial._decided
    monkeypatch.setattr(settling.Trial, "_decided", lambda trial: found.append(decided(trial)) or found[-1])
    program = functions.make(0)
    argument = program.arguments[0]
    argument.dtype, argument.shape, argument.layout, argument.of = "f8", ("N",), "C", ""
    for seed in range(12):
        program = functions.Program([argument], [], ["b = a * 2", "LOG.append(b.sum())", "return b + 1"], seed)
        assert not outcomes.failure(program, "jit measure")
    assert {settling.COMPILED, settling.PYTHON} <= {*found}

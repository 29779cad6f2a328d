"""Programs load and store inside their buffers, by the first and last element that each access reaches."""

import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir import Poly
from jitlab.ir.programs.program import Index, Store, walk
from jitlab.runtime.executable import Executable
from tests.fuzz import fuzzing, notebooks
from tests.reach import beyond

sys.path.insert(0, str(Path(__file__).parent.parent / "capture"))
from programs import PROGRAMS  # noqa: E402


@pytest.fixture
def lowered(monkeypatch):
    """Every Program that is made while the test runs."""
    made, lower = [], Executable._lower

    def noted(self, *args):
        made.append(lower(self, *args))
        return made[-1]

    monkeypatch.setattr(Executable, "_lower", noted)
    return made


def assert_inside(lowered):
    assert lowered
    for known in lowered:
        assert not beyond(known), f"{beyond(known)}\n{known.program.text}"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_programs_of_random_functions_stay_inside(seed, lowered):
    program = fuzzing.make(seed)
    fuzzing.failure(program)
    if lowered:
        assert_inside(lowered)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_programs_of_random_notebooks_stay_inside(seed, lowered):
    notebooks.failure(seed)
    assert_inside(lowered)


@pytest.mark.parametrize("function, x", PROGRAMS, ids=[f"{f.__name__}-{x.ndim}d" for f, x in PROGRAMS])
def test_programs_of_views_and_writes_stay_inside(function, x, lowered):
    for level in ("O1", "O0"):
        jl.jit(function, jit_level=level)(x.copy())
    for known in lowered:
        assert not beyond(known), f"{beyond(known)}\n{known.program.text}"


def stencil(x):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        y[i, 1:-1] = (x[i - 1, 1:-1] + x[i + 1, 1:-1] + x[i, :-2] + x[i, 2:]) / 4
    return y @ y.T


def test_what_reaches_too_far_is_found(lowered):
    x = np.random.default_rng(0).normal(size=(30, 40))
    jl.function(stencil)(x)
    assert_inside(lowered)
    known = lowered[-1]
    for kernel in known.program.kernels:
        for statement in walk(kernel.body):
            if isinstance(statement, Store) and not statement.gathered:
                before = statement.offset
                for by in (-(10**6), 10**6):
                    statement.offset = before + Index(Poly.constant(by))
                    assert any(statement.buffer.name in text for text in beyond(known))
                statement.offset = before
    assert not beyond(known)

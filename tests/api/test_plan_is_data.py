"""A plan is plain data: it holds nothing that can be called, and its JSON is made of what it holds."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.ir import Node

PACKAGE = Path(jl.__file__).parent

pytestmark = pytest.mark.usefixtures("compiled")


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def reduced_outer(x):
    return x - x.mean(axis=0)


def with_numpy(x):
    return np.unique(x)[:2].sum() + np.exp(x).sum()


def two_scopes(x):
    with jl.jit_scope(strict=True):
        e = np.exp(x)
    with jl.jit_scope(strict=True):
        return e * 2


def decided(x):
    with jl.jit_scope(fuse=("Exp", "Sum"), cut=("Exp", "Mul")):
        e = np.exp(x)
        return e.T @ e, e.sum(axis=0), e * 2


PROGRAMS = [softmax, reduced_outer, with_numpy, two_scopes, decided]


def plan_of(program):
    x = np.random.default_rng(3).random((7, 5))
    executable = jl.function(program)._replayable((x,), {})[0].executable
    executable.run([x])
    return executable.plan


def parts(value, seen):
    """What a value is made of; an operation of the graph is no part, but what it is stored under is."""
    if id(value) in seen or isinstance(value, Node):
        return
    seen.add(id(value))
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        planted = vars(value).values() if hasattr(value, "__dict__") else ()
        inner = [*(getattr(value, field.name) for field in dataclasses.fields(value)), *planted]
    elif isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = list(value)
    else:
        return
    for each in inner:
        yield from parts(each, seen)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_nothing_in_a_plan_can_be_called(program):
    assert [part for part in parts(plan_of(program), set()) if callable(part)] == []


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_json_of_a_plan_asks_no_stage(program):
    plan = plan_of(program)
    called = set()

    def note(frame, event, argument):
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            called.add(file.relative_to(PACKAGE).parts[0].removesuffix(".py"))

    sys.setprofile(note)
    try:
        data = plan.to_json()
    finally:
        sys.setprofile(None)
    assert data["ops"] and called <= {"ir", "ops", "messages", "support"}


def test_what_is_planted_in_a_plan_is_found():
    plan = plan_of(softmax)
    plan.clustering.asked = lambda: None
    assert plan.clustering.asked in parts(plan, set())

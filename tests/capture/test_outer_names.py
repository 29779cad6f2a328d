"""A function inside a function counts in a name around it (`nonlocal`) as often as Python does, in loops and branches too."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl


def in_a_while(x, note):
    while x.sum() < 1000:
        x = note(x)
    return x


def in_a_for(x, note):
    total = 0.0
    for i in range(len(x)):
        total = total + note(x[i])
    return total


def over_elements(x, note):
    for value in x:
        note(value)
    return x


def in_a_branch(x, note):
    if x[0] > 5:
        return note(x)
    return x


def in_an_expression(x, note):
    return note(x) if x[0] > 5 else x


def counting(body):
    def program(x):
        calls, last = 0, None

        def note(value):
            nonlocal calls, last
            calls += 1
            last = value * 2
            return last

        return body(x, note), calls, last is None

    return program


def counted_outside():
    calls = 0

    def note(value):
        nonlocal calls
        calls += 1
        return value * 2

    return note, lambda: calls


BODIES = [in_a_while, in_a_for, over_elements, in_a_branch, in_an_expression]


@pytest.mark.parametrize("way", [jl.function, jl.jit])
@pytest.mark.parametrize("body", BODIES)
def test_a_name_around_a_function_counts_its_calls(body, way):
    program, compiled = counting(body), way(counting(body))
    for x in (np.ones(3), np.arange(3.0) + 6, np.ones(3)):
        found, wanted = compiled(x.copy()), program(x.copy())
        assert np.array_equal(found[0], wanted[0]) and found[1:] == wanted[1:]


@pytest.mark.parametrize("body", [in_a_while, in_a_branch, in_an_expression])
def test_a_counter_from_outside_counts_where_a_run_decides(body):
    note, calls = counted_outside()
    recorded = jl.function(lambda x: body(x, note))
    theirs, wanted = counted_outside()
    for x in (np.ones(3), np.arange(3.0) + 6):
        assert np.array_equal(recorded(x.copy()), body(x.copy(), theirs))
    assert calls() == wanted()


def test_the_report_says_so():
    report = jl.explain(jl.function(counting(in_a_while)), np.ones(3))
    assert "note assigns calls, which is not local" in str(report)

"""A number that a loop makes of itself: its expression may grow with each turn, and what a trace keeps of it does not."""

import pytest

import jitlab as jl
from jitlab.capture.tracers.number import LONGEST


def doubled(x, r, n):
    t = skipped = 0
    while t < n:
        x = r * x * (1 - x)
        if x > 3:
            skipped += 1
            continue
        t += 1
    return x, skipped


def lengthened(x, r, n):
    t = 0
    while t < n:
        x = x + r
        if x < 0:
            continue
        t += 1
    return x


def negated(x, r, n):
    t = 0
    while t < n:
        x = -abs(x) - r
        if x > 0:
            continue
        t += 1
    return round(x, 6)


@pytest.mark.parametrize("program", [doubled, lengthened, negated], ids=lambda f: f.__name__)
@pytest.mark.parametrize("turns", [3, 40, 300])
def test_a_recurrence_is_pythons_however_long_it_runs(program, turns):
    compiled = jl.jit(program)
    for x, r in ((0.5, 3.5), (0.25, 3.25), (0.5, 3.5)):
        assert compiled(x, r, turns) == program(x, r, turns)


def test_what_a_trace_checks_stays_short():
    """The guards of forty doublings are some lines; each doubling would make the last of them 10**12 characters."""
    compiled = jl.jit(doubled)
    compiled(0.5, 3.5, 40)
    assert compiled(0.25, 3.5, 40) == doubled(0.25, 3.5, 40)
    told = str(compiled.ledger)
    assert "r * x" in told and len(told) < 10 * LONGEST

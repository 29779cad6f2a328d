"""Proofs about the symbols of loops: never of something false, and of what programs need."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitlab.ir import Bounds, Extent, Moving, NotRolled, Poly, as_length, at_least, is_one, proving, same_extent
from jitlab.ir.bounds import sample

c, s = Poly.constant, Poly.symbol


def inside(*loops, sizes=()):
    """The bounds inside loops `(symbol, count)`, outermost first."""
    bounds = Bounds(dict(sizes))
    for symbol, count in loops:
        bounds.add(symbol, 0, count - c(1))
        bounds.assume(count - c(1))
    return bounds


def iterations(loops, sizes, values=None):
    """All values of the symbols in an iteration of the innermost loop."""
    values = dict(values or sizes)
    if not loops:
        yield values
        return
    (symbol, count), *rest = loops
    for k in range(count.evaluate(values)):
        yield from iterations(rest, sizes, {**values, symbol: k})


small = st.integers(-4, 4)


@st.composite
def nests(draw):
    """Two or three loops whose counts are affine in the symbols around them, and a polynomial over them all."""
    sizes = {"n0": draw(st.integers(2, 6)), "n1": draw(st.integers(2, 6))}
    loops = []
    for depth in range(draw(st.integers(1, 3))):
        count = c(draw(st.integers(-1, 4))) + s("n0").scale(draw(st.integers(0, 1)))
        for symbol, _ in loops:
            count = count + s(symbol).scale(draw(st.integers(-1, 1)))
        loops.append((f"i{depth}", count))
    names = [*sizes, *(symbol for symbol, _ in loops)]
    expr = c(draw(small))
    for name in names:
        expr = expr + s(name).scale(draw(small))
    for one, other in itertools.combinations_with_replacement(names, 2):
        if draw(st.booleans()):
            expr = expr + (s(one) * s(other)).scale(draw(small))
    return sizes, loops, expr


@settings(max_examples=400, deadline=None)
@given(nests())
def test_nothing_false_is_proved(nest):
    sizes, loops, expr = nest
    bounds = inside(*loops, sizes=sizes)
    low, high = bounds.least(expr), bounds.greatest(expr)
    nonnegative, decided = bounds.proves_nonnegative(expr), bounds.decides(expr)
    for values in itertools.islice(iterations(loops, sizes), 300):
        value = expr.evaluate(values)
        assert low is None or low <= value
        assert high is None or value <= high
        assert value >= 0 or not nonnegative
        assert decided is None or decided == (value >= 0)


@settings(max_examples=200, deadline=None)
@given(nests(), nests())
def test_only_equals_are_proved_equal(first, second):
    sizes, loops, expr = first
    other = second[2].substitute({name: c(1) for name in second[2].symbols if name not in (*sizes, *dict(loops))})
    bounds = inside(*loops, sizes=sizes)
    equal, unequal = bounds.proves_equal(expr, other), bounds.proves_unequal(expr, other)
    for values in itertools.islice(iterations(loops, sizes), 300):
        same = expr.evaluate(values) == other.evaluate(values)
        assert same or not equal
        assert not same or not unequal


def test_subscripts_of_triangular_nests_are_proved():
    i, j, n = s("i0"), s("i1"), s("n0")
    bounds = inside(("i0", n), ("i1", i), sizes={"n0": 60})
    assert bounds.proves_nonnegative(n - i - c(1))  # A[i, j] with j < i < n
    assert bounds.proves_nonnegative(n - j - c(2))
    assert bounds.proves_nonnegative(i - j - c(1))
    assert bounds.proves_nonnegative(i - c(1))  # there is an iteration of the inner loop
    assert bounds.decides(j - i) is False
    assert bounds.decides(i + j - n) is None


def test_reversed_and_shifted_loops_are_proved():
    i, n = s("i0"), s("n0")
    bounds = inside(("i0", n - c(1)), sizes={"n0": 8})
    down = n - c(2) - i  # for k in range(n - 2, -1, -1)
    assert bounds.least(down) == 0 and bounds.greatest(down) == 6
    assert bounds.proves_nonnegative(n - down - c(2))  # x[k + 1]


def test_products_of_symbols_have_bounds():
    i, j, n = s("i0"), s("i1"), s("n0")
    bounds = inside(("i0", n), ("i1", n), sizes={"n0": 10})
    assert bounds.greatest(i * n + j) == 99  # a flat position
    assert bounds.greatest(i * j) == 81 and bounds.least(i * i) == 0
    assert bounds.greatest(i * i - j) == 81


def test_an_integer_found_at_run_time_has_the_bounds_it_was_given():
    bounds = inside(("i0", s("n0")), sizes={"n0": 9})
    bounds.add("d0", 0, s("n0") - c(1))
    bounds.add("d1", None, None)
    assert bounds.proves_nonnegative(s("n0") - s("d0") - c(1))
    assert bounds.least(s("d1")) is None and bounds.decides(s("d1")) is None
    assert bounds.proves_equal(s("d1") + s("i0"), s("i0") + s("d1"))


def test_what_was_learnt_in_a_loop_is_forgotten_after_it():
    bounds = Bounds({"n0": 5})
    outside = bounds.state()
    assert bounds.unique("i") == "i0"
    bounds.add("i0", 0, s("n0") - c(1))
    assert bounds.proves_nonnegative(s("i0"))
    bounds.restore(outside, names=False)
    assert not bounds.proves_nonnegative(s("i0")) and bounds.unique("i") == "i1"
    bounds.restore(outside)
    assert bounds.unique("i") == "i0"


def test_extents_that_move_are_equal_by_their_polynomials_alone():
    i, j, n = Moving.symbol("i0", 5), Moving.symbol("i1", 5), Extent.symbol("n0", 5)
    assert i != j and i != 5 and i != n and i + 1 == 1 + i and len({i, j, n, i + 0}) == 3
    assert type(n - (n - i) - i) is int and type(n - i + i) is Extent
    with proving(inside(("i0", n.expr), ("i1", n.expr), sizes={"n0": 5})):
        assert same_extent(n - i, 5 - i) and same_extent(n, 5) and not same_extent(n, 4)
        with pytest.raises(NotRolled, match="may differ in some iterations"):
            same_extent(i, j)
        assert not is_one(i) and is_one(1)
        assert at_least(i + 1, 1) and not at_least(i - n, 0)
        with pytest.raises(NotRolled):
            at_least(i, 1)
        assert as_length(i) is i
        with pytest.raises(NotRolled, match="may be negative"):
            as_length(i - 1)
        with pytest.raises(NotRolled, match="no fixed value"):
            _ = i < 3


@given(st.integers(-20, 20), st.integers(0, 60), st.integers(0, 8))
def test_a_sample_lies_in_its_range_and_tells_lengths_from_ones(least, width, depth):
    value = sample(least, least + width, depth)
    assert least <= value <= least + width
    if width >= 5:
        assert least + 2 <= value <= least + width - 2

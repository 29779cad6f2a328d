"""Generators of random numbers that a function under `jit` makes for itself: one trace, and at each call they begin anew."""

import numpy as np
import pytest

import jitlab as jl

X = np.ones(3)


class Holder:
    """Something that outlives a call."""


HOLDER = Holder()


def seeded(x):
    rng = np.random.default_rng(0)
    return x + rng.standard_normal(x.shape) * rng.integers(1, 5, size=3)


def one_after_another(x):
    drawn = []
    for k in range(3):
        rng = np.random.default_rng(k)
        drawn.append(rng.random())
    return x * sum(drawn)


def of_the_old_kind(x):
    rng = np.random.RandomState(3)
    return x + rng.rand(3)


@pytest.mark.parametrize("function", [seeded, one_after_another, of_the_old_kind])
def test_each_call_draws_what_numpy_draws(function):
    compiled = jl.jit(function)
    compiled(X)
    with jl.expect(retraces=0):
        for n in range(3):
            np.testing.assert_array_equal(compiled(X + n), function(X + n))


def test_a_generator_without_a_seed_begins_elsewhere_each_time():
    draw = jl.jit(lambda x: x + np.random.default_rng().random(3))
    assert not np.array_equal(draw(X), draw(X))


def given_away(x):
    rng = np.random.default_rng(7)
    return x + rng.random(3), rng


def kept_in_an_object(x):
    HOLDER.rng = np.random.default_rng(7)
    return x + HOLDER.rng.random(3), HOLDER.rng


def behind_a_function(x):
    rng = np.random.default_rng(7)
    x = x + rng.random(3)
    return x, (lambda: rng)()


@pytest.mark.parametrize("function", [given_away, kept_in_an_object, behind_a_function])
def test_a_generator_that_outlives_the_call_is_the_caller_s_own(function):
    compiled = jl.jit(function)
    (_, mine), (_, again) = compiled(X), compiled(X)
    (wanted, theirs) = function(X)
    assert mine is not again
    np.testing.assert_array_equal(compiled(X)[0], wanted)
    assert mine.random() == theirs.random()

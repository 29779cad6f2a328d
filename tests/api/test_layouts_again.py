"""A trace whose program asked how an argument lies in memory serves no argument that lies otherwise."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl


def ravel_written(a):
    y = a.ravel()
    y[0] = 5
    return a


def contiguous_written(a):
    y = np.ascontiguousarray(a)
    y[0] = 5
    return a


def asarray_summed(a):
    y = np.asarray(a, order="C")
    y += 1
    return a.sum()


def required(a):
    y = np.require(a, requirements=["C"])
    y += 1


def ravel_in_order(a):
    y = np.ravel(a, "A")
    y += 1


def part_of_ravel(a):
    y = a.ravel()[1:]
    y += 1
    return a.ravel().sum()


def reshaped(a):
    y = a.reshape(2, -1)
    y[0] = 5
    return a.sum()


def is_decided(a):
    if np.ascontiguousarray(a) is a:
        return a.sum()
    return a.sum() + 1


def fortran(a):
    return a.sum() + (10 if np.isfortran(a) else 20)


PROGRAMS = [
    ravel_written, contiguous_written, asarray_summed, required, ravel_in_order, part_of_ravel, reshaped, is_decided, fortran,
    lambda a: a * a.strides[0], lambda a: a.sum() * a.strides[0], lambda a: a.strides[0],
    lambda a: np.ascontiguousarray(a) is a, lambda a: a.astype(float, copy=False, order="C") is a,
]  # fmt: skip

VECTORS = [
    lambda: np.arange(6.0), lambda: np.arange(12.0)[::2], lambda: np.arange(6.0)[::-1], lambda: np.arange(6.0),
    lambda: np.arange(24.0).reshape(6, 4)[:, 1],
]  # fmt: skip
MATRICES = [
    lambda: np.arange(6.0).reshape(2, 3), lambda: np.arange(6.0).reshape(3, 2).T, lambda: np.arange(12.0).reshape(2, 6)[:, ::2],
    lambda: np.arange(6.0).reshape(2, 3)[::-1], lambda: np.arange(12.0).reshape(6, 2)[::2].T,
    lambda: np.arange(6.0).reshape(2, 3),
]  # fmt: skip


def outcome(function, argument):
    try:
        result = function(argument)
    except ValueError as error:  # what cannot be written
        result = type(error)
    return repr(result if not isinstance(result, (np.generic, tuple)) else np.asarray(result).tolist()), argument.tolist()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("arguments", [VECTORS, MATRICES], ids=["vectors", "matrices"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", [jl.jit, jl.function])
def test_each_layout_gives_what_numpy_gives(way, program, arguments, order):
    compiled = way(program)
    for make in [*arguments, *arguments][::order]:
        assert outcome(compiled, make()) == outcome(program, make())


def test_the_steps_are_told_as_the_cause():
    f = jl.jit(ravel_written)
    f(np.arange(6.0))
    f(np.arange(12.0)[::2])
    assert list(f.ledger)[-1].causes == ("layout",)


def test_what_does_not_ask_is_not_recorded_again():
    f = jl.jit(lambda a: a.reshape(2, -1).sum() + np.sin(a).max())
    for make in VECTORS:
        f(make())
    assert len(f.ledger) == 1

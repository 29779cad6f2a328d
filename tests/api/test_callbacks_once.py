"""A `numpy_function` is called as often as Python calls it, also where a recording or a run is given up after it."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl
from jitlab.compat.tensorflow import numpy_function

LOG: list = []
SIZE = [3]


def doubled(a):
    LOG.append("doubled")
    return a * 2


def cut(a):
    LOG.append("cut")
    return a[: SIZE[0]]


def counted(a):
    LOG.append("counted")
    return np.float64(len(LOG)) + 0 * a


class Logger:
    def call(self, a):
        LOG.append("method")
        return a + 1


LOGGER = Logger()


def call(function, x):
    return numpy_function(function, [x], np.float64)


def another_shape_after_it(x):
    y = call(doubled, x)
    return y.sum(), call(cut, x) + 1


def its_own_shape(x):
    return call(cut, x) + 1


def data_decide_a_shape(x):
    y = call(doubled, x)
    return y, y[y > 3]


def python_alone_can_go_on(x):
    y = call(doubled, x)
    return np.vectorize(lambda v: v + 1)(y)


def a_method(x):
    y = call(LOGGER.call, x)
    return y, x[x > 1]


def made_in_the_call(x):
    y = call(lambda a: LOG.append("made") or a + 1, x)
    return y, x[x > 1]




def several_times(x):
    y = call(doubled, x)
    for _ in range(2):
        y = call(counted, y) + call(doubled, y)
    return y, call(cut, y)


def helper(x):
    return call(doubled, x)


def in_a_helper(x):
    y = helper(x)
    return y, call(cut, helper(y))


@jl.function
def compiled(x):
    return call(doubled, x), x[x > 1]


def in_a_compiled_function(x):
    y, z = compiled(x)
    return y, z, call(cut, call(doubled, x))


def within(a):
    return call(doubled, a) + 1


def in_a_callback(x):
    y = call(within, x)
    return y, call(cut, call(doubled, y))


PROGRAMS = (
    another_shape_after_it, its_own_shape, data_decide_a_shape, python_alone_can_go_on, a_method, made_in_the_call,
    several_times, in_a_helper, in_a_compiled_function, in_a_callback,
)  # fmt: skip
WAYS = {"jit": jl.jit, "function": jl.function, "trace": lambda f: jl.jit(f, capture_mode="trace")}


def outcomes(function):
    found = []
    for n in range(8):
        SIZE[0] = 2 if n in (2, 3, 6) else 3
        LOG.clear()
        result = function(np.arange(4.0) + n % 4 // 2)
        found.append((repr(result), list(LOG)))
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_callback_is_called_as_often_as_python_calls_it(program, way):
    assert outcomes(WAYS[way](program)) == outcomes(program)


@pytest.mark.parametrize("way", ["function", "trace"])
def test_a_callback_that_writes_into_what_the_call_made_is_called_for_it(way):
    """Python's run has a list of its own, which the run before it did not fill."""

    def program(x):
        own = []
        y = call(lambda a: own.append(1) or a + 1, x)
        z = call(cut, x)
        return y, z, len(own)

    function = WAYS[way](program)
    SIZE[0] = 3
    function(np.arange(4.0))
    SIZE[0] = 2
    y, z, count = function(np.arange(4.0))
    assert (y.tolist(), z.tolist(), count) == ([1, 2, 3, 4], [0, 1], 1)


@pytest.mark.parametrize("way", ["function", "trace"])
def test_what_one_call_made_is_nothing_to_the_next(way):
    function = WAYS[way](another_shape_after_it)
    for size in (3, 2, 3, 2, 2):
        SIZE[0] = size
        LOG.clear()
        function(np.arange(4.0))
        assert LOG == ["doubled", "cut"]
    LOG.clear()
    assert call(doubled, np.arange(4.0)).tolist() == [0, 2, 4, 6]
    assert LOG == ["doubled"]


@pytest.mark.parametrize("way", ["function", "trace"])
def test_an_error_keeps_nothing_of_the_calls_before_it(way):
    def program(x):
        call(doubled, x)
        raise LookupError("mine")

    for _ in range(2):
        with pytest.raises(LookupError) as caught:
            WAYS[way](program)(np.arange(4.0))
        assert "_jitlab_made" not in vars(caught.value)

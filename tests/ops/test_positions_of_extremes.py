"""argmax and argmin: the first of equal elements, the first NaN, of any dtype, layout and number of elements."""

import numpy as np
import pytest

import jitlab as jl
from tests.ops.strict_calls import compiles

FLOATS = ("f2", "f4", "f8")
INTS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
DTYPES = ("bool", *INTS, *FLOATS, "c8", "c16")


def positions(x):
    return x.argmax(), x.argmin(), x.argmax(1), x.argmin(0), x[::-1, ::-2].argmin(1)


def limits(dtype):
    """What no element is better than, or worse: values that running values start with."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind in "iu":
        return [np.iinfo(dtype).min, np.iinfo(dtype).max, 0]
    found = [-np.inf, np.inf, -0.0, 0.0, np.nan]
    return found if dtype.kind == "f" else [complex(a, b) for a in found for b in found]


def filled(dtype, shape, seed):
    """Few different values, so that most are equal to others; now and then one of the limits."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, shape).astype(dtype)
    rare = rng.random(shape) < 0.02
    x[rare] = rng.choice(np.array(limits(dtype), dtype), rare.sum())
    return x


@pytest.mark.parametrize("shape", [(3, 5), (70, 300)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_equal_ones(dtype, shape):
    compiles(positions, filled(dtype, shape, shape[1]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_that_are_all_one_limit(dtype):
    """The first is the answer: not one of them is better than what the running value starts with."""
    call = jl.function(positions, jit_compile=True)
    for value in limits(dtype):
        for shape in ((2, 3), (3, 100)):
            x = np.full(shape, value, dtype)
            y = x.copy()
            y[-1, -1] = 1
            for array in (x, y):
                found = call(array)
                assert [i.tolist() for i in found] == [i.tolist() for i in positions(array)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("at", [0, 1, 15, 16, 63, 64, 65, 255, 299])
def test_one_element_wins_wherever_it_stands(dtype, at):
    """Of each chain, each lane and the tail, from the quick code and from the good one."""
    call = jl.jit(lambda x: (x.argmax(), x.argmin(), x[None].argmax(1), x[:, None].argmin(0)))
    for value in (5, -5, np.nan, np.inf, -np.inf):
        x = np.zeros(300, dtype)
        x[at] = value
        for n in (at + 1, 300):
            assert [int(np.squeeze(i)) for i in call(x[:n])] == [x[:n].argmax(), x[:n].argmin()] * 2


def test_of_what_is_computed_on_the_way():
    x = filled("f8", (40, 50), 1)
    compiles(lambda x: ((x * 2).argmax(1), np.abs(x).argmin(0), (x > 1).argmax(1), np.nanargmax(np.where(x > 9, x, 1), 1)), x)

"""What a call gives is a view of its arguments where NumPy's result is one: no copy in silence."""

from __future__ import annotations

import numpy as np
import pytest

import jitlab as jl

COUNT = 2


def z():
    return np.arange(1, 7) * (1 + 2j)


def x():
    return np.arange(1.0, 7)


def m():
    return np.arange(12.0).reshape(3, 4)


def real_of_a_changed_array(z):
    part = z.real
    z[1] = 9j
    return part, z.imag


def parts_of_a_new_array(z):
    y = z * 2
    return y, y.real, {"imag": y.imag[1:]}


def one_part_twice(z):
    part = z.real
    return part, [part], z.real


PROGRAMS = {
    "real": (lambda z: z.real, z),
    "imag": (lambda z: z.imag, z),
    "np.real": (lambda z: np.real(z), z),
    "imag of a part": (lambda z: z[1:].imag, z),
    "a part of real": (lambda z: z.real[::2], z),
    "real as a matrix": (lambda z: z.reshape(2, 3).real.T, z),
    "real of columns": (lambda z: z.reshape(2, 3).T.real.T, z),
    "real of a real array": (lambda x: x.real, x),
    "real of a changed array": (real_of_a_changed_array, z),
    "parts of a new array": (parts_of_a_new_array, z),
    "one part twice": (one_part_twice, z),
    "a slice": (lambda x: x[:COUNT], x),
    "slices in a dict": (lambda x: {"first": x[:COUNT], "rest": [x[COUNT:], x[::-1]]}, x),
    "another dtype": (lambda x: x.view("f4"), x),
    "strides by hand": (lambda x: np.lib.stride_tricks.as_strided(x, (3,), (16,)), x),
    "trimmed": (lambda x: np.trim_zeros(x), x),
    "itself where nothing is imaginary": (lambda z: np.real_if_close(z), z),
    "itself below a mask": (lambda x: np.ma.getdata(x), x),
    "windows": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 3), x),
    "a diagonal": (lambda m: np.diagonal(m), m),
    "rows": (lambda m: list(m), m),
    "split": (lambda m: np.hsplit(m, 2), m),
    "turned": (lambda m: np.rot90(m), m),
}


def arrays_in(result):
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, (list, tuple, dict)):
        for item in result.values() if isinstance(result, dict) else result:
            yield from arrays_in(item)


def facts(function, argument):
    """Which results share memory with the argument and with one another, and what a write into them leaves."""
    results = list(arrays_in(function(argument)))
    shared = [np.shares_memory(a, b) for n, a in enumerate(results) for b in (argument, *results[:n])]
    same = [a is b for n, a in enumerate(results) for b in (argument, *results[:n])]
    values = [a.tolist() for a in results]
    for n, a in enumerate(results):
        if a.flags.writeable:
            a[...] = -1 - n
    return shared, same, values, argument.tobytes(), [a.tobytes() for a in results]


@pytest.mark.parametrize("way", [jl.function, jl.jit])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_share_the_memory_that_numpy_has_them_share(name, way):
    program, make = PROGRAMS[name]
    want, compiled = facts(program, make()), way(program)
    for _ in range(3):
        assert facts(compiled, make()) == want


@pytest.mark.parametrize("name", ["another dtype", "strides by hand", "itself below a mask"])
def test_a_view_that_a_recording_cannot_give_is_an_error_where_all_is_to_be_compiled(name):
    program, make = PROGRAMS[name]
    with pytest.raises(jl.errors.JitlabError):
        jl.function(program, jit_compile=True)(make())


@pytest.mark.parametrize("name", ["real", "a part of real", "real of a changed array", "parts of a new array"])
def test_parts_of_complex_numbers_are_given_without_python(name):
    program, make = PROGRAMS[name]
    with jl.expect(fallbacks=0):
        jl.function(program)(make())


@pytest.mark.parametrize("write", [lambda v: v.__setitem__(0, 1.0), lambda v: np.add(v, 1, out=v)])
def test_a_write_that_cannot_reach_the_argument_says_so(write):
    def program(z):
        write(z.real)
        return z

    with pytest.raises(jl.errors.CaptureError, match="writing through this array cannot be traced"):
        jl.function(program)(z())
    want, compiled = z(), jl.jit(program)
    write(want.real)
    np.testing.assert_array_equal(compiled(z()), want)

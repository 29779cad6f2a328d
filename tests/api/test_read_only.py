"""Writing into an array that may only be read raises what NumPy raises, before the index and the value are looked at."""

import numpy as np
import pytest

import jitlab as jl


def locked(a):
    a.flags.writeable = False
    return a


ARRAYS = {
    "vector": lambda: locked(np.arange(4.0)),
    "matrix": lambda: locked(np.arange(9.0).reshape(3, 3)),
    "in columns": lambda: locked(np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    "a part": lambda: locked(np.arange(8.0))[::2],
    "may be written": lambda: np.arange(4.0),
}
WRITES = {
    "an index that is too large": lambda a: a.__setitem__(a.shape[0], 1),
    "too many indices": lambda a: a.__setitem__((0, 0, 0), 1),
    "no such place of a list": lambda a: a.__setitem__([0, 9], 1),
    "a mask of another length": lambda a: a.__setitem__(np.array([True, False]), 1),
    "a name": lambda a: a.__setitem__("x", 1),
    "a float": lambda a: a.__setitem__(1.5, 1),
    "a value of another shape": lambda a: a.__setitem__(slice(None), np.ones(7)),
    "a text": lambda a: a.__setitem__(0, "q"),
    "nothing": lambda a: a.__setitem__(slice(0, 0), 1),
    "itself": lambda a: a.__setitem__(..., a),
    "its transpose": lambda a: a.T.__setitem__(..., a.T),
    "copyto of another": lambda a: np.copyto(a, a + 1),
    "copyto of another shape": lambda a: np.copyto(a, np.ones(7)),
    "copyto of itself": lambda a: np.copyto(a, a),
    "copyto of itself reshaped": lambda a: np.copyto(a.reshape(a.shape), a),
    "copyto of the transpose of its transpose": lambda a: np.copyto(a.T.T, a[:]),
    "copyto of the same part": lambda a: np.copyto(a[::2], a[::2]),
    "copyto of no elements": lambda a: np.copyto(a[:0], a[:0]),
    "copyto of itself backwards": lambda a: np.copyto(a[::-1], a),
    "copyto of another part": lambda a: np.copyto(a[1:], a[:-1]),
    "an operator": lambda a: a.__iadd__(1),
    "out": lambda a: np.add(a, 1, out=a),
    "fill": lambda a: a.fill(1),
    "sort": lambda a: a.sort(),
    "sort along no axis": lambda a: a.sort(axis=5),
    "sort of no kind": lambda a: a.sort(kind="none"),
    "partition along no axis": lambda a: a.partition(0, axis=5),
    "partition beyond the end": lambda a: a.partition(99),
    "put beyond the end": lambda a: a.put([99], 1),
    "fill_diagonal of a vector": lambda a: np.fill_diagonal(a, 1),
}


def statement(write):
    """`a[...] = v` as a statement, since a call of `__setitem__` is none."""

    def f(a):
        write(a)
        return a

    return f


def index_too_large(a):
    a[a.shape[0]] = 1


def too_many_indices(a):
    a[0, 0, 0] = 1


def another_shape(a):
    a[:] = np.ones(7)


def a_list(a):
    a[[0, 9]] = 1


def backwards(a):
    a[::-1][5] = 1


PROGRAMS = {name: statement(write) for name, write in WRITES.items()} | {
    f.__name__: f for f in (index_too_large, too_many_indices, another_shape, a_list, backwards)
}


def outcome(f, a):
    try:
        f(a)
    except Exception as error:
        return next(kind for kind in (IndexError, ValueError, TypeError, Exception) if isinstance(error, kind)), None
    return None, a.tolist()


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", [jl.jit, jl.function])
def test_the_error_is_numpys(way, program, array):
    make, f = ARRAYS[array], PROGRAMS[program]
    for _ in range(2):
        assert outcome(way(f), make()) == outcome(f, make())

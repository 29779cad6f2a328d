"""Arrays in memory that is not NumPy's, and arrays that np.broadcast_arrays shows several times: who may write, and what a
write reaches."""

import array
import warnings

import numpy as np
import pytest

import jitlab as jl


def read(data):
    v = np.frombuffer(data, "B")
    return v, v.flags.writeable, v.sum() + 0


def written(data):
    v = np.frombuffer(data, "B")
    v[0] = 9
    return v.sum() + 0, data[0]


def of_a_part(data):
    v = np.frombuffer(data, "B", count=3, offset=2) * 2
    np.frombuffer(data, "B")[1:3] = 7
    return v, bytes(data)


def seen_through_a_constructor(data):
    v = np.ndarray((2,), "B", data)
    v[1] = 7
    return v.sum() + 1, data[1]


def converted(data):
    v = np.asarray(data)
    w = v * 2
    v[0] = 9
    return w, data[0], v


def copied(data):
    v = np.array(data)
    v[0] = 9
    return v, data[0]


LENDERS = {"bytes": bytes, "bytearray": bytearray, "array": lambda data: array.array("B", data)}


def outcomes(function, make):
    """What three calls give, with other contents each; the flags of arrays too."""
    found = []
    for number in range(3):
        data = make(bytes(range(number, number + 8)))
        try:
            result = function(data)
            flags = [x.flags.writeable for x in result if isinstance(x, np.ndarray)]
            found.append((repr(result), flags, bytes(data)))
        except (ValueError, TypeError) as error:
            found.append((type(error), str(error)))
    return found


WAYS = [(write, lender) for write in (read, written, of_a_part, seen_through_a_constructor) for lender in LENDERS]
WAYS += [(write, lender) for write in (converted, copied) for lender in ("bytearray", "array")]  # text is made of bytes


@pytest.mark.parametrize(("write", "lender"), WAYS)
def test_memory_of_other_objects_is_what_it_is_in_numpy(write, lender):
    assert outcomes(jl.jit(write), LENDERS[lender]) == outcomes(write, LENDERS[lender])


def test_a_function_does_not_write_into_bytes():
    with pytest.raises(ValueError, match="read-only"):
        jl.function(written)(b"abc")


def shown(x, y):
    return np.broadcast_arrays(x, y)


def of_a_number(x, y):
    return np.broadcast_arrays(2, y, x.sum())


def turned_and_picked(x, y):
    u, _ = np.broadcast_arrays(x, y)
    return u.T, u[1], u[:, 0]


def grid(x, y):
    return np.meshgrid(x, y[:, 0], copy=False)


def shown_of_what_may_not_be_written(x, y):
    return np.broadcast_arrays(np.broadcast_to(x, (1, 2)), y)


@pytest.mark.parametrize("compiler", [jl.jit, jl.function])
@pytest.mark.parametrize("write", [shown, of_a_number, turned_and_picked, grid, shown_of_what_may_not_be_written])
def test_what_is_broadcast_together_lies_as_in_numpy_and_warns_as_there(write, compiler):
    def facts(function):
        found = []
        for result in function(np.arange(2.0), np.ones((3, 2))):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                writeable = result.flags.writeable
            found.append((result.tolist(), result.strides, writeable, len(said), memoryview(result).readonly))
        return found

    assert facts(compiler(write)) == facts(write)


def writes_one(x, y):
    u, _ = np.broadcast_arrays(x, y)
    u[0] = 5
    return x, u


def adds(x, y):
    u, v = np.broadcast_arrays(x, y)
    u += v
    return x, u


def after_saying_so(x, y):
    u, v = np.broadcast_arrays(x, y)
    u.flags.writeable = True
    u[:] = 5
    v[0, 0] = 3
    return x, y


@pytest.mark.parametrize("write", [writes_one, adds, after_saying_so])
def test_writes_into_what_is_broadcast_reach_what_they_reach_in_numpy(write):
    compiled = jl.jit(write)
    for _ in range(2):
        arguments, others = [[np.arange(2.0), np.ones((3, 2))] for _ in range(2)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, want = compiled(*arguments), write(*others)
        assert repr(got) == repr(want) and repr(arguments) == repr(others)


def test_reading_an_array_that_was_broadcast_says_nothing():
    """The warning is for who asks or writes."""
    u, _ = np.broadcast_arrays(np.arange(2.0), np.ones((3, 2)))
    compiled = jl.jit(lambda u: u.sum() + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(u) == compiled(u) == 4


class Counting:
    asked = 0

    def __array_ufunc__(self, function, method, *inputs, **options):
        Counting.asked += 1
        return NotImplemented


def test_a_class_is_asked_once_what_a_ufunc_does_with_it(monkeypatch):
    """Also where a library wrote it, whose functions else may be called while a program is recorded."""
    monkeypatch.setattr("jitlab.capture.control.purity.is_user_file", lambda name: False)
    monkeypatch.setattr(Counting, "asked", 0)
    compiled, one = jl.jit(lambda x: np.multiply(2, x)), Counting()
    for times in (1, 2, 3):
        with pytest.raises(TypeError):
            compiled(one)
        assert Counting.asked == times


def test_a_ufunc_that_is_not_numpys_may_write_into_its_operands():
    from numpy._core._operand_flag_tests import inplace_add

    def add(x, y):
        inplace_add(x[:-1], y)
        return x * 2

    compiled = jl.jit(add)
    for _ in range(3):
        mine, theirs = np.arange(5), np.arange(5)
        assert repr(compiled(mine, np.arange(4))) == repr(add(theirs, np.arange(4))) and repr(mine) == repr(theirs)


def test_whose_memory_it_is_is_asked_of_arrays_only():
    """`base` of a dtype is the dtype."""

    def asked(name):
        dtype = np.dtype(name)
        return np.zeros(2, dtype) + np.ones(2, np.promote_types(dtype, "f4")), np.finfo(dtype).eps

    assert repr(jl.jit(asked)("e")) == repr(asked("e"))

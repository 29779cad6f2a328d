"""What a library computes is a kernel inside a cluster: operands, results, errors and interrupts."""

import signal
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab.capture import current_capture
from jitlab.errors import InternalError
from jitlab.ir import ArrayType
from jitlab.ops.library_operations import Library, call
from jitlab.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class SortedAndOrder(Library):
    """The sorted elements of the last axis, and where they were."""

    def results(self, *types):
        return types[0], types[0].with_dtype(np.dtype("i8"))

    def numpy(self, *arrays):
        return np.sort(*arrays), np.argsort(*arrays)


@dataclass(frozen=True)
class Inverse(Library):
    """The inverse of a matrix."""

    def results(self, *types):
        return types

    def numpy(self, *arrays):
        return np.linalg.inv(*arrays)


@dataclass(frozen=True)
class Total(Library):
    """A number from an array."""

    def results(self, *types):
        return (ArrayType((), types[0].dtype),)

    def numpy(self, *arrays):
        return np.sum(*arrays)


@dataclass(frozen=True)
class Interrupted(Library):
    """The user's Ctrl-C while a library works."""

    def results(self, *types):
        return types

    def numpy(self, *arrays):
        signal.raise_signal(signal.SIGINT)
        return arrays[0]


def apply(op, *tensors):
    """The operation on tensors of the function that is being traced."""
    capture = current_capture()
    results = call(op, *(t.node() for t in tensors))
    return tuple(map(capture.fresh, results)) if isinstance(results, tuple) else capture.fresh(results)


def compiled(function):
    return jl.function(function, jit_compile=True, autograph=False)


@pytest.mark.slow
def test_several_results_are_kernels_of_one_cluster_at_any_size():
    @compiled
    def f(x):
        ordered, order = apply(SortedAndOrder(), x * 2)
        return ordered - 1, order

    with jl.record() as record:
        for shape in ((3, 4), (5, 2), (1, 7), (0, 3)):
            x = np.random.default_rng(0).normal(size=shape)
            ordered, order = f(x)
            np.testing.assert_array_equal(ordered, np.sort(x * 2) - 1)
            np.testing.assert_array_equal(order, np.argsort(x * 2))
    report = record.report()
    assert all(op.cluster for op in report.ops)
    assert "call SortedAndOrder of" in report.ir(report.clusters[0].name, "program")


@pytest.mark.parametrize("layout", ["rows", "columns", "strided", "backwards"])
def test_an_operand_is_read_where_it_lies(layout):
    x = np.random.default_rng(1).normal(size=(4, 4))
    x = {"rows": x, "columns": x.T, "strided": np.repeat(x, 2, 1)[:, ::2], "backwards": x[::-1, ::-1]}[layout]
    np.testing.assert_array_equal(compiled(lambda x: apply(Inverse(), x))(x), np.linalg.inv(x))


def test_a_result_without_axes_is_a_number():
    result = compiled(lambda x: apply(Total(), x[1:]) + 1)(np.arange(4.0))
    assert isinstance(result, np.float64) and result == 7


def test_a_call_in_a_loop_sees_what_the_turn_before_has_made():
    @compiled
    def f(x):
        for _ in range(25):
            x = apply(Inverse(), x) + apply(Total(), x[0:1]) * 0.01
        return x

    want = x = np.random.default_rng(2).normal(size=(3, 3)) + 2 * np.eye(3)
    for _ in range(25):
        want = np.linalg.inv(want) + np.sum(want[0:1]) * 0.01
    np.testing.assert_allclose(f(x), want, rtol=1e-12)


def test_what_a_library_raises_is_raised_at_the_line_of_the_call():
    f = compiled(lambda x: apply(Inverse(), x) * 2)
    for _ in range(3):  # also once the call is warm
        with pytest.raises(np.linalg.LinAlgError, match=r"Singular matrix \(.*test_library_calls.py, line \d+\)"):
            f(np.zeros((3, 3)))
    np.testing.assert_array_equal(f(np.eye(3)), 2 * np.eye(3))


def test_an_interrupt_in_a_library_call_reaches_the_user():
    f = compiled(lambda x: apply(Interrupted(), x + 1))
    with pytest.raises(KeyboardInterrupt):
        f(np.arange(3.0))


def test_an_interrupt_before_the_first_step_of_a_library_call_is_no_result():
    """Signals are heard where a Python function begins, in what compiled code calls."""

    f = compiled(lambda x: apply(Inverse(), x) * 2)
    x = np.eye(3) * 4
    for _ in range(2):
        f(x)

    def profile(frame, event, argument):
        if event == "call" and frame.f_code is Inverse.numpy.__code__:
            raise KeyboardInterrupt

    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    sys.setprofile(profile)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(x)
    finally:
        sys.setprofile(None)
        sys.unraisablehook = hook
    np.testing.assert_array_equal(f(x), np.eye(3) / 2)


@dataclass(frozen=True)
class Another(Library):
    """One that gives something else than it says."""

    given: str

    def results(self, *types):
        return (types[0],) if self.given != "few" else (types[0], types[0])

    def numpy(self, *arrays):
        return {"shape": arrays[0][:1], "few": (arrays[0],), "dtype": arrays[0].astype("f4")}[self.given]


@pytest.mark.parametrize("given", ["shape", "few"])
def test_what_is_not_as_an_operation_says_is_no_result(given):
    f = compiled(lambda x: apply(Another(given), x))
    for _ in range(3):
        with pytest.raises((InternalError, IndexError)):
            f(np.arange(3.0))


def test_a_result_of_another_dtype_is_cast():
    f = compiled(lambda x: apply(Another("dtype"), x + 0.1))
    for _ in range(3):
        np.testing.assert_array_equal(f(np.arange(3.0)), (np.arange(3.0) + 0.1).astype("f4"))


@dataclass(frozen=True)
class Failing(Library):
    """One that raises what it is told to, where the first element says so."""

    error: type

    def results(self, *types):
        return types

    def numpy(self, *arrays):
        if arrays[0][0] > 0:
            raise self.error("as asked")
        return arrays[0] * 2


@pytest.mark.parametrize("error", [ValueError, MemoryError, SystemExit, GeneratorExit, KeyboardInterrupt])
def test_each_kind_of_exception_reaches_the_user_and_leaves_nothing(error):
    f = compiled(lambda x: apply(Failing(error), x - 1) + 1)
    bad, good = np.full(3, 4.0), np.zeros(3)
    for _ in range(4):
        with pytest.raises(error):
            f(bad)
        np.testing.assert_array_equal(f(good), -1)


def test_arrays_that_a_library_is_given_do_not_pile_up():
    f = compiled(lambda x: apply(SortedAndOrder(), x * 2)[0])
    x = np.arange(50.0)
    for _ in range(5):
        f(x)
    before = sys.getrefcount(np.ndarray), sys.getrefcount(x.dtype)
    for _ in range(200):
        f(x)
    assert sys.getrefcount(np.ndarray) <= before[0] + 5 and sys.getrefcount(x.dtype) <= before[1] + 5


def test_the_callers_state_of_errors_is_as_it_was():
    f = compiled(lambda x: apply(Inverse(), x))
    with np.errstate(divide="raise", over="print"):
        before = np.geterr()
        for _ in range(4):
            f(np.eye(3))
            assert np.geterr() == before

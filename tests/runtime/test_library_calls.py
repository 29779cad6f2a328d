"""What a library computes is a kernel inside a cluster: operands, results, errors and interrupts."""

import signal
import sys

import numpy as np
import pytest

import jitlab as jl
from jitlab.capture import current_capture
from jitlab.ir import ArrayType
from jitlab.ops.library_operations import Library, call
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.cpu_llvm.calls import host_calls


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
    """Signals are heard where a Python function begins: before its `try`, in what compiled code calls."""

    f = compiled(lambda x: apply(Inverse(), x) * 2)
    x = np.eye(3) * 4
    for _ in range(2):
        f(x)

    def profile(frame, event, argument):
        if event == "call" and frame.f_code is host_calls._call.__code__:
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

"""Warm calls go through a C function; whatever differs from its signature takes the Python way and gives the same."""

import ctypes
import gc
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api.whatif.variants import compiled_as
from jitlab.targets.cpu_llvm.calls.entry import FASTCALL_KEYWORDS, layout_is_known

pytestmark = pytest.mark.skipif(not layout_is_known(), reason="every call takes the Python way on this interpreter")


def warmed(function, *arrays):
    """A traced function that has its C entry for these arrays."""
    traced = jl.function(function)
    for _ in range(8):
        traced(*arrays)
    assert type(traced).__call__ is not jl.Function.__call__, "no C function was made"
    return traced


def test_results_are_numpys():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)

    def f(a, b):
        return a * b + 1, a.sum(), (a > b).any(axis=1), np.float32(2) * a.astype(np.float32)

    traced = warmed(f, a, b)
    for got, want in zip(traced(a, b), f(a, b), strict=True):
        assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got, want)
    assert type(traced(a, b)) is tuple
    assert type(warmed(lambda x: [x + 1], b)(b)) is list
    assert isinstance(warmed(lambda x: x.max(), b)(b), np.float64)


def test_results_are_new_each_time():
    a = np.ones(4)
    traced = warmed(lambda x: x + 1, a)
    first = traced(a)
    first[:] = 7
    np.testing.assert_array_equal(traced(a), [2, 2, 2, 2])


def test_other_arguments_take_the_python_way():
    a = np.arange(4.0)
    traced = warmed(lambda x, y: x + y, a, a.copy())
    np.testing.assert_array_equal(traced(a[::-1], a), a[::-1] + a)
    np.testing.assert_array_equal(traced(np.arange(3.0), np.ones(3)), np.arange(3.0) + 1)
    np.testing.assert_array_equal(traced(a.astype(np.float32), a), a + a)
    np.testing.assert_array_equal(traced(x=a, y=a), a + a)
    np.testing.assert_array_equal(traced(a, y=a), a + a)
    np.testing.assert_array_equal(traced(a, 2.0), a + 2)
    np.testing.assert_array_equal(traced(a.astype(">f8"), a), a + a)
    np.testing.assert_array_equal(traced(a.reshape(2, 2), np.ones((2, 2))), a.reshape(2, 2) + 1)
    with pytest.raises(TypeError, match="missing"):
        traced(a)
    with pytest.raises(TypeError, match="too many"):
        traced(a, a, a)


def test_an_array_in_a_list_is_another_signature():
    a = np.ones(3)
    traced = jl.function(lambda x: x[0] + 1)
    for _ in range(8):
        np.testing.assert_array_equal(traced([a]), [2, 2, 2])
    assert traced(a) == 2


def test_several_signatures_are_warm_at_once():
    traced = jl.function(lambda x: 2 * x)
    for n in (3, 4, 5, 6, 7, 8):
        for _ in range(8):
            np.testing.assert_array_equal(traced(np.ones(n)), np.full(n, 2.0))


def test_listening_sees_every_call():
    a = np.ones(3)
    traced = warmed(lambda x: x * 3, a)
    seen = []
    with events.listen(seen.append):
        traced(a)
    assert [type(e).__name__ for e in seen] == ["ClusterRan", "FunctionCalled"]


def test_a_warm_function_is_recorded_inside_another():
    a = np.ones(3)
    inner = warmed(lambda x: x * 3, a)
    outer = jl.function(lambda x: inner(x) + 1)
    np.testing.assert_array_equal(outer(a), [4, 4, 4])


def test_nothing_is_leaked():
    a = np.ones(3)
    traced = warmed(lambda x: (x * 3, x.sum()), a)
    descr = np.dtype("f8")
    traced(a)
    before = sys.getrefcount(a), sys.getrefcount(descr), sys.getallocatedblocks()
    for _ in range(10_000):
        traced(a)
    assert sys.getrefcount(a) == before[0]
    assert abs(sys.getrefcount(descr) - before[1]) < 100
    assert abs(sys.getallocatedblocks() - before[2]) < 1000


def test_a_function_that_is_dropped_goes():
    a = np.ones(3)
    traced = warmed(lambda x: x * 3, a)
    alive = weakref.ref(traced)
    del traced
    gc.collect()
    assert alive() is None


def test_index_errors_come_from_the_python_way():
    x, i = np.arange(5.0), np.array([0, 4, -1])
    traced = warmed(lambda x, i: x[i] * 2, x, i)
    np.testing.assert_array_equal(traced(x, i), [0, 8, 8])
    with pytest.raises(IndexError, match="out of bounds"):
        traced(x, np.array([0, 5, 1]))


def test_threads():
    a = np.arange(50.0)
    traced = warmed(lambda x: (x * 2).sum(), a)
    wrong = []

    def work(k):
        x = a + k
        for _ in range(2000):
            if traced(x) != (x * 2).sum():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def counting(x, limit):
    total = x[0]
    while total < limit[0]:
        total = total + x[1]
    return total


def test_a_long_warm_call_is_interrupted_where_it_is():
    x = np.array([0.0, 1.0])
    traced = warmed(counting, x, np.array([5.0]))
    assert traced(x, np.array([7.5])) == 8
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        traced(x, np.array([np.inf]))
    timer.join()
    assert traced(x, np.array([7.5])) == 8


def test_other_threads_run_during_a_long_warm_call():
    x = np.array([0.0, 1.0])
    traced = warmed(counting, x, np.array([5.0]))
    seen = []

    def count():
        while len(seen) < 5:
            seen.append(len(seen))
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=count)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        traced(x, np.array([1e12]))  # by itself it ends after many minutes
    thread.join()


def test_a_long_call_is_run_once(monkeypatch):
    from jitlab.targets.cpu_llvm.compiling import MachineCode

    ran = []
    real = MachineCode.install

    def install(self, loaded, tier):
        real(self, loaded, tier)
        run = self.run
        self.run = lambda context: ran.append(1) or run(context)

    monkeypatch.setattr(MachineCode, "install", install)
    x = np.array([0.0, 1.0])
    traced = warmed(lambda x, limit: counting(x, limit) - 1, x, np.array([5.0]))
    ran.clear()
    assert traced(x, np.array([2e8])) == 2e8 - 1  # longer than a budget of cycles
    assert not ran, "the Python way ran it again"


def test_a_twin_at_another_level_of_a_function_that_c_answers_runs_its_own_code():
    f = jl.function(lambda x: np.sqrt(x) * 3.0 + 1.0)
    x = np.ones(5)
    for _ in range(10):
        f(x)
    twin = compiled_as(f, "O0")
    np.testing.assert_array_equal(twin(x), f(x))
    assert twin.experimental_get_tracing_count() == 1


def test_the_definition_of_a_c_function_outlives_it():
    """The collector of cycles reads it, and it may find the function after everything that the function came with."""
    made = warmed(lambda x: x + 1, np.ones(3))
    entry = made._warm[-1][0]
    definition = ctypes.c_void_p.from_address(id(entry) + object.__basicsize__).value
    flags = ctypes.c_int.from_address(definition + 2 * ctypes.sizeof(ctypes.c_void_p))
    assert flags.value == FASTCALL_KEYWORDS
    del made
    gc.collect()
    size = 4 * ctypes.sizeof(ctypes.c_void_p) + len("<lambda>") + 1
    allocate, free = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
    allocate.restype, allocate.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    taken = [allocate(size) for _ in range(20_000)]  # memory that was given back is somebody's now
    for place in taken:
        ctypes.memset(place, 0xFF, size)
    assert flags.value == FASTCALL_KEYWORDS
    for place in taken:
        free(place)

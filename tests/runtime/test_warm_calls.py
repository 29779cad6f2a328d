"""Warm calls go through a C function; whatever differs from its signature takes the Python way and gives the same."""

import contextlib
import ctypes
import gc
import signal
import sys
import threading
import time
import tracemalloc
import weakref

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.api.whatif.variants import compiled_as
from jitlab.runtime import Executable
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


# ---- arguments that are changed in place, under `jit`


def warm_writer(function, monkeypatch, *arrays):
    """A compiled function, and how often its calls in place have taken the Python way since it was warm."""
    python, run = [], Executable.run_in_place
    monkeypatch.setattr(Executable, "run_in_place", lambda self, arguments: (python.append(1), run(self, arguments))[1])
    compiled = jl.jit(function)
    for _ in range(8):
        compiled(*(x.copy() if isinstance(x, np.ndarray) else x for x in arrays))
    python.clear()
    return compiled, python


def normalize(x, peak):
    largest = np.max(np.abs(x))
    if largest == 0:
        return False
    x *= peak / largest
    return True


def test_an_argument_is_changed_in_place_without_python(monkeypatch):
    compiled, python = warm_writer(normalize, monkeypatch, np.arange(5.0), 2.0)
    for start in (np.arange(5.0), np.zeros(5), -np.ones(5)):
        mine, theirs = start.copy(), start.copy()
        assert compiled(mine, 2.0) is normalize(theirs, 2.0)
        np.testing.assert_array_equal(mine, theirs)
    assert not python


def test_results_stand_beside_what_is_changed_in_place(monkeypatch):
    def f(x, y):
        s = x.sum()
        x += 1
        y[:] = x * 2
        return s, x * y, y

    compiled, python = warm_writer(f, monkeypatch, np.arange(4.0), np.zeros(4))
    mine, theirs = [np.arange(4.0), np.zeros(4)], [np.arange(4.0), np.zeros(4)]
    for _ in range(3):
        found, wanted = compiled(*mine), f(*theirs)
        assert found[2] is mine[1]
        for got, want in zip((*found, *mine), (*wanted, *theirs), strict=True):
            assert type(got) is type(want)
            np.testing.assert_array_equal(got, want)
    assert not python


def test_what_is_not_as_it_was_takes_the_python_way(monkeypatch):
    def f(x, y):
        x += y
        return x.sum()

    compiled, python = warm_writer(f, monkeypatch, np.arange(4.0), np.ones(4))
    base = np.arange(9.0)
    for make in (
        lambda base: (base[:4], base[4:8]),
        lambda base: (base[::2][:4], base[1::2][:4]),  # strided
        lambda base: (base[:4], base[1:5]),  # they overlap
        lambda base: (base[:4], base[:4]),
        lambda base: (base[:4], base[3::-1]),
    ):
        mine, theirs = base.copy(), base.copy()
        assert compiled(*make(mine)) == f(*make(theirs))
        np.testing.assert_array_equal(mine, theirs)
    locked = np.arange(4.0)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(locked, np.ones(4))
    assert locked.tolist() == [0, 1, 2, 3]
    python.clear()
    assert compiled(np.zeros(4), np.ones(4)) == 4 and not python


def test_a_call_that_may_fail_changes_nothing_when_it_does(monkeypatch):
    def f(x, i):
        x[1:] += x[:-1]
        return x[i[0]]

    compiled, _ = warm_writer(f, monkeypatch, np.ones(4), np.array([2]))
    for _ in range(3):
        mine, theirs = np.ones(4), np.ones(4)
        assert compiled(mine, np.array([3])) == f(theirs, np.array([3]))
        np.testing.assert_array_equal(mine, theirs)
        for call, x in ((compiled, mine), (f, theirs)):
            with pytest.raises(IndexError):
                call(x, np.array([9]))
        np.testing.assert_array_equal(mine, theirs)


def test_a_recording_sees_calls_in_place(monkeypatch):
    compiled, _ = warm_writer(normalize, monkeypatch, np.arange(5.0), 2.0)
    x = np.arange(5.0)
    with jl.record() as recording:
        for _ in range(3):
            compiled(x, 3.0)
    (kernel, *_) = recording.report().kernels
    assert kernel.calls == 3 and x[-1] == 3


def test_an_early_return_copies_no_array_that_is_changed_in_place(monkeypatch):
    x = np.arange(100_000.0)
    compiled, _ = warm_writer(normalize, monkeypatch, x, 2.0)
    for busy in (contextlib.nullcontext(), events.busy):  # by the C function, and by Python
        with busy:
            tracemalloc.start()
            assert compiled(x, 3.0) is True
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert x[-1] == 3 and most < x.nbytes / 2

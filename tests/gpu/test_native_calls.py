"""Warm calls with DeviceArrays: C compares, makes the results and launches; whatever differs goes the Python way."""

import ctypes
import gc
import os
import sys
import threading

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.errors import DeviceError, DeviceLost
from jitlab.targets import devices
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.calls.entry import layout_is_known
from jitlab.targets.gpu_cuda import cuda_driver
from jitlab.targets.gpu_cuda.device_blocks import Shelves
from jitlab.targets.gpu_cuda.gpu_driver import NativeLaunches
from jitlab.targets.gpu_cuda.gpu_target import GpuTarget
from jitlab.targets.gpu_cuda.warm_calls.gpu_entry_code import MANY_LAUNCHES
from tests.gpu.fake_cuda import CONTEXT, OTHER_CONTEXT, Fake, Result

pytestmark = pytest.mark.skipif(not layout_is_known(), reason="every call takes the Python way on this interpreter")

BOTH = pytest.mark.parametrize("decorator", [jl.jit, jl.function])
X = np.random.default_rng(0).random((5, 8))
Y = np.random.default_rng(1).random((5, 8))
SCALE = 2.0


@pytest.fixture
def gpu():
    with jl.simulated_gpu() as driver:
        yield driver


def there(*arrays):
    return [jl.to_device(a) for a in arrays]


def warmed(decorator, f, *args, **kwargs):
    """A function that C answers for such calls."""
    g = decorator(f)
    for _ in range(12):
        g(*args, **kwargs)
    assert type(g).__call__.__class__ is type(len), "no C function stands in front"
    return g


def python_calls(action):
    """The Python functions that it enters."""
    found = []
    sys.setprofile(lambda frame, event, _: event == "call" and found.append(frame.f_code.co_qualname))
    try:
        action()
    finally:
        sys.setprofile(None)
    return [name for name in found if "lambda" not in name]


def same(found, want):
    assert type(found) is jl.DeviceArray and found.dtype == want.dtype and found.shape == want.shape
    np.testing.assert_allclose(found.to_numpy(), want, rtol=1e-13)


@BOTH
@pytest.mark.parametrize("results", [1, 2])
def test_a_warm_call_enters_python_for_memory_alone(gpu, decorator, results):
    nothing = machine.load(machine.object_cache().compile("define i32 @nothing() {\n ret i32 0\n}", "quick")[0], ["nothing"])
    gpu.shelf = Shelves().of
    recent = (ctypes.c_int64 * 5)()
    vars(gpu)["native"] = NativeLaunches(nothing.address("nothing"), 0, 0, 0, ctypes.c_int64(0), recent, nothing)
    x, y = there(X, Y)
    f = warmed(decorator, [lambda x, y: np.exp(x) + y, lambda x, y: (np.exp(x) + y, x * y)][results - 1], x, y)
    before = recent[0]
    assert python_calls(lambda: f(x, y)) == ["Block.__init__"] * results + ["Block.__del__"] * results
    assert recent[0] == before + results  # each is a kernel


PROGRAMS = {
    "shapes": lambda x, y: x[0] * y,
    "a number": lambda x, y: (x * y).sum(),
    "numbers": lambda x, y: {"a": x.max(), "b": [float(y.sum()), x + y, None, "text"]},
    "rows": lambda x, y: x - x.mean(1, keepdims=True) + np.exp(y).sum(0),
    "two clusters": lambda x, y: (x @ y.T) @ y + x,
    "scratch": lambda x, y: np.exp(x - x.max(1, keepdims=True)) / np.exp(y).sum(),
    "other dtypes": lambda x, y: (x > y, (x * 9).astype("i4"), x + 1j * y),
    "argument": lambda x, y: (y, x + 1),
}


@BOTH
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_the_python_way(gpu, decorator, name):
    f = PROGRAMS[name]
    x, y = there(X, Y)
    g, slow = decorator(f), decorator(f)
    with events.listen(lambda event: None):
        want = slow(x, y)
    for _ in range(12):
        found = g(x, y)
        alike(found, want)
    assert type(g).__call__.__class__ is type(len)


def alike(found, want):
    assert type(found) is type(want)
    if isinstance(want, (tuple, list)):
        assert len(found) == len(want) and all(alike(a, b) for a, b in zip(found, want, strict=True))
    elif isinstance(want, dict):
        assert list(found) == list(want) and alike([*found.values()], [*want.values()])
    elif isinstance(want, jl.DeviceArray):
        assert (found.shape, found.dtype, found.strides) == (want.shape, want.dtype, want.strides)
        np.testing.assert_array_equal(found.to_numpy(), want.to_numpy())
    else:
        assert found == want
    return True


def read(x):
    return x * SCALE


def scaled(x, k=1.5, *, more=0):
    return x * k + more


def picked(x, i, k):
    return x[i] * k


class TestWhatDiffersGoesThePythonWay:
    @BOTH
    def test_shapes_dtypes_and_views(self, gpu, decorator):
        f = warmed(decorator, lambda x, y: x * 2 + y, *there(X, Y))
        for make in (
            lambda a: a[:3], lambda a: a.astype("f4"), lambda a: a.astype("i8"), lambda a: a[0], lambda a: a[:0],
        ):  # fmt: skip
            same(f(*there(make(X), make(Y))), make(X) * 2 + make(Y))
        for view in (lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[1:, 1:]):
            same(f(*(view(a) for a in there(X, Y))), view(X) * 2 + view(Y))
        same(f(*there(X, Y)), X * 2 + Y)

    @BOTH
    def test_other_arguments(self, gpu, decorator):
        x, y = there(X, Y)
        f = warmed(decorator, lambda x, y: x * 2 + y, x, y)
        same(f(x, Y), X * 2 + Y)
        same(f(x, 1.5), X * 2 + 1.5)
        same(f(x, y=y), X * 2 + Y)
        assert type(f(X, Y)) is np.ndarray
        with pytest.raises(TypeError):
            f(x)
        with pytest.raises(ValueError, match="broadcast"):
            f(x, jl.to_device(Y[:, :3]))

    @BOTH
    def test_one_array_at_two_places(self, gpu, decorator):
        x, y = there(X, Y)
        f = warmed(decorator, lambda x, y: x - y, x, y)
        same(f(x, x), X - X)
        g = warmed(decorator, lambda x, y: x - 2 * y, x, x)
        same(g(x, y), X - 2 * Y)

    @BOTH
    def test_python_values_and_keywords(self, gpu, decorator):
        (x,) = there(X)
        f = warmed(decorator, scaled, x, 3.0, more=2)
        same(f(x, 3.0, more=2), X * 3 + 2)
        same(f(x, 4.0, more=2), X * 4 + 2)
        same(f(x, 3.0, more=1), X * 3 + 1)
        same(f(x), X * 1.5)

    def test_numbers_that_python_passes_on(self, gpu):
        x, i = there(X, np.array([4, 0]))
        f = warmed(jl.jit, picked, x, i, 2.5)
        for k in (2.5, -0.0, 0.0, 7.0, 2.5):
            same(f(x, i, k), X[[4, 0]] * k)
            assert np.array_equal(np.signbit(f(x, i, k).to_numpy()), np.signbit(X[[4, 0]] * k))

    def test_a_global_that_changes(self, gpu, monkeypatch):
        (x,) = there(X)
        f = warmed(jl.jit, read, x)
        monkeypatch.setitem(globals(), "SCALE", 3.0)
        same(f(x), X * 3)

    @BOTH
    def test_an_array_of_another_device(self, gpu, decorator):
        x, y = there(X, Y)
        f = warmed(decorator, lambda x, y: x + y, x, y)
        count = gpu.launched.total()
        with jl.simulated_gpu() as other:
            f = decorator(lambda x, y: x + y)
            same(f(*there(X, Y)), X + Y)
            assert other.launched.total() == 1
        assert gpu.launched.total() == count

    @BOTH
    def test_somebody_listens(self, gpu, decorator):
        x, y = there(X, Y)
        f = warmed(decorator, lambda x, y: x + y, x, y)
        heard = []
        with events.listen(heard.append):
            f(x, y)
        assert [type(e) for e in heard if isinstance(e, events.ClusterRan)]

    @BOTH
    def test_an_index_that_is_out_of_range(self, gpu, decorator):
        x, i = there(X, np.array([4, 0]))
        f = warmed(decorator, lambda x, i: x[i] * 2, x, i)
        same(f(x, i), X[[4, 0]] * 2)
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            f(x, jl.to_device(np.array([0, 9])))
        same(f(x, i), X[[4, 0]] * 2)


@BOTH
def test_many_calls_hold_no_memory_and_count(gpu, decorator):
    x, y = there(X, Y)
    f = warmed(decorator, lambda x, y: (np.exp(x) + y, x.sum(0)), x, y)
    gc.collect()
    gc.disable()  # reference counts alone
    try:
        held, counts = gpu.held_bytes, [sys.getrefcount(each) for each in (X.dtype, gpu, None, False)]
        for _ in range(MANY_LAUNCHES + 20):  # other threads run meanwhile in the last ones
            f(x, y)
        assert gpu.held_bytes == held
        for before, each in zip(counts, (X.dtype, gpu, None, False), strict=True):
            assert abs(sys.getrefcount(each) - before) < MANY_LAUNCHES // 2
    finally:
        gc.enable()


@BOTH
def test_results_go_in_again(gpu, decorator):
    x, y = there(X, Y)
    f, want = warmed(decorator, lambda x, y: x * 0.5 + y, x, y), X
    for _ in range(30):
        x, want = f(x, y), want * 0.5 + Y
    same(x, want)


def test_threads_call_at_once(gpu):
    f, wrong = jl.jit(lambda x, y: np.sqrt(x) + y), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(12):
            x, y = rng.random((5, 8)), rng.random((5, 8))
            if not np.allclose(f(*there(x, y)).to_numpy(), np.sqrt(x) + y):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and type(f).__call__.__class__ is type(len)


def test_a_function_that_is_gone_leaves_nothing(gpu):
    (x,) = there(X)
    before = gpu.held_bytes
    f = warmed(jl.jit, lambda x: x * np.arange(8.0), x)
    del f
    gc.collect()
    assert gpu.held_bytes == before


# ---- a stand-in for NVIDIA's libraries


@pytest.fixture
def cuda(monkeypatch):
    fake = Fake().install(monkeypatch)
    target = GpuTarget(cuda_driver.open_driver())
    monkeypatch.setitem(devices.DEVICES, "GPU", target)
    fake.driver = target.driver

    def phase0(*pointers):
        out, y, x = (np.frombuffer((ctypes.c_double * X.size).from_address(p)) for p in pointers)
        out[:] = x + y

    fake.kernels["phase0"] = lambda a, b, c: phase0(a, b, c)
    return fake


def add(x, y):
    return x + y


@BOTH
def test_a_call_is_one_launch_of_the_driver(cuda, decorator):
    x, y = there(X, Y)
    f = warmed(decorator, add, x, y)
    z = f(x, y)
    same(z, X + Y)
    cuda.calls.clear()
    address = z.address
    del z
    z = f(x, y)
    assert cuda.calls == {"cuLaunchKernel": 1} and z.address == address
    same(z, X + Y)


@BOTH
def test_a_lost_device_is_said_with_its_kernel(cuda, decorator):
    x, y = there(X, Y)
    f = warmed(decorator, add, x, y)
    cuda.driver.wait()
    cuda.fails["cuLaunchKernel"] = Result.CUDA_ERROR_ILLEGAL_ADDRESS
    for _ in range(2):
        with pytest.raises(DeviceLost, match=r"ILLEGAL_ADDRESS[\s\S]*phase0"):
            f(x, y)


@BOTH
def test_in_another_context_python_launches(cuda, decorator):
    x, y = there(X, Y)
    f = warmed(decorator, add, x, y)
    cuda.current = OTHER_CONTEXT
    same(f(x, y), X + Y)
    assert cuda.current == OTHER_CONTEXT and not cuda.stack
    cuda.current = CONTEXT


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_process_launches_nothing(cuda):
    x, y = there(X, Y)
    f = warmed(jl.function, add, x, y)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        said, calls = "", sum(cuda.calls.values())
        try:
            f(x, y)
        except DeviceError as error:
            said = str(error)
        finally:
            os.write(writer, f"{said} {sum(cuda.calls.values()) - calls}".encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as file:
        said = file.read()
    assert "in a process that was forked after its first use" in said and said.endswith(" 0")
    same(f(x, y), X + Y)


def test_memory_that_is_full_is_an_error_and_no_more(cuda):
    x, y = there(X, Y)
    f = warmed(jl.function, add, x, y)
    cuda.driver.trim()
    cuda.limit = cuda.used()
    with pytest.raises(MemoryError, match="320|384|512"):
        f(x, y)
    cuda.limit = 1 << 34
    same(f(x, y), X + Y)

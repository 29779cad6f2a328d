"""The driver and its arrays on a real GPU: order, copies, time, others' libraries, errors. `pytest -m gpu`."""

import gc
import importlib.util
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.errors import DeviceError
from jitlab.targets import devices
from jitlab.targets.gpu_cuda.gpu_driver import KernelFunction, Parameter, Shape2
from jitlab.targets.gpu_cuda.page_locked import PageLocked

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def memory():
    try:
        return devices.gpu().device
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def driver(memory):
    return memory.driver


#: p[i] = p[i] * 2 for i of a grid with one thread an element, after `%spins` turns of an empty loop in each.
DOUBLED = """target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @doubled(ptr addrspace(1) %p, i64 %n, i64 %spins) {
entry:
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = mul i32 %c, %w
  %i32 = add i32 %b, %t
  %i = zext i32 %i32 to i64
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %work, label %done
work:
  %q = getelementptr double, ptr addrspace(1) %p, i64 %i
  br label %spin
spin:
  %k = phi i64 [0, %work], [%k1, %spin]
  %v = load volatile double, ptr addrspace(1) %q
  %k1 = add i64 %k, 1
  %again = icmp slt i64 %k1, %spins
  br i1 %again, label %spin, label %store
store:
  %d = fmul double %v, 2.0
  store double %d, ptr addrspace(1) %q
  br label %done
done:
  ret void
}
"""
KERNEL = KernelFunction("doubled", (Parameter(0, 8), Parameter(1, 8), Parameter(2, 8)))


@pytest.fixture(scope="module")
def doubled(driver):
    module = driver.load(DOUBLED, [KERNEL])

    def run(x, spins=1):
        values = np.array([x.address, x.size, spins])
        addresses = [values.ctypes.data + 8 * n for n in range(3)]
        driver.launch(module.functions[0], Shape2(-(-x.size // 128)), Shape2(128), addresses)
        values[:] = -1  # they have been read

    return run


def test_what_it_is(driver, capsys):
    import cuda.bindings
    import cuda.core

    with capsys.disabled():
        print(
            f"\n{driver.name}, {driver.key}, {driver.processors} processors, {driver.memory_bytes >> 20} MiB, "
            f"driver {driver._version}, cuda.core {cuda.core.__version__}, cuda.bindings {cuda.bindings.__version__}"
        )
    assert driver.key.startswith("sm_") and driver.processors > 1 and driver.memory_bytes > 1 << 30


def test_kernels_run_in_order_between_the_copies(memory, doubled):
    x = memory.array(np.arange(1000.0))
    for _ in range(3):
        doubled(x)
    np.testing.assert_array_equal(x.to_numpy(), 8 * np.arange(1000.0))


def test_the_code_is_the_devices_own(driver, tmp_path, monkeypatch):
    from jitlab.targets.cpu_llvm import machine

    store = machine.ObjectCache(tmp_path)
    monkeypatch.setattr(machine, "object_cache", lambda: store)
    monkeypatch.setattr(jl.config, "cache", True)
    module = driver.load(DOUBLED, [KERNEL])
    (kept,) = (tmp_path / "objects").iterdir()
    image = kept.read_bytes()[len(store.MAGIC) + 32 :]
    assert module.functions and image[:4] == b"\x7fELF", "no cubin: cuda.core's Linker gave none"


@pytest.mark.parametrize("size", [0, 1, PageLocked.LEAST_BYTES, PageLocked.BYTES + 3, 11 * PageLocked.BYTES + 1])
def test_copies_of_all_sizes(memory, size):
    x = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    want = x.copy()
    there = memory.array(x)
    x[:] = 0
    np.testing.assert_array_equal(there.to_numpy(), want)
    np.testing.assert_array_equal(there.copy()[::-1].to_numpy(), want[::-1])


def test_memory_is_used_again_behind_what_reads_it(memory, driver, doubled):
    gc.collect()
    driver.wait()
    held = driver.held_bytes()
    for turn in range(200):
        x = memory.array(np.full(1 << 18, float(turn)))
        doubled(x, 100)
        y = x.copy()
        del x
        z = memory.array(np.zeros(1 << 18))  # may lie where x was
        assert y.to_numpy()[::1000].tolist() == [2.0 * turn] * 263
        del y, z
    gc.collect()
    driver.wait()
    assert driver.held_bytes() == held


def test_events_give_times(memory, driver, doubled):
    x = memory.array(np.ones(128))
    marks = [driver.mark()]
    for spins in (1000, 100_000):
        doubled(x, spins)
        marks.append(driver.mark())
    driver.wait()
    short, long = (driver.elapsed_ns(*pair) for pair in zip(marks, marks[1:], strict=False))
    assert 0 < short < long


def test_a_signal_ends_a_wait_and_the_device_goes_on(memory):
    program = """
import os, signal, threading, numpy as np
from tests.gpu.test_real_gpu import *
driver = devices.gpu().driver
memory = devices.gpu().device
module = driver.load(DOUBLED, [KERNEL])
x = memory.array(np.ones(64))
values = np.array([x.address, 64, 20_000_000])
driver.launch(module.functions[0], Shape2(1), Shape2(64), [values.ctypes.data + 8 * n for n in range(3)])
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    driver.wait()
    print("waited")
except KeyboardInterrupt:
    print("interrupted", driver.is_busy())
print(x.to_numpy().sum())
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert found.stdout.split() == ["interrupted", "True", "128.0"], found.stderr[-3000:]


def test_too_much_memory_is_an_error_with_its_numbers(memory, driver):
    with pytest.raises(MemoryError, match=r"has no memory for .* are free, arrays of this process hold"):
        memory.empty((driver.memory_bytes * 2,), np.dtype("u1"))
    big = memory.empty((driver.memory_bytes // 2,), np.dtype("u1"))
    del big
    gc.collect()
    assert memory.empty((driver.memory_bytes // 3 * 2,), np.dtype("u1")).nbytes  # what was freed goes back first
    gc.collect()
    jl.trim()


def test_a_lost_device_ends_nothing_else(memory):
    program = """
import numpy as np, jitlab as jl
from tests.gpu.test_real_gpu import *
driver, memory = devices.gpu().driver, devices.gpu().device
module = driver.load(DOUBLED, [KERNEL])
kept = memory.array(np.ones(3))
values = np.array([8, 64, 1])
driver.launch(module.functions[0], Shape2(1), Shape2(64), [values.ctypes.data + 8 * n for n in range(3)])
for _ in range(2):
    try:
        driver.wait()
        print("nothing")
    except jl.errors.DeviceLost as lost:
        print(str(lost).replace("\\n", "; "))
try:
    kept.to_numpy()
except jl.errors.DeviceLost:
    print("lost")
del kept, module
print(jl.jit(lambda x: x + 1)(np.ones(3)))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    lines = found.stdout.splitlines()
    assert len(lines) == 4 and lines[2:] == ["lost", "[2. 2. 2.]"], found.stdout + found.stderr[-3000:]
    assert all("has stopped working for this process: ILLEGAL_ADDRESS" in line and "doubled" in line for line in lines[:2])
    assert not found.returncode and not found.stderr.strip(), found.stderr[-3000:]


def test_a_fork_says_what_to_do(memory):
    x = memory.array(np.ones(3))
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        said = "nothing"
        try:
            x.to_numpy()
        except DeviceError as error:
            said = str(error)
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as file:
        assert "forked after its first use" in file.read()
    assert x.to_numpy().tolist() == [1, 1, 1]


def test_threads_share_the_device(memory, driver, doubled):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x = rng.random(rng.integers(1, 300_000))
            there = memory.array(x)
            doubled(there)
            if not np.array_equal(there.to_numpy(), 2 * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- others' libraries


def needed(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return importlib.import_module(name)


def test_cupy_and_we_read_each_others_arrays(memory):
    cupy = needed("cupy")
    x = np.random.default_rng(0).random((300, 500))
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            theirs = cupy.asarray(x) * 2
            for view in (theirs, theirs.T, theirs[::-1, ::3], theirs[:0]):
                ours = jl.to_device(view)
                np.testing.assert_array_equal(ours.to_numpy(), view.get())
                assert not view.size or ours.address == view.data.ptr
            ours = jl.to_device(x)
            np.testing.assert_array_equal((cupy.asarray(ours[1:]) + 1).get(), x[1:] + 1)
            np.testing.assert_array_equal((cupy.asarray(ours.T) + 1).get(), x.T + 1)


def test_torch_and_we_read_each_others_arrays(memory):
    torch = needed("torch")
    x = np.random.default_rng(0).random((300, 500)).astype("f4")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        theirs = torch.as_tensor(x, device="cuda") * 2
        for view in (theirs, theirs.T, theirs[:, ::3]):
            ours = jl.to_device(view)
            np.testing.assert_array_equal(ours.to_numpy(), view.cpu().numpy())
            assert ours.address == view.data_ptr()
        np.testing.assert_array_equal((torch.as_tensor(jl.to_device(x), device="cuda") + 1).cpu().numpy(), x + 1)
    np.testing.assert_array_equal(jl.to_device(torch.ones(3)).to_numpy(), np.ones(3, "f4"))  # of the host: copied


def test_numba_and_we_read_each_others_arrays(memory):
    needed("numba")
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("numba.cuda has no device here")
    x = np.random.default_rng(0).random((30, 50))
    theirs = cuda.to_device(x)
    np.testing.assert_array_equal(jl.to_device(theirs).to_numpy(), x)
    np.testing.assert_array_equal(cuda.as_cuda_array(jl.to_device(x)).copy_to_host(), x)


# ---- functions


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("decorator", [jl.jit, jl.function])
def test_a_function_runs_on_the_gpu(memory, decorator, dtype):
    f = decorator(softmax, device="gpu")
    for shape in ((5, 7), (1000, 333), (64, 1024), (3, 20_000)):
        x = np.random.default_rng(0).random(shape).astype(dtype)
        for _ in range(6):
            np.testing.assert_allclose(f(x), softmax(x), rtol=1e-5 if dtype == "f4" else 1e-13)
    heard = []
    with events.listen(heard.append):
        f(x)
    assert [(e.direction, e.bytes) for e in heard if isinstance(e, events.DeviceCopied)] == [
        ("in", x.nbytes),
        ("out", x.nbytes),
    ]


@pytest.mark.parametrize("decorator", [jl.jit, jl.function])
def test_device_arrays_go_in_and_come_out(memory, decorator):
    f = decorator(softmax)
    x = np.random.default_rng(0).random((1000, 257)).astype("f4")
    there, want = jl.to_device(x), x
    heard = []
    with events.listen(heard.append):
        for _ in range(10):
            there, want = f(there), softmax(want)
    assert type(there) is jl.DeviceArray and not [e for e in heard if isinstance(e, events.DeviceCopied)]
    np.testing.assert_allclose(there.to_numpy(), want, rtol=1e-4)


@pytest.mark.parametrize("decorator", [jl.jit, jl.function])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_of_other_libraries_go_in_and_come_out(memory, decorator, library):
    """In turns with kernels of theirs, on a stream of theirs, with nobody waiting."""
    theirs = needed(library)
    f = decorator(lambda x, y: (np.exp(-x) + y, x[1:, ::2], (x * y).sum()))
    if library == "cupy":
        stream, make, back = theirs.cuda.Stream(non_blocking=True), theirs.asarray, lambda x: x.get()
        inside = stream
    else:
        stream = theirs.cuda.Stream()
        inside = theirs.cuda.stream(stream)
        make, back = lambda x: theirs.as_tensor(x, device="cuda"), lambda x: x.cpu().numpy()
    x, y = np.random.default_rng(0).random((2, 2000, 1001))
    with inside:
        a, b, want = make(x), make(y), x
        for _ in range(20):
            a = a * 0.5  # theirs
            new, part, total = f(a, b)
            want = want * 0.5
            assert type(new) is type(part) is type(a) and isinstance(total, np.float64)
            np.testing.assert_allclose(total, (want * y).sum(), rtol=1e-10)
            a, want = new, np.exp(-want) + y
            assert tuple(part.shape) == (1999, 501)
            a += 1  # behind what still reads it
            want = want + 1
        np.testing.assert_allclose(back(a), want, rtol=1e-10)


def test_a_call_takes_so_long(memory, capsys):
    """Host time of a warm call, for whoever reads it; nothing depends on it."""
    import time

    x = jl.to_device(np.ones(1024, "f4"))
    for decorator in (jl.jit, jl.function):
        f = decorator(lambda x: np.exp(x) + 1)
        for _ in range(20):
            f(x)
        started = time.perf_counter()
        for _ in range(1000):
            f(x)
        with capsys.disabled():
            print(f"\n{decorator.__name__}: {1e3 * (time.perf_counter() - started):.1f} µs a call", end=" ")


def test_dlpack_hands_over_the_memory(memory):
    torch = needed("torch")
    x = np.random.default_rng(0).random((300, 500))
    ours = jl.to_device(x)
    theirs = torch.from_dlpack(ours[1:, ::2])
    assert theirs.data_ptr() == ours.address + x.strides[0]
    np.testing.assert_array_equal(theirs.cpu().numpy(), x[1:, ::2])
    del ours
    gc.collect()
    np.testing.assert_array_equal((theirs + 1).cpu().numpy(), x[1:, ::2] + 1)


def test_jax_takes_our_arrays_and_we_take_its(memory):
    jax = needed("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    x = np.random.default_rng(0).random((300, 500)).astype("f4")
    theirs = jax.dlpack.from_dlpack(jl.to_device(x))
    np.testing.assert_array_equal(np.asarray(theirs), x)
    found = jl.jit(lambda x: np.exp(x) + 1)(theirs * 2)
    assert type(found) is jl.DeviceArray
    np.testing.assert_allclose(found.to_numpy(), np.exp(2 * x) + 1, rtol=1e-5)

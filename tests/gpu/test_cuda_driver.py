"""The driver of a real GPU, on a stand-in for NVIDIA's libraries whose stream runs late: order, copies, errors of bad days."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from jitlab.config import config
from jitlab.errors import DeviceError, DeviceLost, InternalError
from jitlab.targets.gpu_cuda import cuda_driver
from jitlab.targets.gpu_cuda.device_array import GpuMemory
from jitlab.targets.gpu_cuda.device_blocks import MOST_BYTES
from jitlab.targets.gpu_cuda.gpu_driver import KernelFunction, Parameter, Shape2
from jitlab.targets.gpu_cuda.page_locked import PageLocked
from tests.gpu.fake_cuda import CONTEXT, OTHER_CONTEXT, STREAM, Fake, Result

TEXT = """target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @{}(ptr addrspace(1) %p, i64 %n) {{
  ret void
}}
"""
KERNEL = KernelFunction("doubled", (Parameter(0, 8), Parameter(1, 8)))


@pytest.fixture
def cuda(monkeypatch):
    return Fake().install(monkeypatch)


@pytest.fixture
def driver(cuda):
    return cuda_driver.open_driver()


def doubled(address, n):
    array = np.frombuffer((ctypes.c_double * n).from_address(address))
    array[:] = array * 2


def launch(cuda, driver, array, module=None):
    cuda.kernels.setdefault("doubled", doubled)
    module = module or driver.load(TEXT.format("doubled"), [KERNEL])
    values = np.array([array.address, array.size])
    driver.launch(module.functions[0], Shape2(1), Shape2(32), [values.ctypes.data, values.ctypes.data + 8])
    values[:] = 0  # the launch has read them
    return module


def test_what_it_says_of_the_device(cuda, driver):
    assert (driver.key, driver.name, driver.processors, driver.memory_bytes) == ("sm_90", "a GPU", 132, 1 << 34)
    assert driver.stream == STREAM and cuda.threshold == 1 << 32


def test_a_kernel_runs_between_the_copies(cuda, driver):
    memory = GpuMemory(driver)
    x = memory.array(np.arange(5.0))
    module = launch(cuda, driver, x)
    launch(cuda, driver, x, module)
    assert cuda.queue  # it runs late
    np.testing.assert_array_equal(x.to_numpy(), 4 * np.arange(5.0))


def test_memory_is_freed_behind_what_reads_it(cuda, driver):
    memory = GpuMemory(driver)
    large = np.arange(MOST_BYTES // 8 + 1.0)
    x = memory.array(large)
    y = memory.empty(x.shape, x.dtype)
    driver.copy_within(y.address, x.address, x.nbytes)
    del x
    gc.collect()
    assert len(cuda.blocks) == 2 and cuda.calls["cuMemFreeAsync"] == 1
    np.testing.assert_array_equal(y.to_numpy(), large)
    assert len(cuda.blocks) == 1


def test_small_blocks_are_kept_for_the_next_array_of_their_size(cuda, driver):
    memory = GpuMemory(driver)
    x = memory.array(np.arange(5.0))
    address = x.address
    del x
    gc.collect()
    assert not cuda.calls["cuMemFreeAsync"] and not driver.held_bytes() and len(cuda.blocks) == 1
    y = memory.empty((60,), np.dtype("i4"))  # no block that is larger by more than an eighth, or 256 bytes
    assert y.address == address and cuda.calls["cuMemAllocFromPoolAsync"] == 1 and driver.held_bytes() == 256
    many = [memory.empty((MOST_BYTES // 16,), np.dtype("f4")) for _ in range(9)]
    del y, many
    gc.collect()
    assert cuda.calls["cuMemFreeAsync"] == 5  # of each size so many bytes are kept
    driver.trim()
    assert not cuda.blocks and not cuda.pooled and not driver.held_bytes()


def test_kept_blocks_make_room_for_a_large_array(cuda, driver):
    memory = GpuMemory(driver)
    for n in range(1, 9):
        memory.array(np.ones(n << 16))
    gc.collect()
    driver.wait()
    free = cuda.limit - cuda.used() - cuda.pooled
    assert cuda.used() and memory.empty((free + 1,), np.dtype("u1")).size


@pytest.mark.parametrize("size", [
    PageLocked.LEAST_BYTES - 1, PageLocked.LEAST_BYTES, PageLocked.BYTES, PageLocked.BYTES + 1, 2 * PageLocked.BYTES,
    3 * PageLocked.BYTES + 12345, 5 * PageLocked.BYTES,
])  # fmt: skip
def test_large_copies_go_through_two_page_locked_buffers(cuda, driver, size):
    memory = GpuMemory(driver)
    x = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    want = x.copy()
    there = memory.array(x)
    x[:] = 0  # it may change at once
    other = memory.array(255 - want)
    np.testing.assert_array_equal(there.to_numpy(), want)
    np.testing.assert_array_equal(other.to_numpy(), 255 - want)
    assert cuda.calls["cuMemHostAlloc"] == (2 if size >= PageLocked.LEAST_BYTES else 0)
    parts = -(-size // PageLocked.BYTES) if size >= PageLocked.LEAST_BYTES else 1
    assert cuda.calls["cuMemcpyHtoDAsync"] == cuda.calls["cuMemcpyDtoHAsync"] == 2 * parts


def test_an_interrupt_in_a_large_copy_leaves_the_next_one_right(cuda, driver):
    memory = GpuMemory(driver)
    size = 3 * PageLocked.BYTES
    first, second = np.full(size, 1, np.uint8), np.full(size, 2, np.uint8)
    target = memory.empty((size,), np.dtype("u1"))
    record, left = driver.mark, [2]

    def interrupted():
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return record()

    driver.mark = interrupted
    with pytest.raises(KeyboardInterrupt):
        driver.copy_in(target.address, first)
    driver.mark = record
    there = memory.array(second)
    assert target.to_numpy()[: 2 * PageLocked.BYTES].tolist() == first[: 2 * PageLocked.BYTES].tolist()
    assert there.to_numpy().tolist() == second.tolist()


def test_events_give_the_time_between_them(cuda, driver):
    x = GpuMemory(driver).array(np.ones(3))
    before = driver.mark()
    launch(cuda, driver, x)
    after = driver.mark()
    driver.wait()
    assert driver.elapsed_ns(before, after) == 2_000_000  # the kernel and the event behind it
    made = cuda.calls["cuEventCreate"]
    del before, after
    driver.mark(), driver.mark()
    assert cuda.calls["cuEventCreate"] == made


def test_streams_of_others_wait_and_are_waited_for(cuda, driver):
    driver.before(77)
    driver.after(77)
    assert cuda.waits == [(STREAM, 77), (77, STREAM)]


def test_the_context_of_the_thread_stays_what_it_was(cuda, driver):
    cuda.current = OTHER_CONTEXT
    x = GpuMemory(driver).array(np.arange(3.0))
    launch(cuda, driver, x)
    assert x.to_numpy().tolist() == [0, 2, 4]
    del x
    gc.collect()
    assert cuda.current == OTHER_CONTEXT and not cuda.stack
    cuda.fails["cuMemcpyHtoDAsync"] = Result.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(InternalError, match="cuMemcpyHtoDAsync fails with INVALID_VALUE"):
        GpuMemory(driver).array(np.arange(3.0))
    assert cuda.current == OTHER_CONTEXT and not cuda.stack
    cuda.current = CONTEXT


# ---- modules


@pytest.fixture
def folder(tmp_path, monkeypatch):
    store = cuda_driver.machine.ObjectCache(tmp_path)
    monkeypatch.setattr(cuda_driver.machine, "object_cache", lambda: store)
    monkeypatch.setattr(config, "cache", True)
    return tmp_path


def test_code_is_kept_on_disk(cuda, folder, monkeypatch):
    made = []
    ptx_of = cuda_driver.ptx.ptx_of
    monkeypatch.setattr(cuda_driver.ptx, "ptx_of", lambda *given: made.append(given) or ptx_of(*given))
    first = cuda_driver.open_driver()
    module = first.load(TEXT.format("doubled"), [KERNEL])
    assert [name for name in cuda.names] == ["doubled"] and len(module.functions) == len(made) == 1
    image = cuda.loaded[0]
    assert image.startswith(b"cubin of sm_90") and b".target sm_90" in image
    again = cuda_driver.open_driver()
    kept = again.load(TEXT.format("doubled"), [KERNEL])
    assert len(made) == 1 and cuda.loaded[1] == image and kept.functions
    cuda.version = 13010  # another driver
    module = cuda_driver.open_driver().load(TEXT.format("doubled"), [KERNEL])
    cuda.cc = (8, 0)
    module = cuda_driver.open_driver().load(TEXT.format("doubled"), [KERNEL])
    assert len(made) == 3 and module.functions
    for path in (folder / "objects").iterdir():
        path.write_bytes(b"damaged")
    assert cuda_driver.open_driver().load(TEXT.format("doubled"), [KERNEL]).functions and len(made) == 4


def test_without_a_cache_nothing_is_kept(cuda, folder, monkeypatch):
    monkeypatch.setattr(config, "cache", False)
    module = cuda_driver.open_driver().load(TEXT.format("doubled"), [KERNEL])
    assert module.functions and not list((folder / "objects").iterdir())


def test_without_a_linker_the_driver_gets_the_ptx(cuda, driver):
    cuda.fails["link"] = RuntimeError("no nvJitLink")
    module = driver.load(TEXT.format("unlinked"), [KernelFunction("unlinked", ())])
    assert module.functions and cuda.loaded[0].endswith(b"\0") and cuda.loaded[0].lstrip().startswith(b"//")


def test_a_module_that_the_driver_refuses_says_why(cuda, driver):
    with pytest.raises(InternalError, match="ptxas error : no"):
        driver.load(TEXT.format("BROKEN"), [KernelFunction("BROKEN", ())])


def test_a_module_goes_with_its_last_user(cuda, driver):
    module = driver.load(TEXT.format("doubled"), [KERNEL])
    assert len(cuda.modules) == 1
    del module
    gc.collect()
    assert not cuda.modules


# ---- waits


def test_a_signal_is_looked_after_while_a_kernel_runs(cuda, driver):
    asked = []

    def busy(stream):
        asked.append(stream)
        if len(asked) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return (Result.CUDA_ERROR_NOT_READY,)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cuda.cuStreamQuery = busy
        with pytest.raises(KeyboardInterrupt):
            driver.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        del cuda.cuStreamQuery
    x = GpuMemory(driver).array(np.ones(3))
    launch(cuda, driver, x)
    assert x.to_numpy().tolist() == [2, 2, 2]


def test_pauses_grow_with_the_wait(cuda, driver, monkeypatch):
    now, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(cuda_driver.time, "perf_counter", lambda: now.__setitem__(0, now[0] + 1e-5) or now[0])
    monkeypatch.setattr(cuda_driver.time, "sleep", sleep)
    for _ in range(300):
        cuda.enqueue(lambda: None)
    driver.wait()
    assert slept[0] == cuda_driver.SHORTEST_PAUSE and max(slept) == cuda_driver.LONGEST_PAUSE and slept == sorted(slept)
    assert len(slept) < 298  # it asks at first without a pause


# ---- bad days


def test_memory_that_is_short_is_trimmed_and_asked_for_again(cuda, driver):
    memory = GpuMemory(driver)
    cuda.limit = 4096
    x = memory.array(np.ones(256))
    del x
    gc.collect()
    there = memory.empty((4096,), np.dtype("u1"))  # the freed block is kept for such, and goes back first
    assert there.nbytes == 4096 and cuda.calls["cuMemPoolTrimTo"] == 1
    with pytest.raises(MemoryError, match=r"a GPU has no memory for 1\.0 kB: 0 B of 4\.1 kB are free.* hold 4\.1 kB"):
        memory.empty((1000,), np.dtype("u1"))
    del there
    gc.collect()
    assert memory.array(np.ones(256)).to_numpy().sum() == 256


@pytest.mark.parametrize("error", ["ILLEGAL_ADDRESS", "LAUNCH_FAILED"])
def test_a_lost_device_says_so_each_time_and_the_process_goes_on(cuda, driver, error):
    memory = GpuMemory(driver)
    x, y = memory.array(np.ones(3)), np.ones(3)
    cuda.kernels["doubled"] = lambda address, n: cuda.lose(Result[f"CUDA_ERROR_{error}"])
    module = launch(cuda, driver, x)
    for read in (
        x.to_numpy,
        driver.wait,
        lambda: memory.array(y),
        lambda: driver.load(TEXT.format("doubled"), [KERNEL]),
        x.copy,
    ):
        with pytest.raises(DeviceLost, match=f"a GPU has stopped working for this process: {error}") as lost:
            read()
        assert "doubled" in lost.value.why and "Python has to be started again" in lost.value.hint
    frees = cuda.calls["cuMemFreeAsync"]
    del x, module
    gc.collect()
    assert cuda.calls["cuMemFreeAsync"] == frees and (y * 2).tolist() == [2, 2, 2]


def test_a_launch_that_asks_for_too_much_is_no_loss(cuda, driver):
    x = GpuMemory(driver).array(np.ones(3))
    cuda.fails["cuLaunchKernel"] = Result.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    with pytest.raises(InternalError, match="cuLaunchKernel fails with LAUNCH_OUT_OF_RESOURCES"):
        launch(cuda, driver, x)
    del cuda.fails["cuLaunchKernel"]
    launch(cuda, driver, x)
    assert x.to_numpy().tolist() == [2, 2, 2]


NOT_FOUND = RuntimeError('"cuda" is an NVIDIA driver library and can only be found via system search.')


@pytest.mark.parametrize(("name", "value", "message"), [
    ("cuInit", NOT_FOUND, "NVIDIA's driver is not installed: install it"),
    ("cuInit", Result.CUDA_ERROR_NO_DEVICE, "driver finds none: nvidia-smi should list one"),
    ("cuInit", Result.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, r"its driver is of CUDA 13\.0: install one of CUDA 12\.0 or later"),
    ("cuInit", Result.CUDA_ERROR_NOT_INITIALIZED, r"its driver does not start \(NOT_INITIALIZED\)"),
    ("set_current", RuntimeError("CUDA_ERROR_DEVICE_UNAVAILABLE: busy"), "a GPU cannot be used, as other processes have it"),
    ("set_current", RuntimeError("CUDA_ERROR_UNKNOWN: hm"), r"its driver does not start \(CUDA_ERROR_UNKNOWN: hm\)"),
])  # fmt: skip
def test_what_cannot_be_opened_says_why_in_one_sentence(cuda, name, value, message):
    cuda.fails[name] = value
    with pytest.raises(DeviceError, match=message) as found:
        cuda_driver.open_driver()
    assert str(found.value).count("\n") == 0 and not isinstance(found.value, DeviceLost)


def test_an_old_driver_and_an_old_device_say_what_is_needed(cuda):
    cuda.version = 11040
    with pytest.raises(DeviceError, match=r"driver is of CUDA 11\.4: install one of CUDA 12\.0 or later"):
        cuda_driver.open_driver()
    cuda.version, cuda.cc = 13000, (6, 1)
    with pytest.raises(DeviceError, match=r"a GPU cannot be used, as it is too old: .* 7\.0 or later"):
        cuda_driver.open_driver()


def test_hidden_devices_are_said_to_be_hidden(cuda, monkeypatch):
    cuda.fails["cuInit"] = Result.CUDA_ERROR_NO_DEVICE
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with pytest.raises(DeviceError, match="CUDA_VISIBLE_DEVICES=-1 hides all"):
        cuda_driver.open_driver()


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(DeviceError, match=r"cuda-core is not installed: pip install 'jitlab\[gpu\]'"):
        cuda_driver.open_driver()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_after_the_first_use_is_a_clear_error(cuda, driver):
    memory = GpuMemory(driver)
    x = memory.array(np.ones(3))
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        said = ""
        try:
            for use in (x.to_numpy, lambda: memory.array(np.ones(2)), driver.wait):
                try:
                    use()
                except DeviceError as error:
                    said += str(error)
            calls = sum(cuda.calls.values())
            del x
            gc.collect()
            said += f" {sum(cuda.calls.values()) - calls}"
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as file:
        said = file.read()
    assert said.count("in a process that was forked after its first use") == 3 and said.endswith(" 0")
    assert x.to_numpy().tolist() == [1, 1, 1]


def test_threads_share_the_device(cuda, driver):
    """The stand-in has one current context, as one thread has: here every thread has it."""
    memory, wrong = GpuMemory(driver), []

    def work(seed):
        x = np.random.default_rng(seed).random(PageLocked.LEAST_BYTES // 8 + seed)
        for _ in range(5):
            if not np.array_equal(memory.array(x).to_numpy(), x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    driver.trim()
    assert not wrong and not cuda.blocks


def test_jitlab_loads_nothing_of_nvidias():
    program = """
import sys, jitlab, numpy
jitlab.jit(lambda x: x + 1)(numpy.ones(3))
print([name for name in sys.modules if name.startswith("cuda") or "gpu_" in name])
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

"""The driver of a real GPU: cuda.core opens it, and NVIDIA's driver API is called through cuda.bindings."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn
from weakref import WeakSet

import numpy as np

from jitlab import messages
from jitlab.config import config
from jitlab.errors import DeviceError, DeviceLost, InternalError
from jitlab.support import locks
from jitlab.targets.cpu_llvm import machine

from . import ptx
from .device_blocks import Shelf, Shelves
from .gpu_driver import MOST_NAMED, Driver, KernelFunction, Module, NativeLaunches, Resources, Shape2
from .page_locked import PageLocked

#: A driver of CUDA 12.0: it has all that is called here.
OLDEST_DRIVER = 12000

#: After these the driver refuses all that this process asks of the device.
LOSSES = frozenset({
    "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "MISALIGNED_ADDRESS", "ILLEGAL_INSTRUCTION", "INVALID_PC", "INVALID_ADDRESS_SPACE",
    "HARDWARE_STACK_ERROR", "ASSERT", "ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE", "LAUNCH_TIMEOUT", "CONTEXT_IS_DESTROYED",
    "EXTERNAL_DEVICE", "CONTAINED", "DEINITIALIZED", "MPS_CLIENT_TERMINATED", "UNKNOWN",
})  # fmt: skip

#: `wait` asks again and again for so long, then with pauses: of a twentieth of what it has waited, between these.
SPIN_SECONDS, SHORTEST_PAUSE, LONGEST_PAUSE = 100e-6, 20e-6, 100e-6


def open_driver() -> CudaDriver:
    """The first GPU of this process. Raises DeviceError, whose one sentence says what is missing and what to do."""
    try:
        import cuda.core as core
        from cuda.bindings import driver as api
    except ImportError:
        raise DeviceError(messages.text("gpu.no_package")) from None
    try:
        error, *_ = api.cuInit(0)
    except RuntimeError:  # cuda.bindings finds no library to call
        raise DeviceError(messages.text("gpu.no_driver")) from None
    name = error.name.removeprefix("CUDA_ERROR_")
    if name == "NO_DEVICE":
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise DeviceError(
            messages.text("gpu.no_device") if visible is None else messages.text("gpu.none_visible", visible=visible)
        )
    version = api.cuDriverGetVersion()[1]
    if version < OLDEST_DRIVER or name in ("SYSTEM_DRIVER_MISMATCH", "COMPAT_NOT_SUPPORTED_ON_DEVICE"):
        raise DeviceError(messages.text("gpu.old_driver", version=_version(version), oldest=_version(OLDEST_DRIVER)))
    if name != "CUDA_SUCCESS":
        raise DeviceError(messages.text("gpu.not_started", error=name))
    device = core.Device(0)
    arch = ptx.arch_for(*device.compute_capability)
    if not arch:
        raise DeviceError(messages.text("gpu.old_device", name=device.name, oldest=ptx.OLDEST / 10))
    try:
        device.set_current()
        stream = device.create_stream()
    except Exception as error:  # of a class of cuda.core's own
        if "DEVICE_UNAVAILABLE" in str(error) or "OUT_OF_MEMORY" in str(error):
            raise DeviceError(messages.text("gpu.taken", name=device.name)) from None
        raise DeviceError(messages.text("gpu.not_started", error=str(error).partition("\n")[0])) from None
    return CudaDriver(core, api, device, stream, arch, version)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


class CudaDriver(Driver):
    """One GPU, in its primary context, which numba.cuda, CuPy and torch share; all runs on one stream of ours."""

    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any  # held while page-locked buffers are in use

    def __init__(self, core: Any, api: Any, device: Any, stream: Any, arch: str, version: int) -> None:
        self._core, self._api, self._kept = core, api, stream
        self.key, self.name, self._version = arch, device.name, version
        self.processors = device.properties.multiprocessor_count
        self._lost: dict[str, str] = {}  # what a DeviceLost says
        self.is_forked = False
        self._recent = (ctypes.c_int64 * (1 + MOST_NAMED))()  # launches since the last wait, and the last ones' numbers
        self._names: list[str] = []  # of kernels, by number
        self._stopped = ctypes.c_int64(0)
        self._shelves = Shelves()
        self._marks: list[Any] = []  # events that nobody uses
        self.stream = int(stream.handle)
        self._context = api.cuCtxGetCurrent()[1]
        self._context_address = int(self._context)
        self.memory_bytes = self._call("cuMemGetInfo")[1]
        self._pool = self._new_pool()
        locks.own(self)
        self._buffers: PageLocked | None = None
        self.native = self._native()
        _opened.add(self)

    # ---- calls

    def _call(self, function: str, *args: Any) -> Any:
        """What one of the driver's functions gives: nothing, a value, or a tuple of them. Raises what it fails with."""
        error, *found = self._answer(function, *args)
        if error:
            self._fail(function, error)
        return found[0] if len(found) == 1 else found

    def _answer(self, function: str, *args: Any) -> Sequence[Any]:
        """A function's own result, in our context; the thread's is afterwards what it was."""
        if self.is_forked:
            raise DeviceError(messages.text("gpu.forked"))
        if self._lost:
            raise DeviceLost(**self._lost)
        api = self._api
        call = getattr(api, function)
        if int(api.cuCtxGetCurrent()[1]) == self._context_address:
            return call(*args)  # type: ignore[no-any-return]
        api.cuCtxPushCurrent(self._context)
        try:
            return call(*args)  # type: ignore[no-any-return]
        finally:
            api.cuCtxPopCurrent()

    def _fail(self, function: str, error: Any) -> NoReturn:
        name = error.name.removeprefix("CUDA_ERROR_")
        if name in LOSSES:
            launched, *numbers = self._recent
            kernels = ", ".join(self._names[numbers[n % MOST_NAMED]] for n in range(max(launched - MOST_NAMED, 0), launched))
            self._stopped.value = 1
            self._lost = {
                "what": messages.text("gpu.lost", name=self.name, error=name), "hint": messages.text("gpu.lost_cure"),
                "why": messages.text("gpu.lost_in", kernels=kernels) if kernels else "",
            }  # fmt: skip
            raise DeviceLost(**self._lost)
        if name == "OUT_OF_MEMORY":
            raise MemoryError(messages.text("gpu.full", name=self.name))
        raise InternalError(f"{function} fails with {name}", where=self.name)

    # ---- memory

    def _new_pool(self) -> Any:
        api = self._api
        wanted = api.CUmemPoolProps()
        wanted.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        wanted.location.id = 0
        pool = self._call("cuMemPoolCreate", wanted)
        kept = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        self._call("cuMemPoolSetAttribute", pool, kept, api.cuuint64_t(self.memory_bytes // 4))
        return pool

    def shelf(self, nbytes: int) -> Shelf:
        return self._shelves.of(nbytes)

    def allocate(self, nbytes: int) -> int:
        for is_last in (False, True):
            error, address = self._answer("cuMemAllocFromPoolAsync", nbytes, self._pool, self.stream)
            if not error:
                return int(address)
            if "OUT_OF_MEMORY" not in error.name or is_last:
                break
            self.trim()
        if "OUT_OF_MEMORY" not in error.name:
            self._fail("cuMemAllocFromPoolAsync", error)
        free, whole = map(int, self._call("cuMemGetInfo"))
        raise MemoryError(
            messages.text("gpu.out_of_memory", name=self.name, wanted=nbytes, free=free, whole=whole, held=self.held_bytes())
        )

    def held_bytes(self) -> int:
        """Of arrays that live."""
        used = self._api.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
        return int(self._call("cuMemPoolGetAttribute", self._pool, used)) - self._shelves.free_bytes

    def free(self, address: int) -> None:
        if sys is None or self._lost or self.is_forked or sys.is_finalizing():  # modules are gone when Python ends
            return
        try:
            self._call("cuMemFreeAsync", address, self.stream)
        except DeviceLost:
            pass  # the next wait says it

    def trim(self) -> None:
        self._shelves.clear(self.free)
        self.wait()
        self._call("cuMemPoolTrimTo", self._pool, 0)

    # ---- copies

    def copy_in(self, address: int, array: np.ndarray[Any, Any]) -> None:
        if array.nbytes < PageLocked.LEAST_BYTES:
            self._call("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes, self.stream)
        else:
            with locks.Released(self._lock), self._lock:
                self._page_locked().copy_in(address, array.reshape(-1).view(np.uint8))

    def copy_out(self, array: np.ndarray[Any, Any], address: int) -> None:
        if array.nbytes < PageLocked.LEAST_BYTES:
            self.wait()  # here signals are looked after
            self._call("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes, self.stream)
            self.wait()
        else:
            self.wait()
            with locks.Released(self._lock), self._lock:
                self._page_locked().copy_out(array.reshape(-1).view(np.uint8), address)

    def _page_locked(self) -> PageLocked:
        if self._buffers is None:
            self._buffers = PageLocked(self)
        return self._buffers

    def copy_within(self, target: int, source: int, nbytes: int) -> None:
        self._call("cuMemcpyDtoDAsync", target, source, nbytes, self.stream)

    # ---- kernels

    def load(self, text: str, kernels: Sequence[KernelFunction]) -> Module:
        store = machine.object_cache()
        is_kept = config.cache
        name = store.key(text, f"{self.key} {ptx.TRIPLE} {self._version}")
        image = store.read(name) if is_kept else None
        if image is None:
            image = self._linked(ptx.ptx_of(text, self.key))
            if is_kept:
                store.write(name, image)
        return LoadedModule(self, image, kernels)

    def _linked(self, made: str) -> bytes:
        """The device's own code of PTX where it can be kept, else the PTX, which the driver takes, too."""
        import warnings

        core = self._core
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the driver links: it does
            try:
                linker = core.Linker(core.ObjectCode.from_ptx(made.encode()), options=core.LinkerOptions(arch=self.key))
                cubin = bytes(linker.link("cubin").code)
                if cubin:
                    return cubin
            except Exception:  # of a class of cuda.core's own: a linker that is older than the PTX, or there is none
                pass
        return made.encode() + b"\0"

    def launch(self, function: Any, grid: Shape2, block: Shape2, parameters: Sequence[int]) -> None:
        number, handle = function
        given = parameters if isinstance(parameters, ctypes.Array) else (ctypes.c_uint64 * len(parameters))(*parameters)
        recent = self._recent
        recent[1 + recent[0] % MOST_NAMED] = number
        recent[0] += 1
        self._call("cuLaunchKernel", handle, grid.x, grid.y, 1, block.x, block.y, 1, 0, self.stream, ctypes.addressof(given), 0)

    def _native(self) -> NativeLaunches | None:
        found = [self._answer("cuGetProcAddress", name, OLDEST_DRIVER, 0) for name in (b"cuLaunchKernel", b"cuCtxGetCurrent")]
        if any(error or not address for error, address, *_ in found):
            return None
        launch, current = (int(address) for _, address, *_ in found)
        return NativeLaunches(launch, self.stream or 0, current, self._context_address, self._stopped, self._recent)

    def number_of(self, name: str) -> int:
        """The number that stands for a kernel's name."""
        with locks.Released(self._lock), self._lock:
            if name not in self._names:
                self._names.append(name)
            return self._names.index(name)

    def native_function(self, function: Any) -> tuple[int, int]:
        number, handle = function
        return int(handle), number

    # ---- time

    def wait(self) -> None:
        started = time.perf_counter()
        while self.is_busy():
            waited = time.perf_counter() - started
            if waited > SPIN_SECONDS:
                time.sleep(min(max(waited / 20, SHORTEST_PAUSE), LONGEST_PAUSE))
        self._recent[0] = 0

    def is_busy(self) -> bool:
        """Is something of what was enqueued not done? Raises what the device failed with."""
        (error,) = self._answer("cuStreamQuery", self.stream)
        if error and error.name != "CUDA_ERROR_NOT_READY":
            self._fail("cuStreamQuery", error)
        return bool(error)

    def resources(self, function: Any) -> Resources:
        attribute = self._api.CUfunction_attribute
        wanted = (
            attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
        )  # fmt: skip
        return Resources(*(int(self._call("cuFuncGetAttribute", one, function[1])) for one in wanted))

    def mark(self) -> Mark:
        try:
            event = self._marks.pop()
        except IndexError:
            event = self._call("cuEventCreate", 0)
        made = Mark(event, self._marks)
        self._call("cuEventRecord", event, self.stream)
        return made

    def elapsed_ns(self, before: Mark, after: Mark) -> int:
        return int(1e6 * self._call("cuEventElapsedTime", before.event, after.event))

    def has_passed(self, mark: Mark) -> bool:
        """Is all done that was enqueued before it?"""
        (error,) = self._answer("cuEventQuery", mark.event)
        if error and error.name != "CUDA_ERROR_NOT_READY":
            self._fail("cuEventQuery", error)
        return not error

    def before(self, stream: int) -> None:
        event = self._call("cuEventCreate", int(self._api.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        try:
            self._call("cuEventRecord", event, stream)
            self._call("cuStreamWaitEvent", self.stream, event, 0)
        finally:
            self._answer("cuEventDestroy", event)  # what waits for it waits on

    def after(self, stream: int) -> None:
        self._call("cuStreamWaitEvent", stream, self.mark().event, 0)


class Mark:
    """A point in time of the stream; its event is used again when nobody has the mark any more."""

    __slots__ = ("_unused", "event")

    def __init__(self, event: Any, unused: list[Any]) -> None:
        self.event, self._unused = event, unused

    def __del__(self) -> None:
        if hasattr(self, "_unused"):
            self._unused.append(self.event)


class LoadedModule(Module):
    """Kernels on the device, each as (number of its name, handle)."""

    def __init__(self, driver: CudaDriver, image: bytes, kernels: Sequence[KernelFunction]) -> None:
        self._module: Any = None
        self._driver = driver
        log = bytearray(4096)
        option = driver._api.CUjit_option
        error, found = driver._answer(
            "cuModuleLoadDataEx", image, 2,
            [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [log, len(log)],
        )  # fmt: skip
        if error:
            if log[0]:
                why = log.partition(b"\0")[0].decode(errors="replace")
                raise InternalError("the GPU's driver takes no kernel of this module", why=why)
            driver._fail("cuModuleLoadDataEx", error)
        self._module = found
        self.functions = []
        for kernel in kernels:
            handle = driver._call("cuModuleGetFunction", found, kernel.name.encode())
            self.functions.append((driver.number_of(kernel.name), handle))

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if sys is None or driver is None or self._module is None:  # modules are gone when Python ends
            return
        if driver._lost or driver.is_forked or sys.is_finalizing():
            return
        try:
            driver._answer("cuModuleUnload", self._module)
        except DeviceError:
            pass


_opened: WeakSet[CudaDriver] = WeakSet()


def _after_fork() -> None:
    """A child has no device: what the parent opened is not there."""
    for driver in list(_opened):
        driver.is_forked = True
        driver._stopped.value = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

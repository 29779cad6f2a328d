"""A stand-in for `cuda.core` and `cuda.bindings.driver`: one device in this process's memory, whose stream runs late.

What is enqueued is done when the stream or an event is asked, one step a question, so that whoever does not wait reads what was
there before. A kernel is a Python function of `kernels` (name -> function of the values of its parameters as integers).
"""

import ctypes
import enum
import sys
import threading
import types
from collections import Counter

import numpy as np

CONTEXT, OTHER_CONTEXT, STREAM = 0x1000, 0x2000, 0x3000


class Result(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803
    CUDA_ERROR_NOT_INITIALIZED = 3


class Event:
    done = False
    at = 0


class Fake:
    """The state of the device, and its functions: `api` and `core` are the modules. `fails`: function -> the error it gives
    from now on. `limit`: of the bytes that may be allocated."""

    def __init__(self):
        self.fails, self.calls, self.version = {}, Counter(), 13000
        self.cc, self.limit = (9, 0), 1 << 34
        self.current, self.stack = 0, []
        self.queue, self.steps = [], 0
        self.blocks, self.pooled = {}, 0  # address -> memory; bytes that were freed and are kept
        self.kernels, self.modules, self.names = {}, {}, []
        self.native = {  # what C code calls
            b"cuLaunchKernel": ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 11)(self._launched),
            b"cuCtxGetCurrent": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64))(self._told_current),
        }  # fmt: skip
        self.loaded = []  # the images of modules, in order
        self.waits = []  # (stream, event's stream)
        self.lock = threading.RLock()
        self.api = self._api_module()
        self.core = self._core_module()

    def install(self, monkeypatch):
        cuda, bindings = types.ModuleType("cuda"), types.ModuleType("cuda.bindings")
        cuda.core, cuda.bindings, bindings.driver = self.core, bindings, self.api
        for name, module in (
            ("cuda", cuda), ("cuda.core", self.core), ("cuda.bindings", bindings), ("cuda.bindings.driver", self.api),
        ):  # fmt: skip
            monkeypatch.setitem(sys.modules, name, module)
        return self

    # ---- what is enqueued

    def enqueue(self, action):
        self.queue.append(action)

    def step(self):
        """One of what is enqueued is done."""
        self.steps += 1
        if self.queue:
            self.queue.pop(0)()

    def lose(self, error):
        """Everything fails from now on."""
        self.queue.clear()
        for name in vars(type(self)):
            if name.startswith("cu") and name not in ("cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuInit"):
                self.fails[name] = error

    # ---- the driver's functions: each gives (error, …)

    def cuInit(self, flags):
        return (Result.CUDA_SUCCESS,)

    def cuDriverGetVersion(self):
        return Result.CUDA_SUCCESS, self.version

    def cuCtxGetCurrent(self):
        return Result.CUDA_SUCCESS, self.current

    def cuCtxPushCurrent(self, context):
        self.stack.append(self.current)
        self.current = context
        return (Result.CUDA_SUCCESS,)

    def cuCtxPopCurrent(self):
        self.current = self.stack.pop()
        return Result.CUDA_SUCCESS, CONTEXT

    def cuMemGetInfo(self):
        return Result.CUDA_SUCCESS, self.limit - self.used() - self.pooled, self.limit

    def cuMemPoolCreate(self, wanted):
        return Result.CUDA_SUCCESS, "pool"

    def cuMemPoolSetAttribute(self, pool, attribute, value):
        self.threshold = value
        return (Result.CUDA_SUCCESS,)

    def cuMemPoolGetAttribute(self, pool, attribute):
        return Result.CUDA_SUCCESS, self.used()

    def cuMemPoolTrimTo(self, pool, least):
        self.pooled = least
        return (Result.CUDA_SUCCESS,)

    def used(self):
        return sum(len(raw) - 256 for raw in self.blocks.values())

    def cuMemAllocFromPoolAsync(self, nbytes, pool, stream):
        assert stream == STREAM and nbytes > 0
        if self.used() + self.pooled + nbytes > self.limit:
            return Result.CUDA_ERROR_OUT_OF_MEMORY, None
        raw = np.full(nbytes + 256, 0xA5, np.uint8)
        address = -(-raw.ctypes.data // 256) * 256
        self.blocks[address] = raw
        return Result.CUDA_SUCCESS, address

    def cuMemFreeAsync(self, address, stream):
        raw = self.blocks[address]  # KeyError: it was freed before

        def free():
            raw[:] = 0xDD
            self.blocks.pop(address)
            self.pooled += len(raw) - 256

        self.enqueue(free)
        return (Result.CUDA_SUCCESS,)

    def cuMemHostAlloc(self, nbytes, flags):
        raw = np.zeros(nbytes, np.uint8)
        self.locked = [*getattr(self, "locked", ()), raw]
        return Result.CUDA_SUCCESS, raw.ctypes.data

    def is_locked(self, address):
        return any(raw.ctypes.data <= address < raw.ctypes.data + len(raw) for raw in getattr(self, "locked", ()))

    def _copy(self, target, source, nbytes, host):
        assert nbytes > 0
        if host is not None and not self.is_locked(host):  # what is pageable is copied before the call returns
            while self.queue:
                self.step()
            ctypes.memmove(target, source, nbytes)
        else:
            self.enqueue(lambda: ctypes.memmove(target, source, nbytes))
        return (Result.CUDA_SUCCESS,)

    def cuMemcpyHtoDAsync(self, target, source, nbytes, stream):
        return self._copy(target, source, nbytes, source)

    def cuMemcpyDtoHAsync(self, target, source, nbytes, stream):
        return self._copy(target, source, nbytes, target)

    def cuMemcpyDtoDAsync(self, target, source, nbytes, stream):
        return self._copy(target, source, nbytes, None)

    def cuModuleLoadDataEx(self, image, count, options, values):
        assert len(options) == len(values) == count
        if b"BROKEN" in bytes(image):
            values[0][: len(b"ptxas error : no\0")] = b"ptxas error : no\0"
            return Result.CUDA_ERROR_INVALID_PTX, None
        self.loaded.append(bytes(image))
        self.modules[len(self.loaded) - 1] = bytes(image)
        return Result.CUDA_SUCCESS, len(self.loaded) - 1

    def cuModuleGetFunction(self, module, name):
        self.names.append(name.decode())
        return Result.CUDA_SUCCESS, len(self.names) - 1

    def cuGetProcAddress(self, name, version, flags):
        return Result.CUDA_SUCCESS, ctypes.cast(self.native[name], ctypes.c_void_p).value, 0

    def _launched(self, *given):
        words = [ctypes.c_int32(x).value for x in given[1:8]]
        return int(self.api.cuLaunchKernel(given[0], *words, *given[8:])[0])

    def _told_current(self, where):
        where[0] = self.current
        return 0

    def cuFuncGetAttribute(self, attribute, function):
        return Result.CUDA_SUCCESS, {4: 40, 1: 2048, 3: 16}[attribute]

    def cuModuleUnload(self, module):
        del self.modules[module]
        return (Result.CUDA_SUCCESS,)

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert stream == STREAM and (gz, bz, shared, extra) == (1, 1, 0, 0)
        kernel = self.kernels[self.names[function]]
        count = kernel.__code__.co_argcount
        pointers = (ctypes.c_void_p * count).from_address(parameters)
        values = [ctypes.c_int64.from_address(pointer).value for pointer in pointers]  # read before the call returns
        self.enqueue(lambda: kernel(*values))
        return (Result.CUDA_SUCCESS,)

    def cuStreamQuery(self, stream):
        assert stream == STREAM
        self.step()
        error = self.fails.get("cuStreamQuery")
        return ((error or (Result.CUDA_ERROR_NOT_READY if self.queue else Result.CUDA_SUCCESS)),)

    def cuEventCreate(self, flags):
        return Result.CUDA_SUCCESS, Event()

    def cuEventDestroy(self, event):
        return (Result.CUDA_SUCCESS,)

    def cuEventRecord(self, event, stream):
        event.done, event.stream = False, stream

        def pass_by():
            event.done, event.at = True, self.steps

        self.enqueue(pass_by)
        return (Result.CUDA_SUCCESS,)

    def cuEventQuery(self, event):
        self.step()
        return (self.fails.get("cuEventQuery") or (Result.CUDA_SUCCESS if event.done else Result.CUDA_ERROR_NOT_READY),)

    def cuEventElapsedTime(self, before, after):
        assert before.done and after.done
        return Result.CUDA_SUCCESS, float(after.at - before.at)

    def cuStreamWaitEvent(self, stream, event, flags):
        self.waits.append((stream, event.stream))
        return (Result.CUDA_SUCCESS,)

    # ---- the modules

    def _api_module(self):
        api = types.ModuleType("cuda.bindings.driver")
        for name in dir(type(self)):
            if name.startswith("cu"):
                setattr(api, name, self._guarded(name))
        api.CUmemPoolProps = lambda: types.SimpleNamespace(location=types.SimpleNamespace())
        api.CUmemAllocationType = types.SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED=1)
        api.CUmemLocationType = types.SimpleNamespace(CU_MEM_LOCATION_TYPE_DEVICE=1)
        api.CUmemPool_attribute = types.SimpleNamespace(
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD=4, CU_MEMPOOL_ATTR_USED_MEM_CURRENT=7
        )  # fmt: skip
        api.CUjit_option = types.SimpleNamespace(CU_JIT_ERROR_LOG_BUFFER=5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES=6)
        api.CUevent_flags = types.SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
        api.CUfunction_attribute = types.SimpleNamespace(
            CU_FUNC_ATTRIBUTE_NUM_REGS=4, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES=1, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES=3
        )  # fmt: skip
        api.cuuint64_t = int
        return api

    def _guarded(self, name):
        def call(*args):
            self.calls[name] += 1
            needs_context = name not in (
                "cuInit",
                "cuDriverGetVersion",
                "cuCtxGetCurrent",
                "cuCtxPushCurrent",
                "cuCtxPopCurrent",
            )
            assert not needs_context or self.current == CONTEXT, name
            if name in self.fails and name not in ("cuStreamQuery", "cuEventQuery"):
                failed = self.fails[name]
                if isinstance(failed, Exception):
                    raise failed
                return failed, None
            with self.lock:
                return getattr(self, name)(*args)

        return call

    def _core_module(self):
        core = types.ModuleType("cuda.core")
        fake = self

        class Device:
            name = "a GPU"
            properties = types.SimpleNamespace(multiprocessor_count=132)

            def __init__(self, number):
                assert number == 0

            @property
            def compute_capability(self):
                return fake.cc

            def set_current(self):
                if "set_current" in fake.fails:
                    raise fake.fails["set_current"]
                fake.current = CONTEXT

            def create_stream(self):
                return types.SimpleNamespace(handle=STREAM)

        class ObjectCode:
            def __init__(self, code):
                self.code = code

            from_ptx = classmethod(lambda cls, code: cls(code))

        class Linker:
            def __init__(self, *codes, options):
                if "link" in fake.fails:
                    raise fake.fails["link"]
                self.code, self.arch = codes[0].code, options["arch"]

            def link(self, kind):
                assert kind == "cubin"
                fake.calls["link"] += 1
                return ObjectCode(b"cubin of " + self.arch.encode() + self.code)

        core.Device, core.ObjectCode, core.Linker, core.LinkerOptions = Device, ObjectCode, Linker, lambda **given: given
        return core

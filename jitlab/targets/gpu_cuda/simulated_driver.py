"""A GPU on the processor: its memory is NumPy's, and its kernels are the very LLVM text that a real one gets.

It is for tests, and for trying out what runs on a GPU where there is none. What a real GPU does without a word is an error
here: memory outside of what was allocated, addresses that are not aligned as the text says, threads that touch one byte with
nothing between them that orders them, a barrier or shuffle that not all its threads meet.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar
from weakref import WeakValueDictionary, ref

import numpy as np

from jitlab.errors import InternalError
from jitlab.support import locks
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.cpu_llvm import machine

from .gpu_driver import MOST_NAMED, Driver, KernelFunction, Module, NativeLaunches, Shape2
from .simulation.processor_text import BARRIER, SHUFFLE, SLEEP, WARP_BARRIER, ProcessorText, processor_text
from .simulation.runtime_text import DESTROY, RESUME, SINK_BYTES, start_name
from .simulation.thread_records import BLOCK_BIT, FAULTS, LAUNCH, NUMBER, RANGE, THREAD

WARP = 32

#: What a block may have on any GPU: threads, and bytes of shared memory that are declared.
MOST_THREADS, MOST_SHARED = 1024, 48 << 10

#: Memory that was not written, byte by byte: of floats it is NaN, of integers -1.
UNWRITTEN = 0xFF

#: Memory of the device begins at multiples of this.
ALIGNMENT = 256

#: Who touches each byte is noted for so many bytes of an array; it takes 16 times as much.
WATCHED_BYTES = 256 << 10


class SimulatedFault(InternalError):
    """A kernel did what a GPU forbids, or what it does not define."""


@dataclass(eq=False)
class SimulatedKernel:
    """A kernel of a module on the processor."""

    function: KernelFunction
    module: SimulatedModule
    start: Any  # starts its threads
    waits: bool


class SimulatedModule(Module):
    """Code for the processor; LLVM takes it out of memory when this and its kernels are collected."""

    def __init__(self, text: str, kernels: Sequence[KernelFunction]) -> None:
        self.made: ProcessorText = processor_text(machine.optimized(text, "quick"), machine.llvm().llvm_version_info[0])
        found = self.made.kernels
        for kernel in kernels:
            if kernel.name not in found or len(found[kernel.name][0]) != len(kernel.parameters):
                raise SimulatedFault(f"the module has no kernel {kernel.name} of {len(kernel.parameters)} parameters")
        if self.made.shared_bytes > MOST_SHARED:
            raise SimulatedFault(f"{self.made.shared_bytes} bytes of shared memory are declared, of at most {MOST_SHARED}")
        names = [start_name(kernel.name) for kernel in kernels]
        code = machine.object_cache().compile(self.made.text, "split")[0]
        self.code = machine.load(code, [*names, RESUME, DESTROY])
        self.resume, self.destroy = (self._native(name, 4) for name in (RESUME, DESTROY))
        self.functions = [
            SimulatedKernel(kernel, self, self._native(name, 5), found[kernel.name][1])
            for kernel, name in zip(kernels, names, strict=True)
        ]

    def _native(self, name: str, count: int) -> Any:
        return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(self.code.address(name))


class SimulatedDriver(Driver):
    """A GPU of few processors, so that loops over a grid turn more than once.

    `order`: in which its threads run up to where each waits, "forwards" or "backwards", or a number that random ones are drawn
    from. `launched` counts launches by kernel; `read_bytes` and `written_bytes`: what kernels did with arrays; `faults`: what
    they did wrong, also where a call then ran as Python instead.
    """

    key, name, simulated = "simulated", "simulated GPU", True
    has_turns = True
    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any

    def __init__(self, processors: int = 2, order: str | int = "forwards", memory_bytes: int = 1 << 30) -> None:
        self.processors, self.order, self.memory_bytes = processors, order, memory_bytes
        self.launched: Counter[str] = Counter()
        self.faults: list[str] = []
        self.read_bytes = self.written_bytes = 0
        self.held_bytes = 0
        self._random = np.random.default_rng(order if isinstance(order, int) else 0)
        self._starts: list[int] = []  # of what is allocated, ascending
        self._memory: dict[int, tuple[np.ndarray[Any, Any], int]] = {}  # start -> its array, and how many bytes it is for
        self._native_kernels: WeakValueDictionary[int, SimulatedKernel] = WeakValueDictionary()
        locks.own(self)

    # memory

    def allocate(self, nbytes: int) -> int:
        nbytes = max(nbytes, 1)
        with locks.Released(self._lock), self._lock:
            if self.held_bytes + nbytes > self.memory_bytes:
                raise MemoryError(f"{nbytes} bytes wanted, {self.memory_bytes - self.held_bytes} free")
            array = np.full(nbytes + 2 * ALIGNMENT, UNWRITTEN, np.uint8)
            start = -(-array.ctypes.data // ALIGNMENT) * ALIGNMENT
            self._memory[start] = array, nbytes
            bisect.insort(self._starts, start)
            self.held_bytes += nbytes
        return start

    def free(self, address: int) -> None:
        with locks.Released(self._lock), self._lock:
            if address not in self._memory:
                raise SimulatedFault(f"{address:#x} is freed, and is not allocated")
            array, nbytes = self._memory.pop(address)
            self._starts.remove(address)
            self.held_bytes -= nbytes
            array.fill(UNWRITTEN)

    def _around(self, address: int) -> tuple[int, int] | None:
        """Start and end of the memory that an address lies in."""
        place = bisect.bisect_right(self._starts, address) - 1
        start = self._starts[place] if place >= 0 else address
        end = start + (self._memory[start][1] if place >= 0 else 0)
        return (start, end) if address < end else None

    def _check(self, address: int, nbytes: int, what: str) -> None:
        around = self._around(address)
        if nbytes and (around is None or address + nbytes > around[1]):
            raise SimulatedFault(f"{what} of {nbytes} bytes at {address:#x}, where so many are not allocated")

    def copy_in(self, address: int, array: np.ndarray[Any, Any]) -> None:
        with locks.Released(self._lock), self._lock:
            self._check(address, array.nbytes, "a copy")
            ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def copy_out(self, array: np.ndarray[Any, Any], address: int) -> None:
        with locks.Released(self._lock), self._lock:
            self._check(address, array.nbytes, "a copy")
            ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy_within(self, target: int, source: int, nbytes: int) -> None:
        with locks.Released(self._lock), self._lock:
            self._check(target, nbytes, "a copy")
            self._check(source, nbytes, "a copy")
            ctypes.memmove(target, source, nbytes)

    # kernels

    def load(self, text: str, kernels: Sequence[KernelFunction]) -> Module:
        with self._noted():
            return SimulatedModule(text, kernels)

    def launch(self, function: Any, grid: Shape2, block: Shape2, parameters: Sequence[int]) -> None:
        with locks.Released(self._lock), self._lock, self._noted():
            self.launched[function.function.name] += 1
            launch = _Launch(self, function, grid, block, parameters)
            launch.run()
            self.read_bytes += int(launch.ranges["read"].sum())
            self.written_bytes += int(launch.ranges["written"].sum())

    @lazy
    def native(self) -> NativeLaunches:
        """C code calls back into Python: the way to the launch is that of a real one."""
        own, kernels = ref(self), self._native_kernels

        def launched(handle: int, *given: int) -> int:
            gx, gy, _, bx, by, _, _ = (ctypes.c_int32(x).value for x in given[:7])
            driver, kernel = own(), kernels[handle]
            pointers = (ctypes.c_uint64 * len(kernel.function.parameters)).from_address(given[8])
            try:
                assert driver is not None
                driver.launch(kernel, Shape2(gx, gy), Shape2(bx, by), list(pointers))
            except BaseException:  # the call goes the Python way, where it comes again
                return 1
            return 0

        kept = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 11)(launched)
        address, recent = ctypes.cast(kept, ctypes.c_void_p).value or 0, (ctypes.c_int64 * (1 + MOST_NAMED))()
        return NativeLaunches(address, 0, 0, 0, ctypes.c_int64(0), recent, kept)

    def native_function(self, function: Any) -> tuple[int, int]:
        self._native_kernels[id(function)] = function
        return id(function), 0

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except InternalError as error:
            self.faults.append(str(error))
            raise

    def ordered(self, threads: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Numbers of threads in the order in which they run."""
        if self.order == "forwards":
            return threads
        return threads[::-1].copy() if self.order == "backwards" else self._random.permutation(threads)

    def touched(self, function: KernelFunction, parameters: Sequence[int]) -> dict[int, int]:
        """Start and end of the memory that the addresses among a kernel's parameters lie in: what it may touch."""
        given = [
            ctypes.c_uint64.from_address(at).value
            for at, p in zip(parameters, function.parameters, strict=True)
            if p.bytes == 8
        ]
        return dict(filter(None, map(self._around, given)))

    def wait(self) -> None:
        pass

    def mark(self) -> int:
        return time.perf_counter_ns()

    def elapsed_ns(self, before: Any, after: Any) -> int:
        return int(after - before)


class _Launch:
    """One launch: records of its threads, which are told to go on until all have ended."""

    def __init__(self, driver: SimulatedDriver, kernel: Any, grid: Shape2, block: Shape2, parameters: Sequence[int]) -> None:
        self.driver, self.kernel, self.module = driver, kernel, kernel.module
        self.name, self.size, self.blocks = kernel.function.name, block.x * block.y, grid.x * grid.y
        if min(grid.x, grid.y, block.x, block.y) < 1 or self.size > MOST_THREADS or grid.y > 65535:
            raise SimulatedFault(f"{self.name} is launched with a grid {grid} of blocks {block}")
        self.parameters = np.array(parameters, np.uint64)
        self.launch = np.zeros(1, LAUNCH)
        self._take_memory(driver.touched(kernel.function, parameters))
        self.threads = self._records(grid, block)
        self.handles = np.zeros(len(self.threads), np.uint64)
        self.asleep = False

    def _take_memory(self, touched: dict[int, int]) -> None:
        self.shadows = [
            np.zeros(2 * (end - start) if end - start <= WATCHED_BYTES else 0, np.uint64) for start, end in touched.items()
        ]
        self.ranges = np.array(
            [(*item, s.ctypes.data if s.size else 0, 0, 0) for item, s in zip(touched.items(), self.shadows, strict=True)],
            RANGE,
        )
        self.sink = np.full(2 * SINK_BYTES, UNWRITTEN, np.uint8)
        self.launch["ranges"], self.launch["count"] = self.ranges.ctypes.data, len(self.ranges)
        self.launch["sink"] = -(-self.sink.ctypes.data // SINK_BYTES) * SINK_BYTES
        self.launch["shared_bytes"] = nbytes = self.module.made.shared_bytes
        self.apart = -(-nbytes // ALIGNMENT) * ALIGNMENT + ALIGNMENT  # the next block's lies so far behind one's
        self.shared = np.full((self.blocks + 1) * self.apart if nbytes else ALIGNMENT, UNWRITTEN, np.uint8)
        self.shared_shadow = np.zeros((self.blocks, 2 * nbytes), np.uint64)

    def _records(self, grid: Shape2, block: Shape2) -> np.ndarray[Any, Any]:
        threads = np.zeros(self.blocks * self.size, THREAD)
        blocks, number = np.divmod(np.arange(len(threads)), self.size)
        threads["block"], threads["number"], threads["launch"] = blocks, number, self.launch.ctypes.data
        threads["tid.y"], threads["tid.x"] = np.divmod(number, block.x)
        threads["ctaid.y"], threads["ctaid.x"] = np.divmod(blocks, grid.x)
        threads["ntid.x"], threads["ntid.y"], threads["nctaid.x"], threads["nctaid.y"] = block.x, block.y, grid.x, grid.y
        if self.module.made.shared_bytes:
            first = -(-self.shared.ctypes.data // ALIGNMENT) * ALIGNMENT
            threads["shared"] = first + blocks * self.apart
            threads["shadow"] = self.shared_shadow.ctypes.data + blocks * self.shared_shadow.strides[0]
        return threads

    def run(self) -> None:
        ready = self.driver.ordered(np.arange(len(self.threads)))
        pointers = self.parameters.ctypes.data, self.threads.ctypes.data
        self.kernel.start(*pointers, ready.ctypes.data, len(ready), self.handles.ctypes.data)
        try:
            self._check_accesses()
            while len(ready := self._ready()):
                before = self.threads["site"].copy() if self.asleep else None
                ready = self.driver.ordered(ready)
                self.module.resume(None, ready.ctypes.data, len(ready), self.handles.ctypes.data)
                self._check_accesses()
                if before is not None and (before == self.threads["site"]).all():
                    self._diverged(before.reshape(self.blocks, self.size))
        except BaseException:
            waiting = np.flatnonzero(self.threads["site"])
            self.module.destroy(None, waiting.ctypes.data, len(waiting), self.handles.ctypes.data)
            raise

    def _ready(self) -> np.ndarray[Any, Any]:
        """The threads that may go on: those of blocks that wait at one barrier, of warps that wait at one shuffle, and sleeping
        ones. `asleep`: it is only these."""
        sites = self.threads["site"]
        if not sites.any():
            return np.zeros(0, np.int64)
        kinds = np.array([what for what, _ in self.module.made.sites])
        by_block = sites.reshape(self.blocks, self.size)
        passed = (by_block == by_block[:, :1]).all(axis=1) & (kinds == BARRIER)[by_block[:, 0]]
        self.threads["epoch"].reshape(by_block.shape)[passed] += 1
        ready = np.repeat(passed, self.size)
        if self.size % WARP == 0:
            by_warp = sites.reshape(-1, WARP)
            same = (by_warp == by_warp[:, :1]).all(axis=1)
            swapped, synced = (same & (kinds == kind)[by_warp[:, 0]] for kind in (SHUFFLE, WARP_BARRIER))
            self._shuffle(np.flatnonzero(swapped))
            self.threads["warp_epoch"].reshape(by_warp.shape)[synced] += 1
            ready |= np.repeat(swapped | synced, WARP)
        sleeping = (kinds == SLEEP)[sites]
        self.asleep = not ready.any()
        ready |= sleeping
        if not ready.any():
            self._diverged(by_block)
        return np.flatnonzero(ready)

    def _shuffle(self, warps: np.ndarray[Any, Any]) -> None:
        values, masks = (self.threads[name].reshape(-1, WARP)[warps] for name in ("value", "mask"))
        lanes = np.arange(WARP) ^ masks
        if lanes.size and not (0 <= lanes.min() and lanes.max() < WARP):
            raise SimulatedFault(f"{self.name}: a shuffle's mask is not one of 0 to {WARP - 1}")
        self.threads["value"].reshape(-1, WARP)[warps] = np.take_along_axis(values, lanes, axis=1)

    def _diverged(self, by_block: np.ndarray[Any, Any]) -> None:
        """Nothing goes on: says what the threads of the first block that has not ended wait for."""
        block = int(np.flatnonzero(by_block.any(axis=1))[0])
        sites, counts = np.unique(by_block[block], return_counts=True)
        texts = [f"{n} at {self.module.made.sites[s][1]}" for s, n in zip(sites, counts, strict=True)]
        raise SimulatedFault(
            f"divergence in block {block} of {self.name}, threads wait for others that don't come: {'; '.join(texts)}"
        )

    def _check_accesses(self) -> None:
        fault = self.launch[0]
        kind = FAULTS[fault["kind"]]
        if not kind:
            return
        thread = self.threads[(int(fault["thread"]) - self.threads.ctypes.data) // THREAD.itemsize]
        address, instruction = int(fault["address"]), self.module.made.accesses[fault["access"]]
        text = f"thread {thread['number']} of block {thread['block']} of {self.name}: {kind} at {address:#x}"
        text += f"{self._placed(address)}: {instruction}"
        if kind == "race":
            number, block = int(fault["other"]) & NUMBER, (int(fault["other"]) >> BLOCK_BIT) - 1
            other = "several threads" if number >= MOST_THREADS else f"thread {number} of block {block}"
            text += f"; {other} used it, too, and nothing orders them"
        raise SimulatedFault(text)

    def _placed(self, address: int) -> str:
        """Where an address lies, in words."""
        for start, end, *_ in self.ranges.tolist():
            if start - ALIGNMENT <= address < end + ALIGNMENT:
                return f", byte {address - start} of {end - start}"
        return ""

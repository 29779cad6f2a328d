"""The LLVM code of the C function in front of calls with DeviceArrays: it compares, makes the results, and launches kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.cpu_llvm.calls.argument_code import Arguments
from jitlab.targets.cpu_llvm.calls.entry_code import EntryCode, Result, Warm
from jitlab.targets.gpu_cuda.device_array import DeviceArray
from jitlab.targets.gpu_cuda.device_blocks import Block
from jitlab.targets.gpu_cuda.gpu_driver import MOST_NAMED, Driver, NativeLaunches, Shape2

from .device_arguments import DeviceArguments, places_of

#: Launches that nobody has waited for, from which on other threads run meanwhile: a launch may have to wait for room.
MANY_LAUNCHES = 256


@dataclass(frozen=True)
class Kernel:
    """A launch of one kernel: what the driver knows it by, its number, and of each parameter the place in the context."""

    function: int
    number: int
    grid: Shape2
    threads: Shape2
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class GpuLaunch:
    """The kernels of a cluster: the context to start from, and which memory goes to which slot, as in `Launch`. `run`: Python's
    way, where C can't: of these leaves and outputs; it gives None where all went well."""

    template: np.ndarray[Any, Any]
    pointers: tuple[tuple[int, str, int], ...]
    kernels: tuple[Kernel, ...]
    run: Callable[..., Any] | None = None
    given: tuple[tuple[str, int], ...] = ()


class GpuEntryCode(EntryCode):
    """The code of one entry, for arrays of a driver."""

    stack_bytes = 0

    def __init__(
        self, warm: Warm, busy: int, calls: int, driver: Driver, native: NativeLaunches, fixed: Sequence[DeviceArray]
    ) -> None:  # fmt: skip
        self.driver, self.native, self.fixed = driver, native, fixed
        self.addresses: dict[int, str] = {}  # of results
        super().__init__(warm, busy, calls, None)

    def _arguments(self) -> Arguments:
        """Before it compares: the driver takes launches of this thread now."""
        native, code = self.native, self.code
        code.check_same("i64", code.new(f"load i64, ptr {code.pointer(ctypes.addressof(native.stopped))}"), "0")
        if native.current:
            place = code.room("i64")
            code.function(native.current, "i32", f"ptr {place}")
            code.check_same("i64", code.new(f"load i64, ptr {place}"), code.word(native.context))
        made = DeviceArguments(code, self.warm.form)
        made.driver = self.driver
        return made

    # ---- memory
    def _block(self, nbytes: int) -> tuple[str, str]:
        code = self.code
        take = partial(Block, self.driver, self.driver.shelf(nbytes))
        block = self._owns(code.call("PyObject_CallNoArgs", f"ptr {code.object(take)}"))
        return block, code.at(block, places_of(Block)["address"], "ptr")

    def _pointer(self, number: str) -> str:
        """The address that an int is."""
        code = self.code
        return code.new(f"inttoptr i64 {code.call('PyLong_AsLongLong', f'ptr {number}')} to ptr")

    def _scratch(self, nbytes: int) -> str:
        return self._pointer(self._block(nbytes)[1])

    def _new_array(self, result: Result) -> str:
        code, places = self.code, places_of(DeviceArray)
        size = result.dtype.itemsize
        for n in result.shape:
            size *= n
        block, address = self._block(size)
        array = self._owns(code.call("PyType_GenericAlloc", f"ptr {code.object(DeviceArray)}", "i64 0"))
        self.owned.remove(block)
        held = {"_driver": self.driver, "shape": result.shape, "dtype": result.dtype, "is_readonly": False}
        values = {name: code.object(value) for name, value in held.items()}
        values |= dict.fromkeys(("_stand_in", "_apart"), code.object(None)) | {"address": address}
        for value in values.values():
            code.call("Py_IncRef", f"ptr {value}")
        for name, value in (*values.items(), ("owner", block)):
            code.lines.append(f"  store ptr {value}, ptr {code.behind(array, places[name])}")
        self.addresses[next(n for n, r in self.warm.results.items() if r is result)] = self._pointer(address)
        return array

    def _memory(self, kind: str, which: int) -> str:
        if kind == "leaf":
            return self.arguments.data[which]
        if kind == "fixed":
            return self.code.pointer(self.fixed[which].address)
        return self.addresses[which] if kind == "output" else self.code.behind(self.scratch, which)

    def _object(self, kind: str, which: int) -> str:
        if kind == "fixed":
            return self.code.object(self.fixed[which])
        return self.arguments.objects[which] if kind == "leaf" else self.made[which]

    def _scalar(self, array: str, number: type | None) -> str:
        """A number of NumPy's, when it is there: it is waited for."""
        code = self.code
        self.owned.remove(array)
        scalar = code.call("PyObject_CallOneArg", f"ptr {code.object(_number_of)}", f"ptr {array}")
        code.call("Py_DecRef", f"ptr {array}")
        return self._number(self._owns(scalar), number)

    # ---- launches
    def _run(self, number: int, launch: Any) -> None:
        if launch.run is not None:
            self._run_python(launch)
            return
        code, new, lines, context = self.code, self.code.new, self.code.lines, self.contexts[number]
        template = code.pointer(launch.template.ctypes.data)
        code.call("llvm.memcpy.p0.p0.i64", f"ptr {context}", f"ptr {template}", f"i64 {8 * len(launch.template)}", "i1 0")
        for slot, kind, which in launch.pointers:
            place = new(f"getelementptr i64, ptr {context}, i64 {slot}")
            lines.append(f"  store ptr {self._memory(kind, which)}, ptr {place}")
        status, thread = code.room("i32"), code.room("ptr")
        is_deep = self._counted(launch.kernels)
        lines.append(f"  store ptr null, ptr {thread}")
        self._if(is_deep, lambda: lines.append(f"  store ptr {code.call('PyEval_SaveThread')}, ptr {thread}"))
        after = code.label("launched")
        for kernel in launch.kernels:
            lines.append(f"  store i32 {self._launched(kernel, context)}, ptr {status}")
            code.check(new(f"icmp eq i32 {new(f'load i32, ptr {status}')}, 0"), after)
        lines += [f"  br label %{after}", f"{after}:"]
        self._if(is_deep, lambda: self._back(thread))
        code.check(new(f"icmp eq i32 {new(f'load i32, ptr {status}')}, 0"), "failed")

    def _back(self, thread: str) -> None:
        self.code.call("PyEval_RestoreThread", f"ptr {self.code.new(f'load ptr, ptr {thread}')}")

    def _if(self, condition: str, body: Callable[[], None]) -> None:
        code, inside, after = self.code, self.code.label("if"), self.code.label("fi")
        code.lines += [f"  br i1 {condition}, label %{inside}, label %{after}", f"{inside}:"]
        body()
        code.lines += [f"  br label %{after}", f"{after}:"]

    def _counted(self, kernels: Sequence[Kernel]) -> str:
        """The launches are noted; are there many that nobody has waited for?"""
        code, new = self.code, self.code.new
        recent = code.pointer(ctypes.addressof(self.native.recent))
        count = new(f"load i64, ptr {recent}")
        for n, kernel in enumerate(kernels):
            at = new(f"and i64 {new(f'add i64 {count}, {n}')}, {MOST_NAMED - 1}")
            place = new(f"getelementptr i64, ptr {recent}, i64 {new(f'add i64 {at}, 1')}")
            code.lines.append(f"  store i64 {code.word(kernel.number)}, ptr {place}")
        more = new(f"add i64 {count}, {len(kernels)}")
        code.lines.append(f"  store i64 {more}, ptr {recent}")
        return new(f"icmp ugt i64 {more}, {MANY_LAUNCHES}")

    def _launched(self, kernel: Kernel, context: str) -> str:
        """The launch's error, or 0."""
        code, new, grid, threads = self.code, self.code.new, kernel.grid, kernel.threads
        places = code.room(f"[{max(len(kernel.offsets), 1)} x ptr]")
        for n, offset in enumerate(kernel.offsets):
            place = new(f"getelementptr ptr, ptr {places}, i64 {n}")
            code.lines.append(f"  store ptr {code.behind(context, offset)}, ptr {place}")
        sizes = [code.word(n, "i32") for n in (grid.x, grid.y, 1, threads.x, threads.y, 1)]
        return code.function(
            self.native.launch, "i32", f"ptr {code.pointer(kernel.function)}", *(f"i32 {n}" for n in sizes), "i32 0",
            f"ptr {code.pointer(self.native.stream)}", f"ptr {places}", "ptr null",
        )  # fmt: skip

    def _run_python(self, launch: GpuLaunch) -> None:
        """By Python: where it gives something, the call goes the Python way as a whole."""
        code = self.code
        given = self._owns(code.call("PyTuple_New", f"i64 {len(launch.given)}"))
        for n, (kind, which) in enumerate(launch.given):
            value = self._object(kind, which)
            code.call("Py_IncRef", f"ptr {value}")
            code.call("PyTuple_SetItem", f"ptr {given}", f"i64 {n}", f"ptr {value}")
        found = self._owns(code.call("PyObject_Call", f"ptr {code.object(launch.run)}", f"ptr {given}", "ptr null"))
        for value in (given, found):  # None stays without it
            self.owned.remove(value)
            code.call("Py_DecRef", f"ptr {value}")
        code.check(code.new(f"icmp eq ptr {found}, {code.object(None)}"), "failed")


def _number_of(array: DeviceArray) -> Any:
    return array.to_numpy()[()]

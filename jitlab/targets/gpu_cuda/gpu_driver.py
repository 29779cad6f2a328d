"""What the target asks of a GPU: memory, modules of kernels, launches, waits."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.support.lazy_dataclass import dataclass

from .device_blocks import Shelf


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: where it lies in the context of a launch, in bytes from its start, and how many bytes it has."""

    offset: int
    bytes: int


@dataclass(frozen=True)
class KernelFunction:
    """A function of a module that is launched: its name there, its parameters in order, and bytes of shared memory that its
    text declares."""

    name: str
    parameters: tuple[Parameter, ...]
    shared_bytes: int = 0


@dataclass(frozen=True)
class Resources:
    """What a loaded kernel takes: registers of a thread, shared memory of a block, bytes of a thread that found no register."""

    registers: int
    shared_bytes: int
    local_bytes: int


@dataclass(frozen=True)
class Shape2:
    """How many blocks, or threads of a block, there are along two axes."""

    x: int
    y: int = 1


class Module(ABC):
    """Kernels that are loaded: `functions` as the driver knows them, one for each KernelFunction, in order. What was loaded is
    taken off the device when this is collected."""

    functions: Sequence[Any]


@dataclass(frozen=True)
class NativeLaunches:
    """How C code launches kernels of a driver, by functions at addresses.

    `launch` has the parameters of cuLaunchKernel, and gives 0 or an error; `current` writes the thread's context where it is
    told (0: there are none), which has to be `context`; where the word `stopped` is not 0, Python has something to say first.
    `recent`: the number of launches that nobody has waited for, which C code counts, too, then the numbers of the last ones.
    """

    launch: int
    stream: int
    current: int
    context: int
    stopped: ctypes.c_int64
    recent: ctypes.Array[ctypes.c_int64]
    kept: Any = None  # what the addresses need


#: Kernels that a loss names: those that were launched last.
MOST_NAMED = 4


class Driver(ABC):
    """One GPU. Everything runs in order on one stream: a launch returns when it is enqueued, copies out when they are done.

    Device addresses are ints. Thread-safe.
    """

    key: str  # of code: equal for drivers that can run the same modules, as "sm_90" or "simulated"
    name: str  # as people call the device
    processors: int  # streaming multiprocessors
    memory_bytes: int  # that the device has
    has_turns: bool = False  # all blocks of a grid run in turns, however many: each may wait for any other
    simulated: bool = False  # a processor plays it: its times are no GPU's, and a launch returns when it has run
    stream: int | None = None  # its handle, where others' code can wait for it
    dlpack_device = (2, 0)  # as DLPack calls the device

    def before(self, stream: int) -> None:  # noqa: B027 - of memory that nobody else has there is nothing to wait for
        """What is enqueued here from now on waits for all that somebody else's stream holds."""

    def after(self, stream: int) -> None:  # noqa: B027
        """What is enqueued on somebody else's stream from now on waits for all that is enqueued here."""

    native: NativeLaunches | None = None  # None: Python launches

    def native_function(self, function: Any) -> tuple[int, int]:
        """A kernel of a module, and its number, for C code."""
        raise NotImplementedError

    def shelf(self, nbytes: int) -> Shelf:
        """Where free blocks of so many bytes are."""
        return Shelf(max(nbytes, 1), 0)

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """The address of memory for so many bytes (at least 1), a multiple of 256. Raises MemoryError."""

    @abstractmethod
    def free(self, address: int) -> None:
        """What `allocate` gave may be used again by what is enqueued after this. Called from finalizers, by any thread."""

    @abstractmethod
    def copy_in(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """The bytes of an array that lies row by row to the device; when this returns the array may change."""

    @abstractmethod
    def copy_out(self, array: np.ndarray[Any, Any], address: int) -> None:
        """Bytes of the device into an array that lies row by row, when all before is done."""

    @abstractmethod
    def copy_within(self, target: int, source: int, nbytes: int) -> None:
        """Bytes from one place of the device to another one; enqueued."""

    @abstractmethod
    def load(self, text: str, kernels: Sequence[KernelFunction]) -> Module:
        """The kernels of a module of LLVM text for NVPTX, ready to be launched."""

    def resources(self, function: Any) -> Resources | None:
        """What a kernel of a module takes; None where nobody knows."""
        return None

    @abstractmethod
    def launch(self, function: Any, grid: Shape2, block: Shape2, parameters: Sequence[int]) -> None:
        """Enqueue a kernel. `parameters`: addresses in NumPy's memory where each parameter's bytes lie; they may change when
        this returns."""

    @abstractmethod
    def wait(self) -> None:
        """Until all that was enqueued is done; Python's signal handlers run meanwhile. Raises what the device failed with."""

    @abstractmethod
    def mark(self) -> Any:
        """A point in time of the stream, for `elapsed_ns`."""

    @abstractmethod
    def elapsed_ns(self, before: Any, after: Any) -> int:
        """Time on the device between two marks that were passed: after `wait`."""

    def trim(self) -> None:  # noqa: B027 - a driver without a pool keeps nothing
        """Memory that is kept for later arrays goes back to the system."""

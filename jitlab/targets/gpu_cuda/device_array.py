"""Arrays in a GPU's memory: `DeviceArray`, and `GpuMemory`, the device that the target's launches speak to."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from types import EllipsisType
from typing import Any
from weakref import ref

import numpy as np

from jitlab.ir import TRACED_DTYPES
from jitlab.targets.target import Device

from .device_blocks import Block
from .dlpack import capsule_of
from .gpu_driver import Driver

UNIX = hasattr(mmap, "MAP_PRIVATE")

#: The stream that is 0 elsewhere.
LEGACY_STREAM = 1

#: By which libraries tell of arrays in a GPU's memory.
INTERFACE = "__cuda_array_interface__"


class _Geometry:
    """Where elements lie, as NumPy takes it from an object. NumPy computes with it and never reads there."""

    def __init__(self, array: DeviceArray) -> None:
        self.__array_interface__ = {
            "version": 3, "shape": array.shape, "typestr": array.dtype.str, "data": (array.address, False),
            "strides": array._apart,
        }  # fmt: skip


class DeviceArray:
    """An array in a GPU's memory: what `jl.to_device` makes, and what calls with such arguments give.

    It has a shape, strides and views as NumPy's have, and no arithmetic of its own: functions of `jl.function` and `jl.jit`
    compute with it. NumPy can't read it; `to_numpy()` copies it into NumPy's memory. numba.cuda, CuPy and torch take it without
    a copy, by `__cuda_array_interface__`, and JAX by `jax.dlpack.from_dlpack(x)`.

    Args:
        driver: what its device is driven by; arrays are made by `jl.to_device`, and by calls.
        owner: what keeps the memory; it is freed when the last array in it is gone.
        address: where the first element lies on the device.
        shape: the length of each axis.
        dtype: NumPy's type of an element.
        strides: bytes from one element to the next along each axis; None: row by row.
        is_readonly: nobody may store into it.

    Attributes:
        shape: the length of each axis.
        dtype: NumPy's type of an element.
        address: where the first element lies on the device.
        owner: what keeps the memory; it is freed when the last array in it is gone.

    Example:
        >>> x = jl.to_device(np.arange(6.0).reshape(2, 3))  # doctest: +SKIP
        >>> x[:, ::2].to_numpy()  # doctest: +SKIP
        array([[0., 2.],
               [3., 5.]])
    """

    __slots__ = ("__weakref__", "_apart", "_driver", "_stand_in", "address", "dtype", "is_readonly", "owner", "shape")

    def __init__(
        self, driver: Driver, owner: Any, address: int, shape: tuple[int, ...], dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None, is_readonly: bool = False,
    ) -> None:  # fmt: skip
        self._driver, self.owner, self.address = driver, owner, address
        self.shape, self.dtype, self.is_readonly = shape, dtype, is_readonly
        self._stand_in: np.ndarray[Any, Any] | None = None
        self._apart = None if strides is None or _lies_in_rows(shape, strides, dtype.itemsize) else strides

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return rows(self.shape, self.dtype.itemsize) if self._apart is None else self._apart

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Do the elements lie row by row, without gaps?"""
        return self._apart is None

    @property
    def extent(self) -> tuple[int, int]:
        """Where its memory begins and ends."""
        if self.is_contiguous:
            return self.address, self.address + self.nbytes
        return np.lib.array_utils.byte_bounds(self._geometry())

    @property
    def T(self) -> DeviceArray:
        """A view with the axes in reverse order."""
        return self._view(self._geometry().T)

    def transpose(self, *axes: Any) -> DeviceArray:
        """A view with the axes in another order; without arguments, in reverse order."""
        return self._view(self._geometry().transpose(*axes))

    def reshape(self, *shape: Any) -> DeviceArray:
        """A view with other axes. Raises ValueError where that would need a copy."""
        given = shape[0] if len(shape) == 1 else shape
        if not self.is_contiguous:
            raise ValueError(f"{self!r} does not lie row by row, so reshape would have to copy it: x.copy().reshape(…)")
        return self._view(self._geometry().reshape(given))

    def __getitem__(self, index: Any) -> DeviceArray:
        parts = index if type(index) is tuple else (index,)
        for part in parts:
            if not isinstance(part, (slice, EllipsisType, type(None))) and (
                isinstance(part, (bool, np.bool_)) or not hasattr(part, "__index__") or np.ndim(part)
            ):
                raise TypeError(
                    f"DeviceArrays take integers, slices, ... and None as an index, not {type(part).__name__}: "
                    "index in a jl.function or jl.jit, or copy the array with to_numpy()"
                )
        whole = parts if any(part is ... for part in parts) else (*parts, ...)  # so that NumPy reads no element
        return self._view(self._geometry()[whole])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def copy(self) -> DeviceArray:
        """A copy on the device, which lies row by row."""
        return copied(self)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy in NumPy's memory. It waits until what computes the array is done."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        if self.is_contiguous:
            made = np.empty(self.shape, self.dtype)
            self._driver.copy_out(made.reshape(-1).view(np.uint8), self.address)
            return made
        low, high = self.extent
        raw = np.empty(high - low, np.uint8)
        self._driver.copy_out(raw, low)
        return np.array(np.ndarray(self.shape, self.dtype, raw, self.address - low, self._apart))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3, "shape": self.shape, "typestr": self.dtype.str, "strides": self._apart,
            "data": (self.address if self.size else 0, self.is_readonly), "stream": self._driver.stream,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._driver.dlpack_device

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        if stream != -1:  # whose caller waits by itself
            self._driver.after(stream or LEGACY_STREAM)
        return capsule_of(self, self._driver.dlpack_device)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "a DeviceArray lies in a GPU's memory, which NumPy can't read: call to_numpy() for a copy, or compute with it in a "
            "jl.function or jl.jit"
        )

    def __iter__(self) -> Any:
        return (self[n] for n in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.to_numpy())

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self._driver.name!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a DeviceArray lies in this process's memory of a GPU: pickle what to_numpy() gives")

    def _geometry(self) -> np.ndarray[Any, Any]:
        return np.asarray(_Geometry(self))

    def _view(self, at: np.ndarray[Any, Any]) -> DeviceArray:
        """The array whose elements lie where those of `at` do."""
        return self.view_at(at.__array_interface__["data"][0], at)

    def view_at(self, address: int, like: np.ndarray[Any, Any]) -> DeviceArray:
        """A view that begins at an address, of the shape, strides and dtype of an array of NumPy's."""
        return DeviceArray(self._driver, self.owner, address, like.shape, like.dtype, like.strides, self.is_readonly)

    @property
    def stand_in(self) -> np.ndarray[Any, Any]:
        """What stands for it, as long as it lives."""
        if self._stand_in is None:
            self._stand_in = standing_for(self, ref(self))
        return self._stand_in


class _Room(mmap.mmap):
    """Memory that takes no room and cannot be written; it holds nothing."""

    stands_for: Any  # gives the array


def standing_for(array: DeviceArray, gives: Any = None) -> np.ndarray[Any, Any]:
    """An array of NumPy's that lies as a DeviceArray does, of which views are views of that one (`stood_for`). There is nothing
    in it to be read. `gives`: what gives the array; None: it keeps it."""
    low, high = array.extent
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, "prot": mmap.PROT_READ} if UNIX else {}
    room = _Room(-1, max(high - low, 1), **private)
    room.stands_for = gives or (lambda: array)
    made = np.ndarray(array.shape, array.dtype, room, array.address - low, array.strides)
    made.flags.writeable = False
    return made


def stood_for(array: np.ndarray[Any, Any]) -> DeviceArray | None:
    """The DeviceArray that something stands for, or of its view; None for other arrays."""
    root: Any = array
    while root is not None and type(getattr(root, "base", None)) is not _Room:
        root = getattr(root, "base", None)
    whole: DeviceArray | None = None if root is None else root.base.stands_for()
    if whole is None or array is root:
        return whole
    offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return whole.view_at(whole.address + offset, array)


def rows(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of an array that lies row by row."""
    strides: list[int] = []
    step = itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def _lies_in_rows(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    if 0 in shape:
        return True
    return all(n == 1 or mine == step for n, mine, step in zip(shape, strides, rows(shape, itemsize), strict=True))


def empty(driver: Driver, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
    """An array whose elements may have any value."""
    block = Block(driver, driver.shelf(math.prod(shape) * dtype.itemsize))
    return DeviceArray(driver, block, block.address, shape, dtype)


def from_numpy(driver: Driver, value: Any) -> DeviceArray:
    """A copy of a value in NumPy's memory. Raises TypeError for elements that no kernel computes with."""
    given = np.asarray(value)
    if given.dtype.newbyteorder("=") not in TRACED_DTYPES:
        raise TypeError(f"arrays of {given.dtype} stay in NumPy's memory: a GPU has numbers and truth values")
    given = np.ascontiguousarray(given, given.dtype.newbyteorder("=")).reshape(given.shape)
    made = empty(driver, given.shape, given.dtype)
    if given.size:
        driver.copy_in(made.address, given.reshape(-1).view(np.uint8))
    return made


def foreign(driver: Driver, value: Any, streams: dict[int | None, None] | None = None) -> DeviceArray:
    """An array of another library, where it lies: what is enqueued from now on waits for what that library has enqueued.
    `streams`: those that were waited for already; this one's is among them then."""
    told = getattr(value, INTERFACE)
    dtype, shape = np.dtype(told["typestr"]), tuple(told["shape"])
    if dtype not in TRACED_DTYPES or told.get("mask") is not None:
        raise TypeError(f"a {type(value).__name__} of {dtype} is no array of numbers that a kernel computes with")
    address, is_readonly = told["data"]
    stream = stream_of(value, told)
    if streams is None or stream is None or stream not in streams:
        _join(driver, value, stream)
        if streams is not None:
            streams[stream] = None
    made = DeviceArray(driver, value, address, shape, dtype, told.get("strides"), is_readonly)
    return made if made.size else empty(driver, shape, dtype)


def stream_of(value: Any, told: dict[str, Any]) -> int | None:
    """The stream on which another library computes an array; None where nobody knows it. Of torch it is the thread's current
    one, and where CuPy or numba.cuda tell none, the oldest."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return int(torch.cuda.current_stream(value.device).cuda_stream) or LEGACY_STREAM
    stream: int | None = told.get("stream")
    library = type(value).__module__.partition(".")[0]
    return stream or (LEGACY_STREAM if library in ("cupy", "numba") else None)


def _join(driver: Driver, value: Any, stream: int | None) -> None:
    """What is enqueued from now on comes behind what another library has enqueued for an array."""
    if stream is None and hasattr(value, "block_until_ready"):  # jax's
        value.block_until_ready()
    driver.before(LEGACY_STREAM if stream is None else stream)


class _Ordered:
    """An array for another library whose stream waits for ours already."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array  # as long as that library needs it
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": None}


def as_kind(array: DeviceArray, kind: type) -> Any:
    """An array as one of another library's class, without a copy; its stream waits for ours already."""
    library = kind.__module__.partition(".")[0]
    if library == "cupy":
        return sys.modules["cupy"].asarray(_Ordered(array))
    if library == "torch":
        return sys.modules["torch"].as_tensor(_Ordered(array), device="cuda")
    if library == "numba":
        return sys.modules["numba.cuda"].as_cuda_array(_Ordered(array), sync=False)
    return array


def copied(array: DeviceArray) -> DeviceArray:
    """A copy on the same device, which lies row by row."""
    driver = array._driver
    if not array.is_contiguous:
        return from_numpy(driver, array.to_numpy())
    made = empty(driver, array.shape, array.dtype)
    if made.size:
        driver.copy_within(made.address, array.address, made.nbytes)
    return made


class GpuMemory(Device):
    """A GPU's memory."""

    array_type = DeviceArray

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def array(self, value: Any) -> DeviceArray:
        return from_numpy(self.driver, value)

    def taken(self, value: Any, streams: dict[int | None, None] | None = None) -> DeviceArray:
        """The same of an array that another library has on the device, which is not copied; `streams` as in `foreign`."""
        return foreign(self.driver, value, streams) if hasattr(value, INTERFACE) else from_numpy(self.driver, value)

    def wait(self) -> None:
        self.driver.wait()

    def layout_of(self, array: DeviceArray) -> str:
        return "C" if array._apart is None and array.address % array.dtype.itemsize == 0 else ""

    def contiguous(self, array: DeviceArray) -> DeviceArray:
        return array if self.layout_of(array) else copied(array)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        return empty(self.driver, shape, dtype)

    def on_host(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        return array.to_numpy()

    def may_store_into(self, array: DeviceArray, others: Sequence[DeviceArray]) -> bool:
        if array.is_readonly or not array.is_contiguous:
            return False
        return not self.is_shared(array, others)

    def is_shared(self, array: DeviceArray, others: Sequence[DeviceArray]) -> bool:
        """Does it lie where one of the others does?"""
        low, high = array.extent
        return any(low < end and start < high for start, end in (other.extent for other in others))

    def trim(self) -> None:
        self.driver.trim()

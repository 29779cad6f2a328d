"""Copies between NumPy's memory and a GPU's through two page-locked buffers: one is filled while the other is on its way."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .cuda_driver import CudaDriver, Mark


class PageLocked:
    """Two buffers of a driver. One copy at a time: who uses them holds the driver's lock."""

    #: From how many bytes on they are worth it, and how many go at once.
    LEAST_BYTES, BYTES = 1 << 20, 4 << 20

    def __init__(self, driver: CudaDriver) -> None:
        self._driver = driver
        self._buffers = []
        for _ in range(2):
            address = int(driver._call("cuMemHostAlloc", self.BYTES, 0))  # kept as long as the process lives
            self._buffers.append(np.ctypeslib.as_array((ctypes.c_uint8 * self.BYTES).from_address(address)))
        self._under_way: list[Mark | None] = [None, None]  # what was enqueued last with each
        self._is_whole = True  # else an interrupt came in the midst of a copy: nobody knows what is on its way

    def copy_in(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """The bytes of an array to the device; when this returns the array may change."""
        self._begin()
        for turn, start in enumerate(range(0, len(array), self.BYTES)):
            which = turn % 2
            part = array[start : start + self.BYTES]
            self._wait(which)
            self._buffers[which][: len(part)] = part
            self._enqueue(which, "cuMemcpyHtoDAsync", address + start, self._buffers[which].ctypes.data, len(part))
        self._is_whole = True

    def copy_out(self, array: np.ndarray[Any, Any], address: int) -> None:
        """Bytes of the device into an array."""
        self._begin()
        starts = range(0, len(array), self.BYTES)
        for turn, start in enumerate(starts):
            which = turn % 2
            self._wait(which)
            length = min(self.BYTES, len(array) - start)
            self._enqueue(which, "cuMemcpyDtoHAsync", self._buffers[which].ctypes.data, address + start, length)
            if turn:
                self._take(1 - which, array, starts[turn - 1])
        if starts:
            self._take((len(starts) - 1) % 2, array, starts[-1])
        self._is_whole = True

    def _begin(self) -> None:
        if not self._is_whole:
            self._driver.wait()
        self._is_whole = False

    def _take(self, which: int, array: np.ndarray[Any, Any], start: int) -> None:
        self._wait(which)
        part = array[start : start + self.BYTES]
        part[:] = self._buffers[which][: len(part)]

    def _enqueue(self, which: int, function: str, target: int, source: int, nbytes: int) -> None:
        self._driver._call(function, target, source, nbytes, self._driver.stream)
        self._under_way[which] = self._driver.mark()

    def _wait(self, which: int) -> None:
        """Until the device has done with a buffer; signals are looked after meanwhile."""
        mark = self._under_way[which]
        while mark is not None and not self._driver.has_passed(mark):
            time.sleep(0)
        self._under_way[which] = None

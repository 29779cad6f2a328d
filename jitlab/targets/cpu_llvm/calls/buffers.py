"""Memory for results: blocks of 64 kB and more are recycled when the last view of a result goes."""

from __future__ import annotations

import math
import os
import threading
from typing import Any, ClassVar

import numpy as np

from jitlab.support import locks

#: Results below this size are ordinary NumPy arrays.
POOLED_BYTES = 1 << 16
ALIGNMENT = 128

#: Blocks start so many bytes behind the start of a page. A load waits for an earlier store whose address has the same place in
#: its page; NumPy's large arrays start 16 bytes behind a page's start, and half a page is furthest from what is near that.
PAGE, BEHIND = 4096, 2048

#: Blocks of so many bytes and more have large pages where the system has them.
LARGE_BYTES, LARGE_PAGE = 1 << 22, 1 << 21


class Pool:
    """Free blocks by size class (eight between two powers of two). Reference counts are the whole protocol: a block comes
    back when the array that was made of it, and with it every view, is gone."""

    # Re-entrant: the collector may free a block, and so give it back, while this thread is in `take`.
    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.limit_bytes = _default_limit() if limit_bytes is None else limit_bytes
        self.free_bytes = 0
        self._free: dict[int, list[np.ndarray]] = {}
        locks.own(self)

    def take(self, nbytes: int) -> np.ndarray:
        """An aligned block of uint8, at least `nbytes` long."""
        size = size_class(nbytes)
        is_held = self._lock._is_owned()
        try:
            with self._lock:
                blocks = self._free.get(size)
                if blocks:
                    self.free_bytes -= size
                    return blocks.pop()
        except BaseException:  # as `locks.Released`, which takes as long as all of this
            if not is_held:
                locks.give_back(self._lock)
            raise
        return aligned(size)

    def give(self, block: np.ndarray) -> None:
        size = block.nbytes
        is_held = self._lock._is_owned()
        try:
            with self._lock:
                if self.free_bytes + size <= self.limit_bytes:
                    self._free.setdefault(size, []).append(block)
                    self.free_bytes += size
        except BaseException:
            if not is_held:
                locks.give_back(self._lock)
            raise

    def trim(self) -> None:
        """Give the free blocks back to the system."""
        with locks.Released(self._lock), self._lock:
            self._free.clear()
            self.free_bytes = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Like `np.empty`; a large one lies in a recycled block (so `owndata` is False and in-place `resize` is refused)."""
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes < POOLED_BYTES:
            return np.empty(shape, dtype)
        return np.asarray(_Lease(self, self.take(nbytes), shape, dtype))


class _Lease:
    """Stands between an array and its block; NumPy keeps it as the array's base."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, pool: Pool, block: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._pool, self._block = pool, block
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.ctypes.data, False),
        }

    def __del__(self) -> None:
        if hasattr(self, "_block"):  # else an interrupt came before it was made
            self._pool.give(self._block)


def size_class(nbytes: int) -> int:
    """The length of the block that holds `nbytes`: at most an eighth more."""
    step = 1 << max(nbytes.bit_length() - 4, 7)
    return -(-nbytes // step) * step


def aligned(nbytes: int) -> np.ndarray:
    """Fresh uint8 memory that starts BEHIND a page's start, and so at a multiple of ALIGNMENT."""
    raw = np.empty(nbytes + PAGE, np.uint8)
    start = (BEHIND - raw.ctypes.data) % PAGE
    return raw[start : start + nbytes]


def _default_limit() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = 8 << 30
    return min(1 << 30, memory // 8)


pool = Pool()

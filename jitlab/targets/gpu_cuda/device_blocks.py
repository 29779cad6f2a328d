"""Memory of a driver: blocks that arrays lie in, and shelves of those that are free."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gpu_driver import Driver

#: Of all blocks of one size that are free, bytes that stay on their shelf; larger blocks go back to the driver.
MOST_BYTES = 4 << 20


class Shelf(list[int]):
    """The addresses of free blocks of one size. What was enqueued before a block came here is done before what is enqueued when
    somebody takes it: all runs on one stream."""

    __slots__ = ("most", "size")

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most


class Shelves:
    """The shelves of a driver, one for each size."""

    def __init__(self) -> None:
        self._by_size: dict[int, Shelf] = {}

    def of(self, nbytes: int) -> Shelf:
        """The shelf of blocks that hold so many bytes: at most an eighth more, or 256; of large ones one that stays empty."""
        if nbytes > MOST_BYTES:
            return Shelf(nbytes, 0)
        step = 1 << max(nbytes.bit_length() - 4, 8)
        size = -(-max(nbytes, 1) // step) * step
        known = self._by_size.get(size)
        return known if known is not None else self._by_size.setdefault(size, Shelf(size, MOST_BYTES // size))

    @property
    def free_bytes(self) -> int:
        """Of the blocks on them."""
        return sum(shelf.size * len(shelf) for shelf in list(self._by_size.values()))

    def clear(self, free: Callable[[int], None]) -> None:
        """Give what lies on them back."""
        for shelf in list(self._by_size.values()):
            while shelf:
                try:
                    address = shelf.pop()
                except IndexError:  # another thread has taken it
                    break
                free(address)


class Block:
    """Memory of a driver, which goes to its shelf, or back, when the last array in it is gone."""

    __slots__ = ("__weakref__", "address", "driver", "shelf")

    def __init__(self, driver: Driver, shelf: Shelf) -> None:
        self.address = 0
        self.driver, self.shelf = driver, shelf
        try:
            self.address = shelf.pop()
        except IndexError:
            self.address = driver.allocate(shelf.size)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        address = getattr(self, "address", 0)
        if not address or is_finalizing():  # it was never given, or the process ends
            return
        shelf = self.shelf
        if len(shelf) < shelf.most:
            shelf.append(address)
        else:
            self.driver.free(address)

"""Room that a process may not have. A library in C ends the process where it finds none, so it is asked for before: what cannot
be had is a MemoryError that names the bytes."""

from __future__ import annotations

import mmap
import threading

import numpy as np

#: What the C library takes for a thread's blocks, generously.
THREAD_BYTES = 2 << 20


def ask_for(bytes: int, what: str) -> None:
    """MemoryError where the process cannot have so many bytes more."""
    try:
        mmap.mmap(-1, bytes).close()
    except (OSError, ValueError, OverflowError):
        raise MemoryError(f"{what} takes {bytes:,} bytes, which this process cannot have") from None


class _Blocks(threading.local):
    """What libraries keep for each thread. The C library takes a block when the thread first comes to it, and ends the process
    where it cannot. NumPy has 46 kB to write floats with; LLVM's are taken after LLVM's room was asked for."""

    def __init__(self) -> None:  # once in each thread
        ask_for(THREAD_BYTES, "the first call of a thread")
        self.text = str(np.float64(0.5))


_blocks = _Blocks()


def have_thread_blocks() -> None:
    """This thread has its blocks now, or MemoryError is raised."""
    _blocks.text  # noqa: B018

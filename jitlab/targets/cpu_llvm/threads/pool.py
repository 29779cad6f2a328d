"""The process's own pool: its memory and code, how many threads it may have, and its end. Threads start with the first region
that more than one is worth, and in a child process anew."""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import signal
import sys
from collections.abc import Callable

from jitlab.config import told
from jitlab.support.lazy import made_once
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.calls.blas import threads_address
from jitlab.targets.cpu_llvm.emit.codegen import COUNTER

from . import pool_code
from .processors import allowed, chosen

#: As programs and reasons name processors -> as systems do.
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


def why_none() -> str:
    """Why this process has no pool; "" where it may have one."""
    if _processor() not in pool_code.PROCESSORS or sys.platform not in ("linux", "darwin"):
        return "threads.system"
    return ""


def address() -> int:
    """Where the pool's memory is; 0: there is none on this system."""
    if why_none():
        return 0
    found = _pool().address
    _is_made.append(True)
    return found


def helpers() -> int:
    """The threads that have been started, beside those that call."""
    return 0 if why_none() else _pool().word(pool_code.STARTED).value


def _processor() -> str:
    name = platform.machine().lower()
    return _NAMES.get(name, name)


class _Pool:
    """Its memory is never given back, nor its code: a thread of the user's may be in a region while Python ends."""

    def __init__(self) -> None:
        text = pool_code.text(_processor(), COUNTER)
        self.code = machine.load(machine.object_cache().compile(text, "quick")[0], ["region", "end"])
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.code))
        room = ctypes.create_string_buffer(pool_code.BYTES + 64)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(room))
        self.address = -(-ctypes.addressof(room) // 64) * 64
        self.process = ctypes.CDLL(None)
        self.word(pool_code.REGION).value = self.code.address("region")
        self.word(pool_code.HOW).value = signal.SIG_SETMASK
        faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}  # they are of who makes them
        self.word(pool_code.SIGNALS).value = sum(1 << (n - 1) for n in set(signal.valid_signals()) - faults if n < 64)
        self.reset()

    def word(self, offset: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.address + offset)

    def reset(self) -> None:
        """As where no thread was started: in a new process there are none, and nobody holds what they held."""
        for place, length in ((pool_code.ENDED, 3), (pool_code.ASLEEP, 1), *_gates()):
            ctypes.memset(self.address + place, 0, 8 * length)
        init = self.process.pthread_mutex_init, self.process.pthread_cond_init, self.process.pthread_cond_init
        for start, place in zip(init, (pool_code.LOCK, pool_code.THERE_IS, pool_code.HAVE_LEFT), strict=True):
            start(ctypes.c_void_p(self.address + place), None)
        self.allow()

    def allow(self) -> None:
        """As many threads as there may be now; where nobody has said how many, no more than NumPy's BLAS has at the time."""
        said = chosen()
        self.word(pool_code.BLAS).value = 0 if said else threads_address()
        self.word(pool_code.ALLOWED).value = min(said or allowed(), pool_code.MOST_THREADS)

    def end(self) -> None:
        """Regions that others open from now on are theirs alone."""
        self.word(pool_code.ALLOWED).value = 1
        count = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.code.address("end"))(self.address)
        for number in range(count):
            thread = ctypes.c_void_p.from_address(self.address + pool_code.THREADS + 8 * number)
            self.process.pthread_join(thread, None)


def _gates() -> list[tuple[int, int]]:
    first, size = pool_code.FIRST_REGION + pool_code.GATE, pool_code.REGION_BYTES
    return [(first + k * size, 1) for k in range(pool_code.REGIONS)]


@made_once
def _pool() -> _Pool:
    return _Pool()


def _tell(method: Callable[[_Pool], None]) -> Callable[[], None]:
    """Call the method of the pool, where there is one."""

    def tell() -> None:
        if _is_made:
            method(_pool())

    return tell


_is_made: list[bool] = []
told.append(_tell(_Pool.allow))
atexit.register(_tell(_Pool.end))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell(_Pool.reset))

"""What this machine can do: bytes from memory and operations a second. The most that a few processes measured, each when it was
first asked, kept in the cache folder: what else runs meanwhile only makes less of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, astuple
from functools import cache
from typing import Any

import numpy as np

from jitlab.config import cache_folder
from jitlab.support.later import Later
from jitlab.targets.target import Peaks

from . import machine
from .compiling import background

json, pathlib = Later("json"), Later("pathlib")

#: Larger than any cache near a core; copied to measure memory.
COPY_BYTES = 48 << 20
MATRIX = 512


def known_peaks() -> Peaks | None:
    """This machine's peaks; None until they are known: the first call on a machine has them measured in the background."""
    global _asked
    if _asked is None:
        try:
            _asked = background().submit(peaks)
        except (RuntimeError, MemoryError):  # no room for a thread, or Python ends
            return None
    if not _asked.done():
        return None
    if _asked.exception() is not None:  # no room to measure in: later, perhaps
        _asked = None
        return None
    return _asked.result()


#: So many processes measure.
PROCESSES = 5


@cache
def peaks() -> Peaks:
    """This machine's peaks. The first calls on a machine take some tenths of a second."""
    folder = cache_folder()
    path = None if folder is None else pathlib.Path(folder) / f"peaks-{machine.cpu_name()}.json"
    known, times = _kept(path)
    if times >= PROCESSES:
        return known
    found = measure()
    found = Peaks(*map(max, astuple(found), astuple(known)))
    if path is not None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(found) | {"processes": times + 1}))
        except OSError:
            pass  # a cache that cannot be written is only slower
    return found


def _kept(path: Any) -> tuple[Peaks, int]:
    """What was measured before on a machine like this, and by how many processes."""
    try:
        found = json.loads(path.read_text()) if path is not None else {}
        times = int(found.pop("processes", 1))
        return Peaks(**{name: float(value) for name, value in found.items()}), times
    except (OSError, ValueError, TypeError, AttributeError):  # not measured yet, or not readable
        return Peaks(0.0, 0.0), 0


def measure() -> Peaks:
    source = np.ones(COPY_BYTES, np.uint8)
    target = np.empty_like(source)
    np.copyto(target, source)  # first touch
    copy_seconds = _best(lambda: np.copyto(target, source))
    a = np.ones((MATRIX, MATRIX), np.float32)
    product_seconds = _best(lambda: a @ a)
    return Peaks(2 * COPY_BYTES / copy_seconds, 2 * MATRIX**3 / product_seconds)


_asked: Future[Peaks] | None = None


def _best(work: Callable[[], object], times: int = 5) -> float:
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best

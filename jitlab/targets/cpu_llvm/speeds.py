"""What the cost model knows of this processor: weights of instructions, how fast its caches and its memory are, its peaks.

Shipped for all of it; how this machine differs is measured when first somebody asks for a prediction, in the first few
processes that do, and kept in the cache folder. The least time counts: what else runs on a core, or on the other half of it,
only makes a time longer. Decisions of the compiler see the file that is there when the process starts, rounded to steps of a
half power of two: what a measurement is off by changes none of them.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import Future
from dataclasses import replace
from functools import cache

from jitlab.config import cache_folder
from jitlab.ops.elementwise.instruction_weights import KINDS, SHIPPED, Weights
from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.target import Peaks

from . import machine
from .compiling import background
from .cpu_shape import LARGEST, cache_bytes

calibration = Later(f"{__package__}.calibration")

#: Bytes that the nearest cache holds.
NEAREST = 40 << 10


@dataclass(frozen=True)
class Cache:
    """Bytes that it holds, and that come from it in a nanosecond."""

    name: str
    holds: float
    gives: float


@dataclass(frozen=True)
class Speeds:
    """`caches`: from the one behind the nearest on; the last is memory. What is written past the caches goes `past` times as
    fast as what is read first."""

    weights: Weights
    caches: tuple[Cache, ...]
    peaks: Peaks
    past: float = 2.0

    def moving(self, read: int, written: int, far: int, streamed: bool = False) -> float:
        """Nanoseconds of bytes that are read and written, after so many others were touched."""
        if far <= NEAREST:
            return 0.0
        nanoseconds = (read + written / (self.past if streamed else 1.0)) / self.caches[-1].gives
        for behind in self.caches[-2::-1]:  # of more than it holds, up to twice as much, a part is there
            left = min(max(2.0 - far / behind.holds, 0.0), 1.0)
            nanoseconds = left * (read + written) / behind.gives + (1.0 - left) * nanoseconds
        return nanoseconds


#: Of the machine on which the weights were measured.
SHIPPED_SPEEDS = Speeds(
    SHIPPED, (Cache("second", 0.9 * (1 << 20), 200.0), Cache("third", 24 << 20, 119.0), Cache("memory", math.inf, 42.0)),
    Peaks(42e9, 240e9),
)  # fmt: skip

#: Nanoseconds of each of these there: an instruction, eight times on an element but for a function, and a byte that is copied.
MEASURED = {
    "plain": 0.185, "division": 1.0, "root": 1.81, "function": 0.38, "integers": 3.6, "second": 0.0039, "third": 0.0077,
    "memory": 0.026,
}  # fmt: skip


#: So many processes measure, and what the line of the file is called that has their number.
PROCESSES, TIMES = 5, "processes"


def speeds() -> Speeds:
    """Of this machine, as far as they are known; the first who asks has them measured in the background."""
    global _asked
    if _asked is None:
        try:
            _asked = background().submit(measured)
        except (RuntimeError, MemoryError):  # no room for a thread, or Python ends
            return SHIPPED_SPEEDS
    if not _asked.done() or _asked.exception() is not None:
        return SHIPPED_SPEEDS
    return of_factors(_asked.result())


_asked: Future[tuple[tuple[str, float], ...]] | None = None


@cache
def of_factors(factors: tuple[tuple[str, float], ...]) -> Speeds:
    """The shipped ones, of a machine on which these take so many times as long."""
    known = dict(factors)
    holds = {"second": 0.9 * cache_bytes(2, 1 << 20), "third": 0.75 * cache_bytes(3, LARGEST), "memory": math.inf}
    caches = tuple(Cache(each.name, holds[each.name], each.gives / known.get(each.name, 1.0)) for each in SHIPPED_SPEEDS.caches)
    return replace(SHIPPED_SPEEDS, weights=Weights(tuple((k, f) for k, f in factors if k in KINDS)), caches=caches)


def measured() -> tuple[tuple[str, float], ...]:
    """How many times as long as shipped everything in MEASURED takes here: the least that this and other processes measured."""
    known, times = _kept()
    if times < PROCESSES:
        ns = calibration.measure()
        known = {name: min(round(ns[name] / shipped, 3), known.get(name, math.inf)) for name, shipped in MEASURED.items()}
        path = _path()
        if path is not None:
            try:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                with open(path, "w") as file:
                    file.writelines(f"{name} {factor}\n" for name, factor in {**known, TIMES: times + 1}.items())
            except OSError:
                pass  # a cache that cannot be written is only slower
    return tuple(sorted(known.items()))


def kept() -> dict[str, float] | None:
    """What was measured before on a machine like this; None where nothing was, or not all."""
    return _kept()[0] or None


def _kept() -> tuple[dict[str, float], int]:
    """The same, and by how many processes."""
    path = _path()
    try:
        with open(path or os.devnull) as file:
            found = {name: float(factor) for name, factor in (line.split() for line in file)}
    except (OSError, ValueError):
        return {}, 0
    sound = all(0.01 < found.get(name, 0.0) < 100.0 for name in MEASURED)
    return ({name: found[name] for name in MEASURED}, int(found.get(TIMES, 1))) if sound else ({}, 0)


def slowness() -> tuple[tuple[str, float], ...]:
    """For decisions: the kinds of instructions that take another time than shipped, in steps of a half power of two."""
    steps = {name: round(2 * math.log2(factor)) / 2 for name, factor in (kept() or {}).items() if name in KINDS}
    return tuple(sorted((name, round(2.0**step, 3)) for name, step in steps.items() if step))


def _path() -> str | None:
    folder = cache_folder()
    return None if folder is None else os.path.join(folder, f"speeds-{machine.cpu_name()}.txt")

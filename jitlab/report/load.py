"""How busy other programs kept the processors: where they did, times of two runs differ for that alone."""

from __future__ import annotations

import os
import time

PROCESSORS = "/proc/stat"  # Linux; elsewhere nobody knows
LEAST_SECONDS = 0.05  # the system counts in steps of 10 ms

Reading = tuple[float, float, float]


class Load:
    """Counts from when it is made. Who makes many within `LEAST_SECONDS` pays for one reading."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = _recent()

    def others(self) -> float | None:
        """The share of all processors' time since then that other processes took, 0 to 1; None where it is not known."""
        now = _recent()
        if self._began is None or now is None or now is self._began:
            return None
        whole, busy, own = (after - before for after, before in zip(now, self._began, strict=True))
        if whole < LEAST_SECONDS:
            return None
        return min(1.0, max(0.0, (busy - own) / whole))


_last: tuple[float, Reading | None] = (float("-inf"), None)  # when, and what it said


def _recent() -> Reading | None:
    """A reading no older than a step that means something."""
    global _last
    when, reading = _last
    if not 0 <= time.monotonic() - when < LEAST_SECONDS:
        reading = _read()
        _last = time.monotonic(), reading
    return reading


def _read() -> Reading | None:
    """Seconds since the start of the system of all processors: in all, at work; and those of this process."""
    try:
        with open(PROCESSORS, "rb", buffering=0) as file:
            first = file.read(256).split(b"\n")[0].split()
        ticks = [int(value) for value in first[1:9]]  # user nice system idle iowait irq softirq steal
        second = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None
    whole = sum(ticks)
    return whole / second, (whole - sum(ticks[3:5])) / second, time.process_time()

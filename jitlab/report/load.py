"""How busy other programs kept the processors: where they did, times of two runs differ for that alone."""

from __future__ import annotations

import os
import time

PROCESSORS = "/proc/stat"  # Linux; elsewhere nobody knows
LEAST_SECONDS = 0.05  # the system counts in steps of 10 ms


class Load:
    """Counts from when it is made."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = _read()

    def others(self) -> float | None:
        """The share of all processors' time since then that other processes took, 0 to 1; None where it is not known."""
        now = _read()
        if self._began is None or now is None:
            return None
        whole, busy, own = (after - before for after, before in zip(now, self._began, strict=True))
        if whole < LEAST_SECONDS:
            return None
        return min(1.0, max(0.0, (busy - own) / whole))


def _read() -> tuple[float, float, float] | None:
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

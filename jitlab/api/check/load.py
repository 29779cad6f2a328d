"""How busy other programs kept the processors: where they did, times of two runs differ for that alone."""

from __future__ import annotations

import os
import time

PROCESSORS = "/proc/stat"  # Linux; elsewhere nobody knows
BUSY = 0.25  # others took so much of the processors: it is said beside what was measured
LEAST_SECONDS = 0.05  # the system counts in steps of 10 ms
MOST_SECONDS = 10.0  # what was before that long ago says nothing of now

Reading = tuple[float, float, float]


class Load:
    """Counts from when it is made. Who makes many within `LEAST_SECONDS` pays for one reading."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = _recent()

    def others(self) -> float | None:
        """The share of all processors' time since then that other processes took, 0 to 1, where that is too short to tell the
        time just before with it; None where it is not known."""
        now = _recent()
        for began in self._began[::-1]:
            if began is not None and now[-1] is not None and now[-1] is not began:
                whole, busy, own = (after - before for after, before in zip(now[-1], began, strict=True))
                if whole >= LEAST_SECONDS:
                    return min(1.0, max(0.0, (busy - own) / whole))
        return None


_last: tuple[float, Reading | None] = (float("-inf"), None)  # when, and what it said
_earlier: Reading | None = None  # what the one before said, where that is not long ago


def _recent() -> tuple[Reading | None, Reading | None]:
    """The reading before, and one no older than a step that means something."""
    global _last, _earlier
    when, reading = _last
    age = time.monotonic() - when
    if not 0 <= age < LEAST_SECONDS:
        _earlier = reading if age < MOST_SECONDS else None
        reading = _read()
        _last = time.monotonic(), reading
    return _earlier, reading


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

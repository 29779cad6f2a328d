"""What `%%jit -n N -r R` measured, as `%timeit` tells it: the mean of the runs, and how much they differ."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

from jitlab import events
from jitlab.messages import units

MOST_NAMED = 3


def repeated(event: events.Repeated) -> dict[str, Any]:
    """`verdict.repeated` of docs/reference/report-format.md; seconds of one loop."""
    seconds = [ns / 1e9 for ns in event.loop_ns]
    mean, deviation = fmean(seconds), pstdev(seconds)
    return {
        "loops": event.loops, "runs": len(seconds), "seconds": seconds, "mean": mean, "deviation": deviation,
        "left_out": list(event.left_out), "text": _text(mean, deviation, len(seconds), event.loops, event.left_out),
    }  # fmt: skip


def _text(mean: float, deviation: float, runs: int, loops: int, left_out: Sequence[str]) -> str:
    of = f"mean ± std. dev. of {units.counted(runs, 'run')}, {units.counted(loops, 'loop')} each"
    text = f"{units.short_duration(mean)} ± {units.short_duration(deviation)} per loop ({of}), compiled code alone"
    if left_out:
        more = len(left_out) - MOST_NAMED
        text += f"; not run again: {', '.join(left_out[:MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"
    return text + "."

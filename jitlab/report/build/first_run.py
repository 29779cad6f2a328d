"""What the first run of a cell took besides its launches, and how much of them ran code that better code has replaced since.

The time of a run is that of its launches. A first run waits for capture and compilation too, and its first launches run the
quick tier's code: who compares it with a later run has to know both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jitlab.messages import units
from jitlab.targets.devices import target_of

if TYPE_CHECKING:
    from jitlab.report.recording import Recording

Json = dict[str, Any]
FELT = 0.1  # of the launches' time in quick code: less is not worth a word


def first_run(recording: Recording, retraces: list[Json], seconds: float | None) -> Json | None:
    """`verdict.first_run` of docs/reference/report-format.md; None where no first trace was made. `seconds`: of the run."""
    waited = sum(trace["seconds"] for trace in retraces if trace["first"])
    if not waited:
        return None
    ready = _ready(recording)
    launches = [span for span in recording.lanes["compiled"] if span.kind == "launch"]
    quick = [s for s in launches if s.start_ns < ready.get((s.function, s.trace, str(s.cluster)), -math.inf)]
    share = sum(s.duration_ns for s in quick) / max(1, sum(s.duration_ns for s in launches))
    is_better_there = all(math.isfinite(ready[s.function, s.trace, str(s.cluster)]) for s in quick)
    compared = recording.compared is not None  # the times of the verdict are those of a later run
    felt = share >= FELT and not compared
    return {
        "seconds": waited, "quick_calls": len(quick), "calls": len(launches), "quick_share": share,
        "text": _text(waited, None if compared else seconds, share if felt else 0.0, is_better_there),
    }  # fmt: skip


def _ready(recording: Recording) -> Mapping[tuple[str, int, str], float]:
    """When the good code of each cluster came, of those that began with quick code; infinite: it is not there yet."""
    found: dict[tuple[str, int, str], float] = {}
    for (function, trace), steps in recording.compiled.items():
        for cluster in {step.cluster for step in steps}:
            tiers = {step.tier: step.start_ns + step.duration_ns for step in steps if step.cluster == cluster}
            code = recording.codes.get(cluster)
            if "quick" in tiers and not (code is not None and target_of(code.target).last_tier(code.program) == "quick"):
                found[function, trace, cluster] = tiers.get("good", math.inf)
    return found


def _text(waited: float, seconds: float | None, share: float, is_better_there: bool) -> str:
    took = f"Captured for the first time: {units.duration(waited)} of capturing and compiling"
    head = f"{took} came besides these {units.duration(seconds)}." if seconds else f"{took}, once; it is not in these times."
    if not share:
        return head
    part = "They ran" if share >= 0.995 else f"{units.percent(share)} of them ran"
    state = "in place now" if is_better_there else "being made"
    return f"{head} {part} the quick tier's code; better code is {state}: run the cell again for its times."

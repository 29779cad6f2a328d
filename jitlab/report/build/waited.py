"""What the user waited for: the whole run by the clock, divided into work, compiling and Python; what later runs take, and
after how many of them the compiling has paid for itself. How much of the work ran code that better code has replaced since.
What `%%jit -n N -r R` measured, as `%timeit` tells it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median_low, pstdev
from typing import TYPE_CHECKING, Any

from jitlab import events
from jitlab.api.check.load import BUSY
from jitlab.messages import Message, text, units
from jitlab.report.speed import seconds_of, times
from jitlab.targets.devices import target_of

if TYPE_CHECKING:
    from jitlab.report.recording import Recording

Json = dict[str, Any]
FELT = 0.1  # of the launches' time in quick code: less is not worth a word
PARTS = ("work", "compiling", "python", "copying", "waiting", "overhead")
OVERHEAD_FELT = 0.1  # of the work
PART_FELT = 0.02  # of the run: a smaller part is not named
MOST_RUNS = 1000  # what takes more runs than these to pay for its compiling is better left to NumPy
MOST_NAMED = 3  # of what did not run again
SMALL_EXTENT = "small_extent"  # a variant whose time is that of its trace


def waited(recording: Recording, data: Mapping[str, Any], speed: Json | None) -> Json | None:
    """`verdict.waited` of docs/reference/report-format.md; None while the run has not ended. `speed`: `verdict.speed`."""
    if recording.run_ns is None:
        return None
    seconds, work = recording.run_ns / 1e9, recording.work_ns / 1e9
    compiling = sum(trace["seconds"] for trace in data["retraces"])
    compiling += sum(variant["seconds"] for variant in data["variants"] if variant["cause"] != SMALL_EXTENT)
    compiling = max(compiling, recording.captures_ns / 1e9)  # with captures that came to nothing
    if not (work or compiling or data["statements"] or data["as_python"]):
        return None
    stolen = min(recording.stolen_ns / 1e9, max(0.0, seconds - work - compiling))
    rest = max(0.0, seconds - work - compiling - stolen)
    by_python = sum(entry["seconds"] for entry in (*data["statements"], *data["as_python"]))
    called = sum(tally.ns for tally in recording.functions.values()) / 1e9  # work and all in calls of compiled functions
    around = min(max(0.0, called - work - compiling - by_python - stolen), rest)
    python = min(by_python, rest) if recording.is_captured else rest - around
    result: Json = {"seconds": seconds, "work": work, "compiling": compiling, "python": python}
    result |= _around(recording, rest - python, is_alone=not compiling and not by_python)
    if stolen:
        result["waiting"] = stolen + result.get("waiting", 0.0)
    said = _this_run(result)
    if (recording.others or 0.0) >= BUSY > ((speed or {}).get("others") or 0.0):  # else it is said beside the factor
        said += f"; {text('speed.busy', share=recording.others)}"
    if recording.measuring_ns >= PART_FELT * recording.run_ns:
        result["measuring"] = recording.measuring_ns / 1e9
        said += f"; {text('waited.measuring', seconds=result['measuring'])}"
    rounds = _comparison(recording)
    is_whole = rounds is not None and rounds.is_whole
    compared = rounds if recording.compared is not None else None
    if compiling and compared is not None:  # with nothing to compile this run is as later ones are
        result["next"] = median_low(compared.compiled_ns) / 1e9
        said += f"; {text('waited.next_whole' if is_whole else 'waited.next', seconds=result['next'])}"
    result["text"] = said
    later = _of_rounds(rounds) or work
    again = 0.0 if compiling or is_whole else result["overhead"]  # each later run has it, too
    numpy = seconds_of(rounds)[1] if rounds is not None else None
    paid = _paid(compiling + recording.compiled_before, later, again, speed, numpy)
    if paid is not None:
        result["pays"] = paid.to_json()
    return result


def _around(recording: Recording, rest: float, is_alone: bool) -> Json:
    """What was neither work nor Python's nor compiling: copies of arguments; of a run that was only compiled code what others
    had of the processor around it; and what jitlab did itself."""
    copying = min(recording.copied_ns / 1e9, rest)
    found = {"copying": copying} if copying else {}
    if is_alone and recording.is_captured and recording.idle_ns is not None:
        found["waiting"] = min(max(0, recording.idle_ns - recording.away_ns) / 1e9, rest - copying)
    return {**found, "overhead": rest - sum(found.values())}


def _comparison(recording: Recording) -> events.Compared | None:
    """Rounds of both sides, of this run or one before."""
    before = recording.compared_before
    found = recording.compared or (before.compared if before is not None else None)
    return None if found is not None and found.is_ended and found.is_whole else found


def _of_rounds(rounds: events.Compared | None) -> float | None:
    """Seconds of the compiled side in the median round."""
    return median_low(rounds.compiled_ns) / 1e9 if rounds is not None else None


def _this_run(parts: Json) -> str:
    """ "10.0 s this run: 227 ms work, 8.2 s compiling, 1.6 s Python"; of threads that ran at once the parts are no sum."""
    seconds = parts["seconds"]
    named = {name: parts[name] for name in PARTS if parts.get(name, 0.0) >= PART_FELT * seconds}
    if set(named) <= {"work"} or sum(named.values()) > (1 + PART_FELT) * seconds:
        return text("waited.run", seconds=seconds)
    return text("waited.parts", seconds=seconds, parts=", ".join(text(f"waited.{key}", seconds=n) for key, n in named.items()))


def _paid(compiling: float, work: float, overhead: float, speed: Json | None, numpy: float | None = None) -> Message | None:
    """After how many runs the compiling is paid for by what each saves beside NumPy; None where nobody knows. Overhead is what
    a run has besides its work, as far as that is known; `numpy`: NumPy's time as the report tells it beside."""
    if speed is None or not compiling or not work:
        return None
    low, high = (speed.get(end) or speed["ratio"] for end in ("low", "high"))
    least, most = (work * (ratio - 1) - overhead for ratio in (low, high))
    numpy = work * speed["ratio"] if numpy is None else numpy
    if most < 0:
        return Message("waited.never", {"numpy": numpy, "whole": work + overhead})
    saved = numpy - work - overhead
    if least <= 0 or saved <= 0:
        return None
    runs = math.ceil(compiling / saved)
    if runs > MOST_RUNS:
        return Message("waited.late", {"compiling": compiling, "runs": f"{_rounded(runs):,}"})
    return Message("waited.pays", {"compiling": compiling, "runs": units.counted(runs, "run")})


def _rounded(runs: int) -> int:
    """Two digits: 2,867 runs are as many as 2,900."""
    return round(runs, 1 - int(math.log10(runs)))


def add_notes(speed: Json, recording: Recording, parts: Json) -> None:
    """Say first how the whole run is beside NumPy, where nothing was compiled in it and what jitlab does around the work is
    felt; and beside the factor that both its times are not of the run itself."""
    rounds = _comparison(recording)
    work, overhead = _of_rounds(rounds) or parts["work"], parts["overhead"]
    notes = [speed.get("note", "")]
    if not parts["compiling"] and not (rounds is not None and rounds.is_whole) and work and overhead >= OVERHEAD_FELT * work:
        ratio = speed["ratio"] * work / (work + overhead)
        code = "speed.whole" if ratio >= 1 else "speed.whole_slower"
        speed["text"] = text(code, overhead=overhead, ratio=times(max(ratio, 1 / ratio)), part=speed["text"])
    if recording.compared is not None:
        notes.append(text("speed.rounds", rounds=units.counted(len(recording.compared.compiled_ns), "round")))
    if any(notes):
        speed["note"] = "; ".join(filter(None, notes))


def first_run(recording: Recording, retraces: list[Json]) -> Json | None:
    """`verdict.first_run` of docs/reference/report-format.md; None where no first trace was made."""
    spent = sum(trace["seconds"] for trace in retraces if trace["first"])
    if not spent:
        return None
    ready = _ready(recording)
    launches = [span for span in recording.lanes["compiled"] if span.kind == "launch"]
    quick = [s for s in launches if s.start_ns < ready.get((s.function, s.trace, str(s.cluster)), -math.inf)]
    share = sum(s.duration_ns for s in quick) / max(1, sum(s.duration_ns for s in launches))
    is_better_there = all(math.isfinite(ready[s.function, s.trace, str(s.cluster)]) for s in quick)
    felt = share >= FELT
    said = text(f"waited.{'optimised' if is_better_there else 'optimising'}") if felt else ""
    return {"seconds": spent, "quick_calls": len(quick), "calls": len(launches), "quick_share": share, "text": said}


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


def repeated(event: events.Repeated) -> dict[str, Any]:
    """`verdict.repeated` of docs/reference/report-format.md; seconds of one loop."""
    seconds = [ns / 1e9 for ns in event.loop_ns]
    mean, deviation = fmean(seconds), pstdev(seconds)
    return {
        "loops": event.loops, "runs": len(seconds), "seconds": seconds, "mean": mean, "deviation": deviation,
        "left_out": list(event.left_out), "text": _of_loops(mean, deviation, len(seconds), event.loops, event.left_out),
    }  # fmt: skip


def _of_loops(mean: float, deviation: float, runs: int, loops: int, left_out: Sequence[str]) -> str:
    of = f"mean ± std. dev. of {units.counted(runs, 'run')}, {units.counted(loops, 'loop')} each"
    text = f"{units.short_duration(mean)} ± {units.short_duration(deviation)} per loop ({of}), compiled code alone"
    if left_out:
        more = len(left_out) - MOST_NAMED
        text += f"; not run again: {', '.join(left_out[:MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"
    return text + "."

"""When a report says nothing new: a cell that ran again, was captured alike and took as long, keeps the output it has.

Times differ in every run, so a saved notebook would differ after every run. Two reports are *alike* when their `essence` is:
everything but measurements, caches, and numbers that a session hands out (execution counts, cluster numbers), and that both
runs waited for compiling, or neither did. Of reports that are alike the first stays, byte for byte, until the times have
changed measurably; one whose launches ran the quick tier's code gives way, once, to the first that did not in the same session,
and one that was compared while other programs had the processors to the first that was not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jitlab.api.check.load import BUSY
from jitlab.report import schema
from jitlab.report.build.waited import FELT
from jitlab.report.schema import keys_of
from jitlab.support.statistics import FEWEST, difference

Json = dict[str, Any]

#: What a report says of the program and of what was decided, list by list. All else is measured, or hangs on caches.
TOLD = {
    key.name: [part.name for part in keys_of(schema.lists()[key.name]) if schema.MEASURED not in part.marks]
    for key in keys_of(schema.Report)
    if key.name in schema.lists() and schema.MEASURED not in key.marks
}
#: What is measured in some runs alone: where it is a share that is felt.
SOMETIMES = {"statement_seconds"}
VERDICT = ("lead", "operations", "compiled", "clusters", "kernels", "host", "bytes_moved", "bytes_saved")
#: Why a kernel got another form for a reason that is no program's: where memory happened to lie, which machine it is.
BY_CHANCE = ("alignment", "target")
DURATION = re.compile(r"\d[\d.,]*\s?(?:ns|µs|μs|ms|s|min)\b|\d[\d.,]*\s?%")
#: A cell named by its execution count, in words, in angle brackets, and as a source's whole name.
COUNTED = re.compile(r"\bIn \[(\d+)\]|<cell (\d+)>|^cell (\d+)$")
NUMBERED = re.compile(r"cluster_\d+|In ?\[\d+\]|<cell \d+>|0x[0-9a-f]{4,}")

#: Types of what may hold a cell's number.
HOLDING = frozenset({str, dict, list})

#: A single run shows nothing: another process, a cold cache or another tier of code make any difference. Two in a row do when
#: both are so many times slower, or faster.
FACTOR, TWICE, FLOOR_SECONDS = 3.0, 2, 0.001
#: A smaller change shows when so many later runs agree on it. The first runs that are as near as `NEAR` are one with the first.
CONFIRMED, NEAR, LEAST_SECONDS = 5, 1.5, 10e-6
KEPT = 8


def essence(data: Mapping[str, Any]) -> str:
    """What a report says of the program and the plan, as canonical text; equal for reports that are alike."""
    told: list[Any] = [
        data["cell"]["source"], data["cell"]["error"], [data["verdict"].get(key) for key in VERDICT],
        data["verdict"].get("numpy_seconds") is not None, (data["verdict"].get("repeated") or {}).get("left_out"),
        bool((data["verdict"].get("waited") or {}).get("compiling")),
    ]  # fmt: skip
    for name, keys in TOLD.items():
        entries = (entry for entry in data.get(name, ()) if not _is_by_chance(name, entry))
        told.append([{key: entry[key] for key in keys if key in entry} for entry in entries])
    names: dict[str, str] = {}
    text = DURATION.sub("T", json.dumps(told, sort_keys=True, ensure_ascii=False))
    return NUMBERED.sub(lambda found: names.setdefault(found[0], f"#{len(names)}"), text)


def _is_by_chance(name: str, entry: Mapping[str, Any]) -> bool:
    """Warm-up is gone when the cell runs again; memory lies elsewhere."""
    return (name == "retraces" and bool(entry["first"])) or (name == "variants" and entry["cause"] in BY_CHANCE)


def key_of(data: Mapping[str, Any], *more: str) -> str:
    """A short name for all reports that are alike."""
    return hashlib.sha256("\n".join([essence(data), *more]).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def times_of(data: Mapping[str, Any]) -> dict[str, float]:
    """What is measured of the whole cell, in seconds."""
    verdict = data["verdict"]
    times = {key: verdict.get(key) for key in ("seconds", "numpy_seconds", "statement_seconds")}
    times["repeated"] = (verdict.get("repeated") or {}).get("mean")
    return {key: value for key, value in times.items() if value}


def ran_quick(data: Mapping[str, Any]) -> bool:
    """Its times are those of code that better code has replaced since; such a report says "run the cell again"."""
    first = data["verdict"].get("first_run")
    return bool(first) and first.get("quick_share", 0.0) >= FELT


def ran_beside_others(data: Mapping[str, Any]) -> bool:
    """Its factor was measured while other programs had the processors: a quieter run knows it better."""
    return ((data["verdict"].get("speed") or {}).get("others") or 0.0) >= BUSY


def has_changed(before: Sequence[float], after: Sequence[float]) -> bool:
    """Do later runs (the last is the newest) show another time than those the output was made of?"""
    if not before or not after:
        return bool(before) != bool(after)
    known, last = sorted(before)[len(before) // 2], after[-TWICE:]
    away = min(last) > max(known * FACTOR, known + FLOOR_SECONDS) or max(last) < min(known / FACTOR, known - FLOOR_SECONDS)
    if away and len(last) == TWICE:
        return True
    late = after[-CONFIRMED:]
    if len(late) < CONFIRMED or abs(sorted(late)[CONFIRMED // 2] - known) < LEAST_SECONDS:
        return False
    if len(before) < FEWEST:
        return max(late) < known / NEAR or min(late) > known * NEAR
    return difference(before, late).significant


def is_near(value: float, known: float, factor: float = NEAR) -> bool:
    return known / factor < value < known * factor


class Entry:
    """An output that is shown, the times it was made of, and those of later runs that were alike."""

    def __init__(self, bundle: Json, before: dict[str, list[float]], after: dict[str, list[float]]) -> None:
        self.bundle, self.before, self.after = bundle, before, after

    @classmethod
    def of(cls, bundle: Json, times: Mapping[str, float]) -> Entry:
        return cls(bundle, {key: [value] for key, value in times.items()}, {})

    def takes(self, times: Mapping[str, float]) -> bool:
        """Note the times of a run that was alike; False when they have changed, so that the output is to be made anew."""
        if (set(times) ^ set(self.before)) - SOMETIMES:
            return False
        for key, value in ((key, value) for key, value in times.items() if key in self.before):
            before, after = self.before[key], self.after.setdefault(key, [])
            if len(before) < CONFIRMED and not after and is_near(value, before[0]):
                before.append(value)
                continue
            after.append(value)
            del after[:-KEPT]
            if has_changed(self.before[key], after):
                return False
        return True

    def renewed(self, bundle: Json, times: Mapping[str, float]) -> Entry:
        """The entry of the output that takes its place: the runs that showed the change are those it is made of."""
        before = {key: [*self.after.get(key, [])[-CONFIRMED:]] or [value] for key, value in times.items()}
        return Entry(bundle, before, {})

    def to_json(self) -> Json:
        return {"version": 1, "bundle": self.bundle, "before": self.before, "after": self.after}

    @classmethod
    def from_json(cls, data: Any) -> Entry | None:
        """None for what is no entry."""
        match data:
            case {"version": 1, "bundle": dict(bundle), "before": dict(before), "after": dict(after)}:
                sides = [before, after]
                if all(
                    isinstance(v, list) and all(isinstance(x, float) and x > 0 for x in v) for s in sides for v in s.values()
                ):
                    return cls(bundle, before, after)
        return None


def neutral(data: Mapping[str, Any], own: Sequence[int]) -> Json:
    """The report without the execution counts that this cell had: they change with each run. `In [7]` becomes `In [ ]`."""
    numbers = {str(number) for number in own}
    if not numbers:
        return dict(data)
    source = "\n".join(data["cell"]["source"])
    name = f"cell {hashlib.sha256(source.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"

    def without_count(found: re.Match[str]) -> str:
        if found[found.lastindex or 0] not in numbers:
            return found[0]
        return name if found[0].startswith("cell") else "In [ ]"

    def of(value: Any) -> Any:
        if isinstance(value, str):
            return COUNTED.sub(without_count, value)
        if isinstance(value, dict):
            return {
                key: item
                if (kind := type(item)) not in HOLDING
                or (kind is str and "In [" not in item and "cell " not in item)
                or key == "source"
                else of(item)
                for key, item in value.items()
            }
        return [item if type(item) not in HOLDING else of(item) for item in value] if isinstance(value, list) else value

    result: Json = of(dict(data))
    result["cell"]["execution_count"] = None
    for mine, theirs in zip(result.get("sources", ()), data.get("sources", ()), strict=True):
        mine["lines"] = theirs["lines"]
    return result

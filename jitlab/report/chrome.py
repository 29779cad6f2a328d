"""The timeline, and its Chrome trace (semantics §6.1) for any trace viewer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import wording

Json = dict[str, Any]

#: Which process of the trace a lane belongs to: the device computes, the comparison runs on NumPy, the compiler prepares.
DEVICES = {"compiled": "/device:CPU:0", "op by op": "/device:CPU:0 op by op", "first call": "/host:jitlab"}


@dataclass(frozen=True)
class Difference:
    """Mean time of one thing in two timelines, in seconds; None where it did not run."""

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """after / before - 1; None unless both ran."""
        return self.after / self.before - 1 if self.before and self.after is not None else None


@dataclass(frozen=True)
class Comparison:
    """What `timeline.compare(other)` found, slowest first; times are means of the recorded runs."""

    rows: tuple[Difference, ...]

    def __str__(self) -> str:
        lines = [f"{'':<32}{'before':>10}{'after':>10}"]
        for row in self.rows:
            change = row.change
            word = "" if change is None else "slower" if change > 0.02 else "faster" if change < -0.02 else "the same"
            percent = f" by {abs(change) * 100:.0f} %" if change is not None and abs(change) > 0.02 else ""
            name = row.name if len(row.name) <= 31 else row.name[:30] + "…"
            lines.append(
                f"{name:<32}{wording.duration(row.before) or '–':>10}{wording.duration(row.after) or '–':>10}   {word}{percent}"
            )
        return "\n".join(line.rstrip() for line in lines)


class Timeline:
    """The spans of a report, lane by lane."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    @property
    def lanes(self) -> list[Json]:
        """Lanes as in docs/report-format.md; times are microseconds."""
        return list(self._data["timeline"]["lanes"])

    def save(self, path: str | Path = "timeline.ctf.json") -> Path:
        """Write the Chrome trace; returns the path."""
        path = Path(path)
        path.write_text(json.dumps(self.to_chrome(), separators=(",", ":")), encoding="utf-8")
        return path

    def to_chrome(self) -> Json:
        """The object of a Chrome trace file: metadata events, then spans, arrows and the memory counter."""
        return {"traceEvents": chrome_events(self._data)}

    def compare(self, other: Timeline) -> Comparison:
        """This timeline before, `other` after: the mean time of each cluster, host operation, operation and preparation."""
        before, after = self._means(), other._means()
        names = sorted({*before, *after}, key=lambda name: (-max(before.get(name, 0.0), after.get(name, 0.0)), name))
        return Comparison(tuple(Difference(name, before.get(name), after.get(name)) for name in names))

    def _means(self) -> dict[str, float]:
        sums: dict[str, list[float]] = {}
        for lane in self.lanes:
            for span in lane["spans"]:
                sums.setdefault(wording.clean(f"{lane['name']}: {span['name']}"), []).append(span["duration"] / 1e6)
        return {name: sum(values) / len(values) for name, values in sums.items()}

    def __repr__(self) -> str:
        return "<Timeline: " + ", ".join(f"{lane['name']} {len(lane['spans'])} spans" for lane in self.lanes) + ">"


def chrome_events(data: Mapping[str, Any]) -> list[Json]:
    """All events of the trace; times are integer microseconds from the first span."""
    names = {"Allocators": 0}
    for lane in data["timeline"]["lanes"]:
        device = DEVICES.get(lane["name"], lane["name"])
        for process in (f"{device} Compute", f"{device} Tensors"):
            names.setdefault(process, len(names))
    metadata: list[Json] = [
        {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}} for name, pid in names.items()
    ]
    offsets = [lane.get("offset", 0.0) for lane in data["timeline"]["lanes"]]
    origin = min(offsets, default=0.0)
    inputs = _inputs(data)
    events: list[Json] = []
    for lane in data["timeline"]["lanes"]:
        pid = names[f"{DEVICES.get(lane['name'], lane['name'])} Compute"]
        made = _lane_events(lane, pid, lane.get("offset", 0.0) - origin, inputs)
        events += [event for event, _ in made]
        events += _arrows(made, inputs, len(events))
        if lane["name"] == "op by op":
            events += _memory(made, data)
    return metadata + events


def _lane_events(lane: Mapping[str, Any], pid: int, offset: float, inputs: Mapping[Any, list[str]]) -> list[tuple[Json, Any]]:
    """The "X" events of a lane with their spans; `tid` is the lowest row that is free when the span starts."""
    free: list[int] = []  # when each row ends
    made = []
    for span in sorted(lane["spans"], key=lambda s: (s["start"], -s["duration"])):
        start = int(span["start"] + offset)
        duration = max(1, round(span["duration"]))
        row = next((i for i, end in enumerate(free) if end <= start), len(free))
        if row == len(free):
            free.append(0)
        free[row] = start + duration
        work = span["kind"] in ("op", "launch", "host", "kernel")
        args = {"name": span["name"], "op": span["label"]}
        args |= {f"input{i}": name for i, name in enumerate(inputs.get((span["plan"], span["name"]), ()))}
        event = {
            "ph": "X", "cat": "Op" if work else "Compile" if span["kind"] != "statement" else "Python",
            "name": span["label"], "pid": pid, "tid": row, "ts": start, "dur": duration, "args": args,
        }  # fmt: skip
        made.append((event, span))
    return made


def _inputs(data: Mapping[str, Any]) -> dict[Any, list[str]]:
    """What each operation, and each cluster, reads: names of operations and arguments outside it."""
    inputs: dict[Any, list[str]] = {}
    members: dict[tuple[str, str], set[str]] = {}
    for op in data["ops"]:
        inputs[op["plan"], op["name"]] = list(op["inputs"])
        if op["cluster"] is not None:
            members.setdefault((op["plan"], op["cluster"]), set()).add(op["name"])
    for op in data["ops"]:
        if op["cluster"] is not None:
            key = op["plan"], op["cluster"]
            reads = inputs.setdefault(key, [])
            reads += [name for name in op["inputs"] if name not in members[key] and name not in reads]
    return inputs


def _arrows(made: list[tuple[Json, Any]], inputs: Mapping[Any, list[str]], first_id: int) -> list[Json]:
    """Data-flow arrows between spans of different rows: "s" at the producer's end, "t" at the consumer's start."""
    arrows: list[Json] = []
    last: dict[Any, Json] = {}  # the newest span that made a value
    for event, span in made:
        for name in inputs.get((span["plan"], span["name"]), ()):
            producer = last.get((span["plan"], name))
            if producer is not None and (producer["pid"], producer["tid"]) != (event["pid"], event["tid"]):
                arrow = {"name": name, "cat": "DataFlow", "id": first_id + len(arrows) // 2}
                end = producer["ts"] + producer["dur"]
                arrows.append({"ph": "s", **arrow, "pid": producer["pid"], "tid": producer["tid"], "ts": end})
                arrows.append({"ph": "t", **arrow, "pid": event["pid"], "tid": event["tid"], "ts": event["ts"]})
        last[span["plan"], span["name"]] = event
    return arrows


def _memory(made: list[tuple[Json, Any]], data: Mapping[str, Any]) -> list[Json]:
    """The bytes that results of the replayed operations hold, as a counter: a result lives until its last reader ended."""
    sizes: dict[Any, int] = {}
    last_reader: dict[Any, Any] = {}
    for op in data["ops"]:
        sizes[op["plan"], op["name"]] = _bytes(op["shape"], op["dtype"])
        for source in op["inputs"]:
            last_reader[op["plan"], source] = op["plan"], op["name"]
    freed: dict[Any, int] = {}  # by whom
    for source, reader in last_reader.items():
        freed[reader] = freed.get(reader, 0) + sizes.get(source, 0)
    held, counters = 0, []
    for event, span in made:
        key = span["plan"], span["name"]
        held += sizes.get(key, 0)
        end = event["ts"] + event["dur"]
        counters.append({"ph": "C", "cat": "Memory", "name": "Memory", "pid": 0, "ts": end, "args": {"cpu": held}})
        held -= freed.get(key, 0) + (0 if key in last_reader else sizes.get(key, 0))  # unread results go to the caller
    return counters


def _bytes(shape: Iterable[int], dtype: str) -> int:
    try:
        return int(np.prod(list(shape), dtype=np.int64)) * np.dtype(dtype).itemsize
    except TypeError:
        return 0

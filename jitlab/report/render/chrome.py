"""The timeline, and its Chrome trace for any trace viewer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass

from . import wording

Json = dict[str, Any]

#: Which process of the trace a lane belongs to: the device computes, the comparison runs on NumPy, the compiler prepares.
DEVICES = {"compiled": "/device:CPU:0", "op by op": "/device:CPU:0 op by op", "compiling": "/host:jitlab"}

#: Spans that compute, and those that prepare; `statement` is Python's own.
WORK = ("op", "launch", "host", "kernel", "copy")
PREPARES = ("trace", "retrace", "capture", "passes", "planning", "codegen", "load")


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
                f"{name:<32}{units.duration(row.before) or '–':>10}{units.duration(row.after) or '–':>10}   {word}{percent}"
            )
        return "\n".join(line.rstrip() for line in lines)


class Timeline:
    """The spans of a report, lane by lane."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    @property
    def lanes(self) -> list[Json]:
        """Lanes as in docs/reference/report-format.md; times are microseconds."""
        return list(self._data["timeline"]["lanes"])

    def save(self, path: str | Path = "timeline.ctf.json") -> Path:
        """Write the Chrome trace; returns the path."""
        path = Path(path)
        path.write_text(json.dumps(self.to_chrome(), separators=(",", ":")), encoding="utf-8")
        return path

    def to_chrome(self) -> Json:
        """The object of a Chrome trace file: metadata events, then spans, arrows, tensors and the memory counter."""
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
                of = f"{span['kind']} {span.get('tier', '')}".strip() if span["kind"] in PREPARES else lane["name"]
                sums.setdefault(clean(f"{of}: {span['name']}"), []).append(span["duration"] / 1e6)
        return {name: sum(values) / len(values) for name, values in sums.items()}

    def __repr__(self) -> str:
        return "<Timeline: " + ", ".join(f"{lane['name']} {len(lane['spans'])} spans" for lane in self.lanes) + ">"


def chrome_events(data: Mapping[str, Any]) -> list[Json]:
    """All events of the trace; times are integer microseconds from the first span."""
    values = _Values(data)
    lanes = _processes(data["timeline"]["lanes"])
    names = {"Allocators": 0}
    for lane in lanes:
        first = DEVICES.get(lane["name"], lane["name"])
        for device in dict.fromkeys([first, *(values.device(lane, span) for span in lane["spans"])]):
            for process in (f"{device} Compute", f"{device} Tensors"):
                names.setdefault(process, len(names))
    metadata: list[Json] = [
        {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}} for name, pid in names.items()
    ]
    origin = min((lane.get("offset", 0.0) for lane in lanes), default=0.0)
    events: list[Json] = []
    for lane in lanes:
        made = _lane_events(lane, names, lane.get("offset", 0.0) - origin, values)
        events += [event for event, _ in made]
        events += _arrows(made, values, len(events))
        events += _memory(made, values, len(events))
    return metadata + events


class _Values:
    """What each operation and each cluster of a report reads and gives; keys are (plan, name)."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.ops: dict[Any, Json] = {(op["plan"], op["name"]): op for op in data["ops"]}
        self.inputs: dict[Any, list[str]] = {}
        self.results: dict[Any, list[str]] = {key: [key[1]] for key in self.ops}
        self._devices = {(c["plan"], c["name"]): c.get("device", "") for c in data["clusters"]}
        self._devices |= {key: op.get("device", "") for key, op in self.ops.items()}
        read: set[Any] = set()
        read_outside: set[Any] = set()
        for (plan, name), op in self.ops.items():
            self.inputs[plan, name] = list(op["inputs"])
            for source in op["inputs"]:
                read.add((plan, source))
                inside = self.ops.get((plan, source), {}).get("cluster")
                if op["cluster"] is None or inside != op["cluster"]:
                    read_outside.add((plan, source))
                    if op["cluster"] is not None:
                        reads = self.inputs.setdefault((plan, op["cluster"]), [])
                        reads += [source] if source not in reads else []
        for cluster in data["clusters"]:
            plan = cluster["plan"]
            top = [n for n in cluster["ops"] if "parent" not in self.ops.get((plan, n), {})]
            outer = [n for n in top if (plan, n) in read_outside or (plan, n) not in read]
            self.results[plan, cluster["name"]] = outer

    def device(self, lane: Mapping[str, Any], span: Mapping[str, Any]) -> str:
        """Where a span ran: the device its operation or cluster was placed on, else the lane's."""
        placed = str(self._devices.get((span["plan"], span["name"]), "")) if lane["name"] == "compiled" else ""
        found = re.search(r"(?:/device:|/)([A-Za-z_]+):(\d+)$", placed)
        return f"/device:{found[1].upper()}:{found[2]}" if found else DEVICES.get(lane["name"], lane["name"])


def _processes(lanes: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Lanes of a group are one process of the trace, in which each thread that compiles keeps rows of its own. A compiled
    cluster is one launch: kernels are left out."""
    merged: dict[str, Json] = {}
    for lane in lanes:
        if lane["name"] == "kernels":
            continue
        name = lane.get("group", lane["name"])
        one = merged.setdefault(name, {"name": name, "offset": lane.get("offset", 0.0), "spans": []})
        thread = lane["name"] if name == "compiling" else ""
        one["spans"] += [{**span, "thread": thread} for span in lane["spans"]]
    return list(merged.values())


def _lane_events(lane: Mapping[str, Any], names: Mapping[str, int], offset: float, values: _Values) -> list[tuple[Json, Any]]:
    """The "X" events of a lane with their spans; `tid` is the lowest row of the process that is free when the span starts, or
    on which one goes on that the span is part of."""
    rows: dict[int, list[tuple[str, list[int]]]] = {}  # of each row its thread, and when what goes on ends
    made = []
    for span in sorted(lane["spans"], key=lambda s: (s["start"], -s["duration"])):
        pid = names[f"{values.device(lane, span)} Compute"]
        free = rows.setdefault(pid, [])
        start, thread, nests = int(span["start"] + offset), span["thread"], span["kind"] in PREPARES
        end = int(span["start"] + offset + span["duration"]) if nests else start + round(span["duration"])
        end = max(start + 1, end)  # no part sticks out by what is rounded
        for _, ends in free:
            while ends and ends[-1] <= start:
                ends.pop()
        fits = (i for i, (own, ends) in enumerate(free) if own == thread and (not ends or (nests and end <= ends[-1])))
        row = next(fits, len(free))
        if row == len(free):
            free.append((thread, []))
        free[row][1].append(end)
        work = span["kind"] in WORK
        op = values.ops.get((span["plan"], span["name"]))
        kind = op["op"] if op is not None and span["kind"] in ("op", "host", "copy") else span["label"]
        args = {"name": span["name"], "op": kind}
        if work:
            args |= {f"input{i}": name for i, name in enumerate(values.inputs.get((span["plan"], span["name"]), ()))}
        event = {
            "ph": "X", "cat": "Op" if work else "Compile" if span["kind"] != "statement" else "Python",
            "name": kind, "pid": pid, "tid": row, "ts": start, "dur": end - start, "args": args,
        }  # fmt: skip
        made.append((event, span))
    return made


def _arrows(made: list[tuple[Json, Any]], values: _Values, first_id: int) -> list[Json]:
    """Data-flow arrows between spans of different rows: "s" at the producer's end, "t" at the consumer's start."""
    arrows: list[Json] = []
    last: dict[Any, Json] = {}  # the newest span that made a value
    for event, span in made:
        if span["kind"] not in WORK:
            continue
        plan = span["plan"]
        for name in values.inputs.get((plan, span["name"]), ()):
            producer = last.get((plan, name))
            if producer is not None and (producer["pid"], producer["tid"]) != (event["pid"], event["tid"]):
                arrow = {"name": name, "cat": "DataFlow", "id": first_id + len(arrows) // 2}
                end = producer["ts"] + producer["dur"]
                arrows.append({"ph": "s", **arrow, "pid": producer["pid"], "tid": producer["tid"], "ts": end})
                arrows.append({"ph": "t", **arrow, "pid": event["pid"], "tid": event["tid"], "ts": event["ts"]})
        last |= {(plan, name): event for name in values.results.get((plan, span["name"]), ())}
    return arrows


def _memory(made: list[tuple[Json, Any]], values: _Values, first_id: int) -> list[Json]:
    """What results hold: each is an object from its maker's start ("N", with a snapshot "O" when it is whole) to the end of
    its last reader ("D"), and a counter has the bytes of all. A result that nothing reads goes to the caller, and out of sight
    when its maker ends. A maker that runs again makes new objects."""
    newest: dict[Any, Json] = {}
    tensors: list[Json] = []
    for event, span in made:
        if span["kind"] not in WORK:
            continue
        plan, end = span["plan"], event["ts"] + event["dur"]
        for name in values.inputs.get((plan, span["name"]), ()):
            if (plan, name) in newest:
                newest[plan, name]["freed"] = max(end, newest[plan, name]["freed"])
        for name in values.results.get((plan, span["name"]), ()):
            op = values.ops.get((plan, name))
            if op is None:  # of a report that was cut
                continue
            tensors.append({"op": op, "pid": event["pid"] + 1, "made": event["ts"], "whole": end, "freed": end})
            newest[plan, name] = tensors[-1]
    events: list[Json] = []
    changes: list[tuple[int, int]] = []
    for number, tensor in enumerate(tensors, first_id):
        op = tensor["op"]
        size = wording.nbytes(op)
        common = {"cat": "Tensor", "name": op["name"], "pid": tensor["pid"], "tid": 0, "id": number}
        told = {"tensor_description": f"{op['dtype']}[{', '.join(map(str, op['shape']))}], {size} bytes"}
        events += [
            {"ph": "N", **common, "ts": tensor["made"]},
            {"ph": "O", **common, "ts": tensor["whole"] - 1, "args": {"snapshot": told}},
            {"ph": "D", **common, "ts": tensor["freed"]},
        ]
        changes += [(tensor["made"], size), (tensor["freed"], -size)]
    held = 0
    for time, change in sorted(changes):  # at one time memory is given back before it is taken
        held += change
        events.append({"ph": "C", "cat": "Memory", "name": "cpu", "pid": 0, "tid": 0, "ts": time, "args": {"cpu": held}})
    return events


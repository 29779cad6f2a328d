"""The timeline of a report: what a recording kept, as lanes. Lanes of a group have one axis, so that one piece of work lies
under another: what NumPy ran op by op; the compiled run with its launches, kernels, host operations and copies; what was made
for it. There a lane is a thread that traces: each trace, and within it its capture with the passes, its planning and its code.
What other threads compile has a lane for each tier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitlab.report.recording import Recording

    from .spans import Lane, Span
    from .titles import Titles

Json = dict[str, Any]

#: The lane of kernels on a GPU that the processor plays: these are no times of a GPU.
SIMULATED = "simulated GPU"

#: The lanes of a group and the spans that they take, by kind; what is in no lane is none.
LANES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "op by op": (("op by op", ("op",)),),
    "compiled": (
        ("compiled", ("launch",)), ("kernels", ("kernel",)), ("GPU", ()), (SIMULATED, ()),
        ("to GPU", ("to_gpu",)), ("to host", ("to_host",)),
        ("host", ("host", "statement")), ("copies", ("copy",)),
    ),
    "compiling": (("compiling", ("trace", "retrace", "capture", "passes", "planning")), ("codegen", ("codegen", "load"))),
}


def lanes(recording: Recording, data: Mapping[str, Any], titles: Titles) -> list[Json]:
    """The lanes that have spans. A group starts at its own first span, kept or not; `offset`: where in the recording.

    `data` is the report's. A launch that was timed kernel by kernel gives the lane `kernels` a span for each: the durations
    were measured, and they stand one after another from the launch's start, as they ran. Those of a GPU, whose times are its
    own, are in a lane `GPU` (or `simulated GPU`), up to the launch's end. A span has the name of its operation, kernel or
    cluster, where its lines are; only a statement, which has no such entry, has `lines` of its own.
    """
    of_cluster: dict[tuple[str, str], list[str]] = {}
    for kernel in data["kernels"]:
        of_cluster.setdefault((kernel["plan"], kernel["cluster"]), []).append(kernel["name"])
    said = {(op["plan"], op["name"]): op.get("written") or op["op"] for op in data["ops"]}
    retraced = {(entry["function"], entry["trace"]) for entry in data["retraces"] if not entry["first"]}
    made = []
    for group, parts in LANES.items():
        spans = recording.lanes[group]
        if not spans:
            continue
        start = spans.began
        assert start is not None
        sorted_out: dict[str, list[Json]] = {}
        lane_of = {kind: name for name, kinds in parts for kind in kinds}
        tracing: dict[int, str] = {}
        for span in spans if group != "compiling" else _nested(spans, recording, tracing):
            json = _span(span, start, titles)
            if json["kind"] in ("op", "host", "copy"):
                json["label"] = said.get((json["plan"], json["name"]), json["label"])
            if json["kind"] == "trace" and (titles.function(span.function), span.trace) in retraced:
                json["kind"] = "retrace"
            name = tracing.get(span.thread) or lane_of[span.kind]
            if name == "codegen" and span.tier:
                name = f"codegen {span.tier}"
            sorted_out.setdefault(name, []).append(json)
            names = of_cluster.get((json["plan"] or "", span.cluster or ""), ())
            if span.kernels_ns and len(names) == len(span.kernels_ns):
                launched = recording.launched.get((span.function, span.trace, str(span.cluster)), ())
                ran_in = ("GPU", SIMULATED)[launched[0]["simulated"]] if launched else "kernels"
                made_of = _kernels(json, names, span.kernels_ns, at_end=bool(launched))
                sorted_out.setdefault(ran_in, []).extend(made_of)
        order = [name for name, _ in parts]
        for name in sorted(sorted_out, key=lambda name: order.index(name if name in order else name.split()[0])):
            made.append(
                {
                    "name": name, "group": group, "offset": round((start - recording.start_ns) / 1e3, 3),
                    "dropped": spans.dropped if name == group else 0,
                    "busy": busy(sorted_out[name]) + _dropped(spans, name), "spans": sorted_out[name],
                }
            )  # fmt: skip
    return made


def _nested(spans: Iterable[Span], recording: Recording, tracing: dict[int, str]) -> Iterator[Span]:
    """Spans in the order they began, those of a trace after one of kind `trace` that lasts until its first call could run.
    `tracing` is given the lane of each thread that traces."""
    of_trace: dict[Any, list[Span]] = defaultdict(list)
    for span in spans:
        of_trace[span.thread, span.function, span.trace].append(span)
        if span.kind not in ("codegen", "load"):
            tracing.setdefault(span.thread, f"compiling {len(tracing) + 1}" if tracing else "compiling")
    found: dict[int, list[Span]] = defaultdict(list)
    for (thread, function, trace), parts in of_trace.items():
        call = recording.functions[function, trace].first_ns if (function, trace) in recording.functions else None
        wholes = [_whole(span, parts, call) for span in parts if span.kind == "capture"]
        found[thread] += [*wholes, *parts]
    for thread in found:
        yield from _cut_off(sorted(found[thread], key=lambda span: (span.start_ns, -span.duration_ns)))


def _whole(capture: Span, parts: Sequence[Span], call: tuple[int, int] | None) -> Span:
    """A trace: from its capture to the end of what its first call waited for."""
    begun, ended = call or (0, 0)
    end = max(_end(span) for span in parts if span is capture or begun <= span.start_ns < ended)
    return replace(capture, kind="trace", duration_ns=end - capture.start_ns)


def _cut_off(spans: Iterable[Span]) -> Iterator[Span]:
    """A trace whose capture lies within another one ends with that: who called it there runs it no more than that."""
    open_until: list[int] = []
    for span in spans:
        while open_until and open_until[-1] <= span.start_ns:
            open_until.pop()
        if open_until and span.kind == "trace" and _end(span) > open_until[-1]:
            span = replace(span, duration_ns=open_until[-1] - span.start_ns)
        open_until.append(_end(span))
        yield span


def _end(span: Span) -> int:
    return span.start_ns + span.duration_ns


def busy(spans: Sequence[Mapping[str, Any]]) -> float:
    """Microseconds in which something of a lane ran: what lies within another span counts once."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted((span["start"], span["start"] + span["duration"]) for span in spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return round(total, 3)


def _dropped(spans: Lane, name: str) -> float:
    """Microseconds of what was not kept; it is known of launches and their kernels."""
    times = {"op by op": spans.dropped_ns, "compiled": spans.dropped_ns, "kernels": spans.dropped_kernels_ns}
    return round(times.get(name, 0) / 1e3, 3)


def _kernels(launch: Json, names: Sequence[str], times: Sequence[int], *, at_end: bool) -> list[Json]:
    """`at_end`: they ended with the launch, which had enqueued them before; else they began with it."""
    start, made = launch["start"], []
    if at_end:
        start += max(launch["duration"] - sum(times) / 1e3, 0.0)
    for name, ns in zip(names, times, strict=True):
        duration = round(ns / 1e3, 3)
        if duration <= 0:  # too short for the clock: its time is not known
            continue
        made.append(launch | {"name": name, "label": name, "kind": "kernel", "start": round(start, 3), "duration": duration})
        start += duration
    return made


def _span(span: Span, start_ns: int, titles: Titles) -> Json:
    name = span.name or titles.trace(span.function, span.trace)
    json: Json = {
        "name": name, "label": name if span.kind == "trace" else span.label, "kind": span.kind,
        "start": round((span.start_ns - start_ns) / 1e3, 3), "duration": round(span.duration_ns / 1e3, 3),
        "cluster": span.cluster, "plan": titles.plan(span.function, span.trace, span.cluster) if span.function else None,
    }  # fmt: skip
    if span.bytes:
        json["bytes"] = span.bytes
    if span.enqueued_ns:
        json["enqueued"] = round(span.enqueued_ns / 1e3, 3)
    if span.tier:
        json["tier"] = span.tier
    if span.lines:
        json["lines"] = sorted({line for _, line, *_ in span.lines})
    return json

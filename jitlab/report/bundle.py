"""What stands in the notebook: the report's JSON, its picture as HTML, its text. Within a size, the most telling first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jitlab.config import config

from .report import MIME
from .summary import slowest

if TYPE_CHECKING:
    from .report import Report

LISTS = (
    "ops", "boundaries", "retraces", "variants", "fallbacks", "statements", "frozen", "loops", "copies", "temporaries",
    "kernels", "clusters", "activity",
)  # fmt: skip


def bundle(report: Report) -> dict[str, Any]:
    """All forms of a report that a notebook keeps, together at most `config.saved_bytes`."""
    svg, text = report.to_svg(), str(report)
    room = config.saved_bytes - len(svg.encode()) - len(text.encode()) - 1000
    return {MIME: fitted(report.data, room), "text/html": svg, "text/plain": text}


def fitted(data: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The report with as much detail as `room` bytes of JSON hold; `omitted` counts what was left out."""
    fitting = dict(data)
    weights = {key: _weight(value) for key, value in data.items()}
    omitted: dict[str, int] = {}

    def put(key: str, value: Any) -> None:
        fitting[key], weights[key] = value, _weight(value)

    lists = [key for key in LISTS if key in data]
    for keep in (1000, 300, 100, 30, 10, 0):
        for key in lists:
            if sum(weights.values()) > room and len(fitting[key]) > keep:
                omitted[key] = len(data[key]) - keep
                put(key, slowest(data[key], keep))
            if sum(weights.values()) > room and any(len(lane["spans"]) > keep for lane in fitting["timeline"]["lanes"]):
                put("timeline", {"lanes": [_last_spans(lane, keep) for lane in data["timeline"]["lanes"]]})
    if sum(weights.values()) > room:
        kept = {cluster["plan"] for cluster in fitting["clusters"]}
        put("plans", [plan for plan in data["plans"] if plan["name"] in kept][-30:])
        put("cell", {**data["cell"], "source": []})
    if omitted:
        fitting["omitted"] = omitted
    return fitting


def _weight(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) + 32


def _last_spans(lane: Mapping[str, Any], keep: int) -> dict[str, Any]:
    spans = lane["spans"][-keep:]
    return {**lane, "spans": spans, "dropped": lane.get("dropped", 0) + len(lane["spans"]) - len(spans)}

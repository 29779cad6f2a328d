"""What stands in the notebook: the report's JSON, its picture as HTML, its text. Within a size, the most telling first."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from jitlab.config import config

from .origin import run_text
from .report import MIME
from .summary import heavier, shortened, slowest, summarised
from .svg import MOST_BYTES, report_svg

if TYPE_CHECKING:
    from .report import Report

LISTS = (
    "ops", "boundaries", "retraces", "variants", "fallbacks", "statements", "frozen", "loops", "copies", "temporaries",
    "kernels", "clusters", "activity",
)  # fmt: skip

SUMMARY_OPS = 2000  # from so many operations on there is a summary
MOST_EDGES = 200
MOST_KERNELS = 100  # of a report that is cut
DEPTH = 10  # of a report's items in a notebook file


def bundle(report: Report) -> dict[str, Any]:
    """All forms of a report that a notebook keeps, together at most `config.saved_bytes` of its file."""
    text = str(report)
    html = saved_html(report_svg(report.data, min(MOST_BYTES, config.saved_bytes // 4)), text, run_text(report.data))
    room = config.saved_bytes - _weight(html) - 2 * _weight(text) - 1500
    return {MIME: fitted(report.data, room), "text/html": html, "text/plain": text}


def saved_html(svg: str, text: str, run: str = "") -> str:
    """The picture as an image, of which run it is, and the text. GitHub takes an `<svg>` out of a notebook's HTML, and
    JupyterLab out of that of a notebook nobody trusts; both keep an image of data, in which nothing can run. Sources:
    IRkernel/IRkernel#145, activeviam/atoti-notebooks#425, `allowedSchemesByTag` of JupyterLab's sanitizer."""
    size = re.match(r'<svg[^>]* width="(\d+)" height="(\d+)"[^>]* aria-label="([^"]*)"', svg)
    assert size is not None
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<img width="{size[1]}" height="{size[2]}" alt="{size[3]}" src="data:image/svg+xml;base64,{data}">\n'
        + (f"<p>{escape(run, quote=False)}</p>\n" if run else "")
        + f"<details><summary>The same as text</summary>\n<pre>{escape(text, quote=False)}</pre>\n</details>"
    )


def fitted(data: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The report with as much detail as `room` bytes of JSON hold. Long lists of names become short, then what takes most is
    halved, the slowest and heaviest stay; `omitted` counts what was left out, `summary` how much there is of everything."""
    lists = {key: list(data[key]) for key in LISTS if key in data}
    lanes = [dict(lane) for lane in data["timeline"]["lanes"]]
    kept = dict(data)
    weights = {key: _weight(value) for key, value in data.items()}
    if sum(weights.values()) <= room:
        return kept
    counts = summarised(data, 0)["summary"] if len(lists["ops"]) > SUMMARY_OPS else None
    if counts is not None:
        kept["summary"] = counts | {key: counts[key][:MOST_EDGES] for key in ("edges", "temporaries")}
        weights["summary"] = _weight(kept["summary"])
    lists["kernels"] = [shortened(entry) for entry in slowest(lists["kernels"], MOST_KERNELS)]
    lists["clusters"] = _with_kernels(lists["clusters"], lists["kernels"])
    for key in ("kernels", "clusters"):
        kept[key], weights[key] = lists[key], _weight(lists[key])
    while sum(weights.values()) > room:
        several = [key for key in lists if len(lists[key]) > 1]  # the last of a list goes when nothing else is left
        heaviest = max(several or [key for key in lists if lists[key]], key=lambda key: weights[key], default="")
        spans = max((len(lane["spans"]) for lane in lanes), default=0)
        if spans and (not heaviest or weights["timeline"] >= weights[heaviest]):
            lanes = [_longest_spans(lane, spans // 2) for lane in lanes]
            kept["timeline"] = {**data["timeline"], "lanes": lanes}
            weights["timeline"] = _weight(kept["timeline"])
        elif heaviest:
            half = len(lists[heaviest]) // 2
            chosen = (
                heavier(lists[heaviest], half) if heaviest in ("boundaries", "temporaries") else slowest(lists[heaviest], half)
            )
            kept[heaviest] = lists[heaviest] = chosen
            weights[heaviest] = _weight(chosen)
            if heaviest == "kernels":  # their clusters name them
                kept["clusters"] = lists["clusters"] = _with_kernels(lists["clusters"], chosen)
                weights["clusters"] = _weight(lists["clusters"])
        else:
            break
    for key, least in (("sources", []), ("plans", data["plans"][-30:]), ("cell", {**data["cell"], "source": []})):
        if sum(weights.values()) > room and key in data:
            kept[key], weights[key] = least, _weight(least)
    omitted = {key: len(data[key]) - len(lists[key]) for key in lists if len(lists[key]) < len(data[key])}
    return {**kept, "omitted": omitted} if omitted else kept


def _with_kernels(clusters: list[Any], kernels: list[Any]) -> list[Any]:
    """The clusters with the first of their operations' names and with the names of the kernels that are there."""
    sent = {(kernel.get("plan"), kernel["cluster"], kernel["name"]) for kernel in kernels}
    return [shortened(entry, sent) for entry in clusters]


def _weight(value: Any) -> int:
    """About the bytes in the notebook file, which has a line for each item, indented; rather too many."""
    text = json.dumps(value, ensure_ascii=False, separators=(",\n", ": "))
    lines = text.count(",\n") + 2 * (text.count("[") + text.count("{"))
    return len(text.encode("utf-8", "backslashreplace")) + DEPTH * lines + 32


def _longest_spans(lane: Mapping[str, Any], keep: int) -> dict[str, Any]:
    spans = lane["spans"]
    order = sorted(range(len(spans)), key=lambda i: (-spans[i]["duration"], i))
    chosen = [spans[i] for i in sorted(order[:keep])]
    return {**lane, "spans": chosen, "dropped": lane.get("dropped", 0) + len(spans) - len(chosen)}

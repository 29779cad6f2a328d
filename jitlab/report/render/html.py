"""The report as one HTML file that needs nothing else: the panel's own views, drawn by the panel's own script from the data in
the file. Where scripts are blocked, the picture and the tables stand. No other script can run in it: the page allows this one
by its hash, so a name that holds markup stays a name."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.build.lines import Line, line_costs
from jitlab.report.origin import run_text

from . import wording
from .svg import report_svg
from .text import report_text

STYLE = """
:root{color-scheme:light dark;--text:#1f1f1f;--muted:#5a5a5a;--ground:#fff;--line:#d0d0d0;--sunk:#f5f5f5}
@media (prefers-color-scheme:dark){:root{--text:#f1f1f1;--muted:#b8b8b8;--ground:#181818;--line:#444;--sunk:#242424}}
html{overflow-y:scroll}body{margin:24px auto;max-width:1100px;padding:0 16px;font:13px/1.45 system-ui,sans-serif}
body{color:var(--text);background:var(--ground)}
svg{max-width:100%;height:auto}h1{font-size:18px}summary{cursor:pointer;font-weight:600;padding:4px 0;margin-top:12px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:3px 10px 3px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--muted);font-weight:600}td.n,th.n{text-align:right}
pre{background:var(--sunk);padding:10px;overflow-x:auto;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace}
.wide{overflow-x:auto}.jl-scripted .jl-still{display:none}#jl-live{margin-bottom:16px}
#jl-live .jl-output{max-width:none}#jl-live .jl-what-if,#jl-live .jl-compare{display:none}
"""
#: Costs stand in a column behind the source, lines that are longer push their own away.
WIDEST = 100
#: A text that is longer is folded at first.
LONG = 5000
#: What a page can't have: its answers come from the kernel that ran the cell.
LIVE = "What-if and Compare need the kernel: they are in the jitlab panel beside the live notebook."
STATIC = Path(__file__).parents[2] / "static"


def report_html(data: Mapping[str, Any], texts: Mapping[tuple[str, str], str], notebook: str = "") -> str:
    """Picture, tables, source, the texts of each cluster's stages, and the data. The title begins with `notebook`, its file's
    name, where it is known."""
    title = _e(", ".join(filter(None, (notebook, data["cell"].get("title") or "jitlab report"))))
    parts = [
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">',
        f"<title>{title}: {_e(data['verdict']['lead'])}</title><style>{STYLE}{_style()}</style></head><body>",
        f"<h1>{title}</h1>", '<div id="jl-live"></div>', f'<div class="wide jl-still">{report_svg(data)}</div>',
    ]  # fmt: skip
    parts += _sources(data)
    tables = (
        _clusters(data), _kernels(data), _retraces(data), _fallbacks(data), _loops(data), _boundaries(data), _copies(data),
        _temporaries(data), _numerics(data), _ops(data),
    )  # fmt: skip
    parts += [_section(heading, body) for heading, body in tables if body]
    names: dict[tuple[str, str], list[str]] = {}  # the same code is shown once, whatever clusters it is of
    for (name, stage), text in texts.items():
        names.setdefault((stage, text), []).append(name)
    for (stage, text), clusters in names.items():
        shown = "\n".join(clean(line) for line in text.split("\n"))
        heading = f"{', '.join(clusters)}: {stage}"
        parts.append(_section(heading, f"<pre>{escape(shown)}</pre>", is_open=len(text) <= LONG))
    parts.append(_section("As text", f"<pre>{escape(report_text(data))}</pre>"))
    if run_text(data):
        parts.append(f'<p class="jl-still">{_e(run_text(data))}</p>')  # where the views are drawn, they say it
    parts.append(f"<p>{LIVE}</p>")
    parts.append(f'<script type="application/vnd.jitlab.report+json">{embedded(data)}</script>')
    if script():
        parts.append(f"<script>{script()}</script>")
    parts.append("</body></html>")
    return "\n".join(parts)


@cache
def script() -> str:
    """The renderer as it was built with the package; "" in a checkout in which it was not."""
    return _built("html.js")


def _style() -> str:
    return _built("widget.css") if script() else ""


def _policy() -> str:
    """Nothing is loaded and nothing runs but the renderer, which may start its layout in a worker of its own."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if script():
        digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'; worker-src blob:"
    return policy


def _built(name: str) -> str:
    path = STATIC / name
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that can't end the element it stands in, nor open a comment."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _sources(data: Mapping[str, Any]) -> list[str]:
    """The program with what its lines cost, a section for each file; of a report without it the cell as it was written."""
    files: dict[str, list[Line]] = {}
    for line in line_costs(data):
        files.setdefault(line.file, []).append(line)
    if not files:
        written = (clean(line.expandtabs(4)) for line in data["cell"].get("source") or ())
        files[""] = [Line("", i, text, "") for i, text in enumerate(written, 1)]
    sections = []
    for file, lines in files.items():
        rows = [(f"{line.line:>4}  {line.text}", line.cost) for line in lines]
        wide = min(max((len(text) for text, _ in rows), default=0), WIDEST)
        shown = "\n".join(f"{text:<{wide}}   {cost}".rstrip() for text, cost in rows)
        heading = "Source" if len(files) == 1 else f"Source: {wording.short_file(file)}"
        sections += [_section(heading, f"<pre>{escape(shown)}</pre>")] if rows else []
    return sections


def _section(heading: str, body: str, is_open: bool = True) -> str:
    return f"<details{' open' if is_open else ''}><summary>{_e(heading)}</summary>{body}</details>"


#: Columns of sentences: all else is told as it is.
IN_WORDS = frozenset({"why", "why not", "would fuse", "would compile if"})


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    rows = list(rows)
    if not rows:
        return ""
    numeric = [
        all(value is None or isinstance(value, (int, float)) or _measure(value) for value in column)
        for column in zip(*rows, strict=True)
    ]
    mark = ['class="n"' if n else "" for n in numeric]
    head = "".join(f"<th {m}>{_e(text)}</th>" for m, text in zip(mark, heads, strict=True))
    columns = list(zip(mark, (_coded if name in IN_WORDS else _e for name in heads), strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td {m}>{e('' if v is None else v)}</td>" for (m, e), v in zip(columns, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _measure(value: Any) -> bool:
    """A duration or a size: a number with its unit."""
    number, _, unit = str(value).partition(" ")
    return value == "" or (
        unit in ("M", "G", "T", "ns", "µs", "ms", "s", "B", "kB", "MB", "GB", "TB", "%") and number[:1].isdigit()
    )


def _clusters(data: Mapping[str, Any]) -> tuple[str, str]:
    heads = ("cluster", "plan", "lines", "operations", "kernels", "calls", "time", "reads", "writes", "why")
    return "Clusters", _table(heads, (
        (c["name"], c["plan"], _lines(c), len(c["ops"]), len(c["kernels"]), c["calls"], units.duration(c["seconds"]),
         units.size(c["bytes_read"]), units.size(c["bytes_written"]), c["reason"]["text"])
        for c in data["clusters"]
    ))  # fmt: skip


def _kernels(data: Mapping[str, Any]) -> tuple[str, str]:
    heads = ("kernel", "cluster", "lines", "operations", "calls", "time", "predicted", "reads", "writes", "flops", "bound")
    return "Kernels", _table(heads, (
        (k["name"], k["cluster"], _lines(k), " ".join(k["ops"]), k["calls"], units.duration(k["seconds"]),
         units.duration(k.get("predicted")), units.size(k["bytes_read"]), units.size(k["bytes_written"]),
         units.amount(k["flops"]), wording.bound_text(k))
        for k in data["kernels"]
    ))  # fmt: skip


def _retraces(data: Mapping[str, Any]) -> tuple[str, str]:
    heads = ("trace", "cause", "what", "lines", "time", "calls", "try")
    return "Traces", _table(heads, (
        (f"{r['function']} #{r['trace']}", wording.cause_text(r["cause"], r["before"]), r["text"], _lines(r),
         units.duration(r["seconds"]), r["calls"], r["fix"] and r["fix"]["text"])
        for r in data["retraces"]
    ))  # fmt: skip


def _fallbacks(data: Mapping[str, Any]) -> tuple[str, str]:
    rows = [
        (wording.written(f), _lines(f), f["reason"]["text"] if f["reason"] else "", f["calls"], units.duration(f["seconds"]))
        for f in data["fallbacks"]
    ]
    rows += [
        (s["text"].split("\n", 1)[0], _lines(s), s["reason"]["text"], s["calls"], units.duration(s["seconds"]))
        for s in data.get("statements", ())
    ]
    rows += [
        (f"{a['function']}, this run", _lines(a), a["text"], a["calls"], units.duration(a["seconds"]))
        for a in data.get("as_python", ())
    ]
    return "Run by NumPy", _table(("what", "lines", "why", "calls", "time"), rows)


def _loops(data: Mapping[str, Any]) -> tuple[str, str]:
    return "Loops run iteration by iteration", _table(("loop", "lines", "iterations", "why"), (
        (loop["text"], _lines(loop), loop["iterations"], loop["reason"]["text"]) for loop in data.get("loops", ())
    ))  # fmt: skip


def _copies(data: Mapping[str, Any]) -> tuple[str, str]:
    ops = wording.operations(data)
    return "Copies", _table(("of", "cluster", "why", "bytes"), (
        (_said(ops, c["plan"], c["node"]), c["cluster"], c["reason"]["text"], units.size(c["bytes"]))
        for c in data.get("copies", ())
    ))  # fmt: skip


def _temporaries(data: Mapping[str, Any]) -> tuple[str, str]:
    """Those that the verdict counts, and how many values beside them reach memory: small ones, and what other traces store."""
    heads = ("value", "plan", "cluster", "lines", "read by", "bytes a call", "why")
    ops = wording.operations(data)
    every = data.get("temporaries", ())
    counted = sorted((t for t in every if t.get("counted")), key=lambda t: -t["bytes"])
    left = len(every) - len(counted)
    rest = [(f"and {units.counted(left, 'smaller one')}", "", "", "", "", "", "")] if left else []
    return "Intermediate arrays that are stored", _table(heads, [*(
        (_said(ops, t["plan"], t["producer"]) + t["name"].removeprefix(t["producer"]), t["plan"], t["cluster"], _lines(t),
         ", ".join(_said(ops, t["plan"], name) for name in t["consumers"]), units.size(t["bytes"]),
         t["reason"]["text"])
        for t in counted
    ), *rest])  # fmt: skip


def _numerics(data: Mapping[str, Any]) -> tuple[str, str]:
    heads = ("output", "plan", "cluster", "lines", "off by at most", "ULP nearest to the bound", "allowed there", "", "why")
    return "Beside NumPy", _table(heads, (
        (n["output"], n["plan"], n["cluster"], _lines(n), units.figure(n["max_abs"]),
         units.figure(n["nearest"]["ulp"] if n.get("nearest") else n["max_ulp"]), units.figure(n["bound_ulp"]),
         "within" if n["ok"] else "OUT OF BOUNDS", n["guilty"]["text"] if n["guilty"] else n.get("note", ""))
        for n in data.get("numerics", ())
    ))  # fmt: skip


def _boundaries(data: Mapping[str, Any]) -> tuple[str, str]:
    """A row an edge, one for all that are told together, and how many smaller ones there are."""
    ops = wording.operations(data)
    rows: dict[Any, tuple[str, str, str, str, str]] = {}
    small = 0
    for n, b in enumerate(data["boundaries"]):
        if told := b.get("told"):
            cluster = ops.get((b["plan"], b["producer"]), {}).get("cluster")
            rows.setdefault((b["plan"], cluster, told), ("", "", told, "", ""))
        elif b.get("small"):
            small += 1
        else:
            ends = (_said(ops, b["plan"], b[end]) for end in ("producer", "consumer"))
            flip = "" if wording.flips_for_nothing(b) or not b["flip"] else wording.flip_text(b["flip"]["text"])
            rows[n] = (*ends, b["reason"]["text"], units.size(b["bytes"]), flip)
    if small:
        rows["small"] = ("", "", f"and {units.counted(small, 'smaller value')} between kernels", "", "")
    return "Not fused", _table(("from", "to", "why", "bytes", "would fuse"), rows.values())


def _ops(data: Mapping[str, Any]) -> tuple[str, str]:
    heads = (
        "in the program", "value", "operation", "name", "plan", "cluster", "kernel", "lines", "type", "why not",
        "would compile if",
    )  # fmt: skip
    return "Operations", _table(heads, (
        (wording.written(o), o.get("called") or "", o["op"], o["name"], o["plan"], o["cluster"], o["kernel"], _lines(o),
         f"{o['dtype']}[{', '.join(map(str, o['shape']))}]", o["reason"]["text"] if o["reason"] else "",
         o["flip"]["text"] if o.get("flip") else "")
        for o in data["ops"][:5000]
    ))  # fmt: skip


def _said(ops: Mapping[tuple[str, str], Mapping[str, Any]], plan: str, name: str) -> str:
    return wording.operation_text(ops.get((plan, name)), name)


def _lines(entry: Mapping[str, Any]) -> str:
    numbers = entry["lines"]
    if numbers and not isinstance(numbers[0], int):
        numbers = wording.numbers_of(numbers)
    return wording.line_text(numbers)


def _e(value: Any) -> str:
    return escape(clean(value), quote=True)


def _coded(value: Any) -> str:
    """As `_e`; words of the program, which have marks around them, as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", _e(value))

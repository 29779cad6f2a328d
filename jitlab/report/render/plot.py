"""Kernels as a plotly Figure: time, bytes and roofline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.build import build_report
from jitlab.targets.target import Peaks

from . import wording
from .graphviz_dot import HOST, LINES
from .marks import kernel_colors

#: A figure knows nothing of the page's theme: it shows the page's ground, and its ink reads on white (4.5:1) and #111 (4.2:1).
INK, RULE, CLEAR = "#767676", "rgba(128, 128, 128, 0.25)", "rgba(0, 0, 0, 0)"
PEAKS = ("bytes_per_second", "flops_per_second")


def report_figure(data: Mapping[str, Any]) -> Any:
    """Three charts side by side; a kernel that was not timed has bytes but no bar and no point."""
    from plotly.subplots import make_subplots

    titles = ("Time", "Bytes moved a call", "Operations a second")
    figure = make_subplots(1, 3, subplot_titles=titles, horizontal_spacing=0.08)
    colors = {key: LINES[color] for key, color in kernel_colors(data["clusters"]).items()}
    unique = len({kernel["name"] for kernel in data["kernels"]}) == len(data["kernels"])
    rows = [
        _row(kernel, colors, kernel["name"] if unique else f"{kernel['cluster']} {kernel['name']}")
        for kernel in data["kernels"]
    ]
    hosts = [f for f in data["fallbacks"] if f["seconds"] is not None]
    timed = [row for row in rows if row["seconds"] is not None]
    names = [row["name"] for row in timed] + [_text(f"{wording.written(f)} (NumPy)") for f in hosts]
    times = [row["seconds"] * 1e3 for row in timed] + [f["seconds"] * 1e3 for f in hosts]
    fills = [row["color"] for row in timed] + [HOST] * len(hosts)
    figure.add_bar(x=names, y=times, marker_color=fills, name="time", showlegend=False, row=1, col=1)
    for key, lines in (("bytes_read", ""), ("bytes_written", "/")):
        figure.add_bar(
            x=[row["name"] for row in rows], y=[row[key] for row in rows], name=key.replace("_", " "), row=1, col=2,
            marker={"color": [row["color"] for row in rows], "pattern": {"shape": lines, "fgcolor": "white"}},
        )  # fmt: skip
    known = data.get("peaks")
    peaks = Peaks(**{name: float(known[name]) for name in PEAKS}) if known else build_report.measured_peaks()
    points = [row for row in timed if row["intensity"] and row["seconds"]]
    figure.add_scatter(
        x=[row["intensity"] for row in points], y=[row["rate"] for row in points], mode="markers+text", name="kernels",
        text=[_above(row, peaks) for row in points], textposition="top center", showlegend=False,
        marker={"color": [row["color"] for row in points]},
        cliponaxis=False, row=1, col=3,
    )  # fmt: skip
    if peaks is not None:
        knee = peaks.flops_per_second / peaks.bytes_per_second
        low = min([row["intensity"] for row in points] + [knee]) / 10
        high = max([row["intensity"] for row in points] + [knee]) * 10
        figure.add_scatter(
            x=[low, knee, high], y=[low * peaks.bytes_per_second, peaks.flops_per_second, peaks.flops_per_second],
            mode="lines", line={"dash": "dash", "color": INK}, row=1, col=3,
            name=f"this machine: {units.size(peaks.bytes_per_second)}/s of memory, {peaks.flops_per_second / 1e9:.0f} GFLOP/s",
        )  # fmt: skip
    figure.update_xaxes(title_text="operations a byte", type="log", dtick=1, row=1, col=3)
    figure.update_annotations(font_size=13)
    figure.update_yaxes(ticksuffix=" ms", row=1, col=1)
    figure.update_yaxes(tickformat="~s", ticksuffix="B", row=1, col=2)
    figure.update_yaxes(type="log", dtick=1, tickformat="~s", ticksuffix="FLOP/s", row=1, col=3)
    title = _text(clean(data["verdict"]["lead"]))
    margin = {"l": 50, "r": 20, "t": 80, "b": 45}
    figure.update_layout(
        barmode="stack", height=380, template="plotly_white", title=title, margin=margin,
        legend={"orientation": "h", "y": -0.25}, paper_bgcolor=CLEAR, plot_bgcolor=CLEAR, font_color=INK,
    )  # fmt: skip
    figure.update_traces(marker_line_width=0, selector={"type": "bar"})
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(gridcolor=RULE, zerolinecolor=RULE)
    return figure


def _row(kernel: Mapping[str, Any], colors: Mapping[tuple[str, str], str], name: str) -> dict[str, Any]:
    moved = kernel["bytes_read"] + kernel["bytes_written"]
    seconds = kernel["seconds"]
    return {
        "name": _text(name), "color": colors.get((kernel["cluster"], kernel["name"]), LINES[0]),
        "seconds": seconds, "bytes_read": kernel["bytes_read"], "bytes_written": kernel["bytes_written"],
        "intensity": kernel["flops"] / moved if moved else None,
        "rate": kernel["flops"] * kernel["calls"] / seconds if seconds else None,
    }  # fmt: skip


def _above(row: Mapping[str, Any], peaks: Peaks | None) -> str:
    """What stands above a kernel's mark: one that is faster than memory lets it be works in the caches."""
    roof = peaks and min(row["intensity"] * peaks.bytes_per_second, peaks.flops_per_second)
    return f"{row['name']}, in cache" if roof and row["rate"] > roof else str(row["name"])


def _text(text: str) -> str:
    """plotly reads a small HTML in its texts: user text must not."""
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

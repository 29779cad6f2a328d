"""The saved picture: an SVG of attributes only (no script, class, variable, foreignObject or pattern), on its own ground.

The light form stands in the attributes; one style element recolours it where the reader prefers dark, and nothing is lost
when a sanitiser strips that.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.build.lines import in_words

from . import wording
from .outline import PARTS, Box, Outline, RetraceRow, outline, within

WIDTH = 760
MARGIN = 16
MIDDLE = 452  # the left column ends 16 before, the right one begins 8 after
MOST_BYTES = 40_000
FITTED = 60  # text that is wider takes the room it was measured to take, whatever font the reader has
MOST_NESTS = 4  # shown of a loop
STEP = 5.0  # between the lines of a pattern

GROUND, TEXT, MUTED, LINE = "#ffffff", "#1f1f1f", "#5a5a5a", "#767676"
CLUSTERS = ("#0067a5", "#007a5a", "#8a6500", "#5a50b0", "#4b6a7c", "#7a5230")
HOST, RETRACE, COMPILE = "#b04300", "#a3176d", "#6b6b6b"
DARK = {
    GROUND: "#212121", TEXT: "#f1f1f1", MUTED: "#b8b8b8", LINE: "#8a8a8a",
    HOST: "#ff9d57", RETRACE: "#ff8ac4", COMPILE: "#a8a8a8",
    "#0067a5": "#62b4f5", "#007a5a": "#45c7a1", "#8a6500": "#d9b44a",
    "#5a50b0": "#a9a2f5", "#4b6a7c": "#9ab6c6", "#7a5230": "#d0a37c",
}  # fmt: skip

#: Widths of Helvetica's ASCII, in thousandths of the size, from space on.
_WIDTHS = [
    int(w)
    for w in (
        "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 "
        "556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 "
        "667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 "
        "556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
    ).split()
]


def report_svg(data: Mapping[str, Any], most_bytes: int = MOST_BYTES) -> str:
    """The picture of a report, at most 40 kB: of very large ones the slowest boxes and kernels, the longest spans."""
    limits = (110, 12, 6, 24), (50, 12, 4, 12), (30, 8, 3, 8), (10, 4, 2, 4), (1, 1, 1, 1)
    return within(most_bytes, limits, lambda bars, *most: _picture(outline(data, *most), data, bars))


def _picture(o: Outline, data: Mapping[str, Any], bars: int) -> str:
    draw = Drawing()
    first, *others = o.heads
    draw.text(MARGIN, 24, first, size=15, bold=True, room=WIDTH - 2 * MARGIN)
    error = data["cell"].get("error")
    slow = data["verdict"].get("slowest")
    facts = [_moved(data), f"slowest: {clean(in_words(slow))}" if slow else ""]
    facts.append(f"stopped by {clean(error)}" if error else "")
    top = 42
    for text in filter(None, (*others, " · ".join(filter(None, facts)))):
        draw.text(MARGIN, top, text, fill=MUTED, room=WIDTH - 2 * MARGIN)
        top += 16
    shown = data.get("show", PARTS)
    left = _boxes(draw, o, top) if "graph" in shown else top - 12
    right = _lanes(draw, o, top, bars) if "timeline" in shown else top
    right = _retraces(draw, o, right) if "retraces" in shown else right
    right = _next(draw, o, right)
    label = ". ".join(o.heads) + (f". {wording.unmarked(clean(o.next['text']))}" if o.next else "")
    return draw.done(max(left, right) + 14, label)


def _boxes(draw: Drawing, o: Outline, y: float) -> float:
    """The run as a spine of boxes in program order, with what goes from one to the next on the arrow between them."""
    if not o.boxes:
        draw.text(MARGIN, y + 16, "No NumPy operation was found here.", fill=MUTED)
        return y + 24
    for i, box in enumerate(o.boxes):
        if box.heading:
            draw.text(MARGIN, y + 12, box.heading, size=11, fill=MUTED, room=MIDDLE - 40)
            y += 18
        y = _box(draw, box, y)
        if i + 1 < len(o.boxes):
            if box.edge:
                draw.path(f"M36 {y + 1}v14m-3 -4l3 4l3 -4", LINE)
                draw.text(46, y + 13, box.edge, size=11, fill=MUTED, room=MIDDLE - 80)
            y += 18 if box.edge else 8
    if o.hidden:
        draw.text(MARGIN, y + 18, f"… and {o.hidden} more, each faster than these", size=11, fill=MUTED)
        y += 24
    return y


def _box(draw: Drawing, box: Box, y: float) -> float:
    right = MIDDLE - 24
    kernels = set() if box.is_given_up else {kernel.color for kernel in box.kernels}
    kind = "given up" if box.is_given_up else box.kind
    color = CLUSTERS[box.color % 6] if kind == "cluster" else HOST if kind == "host" else LINE
    color = LINE if len(kernels) > 1 else color
    rows: list[tuple[str, Any]] = [("why", box.why)] if box.why else []
    for kernel in box.kernels:
        shown = kernel.cuts[:2]
        rows += [("cut", cut) for cut in shown]
        if len(kernel.cuts) > 2:
            rows.append(("more", f"and {units.counted(len(kernel.cuts) - 2, 'more value')} not fused"))
        rows.append(("kernel", kernel))
        for nest in kernel.inside[:MOST_NESTS]:
            rows += [("cut", cut) for cut in nest.cuts[:1]]
            rows.append(("nest", nest))
        if len(kernel.inside) > MOST_NESTS:
            rows.append(("more", f"and {units.counted(len(kernel.inside) - MOST_NESTS, 'more nest')} inside"))
    if box.more_kernels:
        rows.append(("more", f"… and {units.counted(box.more_kernels, 'more kernel')}, each faster than these"))
    height = 26 + sum(17 if kind == "kernel" else 15 for kind, _ in rows) + (3 if rows else 0)
    draw.rect(16.5, y + 0.5, MIDDLE - 32, height, stroke=color)
    if len(kernels) > 1:  # each kernel has the part of the band that it has of the operations
        at, part = y + 1, (height - 1) / sum(len(kernel.ops) or 1 for kernel in box.kernels)
        for kernel in box.kernels:
            high = part * (len(kernel.ops) or 1)
            draw.selvage(17, at, 6, high, kernel.color, CLUSTERS[kernel.color % 6])
            at += high
    else:
        draw.selvage(17, y + 1, 6, height - 1, box.color if kind == "cluster" else -1, color)
    time = units.duration(box.seconds)
    draw.text(right, y + 17, time, bold=True, anchor="end")
    name = f"{box.count} × {box.name}" if box.count > 1 else box.name
    room = right - 32 - width(time, 12, bold=True) - 12
    name = cut(name, 12, room, bold=True)
    draw.text(32, y + 17, name, bold=True)
    where = {"host": "NumPy", "statement": "Python", "given up": "results not used"}.get(kind, "")
    after = 32 + width(name, 12, bold=True) * 1.06 + 10
    facts = " · ".join(filter(None, (where, box.lines, box.scope, wording.calls_text(box.calls, box.seconds))))
    draw.text(after, y + 17, facts, size=11, fill=MUTED, room=right - after - width(time, 12, bold=True) - 10)
    yy = y + 34
    for kind, row in rows:
        if kind == "why":
            draw.text(32, yy, row, size=11, room=right - 32)
        elif kind == "more":
            draw.text(56, yy, row, size=11, fill=MUTED)
        elif kind == "nest":
            where = f"({row.lines})" if row.lines else ""
            draw.text(right, yy, where, size=11, fill=MUTED, anchor="end")
            draw.text(56, yy, chain(row.ops, right - 56 - width(where, 11) * 1.06 - 12), size=11)
        elif kind == "cut":
            draw.path(f"M38 {yy - 2}l8 -4M38 {yy + 1}l8 -4", TEXT, 1.3)
            draw.text(56, yy, row.head, size=11, room=right - 56)
        else:
            time = units.duration(row.seconds)
            draw.text(right, yy, time, size=11, fill=MUTED, anchor="end")
            if len(kernels) > 1:
                draw.selvage(26, yy - 9, 4, 11, row.color, CLUSTERS[row.color % 6])
            label = cut(row.name, 11, 110, bold=True)
            draw.text(32, yy, label, size=11, bold=True)
            start = max(52, 32 + width(label, 11, bold=True) * 1.06 + 8)
            end = right - width(time, 11) - 12
            where = cut(row.lines, 11, 120)
            draw.text(end, yy, where, size=11, fill=MUTED, anchor="end")
            draw.text(start, yy, chain(row.ops, end - start - (width(where, 11) * 1.06 + 10 if where else 0)), size=11)
        yy += 17 if kind == "kernel" else 15
    return y + height


def _lanes(draw: Drawing, o: Outline, y: float, bars: int) -> float:
    """Two lanes on one axis: NumPy against compiled when both were measured, else what ran against what was made for it."""
    x, right = MIDDLE + 8, WIDTH - MARGIN
    lanes: dict[str, list[Any]] = {}
    clusters, kernels = ({color for key, color in o.colors.items() if bool(key[1]) == own} for own in (False, True))
    inside = len(kernels) > len(clusters) and any(lane["name"] == "kernels" and lane["spans"] for lane in o.lanes)
    for lane in o.lanes:
        if lane["spans"] and (inside or lane["name"] != "kernels"):  # kernels lie within the launches
            whole = ("trace", "retrace", *(("launch",) if inside else ()))  # which the others lie in
            spans = [span for span in lane["spans"] if span["kind"] not in whole]
            lanes.setdefault(lane.get("group", lane["name"]), []).extend(spans)
    wanted = ("op by op", "compiled") if "op by op" in lanes else ("compiled", "compiling")
    shown = [name for name in wanted if name in lanes]
    if not shown:
        return y
    end = max(span["start"] + span["duration"] for name in shown for span in lanes[name]) or 1.0
    draw.text(x, y + 12, "Time", bold=True)
    draw.text(right, y + 12, f"0 to {units.duration(end / 1e6)}", size=11, fill=MUTED, anchor="end")
    y += 22
    start = x + 62
    scale = (right - start) / end
    for name in shown:
        draw.text(x, y + 9, name, size=11, fill=MUTED)
        for left, wide, kind, color in merged(lanes[name], scale, bars, o.colors):
            if kind == "op":
                draw.rect(start + left, y, max(0.8, wide - 1), 11, stroke=LINE)
            elif kind in ("launch", "kernel"):
                draw.selvage(start + left, y, max(1.2, wide - 1), 11, color, CLUSTERS[color % 6])
            elif kind == "host":
                draw.selvage(start + left, y, max(1.2, wide - 1), 11, -1, HOST)
            else:
                fill = COMPILE if kind == "codegen" else "none"
                draw.rect(start + left, y, max(0.8, wide - 1), 11, stroke=COMPILE, fill=fill)
        y += 19
    return y + 12


def merged(
    spans: Sequence[Mapping[str, Any]], scale: float, most: int, colors: Mapping[tuple[str, str], int]
) -> list[tuple[float, float, str, int]]:
    """Bars (left, width, kind, colour) in pixels; spans of a kind in one pixel become one bar; of too many the longest stay."""
    bars: list[tuple[float, float, str, int]] = []
    for span in sorted(spans, key=lambda s: s["start"]):
        left, wide = span["start"] * scale, span["duration"] * scale
        color = colors.get((span["cluster"] or "", span["name"] if span["kind"] == "kernel" else ""), 0)
        if bars:
            last = bars[-1]
            gap = left - (last[0] + last[1])
            small = last[1] < 1.5 or wide < 1.5
            if last[2:] == (span["kind"], color) and gap < 0.5 and (small or span["kind"] in ("launch", "kernel")):
                bars[-1] = (last[0], max(last[1], left + wide - last[0]), *last[2:])
                continue
        bars.append((left, wide, span["kind"], color))
    if len(bars) > most:
        longest = sorted(range(len(bars)), key=lambda i: (-bars[i][1], i))[:most]
        bars = [bars[i] for i in sorted(longest)]
    return bars


def _retraces(draw: Drawing, o: Outline, y: float) -> float:
    x, right = MIDDLE + 8, WIDTH - MARGIN
    y = max(y, 70)
    draw.text(x, y, "Retraces", bold=True)
    draw.text(right, y, "time lost" if o.retraces else "", size=11, fill=MUTED, anchor="end")
    y += 17
    if not o.retraces:
        draw.text(x, y, "none" + (f"; the first call took {o.warm_up}" if o.warm_up else ""), size=11, fill=MUTED)
        y += 16
    for row in o.retraces:
        y = _retrace(draw, row, x, right, y)
    if o.more_retraces:
        draw.text(x, y, f"and {o.more_retraces} more", size=11, fill=MUTED)
        y += 16
    return y


def _retrace(draw: Drawing, row: RetraceRow, x: float, right: float, y: float) -> float:
    lost = units.duration(row.seconds)
    draw.text(right, y, lost, size=11, anchor="end")
    room = right - x - width(lost, 11) - 10
    draw.text(x, y, row.text, size=11, fill=RETRACE if row.fix else TEXT, bold=bool(row.fix), room=room)
    y += 15
    for line in wrapped(row.detail, 11, right - x)[:2]:
        draw.text(x, y, line, size=11, fill=MUTED)
        y += 14
    return y + 4


def _next(draw: Drawing, o: Outline, y: float) -> float:
    if not o.next:
        return y
    x, room = MIDDLE + 8, WIDTH - MARGIN - MIDDLE - 8
    y += 6
    if not o.is_left:
        draw.text(x, y, "Do next", bold=True)
        y += 17
    for line in wrapped(wording.unmarked(clean(o.next["text"])), 12, room)[:4]:
        draw.text(x, y, line)
        y += 15
    for line in _code(clean(o.next["code"] or ""), int(room / 6.9))[:6]:
        draw.code(x, y + 1, line)
        y += 15
    y += 3
    for line in wrapped(wording.unmarked(clean(o.next["why"] or "")), 11, room)[:6]:
        draw.text(x, y, line, size=11, fill=MUTED)
        y += 14
    return y


def _moved(data: Mapping[str, Any]) -> str:
    shown = {plan["name"] for plan in data["plans"] if plan["like"] == plan["name"]}
    clusters = [c for c in data["clusters"] if c["plan"] in shown]
    moved = sum(c["bytes_read"] + c["bytes_written"] for c in clusters)
    often = any(c["calls"] > 1 for c in data["clusters"]) or len(shown) < len(data["plans"])
    turn = " for one iteration of its loop" if any(c.get("per_turn") for c in clusters) else ""
    return f"memory traffic {units.size(moved)}{' a call' if often else ''}{turn}" if moved else ""


def _code(text: str, most: int) -> list[str]:
    lines = []
    while len(text) > most:
        at = text.rfind(" ", 12, most)
        at = most if at < 0 else at
        lines.append(text[:at])
        text = "    " + text[at:].lstrip()
    return [*lines, text] if text.strip() else lines


class Drawing:
    """Collects the elements of a picture."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, size: int = 12, fill: str = TEXT, bold: bool = False, anchor: str = "",
        room: float | None = None,
    ) -> None:  # fmt: skip
        """One line of text, cut with an ellipsis where it would leave its room; words of the program have no marks here."""
        text = wording.unmarked(text)
        if room is not None:
            text = cut(text, size, room, bold)
        if text:
            weight = ' font-weight="600"' if bold else ""
            end = f' text-anchor="{anchor}"' if anchor else ""
            big = f' font-size="{size}"' if size != 12 else ""
            wide = width(text, size, bold)
            fit = f' textLength="{wide:.0f}" lengthAdjust="spacingAndGlyphs"' if wide > FITTED else ""  # also in a wider font
            self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{big} fill="{fill}"{weight}{end}{fit}>{_escaped(text)}</text>')

    def code(self, x: float, y: float, text: str) -> None:
        self._parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-family="Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="11"'
            f' xml:space="preserve" fill="{TEXT}">{_escaped(text)}</text>'
        )

    def rect(self, x: float, y: float, wide: float, high: float, *, stroke: str, fill: str = "none") -> None:
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(wide)}" height="{_n(high)}" fill="{fill}" stroke="{stroke}"/>'
        )

    def path(self, d: str, stroke: str, thick: float = 1.0) -> None:
        weight = f' stroke-width="{thick}"' if thick != 1 else ""
        self._parts.append(f'<path d="{d}" fill="none" stroke="{stroke}"{weight}/>')

    def selvage(self, x: float, y: float, wide: float, high: float, color: int, ink: str) -> None:
        """A cluster's band, or the host's (-1): colour and pattern, so that neither alone carries the meaning."""
        host = color < 0
        self.rect(x, y, wide, high, stroke=ink, fill=GROUND if host else ink)
        d = "".join(_hatch(x, y, wide, high, color % 6 if not host else 1, lean=-1 if host else 1))
        if d and (host or color % 6):
            self.path(d, ink if host else GROUND, 1.2 if host else 1.4)

    def done(self, height: float, label: str) -> str:
        """The finished picture."""
        wide, high, label = WIDTH, int(height), _escaped(label)
        rules = "".join(f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in DARK.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" role="img"'
            f' aria-label="{label}" font-family="Helvetica,Arial,sans-serif" font-size="12">'
            f"<title>{label}</title><style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
            f'<rect x=".5" y=".5" width="{wide - 1}" height="{high - 1}" fill="{GROUND}" stroke="{LINE}"/>'
            + "".join(self._parts)
            + "</svg>"
        )


def _hatch(x: float, y: float, wide: float, high: float, pattern: int, lean: int = 1) -> Iterable[str]:
    """Path data of a pattern (diagonal, horizontal, dots, vertical, grid) clipped to a box."""
    right, bottom = x + wide, y + high
    if pattern == 1:
        for start in _steps(x - high + STEP, right):
            # a line at 45 degrees from the bottom edge at `start` to the top edge, clipped on both sides
            x0, x1 = max(start, x), min(start + high, right)
            if x1 - x0 > 0.8:
                y0, y1 = (bottom - (x0 - start), bottom - (x1 - start)) if lean > 0 else (y + (x0 - start), y + (x1 - start))
                yield f"M{_n(x0)} {_n(y0)}L{_n(x1)} {_n(y1)}"
    if pattern in (2, 5):
        yield from (f"M{_n(x)} {_n(at)}h{_n(wide)}" for at in _steps(y + 3, bottom - 0.5))
    if pattern == 3:
        for at in _steps(y + 3, bottom - 1):
            yield from (f"M{_n(left - 0.9)} {_n(at)}h1.8" for left in _steps(x + min(3.0, wide / 2), right))
    if pattern in (4, 5):
        yield from (f"M{_n(at)} {_n(y)}v{_n(high)}" for at in _steps(x + min(3.0, wide / 2), right))


def _steps(at: float, end: float) -> Iterator[float]:
    """Where the lines of a pattern stand."""
    while at < end:
        yield at
        at += STEP


def width(text: str, size: float, bold: bool = False) -> float:
    """Estimated width in pixels of a text in Helvetica, or a font of its metrics."""
    total = 0
    for c in text:
        code = ord(c)
        if 32 <= code < 127:
            total += _WIDTHS[code - 32]
        elif c in "→…":
            total += 1000
        else:
            total += 1000 if unicodedata.east_asian_width(c) in "WF" else 584
    return total * size / 1000 * (1.06 if bold else 1.0)


def cut(text: str, size: float, room: float, bold: bool = False) -> str:
    """The text, or as much of it as fits with an ellipsis."""
    text = text[:600]
    if width(text, size, bold) <= room:
        return text
    while text and width(text + "…", size, bold) > room:
        text = text[: max(0, min(len(text) - 1, int(len(text) * 0.97)))]
    return text.rstrip(" ·,") + "…" if text else ""


def wrapped(text: str, size: float, room: float) -> list[str]:
    """The text in lines that fit; a word that is too long is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and width(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(cut(word, size, room))
    return lines


def chain(ops: Sequence[str], room: float, size: float = 11) -> str:
    """`MatMul → Add → Max`, with a count of those that don't fit."""
    for n in range(min(len(ops), 60), 0, -1):  # no more fit
        rest = f" → +{len(ops) - n}" if n < len(ops) else ""
        text = " → ".join(ops[:n]) + rest
        if n == 1 or width(text, size) <= room:
            break
    else:
        return ""
    return cut(text, size, room)


def _escaped(text: str) -> str:
    return escape(clean(text), quote=True)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""The report as plain text, at most 100 columns: terminal, nbconvert, screen reader."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.build.accounting import in_words, numerics_in_words
from jitlab.report.build.lines import in_words as lines_in_words
from jitlab.report.build.uses import uses_in_words

from . import wording
from .outline import PARTS, Box, KernelRow, Outline, outline, within

WIDTH = 100
MOST_COPIES = 6  # told of a cluster
MOST_OPS = 40  # named of a kernel
MOST_NESTS = 12  # told of a loop
MOST_CUTS = 6  # told of a kernel
MOST_BYTES = 24_000  # some 300 lines: a saved cell has them twice
TIME_AT = 55  # the column where times end


def report_text(data: Mapping[str, Any]) -> str:
    """Verdict, next step, boxes in program order with their kernels and copies, loops that were not rolled, retraces. Of very
    large reports the slowest boxes and kernels."""
    limits = (40, 40), (20, 12), (8, 6), (3, 3), (1, 1)
    return within(MOST_BYTES, limits, lambda boxes, kernels: _text(data, outline(data, boxes, most_kernels=kernels)))


def stopped_text(data: Mapping[str, Any]) -> str:
    """Of a cell that an error stopped: the verdict alone."""
    return "\n".join(_folded("", f"stopped by {clean(data['cell']['error'])} · {clean(data['verdict']['lead'])}", indent="  "))


def _text(data: Mapping[str, Any], o: Outline) -> str:
    first_run = data["verdict"].get("first_run")
    lines = _head(o)
    for entry in data.get("as_python", ()):
        said = clean(wording.as_python(entry))
        lines += [] if o.settled.startswith(said) else _folded("", said, indent="  ")
    lines += _slowest(data)
    lines += _folded("", clean(first_run["text"])) if first_run else []
    lines += _next(o)
    shown = data.get("show", PARTS)
    if "graph" not in shown:
        o = replace(o, boxes=(), hidden=0, loops=(), more_loops=0)
    if "retraces" not in shown:
        o = replace(o, retraces=(), more_retraces=0)
    if o.boxes:
        lines.append("")
    for n, box in enumerate(o.boxes):
        if box.heading:
            lines += [""] if n else []
            lines += _folded("", box.heading)
        lines += _box(box)
    if o.hidden:
        lines.append(f"… and {o.hidden} more, each faster than these")
    for heads, texts in ((2, in_words(data)), (1, numerics_in_words(data))):
        for n, text in enumerate(texts):
            lines += _folded("" if n < heads else "  ", text, indent="  " if n < heads else "    ")
    if o.loops:
        lines.append("")
    for loop in o.loops:
        lines += _folded("", f"Iteration by iteration: {loop.text} ({loop.detail})", indent="  ")
        lines += _folded("  ", loop.why)
    if o.more_loops:
        lines.append(f"  … and {units.counted(o.more_loops, 'more loop')}")
    if o.retraces:
        lines.append("")
    for row in o.retraces:
        lines += _folded("↻ ", f"{row.text} ({row.detail}), {units.duration(row.seconds)} lost")
        lines += _folded("  ", f"try: {row.proof or row.fix}" if row.fix else row.note)
        if row.proof and row.fix and row.is_code:
            lines += _folded("       ", row.fix)
    if o.more_retraces:
        lines.append(f"  … and {o.more_retraces} more")
    if "retraces" in shown:
        for text in uses_in_words(data):
            lines += _folded("", text, indent="  ")
    return "\n".join(line.rstrip() for line in lines)


def _head(o: Outline) -> list[str]:
    return [line for text in o.heads for line in _folded("", text, indent="  ")]


def _slowest(data: Mapping[str, Any]) -> list[str]:
    found = data["verdict"].get("slowest")
    return _folded("slowest: ", clean(lines_in_words(found)), indent="  ") if found else []


def _next(o: Outline) -> list[str]:
    if not o.next:
        return []
    lines = _folded("" if o.is_left else "next: ", clean(o.next["text"]), indent="      ")
    for text in (o.next["code"], o.next["why"]):
        if text:
            lines += _folded("      ", clean(text))
    return lines


def _box(box: Box) -> list[str]:
    if box.kind == "cluster":
        note = ", ".join(filter(None, (box.moved, wording.calls_text(box.calls, box.seconds), box.scope and f"in {box.scope}")))
        name = f"□ {box.name}, results not used" if box.is_given_up else f"■ {box.name}"
        lines = _timed(name + (f", {box.lines}" if box.lines else ""), box.seconds, note)
        for kernel in box.kernels:
            for cut in kernel.cuts[:MOST_CUTS]:
                lines += _folded("  // ", cut.head, indent="     ")
                lines += _folded("     ", cut.why)
                if cut.flip:
                    lines += _folded("     ", cut.flip)
            if len(kernel.cuts) > MOST_CUTS:
                lines.append(f"  // and {units.counted(len(kernel.cuts) - MOST_CUTS, 'more value')}")
            where = f" ({kernel.lines})" if kernel.lines else ""
            lines += _timed(f"  {kernel.name}{where} {_named(kernel.ops)}", kernel.seconds, kernel.note)
            lines += _inside(kernel)
        if box.more_cuts:
            lines.append(f"  // and {units.counted(box.more_cuts, 'smaller value')} between kernels")
        if box.more_kernels:
            lines.append(f"  … and {units.counted(box.more_kernels, 'more kernel')}, each faster than these")
        for copy in box.copies[:MOST_COPIES]:
            lines += _folded("  // ", copy, indent="     ")
        if len(box.copies) > MOST_COPIES:
            left = len(box.copies) - MOST_COPIES
            lines.append(f"  // and {left} more {'copy' if left == 1 else 'copies'}")
        return lines
    many = f"{box.count} × " if box.count > 1 else ""
    where = ", ".join(filter(None, ("NumPy" if box.kind == "host" else "Python", box.lines)))
    return [
        *_timed(f"◇ {many}{box.name}, {where}", box.seconds, wording.calls_text(box.calls, box.seconds)),
        *_folded("  ", box.why),
    ]


def _inside(kernel: KernelRow) -> list[str]:
    """What is fused in the body of a loop, a line each."""
    lines: list[str] = []
    for nest in kernel.inside[:MOST_NESTS]:
        for cut in nest.cuts:
            lines += _folded("     // ", cut.head, indent="        ")
        where = f" ({nest.lines})" if nest.lines else ""
        lines += _folded("     ", _named(nest.ops) + where, indent="       ")
    if len(kernel.inside) > MOST_NESTS:
        lines.append(f"     and {len(kernel.inside) - MOST_NESTS} more nests")
    return lines


def _named(ops: Sequence[str]) -> str:
    more = [f"+{len(ops) - MOST_OPS}"] if len(ops) > MOST_OPS else []
    return ", ".join([*(op.replace(" ", "\u00a0") for op in ops[:MOST_OPS]), *more])  # an expression stays in a line


def _timed(text: str, seconds: float | None, note: str) -> list[str]:
    """Text, its time in one column for all, then a note; what is long of either continues below, without the time."""
    first, *rest = _folded("", text, indent="    ", width=TIME_AT - 10) or [""]
    line = f"{first:<{TIME_AT - 10}}{units.duration(seconds):>10}"
    head, *more = _folded("", note, width=WIDTH - TIME_AT - 3) or [""]
    below = zip_longest(rest, more, fillvalue="")
    return [f"{line}   {head}".rstrip(), *(f"{left:<{TIME_AT}}   {right}".rstrip() for left, right in below)]


def _folded(mark: str, text: str, indent: str | None = None, width: int = WIDTH) -> list[str]:
    """Wrapped text; a number stays with its unit."""
    if not text:
        return []
    indent = " " * len(mark) if indent is None else indent
    kept = re.sub(r"(?<=\d) (?=(?:[nµm]?s|[kMGT]?B|%|×)(?!\w))", "\u00a0", text)
    lines = wrap(kept, width, initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]

"""The user's text as it was when it was captured: what runs is compared with what an editor shows now."""

from __future__ import annotations

import linecache
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from jitlab.support import locks
from jitlab.support.lazy_dataclass import dataclass

from .types import Source, cell_names

#: Files whose text is kept.
KEPT = 256

#: Lines between two functions of a file that are shown in one piece.
NEAR = 8


@dataclass
class Text:
    """A file's lines as one capture saw them (the list that linecache holds, no copy), and the definitions captured of it."""

    lines: Sequence[str]
    definitions: set[tuple[int, int]] = field(default_factory=set)  # first and last line


def keep_text(file: str, lines: Sequence[str], first: int, last: int) -> None:
    """A definition of a file was captured. `lines`: the whole file's."""
    with locks.Released(_lock), _lock:
        known = _kept.get(file)
        if known is None or (known.lines is not lines and list(known.lines) != list(lines)):
            known = _kept[file] = Text(lines)
        known.definitions.add((first, last))
        _kept.move_to_end(file)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)


def definition_of(source: Source, most: int) -> tuple[tuple[str, ...], int] | None:
    """The lines of the innermost captured definition around a position, and the number of the first of them; of a file without
    one the whole file, if it has at most so many lines. None where nobody knows its text."""
    with locks.Released(_lock), _lock:
        kept = _kept.get(source.file)
        around = [(a, b) for a, b in kept.definitions if a <= source.line <= b] if kept is not None else []
    lines = kept.lines if kept is not None else linecache.getlines(source.file)
    if around:
        first, last = min(around, key=lambda r: r[1] - r[0])
        return tuple(lines[first - 1 : last]), first
    return (tuple(lines), 1) if 0 < len(lines) <= most else None


def texts_of(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """What the positions speak of, as it was captured: `file`, `path`, the number `first` of its first line, and `lines`.

    A cell is there as a whole; of a script or a module the definitions that are spoken of, each a piece of its own unless they
    are neighbours. A file whose text nobody knows (`exec` of a string) is left out.
    """
    spoken: dict[str, set[int]] = {}
    for source in sources:
        spoken.setdefault(source.file, set()).add(source.line)
    return [piece for file in sorted(spoken) for piece in _pieces(file, spoken[file])]


def _pieces(file: str, numbers: set[int]) -> list[dict[str, Any]]:
    with locks.Released(_lock), _lock:
        kept = _kept.get(file)
        definitions = sorted(kept.definitions) if kept is not None else []
    lines = kept.lines if kept is not None else linecache.getlines(file)
    if not lines:
        return []
    if is_cell(file):
        return [_piece(file, lines, 1, len(lines))]
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        around = [(first, last) for first, last in definitions if first <= number <= last]
        first, last = min(around, key=lambda r: r[0] - r[1], default=(number, number))
        if ranges and first <= ranges[-1][1] + NEAR:
            ranges[-1][1] = max(last, ranges[-1][1])
            ranges[-1][0] = min(first, ranges[-1][0])
        else:
            ranges.append([first, last])
    return [_piece(file, lines, first, min(last, len(lines))) for first, last in ranges if first <= len(lines)]


def _piece(file: str, lines: Sequence[str], first: int, last: int) -> dict[str, Any]:
    path = file if os.path.isabs(file) and not is_cell(file) else None
    return {"file": file, "path": path, "first": first, "lines": [line.rstrip("\n") for line in lines[first - 1 : last]]}


def is_cell(file: str) -> bool:
    """A cell of a notebook, or of an IPython session."""
    return file in cell_names or file.startswith("<ipython-input-") or f"{os.sep}ipykernel_" in file


_kept: OrderedDict[str, Text] = OrderedDict()
_lock = locks.shared("texts")

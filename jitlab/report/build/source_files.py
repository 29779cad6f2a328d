"""The files that a report's lines speak of, with their text as it was compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jitlab.ir import Source
from jitlab.ir.texts import texts_of

Json = dict[str, Any]


def report_sources(
    data: Json, plans: Iterable[Json], file_name: Callable[[str], str] | None,
    cell_of: Callable[[str], tuple[str, list[str]] | None] | None,
) -> list[Json]:  # fmt: skip
    """The pieces of text that plans kept when they were made, and those of the files that only other lines speak of.

    `file_name`: what reports call a file; `cell_of`: the notebook's id of a cell and its source, by its file.
    """
    pieces: dict[tuple[str, int, tuple[str, ...]], Json] = {}
    for plan in plans:
        for piece in plan.get("sources", ()):
            pieces.setdefault((piece["file"], piece["first"], tuple(piece["lines"])), piece)
    known = {file for file, _, _ in pieces}
    spoken = {
        Source(str(span[0]), span[1])
        for key in ("retraces", "statements", "as_python", "frozen", "loops", "variants", "fallbacks")
        for entry in data.get(key, ())
        for span in entry["lines"]
        if span[0] not in known
    }
    found = [*pieces.values(), *texts_of(spoken)]
    result = []
    for piece in sorted(_without_parts(found), key=lambda piece: (piece["file"], piece["first"])):
        cell, source = (cell_of(piece["file"]) if cell_of else None) or (None, [])
        lines = source if len(source) == len(piece["lines"]) else piece["lines"]  # magics as they were written
        result.append(
            {
                "file": file_name(piece["file"]) if file_name else piece["file"], "cell": cell, "path": piece["path"],
                "first": piece["first"], "lines": lines,
            }
        )  # fmt: skip
    return result


def _without_parts(pieces: Sequence[Json]) -> list[Json]:
    """Without a piece that another one of the same file contains."""

    def holds(big: Json, small: Json) -> bool:
        at = small["first"] - big["first"]
        return bool(
            big is not small and big["file"] == small["file"] and at >= 0 and len(big["lines"]) > len(small["lines"])
            and big["lines"][at : at + len(small["lines"])] == small["lines"]
        )  # fmt: skip

    return [piece for piece in pieces if not any(holds(other, piece) for other in pieces)]

"""What keeps the kernels of a cluster apart, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass

from . import wording

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Cut:
    """An edge that was not fused, or several for one reason: what, why more closely, and what would change it. `pair`: both
    ends; of several edges with equal words those of the first."""

    reason: str
    why: str = ""
    flip: str | None = None
    pair: str = ""

    @property
    def head(self) -> str:
        return f"Not fused: {self.pair}{': ' if self.pair else ''}{self.reason}"


def cuts(kernels: Sequence[Sequence[Json]]) -> tuple[list[tuple[Cut, ...]], int]:
    """What is told above each kernel of the edges that end there, each sentence once, and how many smaller ones are not."""
    told = set[Cut]()
    rows: list[tuple[Cut, ...]] = []
    for edges in kernels:
        row: list[Cut] = []
        for each in (cut(edge) for edge in edges if not edge.get("small")):
            words = replace(each, pair="")
            if words not in told:
                told.add(words)
                row.append(each)
        rows.append(tuple(row))
    return rows, sum(bool(edge.get("small")) for edges in kernels for edge in edges)


def cut(edge: Json) -> Cut:
    """One edge, or all that are told with it. A change that saves nothing is not told."""
    if told := edge.get("told"):
        return Cut(clean(told))
    reason = edge["reason"]
    head, why = clean(wording.clause_of(reason)), clean(reason.get("rest", ""))
    if edge["bytes"] and not wording.clause_says_size(reason):
        head = f"{head}, {units.size(edge['bytes'])}"
    why = f"{why.removesuffix('.')}." if why else ""
    flip = None if wording.flips_for_nothing(edge) else edge["flip"]
    return Cut(head, why, clean(wording.flip_text(flip["text"])) if flip else None, clean(edge.get("pair") or ""))

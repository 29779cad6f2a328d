"""What keeps the kernels of a cluster apart, as it is told: equal reasons once, with their count, and small values last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jitlab import messages
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass

from . import wording

Json = Mapping[str, Any]

#: Values of less than this share of a cluster's memory traffic are counted together where something larger is told.
SMALL = 0.01


@dataclass(frozen=True)
class Cut:
    """An edge that was not fused, or several for one reason: what, why more closely, and what would change it."""

    head: str
    why: str = ""
    flip: str | None = None


def cuts(kernels: Sequence[Sequence[Json]], traffic: int, ops: Mapping[str, Json]) -> tuple[list[tuple[Cut, ...]], int]:
    """What is told above each kernel of the edges that end there, and how many smaller ones are not. `traffic`: the bytes that
    the cluster moves, `ops` its operations by name."""
    groups: dict[tuple[str, str], list[Json]] = {}
    for edge in (edge for edges in kernels for edge in edges):
        groups.setdefault(_key(edge), []).append(edge)
    large = {key for key, group in groups.items() if any(edge["bytes"] >= SMALL * traffic for edge in group)}
    told, small = set[tuple[str, str]](), 0
    rows: list[tuple[Cut, ...]] = []
    for edges in kernels:
        keys = dict.fromkeys(sorted(map(_key, edges), key=lambda key: key not in large))
        row: list[Cut] = []
        for key in (key for key in keys if key not in told):
            group = groups[key]
            if key not in large and (row or large.intersection(keys)):
                small += len(group)
            else:
                row.append(_several(group, ops) if len(group) > 1 and key[1] else cut(group[0]))
            told.add(key)
        rows.append(tuple(row))
    return rows, small


def cut(edge: Json) -> Cut:
    """One edge. A change that saves nothing is not told."""
    reason = edge["reason"]
    head, why = clean(wording.clause_of(reason)), clean(reason.get("rest", ""))
    if edge["bytes"] and not wording.clause_says_size(reason):
        head = f"{head}, {units.size(edge['bytes'])}"
    why = f"{why.removesuffix('.')}." if why else ""
    flip = None if _is_for_nothing(edge) else edge["flip"]
    return Cut(f"Not fused: {head}", why, clean(wording.flip_text(flip["text"])) if flip else None)


def _key(edge: Json) -> tuple[str, str]:
    """Equal for edges that one sentence tells; else an edge's own text."""
    row = str(edge["reason"].get("detail") or "")
    if row in messages.codes("several") and (not edge["flip"] or _is_for_nothing(edge)):
        return "", row
    told = cut(edge)
    return f"{told.head}\n{told.why}\n{told.flip}", ""


def _is_for_nothing(edge: Json) -> bool:
    return bool(edge["flip"]) and edge["flip"].get("code") == "twice_for_nothing"


def _several(group: Sequence[Json], ops: Mapping[str, Json]) -> Cut:
    """ "Not fused: 9 results of np.fft must be complete, 8.0 MB" """
    values = {edge["producer"]: edge["bytes"] for edge in group}
    row = group[0]["reason"]["detail"]
    ends = {edge["consumer" if row == "reads_operand" else "producer"] for edge in group}
    size = sum(values.values())
    said = messages.text(f"several.{row}", count=len(values), what=_library(ends, ops))
    return Cut(f"Not fused: {said}{f', {units.size(size)}' if size else ''}")


def _library(names: set[str], ops: Mapping[str, Json]) -> str:
    """What all of these calls are of: "np.fft", "np.percentile"; else library calls."""
    found = {re.match(r"np(?:\.\w+)+(?=\()", wording.written(ops[name])) for name in names if name in ops}
    calls = {match[0] for match in found if match} if None not in found else set()
    parts = {call.rpartition(".")[0] for call in calls}
    return calls.pop() if len(calls) == 1 else parts.pop() if len(parts) == 1 and parts != {"np"} else "library calls"

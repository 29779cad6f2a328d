"""What keeps the kernels of a cluster apart, told once: edges with equal reasons get one sentence with their count, and small
values beside larger ones are marked as such. All that shows a report reads it from there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jitlab import messages
from jitlab.messages import units
from jitlab.report.render import wording

Json = dict[str, Any]

#: Values of less than this share of a cluster's memory traffic are counted together where something larger is told.
SMALL = 0.01


def told_edges(plan: Mapping[str, Any]) -> list[Json]:
    """The edges of a plan that were not fused, with `pair`, `told` and `small`."""
    edges: list[Json] = [dict(edge) for edge in plan["boundaries"] if edge["bytes"] or edge["producer"] != edge["consumer"]]
    kernels: dict[str, list[Sequence[str]]] = {cluster["name"]: [] for cluster in plan["clusters"]}
    for kernel in plan["kernels"]:
        kernels[kernel["cluster"]].append(kernel["ops"])
    ops = {op["name"]: op for op in plan["ops"]} if edges else {}
    for edge in edges:
        made, read = (_end(ops.get(edge[end]), edge[end]) for end in ("producer", "consumer"))
        edge["pair"] = f"{made} → {read}" if made != read else ""
    between: dict[str, list[Json]] = {}
    for edge in edges:
        home, other = (ops.get(edge[end], {}).get("cluster") for end in ("producer", "consumer"))
        if home is not None and home == other:
            between.setdefault(home, []).append(edge)
    for cluster in plan["clusters"]:
        if mine := between.get(cluster["name"]):
            _tell(mine, kernels[cluster["name"]], cluster["bytes_read"] + cluster["bytes_written"], ops)
    return edges


def _end(op: Mapping[str, Any] | None, name: str) -> str:
    """An end of an edge by the program's words alone."""
    return wording.operation_text({**op, "word": ""}, "") if op and op.get("called") else wording.operation_text(op, name)


def above(edge: Mapping[str, Any], kernels_of: Mapping[str, Sequence[int]]) -> int | None:
    """Which kernel of a cluster an edge ends at, so that it is told above it; None of one inside a kernel. `kernels_of`: the
    kernels that compute an operation, in order."""
    made, read = kernels_of.get(edge["producer"], ()), kernels_of.get(edge["consumer"], ())
    if not made or not read:
        return None
    if read[0] < made[0]:
        return made[0]
    return next((at for at in read if at > made[0] and at not in made), None)


def places(kernels: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """The kernels that compute each operation, in order."""
    found: dict[str, list[int]] = {}
    for at, names in enumerate(kernels):
        for name in dict.fromkeys(names):
            found.setdefault(name, []).append(at)
    return found


def _tell(edges: Sequence[Json], kernels: Sequence[Sequence[str]], traffic: int, ops: Mapping[str, Json]) -> None:
    """The edges within a cluster that moves `traffic` bytes."""
    kernels_of = places(kernels)
    groups: dict[Any, list[Json]] = {}
    gaps: dict[int, list[Any]] = {}
    for n, edge in enumerate(edges):
        if (at := above(edge, kernels_of)) is not None:
            key = _row(edge) or n
            groups.setdefault(key, []).append(edge)
            gaps.setdefault(at, []).append(key)
    large = {key for key, group in groups.items() if any(edge["bytes"] >= SMALL * traffic for edge in group)}
    seen = set[Any]()
    for _, keys in sorted(gaps.items()):
        told = not large.isdisjoint(keys)
        for key in dict.fromkeys(keys):
            if key not in large and key not in seen:
                for edge in groups[key] if told else ():
                    edge["small"] = True
                told = True
            seen.add(key)
    for key, group in groups.items():
        if isinstance(key, str) and len(group) > 1 and "small" not in group[0]:
            said = _several(key, group, ops)
            for edge in group:
                edge["told"] = said


def _row(edge: Mapping[str, Any]) -> str:
    """The sentence of the table that tells several edges of one reason; "" where an edge is told by itself: there is something
    to change."""
    row = str(edge["reason"].get("detail") or "")
    return row if row in messages.codes("several") and (not edge["flip"] or wording.flips_for_nothing(edge)) else ""


def _several(row: str, group: Sequence[Json], ops: Mapping[str, Json]) -> str:
    """ "9 results of np.fft must be complete before the next loop, 8.0 MB" """
    values = {edge["producer"]: edge["bytes"] for edge in group}
    if len(values) == 1:  # several read it: it is told as if one did
        return _alone(group[0])
    ends = {edge["consumer" if row == "reads_operand" else "producer"] for edge in group}
    size = sum(values.values())
    said = messages.text(f"several.{row}", count=len(values), what=_library(ends, ops))
    return f"{said}{f', {units.size(size)}' if size else ''}"


def _alone(edge: Mapping[str, Any]) -> str:
    reason = edge["reason"]
    size = f", {units.size(edge['bytes'])}" if edge["bytes"] and not reason.get("size_in") else ""
    return f"{str(reason['text']).removesuffix('.')}{size}"


def _library(names: set[str], ops: Mapping[str, Json]) -> str:
    """What all of these calls are of: "np.fft", "np.percentile"; else library calls."""
    found = {re.match(r"np(?:\.\w+)+(?=\()", wording.written(ops[name])) for name in names if name in ops}
    calls = {match[0] for match in found if match} if None not in found else set()
    parts = {call.rpartition(".")[0] for call in calls}
    return calls.pop() if len(calls) == 1 else parts.pop() if len(parts) == 1 and parts != {"np"} else "library calls"

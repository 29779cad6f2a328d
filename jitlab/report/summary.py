"""Reports that are too big for the wire or for a notebook: what a person sees first, whole; the rest by its numbers.

A summary has every cluster, kernel and host operation (up to 2 000 of each), the longest spans and the heaviest boundaries,
and `summary` with the counts of everything. The panel asks for the parts that it opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

WHOLE_BYTES = 300_000  # a report up to this size goes as it is
PART_BYTES = 1_000_000  # of one answer
MOST_WHOLE = 2000  # clusters, kernels, host operations
MOST_NAMES = 20  # of the operations of a cluster or kernel
MOST_PART = 20_000
PARTS = ("ops", "boundaries", "spans")
LISTS = (
    "retraces", "variants", "fallbacks", "statements", "frozen", "loops", "copies", "temporaries", "numerics", "plans",
    "activity",
)  # fmt: skip


def on_wire(data: Mapping[str, Any]) -> Json:
    """The report itself, or its summary where it is too big."""
    return dict(data) if estimated_size(data) <= WHOLE_BYTES else summarised(data, WHOLE_BYTES)


def summarised(data: Mapping[str, Any], room: int) -> Json:
    """A summary of a report; its operations, boundaries and spans take about `room` bytes."""
    spans = sum(len(lane["spans"]) for lane in data["timeline"]["lanes"])
    result = dict(data)
    result["clusters"] = [_short(entry) for entry in slowest(data["clusters"], MOST_WHOLE)]
    result["kernels"] = [_short(entry) for entry in slowest(data["kernels"], MOST_WHOLE)]
    for key in LISTS:
        if key in data:
            result[key] = slowest(data[key], MOST_WHOLE)
    host = slowest([op for op in data["ops"] if op["cluster"] is None and "parent" not in op], MOST_WHOLE)
    names = {(op["plan"], op["name"]) for op in host}
    others = [op for op in data["ops"] if (op["plan"], op["name"]) not in names]
    more = {(op["plan"], op["name"]) for op in _first(others, room // 4)} if len(host) < MOST_WHOLE else set()
    result["ops"] = [op for op in data["ops"] if (op["plan"], op["name"]) in names | more]
    result["boundaries"] = _heaviest(data["boundaries"], room // 4)
    result["timeline"] = {**data["timeline"], "lanes": [_lane(lane, room // 2, spans) for lane in data["timeline"]["lanes"]]}
    result["summary"] = {
        "ops": len(data["ops"]), "boundaries": len(data["boundaries"]), "spans": spans,
        "clusters": {cluster["name"]: {"ops": cluster.get("op_count", len(cluster["ops"]))} for cluster in result["clusters"]},
        "kernels": len(data["kernels"]), "edges": edges(data),
    }  # fmt: skip
    return result


def part(data: Mapping[str, Any], kind: str, cluster: str | None, start: int, stop: int) -> Json:
    """Items `start` to `stop` of a list of the whole report, in its order; of one cluster where it is named. Fewer come where
    they would be too many bytes: who wants more asks on from where they end. A span says its lane."""
    if kind == "spans":
        items = [{**span, "lane": lane["name"]} for lane in data["timeline"]["lanes"] for span in lane["spans"]]
    else:
        items = list(data[kind])
    if cluster is not None and kind == "boundaries":
        of = {op["name"] for op in data["ops"] if op["cluster"] == cluster}
        items = [item for item in items if item["producer"] in of or item["consumer"] in of]
    elif cluster is not None:
        items = [item for item in items if item["cluster"] == cluster]
    chosen = _first(items[start : min(stop, start + MOST_PART)], PART_BYTES)
    return {"part": kind, "cluster": cluster, "start": start, "total": len(items), "items": chosen}


def edges(data: Mapping[str, Any]) -> list[Json]:
    """What goes from box to box (a cluster, or an operation of none): how many values, and their bytes once each."""
    box = {(op["plan"], op["name"]): op["cluster"] or op["name"] for op in data["ops"]}
    size = {(op["plan"], op["name"]): nbytes(op) for op in data["ops"]}
    count: Counter[tuple[str, str, str]] = Counter()
    moved: Counter[tuple[str, str, str]] = Counter()
    seen = set()
    for op in data["ops"]:
        into = box[op["plan"], op["name"]]
        for source in op["inputs"]:
            of = box.get((op["plan"], source))
            if of is not None and of != into:
                count[op["plan"], of, into] += 1
                if (op["plan"], source, into) not in seen:
                    seen.add((op["plan"], source, into))
                    moved[op["plan"], of, into] += size[op["plan"], source]
    return [
        {"plan": plan, "producer": of, "consumer": into, "count": number, "bytes": moved[plan, of, into]}
        for (plan, of, into), number in list(count.items())[: 2 * MOST_WHOLE]
    ]


def nbytes(op: Mapping[str, Any]) -> int:
    """The bytes of an operation's value, from its type."""
    digits = "".join(c for c in op["dtype"] if c.isdigit())
    size = int(digits) // 8 if digits else 1
    for extent in op["shape"]:
        size *= extent
    return size


def slowest(entries: Sequence[Mapping[str, Any]], keep: int) -> list[Any]:
    """Those that took longest, in their order."""
    if len(entries) <= keep:
        return list(entries)
    order = sorted(range(len(entries)), key=lambda i: (-(entries[i].get("seconds") or 0.0), i))
    return [entries[i] for i in sorted(order[:keep])]


def heavier(entries: Sequence[Mapping[str, Any]], keep: int) -> list[Any]:
    """Those of the most bytes, in their order."""
    order = sorted(range(len(entries)), key=lambda i: (-(entries[i].get("bytes") or 0), i))
    return [entries[i] for i in sorted(order[:keep])]


def estimated_size(value: Any, sample: int = 24) -> int:
    """About the bytes of plain data as JSON with spaces; of long lists a sample is measured."""
    if isinstance(value, dict):
        return 2 + sum(len(str(key)) + 6 + estimated_size(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        if len(value) <= sample:
            return 2 + sum(2 + estimated_size(item) for item in value)
        taken = value[:: len(value) // sample + 1]
        return 2 + len(value) * sum(2 + estimated_size(item) for item in taken) // len(taken)
    if isinstance(value, str):
        return len(value) + 2 if value.isascii() else 3 * len(value) + 2
    return len(str(value)) + 1


def _short(entry: Mapping[str, Any]) -> Json:
    """A cluster or kernel with the first of its operations; `op_count` says how many there are."""
    if len(entry["ops"]) <= MOST_NAMES:
        return dict(entry)
    return {**entry, "ops": entry["ops"][:MOST_NAMES], "op_count": len(entry["ops"])}


def _first(entries: Sequence[Any], room: int) -> list[Any]:
    """As many as about `room` bytes hold, at least one."""
    size = estimated_size(entries)
    return list(entries if size <= room else entries[: max(1, len(entries) * max(room, 0) // size)])


def _heaviest(boundaries: Sequence[Mapping[str, Any]], room: int) -> list[Any]:
    entries = heavier(boundaries, MOST_WHOLE)
    return heavier(entries, len(_first(entries, room)))


def _lane(lane: Mapping[str, Any], room: int, total: int) -> Json:
    """The longest spans of a lane, in their order; lanes share the room by their numbers."""
    spans = lane["spans"]
    share = room * len(spans) // max(total, 1)
    order = sorted(range(len(spans)), key=lambda i: (-spans[i]["duration"], i))
    kept = len(_first([spans[i] for i in order[: 4 * MOST_WHOLE]], share)) if spans else 0
    return {**lane, "spans": [spans[i] for i in sorted(order[:kept])], "total": len(spans)}

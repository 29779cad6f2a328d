"""Reports that are too big for the wire or for a notebook: what a user sees first, whole; the rest by its numbers.

A summary has every cluster and host operation (up to 2 000 of each), the slowest kernels, the longest spans, the heaviest
boundaries and values, the operations that say on which lines all this stands, and `summary` with the counts of everything. The
panel asks for the parts that it opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from jitlab.report.render import wording
from jitlab.report.schema import lists

Json = dict[str, Any]

WHOLE_BYTES = 300_000  # a report up to this size goes as it is
SUMMARY_BYTES = 150_000  # of what a summary has of the lists that are too long for it
PART_BYTES = 1_000_000  # of one answer
MOST_WHOLE = 2000  # clusters, host operations
MOST_NAMES = 20  # of the operations of a cluster or kernel
MOST_PART = 20_000
PARTS = ("ops", "boundaries", "spans", "kernels", "temporaries")
LISTS = tuple(key for key in lists() if key not in (*PARTS, "clusters", "sources"))


def on_wire(data: Mapping[str, Any]) -> Json:
    """The report itself, or its summary where it is too big."""
    return dict(data) if estimated_size(data) <= WHOLE_BYTES else summarised(data, SUMMARY_BYTES)


def summarised(data: Mapping[str, Any], room: int) -> Json:
    """A summary of a report; its operations, boundaries, spans, kernels and temporaries take about `room` bytes."""
    lanes = data["timeline"]["lanes"]
    spans = sum(len(lane["spans"]) for lane in lanes)
    temporaries = data.get("temporaries", [])
    lists = {"ops": data["ops"], "boundaries": data["boundaries"], "kernels": data["kernels"], "temporaries": temporaries}
    sizes = {key: estimated_size(value) for key, value in lists.items()}
    share = shares(sizes | {"spans": sum(estimated_size(lane["spans"]) for lane in lanes)}, room)
    kernels = _slowest_kernels(data["kernels"], share["kernels"])
    result = dict(data)
    sent = {(kernel.get("plan"), kernel["cluster"], kernel["name"]) for kernel in kernels}
    result["clusters"] = [shortened(entry, sent) for entry in slowest(data["clusters"], MOST_WHOLE)]
    result["kernels"] = [shortened(entry) for entry in kernels]
    for key in LISTS:
        if key in data:
            result[key] = slowest(data[key], MOST_WHOLE)
    result["ops"] = _telling_ops(data, kernels, share["ops"])
    result["boundaries"] = _heaviest(data["boundaries"], share["boundaries"])
    if "temporaries" in data:
        result["temporaries"] = _heaviest(temporaries, share["temporaries"])
    result["timeline"] = {**data["timeline"], "lanes": [_lane(lane, share["spans"], spans) for lane in lanes]}
    result["summary"] = {
        "ops": len(data["ops"]), "boundaries": len(data["boundaries"]), "spans": spans,
        "clusters": {cluster["name"]: {"ops": cluster.get("op_count", len(cluster["ops"]))} for cluster in result["clusters"]},
        "kernels": len(data["kernels"]), "kernel_seconds": sum(kernel.get("seconds") or 0.0 for kernel in data["kernels"]),
        "temporaries": _reaching_memory(temporaries), "edges": edges(data),
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
    ops = {(op["plan"], op["name"]): op for op in data["ops"]}
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
                    moved[op["plan"], of, into] += wording.nbytes(ops[op["plan"], source])
    return [
        {"plan": plan, "producer": of, "consumer": into, "count": number, "bytes": moved[plan, of, into]}
        for (plan, of, into), number in list(count.items())[: 2 * MOST_WHOLE]
    ]


def slowest(entries: Sequence[Mapping[str, Any]], keep: int, by: str = "seconds") -> list[Any]:
    """Those that took longest, or have most `by`, in their order."""
    if len(entries) <= keep:
        return list(entries)
    order = sorted(range(len(entries)), key=lambda i: (-(entries[i].get(by) or 0.0), i))
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


def shortened(entry: Mapping[str, Any], sent: AbstractSet[Any] | None = None) -> Json:
    """A cluster or kernel with the first of its operations, and of its kernels those that are `sent`; `op_count` and
    `kernel_count` say how many there are."""
    result = dict(entry)
    if len(entry["ops"]) > MOST_NAMES:
        result |= {"ops": entry["ops"][:MOST_NAMES], "op_count": len(entry["ops"])}
    if sent is not None and "kernels" in entry:
        names = [name for name in entry["kernels"] if (entry.get("plan"), entry["name"], name) in sent]
        if len(names) < len(entry["kernels"]):
            result |= {"kernels": names, "kernel_count": entry.get("kernel_count", len(entry["kernels"]))}
    return result


def shares(sizes: Mapping[str, int], room: int) -> dict[str, int]:
    """Of `room` bytes as many as each needs, or an even part of what the smaller ones leave."""
    shares: dict[str, int] = {}
    for at, (key, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        shares[key] = min(size, (room - sum(shares.values())) // (len(sizes) - at))
    return shares


def _slowest_kernels(kernels: Sequence[Mapping[str, Any]], room: int) -> list[Any]:
    """As many as `room` holds, in their order. First the slowest that begins on each line: a line's cost is that kernel's."""
    order = sorted(range(len(kernels)), key=lambda i: (-(kernels[i].get("seconds") or 0.0), i))
    seen: set[Any] = set()
    of_lines: list[int] = []
    others: list[int] = []
    for at in order:
        line = (kernels[at].get("plan"), min(kernels[at]["lines"], default=0))
        (others if line in seen else of_lines).append(at)
        seen.add(line)
    kept = len(_first([kernels[at] for at in of_lines + others], room))
    return [kernels[at] for at in sorted((of_lines + others)[:kept])]


def _telling_ops(data: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]], room: int) -> list[Any]:
    """What NumPy runs, and as many others as `room` holds: one at least of each cluster that is sent, then one of each line of
    the kernels that are, then the first."""
    ops = data["ops"]
    at = {(op["plan"], op["name"]): index for index, op in enumerate(ops)}
    host = slowest([op for op in ops if op["cluster"] is None and "parent" not in op], MOST_WHOLE)
    kept = {at[op["plan"], op["name"]]: None for op in host}

    def wanted() -> Iterator[int]:
        for cluster in sorted(data["clusters"], key=lambda cluster: -(cluster.get("seconds") or 0.0)):
            yield from (at[cluster["plan"], name] for name in cluster["ops"][:1] if (cluster["plan"], name) in at)
        for kernel in sorted(kernels, key=lambda kernel: -(kernel.get("seconds") or 0.0)):
            lines = set()
            for index in (at.get((kernel.get("plan"), name)) for name in kernel["ops"]):
                line = None if index is None else str([position[:2] for position in ops[index]["lines"]])
                if index is not None and line not in lines:
                    lines.add(line)
                    yield index
        yield from range(len(ops))

    if len(host) < MOST_WHOLE:
        left = room
        for index in wanted():
            if index not in kept:
                left -= estimated_size(ops[index])
                if left < 0:
                    break
                kept[index] = None
    return [ops[index] for index in sorted(kept)]


def _reaching_memory(temporaries: Sequence[Mapping[str, Any]]) -> list[Json]:
    """How many values of each cluster reach memory, and their bytes; those that the verdict counts apart."""
    rows: dict[tuple[str, str], Json] = {}
    for value in temporaries:
        key = (value["plan"], value["cluster"])
        row = rows.setdefault(key, {"plan": key[0], "cluster": key[1], "count": 0, "bytes": 0, "inside": 0, "inside_bytes": 0})
        row["count"] += 1
        row["bytes"] += value["bytes"] or 0
        if value.get("counted"):
            row["inside"] += 1
            row["inside_bytes"] += value["bytes"] or 0
    return list(rows.values())[:MOST_WHOLE]


def _first(entries: Sequence[Any], room: int) -> list[Any]:
    """As many as about `room` bytes hold, at least one."""
    size = estimated_size(entries)
    return list(entries if size <= room else entries[: max(1, len(entries) * max(room, 0) // size)])


def _heaviest(boundaries: Sequence[Mapping[str, Any]], room: int) -> list[Any]:
    entries = slowest(boundaries, MOST_WHOLE, "bytes")
    return slowest(entries, len(_first(entries, room)), "bytes")


def _lane(lane: Mapping[str, Any], room: int, total: int) -> Json:
    """The longest spans of a lane, in their order; lanes share the room by their numbers."""
    spans = lane["spans"]
    share = room * len(spans) // max(total, 1)
    order = sorted(range(len(spans)), key=lambda i: (-spans[i]["duration"], i))
    kept = len(_first([spans[i] for i in order[: 4 * MOST_WHOLE]], share)) if spans else 0
    return {**lane, "spans": [spans[i] for i in sorted(order[:kept])], "total": len(spans)}

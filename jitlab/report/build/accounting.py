"""What was moved, what fusion saved, and what memory was asked for: the cost model's bytes beside the allocator's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jitlab.api.check.check_text import verdict
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.render import wording

if TYPE_CHECKING:
    from jitlab.report.recording import Recording

Json = dict[str, Any]

#: Values below this size stay in the caches and are not told of in the text; so many of the others are.
SMALL_BYTES, MOST_TOLD = 64_000, 3

#: Below what a check of a cell found.
NOT_PYTHON = "Each operation was compared, not the cell's own Python; f.check(*args) does that for a function."


def add_traffic(data: Json, recording: Recording) -> None:
    """`allocated_bytes` of clusters, `bytes_moved`, `bytes_saved` and `stored` of the verdict. What nobody measured or knows is
    None."""
    title = {plan["name"]: (plan["function"], plan["trace"]) for plan in data["plans"]}
    for cluster in data["clusters"]:
        key = (*title[cluster["plan"]], cluster["name"])
        cluster["allocated_bytes"] = recording.scratch.get(key)
    data["verdict"].update(moved(data))
    if (told := stored(data)) is not None:
        data["verdict"]["stored"] = told
    if recording.numerics is not None:
        data["numerics"] = recording.numerics


def moved(data: Mapping[str, Any]) -> Json:
    """Bytes that all calls of clusters moved (the cost model's), and those that fusion kept out of memory."""
    ran = [cluster for cluster in data["clusters"] if cluster["calls"]]
    if not ran:
        return {"bytes_moved": None, "bytes_saved": None}
    saved = [cluster.get("bytes_saved") for cluster in ran]
    if any(cluster.get("per_turn") for cluster in ran):  # nobody counted the turns of its loop
        return {"bytes_moved": None, "bytes_saved": None}
    return {
        "bytes_moved": sum(c["calls"] * (c["bytes_read"] + c["bytes_written"]) for c in ran),
        "bytes_saved": None if None in saved else sum(c["calls"] * (c.get("bytes_saved") or 0) for c in ran),
    }


def in_words(data: Mapping[str, Any]) -> list[str]:
    """A sentence on traffic, one on the arrays that are stored though they are no results, and the largest of those; nothing
    where nothing ran."""
    verdict = data["verdict"]
    saved, moved = verdict.get("bytes_saved"), verdict.get("bytes_moved")
    is_per_turn = any(cluster.get("per_turn") and cluster["calls"] for cluster in data["clusters"])
    if not moved and not is_per_turn:
        return []
    lines = [f"memory traffic {units.size(moved)}{_beside(saved, moved)} (cost model)"] if moved else []
    if verdict.get("stored"):
        lines.append(verdict["stored"]["text"])
        ops = wording.operations(data)
        large = _large(data)
        for of_value in large[:MOST_TOLD]:
            more = f" (in {len(of_value)} traces, here the largest)" if len(of_value) > 1 else ""
            lines.append(in_a_line(of_value[0], ops) + more)
        if rest := [of_value[0]["bytes"] for of_value in large[MOST_TOLD:]]:
            lines.append(f"and {len(rest)} more, {units.size(sum(rest))}")
    return lines


def stored(data: Mapping[str, Any]) -> Json | None:
    """`verdict.stored` of docs/reference/report-format.md, and the mark of those that it counts."""
    left = [of_value[0] for of_value in _large(data)]
    if not left:
        return None
    for temporary in left:
        temporary["counted"] = True
    whole, are = sum(t["bytes"] for t in left), "are" if len(left) > 1 else "is"
    said = f"{units.counted(len(left), 'intermediate array')} {are} stored, {units.size(whole)} a call"
    return {"text": said, "count": len(left), "bytes": whole}


def _large(data: Mapping[str, Any]) -> list[list[Json]]:
    """The values that a call stores, the largest first, each with those of other traces; of a plan that was given up none."""
    gone = {plan["name"] for plan in data["plans"] if plan.get("given_up")}
    like = {plan["name"] for plan in data["plans"] if plan.get("like", plan["name"]) == plan["name"]} - gone
    every = [t for t in data.get("temporaries", ()) if t["plan"] in like and t["bytes"] >= SMALL_BYTES]
    return _by_value(data, sorted(every, key=lambda t: -t["bytes"]))


def _by_value(data: Mapping[str, Any], temporaries: list[Json]) -> list[list[Json]]:
    """What each trace of a function stores for the same value of the program, together; a call runs one of the traces."""
    functions = {plan["name"]: plan["function"] for plan in data["plans"]}
    found: dict[Any, dict[str, Json]] = {}
    for t in temporaries:
        places = tuple(map(tuple, t["lines"])) if t["lines"] and isinstance(t["lines"][0], list) else tuple(t["lines"])
        of_value = found.setdefault((functions[t["plan"]], t["name"], tuple(t["consumers"]), places), {})
        of_value.setdefault(t["plan"], t)
    return [list(of_value.values()) for of_value in found.values()]


def _beside(saved: int | None, moved: int) -> str:
    """What NumPy would move, in words; a few bytes of numbers are nothing beside arrays."""
    if saved is None:
        return ""
    if abs(saved) * 1000 < moved:
        return ", as much as NumPy's"
    return f"; NumPy's {units.size(moved + saved)}"


def numerics_in_words(data: Mapping[str, Any]) -> list[str]:
    """How far the checked outputs are from NumPy's, and each that is out of bounds with who made it so."""
    rows = data.get("numerics")
    if not rows:
        return []
    wrong = [row for row in rows if not row["ok"]]
    head = verdict(len(rows), len(wrong), sum(row.get("bound_ulp") is None for row in rows))
    near = [row["nearest"] for row in rows if row.get("nearest")]
    near = [n for n in near if n["ulp"] and n["bound_abs"]]
    if not any(row["differing"] for row in rows):
        said = "; the same bits"
    elif near and not wrong:
        one = max(near, key=lambda n: n["abs"] / n["bound_abs"])
        said = f"; nearest to its bound: {one['ulp']:,.3g} of {one['bound_ulp']:,.3g} ULP allowed"
    else:
        said = ""
    lines = [f"{head}, compared with NumPy{said}"]
    for row in wrong:
        said = row["guilty"]["text"] if row["guilty"] else row.get("note", "")
        name = wording.operation_text(row, row["output"], wording.line_text(row["lines"]))
        lines.append(clean(f"✗ {name}: {said}"))
    return [*lines, NOT_PYTHON]


def in_a_line(temporary: Mapping[str, Any], ops: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """`y` (mul, line 7) → `m` (mean), sub, 64.0 kB: why"""
    plan = temporary["plan"]
    where = wording.line_text(wording.numbers_of(temporary["lines"]))
    value = wording.operation_text(ops.get((plan, temporary["producer"])), temporary["producer"], where)
    if temporary["consumers"] == [temporary["producer"]]:  # what an operation makes for itself
        way = f"a copy of what {value} reads" if temporary["name"].endswith(" operand") else f"parts of {value}"
    else:
        readers = ", ".join(wording.operation_text(ops.get((plan, name)), name) for name in temporary["consumers"])
        way = f"{value}{temporary['name'].removeprefix(temporary['producer'])} → {readers}"
    reason = temporary["reason"]
    said = "" if wording.clause_says_size(reason) else f", {units.size(temporary['bytes'])}"
    return clean(f"{way}{said}: {wording.clause_of(reason)}")

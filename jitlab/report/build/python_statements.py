"""What Python ran of a cell, as a user counts it: a statement once, though it may run in steps, or for several reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from jitlab.messages import text, units
from jitlab.report.render import wording

Json = dict[str, Any]


def whole_statements(entries: Sequence[Json]) -> list[Json]:
    """Entries of steps that lie within another entry's statement are added to it, and so are those of the same place: the time
    of all, the reason of the whole statement (of several, the one that cost most)."""
    kept: list[Json] = []
    for entry in sorted(entries, key=_extent, reverse=True):
        whole = next((other for other in kept if _within(entry, other)), None)
        if whole is None:
            kept.append({**entry, "of": entry["seconds"]})
            continue
        if whole["lines"] == entry["lines"]:  # the same at another time, or for another reason
            whole["calls"] += entry["calls"]
            if entry["seconds"] > whole["of"]:
                whole["of"], whole["reason"] = entry["seconds"], entry["reason"]
        else:
            whole["calls"] = max(whole["calls"], entry["calls"])
        whole["seconds"] += entry["seconds"]
        whole["fell_back"] |= entry["fell_back"]
    order = {tuple(map(tuple, entry["lines"])): n for n, entry in reversed(list(enumerate(entries)))}
    kept.sort(key=lambda entry: order[tuple(map(tuple, entry["lines"]))])
    return [{key: value for key, value in entry.items() if key != "of"} for entry in kept]


def _extent(entry: Json) -> tuple[int, int, int]:
    """Of the largest span: its lines, where it begins and where it ends; of one line, the longer one is the statement."""
    return max(((end - line, -column, end_column) for _, line, column, end, end_column in entry["lines"]), default=(0, 0, 0))


def _within(part: Json, whole: Json) -> bool:
    """Every span of the part lies in one of the whole's."""
    return bool(part["lines"]) and all(any(_holds(outer, inner) for outer in whole["lines"]) for inner in part["lines"])


def _holds(outer: Sequence[Any], inner: Sequence[Any]) -> bool:
    if outer[0] != inner[0] or outer[2] < 0 or inner[2] < 0:
        return list(outer) == list(inner)
    begins, ends = (inner[1], inner[2]), (inner[3], inner[4])
    return (outer[1], outer[2]) <= begins and ends <= (outer[3], outer[4])


def fell_back(data: Mapping[str, Any], told: str = "") -> str:
    """Of a run whose compiled code did not fit any more, so that Python ran statements instead: that, why, and what is `told`
    of the rest; "" of others."""
    fallen: Counter[str] = Counter()
    for entry in _taken_over(data):
        fallen[fall_back_reason(entry["reason"])] += 1
    if not fallen:
        return ""
    (why, _), *_ = fallen.most_common(1)
    said = text("waited.fell_back", statements=units.counted(fallen.total(), "statement"), reason=why)
    return "; ".join(filter(None, (said, told)))


def fall_back_reason(reason: Json) -> str:
    """As the lead says it: without the values, which are others in each run."""
    values = wording.with_values("", reason["args"].get("met", ()), reason["args"].get("more", False))
    return wording.unmarked(reason["text"].removesuffix(values))


def settled(data: Mapping[str, Any]) -> Json | None:
    """`verdict.settled` of docs/reference/report-format.md: of several what took most."""
    entries = sorted(data["as_python"], key=lambda entry: -entry["seconds"])
    if not entries:
        return None
    said, more = wording.as_python(entries[0]), len(entries) - 1
    times: Json = next((clause["args"] for clause in entries[0]["said"] if clause["args"].get("python")), {})
    short = text("waited.settled_times", python=times["python"], compiled=times["compiled"]) if times else ""
    return {
        "text": text("waited.settled_more", said=said, others=units.counted(more, "more function")) if more else said,
        "short": short or text("waited.settled_so"),
    }


def mark_given_up(data: Mapping[str, Any]) -> None:
    """Mark plans no call of which came to its end, since Python took over. Alike ones are one plan."""
    taken = _taken_over(data)
    if not taken:
        return
    calls: Counter[str] = Counter()
    for plan in data["plans"]:
        calls[plan["like"]] += plan["calls"]
    lines = {(span[0], line) for entry in taken for span in entry["lines"] for line in range(span[1], span[3] + 1)}
    plans = {op["plan"] for op in data["ops"] if any((span[0], span[1]) in lines for span in op["lines"])}
    functions = {entry["reason"]["args"]["name"] for entry in taken if entry["reason"]["detail"] == "call"}
    for plan in data["plans"]:
        if not calls[plan["like"]] and (plan["name"] in plans or plan["function"] in functions):
            plan["given_up"] = True


def _taken_over(data: Mapping[str, Any]) -> list[Json]:
    """What Python ran instead of code that did not fit any more."""
    return [entry for entry in data["statements"] if entry["fell_back"]]

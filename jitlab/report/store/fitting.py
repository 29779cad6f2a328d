"""A report cut to the size that a notebook's file has for it: each list has its share, in which the most telling stays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from jitlab.report.schema import has, lists

from .summary import shares, shortened, summarised

Json = dict[str, Any]

#: What is of one plan each, by its `plan`. Clusters come after the kernels that they name.
OF_PLANS = tuple(key for key, entry in lists().items() if has(entry, "plan"))
TIMED, UNTIMED = ("clusters", "kernels", "fallbacks"), ("ops", "boundaries", "temporaries")
LISTS = tuple(key for key in lists() if key != "sources")

SUMMARY_OPS = 2000  # from so many operations on there is a summary
FEW = 12  # of the room one part for the edges of a summary, and one for its values
MOST_TEXT, MOST_ITEMS = 500, 64  # of a string, and of a list within an entry, in a report that is cut
SHORT = 18  # characters of an expression that is a box's label as it stands
LONG_LINE = 400  # characters of a line of source, in a report that is cut
AROUND = 2  # lines that stay before and after one that something refers to
PARTS = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3, 0.15, 0.05)  # of the room, tried in turn: clusters' names in a summary come on top
AT, DEPTH = 7, 10  # how deep a report, and most of its items, are in a notebook file


def fitted(data: Mapping[str, Any], room: int) -> Json:
    """The report with as much detail as `room` bytes of JSON hold. What is small stays whole; the longer lists and the sources
    share the room that it leaves: the slowest, the heaviest and the lines that are spoken of first. `omitted` counts what was
    left out, `summary` how much there is of everything."""
    if weight(data) <= room:
        return dict(data)
    report = _shortened(data)
    if len(data["ops"]) > SUMMARY_OPS:
        report["summary"] = summarised(data, 0)["summary"]
    for part in PARTS:
        cut = _counted(_cut(report, int(room * part)), data)
        if _bytes_in_file(cut) <= room:
            return cut
    return _counted(_least(report), data)


def clipped(value: Any, most_text: int = MOST_TEXT, most_items: int = MOST_ITEMS) -> Any:
    """Plain data without the middle of long strings and the end of long lists."""
    if isinstance(value, str):
        return value if len(value) <= most_text else f"{value[: most_text * 2 // 3]}…{value[-(most_text // 4) :]}"
    if isinstance(value, Mapping):
        items = list(value.items())[:most_items]
        return {clipped(key, most_text): clipped(item, most_text, most_items) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [clipped(item, most_text, most_items) for item in value[:most_items]]
    return value


def weight(value: Any) -> int:
    """About the bytes in the notebook file, which has a line for each item, indented; rather too many."""
    text = json.dumps(value, ensure_ascii=False, separators=(",\n", ": "))
    lines = text.count(",\n") + 2 * (text.count("[") + text.count("{"))
    return len(text.encode("utf-8", "backslashreplace")) + DEPTH * lines + 32


def _bytes_in_file(value: Json) -> int:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return len(text.encode("utf-8", "backslashreplace")) + AT * (text.count("\n") + 1)


def without_long_texts(value: Any) -> Any:
    """Plain data whose strings have at most `MOST_TEXT` characters."""
    if isinstance(value, str):
        return clipped(value)
    if isinstance(value, Mapping):
        return {clipped(key): without_long_texts(item) for key, item in value.items()}
    return [without_long_texts(item) for item in value] if isinstance(value, (list, tuple)) else value


def _shortened(data: Mapping[str, Any]) -> Json:
    """The report without very long names and without most of the names in a cluster or kernel; sources as they are."""
    report: Json = {key: clipped(value) for key, value in data.items() if key not in (*LISTS, "sources", "timeline")}
    report |= {key: [_short_entry(key, entry) for entry in data[key]] for key in LISTS if key in data}
    lanes = data["timeline"]["lanes"][:MOST_ITEMS]
    lanes = [{**clipped({**lane, "spans": []}), "spans": [clipped(span) for span in lane["spans"]]} for lane in lanes]
    report["cell"]["source"] = data["cell"]["source"]
    return {**report, "timeline": {"lanes": lanes}, "sources": data.get("sources", [])}


def _short_entry(key: str, entry: Json) -> Any:
    if key == "clusters":  # which of its kernels are named depends on which are kept
        return {**clipped(shortened(entry)), "kernels": entry["kernels"]}
    if key == "ops":
        entry = _short_operation(entry)
    if key in ("boundaries", "temporaries"):  # the reason's text says it all
        reason = {name: value for name, value in entry["reason"].items() if name not in ("args", "detail")}
        entry = {name: value for name, value in {**entry, "reason": reason}.items() if name not in ("rejections", "pair")}
    return clipped(shortened(entry) if key == "kernels" else entry)


def _short_operation(entry: Json) -> Json:
    """Without the word of one whose expression is short enough for its box, and without a text that its kind says, too."""
    written = entry.get("written") or ""
    left_out = {"written": written == entry["op"], "word": len(written) <= SHORT}
    return {name: value for name, value in entry.items() if not left_out.get(name)}


def _cut(report: Json, room: int) -> Json:
    """The report in about `room` bytes."""
    kept = dict(report)
    if "summary" in report:
        few = {key: list(_first(iter(report["summary"][key]), room // FEW)) for key in ("edges", "temporaries")}
        kept["summary"] = {**report["summary"], **few, "clusters": {}}
    whole = [value for key, value in kept.items() if key not in (*LISTS, "timeline", "sources", "cell")]
    room -= sum(map(weight, whole)) + weight({**report["cell"], "source": []})
    weights = _weights(kept)
    sizes = _sizes(kept, weights)
    kept = _of_few_plans(kept, weights, _shared(sizes, room)[0])
    weights = _weights(kept)
    sizes = _sizes(kept, weights)
    share = _shared(sizes, room)[1]
    if any(sizes[key] > share[key] for key in (*TIMED, *UNTIMED) if key in weights):
        kept = _alike_as_one(kept, {plan["name"] for plan in kept["plans"]})
        weights = _weights(kept)
        sizes = _sizes(kept, weights)
        share = _shared(sizes, room)[1]
    if sizes["text"] > share["text"]:
        kept |= _texts(kept, share["text"])
    if sizes["timeline"] > share["timeline"]:
        kept["timeline"] = _longest_spans(kept["timeline"], share["timeline"])
    for key in weights:
        if sizes[key] > share[key]:
            kept[key] = _most_telling(key, kept[key], weights[key], share[key])
    there = {(kernel.get("plan"), kernel["cluster"], kernel["name"]) for kernel in kept["kernels"]}
    kept["clusters"] = [shortened(cluster, there) for cluster in kept["clusters"]]
    if "summary" in report:
        names = {cluster["name"] for cluster in kept["clusters"]}
        kept["summary"]["clusters"] = {name: of for name, of in report["summary"]["clusters"].items() if name in names}
    return kept


def _alike_as_one(report: Json, names: Collection[str]) -> Json:
    """Without what is of the plans of these names that another plan stands for: that one has their calls and their seconds.
    What the clusters of all of them took is then the same however much of the report is cut."""
    known = {plan["name"] for plan in report["plans"]}
    stands = {plan["name"]: plan["like"] for plan in report["plans"] if plan["name"] in names and plan["like"] in known}
    one = {key: _summed(report[key], stands) for key in TIMED if key in report}
    few = {key: [e for e in report[key] if stands.get(e["plan"], e["plan"]) == e["plan"]] for key in UNTIMED if key in report}
    return {**report, **one, **few}


def _summed(entries: Sequence[Json], stands: Mapping[str, str]) -> list[Json]:
    """The nth of a plan with the nth of each that it stands for."""
    seen: Counter[str] = Counter()
    same: dict[tuple[str, int], list[Json]] = {}
    for entry in entries:
        plan = entry["plan"]
        same.setdefault((stands.get(plan, plan), seen[plan]), []).append(entry)
        seen[plan] += 1
    summed = []
    for (plan, _), of in same.items():
        first = next((entry for entry in of if entry["plan"] == plan), of[0])
        known = [entry["seconds"] for entry in of if entry["seconds"] is not None]
        summed.append({**first, "seconds": sum(known) if known else None, "calls": sum(entry["calls"] for entry in of)})
    return summed


def _weights(report: Json) -> dict[str, list[int]]:
    entries = {**report, "clusters": [{**cluster, "kernels": []} for cluster in report["clusters"]]}
    return {key: [weight(entry) for entry in entries[key]] for key in LISTS if key in report}


def _sizes(report: Json, weights: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Of all that can be cut: the lists, the spans, and the text of the cell and of what else is spoken of."""
    sizes = {key: sum(of) for key, of in weights.items()}
    return sizes | {"timeline": weight(report["timeline"]), "text": weight([report["sources"], report["cell"]["source"]])}


def _shared(sizes: Mapping[str, int], room: int) -> tuple[int, dict[str, int]]:
    """The bytes for all that is of plans, and for each part. What is of plans counts for two beside the other lists, the spans
    and the text; its own lists share what it has."""
    of_plans = {key: size for key, size in sizes.items() if key in ("plans", *OF_PLANS)}
    half = sum(of_plans.values()) // 2
    share = shares({**sizes, **dict.fromkeys(of_plans, 0), "half": half, "other half": half + 1}, max(0, room))
    whole = share["half"] + share["other half"]
    return whole, {key: share[key] for key in sizes} | shares(of_plans, whole)


def _of_few_plans(report: Json, weights: Mapping[str, Sequence[int]], room: int) -> Json:
    """Of plans that do not fit those that are unlike the others and took longest, each with all that is its own. The first is
    there whatever its size: of one that is large alone the lists are cut."""
    size: dict[str, int] = {}
    for key in ("plans", *OF_PLANS):
        for entry, heavy in zip(report.get(key, ()), weights.get(key, ()), strict=True):
            name = str(entry.get("name" if key == "plans" else "plan"))
            size[name] = size.get(name, 0) + heavy
    plans = sorted(report["plans"], key=lambda plan: (plan["like"] != plan["name"], -(plan.get("seconds") or 0.0)))
    if sum(size.values()) <= room or not plans:
        return report
    chosen, left = {plans[0]["name"]}, room - min(size[plans[0]["name"]], room // 2)
    for plan in plans[1:]:
        if size[plan["name"]] <= left:
            left -= size[plan["name"]]
            chosen.add(plan["name"])
    report = _alike_as_one(report, {plan["name"] for plan in plans} - chosen)
    few = {key: [entry for entry in report[key] if entry.get("plan") in chosen] for key in OF_PLANS if key in report}
    return {**report, "plans": [plan for plan in report["plans"] if plan["name"] in chosen], **few}


def _most_telling(key: str, entries: Sequence[Json], weights: Sequence[int], room: int) -> list[Json]:
    """Those that took longest, or that have most bytes, as many as `room` holds, in their order."""
    by = "seconds" if has(lists()[key], "seconds") else "bytes"
    chosen = []
    for at in sorted(range(len(entries)), key=lambda at: (-(entries[at].get(by) or 0), at)):
        if weights[at] <= room:
            room -= weights[at]
            chosen.append(at)
    return [entries[at] for at in sorted(chosen)]


def _longest_spans(timeline: Json, room: int) -> Json:
    lanes = timeline["lanes"]
    room -= weight([{**lane, "spans": []} for lane in lanes])
    order = sorted(((-span["duration"], at, n) for at, lane in enumerate(lanes) for n, span in enumerate(lane["spans"])))
    chosen: list[set[int]] = [set() for _ in lanes]
    for _, at, n in order:
        room -= weight(lanes[at]["spans"][n])
        if room < 0:
            break
        chosen[at].add(n)
    return {**timeline, "lanes": [_with_spans(lane, chosen[at]) for at, lane in enumerate(lanes)]}


def _with_spans(lane: Json, chosen: Collection[int]) -> Json:
    spans = [lane["spans"][n] for n in sorted(chosen)]
    return {**lane, "spans": spans, "dropped": (lane.get("dropped") or 0) + len(lane["spans"]) - len(spans)}


# ---- the text
def _texts(report: Json, room: int) -> Json:
    """The cell's source where it has room beside the others, else nothing of it. Of the sources first the middle of long lines
    goes, then the lines that nothing refers to."""
    sources = [{**piece, "lines": [clipped(line, LONG_LINE) for line in piece["lines"]]} for piece in report["sources"]]
    if weight(sources) > room:
        sources = list(_first(_spoken_of(sources, _places(report)), room))
    own = report["cell"]["source"]
    left = room - weight(sources)
    return {"sources": sources, "cell": {**report["cell"], "source": own if weight(own) <= left else []}}


def _places(report: Json) -> set[tuple[str, int]]:
    """The lines that something of the report stands on: the first and the last of each."""
    lines = (span for key in LISTS for entry in report.get(key, ()) for span in entry.get("lines", ()))
    return {(span[0], line) for span in lines if isinstance(span, list) for line in (span[1], span[3])}


def _spoken_of(sources: Sequence[Json], places: Collection[tuple[str, int]]) -> Iterator[Json]:
    """Pieces with the lines at these places and the few around each."""
    for piece in sources:
        count, first = len(piece["lines"]), piece["first"]
        here = [line - first for file, line in places if file == piece["file"] and 0 <= line - first < count]
        kept = sorted({at for line in here for at in range(max(0, line - AROUND), min(count, line + AROUND + 1))})
        runs: list[list[int]] = []
        for at in kept:
            if runs and runs[-1][-1] == at - 1:
                runs[-1].append(at)
            else:
                runs.append([at])
        for run in runs:
            yield {**piece, "first": first + run[0], "lines": piece["lines"][run[0] : run[-1] + 1]}


def _first(entries: Iterator[Json], room: int) -> Iterator[Json]:
    for entry in entries:
        room -= weight(entry)
        if room < 0:
            return
        yield entry


# ---- the rest
def _least(report: Json) -> Json:
    """The verdict and the numbers."""
    dropped = (*LISTS, "sources", "timeline", "summary")
    least: Json = {key: clipped(value, 100, 8) for key, value in report.items() if key not in dropped}
    least |= {key: [] for key in LISTS if key in report}
    return least | {"cell": {**least["cell"], "source": []}, "sources": [], "timeline": {"lanes": []}}


def _counted(cut: Json, data: Mapping[str, Any]) -> Json:
    """With `omitted`: how many of each list are not there, and how many lines of source are not, or not whole."""
    omitted = {key: len(data[key]) - len(cut[key]) for key in LISTS if len(cut.get(key, ())) < len(data.get(key, ()))}
    kept = {at: text for at, text in _lines_of(cut)}
    lines = sum(kept.get(at) != text for at, text in _lines_of(data))
    omitted |= {"lines": lines} if lines else {}
    return {**cut, "omitted": omitted} if omitted else cut


def _lines_of(report: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], str]]:
    """The text that is spoken of, of a report that keeps none the cell's."""
    of_cell = {"file": "", "first": 1, "lines": report["cell"]["source"]}
    for piece in report.get("sources") or [of_cell]:
        for number, line in enumerate(piece["lines"], piece["first"]):
            yield (piece["file"], number), line

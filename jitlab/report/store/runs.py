"""What one run of a cell (or a script) leaves behind to be compared with: plain data, small, of no live object."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from jitlab.report.duration_samples import MOST
from jitlab.report.render import wording
from jitlab.support.statistics import FEWEST, FEWEST_APART, interval, spread

from .fingerprints import short
from .summary import slowest

Json = dict[str, Any]
Samples = Mapping[tuple[str, str], Sequence[float]]  # of (plan, cluster or host operation), in seconds

MOST_PARTS = 400  # of a run; the rest takes less time than these
MOST_CAUSES = 5  # of retraces
MOST_OPS = 2000  # of a part


def run_facts(data: Mapping[str, Any], samples: Samples | None = None, others: float | None = None) -> Json:
    """The facts of a report; `others`: the share of the processors that other programs took meanwhile. Without samples (of a
    report that was saved) the launches of its timeline take their place."""
    known = samples if samples is not None else span_samples(data)
    like = {plan["name"]: plan.get("like", plan["name"]) for plan in data["plans"]}
    function = {plan["name"]: plan["function"] for plan in data["plans"]}
    shown = {title for title, stands_for in like.items() if title == stands_for}
    parts: dict[tuple[Any, ...], Json] = {}
    reads = _reading(data)
    place: Counter[str] = Counter()
    for cluster in data["clusters"]:
        plan = cluster["plan"]
        key = ("cluster", like.get(plan, plan), place[plan])
        place[plan] += 1
        part = parts.setdefault(key, _cluster_part(cluster, function.get(plan, ""), reads))
        _add(part, cluster, known.get((plan, cluster["name"]), ()))
    for fallback in data["fallbacks"]:
        plan = fallback["plan"]
        part = parts.setdefault(("host", like.get(plan, plan), fallback["name"]), _host_part(fallback, function.get(plan, "")))
        _add(part, fallback, known.get((plan, fallback["name"]), ()))
    ordered = slowest(list(parts.values()), MOST_PARTS)
    verdict, cell = data["verdict"], data["cell"]
    return {
        "cell": cell["id"], "title": cell["title"], "source": source_digest(cell["source"]), "error": cell["error"],
        "lead": verdict["lead"], "seconds": verdict["seconds"], "retraces": verdict["retraces"],
        "fingerprint": short(sorted({plan.get("fingerprint", "") for plan in data["plans"]})),
        "operations": verdict["operations"], "compiled": verdict["compiled"], "clusters": verdict["clusters"],
        "kernels": verdict["kernels"], "host": verdict["host"], "statements": len(data.get("statements", ())),
        "bytes": sum(k["bytes_read"] + k["bytes_written"] for k in data["kernels"] if k["plan"] in shown),
        "causes": [trace["text"] for trace in data["retraces"] if not trace["first"]][:MOST_CAUSES],
        "calls": max((part["calls"] for part in ordered), default=0), "parts": ordered, "runs": [], "others": others,
        "first": verdict.get("first_run") is not None,
        "between": 0.0, **_whole(ordered),
    }  # fmt: skip


def headline(data: Mapping[str, Any]) -> Json:
    """Of the facts what a list of runs shows: quick, also for a report of very many operations."""
    return {
        "seconds": data["verdict"]["seconds"], "retraces": data["verdict"]["retraces"], "error": data["cell"]["error"],
        "fingerprint": short(sorted({plan.get("fingerprint", "") for plan in data["plans"]})),
        "calls": max((part["calls"] for part in (*data["clusters"], *data["fallbacks"])), default=0),
    }  # fmt: skip


def source_digest(lines: Iterable[str]) -> str:
    """Of a cell's source, whatever white space ends its lines."""
    text = "\n".join(line.rstrip() for line in lines).strip()
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12] if text else ""


def span_samples(data: Mapping[str, Any]) -> dict[tuple[str, str], list[float]]:
    """Durations of the launches and host operations that the timeline has."""
    found: dict[tuple[str, str], list[float]] = {}
    for lane in data["timeline"]["lanes"]:
        for span in lane["spans"]:
            if span["kind"] in ("launch", "host") and span.get("plan") and span["duration"] > 0:
                found.setdefault((span["plan"], span["name"]), []).append(span["duration"] / 1e6)
    return {key: values[:: -(-len(values) // MOST)] for key, values in found.items()}


def _reading(data: Mapping[str, Any]) -> dict[tuple[str, str], list[Json]]:
    """The operations of each cluster: kind, how the program writes it, kernel, lines."""
    found: dict[tuple[str, str], list[Json]] = {}
    for op in data["ops"]:
        if op["cluster"] is not None:
            row = {"op": op["op"], "written": wording.written(op), "kernel": op["kernel"], "lines": _numbers(op["lines"])}
            found.setdefault((op["plan"], op["cluster"]), []).append(row)
    return found


def _cluster_part(cluster: Json, function: str, reads: Mapping[tuple[str, str], list[Json]]) -> Json:
    return {
        "kind": "cluster", "name": cluster["name"], "function": function, "fingerprint": cluster.get("fingerprint", ""),
        "color": cluster.get("color"), "lines": _numbers(cluster["lines"]), "kernels": len(cluster["kernels"]),
        "bytes": cluster["bytes_read"] + cluster["bytes_written"], "reason": "",
        "ops": reads.get((cluster["plan"], cluster["name"]), [])[:MOST_OPS], "calls": 0, "seconds": 0.0, "samples": [],
    }  # fmt: skip


def _host_part(fallback: Json, function: str) -> Json:
    reason = fallback["reason"]["text"] if fallback["reason"] else ""
    return {
        "kind": "host", "name": fallback["op"], "function": function, "fingerprint": short((fallback["op"], reason)),
        "written": wording.written(fallback), "color": None, "lines": _numbers(fallback["lines"]), "kernels": 0, "bytes": 0,
        "reason": reason, "ops": [], "calls": 0, "seconds": 0.0, "samples": [],
    }  # fmt: skip


def _add(part: Json, entry: Json, samples: Sequence[float]) -> None:
    """Traces that differ in sizes and values only are one part."""
    part["calls"] += entry["calls"]
    part["seconds"] += entry["seconds"] or 0.0
    part["samples"] = thinned([*part["samples"], *samples])


def thinned(samples: list[float]) -> list[float]:
    """At most `MOST` of them, from the whole row."""
    if len(samples) <= MOST:
        return samples
    return [samples[i * len(samples) // MOST] for i in range(MOST)]


def _whole(parts: Sequence[Json]) -> Json:
    """Samples of the whole cell. A round is one call of the part that takes most of the time; what the others took is spread
    over the rounds in the order of time, so that a drift of the machine stays where it was."""
    ran = [part for part in parts if part["samples"] and part["calls"]]
    if not ran:
        return {"samples": [], "span": 0.0}
    most = max(ran, key=lambda part: float(part["seconds"]))
    rounds = len(most["samples"])
    totals = [0.0] * rounds
    for part in ran:
        a_round = part["calls"] / most["calls"]
        values = part["samples"]
        for i in range(rounds):
            start, stop = i * len(values) // rounds, (i + 1) * len(values) // rounds
            piece = values[start:stop] or [values[start]]
            totals[i] += a_round * sum(piece) / len(piece)
    return {"samples": totals, "span": float(sum(part["seconds"] for part in ran))}


def pooled(runs: Sequence[Json], enough: int) -> Json:
    """The last of these runs, joined by those before it that ran the same source by the same plan until there are `enough`
    samples: a cell that calls a function once has one sample a run. First runs, in part of quick code, are left out where the
    others are enough to compare. `runs` names those that were taken, `between` is how much all runs of this plan differed."""
    last = runs[-1]
    alike = list(takewhile(lambda run: _is_alike(run, last), reversed(runs)))
    warm = [run for run in alike if run is last or not run.get("first")]
    if sum(len(run["samples"]) for run in warm) >= FEWEST_APART:
        alike = warm
    taken: list[Json] = []
    for run in alike:
        if sum(len(r["samples"]) for r in taken) < enough:
            taken.append(run)
    between = spread([interval(run["samples"])[0] for run in alike if len(run["samples"]) >= FEWEST])
    if len(taken) == 1:
        return {**last, "runs": [last["run"]], "between": between}
    taken.reverse()
    parts = [dict(part) for part in last["parts"]]
    for part in parts:
        same_parts = [_same_part(part, run) for run in taken]
        part["samples"] = thinned([value for other in same_parts if other for value in other["samples"]])
        part["seconds"] = sum(other["seconds"] for other in same_parts if other)
        part["calls"] = sum(other["calls"] for other in same_parts if other)
    return {
        **last, "between": between, "parts": parts, "runs": [run["run"] for run in taken],
        "span": sum(run["span"] for run in taken),
        "samples": thinned([value for run in taken for value in run["samples"]]),
        "others": max((run["others"] for run in taken if run["others"] is not None), default=None),
    }  # fmt: skip


def _is_alike(run: Json, last: Json) -> bool:
    """The same source by the same plan, to its end."""
    return run is last or ((run["source"], run["fingerprint"], run["error"]) == (last["source"], last["fingerprint"], None))


def _same_part(part: Json, run: Json) -> Json | None:
    """The part of a run of the same plan: of equal ones that in the same place."""
    key = part["kind"], part["fingerprint"]
    return next((other for other in run["parts"] if (other["kind"], other["fingerprint"]) == key), None)


def _numbers(lines: Iterable[Any]) -> list[int]:
    lines = list(lines)
    return lines if all(isinstance(line, int) for line in lines) else wording.numbers_of(lines)

"""What the text and the saved picture show, in order and with the same numbers: boxes of the run, retraces, what to do next."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from jitlab.ir.graphs.called import GRADIENT, PART
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.report.build.advice import is_code, unfixed
from jitlab.report.build.lines import home_file, where_text
from jitlab.report.build.python_statements import fall_back_reason
from jitlab.report.equal_reasons import above, places
from jitlab.support.lazy_dataclass import dataclass

from . import wording
from .marks import kernel_colors
from .unfused import Cut, cut, cuts

Json = Mapping[str, Any]

#: What is shown of a report besides its verdict; `show` of its data names some of them.
PARTS = ("graph", "retraces", "timeline")


@dataclass(frozen=True)
class Nest:
    """What is fused in the body of a loop or branch."""

    ops: tuple[str, ...]
    lines: str
    cuts: tuple[Cut, ...] = ()  # between this nest and those before it


@dataclass(frozen=True)
class KernelRow:
    name: str
    ops: tuple[str, ...]
    seconds: float | None
    note: str
    color: int  # its cluster's, or its own where there is one cluster alone
    cuts: tuple[Cut, ...] = ()  # between this kernel and those before it
    inside: tuple[Nest, ...] = ()  # of a loop or branch
    lines: str = ""  # where they are not those of its box


@dataclass(frozen=True)
class Box:
    """A cluster, an operation NumPy ran, or a statement Python ran; in program order."""

    kind: str  # "cluster", "host" or "statement"
    name: str
    lines: str
    seconds: float | None
    calls: int
    color: int = 0
    scope: str = ""
    moved: str = ""
    why: str = ""
    kernels: tuple[KernelRow, ...] = ()
    more_kernels: int = 0  # left out, each faster than these
    more_cuts: int = 0  # edges that were not fused, of values so small that they are counted only
    copies: tuple[str, ...] = ()  # that NumPy's program, which changes in place, does not make
    count: int = 1  # of equal host operations in a row
    edge: str = ""  # what goes to the next box
    at: tuple[str, int] = ("", 0)  # its first file and line
    heading: str = ""  # of the first box of a plan, where there are several
    is_given_up: bool = False  # of a plan that did not fit any more: Python ran its statements


@dataclass(frozen=True)
class RetraceRow:
    text: str  # 5 × lr: 0.1 → 0.095 (+4 more)
    detail: str  # a Python number, lines 10 and 14
    seconds: float
    fix: str | None
    note: str
    proof: str = ""  # the fix in words, with what its replay gave
    is_code: bool = False  # the fix can be copied into the program


@dataclass(frozen=True)
class LoopRow:
    """A loop that was not rolled."""

    text: str  # for i in range(20)
    detail: str  # line 9, 20 iterations
    why: str


@dataclass(frozen=True)
class Outline:
    lead: str
    counts: tuple[str, ...]
    seconds: float | None
    numpy_seconds: float | None
    next: Json | None
    boxes: tuple[Box, ...]
    hidden: int  # boxes left out because there are too many
    retraces: tuple[RetraceRow, ...]
    more_retraces: int
    warm_up: str
    lanes: tuple[Json, ...]
    loops: tuple[LoopRow, ...] = ()
    more_loops: int = 0
    colors: Mapping[tuple[str, str], int] = field(default_factory=dict)  #: by cluster, and by cluster and kernel
    deviation: float | None = None  # of a run that was repeated, whose mean `seconds` is
    waited: str = ""  # "10.0 s this run: 0.23 s work, 8.2 s compiling, 1.6 s Python"
    settled: str = ""  # what ran as Python because that takes less time, with the times and why
    repeated: str = ""  # what a loop took, where loops were asked for
    pays: str = ""  # when the compiling has paid for itself
    faster: str = ""  # "about 4.9 × faster", "no measurable difference from NumPy"; "" until NumPy was measured
    beside: str = ""  # what to know of that factor: how NumPy's side was taken, what other programs did

    @property
    def heads(self) -> tuple[str, ...]:
        """What is read first, a line each: what the user waited for, how that is beside NumPy, what was compiled."""
        by_numpy = f"NumPy {units.duration(self.numpy_seconds)}" if self.numpy_seconds is not None else ""
        if not self.waited:  # of a report that another version wrote
            numpy = ", ".join(filter(None, (by_numpy, self.faster)))
            took = self.took + (f" ({numpy})" if numpy else "")
            line = " · ".join(filter(None, (self.lead, *self.counts, took)))
            return tuple(filter(None, (self.settled, line, self.repeated)))
        faster = ", ".join(filter(None, (self.faster, by_numpy)))
        paid = "; ".join(filter(None, (faster, self.pays, self.beside)))
        lines = self.waited, self.settled, self.repeated, paid, " · ".join((self.lead, *self.counts))
        return tuple(filter(None, lines))

    @property
    def is_left(self) -> bool:
        """What is told next is left to NumPy: nothing that one can do."""
        return self.next is not None and self.next.get("advice") in ("host", "host_share")

    @property
    def took(self) -> str:
        """ "9.8 ms", and of a run that was repeated the mean: "9.0 ms ± 1.4 ms"."""
        return " ± ".join(units.duration(seconds) for seconds in (self.seconds, self.deviation) if seconds is not None)


def outline(data: Json, most_boxes: int = 12, most_retraces: int = 6, most_kernels: int = 24) -> Outline:
    """The outline of a report; of more boxes than `most_boxes` the slowest ones stay, in order, and so of a box's kernels."""
    verdict = data["verdict"]
    repeated, speed, waited = (verdict.get(key) or {} for key in ("repeated", "speed", "waited"))
    parts = [_plan_boxes(data, plan, most_kernels) for plan in data["plans"] if plan["like"] == plan["name"]]
    boxes = [box if len(parts) > 1 else replace(box, heading="") for part in parts for box in part]
    boxes = _with_statements(boxes, data.get("statements", ()), verdict["lead"])
    kept = set(heapq.nlargest(most_boxes, range(len(boxes)), key=lambda i: (boxes[i].seconds or 0.0, -i)))
    rows, more, warm_up = _retraces(data, most_retraces)
    loops = [_loop(loop) for loop in data.get("loops", ())]
    return Outline(
        lead=clean(verdict["lead"]), counts=_counts(verdict, data.get("statements", ())),
        seconds=repeated.get("mean", verdict["seconds"]), deviation=repeated.get("deviation"),
        numpy_seconds=verdict["numpy_seconds"], next=verdict["next"],
        boxes=tuple(box if i + 1 in kept else replace(box, edge="") for i, box in enumerate(boxes) if i in kept),
        hidden=len(boxes) - len(kept), retraces=rows,
        loops=tuple(loops[:most_retraces]), more_loops=max(0, len(loops) - most_retraces),
        more_retraces=more, warm_up=warm_up, lanes=tuple(data["timeline"]["lanes"]),
        colors={(cluster["name"], ""): cluster["color"] for cluster in data["clusters"]} | kernel_colors(data["clusters"]),
        waited=clean(waited.get("text", "")), repeated=clean(repeated.get("text", "")),
        settled=clean((verdict.get("settled") or {}).get("text", "")),
        pays=clean((waited.get("pays") or {}).get("text", "")),
        faster=clean(speed.get("text", "")), beside=clean(speed.get("note") or ""),
    )  # fmt: skip


def within(most_bytes: int, limits: Iterable[tuple[int, ...]], make: Callable[..., str]) -> str:
    """What is made with the first of ever smaller limits that keeps it within these bytes, else with the last."""
    made = ""
    for limit in limits:
        made = make(*limit)
        if len(made.encode("utf-8", "replace")) <= most_bytes:
            break
    return made


def _counts(verdict: Json, statements: Sequence[Json]) -> tuple[str, ...]:
    """Only what there is: a zero is left out, and of a run that fell back the statements that the lead counts."""
    words = []
    for key, noun in (("clusters", "cluster"), ("kernels", "kernel"), ("host", ""), ("retraces", "retrace")):
        number = verdict.get(key) or 0
        if number:
            words.append(units.counted(number, noun) if noun else f"{number} run by NumPy")
    if verdict.get("loops"):
        words.append(f"{units.counted(verdict['loops'], 'loop')} run iteration by iteration")
    if verdict.get("statements") and not (statements and all(s.get("fell_back") for s in statements)):
        took = verdict.get("statement_seconds")  # where it is felt
        told = f", {units.duration(took)}" if took else ""
        words.append(f"{units.counted(verdict['statements'], 'statement')} run by Python{told}")
    return tuple(words)


def _plan_boxes(data: Json, plan: Json, most_kernels: int) -> list[Box]:
    """The clusters and host operations of a plan, sorted so that each comes after what it reads, else in program order."""
    title = plan["name"]
    alike = [p["name"] for p in data["plans"] if p["like"] == title]
    ops = {op["name"]: op for op in data["ops"] if op["plan"] == title}
    by_plan = {name: [c for c in data["clusters"] if c["plan"] == name] for name in alike}
    host_seconds = _host_totals(data, set(alike))
    around = {name: op["parent"] for name, op in ops.items() if op.get("parent") in ops}
    home = {name: op["cluster"] or wording.outermost(name, around.get) for name, op in ops.items()}
    place: dict[str, int] = {}
    for i, name in enumerate(ops):
        place.setdefault(home[name], i)
    reads: dict[str, set[str]] = {home[name]: set() for name in ops}
    carried: dict[tuple[str, str], dict[str, int]] = {}
    for name, op in ops.items():
        for source in op["inputs"]:
            if source in ops and home[source] != home[name]:
                reads[home[name]].add(home[source])
                carried.setdefault((home[source], home[name]), {})[source] = wording.nbytes(ops[source])
    order = _sorted(reads, place)
    clusters = {c["name"]: i for i, c in enumerate(by_plan[title])}
    boxes: list[tuple[str, Box]] = []
    for key in order:
        if key in clusters:
            whole = [of for name in alike if len(of := by_plan[name]) == len(clusters)]  # the others were cut
            same = [of[clusters[key]] for of in whole]
            boxes.append((key, _cluster(data, title, same, ops, most_kernels)))
        elif key in ops:  # of a report that was cut the cluster may be gone
            boxes.append((key, _host(ops[key], host_seconds.get(key))))
    result: list[Box] = []
    for i, (key, box) in enumerate(boxes):
        to = boxes[i + 1][0] if i + 1 < len(boxes) else ""
        moved = carried.get((key, to), {})
        if moved:
            name, count = max(moved.items(), key=lambda item: item[1])
            more = f" +{len(moved) - 1}" if len(moved) > 1 else ""
            box = replace(box, edge=f"{clean(name)}{more} {units.size(sum(moved.values()))}")
        last = result[-1] if result else None
        if last and box.kind == last.kind == "host" and (box.name, box.why, box.lines) == (last.name, last.why, last.lines):
            total = (last.seconds or 0) + (box.seconds or 0) if last.seconds or box.seconds else None
            result[-1] = replace(last, count=last.count + 1, seconds=total, edge=box.edge)
        else:
            result.append(box)
    if plan.get("given_up"):
        result = [replace(box, is_given_up=True, why="", edge="") for box in result if box.kind == "cluster" or box.calls]
    if result:
        result[0] = replace(result[0], heading=_heading(data, plan, alike))
    return result


def _heading(data: Json, plan: Json, alike: Sequence[str]) -> str:
    if len(alike) == 1:
        return clean(plan["name"])
    traces = [p["trace"] for p in data["plans"] if p["name"] in alike]
    which = wording.line_text(traces).replace("line", "trace", 1)
    if len(set(traces)) == 1:
        which += f" of {len(traces)} functions"
    return f"{clean(plan['function'])}, {which}, which differ in sizes or values only"


def _cluster(data: Json, title: str, same: Sequence[Json], ops: Mapping[str, Json], most_kernels: int) -> Box:
    """One box for a cluster and for those of alike plans; the first stands for all, times and calls are added up."""
    cluster = next(c for c in same if c["plan"] == title)
    home = home_file(data)
    whole = _where(cluster, ops, home)
    kernels = [k for k in data["kernels"] if k["plan"] == title and k["cluster"] == cluster["name"]]
    rows = []
    others = [
        [k["seconds"] for k in data["kernels"] if (k["plan"], k["cluster"]) == (c["plan"], c["name"])]
        for c in {c["plan"]: c for c in same}.values()
    ]
    times = [_total(seconds[i] for seconds in others if i < len(seconds)) for i in range(len(kernels))]
    kept = set(heapq.nlargest(most_kernels, range(len(kernels)), key=lambda i: (times[i] or 0.0, -i)))
    apart: dict[int | None, list[Json]] = {i: [] for i in sorted(kept)}
    kernels_of = places([kernel["ops"] for kernel in kernels])
    for edge in data["boundaries"] if kept else ():
        if edge["plan"] == title and (row := apart.get(above(edge, kernels_of))) is not None:
            row.append(edge)
    colors = kernel_colors(data["clusters"])
    for i, (kernel, seconds) in enumerate(zip(kernels, times, strict=True)):
        if i not in kept:
            continue
        own = [ops[name] for name in kernel["ops"] if name in ops]  # what is in the body of one that is shown is told with it
        kinds = _texts([op for op in own if op.get("parent") not in ops])
        call = f"{', '.join(kernel.get('libraries') or ('library',))} call" if kernel["kind"] == "library" else ""
        threads = (kernel.get("threads") or {}).get("text", "")
        note = ", ".join(filter(None, (wording.bound_text(kernel), call, threads)))
        nests = _nests(data, kernel, ops)
        where = _where(kernel, ops, home)
        shown = "" if where == whole else where
        color = colors.get((cluster["name"], kernel["name"]), 0)
        note = ", ".join(filter(None, (note, wording.launches_text(kernel.get("launches", ())))))
        rows.append(KernelRow(clean(kernel["name"]), kinds, seconds, note, color, (), nests, shown))
    told, small = cuts(list(apart.values()))
    rows = [replace(row, cuts=of_row) for row, of_row in zip(rows, told, strict=True)]
    scopes = dict.fromkeys(ops[name]["scope"] for name in cluster["ops"] if name in ops and ops[name]["scope"])
    return Box(
        kind="cluster", name=clean(cluster["name"]), lines=whole,
        seconds=_total(c["seconds"] for c in same), calls=sum(c["calls"] for c in same), color=cluster["color"],
        scope=", ".join(map(clean, scopes)), kernels=tuple(rows), more_kernels=len(kernels) - len(rows), more_cuts=small,
        copies=tuple(
            dict.fromkeys(
                clean(copy["reason"]["text"])
                for copy in data.get("copies", ())
                if copy["plan"] == title and copy.get("cluster") == cluster["name"]
            )
        ),
        moved=wording.moved_text(
            cluster["bytes_read"], cluster["bytes_written"], bool(cluster.get("per_turn")), sum(c["calls"] for c in same)
        ),
        why=clean(cluster["placed"]["text"]) if cluster.get("placed") else "",
        at=_first_line([span for name in cluster["ops"] if name in ops for span in ops[name]["lines"]]),
    )  # fmt: skip


def _where(entry: Json, ops: Mapping[str, Json], home: str) -> str:
    """The lines of a cluster or kernel, those of other files with their name; of a report that was cut the numbers alone."""
    places = {(str(span[0]), int(span[1])) for name in entry["ops"] if name in ops for span in ops[name]["lines"]}
    whole = {line for _, line in places} >= set(entry["lines"])
    return where_text(places, home) if whole else wording.line_text(entry["lines"])


def _kind(op: Json) -> str:
    """How the program writes the operation, or the expression that it is a part of; a loop's is what the program calls it:
    "for i (line 7)"."""
    if not op.get("loop"):
        called = str(op.get("called") or "")
        return clean(called if called.startswith((PART, GRADIENT)) else wording.written(op))
    head = clean(op["loop"]).partition(" in ")[0]
    return f"{_short(head, 24)} ({wording.line_text(wording.numbers_of(op['lines']))})"


def _texts(own: Sequence[Json]) -> tuple[str, ...]:
    """How the program writes operations that are fused: of what lies in another's expression the whole alone, once what a loop
    repeats, and once the expression that several are parts of, where it is not there itself."""
    spans = sorted({tuple(span) for op in own for span in op["lines"]}, key=lambda s: (s[0], s[1], s[2], -s[3], -s[4]))
    inside, end = set(), ("", -1, -1)
    for span in spans:
        if (span[0], span[3], span[4]) <= end and span[0] == end[0]:
            inside.add(span)
        else:
            end = (span[0], span[3], span[4])
    outer = [op for op in own if not op["lines"] or any(tuple(span) not in inside for span in op["lines"])]
    kinds = dict.fromkeys(_kind(op) for op in outer)
    return tuple(kind for kind in kinds if not kind.startswith(PART) or kind.removeprefix(PART) not in kinds)


def _nests(data: Json, kernel: Json, ops: Mapping[str, Json]) -> tuple[Nest, ...]:
    """What is fused inside the loops and branches of a kernel; scalar work and the nests it stands between."""
    rows: list[Nest] = []
    before: set[str] = set()
    told: set[str] = set()
    for nest in kernel.get("nests", ()):
        mine = [name for name in nest["ops"] if name in ops]
        between = [
            cut(edge)
            for edge in data["boundaries"]
            if edge["plan"] == kernel["plan"] and edge["consumer"] in mine and edge["producer"] in before.difference(mine)
        ]
        found = {each.head: each for each in between if each.head not in told}
        told.update(found)
        rows.append(Nest(_texts([ops[name] for name in mine]), wording.line_text(nest["lines"]), tuple(found.values())))
        before.update(mine)
    return tuple(rows)


def _host(op: Json, total: tuple[float | None, int] | None) -> Box:
    seconds, calls = total or (None, 0)
    reason = op["reason"]["text"] if op["reason"] else ""
    return Box(
        kind="host", name=clean(wording.written(op)), lines=wording.line_text(wording.numbers_of(op["lines"])), seconds=seconds,
        calls=calls, why=f"Runs in NumPy: {clean(reason)}", at=_first_line(op["lines"]),
    )  # fmt: skip


def _statement(statement: Json) -> Box:
    return Box(
        kind="statement", name=_short(str(statement["text"]).split("\n", 1)[0]),
        lines=wording.line_text(wording.numbers_of(statement["lines"])), seconds=statement["seconds"],
        calls=statement["calls"], why=f"Run by Python: {clean(statement['reason']['text'])}",
    )  # fmt: skip


def _with_statements(boxes: Sequence[Box], statements: Sequence[Json], lead: str) -> list[Box]:
    """The boxes with a box for each statement before the first one of a later line of its file, else after its file's last. Why
    a run fell back its lead says."""
    result, said = list(boxes), set[str]()
    for statement in sorted(statements, key=lambda s: _first_line(s["lines"])):
        file, line = at = _first_line(statement["lines"])
        after = [i for i, box in enumerate(result) if box.at[0] == file and box.at[1] <= line]
        before = [i for i, box in enumerate(result) if box.at[0] == file and box.at[1] > line]
        i = before[0] if before else after[-1] + 1 if after else len(result)
        if i:
            result[i - 1] = replace(result[i - 1], edge="")  # the arrow would lead to the statement
        box = replace(_statement(statement), at=at)
        reason = statement["reason"]
        if statement.get("fell_back"):  # the reason stands once
            if lead.endswith(fall_back_reason(reason)):
                box = replace(box, why="")
            elif reason["text"] in said:
                box = replace(box, why="Run by Python for the same reason")
            said.add(reason["text"])
        result.insert(i, box)
    return result


def _first_line(spans: Sequence[Sequence[Any]]) -> tuple[str, int]:
    return min(((str(span[0]), int(span[1])) for span in spans), default=("", 0))


def _retraces(data: Json, most: int) -> tuple[tuple[RetraceRow, ...], int, str]:
    groups: dict[tuple[str, str, str], list[Json]] = {}
    first = 0.0
    for retrace in data["retraces"]:
        if retrace["first"]:
            first += retrace["seconds"] or 0.0
        else:
            groups.setdefault((retrace["function"], retrace["cause"], retrace["argument"]), []).append(retrace)
    rows = []
    for (_, cause, argument), group in groups.items():
        start, then = wording.short_change(group[0]["before"], group[0]["after"])
        change = f": {' → '.join(_short(side) for side in (start, then) if side)}" if start or then else ""
        more = f" (+{len(group) - 1} more)" if len(group) > 1 else ""
        numbers = wording.line_text({n for r in group for n in wording.numbers_of(r["lines"])})
        fix = group[-1]["fix"]
        compiled = sum(r.get("compiled") or 0 for r in group)
        note = "" if fix else clean(unfixed(group))
        done = "" if compiled else "traced again; nothing compiled"
        detail = ", ".join(filter(None, (wording.cause_text(cause, start), numbers)))
        rows.append(
            RetraceRow(
                f"{len(group)} × {_short(argument) or 'call'}{change}{more}",
                "; ".join(filter(None, (clean(detail), done))),
                sum(r["seconds"] or 0.0 for r in group), clean(fix["text"]) if fix else None, note,
                clean(group[-1].get("proof") or "") if fix else "", is_code(fix),
            )
        )  # fmt: skip
    rows.sort(key=lambda row: (-row.seconds, row.text))
    return tuple(rows[:most]), max(0, len(rows) - most), units.duration(first) if first else ""


def _loop(loop: Json) -> LoopRow:
    counts = units.counted(loop["iterations"], "iteration") if loop["iterations"] else ""
    where = wording.line_text(wording.numbers_of(loop["lines"]))
    times = f"recorded {loop['times']} times" if loop["times"] > 1 else ""
    return LoopRow(_short(loop["text"]), ", ".join(filter(None, (where, counts, times))), clean(loop["reason"]["text"]))


def _short(text: str, most: int = 40) -> str:
    text = clean(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _host_totals(data: Json, titles: set[str]) -> dict[str, tuple[float | None, int]]:
    totals: dict[str, tuple[float | None, int]] = {}
    for fallback in data["fallbacks"]:
        if fallback["plan"] in titles:
            seconds, calls = totals.get(fallback["name"], (None, 0))
            totals[fallback["name"]] = (_total((seconds, fallback["seconds"])), calls + fallback["calls"])
    return totals


def _total(values: Any) -> float | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sorted(reads: Mapping[str, set[str]], place: Mapping[str, int]) -> list[str]:
    """Topological order, the earliest in the program first; a cycle (which clusters never make) is broken by program order."""
    waits = {key: set(sources) for key, sources in reads.items()}
    users: dict[str, list[str]] = {key: [] for key in reads}
    for key, sources in reads.items():
        for source in sources:
            users[source].append(key)
    ready = [(place[key], key) for key, sources in waits.items() if not sources]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, key = heapq.heappop(ready)
        order.append(key)
        for user in users[key]:
            waits[user].discard(key)
            if not waits[user]:
                heapq.heappush(ready, (place[user], user))
    return order + sorted(set(reads) - set(order), key=lambda key: place[key])

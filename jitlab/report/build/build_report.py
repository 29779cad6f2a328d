"""From a Recording to the JSON object of docs/reference/report-format.md; everything else is drawn from that object alone."""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jitlab import events
from jitlab.events import Cause, VariantCause
from jitlab.messages import Message, plain, units
from jitlab.report.duration_samples import quantiles
from jitlab.report.equal_reasons import told_edges
from jitlab.report.origin import origin
from jitlab.report.recording import Recording, Sampled, Tally, known_code, known_plan, numbered_plan
from jitlab.report.render import wording
from jitlab.report.schema import VERSION, has, lists
from jitlab.report.store.fingerprints import cluster_fingerprint, plan_fingerprint
from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.devices import default_target, device_peaks, target_of
from jitlab.targets.target import Peaks

from .accounting import add_traffic
from .advice import add_masks, bounded, made_in, place_of, spent, things_to_do, to_be_left
from .lanes import lanes
from .lines import slowest
from .python_statements import fell_back, mark_given_up, settled, whole_statements
from .source_files import report_sources
from .titles import Titles
from .waited import add_notes, first_run, repeated, waited

speeds = Later("jitlab.report.speed")  # of comparisons alone
splits = Later(f"{__package__}.split")  # of runs that fell back

Json = dict[str, Any]

PATTERNS = ("solid", "diagonal", "horizontal", "dots", "vertical", "grid")


#: Tell the measured peaks, or None while they are not known.
peak_sources: list[Callable[[], Peaks | None]] = [default_target().known_peaks]

#: Inner extents below this are part of the code.
SMALL = 16
#: Python statements of a cell are told of in its facts from this share of its time on, or from this long.
STATEMENTS_SHARE, STATEMENTS_SECONDS = 0.05, 1e-3
#: So many new shapes of one argument in a cell are no longer harmless.
OFTEN = 4
#: Who moves fewer bytes waits for the call, not for memory.
MEMORY_FELT = 64_000
#: The lists whose entries say where they stand.
PLACED = tuple(key for key, entry in lists().items() if has(entry, "spans"))
#: Operations that are loops of the program, which a report calls as the program does.
LOOPS = {"While", "StatelessWhile"}

NUMBERS = frozenset({int, float, bool, type(None)})

NO_CELL: Json = {"id": "", "execution_count": None, "title": "", "source": [], "running": False, "error": None}


def gpu_peaks() -> Peaks | None:
    """The GPU's, where they were measured."""
    peaks = device_peaks()
    return peaks if peaks.measured else None


def measured_peaks() -> Peaks | None:
    return next((peaks for source in peak_sources if (peaks := source()) is not None), None)


def report_json(recording: Recording) -> Json:
    """The whole report. Called with the recording's lock held; shares nothing that changes later."""
    titles = Titles(recording)
    plans = _plans(recording, titles)
    peaks = measured_peaks()
    alike = alike_plans(plans)
    data: Json = {
        "version": VERSION,
        "cell": dict(recording.cell or NO_CELL),
        "verdict": {},
        "plans": [_plan(plan, alike, recording, titles) for plan in plans],
        "ops": [op for plan in plans for op in _ops(plan, recording)],
        "clusters": [cluster for plan in plans for cluster in _clusters(plan, recording)],
        "kernels": [kernel for plan in plans for kernel in _kernels(plan, recording, peaks)],
        "boundaries": [{**edge, "plan": plan.title} for plan in plans for edge in told_edges(plan.json)],
        "retraces": [_retrace(event, recording, titles) for event in recording.traces if _cause(event) != VariantCause.LAYOUT],
        "fallbacks": [],
        "variants": _variants(recording, titles),
        "statements": _statements(recording),
        "as_python": _as_python(recording, plans, titles),
        "frozen": [
            {"function": titles.function(function), "what": what, "lines": _spans(lines), "times": times}
            for (function, what, lines), times in recording.frozen.items()
        ],
        "loops": _loops(recording, titles),
        "temporaries": _of_plans(plans, "temporaries"),
        "copies": [*_of_plans(plans, "copies"), *_host_copies(plans, recording)],
        "activity": [_activity(plan, recording) for plan in plans if "activity" in plan.json],
        "timeline": {"lanes": []},
        "run": origin(recording.began),
        "peaks": peaks and {"bytes_per_second": peaks.bytes_per_second, "flops_per_second": peaks.flops_per_second},
    }
    data["fallbacks"] = _fallbacks(data, recording, plans)
    add_masks(data)
    _add_savings(data["retraces"])
    _color(data, alike)
    data["timeline"]["lanes"] = lanes(recording, data, titles)
    mark_given_up(data)
    shown = {plan.title for plan in alike.values()}
    data["verdict"] = verdict(data, recording, shown)
    add_traffic(data, recording)
    data["sources"] = report_sources(data, [plan.json for plan in plans], recording.file_name, recording.cell_of)
    if recording.file_name is not None:
        _rename_files(data, recording.file_name)
    if (found := slowest(data)) is not None:
        data["verdict"]["slowest"] = found
    if (bound_by := bounded(data)) is not None:
        data["verdict"]["bound"] = bound_by
    return _plain_text(data)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class _Plan:
    title: str
    function: str
    trace: int
    json: Json


def _plans(recording: Recording, titles: Titles) -> list[_Plan]:
    """Plans made while recording, and those made before whose clusters or host operations ran, or would have run."""
    found: dict[tuple[str, int, tuple[str, ...]], Json] = {}
    for event in recording.plans:
        found[_key(event.function, event.trace, event.plan)] = event.plan
    ran = [(function, trace, cluster) for function, trace, cluster in recording.clusters]
    have = {cluster["name"] for plan in found.values() for cluster in plan["clusters"]}
    for function, trace, cluster in ran:
        if cluster not in have and (plan := known_plan(function, trace, cluster)):
            found.setdefault(_key(function, trace, plan), plan)
            have |= {c["name"] for c in plan["clusters"]}
    have_traces = {(function, trace) for function, trace, _ in found}
    for function, trace in [*((f, t) for f, t, _ in recording.host), *recording.functions]:
        if (function, trace) not in have_traces and (plan := known_plan(function, trace)):
            found.setdefault(_key(function, trace, plan), plan)
            have_traces.add((function, trace))
    for function, trace, executable in dict.fromkeys(key for about in recording.as_python for key in about.traces):
        if (plan := numbered_plan(executable)) is not None:
            found.setdefault(_key(function, trace, plan), plan)
    plans: list[_Plan] = []
    count: dict[str, int] = {}
    for (function, trace, _), plan in found.items():
        title = plan["plans"][0]["name"] if plan.get("plans") else f"{function} #{trace}"
        if titles.function(function) != function:  # another function of that name
            title = titles.trace(function, trace)
        count[title] = count.get(title, 0) + 1
        if count[title] > 1:  # made again in the same place
            title = f"{title} ({count[title]})"
        titles.has_plan(function, trace, [cluster["name"] for cluster in plan["clusters"]], title)
        plans.append(_Plan(title, function, trace, without_items(plan)))
    return plans


def without_items(plan: Json) -> Json:
    """The plan without the nodes that pick one of a host call's results: who reads such a result reads the call."""
    ops = {op["name"]: op for op in plan["ops"]}
    call = {
        name: op["inputs"][0]
        for name, op in ops.items()
        if op["op"] == "Item"
        and op["cluster"] is None
        and len(op["inputs"]) == 1
        and ops.get(op["inputs"][0], op)["cluster"] is None
    }
    if not call:
        return plan

    def edges() -> Iterable[Json]:
        for edge in plan["boundaries"]:
            if edge["consumer"] not in call:
                yield {**edge, "producer": call.get(edge["producer"], edge["producer"])}

    kept = [
        {**op, "inputs": list(dict.fromkeys(call.get(source, source) for source in op["inputs"]))}
        for op in plan["ops"]
        if op["name"] not in call
    ]
    return {**plan, "ops": kept, "boundaries": list(edges())}


def _key(function: str, trace: int, plan: Json) -> tuple[str, int, tuple[str, ...]]:
    return function, trace, tuple(cluster["name"] for cluster in plan["clusters"])


def _plan(plan: _Plan, alike: dict[Any, _Plan], recording: Recording, titles: Titles) -> Json:
    """`like` names the plan that stands for this one in the verdict, the picture and the text. Of a trace: its calls, when the
    last one was (seconds from the start of the recording), and quantiles of the calls that had nothing to wait for."""
    like = alike[fingerprint(plan.function, plan.json)].title
    tally = recording.functions.get((plan.function, plan.trace), Sampled())
    last = (tally.last_ns - recording.start_ns) / 1e9 if tally.calls else None
    return {
        "name": plan.title, "function": titles.function(plan.function), "trace": plan.trace, "like": like,
        "fingerprint": recording.fingerprint(plan_fingerprint, plan.json), "calls": tally.calls,
        "seconds": tally.ns / 1e9 if tally.calls else None, "last_used": last, "quantiles": quantiles(tally.samples.seconds),
    }  # fmt: skip


def alike_plans(plans: Iterable[_Plan]) -> dict[Any, _Plan]:
    """Plans of one function that differ in sizes and values only, each group by its first: a verdict counts a group once."""
    first: dict[Any, _Plan] = {}
    for plan in plans:
        first.setdefault(fingerprint(plan.function, plan.json), plan)
    return first


def fingerprint(function: str, plan: Json) -> Any:
    """What was decided, without names, sizes and values: operations, which are compiled together, in which kernel, why not."""
    clusters = {cluster["name"]: i for i, cluster in enumerate(plan["clusters"])}
    ops = tuple(
        (op["op"], clusters.get(op["cluster"], -1), op["kernel"], op["reason"] and op["reason"]["code"], tuple(op["inputs"]))
        for op in plan["ops"]
    )
    return str(function), function.place if isinstance(function, events.FunctionName) else None, ops


def _ops(plan: _Plan, recording: Recording) -> list[Json]:
    result = []
    for op in plan.json["ops"]:
        tally = recording.host.get((plan.function, plan.trace, op["name"])) if op["cluster"] is None else None
        made = {**op, "plan": plan.title, "seconds": _known(tally.ns) if tally else None}
        if op["op"] in LOOPS and (head := _loop_head(op["lines"])):
            made["loop"] = head
        result.append(made)
    return result


def _clusters(plan: _Plan, recording: Recording) -> list[Json]:
    result = []
    for cluster in plan.json["clusters"]:
        tally = recording.clusters.get((plan.function, plan.trace, cluster["name"]), Tally())
        seconds = _known(tally.ns)
        made = {**cluster, "plan": plan.title, "calls": tally.calls, "seconds": seconds}
        made["fingerprint"] = recording.fingerprint(cluster_fingerprint, plan.json, cluster["name"])
        result.append(made)
    return result


def _kernels(plan: _Plan, recording: Recording, peaks: Peaks | None) -> list[Json]:
    result = []
    place: dict[str, int] = {}
    alone = {c["name"]: len(c["kernels"]) == 1 for c in plan.json["clusters"]}
    predicted = predictions(plan, recording)
    for kernel in plan.json["kernels"]:
        cluster = kernel["cluster"]
        i = place[cluster] = place.get(cluster, -1) + 1
        tally = recording.clusters.get((plan.function, plan.trace, cluster), Tally())
        seconds: float | None = None
        if i < len(tally.kernels_ns):
            seconds = _known(tally.kernels_ns[i])
        elif alone.get(cluster):
            seconds = _known(tally.ns)
        made = {**kernel, "plan": plan.title, "calls": tally.calls, "seconds": seconds}
        launches = recording.launched.get((plan.function, plan.trace, cluster), ())
        if launches:
            own = [launch for launch in launches if launch["kernel"] == i]
            made["launches"] = [{name: x for name, x in launch.items() if name != "kernel"} for launch in own]
        made["bound"], made["of_peak"] = bound(made, gpu_peaks() if launches else peaks)
        if (seconds := predicted.get((cluster, kernel["name"]))) is not None:
            made["predicted"] = seconds
        result.append(made)
    return result


def predictions(plan: _Plan, recording: Recording) -> dict[tuple[str, str], float | None]:
    """What the cost model says of each kernel, by its cluster and name: of one call."""
    found: dict[tuple[str, str], float | None] = {}
    for cluster in plan.json["clusters"]:
        name = cluster["name"]
        code = recording.codes.get(name) or known_code(plan.function, plan.trace, name)
        if code is not None:
            seconds = target_of(code.target).predicted_seconds(code.program)
            found |= {(name, kernel): seconds.get(own) for own, kernel in code.kernels.items()}
    return found


def _known(ns: int) -> float | None:
    """Seconds; None of what did not run, and of what is too short for the clock: nobody knows its time."""
    return ns / 1e9 if ns > 0 else None


def bound(kernel: Mapping[str, Any], peaks: Peaks | None) -> tuple[str | None, float | None]:
    """What limits a kernel, and the share of that peak it reached; nothing without a measurement. Who moved its bytes faster
    than memory can has them in the caches: "cache", and no share."""
    if peaks is None or kernel.get("per_turn"):
        return None, None
    moving = (kernel["bytes_read"] + kernel["bytes_written"]) / peaks.bytes_per_second
    computing = kernel["flops"] / peaks.flops_per_second
    least = max(moving, computing)
    if not least:
        return None, None
    seconds = kernel["seconds"] / kernel["calls"] if kernel["seconds"] and kernel["calls"] else None
    share = least / seconds if seconds else None
    if moving >= computing and kernel["bytes_read"] + kernel["bytes_written"] < MEMORY_FELT:
        return None, None
    name = "memory" if moving >= computing else "compute"
    if share is not None and share > 1:
        return ("cache" if name == "memory" else name), None
    return name, share


def _activity(plan: _Plan, recording: Recording) -> Json:
    """The summary of a plan with each cluster's compilations; times are microseconds."""
    compiles: dict[str, list[int]] = {}
    for step in recording.compiled.get((plan.function, plan.trace), ()):
        compiles.setdefault(step.cluster, []).append(step.duration_ns)
    return {
        "plan": plan.title, **plan.json["activity"],
        "compiles": [
            {
                "cluster_name": cluster, "compile_count": len(times), "compile_time_us": times[-1] // 1000,
                "cumulative_compile_time_us": sum(times) // 1000,
            }
            for cluster, times in compiles.items()
        ],
    }  # fmt: skip


def _of_plans(plans: Iterable[_Plan], key: str) -> list[Json]:
    """The entries of a list of each plan, with its title."""
    return [{**entry, "plan": plan.title} for plan in plans for entry in plan.json.get(key, ())]


def _cause(event: Any) -> str:
    return event.causes[0] if event.causes else Cause.FIRST_CALL


def _retrace(event: Any, recording: Recording, titles: Titles) -> Json:
    cause = _cause(event)
    key = event.function, event.trace
    calls = recording.functions[key].calls if key in recording.functions else 0
    calls = calls or max((t.calls for (f, n, _), t in recording.clusters.items() if (f, n) == key), default=0)
    compiled = _compiled_anew(key, recording)
    harmless = cause == Cause.SHAPE and not compiled and not (event.fix and _often(event, recording))
    fix = None if harmless else event.fix
    return {
        "function": titles.function(event.function), "trace": event.trace,
        "cause": cause, "causes": list(event.causes) or ["first_call"],
        "argument": event.argument, "before": event.before, "after": event.after, "lines": _spans(event.lines),
        "seconds": _seconds_lost(event, recording), "calls": calls, "operations": event.operations,
        "text": wording.retrace_text(cause, event.argument, event.before, event.after, event.rule),
        "fix": fix and fix.to_json(), "done": event.done and event.done.to_json(), "proof": event.proof if fix else "",
        "changes": [list(change) for change in event.changes], "site": list(event.site), "place": made_in(event),
        "spent": spent(event, recording), "same": [list(leaf) for leaf in event.same], "same_count": event.same_count,
        "first": cause == Cause.FIRST_CALL or not recording.renewed.get(key, True), "compiled": compiled,
    }  # fmt: skip


def _often(event: Any, recording: Recording) -> bool:
    """New shapes are normal until there are so many of one argument: then a warning names what ends that, and so does this."""
    name = str(event.function), event.argument
    return sum((str(e.function), e.argument) == name and _cause(e) == Cause.SHAPE for e in recording.traces) >= OFTEN


def _add_savings(retraces: list[Json]) -> None:
    """What the retraces of an argument cost that a fix avoids is what it saves, as "do next" says; and where it is written."""
    lost: Counter[tuple[str, str]] = Counter()
    for retrace in retraces:
        if retrace["fix"] and not retrace["first"]:
            lost[retrace["function"], retrace["argument"]] += retrace["seconds"]
    for retrace in retraces:
        retrace["place"] = retrace["place"] or place_of(retrace)
        saved = lost[retrace["function"], retrace["argument"]]
        if retrace["proof"] and retrace["fix"] and saved:
            retrace["proof"] += f", saves {units.duration(saved)}"


def _variants(recording: Recording, titles: Titles) -> list[Json]:
    """Other forms of kernels of known traces; a trace that was captured again for its layout alone is one, too."""
    captured: list[tuple[Any, str]] = [(event, "") for event in recording.traces if _cause(event) == VariantCause.LAYOUT]
    made: list[tuple[Any, str]] = [(event, event.cluster) for event in recording.variants]
    return [
        {
            "function": titles.function(event.function), "trace": event.trace, "cluster": cluster,
            "cause": (cause := event.causes[0] if not cluster else event.cause), "argument": event.argument,
            "before": event.before, "after": event.after, "lines": _spans(event.lines),
            "seconds": _seconds_lost(event, recording) if not cluster else event.duration_ns / 1e9,
            "message": _variant_message(cause, event).to_json(),
        }
        for event, cluster in [*captured, *made, *_small_extents(recording)]
    ]  # fmt: skip


def _variant_message(cause: str, event: Any) -> Message:
    change = wording.change_text(event.argument, event.before, event.after)
    return Message(f"variant.{cause}", {"change": change, "least": SMALL})


def _small_extents(recording: Recording) -> list[tuple[Any, str]]:
    """Kernels made anew for a trace that differs from another in sizes alone: a small size is part of the code."""
    found: list[tuple[Any, str]] = []
    for event in recording.traces:
        anew = {s.cluster: s for s in recording.compiled.get((event.function, event.trace), ()) if s.origin != "memory"}
        small = next((c for c in event.changes if _has_small_extent(c[2], c[3])), None)
        if anew and small is not None and set(event.causes) == {Cause.SHAPE}:
            _, argument, before, after = small
            for name, step in anew.items():
                variant = events.VariantMade(
                    cell=event.cell, function=event.function, trace=event.trace, cluster=name, cause=VariantCause.SMALL_EXTENT,
                    argument=argument, before=before, after=after, lines=event.lines, start_ns=step.start_ns,
                    duration_ns=step.duration_ns,
                )  # fmt: skip
                found.append((variant, name))
    return found


def _has_small_extent(before: str, after: str) -> bool:
    """One of the sizes that differ is below the least that is read at run time."""
    old, new = ([int(n) for n in re.findall(r"\d+", text.partition("[")[2])] for text in (before, after))
    return any(a != b and min(a, b) < SMALL for a, b in zip(old, new, strict=False))


def _seconds_lost(event: Any, recording: Recording) -> float:
    """Capture, passes, planning and each cluster's first compilation: what the call waited for."""
    return float(sum(seconds for _, seconds in spent(event, recording)))


def _compiled_anew(key: tuple[str, int], recording: Recording) -> int:
    """Clusters of this trace that needed new machine code."""
    return len({step.cluster for step in recording.compiled.get(key, ()) if step.origin == "compiled"})


def _fallbacks(data: Json, recording: Recording, plans: list[_Plan]) -> list[Json]:
    of_title = {plan.title: plan for plan in plans}
    result = []
    for op in data["ops"]:
        if op["cluster"] is None and "parent" not in op:
            plan = of_title[op["plan"]]
            tally = recording.host.get((plan.function, plan.trace, op["name"]), Tally())
            result.append(
                {
                    "op": op["op"], "name": op["name"], "plan": op["plan"], "lines": op["lines"], "reason": op["reason"],
                    "seconds": op["seconds"], "calls": tally.calls, "written": op.get("written"),
                }
            )  # fmt: skip
    return result


def _host_copies(plans: list[_Plan], recording: Recording) -> list[Json]:
    """Values that went between a GPU and the host for what no kernel does."""
    made = []
    titles = {(plan.function, plan.trace): plan.title for plan in plans}
    for (function, trace, cluster, node, direction), (tally, nbytes) in recording.host_copies.items():
        if (title := titles.get((function, trace))) is not None:
            said = Message(
                "copied.to_host" if direction == "out" else "copied.to_gpu",
                {"name": node, "bytes": nbytes, "count": tally.calls, "seconds": tally.ns / 1e9},
            )
            reason = {"code": events.HOST_COPY, "text": str(said), "detail": said.name, "args": said.args}
            made.append({"plan": title, "cluster": cluster or None, "node": node, "bytes": nbytes, "reason": reason})
    return made


def _statements(recording: Recording) -> list[Json]:
    """What Python ran of a `%%jit` cell, a statement each; one that calls a compiled function is no loss and is not listed."""
    told = wording.with_values
    return whole_statements([
        {
            "text": _source_line(lines) or str(said) or code, "lines": _spans(lines),
            "reason": _refused(
                code, said, told(str(said) or wording.statement_reason(code), tally.met, tally.more),
                **({"met": list(tally.met), "more": tally.more} if tally.met else {}),
            ),
            "seconds": tally.ns / 1e9, "calls": tally.calls, "fell_back": tally.fell_back,
        }
        for (code, said, lines), tally in recording.statements.items()
        if code != "compiled_function"
    ])  # fmt: skip


def _as_python(recording: Recording, plans: list[_Plan], titles: Titles) -> list[Json]:
    """Calls that ran as Python because that takes less time, by function and place."""
    return [
        {
            "function": titles.function(about.function), "text": about.text, "said": [said.to_json() for said in about.said],
            "lines": _spans(about.lines),
            "plans": _titles_of(about, plans),
            "seconds": tally.ns / 1e9, "calls": tally.calls,
        }
        for about, tally in recording.as_python.items()
    ]  # fmt: skip


def _titles_of(about: events.AsPython, plans: list[_Plan]) -> list[str]:
    """What the plans are called that such calls would run."""
    made = [(function, trace, numbered_plan(executable)) for function, trace, executable in about.traces]
    keys = {_key(function, trace, plan) for function, trace, plan in made if plan is not None}
    return [plan.title for plan in plans if _key(plan.function, plan.trace, plan.json) in keys]


def _loops(recording: Recording, titles: Titles) -> list[Json]:
    """Loops whose iterations were recorded one by one, or run by Python, each with the reason why it was not rolled."""
    return [
        {
            "function": titles.function(function), "text": _loop_head(lines) or "loop", "lines": _spans(lines),
            "iterations": tally.iterations, "times": tally.times,
            "reason": _refused(code, said, wording.loop_reason(code, said)),
        }
        for (function, code, said, lines), tally in recording.loops.items()
    ]  # fmt: skip


def _refused(code: str, said: Message, text: str, **more: Any) -> Json:
    """Why something is Python's: the kind of reason, and what it is in words."""
    return {"code": code, "text": text, "detail": said.name, "args": {**plain(said.args), **more}}


def _loop_head(lines: Iterable[Any]) -> str:
    """What a loop is called: "for i in range(1, n)", "while err > tol"; "" where its source is not known."""
    for file, line, *_ in sorted(lines):
        head = re.match(r"(?:async )?(?:for|while)\b.*", linecache.getline(file, line).strip())
        if head:
            return re.sub(r":\s*(#.*)?$", "", head[0])
    return ""


def _source_line(lines: Iterable[Any]) -> str:
    return next((text for span in sorted(lines) if (text := _written_at(*span).strip())), "")


def _written_at(file: str, line: int, column: int, end: int, end_column: int) -> str:
    """The line; of several statements in it the one that is there."""
    text = linecache.getline(file, line)
    is_one_of_many = end == line and text.isascii() and ";" in text[:column] + text[end_column:]
    return text[column:end_column] if is_one_of_many else text


def _color(data: Json, alike: dict[Any, _Plan]) -> None:
    """Colours go by first appearance; clusters of plans that are alike share theirs."""
    function_of = {plan["name"]: plan["function"] for plan in data["plans"]}
    colors: dict[Any, int] = {}
    by_plan: dict[str, list[Json]] = {}
    kind_of = {(op["plan"], op["name"]): op["op"] for op in data["ops"]}
    for cluster in data["clusters"]:
        by_plan.setdefault(cluster["plan"], []).append(cluster)
    for title, clusters in by_plan.items():
        for i, cluster in enumerate(clusters):
            kinds = tuple(kind_of.get((title, name), "") for name in cluster["ops"])
            color = colors.setdefault((function_of[title], i, kinds), len(colors)) % len(PATTERNS)
            cluster["color"], cluster["pattern"] = color, PATTERNS[color]


def verdict(data: Json, recording: Recording, shown: set[str]) -> Json:
    """The counts, the measured times, the lead sentence and what to do next. Plans that are alike are counted once; of a plan
    that was given up nothing counts as compiled, nor as the host's: Python ran its statements."""
    gone = {plan["name"] for plan in data["plans"] if plan.get("given_up")}
    used = shown - gone
    operations = sum(op["plan"] in shown for op in data["ops"])
    ops = [op for op in data["ops"] if op["plan"] in used]
    compiled = sum(op["cluster"] is not None for op in ops)
    ran = [*recording.clusters.values(), *recording.host.values()]
    seconds = sum(tally.ns for tally in ran) / 1e9 if ran else None
    numpy_seconds = None
    if recording.compared is not None:
        seconds, numpy_seconds = speeds.seconds_of(recording.compared)
    seconds_by_python = sum(statement["seconds"] for statement in data["statements"])
    whole = seconds_by_python + sum(tally.ns for tally in ran) / 1e9  # of this run, as its parts are
    suggestions = things_to_do({**data, "fallbacks": [f for f in data["fallbacks"] if f["plan"] not in gone]}, whole)
    if gone and (split := splits.split(recording, data)) is not None:
        suggestions.insert(0, split)
    plain = None if data["retraces"] else recording.plain
    libraries = [name for kernel in data["kernels"] if kernel["plan"] in used for name in kernel.get("libraries", ())]
    told = lead(compiled, operations, len(data["statements"]), plain, bool(data["as_python"]), libraries)
    result: Json = {
        "lead": fell_back(data, told if compiled else "") or told, "operations": operations, "compiled": compiled,
        "clusters": sum(cluster["plan"] in used for cluster in data["clusters"]),
        "kernels": sum(kernel["plan"] in used for kernel in data["kernels"]),
        "host": len(ops) - compiled, "retraces": sum(not trace["first"] for trace in data["retraces"]),
        "traces": recording.traced, "seconds": seconds, "numpy_seconds": numpy_seconds,
        "next": suggestions[0] if suggestions else None, "then": suggestions[1] if suggestions[1:] else None,
    }  # fmt: skip
    if (measured := recording.compared or recording.compared_before) is not None:
        result["speed"] = speeds.speed(measured)
    if data["statements"]:
        result["statements"] = len(data["statements"])  # however quick they were in this run
        if seconds_by_python >= min(STATEMENTS_SECONDS, STATEMENTS_SHARE * whole):
            result["statement_seconds"] = seconds_by_python
    if data["loops"]:
        result["loops"] = len(data["loops"])
    if (whole_run := waited(recording, data, result.get("speed"))) is not None:
        result["waited"] = whole_run
        if "speed" in result:
            add_notes(result["speed"], recording, whole_run)
        if result["lead"] == told and (left := to_be_left(data, recording, whole_run)) is not None:
            result["next"], result["then"] = left, result["next"]
    if (decided := settled(data)) is not None:
        result["settled"] = decided
    if (first := first_run(recording, data["retraces"])) is not None:
        result["first_run"] = first
    if recording.repeated is not None:
        result["repeated"] = repeated(recording.repeated)
    if recording.compared is not None:
        result["largest_error"] = recording.compared.largest_error
    return result


def lead(
    compiled: int, operations: int, statements: int = 0, plain: Any = None, is_settled: bool = False,
    libraries: Sequence[str] = (),
) -> str:  # fmt: skip
    if not operations:
        if is_settled:
            return "Nothing ran compiled"
        if plain is not None and not statements:
            return wording.not_compiled(plain)
        return "No NumPy operation was found" if statements else "Nothing to compile"
    said = f"{compiled} of {units.counted(operations, 'operation')} compiled"
    if not libraries:
        return said
    call = "calls" if len(libraries) == 1 else "call"
    return f"{said}, {len(libraries)} {call} a library ({', '.join(sorted(set(libraries)))})"


def _spans(lines: Iterable[Any]) -> list[list[Any]]:
    return [list(span) for span in sorted(lines)]


def _rename_files(data: Json, file_name: Callable[[str], str]) -> None:
    names: dict[str, str] = {}
    for key in PLACED:
        for entry in data[key]:
            spans = []
            for file, *place in entry["lines"]:
                if file not in names:
                    names[file] = file_name(file)
                spans.append([names[file], *place])
            entry["lines"] = spans
    for retrace in data["retraces"]:
        file, line = retrace["site"]
        retrace["site"] = [names.get(file) or (file_name(file) if file else ""), line]


def _plain_text(value: Any) -> Any:
    """A copy in which every string can be encoded: lone surrogates of user text would stop the message that carries them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):  # numbers and plain texts stay where they are: a report has many
        return {
            (key if key.isascii() else _plain_text(key)): (
                item if (kind := type(item)) in NUMBERS or (kind is str and item.isascii()) else _plain_text(item)
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            item if (kind := type(item)) in NUMBERS or (kind is str and item.isascii()) else _plain_text(item) for item in value
        ]
    return value

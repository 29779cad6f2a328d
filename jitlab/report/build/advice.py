"""What to do next, from what cost the most; and where the time of a retrace went."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from jitlab import messages
from jitlab.messages import Message, units
from jitlab.report.recording import Recording
from jitlab.report.render import wording

from .lines import slowest

Json = dict[str, Any]

#: A host operation that takes less of what was timed is no advice.
SHARE_FELT = 0.05
#: From this share of a peak on a kernel that does all the work cannot be made much faster; nothing is said of times of which so
#: much is of quick code.
NEAR_PEAK, QUICK = 0.8, 0.1
#: Libraries whose functions have no loop that compiled code could have in their place; from this share of the work on they are
#: what it takes.
OWN_CODE, MOST_OF_IT = {"NumPy", "SciPy"}, 0.5
PEAKS = {"memory": "memory", "compute": "arithmetic"}
#: Why NumPy runs an operation although nobody should change that: a scope or a setting says so, and draws keep NumPy's order.
BEYOND_CURE = {
    "disallowed", "level", "jit_off", "stateful_random", "slow", "not_fusible", "not_listed", "excluded", "fuel",
}  # fmt: skip


def things_to_do(data: Json, seconds: float | None) -> list[Json]:
    """Retraces that a change avoids and operations on the host, each thing once, what cost the most first: the first is what
    to do next, the second what to do then. `seconds`: of all that was timed in the run."""
    groups: dict[tuple[str, str], list[Json]] = {}
    for retrace in data["retraces"]:
        if not retrace["first"]:
            groups.setdefault((retrace["function"], retrace["argument"]), []).append(retrace)
    every = [r for group in groups.values() for r in group]
    ops = {(op["plan"], op["name"]): op for op in data["ops"]}
    curable = [(_lost(group), 0, _cure(group, every)) for group in groups.values() if any(r["fix"] for r in group)]
    hosts = [(f["seconds"], 1, _host(f, seconds, without_mask(f, ops))) for f in data["fallbacks"] if _worth_naming(f, seconds)]
    # Of two that cost the same, the one that a line of code cures.
    return [thing for _, _, thing in sorted([*curable, *hosts], key=lambda found: (-found[0], found[1]))]


def to_be_left(data: Json, recording: Recording, whole: Json | None) -> Json | None:
    """What to do with a cell that jitlab makes no faster, and never will; None of another one. `whole`: `verdict.waited`."""
    pays = (whole or {}).get("pays")
    if pays is not None and pays["code"] == "never":
        whose = own_code(data, slowest(data))
        told = messages.text("advice.leave", **pays["args"]) + (f" {whose}" if whose else "")
        return {**_said("leave", {}), "code": None, "why": told, "section": "timeline"}
    if not recording.is_captured or data["ops"] or not (data["statements"] or data["as_python"]) or data["cell"].get("error"):
        return None
    reasons = [statement["reason"]["text"] for statement in data["statements"] if statement["reason"]]
    why = messages.text("advice.not_compiled", reason=reasons[0]) if reasons else ""
    return {**_said("plain_cell", {}), "code": None, "why": why, "section": "clusters"}


def bounded(data: Mapping[str, Any]) -> Json | None:
    """`verdict.bound` of docs/reference/report-format.md: where nothing is advised, whether that is because no change helps."""
    verdict = data["verdict"]
    top, first = verdict.get("slowest"), verdict.get("first_run")
    is_quick = first is not None and (first["quick_share"] or 0.0) >= QUICK
    paid = ((verdict.get("waited") or {}).get("pays") or {}).get("code")
    if paid in ("late", "never") or (verdict.get("speed") or {}).get("ratio", 1.0) < 1:
        return None  # "leave it to NumPy" is what to do
    if not top or verdict["next"] or not verdict["compiled"] or verdict["retraces"] or verdict["host"] or is_quick:
        return None
    kernels = [k for k in data["kernels"] if k["seconds"]]
    only = kernels[0] if len(kernels) == 1 else None
    is_rest = data["statements"] or data["as_python"] or data["cell"].get("error") or verdict.get("stored")
    if only is not None and not is_rest and (only["of_peak"] or 0.0) >= NEAR_PEAK:
        args = {"where": top["text"], "share": only["of_peak"], "peak": PEAKS[only["bound"]]}
        return Message("bound.done", args).to_json()
    return (own_code(data, top) or Message("bound.left")).to_json()


def own_code(data: Mapping[str, Any], top: Json | None) -> Message | None:
    """That what takes most of the work calls functions of NumPy or SciPy, which no compiler changes; None where it does not."""
    if top is None or top["share"] < MOST_OF_IT:
        return None
    ops = {(op["plan"], op["name"]): op for op in data["ops"]}
    names: dict[str, None] = {}
    owners: set[str] = set()
    for kernel in data["kernels"]:
        found = OWN_CODE & set(kernel.get("libraries", ()))
        if kernel["name"] not in top["kernels"] or not found:
            continue
        owners |= found
        inside = [name for nest in kernel.get("nests", ()) if nest["kind"] == "library" for name in nest["ops"]]
        for name in kernel["ops"] if kernel["kind"] == "library" else inside:
            called, bracket, _ = (ops.get((kernel["plan"], name), {}).get("written") or "").partition("(")
            if bracket and called:
                names[called] = None
    if not names:
        return None
    said = {"names": " and ".join(names), "is_are": "is" if len(names) == 1 else "are", "library": " and ".join(sorted(owners))}
    return Message("bound.library", {**said, "share": top["share"], "where": top["text"]})


#: What the elements that a mask selects may be given to, so that another way to write it has the same result.
SUMS = {"Sum", "Mean"}


def without_mask(fallback: Json, ops: Mapping[tuple[str, str], Json]) -> Message | None:
    """How to write what a boolean mask selects so that its length is no matter of the data, with the program's own names; None
    of another operation, and where what reads it would give something else (a median of zeros)."""
    if not fallback["reason"] or fallback["reason"].get("detail") != "reading_mask":
        return None
    readers = {op["op"] for (plan, _), op in ops.items() if plan == fallback["plan"] and fallback["name"] in op["inputs"]}
    if not readers <= SUMS:
        return None
    try:
        node = ast.parse(fallback.get("written") or "", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it was cut
        return Message("fix.mask_rows")
    shape = ops.get((fallback["plan"], fallback["name"]), {}).get("shape", ())
    if len(shape) != 1 or not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Tuple):
        return Message("fix.mask_rows")
    if readers:
        return Message("fix.mask_sum", {"name": fallback["written"]})
    array, mask = ast.unparse(node.value), ast.unparse(node.slice)
    return Message("fix.mask", {"name": fallback["written"], "array": array, "mask": mask})


def add_masks(data: Json) -> None:
    """What avoids the retraces for another length of what a mask selects."""
    ops = {(op["plan"], op["name"]): op for op in data["ops"]}
    known = {f["written"]: said for f in data["fallbacks"] if f["written"] and (said := without_mask(f, ops)) is not None}
    for retrace in data["retraces"]:
        if retrace["argument"] in known and not (retrace["fix"] or retrace["first"]):
            retrace["fix"] = known[retrace["argument"]].to_json()


def _host(fallback: Json, seconds: float | None, mask: Message | None) -> Json:
    numbers = wording.line_text(wording.numbers_of(fallback["lines"]))
    felt = seconds and seconds >= fallback["seconds"]
    said = ("mask" if mask else "host") + ("_share" if felt and seconds else "")
    share = fallback["seconds"] / seconds if felt and seconds else None
    reason = fallback["reason"]
    told = {"reason": reason["text"] if reason else "", "op": fallback.get("written") or fallback["op"], "lines": numbers}
    why = [messages.text(f"advice.not_compiled{'_at' if numbers else ''}", **told)]
    if mask:
        why.append(_sentence(str(mask)))
    if reason and _draws_in_body(reason):
        why.append(messages.text("advice.draw_before"))
    return {
        **_said(said, {"op": fallback.get("written") or fallback["op"], "seconds": fallback["seconds"], "share": share}),
        "code": None, "why": " ".join(why), "section": "clusters",
    }  # fmt: skip


def _draws_in_body(reason: Json) -> bool:
    """A loop that NumPy runs for the sake of the random numbers in it."""
    return reason["code"] == "unsupported_while" and "stateful_random" in (reason.get("evidence") or [])


def _cure(retraces: list[Json], every: list[Json]) -> Json:
    """`every`: all retraces, as the list of them has it; where these are a part of them, or the change avoids a part, that is
    said."""
    whole = float(sum(r["seconds"] for r in every))
    causes = Counter(r["cause"] for r in retraces if r["fix"])
    same = [r for r in retraces if r["cause"] == causes.most_common(1)[0][0]]
    alike = [r for r in same if r["fix"]]
    first, fix = same[0], alike[-1]["fix"]
    place = alike[-1].get("place") or place_of({**first, "fix": fix})
    often = "once" if len(retraces) == 1 else f"{len(retraces)} times"
    if len(retraces) < len(every):
        often = f"{len(retraces)} of the {len(every)} times"
    what = fix["code"] if is_code(fix) and fix["code"] in messages.codes("next") else "retraced"
    why = messages.text("advice.caused", cause=first["text"])
    code = fix["text"] if is_code(fix) else None
    saved = _lost(retraces)
    is_all = units.duration(saved) == units.duration(whole)
    lost = messages.text("advice.lost" if is_all else "advice.could_save", saved=saved, whole=whole)
    return {
        **_said(what, {"name": first["argument"] or "the argument", "often": often}),
        "code": code,
        "why": " ".join(filter(None, (why, "" if code else _sentence(fix["text"]), lost, place))),
        "section": "retraces",
    }  # fmt: skip


def _said(advice: str, args: Json) -> Json:
    return {"text": messages.text(f"next.{advice}", **args), "advice": advice, "args": args}


def form_of(fix: Json | None) -> str:
    """How a fix is written: "line" (before the call), "call" (in its place), "option", "decorator" and "maker" (of what makes
    the function), "setting", "several" of these; "words" where it is a sentence."""
    return str(fix["args"].get("form", "words")) if fix else "words"


def is_code(fix: Json | None) -> bool:
    """It can be copied into the program."""
    return form_of(fix) != "words"


def unfixed(retraces: Sequence[Mapping[str, Any]]) -> str:
    """What is said of retraces without a fix: that it is done, or that none was found, and whether code was compiled."""
    if done := retraces[-1]["done"]:
        return str(done["text"])
    return messages.text(f"unfixed.{'compiled' if any(r.get('compiled') for r in retraces) else 'recorded'}")


def _sentence(fix: str) -> str:
    return fix[:1].upper() + fix[1:] + ("" if fix.endswith(".") else ".")


def made_in(event: Any) -> str:
    """Where the decorator, or the call that makes the function, is changed; "" for another fix."""
    file, line = event.fixed_at
    if event.fix is None or not line:
        return ""
    what = "decorator" if event.fix.args["form"] == "decorator" else "maker"
    return messages.text(f"fix_place.{what}", file=wording.short_file(file), line=line)


def place_of(retrace: Json) -> str:
    """Where its fix is written, "" where the fix says so. An argument is changed before the call: inside of the function it is
    too late."""
    file, line = retrace["site"]
    form = form_of(retrace["fix"])
    if form != "option" and (form not in ("call", "line") or not line):
        return ""
    return messages.text(f"fix_place.{form}", function=retrace["function"], file=wording.short_file(file), line=line)


def _lost(retraces: list[Json]) -> float:
    """What retraces cost that a change avoids."""
    return float(sum(r["seconds"] for r in retraces if r["fix"]))


def _worth_naming(fallback: Json, seconds: float | None) -> bool:
    """It takes a share of the run that is felt, and NumPy runs it neither because the user wants that nor because it has to."""
    took = fallback["seconds"] or 0.0
    wanted = fallback["reason"] and fallback["reason"]["code"] in BEYOND_CURE
    return took > 0 and not wanted and took >= SHARE_FELT * (seconds or 0.0)


def spent(event: Any, recording: Recording) -> list[list[Any]]:
    """Where the time of a trace went, as [step, seconds]: "capture", "passes", "planning" and "codegen", of each cluster its
    first compilation (a later tier comes from the background). Nested and overlapping times count once, for the step that
    began last. What the trace was charged (the figure of its ledger) is divided as the steps' times are."""
    key = event.function, event.trace
    plans = [p for p in recording.plans if (p.function, p.trace) == key]
    first: dict[str, Any] = {}
    for step in recording.compiled.get(key, ()):
        first.setdefault(step.cluster, step)
    steps = [
        ("capture", event), *(("passes", step) for step in recording.passes.get(key, ())),
        *(("planning", step) for step in plans), *(("codegen", step) for step in first.values()),
    ]  # fmt: skip
    times = sorted({t for _, step in steps for t in (step.start_ns, step.start_ns + step.duration_ns)})
    total: Counter[str] = Counter()
    for start, end in zip(times, times[1:], strict=False):
        running = [(s.start_ns, name) for name, s in steps if s.start_ns <= start and end <= s.start_ns + s.duration_ns]
        if running:
            total[max(running)[1]] += end - start
    whole = sum(total.values())
    share = recording.charged[key] / whole if key in recording.charged and whole else 1
    return [[name, total[name] * share / 1e9] for name in ("capture", "passes", "planning", "codegen") if total[name]]

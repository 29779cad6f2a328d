"""Two runs side by side: which parts are the same, what each gained or lost, and what the compiler decided otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from textwrap import wrap
from typing import Any

from jitlab.messages import Message, capital, units
from jitlab.messages.escape import clean
from jitlab.report.render import wording
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.statistics import FEWEST_APART, difference, interval

Json = dict[str, Any]
Pair = tuple[Json | None, Json | None]  # a part before and after

WIDTH = 100
ALIKE = 0.3  # of two clusters' operations and lines: less is another cluster
MOST_MOVED = 4  # operations named in one sentence
BUSY = 0.15  # of the processors: other programs are worth a word from here on
UNKNOWN = 0.5  # of the processors that others may have taken where nobody knows
WHOLE = "whole cell"


@dataclass(frozen=True)
class RunComparison:
    """What changed between two runs, printed as a table; `to_json()` is the `comparison` of docs/reference/report-format.md."""

    data: Mapping[str, Any]

    @property
    def rows(self) -> list[Json]:
        """The whole cell first, then clusters and host operations: name, state, seconds before and after, change."""
        return [dict(row) for row in self.data["rows"]]

    @property
    def plan_changes(self) -> list[str]:
        """What the compiler decided otherwise, a sentence each."""
        return [change["text"] for change in self.data["plan_changes"]]

    @lazy
    def worse(self) -> list[str]:
        """What got worse: parts that became slower, retraces that were not there."""
        changed = [row for row in self.data["rows"] if row["change"] and row["change"]["significant"]]
        found = [f"{row['name']} is {row['change']['word']}" for row in changed if row["change"]["ratio"] > 1]
        before, after = self.data["retraces"]["before"], self.data["retraces"]["after"]
        return [*found, f"{after} retraces, {before} before"] if after > before else found

    def to_json(self) -> Json:
        return dict(self.data)

    def __str__(self) -> str:
        return comparison_text(self.data)

    def __repr__(self) -> str:
        whole = self.data["rows"][0]
        return f"<RunComparison: {whole['change']['word'] if whole['change'] else 'not compared'}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True)
class Noise:
    """What is known of the machine: the share that other programs took on each side, in how many runs its times were taken, and
    how much runs of one plan differed."""

    others: tuple[float, float]
    runs: tuple[int, int]
    between: float

    @classmethod
    def of(cls, before: Json, after: Json) -> Noise:
        runs = max(1, len(before["runs"])), max(1, len(after["runs"]))
        return cls((_others(before), _others(after)), runs, max(before["between"], after["between"]))


def _others(side: Json) -> float:
    return UNKNOWN if side["others"] is None else float(side["others"])


def compared(before: Json, after: Json, against: Json | None = None, run: int | None = None) -> RunComparison:
    """The comparison of two `runs.run_facts`; `against` says what `before` is."""
    pairs = aligned(before["parts"], after["parts"])
    noise = Noise.of(before, after)
    rows = [_whole_row(before, after, noise), *(_row(*pair, noise) for pair in pairs)]
    return RunComparison({
        "run": run, "against": dict(against or {"run": None}), "rows": rows, "plan_changes": _plan_changes(pairs),
        "retraces": {"before": before["retraces"], "after": after["retraces"]},
        "samples": [len(before["samples"]), len(after["samples"])], "runs": [list(before["runs"]), list(after["runs"])],
        "note": " ".join(map(str, _notes(before, after))) or None, "needs": _needs(before, after),
    })  # fmt: skip


def aligned(before: Sequence[Json], after: Sequence[Json]) -> list[Pair]:
    """Parts that belong together, in the order of the newer run; what is gone stands last. Equal fingerprints first, wherever
    they lie and whatever they are called; then clusters whose operations and lines are alike."""
    left = list(before)
    found: dict[int, Json] = {}
    for i, part in enumerate(after):
        same = [other for other in left if (other["kind"], other["fingerprint"]) == (part["kind"], part["fingerprint"])]
        if same:
            found[i] = min(same, key=lambda other: (other["function"] != part["function"], other["lines"] != part["lines"]))
            left.remove(found[i])
    rest = [i for i in range(len(after)) if i not in found]
    scored = sorted(
        ((_likeness(other, after[i]), -i, -n, i, other) for i in rest for n, other in enumerate(left)),
        key=lambda entry: entry[:3], reverse=True,
    )  # fmt: skip
    for likeness, _, _, i, other in scored:
        if likeness >= ALIKE and i not in found and any(other is part for part in left):
            found[i] = other
            left.remove(other)
    return [*((found.get(i), part) for i, part in enumerate(after)), *((part, None) for part in left)]


def _likeness(a: Json, b: Json) -> float:
    """0 to 1: the same operations in the same order, on the same lines."""
    if a["kind"] != b["kind"]:
        return 0.0
    if a["kind"] == "host":
        return 1.0 if a["name"] == b["name"] else 0.0
    kinds = SequenceMatcher(None, [op["op"] for op in a["ops"]], [op["op"] for op in b["ops"]], autojunk=False).ratio()
    lines = set(a["lines"]) | set(b["lines"])
    shared = len(set(a["lines"]) & set(b["lines"])) / len(lines) if lines else 0.0
    return (0.7 * kinds + 0.3 * shared) if a["function"] == b["function"] else 0.7 * kinds


def _row(before: Json | None, after: Json | None, noise: Noise) -> Json:
    part = after or before
    assert part is not None
    state = "added" if before is None else "removed" if after is None else "same" if _same(before, after) else "changed"
    spans = (before["seconds"], after["seconds"]) if before and after else (0.0, 0.0)
    return {
        "name": part.get("written") or part["name"], "fingerprint": part["fingerprint"], "color": part["color"],
        "kind": part["kind"], "state": state,
        "before": _seconds(before), "after": _seconds(after), "lines": part["lines"],
        "change": _change(before["samples"], after["samples"], spans, noise) if before and after else None,
    }  # fmt: skip


def _same(before: Json, after: Json) -> bool:
    return bool(before["fingerprint"] == after["fingerprint"])


def _whole_row(before: Json, after: Json, noise: Noise) -> Json:
    return {
        "name": WHOLE, "fingerprint": after["fingerprint"], "color": None, "kind": "cell",
        "state": "same" if _same(before, after) else "changed", "lines": [],
        "before": _seconds(before), "after": _seconds(after),
        "change": _change(before["samples"], after["samples"], (before["span"], after["span"]), noise),
    }  # fmt: skip


def _seconds(part: Json | None) -> float | None:
    """Of a call: the centre that the change compares; without samples the mean."""
    if part is None:
        return None
    if part["samples"]:
        return interval(part["samples"])[0]
    return part["seconds"] / part["calls"] if part.get("calls") and part["seconds"] else None


def _change(before: Sequence[float], after: Sequence[float], spans: tuple[float, float], noise: Noise) -> Json | None:
    if min(len(before), len(after)) < FEWEST_APART:
        return None
    known = spans if min(spans) > 0 else None
    return difference(before, after, spans=known, runs=noise.runs, disturbed=noise.others, between=noise.between).to_json()


def _notes(before: Json, after: Json) -> list[Message]:
    notes = []
    if before["source"] and after["source"] and before["source"] != after["source"]:
        notes.append(_said("edited"))
    for facts, which, side in ((before, "before", "before"), (after, "after", "now")):
        if facts["error"]:
            notes.append(_said("ended", which=which, error=facts["error"]))
        if len(facts["runs"]) > 1:
            notes.append(_said("together", runs=capital(runs_text(facts["runs"])), side=side))
    busy = max(before["others"] or 0.0, after["others"] or 0.0)
    if busy >= BUSY:
        notes.append(_said("busy", share=busy))
    return notes


def _said(row: str, **args: Any) -> Message:
    return Message(f"compared.{row}", args)


def _needs(before: Json, after: Json) -> Json | None:
    """What is missing until it can be told whether they differ, None for nothing. `with_runs_needed` knows how many runs."""
    few = min(len(before["samples"]), len(after["samples"]))
    if few >= FEWEST_APART:
        return None
    row = "no_call" if not few else "one_call" if few == 1 else "few_calls"
    return {"runs": None, **_said(row, calls=few, least=FEWEST_APART).to_json()}


def with_runs_needed(found: RunComparison, runs: int | None, is_past: bool = False) -> RunComparison:
    """The comparison, with how many more runs it takes to tell whether the two differ; None: later runs do not help. `is_past`:
    the older side ran other code than the newest run, so that no run to come is of it."""
    if found.data["needs"] is None:
        return found
    before, after = found.data["samples"]
    if gets_none := is_past and before < FEWEST_APART:
        old = runs_text(found.data["runs"][0])
        said = _said("old_code", calls=units.counted(before, "timed call"), runs=old, least=FEWEST_APART)
    elif runs is not None:
        said = _said("run_once" if runs == 1 else "run_more", before=before, after=after, least=FEWEST_APART, runs=runs)
    else:
        row, which = "pin" if "baseline" in found.data["against"] else "later", capital(against_text(found.data["against"]))
        said = _said(row, which=which, calls=units.counted(before, "timed call"), least=FEWEST_APART)
    return RunComparison({**found.data, "needs": {"runs": None if gets_none else runs, **said.to_json()}})


def runs_text(runs: Sequence[int]) -> str:
    """ "run 3", "runs 3–5", "runs 1, 3": those that one side is made of; "" of a report that was no run."""
    known = [run for run in runs if run is not None]
    if len(known) < 2:
        return f"run {known[0]}" if known else ""
    is_range = known == list(range(known[0], known[-1] + 1))
    return f"runs {known[0]}–{known[-1]}" if is_range else f"runs {', '.join(map(str, known))}"


def _plan_changes(pairs: Sequence[Pair]) -> list[Json]:
    """A sentence for each part that was decided otherwise, also where it takes the same time."""
    found = []
    for before, after in pairs:
        part = after or before
        assert part is not None
        if before and after:
            if before["fingerprint"] == after["fingerprint"]:
                continue
            if part["kind"] == "host":
                said = _said("host_reason", what=_at(after), why=after["reason"])
            else:
                said = _cluster_changed(before, after)
        elif part["kind"] == "host":
            said = _said("host_now", what=_at(part), why=part["reason"]) if after else _host_gone(part, pairs)
        else:
            said = _said("new" if after else "gone", what=_at(part), operations=len(part["ops"]), kernels=part["kernels"])
        cluster = part["name"] if part["kind"] == "cluster" else None
        found.append({"cluster": cluster, **said.to_json(), "lines": part["lines"]})
    return found


def _host_gone(part: Json, pairs: Sequence[Pair]) -> Message:
    """Where the operation went: into a cluster, or out of the program."""
    for before, after in pairs:
        if after is not None and after["kind"] == "cluster" and _count(after, part["name"]) > _count(before, part["name"]):
            return _said("host_compiled", what=_at(part), cluster=after["name"])
    return _said("host_gone", what=_at(part))


def _count(part: Json | None, kind: str) -> int:
    return sum(op["op"] == kind for op in part["ops"]) if part else 0


def _cluster_changed(before: Json, after: Json) -> Message:
    """ "Plan changed in cluster_1: 3 kernels → 2. `x[i]` (line 10) now runs inside k3; 188 MB less memory traffic." """
    facts = []
    if before["kernels"] != after["kernels"]:
        facts.append(f"{units.counted(before['kernels'], 'kernel')} → {after['kernels']}")
    if len(before["ops"]) != len(after["ops"]):
        facts.append(f"{units.counted(len(before['ops']), 'operation')} → {len(after['ops'])}")
    more, fewer = _kinds(after, before), _kinds(before, after)
    found = (more, "new"), (fewer, "gone")
    moved = [f"{_named(ops)} {'is' if len(ops) == 1 else 'are'} {word}" for ops, word in found if ops]
    if not more and not fewer:
        moved = _moved(before, after)
    name = after["name"] if moved else _at(after)  # what moved is told with its lines
    moved = moved[:MOST_MOVED] + ([f"{len(moved) - MOST_MOVED} more"] if len(moved) > MOST_MOVED else [])
    less = before["bytes"] - after["bytes"]
    if less:
        moved.append(f"{units.size(abs(less))} {'less' if less > 0 else 'more'} memory traffic")
    if not facts and not moved:
        facts.append("the same operations read and fuse in another way")
    row = "changed_and_moved" if facts and moved else "changed" if facts else "moved"
    return _said(row, name=name, facts=", ".join(facts), moved="; ".join(moved))


def _kinds(a: Json, b: Json) -> list[Json]:
    """Operations of a that b has not."""
    left = Counter(op["op"] for op in b["ops"])
    found = []
    for op in a["ops"]:
        if left[op["op"]]:
            left[op["op"]] -= 1
        else:
            found.append(op)
    return found


def _moved(before: Json, after: Json) -> list[str]:
    """Operations that run in another kernel than before, as the company they keep tells."""
    matcher = SequenceMatcher(None, [op["op"] for op in before["ops"]], [op["op"] for op in after["ops"]], autojunk=False)
    pair = {b + i: a + i for a, b, size in matcher.get_matching_blocks() for i in range(size)}
    old = [op["kernel"] for op in before["ops"]]
    new = [op["kernel"] for op in after["ops"]]
    votes: Counter[tuple[Any, Any]] = Counter((old[a], new[b]) for b, a in pair.items())
    home: dict[Any, Any] = {}  # the old kernel that each new one carries on
    for was, now in sorted(votes, key=lambda pair: (-votes[pair], pair[0] != pair[1])):
        if now not in home and was not in home.values():
            home[now] = was
    gone: dict[str, list[Json]] = {}  # by where they run now
    for b, a in pair.items():
        if home.get(new[b]) != old[a] and new[b] is not None:
            where = f"inside {new[b]}" if new[b] in home else f"in a kernel of its own, {new[b]}"
            gone.setdefault(where, []).append(after["ops"][b])
    return [f"{_named(ops)} now {'runs' if len(ops) == 1 else 'run'} {where}" for where, ops in gone.items()]


def _named(ops: Sequence[Json]) -> str:
    """ "`x[i]` (line 10)", "`x + y` and `np.log(x)` (line 6)"."""
    shown = list(dict.fromkeys(map(_shown, ops[:MOST_MOVED])))
    more = len(ops) - len(ops[:MOST_MOVED])
    names = [*shown, f"{more} more"] if more else shown
    said = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return _at({"name": said, "lines": sorted({line for op in ops for line in op["lines"]})})


def _shown(part: Json) -> str:
    """How the program writes an operation; the name of a cluster, and in older baselines of the operation's kind."""
    return f"`{part['written']}`" if part.get("written") else str(part.get("name") or part["op"])


def _at(part: Json) -> str:
    where = wording.line_text(part["lines"])
    return f"{_shown(part)} ({where})" if where else _shown(part)


def against_text(against: Mapping[str, Any]) -> str:
    if "baseline" in against:
        return f"baseline “{clean(str(against['baseline']))}”"
    return f"run {against['run']}" if against.get("run") is not None else "the other report"


def comparison_text(data: Mapping[str, Any]) -> str:
    """The comparison for a terminal, at most 100 columns."""
    what = f"run {data['run']}" if data.get("run") is not None else "this report"
    rows = data["rows"]
    room = max([12, *(len(clean(row["name"])) + 2 for row in rows)])
    room = min(room, 40)
    head = f"{what} against {against_text(data['against'])}, times of one call"
    lines = [head, f"  {'':<{room}}{'before':>10}{'now':>10}   change"]
    for row in rows:
        name = clean(row["name"])
        name = name if len(name) < room else name[: room - 2] + "…"
        times = [units.duration(row[key]) if row[key] is not None else "–" for key in ("before", "after")]
        word = {"added": "new", "removed": "gone"}.get(row["state"]) or (row["change"]["word"] if row["change"] else "")
        lines.append(f"  {name:<{room}}{times[0]:>10}{times[1]:>10}   {word}".rstrip())
    for change in data["plan_changes"]:
        lines += wrap(clean(change["text"]), WIDTH, initial_indent="  ", subsequent_indent="    ")
    if not data["plan_changes"]:
        lines.append("  Same plan.")
    retraces = data["retraces"]
    if retraces["before"] or retraces["after"]:
        lines.append(f"  Retraces: {retraces['before']} before, {retraces['after']} now.")
    if all(data["samples"]):
        lines.append(f"  {data['samples'][0]} and {data['samples'][1]} timed calls; ± is half of the 95 % interval.")
    for text in (data["needs"]["text"] if data.get("needs") else "", data["note"] or ""):
        lines += wrap(clean(text), WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines)


__all__ = ["RunComparison", "aligned", "compared", "comparison_text", "with_runs_needed"]

"""Is a program compiled as well as it was? Counts that a baseline has, against those of now; times only when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass

from .baselines import Baseline
from .comparing import compared

Json = dict[str, Any]

WIDTH = 100
BYTES_FELT = 0.01  # of those moved: a number that became an array is no loss
#: What is worse when there is more of it, and what it is called.
MORE_IS_WORSE = {
    "retraces": "retraces", "host": "operations that NumPy ran", "statements": "statements that Python ran",
    "clusters": "clusters", "kernels": "kernels", "bytes": "bytes moved",
}  # fmt: skip


@dataclass(frozen=True)
class CellCheck:
    """One cell against its baseline. `worse`: a line each; `other`: what changed and is no worse."""

    title: str
    worse: tuple[str, ...]
    other: tuple[str, ...]

    def __str__(self) -> str:
        word = "worse" if self.worse else "changed" if self.other else "as before"
        lines = [f"{self.title}: {word}"]
        for text in (*self.worse, *self.other):
            lines += wrap(clean(text), WIDTH, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)


@dataclass(frozen=True)
class Checked:
    """All cells of a program against a baseline."""

    cells: tuple[CellCheck, ...]
    gone: tuple[str, ...] = ()

    @property
    def is_worse(self) -> bool:
        return bool(self.gone) or any(cell.worse for cell in self.cells)

    @property
    def is_changed(self) -> bool:
        return bool(self.gone) or any(cell.worse or cell.other for cell in self.cells)

    def __str__(self) -> str:
        told = [str(cell) for cell in self.cells if cell.worse or cell.other]
        same = sum(not (cell.worse or cell.other) for cell in self.cells)
        worse = sum(bool(cell.worse) for cell in self.cells)
        told += [f"{title}: gone\n  in the baseline, and nothing like it was compiled now" for title in self.gone]
        changed = len(self.cells) - same - worse
        counts = [
            f"{units.counted(same, 'cell')} as before" if same else "", f"{worse} worse" if worse else "",
            f"{len(self.gone)} gone" if self.gone else "",
            f"{changed} changed{'' if worse else ', none of them worse'}" if changed else "",
        ]  # fmt: skip
        return "\n".join([*told, ", ".join(filter(None, counts)) or "Nothing was compiled, now or in the baseline."])


def checked(baseline: Baseline, cells: Sequence[Json], times: bool = False, raised: Sequence[Json] = ()) -> Checked:
    """Compare the facts of cells (`runs.run_facts`) with a baseline's; `times`: slow-downs count, too. `raised`: the cells of
    a notebook that raised: worse where they did not in the baseline."""
    left = list(baseline.cells)
    found = [*_raised(baseline, cells, raised)]
    for facts in cells:
        before = Baseline(baseline.name, tuple(left)).of(facts)
        if before is None:
            failed = (f"ended with {facts['error']}",) if facts["error"] else ()
            found.append(CellCheck(_title(facts), failed, (f"new: {facts['lead']}",)))
            continue
        left = [cell for cell in left if cell is not before]
        found.append(_cell(before, facts, times))
    return Checked(tuple(found), tuple(_title(facts) for facts in left))


def _raised(baseline: Baseline, cells: Sequence[Json], raised: Sequence[Json]) -> Iterator[CellCheck]:
    """Of cells that raised and compiled nothing: those that compiled something have facts, which say so."""
    told = {facts["cell"] for facts in cells}
    known = {cell["cell"]: cell["error"] for cell in baseline.raised}
    for cell in raised:
        if cell["cell"] not in told and known.get(cell["cell"]) != cell["error"]:
            before = known.get(cell["cell"])
            text = f"raised {cell['error']}" + (f"; in the baseline {before}" if before else "")
            yield CellCheck(_title(cell), () if before else (text,), (text,) if before else ())


def _cell(before: Json, after: Json, times: bool) -> CellCheck:
    worse: list[str] = []
    other: list[str] = []
    for key, what in MORE_IS_WORSE.items():
        if before[key] != after[key]:
            numbers = [units.size(facts[key]) if key == "bytes" else str(facts[key]) for facts in (before, after)]
            if numbers[0] == numbers[1]:
                numbers = [f"{facts[key]} B" for facts in (before, after)]
            line = f"{what}: {' → '.join(numbers)}"
            if key == "retraces" and after[key] > before[key] and after["causes"]:
                line += f" ({'; '.join(after['causes'][:2])})"
            least = before[key] * (1 + BYTES_FELT) if key == "bytes" else before[key]
            (worse if after[key] > least else other).append(line)
    if after["compiled"] < before["compiled"] and after["operations"] >= before["operations"]:
        worse.append(f"operations compiled: {before['compiled']} → {after['compiled']}")
    if after["error"] and not before["error"]:
        worse.append(f"ended with {after['error']}")
    comparison = compared(before, after)
    changes = comparison.plan_changes
    if before["fingerprint"] != after["fingerprint"] and not changes:
        changes = ["The plan changed: the same clusters in another order, or between other operations."]
    (worse if worse else other).extend(changes)
    if times:
        worse += [line for line in comparison.worse if "retraces" not in line]
    return CellCheck(_title(after), tuple(worse), tuple(other))


def _title(facts: Mapping[str, Any]) -> str:
    return clean(str(facts["title"] or "the program"))

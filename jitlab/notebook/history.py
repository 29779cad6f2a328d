"""The last runs of each cell, and named baselines: what a run is compared with."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitlab.config import config
from jitlab.errors import OptionError
from jitlab.report.store.baselines import Baseline, read_baseline, taken_here, write_baseline
from jitlab.report.store.comparing import RunComparison, compared, with_runs_needed
from jitlab.report.store.runs import headline, pooled, source_digest
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.statistics import FEWEST_APART

if TYPE_CHECKING:
    from jitlab.report import Report

    from .cell_session import CellRun

Json = dict[str, Any]

MOST_CELLS = 256
MOST_BASELINES = 100
UNSETTLED = 2  # runs of a cell whose recordings are kept whole until somebody asks
SHOWN = ("seconds", "calls", "error", "fingerprint", "retraces")  # of each run, to the panel
ENOUGH = 20  # samples: a run with fewer is joined by those before it that ran the same plan


@dataclass(eq=False)
class Entry:
    """One run of a cell: its recording until its facts are made of it, then they alone."""

    number: int
    run: CellRun | None
    facts: Json | None = None


class History:
    """Belongs to a session. Cells are known by their id; where the shell has none, by their source."""

    def __init__(self, report_of: Callable[[CellRun], Report | None]) -> None:
        self._report_of = report_of
        self._cells: OrderedDict[str, deque[Entry]] = OrderedDict()
        self._baselines: OrderedDict[str, dict[str, Json]] = OrderedDict()
        self._files: dict[str, Baseline] = {}  # baselines that were read, by name
        self._lock = threading.RLock()

    def began(self, run: CellRun) -> None:
        """A run has something to record."""
        with self._lock:
            entries = self._cells.setdefault(self._key(run), deque())
            self._cells.move_to_end(self._key(run))
            entries.append(Entry(entries[-1].number + 1 if entries else 1, run))
            while len(entries) > config.history_runs:
                entries.popleft()
            while len(self._cells) > MOST_CELLS:
                self._cells.popitem(last=False)

    def settle_one(self) -> bool:
        """Make the facts of one run that has ended, and let its recording go; False when there is none. No cell waits for it:
        the session calls this while nothing runs."""
        with self._lock:
            for entries in self._cells.values():
                for entry in list(entries)[:-UNSETTLED]:
                    if entry.run is not None and not entry.run.running:
                        self._settle(entry)
                        return True
        return False

    def clear(self) -> None:
        """Forget the runs. Baselines stay: they were asked for."""
        with self._lock:
            self._cells.clear()

    def to_json(self, run: CellRun) -> Json:
        """The `history` of docs/reference/report-format.md."""
        with self._lock:
            key = self._key(run)
            entries = self._cells.get(key, deque())
            shown = [{"run": entry.number, **told} for entry in entries if (told := self._headline(entry)) is not None]
            names = [*self._baselines, *self._files]
            runs = self._runs(key) if names else []
            return {
                "run": next((entry.number for entry in entries if entry.run is run), None), "runs": shown,
                "baselines": [name for name in dict.fromkeys(names) if runs and self._found(name, key, runs[-1]) is not None],
            }  # fmt: skip

    def compare(self, run: CellRun, against: Mapping[str, Any] | None = None) -> RunComparison:
        """The newest run of a cell against {"baseline": name} or {"run": n}, with what ran after it on the newer side; against
        the runs before when nothing is said: of a cell that calls once the newer side then takes some of them in."""
        with self._lock:
            key = self._key(run)
            runs = self._runs(key)
            if not runs:
                raise OptionError(f"{run.title} has no run that was recorded.", hint="run the cell again")
            newest = runs[-1]
            if against is not None and "baseline" in against:
                name = str(against["baseline"])
                before = self._baseline(name, key, newest, run.title)
                later = [facts for facts in runs if facts["run"] > max(before["runs"], default=0) or name in self._files]
                found = compared(before, pooled(later or runs[-1:], ENOUGH), {"baseline": name}, newest["run"])
                first = len(runs) - len(later)
                found = with_runs_needed(found, _runs_needed(runs, lambda known: (before, pooled(known[first:], ENOUGH))))
                is_of_here = name not in self._files or self._files[name].is_of_here
                return found if is_of_here else _noted(found, "The baseline is of another processor.")
            earlier = runs[:-1]
            if against is not None:
                earlier = [facts for facts in earlier if facts["run"] <= against["run"]]
            if not earlier or (against is not None and earlier[-1]["run"] != against["run"]):
                known = ", ".join(str(facts["run"]) for facts in runs[:-1])
                which = f"run {against['run']}" if against is not None else "run before this one"
                hint = f"one of {known}" if known else "run the cell again"
                raise OptionError(f"{run.title} has no {which} to compare with.", hint=hint)

            def sides(known: list[Json]) -> tuple[Json, Json]:
                begin = len(earlier) if against is not None else _newer_side(known, len(known) - 1)
                return pooled(known[:begin], ENOUGH), pooled(known[begin:], ENOUGH)

            before, after = sides(runs)
            found = compared(before, after, {"run": before["run"]}, newest["run"])
            is_past = any(before[key] != newest[key] for key in ("source", "fingerprint"))
            return with_runs_needed(found, _runs_needed(runs, sides), is_past)

    def pin(self, name: str, *runs: CellRun) -> int:
        """Keep the newest runs of cells under a name; what else it held stays. Returns how many."""
        if not name.strip() or len(name) > 100:
            raise OptionError(f"{name[:100]!r} is no name of a baseline", hint="1 to 100 characters")
        with self._lock:
            facts = {key: pooled(known, ENOUGH) for key in map(self._key, runs) if (known := self._runs(key))}
            if not facts:
                raise OptionError("There is no run to pin.", hint="run a cell with %%jit or a jl.function")
            if name not in self._baselines and len(self._baselines) >= MOST_BASELINES:
                raise OptionError(f"There are {MOST_BASELINES} baselines already.", hint="drop one")
            self._files.pop(name, None)
            self._baselines.setdefault(name, {}).update(facts)
            return len(facts)

    def drop(self, name: str, run: CellRun | None = None) -> None:
        """Forget a baseline; of one cell, when a run is given."""
        with self._lock:
            if name in self._files and run is None:
                del self._files[name]
                return
            kept = self._baselines.get(name)
            key = self._key(run) if run is not None else None
            if kept is None or (key is not None and key not in kept):
                raise self._unknown(name)
            if key is not None:
                del kept[key]
            if key is None or not kept:
                del self._baselines[name]

    def save(self, name: str, path: str | Path) -> Path:
        """Write a baseline to a file."""
        with self._lock:
            if name in self._files:
                return write_baseline(path, self._files[name])
            if name not in self._baselines:
                raise self._unknown(name)
            return write_baseline(path, taken_here(name, self._baselines[name].values()))

    def load(self, path: str | Path, name: str | None = None) -> Baseline:
        """Read a baseline from a file, under the name it has there unless another is given."""
        found = read_baseline(path)
        found = replace(found, name=name or found.name)
        with self._lock:
            self._baselines.pop(found.name, None)
            self._files[found.name] = found
        return found

    @property
    def names(self) -> dict[str, int]:
        """Each baseline with the number of its cells."""
        with self._lock:
            read = {name: len(baseline.cells) for name, baseline in self._files.items()}
            return {name: len(cells) for name, cells in self._baselines.items()} | read

    def _baseline(self, name: str, key: str, newest: Json, title: str) -> Json:
        found = self._found(name, key, newest)
        if found is None:
            if name not in self._baselines and name not in self._files:
                raise self._unknown(name)
            raise OptionError(
                f"The baseline {name!r} has nothing of {title}.",
                why="no cell of it has this id, this source, this plan, or parts that are alike", hint="pin it anew",
            )  # fmt: skip
        return found

    def _found(self, name: str, key: str, newest: Json) -> Json | None:
        if name in self._files:
            return self._files[name].of(newest)
        kept = self._baselines.get(name, {})
        return kept.get(key) or Baseline(name, tuple(kept.values())).of(newest)

    def _unknown(self, name: str) -> OptionError:
        known = ", ".join(self.names)
        return OptionError(f"There is no baseline {name!r}.", hint=f"one of {known}" if known else "%jitlab baseline NAME")

    def _runs(self, key: str) -> list[Json]:
        """The facts of a cell's runs, oldest first."""
        entries = self._cells.get(key, deque())
        found = []
        for entry in entries:
            facts = self._settle(entry, release=entry is not entries[-1])
            if facts is not None:
                found.append({**facts, "run": entry.number})
        return found

    def _headline(self, entry: Entry) -> Json | None:
        if entry.run is None:
            facts = entry.facts
            return {key: facts[key] for key in SHOWN} if facts is not None else None
        report = self._report_of(entry.run)
        return headline(report.data) if report is not None else None

    def _settle(self, entry: Entry, release: bool = True) -> Json | None:
        """The facts of a run; `release`: it is over, its recording is let go. Of the newest, more may come."""
        if entry.run is None:
            return entry.facts
        report = self._report_of(entry.run)
        facts = report.facts if report is not None else entry.facts
        if release and not entry.run.running:
            entry.run, entry.facts = None, facts
        return facts

    def _key(self, run: CellRun) -> str:
        return run.id if not run.id.startswith("cell ") else f"source {source_digest(run.source.split(chr(10)))}"


def _newer_side(runs: list[Json], begin: int) -> int:
    """Where the newer side begins: a cell that calls once gives one sample a run, so older runs of the same plan join it until
    there are enough to compare with."""
    while begin > 1 and sum(len(facts["samples"]) for facts in runs[begin:]) < FEWEST_APART:
        if any(runs[begin - 1][key] != runs[-1][key] for key in ("source", "fingerprint")):
            break
        begin -= 1
    return begin


def _runs_needed(runs: list[Json], sides: Callable[[list[Json]], tuple[Json, Json]]) -> int | None:
    """How many more runs like the newest it takes until both sides have samples enough; None: no number of them does."""
    like = {**runs[-1], "error": None, "samples": runs[-1]["samples"] or [1.0]}
    for more in range(1, 2 * FEWEST_APART + 1):
        before, after = sides(runs + [{**like, "run": like["run"] + n + 1} for n in range(more)])
        if min(len(before["samples"]), len(after["samples"])) >= FEWEST_APART:
            return more
    return None


def _noted(found: RunComparison, note: str) -> RunComparison:
    return RunComparison({**found.data, "note": " ".join(filter(None, (found.data["note"], note)))})

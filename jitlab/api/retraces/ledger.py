"""The ledger of a function: every miss with its causes, what it cost and where it was called, found when somebody asks.

A miss (misses.py) keeps no arrays and no graphs. Its causes are what differs from the nearest trace there was. Of traces that
made room for others counts stay. A definition (one function of the source) has a ledger of all the Functions made of it, so
that one made in a loop is seen.
"""

from __future__ import annotations

import operator
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab import events
from jitlab.api.settling import PYTHON, Trial
from jitlab.capture import Change, Foreign, Leaf, Trace, changes, distance, leaves_of, spans, with_guard
from jitlab.capture.drivers.run_events import emit_trace
from jitlab.capture.effect_log import closure_values
from jitlab.capture.positions import here
from jitlab.config import config
from jitlab.costs import Costs, tell_charge
from jitlab.events import Cause
from jitlab.ir import is_operation
from jitlab.messages import Message, capital, text, units
from jitlab.messages.escape import clean
from jitlab.support.direct_calls import Counts
from jitlab.support.later import Later

from .definitions import Definition, Site
from .in_pieces import Piece
from .misses import NONE, Failed, Miss, change_text
from .patterns import numbers_of, patterns
from .places import MOST_LINES, live, place_of

if TYPE_CHECKING:
    from . import fixes
    from .fixes import Fix
else:
    fixes = Later(f"{__package__}.fixes")

#: Of the traces that are as near, so many (the newest) are compared in full.
NEAREST = 8
#: Proposals shown.
MOST_FIXES = 3
#: Arguments named in an event that did not change.
MOST_SAME = 12
#: Misses remembered beyond twice the traces that are kept: of traces that made room.
EVICTED = 50
#: Up to so many misses each is told with a replay of its own, then again when there are so many times as many.
ALWAYS_REPLAYED, REPLAYED = 16, 1.25


class Ledger:
    """The misses of one Function, newest last; `print(f.ledger)` says what they cost and what would avoid them."""

    TABLES = ("misses", "pieces", "taken", "dropped", "dropped_seconds", "_told", "_by_key")

    def __init__(self, function: Any, name: str, options: str = "", *, is_method: bool = False, kind: str = "function") -> None:
        self.definition = Definition(function, name)
        name = events.FunctionName.of(name, self.definition.place)
        self.name, self.options, self.kind = name, options, kind
        self.made = here()  # the decorator, or the call that made the function
        self.misses: list[Miss] = []
        self.pieces: dict[Site, Piece] = {}  # of a function that cannot be recorded whole
        self.helpers: dict[str, Ledger] = {}  # of functions that it calls in pieces, and that run in pieces themselves
        self.there: Ledger | None = None  # of calls with arrays in a GPU's memory
        self.taken: dict[int, Costs] = {}  # traces taken over of the same code, defined before, by their numbers
        self.resizes: dict[int, int] = {}  # other sizes that a trace has served, by its number
        self.follows = False  # there are such
        self.trials: Mapping[Any, Trial] = {}  # of a `jit` function: which way its calls go
        self.tried = self.settled = 0  # its calls as Python: to find out what that takes, and since that was decided
        self.handed_on: Counts | None = None  # those that C handed on to Python then
        self.dropped, self.dropped_seconds = 0, 0.0  # of the oldest misses, of which only this is known
        self._told: dict[Any, tuple[int, Fix | None]] = {}  # misses when a replay was made, and what it gave
        self._by_key: dict[Any, list[Miss]] = {}
        self.is_method = is_method  # of one instance: each has traces of its own, by the contract
        self._place = place_of(self.definition, kind)
        self.number = self._place.next_number() if self._place is not None else 0
        live.add(self)

    # ---- what happened
    def traced(self, trace: Trace, leaves: tuple[Leaf, ...], costs: Costs, failed: Failed, started_ns: int) -> Miss:
        """A call was traced; `failed`: what kept it from the traces that the lookup came upon. Tells who listens."""
        miss = Miss(self, trace.number, leaves, failed, costs)
        miss.uses, miss.operations = trace.uses, sum(map(is_operation, trace.graph.nodes))
        miss.pattern, miss.program, miss.powers = patterns(trace.graph, numbers_of((*leaves, *miss.closure)))
        own = getattr(getattr(self.definition.function, "__code__", None), "co_freevars", ())
        captured = {  # one object for an array, as long as somebody keeps it; under `jit` a global name is read at each call
            x.path: weakref.ref(x.value)
            for x in trace.inputs
            if x.captured and type(x.value) is np.ndarray and (self.kind == "function" or x.path in own)
        }
        miss.captured = captured or NONE
        trace.costs, costs.is_kept = costs, True
        if trace.executable is not None:
            trace.executable.costs = costs
        if not self.misses and not self.dropped:
            self._find_first(miss)
        self.misses.append(miss)
        self._by_key.setdefault((miss.paths, miss.keys), []).append(miss)
        if self._place is not None:
            self._place.add(miss)
        if len(self.misses) > 2 * config.max_traces + EVICTED:
            self._drop()
        if events.active():
            self._tell(miss, started_ns)
        return miss

    def took_over(self, trace: Trace) -> None:
        """A trace that was made for the same code, defined before, serves from now on: no miss."""
        self.taken[trace.number] = trace.costs

    def resized(self, trace: Trace) -> None:
        """A trace serves another size than it was made for: no miss."""
        self.resizes[trace.number] = self.resizes.get(trace.number, 0) + 1

    def _tell(self, miss: Miss, started_ns: int) -> None:
        ended_ns = time.perf_counter_ns()  # what looking for the cause takes is no part of it
        first = self.explained(miss).changes[0]
        fix = self._recent_fix(miss)
        placed = fix.at(miss) if fix is not None else None
        cure, proof = (placed.message, placed.count) if placed is not None else (None, "")
        made = placed.made if placed is not None and placed.code and placed.option == placed.code else None
        done = fix.done(miss) if fix is not None else None
        if done is not None:
            cure, proof = None, ""
        if fix is None and first.code == "object":
            cure = first.fix  # no replay has to show that one object is one trace
        emit_trace(
            self.name, miss.number, first, miss.causes, miss.operations, started_ns, ended_ns=ended_ns, fix=cure, proof=proof,
            lines=spans(miss.source), changes=tuple((str(c.cause), c.path, c.before, c.after) for c in miss.changes),
            site=(miss.site.file, miss.site.line), definition=str(self.definition.place or ""), renews=miss.renews,
            same=tuple((leaf.path, leaf.text) for leaf in miss.same[:MOST_SAME]), same_count=len(miss.same),
            done=done, fixed_at=(made.file, made.line) if made is not None else ("", 0),
        )  # fmt: skip
        tell_charge(self.name, miss.number, miss.costs)

    def evicted(self, trace: Trace) -> None:
        """A trace made room for the newest."""
        if self.taken.get(trace.number) is trace.costs:
            del self.taken[trace.number]
        if (miss := self.miss_of(trace)) is not None:
            miss.evicted_by = self.misses[-1]
            miss.uses = {}

    def _drop(self) -> None:
        """Of the oldest misses counts stay, first of those whose traces are gone."""
        gone = next((miss for miss in self.misses if miss.evicted_by is not None), self.misses[0])
        self.misses.remove(gone)
        if gone.found is not None:  # what refers to it does not keep all that came before it
            gone.found = gone.found[0], None
        self.dropped += 1
        self.dropped_seconds += gone.seconds
        same = self._by_key[gone.paths, gone.keys]
        same.remove(gone)
        if not same:
            del self._by_key[gone.paths, gone.keys]

    def miss_of(self, trace: Trace) -> Miss | None:
        """The miss that the trace was made for."""
        return next((miss for miss in reversed(self.misses) if miss.costs is trace.costs), None)

    @property
    def python_calls(self) -> tuple[int, int]:
        """Calls that were tried as Python, and those that run so since that was decided."""
        return self.tried, self.settled + (self.handed_on.ended if self.handed_on is not None else 0)

    @property
    def calls(self) -> int:
        """Of traces that are known, and as Python."""
        accounts = [*(miss.costs for miss in self.misses), *list(self.taken.values())]
        return sum(account.all_calls for account in accounts) + sum(self.python_calls)

    # ---- why
    def explained(self, miss: Miss) -> Miss:
        """The miss with its causes looked for."""
        if miss.found is None:
            at = next((n for n, known in enumerate(self.misses) if known is miss), len(self.misses))
            earlier = self.misses[:at]
            if not earlier and not self.dropped:
                self._find_first(miss)
            else:
                now = {id(known) for known in self.misses[at:]}
                there = [m for m in earlier if m.evicted_by is None or id(m.evicted_by) in now]
                miss.found = self._compare(miss, there)
        return miss

    def _compare(self, miss: Miss, there: Sequence[Miss]) -> tuple[list[Change], Miss | None]:
        """What differs from the nearest of the traces there were."""
        same = [known for known in self._by_key.get((miss.paths, miss.keys), ()) if known.number < miss.number]
        if not miss.failed and any(known.evicted_by is not None for known in same):
            limit = f"jl.config.max_traces is {config.max_traces}"
            before, after = f"trace {same[-1].number}", f"had made room: {limit}"
            return [Change(Cause.CACHE_EVICTED, "", before, after, rule="trace_limit")], same[-1]
        near: list[Miss] = sorted(there, key=lambda known: (_apart(known, miss), -known.number))[:NEAREST]
        compared = [(with_guard(changes(known.leaves, miss.leaves), miss.failed.get(known.number)), known) for known in near]
        if not compared:
            return [Change(Cause.CACHE_EVICTED, "", "an older trace", "had made room")], None
        found, nearest = min(compared, key=lambda pair: distance(pair[0]))
        return found or [Change(Cause.UNKNOWN, after="a trace of such arguments was not found")], nearest

    def _find_first(self, miss: Miss) -> None:
        """The first trace of this Function: is it the first of its definition, too?"""
        last = self._place.last_before(miss) if self._place is not None and not self.is_method else None
        if last is None:
            miss.found = [Change(Cause.FIRST_CALL)], None
            return
        mine, before = self.definition, last.definition
        if mine.code != before.code:
            miss.found = [Change(Cause.REDEFINED_FUNCTION, str(self.name), "", "defined again with other code")], last
        elif last.options != miss.options:
            miss.found = [Change(Cause.OPTIONS, str(self.name), last.options, miss.options)], last
        elif (found := self._of_equal_code(miss)) is not None:
            miss.found = found
        else:
            outside = [replace(change, fix=None) for change in changes(last.closure, miss.closure)]
            outside = [change for change in outside if change.cause in (Cause.CLOSURE, Cause.GLOBAL)]
            made = Change(Cause.REDEFINED_FUNCTION, str(self.name), "", "made again of the same code", rule="made_again")
            miss.found = (outside or [made]), last

    def _of_equal_code(self, miss: Miss) -> tuple[list[Change], Miss | None] | None:
        """What differs from the nearest trace of the same code, defined before, that would have been taken over."""
        there = [known for known in self._place.misses if known.owner != miss.owner] if self._place is not None else []
        there = [known for known in there if known.number in miss.failed] if self.follows else []
        if not there:
            return None
        found, nearest = self._compare(miss, there)
        failed = nearest and miss.failed[nearest.number].path
        # no trace tells functions of equal code apart
        return [c for c in found if c.after != "another function object" or c.path == failed] or found, nearest

    def closure(self) -> tuple[Leaf, ...]:
        """What the function finds outside when it is traced: what its closure holds, and global numbers and strings."""
        function = self.definition.function
        if function is None:
            return ()
        outside: list[tuple[str, str, Any]] = [(Cause.CLOSURE, *item) for item in closure_values(function).items()]
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, (bool, int, float, complex, str)):
                outside.append((Cause.GLOBAL, name, value))
        found: list[Leaf] = []
        for origin, name, value in outside:
            try:
                found.extend(replace(leaf, origin=origin) for leaf in leaves_of([name], [value]) if not callable(value))
            except (Foreign, TypeError):  # what has no key is no cause
                continue
        return tuple(found)

    # ---- what would help
    def fixes(self, planned: Sequence[Miss] = ()) -> list[Fix]:
        """Changes of the program that would have left fewer traces, replayed on the recorded calls; the cheapest first.
        `planned`: calls that were not made yet."""
        found = fixes.fixes([*(self.explained(miss) for miss in list(self.misses)), *planned], self.kind)
        place = self._place
        if place is not None and not self.is_method and place.functions > 1:
            edition = self.definition.edition  # of a cell that was edited, or run again, it is another: there is no loop
            made = fixes.fixes([miss for miss in list(place.misses) if miss.definition.edition == edition], self.kind)
            found += [fix for fix in made if "hoist" in fix.kinds]
        return found

    def fix_for(self, miss: Miss, *, is_planned: bool = False) -> Fix | None:
        """The cheapest change that would have avoided this miss: that cures what changed, and nothing else if that can be."""
        if miss.nearest is None:
            return None
        known = self.fixes([miss] if is_planned else [])
        if miss.owner != self.number and self._place is not None:  # of another function made of the same code
            known = fixes.fixes([other for other in list(self._place.misses) if other.owner == miss.owner], self.kind) + known
        found = [fix for fix in known if fix.avoids(miss)]
        paths = {change.path for change in miss.changes}
        return next((fix for fix in found if fix.paths <= paths), found[0] if found else None)

    def _recent_fix(self, miss: Miss) -> Fix | None:
        """As `fix_for`; of many misses with the same causes not each is worth a replay of all before it."""
        key = miss.causes, tuple(change.path for change in miss.changes)
        count, fix = self._told.get(key, (0, None))
        if len(self.misses) > REPLAYED * count or len(self.misses) <= ALWAYS_REPLAYED:
            fix = self.fix_for(miss)
            self._told[key] = len(self.misses), fix
        return fix

    def retraces(self, most: int) -> list[Miss]:
        """Of the newest `most` traces those that a report counts, too; of a place that makes functions again, of all."""
        known = self.misses
        if self._is_of_several and self._place is not None:
            edition = self.definition.edition
            known = [miss for miss in list(self._place.misses) if miss.definition.edition == edition]
        return [miss for miss in known[-most:] if self._told_apart(miss)]

    def warning(self, retraces: Sequence[Miss]) -> str:
        """Why these were made, in a line: the one cause of most of them with its values and lines, what would have avoided
        those, and where all are listed. "" of none."""
        if not retraces:
            return ""
        alike = Counter((miss.changes[0].path or miss.causes[0]) for miss in retraces)
        named, times = max(reversed(list(alike.items())), key=lambda item: item[1])
        miss = next(miss for miss in reversed(retraces) if (miss.changes[0].path or miss.causes[0]) == named)
        fix = self.fix_for(miss)
        changed = [c for n, c in enumerate(miss.changes) if n == 0 or (fix is not None and c.path in fix.paths)]
        often = f"{times} times it was this: " if times < len(retraces) else ""
        what = f"{often}{' and '.join(map(miss.told, changed))}"
        what = f"It was {what}" if not often and changed[0].rule == "made_again" else capital(what)
        lines = [f"{what}{miss.where}; called from {miss.site}."]
        if fix is None:
            lines.append(str(Message("unfixed.compiled")))
        else:
            lines += [f"{capital(fix.count)}.", *fix.at(miss).where_to_write(miss.function)]
        name = self.name if self.name.isidentifier() else "f"
        own = f"print({name}.ledger) lists all of them."
        lines.append("print(jl.ledger()) says what they cost." if self._is_of_several else own)
        return clean(" ".join(lines))

    @property
    def _is_of_several(self) -> bool:
        return self._place is not None and not self.is_method and self._place.functions > 1

    def _told_apart(self, miss: Miss) -> bool:
        if miss.found is None:  # nobody has asked why; another Function's ledger may be gone
            own = miss.ledger()
            if own is None:
                return False
            own.explained(miss)
        return miss.is_retrace

    # ---- as text
    def __str__(self) -> str:
        return ledger_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __iter__(self) -> Any:
        return (self.explained(miss) for miss in list(self.misses))

    def __len__(self) -> int:
        return len(self.misses)

    @property
    def next_number(self) -> int:
        return max((miss.number for miss in self.misses), default=0) + 1

    @property
    def seconds(self) -> float:
        """What calls waited for all of them."""
        pieces = sum(piece.seconds for piece in list(self.pieces.values()))
        return self.dropped_seconds + sum(miss.seconds for miss in self.misses) + pieces


def misfits(traces: Sequence[Trace], leaves: Sequence[Any]) -> Failed:
    """What keeps these leaves from traces of the same key; none where one fits."""
    found = {trace.number: trace.misfit(leaves) for trace in traces}
    return {number: change for number, change in found.items() if change is not None}


def _apart(known: Miss, miss: Miss) -> int:
    """In how many leaves two calls differ, quickly."""
    if known.paths == miss.paths:
        return sum(map(operator.ne, known.keys, miss.keys))
    return len(set(known.paths) ^ set(miss.paths)) + 1


def _as_python(tried: int, settled: int) -> Message:
    """ "7 calls ran as Python (2 tried, 5 settled)"."""
    code = "some_tried" if tried and settled else "all_tried" if tried else "all_settled"
    return Message(f"as_python.{code}", {"number": tried + settled, "tried": tried, "settled": settled})


def ledger_text(ledger: Ledger) -> str:
    """A line for each miss, then what would have avoided them."""
    misses = list(ledger)
    pieces = sorted(ledger.pieces.values(), key=lambda piece: (piece.site.file, piece.site.line))
    count = len(misses) + ledger.dropped + sum(piece.traces for piece in pieces)
    taken = dict(ledger.taken)
    by_python = ledger.python_calls
    calls = ledger.calls - (sum(by_python) if pieces else 0) + sum(piece.calls for piece in pieces)
    took = f"{units.duration(ledger.seconds)} to trace and compile{', in pieces' if pieces else ''}"
    again = 0 if ledger.dropped or pieces else sum(miss.is_retrace for miss in misses)
    traces = units.counted(count, "trace") + (f" ({units.counted(again, 'retrace')})" if again else "")
    head = f"{ledger.name}: {traces}, {units.counted(calls, 'call')}, {took}"
    lines = [head]
    for number, own in list(taken.items())[-MOST_LINES:]:
        lines.append(f"  #{number} taken over from the same code, defined before: {units.counted(own.all_calls, 'call')}")
    for miss in misses[-MOST_LINES:]:
        costs = miss.costs
        gone = ", made room" if miss.evicted_by is not None else ""
        ran = f", {units.duration(costs.each_ns / 1e9)} a call" if costs.each_ns is not None else ""
        what = "first call" if miss.nearest is None else f"{miss.told(miss.changes[0])}{miss.where}"
        counts = f"{units.duration(miss.seconds)}, {units.counted(costs.all_calls, 'call')}{ran}{gone}"
        lines.append(f"  #{miss.number} {what}: {counts}; from {miss.site}")
        lines += [f"     and {change_text(change)}" for change in miss.changes[1:]]
        if more := ledger.resizes.get(miss.number):
            lines.append(f"     served {units.counted(more, 'other size')}, too")
        lines += [
            f"     another form of {v.cluster} ({v.cause}): {v.argument} was {v.before}, then {v.after},"
            f" {units.duration(v.seconds)}"
            for v in costs.variants
        ]
        for cluster, why in costs.on_host.items():
            lines.append(f"     {text('gpu.on_host', cluster=cluster, why=str(why))}")
        if costs.host_copies:
            told = {"count": costs.host_copies, "bytes": costs.host_bytes, "seconds": costs.host_ns / 1e9}
            lines.append(f"     {text('gpu.copied', **told)}")
    lines += map(str, pieces[:MOST_LINES])
    for helper in list(ledger.helpers.values())[-MOST_LINES:]:
        lines += [f"  calls {line}" if n == 0 else f"  {line}" for n, line in enumerate(str(helper).splitlines())]
    if ledger.there is not None:
        head, *rest = str(ledger.there).splitlines()
        lines += [f"  {text('gpu.there', said=head.partition(': ')[2])}", *(f"  {line}" for line in rest)]
    if any(by_python):
        lines.append(f"  {_as_python(*by_python)}")
    limits = [limit for trial in list(ledger.trials.values()) for limit in trial.limits]
    lines += list(dict.fromkeys(f"  {limit}" for limit in limits))[:MOST_LINES]
    settled = [trial.said for trial in list(ledger.trials.values()) if trial.way == PYTHON]
    settled += [(said,) for trial in list(ledger.trials.values()) if (said := trial.stays) is not None]
    lines += list(dict.fromkeys(f"  {'; '.join(map(str, said))}" for said in settled))[:MOST_LINES]
    for fix in ledger.fixes()[:MOST_FIXES]:
        avoided = sorted((miss for miss in misses if fix.avoids(miss)), key=fix.passes_number)
        placed = fix.at(avoided[-1]) if avoided else fix
        lines += [f"  try: {fix}", *(f"       {line}" for line in (placed.code or placed.words).splitlines())]
    return "\n".join(map(clean, lines))

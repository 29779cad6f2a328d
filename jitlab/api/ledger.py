"""The ledger of a function: every miss with its causes, what it cost and where it was called, found when somebody asks.

A miss is kept as what it was called with, leaf by leaf: no arrays, no graphs. Its causes are what differs from the nearest
trace there was. Of traces that made room for others counts stay. A definition (one function of the source) has a ledger of
all the Functions made of it, so that one made in a loop is seen.
"""

from __future__ import annotations

import operator
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitlab import events
from jitlab.capture import Change, Leaf, Trace, changes, distance, leaves_of, spans
from jitlab.config import config
from jitlab.costs import Costs
from jitlab.events import Cause, VariantCause
from jitlab.ir import Source, is_operation

from .definitions import Definition, Site, calling_site

#: Of the traces that are as near, so many (the newest) are compared in full.
NEAREST = 16
#: Definitions remembered.
MOST_PLACES = 1000


class Miss:
    """A call that no trace fitted, and the trace made for it."""

    def __init__(
        self, ledger: Ledger, number: int, leaves: tuple[Leaf, ...], misfit: Change | None = None, costs: Costs | None = None
    ) -> None:
        self.function, self.owner, self.definition = ledger.name, ledger.number, ledger.definition
        self.number = number  # of the trace
        self.leaves = leaves
        self.misfit = misfit  # what kept traces of the very same leaves from fitting
        self.options = ledger.options
        self.closure: tuple[Leaf, ...] = ledger.closure()
        self.site: Site = calling_site()
        self.costs = costs or Costs()
        self.uses: dict[str, Source] = {}  # path of an argument -> where it was first used
        self.operations = 0
        self.pattern = 0  # of the graph, its constants left out
        self.evicted_by: Miss | None = None
        self.paths = tuple((leaf.path, leaf.kind) for leaf in leaves)
        self.keys = tuple(leaf.key for leaf in leaves)
        self.found: tuple[list[Change], Miss | None] | None = None

    @property
    def causes(self) -> tuple[str, ...]:
        """Of the closed lists Cause and, when a variant was made, VariantCause; never empty."""
        return tuple(dict.fromkeys(str(change.cause) for change in self.changes))

    @property
    def changes(self) -> list[Change]:
        """What differed from the nearest trace, the weightiest first."""
        return self.known[0]

    @property
    def nearest(self) -> Miss | None:
        """The trace it is compared with; None for a first call."""
        return self.known[1]

    @property
    def known(self) -> tuple[list[Change], Miss | None]:
        assert self.found is not None, "a ledger looks for the causes of its misses"
        return self.found

    @property
    def is_retrace(self) -> bool:
        """Not the first trace, and more than another layout."""
        return not {Cause.FIRST_CALL, VariantCause.LAYOUT} & set(self.causes)

    @property
    def seconds(self) -> float:
        """What calls waited for it; what was traced meanwhile for other functions is theirs."""
        return self.costs.seconds

    @property
    def source(self) -> Source | None:
        """Where the changed argument was first used in the nearest trace, else where it stands."""
        change, nearest = self.changes[0], self.nearest
        if nearest is None:
            return self.definition.source
        return nearest.uses.get(change.path) or self.definition.argument(change.path) or self.definition.source


class Ledger:
    """The misses of one Function, newest last; `print(f.ledger)` says what they cost and what would avoid them."""

    def __init__(self, function: Any, name: str, options: str = "", *, is_method: bool = False, kind: str = "function") -> None:
        self.definition = Definition(function, name)
        self.name, self.options, self.kind = name, options, kind
        self.misses: list[Miss] = []
        self.dropped, self.dropped_seconds = 0, 0.0  # of the oldest misses, of which only this is known
        self._by_key: dict[Any, list[Miss]] = {}
        self.is_method = is_method  # of one instance: each has traces of its own, by the contract
        self._place = _place_of(self.definition)
        self.number = self._place.next_number() if self._place is not None else 0
        _live.add(self)

    # ---- what happened
    def traced(self, trace: Trace, leaves: tuple[Leaf, ...], costs: Costs, misfit: Change | None, started_ns: int) -> Miss:
        """A call was traced; `misfit` when a trace of the same leaves existed. Tells who listens, with the causes."""
        miss = Miss(self, trace.number, leaves, misfit, costs)
        miss.uses, miss.operations = trace.uses, sum(is_operation(node) for node in trace.graph.nodes)
        trace.costs = costs
        if trace.executable is not None:
            trace.executable.costs = costs
        if not self.misses and not self.dropped:
            self._find_first(miss)
        self.misses.append(miss)
        self._by_key.setdefault((miss.paths, miss.keys), []).append(miss)
        if self._place is not None:
            self._place.add(miss)
        if len(self.misses) > 2 * config.max_traces:
            self._drop()
        if events.active():
            self._tell(miss, started_ns)
        return miss

    def _tell(self, miss: Miss, started_ns: int) -> None:
        first = self.explained(miss).changes[0]
        events.send(
            events.Traced(
                cell=events.current_cell(), function=self.name, trace=miss.number, causes=miss.causes, argument=first.path,
                before=first.before, after=first.after, lines=spans(miss.source), fix=first.fix, operations=miss.operations,
                start_ns=started_ns, duration_ns=time.perf_counter_ns() - started_ns,
            )
        )  # fmt: skip

    def evicted(self, trace: Trace) -> None:
        """A trace made room for the newest."""
        miss = next((miss for miss in self.misses if miss.costs is trace.costs), None)
        if miss is not None:
            miss.evicted_by = self.misses[-1]
            miss.uses = {}

    def _drop(self) -> None:
        """Of the oldest misses counts stay, first of those whose traces are gone."""
        gone = next((miss for miss in self.misses if miss.evicted_by is not None), self.misses[0])
        self.misses.remove(gone)
        self.dropped += 1
        self.dropped_seconds += gone.seconds
        same = self._by_key[gone.paths, gone.keys]
        same.remove(gone)
        if not same:
            del self._by_key[gone.paths, gone.keys]

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
        if miss.misfit is not None:
            return [miss.misfit], same[-1] if same else None
        if any(known.evicted_by is not None for known in same):
            limit = f"jl.config.max_traces is {config.max_traces}"
            return [Change(Cause.CACHE_EVICTED, "", f"trace {same[-1].number}", f"had made room: {limit}")], same[-1]
        if same:
            return [Change(Cause.ALIASING, "", "other arguments share memory", "these arguments share memory")], same[-1]
        near: list[Miss] = sorted(there, key=lambda known: (_apart(known, miss), -known.number))[:NEAREST]
        compared = [(changes(known.leaves, miss.leaves), known) for known in near]
        if not compared:
            return [Change(Cause.CACHE_EVICTED, "", "an older trace", "had made room")], None
        return min(compared, key=lambda pair: distance(pair[0]))

    def _find_first(self, miss: Miss) -> None:
        """The first trace of this Function: is it the first of its definition, too?"""
        last = self._place.last_before(miss) if self._place is not None and not self.is_method else None
        if last is None:
            miss.found = [Change(Cause.FIRST_CALL)], None
            return
        mine, before = self.definition, last.definition
        if mine.code != before.code:
            texts = tuple(f"defined in {Site(d.source.file, d.source.line)}" if d.source else "" for d in (before, mine))
            texts = texts if texts[0] != texts[1] else ("defined", "defined again with other code")
            miss.found = [Change(Cause.REDEFINED_FUNCTION, self.name, *texts)], last
        elif last.options != miss.options:
            miss.found = [Change(Cause.OPTIONS, self.name, last.options, miss.options)], last
        else:
            bound = [replace(change, cause=Cause.CLOSURE, fix="") for change in changes(last.closure, miss.closure)]
            made = Change(Cause.REDEFINED_FUNCTION, self.name, "made once", "made again of the same code")
            miss.found = (bound or [made]), last

    def closure(self) -> tuple[Leaf, ...]:
        """What the function's closure holds, as leaves; not what cannot be described."""
        function = self.definition.function
        if function is None or not function.__closure__:
            return ()
        found: list[Leaf] = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
            try:
                value = cell.cell_contents
                if value is not function:
                    found.extend(leaf for leaf in leaves_of([name], [value]) if not callable(value))
            except Exception:  # an empty cell, something that has no key
                continue
        return tuple(found)

    def __iter__(self) -> Any:
        return (self.explained(miss) for miss in list(self.misses))

    def __len__(self) -> int:
        return len(self.misses)

    @property
    def seconds(self) -> float:
        """What calls waited for all of them."""
        return self.dropped_seconds + sum(miss.seconds for miss in self.misses)


def _apart(known: Miss, miss: Miss) -> int:
    """In how many leaves two calls differ, quickly."""
    if known.paths == miss.paths:
        return sum(map(operator.ne, known.keys, miss.keys))
    return len(set(known.paths) ^ set(miss.paths)) + 1


class Place:
    """Where functions were defined, one after another or again and again: the misses of all of them, the newest."""

    def __init__(self) -> None:
        self.misses: deque[Miss] = deque(maxlen=config.max_traces)
        self.functions = 0

    def next_number(self) -> int:
        self.functions += 1
        return self.functions

    def add(self, miss: Miss) -> None:
        self.misses.append(miss)

    def last_before(self, miss: Miss) -> Miss | None:
        """The newest miss of another Function, of which this one is a new edition."""
        return next((known for known in reversed(self.misses) if known.owner != miss.owner), None)


def _place_of(definition: Definition) -> Place | None:
    key = definition.place
    if key is None:
        return None
    with _lock:
        place = _places.setdefault(key, Place())
        _places.move_to_end(key)
        while len(_places) > MOST_PLACES:
            _places.popitem(last=False)
        return place


@dataclass(frozen=True)
class Total:
    """What one line of the user's has cost by calling one function."""

    site: Site
    function: str
    misses: int
    retraces: int
    seconds: float


def totals() -> list[Total]:
    """Per call site and function: misses and seconds, the dearest first. What was traced inside another trace counts once."""
    groups: dict[tuple[Site, str], list[Miss]] = {}
    for miss in every_miss():
        groups.setdefault((miss.site, miss.function), []).append(miss)
    found = [
        Total(site, name, len(group), sum(miss.is_retrace for miss in group), sum(miss.seconds for miss in group))
        for (site, name), group in groups.items()
    ]
    return sorted(found, key=lambda total: -total.seconds)


def every_miss() -> list[Miss]:
    """The misses of every function, of those that are gone too."""
    with _lock:
        places, live = list(_places.values()), list(_live)
    found = {id(miss): miss for ledger in live for miss in ledger}
    found |= {id(miss): miss for place in places for miss in list(place.misses)}
    return list(found.values())


_places: OrderedDict[Any, Place] = OrderedDict()
_live: weakref.WeakSet[Ledger] = weakref.WeakSet()
_lock = threading.Lock()

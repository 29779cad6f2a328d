"""What is known of all functions, also of those that are gone: where they were defined, and what their calls have cost.

A function that is gone has no ledger that could be asked. Its misses are kept as long as the same definition may be made again
(in a loop); of one whose place is another's now, its newest miss is, for what is defined there next, and what all have cost.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from jitlab.config import config
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.support import locks
from jitlab.support.lazy_dataclass import dataclass

from .definitions import Definition, Site
from .misses import Miss

if TYPE_CHECKING:
    from .ledger import Ledger

#: Definitions remembered, how many of them (those made last) with all their misses, and lines with what functions have cost.
MOST_PLACES, MOST_WHOLE, MOST_TOTALS = 1000, 100, 1000
#: Lines shown.
MOST_LINES = 40


class Place:
    """Where functions were defined, one after another or again and again: the misses of all of them, the newest."""

    __slots__ = ("before", "functions", "misses")

    def __init__(self) -> None:
        self.misses: list[Miss] = []
        self.before: Miss | None = None  # the newest of those that went, which has been counted
        self.functions = 0

    def next_number(self) -> int:
        self.functions += 1
        return self.functions

    def add(self, miss: Miss) -> None:
        with locks.Released(_lock), _lock:
            newest = self.misses[-1] if self.misses else self.before
            if newest is not None:
                miss.share(newest)
                if newest.definition.edition != miss.definition.edition:
                    self.shorten()
            self.misses.append(miss)
            if len(self.misses) > config.max_traces:
                self._let_go([self.misses.pop(0)])

    def shorten(self) -> None:
        """Of functions that are gone only the newest miss is kept."""
        gone = [miss for miss in self.misses if miss.ledger() is None]
        if gone:
            self.misses = [miss for miss in self.misses if miss.ledger() is not None]
            self.before = gone[-1]
            self._let_go(gone)

    def _let_go(self, misses: Iterable[Miss]) -> None:
        for miss in misses:
            miss.found = miss.found and (miss.found[0], None)  # it does not keep all that came before it
            if miss.ledger() is None:
                _add(_gone, miss)
                _gone.move_to_end((miss.site, miss.function))
        while len(_gone) > MOST_TOTALS:
            _gone.popitem(last=False)

    def last_before(self, miss: Miss) -> Miss | None:
        """The newest miss of another Function, of which this one is a new edition."""
        return next((known for known in reversed(self.misses) if known.owner != miss.owner), self.before)


def place_of(definition: Definition, kind: str) -> Place | None:
    if definition.place is None:
        return None
    key = kind, definition.place
    with locks.Released(_lock), _lock:
        place = _places.get(key)
        if place is None:
            place = _places[key] = Place()
        _places.move_to_end(key)
        for older in islice(reversed(_places.values()), MOST_WHOLE, MOST_WHOLE + 1):
            older.shorten()
        while len(_places) > MOST_PLACES:
            _places.popitem(last=False)
        return place


@dataclass(frozen=True, slots=True)
class Total:
    """What one line of the user's has cost by calling one function."""

    site: Site
    function: str
    misses: int = 0
    retraces: int = 0
    seconds: float = 0.0


def _add(found: dict[tuple[Site, str], Total], miss: Miss) -> None:
    key = miss.site, miss.function
    known = found.get(key) or Total(*key)
    found[key] = Total(*key, known.misses + 1, known.retraces + miss.is_retrace, known.seconds + miss.seconds)


def totals() -> list[Total]:
    """Per call site and function: misses and seconds, the most expensive first. A trace inside another trace counts once."""
    with locks.Released(_lock), _lock:
        found, ledgers = dict(_gone), list(live)
        misses = {id(miss): miss for place in _places.values() for miss in place.misses}
    misses |= {id(miss): miss for ledger in ledgers for miss in ledger}
    for miss in misses.values():
        _add(found, miss)
    return sorted(found.values(), key=lambda total: -total.seconds)


class Summary(list[Total]):
    """The totals of all functions, which show themselves as a table."""

    def __str__(self) -> str:
        if not self:
            return "nothing was traced"
        whole = sum(total.seconds for total in self)
        head = f"{units.counted(sum(t.misses for t in self), 'trace')}, {units.duration(whole)} to trace and compile"
        lines = [
            f"  {units.duration(t.seconds):>8}  {t.function}, {t.site}: {units.counted(t.misses, 'trace')}"
            + (f", {units.counted(t.retraces, 'retrace')}" if t.retraces else "")
            for t in self[:MOST_LINES]
        ]
        more = [f"  … and {len(self) - MOST_LINES} more"] if len(self) > MOST_LINES else []
        return "\n".join(map(clean, [head, *lines, *more]))

    __repr__ = __str__


def ledger() -> Summary:
    """What tracing has cost in this process, a line for each function and line of the program, the most expensive first.

    Returns:
        A list of totals, each with `function`, `site` (file and line), `misses`, `retraces` and `seconds`; `print` shows it as
        a table. Of one function `f.ledger` lists each trace.

    Example:
        >>> doubled = jl.function(lambda x: x * 2)
        >>> y = doubled(np.ones(3))
        >>> max(total.misses for total in jl.ledger()) >= 1
        True
    """
    return Summary(totals())


_places: OrderedDict[object, Place] = OrderedDict()
_gone: OrderedDict[tuple[Site, str], Total] = OrderedDict()
live: weakref.WeakSet[Ledger] = weakref.WeakSet()
_lock = locks.shared("places")

"""What a function that runs in pieces adds to its ledger: of each piece how often it was captured, what that cost, and why."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from jitlab.api.functions.native_entry import WARM_CALLS, warm_up
from jitlab.api.settling import disturbed, here, identity, may_settle
from jitlab.capture import Change
from jitlab.capture.drivers.piece_traces import Failed, PieceTrace, differences
from jitlab.capture.drivers.run_events import Observer
from jitlab.events import Cause
from jitlab.messages import Message, capital, units
from jitlab.support.lazy_dataclass import dataclass

from .definitions import Site
from .frequency import Frequency
from .misses import change_text

if TYPE_CHECKING:
    from jitlab.costs import Costs

    from .ledger import Ledger

#: So many shapes of one name at one place: that is a habit of the program.
MANY_SHAPES = 3
#: Traces of pieces remembered of a call that is not decided yet.
MOST_RAN = 100


@dataclass
class Piece:
    """Consecutive statements of a function that are captured together."""

    site: Site  # its first line
    traces: int = 0
    seconds: float = 0.0
    change: Change | None = None  # why it was captured again, the last time
    accounts: list[Costs] = field(default_factory=list)  # of its traces

    @property
    def calls(self) -> int:
        """The driver's, and those of a function that has it in line."""
        return sum(account.all_calls for account in self.accounts)

    def __str__(self) -> str:
        again = f": {change_text(self.change)}" if self.change is not None else ""
        counts = f"{units.counted(self.traces, 'trace')}, {units.counted(self.calls, 'call')}, {units.duration(self.seconds)}"
        return f"  the piece from {self.site}: {counts}{again}"


class PiecesTold(Observer):
    """Tells who listens, counts in the ledger, and warns where pieces are captured again and again."""

    def __init__(self, ledger: Ledger, frequency: Frequency, compiled: Callable[[Any], Any]) -> None:
        self.ledger, self.frequency, self.name = ledger, frequency, str(ledger.name)
        self._compiled = compiled  # of a function that runs in pieces
        self._pieces: dict[int, Piece] = {}  # by the number of a trace

    def traced(self, trace: PieceTrace, before: Failed, started: int) -> None:
        super().traced(trace, before, started)
        disturbed()
        piece = self._piece(trace)
        piece.traces += 1
        piece.seconds += (time.perf_counter_ns() - started) / 1e9
        if before:
            change = piece.change = differences(trace, before)[0][0]
            self.frequency.traced(lambda again, runs: self._warning(piece, change, before, again, runs))
        else:
            self.frequency.called()

    def called(self, trace: PieceTrace, started: int) -> None:
        super().called(trace, started)
        if here.ran is not None and len(here.ran) < MOST_RAN:
            here.ran[identity(trace.name, trace)] = None
        self._piece(trace)
        if trace.costs.calls:  # the first call is the one that captured it
            self.frequency.called()
        trace.costs.called()
        if trace.costs.calls == WARM_CALLS:
            disturbed()
            warm_up(trace)

    def helper(self, function: Any) -> Any:
        found = self._compiled(function)
        self.ledger.helpers[found.ledger.name] = found.ledger
        return found

    def may_settle(self) -> bool:
        return may_settle()

    def ended(self, pieces: int, captured: int, python_ns: float) -> None:
        here.counts = pieces, captured, python_ns
        here.captures += captured

    def advice(self, change: Change, before: Failed) -> Message | None:
        """What would avoid that a piece is captured again."""
        if change.cause == Cause.SHAPE and len(before) >= MANY_SHAPES:
            return Message("fix.one_length", {"path": change.path})
        return super().advice(change, before)

    def _piece(self, trace: PieceTrace) -> Piece:
        known = self._pieces.get(trace.number)
        if known is None:
            sources = [source for node in trace.graph.nodes for source in node.sources]
            source = min(sources, key=lambda source: (source.line, source.column), default=None)
            site = Site(source.file, source.line) if source is not None else Site("", 0)
            known = self._pieces[trace.number] = self.ledger.pieces.setdefault(site, Piece(site))
            known.accounts.append(trace.costs)
        return known

    def _warning(self, piece: Piece, change: Change, before: Failed, again: int, runs: int) -> str:
        text = f"{again} of the last {runs} pieces of {self.name} that ran were traced again."
        what = f"{capital(change_text(change))}, {piece.site}."
        advice = self.advice(change, before)
        told = "" if advice is None else f"Write `{advice}` before it." if advice.args.get("form") == "line" else str(advice)
        name = self.name if self.name.isidentifier() else "f"
        return " ".join(filter(None, (text, what, told, f"print({name}.ledger) lists all of them.")))

"""The events of runs, sent where somebody listens: a trace was made, it ran, Python ran a statement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from jitlab import events
from jitlab.capture.guards.changes import Change, fix_of_name
from jitlab.capture.positions import spans
from jitlab.ir import is_operation
from jitlab.messages import Message

from .piece_traces import Failed, PieceTrace, differences


def emit_call(function: str, trace: int, started_ns: int) -> None:
    """A trace has run since then, to its end."""
    if events.active():
        events.send(
            events.FunctionCalled(
                cell=events.current_cell(), function=function, trace=trace, start_ns=started_ns,
                duration_ns=time.perf_counter_ns() - started_ns,
            )
        )  # fmt: skip


def emit_timed_call(function: str, trace: Any, started_ns: int) -> None:
    """The same of a trace that counts its costs; in bulk where the listener takes calls so."""
    ended_ns = time.perf_counter_ns()
    if events.in_bulk():
        events.note(trace.costs.call_of(function, trace.number), started_ns, ended_ns)
        return
    duration_ns = ended_ns - started_ns
    trace.costs.ran(duration_ns)
    events.send(
        events.FunctionCalled(
            cell=events.current_cell(), function=function, trace=trace.number, start_ns=started_ns, duration_ns=duration_ns
        )
    )


def emit_statement(
    reason: str, text: str, lines: Sequence[events.Span], started_ns: int, *, ended_ns: int = 0, met: tuple[str, ...] = ()
) -> None:
    """Python has run a statement or a call since then, for this reason."""
    if events.active():
        events.send(
            events.StatementRan(
                cell=events.current_cell(), reason=reason, text=text, lines=tuple(lines), start_ns=started_ns,
                duration_ns=(ended_ns or time.perf_counter_ns()) - started_ns, met=met,
            )
        )  # fmt: skip


def emit_piece(
    trace: PieceTrace, before: Failed, started_ns: int, fix: Callable[[Change, Failed], Message | None] | None = None
) -> None:  # fmt: skip
    """A piece was captured, because of what `before` says; `fix` tells what would have avoided that."""
    if not events.active():
        return
    found, nearest = differences(trace, before)
    first = found[0]
    events.send(
        events.Traced(
            cell=events.current_cell(), function=trace.name, trace=trace.number,
            causes=tuple(dict.fromkeys(change.cause for change in found)), argument=first.path, before=first.before,
            after=first.after, rule=first.rule, lines=spans(nearest.uses.get(first.path) if nearest is not None else None),
            fix=fix(first, before) if fix is not None else fix_of_name(first),
            operations=sum(is_operation(node) for node in trace.graph.nodes), start_ns=started_ns,
            duration_ns=time.perf_counter_ns() - started_ns,
        )
    )  # fmt: skip

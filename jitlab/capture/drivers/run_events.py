"""The events of runs, sent where somebody listens: a trace was made, it ran, Python ran a statement."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from jitlab import events
from jitlab.capture.guards.changes import Change, fix_of_name
from jitlab.capture.positions import spans
from jitlab.capture.refusals import Refusal
from jitlab.events import Moment
from jitlab.ir import is_operation
from jitlab.messages import Message

from .piece_traces import Failed, Given, GivenOut, PieceTrace, differences

if TYPE_CHECKING:
    from jitlab.capture.rewrite.piece_statements import Statement
    from jitlab.ir import Source


#: What Python runs without anything to say of it.
_QUIET = (ast.Pass, ast.Import, ast.ImportFrom, ast.FunctionDef)


def emit_call(function: str, trace: int, started_ns: int, ended_ns: int = 0) -> None:
    """A trace has run since then, to its end."""
    if events.active():
        events.send(
            events.FunctionCalled(
                function=function, trace=trace, start_ns=started_ns,
                duration_ns=(ended_ns or time.perf_counter_ns()) - started_ns,
            )
        )  # fmt: skip


def emit_timed_call(function: str, trace: Any, started_ns: int) -> None:
    """The same of a trace that counts its costs; in bulk where the listener takes calls so."""
    ended_ns = time.perf_counter_ns()
    if events.in_bulk():
        events.note(trace.costs.call_of(function, trace.number), started_ns, ended_ns)
        return
    trace.costs.ran(ended_ns - started_ns)
    emit_call(function, trace.number, started_ns, ended_ns)


def emit_trace(
    function: str, trace: int, first: Change, causes: Iterable[str], operations: int, started_ns: int, *, ended_ns: int = 0,
    fix: Message | None = None, lines: Sequence[events.Span] = (), **more: Any,
) -> None:  # fmt: skip
    """A trace was made since then; `first` is the weightiest cause."""
    if events.active():
        events.send(
            events.Traced(
                function=function, trace=trace, causes=tuple(dict.fromkeys(causes)), argument=first.path,
                before=first.before, after=first.after, rule=first.rule, fix=fix, lines=tuple(lines), operations=operations,
                start_ns=started_ns, duration_ns=(ended_ns or time.perf_counter_ns()) - started_ns, **more,
            )
        )  # fmt: skip


def emit_statement(
    reason: str, said: Message, lines: Sequence[events.Span], began: Moment, ended: Moment | None = None, **more: Any
) -> None:
    """Python has run a statement or a call since then, for this reason."""
    if events.active():
        times = events.between(began, ended or events.moment())
        events.send(events.StatementRan(reason=reason, said=said, lines=tuple(lines), **times, **more))


def told_of(reason: Refusal) -> dict[str, Any]:
    """What an event says of code that had begun to run, beside the reason."""
    cut = spans(reason.source) if reason.fell_back and reason.source is not None else ()
    return {"met": reason.met, "fell_back": reason.fell_back, "again": reason.again, "cut": tuple(cut)}


def is_quiet(statement: Statement, reason: Refusal) -> bool:
    """Is there nothing to say of it that Python runs this statement?"""
    return isinstance(statement.node, _QUIET) and reason.source is None


def said_of(statement: Statement, reason: Refusal) -> events.PythonStatement | None:
    """What the event says where Python runs a statement; None: nothing."""
    if is_quiet(statement, reason):
        return None
    lines = spans(statement.source)
    if reason.source is not None and not reason.fell_back and not lines[0][1] <= reason.source.line <= lines[0][3]:
        lines += spans(reason.source)  # in a function that it calls
    return events.PythonStatement(reason.code, reason.said, tuple(lines), reason.met)


def give_out(
    given: GivenOut, names: MutableMapping[str, Any], replay: Callable[[Statement, Sequence[Source], int], None] | None = None
) -> None:
    """Assign the names, and do what was put off, in order."""
    left: Sequence[tuple[str, Any]] = ()
    last: Given | None = None
    begun = [0]
    try:
        for bound, effect, values in given:
            last, left = None, bound
            for name, value in bound:  # `a, b = b, a`: both are read before one is assigned
                names[name] = value
            left = ()
            if effect is not None:
                last, begun = effect, [0]
                _do(effect, values, begun)
    except BaseException:  # an interrupt leaves the names of that moment
        for name, value in left:
            names[name] = value
        if last is not None and last.loop is not None and replay is not None:
            replay(last.loop, last.sources, begun[0])
        raise


def _do(effect: Given, values: Sequence[Any], begun: list[int]) -> None:
    """Do what was put off; `begun` says how many statements of a loop of a cell have begun."""
    began_at = events.moment() if events.active() else None
    try:
        if effect.loop is None:
            effect.function(*values)
        else:
            effect.function.counted(begun, values)  # type: ignore[attr-defined]
    finally:
        if began_at is not None:
            said = effect.said
            emit_statement(said.reason, said.said, said.lines, began_at)


class Observer:
    """Who is told of what a program in pieces does; this one tells the listeners of events."""

    def ran(self, statement: Statement, reason: Refusal, began: Moment, ended: Moment | None = None) -> None:
        """Python ran a statement, or runs the loop or branch that it is."""
        if events.active() and (said := said_of(statement, reason)) is not None:
            emit_statement(said.reason, said.said, said.lines, began, ended, **told_of(reason))

    def helper(self, function: Any) -> Any:
        """What runs a function in pieces of its own; None: Python does."""
        return None

    def may_settle(self) -> bool:
        """May iterations of a loop whose pieces do not pay run as Python?"""
        return False

    def leaves_loops(self) -> bool:
        """May they where no piece is of use to another iteration, though somebody asks for the program to be captured?"""
        return self.may_settle()

    def ended(self, pieces: int, captured: int, python_ns: float) -> None:
        """A call ran to its end: so many pieces were entered and were to be captured, and what Python would have taken for
        them by the model."""

    def called(self, trace: PieceTrace, started: int) -> None:
        """A piece ran."""
        emit_call(trace.name, trace.number, started)

    def traced(self, trace: PieceTrace, before: Failed, started: int) -> None:
        """A piece was captured, because of what `before` says."""
        if not events.active():
            return
        found, nearest = differences(trace, before)
        lines = spans(nearest.uses.get(found[0].path) if nearest is not None else None)
        causes, operations = [change.cause for change in found], sum(is_operation(node) for node in trace.graph.nodes)
        fix = self.advice(found[0], before)
        emit_trace(trace.name, trace.number, found[0], causes, operations, started, fix=fix, lines=lines)

    def advice(self, change: Change, before: Failed) -> Message | None:
        """What would avoid that a piece is captured again."""
        return fix_of_name(change)

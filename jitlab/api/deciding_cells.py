"""Which way the runs of a cell go, compiled or as the Python that it is: the one that takes less time, as for calls of `jit`.

A decision is of one text of a cell and of the kinds of values that it finds under the names that it reads.
"""

from __future__ import annotations

import time
import types
from dataclasses import replace
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from jitlab import events
from jitlab.api import kept_decisions
from jitlab.api.functions.jit import Jit
from jitlab.api.functions.jit_options import PLAIN, JitOptions
from jitlab.api.functions.native_entry import WARM_CALLS, warm_up
from jitlab.api.settling import (
    COMPILED,
    MOST_KINDS,
    PYTHON,
    Deciding,
    Kind,
    Trial,
    disturbed,
    here,
    identity,
    is_measurable,
    kind_of_call,
    may_settle,
    tried,
)
from jitlab.capture.drivers.cells import CellObserver, CellRun
from jitlab.capture.drivers.piece_traces import Failed, PieceTrace
from jitlab.capture.drivers.run_events import is_quiet
from jitlab.capture.effort import at_most
from jitlab.capture.effort import here as waits
from jitlab.capture.positions import spans
from jitlab.capture.refusals import Refusal
from jitlab.capture.rewrite.cell_code import CellProgram
from jitlab.capture.rewrite.piece_statements import Statement
from jitlab.config import MEASURE, MODEL, config
from jitlab.ir import Source, outside
from jitlab.messages import Message

#: Traces of pieces that are remembered of a run.
MOST_RAN = 100


class _Runs(Deciding):
    """The runs of one text."""

    def __init__(self) -> None:
        self.trials: dict[Kind, Trial] = {}
        super().__init__()

    def reopen(self) -> None:
        self.trials.clear()


_runs: WeakKeyDictionary[CellProgram, _Runs] = WeakKeyDictionary()


class DecidedCell(CellObserver):
    """One run of a cell, which goes the way that is decided for such runs, or is one of those that decide. `level`: how it
    is compiled; `device`: where it is placed."""

    def __init__(self, level: str = "O1", device: str = "") -> None:
        self.made_with = _made_with(level, device)
        self.options = f"{level} {device}".rstrip()
        self.refusal: Refusal | None = None  # why the first statement is Python's that is

    def helper(self, function: Any) -> Any:
        return Jit(function, self.made_with)

    # ---- which way
    def run(self, run: CellRun) -> None:
        if not self.settles or not may_settle():
            super().run(run)
            return
        found = run.found_before()
        kind = kind_of_call((), found)
        runs = _runs.get(run.program) or _runs.setdefault(run.program, _Runs())
        trial = runs.trials.get(kind)
        if trial is None:
            if len(runs.trials) >= MOST_KINDS:
                runs.trials.pop(next(iter(runs.trials)), None)
            trial = runs.trials[kind] = Trial(kind[-1])
            if config.settle == MEASURE and config.cache:
                kept_decisions.recall(trial, _as_function(run, found), self.options, kind)
        if trial.way == PYTHON and not self.is_asked:
            self._as_python(run, trial)
            return
        trial.begin()
        outer = here.is_in_pieces, here.counts, here.ran
        here.is_in_pieces, here.counts, here.ran = trial.pieces, None, {}
        try:
            if self.is_asked or trial.way or config.settle != MEASURE:
                self._compiled(run, trial)
            else:
                ways = {COMPILED: lambda: self._compiled(run, trial), PYTHON: lambda: self._as_python(run, trial)}
                tried(trial, ways, is_measurable)
            if waits.wait is not None and waits.wait.is_stopped:
                runs.trials.pop(kind, None)  # it says nothing of such runs
                return
            trial.ran(here.is_in_pieces, here.counts, by_model=config.settle == MODEL)
        finally:
            here.is_in_pieces, here.counts, here.ran = outer
        if trial.way and trial.kept is None and trial.form:
            kept_decisions.keep(trial, _as_function(run, run.found_before()), self.options, kind)
            trial.form = b""

    def _compiled(self, run: CellRun, trial: Trial) -> None:
        here.is_in_pieces = False
        with at_most(None if self.is_asked else trial.effort_in_pieces):
            run.captured_as_far_as_it_goes()
        trial.traces, trial.refusal = tuple(here.ran or ()), self.refusal

    def _as_python(self, run: CellRun, trial: Trial) -> None:
        before, outside.unmarked = outside.unmarked, True
        started = time.perf_counter_ns()
        try:
            run.plain()
        finally:
            outside.unmarked = before
            if events.active():
                took = time.perf_counter_ns() - started
                said = trial.said if trial.way else (Message("settled.trial"),)
                about = events.AsPython(run.title, said, _lines(run.program), trial.traces)
                events.send(events.CalledAsPython(about=about, start_ns=started, duration_ns=took))

    # ---- what is told of it
    def ran(self, statement: Statement, reason: Refusal, began: events.Moment, ended: events.Moment | None = None) -> None:
        super().ran(statement, reason, began, ended)
        if is_quiet(statement, reason):
            return
        here.is_in_pieces = True
        if self.refusal is None:
            self.refusal = reason if reason.source is not None else reason._replace(source=statement.source)

    def called(self, trace: PieceTrace, started: int) -> None:
        super().called(trace, started)
        if here.ran is not None and len(here.ran) < MOST_RAN:
            here.ran[identity(trace.name, trace)] = None
        trace.costs.called()
        if trace.costs.calls == WARM_CALLS:
            disturbed()
            warm_up(trace)

    def traced(self, trace: PieceTrace, before: Failed, started: int) -> None:
        super().traced(trace, before, started)
        disturbed()

    def ended(self, pieces: int, captured: int, python_ns: float) -> None:
        here.counts = pieces, captured, python_ns
        here.captures += captured
        here.is_in_pieces |= pieces > 1


@cache
def _made_with(level: str, device: str) -> JitOptions:
    return replace(PLAIN, jit_level=level, device=device)


def _as_function(run: CellRun, found: dict[str, Any]) -> types.FunctionType:
    """A cell as a function that reads what the cell does."""
    return types.FunctionType(run.program.module_code(), found, run.title)


def _lines(program: CellProgram) -> tuple[events.Span, ...]:
    nodes = [statement.node for statement in program.statements]
    if not nodes:
        return ()
    first, last = nodes[0], nodes[-1]
    return tuple(
        spans(Source(program.filename, first.lineno, first.col_offset, last.end_lineno or -1, last.end_col_offset or -1))
    )

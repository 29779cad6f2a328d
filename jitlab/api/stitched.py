"""A `jit` function in pieces as one Python function, each piece a call (`stitched_code.py`): a call of C where machine code
compares what the piece reads, else of Python that looks it up as the driver does."""

from __future__ import annotations

import ctypes
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab import events
from jitlab.api.functions.native_entry import MAX_ENTRIES, warm_up
from jitlab.api.settling import disturbed
from jitlab.capture.drivers.driver import is_quiet, is_told_by_parts
from jitlab.capture.drivers.piece_traces import PieceTrace
from jitlab.capture.drivers.run_events import emit_timed_call, said_of
from jitlab.capture.drivers.trace import usable
from jitlab.capture.guards.described_calls import Described, Undescribed
from jitlab.capture.guards.described_lookups import DescribedLookup
from jitlab.capture.rewrite import stitched_code
from jitlab.capture.rewrite.body_code import Body
from jitlab.capture.rewrite.piece_statements import Segment
from jitlab.capture.rewrite.stitched_code import PieceAt, Unwritten
from jitlab.ir.plans.call_forms import CallForm, Fixed, Packed, ViewOf
from jitlab.ops.random_draws import set_random_states
from jitlab.runtime import Executable
from jitlab.support import native_call_log
from jitlab.support.lazy import lazy
from jitlab.support.native_call_log import About

#: What a piece gives that does not serve.
_NONE: Any = type("NotServed", (), {"__repr__": lambda self: "<not served>"})()
#: Calls of pieces that none serves, after which the driver is asked again.
MISSES = 2
#: The state for floating-point errors is one object as long as nobody asks NumPy for anything. (Before NumPy 2 there is none.)
_state: Any = getattr(getattr(np, "_core", None), "umath", None)
_state = getattr(getattr(_state, "_extobj_contextvar", None), "get", None)


class Piece:
    """A piece of a stitched function. Called with what its names hold, it gives what it assigns: nothing, one value, or several
    in a tuple; _NONE where it does not serve."""

    def __init__(self, at: PieceAt, missed: Callable[[], None]) -> None:
        self.at, self.missed = at, missed
        self.traces = at.traces
        self.cell = types.CellType(self)  # what the function calls
        self.entries: list[PieceTrace] = []  # for which C was thought of

    def __call__(self, *values: Any) -> Any:
        cells = {name: types.CellType(value) for name, value in zip(self.at.arguments, values, strict=True)}
        for trace in usable(self.traces):
            gathered = trace.gather(cells)
            if gathered is not None:
                break
        else:
            self.missed()
            return _NONE
        states = trace.states(gathered[0])
        started = time.perf_counter_ns() if events.active() else 0
        try:
            ((given, _, _),) = trace.perform(*gathered, cells)
        except Exception:  # Python raises what there is to raise
            set_random_states(states)
            self.missed()
            return _NONE
        trace.costs.called()
        if started:
            emit_timed_call(trace.name, trace, started)
        if trace not in self.entries and len(self.entries) < MAX_ENTRIES:
            self.entries.append(trace)
            disturbed()
            self._serve_by_c(trace, values, gathered[0])
        return given[0][1] if len(given) == 1 else tuple([value for _, value in given])

    def _serve_by_c(self, trace: PieceTrace, values: Sequence[Any], inputs: Sequence[Any]) -> None:
        """From now on C serves such calls, where that can be."""
        try:
            form = _form(trace, self.at, values, inputs)
        except (Undescribed, KeyError):
            return
        warm = trace.executable.warm(form, inputs) if isinstance(trace.executable, Executable) else None
        if warm is None:
            return
        counter = ctypes.c_int64(0)
        entry, _ = warm.make(events.busy.word, counter, self.cell.cell_contents, trace.name)
        trace.costs.count_natively(counter)
        self.cell.cell_contents = entry


def _form(trace: PieceTrace, at: PieceAt, values: Sequence[Any], found: Sequence[Any]) -> CallForm:
    """The form of a call of a piece that the trace serves, with these inputs."""
    if trace.draws or trace.moving:
        raise Undescribed("it draws, or reads a part")
    described = Described(any_float=True, exact=bool(trace.layouts))
    described.float_values = trace.lookup.looks_at_numbers
    pairs = [described.value(value) for value in values]
    marked: Any = {name: types.CellType(pair[1]) for name, pair in zip(at.arguments, pairs, strict=True)}
    lookup = DescribedLookup(trace.lookup, described, marked)
    inputs = lookup.inputs_of(found)
    gives = [trace.told_of(build, lookup.leaf_of) for _, build in trace.outputs]
    whole = gives[0] if len(gives) == 1 else Packed(tuple, tuple(gives)) if gives else Fixed(())
    if any(isinstance(given, ViewOf) for given in gives):
        raise Undescribed("a view of another value that it gives")
    writes = tuple((inputs[n], output) for n, output in trace.writes)
    return CallForm(
        len(values), (), tuple(pair[0] for pair in pairs), inputs, whole, tuple(lookup.reads), described.distinct(), writes
    )


class Stitched:
    """The function, and its pieces. `again`: a reference to what asks the driver again, once pieces do not serve."""

    def __init__(self, body: Body, again: Callable[[], Callable[[], None] | None]) -> None:
        code, pieces = stitched_code.written(body)
        self.misses, self.again = 0, again
        self.pieces = [Piece(at, self.missed) for at in pieces]
        self._body, self._known = body, {piece.at.name: piece.cell for piece in self.pieces}
        names = (stitched_code.NONE, stitched_code.STATE, stitched_code.QUIET, stitched_code.IS_QUIET)
        for name, value in zip(names, (_NONE, *_quiet(body)), strict=True):
            self._known[name] = types.CellType(value)
        for trace in (trace for piece in self.pieces for trace in piece.traces):
            if not trace.is_warm:
                warm_up(trace)
        self.function = _function(body, code, self._known)

    @lazy
    def told(self) -> types.FunctionType | None:
        """The same function, which notes its statements, while somebody takes notes; None: the driver tells of them."""
        abouts: list[About] = []

        def number(here: Segment, at: int, in_parts: bool) -> int | None:
            said = _said_of(here, at, in_parts)
            if said is not None:
                abouts.append(native_call_log.statement(said))
            return len(abouts) - 1 if said is not None else None

        def note(number: int, started_ns: int) -> None:
            if events.active():
                events.note(abouts[number], started_ns, time.perf_counter_ns())

        try:
            code, pieces = stitched_code.written(self._body, number)
        except (Unwritten, SyntaxError):
            return None
        if pieces != [piece.at for piece in self.pieces]:  # others were captured, or statements were taken apart since
            return None
        noted = {stitched_code.CLOCK: types.CellType(time.perf_counter_ns), stitched_code.NOTED: types.CellType(note)}
        return _function(self._body, code, {**self._known, **noted})

    def missed(self) -> None:
        self.misses += 1
        if self.misses == MISSES and (ask := self.again()) is not None:
            ask()


def _said_of(here: Segment, at: int, in_parts: bool) -> events.PythonStatement | None:
    """What is said of a statement that Python runs; None: nothing."""
    statement = here.statements[at]
    reason, parts = statement.plain_reason or here.retired.get(at), statement.known_parts
    if reason is None or (in_parts and parts is not None and is_told_by_parts(statement, parts, reason)):
        return None
    return said_of(statement, reason)


def _function(body: Body, code: types.CodeType, known: dict[str, types.CellType]) -> types.FunctionType:
    own = body.function
    free = [known.get(name) or body.free.get(name) or body.free[body.unmangled(name)] for name in code.co_freevars]
    made = types.FunctionType(code, own.__globals__, body.name, own.__defaults__, tuple(free))
    made.__kwdefaults__ = own.__kwdefaults__
    return made


def _quiet(body: Body) -> tuple[Callable[[], Any], Any, Callable[[], bool]]:
    """What gives NumPy's state for errors, the one that is quiet, and what looks at another. What a function asks of the module
    warnings is no part of that state."""
    if body.asks_for_warnings or not is_quiet():
        raise Unwritten
    return (is_quiet, True, is_quiet) if _state is None else (_state, _state(), is_quiet)


__all__ = ["Stitched", "Unwritten"]

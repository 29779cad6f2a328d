"""A call in pieces: the body of a function that cannot be captured whole, statement by statement.

Consecutive statements that can be captured are one piece; the others run as Python between pieces, loops and branches that
cannot be captured run their headers as Python and their bodies in pieces. The local names of a call are cells, so that a
statement, captured or not, is a function around them: what it defines or leaves behind sees the very names that it would see.
"""

from __future__ import annotations

import ast
import inspect
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from jitlab import events
from jitlab.ir import interpret
from jitlab.messages import Message
from jitlab.transactions import Whole

from . import explanations
from .bodycode import (
    BREAK,
    RESULT,
    RETURN,
    TEST,
    Body,
    BodyTrace,
    Branch,
    Frame,
    Loop,
    Scoped,
    Segment,
    Statement,
    looks_at_its_frame,
)
from .calls import CallCapture
from .changes import Change, fix_of_name
from .convert import find_definition
from .draws import random_states, set_random_states
from .flow import HOOK
from .gathering import Place
from .hooks import HOOKS
from .piece_traces import Failed, PieceTrace, StaticNeeded, failed_of, finish_piece
from .pieces import MISSING, MOST_TRACES, Executor
from .positions import spans
from .refusals import Refusal, reason_of, reason_of_run
from .run_events import emit_call, emit_piece, emit_statement
from .trace import Trace


class BodyCapture(CallCapture):
    """A capture whose names are those of a call under way."""

    trace_class: type[PieceTrace] = BodyTrace

    def __init__(self, program: Body, frame: Frame, *, strict: bool, static: bool) -> None:
        super().__init__(program.name, strict=strict, static=static)
        self.program, self.frame = program, frame

    def load_name(self, value: Any, name: str) -> Any:
        """A name that is not local to a statement: one of the body's own is not looked up among the globals."""
        if self.functions[-1:] == [self.program.function] and name in self.program.locals:
            return value
        return super().load_name(value, name)

    def local(self, name: str) -> Any:
        """A local name's value inside the capture, MISSING when it has none."""
        if name in self.assigned:
            return self.assigned[name]
        cell = self.frame.cells[name]
        if name not in self.frame:
            return MISSING
        return self.read(self.frame, name, Place(f"a[{name!r}].cell_contents", lambda: cell.cell_contents), "local")


class Run:
    """One call of a body."""

    def __init__(self, body: Body, frame: Frame, executor: Executor, tell: Telling) -> None:
        self.body, self.frame, self.executor, self.telling = body, frame, executor, tell
        self.scopes: list[Scoped] = []

    def call(self, code: types.CodeType) -> Any:
        """Run the function that a statement is."""
        unbound: NameError | None = None
        try:
            return self._function(code, self.frame.cells)()
        except NameError as error:
            if not str(error).startswith("cannot access free variable") or error.name not in self.body.locals:
                raise
            unbound = error
        # to the user it is a local name of the function
        text = f"cannot access local variable {unbound.name!r} where it is not associated with a value"
        raise UnboundLocalError(text, name=unbound.name).with_traceback(unbound.__traceback__)

    def _function(self, code: types.CodeType, cells: dict[str, types.CellType]) -> types.FunctionType:
        body = self.body
        closure = []
        for name in code.co_freevars:
            if name == HOOK:
                closure.append(types.CellType(HOOKS))
            else:
                cell = cells.get(name) or cells.get(body.unmangled(name))
                closure.append(cell if cell is not None else body.free[name])
        return types.FunctionType(code, body.function.__globals__, body.name, (), tuple(closure))

    def segment(self, segment: Segment) -> str:
        """"", or how it ended: "break", "continue", "return"."""
        at = 0
        while at < len(segment.statements):
            count, jump = self.piece(segment, at)
            if jump:
                return jump
            at += count
        return ""

    def piece(self, segment: Segment, at: int) -> tuple[int, str]:
        """Run a piece that starts at a statement, or that statement as Python; how many statements it was, and the jump."""
        statement = segment.statements[at]
        if statement.plain_reason is not None:
            return 1, self.uncaptured(statement, statement.plain_reason)
        if at in segment.retired:
            reason = Refusal("retraced", f"it was captured {MOST_TRACES} times and never fitted again")
            return 1, self.uncaptured(statement, reason)
        for trace in segment.traces.get(at, ()):
            gathered = trace.gather(self.frame.cells)
            if gathered is not None:
                return trace.length, self.perform(trace, *gathered, segment, at)
        made, reason = self.capture(segment, at, failed_of(segment.traces.get(at, ()), self.frame.cells))
        if made is None:
            statement.failures += 1
            if statement.failures >= 2 and reason.code != "error":
                statement.plain_reason = reason
            return 1, self.uncaptured(statement, reason)
        known = segment.traces.setdefault(at, [])
        known.insert(0, made)
        if len(known) > MOST_TRACES:
            segment.retired.add(at)
            known.clear()
        gathered = made.gather(self.frame.cells)
        if gathered is None:
            return 1, self.uncaptured(statement, Refusal("value", "what it reads changes while it is read"))
        return made.length, self.perform(made, *gathered, segment, at)

    def perform(self, trace: BodyTrace, inputs: list[Any], numbers: tuple[Any, ...], segment: Segment, at: int) -> str:
        states = random_states(trace.generators) if trace.generators else ()
        started = time.perf_counter_ns()
        refusal: Exception | None = None
        try:
            trace.perform(inputs, numbers, self.frame, self.frame.cells)
        except Exception as error:
            refusal = error
        if refusal is not None:  # Python itself raises what there is to raise, and leaves what it would have left
            set_random_states(states)
            reason = reason_of_run(refusal)
            for statement in segment.statements[at : at + trace.length]:
                jump = self.uncaptured(statement, reason, whole=True)
                if jump:
                    return jump
            return ""
        if not trace.is_silent:
            self.telling.called(trace, started)
        return trace.jump

    def uncaptured(self, statement: Statement, reason: Refusal, *, whole: bool = False) -> str:
        """Run a statement that is not captured: in parts where it has some, else as Python."""
        parts = None if whole else statement.parts()
        if parts is not None:
            if reason.code != "statement":
                self.telling.ran(statement, reason, time.perf_counter_ns())
            if isinstance(parts, Loop):
                return self.loop(parts)
            if isinstance(parts, Branch):
                self.segment(parts.test)
                return self.segment(parts.body if self._truth() else parts.orelse)
            self.scopes.append(parts)
            try:
                return self.segment(parts.body)
            finally:
                self.scopes.pop()
        started = time.perf_counter_ns()
        try:
            result = self.call(statement.plain())
        except Exception as error:
            explanations.add_note(error)
            raise
        finally:
            self.telling.ran(statement, reason, started)
        if isinstance(result, tuple):
            self.frame[RESULT] = result[0]
            return RETURN
        return result or ""

    def _truth(self) -> bool:
        value = self.frame[TEST]
        del self.frame[TEST]
        return bool(value)

    def loop(self, loop: Loop) -> str:
        for _ in self._turns(loop):
            jump = self.segment(loop.body)
            if jump == BREAK:
                return ""
            if jump == RETURN:
                return jump
        return self.segment(loop.orelse)

    def _turns(self, loop: Loop) -> Iterator[None]:
        if loop.test is not None:
            self.segment(loop.test)
            while self._truth():
                yield
                self.segment(loop.test)
            return
        assert loop.items is not None
        for item in self.call(loop.items)[0]:
            if loop.assign is None:
                self.frame[loop.target] = item
            else:
                self.frame[TEST] = item
                self.call(loop.assign)
                del self.frame[TEST]
            yield

    # ---- capture
    def capture(self, segment: Segment, at: int, failed: Failed) -> tuple[BodyTrace | None, Refusal]:
        """Capture statements from `at` on as far as it goes; the trace of none is None, with the reason."""
        try:
            return self._capture(segment, at, failed, static=False)
        except StaticNeeded:
            return self._capture(segment, at, failed, static=True)

    def _capture(self, segment: Segment, at: int, failed: Failed, *, static: bool) -> tuple[BodyTrace | None, Refusal]:
        started = time.perf_counter_ns()
        capture = BodyCapture(self.body, self.frame, strict=False, static=static)
        length, jump, reason = 0, "", Refusal("", "")
        trace: BodyTrace | None = None
        with Whole(), capture.recording(), capture.inside(self.body.function), ExitStack() as stack:
            for scope in self.scopes:
                for code in scope.contexts:
                    stack.enter_context(self._captured(capture, code, sorted(self.body.locals & set(code.co_freevars)))[0])
            capture.root.deciding.clear()  # whether a scope meets an edge is not for one of its pieces to say
            for statement in segment.statements[at:]:
                if statement.plain_reason is not None:
                    break
                marked = capture.mark_statement()
                capture.made_now.clear()
                before = dict(capture.assigned)
                try:
                    result = self._captured(capture, statement.converted(), statement.reads)
                    capture.check_copies()
                    if isinstance(result, tuple):
                        capture.assigned[RESULT] = result[0]
                    if capture.refused is not None:  # the program caught it
                        raise capture.refused
                    for name, value in capture.assigned.items():
                        if before.get(name, MISSING) is not value:
                            capture.structure().of(value)  # what can't be given back ends the piece before it
                except StaticNeeded:
                    raise
                except Exception as error:
                    capture.rollback_statement(marked)
                    capture.refused = None
                    reason = reason_of(error)
                    break
                explanations.forget()
                length += 1
                if result is not None:
                    jump = RETURN if isinstance(result, tuple) else result
                    break
            if length:
                self.body.trace_count += 1
                made = finish_piece(capture, length, self.body.trace_count)
                assert isinstance(made, BodyTrace)
                trace = made
                trace.jump = jump
        capture.close()
        capture.forget()
        if trace is None:
            return None, reason
        if not trace.graph.nodes:  # Python alone: nothing to compile, nothing to tell
            trace.is_silent = True
            trace.run = _interpreted(trace)
            return trace, reason
        trace.run = self.executor(trace)
        self.telling.traced(trace, failed, started)
        return trace, reason

    def _captured(self, capture: BodyCapture, code: types.CodeType, reads: Sequence[str]) -> Any:
        """Run converted code on cells of its own, filled with what the capture makes of the local names."""
        cells = {name: types.CellType() for name in self.body.locals}
        found: dict[str, Any] = {}
        for name in reads:
            value = capture.local(name)
            if value is not MISSING:
                found[name] = cells[name].cell_contents = value
        result = self._function(code, cells)()
        for name, cell in cells.items():
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if found.get(name, MISSING) is not value:
                capture.assigned[name] = value
        return result


class Telling:
    """Who is told of what a call in pieces does; this one tells the listeners of events."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ran(self, statement: Statement, reason: Refusal, started: int) -> None:
        """Python ran a statement, or runs the loop or branch that it is."""
        if not events.active() or (isinstance(statement.node, ast.FunctionDef) and not statement.is_refused):
            return
        lines = spans(statement.source)
        if reason.source is not None and not lines[0][1] <= reason.source.line <= lines[0][3]:
            lines += spans(reason.source)  # in a function that it calls
        emit_statement(reason.code, reason.text, lines, started, met=reason.met)

    def called(self, trace: BodyTrace, started: int) -> None:
        """A piece ran."""
        emit_call(trace.name, trace.number, started)

    def traced(self, trace: BodyTrace, before: Failed, started: int) -> None:
        """A piece was captured."""
        emit_piece(trace, before, started, self.advice)

    def advice(self, change: Change, before: Failed) -> Message | None:
        """What would avoid that a piece is captured again."""
        return fix_of_name(change)


def _interpreted(trace: Trace) -> Callable[[Sequence[Any]], list[Any]]:
    return lambda inputs: interpret(trace.graph, inputs)


def body_of(function: types.FunctionType) -> Body | None:
    """The body of a function in statements; None when Python alone can run it: no source, a generator, a look at its frame."""
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    found = find_definition(function)
    if found is None or looks_at_its_frame(found[0]) is not None:
        return None
    return Body(function, *found)


def run_body(body: Body, arguments: dict[str, Any], executor: Executor, telling: Telling) -> Any:
    """Call a function in pieces."""
    frame = Frame(sorted(body.locals))
    for name, value in arguments.items():
        frame[name] = value
    Run(body, frame, executor, telling).segment(body.segment)
    return frame.get(RESULT)


__all__ = ["Body", "BodyTrace", "Telling", "body_of", "run_body"]

"""Cells: a notebook cell as statements; consecutive ones that can be captured are one piece, the others run as Python.

`for`, `while` and `if` run their headers as Python and their bodies as pieces, each traced once for each kind of inputs and
then reused (design D5: a host loop). After a cell the namespace is what plain Python would have left: outputs are assigned,
arrays written in place, views of the user's arrays are views of them.
"""

from __future__ import annotations

import ast
import builtins
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from jitlab import events
from jitlab.errors import CaptureError, InvalidArgumentError, JitlabError
from jitlab.ir import Source, interpret, is_operation

from .changes import Change, changes, distance
from .convert import HOOK
from .draws import random_state, set_random_state
from .hooks import HOOKS
from .host import NotReplayable
from .pieces import MISSING, CellCapture, CellStructure, EndPiece, Names, Namespace, PieceTrace, StaticNeeded, finish_piece
from .positions import describe, display_name, spans
from .statements import RESULT, Block, CellProgram, Condition, Jump, Loop, Segment, Statement, is_scope
from .trace import Trace

Executor = Callable[[Trace], Callable[[Sequence[Any]], list[Any]]]

#: Traces of one piece after which it runs as Python: it changes more often than it repeats.
MOST_TRACES = 16
#: Cells whose traces are kept for the next time they are run.
MOST_PROGRAMS = 256


@dataclass
class CellResult:
    """What a cell did: the value to display, the traces it made, how often pieces ran, and what Python ran."""

    value: Any = None
    has_value: bool = False
    traces: list[PieceTrace] = field(default_factory=list)
    runs: int = 0
    statements: list[tuple[str, str, Source]] = field(default_factory=list)  # run as Python: reason, text, where


class _Run:
    """One run of a cell."""

    def __init__(
        self, program: CellProgram, namespace: Namespace, executor: Executor, *, strict: bool, title: str, result: CellResult
    ) -> None:
        self.program = program
        self.namespace = namespace
        self.executor = executor
        self.strict = strict
        self.title = title
        self.result = result
        self.scopes: list[Statement] = []

    # ---- control flow
    def block(self, block: Block) -> str:
        """"", or "break" or "continue"."""
        for step in block:
            if isinstance(step, Segment):
                self.segment(step)
            elif isinstance(step, Jump):
                return step.kind
            elif isinstance(step, Condition):
                jump = self.block(step.body if eval(step.test, self.namespace) else step.orelse)
                if jump:
                    return jump
            else:
                jump = self.loop(step)
                if jump:
                    return jump
        return ""

    def loop(self, loop: Loop) -> str:
        for _ in self._turns(loop):
            if self.block(loop.body) == "break":
                return ""
        return self.block(loop.orelse)

    def _turns(self, loop: Loop) -> Iterator[None]:
        if isinstance(loop.node, ast.While):
            while eval(loop.header, self.namespace):
                yield
            return
        for item in eval(loop.header, self.namespace):
            if isinstance(loop.node.target, ast.Name):
                self.namespace[loop.node.target.id] = item
            else:
                self.namespace[RESULT] = item
                try:
                    exec(loop.assign, self.namespace)  # type: ignore[arg-type]
                finally:
                    del self.namespace[RESULT]
            yield

    # ---- pieces
    def segment(self, segment: Segment) -> None:
        at = 0
        while at < len(segment.statements):
            at += self.piece(segment, at)

    def piece(self, segment: Segment, at: int) -> int:
        """Run a piece that starts at a statement, or that statement as Python; how many statements it was."""
        statement = segment.statements[at]
        if statement.plain_reason is not None:
            self.plain(statement, *statement.plain_reason)
            return 1
        if at in segment.retired:
            self.plain(statement, "retraced", f"it was captured {MOST_TRACES} times and never fitted again")
            return 1
        for trace in segment.traces.get(at, ()):
            gathered = trace.gather()
            if gathered is not None:
                return self.perform(trace, *gathered, segment, at)
        made, reason = self.capture(segment, at)
        if made is None:
            statement.failures += 1
            if reason[0] in ("effect", "foreign_type", "value") and statement.failures >= 2:
                statement.plain_reason = reason
            if isinstance(statement.node, ast.With) and is_scope(statement.node):
                self.scoped(statement)
            else:
                self.plain(statement, *reason)
            return 1
        known = segment.traces.setdefault(at, [])
        known.insert(0, made)
        if len(known) > MOST_TRACES:
            segment.retired.add(at)
            known.clear()
        gathered = made.gather()
        if gathered is None:
            self.plain(statement, "value", "what it reads changes while it is read")
            return 1
        return self.perform(made, *gathered, segment, at)

    def scoped(self, statement: Statement) -> None:
        """A jit_scope that could not be captured whole: its statements are pieces of their own, each in the scope."""
        assert isinstance(statement.node, ast.With)
        if statement.body is None:
            statement.body = self.program.block_of(statement.node.body)
        self.scopes.append(statement)
        try:
            self.block(statement.body)
        finally:
            self.scopes.pop()

    def perform(self, trace: PieceTrace, inputs: list[Any], numbers: tuple[Any, ...], segment: Segment, at: int) -> int:
        states = [(generator, random_state(generator)) for generator in trace.generators]
        started = time.perf_counter_ns()
        refusal: Exception | None = None
        try:
            trace.perform(inputs, numbers, self.namespace)
        except InvalidArgumentError:
            raise
        except Exception as error:
            refusal = error
        if refusal is not None:  # below `except`: what Python raises now has no other error behind it
            for generator, state in states:
                set_random_state(generator, state)
            self.replace(segment.statements[at : at + trace.length], refusal)
            return trace.length
        if trace.is_silent:
            return trace.length
        self.result.runs += 1
        if events.active():
            events.send(
                events.FunctionCalled(
                    cell=events.current_cell(), function=trace.name, trace=trace.number, start_ns=started,
                    duration_ns=time.perf_counter_ns() - started,
                )
            )  # fmt: skip
        return trace.length

    def replace(self, statements: list[Statement], refusal: Exception) -> None:
        """Run the statements of a piece that failed as Python. When one of them raises, it alone is the one to tell of."""
        text = str(refusal).split("\n")[0]
        if isinstance(refusal, NotReplayable):
            for statement in statements:
                self.plain(statement, refusal.code, text)
            return
        times = []
        for statement in statements:
            started = time.perf_counter_ns()
            try:
                exec(statement.plain(), self.namespace)
            except Exception as error:
                self.tell(statement, "error", f"{type(error).__name__}: {str(error).split(chr(10))[0]}", started)
                raise
            times.append((started, time.perf_counter_ns()))
        for statement, (started, ended) in zip(statements, times, strict=True):
            self.tell(statement, "error", text, started, ended)

    def plain(self, statement: Statement, code: str, text: str) -> None:
        """Run a statement as Python."""
        if self.strict and code not in ("statement", "effect", "compiled_function", "error"):
            error = CaptureError(
                f"`{statement.text}` cannot be captured, and --strict leaves nothing to NumPy.",
                where=describe(statement.source), why=text, hint="take it out of the cell, or leave --strict away",
            )  # fmt: skip
            statement.refuse(error)
        started = time.perf_counter_ns()
        try:
            exec(statement.plain(), self.namespace)
        finally:
            self.tell(statement, code, text, started)

    def tell(self, statement: Statement, code: str, text: str, started: int, ended: int = 0) -> None:
        """Python ran a statement."""
        self.result.statements.append((code, text, statement.source))
        if events.active() and not isinstance(statement.node, (ast.Pass, ast.Import, ast.ImportFrom, ast.FunctionDef)):
            events.send(
                events.StatementRan(
                    cell=events.current_cell(), reason=code, text=text, lines=spans(statement.source),
                    start_ns=started, duration_ns=(ended or time.perf_counter_ns()) - started,
                )
            )  # fmt: skip

    def capture(self, segment: Segment, at: int) -> tuple[PieceTrace | None, tuple[str, str]]:
        """Capture statements from `at` on as far as it goes; the trace of none is None, with the reason."""
        try:
            return self._capture(segment, at, static=False)
        except StaticNeeded:
            return self._capture(segment, at, static=True)

    def _capture(self, segment: Segment, at: int, *, static: bool) -> tuple[PieceTrace | None, tuple[str, str]]:
        started = time.perf_counter_ns()
        capture = CellCapture(self.title, self.namespace, strict=self.strict, static=static)
        names = Names(capture)
        length, reason = 0, ("", "")
        trace: PieceTrace | None = None
        with capture.recording(), ExitStack() as stack:
            for scope in self.scopes:
                for code in scope.contexts():
                    stack.enter_context(eval(code, {HOOK: HOOKS, "__builtins__": builtins}, names))
            for statement in segment.statements[at:]:
                if statement.plain_reason is not None:
                    break
                marked = capture.mark_statement()
                capture.made_now.clear()
                try:
                    exec(statement.converted(), {HOOK: HOOKS, "__builtins__": builtins}, names)
                    for name, value in capture.assigned.items():
                        if marked[1][0].get(name, MISSING) is not value:
                            CellStructure(capture).of(value)  # what can't be given back ends the piece before it
                except StaticNeeded:
                    raise
                except InvalidArgumentError:
                    capture.rollback_statement(marked)
                    if self.strict and not length:
                        raise
                    reason = ("no_loop_body", "")
                    break
                except Exception as error:
                    capture.rollback_statement(marked)
                    reason = _reason(error)
                    break
                length += 1
            if length:
                self.program.trace_count += 1
                trace = finish_piece(capture, length, self.program.trace_count)
        capture.close()
        if trace is None:
            return None, reason
        if not trace.outputs and not trace.graph.nodes and not trace.writes:
            return None, ("effect", "nothing in it is captured") if reason[0] == "" else reason
        if not trace.graph.nodes:  # Python alone: nothing to compile, nothing to tell
            trace.is_silent = True
            trace.run = interpreted(trace)
            return trace, reason
        trace.run = self.executor(trace)
        self._send_traced(trace, segment.traces.get(at, []), started)
        self.result.traces.append(trace)
        return trace, reason

    def _send_traced(self, trace: PieceTrace, before: list[PieceTrace], started: int) -> None:
        if not events.active():
            return
        found = [Change("first_call")]
        nearest = None
        if before:
            candidates = [(changes(old.read_leaves, trace.read_leaves), old) for old in before]
            found, nearest = min(candidates, key=lambda candidate: distance(candidate[0]))
            found = found or [Change("aliasing", before="other names share memory", after="these names share memory")]
        first = found[0]
        source = nearest.uses.get(first.path) if nearest is not None else None
        events.send(
            events.Traced(
                cell=events.current_cell(), function=trace.name, trace=trace.number,
                causes=tuple(dict.fromkeys(change.cause for change in found)), argument=first.path, before=first.before,
                after=first.after, lines=spans(source), fix=first.fix,
                operations=sum(is_operation(node) for node in trace.graph.nodes), start_ns=started,
                duration_ns=time.perf_counter_ns() - started,
            )
        )  # fmt: skip






def _reason(error: Exception) -> tuple[str, str]:
    if isinstance(error, EndPiece):
        return error.code, error.text
    if isinstance(error, JitlabError):
        return "value", error.what
    return "error", f"{type(error).__name__}: {error}"


def interpreted(trace: Trace) -> Callable[[Sequence[Any]], list[Any]]:
    """The executor that runs a graph op by op on NumPy."""
    return lambda inputs: interpret(trace.graph, inputs)


_programs: OrderedDict[tuple[str, str, int], CellProgram] = OrderedDict()


def run_cell(
    source: str,
    namespace: Namespace,
    filename: str,
    *,
    first_line: int = 1,
    strict: bool = False,
    executor: Executor = interpreted,
    title: str = "",
    result: CellResult | None = None,
) -> CellResult:
    """Run a cell in the user's namespace, captured as far as it goes.

    `executor(trace)` gives what runs a trace's graph. `first_line` is the line of the file (or cell) on which the source
    begins. `result` is filled also when the cell raises.
    """
    key = (source, filename, first_line)
    program = _programs.get(key)
    if program is None or program.namespace is not namespace:
        program = _programs[key] = CellProgram(source, filename, namespace, first_line)
        while len(_programs) > MOST_PROGRAMS:
            _programs.popitem(last=False)
    _programs.move_to_end(key)
    result = result if result is not None else CellResult()
    run = _Run(program, namespace, executor, strict=strict, title=title or display_name(filename), result=result)
    namespace.setdefault("__builtins__", builtins)
    try:
        run.block(program.block)
    finally:
        value = namespace.pop(RESULT, MISSING)
    if value is not MISSING:
        result.value, result.has_value = value, True
    return result


__all__ = ["CellProgram", "CellResult", "EndPiece", "PieceTrace", "Statement", "interpreted", "is_scope", "run_cell"]

"""Cells: a notebook cell as statements; consecutive ones that can be captured are one piece, the others run as Python.

`for`, `while` and `if` run their headers as Python and their bodies as pieces, each traced once for each kind of inputs and
then reused (a host loop). After a cell the namespace is what plain Python would have left: outputs are assigned,
arrays written in place, views of the user's arrays are views of them.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import threading
import time
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np

from jitlab.errors import CaptureError, InternalError, InvalidArgumentError, JitlabError, ShapeError
from jitlab.ir import Source, interpret, outside
from jitlab.ops import control
from jitlab.transactions import Whole, under_way

from . import explanations
from .draws import random_states, set_random_states
from .flow import HOOK
from .hooks import HOOKS
from .host import NotReplayable
from .piece_traces import (
    CellStructure,
    EndPiece,
    Failed,
    Namespace,
    PieceTrace,
    StaticNeeded,
    failed_of,
    finish_piece,
)
from .pieces import MISSING, MOST_TRACES, CellCapture, Executor, Names
from .positions import cell_traceback, describe, display_name, is_user_file, spans, without_signals
from .room import room_for
from .run_events import emit_call, emit_piece, emit_statement
from .splitting import TEMPORARY
from .statements import (
    BODY,
    RESULT,
    Block,
    CellProgram,
    Compiler,
    Condition,
    Jump,
    Loop,
    Segment,
    Statement,
    Wrapped,
    is_scope,
)
from .tensor import Tensor
from .trace import Trace

#: Cells whose traces are kept for the next time they are run.
MOST_PROGRAMS = 256
#: How the names begin that only stand in the namespace while a cell runs.
OURS = "__jl_"
EMPTY: Mapping[str, Any] = {}


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
        self, program: CellProgram, namespace: Namespace, executor: Executor, *, strict: bool, title: str, result: CellResult,
        display: Callable[[Any], object],
    ) -> None:  # fmt: skip
        self.program = program
        self.namespace = namespace
        self.executor = executor
        self.strict = strict
        self.title = title
        self.result = result
        self.display = display
        self.scopes: list[Statement] = []
        self.is_watched = False  # np.errstate asks to raise, to call, to print or to log
        self.thread = threading.get_ident()

    def __enter__(self) -> None:
        under_way.add(self)
        self.namespace.setdefault("__builtins__", builtins)
        self.look_at_errstate()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """An error shows the cell's own frames; the names that stood for steps are gone."""
        if error is not None:
            error.__traceback__ = cell_traceback(traceback)
            without_signals(error)
        under_way.discard(self)
        if kind is not None and (not issubclass(kind, Exception) or issubclass(kind, (MemoryError, RecursionError))):
            self.put_back()  # it may have come in the midst of any step
        self.take_names_away()

    def put_back(self) -> None:
        """The next run of the cell begins anew."""
        _forget(self.program)
        self.take_names_away()

    def take_names_away(self) -> None:
        for name in [name for name in self.namespace if isinstance(name, str) and name.startswith(OURS)]:
            del self.namespace[name]

    # ---- control flow
    def block(self, block: Block) -> str:
        """"", or "break" or "continue"."""
        for step in block:
            if isinstance(step, Segment):
                self.segment(step)
            elif isinstance(step, Jump):
                return step.kind
            else:
                jump = self.compound(step)
                if jump:
                    return jump
        return ""

    async def top(self, block: Block) -> None:
        """The whole cell; its statements may wait."""
        for step in block:
            if isinstance(step, Segment):
                at = 0
                while at < len(step.statements):
                    statement = step.statements[at]
                    if statement.waits:
                        await self.wait(statement)
                        at += 1
                    else:
                        at += self.piece(step, at)
            elif not isinstance(step, Jump):
                self.compound(step)

    def compound(self, step: Condition | Loop | Wrapped) -> str:
        if isinstance(step, Condition):
            return self.block(step.body if self.test(step.test, step.node.test) else step.orelse)
        if isinstance(step, Wrapped):
            return self.wrapped(step)
        while True:
            if step.before is not None:
                self.segment(step.before)
            if not self.test(step.test, step.node.test):
                return self.block(step.orelse)
            if self.block(step.body) == "break":
                return ""

    def test(self, code: types.CodeType, node: ast.expr) -> bool:
        """Is a condition true?"""
        try:
            return bool(eval(code, self.namespace))
        finally:
            for name in code.co_names:
                if name.startswith(TEMPORARY):
                    self.namespace.pop(name, None)

    def wrapped(self, step: Wrapped) -> str:
        """Python runs the statement, and calls this for each of its blocks."""
        jump = ""

        def called_back(number: int) -> bool:
            nonlocal jump
            error = sys.exc_info()[1]
            if number in step.handlers and error is not None:
                error.__traceback__ = cell_traceback(error.__traceback__)
                without_signals(error)
            self.look_at_errstate()
            found = self.block(step.blocks[number])
            if number == 0 and step.is_loop:
                return found == "break"
            jump = found or jump  # a `finally` that does not jump itself lets the jump that it meets go on
            return bool(found)

        outer = self.namespace.get(BODY, MISSING)
        self.namespace[BODY] = called_back
        try:
            exec(step.code, self.namespace)
        finally:
            if outer is MISSING:
                del self.namespace[BODY]
            else:
                self.namespace[BODY] = outer
            self.look_at_errstate()
        return jump

    def look_at_errstate(self) -> None:
        """Somebody asked NumPy to raise or to call: compiled code does neither."""
        self.is_watched = any(how not in ("ignore", "warn") for how in np.geterr().values())

    # ---- pieces
    def segment(self, segment: Segment) -> None:
        at = 0
        while at < len(segment.statements):
            at += self.piece(segment, at)

    def piece(self, segment: Segment, at: int) -> int:
        """Run a piece that starts at a statement, or that statement as Python; how many statements it was."""
        statement = segment.statements[at]
        if statement.header and not self.may_work(statement.node):
            exec(statement.plain(), self.namespace)
            return 1
        if statement.is_loop and (self.is_watched or statement.otherwise is not None):
            self.block(self.program.host_loop(statement))
            return 1
        if self.is_watched:
            return self.alone(segment, at, "errstate", "np.errstate asks NumPy to tell of floating-point errors")
        if statement.plain_reason is not None and not self.take_apart(segment, at):
            return self.alone(segment, at, *statement.plain_reason)
        if at in segment.retired:
            return self.alone(segment, at, "retraced", f"it was captured {MOST_TRACES} times and never fitted again")
        for trace in segment.traces.get(at, ()):
            gathered = trace.gather()
            if gathered is not None:
                return self.perform(trace, *gathered, segment, at)
        made, reason = self.capture(segment, at, failed_of(segment.traces.get(at, ())))
        if made is None and statement.is_loop:
            self.block(self.program.host_loop(statement))
            return 1
        if made is None:
            statement = segment.statements[at]
            statement.failures += 1
            if reason[0] in ("effect", "foreign_type", "value") and statement.failures >= 2:
                statement.plain_reason = reason
            if isinstance(statement.node, ast.With) and is_scope(statement.node):
                self.scoped(statement)
                return 1
            return self.alone(segment, at, *reason)
        known = segment.traces.setdefault(at, [])
        known.insert(0, made)
        if len(known) > MOST_TRACES:
            segment.retired.add(at)
            known.clear()
        gathered = made.gather()
        if gathered is None:
            return self.alone(segment, at, "value", "what it reads changes while it is read")
        return self.perform(made, *gathered, segment, at)

    def take_apart(self, segment: Segment, at: int, assigned: Mapping[str, Any] = EMPTY) -> bool:
        """Put the steps of a statement in its place, when there is NumPy work in them."""
        statement = segment.statements[at]
        if statement.is_whole:
            return False
        steps = statement.split()
        works = steps is not None and any(s.step is not None and self.may_work(s.step.value, assigned) for s in steps)
        statement.is_whole = True
        if steps is None or not works:
            return False
        segment.replace(at, steps)
        return True

    def may_work(self, node: ast.AST, assigned: Mapping[str, Any] = EMPTY) -> bool:
        """Does it read anything that NumPy could work on?"""
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
        return any(
            holds_arrays(assigned[name] if name in assigned else self.namespace.get(name)) or name.startswith(TEMPORARY)
            for name in names
        )

    def alone(self, segment: Segment, at: int, code: str, text: str, met: tuple[str, ...] = ()) -> int:
        """Run a statement as Python; a step that would change what the statement reads later, with all of its statement."""
        statement = segment.statements[at]
        count = 1
        if statement.step is not None and statement.step.exposed:
            while segment.statements[at + count - 1].step is not None:
                count += 1
            statement = statement.rest()
        self.plain(statement, code, text, met)
        self.done(statement)
        return count

    def done(self, statement: Statement) -> None:
        """A statement ran: what it gives is displayed, the names of its steps go."""
        if statement.is_display:
            self.display(self.namespace.pop(RESULT))
        if statement.group is not None and statement.step is None:
            for name in statement.group.names:
                self.namespace.pop(name, None)

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
        states = random_states(trace.generators) if trace.generators else ()
        started = time.perf_counter_ns()
        refusal: Exception | None = None
        try:
            trace.perform(inputs, numbers, self.namespace)
        except Exception as error:
            if self.strict and isinstance(error, InternalError):
                raise
            refusal = error
        if refusal is not None:  # below `except`: what Python raises now has no other error behind it
            set_random_states(states)
            return self.replace(segment, at, trace.length, refusal)
        self.done(segment.statements[at + trace.length - 1])
        if trace.is_silent:
            return trace.length
        self.result.runs += 1
        emit_call(trace.name, trace.number, started)
        return trace.length

    def replace(self, segment: Segment, at: int, length: int, refusal: Exception) -> int:
        """Run the statements of a piece that failed as Python. When one of them raises, it alone is the one to tell of."""
        text = explanations.clause(refusal)
        if isinstance(refusal, (NotReplayable, InternalError)):
            code, met = (refusal.code, refusal.met) if isinstance(refusal, NotReplayable) else ("internal", ())
            count = 0
            while count < length:
                count += self.alone(segment, at + count, code, text, met)
            return count
        ran: list[tuple[Statement, int, int]] = []
        count = 0
        while count < length:
            statement = segment.statements[at + count]
            count += 1
            if statement.step is not None and statement.step.exposed:
                while segment.statements[at + count - 1].step is not None:
                    count += 1
                statement = statement.rest()
            started = time.perf_counter_ns()
            try:
                exec(statement.plain(), self.namespace)
            except Exception as error:
                self.tell(statement, "error", explanations.clause(error), started)
                raise
            ran.append((statement, started, time.perf_counter_ns()))
            self.done(statement)
        for statement, started, ended in ran:
            self.tell(statement, "error", text, started, ended)
        return count

    def plain(self, statement: Statement, code: str, text: str, met: tuple[str, ...] = ()) -> None:
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
        except Exception as error:
            explanations.add_note(error)
            raise
        finally:
            self.tell(statement, code, text, started, met=met)
        self.look_at_errstate()

    async def wait(self, statement: Statement) -> None:
        """Run a statement that waits."""
        started = time.perf_counter_ns()
        code = statement.plain()
        try:
            waiting = eval(code, self.namespace)
            if inspect.iscoroutine(waiting):
                await waiting
        finally:
            self.tell(statement, "statement", "it waits", started)
        self.look_at_errstate()
        self.done(statement)

    def tell(
        self, statement: Statement, code: str, text: str, started: int, ended: int = 0, met: tuple[str, ...] = ()
    ) -> None:  # fmt: skip
        """Python ran a statement."""
        self.result.statements.append((code, text, statement.source))
        if not isinstance(statement.node, (ast.Pass, ast.Import, ast.ImportFrom, ast.FunctionDef)):
            emit_statement(code, text, spans(statement.source), started, ended_ns=ended, met=met)

    def capture(self, segment: Segment, at: int, failed: Failed) -> tuple[PieceTrace | None, tuple[str, str]]:
        """Capture statements from `at` on as far as it goes; the trace of none is None, with the reason."""
        try:
            return self._capture(segment, at, failed, static=False)
        except StaticNeeded:
            return self._capture(segment, at, failed, static=True)

    def _capture(
        self, segment: Segment, at: int, failed: Failed, *, static: bool
    ) -> tuple[PieceTrace | None, tuple[str, str]]:
        started = time.perf_counter_ns()
        capture = CellCapture(self.title, self.namespace, strict=self.strict, static=static)
        names = Names(capture)
        length, reason = 0, ("", "")
        trace: PieceTrace | None = None
        with Whole(), capture.recording(), ExitStack() as stack:
            for scope in self.scopes:
                for code in scope.contexts():
                    stack.enter_context(eval(code, {HOOK: HOOKS, "__builtins__": builtins}, names))
            capture.root.deciding.clear()  # whether a scope meets an edge is not for one of its pieces to say
            while at + length < len(segment.statements):
                statement = segment.statements[at + length]
                if statement.plain_reason is not None and self.take_apart(segment, at + length, capture.assigned):
                    continue
                if statement.otherwise is not None or statement.plain_reason is not None or (
                    statement.header and not self.may_work(statement.node, capture.assigned)
                ):
                    break
                marked = capture.mark_statement()
                capture.made_now.clear()
                try:
                    count = len(capture.graph.nodes)
                    capture.only_rolled = statement.is_loop
                    exec(statement.converted(), {HOOK: HOOKS, "__builtins__": builtins}, names)
                    capture.check_copies()
                    if statement.is_loop and not any(isinstance(n.op, control.Loop) for n in capture.graph.nodes[count:]):
                        raise EndPiece("value", "its iterations are Python's")
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
                    if reason[0] in _TAKEN_APART and self.take_apart(segment, at + length, capture.assigned):
                        continue
                    break
                explanations.forget()
                length += 1
                if statement.group is not None and statement.step is None:
                    for name in statement.group.names:
                        capture.assigned.pop(name, None)
                if statement.is_display:
                    break
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
        emit_piece(trace, failed, started)
        self.result.traces.append(trace)
        return trace, reason


#: Reasons for which a part of the statement may still be captured.
_TAKEN_APART = frozenset({"effect", "value", "foreign_type", "dtype", "compiled_function"})


def holds_arrays(x: Any) -> bool:
    """Is it something that NumPy works on, or that calls NumPy?"""
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        return True
    if isinstance(x, types.ModuleType):
        return x.__name__.split(".")[0] in ("numpy", "scipy", "jitlab")
    if isinstance(x, (types.FunctionType, types.MethodType)):
        return is_user_file(x.__code__.co_filename)
    if isinstance(x, (list, tuple, dict)):
        return any(map(holds_arrays, list(x.values() if isinstance(x, dict) else x)[:50]))
    return not isinstance(x, type) and is_user_class(type(x))


def is_user_class(kind: type) -> bool:
    """A class of the user's program, not one of a library."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (kind.__module__ != "builtins" and is_user_file(file or ""))


def _reason(error: Exception) -> tuple[str, str]:
    if isinstance(error, EndPiece):
        return error.code, error.text
    if isinstance(error, NotReplayable):
        return error.code, str(error)
    if isinstance(error, InternalError):
        return "internal", error.what
    is_ours = isinstance(error, JitlabError) and not isinstance(error, ShapeError)
    return "value" if is_ours else "error", explanations.clause(error)


def interpreted(trace: Trace) -> Callable[[Sequence[Any]], list[Any]]:
    """The executor that runs a graph op by op on NumPy."""
    return lambda inputs: interpret(trace.graph, inputs)


_programs: OrderedDict[Any, CellProgram] = OrderedDict()


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
    result = result if result is not None else CellResult()

    def keep(value: Any) -> None:
        result.value, result.has_value = value, True

    program = _program((source, filename, first_line), namespace, lambda: CellProgram(source, filename, namespace, first_line))
    run = _Run(
        program, namespace, executor, strict=strict, title=title or display_name(filename), result=result, display=keep
    )
    before, outside.unmarked = outside.unmarked, True
    try:
        with run:
            run.block(program.block)
    finally:
        outside.unmarked = before
    return result


async def run_nodes(
    nodes: list[ast.stmt],
    namespace: Namespace,
    filename: str,
    *,
    shown: str,
    compiler: Compiler,
    display: Callable[[Any], object],
    strict: bool = False,
    executor: Executor = interpreted,
    title: str = "",
    result: CellResult | None = None,
) -> CellResult:
    """Run the statements of a cell as `run_cell` does. They may wait; only then does this coroutine.

    `shown` is IPython's word for which statements display what expressions give, `compiler` its compiler.
    """
    result = result if result is not None else CellResult()
    with room_for(*nodes):
        key = (ast.dump(ast.Module(nodes, []), include_attributes=True), filename, shown)
        program = _program(key, namespace, lambda: CellProgram(nodes, filename, namespace, shown=shown, compiler=compiler))
        run = _Run(program, namespace, executor, strict=strict, title=title, result=result, display=display)
        with run:
            await run.top(program.block)
    return result


def _forget(program: CellProgram) -> None:
    """The next run of the cell reads it anew."""
    for key, known in list(_programs.items()):
        if known is program:
            _programs.pop(key, None)


def _program(key: Any, namespace: Namespace, make: Callable[[], CellProgram]) -> CellProgram:
    """The program of a cell, the one of its last run when nothing else has its name."""
    program = _programs.get(key)
    if program is None or program.namespace is not namespace:
        program = _programs[key] = make()
        while len(_programs) > MOST_PROGRAMS:
            _programs.popitem(last=False)
    _programs.move_to_end(key)
    return program


__all__ = [
    "CellProgram",
    "CellResult",
    "EndPiece",
    "PieceTrace",
    "Statement",
    "interpreted",
    "is_scope",
    "run_cell",
    "run_nodes",
]

"""A program in pieces: consecutive statements that can be captured are one piece, the others run as Python between pieces.

Compound statements that are not captured whole run their headers as Python and their blocks in pieces, each traced once for
each kind of inputs. After a piece the names are what Python would have left; where one cannot run, Python runs its statements.
"""

from __future__ import annotations

import ast
import sys
import time
import types
import warnings
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import numpy as np

from jitlab import events
from jitlab.capture.effort import STOPPED, TOO_MUCH, here
from jitlab.capture.numpy_calls import explanations
from jitlab.capture.positions import cell_traceback, is_user_file, without_signals
from jitlab.capture.refusals import CHANGES, Refusal, reason_of, reason_of_run
from jitlab.capture.rewrite.piece_statements import (
    BODY,
    BREAK,
    ITERATOR,
    RETURN,
    Condition,
    Jump,
    Loop,
    Parts,
    Program,
    Scoped,
    Segment,
    Statement,
    Wrapped,
)
from jitlab.capture.rewrite.splitting import TEMPORARY
from jitlab.capture.tracers.tensor import Tensor
from jitlab.costs import Costs
from jitlab.errors import InternalError, InvalidArgumentError
from jitlab.ir import Source, interpret
from jitlab.messages import Message
from jitlab.ops import control_flow
from jitlab.ops.random_draws import set_random_states
from jitlab.support.lazy import OfEach
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import Whole

from .piece_traces import (
    OTHERS,
    EndPiece,
    Failed,
    GivenOut,
    PieceTrace,
    StaticNeeded,
    failed_of,
    finish_piece,
    useless,
)
from .pieces import MISSING, MOST_TRACES, CellCapture, Executor
from .run_events import Observer, give_out
from .trace import Trace, outgrow, recorded_anew, usable

#: Reasons for which a part of the statement may still be captured.
_TAKEN_APART = frozenset({"effect", "value", "foreign_type", "dtype", "compiled_function"})
_RETIRED = Refusal("retraced", Message("refused.never_fits", {"times": MOST_TRACES}))
_SETTLED = Refusal("settled", Message("refused.loop_settled"))
_BUDGET, _OTHERS, _STOPPED = Refusal(*TOO_MUCH), Refusal(*OTHERS), Refusal(*STOPPED)
_WATCHED = Refusal("errstate", Message("refused.errstate"))
_RAISED = Refusal("error", Message("refused.raised_before"))
_HELPER = Refusal("compiled_function", Message("refused.helper"))
#: A statement whose capture ends with an error of the program's is captured again after twice as many runs each time, up to
#: this power of two.
MOST_DOUBLED = 12
#: Reasons that say nothing of a statement whose blocks are captured.
_TOLD_BY_PARTS = ("statement", "errstate")
_EMPTY: Mapping[str, Any] = {}
#: What np.errstate may ask for where code is compiled: it tells of no floating-point errors.
_QUIET = frozenset({"ignore", "warn"})


#: Of a container so many items say whether NumPy works on it, and so many where all of these are numbers, texts or lists.
LOOKED_AT, ALIKE = 50, 4
#: So deep lists, tuples and dicts are looked through.
DEEP = 20
#: What holds nothing that NumPy works on.
_NO_ARRAYS = frozenset({int, float, bool, str, bytes, complex, type(None)})
#: Of each part of a program the names that it reads.
_names_read: OfEach[frozenset[str]] = OfEach()

#: After each so many iterations of a loop it is asked whether its pieces pay; what was captured in so many of them is no sign.
ITERATIONS, CAPTURED_AT_FIRST = 32, 4
#: It is asked earlier where each of so many iterations in succession has captured something.
EARLY = 6
LOOPS = ast.For, ast.While
_COMPOUND = ast.If, ast.For, ast.While, ast.With, ast.Try
#: So often without a piece: what Python has not come to yet is no reason to go on.
WITHOUT_PIECES = 8
#: What it takes at the least to enter a piece, and to capture one.
ENTRY_NS, CAPTURE_NS = 10_000, 2_000_000


def pays(pieces: int, captured: int, python_ns: float) -> bool:
    """Is Python not twice as fast as entering and capturing pieces is at the least?"""
    return 2 * python_ns >= pieces * ENTRY_NS + captured * CAPTURE_NS


@dataclass
class Iterations:
    """The iterations of a loop in pieces, since it was last asked whether its pieces pay: how many pieces were entered in them,
    how often one was to be captured first, and what Python would have taken for the pieces by the model."""

    count: int = 0
    pieces: int = 0
    captured: int = 0
    python_ns: float = 0
    anew: int = 0  # iterations in which something was captured
    in_succession: int = 0  # of these the last ones
    without: int = 0  # how often in succession no piece was entered in so many
    is_python: bool = False  # those that follow in this run of the program are Python's

    def pay(self) -> bool:
        """Is Python not twice as fast as entering the pieces is at the least?"""
        return pays(self.pieces, max(0, self.captured - CAPTURED_AT_FIRST), self.python_ns)

    @property
    def is_useless(self) -> bool:
        """Is nothing that was captured in them of use to another one?"""
        return 2 * self.anew >= self.count if self.pieces else True


class _Iterator:
    """What a `for` goes through, asked for its iterator once: the iterations that are left go on with the same one."""

    iterator: Any = None

    def of(self, iterable: Any) -> _Iterator:
        self.iterable = iterable
        return self

    def __iter__(self) -> Any:
        if self.iterator is None:
            self.iterator, self.iterable = iter(self.iterable), None
        return self.iterator


def is_told_by_parts(statement: Statement, parts: Parts, reason: Refusal) -> bool:
    """Do the blocks of a loop, a branch or a `with` say all that there is to say of it?"""
    return statement.is_loop or isinstance(parts, Scoped) or (reason.source is None and reason.code in _TOLD_BY_PARTS)


def is_quiet() -> bool:
    """Is NumPy asked for nothing that compiled code does not do where it meets a floating-point error?"""
    return _QUIET.issuperset(np.geterr().values()) and not warnings_raise()


def warnings_raise() -> bool:
    """Is a floating-point warning an error, by the first filter that fits any, or by one for some of them before it?"""
    for action, message, category, module, _ in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None:
                return False
    return False


def _shown_by() -> Any:
    """Who gets to know of warnings, another one inside `warnings.catch_warnings(record=True)`."""
    return getattr(warnings, "_showwarnmsg_impl", None)


class Driver:
    """One run of a program. What a cell and a call do each in its own way: where names live, and how code runs around them."""

    replays = False  # what a loop has bound is found again where what it gives out ends half-way
    is_strict = False  # what cannot be traced is an error
    has_helped = False  # a statement that Python runs has called what runs in pieces of its own
    is_watched = False  # floating-point errors are to raise, or to be told of in another way: statements run on NumPy

    def __init__(
        self, program: Program, names: MutableMapping[str, Any], executor: Executor, observer: Observer, cells: Any = ()
    ) -> None:  # fmt: skip
        self.program, self.names, self.executor, self.observer = program, names, executor, observer
        self.cells = cells  # what lookups find the names in, where they are not a trace's own
        self.shown_by = _shown_by()
        self.scopes: list[Scoped] = []
        self.here = Segment()  # the statements that are run one after the other, innermost
        self.pieces_entered, self.pieces_captured, self.python_ns = 0, 0, 0.0  # of this run so far, as in Iterations
        self.loops: dict[int, Iterations] = {}
        self.made: list[PieceTrace] = []  # in this run
        self.has_left = False  # a loop to Python, of which no piece was of use to another iteration

    def ended(self) -> None:
        """It ran to its end."""
        for trace in self.made:
            trace.calls_at_first = trace.costs.all_calls
        is_useless = self.has_left and not pays(self.pieces_entered, self.pieces_captured, self.python_ns)
        self.observer.ended(self.pieces_entered, self.pieces_captured, 0.0 if is_useless else self.python_ns)

    def execute(self, code: types.CodeType) -> str:
        """Run a statement; how it ended: "", "break", "continue", "return"."""
        raise NotImplementedError

    def value(self, code: types.CodeType) -> Any:
        """Run an expression."""
        raise NotImplementedError

    def found(self, name: str) -> Any:
        """What a name stands for, None for nothing."""
        raise NotImplementedError

    def begun(self, *, static: bool) -> CellCapture:
        """A new capture, whose names are those of the run."""
        raise NotImplementedError

    def captured(self, capture: Any, statement: Statement) -> str:
        """Run a converted statement inside a capture; how it ended."""
        raise NotImplementedError

    def captured_value(self, capture: Any, code: types.CodeType) -> Any:
        """Run a converted expression inside a capture."""
        raise NotImplementedError

    def refuse(self, statement: Statement, reason: Refusal) -> None:
        """Raise where a statement that Python would have to run is an error."""

    def display(self, statement: Statement) -> None:
        """An expression whose value is displayed has run."""

    def look_at_errstate(self) -> None:
        """Python has run, and may have asked that errors of floating-point numbers are told of, or no more."""
        told = warnings_raise() or _shown_by() is not self.shown_by
        self.program.asks_for_warnings |= told
        self.is_watched = told or not _QUIET.issuperset(np.geterr().values())

    # ---- control flow
    def segment(self, segment: Segment) -> str:
        """"", or how it ended."""
        outer, self.here = self.here, segment.newest
        at = 0
        try:
            while at < len(self.here.statements):
                count, jump = self.piece(at)
                if jump:
                    return jump
                at += count
            return ""
        finally:
            self.here = outer

    def parts(self, parts: Parts) -> str:
        """Run a compound statement in parts; how it ended."""
        if parts.before.statements:
            self.segment(parts.before)
        match parts:
            case Jump():
                return parts.kind
            case Condition():
                return self.segment(parts.body if self.test(parts) else parts.orelse)
            case Wrapped():
                return self.wrapped(parts)
            case Scoped():
                self.scopes.append(parts)
                try:
                    return self.segment(parts.body)
                finally:
                    self.scopes.pop()
        assert isinstance(parts, Loop)
        iterations = self.loops.setdefault(id(parts), Iterations())
        while True:
            if iterations.is_python:
                return self.settled(parts.whole, parts.whole.plain())
            self.segment(parts.turn)
            if not self.test(parts):
                return self.segment(parts.orelse)
            jump = self.iteration(parts.body, iterations)
            if jump in (BREAK, RETURN):
                return jump if jump == RETURN else ""

    def iteration(self, body: Segment, iterations: Iterations) -> str:
        """Run the body of a loop once; how it ended. After some iterations it may be that those left are Python's."""
        pieces, captured, python_ns = self.pieces_entered, self.pieces_captured, self.python_ns
        jump = self.segment(body)
        iterations.count += 1
        iterations.pieces += self.pieces_entered - pieces
        iterations.captured += self.pieces_captured - captured
        iterations.python_ns += self.python_ns - python_ns
        has_captured = self.pieces_captured > captured
        iterations.anew += has_captured
        iterations.in_succession = iterations.in_succession + 1 if has_captured else 0
        if iterations.count == ITERATIONS or iterations.in_succession == EARLY:
            self.ask(body, iterations)
        return jump

    def ask(self, body: Segment, iterations: Iterations) -> None:
        """Are the iterations that are left Python's, since those so far have not paid?"""
        is_early = iterations.count < ITERATIONS
        if iterations.pieces or is_early:
            pays, iterations.without = iterations.pay(), 0
        else:
            iterations.without += 1
            pays = iterations.without < WITHOUT_PIECES and not self.only_python(body)
        if not pays and (self.observer.may_settle() or (iterations.is_useless and self.observer.leaves_loops())):
            iterations.is_python = True
            self.has_left |= iterations.is_useless
        if not is_early:
            iterations.count = iterations.pieces = iterations.captured = iterations.anew = 0
            iterations.python_ns = 0

    def settled(self, loop: Statement, code: types.CodeType) -> str:
        """Run the iterations of a loop that are Python's; how it ended."""
        began = events.moment()
        try:
            return self.execute(code)
        finally:
            self.observer.ran(loop, _SETTLED, began, events.moment())

    def only_python(self, segment: Segment) -> bool:
        """Is it known of each statement, those in its blocks too, that Python runs it?"""
        here = segment.newest
        return all(self._is_pythons(statement, at in here.retired) for at, statement in enumerate(here.statements))

    def _is_pythons(self, statement: Statement, is_retired: bool) -> bool:
        parts = statement.parts() if statement.plain_reason is not None or isinstance(statement.node, LOOPS) else None
        if parts is not None and id(parts) in self.loops and self.loops[id(parts)].is_python:
            return True
        if statement.plain_reason is None:
            return is_retired or not self.may_work(statement.node)
        return parts is None or all(map(self.only_python, parts.segments))

    def test(self, parts: Condition | Loop) -> bool:
        """Is a condition true?"""
        try:
            return bool(self.value(parts.test.code))
        finally:
            if parts.test.header:
                self.names.pop(parts.test.header, None)

    def wrapped(self, step: Wrapped) -> str:
        """Python runs the statement, and calls this for each of its blocks."""
        jump = ""
        iterations = self.loops.setdefault(id(step), Iterations())
        if iterations.is_python:
            return self.settled(step.whole, step.whole.plain())
        iterator = _Iterator()

        def called_back(number: int, *iterable: Any) -> Any:
            nonlocal jump
            if number == ITERATOR:
                return iterator.of(*iterable) if iterable else iterator
            error = sys.exc_info()[1]
            if number in step.handlers and error is not None:
                error.__traceback__ = cell_traceback(error.__traceback__)
                without_signals(error)
            self.look_at_errstate()
            if number == 0 and step.rest is not None:
                found = self.iteration(step.blocks[0], iterations)
                is_left = iterations.is_python and found not in (BREAK, RETURN)
                if is_left:
                    found = self.settled(step.whole, step.rest_code()) or jump
                jump = found if found == RETURN or is_left else ""
                return is_left or found in (BREAK, RETURN)
            found = self.segment(step.blocks[number])
            jump = found or jump  # a `finally` that does not jump itself lets the jump that it meets go on
            return bool(found)

        outer = self.names.get(BODY, MISSING)
        self.names[BODY] = called_back
        try:
            self.execute(step.code)
        finally:
            if outer is MISSING:
                del self.names[BODY]
            else:
                self.names[BODY] = outer
            self.look_at_errstate()
        return jump

    # ---- pieces
    def piece(self, at: int) -> tuple[int, str]:
        """Run a piece that starts at a statement, or that statement as Python; how many statements it was, and the jump."""
        statement = self.here.statements[at]
        if statement.header and not self.may_work(statement.node):
            return 1, self.execute(statement.plain())
        if self.is_watched:
            return self.uncaptured(at, _WATCHED)
        if statement.plain_reason is not None and (statement.is_whole or not self.take_apart(at)):
            return self.uncaptured(at, statement.plain_reason)
        if at in self.here.retired:
            return self.uncaptured(at, self.here.retired[at])
        for trace in usable(known := self.here.traces.get(at, [])):
            gathered = trace.gather(self.cells)
            if gathered is not None:
                return self.perform(trace, *gathered, at)
        for trace in usable(known):
            renewed = trace.renewed(self.cells)
            if renewed is not None and (gathered := renewed.gather(self.cells)) is not None:
                known[:] = [renewed if other is trace else other for other in known]
                return self.perform(renewed, *gathered, at)
        failed = failed_of(self.here.traces.get(at, ()), self.cells)
        if useless(failed) and self.observer.may_settle():
            self.here.retired[at] = _OTHERS
            return self.uncaptured(at, _OTHERS)
        if statement.waits and self.observer.may_settle():
            statement.waits -= 1
            return self.uncaptured(at, _RAISED)
        if here.effort is not None and not here.effort.begins():
            return self.uncaptured(at, _BUDGET)
        if here.wait is not None and here.wait.is_stopped:
            return self.uncaptured(at, _STOPPED)
        made, reason = self.capture(at, failed)
        if made is None:
            statement = self.here.statements[at]
            if reason.code in (_BUDGET.code, _STOPPED.code):  # of such calls, of this one
                return self.uncaptured(at, reason)
            statement.failures += 1
            if statement.is_loop or (statement.failures >= 2 and reason.code != "error"):
                statement.plain_reason = reason
            elif reason.code == _RAISED.code:
                statement.raised += 1
                statement.waits = 2 ** min(statement.raised, MOST_DOUBLED) if statement.raised >= 2 else 0
            return self.uncaptured(at, reason)
        self.here.statements[at].raised = 0
        known = self.here.traces.setdefault(at, [])
        recorded_anew(known, made)
        if len(known) > MOST_TRACES:
            self.here.retired[at] = _RETIRED
            known.clear()
        gathered = made.gather(self.cells)
        if gathered is None:
            return self.uncaptured(at, Refusal("value", CHANGES))
        return self.perform(made, *gathered, at)

    def perform(
        self, trace: PieceTrace, inputs: list[Any], numbers: tuple[Any, ...], at: int
    ) -> tuple[int, str]:
        states = trace.states(inputs)
        if here.wait is not None:
            here.wait.executable = trace.executable
        started = time.perf_counter_ns()
        refusal: Exception | None = None
        given: GivenOut = ()
        try:
            given = trace.perform(inputs, numbers, self.cells)
        except Exception as error:
            if self.is_strict and isinstance(error, InternalError):
                raise
            refusal = error
        if refusal is not None:  # below `except`: what Python raises now has no other error behind it
            set_random_states(states)
            reason = reason_of_run(refusal)
            outgrow(self.here.traces.get(at, []), trace, reason)
            return self.replace(at, trace.length, reason._replace(fell_back=True, again=trace.is_outgrown))
        give_out(given, self.names, self.replay)
        last = self.here.statements[at + trace.length - 1]
        if last.is_display or last.group is not None:
            self.done(last)
        self.pieces_entered += 1
        self.python_ns += trace.python_ns
        if not trace.is_silent:
            self.observer.called(trace, started)
        return trace.length, trace.jump

    def replay(self, loop: Statement, sources: Sequence[Source], count: int) -> None:
        """Of what a loop gives out so many statements have begun: bind its names to what they were then."""

    def replace(self, at: int, length: int, reason: Refusal) -> tuple[int, str]:
        """Run the statements of a piece that failed as Python. When one of them raises, it alone is the one to tell of."""
        ran: list[tuple[Statement, Refusal | None, events.Moment, events.Moment]] = []
        count, jump = 0, ""
        try:
            while count < length and not jump:
                statement = self.here.statements[at + count]
                count += 1
                if statement.step is not None and statement.step.exposed:  # it may change what the statement reads later
                    while self.here.statements[at + count - 1].step is not None:
                        count += 1
                    statement = statement.rest()
                if self.is_strict:
                    self.refuse(statement, reason)
                began, self.has_helped = events.moment(), False
                try:
                    jump = self.execute(statement.plain())
                except Exception as error:
                    explanations.add_note(error)
                    if reason.code == "error":
                        ran.clear()
                        reason = Refusal("error", explanations.said_of(error))
                    raise
                finally:
                    ran.append((statement, _HELPER if self.has_helped else None, began, events.moment()))
                if statement.is_display or statement.group is not None:
                    self.done(statement)
        finally:
            for statement, its_own, began, ended in ran:
                self.observer.ran(statement, its_own or reason, began, ended)
        return count, jump

    def note_helper(self, statement: Statement, helper: Any) -> None:
        """A statement cannot be traced: if it is for a function that it calls, that one runs in pieces of its own."""
        if helper is not None and not self.is_strict and self.program.helpers.add(helper, self.observer.helper):
            statement.ask_for_helpers()

    def helper(self, called: Any) -> Any:
        """What is called where a statement that Python runs calls this."""
        function = called.__func__ if type(called) is types.MethodType else called
        known = self.program.helpers.get(function, self.observer.helper) if isinstance(function, types.FunctionType) else None
        if known is None:
            return called
        helper, self.has_helped = known.run, True
        if not helper.is_python:  # whether it pays to compile it is decided for itself
            self.pieces_entered += 1
            self.python_ns += ENTRY_NS
        return helper if function is called else types.MethodType(helper, called.__self__)

    def uncaptured(self, at: int, reason: Refusal) -> tuple[int, str]:
        """Run a statement that is not captured: in parts where it has some, else as Python."""
        statement = self.here.statements[at]
        parts = statement.parts()
        if parts is None:
            return self.replace(at, 1, reason)
        if not is_told_by_parts(statement, parts, reason):
            self.observer.ran(statement, reason, events.moment())
        return 1, self.parts(parts)

    def done(self, statement: Statement) -> None:
        """A statement ran: what it gives is displayed, the names of its steps go."""
        if statement.is_display:
            self.display(statement)
        if statement.group is not None and statement.step is None:
            for name in statement.group.names:
                self.names.pop(name, None)

    def take_apart(self, at: int, assigned: Mapping[str, Any] = _EMPTY) -> bool:
        """Put the steps of a statement in its place, when there is NumPy work in them."""
        statement = self.here.statements[at]
        if statement.is_whole:
            return False
        steps = statement.split()
        works = steps is not None and any(s.step is not None and self.may_work(s.step.value, assigned) for s in steps)
        statement.is_whole = True
        if steps is None or not works:
            return False
        if self.here.newer is not None:  # another run was quicker
            return False
        self.here = self.here.with_steps(at, steps)
        return True

    def may_work(self, node: ast.AST, assigned: Mapping[str, Any] = _EMPTY) -> bool:
        """Does it read anything that NumPy could work on?"""
        return any(
            holds_arrays(assigned[name] if name in assigned else self.found(name)) or name.startswith(TEMPORARY)
            for name in _names_read.of(node, _read_by, node)
        )

    # ---- capture
    def capture(self, at: int, failed: Failed) -> tuple[PieceTrace | None, Refusal]:
        """Capture statements from `at` on as far as it goes; the trace of none is None, with the reason."""
        self.pieces_captured += 1
        with Costs().spending():
            try:
                return self._capture(at, failed, static=False)
            except StaticNeeded:
                return self._capture(at, failed, static=True)

    def _capture(self, at: int, failed: Failed, *, static: bool) -> tuple[PieceTrace | None, Refusal]:
        started = time.perf_counter_ns()
        capture = self.begun(static=static)
        length, jump, reason = 0, "", Refusal("", Message("refused.raised", {"text": ""}))
        trace: PieceTrace | None = None
        with Whole(), capture.recording(), ExitStack() as stack:
            for scope in self.scopes:
                for code in scope.contexts:
                    stack.enter_context(self.captured_value(capture, code))
            capture.root.deciding.clear()  # whether a scope meets an edge is not for one of its pieces to say
            while at + length < len(self.here.statements) and not jump:
                statement = self.here.statements[at + length]
                if statement.plain_reason is not None and self.take_apart(at + length, capture.assigned):
                    continue
                if statement.plain_reason is not None or (
                    statement.header and not self.may_work(statement.node, capture.assigned)
                ):
                    break
                marked = capture.mark()
                capture.helper = None
                capture.made_now.clear()
                try:
                    if here.wait is not None:
                        here.wait.captured(at + length, len(self.here.statements))
                    jump = self._captured(capture, statement, marked[1][0])
                except StaticNeeded:
                    raise
                except Exception as error:
                    capture.rollback(marked)
                    capture.refused = None
                    if self.is_strict and not length and isinstance(error, InvalidArgumentError):
                        raise
                    reason = reason_of(error)
                    self.note_helper(statement, capture.helper)
                    if reason.code in _TAKEN_APART and self.take_apart(at + length, capture.assigned):
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
                capture.effort = None  # it ends here
                self.program.trace_count = self.next_number()
                trace = finish_piece(capture, length, self.program.trace_count)
                trace.jump = jump
        capture.close()
        capture.forget()
        if trace is None:
            return None, reason
        if not trace.graph.nodes:  # Python alone: nothing to compile, nothing to tell
            if not (trace.outputs or trace.writes or trace.jump or trace.effects):
                return None, reason if reason.code else Refusal("effect", Message("refused.nothing"))
            trace.is_silent, trace.run = True, interpreted(trace)
            return trace, reason
        trace.near = [other.executable for other in self.here.traces.get(at, ())]
        trace.run = self.executor(trace)
        self.made.append(trace)
        self.observer.traced(trace, failed, started)
        return trace, reason

    def next_number(self) -> int:
        """Of the trace that is made now."""
        return self.program.trace_count + 1

    def _captured(self, capture: CellCapture, statement: Statement, before: dict[str, Any]) -> str:
        """Run a statement inside the capture; `before` is what was assigned before it."""
        count = len(capture.graph.nodes)
        capture.only_rolled = statement.is_loop
        capture.is_simple = not isinstance(statement.node, _COMPOUND)
        capture.loop = statement if statement.is_loop and self.replays else None
        jump = self.captured(capture, statement)
        capture.check_copies()
        if capture.putting is not None:
            capture.putting.check()
        if capture.refused is not None:  # the program caught it
            raise capture.refused
        if statement.is_loop and not any(isinstance(n.op, control_flow.Loop) for n in capture.graph.nodes[count:]):
            raise EndPiece("value", "pythons_iterations")
        for name, value in capture.assigned.items():
            if before.get(name, MISSING) is not value:
                capture.structure().of(value)  # what can't be given back ends the piece before it
        return jump


def _read_by(node: ast.AST) -> frozenset[str]:
    """The names that it reads."""
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))


def holds_arrays(x: Any, depth: int = 0) -> bool:
    """Is it something that NumPy works on, or that calls NumPy? What is so deep that it may hold itself may be."""
    kind = type(x)
    if kind in _NO_ARRAYS:
        return False
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        return True
    if isinstance(x, types.ModuleType):
        return x.__name__.split(".")[0] in ("numpy", "scipy", "jitlab")
    if isinstance(x, (types.FunctionType, types.MethodType)):
        return is_user_file(x.__code__.co_filename)
    if isinstance(x, (list, tuple, dict)):
        return depth >= DEEP or _are_arrays_among(x, depth + 1)
    return not isinstance(x, type) and is_user_class(kind)


def _are_arrays_among(container: list[Any] | tuple[Any, ...] | dict[Any, Any], depth: int) -> bool:
    """Is one of its first items something that NumPy works on? Of items that are alike a few say what the others are."""
    items = list(islice(container.values() if isinstance(container, dict) else container, LOOKED_AT))
    first = type(items[0]) if items else int
    if first in (*_NO_ARRAYS, list, tuple) and all(type(item) is first for item in items):
        items = items[:ALIKE]
    return any(holds_arrays(item, depth) for item in items)


def is_user_class(kind: type) -> bool:
    """A class of the user's program, not one of a library."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (kind.__module__ != "builtins" and is_user_file(file or ""))


def interpreted(trace: Trace) -> Callable[[Sequence[Any]], list[Any]]:
    """The executor that runs a graph op by op on NumPy; of one without operations it hands on what the graph gives."""
    if not trace.graph.nodes:
        at = [trace.graph.parameters.index(node) for node in trace.graph.outputs]
        return lambda inputs: [inputs[number] for number in at]
    return lambda inputs: interpret(trace.graph, inputs)

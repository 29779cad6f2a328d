"""A notebook cell in pieces. Its names live in the user's namespace, and what its last expression gives is displayed.

After a cell the namespace is what plain Python would have left: outputs are assigned, arrays written in place, views of the
user's arrays are views of them.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import io
import pickle
import threading
import types
from collections.abc import Callable, Sequence
from enum import Enum
from types import TracebackType
from typing import Any

from jitlab import events
from jitlab.capture.effort import Effort, at_most
from jitlab.capture.hooks import HOOKS
from jitlab.capture.positions import cell_traceback, describe, without_signals
from jitlab.capture.refusals import Refusal
from jitlab.capture.rewrite.cell_code import DONE, WAITS, CellProgram, Compiler
from jitlab.capture.rewrite.flow_rewrite import HOOK
from jitlab.capture.rewrite.helper_calls import HELPER
from jitlab.capture.rewrite.piece_statements import RESULT, Segment, Statement
from jitlab.capture.rewrite.recursion_limit import room_for
from jitlab.config import NEVER, config
from jitlab.errors import CaptureError, Signal
from jitlab.events import current_cell
from jitlab.ir import Source
from jitlab.support.transactions import quietly, under_way

from .driver import Driver
from .piece_traces import Namespace
from .pieces import CellCapture, Executor, Names
from .run_events import Observer

#: Cells whose traces are kept for the next time they are run, and of one cell its newest sources.
MOST_PROGRAMS, MOST_SOURCES = 256, 4
#: How the names begin that only stand in the namespace while a cell runs.
OURS = "__jl_"
#: What says where a statement stands: its first and last line and column.
PLACE = 4
#: Reasons for which --strict lets Python run a statement.
_NOTHING_LOST = ("statement", "effect", "compiled_function", "error")


class Settles(Enum):
    """When a cell, or a loop of it, may be Python's because that takes less time. RERUN: not in the first run of a text."""

    NEVER, RERUN, ALWAYS = range(3)


class CellObserver(Observer):
    """Tells the listeners of events what a run of a cell does, and says which way it goes. `settles`: may runs of this cell be
    Python's because that takes less time? `is_asked`: somebody asks for this one to be captured. `options`: how compiled."""

    settles, is_asked, options = False, True, ""

    def may_settle(self) -> bool:
        return not self.is_asked and config.settle != NEVER

    def leaves_loops(self) -> bool:
        return self.settles and config.settle != NEVER

    def run(self, run: CellRun) -> None:
        """Run a cell that does not wait."""
        with at_most(self.limit()):
            run.captured_as_far_as_it_goes()

    def limit(self) -> Effort | None:
        """What captures may take; None: what they need."""
        return Effort() if self.may_settle() else None


class CellRun(Driver):
    """One run of a cell."""

    program: CellProgram
    names: Namespace
    replays = True

    def __init__(
        self, program: CellProgram, names: Namespace, executor: Executor, observer: Observer, *, title: str, strict: bool,
        show: Callable[[Any], object],
    ) -> None:  # fmt: skip
        super().__init__(program, names, executor, observer)
        self.title, self.is_strict, self.show = title, strict, show
        self.thread = threading.get_ident()

    def __enter__(self) -> None:
        under_way.add(self)
        self.names.setdefault("__builtins__", builtins)
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
        with contextlib.suppress(TypeError):  # a name that is no text
            if OURS not in "\n".join(self.names):  # as nearly always: the namespace may have thousands
                return
        for name in [name for name in self.names if isinstance(name, str) and name.startswith(OURS)]:
            del self.names[name]

    def captured_as_far_as_it_goes(self) -> None:
        """The whole cell, which does not wait."""
        self.segment(self.program.segment)
        self.ended()

    def plain(self) -> None:
        """The whole cell, which does not wait, as Python."""
        for statement in self.program.statements:
            exec(statement.plain(), self.names)
            self.done(statement)

    def found_before(self) -> dict[str, Any]:
        """What the names hold that the cell reads."""
        return {name: self.names[name] for name in sorted(self.program.names_read) if name in self.names}

    async def top(self, segment: Segment) -> None:
        """The whole cell; its statements may wait."""
        self.here, at = segment.newest, 0
        while at < len(self.here.statements):
            statement = self.here.statements[at]
            if statement.plain_reason is WAITS:
                await self.wait(statement)
                at += 1
            else:
                at += self.piece(at)[0]

    async def wait(self, statement: Statement) -> None:
        """Run a statement that waits."""
        began = events.moment()
        code = statement.plain()
        try:
            waiting = eval(code, self.names)
            if inspect.iscoroutine(waiting):
                await waiting
        finally:
            self.observer.ran(statement, WAITS, began)
        self.look_at_errstate()
        self.done(statement)

    def execute(self, code: types.CodeType) -> str:
        if HELPER in code.co_names:
            self.names[HELPER] = self.helper
        exec(code, self.names)
        self.look_at_errstate()
        return ""

    def replay(self, loop: Statement, sources: Sequence[Source], count: int) -> None:
        places, left = {(source.line, source.column) for source in sources}, count

        def is_done(*place: int) -> bool:
            nonlocal left
            if place not in places:
                return False
            left -= 1
            if not left:
                raise _Reached
            return True

        if count:
            self.names[DONE] = is_done
            with contextlib.suppress(Exception):
                quietly(exec)(self.program.replay_code(loop), self.names)
            self.names.pop(DONE, None)

    def value(self, code: types.CodeType) -> Any:
        value = eval(code, self.names)
        self.look_at_errstate()
        return value

    def found(self, name: str) -> Any:
        return self.names.get(name)

    def display(self, statement: Statement) -> None:
        self.show(self.names.pop(RESULT))

    def refuse(self, statement: Statement, reason: Refusal) -> None:
        if reason.code in _NOTHING_LOST:
            return
        whole = statement.node if statement.group is None else statement.group.original
        error = CaptureError(
            f"`{ast.unparse(whole).split(chr(10))[0]}` cannot be traced, and --strict leaves nothing to NumPy.",
            where=describe(statement.source), why=str(reason.said), hint="take it out of the cell, or leave --strict away",
        )  # fmt: skip
        exec(self.program.raising(statement.node), {"error": error})

    # ---- capture
    def next_number(self) -> int:
        """Traces are told apart by the cell's title and their number: others of the same cell (`%jit` lines) have theirs."""
        programs = [program for program in list(_programs.values()) if program.title == self.title]
        return 1 + max(program.trace_count for program in (self.program, *programs))

    def begun(self, *, static: bool) -> CellCapture:
        capture = CellCapture(self.title, self.names, strict=self.is_strict, static=static)
        self.locals = Names(capture)
        return capture

    def captured(self, capture: CellCapture, statement: Statement) -> str:
        exec(statement.converted(), {HOOK: HOOKS, "__builtins__": builtins}, self.locals)
        return ""

    def captured_value(self, capture: CellCapture, code: types.CodeType) -> Any:
        return eval(code, {HOOK: HOOKS, "__builtins__": builtins}, self.locals)


class _Reached(Signal):
    """A loop that is gone through once more has come to where it ended."""


_programs: dict[Any, CellProgram] = {}  # those of the last runs, the newest last; for any number of threads


async def run_nodes(
    nodes: list[ast.stmt], namespace: Namespace, filename: str, *, shown: str, compiler: Compiler,
    display: Callable[[Any], object], strict: bool, executor: Executor, title: str,
    settles: Settles = Settles.NEVER, observer: CellObserver | None = None,
) -> None:  # fmt: skip
    """Run the statements of a cell in the user's namespace, captured as far as they go. They may wait; only then does this
    coroutine.

    `shown` is IPython's word for which statements display what expressions give, `compiler` its compiler; `executor(trace)`
    gives what runs a trace's graph. `settles`: when the cell, or iterations of its loops, may run as Python because that takes
    less time.
    """
    observer = observer or CellObserver()
    key = (_text_of(nodes), filename, shown, strict, observer.options)
    known = _programs.get(key)
    with room_for(*nodes) if known is None else room_for(needed=known.room) as room:
        first_line = nodes[0].lineno if nodes else 1
        program = _program(key, namespace, first_line, lambda: CellProgram(nodes, filename, namespace, shown, compiler))
        program.room = room.needed
        observer.settles = settles is not Settles.NEVER
        observer.is_asked = not (settles is Settles.ALWAYS or (settles is Settles.RERUN and program.has_run))
        run = CellRun(program, namespace, executor, observer, title=title, strict=strict, show=display)
        program.has_run, program.title = True, title
        with run:
            if program.waits:
                with at_most(observer.limit()):
                    await run.top(program.segment)
            else:
                observer.run(run)


#: Contexts and operators, of which Python has one object each: what others note at it, as tracebacks do, is no part of a cell.
_SINGLE: dict[type, Callable[[Any], Any]] = {
    kind: lambda node: (type(node), ())
    for base in (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    for kind in base.__subclasses__()
}


def _text_of(nodes: list[ast.stmt]) -> bytes | str:
    """What is equal for statements that are equal and stand at the same places. C writes it, but for nodes of other classes,
    deep trees, and those at which somebody has noted something."""
    if all(len(vars(node)) <= len(node._fields) + PLACE for node in nodes):
        with contextlib.suppress(Exception):
            written = io.BytesIO()
            pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
            pickler.dispatch_table = _SINGLE
            pickler.dump(nodes)
            return written.getvalue()
    with room_for(*nodes):
        return ast.dump(ast.Module(nodes, []), include_attributes=True)


def _forget(program: CellProgram) -> None:
    """The next run of the cell reads it anew."""
    for key, known in list(_programs.items()):
        if known is program:
            _programs.pop(key, None)


def _program(key: Any, namespace: Namespace, first_line: int, make: Callable[[], CellProgram]) -> CellProgram:
    """The program of a cell, the one of its last run when nothing else has its name."""
    program = _programs.pop(key, None)
    is_new = program is None or program.namespace is not namespace
    if program is None or is_new:
        program = make()
        program.place = current_cell() or program.filename, first_line
    _programs[key] = program
    if is_new:
        sources = [key for key, known in list(_programs.items()) if known.place == program.place]
        for old in [*sources[:-MOST_SOURCES], *list(_programs)[:-MOST_PROGRAMS]]:
            _programs.pop(old, None)
    return program

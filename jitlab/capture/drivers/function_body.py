"""A call in pieces: the body of a function that cannot be traced whole, statement by statement.

The local names of a call are cells, so that a statement, captured or not, is a function around them: what it defines or leaves
behind sees the very names that it would see.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from jitlab.capture.hooks import HOOKS
from jitlab.capture.rewrite.body_code import Body, Cells, Frame
from jitlab.capture.rewrite.convert import find_definition
from jitlab.capture.rewrite.flow_rewrite import HOOK, looks_at_frames
from jitlab.capture.rewrite.helper_calls import HELPER
from jitlab.capture.rewrite.piece_statements import RESULT, RETURN, Statement
from jitlab.capture.state import Capture
from jitlab.capture.tracers.arrays import Place
from jitlab.support import trees
from jitlab.support.transactions import contextmanager

from .calls import CallCapture
from .driver import Driver
from .helpers import under_way
from .piece_traces import PieceTrace, Receiver, may_receive
from .pieces import MISSING, Executor
from .run_events import Observer
from .trace import NOTHING


class BodyCapture(CallCapture):
    """A capture whose names are those of a call under way."""

    trace_class: type[PieceTrace] = PieceTrace
    own_functions = 1

    def __init__(self, program: Body, frame: Frame, *, static: bool) -> None:
        super().__init__(program.name, strict=False, static=static)
        self.program, self.frame = program, frame

    @contextmanager
    def recording(self) -> Iterator[Capture]:
        with super().recording(), self.inside(self.program.function):
            yield self

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
        return self.read(self.frame, name, lambda: cell.cell_contents, "local")

    def received_local(self, name: str, uses: Sequence[Any]) -> Any:
        """The same for one that a statement only gives something to."""
        value = MISSING if name in self.assigned else self.frame.get(name, MISSING)
        if not may_receive(value, uses):
            return self.local(name)
        place = Place(self.code_in(self.frame, name), lambda: value, "local")
        return self.received_under((id(self.frame), f"receiver {name}"), Receiver(value, place, name))

    def forget(self) -> None:
        super().forget()
        self.frame = Frame(())  # what the call's names hold goes when it returns

    def code_in(self, table: Any, name: str) -> str:
        return f"a[{name!r}].cell_contents" if table is self.frame else super().code_in(table, name)


class _Run(Driver):
    """One call of a body."""

    program: Body
    names: Frame

    def _called(self, code: types.CodeType) -> Any:
        """Run the function that a statement is."""
        unbound: NameError | None = None
        try:
            return self._function(code, self.cells)()
        except NameError as error:
            if not str(error).startswith("cannot access free variable") or error.name not in self.program.locals:
                raise
            unbound = error
        # to the user it is a local name of the function
        text = f"cannot access local variable {unbound.name!r} where it is not associated with a value"
        raise UnboundLocalError(text, name=unbound.name).with_traceback(unbound.__traceback__)

    def _function(self, code: types.CodeType, cells: Cells) -> types.FunctionType:
        body = self.program
        closure = []
        for name in code.co_freevars:
            if name in (HOOK, HELPER):
                closure.append(types.CellType(HOOKS if name == HOOK else self.helper))
            else:
                cell = cells.get(name) or cells.get(body.unmangled(name)) or body.free.get(name)
                closure.append(cell or cells[name])
        return types.FunctionType(code, body.function.__globals__, body.name, (), tuple(closure))

    def execute(self, code: types.CodeType) -> str:
        result = self._called(code)
        self.look_at_errstate()
        return "" if result is None else _ended(result, self.names)

    def value(self, code: types.CodeType) -> Any:
        result = self._called(code)[0]
        self.look_at_errstate()
        return result

    def found(self, name: str) -> Any:
        if name in self.program.locals:
            return self.names.get(name)
        cell = self.program.free.get(name)
        try:
            return self.program.function.__globals__.get(name) if cell is None else cell.cell_contents
        except ValueError:
            return None

    def begun(self, *, static: bool) -> BodyCapture:
        return BodyCapture(self.program, self.names, static=static)

    def captured(self, capture: BodyCapture, statement: Statement) -> str:
        result = self._captured_call(capture, statement.converted(), self.program.reads(statement.node), statement.received)
        return _ended(result, capture.assigned)

    def captured_value(self, capture: BodyCapture, code: types.CodeType) -> Any:
        return self._captured_call(capture, code, sorted(self.program.own(code.co_freevars)))[0]

    def _captured_call(
        self, capture: BodyCapture, code: types.CodeType, reads: list[str], received: Any = NOTHING
    ) -> Any:
        """Run converted code on cells of its own, filled with what the capture makes of the local names."""
        cells = Cells({name: types.CellType() for name in self.program.locals})
        found: dict[str, Any] = {}
        for name in reads:
            value = capture.received_local(name, received[name]) if name in received else capture.local(name)
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


def _ended(result: Any, names: MutableMapping[str, Any]) -> str:
    """How a statement ended that gave this: None, a jump's name, or (what is returned,)."""
    if isinstance(result, tuple):
        names[RESULT] = result[0]
        return RETURN
    return result or ""


def body_of(function: types.FunctionType) -> Body | None:
    """The body of a function in statements; None when Python alone can run it: no source, a generator, a look at its frame."""
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    found = find_definition(function)
    if found is None or looks_at_frames([found[0]]):
        return None
    if any(isinstance(node, ast.Name) and node.id == "UnboundLocalError" for node in trees.walk(found[0])):
        return None  # it may look at what the error of a name that is not bound says
    return Body(function, *found)


def run_body(body: Body, arguments: dict[str, Any], executor: Executor, observer: Observer) -> Any:
    """Call a function in pieces."""
    frame = Frame(body.locals)
    for name, value in arguments.items():
        frame[name] = value
    run = _Run(body, frame, executor, observer, frame.cells)
    with under_way(body.function):
        run.segment(body.segment)
    run.ended()
    return frame.get(RESULT)


__all__ = ["Body", "body_of", "run_body"]

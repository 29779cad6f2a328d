"""Checks of values that only a run knows: `assert`, loops that have to iterate, and what raises in a side of a branch."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.numpy_calls.explanations import is_our_fault
from jitlab.capture.numpy_calls.host_fallback import NotReplayable, rehearsing
from jitlab.capture.positions import describe, entries, here, is_converted
from jitlab.errors import AssertionFailedError, InvalidArgumentError, JitlabError, ShapeError, Signal
from jitlab.ir import ArrayType, Graph, Node
from jitlab.messages import Message
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.elementwise.comparison import LogicalNot
from jitlab.ops.host_operations import HostCall
from jitlab.ops.host_operations import Input as Slot
from jitlab.ops.runtime_checks import Check

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

_BOOL = ArrayType((), np.dtype(bool))


def add_check(capture: Capture, holds: Node, message: Callable[[], Any] | None) -> None:
    """`assert holds, message`, asked at each run, in program order."""
    text = "" if message is None else str(message())
    where = describe(here())

    def failed() -> Exception:
        return AssertionFailedError(text or "assertion failed", where=where)

    apply(_call(_Check("assert", failed), "checks_assert"), holds)


def never_runs(name: str, where: str) -> InvalidArgumentError:
    """What a loop without an iteration answers, of a name that it alone gives."""
    return InvalidArgumentError(
        f"loop must iterate at least once to initialize {name}", where=where,
        why=f"{name} has no value before the loop, and is used after it", hint=f"give {name} a value before the loop",
    )  # fmt: skip


def add_run_check(capture: Capture, runs: Node, name: str) -> None:
    """A loop that gives a name has to iterate."""
    where = describe(here())

    def failed() -> Exception:
        return never_runs(name, where)

    apply(_call(_Check("loop_runs", failed), "checks_turns"), runs)


class AlwaysRaises(Signal):
    """Whichever way the program goes from here, it raises: the operations that do so have been recorded."""


def belongs_to_program(capture: Capture, error: Exception) -> bool:
    """Would Python raise it, too, where the program gets to it? Else recording has met something of its own."""
    if isinstance(error, (JitlabError, Signal, RecursionError, MemoryError)):
        return isinstance(error, ShapeError)
    if hasattr(error, "_jitlab_said"):
        return True
    if capture.policy.wants_bools:
        return not is_our_fault(error)
    found = entries(error.__traceback__)  # where a call may go in pieces: what the program itself raises
    return bool(found) and is_converted(found[-1].tb_frame.f_code)


def add_raise(capture: Capture, error: Exception, taken: Node, side: bool) -> None:
    """Where the side of a branch that is taken when `taken` is `side` raises: asked at each run, in program order."""
    if capture.guarded:
        raise NotReplayable("value", "chosen_raise") from None
    if not isinstance(error, AlwaysRaises):
        capture.given.raised(error)
        apply(Check(_Raised(error)), cast(taken if side else apply(LogicalNot(), taken), np.dtype("i8")))


def raises_behind_checks(capture: Capture, error: Exception) -> bool:
    """The program raises this whatever its arguments hold, unless it has raised before for what they hold: the run decides."""
    raises = isinstance(error, AlwaysRaises) or belongs_to_program(capture, error)
    if not raises or not _has_checks(capture.graph):
        return False
    add_raise(capture, error, constant(np.True_), True)
    return True


def _has_checks(graph: Graph) -> bool:
    return any(isinstance(n.op, Check) or any(map(_has_checks, getattr(n.op, "graphs", ()))) for n in graph.nodes)


def has_effects(capture: Capture) -> bool:
    """Has it recorded what a call that Python takes over from its beginning would do again?"""
    graphs = (capture.root, *(block.graph for block in capture.blocks))
    return bool(capture.assigned_at) or any(_does_more(n.op) for graph in graphs for n in graph.nodes)


def _does_more(op: Any) -> bool:
    """Does it print, or call a function of the user's? (Random generators begin again where they were.)"""
    if isinstance(op, HostCall):
        return op.effects and op.code not in ("check", "stateful_random")
    return any(_does_more(n.op) for graph in getattr(op, "graphs", ()) for n in graph.nodes)


class _Raised:
    """An exception of the program's, made anew for each run, with the line that raised it."""

    def __init__(self, error: Exception) -> None:
        frames = [entry for entry in entries(error.__traceback__) if is_converted(entry.tb_frame.f_code)]
        self.error = error.with_traceback(None)
        self.error.__context__ = None
        self.error._jitlab_said = True  # type: ignore[attr-defined]
        self.code = _raising(frames[-1].tb_frame.f_code, frames[-1].tb_lineno) if frames else None

    def __call__(self) -> Exception:
        try:
            error = copy.copy(self.error)
        except Exception:  # it cannot be copied: its constructor wants something else
            error = self.error.with_traceback(None)
        if self.code is None or type(error) is not type(self.error):
            return error
        try:
            exec(self.code, {"error": error})
        except Exception as raised:
            return raised
        return error


def _raising(code: CodeType, line: int) -> CodeType:
    """`raise error` on the user's line."""
    raising = ast.Raise(ast.Name("error", ast.Load()))
    for part in ast.walk(raising):
        if "lineno" in part._attributes:
            part.lineno = part.end_lineno = line  # type: ignore[attr-defined]
            part.col_offset = part.end_col_offset = 0  # type: ignore[attr-defined]
    made = compile(ast.Module([raising], []), code.co_filename, "exec", dont_inherit=True)
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _call(function: Callable[..., Any], row: str) -> HostCall:
    return HostCall(function, (Slot(0),), {}, (_BOOL,), "check", Message(f"stays.{row}"), effects=True)


class _Check:
    def __init__(self, name: str, failed: Callable[[], Exception]) -> None:
        self.__name__ = name
        self.failed = failed

    def __call__(self, holds: Any) -> Any:
        if not holds and rehearsing.get() is None:
            raise self.failed()
        return np.True_


__all__ = ["AlwaysRaises", "add_check", "add_raise", "add_run_check", "belongs_to_program", "has_effects"]

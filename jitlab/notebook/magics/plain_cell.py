"""A cell's own statements, run once more: by plain Python, what a user without jitlab would have waited for; and captured, as
jitlab runs them."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

from jitlab import events
from jitlab.api.check.replaying import NEVER_NS, NOTHING, Stopwatch, Took, TooMuch
from jitlab.api.check.world import PLAIN, ActsOutsideError, World, holding_back
from jitlab.api.functions.dispatch import as_python
from jitlab.api.settling import untried
from jitlab.capture.positions import codes
from jitlab.capture.rewrite.cell_code import waits
from jitlab.capture.rewrite.liveness import read_before_bound
from jitlab.messages import text, units
from jitlab.messages.escape import clean
from jitlab.support.limits import OutOfTimeError, within

from .put_back import not_put_back


class PlainCell:
    """Statements that may be run again and again, each time on what they found when this was made. What they change is put
    back afterwards. `captured` runs them as jitlab does; None: jitlab compiles no more of them than the functions that they
    call. TooMuch, ActsOutsideError: that cannot be done."""

    def __init__(
        self, nodes: Sequence[ast.stmt], filename: str, namespace: dict[str, Any], limit: int,
        captured: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._code = compile(ast.Module(list(nodes), []), filename, "exec")
        self._names = sorted({name for code in codes(self._code) for name in code.co_names})
        self._namespace, self._limit, self._captured = namespace, limit, captured
        self._before = self._world()
        self.trial = NOTHING  # the first run, or as much of it as there was time for

    @classmethod
    def of(
        cls, nodes: Sequence[ast.stmt], filename: str, namespace: dict[str, Any], limit: int,
        captured: Callable[[], None] | None = None,
    ) -> PlainCell | str:  # fmt: skip
        """The text, a clause: why the statements cannot run again."""
        if any(map(waits, nodes)):
            return _cannot("they wait")
        try:
            return cls(nodes, filename, namespace, limit, captured)
        except (TooMuch, ActsOutsideError, SyntaxError) as error:
            return _cannot(error)

    @contextmanager
    def again(
        self, with_python: bool = False, limit_ns: int = NEVER_NS, is_due: Callable[[], bool] = lambda: False
    ) -> Iterator[str | None]:
        """Inside, `run` may be called, where the value is "", else it says why not; None: a first run took longer than the
        limit, or was interrupted, and was ended. Afterwards everything is as it was. `with_python`: jitlab leaves some of the
        statements to Python, and `run_captured` may be called, too."""
        try:
            after = self._world()
        except (TooMuch, ActsOutsideError) as error:
            yield _cannot(error)
            return
        if with_python and (why := not_put_back(self._code, self._before, after)):
            yield _cannot(why)
            return
        try:
            yield self._why_not(with_python, limit_ns, is_due)
        finally:
            after.put_back()

    def run(self) -> Took:
        """Run the statements once by NumPy; what that took."""
        return self._timed(lambda: exec(self._code, self._namespace), as_python())

    def run_captured(self) -> Took:
        """The same as jitlab runs them. They have run by NumPy before, and did nothing outside."""
        captured = self._captured
        return self._timed(captured or partial(exec, self._code, self._namespace), untried(), refuses=False)

    @property
    def is_uncaptured(self) -> bool:
        """Are they an ordinary cell's?"""
        return self._captured is None

    def _timed(self, run: Callable[[], object], way: AbstractContextManager[Any], refuses: bool = True) -> Took:
        self._before.put_back()
        with events.muted(), holding_back(refuses), way:
            taken = Stopwatch()
            run()
            return taken.took()

    def _why_not(self, with_python: bool, limit_ns: int, is_due: Callable[[], bool]) -> str | None:
        is_ended = False

        def bounded() -> None:
            nonlocal is_ended
            try:
                within(lambda: exec(self._code, self._namespace), limit_ns, is_due)
            except (OutOfTimeError, KeyboardInterrupt):
                is_ended = True

        try:
            self.trial = self._timed(bounded, as_python())
            if with_python and not is_ended:
                self.run_captured()
        except ActsOutsideError as error:
            return _cannot(error)
        except Exception:  # whatever stops it: a second run does something else
            return text("speed.other_path")
        return None if is_ended else ""

    def _world(self) -> World:
        found = {name: self._namespace[name] for name in self._names if name in self._namespace}
        return World(found, self._limit, self._namespace, self._names)


def _cannot(why: Exception | str) -> str:
    if isinstance(why, TooMuch):
        why = f"copies of what they find would take more than {units.size(why.limit)}"
    return text("speed.acts", why=clean(why))


def changes_what_it_finds(nodes: Sequence[ast.stmt], namespace: Mapping[str, Any]) -> str:
    """A name that statements read as it was before them, and may have given another value since, also in place; "" for none."""
    found = read_before_bound(nodes)
    every = [node for statement in nodes for node in ast.walk(statement)]
    bound = [node.id for node in every if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    inside = (name for node in every for name in _changed_by(node) if type(namespace.get(name)) not in _UNCHANGED)
    return next((name for name in (*bound, *inside) if name in found), "")


#: What is not changed by calls of it or with it.
_UNCHANGED = PLAIN | {types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc}


def _changed_by(node: ast.AST) -> Iterator[str]:
    """Names of what a store, or a call whose value nobody wants, may change."""
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        yield from _root(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Attribute):
            yield from _root(call.func)
        if not (isinstance(call.func, ast.Name) and call.func.id == "print"):
            yield from (name for value in (*call.args, *(k.value for k in call.keywords)) for name in _root(value))


def _root(node: ast.expr) -> Iterator[str]:
    """The name before all subscripts and attributes."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


__all__ = ["PlainCell", "changes_what_it_finds"]

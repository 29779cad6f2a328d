"""A cell's own statements, run once more by plain Python: what a user without jitlab would have waited for."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jitlab import events
from jitlab.api.check.replaying import TooMuch
from jitlab.api.check.world import ActsOutsideError, World, holding_back
from jitlab.api.functions.dispatch import as_python
from jitlab.capture.positions import codes
from jitlab.capture.rewrite.cell_code import waits


class PlainCell:
    """Statements that may be run again and again, each time on what they found when this was made. What they change is put
    back afterwards. TooMuch, ActsOutsideError: that cannot be done."""

    def __init__(self, nodes: Sequence[ast.stmt], filename: str, namespace: dict[str, Any], limit: int) -> None:
        self._code = compile(ast.Module(list(nodes), []), filename, "exec")
        self._names = sorted({name for code in codes(self._code) for name in code.co_names})
        self._namespace, self._limit = namespace, limit
        self._before = self._world()

    @classmethod
    def of(cls, nodes: Sequence[ast.stmt], filename: str, namespace: dict[str, Any], limit: int) -> PlainCell | None:
        """None where the statements cannot run again."""
        if any(map(waits, nodes)):
            return None
        try:
            return cls(nodes, filename, namespace, limit)
        except (TooMuch, ActsOutsideError, SyntaxError):
            return None

    @contextmanager
    def again(self) -> Iterator[bool]:
        """Inside, `run` may be called, where the value is true; afterwards everything is as it was before."""
        try:
            after = self._world()
        except (TooMuch, ActsOutsideError):
            yield False
            return
        try:
            yield self._runs()
        finally:
            after.put_back()

    def run(self) -> int:
        """Run the statements once; the nanoseconds that they took."""
        self._before.put_back()
        with events.muted(), holding_back(), as_python():
            started = time.perf_counter_ns()
            exec(self._code, self._namespace)
            return time.perf_counter_ns() - started

    def _runs(self) -> bool:
        try:
            self.run()
        except Exception:  # whatever stops it: a second run does something else
            return False
        return True

    def _world(self) -> World:
        found = {name: self._namespace[name] for name in self._names if name in self._namespace}
        return World(found, self._limit, self._namespace, self._names)


__all__ = ["PlainCell"]

"""A program of nobody's that goes through the stages once, behind, while the user thinks: what Python makes at a first time
(methods, tables, code of its own for what runs often) is there when a first call comes."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab import events
from jitlab.capture import CallCapture, CallTrace, record_call
from jitlab.capture.state import begun
from jitlab.compile import clustered, planned, settled, simplified
from jitlab.config import config
from jitlab.ir import Graph, Options
from jitlab.ir.size_facts import SizeFacts, noting
from jitlab.runtime import kept_plans
from jitlab.targets.devices import default_target

_FILE = "<jitlab practice>"
_TEXT = """
def practice(x, y):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    z = np.where(x < y, e, 1 - e) / np.abs(3 * y) + np.sqrt(2.0)
    return (z / e.sum(axis=1, keepdims=True)) ** 2
"""


class Practice:
    """Its steps, in order. Each does nothing once somebody records a program: then it would only be in the way."""

    def __init__(self) -> None:
        self._trace: CallTrace | None = None
        self._graph: Graph | None = None
        self._options = Options()
        self._own = 0  # recordings

    @property
    def steps(self) -> Sequence[Callable[[], object]]:
        return self._captured, self._found, self._simplified, self._compiled

    @property
    def _is_wanted(self) -> bool:
        return begun.count == self._own and not events.active()

    def _captured(self) -> None:
        if not self._is_wanted:
            return
        self._own = 1
        linecache.cache[_FILE] = len(_TEXT), None, _TEXT.splitlines(True), _FILE
        names: dict[str, Any] = {"np": np}
        exec(compile(_TEXT, _FILE, "exec"), names)
        x = np.ones((2, 3))
        with events.muted(), noting(SizeFacts()):
            capture = CallCapture("practice", strict=False)
            self._trace = record_call(capture, names["practice"], ("x", "y"), (x, x + 1), lambda given: (tuple(given), {}), 1)

    def _found(self) -> None:
        if self._trace is not None and self._is_wanted and config.cache:
            self._options = settled(self._options)
            kept_plans.found(self._trace.graph, self._options, default_target())

    def _simplified(self) -> None:
        if self._trace is not None and self._is_wanted:
            with events.muted(), noting(SizeFacts()):
                self._graph = simplified(self._trace.graph, self._options, "practice", 1)

    def _compiled(self) -> None:
        if self._graph is None or not self._is_wanted:
            return
        target = default_target()
        with events.muted():
            for lowered in planned(clustered(self._graph, self._options, "practice")).lowerings:
                target.practise(target.scheduled(lowered.program))


def steps() -> Sequence[Callable[[], object]]:
    """Those of one practice."""
    return Practice().steps

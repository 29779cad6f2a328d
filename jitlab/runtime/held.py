"""What a run prints, held back while an operation may still refuse the run: Python then runs the call from its first line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitlab import errors
from jitlab.ir import Node
from jitlab.ops.host_operations import HostCall

#: What says that the trace does not fit after all.
REFUSALS = (errors.Signal, errors.InternalError)


def is_told(step: Any) -> bool:
    """It only tells something: nobody reads a result of it."""
    return isinstance(step, Node) and isinstance(step.op, HostCall) and step.op.effects and not step.op.types


def may_refuse(step: Any) -> bool:
    """Its result may have another shape than at capture."""
    return isinstance(step, Node) and (hasattr(step.op, "graphs") or (isinstance(step.op, HostCall) and bool(step.op.types)))


def held_until(steps: Sequence[Any]) -> int:
    """The last step that may refuse, where something is told before it; else -1."""
    told = next((number for number, step in enumerate(steps) if is_told(step)), len(steps))
    last = max((number for number, step in enumerate(steps) if may_refuse(step)), default=-1)
    return last if told < last else -1


class Held:
    """Steps of one run that wait."""

    def __init__(self, run: Callable[[Node, dict[Node, Any]], None]) -> None:
        self._run = run
        self._steps: list[tuple[Node, dict[Node, Any]]] = []

    def add(self, node: Node, values: Mapping[Node, Any]) -> None:
        """With the values of now: what they lie in may be written later."""
        now = {source: np.copy(value) if isinstance(value := values[source], np.ndarray) else value for source in node.inputs}
        self._steps.append((node, now))

    def run(self) -> None:
        steps, self._steps = self._steps, []
        for node, values in steps:
            self._run(node, values)

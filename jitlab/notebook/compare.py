"""`%%jit --compare`: the work of a cell once more, op by op on NumPy, on copies taken before it ran (design D16)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitlab import events
from jitlab.config import config
from jitlab.ir import Graph, Node, interpret
from jitlab.report import wording
from jitlab.runtime import Executable


@dataclass(frozen=True)
class Call:
    """One run of compiled code, with copies of what it was given."""

    executable: Any
    arguments: list[Any]


class Comparison:
    """Collects the runs of compiled code while `watching`, and replays them. An array that did not change is copied once."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.copied_bytes = 0
        self.refused = ""
        self._copies: dict[int, tuple[Any, np.ndarray[Any, Any]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, each run of compiled code is noted before it starts, in every thread."""
        prepare = Executable.prepare

        def noting(executable: Executable, arguments: Sequence[Any]) -> None:
            self.note(executable, arguments)
            prepare(executable, arguments)

        Executable.prepare = noting  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Executable.prepare = prepare  # type: ignore[method-assign]

    def note(self, executable: Any, arguments: Sequence[Any]) -> None:
        """Keep copies of the arguments of a run that is about to start; refuse when they would be too many bytes."""
        with self._lock:
            if self.refused:
                return
            effect = first_effect(executable.graph)
            if effect is not None:
                self._refuse(
                    f"{effect.op.name} ({wording.line_text({s.line for s in effect.sources})}) acts on the world outside"
                )
                return
            arguments = [self._copy(argument) for argument in arguments]
            if not self.refused:
                self.calls.append(Call(executable, arguments))

    def replay(self, recording: Any) -> str:
        """Run everything op by op and tell the times to `recording`; the reason when there is nothing to compare with."""
        if self.refused:
            return self.refused
        if not self.calls:
            return "nothing was compiled in this cell"
        compiled_ns = sum(tally.ns for tally in (*recording.clusters.values(), *recording.host.values()))
        total, largest = 0, 0.0
        state = np.random.get_state()
        try:
            for call in self.calls:
                outputs, spent = replay_call(call, recording)
                total += spent
                largest = max(largest, largest_error(outputs, call.executable.run(call.arguments)))
        finally:
            np.random.set_state(state)
        cell = events.current_cell()
        recording.listen(events.Compared(cell=cell, numpy_ns=total, compiled_ns=compiled_ns, largest_error=largest))
        return ""

    def _copy(self, argument: Any) -> Any:
        if not isinstance(argument, np.ndarray) or self.refused:
            return argument  # NumPy scalars and Python numbers do not change
        known = self._copies.get(id(argument))
        if known is not None and known[0] is argument and same_bits(known[1], argument):
            return known[1]
        needed = self.copied_bytes + argument.nbytes
        if needed > config.copy_limit_bytes:
            self._refuse(
                f"the copies of what the cell reads would take more than {wording.size(config.copy_limit_bytes)}"
                f" ({wording.size(needed)} so far). Try: jl.config.copy_limit_bytes = {2 * needed}, or fewer iterations"
            )
            return argument
        self.copied_bytes = needed
        copy = argument.copy(order="K")
        self._copies[id(argument)] = (argument, copy)
        return copy

    def _refuse(self, why: str) -> None:
        self.refused = why
        self.calls.clear()
        self._copies.clear()


def replay_call(call: Call, recording: Any) -> tuple[list[Any], int]:
    """One call op by op, each operation told to the recording; its outputs and the nanoseconds of all operations."""
    executable = call.executable
    spans: list[tuple[Node, int, int]] = []
    last = time.perf_counter_ns()

    def observe(node: Node, value: Any) -> None:
        nonlocal last
        now = time.perf_counter_ns()
        spans.append((node, last, now - last))
        last = time.perf_counter_ns()

    outputs = interpret(executable.graph, call.arguments, observe)
    for node, start, spent in spans:
        if node.op.name != "Const":
            recording.listen(
                events.OperationRan(
                    cell=events.current_cell(), function=executable.function, trace=executable.trace, operation=node.name,
                    op=node.op.name, start_ns=start, duration_ns=spent,
                )
            )  # fmt: skip
    return outputs, sum(spent for _, _, spent in spans)


def first_effect(graph: Graph) -> Node | None:
    """The first operation that must not run twice."""
    return next((node for node in graph.nodes if getattr(node.op, "has_effects", False)), None)


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def largest_error(expected: Sequence[Any], found: Sequence[Any]) -> float:
    """The largest relative difference; of whole arrays the scale is their largest element."""
    largest = 0.0
    for x, y in zip(expected, found, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype.kind not in "biufc" or not x.size:
            continue
        with np.errstate(all="ignore"):
            scale = float(np.max(np.abs(np.where(np.isfinite(x), x, 0))))
            difference = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) - y)
            difference = difference[np.isfinite(difference)]
        if difference.size and scale:
            largest = max(largest, float(difference.max()) / scale)
    return largest

"""`%%jit --compare`: the work of a cell once more, op by op on NumPy, on copies taken before it ran (design D16)."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from jitlab import events
from jitlab.config import config
from jitlab.ir import Graph, Node, bind_extents, is_operation
from jitlab.report import Recording, wording
from jitlab.runtime import watching

#: A comparison repeats all calls until each side ran this long in all: the fastest round of a side counts.
ENOUGH_NS = 200_000_000
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
LONG_NS = 2_000_000_000  # of both sides: long work needs no repetition

#: Spans of operations in loops that are told one by one.
MOST_SPANS = 20_000


@dataclass(frozen=True)
class Call:
    """One run of compiled code, with copies of what it was given."""

    executable: Any
    arguments: list[Any]


@dataclass
class Best:
    """The fastest round of one side, with all that was told of it; another process may disturb any of them."""

    recording: Recording = field(default_factory=Recording)
    least_ns: int = 0
    sum_ns: int = 0
    rounds: int = 0

    def add(self, recording: Recording, spent_ns: int) -> None:
        self.sum_ns += spent_ns
        if not self.rounds or spent_ns < self.least_ns:
            self.recording, self.least_ns = recording, spent_ns
        self.rounds += 1


class Comparison:
    """Collects the runs of compiled code while `watching`, and replays them. An array that did not change is copied once."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.copied_bytes = 0
        self.refused = ""
        self._copies: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, each run of compiled code is noted before it starts, in every thread."""
        with watching(self.note):
            yield

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

    def replay(self, recording: Recording) -> str:
        """Run everything again, op by op and compiled in turn, short work several times, and tell the fastest times of each
        side to `recording`: both are measured alike, warm, with the code that later runs use. Returns the reason when there
        is nothing to compare."""
        if self.refused:
            return self.refused
        if not self.calls:
            return "nothing was compiled in this cell"
        for call in {id(call.executable): call for call in self.calls}.values():
            call.executable.settle()
            warm_up(call)
        start = time.perf_counter_ns()
        numpy, compiled, largest = Best(), Best(), 0.0
        state = np.random.get_state()
        try:
            for round in range(MOST_ROUNDS):
                largest = max(largest, self._round(round, start, numpy, compiled))
                spent = numpy.sum_ns + compiled.sum_ns
                enough = round + 1 >= LEAST_ROUNDS and min(numpy.sum_ns, compiled.sum_ns) >= ENOUGH_NS
                if enough or spent >= LONG_NS:
                    break
        finally:
            np.random.set_state(state)
        cell = events.current_cell()
        replay = compiled.recording
        replay.numpy = numpy.recording.numpy
        replay.take_lane("op by op", numpy.recording)
        replay.listen(events.Compared(cell=cell, numpy_ns=numpy.least_ns, compiled_ns=compiled.least_ns, largest_error=largest))
        recording.adopt_runs(replay)
        return ""

    def _round(self, round: int, start_ns: int, numpy: Best, compiled: Best) -> float:
        """All calls once on both sides, which take turns in going first; returns the first round's largest error."""
        by_numpy, by_us = Recording(), Recording()
        numpy_ns, compiled_ns, largest = 0, 0, 0.0
        for n, call in enumerate(self.calls):
            if (n + round) % 2:
                found, ours = run_compiled(call, by_us, start_ns + compiled_ns)
                expected, theirs = run_op_by_op(call, by_numpy, start_ns + numpy_ns)
            else:
                expected, theirs = run_op_by_op(call, by_numpy, start_ns + numpy_ns)
                found, ours = run_compiled(call, by_us, start_ns + compiled_ns)
            numpy_ns, compiled_ns = numpy_ns + theirs, compiled_ns + ours
            if not round:
                largest = max(largest, largest_error(expected, found))
        numpy.add(by_numpy, numpy_ns)
        compiled.add(by_us, compiled_ns)
        return largest

    def _copy(self, argument: Any) -> Any:
        if not isinstance(argument, np.ndarray) or self.refused:
            return argument  # NumPy scalars and Python numbers do not change
        known = self._copies.get(id(argument))
        if known is not None and known[0]() is argument and same_bits(known[1], np.asarray(argument)):
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
        self._copies[id(argument)] = (weakref.ref(argument), copy)
        return copy

    def _refuse(self, why: str) -> None:
        self.refused = why
        self.calls.clear()
        self._copies.clear()


def run_op_by_op(call: Call, recording: Recording, start_ns: int) -> tuple[list[Any], int]:
    """The outputs of a call run op by op on NumPy, and the nanoseconds of all operations, which are told to the recording as
    one after the other from `start_ns` on."""
    executable = call.executable
    outputs, spans = op_by_op(executable.graph, call.arguments)
    total = 0
    for node, spent in spans:
        recording.listen(
            events.OperationRan(
                cell=events.current_cell(), function=executable.function, trace=executable.trace, operation=node.name,
                op=node.op.name, start_ns=start_ns + total, duration_ns=spent,
            )
        )  # fmt: skip
        total += spent
    return outputs, total


def op_by_op(graph: Graph, arguments: Sequence[Any]) -> tuple[list[Any], list[tuple[Node, int]]]:
    """The graph's outputs, and how long each operation took, those of loops and branches among them."""
    spans: list[tuple[Node, int]] = []
    return _each(graph, arguments, spans), spans


def _each(
    graph: Graph, arguments: Sequence[Any], spans: list[tuple[Node, int]], symbols: Mapping[str, int] = MappingProxyType({})
) -> list[Any]:
    """A value is let go after its last use, as in the program it came from: keeping all would make NumPy slower than it is.

    Where there are very many operations in loops, the time of the later ones is added to the last span.
    """
    last_use: dict[Node, Node] = {source: node for node in graph.nodes for source in node.inputs}
    kept = {*graph.outputs, *graph.parameters}
    done: dict[Node, list[Node]] = {}
    for source, node in last_use.items():
        if source not in kept:
            done.setdefault(node, []).append(source)
    values: dict[Node, Any] = dict(zip(graph.parameters, arguments, strict=True))
    known = {**graph.symbol_values(), **symbols}
    moving = bool(symbols)

    def inside(body: Graph, arguments: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
        return _each(body, arguments, spans, symbols)

    with np.errstate(all="ignore"):
        for node in graph.nodes:
            inputs = [values[source] for source in node.inputs]
            if hasattr(node.op, "graphs"):
                values[node] = node.op.run(known, tuple(inputs), inside)
            else:
                op = bind_extents(node.op, known) if moving else node.op
                start = time.perf_counter_ns()
                value = op.numpy(*inputs)
                spent = time.perf_counter_ns() - start
                values[node] = value
                if is_operation(node) and (len(spans) < MOST_SPANS or not moving):
                    spans.append((node, spent))
                elif is_operation(node):
                    last, before = spans[-1]
                    spans[-1] = last, before + spent
                if hasattr(node.op, "symbol"):
                    known[node.op.symbol], moving = int(value), True
            del inputs
            for source in done.get(node, ()):
                del values[source]
    return [values[node] for node in graph.outputs]


def run_compiled(call: Call, recording: Recording, start_ns: int) -> tuple[list[Any], int]:
    """The same compiled: what this thread runs for it is told to the recording."""
    here, total = threading.get_ident(), 0

    def hear(event: events.Event) -> None:
        nonlocal total
        if threading.get_ident() == here and isinstance(event, (events.ClusterRan, events.HostOperationRan)):
            recording.listen(replace(event, start_ns=start_ns + total))
            total += event.duration_ns

    with events.listen(hear):
        outputs = call.executable.run(call.arguments)
    return outputs, total


def warm_up(call: Call) -> None:
    """Run both sides once untimed, so that neither pays for the first touch of its memory."""
    op_by_op(call.executable.graph, call.arguments)
    call.executable.run(call.arguments)


def first_effect(graph: Graph) -> Node | None:
    """The first operation that must not run twice."""
    return next((node for node in graph.nodes if getattr(node.op, "has_effects", False)), None)


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.flags.c_contiguous and b.flags.c_contiguous:
        return bool(np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)))
    return bool(np.array_equal(a, b))  # a NaN is copied again


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

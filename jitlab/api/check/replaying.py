"""A run of compiled code done again, on copies of what it was given: op by op on NumPy, and compiled."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import Any

import numpy as np

from jitlab import events
from jitlab.ir import Graph, Node, bind_extents, is_operation
from jitlab.ir.graphs.graph import decided_by
from jitlab.ops.random_draws import Draw, States, addresses_in, drawing_from, generators_of, random_states, set_random_states
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.limits import OutOfTimeError
from jitlab.support.transactions import quietly

#: Spans of operations in loops that are told one by one.
MOST_SPANS = 20_000
NEVER_NS = 1 << 62

Hear = Callable[[events.Event], None]


@dataclass(frozen=True)
class Call:
    """One run of compiled code, with copies of what it was given. `states`: of the generators that it draws from, as they were
    when it began, so that it draws the same numbers again."""

    executable: Any
    arguments: list[Any]
    states: States = ()


class TooMuch(Exception):
    """The copies would take more than the limit: `needed` bytes, `limit` allowed."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(f"{needed} bytes of copies, at most {limit}")
        self.needed, self.limit = needed, limit


class Copies:
    """Copies of arrays, at most `limit` bytes in all. An array that did not change since is copied once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._known: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any]]] = {}

    def of(self, argument: Any) -> Any:
        """The copy of an array; NumPy scalars and Python numbers are themselves. Raises TooMuch."""
        if not isinstance(argument, np.ndarray):
            return argument
        known = self._known.get(id(argument))
        if known is not None and known[0]() is argument and same_bits(known[1], np.asarray(argument)):
            return known[1]
        needed = self.bytes + argument.nbytes
        if needed > self.limit:
            raise TooMuch(needed, self.limit)
        self.bytes = needed
        copy = argument.copy(order="K")
        self._known[id(argument)] = (weakref.ref(argument), copy)
        return copy

    def clear(self) -> None:
        self._known.clear()


@dataclass(frozen=True)
class Took:
    """Nanoseconds of some work: by the clock, and what this process and this thread had of the processors, 0 where that is not
    known."""

    clock: int
    process: int = 0
    thread: int = 0

    def __add__(self, other: Took) -> Took:
        return Took(self.clock + other.clock, self.process + other.process, self.thread + other.thread)

    @property
    def is_of_threads(self) -> bool:
        """Other threads had a share in it: those of BLAS wait for each other at work, so their time is no measure."""
        return self.process - self.thread > OF_OTHERS * self.clock

    def ns(self, by_clock: bool | None = None) -> int:
        """By the clock where several threads worked (or `by_clock` says so), else what the processor was had for where that is
        less, since other programs had it meanwhile."""
        by_clock = self.is_of_threads if by_clock is None else by_clock
        return self.clock if by_clock else min(self.clock, self.process or self.clock)


NOTHING = Took(0)
#: Less than this share of the time by the clock is not a thread's that takes part in the work.
OF_OTHERS = 0.15


class Stopwatch:
    """What work takes from here on."""

    __slots__ = ("_clock", "_had")

    def __init__(self) -> None:
        self._had = events.had_ns()
        self._clock = time.perf_counter_ns()

    def took(self) -> Took:
        by_clock = time.perf_counter_ns() - self._clock
        (process, thread), before = events.had_ns(), self._had
        return Took(by_clock, process - before[0], thread - before[1])

    def ns(self) -> int:
        return self.took().ns()


def run_op_by_op(call: Call, hear: Hear, start_ns: int, until_ns: int = NEVER_NS) -> tuple[list[Any], int]:
    """The outputs of a call run op by op on NumPy, and the nanoseconds of all operations, which are told to `hear` as one after
    the other from `start_ns` on. OutOfTimeError: it is not done `until_ns`, by time.thread_time_ns."""
    executable = call.executable
    with _drawing_as(call):
        outputs, spans = op_by_op(executable.graph, call.arguments, until_ns)
    total = 0
    for node, spent in spans:
        hear(
            events.OperationRan(
                function=executable.function, trace=executable.trace, operation=node.name, op=node.op.name,
                start_ns=start_ns + total, duration_ns=spent,
            )
        )  # fmt: skip
        total += spent
    return outputs, total


def op_by_op(
    graph: Graph, arguments: Sequence[Any], until_ns: int = NEVER_NS
) -> tuple[list[Any], list[tuple[Node, int]]]:
    """The graph's outputs, and how long each operation took, those of loops and branches among them."""
    spans: list[tuple[Node, int]] = []
    return _each(graph, arguments, spans, until_ns), spans


@quietly
def _each(
    graph: Graph, arguments: Sequence[Any], spans: list[tuple[Node, int]], until_ns: int,
    symbols: Mapping[str, int] = MappingProxyType({}),
) -> list[Any]:  # fmt: skip
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
        return _each(body, arguments, spans, until_ns, symbols)

    for node in graph.nodes:
        inputs = [values[source] for source in node.inputs]
        if hasattr(node.op, "graphs"):
            values[node] = node.op.run(known, tuple(inputs), inside)
        else:
            op = bind_extents(node.op, known) if moving else node.op
            if until_ns != NEVER_NS and time.thread_time_ns() > until_ns:
                raise OutOfTimeError
            start = time.perf_counter_ns()
            value = op.numpy(*inputs)
            spent = time.perf_counter_ns() - start
            values[node] = value
            if is_operation(node) and (len(spans) < MOST_SPANS or not moving):
                spans.append((node, spent))
            elif is_operation(node):
                last, before = spans[-1]
                spans[-1] = last, before + spent
            if found := decided_by(node.op, value):
                known, moving = {**known, **found}, True
        del inputs
        for source in done.get(node, ()):
            del values[source]
    return [values[node] for node in graph.outputs]


def _drawing_as(call: Call) -> AbstractContextManager[None]:
    return keeping_random_state(call.executable.graph, arguments=call.arguments, states=call.states)


def warm_up(call: Call) -> None:
    """Run it once untimed, so that nobody pays for the first touch of its memory."""
    with _drawing_as(call):
        call.executable.run(call.arguments)


def first_effect(graph: Graph) -> Node | None:
    """The first operation that must not run twice. A random draw may: its generator is set back."""
    single = (node for node in every(*graph.nodes) if not hasattr(node.op, "graphs"))
    return next((n for n in single if getattr(n.op, "has_effects", False) and not is_draw(n)), None)


@contextmanager
def keeping_random_state(*graphs: Graph, arguments: Sequence[Any] = (), states: States = ()) -> Iterator[None]:
    """The state of NumPy's global generator, and of those that the graphs draw from, themselves or as one of their `arguments`,
    is afterwards what it was before. Inside, generators have the `states`."""
    found = {id(g): g for g in (*generators_of(arguments), *(g for graph in graphs for g in generators(graph)))}
    everyone = [np.random.mtrand._rand, *found.values(), *(generator for generator, _ in states if id(generator) not in found)]
    before = random_states(everyone)
    try:
        set_random_states(states)
        with drawing_from(addresses_in(arguments)):
            yield
    finally:
        set_random_states(before)


def drawing_again(call: Call) -> AbstractContextManager[None]:
    """Inside, what runs on a call's arguments draws the numbers that the call drew."""
    return keeping_random_state(arguments=call.arguments, states=call.states) if call.states else nullcontext()


def generators(graph: Graph, arguments: Sequence[Any] = ()) -> list[Any]:
    """Those that it draws random numbers from: its own, and those among its arguments."""
    own = {id(g): g for node in every(*graph.nodes) if (g := getattr(_function(node), "generator", None)) is not None}
    return [*own.values(), *generators_of(arguments)]


def draws(graph: Graph) -> bool:
    """Does it draw random numbers?"""
    return any(map(is_draw, every(*graph.nodes)))


def every(*nodes: Node) -> Iterator[Node]:
    """These nodes, and those of loops and branches among them."""
    for node in nodes:
        yield node
        for body in getattr(node.op, "graphs", ()):
            yield from every(*body.nodes)


def is_draw(node: Node) -> bool:
    """Does an operation draw from a random generator, or begin one anew?"""
    return isinstance(node.op, Draw) or hasattr(_function(node), "generator")


def _function(node: Node) -> Any:
    """What a host operation calls; an operation that draws in a cluster has no generator of its own."""
    function = getattr(node.op, "function", None)
    return getattr(function, "function", function)


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.flags.c_contiguous and b.flags.c_contiguous:
        return bool(np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)))
    return bool(np.array_equal(a, b))  # a NaN is copied again


@quietly
def largest_error(expected: Sequence[Any], found: Sequence[Any]) -> float:
    """The largest relative difference; of whole arrays the scale is their largest element."""
    largest = 0.0
    for x, y in zip(expected, found, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype.kind not in "biufc" or not x.size:
            continue
        scale = float(np.max(np.abs(np.where(np.isfinite(x), x, 0))))
        difference = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) - y)
        difference = difference[np.isfinite(difference)]
        if difference.size and scale:
            largest = max(largest, float(difference.max()) / scale)
    return largest


@quietly
def largest_error_ulp(expected: Sequence[Any], found: Sequence[Any]) -> float | None:
    """The largest difference in units in the last place of what was expected (of complex numbers, of their size); 1 for an
    integer or a bool that differs. An element smaller than the root mean square of its array is measured by that: what all but
    cancelled has lost its digits on both sides. None where one side alone is NaN or infinite."""
    largest = 0.0
    for x, y in zip(expected, found, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype.kind in "biu":
            largest = max(largest, float(not np.array_equal(x, y)))
        elif x.dtype.kind in "fc" and x.size:
            off = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0, np.abs(x - y))
            size = np.abs(x)
            finite = np.where(np.isfinite(size), size, 0)
            largest_size = np.max(finite)
            typical = largest_size * np.sqrt(np.mean(np.square(finite / largest_size))) if largest_size else largest_size
            ulps = off / np.spacing(np.maximum(size, typical.astype(size.dtype)))
            if not np.isfinite(np.where(off == 0, 0, ulps)).all():
                return None
            largest = max(largest, float(np.max(np.where(off == 0, 0, ulps))))
    return largest

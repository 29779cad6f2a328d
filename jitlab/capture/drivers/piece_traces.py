"""The trace of a piece: what a run of its statements reads, writes and assigns, and how it is made of what was captured."""

from __future__ import annotations

import math
import sys
import types
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from jitlab.capture.effort import RESULT_NS
from jitlab.capture.guards.changes import Change, Leaf, changes, distance, with_guard
from jitlab.capture.guards.gathering import Constants, Lookup, Moving, lookup_of
from jitlab.capture.numpy_calls.host_fallback import NotReplayable, effect_of
from jitlab.capture.numpy_calls.numpy_traits import a_kind
from jitlab.capture.positions import here, is_converted, is_user_file, spans
from jitlab.capture.tracers.arrays import Input, Place
from jitlab.capture.tracers.indices import index_code
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.errors import Signal, Unfit
from jitlab.events import PythonStatement
from jitlab.ir import TRACED_DTYPES, Source, every_node
from jitlab.messages import Message
from jitlab.ops.control_flow import Loop
from jitlab.support.later import Later
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

from .trace import NOTHING, Build, Found, Structure, Trace, check_target

if TYPE_CHECKING:
    from jitlab.capture.rewrite.piece_statements import Statement
    from jitlab.capture.tracers import filled_lists

    from .pieces import CellCapture
else:  # for programs that look into lists of their own
    filled_lists = Later("jitlab.capture.tracers.filled_lists")

Namespace = dict[str, Any]
#: So many traces in succession that are each for another object are enough.
USELESS = 3
#: What is said then: a code, and a message.
OTHERS = "retraced", Message("refused.other_objects", {"times": USELESS})
#: What NumPy takes for an operation of scalars, for one that makes a small array, and for each element of most operations.
SCALAR_NS, OPERATION_NS, ELEMENT_NS = 200, 1500, 20


class EndPiece(Unfit):
    """The statement that is being captured has to run as Python. `source`: where it stands."""

    def __init__(self, code: str, row: str | Message, source: Source | None = None, **args: Any) -> None:
        super().__init__(code, row, **args)
        self.source = source or here()


class StoresOutside(EndPiece):
    """It stores into what was there before."""


@dataclass
class Given:
    """Something that a run gives out when it has run: the names that are assigned before, and a function of values."""

    names: list[tuple[str, Build]]
    function: Callable[..., Any]
    values: list[Build]
    kind: str
    sources: Sequence[Source]
    loop: Statement | None = None  # of a cell, whose names everybody sees

    @property
    def said(self) -> PythonStatement:
        """What the event says where it is given out."""
        lines = [span for source in self.sources for span in spans(source)]
        return PythonStatement("put_off", Message("refused.put_off"), tuple(lines))


#: What is left to do when a piece has run: names with what they are bound to, what is given out then (or None), its values.
GivenOut = Sequence[tuple[Sequence[tuple[str, Any]], Given | None, Sequence[Any]]]


class StaticNeeded(Signal):
    """Two moving views of one array may overlap: capture again with their indices fixed."""


@dataclass(eq=False)
class MovingView:
    """An input that is a view `base[index]` whose index is computed by Python at each run."""

    input: Input
    base: Input
    index: Any
    key: str


@dataclass
class PieceTrace(Trace):
    """A trace of some consecutive statements."""

    length: int = 0
    jump: str = ""  # how the last of them ends
    gather: Callable[..., tuple[list[Any], tuple[Any, ...]] | None] = lambda a: None
    moving: dict[int, tuple[int, Callable[..., Any]]] = field(default_factory=dict)  # input -> its base, the index in it
    outputs: list[tuple[str, Build]] = field(default_factory=list)  # names assigned, in order
    apart: list[tuple[int, int]] | None = None  # pairs of inputs that must not overlap
    is_silent: bool = False
    lookup: Lookup = field(default_factory=lambda: Lookup(Constants()))  # what `gather` is made of
    read_leaves: tuple[Leaf, ...] = ()
    effects: Sequence[Given] = ()  # what it gives out when it has run
    calls_at_first: int = 1  # in the run of the program that it was captured in; more where its statements stand in a loop

    @lazy
    def prints(self) -> bool:
        return any(effect.kind == "print" for effect in self.effects)

    @lazy
    def python_ns(self) -> float:
        """What Python takes for it, about: for each operation and element, of both sides of branches; endless for loops."""
        nodes = list(every_node(self.graph))
        if any(isinstance(node.op, Loop) for node in nodes):
            return math.inf
        return sum(
            OPERATION_NS + ELEMENT_NS * int(node.type.size) if node.type.shape else SCALAR_NS for node in nodes if node.inputs
        )

    def perform(self, inputs: list[Any], numbers: tuple[Any, ...], args: Any = ()) -> GivenOut:
        """Run, write into the user's arrays; what is left to do: the names to assign, and what was put off. `args` is what
        the lookup was given."""
        assert self.run is not None
        if self.prints:
            check_stream()
        if self.writes:
            self.check_piece(inputs)
        outputs = self.run(inputs)
        self.store(inputs, numbers, outputs)
        room = [*outputs, args, numbers, [None] * self.slots]
        made = [(name, build(room, inputs)) for name, build in self.outputs]
        return *self.given(room, inputs), (made, None, ())

    def given(self, room: Sequence[Any], inputs: Sequence[Any]) -> GivenOut:
        """What was put off, with the values of a run."""
        return [
            (
                [(name, build(room, inputs)) for name, build in effect.names], effect,
                [build(room, inputs) for build in effect.values],
            )
            for effect in self.effects
        ]  # fmt: skip

    def renewed(self, at: Any, exchange: Mapping[int, Any] = NOTHING) -> Self | None:
        found = None if self.calls_back else self.lookup.renewed(at, dict(exchange))
        if found is None:
            return None
        made = copy(self)
        made.lookup, exchange = found
        code, defaults = self.gather.__code__, self.gather.__defaults__
        made.gather = types.FunctionType(code, dict(made.lookup.constants.values), "gather", defaults)
        if made.gather(at) is None:
            return None
        made.read_leaves = tuple(
            leaf.of_value(exchange[leaf.value]) if leaf.kind == "object" and leaf.value in exchange else leaf
            for leaf in self.read_leaves
        )  # fmt: skip
        return made

    def why(self, at: Any = (), exchange: Mapping[int, Any] = NOTHING) -> Change:
        """The guard that keeps it from serving, where functions of equal code are the same."""
        found = self.lookup.renewed(at, dict(exchange))
        return (self.lookup if found is None else found[0]).why(at)

    def store(self, inputs: Sequence[Any], numbers: tuple[Any, ...], outputs: list[Any]) -> None:
        if self.shared or self.rows:
            self.separate(outputs, inputs)
        for number, output in self.writes:
            if number in self.moving:
                base, index = self.moving[number]
                inputs[base][index(numbers)] = outputs[output]
            else:
                np.copyto(inputs[number], outputs[output])

    def check_piece(self, inputs: Sequence[Any]) -> None:
        """As `check_writable`; a moving view is known to keep clear of its own base."""
        if self.apart is None:
            self.apart = self._pairs()
        for number, other in self.apart:
            target = inputs[number]
            if other == number:
                if not (target.flags.forc and target.flags.writeable):
                    check_target(target, self.inputs[number].path)
            elif np.may_share_memory(target, inputs[other]):
                raise NotReplayable("aliasing", "overlap", one=self.inputs[number].path, other=self.inputs[other].path)

    def _pairs(self) -> list[tuple[int, int]]:
        """(written array, itself), then (written array, each other array)."""
        base = {number: base for number, (base, _) in self.moving.items()}
        pairs = []
        for number, _ in self.writes:
            target = base.get(number, number)
            others = [n for n, x in enumerate(self.inputs) if x.is_array and base.get(n, n) != target]
            pairs += [(target, target), *((target, n) for n in others)]
        return pairs


def check_stream() -> None:
    """Printing runs no code of the user's, which would see when it runs."""
    for name in ("write", "flush"):
        found = getattr(sys.stdout, name, None)
        code = getattr(getattr(found, "__func__", found), "__code__", None)
        if code is not None and is_user_file(code.co_filename):
            raise NotReplayable("effect", effect_of("print"))


class Receiver:
    """A list, dict or set of the user's that the program only gives something to: what it holds is not read."""

    __slots__ = ("place", "text", "value")

    def __init__(self, value: Any, place: Place, text: str) -> None:
        self.value, self.place, self.text = value, place, text


#: Containers that may get something without being read.
RECEIVING = (list, dict, set, deque)
#: Those that get something without being read, by the methods (or "item") that give it.
RECEIVERS: dict[str, tuple[type, ...]] = {
    "append": (list, deque), "insert": (list,), "extend": (list, deque), "appendleft": (deque,), "add": (set,),
    "discard": (set,), "item": (list, dict), "update": (dict,), "setdefault": (dict,), "clear": (list, dict, set, deque),
}  # fmt: skip


def may_receive(value: Any, uses: Sequence[tuple[tuple[Any, ...], str]]) -> bool:
    """Is each container that gets something one that does so without code of anybody's?"""
    return type(value) in RECEIVING and all(type(under(value, keys)) in RECEIVERS[kind] for keys, kind in uses)


def under(value: Any, keys: Sequence[Any]) -> Any:
    """What is found by these keys, one in the other; None where that is nothing, or not in a dict or list."""
    for key in keys:
        if type(value) is list and type(key) is int and -len(value) <= key < len(value):
            value = value[key]
        else:
            value = value.get(key) if type(value) is dict else None
    return value


class CellStructure(Structure):
    """What names are bound to after a piece: as results, and Python's own values stay what they are."""

    def __init__(self, capture: CellCapture) -> None:
        super().__init__(capture, numbers_become_scalars=False)
        self.cell = capture
        self.numbers: list[_NumberResult] = []

    def of(self, x: Any) -> Build:
        self.capture.spend(RESULT_NS)
        if isinstance(x, Receiver):
            return self.found_again(x.place)
        if self.capture.has_lists and isinstance(x, filled_lists.FilledList):
            raise x.refusal()
        if isinstance(x, Number):
            self.numbers.append(_NumberResult(x.text))
            return self.numbers[-1]
        held = x.__self__ if isinstance(x, types.MethodType) else x
        if id(held) in self.cell.instances:
            raise EndPiece("value", "makes", what=a_kind(held))
        place = self.cell.place_of(x)
        if place is not None:
            return self.found_again(place)
        if isinstance(x, types.FunctionType) and is_converted(x.__code__):
            raise EndPiece("value", "makes", what="a function")
        if hasattr(type(x), "__next__"):
            raise EndPiece("value", "makes", what="an iterator")
        if hasattr(type(x), "__enter__"):  # it is entered once
            raise EndPiece("value", "makes", what="a context manager")
        if isinstance(x, Tensor) and self.cell.putting is not None and self.cell.putting.is_of_field(x):
            raise EndPiece("effect", "keeps_given")
        if isinstance(x, Tensor) and _is_copy_of_part(x._cell):
            raise EndPiece("effect", "keeps_view")
        if type(x) is np.ndarray and x.dtype not in TRACED_DTYPES:
            raise EndPiece("dtype", "makes_array", dtype=x.dtype)
        return super().of(x)

    def found_again(self, place: Place) -> Build:
        """An object of the user's, which stays that object."""
        return Found(place.code, self.cell.constants.function_of_arguments(place.code))


def _is_copy_of_part(cell: Cell) -> bool:
    """NumPy would show a part of an array that lives, and it is no view that is made anew of the caller's own."""
    whole = cell.parts_of() if cell.parts_of is not None else None
    return whole is not None and (whole.input is None or cell.part is None)


class _NumberResult:
    """A Python number of the results: computed from the numbers of the run."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.function: Callable[..., Any] = lambda numbers: None

    def __call__(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        return self.function(outputs[-2])


def finish_piece(capture: CellCapture, length: int, number: int) -> PieceTrace:
    """The trace of the statements captured so far."""
    structure = capture.structure()
    outputs = [(name, structure.of(value)) for name, value in capture.assigned.items()]
    effects = () if capture.putting is None else capture.putting.builds(structure)
    structure.settle()
    if any(m.base.tensor._cell.written and _is_kept(m.input, structure) for m in capture.moving.values()):
        raise StaticNeeded
    positions = {id(input): n for n, input in enumerate(capture.inputs)}
    written_bases = {id(m.base) for m in capture.moving.values() if m.base.tensor._cell.written}
    moving = [
        Moving(
            positions[id(m.input)], positions[id(m.base)], index_code(m.index, capture.constants),
            tuple(map(int, m.input.node.shape)), id(m.base) in written_bases,
        )
        for m in capture.moving.values()
    ]  # fmt: skip
    trace = structure.trace(
        capture.trace_class, number, lambda o, i: None, length=length, outputs=outputs, effects=effects,
        moving={m.input: (m.base, capture.constants.function(m.index)) for m in moving},
    )  # fmt: skip
    reads = list(capture.reads.values())
    numbers = capture.number_guards.values()
    trace.read_leaves = (
        *(read.leaf for read in reads), *(Leaf(n.label, "value", repr(n.value), value=n.value) for n in numbers)
    )  # fmt: skip
    computed = {positions[key]: number.text for key, number in capture.computed.items()}
    for item in structure.numbers:
        item.function = capture.constants.function(item.text)
    found = {read.input for read in reads} | set(computed) | set(trace.moving)
    trace.lookup = lookup_of(
        reads, trace.inputs, capture.constants,
        fixed={n: input.value for n, input in enumerate(capture.inputs) if n not in found},
        number_guards=[(n.text, n.value, n.label) for n in numbers],
        value_guards=[(positions[id(guard.input)], guard.value) for guard in capture.guards],
        moving=moving, computed=computed, layouts=trace.layouts, attributes=list(capture.attributes.values()),
        defaults=capture.defaults, apart=() if capture.putting is None else list(capture.putting.apart()),
    )  # fmt: skip
    trace.gather = trace.lookup.function()
    capture.finished(trace, structure)
    for input in capture.inputs:
        input.value = None  # the trace does not keep the user's arrays alive
    return trace


def _is_kept(input: Input, structure: Structure) -> bool:
    return any(tensor._cell.input is input for tensor, _ in structure.leaves)


#: Traces there were when a lookup found none that fits, and of each the guard that failed.
Failed = Sequence[tuple[PieceTrace, Change]]
_AnyTrace = TypeVar("_AnyTrace", bound=PieceTrace)


def failed_of(traces: Sequence[_AnyTrace], *args: Any) -> list[tuple[_AnyTrace, Change]]:
    """Asked right after a lookup, before anything else changes. Where all guards hold, data have decided on another size."""
    by_data = next((trace.outgrown_by for trace in traces if trace.is_outgrown), None)
    found = [(trace, trace.why(*args)) for trace in traces]
    return [(trace, by_data if by_data is not None and why.cause == "unknown" else why) for trace, why in found]


def useless(failed: Failed) -> bool:
    """Were the last traces made for other objects, and none ran again after the run that it was made in? So would the next one.
    (There is more than one for each object where a loop comes by with other shapes.)"""
    once = takewhile(lambda found: found[0].costs.all_calls <= found[0].calls_at_first, failed)
    others = [change.path for _, change in once if change.rule == "object"][:USELESS]
    return len(others) == USELESS and len(set(others)) == 1


def differences(trace: PieceTrace, before: Failed) -> tuple[list[Change], PieceTrace | None]:
    """Why a piece was captured, the weightiest first, and which trace of it comes nearest."""
    if not before:
        return [Change("first_call")], None
    candidates = [(with_guard(changes(old.read_leaves, trace.read_leaves), failed), old) for old, failed in before]
    return min(candidates, key=lambda candidate: distance(candidate[0]))

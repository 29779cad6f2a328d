"""What is given out inside loops and branches: the run logs its values, and when it has run they are given out turn by turn.

before: for k in range(n):                  after: for k in range(n): values[k] = loss; order[k] = number; number += 1
            losses.append(loss)                    for k in range(count): losses.append(values[k])

A log is of the statements that stand behind one another in a block; where there are several, `order` says which came when.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.control.blocks import Block
from jitlab.capture.control.number_kinds import check_exact, give_kinds, kind_node
from jitlab.capture.guards import leaves
from jitlab.capture.guards.leaves import ARRAY, PYTHON_KINDS, LeafType, fitted, fresh, leaf_node, leaf_type
from jitlab.capture.tracers.filled_lists import Rows
from jitlab.capture.tracers.number import Number, derived
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.ir import ArrayType, Moving, Node, Source, as_length
from jitlab.ops.build_nodes import constant, elementwise
from jitlab.ops.elementwise.arithmetic import Add
from jitlab.ops.layout.creation import Fill
from jitlab.ops.layout.indexing import basic_index
from jitlab.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from jitlab.capture.control.looping import LoopTracer
    from jitlab.capture.rewrite.piece_statements import Statement

    from .pieces import CellCapture
    from .trace import Build, Structure

#: So many turns a loop is given of which only a run knows when it ends. One that goes on is Python's.
MOST_TURNS = 1000
#: What the values of a statement may take, in all turns.
MOST_BYTES = 1 << 26
#: Blocks that are no turn and no way through a branch: what stands in them runs at other times than where it is traced.
_OTHER_TIMES = frozenset({"test", "kind"})
_INT = np.dtype("i8")


class Unlogged(Exception):
    """A value that no log holds."""


@dataclass(eq=False)
class Log:
    """Statements behind one another in the innermost of `blocks`. `at`: the position that is logged into, as an index."""

    blocks: tuple[Block, ...]
    loops: tuple[LoopTracer, ...]
    capacity: int
    count: Cell
    order: Cell
    at: Any
    given: list[tuple[types.FunctionType, tuple[Made, ...], str, Source | None]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Is something logged in each turn that there is room for?"""
        return len(self.loops) == len(self.blocks) and not any(tracer.is_left for tracer in self.loops)


class Logged:
    """A value of each turn: an array of them. `kinds`: which kind of number each one is, where only a run knows."""

    def __init__(self, values: Cell, kind: LeafType, kinds: Cell | None) -> None:
        self.values, self.kind, self.kinds = values, kind, kinds


class Same:
    """What is the same in each turn."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Together:
    """A list, tuple or dict that each turn makes."""

    def __init__(self, kind: type, items: list[Made], keys: Sequence[Any] = ()) -> None:
        self.kind, self.items, self.keys = kind, items, keys


Made = Logged | Same | Together


class Field:
    """A number or an array that blocks store, under an attribute: what a turn stores the next one reads. `kind`: its type."""

    def __init__(self, capture: CellCapture, first: Any, node: Node | None, kind: LeafType) -> None:
        """`first`: what is there, of which `node` is the value where it was computed."""
        self.kind = kind
        if not isinstance(first, Tensor):
            check_exact(capture, first, kind)
        elif leaf_type(first).dtype != kind.dtype or (kind.type.shape and not is_field(first, kind)):
            raise Unlogged
        if isinstance(first, Number) and kind.weak is int:  # what grows by small steps stays below 64 bits
            if not _is_small(first.value):
                raise Unlogged
            capture.guard_number(derived(capture, _is_small, first))
        with _at_root(capture):
            self.value = Cell(capture, fitted(node or self._root_node(capture, first), kind))
            self.which = Cell(capture, self._root_kind(capture, first)) if kind.among else None

    def _root_node(self, capture: CellCapture, first: Any) -> Node:
        if isinstance(first, Number):
            first = capture.number_node(first, leaf_type(first).dtype)
        return at_root(capture, first._cell) if isinstance(first, Tensor) else leaf_node(first)

    def _root_kind(self, capture: CellCapture, first: Any) -> Node:
        kinds = first._cell.kinds if isinstance(first, Tensor) else None
        return constant(np.int64(leaf_type(first).kind)) if kinds is None else kinds.which

    def read(self) -> Tensor:
        capture = self.value.capture
        found = fresh(capture, self.value.read(()), self.kind)
        if self.which is not None:
            give_kinds(found, self.which.read(()), self.kind.among)
        return found

    def write(self, value: Any) -> None:
        """A value of its type."""
        check_exact(self.value.capture, value, self.kind)
        if self.which is not None:
            self.which.write((), kind_node(value))
        self.value.write((), fitted(leaf_node(value), self.kind))


def is_field(x: Any, kind: LeafType | None = None) -> bool:
    """Is it an array, of this type, that a loop may carry under an attribute?"""
    if not isinstance(x, Tensor) or x.is_scalar or not x.type.shape:
        return False
    cell, mine = x._cell, leaf_type(x)
    is_plain = all(found is None for found in (cell.memory, cell.kinds, cell.strides, cell.parts_of, mine.strides))
    return is_plain and not (x._path or mine.among) and (kind is None or leaves.is_same_type(mine, kind, kinds=True))


def _is_small(value: int) -> bool:
    return abs(value) < 2**60


@contextmanager
def _at_root(capture: CellCapture) -> Iterator[None]:
    """What is recorded inside stands beside the program's own arrays, outside of all blocks."""
    graph, capture.graph = capture.graph, capture.root
    try:
        with capture.root.building():
            yield
    finally:
        capture.graph = graph


def may_log(capture: CellCapture) -> bool:
    """Can what stands here be logged? A log has room for what the loops around it may put there."""
    if any(made.graph.name in _OTHER_TIMES for made in capture.blocks):
        return False
    return not any(isinstance(tracer.count, Moving) for tracer in capture.tracers)


def in_loop(capture: CellCapture) -> bool:
    return any(made.repeats for made in capture.blocks)


def at_root(capture: CellCapture, cell: Cell) -> Node:
    """The value of a cell in the graph in which it was made, while blocks are traced that may have entered it."""
    return next((made.cells[cell].outside for made in capture.blocks if cell in made.cells), cell.node)


def blocks_of_turn(capture: CellCapture) -> Sequence[Block]:
    """The innermost loop's body and the blocks in it; all blocks where no loop is."""
    loops = [n for n, made in enumerate(capture.blocks) if made.repeats]
    return capture.blocks[loops[-1] if loops else 0 :]


def is_handed_on(capture: CellCapture, cell: Cell) -> bool:
    """Is it an array that an iteration takes from the one before?"""
    return any(tensor._cell is cell for tracer in capture.tracers for pairs in tracer.bound.values() for tensor, _ in pairs)


def started_as(capture: CellCapture, cell: Cell) -> Iterator[Tensor]:
    """The arrays that an array which a loop carries was before the first iteration."""
    for tracer in capture.tracers:
        for name, pairs in tracer.bound.items():
            if any(tensor._cell is cell for tensor, _ in pairs):
                yield from (leaf for leaf in leaves.taken_apart(tracer.before[name])[1] if isinstance(leaf, Tensor))


class Turns:
    """The logs of blocks behind one another. To a recording it is one effect; in a trace it is what a run gives out."""

    def __init__(self, capture: CellCapture, names: dict[str, Any], loop: Statement | None) -> None:
        self.capture, self.names, self.loop = capture, names, loop
        self.kept_inside: Sequence[list[Any]] = ()  # lists of the program's own that nobody gets
        self.number = self._cell((), _INT)  # of what was logged so far
        self.logs: list[Log] = []

    def state(self) -> Any:
        return [(log, len(log.given)) for log in self.logs]

    def restore(self, state: Any) -> None:
        self.logs = [log for log, _ in state]
        for log, count in state:
            del log.given[count:]

    def goes_on(self) -> bool:
        """Are the names those that were assigned when it began?"""
        now = self.capture.assigned
        return now.keys() == self.names.keys() and all(now[name] is value for name, value in self.names.items())

    @property
    def sources(self) -> list[Source]:
        return [source for log in self.logs for *_, source in self._given_by(log) if source is not None]

    @property
    def kinds(self) -> set[str]:
        return {kind for log in self.logs for _, _, kind, _ in self._given_by(log)}

    # ---- while the program is traced
    def log(self) -> Log:
        """The log of what stands here."""
        capture = self.capture
        if self.logs and self.logs[-1].blocks[-1] is capture.blocks[-1]:
            return self.logs[-1]
        capacity: Any = 1
        for tracer in capture.tracers:
            if tracer.count is None:
                tracer.limit_turns(MOST_TURNS)
            capacity = capacity * (MOST_TURNS if tracer.count is None else tracer.count)
        count, order = self._cell((), _INT), self._cell((as_length(capacity),), _INT)
        at: Any = 0
        if capture.tracers:
            at = count.read(())
            capture.bounds.noted[at] = 0, capacity - 1
        found = Log(tuple(capture.blocks), capture.tracers, capacity, count, order, at)
        self._put(found, order, self.number.read(()))
        for cell in (count, self.number):
            cell.move_on((), elementwise(Add(), cell.read(()), constant(np.int64(1))))
        self.logs.append(found)
        return found

    def logged(self, log: Log, value: Any) -> Logged:
        """A number or an array of which each turn has another one."""
        kind = leaf_type(value)
        shape = kind.type.shape
        if ARRAY in kind.among or any(isinstance(n, Moving) or self.capture.is_of_data(n) for n in shape):
            raise Unlogged
        if int(kind.type.nbytes) * int(log.capacity) > MOST_BYTES:
            raise Unlogged
        values = self._cell((as_length(log.capacity), *shape), kind.dtype)
        self._put(log, values, leaf_node(value))
        kinds: Cell | None = None
        if kind.among:
            kinds = self._cell((as_length(log.capacity),), _INT)
            self._put(log, kinds, kind_node(value))
        return Logged(values, kind, kinds)

    def rows_of(self, items: list[Any]) -> Iterator[Rows | None]:
        """What was logged for a list; None for what cannot be read."""
        found = [(log, [made[1] for _, made, _, _ in log.given if _is_for(made[0], items)]) for log in self.logs]
        found = [(log, values) for log, values in found if values]
        outermost = [log.blocks[0] for log, _ in found]
        for log, values in found:
            logged = [value for value in values if isinstance(value, Logged) and value.kinds is None]
            may_read = len(logged) == len(values) and outermost.count(log.blocks[0]) == 1
            may_read = may_read and all(leaves.is_same_type(logged[0].kind, value.kind) for value in logged)
            cells = [value.values for value in logged]
            yield Rows(cells, logged[0].kind, log.count, log.is_full) if may_read else None

    def _put(self, log: Log, cell: Cell, value: Node) -> None:
        self.capture.before_write(cell)
        cell.write((basic_index(ArrayType(cell.node.shape, cell.node.dtype), (log.at,)),), value)

    def _cell(self, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Cell:
        """Room beside the program's own arrays, outside of all blocks."""
        capture = self.capture
        with _at_root(capture):
            zero = constant(np.zeros((), dtype))
            return Cell(capture, capture.root.add(Fill(shape), zero) if shape else zero)

    # ---- in the trace
    def _given_by(self, log: Log) -> list[tuple[types.FunctionType, tuple[Made, ...], str, Source | None]]:
        """What somebody gets."""
        return [given for given in log.given if not any(_is_for(given[1][0], x) for x in self.kept_inside)]

    @property
    def is_given(self) -> bool:
        return any(map(self._given_by, self.logs))

    def builds(self, structure: Structure) -> tuple[Callable[..., Any], list[Build]]:
        """What gives all of it out, and what a run hands to that."""
        values: list[Build] = []

        def room(value: Any) -> int:
            values.append(structure.of(value))
            return len(values) - 1

        def reader(made: Made) -> Callable[[Sequence[Any], int], Sequence[Any]]:
            if isinstance(made, Same):
                return partial(_same, room(made.value))
            if isinstance(made, Together):
                return partial(_together, made.kind, [reader(item) for item in made.items], made.keys)
            if made.kinds is not None:
                return partial(_of_kinds, room(Tensor(made.values)), room(Tensor(made.kinds)))
            if made.kind.weak is not None:
                return partial(_numbers, room(Tensor(made.values)))
            return partial(_scalars if made.kind.is_scalar else _arrays, room(Tensor(made.values)))

        given_by = [(log, given) for log in self.logs if (given := self._given_by(log))]
        parts = [
            GivingPart(
                room(Tensor(log.count)), room(Tensor(log.order)) if len(given_by) > 1 else -1,
                [(function, [reader(made) for made in values_of]) for function, values_of, _, _ in given],
            )
            for log, given in given_by
        ]  # fmt: skip
        return Giving(parts), values


def _is_for(made: Made, items: list[Any]) -> bool:
    return isinstance(made, Same) and made.value is items


Reader = Callable[[Sequence[Any], int], Any]


class GivingPart:
    """What is given out for one log: where its count and its order are, and functions with what reads their arguments."""

    def __init__(self, count: int, order: int, given: list[tuple[Callable[..., Any], list[Reader]]]) -> None:
        self.count, self.order, self.given = count, order, given


class Giving:
    """Gives out what a run has logged, in order."""

    def __init__(self, parts: list[GivingPart]) -> None:
        self.parts = parts

    def __call__(self, *values: Any) -> None:
        for function, args in self.rows(values):
            function(*args)

    def counted(self, begun: list[int], values: Sequence[Any]) -> None:
        """The same; `begun` says how many statements have begun."""
        for function, args in self.rows(values):
            begun[0] += 1
            function(*args)

    def rows(self, values: Sequence[Any]) -> Iterator[tuple[Callable[..., Any], Sequence[Any]]]:
        """What is done, in order."""
        found: list[tuple[int, Any]] = []
        for part in self.parts:
            count = int(values[part.count])
            order = range(count) if part.order < 0 else values[part.order][:count].tolist()
            columns = [(function, [read(values, count) for read in readers]) for function, readers in part.given]
            found += zip(order, zip(*(_row(function, args, count) for function, args in columns), strict=True), strict=True)
        if len(self.parts) > 1:
            found.sort(key=_first)
        for _, row in found:
            yield from row


def _first(entry: tuple[int, Any]) -> int:
    return entry[0]


def _row(function: Callable[..., Any], args: list[Any], count: int) -> Any:
    """A function with its arguments, for each turn."""
    return zip(repeat(function, count), zip(*args, strict=True), strict=True)


def _same(at: int, values: Sequence[Any], count: int) -> Any:
    return repeat(values[at], count)


def _numbers(at: int, values: Sequence[Any], count: int) -> Any:
    return values[at][:count].tolist()


def _scalars(at: int, values: Sequence[Any], count: int) -> Any:
    return list(values[at][:count])


def _arrays(at: int, values: Sequence[Any], count: int) -> Any:
    return (row.copy() for row in map(np.asarray, values[at][:count]))


def _of_kinds(at: int, kinds: int, values: Sequence[Any], count: int) -> Any:
    found = zip(values[at][:count], values[kinds][:count].tolist(), strict=True)
    return [PYTHON_KINDS[kind](value) if kind in PYTHON_KINDS else value for value, kind in found]


def _together(kind: type, readers: list[Reader], keys: Sequence[Any], values: Sequence[Any], count: int) -> Any:
    columns = [read(values, count) for read in readers]
    items = zip(*columns, strict=True) if columns else repeat((), count)
    if kind is dict:
        return (dict(zip(keys, row, strict=True)) for row in items)
    return map(kind, items)


__all__ = [
    "Field", "Log", "Logged", "Same", "Together", "Turns", "Unlogged", "at_root", "blocks_of_turn", "in_loop", "is_field",
    "is_handed_on", "may_log", "started_as",
]  # fmt: skip

"""Which memory a name stands for, where a traced value decides it.

Python's aliases are cells and paths (tensor.py). Behind an `if` or a loop on traced values a name may be one array or another:
`v = x if x.max() > 1 else x.copy()`. Its value is a result of the Branch or Loop; its memory is *chosen* by one more result, a
number: that of one of the arrays it may be, or 0 where it has memory of its own. Reading follows what was written into those
arrays since, writing reaches the one that it is, and what leaves the program is that very array. The number is decided where
the ways meet, from what each of them leaves behind (`origin`); what nobody asks for is dropped from the graph later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.ir import Moving, Node, Symbolic
from jitlab.ops.build import apply, constant
from jitlab.ops.comparison import Equal, LogicalAnd, LogicalOr
from jitlab.ops.elementwise import Select
from jitlab.ops.indexing import read_index, write_index
from jitlab.ops.views import Reshape

from .tensor import Cell, Path, Tensor, seen

if TYPE_CHECKING:
    from .arrays import Arrays
    from .blocks import Block


@dataclass(eq=False)
class Chosen:
    """The memory of a cell that is one of several arrays, or its own."""

    which: Node
    among: dict[int, Tensor]
    array: Tensor  # the one that stands for it; others are views
    known: dict[Cell, Any] = field(default_factory=dict)  # what those arrays held when the cell's own value was theirs

    def __post_init__(self) -> None:
        self.array._cell.memory = self

    def arrays(self) -> Iterable[Tensor]:
        """The arrays whose memory it may be."""
        return self.among.values()

    def settle(self) -> None:
        """From here on the cell's own value is that of the array it is."""
        self.known = {other._cell: other._cell.state() for other in self.among.values()}

    def others(self, path: Path) -> list[tuple[Node, Cell, Path]]:
        """Each array it may be: the bool whether it is that one, its cell, and the way to what is seen through `path`."""
        found = []
        for number, other in self.among.items():
            other._cell.capture.before_read(other._cell)
            is_it = apply(Equal(), self.which, constant(np.int64(number)))
            found.append((is_it, other._cell, (*other._path, *path)))
        return found

    def has_moved(self, cell: Cell) -> bool:
        """Was anything written into an array it may be since the two were one value?"""
        return bool(self.known.get(cell) != cell.state())

    def read(self, node: Node, path: Path) -> Node:
        """What is seen through `path`; `node` is the cell's own value there."""
        for is_it, cell, way in self.others(path):
            if self.has_moved(cell):
                node = _select(is_it, cell.read(way), node)
        return node

    def write(self, cell: Cell, path: Path, value: Node) -> None:
        """Write into the array that it is, and into the cell's own value."""
        cell.move_on(path, value)
        others = self.others(path)  # in a block, it is not known any more what was written into them before
        follows = not any(self.has_moved(cell) for _, cell, _ in others)
        for is_it, other, way in others:
            other.write(way, _select(is_it, value, other.read(way)))
        if follows:
            self.settle()


def is_same(x: Tensor, y: Tensor) -> Node | bool:
    """`x is y`, a node where only a run knows."""
    found: Node | bool = x is y
    for one, other in ((x, y), (y, x)):
        chosen = one._cell.memory
        if found is False and isinstance(chosen, Chosen) and chosen.array is one:
            for number, array in chosen.among.items():
                same = is_same(array, other)
                if same is not False:
                    is_it = apply(Equal(), chosen.which, constant(np.int64(number)))
                    both = is_it if same is True else apply(LogicalAnd(), is_it, same)
                    found = both if found is False else apply(LogicalOr(), found, both)
    return found


@dataclass(eq=False)
class Picked:
    """The memory of a cell that is `base[index]`, where numbers of the index are known at a run."""

    base: Tensor
    index: tuple[Any, ...]  # as the program wrote it
    array: Tensor
    known: Any = None  # what the base held when the cell's own value was that part of it

    def __post_init__(self) -> None:
        self.array._cell.memory = self
        self.known = self.base._cell.state()

    def arrays(self) -> Iterable[Tensor]:
        """The arrays whose memory it may be."""
        return (self.base,)

    def lowered(self) -> Any:
        return self.array.capture.lower(self.index)

    def read(self, node: Node, path: Path) -> Node:
        """What is seen through `path`; `node` is the cell's own value there."""
        self.array.capture.before_read(self.base._cell)
        if self.known == self.base._cell.state():
            return node
        return seen(_of_shape(read_index(self.base.node(), self.lowered()), self.array.type.shape), path)

    def write(self, cell: Cell, path: Path, value: Node) -> None:
        """Write into the part of the base that it is, and into the cell's own value."""
        cell.move_on((), cell.changed(cell.read(()), path, value))
        base = self.base
        base._cell.write(base._path, write_index(base.node(), self.lowered(), cell.node))
        self.known = base._cell.state()

    def is_part(self, value: Tensor, base: Tensor, index: Any) -> bool:
        """Is `value` what `base[index]` is now?"""
        parts = index if isinstance(index, tuple) else (index,)
        same = base._cell is self.base._cell and base._path == self.base._path and len(parts) == len(self.index)
        same = same and not value._path
        return (
            same and self.known == base._cell.state()
            and all(a is b or (type(a) is type(b) is int and a == b) for a, b in zip(parts, self.index, strict=True))
        )  # fmt: skip


def pick(base: Tensor, index: Any, found: Any) -> Any:
    """What `base[index]` gave is a view where NumPy's is: where the index holds numbers, slices, None and Ellipsis."""
    parts = index if isinstance(index, tuple) else (index,)
    if isinstance(found, Tensor) and all(map(_is_basic, parts)) and (found.ndim or Ellipsis in map(_as_it_is, parts)):
        found.is_scalar, found._locked = False, base._locked
        Picked(base, parts, found)
    return found


def _is_basic(part: Any) -> bool:
    if isinstance(part, Tensor):
        return part.is_scalar and part.dtype.kind in "iu"
    return part is None or part is Ellipsis or isinstance(part, (int, slice, Symbolic)) and not isinstance(part, bool)


def _as_it_is(part: Any) -> Any:
    return None if isinstance(part, Tensor) else part


def _select(condition: Node, x: Node, y: Node) -> Node:
    return _of_shape(apply(Select(), condition, _of_shape(x, y.shape), y), y.shape)


def _of_shape(node: Node, shape: tuple[int, ...]) -> Node:
    """The node with these extents, which are its own lengths."""
    same = all(m == n and isinstance(m, Moving) == isinstance(n, Moving) for m, n in zip(node.shape, shape, strict=True))
    return node if same and node.shape == shape else apply(Reshape(shape), node)


def is_array(x: Any) -> bool:
    """Something that has memory: no number and no NumPy scalar."""
    return isinstance(x, Tensor) and not x.is_scalar


@dataclass(frozen=True)
class Origin:
    """Which memory a value has when a block ends: a number, or a node that gives it; 0 for memory of its own."""

    which: int | Node = 0
    among: dict[int, Tensor] = field(default_factory=dict)
    part_of: Cell | None = None  # a part of this array, but only a run knows which

    @property
    def is_own(self) -> bool:
        return not self.among and self.part_of is None


OWN = Origin()


def origin(
    capture: Arrays, value: Any, made: Block, carried: Callable[[Tensor], Origin | None] = lambda value: None
) -> Origin:
    """Which memory a value has for those outside of the block `made`, as its end has it. Its graph is being built.

    `carried` knows the arrays that the block was handed in as values: those that a loop carries.
    """
    if not is_array(value):
        return OWN
    handed = carried(value)
    if handed is not None:
        return handed
    cell = value._cell
    if cell.home is not made.graph:
        if ends_here(capture, value):
            return Origin(part_of=cell)
        number = capture.number_of(value)
        return Origin(number, {number: value})
    chosen = cell.memory
    if isinstance(chosen, Picked):
        there = origin(capture, chosen.base, made, carried)
        return OWN if there.is_own else Origin(part_of=there.part_of or next(iter(there.among.values()))._cell)
    if chosen is None:
        return Origin(part_of=cell.parts_of()) if cell.parts_of is not None and cell.parts_of() is not None else OWN
    which: Node | int = 0
    among: dict[int, Tensor] = {}
    for number, other in chosen.among.items():
        there = origin(capture, Tensor(other._cell, (*other._path, *value._path)) if value._path else other, made, carried)
        if there.part_of is not None:
            return there
        if there.among:
            is_it = apply(Equal(), chosen.which, constant(np.int64(number)))
            which = apply(Select(), is_it, as_number(there.which), as_number(which))
            among.update(there.among)
    return Origin(which, among)


def ends_here(capture: Arrays, value: Tensor) -> bool:
    """Is it a view whose place hangs on a number that only the block knew: a loop's index, or one found in it?"""
    numbers = [n for step in value._path for n in (*step.shape, *(n for entry in getattr(step, "map", ()) for n in entry[:2]))]
    return any(symbol not in capture.bounds for n in numbers if isinstance(n, Moving) for symbol in n.moving)


def as_number(which: int | Node) -> Node:
    return which if isinstance(which, Node) else constant(np.int64(which))


__all__ = ["OWN", "Chosen", "Origin", "Picked", "as_number", "ends_here", "is_array", "is_same", "origin", "pick"]

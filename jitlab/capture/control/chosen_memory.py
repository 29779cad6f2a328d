"""Which memory a name stands for, where a traced value decides it.

Python's aliases are cells and paths (tensor.py). Behind an `if` or a loop on traced values a name may be one array or another:
`v = x if x.max() > 1 else x.copy()`. Its value is a result of the Branch or Loop; its memory is *chosen* by one more result, a
number: that of one of the arrays it may be, or 0 where it has memory of its own. Reading follows what was written into those
arrays since, writing reaches the one that it is, and what leaves the program is that very array. The number is decided where
the ways meet, from what each of them leaves behind (`origin`); what nobody asks for is dropped from the graph later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.tracers.tensor import Answer, Cell, Path, Tensor, seen
from jitlab.ir import Graph, Moving, Node, Symbolic, plain
from jitlab.ops.build_nodes import apply, constant
from jitlab.ops.elementwise.casts import Select
from jitlab.ops.elementwise.comparison import Equal
from jitlab.ops.layout.indexing import read_index, write_index
from jitlab.ops.layout.views import Reshape
from jitlab.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

    from .blocks import Block


#: Into how many arrays at most a write is compiled of which data decide the one.
MOST_WRITTEN = 8


@dataclass(eq=False)
class Chosen:
    """The memory of a cell that is one of several arrays, or its own.

    Where one of them is itself a choice, what that may be is among these, too: it stands here for memory of its own.
    """

    is_choice: ClassVar[bool] = True
    which: Node
    among: dict[int, Tensor]
    array: Tensor  # the one that stands for it; others are views
    is_own: bool  # may it be memory of its own?
    known: Known = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.array._cell.memory = self

    def arrays(self) -> Iterable[Tensor]:
        """The arrays whose memory it may be."""
        return self.among.values()

    def is_it(self, number: int) -> Node:
        return apply(Equal(), self.which, constant(np.int64(number)))

    def settle(self) -> None:
        """From here on the cell's own value is that of the array it is."""
        self.known = {cell: cell.node for other in self.among.values() for cell in other._cell.owners()}

    def moved(self) -> list[tuple[int, Tensor]]:
        """The arrays into which something was written since."""
        home = self.array._cell.home
        return [(number, other) for number, other in self.among.items() if has_moved(self.known, other._cell, home)]

    def decided_by_layout(self, x: Tensor, question: Callable[[tuple[int, ...]], Answer]) -> Answer:
        """The answer for a view `x` of it, whichever array it is."""
        ways = [Tensor(other._cell, (*other._path, *x._path)) for other in self.arrays()]
        answers = {way.decided_by_layout(question) for way in ways}
        if self.is_own:
            answers.add(question(x.element_strides()))
        if len(answers) > 1:
            raise NotReplayable("aliasing", "lie_otherwise")
        return answers.pop()

    def read(self, node: Node, path: Path) -> Node:
        """What is seen through `path`; `node` is the cell's own value there."""
        for number, other in self.moved():
            node = _select(self.is_it(number), other._cell.read_own((*other._path, *path)), node)
        return node

    def write(self, cell: Cell, path: Path, value: Node) -> None:
        """Write into the array that it is, and into the cell's own value."""
        if len(self.among) > MOST_WRITTEN:
            raise NotReplayable("aliasing", "one_of_arrays", number=len(self.among))
        follows = not self.moved()
        cell.move_on(path, value)
        for number, other in self.among.items():
            way = (*other._path, *path)
            other._cell.write_own(way, _select(self.is_it(number), value, other._cell.read_own(way)))
        if follows:
            self.settle()


def _strides_of_part(shape: tuple[int, ...], strides: tuple[int, ...], index: tuple[Any, ...]) -> tuple[int, ...]:
    """Of `base[index]`, whatever its numbers are: NumPy's own, of an array without memory."""
    plainly = tuple(slice(None, None, i.step) if isinstance(i, slice) else i if i is None or i is ... else 0 for i in index)
    whole = np.lib.stride_tricks.as_strided(np.empty(0, np.int8), [max(n, 1) for n in shape], strides)
    return whole[plainly].strides


#: What cells held when something was made of them.
Known = dict[Cell, Node]


def has_moved(known: Known, cell: Cell, home: Graph) -> bool:
    """Was anything written into a cell since, for what belongs to the graph `home`? In a loop's body: in any iteration."""
    return any(_value_outside(owner, home) is not known.get(owner) for owner in cell.owners())


def _value_outside(cell: Cell, home: Graph) -> Node | None:
    """The value of a cell as the graph `home` has it; another node or None where it is not known to be that."""
    node = cell.node
    for made in reversed(cell.capture.blocks):
        if made.graph is home:
            break
        if made.repeats:
            return None
        entered = made.cells.get(cell)
        if entered is not None:
            if node is not entered.parameter:
                return node
            node = entered.outside
    return node


def resolved(capture: Arrays, value: Tensor) -> Origin:
    """The memory of an array of the graph that is being built, or of one around it."""
    number, memory = capture.number_of(value), value._cell.memory
    if not isinstance(memory, Chosen):
        return _itself(capture, value)
    which, among = as_number(number), {number: value}
    if not value._path:
        if not memory.is_own:
            return Origin(memory.which, memory.among, own=False)
        which = apply(Select(), memory.is_it(0), which, memory.which)
        return Origin(which, {**memory.among, **among}, own=False)
    for known, other in memory.among.items():
        there = Tensor(other._cell, (*other._path, *value._path))
        among[capture.number_of(there)] = there
        which = apply(Select(), memory.is_it(known), as_number(capture.number_of(there)), which)
    return Origin(which, among, own=False)


def is_same(capture: Arrays, x: Tensor, y: Tensor) -> Node | bool:
    """`x is y`, a node where only a run knows."""
    if x is y or not (_is_choice(x) or _is_choice(y)):
        return x is y
    one, other = (resolved(capture, z) if _is_choice(z) else _itself(capture, z) for z in (x, y))
    if one.among.keys().isdisjoint(other.among):
        return False
    return apply(Equal(), as_number(one.which), as_number(other.which))


def _itself(capture: Arrays, x: Tensor) -> Origin:
    number = capture.number_of(x)
    return Origin(number, {number: x}, own=False)


def _is_choice(x: Tensor) -> bool:
    return isinstance(x._cell.memory, Chosen) and x._cell.memory.array is x


@dataclass(eq=False)
class Picked:
    """The memory of a cell that is `base[index]`, where numbers of the index are known at a run."""

    is_choice: ClassVar[bool] = False
    base: Tensor
    index: tuple[Any, ...]  # as the program wrote it
    array: Tensor
    known: Known = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.array._cell.memory = self
        self.settle()

    def settle(self) -> None:
        """From here on the cell's own value is that part of the base."""
        self.known = {cell: cell.node for cell in self.base._cell.reaches()}

    def arrays(self) -> Iterable[Tensor]:
        """The arrays whose memory it may be."""
        return (self.base,)

    def lowered(self) -> Any:
        return self.array.capture.lower(self.index)

    def decided_by_layout(self, x: Tensor, question: Callable[[tuple[int, ...]], Answer]) -> Answer:
        """The answer for a view `x` of it, however its base lies."""

        def of_part(strides: tuple[int, ...]) -> Answer:
            return question(x.strides_from(_strides_of_part(plain(self.base.type.shape), strides, self.index)))

        return self.base.decided_by_layout(of_part)

    def moved(self) -> bool:
        """Was anything written into the base since?"""
        return any(has_moved(self.known, cell, self.array._cell.home) for cell in self.base._cell.reaches())

    def read(self, node: Node, path: Path) -> Node:
        """What is seen through `path`; `node` is the cell's own value there."""
        if not self.moved():
            return node
        return seen(_of_shape(read_index(self.base.node(), self.lowered()), self.array.type.shape), path)

    def write(self, cell: Cell, path: Path, value: Node) -> None:
        """Write into the part of the base that it is, and into the cell's own value."""
        cell.move_on((), cell.changed(cell.read(()), path, value))
        base = self.base
        base._cell.write(base._path, write_index(base.node(), self.lowered(), cell.node))
        self.settle()

    def is_part(self, value: Tensor, base: Tensor, index: Any) -> bool:
        """Is `value` what `base[index]` is now?"""
        parts = index if isinstance(index, tuple) else (index,)
        same = base._cell is self.base._cell and base._path == self.base._path and len(parts) == len(self.index)
        return (
            same and not value._path and not self.moved()
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
    own: bool = True  # may it be 0?
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
        return Origin(part_of=cell) if ends_here(capture, value) else resolved(capture, value)
    chosen = cell.memory
    if isinstance(chosen, Picked):
        there = origin(capture, chosen.base, made, carried)
        return OWN if there.is_own else Origin(part_of=there.part_of or next(iter(there.among.values()))._cell)
    if chosen is None:
        return Origin(part_of=cell.parts_of()) if cell.parts_of is not None and cell.parts_of() is not None else OWN
    which: Node | int = 0
    among: dict[int, Tensor] = {}
    own = chosen.is_own
    for number, other in chosen.among.items():
        there = origin(capture, Tensor(other._cell, (*other._path, *value._path)) if value._path else other, made, carried)
        if there.part_of is not None:
            return there
        own = own or there.own
        if there.among:
            is_it = apply(Equal(), chosen.which, constant(np.int64(number)))
            which = apply(Select(), is_it, as_number(there.which), as_number(which))
            among.update(there.among)
    return Origin(which, among, own)


def ends_here(capture: Arrays, value: Tensor) -> bool:
    """Is it a view whose place hangs on a number that only the block knew: a loop's index, or one found in it?"""
    numbers = [n for step in value._path for n in (*step.shape, *(n for entry in getattr(step, "map", ()) for n in entry[:2]))]
    return any(symbol not in capture.bounds for n in numbers if isinstance(n, Moving) for symbol in n.moving)


def as_number(which: int | Node) -> Node:
    return which if isinstance(which, Node) else constant(np.int64(which))


__all__ = ["OWN", "Chosen", "Origin", "Picked", "as_number", "ends_here", "is_array", "is_same", "origin", "pick", "resolved"]

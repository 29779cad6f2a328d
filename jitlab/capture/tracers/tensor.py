"""Tensor: what an array is while it is captured. A handle on a cell and the way from the cell's base to what is seen.

Aliasing ends here: a Python array is a *cell*, whose current value is a node, and a *path* of views. Reading
makes the views; writing makes updates and moves the cell on, so a view sees its base's writes and the other way round.
"""

from __future__ import annotations

import enum
import operator
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jitlab.capture.numpy_calls.layouts import c_strides, reshaped_strides
from jitlab.capture.numpy_calls.numpy_traits import is_foreign
from jitlab.capture.positions import describe, here, is_converted, source_text
from jitlab.errors import CaptureError, InaccessibleTensorError, OutOfScopeError, ValueOfTracedArrayError
from jitlab.ir import (
    ArrayType,
    Graph,
    Node,
    NotRolled,
    OperationView,
    Source,
    current_graph,
    made_as,
    made_now,
    output_name,
    plain,
    positions,
    producer,
    same_shape,
)
from jitlab.ir.size_facts import sizes_are_shown
from jitlab.ops.layout.views import Reshape, Update, View, compose, identity_map
from jitlab.ops.layout.windows import Windows
from jitlab.support.transactions import variable

if TYPE_CHECKING:
    from jitlab.capture.control.chosen_memory import Chosen, Picked
    from jitlab.capture.control.number_kinds import Kinds
    from jitlab.capture.state import Capture

    from .arrays import Arrays, Input

#: The capture that this thread (or task) is in.
current: ContextVar[Any] = variable("jitlab_capture", None)


def current_capture() -> Capture | None:
    """The capture that this thread (or task) is in."""
    return current.get()  # type: ignore[no-any-return]


Answer = TypeVar("Answer", bound=Hashable)
Step = View | Reshape | Windows
Path = tuple[Step, ...]


class Cell:
    """A place whose current value is a node of the graph: what a Python array object with its own memory is."""

    __slots__ = (
        "__weakref__", "by_data", "capture", "detached", "home", "input", "kinds", "made_from", "memory", "node", "part",
        "parts", "parts_of", "places", "readonly", "reads", "stale", "strides", "written",
    )  # fmt: skip

    def __init__(self, capture: Arrays, node: Node, input: Input | None = None) -> None:
        self.capture = capture
        self.node = node
        self.home = capture.graph if input is None else capture.root  # the graph in which the program made it
        self.input = input  # the argument or captured array whose memory this is
        self.reads: dict[Path, Node] = {}
        # Where the program made each view, and in which scopes and calls; it is recorded when it is read.
        self.places: dict[Path, tuple[Source | None, dict[str, Any]]] = {}
        self.strides: tuple[int, ...] | None = None  # in elements; None: C order
        self.readonly = False
        self.detached = False  # a copy of what NumPy would show as a view: only to be read
        self.parts_of: weakref.ref[Cell] | None = None  # the array that NumPy would show, whole or in part (`z.real`)
        self.part: tuple[Tensor, str] | None = None  # and how: an attribute of a real array
        self.by_data = False  # which part, or whether it is one, only a run knows
        self.made_from: Node | None = None  # that array's value when the copy was made
        self.stale = False  # that array has another value now
        self.parts: list[weakref.ref[Cell]] = []  # such copies of this one
        self.memory: Chosen | Picked | None = None  # where data decides which array, or which part of one, it is
        self.kinds: Kinds | None = None  # where data decides which of Python's or NumPy's numbers it is
        self.written = False

    def read(self, path: Path) -> Node:
        """The value seen through `path`; the same views are made once for each version of the cell."""
        self.capture.check_open()
        self.capture.before_read(self)
        node = self._own_value(path)
        return node if self.memory is None else self.memory.read(node, path)

    def _own_value(self, path: Path) -> Node:
        node = self.node
        for n in range(1, len(path) + 1):
            key = path[:n]
            known = self.reads.get(key)
            if known is None:
                place, attrs = self.places.get(key) or (None, made_now())
                with positions(here if place is None else partial(_itself, place)), made_as(attrs):
                    known = self.reads[key] = _seen(self.capture.graph, path[n - 1], node)
                self.capture.journal.append((_forget_read, self, key))
            node = known
        return node

    def write(self, path: Path, value: Node) -> None:
        """Replace what is seen through `path` by `value`, which has that shape and the cell's dtype."""
        if self.memory is None:
            self.move_on(path, value)
        else:
            self.memory.write(self, path, value)

    def move_on(self, path: Path, value: Node) -> None:
        """As `write`, of this cell alone: a block that wrote it gives its value, and those of the arrays that it may be."""
        self.capture.check_open()
        self.capture.before_write(self)
        node = self.changed(self.node, path, value)
        if node is not self.node:
            self.capture.journal.append((Cell.put_back, self, self.node, self.reads, self.written))
            self.node, self.reads, self.written = node, {}, True
            self.settle_parts()

    def put_back(self, node: Node, reads: dict[Path, Node], written: bool) -> None:
        """It holds what it held before a write."""
        self.node, self.reads, self.written = node, reads, written
        self.settle_parts()

    def owners(self) -> Iterator[Cell]:
        """Itself, and what its own memory is a part of."""
        yield self
        if self.memory is not None and not self.memory.is_choice:
            for base in self.memory.arrays():
                yield from base._cell.reaches()

    def reaches(self) -> Iterator[Cell]:
        """Itself, and the cells of the arrays that it may be."""
        yield from self.owners()
        if self.memory is not None and self.memory.is_choice:
            for other in self.memory.arrays():
                yield from other._cell.owners()

    def read_own(self, path: Path) -> Node:
        """As `read`, of its own memory."""
        self.capture.before_read(self)
        node = self._own_value(path)
        return node if self.memory is None or self.memory.is_choice else self.memory.read(node, path)

    def write_own(self, path: Path, value: Node) -> None:
        """As `write`, into its own memory."""
        if self.memory is None or self.memory.is_choice:
            self.move_on(path, value)
        else:
            self.memory.write(self, path, value)

    def is_locked(self) -> bool:
        """May it be one of the arrays that NumPy makes read-only?"""
        return self.memory is not None and any(other.readonly for other in self.memory.arrays())

    def stands_for_part_of(self, base: Cell, *, by_data: bool = False) -> None:
        """It is a copy of what NumPy would show as a view of `base`: right for as long as `base` keeps its value."""
        self.detached, self.parts_of, self.made_from, self.by_data = True, weakref.ref(base), base.node, by_data
        base.parts.append(weakref.ref(self))

    def settle_parts(self) -> None:
        """Its value is another one: which copies of it still hold."""
        for part in self.parts:
            cell = part()
            if cell is not None:
                cell.stale = cell.made_from is not self.node

    def changed(self, base: Node, path: Path, value: Node) -> Node:
        """`base` with another value in what is seen through `path`."""
        if not path:
            return value
        step, rest = path[0], path[1:]
        assert not isinstance(step, Windows), "windows are read-only"
        graph = self.capture.graph
        if rest:
            value = self.changed(graph.add(step, base), rest, value)
        if isinstance(step, Reshape):
            return graph.add(Reshape(base.shape), value)
        return base if 0 in plain(step.shape) else graph.add(Update(step.map, step.shape), base, value)


def _forget_read(cell: Cell, path: Path) -> None:
    cell.reads.pop(path, None)


def _seen(graph: Graph, step: Step, node: Node) -> Node:
    return step.of(node) if isinstance(step, Windows) else graph.add(step, node)


def seen(node: Node, path: Path) -> Node:
    """What is seen of a value through `path`."""
    graph = current_graph()
    assert graph is not None, "no graph is being built"
    for step in path:
        node = _seen(graph, step, node)
    return node


def _itself(place: Source) -> Source:
    return place


class Lock(enum.IntEnum):
    """What NumPy says when an array is written into, for what kind of view it is (or is a view of)."""

    NONE = 0
    WARNS = 1  # np.broadcast_arrays: a warning, and writes that its elements share
    REFUSES = 2


class Tensor:
    """An array while it is recorded: it has an array's operators, methods and attributes, but no values.

    A function under `jl.function` gets it in the place of each array. `shape`, `dtype`, `ndim` and `size` are known; what asks
    for its values (`if x.sum() > 0` without a recording's help, `int(x)`, `x.item()`) is an error that says so.

    Args:
        cell: the array that is recorded.
        path: the views that lead from there to this one.
        is_scalar: True for what NumPy would give as a scalar.

    Raises:
        OutOfScopeError: it is used after its trace has ended.
        ValueOfTracedArrayError: Python asks for its value.

    Example:
        >>> @jl.function
        ... def told(x):
        ...     print(x)
        ...     return x + 1
        >>> told(np.zeros((2, 3), np.float32)).shape
        Tensor("x:0", shape=(2, 3), dtype=float32)
        (2, 3)
    """

    __slots__ = ("__weakref__", "_cell", "_locked", "_path", "_shape", "is_scalar")
    __array_priority__ = 1000.0
    _cell: Cell
    _path: Path
    _shape: tuple[int, ...]
    _locked: Lock
    is_scalar: bool

    def __init__(self, cell: Cell, path: Path = (), *, is_scalar: bool = False) -> None:
        put = object.__setattr__  # beside that of arrays
        put(self, "_cell", cell)
        put(self, "_path", path)
        put(self, "_shape", path[-1].shape if path else cell.node.type.shape)
        put(self, "is_scalar", is_scalar)
        put(self, "_locked", Lock.NONE)

    # ---- what it is
    @property
    def capture(self) -> Arrays:
        return self._cell.capture

    @property
    def type(self) -> ArrayType:
        return ArrayType(self._shape, self._cell.node.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """As the program sees it: a length that moves with a loop is a LoopIndex, which computes as an int does, one that the
        data decide is a traced number."""
        if any(map(self.capture.has_no_value, self._shape)):
            return tuple(map(self.capture.integer, self._shape))
        sizes_are_shown()
        return (*self._shape,)  # a tuple of its own, as NumPy's

    @shape.setter
    def shape(self, shape: Any) -> None:
        """The same array object under another shape; its views and the arrays it is a view of keep theirs."""
        capture, cell = self.capture, self._cell
        if self.is_scalar:
            raise AttributeError("attribute 'shape' of 'numpy.generic' objects is not writable")
        if cell.input is not None and cell.input.tensor is self:
            raise CaptureError(
                "assigning to the shape of the caller's own array cannot be traced", where=describe(here()),
                why="it would change an object outside of the recording", hint="x = x.reshape(...)",
            )  # fmt: skip
        if getattr(capture.graph, "outer", None) is not None:
            raise NotRolled("kind", "other_shape")
        other = self.reshape(shape)
        if other._cell is not cell:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape."
            )
        capture.journal.append((Tensor._see, self, self._path, self._shape))
        self._see(other._path, other._shape)

    def _see(self, path: Path, shape: tuple[int, ...]) -> None:
        self._path, self._shape = path, shape

    @property
    def weak(self) -> Any:
        """The Python type of a traced Python number (see `ops.build.weak`); None for arrays and NumPy scalars."""
        return None if self._path else self._cell.node.weak

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._cell.node.dtype

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        size = self.type.size
        if not self.capture.has_no_value(size):
            sizes_are_shown()
        return self.capture.integer(size)  # type: ignore[no-any-return]

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def node(self) -> Node:
        """The node of its value now."""
        return self._cell.read(self._path)

    @property
    def op(self) -> OperationView:
        """The operation that gives it, as the contract sees it."""
        return OperationView(self.graph, producer(self.node())[0])

    @property
    def name(self) -> str:
        """`operation:number` of its value now."""
        return output_name(self.node())

    @property
    def graph(self) -> Graph:
        """The graph that is being recorded."""
        return self.capture.graph

    @property
    def readonly(self) -> bool:
        """NumPy would refuse to write into it."""
        return self.is_scalar or self._cell.readonly or self._locked is Lock.REFUSES

    def __repr__(self) -> str:
        return self.capture.shown(self)

    def __str__(self) -> str:
        return self.capture.text(self)

    def __hash__(self) -> int:  # NumPy's scalars are found by value, in a dict, a set or a cache
        if self.is_scalar:
            raise no_value(self, "hash()")
        raise TypeError("unhashable type: 'numpy.ndarray'")

    # ---- views
    def along(self, steps: Sequence[Step]) -> Tensor:
        """The view that `steps` lead to. A reshape that NumPy could not do without a copy starts a new cell."""
        tensor, locked = self, self._locked
        for step in steps:
            locked = max(locked, Lock.REFUSES if _repeats(step) else Lock.NONE)
            tensor = tensor._one_step(step)
        tensor._locked = locked if tensor._cell is self._cell else Lock.NONE
        return tensor

    def _one_step(self, step: Step) -> Tensor:
        if isinstance(step, Windows):
            return self._seen_through((*self._path, step))
        if isinstance(step, Reshape):
            if plain(step.shape) == plain(self._shape) and same_shape(step.shape, self._shape):
                return Tensor(self._cell, self._path)
            old, new = plain(self._shape), plain(step.shape)
            self.capture.layout.views = self.capture.layout.views or len(self._shape) > 1
            if self.decided_by_layout(lambda strides: reshaped_strides(old, strides, new) is None):
                return self.capture.fresh(self.capture.graph.add(step, self.node()))
            return self._seen_through((*self._path, step))
        if self._path and isinstance(self._path[-1], View):
            step = compose(step, self._path[-1])
            before = self._path[:-1]
        else:
            before = self._path
        inner = before[-1].shape if before else self._cell.node.shape
        if step.map == identity_map(len(inner)) and step.shape == inner:
            return Tensor(self._cell, before)
        return self._seen_through((*before, step))

    def _seen_through(self, path: Path) -> Tensor:
        if path not in self._cell.places:
            self._cell.places[path] = here(), made_now()
        return Tensor(self._cell, path)

    def decided_by_layout(self, question: Callable[[tuple[int, ...]], Answer]) -> Answer:
        """The answer for its element strides. NotReplayable: data decide which array it is, and those answer differently."""
        memory = self._cell.memory
        return question(self.element_strides()) if memory is None else memory.decided_by_layout(self, question)

    def element_strides(self) -> tuple[int, ...]:
        """Distances between elements along each axis, counted in elements, as NumPy would have them."""
        known = self._cell.strides
        return self.strides_from(c_strides(plain(self._cell.node.shape)) if known is None else known)

    def strides_from(self, strides: tuple[int, ...]) -> tuple[int, ...]:
        """Its element strides, where those of its memory are these."""
        shape = plain(self._cell.node.shape)
        for step in self._path:
            if isinstance(step, Reshape):
                reshaped = reshaped_strides(shape, strides, plain(step.shape))
                assert reshaped is not None
                strides = reshaped
            elif isinstance(step, Windows):
                strides = step.strides(strides)
            else:
                seen = [0] * len(step.shape)
                for (_, by, axis), stride in zip(step.map, strides, strict=True):
                    if axis is not None:
                        seen[axis] += stride * int(by)
                strides = tuple(seen)
            shape = plain(step.shape)
        return strides

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(operator.index(self.shape[0])))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # ---- subscripts, operators, attributes and methods: array_methods.py
    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    def __copy__(self) -> Tensor:
        return self.copy()  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.copy()  # type: ignore[no-any-return]

    # ---- what it has not: a value
    def __bool__(self) -> bool:
        return self.capture.truth(self)

    def __index__(self) -> int:
        return self.capture.index(self)

    def __int__(self) -> int:
        return int(self.capture.real(self, "int()"))

    def __float__(self) -> float:
        return float(self.capture.real(self, "float()"))

    def __complex__(self) -> complex:
        return complex(self.capture.real(self, "complex()"))

    def item(self, *args: Any) -> Any:
        return self.capture.python_values(self, "item", *args)

    def tolist(self) -> Any:
        return self.capture.python_values(self, "tolist")

    def tobytes(self, order: Any = "C") -> bytes:
        return self.capture.real(self, ".tobytes()").tobytes(order)  # type: ignore[no-any-return]

    def __format__(self, spec: str) -> str:
        return format(self.capture.real(self, "format()"), spec) if spec else str(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        raise _asked_by_foreign(self) or no_value(self, "a conversion to a real array")

    def __reduce__(self) -> Any:
        raise no_value(self, "pickle")

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        return np.empty(0).__array_namespace__(api_version=api_version)


def _asked_by_foreign(tensor: Tensor) -> Exception | None:
    """What ends the recording when a method of a foreign array wants ours: `masked + x` asks the masked array first."""
    frame = sys._getframe(2)
    while tensor.capture.is_open and frame.f_back is not None and not is_converted(frame.f_code):
        owner = frame.f_locals.get("self")
        if type(owner) is not Tensor and is_foreign(owner):
            return tensor.capture.foreign(owner)
        frame = frame.f_back
    return None


def no_value(tensor: Tensor, what: str) -> Exception:
    """The error for a Python value of a tensor; an OutOfScopeError when the capture has ended."""
    if not tensor.capture.is_open:
        return out_of_scope(tensor.type.describe())
    source = here()
    text = source_text(source) if source else "the array"
    needed = "the number itself, to format it" if what == "format()" else f"a Python value by {what}"
    return ValueOfTracedArrayError(
        f"`{text}` needs {needed}: that is known only when the program runs.",
        where=describe(source),
        why="one recording serves every input, so it holds what is done with the values, not the values.",
        hint="keep it an array (NumPy's functions take it as it is), or do this outside the recorded function.",
    )


def out_of_scope(what: str) -> OutOfScopeError:
    return OutOfScopeError(
        f"the traced array {what} is out of scope and cannot be used here: its recording has ended.",
        where=describe(here()),
        why="it was stored outside (a list, an attribute, a global) while the function was recorded, and never had a value.",
        hint="return it from the function, and use what the call returns.",
    )


def inaccessible(cell: Cell) -> Exception:
    """The error for a value of a body that is used outside it."""
    return InaccessibleTensorError(
        f"the traced array {cell.node.type.describe()} is out of scope and cannot be used here: it was made in the body of a"
        " loop or in one side of an `if`, and belongs there.",
        where=describe(here()),
        why="the body is traced once and runs many times (or not at all): what it makes leaves it by the names it assigns",
        hint="assign it to a name and use that after the loop; to keep one value an iteration use an array or jl.TensorArray",
    )


def _repeats(step: Step) -> bool:
    """A broadcast, windows (one element stands at several places) or a diagonal: NumPy makes such a view read-only."""
    if not isinstance(step, View):
        return isinstance(step, Windows)
    used = [axis for _, _, axis in step.map if axis is not None]
    return len(set(used)) < len(used) or any(axis not in used and int(n) > 1 for axis, n in enumerate(step.shape))

"""What a name holds, taken apart: arrays and numbers, which become values of a graph, and the form around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.numpy_calls.layouts import Strides
from jitlab.capture.numpy_calls.ordering import axes_order
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.capture.tracers.tensor_array import TensorArray
from jitlab.errors import Signal
from jitlab.ir import TRACED_DTYPES, ArrayType, Moving, Node, Symbolic, same_extent
from jitlab.ops.build_nodes import as_node, cast, constant, weak
from jitlab.ops.layout.views import Reshape
from jitlab.support.containers import like
from jitlab.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

#: What a name holds that has no value.
UNDEFINED: Any = type("Undefined", (), {"__repr__": lambda self: "<undefined>"})()

_KINDS: dict[type, str] = {bool: "?", int: "i8", float: "f8", complex: "c16"}
_RANK = {bool: 0, int: 1, float: 2, complex: 3}

#: What a value is in the program, as a number: a NumPy scalar, one of Python's own numbers, an array.
NUMPY, BOOL, INT, FLOAT, COMPLEX, ARRAY = range(6)
PYTHON_KINDS: dict[int, type] = {BOOL: bool, INT: int, FLOAT: float, COMPLEX: complex}
_NUMBERS = {kind: number for number, kind in PYTHON_KINDS.items()}


@dataclass(frozen=True)
class LeafType:
    """The type of a value, and what it is in the program: `weak` the kind of a Python number, else an array or a scalar.

    `among`: what it may be, where only a run knows (number_kinds.py). `strides`: how a new array lies that keeps the order of
    its axes, in elements; None: row by row.
    """

    type: ArrayType
    weak: Any  # int, float, complex, bool; None
    is_scalar: bool
    among: frozenset[int] = frozenset()
    strides: Strides | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def kind(self) -> int:
        """What it is in the program, where that is known."""
        return _NUMBERS[self.weak] if self.weak else NUMPY if self.is_scalar else ARRAY

    @property
    def kinds(self) -> frozenset[int]:
        return self.among or frozenset({self.kind})


def python_type(kind: int) -> LeafType:
    """The type of Python's own numbers of a kind."""
    weak_kind = PYTHON_KINDS[kind]
    return LeafType(ArrayType((), np.dtype(_KINDS[weak_kind])), weak_kind, True)


#: The type of the number that says which array a name stands for (chosen_memory.py).
WHICH = LeafType(ArrayType((), np.dtype("i8")), None, True)


class Mismatch(Signal):
    """Two values cannot be one: `kind` is "dtype", "shape", "layout" or "kind"."""

    def __init__(self, kind: str, mine: LeafType, other: LeafType) -> None:
        super().__init__(f"a value is {mine.type.describe()} on one way and {other.type.describe()} on another")
        self.kind, self.mine, self.other = kind, mine, other


def is_leaf(value: Any) -> bool:
    """An array or a number."""
    if isinstance(value, (Tensor, Symbolic, bool, int, float, complex)):
        return True
    if isinstance(value, Number):
        return type(value.value) in _KINDS
    return isinstance(value, np.generic) and value.dtype in TRACED_DTYPES


def leaf_type(value: Any) -> LeafType:
    if isinstance(value, Tensor):
        cell = value._cell
        among = cell.kinds.among if cell.kinds is not None else frozenset()
        return LeafType(value.type, cell.node.weak if not value.shape else None, value.is_scalar, among, axes_order(value))
    if isinstance(value, Symbolic):
        return LeafType(ArrayType((), np.dtype("i8")), int, True)
    if isinstance(value, np.generic):
        return LeafType(ArrayType((), value.dtype), None, True)
    if isinstance(value, Number):
        value = value.value
    kind = next(k for k in (bool, int, float, complex) if isinstance(value, k))
    return LeafType(ArrayType((), np.dtype(_KINDS[kind])), kind, True)


def leaf_node(value: Any) -> Node:
    """The value in the graph that is being built."""
    if isinstance(value, Tensor):
        return value.node()
    if isinstance(value, Symbolic):
        return as_node(value.extent)
    if isinstance(value, Number):
        return value.capture.number_node(value, leaf_type(value).dtype).node()
    return constant(np.asarray(value, leaf_type(value).dtype))


def fitted(node: Node, wanted: LeafType) -> Node:
    """The node as a value of the wanted type: cast, and with its extents."""
    node = cast(node, wanted.dtype)
    if node.shape != wanted.type.shape or any(
        isinstance(m, Moving) != isinstance(n, Moving) for m, n in zip(node.shape, wanted.type.shape, strict=True)
    ):
        from jitlab.ops.build_nodes import apply

        node = apply(Reshape(wanted.type.shape), node)
    return node


def joined(mine: LeafType, other: LeafType, *, kinds: bool = False) -> LeafType:
    """The type that holds either value as it is, by NumPy's rules for Python numbers (NEP 50). Raises Mismatch.

    `kinds`: it tells what the value may be in the program, and how it lies.
    """
    among = mine.kinds | other.kinds if kinds else frozenset[int]()
    both = _one_type(mine, other)
    if kinds and mine.strides != other.strides:
        raise Mismatch("layout", mine, other)
    return replace(both, among=among if len(among) > 1 else frozenset(), strides=mine.strides if kinds else None)


def _one_type(mine: LeafType, other: LeafType) -> LeafType:
    if mine.weak and other.weak:
        return mine if _RANK[mine.weak] >= _RANK[other.weak] else other
    if mine.weak or other.weak:
        number, strong = (mine, other) if mine.weak else (other, mine)
        if strong.type.shape:
            raise Mismatch("shape", mine, other)
        kind = number.weak
        assert kind is not None
        if np.result_type(strong.dtype, np.bool_ if kind is bool else kind(0)) != strong.dtype:
            raise Mismatch("dtype", mine, other)
        return strong
    if mine.dtype != other.dtype:
        raise Mismatch("dtype", mine, other)
    shapes = mine.type.shape, other.type.shape
    if len(shapes[0]) != len(shapes[1]) or not all(same_extent(m, n) for m, n in zip(*shapes, strict=True)):
        raise Mismatch("shape", mine, other)
    return replace(mine, is_scalar=mine.is_scalar and other.is_scalar)


def is_same_type(mine: LeafType, other: LeafType, *, kinds: bool = False) -> bool:
    """Is a value of the second type one of the first? `kinds`: also in the program."""
    try:
        both = joined(mine, other)
    except Mismatch:
        return False
    alike = other.kinds <= mine.kinds if kinds else mine.is_scalar == other.is_scalar
    return both.dtype == mine.dtype and both.weak == mine.weak and alike and (not kinds or mine.strides == other.strides)


def fresh(capture: Arrays, node: Node, kind: LeafType) -> Tensor:
    """A new array or number whose value is a node of our own."""
    if kind.weak:
        weak(node)
    cell = Cell(capture, node)
    cell.strides = kind.strides
    return Tensor(cell, is_scalar=kind.is_scalar)


# ---- structure


@dataclass(frozen=True, eq=False)
class Form:
    """The containers around leaves; `make` builds one like it of new leaves."""

    key: Any  # equal for equal structures
    make: Callable[[Iterator[Any]], Any]


def taken_apart(value: Any) -> tuple[Form, list[Any]]:
    """The form of a value, and its leaves in order. What is neither container, array nor number stays as it is."""
    leaves: list[Any] = []
    return _form_of(value, leaves), leaves


def _form_of(value: Any, leaves: list[Any]) -> Form:
    if is_leaf(value):
        leaves.append(value)
        return Form("leaf", next)
    kind = type(value)
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        parts = [_form_of(item, leaves) for item in value]
        return Form((kind, tuple(part.key for part in parts)), lambda found: like(kind, [p.make(found) for p in parts]))
    if kind is dict:
        named = {key: _form_of(item, leaves) for key, item in value.items()}
        form_key = (kind, tuple((key, part.key) for key, part in named.items()))
        return Form(form_key, lambda found: {key: part.make(found) for key, part in named.items()})
    if isinstance(value, TensorArray):
        rows = value.rows()
        if rows is not None:
            part = _form_of(rows, leaves)
            return Form((kind, part.key), lambda found: value.with_rows(part.make(found)))
        return Form((kind, None), lambda found: value)
    return Form(("object", Same(value)), lambda found: value)


class Same:
    """An object that stays as it is: equal to itself, and to plain values that are equal."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same):
            return False
        if self.value is other.value:
            return True
        plain = (str, bytes, range, slice, type(None), frozenset)
        return type(self.value) is type(other.value) and isinstance(self.value, plain) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))


def described(value: Any) -> str:
    """What a value is, for people."""
    return value.type.describe() if isinstance(value, Tensor) else type(value).__name__


# ---- the names of a function


class Variables:
    """The user's variables that added functions share: a cell for each name."""

    def __init__(self, *functions: Any) -> None:
        self.cells: dict[str, Any] = {}
        for function in functions:
            if function is not None:
                self.cells.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def get(self, name: str) -> Any:
        try:
            return self.cells[name].cell_contents
        except ValueError:
            return UNDEFINED

    def set(self, name: str, value: Any) -> None:
        if value is UNDEFINED:
            try:
                del self.cells[name].cell_contents
            except ValueError:
                pass
        else:
            self.cells[name].cell_contents = value

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.get(name) for name in names}

    def restore(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self.set(name, value)

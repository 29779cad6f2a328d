"""Trace types: what of an argument a trace of `function` is for, with the order "is less specific than" among them.

A call has an exact type. A trace may have a wider one: sizes None, or no shape at all, from a TensorSpec or from
generalising; below it, each exact size is recorded apart, as a kernel has variants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import TRACED_DTYPES, plain
from jitlab.messages import by_contract
from jitlab.specs import Shape, TensorSpec, common_shape, is_subshape, shape_text, spec_text
from jitlab.support.lazy_dataclass import dataclass

from .signature import ObjectKey, fields_of_object, literal_key, refuse, stands_for


class TraceType:
    """The type of one value. Types are hashable and equal when they are of the same calls."""

    is_exact: ClassVar[bool] = True

    def contains(self, other: TraceType) -> bool:
        """Is every value of `other` one of this?"""
        return self == other

    def common(self, other: TraceType) -> TraceType | None:
        """The most specific type that contains both, None when there is none."""
        return self if self == other else None

    def tensors(self) -> list[TensorType | VariableType]:
        """The tensors in it, in the order of `key_of`."""
        return []


@dataclass(frozen=True)
class TensorType(TraceType):
    dtype: np.dtype[Any]
    shape: Shape
    name: str | None = None

    @property
    def is_exact(self) -> bool:  # type: ignore[override]
        return self.shape is not None and None not in self.shape

    def contains(self, other: TraceType) -> bool:
        return (
            isinstance(other, TensorType)
            and self.dtype == other.dtype
            and is_subshape(other.shape, self.shape)
            and (not other.name or self.name == other.name)
        )

    def common(self, other: TraceType) -> TraceType | None:
        if not isinstance(other, TensorType) or self.dtype != other.dtype:
            return None
        return TensorType(self.dtype, common_shape(self.shape, other.shape), self.name if self.name == other.name else None)

    def tensors(self) -> list[TensorType | VariableType]:
        return [self]

    def __str__(self) -> str:
        return spec_text(self.shape, self.dtype, self.name)


@dataclass(frozen=True)
class VariableType(TraceType):
    """A Variable; `group` numbers the different ones among the arguments, in order of first appearance."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    group: int

    def tensors(self) -> list[TensorType | VariableType]:
        return [self]

    def __str__(self) -> str:
        dtype = by_contract(f"tf.{self.dtype.name}")
        return f"VariableSpec(shape={shape_text(self.shape)}, dtype={dtype}, alias_id={self.group})"


class LiteralType(TraceType):
    """A Python value, told apart by type and value (S10)."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = literal_key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiteralType) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"Literal[{self.value!r}]"


class ReferenceType(TraceType):
    """An object, referred to weakly: the same object, or one that is `==` with the same hash."""

    def __init__(self, value: Any) -> None:
        self.key = ObjectKey(value)
        self.text = f"Reference[{type(value).__name__}]"

    @property
    def value(self) -> Any:
        return self.key.ref()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReferenceType) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class StructureType(TraceType):
    """A list, tuple, namedtuple, dict or object with fields: its class, the names of its parts (sorted), and their types."""

    kind: Any
    labels: tuple[Any, ...] | None
    items: tuple[TraceType, ...]

    @property
    def is_exact(self) -> bool:  # type: ignore[override]
        return all(item.is_exact for item in self.items)

    def contains(self, other: TraceType) -> bool:
        return self._fits(other) and all(
            mine.contains(theirs)
            for mine, theirs in zip(self.items, other.items, strict=True)  # type: ignore[attr-defined]
        )

    def common(self, other: TraceType) -> TraceType | None:
        if not self._fits(other):
            return None
        items = [mine.common(theirs) for mine, theirs in zip(self.items, other.items, strict=True)]  # type: ignore[attr-defined]
        found = [item for item in items if item is not None]
        return StructureType(self.kind, self.labels, tuple(found)) if len(found) == len(items) else None

    def _fits(self, other: TraceType) -> bool:
        return (
            isinstance(other, StructureType)
            and self.kind is other.kind
            and self.labels == other.labels
            and len(self.items) == len(other.items)
        )

    def tensors(self) -> list[TensorType | VariableType]:
        return [tensor for item in self.items for tensor in item.tensors()]

    def __str__(self) -> str:
        if self.labels is not None:
            name = "Dict" if issubclass(self.kind, dict) else self.kind.__name__
            return f"{name}[{', '.join(f'[{k!r}, {t}]' for k, t in zip(self.labels, self.items, strict=True))}]"
        name = {list: "List", tuple: "Tuple"}.get(self.kind, self.kind.__name__)
        return f"{name}[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class FunctionType:
    """The types of a function's parameters, in their order."""

    parameters: tuple[TraceType, ...]

    @property
    def is_exact(self) -> bool:
        return all(t.is_exact for t in self.parameters)

    def contains(self, other: FunctionType) -> bool:
        return all(mine.contains(theirs) for mine, theirs in zip(self.parameters, other.parameters, strict=True))

    def common(self, other: FunctionType) -> FunctionType | None:
        found = [mine.common(theirs) for mine, theirs in zip(self.parameters, other.parameters, strict=True)]
        types = [t for t in found if t is not None]
        return FunctionType(tuple(types)) if len(types) == len(found) else None

    def tensors(self) -> list[TensorType | VariableType]:
        return [tensor for t in self.parameters for tensor in t.tensors()]


def function_type(values: Sequence[Any]) -> FunctionType:
    """The type of bound values: arrays, Tensors, TensorSpecs, Variables, containers of them, and Python values."""
    groups: dict[int, int] = {}
    return FunctionType(tuple(type_of(value, groups) for value in values))


def type_of(value: Any, groups: dict[int, int]) -> TraceType:
    """The type of one value. `groups` numbers the Variables met so far, by id."""
    value = stands_for(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype in TRACED_DTYPES:
        return TensorType(value.dtype, value.shape)
    if isinstance(value, Tensor):
        return TensorType(value.dtype, plain(value.shape))
    if isinstance(value, TensorSpec):
        return TensorType(value.dtype, value.shape.dims, value.name)
    if getattr(type(value), "__jitlab_variable__", False):
        return VariableType(value.dtype, value.shape, groups.setdefault(id(value), len(groups)))
    if isinstance(value, (list, tuple)):
        labels = getattr(value, "_fields", None)
        return StructureType(type(value), labels, tuple(type_of(item, groups) for item in value))
    if isinstance(value, dict):
        names = tuple(sorted(value, key=repr))
        return StructureType(type(value), names, tuple(type_of(value[name], groups) for name in names))
    attributes = fields_of_object(value)
    if attributes is not None:
        return StructureType(type(value), attributes, tuple(type_of(getattr(value, name), groups) for name in attributes))
    refuse(value)
    if literal_key(value) is not None:
        return LiteralType(value)
    try:
        return ReferenceType(value)
    except TypeError:
        return LiteralType(value)


def most_specific(types: Sequence[FunctionType], wanted: FunctionType) -> int | None:
    """The position of the most specific of `types` that contains `wanted`; of several such the first."""
    best: int | None = None
    for n, candidate in enumerate(types):
        if candidate.contains(wanted) and (
            best is None or (types[best].contains(candidate) and not candidate.contains(types[best]))
        ):
            best = n
    return best


def generalised(types: Sequence[FunctionType], wanted: FunctionType) -> FunctionType:
    """`wanted`, widened by each of the types in turn that it has something in common with."""
    for known in types:
        wanted = wanted.common(known) or wanted
    return wanted


def fill(type: TraceType, tensor: Callable[[TensorType | VariableType], Any]) -> Any:
    """A value of the type, with `tensor(t)` for each tensor in it."""
    if isinstance(type, (TensorType, VariableType)):
        return tensor(type)
    if isinstance(type, (LiteralType, ReferenceType)):
        return type.value
    assert isinstance(type, StructureType)
    items = [fill(item, tensor) for item in type.items]
    if issubclass(type.kind, dict):
        assert type.labels is not None
        made = type.kind() if type.kind is not dict else {}
        made.update(zip(type.labels, items, strict=True))
        return made
    if hasattr(type.kind, "__dataclass_fields__"):
        made = object.__new__(type.kind)
        for name, item in zip(type.labels or (), items, strict=True):
            object.__setattr__(made, name, item)
        return made
    if hasattr(type.kind, "_fields") or type.labels is not None:
        return type.kind(*items)
    return type.kind(items)


__all__ = [
    "FunctionType", "LiteralType", "ReferenceType", "StructureType", "TensorType", "TraceType", "VariableType", "fill",
    "function_type", "generalised", "most_specific", "type_of",
]  # fmt: skip

"""TensorSpec and TensorShape: the type of a tensor before there is one, where None stands for a size not yet known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np

from jitlab.messages import by_contract

Shape = tuple[int | None, ...] | None  # None: not even the number of axes is known


class TensorShape:
    """The shape of a tensor that is not there yet: sizes, or all of it, may be unknown.

    Args:
        dims: None (not even the number of axes is known), a size, or a list of sizes in which None stands for an unknown one.

    Raises:
        TypeError: `dims` is no shape.
        ValueError: a size is negative.

    Example:
        >>> jl.TensorShape([None, 3]).is_compatible_with((2, 3)), jl.TensorShape([2, 3]).num_elements()
        (True, 6)
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any = None) -> None:
        self._dims = as_shape(dims)

    @property
    def dims(self) -> Shape:
        """The sizes as a tuple, None when the number of axes is unknown."""
        return self._dims

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    ndims = rank

    def as_list(self) -> list[int | None]:
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def num_elements(self) -> int | None:
        """The number of elements, None while a size is unknown."""
        if self._dims is None or None in self._dims:
            return None
        return int(np.prod([n for n in self._dims if n is not None], dtype=np.int64))

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one shape can be both this and `other`."""
        mine, theirs = self._dims, as_shape(other)
        if mine is None or theirs is None:
            return True
        pairs = zip(mine, theirs, strict=False)
        return len(mine) == len(theirs) and all(a is None or b is None or a == b for a, b in pairs)

    def __iter__(self) -> Iterator[int | None]:
        return iter(self.as_list())

    def __len__(self) -> int:
        return len(self.as_list())

    def __getitem__(self, key: Any) -> Any:
        found = tuple(self.as_list())[key]
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else shape_text(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({'None' if self._dims is None else list(self._dims)})"


class TensorSpec:
    """The dtype and shape of a tensor, and perhaps a name: what `input_signature` and `get_concrete_function` take.

    Args:
        shape: None (any shape), or a list of sizes in which None stands for any size.
        dtype: the dtype of the elements.
        name: of the argument in signatures that are shown.

    Raises:
        TypeError: `shape` is no shape, or `dtype` no dtype.
        ValueError: a size is negative.

    Example:
        >>> @jl.function(input_signature=[jl.TensorSpec([None], np.float32)])
        ... def halved(x):
        ...     return x / 2
        >>> halved([1, 2])
        array([0.5, 1. ], dtype=float32)
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = np.float32, name: str | None = None) -> None:
        self._shape = as_shape(shape)
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of an array `tensor`."""
        array = np.asarray(tensor) if not hasattr(tensor, "shape") else tensor
        return cls(tuple(array.shape), array.dtype, name)

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    def is_compatible_with(self, value: Any) -> bool:
        """Whether `value`, an array or a spec, could be what the spec describes."""
        other = value if isinstance(value, TensorSpec) else TensorSpec.from_tensor(value)
        return self._dtype == other._dtype and TensorShape(self._shape).is_compatible_with(other._shape)

    def is_subtype_of(self, other: TensorSpec) -> bool:
        """Whether everything that this describes is described by `other`."""
        return (
            self._dtype == other._dtype
            and is_subshape(self._shape, other._shape)
            and (not self._name or self._name == other._name)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self._shape, self._dtype, self._name) == (other._shape, other._dtype, other._name)

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype, self._name))

    def __repr__(self) -> str:
        return spec_text(self._shape, self._dtype, self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorSpec, (self._shape, self._dtype, self._name)


def as_shape(dims: Any) -> Shape:
    """A shape from None, an int, a TensorShape, or a sequence of sizes in which None may stand."""
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims.dims
    if isinstance(dims, SupportsIndex) and not isinstance(dims, np.ndarray):
        dims = (dims,)
    if isinstance(dims, str) or not isinstance(dims, (Sequence, np.ndarray)):
        raise TypeError(f"a shape is None, a size, or a list of sizes, not {dims!r}")
    sizes = tuple(None if n is None else int(n.__index__()) for n in dims)
    if any(n is not None and n < 0 for n in sizes):
        raise ValueError(f"Dimension {min(n for n in sizes if n is not None)} must be >= 0")
    return sizes


def is_subshape(shape: Shape, other: Shape) -> bool:
    """Is `other` this shape, or less specific?"""
    if other is None:
        return True
    if shape is None or len(shape) != len(other):
        return False
    return all(wanted is None or n == wanted for n, wanted in zip(shape, other, strict=True))


def common_shape(shape: Shape, other: Shape) -> Shape:
    """The most specific shape that both are."""
    if shape is None or other is None or len(shape) != len(other):
        return None
    return tuple(n if n == m else None for n, m in zip(shape, other, strict=True))


def shape_text(shape: Shape) -> str:
    """(2, None) as Python writes it; None for an unknown rank."""
    return repr(shape)


def spec_text(shape: Shape, dtype: np.dtype[Any], name: str | None) -> str:
    text = "<unknown>" if shape is None else shape_text(shape)
    return f"TensorSpec(shape={text}, dtype={by_contract(f'tf.{dtype.name}')}, name={name!r})"

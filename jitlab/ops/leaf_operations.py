"""Where values come from: arguments and the numbers written in the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Extent, Node

from .base import Cost, Operation


class Parameter(Operation):
    """An input of the graph: an argument, or an array the program reached through a name."""

    type: ArrayType
    tf_name: ClassVar[str | None] = "Placeholder"
    is_parameter: ClassVar[bool] = True

    def result(self, *types: ArrayType) -> ArrayType:
        return self.type

    def __str__(self) -> str:
        return f"{self.name}({self.type})"


class Length(Operation):
    """An axis length (or what was computed from some) as a number: read at run time, never baked into a kernel."""

    extent: int  # an Extent
    numpy_word: ClassVar[str] = "shape"
    tf_name: ClassVar[str | None] = "Size"
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return np.int64(int(self.extent))  # which is noted

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType((), np.dtype("i8"))

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return []

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield (cls(Extent.symbol("n", 7)),)


class Constant(Operation):
    """A number, or a small array, written in the program."""

    dtype: np.dtype
    shape: tuple[int, ...]
    data: bytes
    tf_name: ClassVar[str | None] = "Const"
    flops_per_element: ClassVar[float] = 0

    @property
    def value(self) -> Any:
        """The NumPy array (read-only), 0-d for a number."""
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)

    def numpy(self, *arrays: Any) -> Any:
        return self.value[()]

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType(self.shape, self.dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return []

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield (cls(np.dtype("f8"), (), np.float64(1.5).tobytes()),)

    def __str__(self) -> str:
        return f"Const({self.value.tolist()})"

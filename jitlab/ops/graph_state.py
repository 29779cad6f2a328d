"""What the graph face adds to arrays: variables that are read and assigned, and values that only carry a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, plain
from jitlab.messages import Message

from .base import Elementwise, Operands, Operation

X = np.linspace(-2.0, 2.0, 8)


class Identity(Elementwise):
    """The value itself, under a name of its own."""

    flops_per_element: ClassVar[float] = 0
    operands: ClassVar[Operands] = (X,), (X > 0,)

    def numpy(self, *arrays: Any) -> Any:
        return np.array(arrays[0])[()]

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g]

    def body(self, e: Any, *xs: Any) -> Any:
        return xs[0]


class StopGradient(Identity):
    """The value itself, through which no gradient flows."""

    operands = ((np.arange(3),),)
    numpy_word: ClassVar[str] = "stop_gradient"

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [None]


class Fed(Elementwise):
    """What was fed (the second input) in the place of what would have been computed (the first)."""

    flops_per_element: ClassVar[float] = 0
    operands = ((np.arange(8), np.arange(8)[::-1].copy()),)

    def numpy(self, *arrays: Any) -> Any:
        return np.array(arrays[1])[()]

    def result(self, *types: ArrayType) -> ArrayType:
        if plain(types[0].shape) != plain(types[1].shape):
            shapes = " and ".join(str(plain(t.shape)) for t in types)
            raise ValueError(f"a tensor is fed with a value of another shape than the computed one: shapes {shapes}")
        return types[0]

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        return [g, None]

    def body(self, e: Any, *xs: Any) -> Any:
        return xs[1]


class ReadVariable(Identity):
    """The value that a variable has when it is read (reads happen at the start of a cluster)."""

    numpy_word: ClassVar[str] = "read"
    tf_name: ClassVar[str | None] = "ReadVariableOp"

    @property
    def stem(self) -> str:
        return "Read/ReadVariableOp"


class AssignVariable(Identity):
    """The value that a variable gets: writes happen at the end of a cluster."""

    numpy_word: ClassVar[str] = "assign"
    tf_name: ClassVar[str | None] = "AssignVariableOp"

    @property
    def stem(self) -> str:
        return "Assign"


class CopyToDevice(Operation):
    """An array moved on or off an XLA device: a copy, whatever memory the device has."""

    device: str
    numpy_word: ClassVar[str] = "copy"
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return np.array(arrays[0])[()]

    def result(self, *types: ArrayType) -> ArrayType:
        return types[0]

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return Message("stays.copy_to", {"device": self.device})

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls("/device:XLA_CPU:0"), X

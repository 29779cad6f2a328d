"""Operations that only a Graph holds: what a Session finds there is not computed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, Node, plain
from jitlab.messages import Message
from jitlab.ops.base import Cost, Operation
from jitlab.ops.build_nodes import apply
from jitlab.ops.host_operations import SEVERAL
from jitlab.ops.leaf_operations import Parameter


class VarHandle(Parameter):
    """A variable: where its value is kept."""

    tf_name: ClassVar[str | None] = "VarHandleOp"


class NoOp(Operation):
    """Nothing: what it depends on is run."""

    has_effects: ClassVar[bool] = True  # so it is run although nobody reads it
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return ()

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType((), SEVERAL)

    def why_not_compiled(self, *types: ArrayType) -> Message | None:
        return Message("stays.nothing_to_compile")

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)


class OtherSample(Operation):
    """A value that a Session is fed with, or what is computed of it, with other sample sizes than it has in its graph."""

    shape: tuple[int, ...]

    def numpy(self, *arrays: Any) -> Any:
        return sample(ArrayType(self.shape, np.asarray(arrays[0]).dtype))

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType(self.shape, types[0].dtype)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> list[Node | None]:
        return [apply(OtherSample(inputs[0].shape), g)]


def sample(type: ArrayType) -> np.ndarray[Any, Any]:
    """An array to try things on that have no rule."""
    array = np.ones(plain(type.shape), type.dtype)
    if array.ndim > 1 and array.dtype.kind in "fc":  # so that a solver finds it regular
        array[..., range(min(array.shape[-2:])), range(min(array.shape[-2:]))] = 3
    return array

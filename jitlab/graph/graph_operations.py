"""Operations that only a Graph holds: what a Session finds there is not computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jitlab.ir import ArrayType
from jitlab.ops.base import Cost, Operation
from jitlab.ops.host_operations import SEVERAL
from jitlab.ops.leaf_operations import Parameter


@dataclass(frozen=True)
class VarHandle(Parameter):
    """A variable: where its value is kept."""

    tf_name: ClassVar[str | None] = "VarHandleOp"


@dataclass(frozen=True)
class NoOp(Operation):
    """Nothing: what it depends on is run."""

    has_effects: ClassVar[bool] = True  # so it is run although nobody reads it
    flops_per_element: ClassVar[float] = 0

    def numpy(self, *arrays: Any) -> Any:
        return ()

    def result(self, *types: ArrayType) -> ArrayType:
        return ArrayType((), SEVERAL)

    def why_not_compiled(self, *types: ArrayType) -> str | None:
        return "there is nothing to compile"

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        return Cost(0, 0, 0)

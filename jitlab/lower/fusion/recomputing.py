"""What a nest computes again: a value is computed at each place where it is read, unless it is stored."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from jitlab.ir import Node, NotFused, Shape
from jitlab.ir.programs.program import Apply, Expr
from jitlab.lower.schedule.inlining import Position, Unreadable
from jitlab.ops.base import Elementwise
from jitlab.support.later import Later

from .findings import Obstacle

if TYPE_CHECKING:
    from jitlab.ops.elementwise import instruction_weights
else:
    instruction_weights = Later("jitlab.ops.elementwise.instruction_weights")


def weight(node: Node, shape: Shape) -> float:
    """The time of an operation on one element, in additions."""
    if not isinstance(node.op, Elementwise):
        return 0.0
    op, sources = node.op.with_known(node)
    return instruction_weights.in_additions(op, tuple(source.dtype for source in sources), node.dtype, shape.slowness)


def work(expr: Expr, shape: Shape, enough: float = math.inf) -> float:
    """The same of an expression, shared parts counted once; `enough` or more where it takes that long."""
    total, seen, todo = 0.0, {id(expr)}, [expr]
    while todo and total < enough:
        e = todo.pop()
        if isinstance(e, Apply) and e.op is not None:
            operands = tuple(part.dtype for part in e.args)
            total += instruction_weights.in_additions(e.op, operands, e.dtype, shape.slowness)
        for part in e.parts:
            if id(part) not in seen:
                seen.add(id(part))
                todo.append(part)
    return total


class Places:
    """The places where the stage of a node computes values. `expensive` grows by what is stored because it would be computed
    again too often, for more than `NestLimits.again`; `again`: values that are computed again whatever that costs;
    `is_body`: numbers are in registers."""

    def __init__(
        self, stage: Node, expensive: dict[Node, Obstacle], shape: Shape, again: Collection[Node] = (), is_body: bool = False
    ) -> None:
        self.stage, self.expensive, self.shape, self.again, self.is_body = stage, expensive, shape, again, is_body
        self._seen: set[tuple[Node, frozenset[str]]] = set()
        self._repeated: list[Node] = []  # the values under way that were computed before, the outermost first
        self._work = 0.0

    def enter(self, node: Node, position: Position) -> bool:
        """A value is computed at a place; True when it was at another one before: `leave` then ends it. Raises Unreadable of
        what is to be stored."""
        moving = frozenset(name for index in position for name in index.vars)
        if not moving or not isinstance(node.op, Elementwise):
            return False
        if (node, moving) not in self._seen:
            self._seen.add((node, moving))
            return False
        if not self._repeated and (node in self.again or (self.is_body and not node.ndim)):
            return False
        self._repeated.append(node)
        self._work += weight(node, self.shape)
        if self._work >= self.shape.nests.again:
            outermost = self._repeated[0]
            evidence = round(self._work), self.shape.nests.again
            self.expensive[outermost] = Obstacle(NotFused.RECOMPUTE_IS_EXPENSIVE, self.stage, evidence)
            self._work = 0.0
            self._repeated.clear()
            raise Unreadable(outermost)
        return True

    def leave(self) -> None:
        self._repeated.pop()

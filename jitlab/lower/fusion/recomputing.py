"""What a nest computes again: a value is computed at each place where it is read, unless it is stored."""

from __future__ import annotations

from collections.abc import Collection

from jitlab.ir import Node, NotFused
from jitlab.lower.schedule.inlining import Position, Unreadable
from jitlab.ops.base import Elementwise

from .findings import Obstacle


def weight(node: Node) -> float:
    """The time of an operation on one element, in additions."""
    if not isinstance(node.op, Elementwise):
        return 0.0
    op, _ = node.op.with_known(node)
    return op.weight or op.flops_per_element


class Places:
    """The places where the stage of a node computes values. `expensive` grows by what is stored because it would be computed
    again too often, for more than `most` (`NestLimits.again`); `again`: values that are computed again whatever that costs;
    `is_body`: numbers are in registers."""

    def __init__(
        self, stage: Node, expensive: dict[Node, Obstacle], most: float, again: Collection[Node] = (), is_body: bool = False
    ) -> None:
        self.stage, self.expensive, self.most, self.again, self.is_body = stage, expensive, most, again, is_body
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
        self._work += weight(node)
        if self._work >= self.most:
            outermost = self._repeated[0]
            evidence = self._work, self.most
            self.expensive[outermost] = Obstacle(NotFused.RECOMPUTE_IS_EXPENSIVE, self.stage, evidence)
            self._work = 0.0
            self._repeated.clear()
            raise Unreadable(outermost)
        return True

    def leave(self) -> None:
        self._repeated.pop()

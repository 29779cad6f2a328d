"""How long one nest may get. Machine code is made in time that grows faster than a nest does, and expressions are walked
recursively: a value is stored where what is computed for it would get too deep or too long, and such nests stay apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jitlab.ir import NestLimits, Node, NotFused
from jitlab.lower.block import Block, is_control
from jitlab.ops.base import Elementwise, Generated, Reduction
from jitlab.ops.layout.views import Reshape, View

from .findings import Obstacle

if TYPE_CHECKING:
    from .groups import Group
    from .stages import Stage


def long_values(block: Block, stored: set[Node], limits: NestLimits) -> dict[Node, Obstacle]:
    """The values to store so that nothing is computed from more operations on the way than a nest may have; each with the
    operation that would have too many, how many, and the limit."""
    found: dict[Node, Obstacle] = {}
    if len(block.nodes) <= limits.deep:
        return found
    deep: dict[Node, int] = {}  # of what is computed where it is read: how many operations follow on each other,
    behind: dict[Node, frozenset[Node]] = {}  # and which they are
    for node in block.nodes:
        lazy = [source for source in dict.fromkeys(node.inputs) if source in deep]
        while True:
            depth = 1 + max((deep[source] for source in lazy), default=0)
            made = frozenset((node,)).union(*(behind[source] for source in lazy))
            if depth <= limits.deep and len(made) <= limits.operations:
                break
            if depth > limits.deep:
                lazy.sort(key=deep.__getitem__)
                evidence = depth, limits.deep
            else:
                lazy.sort(key=lambda source: len(behind[source]))
                evidence = len(made), limits.operations
            if not _may_be_stored(lazy[-1], block, deep[lazy[-1]] >= 2 * limits.deep):
                break
            found[lazy[-1]] = Obstacle(NotFused.TOO_LONG, node, evidence)
            del deep[lazy[-1]], behind[lazy.pop()]
        if not (node in stored or isinstance(node.op, Reduction) or is_control(node)):
            deep[node], behind[node] = depth, made
    return found


def _may_be_stored(node: Node, block: Block, is_far_too_deep: bool) -> bool:
    if not node.ndim and block.ordered:
        return False  # it is in a register
    return isinstance(node.op, (Elementwise, Generated)) or (is_far_too_deep and isinstance(node.op, (View, Reshape)))


def depth_of(stage: Stage) -> int:
    """How many operations of a stage follow on each other at most."""
    deep: dict[Node, int] = {}
    for node in (*stage.passed, stage.node):  # inputs first
        deep[node] = 1 + max((deep[source] for source in node.inputs if source in deep), default=0)
    return deep[stage.node]


def depth_within(stage: Stage, group: Group) -> int:
    """The same with what the stage reads of its nest, whose values are not loaded again."""
    return depth_of(stage) + max((group.deep[node] for node, _ in stage.refs if node in group.deep), default=0)


def too_long(stage: Stage, group: Group, limits: NestLimits) -> tuple[int, int] | None:
    """The operations that the nest would have were the stage in it, or how many of them would follow on each other, and the
    limit; None where that is not passed."""
    own = len(stage.passed) + 1
    most = limits.operations
    if own + len(group.operations) > most and (every := len(group.operations.union(_computed(stage)))) > most:
        return every, most
    if len(group.operations) + own > limits.deep and (depth := depth_within(stage, group)) > limits.deep:
        return depth, limits.deep
    return None


def _computed(stage: Stage) -> Iterable[Node]:
    return (*stage.passed, *stage.made)

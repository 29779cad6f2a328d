"""A group: stages that become one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from jitlab.ir import Node, Poly
from jitlab.ir.programs.program import Index
from jitlab.lower.schedule.inlining import Position
from jitlab.support.lazy_dataclass import dataclass

from .cuts import Cuts
from .nest_limits import depth_within
from .stages import Stage


@dataclass(eq=False)
class Group:
    """Stages that become one kernel. `outer`: the extents of the loops they share; None while any would do."""

    stages: list[Stage]
    kind: str  # "map", "row", "column", "scan", or that of its one stage
    outer: tuple[Poly, ...] = ()
    operations: set[Node] = field(init=False, default_factory=set)  # all that is computed in its nest
    touched: set[Node] = field(init=False, default_factory=set)  # those, and what its stages read
    deep: dict[Node, int] = field(init=False, default_factory=dict)  # how many operations a value of the nest ends

    def __post_init__(self) -> None:
        for stage in self.stages:
            self._count(stage)

    def take(self, stage: Stage) -> None:
        """Put a stage into the nest, whose loops it may decide."""
        if self.kind == "map" and stage.kind == "scan":
            self.kind = "scan"
        elif self.kind == "map" and stage.kind == "reduce":
            self.kind, self.outer = "row", stage.kept
        self._count(stage)
        self.stages.append(stage)

    def _count(self, stage: Stage) -> None:
        self.deep[stage.node] = 0 if stage.kind in ("reduce", "scan") else depth_within(stage, self)
        self.operations.update(stage.passed, stage.made)
        self.touched.update(stage.made, stage.leaves, stage.lazy, (node for node, _ in stage.refs))

    @property
    def nodes(self) -> list[Node]:
        return [node for stage in self.stages for node in stage.made]

    @property
    def looped(self) -> list[Stage]:
        """The stages with more loops than all of them share."""
        return [stage for stage in self.stages if len(stage.space) > len(self.outer)]


def alone(stage: Stage) -> Group:
    """A group of one."""
    if stage.kind == "reduce":
        return Group([stage], "row" if stage.suffix else "column", stage.kept)
    return Group([stage], stage.kind, stage.space)


def group_of(stages: Sequence[Stage]) -> Group:
    """The group that stages form which join one after the other."""
    group = alone(stages[0])
    for stage in stages[1:]:
        group.take(stage)
    return group


def aligned(producer: Stage, position: Position, k: int) -> bool:
    """The value is read in the iteration of the k outer loops in which it is made."""
    shape_index = [i for i, n in zip(position, producer.node.shape, strict=True) if n != 1]
    wanted = [Index.var(f"a{axis}") for axis in range(k)]
    return shape_index[:k] == wanted[: len(shape_index)] and len(shape_index) >= min(k, len(shape_index))


def cut_between(groups: Iterable[Group], group: Group, cuts: Cuts) -> bool:
    """Does a what-if keep a group apart from others before it?"""
    if not cuts.pairs:
        return False
    made = [node for other in groups for node in other.nodes]
    return cuts.between(made, (node for stage in group.stages for node in stage.computed))

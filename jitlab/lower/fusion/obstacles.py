"""What keeps a stage out of a nest, and the smallest change of both without which it would not.

`obstacles` is the question that fusion asks: where it finds none, the nest takes the stage. Each obstacle holds by itself, and
`undone` is its change: with all of them undone, one after the other, the same question finds none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jitlab.ir import NestLimits, Node, NotFused, Poly
from jitlab.ir.programs.program import Index
from jitlab.lower.schedule.inlining import Position
from jitlab.support.lazy_dataclass import dataclass

from .findings import Obstacle
from .groups import Group, aligned, group_of
from .nest_limits import too_long
from .stages import Stage

#: Kinds of stages that share nests; and why the others do not.
JOINED = ("map", "reduce", "scan")
ALONE = {
    "gemm": NotFused.LIBRARY_CALL, "call": NotFused.LIBRARY_CALL, "loop": NotFused.LOOP, "branch": NotFused.LOOP,
    "region": NotFused.UPDATED, "update": NotFused.UPDATED, "scatter": NotFused.UPDATED,
    "let": NotFused.NUMBER, "define": NotFused.NUMBER,
}  # fmt: skip

#: What no change of a stage or a nest undoes.
FINAL = frozenset({*ALONE.values(), NotFused.OVERLAP, NotFused.LEVEL})

Refs = list[tuple[Stage, Position]]


def obstacles(stage: Stage, group: Group, limits: NestLimits) -> Iterator[Obstacle]:
    """Why a nest, as it is now, does not take a stage."""
    if stage.kind in ALONE or group.kind in ALONE:
        yield from of_kinds(stage, group)
        return
    own = {s.node: s for s in group.stages}
    refs = [(own[node], position) for node, position in stage.refs if node in own]
    yield from _of_results(stage, group, refs)
    for node in stage.picked & own.keys() if stage.picked else ():
        yield Obstacle(NotFused.GATHERED, node)
    yield from _of_loops(stage, group, [ref for ref in refs if ref[0].node not in stage.picked])
    if len(group.stages) >= limits.stages:
        yield Obstacle(NotFused.TOO_MANY_VALUES, stage.node, (len(group.stages) + 1, limits.stages))
    if (counted := too_long(stage, group, limits)) is not None:
        yield Obstacle(NotFused.TOO_LONG, stage.node, counted)


def of_kinds(stage: Stage, group: Group) -> list[Obstacle]:
    """The stages, of these and of the nest, that share no nest whatever the other does."""
    return [Obstacle(ALONE[one.kind], one.node, one.evidence) for one in (stage, *group.stages) if one.kind in ALONE]


def _of_loops(stage: Stage, group: Group, refs: Refs) -> Iterator[Obstacle]:
    if group.kind == "map":
        if stage.space != group.stages[0].space:
            yield Obstacle(NotFused.DIFFERENT_SPACE, stage.node)
        elif stage.kind == "reduce" and not stage.suffix:
            yield Obstacle(NotFused.OTHER_AXES, stage.node)
        else:
            yield from _shifted(refs, len(stage.space))
    elif group.kind == "scan":
        yield from _of_scan(stage, next(s for s in group.stages if s.kind == "scan"), refs)
    elif group.kind == "column" or not group.outer:
        yield from _of_reduction(stage, group, refs)
    elif stage.kind == "scan":
        last = _ended_by(stage, group.stages, refs) if group.stages[0].kind == "map" else None
        yield Obstacle(NotFused.SCAN, stage.node) if last is None else Obstacle(NotFused.ORDER, last.node)
    else:
        k = len(group.outer)
        if stage.space[:k] != group.outer:
            yield Obstacle(NotFused.DIFFERENT_SPACE, stage.node)
        elif stage.kind == "reduce" and (any(stage.reduced[:k]) or not all(stage.reduced[k:])):
            yield Obstacle(NotFused.OTHER_AXES, stage.node)
        else:
            yield from _shifted(refs, k)


def _ended_by(stage: Stage, stages: Sequence[Stage], refs: Refs) -> Stage | None:
    """The first stage of another kind than those before it, where the stage could come before that: it reads nothing later, and
    something that those before have, too."""
    last = next((s for s in stages if s.kind != stages[0].kind), None)
    before = stages[: stages.index(last)] if last is not None else ()
    if not before or any(s not in before for s, _ in refs) or stage.touched.isdisjoint(group_of(before).touched):
        return None
    return last


def _of_scan(stage: Stage, first: Stage, refs: Refs) -> Iterator[Obstacle]:
    if stage.space != first.space:
        yield Obstacle(NotFused.DIFFERENT_SPACE, stage.node)
    elif stage.kind == "reduce" or (stage.kind == "scan" and (stage.along, stage.reverse) != (first.along, first.reverse)):
        yield Obstacle(NotFused.SCAN, first.node)
    else:
        yield from _shifted(refs, len(stage.space))


def _of_results(stage: Stage, group: Group, refs: Refs) -> Iterator[Obstacle]:
    """Of a nest that reduces all elements, or outer axes: what is known when its loops are done is not read in them."""
    if group.kind not in ("row", "column") or (group.kind == "row" and group.outer) or not refs:
        return
    loops = group.looped
    if not loops or (stage.kind == "map" and stage.space == group.outer):
        return
    for s, _ in refs:
        if s.kind == "reduce":
            yield Obstacle(NotFused.REDUCED_OUTER_AXIS if group.kind == "column" else NotFused.WHOLE_REDUCTION, s.node)
        elif s not in loops:
            yield Obstacle(NotFused.AFTER_LOOPS, s.node)


def _of_reduction(stage: Stage, group: Group, refs: Refs) -> Iterator[Obstacle]:
    """Of such a nest: a stage is done in its loops, or, over what they leave, when they are done."""
    if stage.kind == "map" and stage.space == group.outer:
        if not refs or any(s.kind == "reduce" for s, _ in refs):
            yield from _shifted(refs, len(stage.space))
        else:
            yield from (Obstacle(NotFused.AFTER_LOOPS, s.node) for s, _ in refs)
        return
    loops = group.looped
    if not loops or stage.space != loops[0].space:
        yield Obstacle(NotFused.DIFFERENT_SPACE, stage.node)
    elif any(s.kind != "reduce" for s in loops):  # it stores values and reduces
        last = _ended_by(stage, loops, refs)
        if last is not None:
            yield Obstacle(NotFused.ORDER, last.node)
        else:
            yield Obstacle(NotFused.CLOSED, _of_one_kind(stage, group, refs).node)
    elif stage.kind == "scan":
        yield Obstacle(NotFused.SCAN, stage.node)
    elif stage.kind == "reduce":
        if stage.reduced != loops[0].reduced:
            yield Obstacle(NotFused.OTHER_AXES, stage.node)
    elif group.kind == "column":
        yield Obstacle(NotFused.REDUCED_OUTER_AXIS, loops[0].node)
    else:
        yield from _shifted(refs, len(stage.space))


def _of_one_kind(stage: Stage, group: Group, refs: Refs) -> Stage:
    """A stage in the loops of whose kind all are that the other one shares something with."""
    needed = [s for s, _ in refs if s in group.looped]
    either = sorted(group.looped, key=lambda s: s.kind != "reduce")
    meets = (s for s in either if not stage.touched.isdisjoint(kept_of(group, s.kind).touched))
    return needed[0] if needed else next(meets, either[0])


def kept_of(group: Group, kind: str) -> Group:
    """The group without what its loops do of another kind, and without what needs that."""
    loops = group.looped
    return group_of([s for s in group.stages if (s.kind == kind if s in loops else kind == "reduce")])


def _shifted(refs: Refs, k: int) -> Iterator[Obstacle]:
    for s, position in refs:
        if not aligned(s, position, k):
            yield Obstacle(NotFused.READ_AGAIN, s.node)


# ---- undone


@dataclass(frozen=True)
class Case:
    """What is decided on: a stage, a nest, the limits."""

    stage: Stage
    group: Group
    limits: NestLimits

    @property
    def obstacle(self) -> Obstacle | None:
        return next(obstacles(self.stage, self.group, self.limits), None)


def undone(case: Case, obstacle: Obstacle) -> Case:
    """The case in which that does not stand in the way."""
    code, node = obstacle.code, obstacle.node
    stage, group = case.stage, case.group
    if code is NotFused.TOO_MANY_VALUES:
        return replace(case, limits=replace(case.limits, stages=1 << 60))
    if code is NotFused.TOO_LONG:
        return replace(case, limits=replace(case.limits, operations=1 << 60, deep=1 << 60))
    if code is NotFused.ORDER:
        return replace(case, group=group_of(group.stages[: group.nodes.index(node)]))
    if code is NotFused.CLOSED:
        kind = next(s.kind for s in group.stages if s.node is node)
        return replace(case, group=kept_of(group, kind))
    if code in CUT:
        changed = without(stage, {node})
        is_after = stage.kind == "map" and stage.space == group.outer
        if group.kind == "column" and stage.kind != "reduce" and group.looped and not is_after:
            changed = replace(changed, kind="reduce", reduced=group.looped[0].reduced)
        return replace(case, stage=changed)
    if code is NotFused.SCAN:
        return replace(case, stage=_without_scan(stage, group))
    if code is NotFused.OTHER_AXES:
        return replace(case, stage=replace(stage, reduced=_axes(group, stage.space)))
    if code is NotFused.DIFFERENT_SPACE:
        return replace(case, stage=_over(stage, group))
    return replace(case, stage=_read_in_turn(stage, {node}))


#: Undone when the stage does without a value.
CUT = frozenset({
    NotFused.WAITS, NotFused.WHOLE_REDUCTION, NotFused.REDUCED_OUTER_AXIS, NotFused.AFTER_LOOPS,
})  # fmt: skip


def without(stage: Stage, nodes: set[Node]) -> Stage:
    """The stage, with these values given from outside."""
    refs = [ref for ref in stage.refs if ref[0] not in nodes]
    return replace(stage, refs=refs, leaves=stage.leaves | nodes, picked=stage.picked - nodes)


def _read_in_turn(stage: Stage, nodes: set[Node]) -> Stage:
    """Each element of these values is read where it is made."""
    refs = [(node, _position(node) if node in nodes else position) for node, position in stage.refs]
    return replace(stage, refs=refs, picked=stage.picked - nodes)


def _position(node: Node) -> Position:
    names = (Index.var(f"a{axis}") for axis in range(node.ndim))
    return tuple(Index() if n == 1 else next(names) for n in node.shape)


def _over(stage: Stage, group: Group) -> Stage:
    """The stage over the loops of a nest; where there are none, over what its stages share."""
    space = max((s.space for s in group.stages), key=len)
    if not group.looped and group.kind in ("row", "column"):
        return replace(stage, kind="map", space=group.outer, reduced=(False,) * len(group.outer))
    if space == stage.space:
        return stage
    stage = _read_in_turn(stage, {node for node, _ in stage.refs if node not in stage.picked})
    if stage.kind == "reduce":
        return replace(stage, space=space, reduced=_axes(group, space))
    along = min(stage.along, len(space) - 1) if stage.along is not None else None
    return replace(stage, space=space, reduced=(False,) * len(space), along=along)


def _axes(group: Group, space: Sequence[Poly]) -> tuple[bool, ...]:
    """The axes that a reduction in a nest reduces."""
    loops = next((s for s in group.looped if s.kind == "reduce"), None)
    if loops is not None and len(loops.space) == len(space):
        return loops.reduced
    k = len(group.outer) if group.kind == "row" else len(space) - 1
    return tuple(axis >= k for axis in range(len(space)))


def _without_scan(stage: Stage, group: Group) -> Stage:
    first = next((s for s in group.stages if s.kind == "scan"), None)
    if stage.kind == "scan" and first is not None:
        return replace(stage, along=first.along, reverse=first.reverse)
    return replace(stage, kind="map", reduced=(False,) * len(stage.space), along=None)

"""Which stages share a loop nest, and what kept the others apart.

Rules, in order of worth: elementwise work joins its consumer; stages over one space share a nest; a reduction over trailing
axes and what reads its result over the same outer axes share the outer loop, one row at a time. A stage joins the latest nest
that takes it. Where a value that it reads is made in another one, the obstacles stay with the stage: they are the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from jitlab.ir import NestLimits, Node, NotFused, Shape
from jitlab.ir.programs.program import Expr
from jitlab.lower.value_names import stands_before
from jitlab.support.lazy_dataclass import dataclass

from .cuts import NO_CUTS, Cuts
from .findings import Obstacle
from .groups import Group, alone
from .obstacles import ALONE, JOINED, Case, obstacles, of_kinds, undone, without
from .recomputing import work
from .stages import Stage

#: What another order of the statements undoes; and so many orders are tried in a block.
ORDERED = frozenset({NotFused.ORDER, NotFused.LATER_NEST})
MOST_TRIED = 8


@dataclass
class Grouping:
    """The groups of a block while they form: one stage after the other is put into one."""

    limits: NestLimits
    cuts: Cuts = NO_CUTS
    fuses: bool = True  # else each stage is a group of its own
    groups: list[Group] = field(default_factory=list)
    where: dict[Node, int] = field(default_factory=dict)  # the number of the group that makes a value
    in_body: bool = False  # of a loop or branch: numbers are in registers, and no edge

    def add(self, stage: Stage, noting: bool = True) -> None:
        """Put a stage into the latest group that takes it, else into a new one."""
        at = self.taken_by(stage)
        if noting and (stage.refs or stage.taken):
            self._note(stage, at)
        if at is None:
            at = len(self.groups)
            self.groups.append(alone(stage))
        else:
            self.groups[at].take(stage)
        self.where.update(dict.fromkeys(stage.made, at))

    def _note(self, stage: Stage, at: int | None) -> None:
        """What kept a stage out of the other groups that make what it reads, or takes where it lies."""
        for node in stage.taken:
            stage.rejected[node] = (Obstacle(ALONE[stage.kind], stage.node, stage.evidence),)
        found: dict[int, tuple[Obstacle, ...]] = {}
        for node, _ in stage.refs:
            number = self.where.get(node, at)
            if number is None or number == at or (self.in_body and not node.type.shape):
                continue
            if number not in found:
                found[number] = tuple(self.rejected(stage, number))
            stage.rejected[node] = found[number]

    def taken_by(self, stage: Stage) -> int | None:
        """The number of the latest group that takes the stage."""
        if stage.kind not in JOINED or not self.fuses:
            return None
        first = max([self.where[node] for node, _ in stage.refs if node in self.where], default=0)
        mine = stage.touched
        for number in range(len(self.groups) - 1, first - 1, -1):
            group = self.groups[number]
            if self.cuts.pairs and self.cuts.between(group.nodes, stage.computed):
                return None
            if _takes(group, stage, mine, self.limits):
                return number
        return None

    def rejected(self, stage: Stage, number: int) -> list[Obstacle]:
        """All that kept a stage out of a group that makes what it reads: without any of it, it would be there."""
        if not self.fuses:
            return [Obstacle(NotFused.LEVEL, stage.node)]
        if stage.kind in ALONE or self.groups[number].kind in ALONE:
            return of_kinds(stage, self.groups[number])
        case = Case(stage, self.groups[number], self.limits)
        found: list[Obstacle] = []
        while (obstacle := case.obstacle) is not None and obstacle not in found:
            found.append(obstacle)
            case = undone(case, obstacle)
        late = dict.fromkeys(node for node, _ in stage.refs if self.where.get(node, -1) > number)
        found += [Obstacle(NotFused.WAITS, node) for node in late]
        free = without(case.stage, set(late))
        mine = free.touched
        later = [group for group in self.groups[number + 1 :] if _takes(group, free, mine, case.limits)]
        found += [Obstacle(NotFused.LATER_NEST, group.stages[0].node) for group in later]
        if self.cuts.pairs:
            between = [group for group in self.groups[number + 1 :] if group not in later]
            made = {node for group in (case.group, *between) for node in group.nodes}
            found += [Obstacle(NotFused.CUT, a) for a, b in self.cuts.pairs if a in made and b in stage.computed][:1]
        return found


def _takes(group: Group, stage: Stage, mine: set[Node], limits: NestLimits) -> bool:
    # Sharing a nest saves memory traffic: a value of the group, an input or a computation is read by both.
    if len(group.stages) >= limits.stages or mine.isdisjoint(group.touched):
        return False
    return next(obstacles(stage, group, limits), None) is None


def grouped(stages: Sequence[Stage], limits: NestLimits, level: str, cuts: Cuts = NO_CUTS, in_body: bool = False) -> Grouping:
    """The groups in the order they run."""
    grouping = Grouping(limits, cuts, fuses=level != "O0", in_body=in_body)
    for stage in stages:
        grouping.add(stage)
    return grouping


def note_moves(stages: Sequence[Stage], grouping: Grouping) -> None:
    """Where only the order of statements kept a stage out of a nest: before what it would have had to come."""
    place = {node: number for number, stage in enumerate(stages) for node in stage.made}
    tries = 0
    for number, stage in enumerate(stages):
        earliest = max((place[node] for node, _ in stage.refs if node in place), default=-1)
        for producer, found in stage.rejected.items():
            before = min((place[o.node] for o in found if o.code in ORDERED), default=-1)
            if tries >= MOST_TRIED or before <= earliest or not all(o.code in ORDERED for o in found):
                continue
            made = [node for node, _ in stage.refs if node in place]
            if not all(stands_before(node, stages[before].node) for node in made):
                continue  # one statement makes both
            tries += 1
            order = [*stages[:before], stage, *stages[before:number], *stages[number + 1 :]]
            other = Grouping(grouping.limits, grouping.cuts)
            for one in order:
                other.add(one, noting=False)
            nest = grouping.groups[grouping.where[producer]]
            if {other.where[node] for node in (*nest.nodes, stage.node)} == {other.where[producer]}:  # and it loses nothing
                stage.moves[producer] = stages[before].node


def expensive_in_several(groups: list[Group], stored: set[Node], shape: Shape) -> dict[Node, Obstacle]:
    """Values that several kernels would compute again in `Shape.recompute_operations` or more: to keep them costs less. Each
    with the number of the kernels, its operations, and the limit."""
    users: dict[Node, set[int]] = {}
    found: dict[Node, Expr] = {}
    most = shape.recompute_operations
    for i, group in enumerate(groups):
        for stage in group.stages:
            for node, expr in stage.lazy.items():
                if node in stage.again:  # whatever that costs
                    continue
                users.setdefault(node, set()).add(i)
                found[node] = expr
    cost = {n: work(found[n], shape, most) for n, where in users.items() if len(where) > 1 and n not in stored}
    expensive = {n: (len(users[n]), operations, most) for n, operations in cost.items() if operations >= most}
    return _last_of_chains(expensive, groups)


def expensive_beside_vectors(groups: list[Group], stored: set[Node], shape: Shape) -> dict[Node, Obstacle]:
    """Values that a reduction across rows would compute one by one, as all lanes of a vector share them, again for each vector:
    to store them costs less, as a loop of their own computes them in vectors. Obstacles as above."""
    found: dict[Node, float] = {}
    most = shape.scalar_operations
    for stage in (stage for group in groups for stage in group.stages):
        if stage.kind != "reduce" or stage.reduced[-1:] != (False,):
            continue
        lanes = f"a{len(stage.space) - 1}"
        gone = {f"a{axis}" for axis, is_gone in enumerate(stage.reduced) if is_gone}
        for node, expr in stage.lazy.items():
            is_shared = lanes not in expr.depends and not gone.isdisjoint(expr.depends)
            if is_shared and node not in stored and node not in stage.again:
                found[node] = max(found.get(node, 0.0), work(expr, shape, most))
    return _last_of_chains({node: (1, cost, most) for node, cost in found.items() if cost >= most}, groups)


def _last_of_chains(expensive: dict[Node, tuple[int, float, float]], groups: list[Group]) -> dict[Node, Obstacle]:
    """Of expensive values those to store: what only feeds stored values is not computed again."""
    readers = _direct_readers(set(expensive), groups)
    return {
        node: Obstacle(NotFused.RECOMPUTE_IS_EXPENSIVE, node, (times, round(cost), most))
        for node, (times, cost, most) in expensive.items()
        if not readers[node] or not readers[node] <= expensive.keys()
    }


def _direct_readers(expensive: set[Node], groups: list[Group]) -> dict[Node, set[Node]]:
    """What reads each of these values."""
    found: dict[Node, set[Node]] = {node: set() for node in expensive}
    for group in groups if expensive else ():
        for stage in group.stages:
            for reader in (*stage.lazy, stage.node):
                for node in reader.inputs:
                    if node in found:
                        found[node].add(reader)
    return found

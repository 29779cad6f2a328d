"""The edges of a cluster that go through memory, each with all that fusion found in the way; the first of it is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from jitlab.ir import (
    Cluster,
    Edge,
    Flip,
    NestChange,
    Node,
    NotFused,
    Reason,
    Rejection,
    Shape,
    in_words,
    inner_nodes,
    is_operation,
)
from jitlab.lower.program_builder import Shared
from jitlab.lower.value_names import called
from jitlab.messages import Message
from jitlab.ops.base import Elementwise, Generated
from jitlab.ops.layout.views import Reshape

from .findings import Obstacle
from .groups import Group
from .obstacles import CUT
from .recomputing import work
from .sentences import Between, cut, lines_of, reason_of
from .stages import Stage

#: Which of several reasons is told: all of an edge save the same bytes, so the first of the list.
RANK = {code: number for number, code in enumerate(NotFused)}

#: What a larger limit undoes: of the messages `flip`.
LIMITS = {
    NotFused.TOO_LONG: "larger_nests", NotFused.TOO_MANY_VALUES: "more_stored",
    NotFused.RECOMPUTE_IS_EXPENSIVE: "more_computed", NotFused.LIBRARY_CALL: "larger_products",
}  # fmt: skip

#: Codes of a nest that is as large as one may be: a second copy of the value would make it larger.
SIZES = frozenset({NotFused.TOO_LONG, NotFused.TOO_MANY_VALUES})

#: What undoes a rejection where the program is another one: of the messages `flip`.
UNDONE = {
    NotFused.WHOLE_REDUCTION: "without_result", NotFused.REDUCED_OUTER_AXIS: "without_result",
    NotFused.WAITS: "without_later", NotFused.AFTER_LOOPS: "without_value",
    NotFused.CLOSED: "without_value", NotFused.GATHERED: "read_where_made",
    NotFused.READ_AGAIN: "read_where_made", NotFused.RESHAPED: "same_shape",
    NotFused.DIFFERENT_SPACE: "same_elements", NotFused.OTHER_AXES: "same_axes",
    NotFused.SCAN: "same_way", NotFused.ORDER: "earlier",
    NotFused.LATER_NEST: "earlier", NotFused.CUT: "not_cut",
}  # fmt: skip

def boundaries(
    groups: Sequence[Group], shared: Shared, otherwise: Sequence[set[Node]] = (), outputs: Collection[Node] = ()
) -> list[Edge]:
    """The edges between groups, each with the one reason: from what is stored to what reads it. `otherwise`: what would share a
    nest at a higher level; `outputs`: what is stored anyway."""
    where = {node: group for group in groups for node in group.nodes}
    edges: dict[tuple[Node, Node], Edge] = {}
    for group in groups:
        for stage in group.stages:
            for producer in dict.fromkeys(node for node, _ in stage.refs):
                if where.get(producer, group) is group:
                    continue
                readers = [n for n in stage.computed if producer in n.inputs and is_operation(n)] or [stage.node]
                if all((producer, reader) in edges for reader in readers):
                    continue
                at = Between(producer, readers[0], stage, where[producer], shared.sizes.shape)
                found = _obstacles(at)
                if not found:
                    continue  # their nests were joined after all, or it is a number in a register
                rejections = tuple(_rejection(at, obstacle) for obstacle in found)
                stored = None if at.own.stored_for is None else _rejection(at, at.own.stored_for)
                reason = _reason(at, found[0], rejections, stored)
                for reader in readers:
                    cure = _cure(at, group, reader, rejections, otherwise)
                    if isinstance(cure, str):  # AGAIN
                        said = {"producer": called(producer), "reader": called(reader)}
                        row, more = _price(producer, at.made, group, groups, outputs, shared.sizes.shape)
                        cure = Message(f"flip.{row}", said | more)
                    edge = Edge(producer, reader, reason, producer.type.nbytes, cure, rejections, stored)
                    if (producer, reader) in shared.cuts.pairs:
                        edge = _cut(edge)
                        edges.pop((producer, reader), None)
                    edges.setdefault((producer, reader), edge)
    return list(edges.values())


def _cut(edge: Edge) -> Edge:
    """An edge that a what-if cuts."""
    return replace(edge, reason=cut(edge.producer), would_fuse_if=None)


def _reason(at: Between, first: Obstacle, rejections: Sequence[Rejection], stored: Rejection | None) -> Reason:
    """Of the two ways to fuse an edge: what keeps the reader out of the nest; where it reads the value at several places, and
    would compute it at each, that this is expensive."""
    if at.own.stored_for is not None and stored is not None and at.places > 1 and RANK[stored.code] < RANK[first.code]:
        return reason_of(at, at.own.stored_for, stored.evidence)
    return reason_of(at, first, rejections[0].evidence)


def _obstacles(at: Between) -> list[Obstacle]:
    """What was found in the way, what is told of it first."""
    found = dict.fromkeys(_seen_from(at, obstacle) for obstacle in at.stage.rejected.get(at.producer, ()))
    return sorted(found, key=lambda obstacle: RANK[obstacle.code])


def _seen_from(at: Between, obstacle: Obstacle) -> Obstacle:
    """What keeps a stage out of a nest, said of one of the values that it reads there."""
    code, node = obstacle.code, obstacle.node
    if code in CUT and node is not at.producer:
        code = NotFused.WAITS
    elif code is NotFused.DIFFERENT_SPACE and isinstance(at.reader.op, Reshape):
        code = NotFused.RESHAPED
    return Obstacle(code, node, obstacle.evidence)


def _rejection(at: Between, obstacle: Obstacle) -> Rejection:
    code, node = obstacle.code, obstacle.node
    evidence: tuple[Any, ...] = obstacle.evidence
    if code is NotFused.RECOMPUTE_IS_EXPENSIVE and node is not at.producer and at.places > 1:
        evidence = at.places, round(at.again), obstacle.evidence[-1]
    elif code is NotFused.GATHERED:
        evidence = (at.pick.name,)
    return Rejection(code, (node.name,), evidence, at.producer.type.nbytes, _flip(at, obstacle))


def _flip(at: Between, obstacle: Obstacle) -> Flip | None:
    """The change that undoes a rejection."""
    code = obstacle.code
    before = at.stage.moves.get(at.producer)
    if code in (NotFused.ORDER, NotFused.LATER_NEST) and before is not None:
        said = {"name": called(at.stage.node), "before": called(before), "lines": lines_of(before)}
        return Flip(NestChange.MOVE, Message("flip.move", said), (at.stage.node.name, before.name))
    if code in LIMITS and obstacle.evidence:
        return Flip(NestChange.LIMIT, Message(f"flip.{LIMITS[code]}"), (), obstacle.evidence[-1])
    if code not in UNDONE:
        return None
    return Flip(NestChange.REWRITE, Message(f"flip.{UNDONE[code]}"), (at.stage.node.name, at.producer.name))


#: Stands for the message about a second copy, which is made for each reader.
AGAIN = "again"


def _cure(
    at: Between, group: Group, reader: Node, rejections: Sequence[Rejection], otherwise: Sequence[set[Node]]
) -> Message | str | None:
    """What the user can do, that was tried: another level, another order, a second copy of the value."""
    first = rejections[0]
    if first.code is NotFused.LEVEL:
        return Message("flip.level_o1") if any({at.producer, reader} <= nest for nest in otherwise) else None
    if first.flip is not None and first.flip.change is NestChange.MOVE:
        return first.flip.said
    repeats = isinstance(at.producer.op, (Elementwise, Generated)) and at.producer not in at.stage.picked
    return AGAIN if repeats and first.code not in SIZES and group.kind in ("map", "row", "column", "scan") else None


def _price(
    producer: Node, made: Group, group: Group, groups: Sequence[Group], outputs: Collection[Node], shape: Shape
) -> tuple[str, dict[str, Any]]:
    """What is said of a second copy. One that saves nothing reads what the value is made of, or the expensive part of that is
    stored."""
    own, most = next(s for s in made.stages if producer in s.made), shape.recompute_operations
    expensive = [node for node, expr in own.lazy.items() if work(expr, shape, most) >= most]
    instead = sum(node.type.nbytes for node in expensive if not any(node in other.inputs for other in expensive))
    known = {node for stage in group.stages for node in stage.reads}
    added = sum(node.type.nbytes for node in own.reads - known)
    others = [other for other in groups if other not in (made, group) and any(producer in s.reads for s in other.stages)]
    saved = producer.type.nbytes
    if producer not in outputs and len(others) < 2:
        saved *= 2 + len(others)  # perhaps nobody stores it any more
    if added >= saved or instead >= producer.type.nbytes:
        return "twice_for_nothing", {}
    why = own.stored_for
    if why is None or why.code is not NotFused.RECOMPUTE_IS_EXPENSIVE or why.node is not producer:
        return "twice", {}
    return "twice_at_a_price", {"operations": round(why.evidence[1])}


def taken(edges: Sequence[Edge], groups: Sequence[Group], nodes: Collection[Node]) -> Iterator[Edge]:
    """The edges of a cluster over which a stage takes a value where it lies, and reads nothing that was stored for it."""
    known = {(_owner(edge.producer), edge.consumer) for edge in edges}
    where = {node: group for group in groups for node in group.nodes}
    for group in groups:
        for stage in group.stages:
            for source in stage.taken:
                producer = _owner(source)
                is_inside = is_operation(producer) and producer in nodes and where.get(source) is not group
                if is_inside and (producer, stage.node) not in known:
                    yield _edge_where_it_lies(producer, stage, source)


def _owner(node: Node) -> Node:
    """The operation that gives a value: a loop for one of its results."""
    return node if is_operation(node) or not node.inputs else node.inputs[0]


def _edge_where_it_lies(producer: Node, stage: Stage, source: Node) -> Edge:
    (obstacle,) = stage.rejected[source]
    code, args = obstacle.code, {"name": called(producer), "lines": lines_of(stage.node)}
    if code is NotFused.LIBRARY_CALL:
        row = "read_there"
    elif code is NotFused.UPDATED:
        row, args["reader"] = "written_there", called(stage.node)
    else:
        row, args = "own_loop", {"reader": called(stage.node), "lines": args["lines"]}
    names, nbytes = (stage.node.name,), source.type.nbytes
    reason = in_words(code, Message(f"notfused.{row}", args), names)
    return Edge(producer, stage.node, reason, nbytes, None, (Rejection(code, names, obstacle.evidence or names, nbytes),))


def inner_edges(cluster: Cluster, shared: Shared) -> Iterator[Edge]:
    """The edges in bodies that go through memory."""
    own = {inner for node in cluster.nodes for inner, _, _ in inner_nodes(node)}
    for groups in shared.bodies:
        for edge in boundaries(groups, shared):
            if edge.producer in own and edge.consumer in own:
                yield edge

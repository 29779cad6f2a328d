"""Why two stages are in different nests: the edges of a cluster that go through memory, each with its one reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jitlab.ir import Edge, Node, NotFused, Reason, is_operation
from jitlab.ir.dot import line_text
from jitlab.ops.base import Elementwise, Generated, Reduction
from jitlab.ops.indexing import Gather, Take
from jitlab.ops.scans import Scan
from jitlab.ops.views import Reshape

from .block import is_control
from .cuts import NO_CUTS, Cuts
from .fusion import Group, Stage, aligned
from .lengths import MOST_DEEP, MOST_OPERATIONS
from .names import called
from .reading import DEAR
from .recomputing import weight

#: Operations that are looked back over from a value to the array it may come of.
MOST_STEPS = 200


def boundaries(
    groups: list[Group], level: str, cuts: Cuts = NO_CUTS, otherwise: Sequence[set[Node]] = (), outputs: Collection[Node] = ()
) -> list[Edge]:
    """The edges of the cluster that go through memory, each with the one reason: from what is stored to what reads it.
    `otherwise`: what would share a nest at a higher level; `outputs`: what is stored anyway."""
    where = {node: group for group in groups for node in group.nodes}
    number = {group: i for i, group in enumerate(groups)}
    edges: dict[tuple[Node, Node], Edge] = {}
    for group in groups:
        for stage in group.stages:
            for producer in dict.fromkeys(node for node, _ in stage.refs):
                if where.get(producer, group) is group:
                    continue
                readers = [node for node in stage.computed if producer in node.inputs and is_operation(node)] or [stage.node]
                if all((producer, reader) in edges for reader in readers):
                    continue
                first = number[where[producer]]
                later = [node for node, _ in stage.refs if node in where and first < number[where[node]] < number[group]]
                reason, cure = _why_not_fused(producer, where[producer], stage, group, level, later)
                is_cheap_to_repeat = isinstance(producer.op, (Elementwise, Generated)) and producer not in stage.picked
                is_cheap_to_repeat = is_cheap_to_repeat and reason.code is not NotFused.TOO_LONG
                for reader in readers:
                    again: str | None
                    if level != "O0" and cure is None and is_cheap_to_repeat and group.kind in ("map", "row", "column", "scan"):
                        again = f"{called(producer)} were computed a second time, for {called(reader)}"
                        again += _price(producer, where[producer], group, groups, outputs)
                    else:
                        again = cure
                    if reason.code is NotFused.LEVEL and not any({producer, reader} <= nest for nest in otherwise):
                        again = None
                    if (producer, reader) in cuts.pairs:
                        mine, size = Reason(NotFused.CUT, f"Cut: {called(producer)} is stored"), producer.type.nbytes
                        edges[producer, reader] = Edge(producer, reader, mine, size)
                    else:
                        edges.setdefault((producer, reader), Edge(producer, reader, reason, producer.type.nbytes, again))
    return list(edges.values())


def _price(producer: Node, made: Group, group: Group, groups: Sequence[Group], outputs: Collection[Node]) -> str:
    """Said of a copy that saves nothing: it reads what the value is made of, and what is dear of that is stored instead."""
    own = next(s for s in made.stages if producer in s.made)
    dear = [node for node, operations in own.lazy.items() if operations >= DEAR]
    instead = sum(node.type.nbytes for node in dear if not any(node in other.inputs for other in dear))
    known = {node for stage in group.stages for node in stage.reads}
    added = sum(node.type.nbytes for node in own.reads - known)
    others = [other for other in groups if other not in (made, group) and any(producer in s.reads for s in other.stages)]
    saved = producer.type.nbytes
    if producer not in outputs and len(others) < 2:
        saved *= 2 + len(others)  # perhaps nobody stores it any more
    return ", which saves no memory traffic" if added >= saved or instead >= producer.type.nbytes else ""


def _why_not_fused(
    producer: Node, made: Group, stage: Stage, group: Group, level: str, later: Sequence[Node]
) -> tuple[Reason, str | None]:
    size = bytes_text(producer.type.nbytes)
    name = called(producer)
    lines = _lines(producer)
    if level == "O0":
        text = f"Not fused: level O0 gives each operation its own kernel; {name} is {size}"
        return Reason(NotFused.LEVEL, text), "--level O1"
    places = len({position for node, position in stage.refs if node is producer})
    own = next(s for s in made.stages if producer in s.made)
    if own.is_dear and places > 1:
        again = (places - 1) * sum(weight(node) for node in own.computed)
        text = f"Not fused: {name} is read at {places} places, and to compute it at each takes {again:.0f} operations more"
        return Reason(NotFused.RECOMPUTE_IS_DEAR, f"{text}; {size} ({lines})", (places, again)), None
    if any(producer in group.deep for group in stage.too_long):
        text = f"Not fused: one nest has at most {MOST_OPERATIONS} operations, {MOST_DEEP} of them one after the other"
        return Reason(NotFused.TOO_LONG, f"{text}; {name} is {size} ({lines})", (MOST_OPERATIONS, MOST_DEEP)), None
    if "gemm" in (made.kind, group.kind):
        text = f"Not fused: a library call reads and writes whole matrices; {name} is {size} ({lines})"
        return Reason(NotFused.LIBRARY_CALL, text), None
    if "call" in (made.kind, group.kind):
        does = "gives its result as a whole" if made.kind == "call" else "reads its operand where it lies"
        text = f"Not fused: a library call {does}; {name} is {size} ({lines})"
        return Reason(NotFused.LIBRARY_CALL, text), None
    if made.kind == "row" and not made.outer and isinstance(producer.op, Reduction):
        text = f"Not fused: {name} needs all elements before the first one that reads it; {size} ({lines})"
        return Reason(NotFused.WHOLE_REDUCTION, text), None
    if any(s.node is producer and s.kind == "reduce" and not s.suffix for s in made.stages):
        text = f"Not fused: {name} is reduced over an outer axis, so every row has to be read first; {size} ({lines})"
        return Reason(NotFused.REDUCED_OUTER_AXIS, text), None
    if "region" in (made.kind, group.kind):
        return Reason(NotFused.UPDATED, f"Not fused: part of an array is written; {name} is {size} ({lines})"), None
    if producer in stage.picked:
        picks = (node for node in stage.computed if isinstance(node.op, (Take, Gather)) and producer in node.inputs)
        pick = next(picks, stage.node)
        text = f"Not fused: {name} is read again, {size}. {called(pick)} may read any element of it, where an index array says"
        return Reason(NotFused.GATHERED, f"{text} ({_lines(pick)})", (pick.name,)), None
    positions = [p for n, p in stage.refs if n is producer]
    if any(len(p) != producer.ndim for p in positions):
        return Reason(NotFused.RESHAPED, f"Not fused: {name} is read under another shape; {size} ({lines})"), None
    if len(stage.space) == len(made.outer) and stage.space != made.outer:
        text = f"Not fused: {name} is read over another space than it is made in; {size} ({lines})"
        return Reason(NotFused.DIFFERENT_SPACE, text), None
    code, text = _in_another_loop(producer, made, stage, later)
    return Reason(code, f"Not fused: {text}; {size} ({lines})"), None


def _in_another_loop(producer: Node, made: Group, stage: Stage, later: Sequence[Node]) -> tuple[NotFused, str]:
    """Why what reads a value is not done in the loops that make it, though both go over one space."""
    name, reader = called(producer), called(_reader(producer, stage))
    own = next(s for s in made.stages if producer in s.made)
    read = [node for node, _ in stage.refs]
    ends = [s.node for s in made.stages if s.kind in ("reduce", "scan") and s.node is not producer]
    known_late = next((node for node in (*ends, *later) if node in read), None)
    if is_control(own.node) or is_control(stage.node):
        ends_first = "which ends before it is read" if is_control(own.node) else "which begins when it is complete"
        loop = own.node if is_control(own.node) else stage.node
        return NotFused.UPDATED, f"{called(loop) if loop is stage.node else name} is a loop or branch of its own, {ends_first}"
    base = stage.node.inputs[0] if stage.kind == "update" else None
    k = len(stage.space)
    if isinstance(_reader(producer, stage).op, Reshape):
        return NotFused.RESHAPED, f"{name} is read under another shape"
    if any(not aligned(own, p, k) for n, p in stage.refs if n is producer and k >= len(p)):
        return NotFused.READ_AGAIN, f"{reader} reads elements of {name} that other turns of the loop make"
    if stage.kind == "scan" and isinstance(producer.op, Scan):
        return NotFused.READ_AGAIN, f"{name} and {reader} run along two axes, or both ways along one: each is a loop of its own"
    if known_late is not None:
        return NotFused.READ_AGAIN, f"{reader} also reads {called(known_late)}, which is known when {name} is complete"
    if base is not None and _is_made_of(producer, base):
        return NotFused.OVERLAP, f"{name} is made of elements of {called(stage.node)} that {_lines(stage.node)} overwrites"
    if stage.kind == "reduce" and not stage.suffix:
        text = f"{called(stage.node)} reduces an outer axis, so its loops go another way than those that make {name}"
        return NotFused.READ_AGAIN, text
    if ends:
        return NotFused.READ_AGAIN, f"{name} is made in the loops of {called(ends[0])}, and {reader} has others of its own"
    return NotFused.READ_AGAIN, f"{name} is read again"


def _reader(producer: Node, stage: Stage) -> Node:
    """The operation of a stage that reads a value; what ends the stage where a view of it is read."""
    return next((node for node in stage.computed if producer in node.inputs and is_operation(node)), stage.node)


def _is_made_of(node: Node, base: Node) -> bool:
    """Does the value come, by few steps, of other elements of this version of an array than that of its own place?"""
    todo, seen = [(node, False)], {(node, False)}
    while todo and len(seen) < MOST_STEPS:
        here, moved = todo.pop()
        if here is base and moved:
            return True
        moved = moved or not isinstance(here.op, Elementwise)
        fresh = [(source, moved) for source in here.inputs if (source, moved) not in seen]
        seen.update(fresh)
        todo += fresh
    return False


def _lines(node: Node) -> str:
    return line_text(s.line for s in node.sources) or "line ?"


def bytes_text(n: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"

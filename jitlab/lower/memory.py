"""Which new versions of arrays take over the memory of the old ones, and what is copied so that the rest may.

Rule 1: the old version is not wanted later, else the new one gets memory of its own. Rule 2: what is computed from the old
version and wanted later is stored before it changes. Rule 3, that a right side is not spoiled by its own stores, is asked of
each nest (statements.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import cast

from jitlab.ir import Copied, Copy, Node, because, poly
from jitlab.ir.graphs.dot import line_text
from jitlab.ops.host_operations import Item
from jitlab.ops.layout.indexing import Scatter
from jitlab.ops.layout.views import Update, View
from jitlab.ops.leaf_operations import Constant
from jitlab.support.lazy_dataclass import dataclass

from .block import Block, covers, is_control, overwritten, rim
from .fusion.cuts import NO_CUTS, Cuts
from .fusion.findings import Obstacle
from .fusion.fusion import expensive_beside_vectors, expensive_in_several, grouped, note_moves
from .fusion.groups import Group
from .fusion.nest_limits import long_values
from .fusion.stages import Stage, is_lazy, must_be_stored, stages_of
from .sizes import Sizes
from .value_names import called


@dataclass
class Arranged:
    """A block ready to be written: groups in order, what has a place, which versions share one, and the copies with reasons."""

    groups: list[Group]
    stored: set[Node]
    in_place: dict[Node, Node]
    copies: list[Copy] = field(default_factory=list)


def arrange(
    block: Block, sizes: Sizes, wanted: set[Node], *, level: str, cuts: Cuts = NO_CUTS
) -> Arranged:
    """`wanted` get memory of their own as well."""
    wanted = wanted.union(node for node in cuts.stored if _has_a_place(node, block))
    kept: dict[Node, Copied] = {}  # values stored before their source changes
    apart: dict[Node, Copied] = {}  # results that may not take over their base
    more: set[Node] = set()
    expensive: dict[Node, Obstacle] = {}  # values stored because to compute them again is expensive
    while True:
        block.forget_moves()
        stored = must_be_stored(block, sizes, level) | more | wanted.intersection(block.nodes) | set(kept)
        if block.targets:
            block.move_results(_in_place(block, stored, dict(apart)))
            stored |= must_be_stored(block, sizes, level)
        long = long_values(block, stored, sizes.shape.nests)
        stored |= long.keys()
        if not block.ordered and not block.targets:
            apart |= dict.fromkeys(_read_behind(block, stored, apart), Copied.RIM)
        in_place = _in_place(block, stored, apart)
        stages = stages_of(block, sizes, stored, in_place, expensive, cuts)
        if _keep_what_changes(_clashes(block, stages, stored, in_place), kept, apart):
            cuts.stored_after_all(kept)
            continue
        grouping = grouped(stages, sizes.shape.nests, level, cuts, block.ordered)
        found = expensive_in_several(grouping.groups, stored, sizes.shape)
        found = found or expensive_beside_vectors(grouping.groups, stored, sizes.shape)
        if not found:
            break
        expensive |= found
        more |= stored | found.keys()
    note_moves(stages, grouping)
    _note_why_stored(stages, long | expensive)
    made = {node for stage in stages for node in stage.made}
    copies = [copied(node, code) for node, code in kept.items() if node in made]
    for node, code in _copied_bases(block, stages, stored, in_place, apart):
        left = node.type.told_bytes - node.inputs[1].type.told_bytes if rim(node) else None
        copies.append(copied(node, code, left))
    moved = [update for _, update in block.finals.values() if update in made]
    copies += [copied(node, Copied.MADE_ELSEWHERE) for node in moved if is_lazy_copy(node, stored)]
    return Arranged(grouping.groups, stored, in_place, copies)


def _note_why_stored(stages: list[Stage], why: dict[Node, Obstacle]) -> None:
    """The decision to store a value, where nothing but that keeps what reads it from computing it."""
    picked = {node for stage in stages for node in stage.picked} if why else set()
    for stage in stages if why else ():
        stage.stored_for = why.get(stage.node) if stage.node not in picked else None


def _has_a_place(node: Node, block: Block) -> bool:
    """May a value be stored? Numbers of a body are in registers."""
    return not (is_control(node) or isinstance(node.op, Constant) or (block.ordered and not node.ndim))


def is_lazy_copy(update: Node, stored: set[Node]) -> bool:
    """Does the store that brings a result to its place only move what lies elsewhere?"""
    node = update.inputs[1]
    while isinstance(node.op, View) and node not in stored:
        (node,) = node.inputs
    return node in stored or node.op.is_parameter


def _in_place(block: Block, stored: set[Node], apart: dict[Node, Copied]) -> dict[Node, Node]:
    outputs = set(block.outputs)
    wanted = {node for k, node in enumerate(block.results) if k not in block.finals and node.ndim}
    made = {node for node in block.nodes if isinstance(node.op, Item)}  # what loops, branches and calls give lies in memory
    ours = block.owned | stored | made
    result: dict[Node, Node] = {}
    taken: dict[Node, Node] = {}
    for node in block.all_nodes:
        for new, base in overwritten(node):
            if new in apart or not base.ndim or base not in ours:
                continue
            if base in outputs or (base in wanted and new not in wanted):
                apart[new] = Copied.OLD_VERSION_READ
                continue
            if base in taken:  # the last one may have it
                apart[taken[base]] = Copied.OLD_VERSION_READ
                del result[taken[base]]
            taken[base] = new
            result[new] = base
    return result


def _read_behind(block: Block, stored: set[Node], apart: Mapping[Node, Copied]) -> Iterator[Node]:
    """The updates of all but a rim that read, behind what they write, the version that they replace, as a stencil does: one
    pass makes the new version beside the old one, where a store in place takes two, by way of a temporary."""
    for node in block.nodes:
        if node in apart or node.inputs[:1] and node.inputs[0] in block.owned or rim(node) is None:
            continue
        base, value = node.inputs
        todo, seen = [value], {value}
        while todo:
            reader = todo.pop()
            if base in reader.inputs and isinstance(reader.op, View) and _is_behind(reader.op, cast(Update, node.op)):
                yield node
                break
            for source in reader.inputs if is_lazy(reader, stored) else ():
                if source is not base and source not in seen:
                    seen.add(source)
                    todo.append(source)


def _is_behind(read: View, write: Update) -> bool:
    """Is each element read after an iteration before has overwritten it?"""
    if len(read.map) != len(write.map) or any((poly(s).value, a) != (1, i) for i, (_, s, a) in enumerate(read.map)):
        return False
    apart = ((poly(r) - poly(w)).value for (r, _, _), (w, _, _) in zip(read.map, write.map, strict=True))
    return (next((d for d in apart if d != 0), 0) or 0) < 0


def _keep_what_changes(
    clashes: Iterator[tuple[Node, list[Node]]], kept: dict[Node, Copied], apart: dict[Node, Copied]
) -> bool:
    """Notes what ends the clashes, one result that gets a place of its own at most: what lies elsewhere, clashes otherwise."""
    found: dict[Node, Copied] = {}
    for result, values in clashes:
        if values and found.keys().isdisjoint(values):  # what is stored for one clash may end another
            found.update(dict.fromkeys(values, Copied.SOURCE_CHANGES))
        elif not values:
            if not found:
                apart[result] = Copied.OLD_VERSION_READ
                return True
            break
    kept.update(found)
    return bool(found)


def _clashes(
    block: Block, stages: list[Stage], stored: set[Node], in_place: dict[Node, Node]
) -> Iterator[tuple[Node, list[Node]]]:
    """(result, values to store first, none if that does not help): reads of an array after it has changed in place."""
    nodes = block.all_nodes
    position = {node: i for i, node in enumerate(nodes)}
    inside = set(nodes)
    readers: dict[Node, list[Stage]] = {}
    for stage in stages:
        for node in stage.reads:
            readers.setdefault(node, []).append(stage)
    for result, base in in_place.items():
        changer = result.inputs[0] if isinstance(result.op, Item) else result
        at = position[changer]
        for stage in readers.get(base, ()):
            if position[stage.node] < at:
                continue
            if stage.node is changer and isinstance(changer.op, Update):
                continue  # rule 3
            values: list[Node] = []
            direct = _find(stage.node, changer, base, at, position, inside, stored, in_place, values, set())
            yield result, [] if direct else values


def _find(
    node: Node, changer: Node, base: Node, at: int, position: dict[Node, int], inside: set[Node], stored: set[Node],
    in_place: dict[Node, Node], values: list[Node], seen: set[Node],
) -> bool:  # fmt: skip
    """Collect the values made before the change through which `node` reads `base`. True: one reads it with nothing between."""
    seen.add(node)
    sources = list(node.inputs)
    for new in [node, *(n for n in inside if isinstance(n.op, Item) and n.inputs[0] is node)]:
        if new in in_place and in_place[new] in sources:
            sources.remove(in_place[new])  # changed, not read
    for source in sources:
        if source is base:
            return True
        if source in seen or source not in inside or not is_lazy(source, stored) or not _reads(source, base, inside, stored):
            continue
        if position[source] < at:
            if source not in values:
                values.append(source)
        elif _find(source, changer, base, at, position, inside, stored, in_place, values, seen):
            return True
    return False


def _reads(node: Node, base: Node, inside: set[Node], stored: set[Node]) -> bool:
    todo, seen = [node], {node}
    while todo:
        for source in todo.pop().inputs:
            if source is base:
                return True
            if source in inside and source not in seen and is_lazy(source, stored):
                seen.add(source)
                todo.append(source)
    return False


def _copied_bases(
    block: Block, stages: list[Stage], stored: set[Node], in_place: dict[Node, Node], apart: dict[Node, Copied]
) -> Iterator[tuple[Node, Copied]]:
    """The results that start as a copy of memory (not of something that is computed there)."""
    inside = set(block.all_nodes)
    for stage in stages:
        for node in stage.made:
            if is_control(node) or not isinstance(node.op, (Update, Scatter, Item)) or node in in_place:
                continue
            for new, base in overwritten(node):
                source = base
                while isinstance(source.op, View) and source not in stored:
                    (source,) = source.inputs
                if (source in stored or source not in inside) and not covers(new):
                    known = apart.get(new)
                    if source not in inside and known in (None, Copied.RIM):
                        known = Copied.INPUT_KEPT
                    yield new, known or Copied.OLD_VERSION_READ


def copied(node: Node, code: Copied, nbytes: int | None = None) -> Copy:
    """The record of a copy; `nbytes` where it is not of the whole array."""
    nbytes = node.type.told_bytes if nbytes is None else nbytes
    lines = line_text(s.line for s in node.sources) or "line ?"
    return Copy(node, because(code, size_in="clause", name=called(node), bytes=nbytes, lines=lines), nbytes)

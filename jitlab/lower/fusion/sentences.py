"""Why two operations are not fused, in words: one sentence for each code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jitlab.ir import NestLimits, Node, NotFused, Reason, Shape, in_two
from jitlab.ir.graphs.dot import line_text
from jitlab.lower.value_names import called
from jitlab.messages import Message
from jitlab.ops.layout.indexing import Gather, Take
from jitlab.support.lazy_dataclass import dataclass

from .findings import Obstacle
from .groups import Group
from .obstacles import ALONE
from .recomputing import weight
from .stages import Stage

#: A clause; or one and another behind it, which says what follows.
Words = Message | tuple[Message, Message]


@dataclass(frozen=True)
class Between:
    """What lies between two nests: a value, the stage that reads it, by the operation `reader`, the nest that makes it, and
    the machine's shape."""

    producer: Node
    reader: Node
    stage: Stage
    made: Group
    shape: Shape

    @property
    def limits(self) -> NestLimits:
        """What nests may hold."""
        return self.shape.nests

    @property
    def own(self) -> Stage:
        """The stage that makes the value."""
        return next(s for s in self.made.stages if self.producer in s.made)

    @property
    def places(self) -> int:
        return len({position for node, position in self.stage.refs if node is self.producer})

    @property
    def again(self) -> float:
        """Operations that it takes to compute the value at each place where it is read."""
        return (self.places - 1) * sum(weight(node, self.shape) for node in self.own.computed)

    @property
    def pick(self) -> Node:
        """The operation that reads where an index array says."""
        found = (n for n in self.stage.computed if isinstance(n.op, (Take, Gather)) and self.producer in n.inputs)
        return next(found, self.stage.node)


def reason_of(at: Between, obstacle: Obstacle, evidence: tuple[Any, ...]) -> Reason:
    """The reason: a clause, and what more there is to say; where the value lies and its bytes come last."""
    code, operand = obstacle.code, obstacle.node
    named = {"name": called(at.producer), "bytes": at.producer.type.nbytes}
    placed = {**named, "lines": lines_of(at.producer)}
    if code is NotFused.CUT:
        return cut(operand, evidence)
    if code is NotFused.LEVEL:
        return in_two(code, _said("level"), ";", _said("named", **named), evidence, "rest")
    if code is NotFused.GATHERED:
        why = _said("any_element", pick=called(at.pick), pick_lines=lines_of(at.pick))
        return in_two(code, _said("gathered", **named), ".", why, evidence, "clause")
    words = WORDS[code](at, operand)
    if not isinstance(words, Message):
        first, then = words
        return in_two(code, first, ":", _said("then_size", then=then, **placed), evidence, "rest")
    if code in UNNAMED and "name" not in words.args:
        return in_two(code, words, ";", _said("named_in", **placed), evidence, "rest")
    return replace(in_two(code, words, ";", _said("size_in", **placed), evidence, "clause"), clause="", rest="")


def cut(node: Node, evidence: tuple[Any, ...] = ()) -> Reason:
    """Of an edge that a what-if cuts."""
    return in_two(NotFused.CUT, _said("cut"), ":", _said("stored", name=called(node)), evidence)


def _said(row: str, **args: Any) -> Message:
    return Message(f"notfused.{row}", args)


def lines_of(node: Node) -> str:
    return line_text(s.line for s in node.sources) or "line ?"


#: Sentences that do not say what the value is called.
UNNAMED = {NotFused.LIBRARY_CALL, NotFused.UPDATED, NotFused.TOO_LONG, NotFused.TOO_MANY_VALUES, NotFused.NUMBER}


def _library(at: Between, operand: Node) -> Message:
    if "gemm" in (at.stage.kind, at.made.kind):
        return _said("whole_matrices")
    if at.made.kind == "call":
        return _said("whole_result", name=called(at.producer))
    return _said("reads_operand", name=called(at.producer), call=called(at.stage.node))


def _loop(at: Between, operand: Node) -> Message:
    if ALONE.get(at.made.kind) is NotFused.LOOP:
        return _said("loop_ends", name=called(at.producer))
    return _said("loop_begins", stage=called(at.stage.node))


def _scan(at: Between, operand: Node) -> Words:
    ends = {"name": called(at.producer), "reader": called(at.reader)}
    if at.stage.kind == "scan" and at.made.kind == "scan":
        if operand is at.producer:
            return _said("two_axes", **ends), _said("each_alone")
        return _said("other_scan", nest=called(operand), **ends)
    if at.made.kind == "scan":
        nest = called(operand)
        stage = called(at.stage.node)
        if nest == ends["name"]:
            return _said("own_order", name=nest, stage=stage)
        return _said("in_order", name=ends["name"], nest=nest, stage=stage)
    return _said("scan_after", **ends)


def _other_axes(at: Between, operand: Node) -> Message:
    names = {"stage": called(at.stage.node), "name": called(at.producer)}
    reader = called(at.reader)
    if reader in names.values():
        return _said("other_axes" if at.stage.suffix else "outer_axis", **names)
    return _said("among_other_axes" if at.stage.suffix else "among_outer_axis", reader=reader, **names)


def _updated(at: Between, operand: Node) -> Message:
    return _said("changed_there", stage=called(at.stage.node)) if at.stage.kind == "update" else _said("part_written")


WORDS: dict[NotFused, Callable[[Between, Node], Words]] = {
    NotFused.RECOMPUTE_IS_EXPENSIVE: lambda at, _: _said(
        "expensive", name=called(at.producer), places=at.places, operations=round(at.again)
    ),
    NotFused.LIBRARY_CALL: _library,
    NotFused.LOOP: _loop,
    NotFused.UPDATED: _updated,
    NotFused.NUMBER: lambda at, _: _said("number", stage=called(at.stage.node)),
    NotFused.OVERLAP: lambda at, _: _said(
        "overlap", name=called(at.producer), stage=called(at.stage.node), stage_lines=lines_of(at.stage.node)
    ),
    NotFused.WHOLE_REDUCTION: lambda at, _: _said("whole_reduction", name=called(at.producer)),
    NotFused.REDUCED_OUTER_AXIS: lambda at, _: _said("reduced_outer_axis", name=called(at.producer)),
    NotFused.RESHAPED: lambda at, _: _said("reshaped", name=called(at.producer)),
    NotFused.DIFFERENT_SPACE: lambda at, _: _said("different_space", name=called(at.producer)),
    NotFused.READ_AGAIN: lambda at, operand: _said("read_again", reader=called(at.reader), other=called(operand)),
    NotFused.SCAN: _scan,
    NotFused.WAITS: lambda at, operand: _said(
        "waits", reader=called(at.reader), other=called(operand), name=called(at.producer)
    ),
    NotFused.AFTER_LOOPS: lambda at, _: _said("after_loops", name=called(at.producer)),
    NotFused.OTHER_AXES: _other_axes,
    NotFused.CLOSED: lambda at, _: _said("closed", name=called(at.producer), reader=called(at.reader)),
    NotFused.ORDER: lambda at, operand: _said(
        "order", name=called(at.producer), nest=called(operand), reader=called(at.reader)
    ),
    NotFused.LATER_NEST: lambda at, operand: _said("later_nest", reader=called(at.reader), nest=called(operand)),
    NotFused.TOO_MANY_VALUES: lambda at, _: _said("too_many_values", most=at.limits.stages),
    NotFused.TOO_LONG: lambda at, _: _said("too_long", most=at.limits.operations, deepest=at.limits.deep),
}  # fmt: skip

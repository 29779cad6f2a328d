"""Why two operations are not fused, in words: one sentence for each code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jitlab.ir import Node, NotFused, Reason, in_two
from jitlab.ir.graphs.dot import line_text
from jitlab.lower.value_names import called
from jitlab.messages import units
from jitlab.ops.layout.indexing import Gather, Take
from jitlab.support.lazy_dataclass import dataclass

from .findings import Obstacle
from .groups import Group
from .nest_limits import MOST_DEEP, MOST_OPERATIONS, MOST_STAGES
from .obstacles import ALONE
from .recomputing import weight
from .stages import Stage

#: A clause; or one and another behind it, which says what follows.
Words = str | tuple[str, str]


@dataclass(frozen=True)
class Between:
    """What lies between two nests: a value, the stage that reads it, by the operation `reader`, and the nest that makes it."""

    producer: Node
    reader: Node
    stage: Stage
    made: Group

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
        return (self.places - 1) * sum(weight(node) for node in self.own.computed)

    @property
    def pick(self) -> Node:
        """The operation that reads where an index array says."""
        found = (n for n in self.stage.computed if isinstance(n.op, (Take, Gather)) and self.producer in n.inputs)
        return next(found, self.stage.node)


def reason_of(at: Between, obstacle: Obstacle, evidence: tuple[Any, ...]) -> Reason:
    """The reason: a clause, and what more there is to say; where the value lies and its bytes come last."""
    code, operand = obstacle.code, obstacle.node
    name, size, lines = called(at.producer), units.size(at.producer.type.nbytes), lines_of(at.producer)
    if code is NotFused.CUT:
        return cut(operand, evidence)
    if code is NotFused.LEVEL:
        return in_two(code, "level O0 gives each operation its own kernel", ";", f"{name} is {size}", evidence, says_size=True)
    if code is NotFused.GATHERED:
        why = f"{called(at.pick)} may read any element of it, where an index array says ({lines_of(at.pick)})"
        return replace(in_two(code, f"{name} is read again, {size}", ".", why, evidence), size_in="clause")
    words = WORDS[code](at, operand)
    if not isinstance(words, str):
        return in_two(code, words[0], ":", f"{words[1]}; {size} ({lines})", evidence, says_size=True)
    if code in UNNAMED:
        return in_two(code, words, ";", f"{name} is {size} ({lines})", evidence, says_size=True)
    return Reason(code, f"{words}; {size} ({lines})", evidence, size_in="clause")


def cut(node: Node, evidence: tuple[Any, ...] = ()) -> Reason:
    """Of an edge that a what-if cuts."""
    return in_two(NotFused.CUT, "Cut", ":", f"{called(node)} is stored", evidence)


def lines_of(node: Node) -> str:
    return line_text(s.line for s in node.sources) or "line ?"


#: Sentences that do not say what the value is called.
UNNAMED = {NotFused.LIBRARY_CALL, NotFused.UPDATED, NotFused.TOO_LONG, NotFused.TOO_MANY_VALUES, NotFused.NUMBER}


def _library(at: Between, operand: Node) -> str:
    if "gemm" in (at.stage.kind, at.made.kind):
        return "a library call reads and writes whole matrices"
    return f"a library call {'gives its result as a whole' if at.made.kind == 'call' else 'reads its operand where it lies'}"


def _loop(at: Between, operand: Node) -> str:
    if ALONE.get(at.made.kind) is NotFused.LOOP:
        return f"{called(at.producer)} is a loop or branch of its own, which ends before it is read"
    return f"{called(at.stage.node)} is a loop or branch of its own, which begins when it is complete"


def _scan(at: Between, operand: Node) -> Words:
    name, reader = called(at.producer), called(at.reader)
    if at.stage.kind == "scan" and at.made.kind == "scan":
        if operand is at.producer:
            return f"{name} and {reader} run along two axes, or both ways along one", "each is a loop of its own"
        return f"{name} is made in the loops of {called(operand)}, and {reader} runs along another axis, or the other way"
    if at.made.kind == "scan":
        return f"{name} is made in the loop of {called(operand)}, which runs in order along one axis and reduces nothing"
    return f"{reader} runs in order along one axis, and {name} is made in the loops of a reduction"


def _other_axes(at: Between, operand: Node) -> str:
    total = called(at.stage.node)
    which = "other axes than they do" if at.stage.suffix else "an outer axis"
    return f"{total} reduces {which}, so its loops go another way than those that make {called(at.producer)}"


WORDS: dict[NotFused, Callable[[Between, Node], Words]] = {
    NotFused.RECOMPUTE_IS_EXPENSIVE: lambda at, _: (
        f"{called(at.producer)} is read at {at.places} places, and to compute it at each takes {at.again:.0f} operations more"
    ),
    NotFused.LIBRARY_CALL: _library,
    NotFused.LOOP: _loop,
    NotFused.UPDATED: lambda at, _: (
        f"{called(at.stage.node)} is changed where it lies, in loops of its own"
        if at.stage.kind == "update"
        else "part of an array is written"
    ),
    NotFused.NUMBER: lambda at, _: f"{called(at.stage.node)} is a number, which is computed at its place in the order",
    NotFused.OVERLAP: lambda at, _: (
        f"{called(at.producer)} is made of elements of {called(at.stage.node)} that {lines_of(at.stage.node)} overwrites"
    ),
    NotFused.WHOLE_REDUCTION: lambda at, _: f"{called(at.producer)} needs all elements before the first one that reads it",
    NotFused.REDUCED_OUTER_AXIS: lambda at, _: (
        f"{called(at.producer)} is reduced over an outer axis, so every row has to be read first"
    ),
    NotFused.RESHAPED: lambda at, _: f"{called(at.producer)} is read under another shape",
    NotFused.DIFFERENT_SPACE: lambda at, _: f"{called(at.producer)} is read over another space than it is made in",
    NotFused.READ_AGAIN: lambda at, operand: (
        f"{called(at.reader)} reads elements of {called(operand)} that other turns of the loop make"
    ),
    NotFused.SCAN: _scan,
    NotFused.WAITS: lambda at, operand: (
        f"{called(at.reader)} also reads {called(operand)}, which is known when {called(at.producer)} is complete"
    ),
    NotFused.AFTER_LOOPS: lambda at, _: f"{called(at.producer)} is made when the loops of its nest are done",
    NotFused.OTHER_AXES: _other_axes,
    NotFused.CLOSED: lambda at, _: (
        f"{called(at.producer)} is made in a nest that reduces and stores values, which takes nothing more"
    ),
    NotFused.ORDER: lambda at, operand: (
        f"{called(at.producer)} is made in the loops of {called(operand)}, after which that nest takes nothing",
        f"{called(at.reader)} comes later",
    ),
    NotFused.LATER_NEST: lambda at, operand: (
        f"{called(at.reader)} is done in the loops of {called(operand)}, a later nest with which it shares what it reads"
    ),
    NotFused.TOO_MANY_VALUES: lambda at, _: f"one nest stores and reduces at most {MOST_STAGES} values",
    NotFused.TOO_LONG: lambda at, _: (
        f"one nest has at most {MOST_OPERATIONS} operations, {MOST_DEEP} of them one after the other"
    ),
}

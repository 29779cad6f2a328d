"""Does a statement read what it overwrites?: NumPy evaluates the right side first, a nest does not."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from jitlab.ir import Poly
from jitlab.ir.programs.program import Index

from .ranges import Ranges, as_poly

Position = tuple[Index, ...]


class Relation(Enum):
    """How a read relates to the writes of the same nest, whose loops run upwards."""

    DISJOINT = "disjoint"  # no element is read and written
    SAME = "same"  # an element is read only in the iteration that writes it
    AHEAD = "ahead"  # read in an iteration before the one that overwrites it: in order, or vector by vector upwards
    BEHIND = "behind"  # written in an iteration of an outer loop before the one that reads it
    OVERLAP = "overlap"  # anything else


def relation(write: Position, read: Position, loops: Sequence[tuple[str, Poly]], ranges: Ranges) -> Relation:
    """`loops`: the variables of the nest, outermost first, with their extents."""
    own = {v for v, _ in loops}
    with ranges.loops([*loops, *((v + "'", n) for v, n in loops)]):
        for w, r in zip(write, read, strict=True):
            if ranges.proves_unequal(as_poly(w), as_poly(r, lambda v: v + "'" if v in own else v)):
                return Relation.DISJOINT
    distance = distances(write, read, [v for v, _ in loops], ranges)
    if distance is None:
        return Relation.OVERLAP
    for number, d in enumerate(distance):
        if d > 0:
            return Relation.AHEAD
        if d < 0:
            return Relation.BEHIND if number < len(distance) - 1 else Relation.OVERLAP
    return Relation.SAME


def distances(write: Position, read: Position, loops: Sequence[str], ranges: Ranges) -> list[int] | None:
    """How many iterations of each loop after the read its element is written; None when that is no constant."""
    found: dict[str, int] = {}
    for w, r in zip(write, read, strict=True):
        steps = [v for v in loops if w.coefficient(v).terms or r.coefficient(v).terms]
        if any(w.coefficient(v) != r.coefficient(v) for v in steps) or len(steps) > 1:
            return None
        rest = ranges.known(as_poly(r) - as_poly(w)).value
        if rest is None:
            return None
        if not steps:
            if rest:
                return None  # never equal, which the test for disjoint regions has not seen: nothing is known
            continue
        step = ranges.known(w.coefficient(steps[0])).value
        if not step or rest % step or found.get(steps[0], rest // step) != rest // step:
            return None
        found[steps[0]] = rest // step
    return [found[v] for v in loops] if all(v in found for v in loops) else None

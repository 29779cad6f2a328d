"""In which order a reduction goes through its axes: as what it reads lies in memory.

    x.T.sum(axis=1)     before: for a0: over lanes of a1: r += x[a0 + n0*a1]     after: for a0: for a1: r += x[a0 + n0*a1]
    x.T.sum(axis=0)     before: for a1: for a0: r += x[a0 + n0*a1]               after: for a1: over lanes of a0: the same

The first one reads a vector of neighbours for as many results, in a loop over vectors of a0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitlab.ir import Poly
from jitlab.ir.programs.program import ONE, Expr, Index, Load
from jitlab.lower.fusion.groups import Group
from jitlab.lower.fusion.stages import Stage
from jitlab.ops.linear_algebra.matrix_products import Product


def order_of(values: Sequence[Expr], axes: int, size_of: Callable[[Poly], int]) -> tuple[int, ...]:
    """Axes from the outermost loop to the innermost; as they are where the last one is that of most neighbours in memory."""
    offsets = list(_offsets(values))
    neighbours = [sum(offset.coefficient(f"a{axis}") == ONE for offset in offsets) for axis in range(axes)]
    best = max(range(axes), key=lambda axis: (neighbours[axis], axis))
    if neighbours[best] == neighbours[-1]:
        return tuple(range(axes))
    pattern = next(offset for offset in offsets if offset.coefficient(f"a{best}") == ONE)
    strides = [pattern.coefficient(f"a{axis}") for axis in range(axes)]
    others = [axis for axis in range(axes) if axis != best]
    return (*sorted(others, key=lambda axis: -abs(size_of(strides[axis]))), best)


def is_turned(order: Sequence[int]) -> bool:
    return any(a > b for a, b in zip(order, order[1:], strict=False))


def only_reduces(stages: Sequence[Stage]) -> bool:
    """Are they reductions that do not care in which order their loops go?"""
    return all(stage.kind == "reduce" and not isinstance(stage.node.op, Product) for stage in stages)


def reduces_at_once(group: Group) -> bool:
    """Is a group's one nest over rows nothing but reductions of what lies in memory, and then what is made of each row's?"""
    count = sum(stage.kind == "reduce" for stage in group.stages)
    first, after = group.stages[:count], group.stages[count:]
    is_after = all(stage.kind == "map" and len(stage.space) == len(group.outer) for stage in after)
    return is_after and only_reduces(first) and len({stage.space for stage in first}) == 1 and not _is_read(first)


def _is_read(stages: Sequence[Stage]) -> bool:
    nodes = {stage.node for stage in stages}
    return any(node in nodes for stage in stages for node, _ in stage.refs)


def _offsets(values: Sequence[Expr]) -> list[Index]:
    """Of all that is read where loops say."""
    found: list[Index] = []
    seen: set[int] = set()

    def visit(e: Expr) -> None:
        if id(e) not in seen:
            seen.add(id(e))
            if isinstance(e, Load) and not e.gathered:
                found.append(e.offset)
            for part in e.parts:
                visit(part)

    for value in values:
        visit(value)
    return found

"""What a trace computes, without the numbers written in it: traces that are alike but for a number could be one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jitlab.capture import Leaf
from jitlab.ir import Extent, Graph, Node
from jitlab.ops.elementwise.arithmetic import Pow, Reciprocal, Sqrt, Square
from jitlab.ops.leaf_operations import Constant
from jitlab.runtime.other_sizes import field_names

#: Powers that NumPy computes otherwise when the exponent is a Python number; x ** 1 is x.
SHORT_CUTS: dict[type, float] = {Sqrt: 0.5, Square: 2, Reciprocal: -1}

#: Numbers that are named where Pow would compute their powers.
MOST_NUMBERS = 4


def numbers_of(leaves: Iterable[Leaf]) -> frozenset[float]:
    """The Python numbers that a call had, and what 1 is when it is divided by them (a gamma's exponent)."""
    found = {leaf.value for leaf in leaves if leaf.kind == "value" and type(leaf.value) in (int, float)}
    return frozenset(found | {1 / number for number in found if number})


def patterns(graph: Graph, numbers: frozenset[float] = frozenset()) -> tuple[int, int, tuple[str, ...]]:
    """What a graph computes, without and with the numbers written in it: the first is equal for two traces that differ in a
    number alone, both for two that do the same. Then what computes the powers whose exponent is one of `numbers`: which
    operation that is depends on the number, so the first leaves them out."""
    place: dict[Any, Any] = {node: n for n, node in enumerate(graph.parameters)}
    count = len(place)
    nodes: list[Any] = []
    written: list[Any] = []
    powers: list[str] = []
    for node in graph.nodes:
        op, type_ = node.op, node.type
        kind: Any = type(op)
        known = type_.dtype, tuple([n.expr.terms if isinstance(n, Extent) else n for n in type_.shape])
        if isinstance(op, Constant):
            place[node] = "Const", known
            written.append((op.dtype, op.shape, op.data))
            continue
        exponent = _exponent(node) if numbers else None
        if hasattr(op, "value"):
            place[node] = op.name, known
            written.append(op)
        elif exponent is not None and exponent in numbers:
            place[node] = place.get(node.inputs[0], -1)
            powers.append(op.name)
            written.append((op.name, exponent, place[node]))
        else:
            place[node] = count
            count += 1
            nodes.append((str(op) if field_names(kind) else op.name, known, *[place.get(x, -1) for x in node.inputs]))
            for body in getattr(op, "graphs", ()):
                without, whole, inside = patterns(body, numbers)
                nodes.append(without)
                written.append(whole)
                powers += inside
    found = hash((tuple(nodes), *[place.get(x, -1) for x in graph.outputs]))
    return found, hash((found, tuple(written))), tuple(powers)


def _exponent(node: Node) -> Any:
    """Of a power by a number, whichever operation computes it; None of anything else."""
    if isinstance(node.op, Pow):
        value = getattr(node.inputs[1].op, "value", None)
        return value.item() if value is not None and value.ndim == 0 else None
    return SHORT_CUTS.get(type(node.op))


def told_powers(found: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """Of calls that one trace would serve, each (its number as text, what computes its powers): which of them Pow would compute
    then. "with Pow for 0.5 (in place of Sqrt) and 1.0"; "" where Pow does already."""
    most = max((len(powers) for _, powers in found), default=0)
    said: dict[str, None] = {}
    for number, powers in found:
        others = [name for name in dict.fromkeys(powers) if name != "Pow"]
        if others or len(powers) < most:
            said[f"{number} (in place of {' and '.join(others)})" if others else number] = None
    words = list(said)
    if len(words) > MOST_NUMBERS:
        words = [*words[: MOST_NUMBERS - 1], f"{len(words) - MOST_NUMBERS + 1} more"]
    return f"with Pow for {listed(words)}" if words else ""


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

"""What a value is called for people: as the program calls it where that is known, then the node that capture made."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jitlab.ir import Node, told, told_node
from jitlab.ops.control_flow import Loop
from jitlab.ops.layout.indexing import Scatter
from jitlab.ops.layout.views import Update

from .block import is_control, overwritten


def called(node: Node) -> str:
    """`u` for a variable that a loop carries or an array that is changed, "the result of the branch" where a side makes it,
    else the program's name or expression."""
    inside = _carried(node)
    if inside is not None:
        return f"`{inside}`"
    if node.op.name == "Item" and is_control(node.inputs[0]):
        base = _changed(node)
        return f"`{base}`" if base else "the result of the branch"
    base = _changed(node)
    return f"`{base}`" if base else _made_in(node) or told(_name(node), node.called, node.within)


def _name(node: Node) -> str:
    """A parameter has the program's name, an operation NumPy's."""
    return node.name if node.op.is_parameter else str(node.op.word)


def stands_before(a: Node, b: Node) -> bool:
    """Does the program write all of one operation before the other begins?"""
    if a.within != b.within or {s.file for s in a.sources} != {s.file for s in b.sources} or not a.sources:
        return False
    ends = max((s.end_line, s.end_column) for s in a.sources)
    return ends <= min((s.line, s.column) for s in b.sources)


def called_all(nodes: Iterable[Node]) -> str:
    """Several of them in a row."""
    return ", ".join(told_node(node) for node in nodes)


def _carried(node: Node) -> str | None:
    """The variable of a loop that the node is a result of."""
    if node.op.name != "Item" or not isinstance(node.inputs[0].op, Loop):
        return None
    loop, at = node.inputs[0], node.op.index
    end, known = loop.op.body.outputs[at], str(loop.op.body.parameters[at].name)
    own = _assigned(end) if loop.inputs[at].name == known and not end.within else ""  # else a variable's name
    return _written(end) or own or known


def _made_in(node: Node) -> str | None:
    """A new version of an array without a name: by the line that made it."""
    base = next((base for _, base in overwritten(node)), None)
    while base is not None:
        node, base = base, next((base for _, base in overwritten(base)), None)
        if base is None and node.sources:
            return f"the array made in line {min(source.line for source in node.sources)}"
    return None


def _changed(node: Node) -> str | None:
    """The array that a new version is one of, where it has a name in the program: an argument, or what a loop carries."""
    seen = node
    while not seen.op.is_parameter:
        base = next((base for _, base in overwritten(seen)), None)
        if base is None:
            return _carried(seen)
        seen = base
    return _written(node) or seen.name if seen is not node else None


def _written(node: Node) -> str:
    """The name that an array is changed under, `C` of `C[k] = …` and of `C += …`: of a copy that nothing else is made of
    (`C = C0.copy()`) the graph has the copied array alone, and of what a loop carries on the store that made it (`C[k] += …`).
    "" where a helper changes it, by a name of its own."""
    if not isinstance(node.op, (Update, Scatter)) or node.within:
        return ""
    found = re.match(r"(\w+)\[", node.called)
    if not node.called:
        found = re.match(r"(\w+)\[.*\] \S*= ", node.inputs[1].called)
    return found[1] if found else "" if node.called else _assigned(node.inputs[1])


def _assigned(node: Node) -> str:
    """The name that its value is assigned to."""
    return node.called if node.called.isidentifier() else ""

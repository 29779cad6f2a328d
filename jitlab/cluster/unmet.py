"""`jit_scope(cut=..., fuse=...)` that decides of nothing: said once, with what is made inside instead."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Iterator

from jitlab.errors import OptionError
from jitlab.ir import Decision, Graph, Node, Source, told_node
from jitlab.support.later import Later

from .decided import answers_to, edges_to, is_inside, named

difflib = Later("difflib")

#: (option, producer, consumer) as a line of the program says it.
Asked = tuple[Source, str, str, str]

#: What is listed at most.
MOST = 4


def warn_of_unmet(captured: Graph, made: Graph) -> None:
    """A warning for each pair that no edge of a trace answers to: neither of the graph as captured nor of the one that is
    compiled. Entries of one line, in calls, turns and sides of a branch, answer together, and so do earlier traces."""
    asked: dict[Asked, list[Decision]] = {}
    for decision in captured.deciding:
        if decision.at is not None:
            for option, pairs in (("cut", decision.cut), ("fuse", decision.fuse)):
                for pair in pairs:
                    asked.setdefault((decision.at, option, *pair), []).append(decision)
    if not asked.keys() - _known:
        return
    before, after = named(captured), named(made)
    for key, decisions in asked.items():
        if key in _known:
            continue
        _known.add(key)
        met = any(_edges(after, key, decisions))
        if not met:
            warnings.warn_explicit(_text(key, decisions, before, after), UserWarning, key[0].file, key[0].line)


#: Met, or said.
_known: set[Asked] = set()


def _edges(names: dict[Node, str], key: Asked, decisions: list[Decision]) -> Iterator[tuple[Node, Node]]:
    _, _, a, b = key
    for decision in decisions:

        def inside(node: Node, decision: Decision = decision) -> bool:
            return is_inside(decision, node)

        for node in names:
            if inside(node):
                yield from edges_to(node, a, b, names, inside)


def _text(key: Asked, decisions: list[Decision], before: dict[Node, str], after: dict[Node, str]) -> str:
    at, option, a, b = key
    done = "is cut" if option == "cut" else "is fused"
    line = linecache.getline(at.file, at.line).strip()
    why, hint = _cause(key, decisions, before, after)
    return str(
        OptionError(
            f'jit_scope({option}=("{a}", "{b}")) meets no edge from {a} to {b}: nothing {done}.',
            where=at.place + (f": {line}" if line else ""), why=why, hint=hint,
        )
    )  # fmt: skip


def _cause(key: Asked, decisions: list[Decision], before: dict[Node, str], after: dict[Node, str]) -> tuple[str, str]:
    """Why there is no such edge, and what to try."""
    _, option, a, b = key
    names = {**before, **after}

    def inside(node: Node) -> bool:
        return any(is_inside(decision, node) for decision in decisions)

    gone = next(_edges(before, key, decisions), None)
    if gone is not None:
        left = _listed(inside, after)
        why = f"{told_node(gone[0], lines=True)} was traced, but simplifying the program left no edge from it to {b}"
        return why, f"one of the edges that are left: {left}" if left else "leave the pair out: no edge is left inside"
    here = {node: name for node, name in names.items() if inside(node)}
    if not here:
        return "nothing made inside is traced and part of a result", "put what makes both ends into the block"
    for end in (a, b):
        if any(answers_to(node, name, end) for node, name in here.items()):
            continue
        there = next((node for node, name in names.items() if answers_to(node, name, end)), None)
        if there is not None:
            return f"{told_node(there, lines=True)} is made outside, and both ends have to be made inside", "a larger block"
        words = list(dict.fromkeys(word for node, name in here.items() for word in (node.op.name, name)))
        near = difflib.get_close_matches(end.lower(), [word.lower() for word in words], MOST, 0.6)
        found = [word for word in words if word.lower() in near] or list(dict.fromkeys(node.op.name for node in here))
        shown = ", ".join(f'"{word}"' for word in found[:MOST]) + (", …" if len(found) > MOST else "")
        return f"no operation made inside has the kind or the name {end}", f"one of those that are: {shown}"
    turned = next(_edges(after, (key[0], option, b, a), decisions), None)
    if turned is not None:
        why = f"the edge goes from {told_node(turned[0])} to {told_node(turned[1])}"
        return why, f'the other way round: {option}=("{b}", "{a}")'
    left = _listed(inside, after, a, b) or _listed(inside, after)
    hint = f"one of the edges there are: {left}" if left else "leave the pair out: there is no edge inside"
    return f"{a} and {b} are made inside, but no {b} reads what {a} gives", hint


def _listed(inside: Callable[[Node], bool], names: dict[Node, str], *ends: str) -> str:
    """Edges inside, as they are to be written; with `ends` those that have one of them."""
    found = dict.fromkeys(
        (source.op.name, node.op.name)
        for node in names
        for source in node.inputs
        if inside(node) and source in names and inside(source)
        and (not ends or any(answers_to(x, names[x], end) for x in (source, node) for end in ends))
    )  # fmt: skip
    shown = [f'("{a}", "{b}")' for a, b in found]
    return ", ".join(shown[:MOST]) + (", …" if len(shown) > MOST else "")


__all__ = ["warn_of_unmet"]

"""A `try` in a recording: its body, `else` and `finally` are recorded, as they run where nothing is raised.

No handler is: where a recording raises inside a `try` it ends, and where a run does Python does the call, or the piece, from
its beginning, and takes the handler. What a handler or a `finally` could do to a run that is interrupted is Python's.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator

from jitlab.support import trees
from jitlab.support.lazy import OfEach

from .convert import find_definition
from .flow_rewrite import may_jump

_TRIES = (ast.Try, ast.TryStar)
_LOOPS = (ast.For, ast.While, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: What is raised from outside the program, at any moment.
_FROM_OUTSIDE = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit"})


def recorded(root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree but for the handlers in it, as `ast.walk` goes."""
    level = [root]
    while level:
        yield from level
        level = [child for node in level for child in trees.children(node) if not isinstance(child, ast.ExceptHandler)]


def refused_try(node: ast.AST) -> str:
    """Why a `try` cannot be recorded, a row of the message table; "" for others, and for what is none."""
    if isinstance(node, ast.TryStar):
        return "groups_of_errors"
    if not isinstance(node, ast.Try):
        return ""
    if any(map(may_jump, node.finalbody)):
        return "finally_jumps"
    names = [name for handler in node.handlers for name in _caught(handler.type)]
    if _FROM_OUTSIDE.intersection(names):
        return "catches_interrupts"
    is_long = any(isinstance(part, _LOOPS) for statement in node.body for part in trees.walk(statement))
    return "catches_interrupts" if is_long and not {"", "BaseException"}.isdisjoint(names) else ""


def _caught(kinds: ast.expr | None) -> Iterator[str]:
    """The last names of what a handler catches; "" for what has none."""
    if isinstance(kinds, ast.Tuple):
        for kind in kinds.elts:
            yield from _caught(kind)
    elif isinstance(kinds, ast.Attribute):
        yield kinds.attr
    else:
        yield kinds.id if isinstance(kinds, ast.Name) else ""


#: Of each code the first `try` that cannot be recorded: why, and its line; "" for none.
_refused: OfEach[tuple[str, int]] = OfEach()


def refused_in(function: types.FunctionType) -> tuple[str, int]:
    """Why a `try` of a function cannot be recorded, and its line; "" for none."""
    return _refused.of(function.__code__, _first, function)


def _first(function: types.FunctionType) -> tuple[str, int]:
    found = find_definition(function)
    nodes = [] if found is None else [node for node in recorded(found[0]) if isinstance(node, _TRIES) and refused_try(node)]
    return (refused_try(nodes[0]), nodes[0].lineno) if nodes else ("", 0)


__all__ = ["recorded", "refused_in", "refused_try"]

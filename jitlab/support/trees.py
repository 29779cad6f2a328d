"""Syntax trees of Python, made and compiled by one thread at a time.

CPython 3.11 counts the depth of the tree that it makes or reads in a word of the interpreter: where threads do this at the same
time, one may end with "SystemError: AST constructor recursion depth mismatch". The lock keeps our own apart, and what the
program's threads do meanwhile is met by trying again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any

from . import locks

#: So often something is tried before its SystemError is believed.
TRIES = 20


def copied(tree: Any) -> Any:
    """As `copy.deepcopy`, in a quarter of the time. Operators and contexts, of which Python has one object each, are shared;
    what others have noted at nodes (their parents, say) is no part of them."""
    made = tree.__class__.__new__(tree.__class__)
    for name, value in vars(tree).items():
        if name in tree._fields:
            if isinstance(value, list):
                value = [copied(part) if isinstance(part, ast.AST) else part for part in value]
            elif isinstance(value, ast.AST) and value._fields:
                value = copied(value)
        setattr(made, name, value)
    return made


#: Fields that hold no node, or one that has no fields itself: contexts and operators.
_LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "kind", "type_comment"})


class _Held(dict[type[ast.AST], tuple[str, ...]]):
    """Of each class of nodes the fields that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = self[kind] = () if kind is ast.Constant else tuple([name for name in kind._fields if name not in _LEAVES])
        return found


_held = _Held()


def children(node: ast.AST) -> list[ast.AST]:
    """As `ast.iter_child_nodes`, without contexts and operators."""
    found: list[ast.AST] = []
    for name in _held[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            for part in value:
                if isinstance(part, ast.AST):
                    found.append(part)
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """As `ast.walk`, in the same order, without contexts and operators."""
    found = [node]
    for around in found:  # as `children`, without a call of it for each
        for name in _held[type(around)]:
            value = getattr(around, name, None)
            if isinstance(value, list):
                for part in value:
                    if isinstance(part, ast.AST):
                        found.append(part)
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def place(tree: ast.AST) -> None:
    """As `ast.fix_missing_locations`: nodes without a place get that of the node around them."""
    todo = [(tree, (1, 0, 1, 0))]
    for node, around in todo:
        own = vars(node)
        if "lineno" in node._attributes:
            for name, inherited in zip(_PLACE, around, strict=True):
                if own.get(name) is None:
                    own[name] = inherited
            around = own["lineno"], own["col_offset"], own["end_lineno"], own["end_col_offset"]
        todo += [(child, around) for child in children(node)]


_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def parse(source: str, filename: str = "<unknown>") -> ast.Module:
    """As `ast.parse`."""
    return _alone(lambda: ast.parse(source, filename))  # type: ignore[no-any-return]


def parse_expression(source: str) -> ast.expr:
    """An expression's tree, bare."""
    return _alone(lambda: ast.parse(source, mode="eval").body)  # type: ignore[no-any-return]


def code_of(source: Any, filename: str, mode: str = "exec", flags: int = 0) -> CodeType:
    """As `compile` without the future statements of this file; `source`: a tree, or text."""
    return _alone(lambda: compile(source, filename, mode, flags=flags, dont_inherit=True))  # type: ignore[no-any-return]


def _alone(action: Callable[[], Any]) -> Any:
    with locks.Released(_lock), _lock:
        for _ in range(TRIES - 1):
            try:
                return action()
            except SystemError:
                continue
        return action()


_lock = locks.shared("trees")

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
    """As `copy.deepcopy`, in a quarter of the time."""
    made = tree.__class__.__new__(tree.__class__)
    for name, value in vars(tree).items():
        if isinstance(value, list):
            value = [copied(part) if isinstance(part, ast.AST) else part for part in value]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            value = copied(value)
        setattr(made, name, value)
    return made


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

"""Whether a text is still what a function was compiled from: files are edited while a process runs, `%autoreload` reads them
again, and `linecache` goes on giving the lines that it read first."""

from __future__ import annotations

import ast
import linecache
import os
import time
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jitlab import trees
from jitlab.ir.texts import is_cell

from .positions import is_user_file

#: A file that was written before has been read since: the text is the one that was compiled.
_STARTED = time.time()


def texts_of(code: types.CodeType, names: dict[str, Any]) -> Iterator[list[str]]:
    """The lines of the file that the code is of: those that are at hand, then those that are in the file by now."""
    lines = linecache.getlines(code.co_filename, names)
    yield lines
    if may_have_changed(code):
        linecache.checkcache(code.co_filename)
        now = linecache.getlines(code.co_filename, names)
        if now != lines:
            yield now


def may_be_reloaded(function: Any) -> bool:
    """Whether it is a function of a module of the user's: `%autoreload` gives it new code, and it stays the same object."""
    if type(function) is not types.FunctionType:
        return False
    file = function.__code__.co_filename
    return is_user_file(file) and not is_cell(file)


def may_have_changed(code: types.CodeType) -> bool:
    """Whether the code's file was written since this process began. A cell has no file, or one of its own for each text."""
    try:
        return os.stat(code.co_filename).st_mtime >= _STARTED
    except (OSError, ValueError):
        return False


def is_compiled_from(lines: list[str], definition: ast.AST, code: types.CodeType) -> bool:
    """Whether this text gives this code at its place; what its asserts become is for test runners to choose. The whole of it is
    compiled: how a name is read hangs on whether the module imports it."""
    if any(isinstance(node, ast.Assert) for node in ast.walk(definition)):
        return True
    return any(
        found.co_name == code.co_name and found.co_firstlineno == code.co_firstlineno and _meaning(found) == _meaning(code)
        for found in _compiled("".join(lines))
    )


@lru_cache(maxsize=8)
def _compiled(text: str) -> list[types.CodeType]:
    """The code of every function in a text."""
    try:
        return list(_inner(trees.code_of(text, "<text>", "exec")))
    except (SyntaxError, ValueError):  # it is being edited
        return []


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _inner(constant)


def _meaning(code: types.CodeType) -> tuple[Any, ...]:
    """What a code does, without where it stands."""
    constants = tuple(
        _meaning(constant) if isinstance(constant, types.CodeType) else (type(constant), repr(constant))
        for constant in code.co_consts
    )
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants

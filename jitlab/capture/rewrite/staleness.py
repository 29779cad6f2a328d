"""Whether a text is still what a function was compiled from: files are edited while a process runs, `%autoreload` reads them
again, and `linecache` goes on giving the lines that it read first."""

from __future__ import annotations

import ast
import io
import linecache
import os
import time
import types
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jitlab.capture.positions import codes, is_user_file
from jitlab.ir import cell_names
from jitlab.ir.texts import is_cell
from jitlab.support import locks, trees

#: A file that was written before has been read since: the text is the one that was compiled.
_STARTED = time.time()


#: Sources that came with functions from other processes, by file, the newest last: a file may have been edited between two.
_arrived: OrderedDict[str, list[list[str]]] = OrderedDict()
MOST_FILES, MOST_TEXTS = 256, 8
_lock = locks.shared("sources")


def arrived_text(file: str, title: str, text: str) -> None:
    """The source of a function from another process, unless it is at hand. `title`: what a user calls the cell it is."""
    lines = io.StringIO(text).readlines()
    with locks.Released(_lock), _lock:
        if title:
            cell_names.setdefault(file, title)
        known = _arrived.get(file) or [linecache.getlines(file)]
        if known == [lines]:
            return
        _arrived[file] = [*(other for other in known if other != lines), lines][-MOST_TEXTS:]
        _arrived.move_to_end(file)
        linecache.cache[file] = len(text), None, lines, file  # what reports show: the newest
        while len(_arrived) > MOST_FILES:
            linecache.cache.pop(_arrived.popitem(last=False)[0], None)


def texts_of(code: types.CodeType, names: dict[str, Any]) -> Iterator[list[str]]:
    """The lines of the file that the code is of: those that are at hand, then those that are in the file by now."""
    lines = linecache.getlines(code.co_filename, names)
    yield lines
    yield from (other for other in reversed(_arrived.get(code.co_filename, ())) if other != lines)
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
    """Whether the code's file was written since this process began, or came from others. A cell has no file, or one of its own
    for each text."""
    if code.co_filename in _arrived:
        return True
    try:
        return os.stat(code.co_filename).st_mtime >= _STARTED
    except (OSError, ValueError):
        return False


def is_compiled_from(lines: list[str], definition: ast.AST, code: types.CodeType) -> bool:
    """Whether this text gives this code at its place; what its asserts become is for test runners to choose. The whole of it is
    compiled: how a name is read hangs on whether the module imports it."""
    if code.co_filename not in _arrived and any(isinstance(node, ast.Assert) for node in trees.walk(definition)):
        return True
    return any(
        found.co_name == code.co_name and found.co_firstlineno == code.co_firstlineno and meaning(found) == meaning(code)
        for found in _compiled("".join(lines))
    )


@lru_cache(maxsize=8)
def _compiled(text: str) -> list[types.CodeType]:
    """The code of every function in a text."""
    try:
        return [*codes(trees.code_of(text, "<text>", "exec"))][1:]
    except (SyntaxError, ValueError):  # it is being edited
        return []


def meaning(code: types.CodeType) -> tuple[Any, ...]:
    """What a code does, without where it stands."""
    constants = tuple(meaning(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants


def _constant(value: Any) -> tuple[str, Any]:
    """The same in every process: also of a set of strings, which has another order in each."""
    plain = sorted(map(_constant, value)) if isinstance(value, frozenset) else repr(value)
    return type(value).__name__, plain

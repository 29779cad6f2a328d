"""Whether a text is still what a function was compiled from: files are edited while a process runs, `%autoreload` reads them
again, and `linecache` goes on giving the lines that it read first."""

from __future__ import annotations

import ast
import copy
import linecache
import os
import time
import types
from collections.abc import Iterator
from typing import Any

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


def is_compiled_from(definition: ast.FunctionDef | ast.Lambda, classes: tuple[str, ...], code: types.CodeType) -> bool:
    """Whether this definition, in these classes, gives this code; what its asserts become is for test runners to choose."""
    if any(isinstance(node, ast.Assert) for node in ast.walk(definition)):
        return True
    body: ast.stmt
    if isinstance(definition, ast.Lambda):
        body = ast.copy_location(ast.Expr(definition), definition)
    else:
        body = copy.copy(definition)
        body.decorator_list = []
    for name in reversed(classes):
        inside = ast.ClassDef(name=name, bases=[], keywords=[], body=[body], decorator_list=[])
        if hasattr(inside, "type_params"):
            inside.type_params = []
        body = ast.copy_location(inside, definition)
    around = ast.parse(f"def around({', '.join(code.co_freevars)}): pass").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = [body]
    module = ast.fix_missing_locations(ast.Module(body=[around], type_ignores=[]))
    # Flags of `from __future__` change annotations alone, and these are outside the body.
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    return any(_meaning(found) == _meaning(code) for found in _inner(compiled) if found.co_name == code.co_name)


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

"""Where a function is defined and where it is called, in the user's words: what the ledger's causes point to."""

from __future__ import annotations

import ast
import itertools
import weakref
from types import CodeType, FunctionType, MethodType
from typing import Any

from jitlab import events
from jitlab.capture import find_definition
from jitlab.capture.positions import cell_names, display_name, user_frame
from jitlab.ir import Source
from jitlab.support.lazy import Kept, OfEach
from jitlab.support.lazy_dataclass import dataclass

from .frequency import wrapped_by


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the user's that called a function."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{display_name(self.file)}, line {self.line}"


def calling_site() -> Site:
    """The innermost line of the user's that is being run."""
    frame = user_frame()
    return Site(frame.f_code.co_filename, frame.f_lineno) if frame is not None else Site("", 0)


def calling_line() -> Source | None:
    """That line as a position."""
    site = calling_site()
    return Source(site.file, site.line, -1, site.line, -1) if site.file else None


class Definition:
    """A function as its source has it. `edition`: of a definition that is executed again it is another number."""

    __slots__ = ("_function", "code", "edition", "name", "place")

    def __init__(self, function: Any, name: str) -> None:
        plain: Any = function
        while not isinstance(plain, (FunctionType, MethodType)) and hasattr(plain, "__wrapped__"):
            plain = plain.__wrapped__
        if isinstance(plain, MethodType):
            plain = wrapped_by(plain) or plain.__func__
        self.name = name
        self.code, self.edition = _copied(getattr(plain, "__code__", None))
        self.place: Any = None
        self._function: weakref.ref[FunctionType] | None = None  # what it holds may go
        if isinstance(plain, FunctionType):
            self.place, self._function = _place_of(plain), weakref.ref(plain)

    @property
    def function(self) -> Any:
        """The Python function, None when it is gone or none."""
        return self._function() if self._function is not None else None

    @property
    def source(self) -> Source | None:
        if self.code is None:
            return None
        line = self.code.co_firstlineno
        return Source(self.code.co_filename, line, -1, line, -1)

    def argument(self, path: str) -> Source | None:
        """Where the parameter of a leaf stands, or the first line that reads the outer name it is."""
        function = self.function
        found = find_definition(function) if function is not None else None
        if found is None or self.code is None:
            return None
        name = path.split("[")[0].split(".")[0]
        arguments = found[0].args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        reads = [node for node in ast.walk(found[0]) if isinstance(node, ast.Name) and node.id == name]
        reads.sort(key=lambda node: (node.lineno, node.col_offset))
        found_at: list[ast.arg | ast.Name] = [arg for arg in every if arg is not None and arg.arg == name]
        for node in (*found_at, *reads):
            end = (node.end_lineno or node.lineno, node.end_col_offset or -1)
            return Source(self.code.co_filename, node.lineno, node.col_offset, *end)
        return None


def _copied(code: CodeType | None) -> tuple[CodeType | None, int]:
    """An equal object, and a number that no other code has: whoever remembers a definition does not keep what is known of its
    code, as the converted copy. Of a definition that is executed again it is the same object."""
    if code is None:
        return None, 0
    copy = code.replace()
    return _copies.of((copy.co_filename, copy), lambda: copy), _editions.of(code, next, _numbers)


_copies: Kept[tuple[str, CodeType], CodeType] = Kept(256)
_editions: OfEach[int] = OfEach()
_numbers = itertools.count(1)


def _place_of(function: FunctionType) -> Any:
    """What a definition that takes this one's place has in common with it: the cell or file, and the name in it."""
    name, code = function.__qualname__, function.__code__
    if "<lambda>" in name:
        name = f"{name}:{code.co_firstlineno}"
    if not is_cell(code.co_filename):
        return code.co_filename, function.__module__, name
    # a cell run again is another file when its text differs; its name in the user's namespace is what stays. A name of that
    # namespace is taken over by a definition in any other cell, too; a lambda, or a function made by another, is its cell's
    cell = "" if name.isidentifier() else events.current_cell()
    return (cell, id(function.__globals__)), function.__module__, name


def is_cell(file: str) -> bool:
    """The name of a notebook cell, or of text that was executed, not of a file."""
    return file.startswith("<") or file in cell_names or "ipykernel_" in file

"""Where in the user's program capture stands: found by walking frames to the innermost one that runs converted code."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import sysconfig
import weakref
from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from jitlab.errors import JitlabError, Signal
from jitlab.events import Span
from jitlab.ir import Source
from jitlab.ir import cell_names as cell_names
from jitlab.ir import display_name as display_name

P = ParamSpec("P")
T = TypeVar("T")

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = tuple(
    {os.path.realpath(path) + os.sep for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib")}
    | {os.path.realpath(path) + os.sep for name, path in sysconfig.get_paths().items() if name in ("purelib", "platlib")}
    | {os.path.dirname(os.path.abspath(np.__file__)) + os.sep, PACKAGE}
)

#: Line, last line, column and last column of an instruction, None where it has none.
Position = tuple[int | None, int | None, int | None, int | None]

#: Instructions that are counted off each time to find the position of one: a table of them all costs memory.
LONG = 256

#: Converted code by id (code objects of two files may be equal, and hashing one is slow), as long as it lives.
_converted: dict[int, weakref.ref[CodeType]] = {}
_added: dict[int, weakref.ref[CodeType]] = {}
_wrappers: dict[int, weakref.ref[CodeType]] = {}
_spans: dict[int, dict[int, Source]] = {}  # by the id of converted code, then by instruction
_long: dict[int, weakref.ref[CodeType]] = {}  # other code that is at an instruction beyond LONG, by id
_positions: dict[int, array[int]] = {}  # by the id of converted or long code: four for each instruction, -1 where it has none
_user: dict[str, bool] = {}
MOST_FILES = 5000  # each cell of a notebook is one


def register(code: CodeType) -> None:
    """Frames of this code (and of the functions inside it) are the user's program."""
    for inner in codes(code):
        _converted[id(inner)] = _noted(inner)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code, and those of the functions and classes inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def register_added(code: CodeType) -> None:
    """Frames of this code run the user's lines for the frame around them."""
    _added[id(code)] = _noted(code)


#: The function by which a wrapping statement calls one of its blocks.
CALLED_BACK = "called_back"


def register_wrapper(code: CodeType) -> None:
    """A frame of this code stands for a statement of the user's only where no block of it runs."""
    _wrappers[id(code)] = _noted(code)


def _noted(code: CodeType) -> weakref.ref[CodeType]:
    """A reference with which everything known of the code goes: its id may be another's later."""
    key = id(code)

    def forget(_: Any) -> None:
        for table in (_converted, _added, _wrappers, _spans, _positions, _long):
            table.pop(key, None)

    return weakref.ref(code, forget)


def is_added(code: CodeType) -> bool:
    return id(code) in _added


def is_converted(code: CodeType) -> bool:
    return id(code) in _converted


def is_user_file(filename: str) -> bool:
    """Not the standard library, an installed package, or ours."""
    known = _user.get(filename)
    if known is None:
        if len(_user) >= MOST_FILES:
            _user.clear()
        known = _user[filename] = not filename.startswith(("<frozen", "<__array_function__")) and not _is_library(filename)
    return known


def _is_library(filename: str) -> bool:
    if filename.startswith("<") or not os.path.isabs(filename):
        return False
    if filename.startswith(PACKAGE):
        return True
    path = os.path.realpath(filename)
    return path.startswith(_LIBRARY) or not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))


def here() -> Source | None:
    """The innermost converted frame's position; without one, that of the innermost user frame."""
    frame = user_frame()
    return None if frame is None else span(frame)


def call_site() -> Source | None:
    """The position in the innermost converted frame, which calls a function."""
    frame = user_frame()
    return span(frame) if frame is not None and is_converted(frame.f_code) else None


def user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    first_user = None
    while frame is not None:
        if id(frame.f_code) in _converted:
            return frame
        if first_user is None:
            is_user = _user.get(frame.f_code.co_filename)
            if is_user or (is_user is None and is_user_file(frame.f_code.co_filename)):
                first_user = frame
        frame = frame.f_back
    return first_user


def uncaptured_frame(frame: FrameType | None, ends: Container[str]) -> FrameType | None:
    """The first frame of the user's outwards that is not captured, before one that is or one of a module in `ends`."""
    while frame is not None:
        code = frame.f_code
        if id(code) in _converted or frame.f_globals.get("__name__") in ends:
            return None
        is_user = _user.get(code.co_filename)
        if is_user or (is_user is None and is_user_file(code.co_filename)):
            return frame
        frame = frame.f_back
    return None


def entries(traceback: TracebackType | None) -> list[TracebackType]:
    """The entries of a traceback, the innermost last."""
    found = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _traceback_of(found: Sequence[TracebackType]) -> TracebackType | None:
    result: TracebackType | None = None
    for entry in reversed(found):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def cell_traceback(whole: TracebackType | None) -> TracebackType | None:
    """The frames of a cell: without ours, and without the statements whose blocks we ran."""
    kept: list[TracebackType] = []
    for entry in entries(whole):
        if not entry.tb_frame.f_code.co_filename.startswith(PACKAGE):
            kept.append(entry)
        elif _calls_back(entry, kept):
            kept.pop()
    return _traceback_of(kept)


def _calls_back(entry: TracebackType, before: list[TracebackType]) -> bool:
    """Does it run a block of the statement that the entry before it stands for?"""
    return entry.tb_frame.f_code.co_name == CALLED_BACK and bool(before) and id(before[-1].tb_frame.f_code) in _wrappers


def user_traceback(error: BaseException) -> TracebackType | None:
    """The traceback of an error without our own frames; whole when it has no others and may be our fault."""
    frames: list[TracebackType] = []
    for traceback in entries(error.__traceback__):
        code = traceback.tb_frame.f_code
        filename = code.co_filename
        if id(code) in _added and frames and is_converted(frames[-1].tb_frame.f_code):
            frames.pop()  # the frame around it, at the head of the `if` or the loop
        if is_converted(code) or not filename.startswith((PACKAGE, contextlib.__file__)):
            frames.append(traceback)
        elif _calls_back(traceback, frames):
            frames.pop()
    if not frames and not isinstance(error, (JitlabError, TypeError, ValueError, IndexError)):
        return error.__traceback__
    return _traceback_of(frames)


def only_users(error: BaseException) -> None:
    """What leaves a function that a user calls: without our frames, and nothing behind it that parts of jitlab told each
    other."""
    error.__traceback__ = user_traceback(error)
    vars(error).pop("_jitlab_made", None)  # nobody takes over what was given up
    without_signals(error)


def without_signals(error: BaseException) -> None:
    """Take what is no user's to see out of the errors behind an error; what was behind that moves up."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        cause, context, is_alone = at.__cause__, at.__context__, at.__suppress_context__
        if isinstance(cause, Signal):
            at.__cause__, is_alone = None, False
        if isinstance(context, Signal):
            while isinstance(context, Signal):
                context = context.__context__
            at.__context__ = context
        at.__suppress_context__ = is_alone
        at = at.__cause__ or context


def says_where(function: Callable[P, T]) -> Callable[P, T]:
    """A function that a user calls: its errors of ours show their line and the message, without the frames between."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except JitlabError as error:
            only_users(error)
            raise

    return called


def span(frame: FrameType) -> Source:
    """The span of the instruction that a frame is at."""
    key = id(frame.f_code)
    known = _spans.get(key)
    source = None if known is None else known.get(frame.f_lasti)
    if source is None:
        source = Source(frame.f_code.co_filename, *_position(frame))
        if key in _converted:  # the id of other code may be another's later
            _spans.setdefault(key, {})[frame.f_lasti] = source
    return source


def _position(frame: FrameType) -> tuple[int, int, int, int]:
    key, index = id(frame.f_code), frame.f_lasti // 2
    found: Position = (None, None, None, None)
    if key in _converted or index >= LONG:  # a long program asks for each of its instructions
        if key not in _converted and key not in _long:
            _long[key] = _noted(frame.f_code)
        known = _positions.get(key)
        if known is None:
            known = _positions[key] = array("i", [-1 if n is None else n for at in frame.f_code.co_positions() for n in at])
        if 4 * index < len(known):
            line, end_line, column, end_column = (None if n < 0 else n for n in known[4 * index : 4 * index + 4])
            found = line, end_line, column, end_column
    else:
        found = next(islice(frame.f_code.co_positions(), index, None), found)
    line, end_line, column, end_column = found
    at = frame.f_lineno if line is None else line
    columns = (-1 if column is None else column, -1 if end_column is None else end_column)
    return at, columns[0], at if end_line is None else end_line, columns[1]


def spans(source: Source | None) -> tuple[Span, ...]:
    """A position as events carry them."""
    return ((source.file, source.line, source.column, source.end_line, source.end_column),) if source is not None else ()


def source_line(source: Source) -> str:
    """The text of its first line, stripped; "" when it is not known."""
    return linecache.getline(source.file, source.line).strip()


def source_text(source: Source) -> str:
    """The text of the span, when it stands on one line; else the line."""
    line = linecache.getline(source.file, source.line)
    if source.end_line == source.line and 0 <= source.column < source.end_column:
        encoded = line.encode()[source.column : source.end_column]  # columns count UTF-8 bytes
        return encoded.decode(errors="replace")
    return line.strip()


def describe(source: Source | None) -> str:
    """`In[3], line 4: if x.sum() > 0:` for messages."""
    if source is None:
        return ""
    text = source_line(source)
    return source.place + (f": {text}" if text else "")

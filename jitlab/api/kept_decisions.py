"""Decisions about calls, kept on disk: a new process begins with those of others.

A decision is found by all that it hangs on: the code of the function and of what it reads outside (helpers, classes, numbers,
the sizes of arrays), the kind of call, the settings, and, by what the target keeps its plans by, the machine and jitlab's own
sources. Where one of them is another none is found, and such calls are tried. It says which way calls go, never what they give:
one that is wrong costs time and nothing else.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitlab.api.settling import COMPILED, PYTHON, Kind, Trial, configuration
from jitlab.capture.positions import is_user_file
from jitlab.config import MEASURE, config
from jitlab.flags import VARIABLES
from jitlab.messages import Message, codes, text
from jitlab.support.later import Later
from jitlab.targets.devices import default_target

hashlib, json = Later("hashlib"), Later("json")

#: Changes when kept decisions are to be found no more.
FORMAT = "jitlab decision 1"
#: Functions and classes that are looked into for one decision; of a text and a container, so much.
MOST_LOOKED_INTO, MOST_CHARACTERS, MOST_ITEMS = 100, 1000, 16
#: A flag of classes that a `class` statement has made, and some others.
MADE_BY_CLASS = 1 << 9
#: Variables that decisions hang on.
ASKED = (*VARIABLES, "JITLAB_NUM_THREADS")

_SCALARS = frozenset((bool, int, float, complex, str, bytes, type(None), type(...)))
_NAMED = (BuiltinFunctionType, np.ufunc, type(np.sum))


def recall(trial: Trial, function: Any, options: Any, kind: Kind) -> None:
    """Take over what another process has decided about such calls of this function."""
    target = default_target()
    if config.settle != MEASURE or not config.cache or not target.keeps_plans:
        return
    trial.form = form_of(function, options, kind)
    found = target.find_plan(trial.form) if trial.form and target.has_plans else None
    if found is not None:
        _take(trial, found, function)


def keep(trial: Trial, function: Any, options: Any, kind: Kind) -> None:
    """Keep what was decided. (Not where what it hangs on has changed since the first such call.)"""
    if trial.form and config.settle == MEASURE and trial.form == form_of(function, options, kind):
        said = [(said.code, _moved(said.args, -_first_line(function))) for said in trial.said]
        kept = {"way": trial.way, "pieces": trial.pieces, "said": said if trial.way == PYTHON else []}
        default_target().keep_plan(trial.form, json.dumps(kept).encode())


def _take(trial: Trial, kept: bytes, function: Any) -> None:
    """What does not read as it was written says nothing."""
    try:
        read = json.loads(kept)
        way, pieces, first = read["way"], read["pieces"], _first_line(function)
        said = tuple(Message(code, _moved(args, first)) for code, args in read["said"])
        known = codes("settled")
        is_sound = way in (COMPILED, PYTHON) and all(message.code == f"settled.{message.name}" for message in said)
        if not is_sound or not {message.name for message in said} <= known or bool(said) != (way == PYTHON):
            return
        for message in said:
            text(message.code, **message.args)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return
    trial.way, trial.pieces = way, bool(pieces)
    trial.kept = (*said, Message("settled.kept"))


def _moved(args: dict[str, Any], lines: int) -> dict[str, Any]:
    """The line in a message, counted from another one: a function may stand elsewhere in its file by now."""
    return {**args, "line": int(args["line"]) + lines} if "line" in args else args


def _first_line(function: Any) -> int:
    return int(getattr(getattr(function, "__code__", None), "co_firstlineno", 0))


def form_of(function: Any, options: Any, kind: Kind) -> bytes:
    """What a decision is found by; b"" where that would be too long."""
    content = _Content()
    settings = (FORMAT, sys.version, np.__version__, configuration(), str(options), [os.environ.get(name) for name in ASKED])
    try:
        content.told.append(repr((*settings, os.cpu_count())))
        content.value(function)
        for part in kind:
            content.value(part)
    except (_TooMuch, RecursionError):
        return b""
    return bytes(hashlib.sha256("\0".join(content.told).encode("utf-8", "surrogatepass")).digest())


class _TooMuch(Exception):  # noqa: N818 - it ends a search
    pass


class _Content:
    """What values are, as far as calls that read them take another time for it. None of the program's own code runs for it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._known: dict[int, int] = {}  # functions and classes that were looked into, by their identity

    def value(self, x: Any, depth: int = 0) -> None:
        kind, tell = type(x), self.told.append
        if kind in _SCALARS:
            tell(f"int {x.bit_length()}" if kind is int and x.bit_length() > 64 else repr(x)[:MOST_CHARACTERS])
        elif kind is FunctionType:
            self._function(x)
        elif kind is MethodType:
            self.value(x.__func__)
            self.value(type(x.__self__))
        elif issubclass(kind, type):
            self._class(x)
        elif kind is np.ndarray:
            tell(f"array {x.dtype!s} {x.ndim} {x.size.bit_length()}")
        elif issubclass(kind, np.dtype):
            tell(repr(x))
        elif kind in (tuple, list, dict, set, frozenset):
            self._items(kind, x, depth)
        elif kind is ModuleType:
            version = vars(x).get("__version__")
            tell(f"module {x.__name__} {version if type(version) is str else ''}")
        elif issubclass(kind, functools.partial):
            for part in (x.func, x.args, x.keywords):
                self.value(part, depth)
        elif kind in _NAMED:
            tell(f"{x.__name__}")
        elif kind.__module__.startswith("jitlab."):
            self.value(vars(x).get("python_function") if hasattr(x, "__dict__") else None)
            self._class(kind)
        else:
            self._class(kind)

    def _items(self, kind: type, x: Any, depth: int) -> None:
        self.told.append(f"{kind.__name__} {len(x)}")
        if kind in (set, frozenset):  # in an order of their own in each process
            inside = _Content()
            inside._known = self._known
            for item in x:
                if type(item) in _SCALARS and len(x) <= MOST_ITEMS:
                    inside.value(item)
            self.told += sorted(inside.told)
        elif depth < 3 and len(x) <= MOST_ITEMS:
            for item in (*x, *x.values()) if kind is dict else x:
                self.value(item, depth + 1)

    def _is_known(self, x: Any) -> bool:
        """It was looked into. (`x` lives as long as the search.)"""
        if id(x) in self._known:
            self.told.append(f"as {self._known[id(x)]}")
            return True
        self._known[id(x)] = len(self._known)
        if len(self._known) > MOST_LOOKED_INTO:
            raise _TooMuch
        return False

    def _function(self, x: FunctionType) -> None:
        if not is_user_file(x.__code__.co_filename):
            self.told.append(f"{x.__module__}.{x.__qualname__}")
            return
        if self._is_known(x):
            return
        names: dict[str, None] = {}
        self._code(x.__code__, names)
        for value in (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()):
            self.value(value)
        for cell in x.__closure__ or ():
            try:
                self.value(cell.cell_contents)
            except ValueError:
                self.told.append("empty")
        self._read(x.__globals__, names)

    def _read(self, outside: dict[str, Any], names: Iterable[str]) -> None:
        """What stands outside under names that the code has; in modules of the user's, too."""
        for name in names:
            if name in outside:
                value = outside[name]
                self.told.append(f"{name} =")
                self.value(value)
                if type(value) is ModuleType and is_user_file(str(vars(value).get("__file__"))) and not self._is_known(value):
                    self._read(vars(value), names)

    def _code(self, code: CodeType, names: dict[str, None]) -> None:
        facts = code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable
        self.told.append(repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, facts)))
        names.update(dict.fromkeys(code.co_names))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant, names)
            else:
                self.value(constant)

    def _class(self, x: type) -> None:
        self.told.append(f"{x.__module__}.{x.__qualname__}")
        module = sys.modules.get(x.__module__) if x.__module__ != "__main__" else None
        file = vars(module).get("__file__") if type(module) is ModuleType else None
        if not x.__flags__ & MADE_BY_CLASS or (file is not None and not is_user_file(file)) or self._is_known(x):
            return
        for value in vars(x).values():
            for inner in _functions(value):
                self.value(inner)
        for base in x.__bases__:
            self._class(base)


def _functions(value: Any) -> Sequence[FunctionType]:
    """Those of a class's attribute."""
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    found = (value.fget, value.fset, value.fdel) if type(value) is property else (value,)
    return [each for each in found if type(each) is FunctionType]

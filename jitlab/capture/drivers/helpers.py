"""Functions that a program in pieces calls and that cannot be traced whole: they run compiled as far as they go, as it does.

Python runs the statement that calls one; what it calls is the function in pieces of its own, so at any depth.
"""

from __future__ import annotations

import inspect
import operator
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from jitlab.capture import effort
from jitlab.capture.positions import is_converted, is_user_file
from jitlab.support.transactions import contextmanager

#: Functions that the statements of a program call, those that came last; and how often one may be defined again.
MOST_HELPERS, MOST_OF_A_NAME = 32, 16
#: So many functions in pieces, one called by another, are enough: each takes some of the stack that Python has.
MOST_DEEP = 8
#: What looks at the frames of its callers, which are jitlab's in a function that runs in pieces.
_LOOKS = frozenset({"_getframe", "currentframe", "stack", "getouterframes", "getinnerframes", "trace", "extract_stack"})


class _Here(threading.local):
    """The functions of which a call in pieces is under way in this thread, innermost last."""

    def __init__(self) -> None:
        self.functions: list[Any] = []


_here = _Here()


@contextmanager
def under_way(function: Any) -> Iterator[None]:
    """A call of a function runs in pieces."""
    _here.functions.append(function)
    try:
        yield
    finally:
        _here.functions.pop()


def is_under_way(function: Any) -> bool:
    """Is it called by itself, or too deep? Then Python runs it as it is."""
    return function in _here.functions or len(_here.functions) > MOST_DEEP


class Helper:
    """What runs a function in pieces of its own, as long as that has the defaults that it had."""

    def __init__(self, function: types.FunctionType, run: Any, number: int) -> None:
        self.function, self.run, self.number = function, run, number
        self._defaults = _defaults(function)

    def serves(self, function: types.FunctionType) -> bool:
        now = _defaults(function)
        same = len(now) == len(self._defaults) and all(map(operator.is_, now, self._defaults))
        return function is self.function and same and not is_under_way(function)


def _defaults(function: types.FunctionType) -> list[Any]:
    named = function.__kwdefaults__
    return [function.__defaults__, *(named or ()), *(named or {}).values()]


class Helpers:
    """The functions that the statements of a program call and that run in pieces of their own, one of each name."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, str], Helper] = {}

    def add(self, function: Any, make: Callable[[Any], Any]) -> bool:
        """Does it run in pieces of its own from now on? `make` gives what runs it, or None."""
        if not may_compile(function):
            return False
        name = function.__module__, function.__qualname__
        before = self._known.get(name)
        if before is not None and (before.function is function or before.number >= MOST_OF_A_NAME):
            return before.function is function
        run = make(function)
        if run is None:
            return False
        self._known[name] = Helper(function, run, 0 if before is None else before.number + 1)
        while len(self._known) > MOST_HELPERS:
            self._known.pop(next(iter(self._known)), None)
        return True

    @property
    def spent_ns(self) -> int:
        """What capturing all of them has taken."""
        return sum(known.run.spent_ns for known in list(self._known.values()))

    def get(self, function: types.FunctionType, make: Callable[[Any], Any]) -> Helper | None:
        """What runs a function, also one that was defined again since."""
        name = function.__module__, function.__qualname__
        known = self._known.get(name)
        if known is not None and known.function is not function and self.add(function, make):
            known = self._known.get(name)
        if known is None or not known.serves(function):
            return None
        is_too_much = effort.here.effort is not None and not known.run.spent_ns and self.spent_ns > effort.MOST_NS
        return None if is_too_much else known


def may_compile(function: Any) -> bool:
    """May a function be run in pieces? It is one that stays, with source, and neither stops in its midst nor looks around."""
    if not isinstance(function, types.FunctionType) or getattr(function, "__jitlab_do_not_convert__", False):
        return False
    code = function.__code__
    if is_converted(code) or not is_user_file(code.co_filename) or "<locals>" in function.__qualname__:
        return False
    stops = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    says_level = any(isinstance(names, tuple) and "stacklevel" in names for names in code.co_consts)
    return not (stops or says_level or _LOOKS.intersection(code.co_names))


__all__ = ["Helpers", "under_way"]

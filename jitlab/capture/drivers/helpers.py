"""Functions that a program in pieces calls and that cannot be captured whole: they run compiled as far as they go, as it does.

Python runs the statement that calls one; what it calls is the function in pieces of its own, so at any depth.
"""

from __future__ import annotations

import inspect
import operator
import threading
import types
from collections.abc import Iterator
from typing import Any

from jitlab.capture.positions import is_converted, is_user_file
from jitlab.support.transactions import contextmanager

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

    def __init__(self, function: types.FunctionType, run: Any) -> None:
        self.run, self._defaults = run, _defaults(function)

    def serves(self, function: types.FunctionType) -> bool:
        now = _defaults(function)
        return len(now) == len(self._defaults) and all(map(operator.is_, now, self._defaults))


def _defaults(function: types.FunctionType) -> list[Any]:
    named = function.__kwdefaults__
    return [function.__defaults__, *(named or ()), *(named or {}).values()]


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


__all__ = ["Helper", "is_under_way", "may_compile", "under_way"]

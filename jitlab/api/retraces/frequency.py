"""The warning that a function is traced again and again: counted for each code object, given twice at most."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from types import CodeType
from typing import Any

from jitlab.support import locks
from jitlab.support.lazy import OfEach

HISTORY, THRESHOLD, MOST_WARNINGS = 10, 5, 2

_logger = logging.getLogger("jitlab")


class Frequency:
    """Calls and tracings of all functions made of one code object."""

    def __init__(self) -> None:
        self.calls = 0  # since the oldest tracing that is remembered
        self.tracings: list[int] = []  # for each tracing call, the calls from it up to the next
        self.warnings = 0

    def called(self, times: int = 1) -> None:
        """Calls that needed no tracing."""
        if not self.tracings:
            self.tracings.append(0)
        self.tracings[-1] += times
        self.calls += times

    def traced(self, warning: Callable[[int, int], str]) -> None:
        """A call that was traced; `warning` gives the text, of so many tracings in so many calls."""
        self.calls += 1
        self.tracings.append(1)
        while self.tracings and self.calls - self.tracings[0] > HISTORY:
            self.calls -= self.tracings.pop(0)
        if len(self.tracings) < THRESHOLD or self.warnings >= MOST_WARNINGS:
            return
        self.warnings += 1
        _logger.warning("%s", warning(len(self.tracings), self.calls))


def told(function: Any) -> str:
    """Python's own words for a function, without its address: that says nothing to a user, and is another at each run."""
    function = (hasattr(function, "__func__") and wrapped_by(function)) or function
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(function))


def frequency_of(function: Any) -> Frequency:
    """The counter of the code that a callable runs at the bottom, whatever wraps it."""
    code = code_of(function)
    if code is None:
        return Frequency()
    with locks.Released(_lock), _lock:
        return _by_code.of(code, Frequency)


def code_of(function: Any) -> CodeType | None:
    """The code of a function, method, partial or callable object; of what a wrapper wraps."""
    for _ in range(100):
        if isinstance(function, functools.partial):
            function = function.func
        elif "__wrapped__" in getattr(function, "__dict__", ()):
            function = function.__wrapped__
        elif hasattr(function, "__func__"):
            function = wrapped_by(function) or function.__func__
        else:
            break
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
    return code if isinstance(code, CodeType) else None


def wrapped_by(method: Any) -> Any:
    """What the object of a method wraps (`jl.grad(f)` wraps f), None if it wraps nothing."""
    return getattr(method.__self__, "__dict__", {}).get("__wrapped__")


_by_code: OfEach[Frequency] = OfEach()
_lock = locks.shared("calls")

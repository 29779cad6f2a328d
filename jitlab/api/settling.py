"""Which way the calls of a `jit` function go, compiled or as the Python they are: the one that takes less time.

Both ways do what Python does, so each call runs once, one way: while nothing is decided the ways take turns, and effects,
random numbers and exceptions happen once. A decision is of one kind of call: the types of its arguments, and the number of
their elements in powers of two. It stands for as long as the function and `jl.config.settle`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from statistics import median
from typing import Any

import numpy as np

from jitlab import events
from jitlab.messages import Message
from jitlab.support.lazy_dataclass import dataclass

COMPILED, PYTHON = "compiled", "Python"
#: Calls before the first that is measured: by then the machine code is the one that stays.
FIRST_CALLS = 4
#: From so many calls on what captures something is measured, too: such calls do so again and again.
PATIENCE = 16
#: So many calls each way decide; two, where all of one way took so many times as long; so many at the most.
ENOUGH, CLEAR, MOST = 5, 3, 10
#: Python is chosen where its shortest call took less than this share of the shortest compiled one.
FASTER = 0.95
#: A call captured whole, of at least so many elements in bits, that takes so long compiled is not tried as Python.
LARGE_BITS, SHORT_NS = 13, 20_000
#: Of calls that take longer than this, no more than this share of the time goes into the way that may be the slower one.
LONG_NS, SHARE = 20_000_000, 0.05
#: From so many calls as Python on C hands them on at once: where machine code has run in this process, and where it has not.
DIRECT, DIRECT_FIRST = 5, 2000
#: Kinds of calls that a function remembers.
MOST_KINDS = 1000

Kind = tuple[Any, ...]


def kind_of_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Kind:
    """What decisions are kept by: of an array the dtype and the number of axes, of other values the type, and in how many bits
    the number of elements is written."""
    kind: list[Any] = []
    elements = 0
    for value in (*args, *kwargs.values()) if kwargs else args:
        found = type(value)
        if found is np.ndarray:
            kind += value.dtype, value.ndim
            elements += value.size
        else:
            kind.append(found)
            if found is list or found is tuple or found is dict:
                elements += len(value)
    return (*kind, *kwargs, elements.bit_length())


@dataclass(eq=False)
class Trial:
    """The calls of one kind: what they took each way, in nanoseconds, and what was decided."""

    elements_bits: int
    pieces: bool = False  # the call is not captured whole
    calls: int = 0
    times: dict[str, list[int]] = field(default_factory=lambda: {COMPILED: [], PYTHON: []})
    spent_ns: int = 0
    way: str = ""  # decided, or ""
    as_python: int = 0  # calls that came this way since that was Python
    is_in_front: bool = False  # C looks after such calls, or cannot

    def next_way(self) -> str:
        """How the next call runs."""
        if self.way:
            return self.way
        compiled, python = self.times[COMPILED], self.times[PYTHON]
        if self.calls < FIRST_CALLS or len(compiled) < 2 or len(compiled) <= len(python):
            return COMPILED
        longest = min(python or compiled)
        if longest > LONG_NS and sum(python) + longest > SHARE * self.spent_ns:
            return COMPILED
        return PYTHON

    def took(self, way: str, ns: int) -> None:
        """A call went this way, and nothing was captured or decided in it."""
        self.spent_ns += ns
        if self.way or self.calls < FIRST_CALLS:
            return
        times = self.times[way]
        if len(times) < MOST:
            times.append(ns)
        self.way = self._decided()

    def _decided(self) -> str:
        compiled, python = self.times[COMPILED], self.times[PYTHON]
        is_large = self.elements_bits >= LARGE_BITS and len(compiled) == 2 and min(compiled) >= SHORT_NS
        if is_large and not self.pieces and not python:
            return COMPILED
        number = min(len(compiled), len(python))
        if number < 2:
            return ""
        if max(python) * CLEAR < min(compiled):
            return PYTHON
        if max(compiled) * CLEAR < min(python):
            return COMPILED
        if number < ENOUGH:
            return ""
        spread = max(median(times) - min(times) for times in (compiled, python))
        if spread > abs(min(compiled) - min(python)):
            return COMPILED if number >= MOST else ""
        faster = min(python) < FASTER * min(compiled) and median(python) < median(compiled)
        return PYTHON if faster else COMPILED

    @property
    def reason(self) -> Message:
        """Why such calls run as Python."""
        if not self.times[PYTHON]:
            return Message("settled.nothing")
        compiled, python = self.times[COMPILED], self.times[PYTHON]
        seconds = {"python": min(python) / 1e9, "compiled": min(compiled) / 1e9}
        number = min(len(python), len(compiled))
        return Message("settled.measured", {"elements": f"{2**self.elements_bits - 1:,}", "number": number, **seconds})


class _Here(threading.local):
    """`disturbances`: what makes the time of a call of this thread no measure: something was captured or compiled, or another
    function's call was a trial, too. `compiled`: calls run compiled, whatever was decided. `is_in_pieces`: a call was not
    captured whole."""

    disturbances: int = 0
    is_in_pieces: bool = False
    compiled: int = 0


here = _Here()


def disturbed() -> None:
    """What this thread's calls take now says nothing of the next ones."""
    here.disturbances += 1


@contextmanager
def compiled_calls() -> Iterator[None]:
    """Inside, every call of this thread runs compiled: somebody asks what the compiler does."""
    with events.busy:  # C code asks that alone
        here.compiled += 1
        try:
            yield
        finally:
            here.compiled -= 1


def clock() -> int:
    """Nanoseconds."""
    return time.perf_counter_ns()


def tried(trial: Trial, ways: Mapping[str, Callable[[], Any]], is_ready: Callable[[], bool]) -> Any:
    """A call that has no decision yet. `is_ready`: the machine code is the one that stays, and nobody watches."""
    way = trial.next_way()
    here.is_in_pieces = trial.pieces
    before, started = here.disturbances, clock()
    result = ways[way]()  # what ends with an exception is no measure
    ended = clock()
    trial.pieces = here.is_in_pieces
    if is_ready() and (here.disturbances == before or trial.calls >= PATIENCE):
        trial.took(way, ended - started)
    trial.calls += 1
    if not trial.way:
        disturbed()
    return result

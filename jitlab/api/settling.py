"""Which way the calls of a `jit` function go, compiled or as the Python they are: the one that takes less time.

Both ways do what Python does, so each call runs once, one way: while nothing is decided the ways take turns, and effects,
random numbers and exceptions happen once. A decision is of one kind of call: the types of its arguments, and the number of
their elements in powers of two. It stands until the function has other code, or a setting that it hangs on is another one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import field
from typing import Any
from weakref import WeakSet

import numpy as np

from jitlab import events
from jitlab.capture.drivers.driver import pays
from jitlab.capture.effort import Effort
from jitlab.capture.refusals import Refusal
from jitlab.config import NEVER, config, told
from jitlab.costs import waited_ns
from jitlab.messages import Message
from jitlab.support import locks
from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.native_call_log import About, Places
from jitlab.targets.devices import default_target
from jitlab.targets.target import LARGEST_SIZE

statistics = Later("statistics")

COMPILED, PYTHON = "compiled", "Python"
#: Calls before the first that is measured: by then the machine code is the one that stays. (Of long calls the first in which
#: nothing is captured is measured.)
FIRST_CALLS = 4
#: From so many calls on what captures something is measured, too: such calls do so again and again. (Long ones after the
#: first.)
PATIENCE = 16
#: Calls in succession of which each captured something, after which the next ones are measured, too: they do so again.
AGAIN = 4
#: So many calls each way decide; two, where all of one way took so many times as long and those of a way differ by less; so
#: many where they differ among themselves by more than from the other way's; so many at the most.
ENOUGH, CLEAR, UNSURE, MOST = 5, 3, 10, 30
#: Python is chosen where its shortest call took less than this share of the shortest compiled one.
FASTER = 0.95
#: Of the pairs of a call each way, in which Python took less time, where the calls of a way differ: it is chosen from this
#: share on, and at the end from that.
SURE, LIKELY = 0.75, 0.6
#: Of calls that take longer than this, no more than this share of the time is lost by the way that looks like the slower one.
LONG_NS, SHARE = 20_000_000, 0.05
#: So many calls in succession whose pieces do not pay, by counts, decide.
UNPAID = 2
#: One, where it has captured so many pieces and none was of use.
IN_VAIN = 6
#: So many calls in succession that Python takes over in the midst of their run decide.
GIVEN_UP = 5
#: From so many calls as Python on C hands them on at once: where machine code has run in this process, and where it has not.
DIRECT, DIRECT_FIRST = 5, 2000
#: Kinds of calls that a function remembers.
MOST_KINDS = 1000

Kind = tuple[Any, ...]


def kind_of_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Kind:
    """What decisions are kept by: of an array the dtype and the number of axes, of other values the type, and in how many bits
    the number of elements is written. An int may say how many elements or iterations there are, and counts as so many, a
    text as many as its length."""
    kind: list[Any] = []
    elements = 0
    for value in (*args, *kwargs.values()) if kwargs else args:
        found = type(value)
        if found is np.ndarray:
            kind += value.dtype, value.ndim
            elements += value.size
        else:
            kind.append(found)
            if found is list or found is tuple or found is dict or found is str:
                elements += len(value)
            elif found is int and 0 < value <= LARGEST_SIZE:
                elements += value
    return (*kind, *kwargs, elements.bit_length())


@dataclass(eq=False)
class Trial:
    """The calls of one kind: what they took each way, in nanoseconds, and what was decided."""

    elements_bits: int
    pieces: bool = False  # the call is not captured whole
    calls: int = 0
    times: dict[str, list[int]] = field(default_factory=lambda: {COMPILED: [], PYTHON: []})
    captured: int = 0  # compiled calls in succession in which something was captured
    meanwhile: dict[str, int] = field(default_factory=dict)  # the shortest each way while better machine code is being made
    spent_ns: int = 0
    way: str = ""  # decided, or ""
    noted: dict[Any, About] = field(default_factory=dict)  # what notes of calls as Python are about, by who calls
    places: Places = field(default_factory=Places)  # where C notes them
    as_python: int = 0  # calls that came this way since that was Python
    is_in_front: bool = False  # C looks after such calls, or cannot
    is_long: bool = False  # a call took long, and not because others had the processor
    stitched: int = 0  # calls as one function with its pieces in line, since that was decided
    entered: tuple[int, int, float] | None = None  # counts of the last call that the driver ran
    unpaid: int = 0  # calls in succession whose pieces do not pay, by counts
    unpaid_code: str = ""  # and for what reason, the same for all of them
    has_entered: bool = False  # a piece that is compiled was entered once: such a call may come again
    counted: Message | None = None  # why it is Python, where counts decided that
    given_up: int = 0  # calls in succession whose run was given up, so that Python took them over
    given_up_at: int = 0  # of the trace's calls the last of them
    given_up_for: Refusal | None = None  # why the last was, where that decided
    refusal: Refusal | None = None  # why the last such call was not captured whole
    has_others: bool = False  # captured whole no more: each time it was for another object
    effort: Effort = field(default_factory=Effort)  # that capturing such a call as a whole may take
    effort_in_pieces: Effort = field(default_factory=Effort)
    traces: tuple[tuple[str, int, int], ...] = ()  # that ran when such a call ran compiled, as `events.AsPython` has them

    form: bytes = b""  # what the decision is kept on disk by
    kept: tuple[Message, ...] | None = None  # what is said where it was found there

    def of_equal_code(self) -> Trial:
        """What is known where a definition is executed again: as much, of another object."""
        made = copy(self)
        made.times = {way: [*times] for way, times in self.times.items()}
        made.captured, made.meanwhile = 0, {}
        made.noted, made.places, made.as_python, made.stitched, made.is_in_front = {}, Places(), 0, 0, False
        made.refusal = self.refusal and self.refusal._replace(made=())  # what calls gave is theirs
        return made

    def begin(self) -> None:
        """A call begins: where it is decided that such calls are compiled, each may be captured anew."""
        if self.way and not self.is_limited:
            self.effort, self.effort_in_pieces = Effort(), Effort()

    @property
    def captures_again(self) -> bool:
        """Does each such call capture something?"""
        return self.captured > AGAIN

    def next_way(self, *, is_early: bool = False) -> str:
        """How the next call runs. `is_early`: better machine code is being made, so that no call decides."""
        if self.way:
            return self.way
        if is_early and self.calls >= FIRST_CALLS and not self.captures_again:
            return self._way_meanwhile()
        compiled, python = self.times[COMPILED], self.times[PYTHON]
        is_long = self.is_long and bool(compiled) and min(compiled) > LONG_NS
        if not is_long and (self.calls < FIRST_CALLS or len(compiled) < 2):
            return COMPILED
        if not python:
            return PYTHON  # a call that takes what it takes without a compiler
        ahead = len(compiled) - len(python)
        # two of a way, then two of the other: what every second call has more to do meets both
        way, other = (COMPILED, PYTHON) if ahead <= 0 or (ahead == 1 and len(compiled) % 2) else (PYTHON, COMPILED)
        best = min(self.times[other])
        slower = min(self.times[way]) - best
        lost = sum(max(ns - best, 0) for ns in self.times[way]) + slower
        if slower > 0 and self.is_long and min(self.times[way]) > LONG_NS and lost > SHARE * self.spent_ns:
            return other
        return way

    def _way_meanwhile(self) -> str:
        """The way that has taken less time so far."""
        python, compiled = ([*self.times[way], *filter(None, [self.meanwhile.get(way)])] for way in (PYTHON, COMPILED))
        return PYTHON if not python or (compiled and min(python) < FASTER * min(compiled)) else COMPILED

    def captured_anew(self, has_captured: bool) -> None:
        """A call ran compiled. What those took in which something was captured says nothing where there are others."""
        if not has_captured and self.captures_again:
            self.times[COMPILED].clear()
        self.captured = self.captured + 1 if has_captured else 0

    def took_meanwhile(self, way: str, ns: int) -> None:
        """A call went this way while better machine code was being made."""
        self.meanwhile[way] = min(ns, self.meanwhile.get(way, ns))

    def took(self, way: str, ns: int, busy_ns: int | None = None) -> None:
        """A call went this way, and nothing was captured or decided in it. `busy_ns`: of the thread's processor, where that is
        known: a call that waited for its turn is not a long one."""
        self.spent_ns += ns
        is_long = (ns if busy_ns is None else busy_ns) > LONG_NS
        self.is_long |= is_long
        if self.way or (self.calls < FIRST_CALLS and not is_long):
            return
        times = self.times[way]
        if len(times) < MOST:
            times.append(ns)
        self.way = self._decided()

    def _decided(self) -> str:
        compiled, python = self.times[COMPILED], self.times[PYTHON]
        number = min(len(compiled), len(python))
        if _is_clear(python, compiled):
            return PYTHON
        if _is_clear(compiled, python):
            return COMPILED
        is_alone = self.is_long and len(compiled) == 1 and compiled[0] > LONG_NS
        if is_alone and len(python) >= ENOUGH and max(python) * CLEAR**2 < compiled[0]:
            return PYTHON  # what little it takes never allows for a second such call
        if number < ENOUGH:
            return ""
        at_best = min(python) < FASTER * min(compiled)
        faster = at_best and statistics.median(python) < statistics.median(compiled)
        spread = max(statistics.median(times) - min(times) for times in (compiled, python))
        if spread <= abs(min(compiled) - min(python)):
            return PYTHON if faster else COMPILED
        if number < UNSURE:
            return ""
        less = sum(p < c for p in python for c in compiled) / (len(python) * len(compiled))
        if not at_best or number >= MOST:
            return PYTHON if faster and less >= LIKELY else COMPILED
        return PYTHON if faster and less >= SURE else ""

    def ran(self, in_pieces: bool, counts: tuple[int, int, float] | None, *, by_model: bool) -> None:
        """A call has ended. Where nothing that it entered is compiled, or where the model decides, and entering it does not
        pay, the second such call in succession decides."""
        self.calls += 1
        self.pieces = in_pieces
        if counts is None or not in_pieces or self.way:
            return
        code = "" if counts[2] else "settled.nothing"
        if not code and by_model and self.calls > FIRST_CALLS and not pays(*counts):
            code = "settled.model"
        self.unpaid, self.unpaid_code = (self.unpaid + 1 if code == self.unpaid_code else 1) if code else 0, code
        self.has_entered |= bool(counts[2])
        is_in_vain = not counts[2] and counts[1] >= IN_VAIN
        needed = PATIENCE if self.has_entered and not counts[2] else 1 if self.is_limited or is_in_vain else UNPAID
        if self.unpaid >= needed:
            self.way, self.counted = PYTHON, Message(code, {"number": counts[0]} if counts[2] else {})

    def gave_up(self, reason: Refusal, number: int) -> None:
        """The run of a call, by its trace's count the one with this number, was given up, and Python has taken the call: what
        costs more than either way, and may come again and again."""
        self.given_up = self.given_up + 1 if number == self.given_up_at + 1 else 1
        self.given_up_at = number
        if self.given_up >= GIVEN_UP:
            self.way, self.given_up_for = PYTHON, reason
            self.counted = Message("settled.given_up", {"times": self.given_up, "code": reason.code})

    @property
    def limits(self) -> list[Message]:
        """What is said of what such calls are not captured for."""
        return [Message("settled.budget")] * self.is_limited + [Message("settled.others")] * self.has_others

    @property
    def is_limited(self) -> bool:
        """Is something of such calls left to Python because compiling it would take too long?"""
        return self.effort.is_spent or self.effort_in_pieces.is_spent

    @property
    def said(self) -> tuple[Message, ...]:
        """What is said of such calls where they run as Python: with which times or counts, why, and what would change it."""
        if self.kept is not None:
            return self.kept
        refusal = self.given_up_for or (self.refusal if self.pieces else None)
        return (self._decided_by(), *(() if refusal is None else _why(refusal)))

    def _decided_by(self) -> Message:
        if self.counted is not None or not self.times[PYTHON]:
            return self.counted or Message("settled.nothing")
        return Message("settled.in_pieces" if self.pieces else "settled.measured", self._measured)

    @property
    def _measured(self) -> dict[str, Any]:
        compiled, python = self.times[COMPILED], self.times[PYTHON]
        seconds = {"python": min(python) / 1e9, "compiled": min(compiled) / 1e9}
        return {"elements": f"{2**self.elements_bits - 1:,}", "number": min(len(python), len(compiled)), **seconds}

    @property
    def stays(self) -> Message | None:
        """What is said of such calls where they stay compiled though a part of them is Python: what they take so."""
        if self.way != COMPILED or not self.pieces or self.entered is None or not self.times[PYTHON]:
            return None
        return Message("settled.stays", {**self._measured, "pieces": self.entered[0]})


def _why(refusal: Refusal) -> Iterator[Message]:
    """Why a call is not captured whole, and what would be."""
    cut = refusal.cut
    source = refusal.source if refusal.source is not None or cut is None else cut.source
    wants = cut is not None and refusal.code == "value"
    why = str(Message("settled.wants_number", {"name": cut.called}) if cut is not None and wants else refusal.said).rstrip(".")
    if source is None or "line" in refusal.said.args:
        yield Message("settled.because", {"why": why})
    else:
        yield Message("settled.because_in_line", {"why": why, "line": source.line})
    if cut is not None:
        yield Message("settled.instead", {"name": cut.instead})


def _is_clear(short: Sequence[int], long: Sequence[int]) -> bool:
    """Do two calls each way tell that one takes the shorter time? They differ by more than those of a way."""
    if min(len(short), len(long)) < 2:
        return False
    return max(short) * CLEAR < min(long) and all(max(times) <= CLEAR * min(times) for times in (short, long))


class _Here(threading.local):
    """`disturbances`: what makes the time of a call of this thread no measure: something was captured or compiled, or another
    function's call was a trial, too. `captures`: how often something was to be captured. `compiled`: calls run compiled,
    whatever was decided; `untried`: where nothing is. `is_in_pieces`: a call was not captured whole; `is_stitched`: and ran
    as one function. `counts`: of the last call in pieces that ended, how many were entered and were to be captured, and
    what Python would have taken for them by the model; `needs_counts`: of such calls nobody knows them yet. `ran`: the
    pieces that a call has entered, of which somebody wants to know. `given_up`: why the run of a call was, and how many
    calls its trace had had by then. `tried_ns`: when the last call began that was tried as Python."""

    disturbances: int = 0
    ran: dict[tuple[str, int, int], None] | None = None
    captures: int = 0
    counts: tuple[int, int, float] | None = None
    given_up: tuple[Refusal, int] | None = None
    tried_ns: int = 0
    is_in_pieces: bool = False
    is_stitched: bool = False
    needs_counts: bool = False
    compiled: int = 0
    untried: int = 0


here = _Here()


def identity(function: str, trace: Any) -> tuple[str, int, int]:
    """What events tell a trace by."""
    return function, trace.number, getattr(trace.executable, "number", -1)


def disturbed() -> None:
    """What this thread's calls take now says nothing of the next ones."""
    here.disturbances += 1


@contextmanager
def compiled_calls(*, of_all_threads: bool = False) -> Iterator[None]:
    """Inside, every call of this thread, or of all threads, runs compiled: somebody asks what the compiler does."""
    with events.busy:  # C code asks that alone
        if of_all_threads:
            _asking.append(None)
        here.compiled += 1
        try:
            yield
        finally:
            here.compiled -= 1
            if of_all_threads:
                _asking.pop()


@contextmanager
def untried() -> Iterator[None]:
    """Inside, the calls of this thread run as they are decided to, and where nothing is decided compiled: none is a trial."""
    here.untried += 1
    try:
        yield
    finally:
        here.untried -= 1


#: One for each who asks of all threads.
_asking: list[None] = []


def may_settle() -> bool:
    """May calls of this thread run as Python because that takes less time?"""
    return config.settle != NEVER and not here.compiled and not _asking


def is_measurable() -> bool:
    """Does a call now take what later calls will? The machine code is the one that stays, and nobody is told of each step."""
    return not default_target().is_improving and not _is_told()


def _is_told() -> bool:
    """Is somebody told of each step?"""
    return events.active() and not events.in_bulk()


class Deciding:
    """A function whose calls are decided on."""

    def __init__(self) -> None:
        with locks.Released(_lock), _lock:
            _deciding.add(self)

    def reopen(self) -> None:
        """Nothing is decided any more."""
        raise NotImplementedError


_deciding: WeakSet[Deciding] = WeakSet()
_lock = locks.shared("deciding")


def configuration() -> tuple[Any, ...]:
    """The settings that decisions hang on."""
    return config.settle, config.global_jit_level, config.min_cluster_size, config.max_cluster_size


def _look_at_settings() -> None:
    """What was decided under other settings is decided anew. (While `settle` is "off" nothing is, and nothing forgotten.)"""
    global _settings
    if config.settle != NEVER and _settings != (now := configuration()):
        _settings = now
        with locks.Released(_lock), _lock:
            functions = list(_deciding)
        for function in functions:
            function.reopen()


_settings: tuple[Any, ...] = configuration()
told.append(_look_at_settings)


def clock() -> int:
    """Nanoseconds."""
    return time.perf_counter_ns()


def busy_clock() -> int:
    """Nanoseconds that the processor had for this thread."""
    return time.thread_time_ns()


def tried(trial: Trial, ways: Mapping[str, Callable[[], Any]], is_ready: Callable[[], bool]) -> Any:
    """A call that has no decision yet. `is_ready`: the machine code is the one that stays, and nobody watches."""
    if here.untried:
        return ways[COMPILED]()
    is_early = not is_ready() and not _is_told()
    way = trial.next_way(is_early=is_early)
    before, captures, before_ns, started, busy = here.disturbances, here.captures, waited_ns(), clock(), busy_clock()
    result = ways[way]()  # what ends with an exception is no measure
    took, busy, waited = clock() - started, busy_clock() - busy, waited_ns() - before_ns
    patience = PATIENCE if took <= LONG_NS else FIRST_CALLS
    is_calm, has_captured = here.disturbances == before, here.captures != captures
    if way == COMPILED:
        trial.captured_anew(has_captured)
    if is_early and not has_captured:
        trial.took_meanwhile(way, took)
    is_again = trial.captures_again and (is_calm or has_captured) and not _is_told()
    if is_again or (is_ready() and (is_calm or trial.calls >= patience)):
        trial.took(way, took, busy)
    elif busy - waited > max(LONG_NS, waited) and not trial.times[way]:
        trial.took(way, busy - waited)  # long, whatever is made in it for later ones
    if not trial.way:
        disturbed()
    return result

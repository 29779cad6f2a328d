"""Calls that C functions answered while somebody recorded: each one is noted here, and Python takes the notes in bulk.

A note is one or more lines of eight words: the number of the C function's `Site`, the address of the cell's name, the call's
start and end, then of each launch its start, its end, and the processor's counter before the first and after each phase. C code
writes them with the interpreter's lock held. When a block is full it calls `full`, so nothing is lost.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from jitlab.support.lazy_dataclass import dataclass

#: Words of a line, lines of a block. The first line of a block holds how many others are in use.
LINE, LINES = 8, 2048

#: Longer notes are not made: such calls take the Python way.
MOST_LINES = 64

#: The words of a note before those of its launches.
SITE, CELL, START, END, FIRST = range(5)

#: Fewer notes than this are cheaper one by one.
FEW = 12

#: While runs are watched now and then, one call in so many nanoseconds takes the Python way, where it is seen.
PERIOD_NS = 50_000_000

#: 0: nobody takes notes. Else it changes with who does, and from cell to cell: each function then takes the Python way once.
watched = ctypes.c_int64(0)

#: The address of the block that is written now.
head = ctypes.c_int64(0)


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch of a C function: of each phase of its code the number of the kernel it belongs to."""

    cluster: str
    kernels: tuple[int, ...]
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class About:
    """What notes are about. `tells_call`: they are of calls of the whole function, not of its plan alone; `plan`: gives what
    runs on the Python way the plan that a C function ran, None where it did itself; `as_python`: Python runs such calls, or
    the statement that the notes are of: what the event says of them."""

    function: str
    trace: int
    launches: tuple[Launched, ...]
    tells_call: bool
    costs: Any
    plan: Callable[[], Any] = lambda: None
    as_python: Any = None

    @property
    def words(self) -> int:
        return FIRST + sum(3 + len(launch.kernels) for launch in self.launches)

    @property
    def lines(self) -> int:
        return -(-self.words // LINE)


#: A note of what came the Python way: of what, the cell, start, end, and the context of a launch.
Row = tuple[About, str, int, int, Any]


def statement(said: Any) -> About:
    """What notes of a statement that runs as Python are about; `said`: what the event says of it."""
    return About("", 0, (), False, None, as_python=said)


class Site:
    """The place of one C function. It notes calls while `seen` is what `watched` is, until a moment; others go to Python.
    `statements`: the places of the statements that it runs after each call."""

    def __init__(self, about: About, statements: Sequence[Site] = ()) -> None:
        self.about, self.number, self.statements = about, next(_numbers), tuple(statements)
        self.words = (ctypes.c_int64 * 2)(0, 0)  # seen, until
        if not _blocks[head.value].used.value:  # no note speaks of a place that is gone
            _forget_gone()
        _about[self.number] = about
        weakref.finalize(self, _gone.append, self.number).atexit = False

    def open(self, started_ns: int, is_watched: bool) -> None:
        """A call that began then was seen on the Python way: the C function may answer the next ones."""
        if started_ns >= _since_ns:
            self.words[1] = time.perf_counter_ns() + PERIOD_NS if is_watched else 1 << 62
            self.words[0] = watched.value


class Places:
    """The places of a program that make calls of one kind, which C hands on to Python and notes. `words`: of each the code
    object and the instruction that calls, and the number of its `Site`; those of no place are 0."""

    MOST, WORDS = 8, 3

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * (self.MOST * self.WORDS))()
        self._kept: list[tuple[CodeType, Site]] = []

    def add(self, about: About, code: CodeType, instruction: int) -> None:
        """From now on C notes calls that are made there; not where there are too many of them."""
        at = len(self._kept) * self.WORDS
        if len(self._kept) < self.MOST:
            self._kept.append((code, site := Site(about)))
            self.words[at + 1], self.words[at + 2] = instruction, site.number
            self.words[at] = id(code)  # from here on

    def clear(self) -> None:
        for at in range(0, len(self.words), self.WORDS):
            self.words[at] = 0
        self._kept.clear()


class Calls:
    """Calls of one function in one cell. `words`: a note in each row, in the order they ended; `had`: for how long the process,
    and the thread, had a processor in the one launch of each, where that is known."""

    __slots__ = ("about", "cell", "had", "words")

    def __init__(
        self, about: About, cell: str, words: np.ndarray[Any, Any], had: np.ndarray[Any, Any] | None = None
    ) -> None:
        self.about, self.cell, self.words, self.had = about, cell, words, had

    def __len__(self) -> int:
        return len(self.words)

    @property
    def starts(self) -> np.ndarray[Any, Any]:
        return self.words[:, START]

    @property
    def durations(self) -> np.ndarray[Any, Any]:
        spent: np.ndarray[Any, Any] = self.words[:, END] - self.words[:, START]
        return spent

    def work(self, durations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Durations of a launch without the time for which other programs had the processor."""
        known = None if self.had is None else self.had[:, 0]
        return durations if known is None else np.where(known > 0, np.minimum(durations, known), durations)

    def idle(self, durations: np.ndarray[Any, Any]) -> int:
        """For how long in all the thread had no processor in launches of these durations, at most."""
        return int(np.maximum(durations - (0 if self.had is None else self.had[:, 1]), 0).sum())

    def launches(self) -> Iterator[tuple[Launched, Any, Any, Any]]:
        """Each launch with its start, its duration and the times of its kernels, (calls, kernels), in nanoseconds: the
        duration as the processor's counter divided it. Zeros where that stood still."""
        at = FIRST
        for launch in self.about.launches:
            phases = len(launch.kernels)
            starts = self.words[:, at]
            durations = self.words[:, at + 1] - starts
            ticks = self.words[:, at + 2 : at + 3 + phases]
            at += 3 + phases
            whole = ticks[:, -1] - ticks[:, 0]
            share = np.where(whole > 0, durations / np.maximum(whole, 1), 0.0)
            of_phases = np.diff(ticks, axis=1)
            times = np.zeros((len(ticks), max(launch.kernels, default=-1) + 1))
            for phase, kernel in enumerate(launch.kernels):
                times[:, kernel] += of_phases[:, phase]
            yield launch, starts, durations, (times * share[:, None]).astype(np.int64)


def note(about: About, cell: str, start_ns: int, end_ns: int, context: np.ndarray[Any, Any] | None = None) -> int:
    """Note a call, or the one launch of a plan, that came the Python way; the context's last words are the counter's, and
    before them what the launch had of the processors. Gives how many of these notes wait."""
    _rows.append((about, cell, start_ns, end_ns, context))
    return len(_rows)


def named(cell: str) -> str:
    """The same name, as the object that notes refer to; it is kept from now on."""
    kept = _names.setdefault(cell, cell)
    _cells[id(kept)] = kept
    return kept


def watch(anybody: bool) -> None:
    """Notes are taken from now on, or no more; who took some before has taken them."""
    global _since_ns
    _since_ns = time.perf_counter_ns()
    watched.value = next(_numbers) if anybody else 0


def renew() -> None:
    """A cell begins: each function takes the Python way once."""
    if watched.value:
        watch(True)


def has_notes() -> bool:
    """Is there anything to take?"""
    return bool(_rows) or bool(_blocks[head.value].used.value)


def take() -> tuple[list[Calls], list[Row]]:
    """All notes so far, those of one function in one cell together; single ones that came the Python way. For one thread at a
    time."""
    made: list[Calls] = []
    single: list[Row] = []
    if _rows:
        _sort_rows(made, single)
    block = _blocks[head.value]
    if block.used.value:
        made += _from_block(block)
    for calls in made:
        if calls.about.tells_call:
            calls.about.costs.ran(int(calls.durations.sum()), len(calls))
    for about, _, start, end, _ in single:
        if about.tells_call:
            about.costs.ran(end - start)
    return made, single


def _sort_rows(made: list[Calls], single: list[Row]) -> None:
    found: dict[tuple[int, str], list[Row]] = {}
    for _ in range(len(_rows)):
        row = _rows.popleft()
        found.setdefault((id(row[0]), row[1]), []).append(row)
    for (_, cell), rows in found.items():
        if len(rows) < FEW:
            single += rows
            continue
        about = rows[0][0]
        words = np.zeros((len(rows), about.words), np.int64)
        words[:, START] = [row[2] for row in rows]
        words[:, END] = [row[3] for row in rows]
        had = None
        if about.launches:
            words[:, FIRST : FIRST + 2] = words[:, START : END + 1]
            ticks = 1 + len(about.launches[0].kernels)
            contexts = np.concatenate([row[4] for row in rows]).reshape(len(rows), -1)
            words[:, FIRST + 2 :], had = contexts[:, -ticks:], contexts[:, -ticks - 2 : -ticks]
        made.append(Calls(about, cell, words, had))


def _from_block(block: _Block) -> list[Calls]:
    gone = len(_gone)
    spare = _spares.pop() if _spares else _Block()
    head.value = spare.address  # from here on nobody else writes to the block
    lines = block.lines[: block.used.value].copy()
    block.used.value = 0
    _spares.append(block)
    made = list(_sorted_out(lines))
    _forget_gone(gone)
    return made


def _forget_gone(most: int | None = None) -> None:
    for _ in range(len(_gone) if most is None else most):
        try:
            _about.pop(_gone.popleft(), None)
        except IndexError:  # another thread was quicker
            return


def _sorted_out(lines: np.ndarray[Any, Any]) -> Iterator[Calls]:
    for number, places in _places(lines):
        about = _about[number]
        if about.lines == 1:
            words = lines if len(places) == len(lines) else lines[places]
        else:
            words = lines[places[:, None] + np.arange(about.lines)].reshape(len(places), -1)
        cells = words[:, CELL]
        for cell in (cells[0],) if (cells == cells[0]).all() else np.unique(cells):
            mine = slice(None) if (cells == cell).all() else cells == cell
            yield Calls(about, _cells[int(cell)], words[mine])


def _places(lines: np.ndarray[Any, Any]) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """The first lines of the notes, by the number of their site."""
    size = _about[int(lines[0, SITE])].lines
    if len(lines) % size == 0:
        sites = lines[::size, SITE]
        different = [int(sites[0])] if (sites == sites[0]).all() else np.unique(sites).tolist()
        if all(number in _about and _about[number].lines == size for number in different):  # all notes are of one size
            for number in different:
                yield number, size * np.flatnonzero(sites == number)
            return
    found: dict[int, list[int]] = {}
    numbers, at = lines[:, SITE].tolist(), 0
    while at < len(numbers):
        found.setdefault(numbers[at], []).append(at)
        at += _about[numbers[at]].lines
    for number, places in found.items():
        yield number, np.array(places)


class _Block:
    def __init__(self) -> None:
        words = np.empty((LINES + 1) * LINE, np.int64)
        self.used = ctypes.c_int64.from_address(words.ctypes.data)
        self.used.value = 0
        self.address: int = words.ctypes.data
        self._words = words
        self.lines = words[LINE:].reshape(LINES, LINE)
        _blocks[self.address] = self


@cache
def clock() -> tuple[int, bool] | None:
    """The address of the interpreter's own clock of `perf_counter_ns`, and does it give the time by a pointer? None where it
    is not to be had: then every call that somebody records takes the Python way."""
    if sys.implementation.name != "cpython":
        return None
    for name, by_pointer in (("PyTime_PerfCounterRaw", True), ("_PyTime_GetPerfCounter", False)):
        function = getattr(ctypes.pythonapi, name, None)
        if function is None:
            continue
        now = ctypes.c_int64()
        function.restype = ctypes.c_int if by_pointer else ctypes.c_int64
        before = time.perf_counter_ns()
        given = function(ctypes.byref(now)) if by_pointer else function()
        if before <= (now.value if by_pointer else given) <= time.perf_counter_ns():
            return ctypes.cast(function, ctypes.c_void_p).value or 0, by_pointer
    return None


def kernels_of(phases: Sequence[str]) -> tuple[int, ...]:
    """The names of kernels, a phase each, as numbers in the order they appear."""
    order = list(dict.fromkeys(phases))
    return tuple(order.index(name) for name in phases)


def divided(duration_ns: int, ticks: Sequence[int], kernels: Sequence[int]) -> tuple[int, ...]:
    """A launch's time divided among its kernels as the processor's counter divided it; nothing where that stood still."""
    whole = ticks[-1] - ticks[0]
    if whole <= 0:
        return ()
    times = [0] * (max(kernels) + 1)
    for phase, kernel in enumerate(kernels):
        times[kernel] += ticks[phase + 1] - ticks[phase]
    return tuple(duration_ns * time // whole for time in times)


#: What C code calls when its note has no room: it hands the notes to who takes them.
full: list[Callable[[], None]] = []

_since_ns = 0
_numbers = itertools.count(1)
_about: dict[int, About] = {}
_rows: deque[Row] = deque()
_gone: deque[int] = deque()
_names: dict[str, str] = {}
_cells: dict[int, str] = {}
_blocks: dict[int, _Block] = {}
_spares: list[_Block] = []
head.value = _Block().address

"""What compiled code was given in a cell, for questions that come after it ran: what-if, measure, check.

Small arguments are copied, large ones are referred to weakly, with a mark that shows most changes. When they are gone, the cell
is noted: at its next run copies of everything are kept, up to `jl.config.copy_limit_bytes`.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.api.check.replaying import Call, generators
from jitlab.capture.rewrite.liveness import read_before_bound
from jitlab.ops.random_draws import States, generators_of, random_states
from jitlab.runtime import Executable
from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass

from .jobs import Refused

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import CellRun
    from jitlab.notebook.magics import compare, plain_cell
    from jitlab.notebook.magics.compare import Comparison
else:
    compare, plain_cell = Later("jitlab.notebook.magics.compare"), Later("jitlab.notebook.magics.plain_cell")

#: Arguments of one run that are copied: together at most so many bytes.
COPIED_BYTES = 1 << 20

#: Of the time between two runs at most this share goes into keeping the arguments of the newer one.
SHARE = 0.02

#: Cells, and compiled pieces of one cell, whose inputs are kept: the newest.
MOST_CELLS, MOST_PIECES = 64, 64

#: Elements that are looked at to see whether an array has changed.
LOOKED_AT = 64


@dataclass
class Held:
    """One argument: itself where it can't change, a copy, or a weak reference with the mark it had."""

    value: Any = None
    reference: weakref.ref[Any] | None = None
    mark: bytes = b""

    def get(self) -> tuple[Any, bool]:
        """(the argument, has it changed). LookupError when it is gone."""
        if self.reference is None:
            return self.value, False
        array = self.reference()
        if array is None:
            raise LookupError
        return array, mark_of(array) != self.mark


@dataclass
class Given:
    """The newest run of one executable in a cell that there was time to keep."""

    executable: Executable
    generators: list[Any]  # of its own, that it draws from
    arguments: list[Held] = field(default_factory=list)
    states: States = ()  # of the generators, when that run began
    runs: int = 0
    kept_at: int = 0  # which run it was
    kept_ns: int = 0  # when, and what it took
    took_ns: int = 0


class CellInputs:
    """The inputs of one run of a cell. `whole`: copies of all runs, where they were wanted."""

    def __init__(self, number: int, whole: Comparison | None) -> None:
        self.number, self.whole = number, whole
        self.given: OrderedDict[int, Given] = OrderedDict()  # by the id of the executable, in the order of their first runs


class Inputs:
    """Of a session. `running` says which cell a run belongs to: its id and the number of its run, or None."""

    def __init__(self, running: Callable[[], tuple[str, int] | None]) -> None:
        self._running = running
        self._cells: OrderedDict[str, CellInputs] = OrderedDict()
        self._wanted: set[str] = set()
        self._reads: dict[str, tuple[str, frozenset[str]]] = {}  # of each cell its source, and the names that it reads
        self._lock = threading.Lock()

    def note(self, executable: Executable, arguments: Sequence[Any]) -> None:
        """A run is about to start. Cheap: what is kept is that of a run now and then, when runs follow each other closely."""
        running = self._running()
        if running is None:
            return
        with self._lock:
            cell = self._cell(*running)
            if cell.whole is not None:
                cell.whole.note(executable, arguments)
            given = cell.given.get(id(executable))
            if given is None:
                given = cell.given[id(executable)] = Given(executable, generators(executable.graph))
                if len(cell.given) > MOST_PIECES:
                    cell.given.popitem(last=False)
            given.runs += 1
            started = time.perf_counter_ns()
            if given.kept_at and given.took_ns > SHARE * (started - given.kept_ns):
                return
            given.states = random_states((*given.generators, *generators_of(arguments)))
            given.arguments, given.kept_at = held(arguments), given.runs
            given.kept_ns = time.perf_counter_ns()
            given.took_ns = given.kept_ns - started

    def ran(self, cell: str, number: int, executable: Executable | None, runs: int) -> None:
        """Runs that were only counted: another one of the same cell was noted before them."""
        if executable is None:
            return
        with self._lock:
            found = self._cells.get(cell)
            given = found.given.get(id(executable)) if found is not None and found.number == number else None
            if given is not None:
                given.runs += runs

    def wants_all(self, cell: str) -> bool:
        """Are copies of every run of the cell to be kept the next time?"""
        return cell in self._wanted

    def _cell(self, id: str, number: int) -> CellInputs:
        cell = self._cells.get(id)
        if cell is None or cell.number != number:
            whole = compare.Comparison() if id in self._wanted else None
            self._wanted.discard(id)
            cell = self._cells[id] = CellInputs(number, whole)
            self._cells.move_to_end(id)
            while len(self._cells) > MOST_CELLS:
                self._cells.popitem(last=False)
        return cell

    def found(self, run: CellRun, namespace: Mapping[str, Any]) -> dict[str, Any]:
        """The form of each thing that the statements of a cell read as it was before them."""
        if self._reads.get(run.id, ("",))[0] != run.source:
            self._reads[run.id] = run.source, read_before_bound(run.nodes or ())
            while len(self._reads) > MOST_CELLS:
                self._reads.pop(next(iter(self._reads)))
        return forms(self._reads[run.id][1], namespace)

    def keep(self, run: CellRun, namespace: dict[str, Any]) -> None:
        """A cell is about to run of which all is to be kept: its statements, with what they find."""
        with self._lock:
            whole = self._cell(run.id, run.number).whole
            if whole is not None and run.nodes is not None:
                whole.keep(run.nodes, run.filename, namespace, run.again)

    def call(self, cell: str, plan: str) -> tuple[Call, str]:
        """The newest kept run of a plan ("step #1") in a cell, and a note where its inputs have changed since. Refused, and
        kept at the next run, when they are gone."""
        with self._lock:
            found = self._cells.get(cell)
            given = next((g for g in found.given.values() if g.executable.plan.title == plan), None) if found else None
            whole = found.whole if found is not None else None
            if given is not None and whole is not None:
                for call in reversed(whole.calls):
                    if call.executable is given.executable:
                        return call, ""
        name = plan.rsplit(" #", 1)[0]
        if given is None:
            raise Refused(f"{name} did not run in this cell since jitlab was loaded.", hint="run the cell again")
        try:
            values = [argument.get() for argument in given.arguments]
        except LookupError:
            raise self._gone(cell, name) from None
        note = f"The inputs of {name} have changed since; these are as they are now." if any(new for _, new in values) else ""
        return Call(given.executable, [value for value, _ in values], given.states), note

    def plans(self, cell: str) -> list[str]:
        """What was compiled and ran in a cell, by the titles of the plans, in the order of their first runs."""
        with self._lock:
            found = self._cells.get(cell)
            return [given.executable.plan.title for given in found.given.values()] if found is not None else []

    def calls(self, run: CellRun, namespace: dict[str, Any]) -> Comparison:
        """Every run of a cell, to be compared with NumPy. Refused, and kept at the next run, unless all of them are known, and
        its statements find what they found then."""
        cell, name = run.id, run.title
        with self._lock:
            found = self._cells.get(cell)
        if found is None or not found.given:
            raise Refused("Nothing was compiled in this cell.")
        if found.whole is not None:
            return found.whole
        if run.nodes is None:
            raise self._again(cell, "Its statements are not known any more.")
        if changed := plain_cell.changes_what_it_finds(run.nodes, namespace):
            raise self._again(cell, f"The cell may have changed {changed}, which it reads.")
        if forms(run.found, namespace) != run.found:
            raise self._again(cell, "What the cell reads is something else by now.")
        whole = compare.Comparison()
        try:
            for given in found.given.values():
                values = [argument.get() for argument in given.arguments]
                if given.runs > 1 or any(changed for _, changed in values):
                    raise LookupError
                whole.note(given.executable, [value for value, _ in values], given.states)
        except LookupError:
            raise self._gone(cell, name) from None
        whole.keep(run.nodes, run.filename, namespace, run.again)
        return whole

    def forget(self) -> None:
        """All cells."""
        with self._lock:
            self._cells.clear()
            self._wanted.clear()

    def _gone(self, cell: str, name: str) -> Refused:
        return self._again(cell, f"The inputs of {name} no longer exist.")

    def _again(self, cell: str, why: str) -> Refused:
        self._wanted.add(cell)
        return Refused(f"{why} Run the cell again: jitlab keeps copies this time.")


def forms(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Of what the names stand for as much as decides how much work it is."""
    return {name: form(namespace[name]) for name in sorted(names) if name in namespace}


def form(value: Any) -> Any:
    """Its type, and of what has no code of the user's its size."""
    kind = type(value)
    if kind is np.ndarray:
        return kind, value.dtype, value.shape, value.strides
    if kind in (int, bool, str):
        return kind, value  # may be a number of elements, an axis, a name
    return (kind, len(value)) if kind in (list, tuple, dict, set) else kind


def held(arguments: Sequence[Any]) -> list[Held]:
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    if sum(array.nbytes for array in arrays) <= COPIED_BYTES:
        return [Held(a.copy(order="K") if isinstance(a, np.ndarray) else a) for a in arguments]
    kept = []
    for argument in arguments:
        if isinstance(argument, np.ndarray) and argument.nbytes > COPIED_BYTES // 16:
            kept.append(Held(None, weakref.ref(argument), mark_of(argument)))
        else:
            kept.append(Held(argument.copy(order="K") if isinstance(argument, np.ndarray) else argument))
    return kept


def mark_of(array: np.ndarray[Any, Any]) -> bytes:
    """Some elements, evenly spread: enough to see that an array was filled anew."""
    if not array.size:
        return b""
    if array.flags.forc:  # in the order of memory, without a table of places
        return bytes(array.ravel(order="K")[:: -(-array.size // LOOKED_AT)].tobytes())
    places = np.linspace(0, array.size - 1, min(LOOKED_AT, array.size)).astype(np.intp)
    return bytes(array[np.unravel_index(places, array.shape)].tobytes())

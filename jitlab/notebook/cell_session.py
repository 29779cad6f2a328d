"""Session: which cell runs, what happened under it, and its report on the way to the panel. One a shell."""

from __future__ import annotations

import ast
import linecache
import logging
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field
from itertools import count as numbers
from types import FrameType
from typing import TYPE_CHECKING, Any

from jitlab import events
from jitlab.capture.positions import cell_names
from jitlab.report import MIME, Recording, Report
from jitlab.report.render.outline import PARTS
from jitlab.report.store.settled import times_of
from jitlab.report.store.summary import on_wire
from jitlab.runtime import Executable, watching
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.native_call_log import Calls
from jitlab.support.transactions import Undisturbed
from jitlab.targets.devices import default_target

from .history import History
from .rpc.inputs import Inputs
from .rpc.jobs import Jobs, Refused
from .rpc.link import Link, running_cell
from .rpc.requests import answer
from .saved_outputs import SavedOutputs

if TYPE_CHECKING:
    from .magics.waiting import Waiting

KEPT_SOURCES = 2000
KEPT_CELLS = 64
LIVE_SECONDS = 0.25  # between two reports of a cell that still runs
IDLE_SECONDS = 0.5  # without an event, until facts of past runs are made
LIVE_SHARE = 0.05  # of the time at most, goes into reports of a cell that still runs
QUIET_SECONDS = 0.03  # without a cell, until the report of the last one is made: cells that follow at once do not wait for it

#: The line that asks for a cell to run captured: what stands before it, and its options.
JIT_LINE = re.compile(r"([ \t]*)%%jit(?![\w?])[ \t]*(.*?)[ \t]*\n?")

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class CellRun:
    """One run of one cell. The recording begins with the first event: a cell without any costs nothing."""

    id: str
    count: int
    source: str
    info: Any = None
    number: int = 0  # of all runs of the session: later runs have higher ones
    start_ns: int = field(default_factory=time.perf_counter_ns)
    recording: Recording | None = None
    run_ns: int | None = None  # what its statements took by the clock, when they have ended
    idle_ns: int | None = None  # of that, when their thread had no processor, where that is known
    others: float | None = None  # the share of the processors that other programs took meanwhile, where that is known
    captures_ns: int = 0  # of that, what they waited for captures and compilers
    aside_ns: int = 0  # what magics in it took for runs that are none of the cell's
    is_captured: bool = False  # its statements are run captured, not by IPython
    nodes: list[ast.stmt] | None = None  # its statements, and the name of their file
    filename: str = ""
    again: Callable[[], None] | None = None  # runs captured ones once more as jitlab does, without anything shown
    is_found: bool = False  # what they read was looked at before they ran
    found: dict[str, Any] = field(default_factory=dict)  # of each name that they read as it was before, of what form that was
    running: bool = True
    error: str | None = None
    report: Report | None = None
    reported: tuple[Any, ...] = ()  # what the report was made of
    inside: events.in_cell | None = None  # while it runs
    is_seen: bool = False  # each compiled call in it comes the Python way
    is_own: bool = False  # begun by a magic, for a cell that IPython did not tell of
    is_shown: bool = False  # its report stands below the cell
    finish: Callable[[], object] = lambda: None  # what is shown when it has ended

    @property
    def title(self) -> str:
        return f"In [{self.count}]"

    @lazy
    def code(self) -> list[str]:
        """Its lines, without the options of `%%jit`: a cell that is asked for more is the same cell."""
        return code_of(self.source)

    def took(self, start_ns: int, end_ns: int, captures_ns: int = 0, processor_ns: int = 0) -> None:
        """The cell's own statements began and ended then, waited so long for captures, and had a processor so long: what is
        said first holds."""
        if self.run_ns is None:
            self.run_ns, self.captures_ns = end_ns - start_ns, captures_ns
            self.idle_ns = max(0, self.run_ns - processor_ns) if processor_ns else None
            self.others = self.recording.load.others() if self.recording is not None else None
        self.tell_times()

    def tell_times(self) -> None:
        if self.recording is not None:
            self.recording.run_ns, self.recording.captures_ns = self.run_ns, self.captures_ns
            self.recording.idle_ns, self.recording.others = self.idle_ns, self.others

    @property
    def compiled(self) -> float:
        """Seconds that this run and earlier ones of the same cell waited for compiling."""
        if self.recording is None:
            return 0.0
        own = (self.report.data["verdict"].get("waited") or {}).get("compiling") if self.report is not None else None
        known = sum(self.recording.charged.values()) / 1e9  # as the ledgers have it, of a run whose report nobody asked for
        return self.recording.compiled_before + (known if own is None else float(own))

    def about(self, saved: bool = False) -> dict[str, Any]:
        """The `cell` of docs/reference/report-format.md; what is saved in the notebook runs no more."""
        return {
            "id": self.id, "execution_count": self.count, "title": self.title, "source": self.source.split("\n"),
            "running": self.running and not saved, "error": self.error,
        }  # fmt: skip


class Session:
    """Listens to the shell and to events from its start to its stop."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.cells: OrderedDict[str, CellRun] = OrderedDict()  # the newest run of each, latest last
        self.link: Link | None = None
        self._stack: list[CellRun] = []  # a cell may run another one
        self._dirty: set[str] = set()
        self._live: threading.Thread | None = None
        self._lock = threading.Lock()
        self._deaf: set[int] = set()  # threads
        self._wake = threading.Event()
        self._stopped = False
        self.jobs = Jobs(self._tell_job)
        self.waiting: Waiting | None = None  # of the cell that runs captured
        self._hooked: list[Any] = []  # what IPython told of the cells that run
        self._now = threading.Event()
        self._unsettled = False  # runs whose recordings are still whole
        self._begun = 0  # runs of cells: the number of the newest
        self.history = History(self.report_of)
        self.saved = SavedOutputs.of_user(stay=getattr(shell, "kernel", None) is not None)
        self.inputs = Inputs(self._whose)
        self._watch = ExitStack()
        self._ran: OrderedDict[str, tuple[str, list[str]]] = OrderedDict()  # id and source of each cell, by its title

    def start(self) -> None:
        """Attach to the shell, the events, and the panel where there is a kernel."""
        default_target().prepare("jitlab.api.practice")
        kernel = getattr(self.shell, "kernel", None)
        if kernel is not None:
            try:
                self.link = Link.attach(kernel)
                self.link.load(lambda body: answer(self, body), self._resumed)
            except Exception:  # a front end without comms: everything works but the panel
                logger.warning("jitlab could not open its link to the panel", exc_info=True)
        with Undisturbed("could not tell which cell loaded it"):
            self._name_cell_that_loads()
        self.shell.events.register("pre_run_cell", self.pre_run_cell)
        self.shell.events.register("post_run_cell", self.post_run_cell)
        events.add_listener(self.hear, self.take, in_children=False)  # the panel is the parent's
        self._watch.enter_context(watching(self._note, now_and_then=True))

    def stop(self) -> None:
        events.remove_listener(self.hear)
        self._watch.close()
        self._stopped = True
        self._wake.set()
        self._now.set()
        self.jobs.stop()
        if self.link is not None:
            self.link.unload()
        for name, hook in (("pre_run_cell", self.pre_run_cell), ("post_run_cell", self.post_run_cell)):
            try:
                self.shell.events.unregister(name, hook)
            except ValueError:
                pass

    def _name_cell_that_loads(self) -> None:
        """The cell with `%load_ext jitlab` began before anybody listened; functions defined in it are in it all the same."""
        stored = self.shell.history_manager.input_hist_parsed
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            file = frame.f_code.co_filename
            is_cell = frame.f_globals is self.shell.user_ns and frame.f_code.co_name.startswith("<")
            if is_cell and stored and "".join(linecache.getlines(file)).strip() == stored[-1].strip():
                cell_names[file] = f"In [{len(stored) - 1}]"  # the first of them stands before all cells
                return
            frame = frame.f_back

    @property
    def running(self) -> CellRun | None:
        """The cell whose code runs now."""
        return self._stack[-1] if self._stack else None

    def pre_run_cell(self, info: Any) -> None:
        """A cell begins. Requests without history come from tools, not from people: no cells, but jobs wait for them."""
        with Undisturbed("could not note the start of a cell"):
            is_cell = info.store_history and not info.silent
            self._hooked.append(info)
            if not is_cell:
                self.jobs.cell_started(None)
                return
            count = self._count()
            self.jobs.cell_started(f"In [{count}]")
            self.begin(info.raw_cell, info, getattr(info, "cell_id", None), count)

    def post_run_cell(self, result: Any) -> None:
        """A cell ended: its last report goes to the panel."""
        with Undisturbed("could not note the end of a cell"):
            try:
                for run in self._stack:
                    if run.info is result.info:
                        self.end(run, result.error_before_exec or result.error_in_exec)
                        break
            finally:
                if self._hooked and (self._hooked[-1] is result.info or any(one is result.info for one in self._hooked)):
                    while self._hooked and self._hooked.pop() is not result.info:
                        self.jobs.cell_ended()  # one inside it, whose end was not told
                    self.jobs.cell_ended()

    def begin(self, source: str, info: Any = None, cell_id: str | None = None, count: int | None = None) -> CellRun:
        kernel = getattr(self.shell, "kernel", None)
        known = running_cell(kernel) if kernel is not None else None
        if count is None:
            count = self._count()
        self._begun += 1
        run = CellRun(known or cell_id or self._id_of(source), count, source, info, self._begun)
        self._ran[run.title] = run.id, source.rstrip("\n").split("\n")
        while len(self._ran) > KEPT_SOURCES:
            self._ran.popitem(last=False)
        events.begin_cell()
        run.inside = events.in_cell(run.id)
        run.inside.__enter__()
        if self.inputs.wants_all(run.id):
            run.is_seen = True
            events.busy.__enter__()  # every run is seen
        self._stack.append(run)
        started = events.CellStarted(cell=run.id, execution_count=count, source=source, start_ns=run.start_ns)
        self.emit(run.id, started)
        return run

    def _id_of(self, source: str) -> str:
        """Where no front end names cells: the same text is the same cell. No other shell of this process and no cell before
        `%reset`, which counts cells from 1 again, has the name of a new one: a compiler may still be at work for it."""
        code = code_of(source)
        alike = ((id, lines) for id, lines in self._ran.values() if len(lines) == len(code) and lines[-1] == code[-1])
        return next((id for id, lines in alike if code_of("\n".join(lines)) == code), f"cell {next(_UNNAMED)}")

    def _count(self) -> int:
        """The number of the cell that begins. IPython counts on before it tells of the cell, older ones after it ran."""
        count: int = self.shell.execution_count
        stored = len(self.shell.history_manager.input_hist_raw) if self.shell.history_manager else count
        return stored if stored == count - 1 else count

    def end(self, run: CellRun, error: BaseException | None) -> None:
        events.collect()
        if run.is_seen:
            run.is_seen = False
            events.busy.__exit__()
        if run.inside is not None:
            inside, run.inside = run.inside, None
            try:
                inside.__exit__()
            except ValueError:  # begun in another context (a cell with `await`), which is gone by now
                pass
        while run in self._stack:
            self._stack.pop()
        run.running = False
        if run.recording is not None:
            run.took(run.start_ns + run.aside_ns, time.perf_counter_ns(), run.captures_ns)
            run.recording.ended()
            if not run.is_found:
                with Undisturbed("could not note what a cell reads"):
                    run.found = self.inputs.found(run, getattr(self.shell, "user_ns", {}))
        run.error = type(error).__name__ if error is not None else None
        run.finish()
        if run.recording is not None and self.link is not None and self.link.attached:
            self.push_soon(run)
        finished = events.CellFinished(
            cell=run.id, execution_count=run.count, duration_ns=time.perf_counter_ns() - run.start_ns, error=run.error or ""
        )
        self.emit(run.id, finished)

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """What this thread does inside (a replay) is not the cell's."""
        self._deaf.add(threading.get_ident())
        try:
            with events.busy:  # what a C function notes belongs to the cell
                yield
        finally:
            self._deaf.discard(threading.get_ident())

    def hear(self, event: events.Event) -> None:
        """An event, from any thread: it belongs to the cell it names, else to the one that runs."""
        if self._deaf and threading.get_ident() in self._deaf:
            return
        with _HEARING:
            run = self._run_of(event.cell)
            if run is None:
                return
            self._recording_of(run).listen(event)
            if self.link is not None:
                self.link.emit(run.id, event)
            self._told(run)

    def take(self, batch: events.Batch) -> None:
        """The same for many events, and for calls that C functions noted."""
        with _HEARING:
            parts: dict[int, tuple[CellRun, list[Calls], list[events.Event]]] = {}
            for calls in batch.calls:
                run = self._run_of(calls.cell)
                if run is not None:
                    parts.setdefault(id(run), (run, [], []))[1].append(calls)
                    self.inputs.ran(run.id, run.number, calls.about.plan(), len(calls))
            for event in batch.events:
                run = self._run_of(event.cell)
                if run is not None:
                    parts.setdefault(id(run), (run, [], []))[2].append(event)
            for run, noted, single in parts.values():
                self._recording_of(run).take(events.Batch(tuple(noted), tuple(single)))
                if self.link is not None:
                    for calls in noted:
                        self.link.emit_calls(run.id, calls)
                    for event in single:
                        self.link.emit(run.id, event)
                self._told(run)

    def _run_of(self, cell: str) -> CellRun | None:
        run = self.running
        if cell and (run is None or run.id != cell):
            run = self.run_with_id(cell)
        return run

    def _recording_of(self, run: CellRun) -> Recording:
        if run.recording is None:
            self._record(run)
            self._keep_live()
        assert run.recording is not None
        return run.recording

    def _told(self, run: CellRun) -> None:
        if self.link is not None and self.link.attached:
            self._dirty.add(run.id)
            self._keep_live()

    def _whose(self) -> tuple[str, int] | None:
        """The cell that runs, when what this thread does is its own."""
        run = self.running
        if run is None or self.jobs.is_worker() or threading.get_ident() in self._deaf:
            return None
        return run.id, run.number

    def _note(self, executable: Executable, arguments: Sequence[Any]) -> None:
        with _NOTING:
            self.inputs.note(executable, arguments)

    def run_with_id(self, id: str) -> CellRun | None:
        """The run of a cell: the one that runs, else the newest that was recorded."""
        return next((run for run in reversed(self._stack) if run.id == id), None) or self.cells.get(id)

    def report_of(self, run: CellRun, saved: bool = False) -> Report | None:
        """The report of a cell, made anew when something happened since the last one."""
        events.collect()
        recording = run.recording
        if recording is None:
            return None
        about = run.about(saved)
        state = (recording.count, about["running"], about["error"])
        if run.report is None or run.reported != state:
            recording.cell = about
            run.report, run.reported = recording.report(), state
        return run.report

    def shown_report(self, run: CellRun, show: tuple[str, ...] = PARTS) -> Report | None:
        """The report as it stands in the notebook: the one of the last time, when it says nothing new."""
        report = self.report_of(run, saved=True)
        if report is not None and report.saved is None:
            with Undisturbed("could not settle an output"):
                self.saved.settle(report, self._numbers_of(run), show)
        return report

    def beside(self, report: Report) -> dict[str, Any]:
        """What goes beside an output and not into the notebook's file: this run's report, where the output keeps that of an
        earlier one and no panel is shown that has it sent anyway."""
        if report.saved is None or self.link is None or self.link.attached:
            return {}
        keeps_earlier = times_of(report.saved[MIME]) != times_of(report.data)
        return {"jitlab": {"report": on_wire(report.data)}} if keeps_earlier else {}

    def _numbers_of(self, run: CellRun) -> list[int]:
        """The execution counts that this cell had: what ran the same code before is taken for it."""
        inputs = self.shell.history_manager.input_hist_raw if self.shell.history_manager else []
        same = [number for number, source in enumerate(inputs) if number and source == run.source]
        return sorted({run.count, *same})

    def push(self, id: str) -> None:
        """Make the newest report of a cell and hand it to the panel. A run that ends meanwhile asks for it again: what is asked
        for is forgotten before the run is looked up."""
        self._dirty.discard(id)
        run = self.run_with_id(id)
        events.collect()
        if self.link is not None and run is not None:
            mark = self.link.mark(run.id)
            if self.report_of(run) is not None:
                self.link.report(run.id, self.wire_report(run), mark, run.number)

    def push_soon(self, run: CellRun) -> None:
        """The same, in the reports' thread: nobody waits for it."""
        self._dirty.add(run.id)
        self._keep_live()
        self._now.set()

    def wire_report(self, run: CellRun) -> dict[str, Any]:
        """The newest report of a run as it goes over the wire: a summary of one that is too big for it."""
        report = self.report_of(run)
        if report is None:
            raise Refused("jitlab has no report of this cell.", hint="run the cell again")
        return {**on_wire(report.data), "history": self.history.to_json(run)}

    def _resumed(self) -> None:
        """A panel is shown: it gets the reports of all cells that it does not have."""
        for run in list(self.cells.values()):
            self._dirty.add(run.id)
        if self._dirty:
            self._keep_live()
            self._now.set()

    def _tell_job(self, state: dict[str, Any]) -> None:
        if self.link is not None:
            self.link.job(state)

    def emit(self, cell: str, event: events.Event) -> None:
        """One event for the panel's running light and progress line."""
        if self.link is not None:
            self.link.emit(cell, event)

    def clear(self) -> int:
        """Forget all cells but the running one; returns how many."""
        with self._lock:
            running = self.running
            forgotten = len(self.cells) - (running is not None and running.id in self.cells)
            self.cells.clear()
            self.history.clear()
            self.inputs.forget()
            if self.link is not None:
                self.link.forget()
            if running is not None and running.recording is not None:
                running.recording = None
                running.report = None
        return forgotten

    def _record(self, run: CellRun) -> None:
        with self._lock:
            if run.recording is None:
                before = self.cells.get(run.id)
                run.recording = Recording(run.about(), self.file_name, self._cell_of)
                run.recording.is_captured = run.is_captured
                run.tell_times()  # of calls that were noted in C
                if before is not None and before.code == run.code:
                    run.recording.compiled_before = before.compiled
                self.cells[run.id] = run
                self.cells.move_to_end(run.id)
                self.history.began(run)
                self._unsettled = True
                while len(self.cells) > KEPT_CELLS:
                    self.cells.popitem(last=False)

    def file_name(self, file: str) -> str:
        """What a report calls a file: `<cell 7>` for a cell, whose real name changes with each process."""
        found = self.shell.compile.format_code_name(file)
        number = re.search(r"\d+", found[1]) if found else None
        return f"<cell {number[0]}>" if number else file

    def _cell_of(self, file: str) -> tuple[str, list[str]] | None:
        """The notebook's id of the cell that a file is, and the source that ran."""
        return self._ran.get(cell_names.get(file, ""))

    def _keep_live(self) -> None:
        """Reports reach the panel while a cell runs, and after it when a thread it left behind goes on."""
        if self._live is None:
            with self._lock:
                if self._live is None:
                    self._live = threading.Thread(target=self._push_live, name="jitlab-reports", daemon=True)
                    self._live.start()
        if not self._wake.is_set():
            self._wake.set()

    def _push_live(self) -> None:
        wait = LIVE_SECONDS
        while True:
            if not self._wake.wait(IDLE_SECONDS if self._unsettled else None):
                with Undisturbed("could not keep the facts of a run"):
                    self._unsettled = self.running is not None or self.history.settle_one()
                continue
            began = time.monotonic()
            if self._now.wait(wait):  # a cell has ended
                self._wait_for_quiet(began + wait)
            if self._stopped:
                return
            self._wake.clear()
            self._now.clear()
            began = time.perf_counter()
            self.push_dirty()
            wait = max(LIVE_SECONDS, (time.perf_counter() - began) / LIVE_SHARE)

    def push_dirty(self) -> None:
        """Hand over the newest report of each cell of which something happened, the cell that ran last first."""
        runs = {id: self.run_with_id(id) for id in tuple(self._dirty)}
        for id in sorted(runs, key=lambda id: -run.number if (run := runs[id]) is not None else 0):
            with Undisturbed("could not send a report"):
                self.push(id)

    def _wait_for_quiet(self, until: float) -> None:
        """Returns when no cell has run for a moment, at `until` (of `time.monotonic`) at the latest."""
        while not self._stopped and (left := until - time.monotonic()) > 0:
            begun = self._begun
            time.sleep(min(QUIET_SECONDS, left))
            if self.running is None and self._begun == begun:
                return


def code_of(source: str) -> list[str]:
    """The lines of a cell's text, without the options of `%%jit`."""
    lines = source.rstrip("\n").split("\n")
    above = next((n for n, line in enumerate(lines) if line.strip()), 0)
    found = JIT_LINE.fullmatch(lines[above])
    return lines if found is None else [*lines[:above], f"{found[1]}%%jit", *lines[above + 1 :]]


_NOTING = Undisturbed("could not keep the inputs of a run")
_UNNAMED = numbers(1)
_HEARING = Undisturbed("could not take in an event")  # one for all events: it keeps nothing

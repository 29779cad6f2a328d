"""What happened, as frozen facts in the past tense; times are nanoseconds of `time.perf_counter_ns`.

A listener registers with `listen`; without one nothing is built or kept (`if events.active(): ...`). Listening never changes
what is compiled. Events carry plain data only, so that they can be sent to the panel as they are.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, field
from enum import StrEnum
from typing import Any, ClassVar, Literal, NamedTuple

from jitlab.messages import Message
from jitlab.support import locks, native_call_log
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.native_call_log import About, Calls, Row
from jitlab.support.transactions import contextmanager, keep, variable

Span = tuple[str, int, int, int, int]  # file or cell, line, column, end line, end column


class FunctionName(str):
    """The name of a function that tells it from others of that name: `owner` counts the functions that were made, `place` is
    where it is defined. It is equal to the plain text, and not to the name of another owner."""

    __slots__ = ("owner", "place")
    owner: int
    place: Any

    @classmethod
    def of(cls, name: str, place: Any) -> FunctionName:
        made = cls(name)
        made.owner, made.place = next(_owners), place
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FunctionName) and other.owner != self.owner:
            return False
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __deepcopy__(self, memo: Any) -> FunctionName:
        return self

    def __reduce__(self) -> Any:
        return str, (str(self),)


_owners = itertools.count(1)


class Cause(StrEnum):
    """Why something was traced: a closed list. Each but the first is a retrace."""

    FIRST_CALL = "first_call"
    DTYPE = "dtype"
    RANK = "rank"
    SHAPE = "shape"
    PYTHON_VALUE = "python_value"
    STRUCTURE = "structure"
    ARGUMENT_TYPE = "argument_type"
    ALIASING = "aliasing"
    CLOSURE = "closure"
    GLOBAL = "global"
    OPTIONS = "options"
    REDEFINED_FUNCTION = "redefined_function"
    CACHE_EVICTED = "cache_evicted"
    UNKNOWN = "unknown"  # a lookup failed, and what failed it was gone when it was asked for


class VariantCause(StrEnum):
    """Why a known trace got another form of its kernels: a closed list. A variant is no retrace."""

    LAYOUT = "layout"
    ALIGNMENT = "alignment"
    OVERLAP = "overlap"
    SMALL_EXTENT = "small_extent"
    TARGET = "target"


def current_cell() -> str:
    """The id of the notebook cell that runs now, "" outside one."""
    return _cell.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Anything that happened. `cell` is the id of the notebook cell it happened under, "" outside one."""

    kind: ClassVar[str] = "event"

    cell: str = field(default_factory=current_cell)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent(Event):
    """Something that was done for a trace of a function, or by it, and how long that took."""

    function: str
    trace: int
    start_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStarted(Event):
    """A notebook cell began."""

    kind: ClassVar[str] = "cell-started"
    execution_count: int
    source: str
    start_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFinished(Event):
    """A notebook cell ended; `error` is "" or the exception's type name."""

    kind: ClassVar[str] = "cell-finished"
    execution_count: int
    duration_ns: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced(TraceEvent):
    """A function (or a piece of a cell) was captured; `causes[0]` is the one named first, `first_call` for the first."""

    kind: ClassVar[str] = "traced"
    causes: tuple[str, ...]
    argument: str
    before: str
    after: str
    lines: tuple[Span, ...]
    fix: Message | None  # what to change; None when nothing would have avoided it
    operations: int
    proof: str = ""  # the fix in words, and the traces that its replay on the recorded calls left: "…: 9 traces become 2"
    done: Message | None = None  # that the program has the fix already
    rule: str = ""  # the code of the rule behind causes[0], where that has several
    changes: tuple[tuple[str, str, str, str], ...] = ()  # every (cause, argument, before, after)
    site: tuple[str, int] = ("", 0)  # the file or cell and line that called
    definition: str = ""  # of the function: its cell or file, and its name there
    renews: bool = False  # the first trace of a function that was made before, of the same code, and traced then
    same: tuple[tuple[str, str], ...] = ()  # (argument, what it is): some of those that are as they were in the nearest trace
    same_count: int = 0  # how many of them there are
    fixed_at: tuple[str, int] = ("", 0)  # the file or cell and line of the fix, where that is what makes the function


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCharged(Event):
    """The account of a trace grew: what calls have waited for its capture and compilation so far, as the ledger has it."""

    kind: ClassVar[str] = "trace-charged"
    function: str
    trace: int
    spent_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantMade(TraceEvent):
    """A cluster of a known trace got another form of its kernels; `cause` is a VariantCause. No retrace."""

    kind: ClassVar[str] = "variant-made"
    cluster: str
    cause: str
    argument: str
    before: str
    after: str
    lines: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRan(TraceEvent):
    """One pass over a graph ended."""

    kind: ClassVar[str] = "pass-ran"
    name: str
    nodes_before: int
    nodes_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade(TraceEvent):
    """A trace was clustered and lowered; `plan` is `Plan.to_json()`: operations, clusters, kernels, boundaries, reasons."""

    kind: ClassVar[str] = "plan-made"
    targets: Mapping[str, str] = field(default_factory=dict)  # of each cluster the key of the target that compiles it
    plan: dict[str, Any]
    executable: int = -1  # the number that what runs it has in this process; -1 for a plan of another one


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCompiled(TraceEvent):
    """A Program became machine code. `origin`: "compiled", "disk" (object cache), "memory" (same text as before)."""

    kind: ClassVar[str] = "program-compiled"
    cluster: str
    target: str = ""  # the key of the target whose code it is
    program: str  # a hash of the target and the Program's text
    tier: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCalled(TraceEvent):
    """One call of a compiled function ended."""

    kind: ClassVar[str] = "function-called"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEvent(TraceEvent):
    """Work of a trace, and for how long the process (on all processors together) and its thread had one; 0: not known."""

    process_ns: int = 0
    thread_ns: int = 0

    @property
    def work_ns(self) -> int:
        """What it took, without the time for which other programs had the processor."""
        return min(self.duration_ns, self.process_ns or self.duration_ns)

    @property
    def idle_ns(self) -> int:
        """For how long its thread had none, at most: it may have waited for a device."""
        return max(0, self.duration_ns - self.thread_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRan(WorkEvent):
    """One launch of a cluster ended; `kernels_ns` has a time for each of its kernels, in order, when they were timed."""

    kind: ClassVar[str] = "cluster-ran"
    cluster: str
    kernels_ns: tuple[int, ...] = ()
    scratch_bytes: int = 0  # of temporaries and rows, as they were asked of the pool
    launched: tuple[Mapping[str, Any], ...] = ()  # on a GPU: what each part was launched with; times are the GPU's then
    enqueued_ns: int = 0  # on a GPU: what the host took to hand it over, before it waited; 0: nobody knows


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOperationRan(WorkEvent):
    """NumPy ran one operation between clusters."""

    kind: ClassVar[str] = "host-operation-ran"
    operation: str  # the node's name
    op: str
    delayed_ns: int = 0  # for which its thread waited for a processor

    @property
    def work_ns(self) -> int:
        """What it took without that; it is one thread's."""
        return self.duration_ns - self.delayed_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayCopied(TraceEvent):
    """An argument of a cluster was copied before its launch, because the kernels need its elements side by side."""

    kind: ClassVar[str] = "array-copied"
    cluster: str
    argument: str  # the node's name
    bytes: int


#: Why a value is copied for what the host does between kernels, as no kernel does it.
HOST_COPY = "host_copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCopied(TraceEvent):
    """A value went between NumPy's memory and that of a device whose memory NumPy cannot read."""

    kind: ClassVar[str] = "device-copied"
    direction: str  # "in", to the device, or "out"
    bytes: int
    reason: str = ""  # or HOST_COPY; "": it is an argument or a result
    node: str = ""  # the value, as the plan calls it, and the cluster that reads it
    cluster: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRan(TraceEvent):
    """One operation ran on NumPy in an op-by-op replay (`%%jit --compare`)."""

    kind: ClassVar[str] = "operation-ran"
    operation: str
    op: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Event):
    """The same work was done again on copies, by NumPy and compiled in turns: the times of each side, in the order of the
    rounds. NumPy's side were the user's own statements. `others`: the share of the processors that other programs took
    meanwhile, where that is known. `is_whole`: the other side were whole runs of the cell, with what Python runs of it, not the
    compiled work alone. `is_ended`: NumPy's side ran once, for `numpy_ns`, and was ended then. `by_clock`: several threads
    worked, so nothing is the processor's time. `blas_threads`: those of the BLAS that took part; 0: none did, or nobody
    knows."""

    kind: ClassVar[str] = "compared"
    numpy_ns: tuple[int, ...]
    compiled_ns: tuple[int, ...]
    largest_error: float | None
    others: float | None
    is_whole: bool = False
    is_ended: bool = False
    by_clock: bool = False
    blas_threads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedBefore(Event):
    """A run of a cell that was compared with NumPy before, at that time of day, and is the same since."""

    kind: ClassVar[str] = "compared-before"
    compared: Compared
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(Event):
    """What a cell compiled was run again and again on copies (`%%jit -n`); `loop_ns`: of one loop, in each run."""

    kind: ClassVar[str] = "repeated"
    loops: int
    loop_ns: tuple[float, ...]
    left_out: tuple[str, ...]  # what acts on the world outside and did not run again


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericsChecked(Event):
    """Compiled clusters were run beside NumPy, on copies; `numerics` as in docs/reference/report-format.md."""

    kind: ClassVar[str] = "numerics-checked"
    numerics: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRan(Event):
    """A statement that was not captured ran as Python. `delayed_ns`: within its time, for which its thread waited for a
    processor. `met`: of what is another each time, values. `fell_back`: compiled code had begun to run, and did not fit; `cut`:
    what it did not fit for, where that is known; `again`: the next run is recorded anew."""

    kind: ClassVar[str] = "statement-ran"
    reason: str  # the kind of reason: "effect", "value", ...
    said: Message
    lines: tuple[Span, ...]
    start_ns: int
    duration_ns: int
    delayed_ns: int = 0
    met: tuple[str, ...] = ()
    fell_back: bool = False
    cut: tuple[Span, ...] = ()
    again: bool = False

    @property
    def text(self) -> str:
        return str(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFrozen(Event):
    """NumPy work that touches no traced array ran once, at capture, and its result is part of the trace from now on."""

    kind: ClassVar[str] = "value-frozen"
    function: str
    what: str
    lines: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopKept(Event):
    """A loop over a Python range did not become one loop of the graph: Python ran its iterations while it was recorded."""

    kind: ClassVar[str] = "loop-kept"
    function: str
    lines: tuple[Span, ...]
    code: str  # the kind of reason: "effect", "index_value", "extents", "type", ...
    said: Message
    iterations: int

    @property
    def text(self) -> str:
        return str(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpWritten(Event):
    """A graph was written to a file because a flag asked for it."""

    kind: ClassVar[str] = "dump-written"
    path: str


@dataclass(frozen=True, slots=True)
class AsPython:
    """Calls that run as Python because that takes less time: of which function or cell, what is said of it, in clauses, of
    which lines, and what would run compiled: of each trace its function, its number and that of its executable."""

    label: ClassVar[str] = "as Python"

    function: str
    said: tuple[Message, ...]
    lines: tuple[Span, ...]
    traces: tuple[tuple[str, int, int], ...] = ()

    @property
    def text(self) -> str:
        return "; ".join(map(str, self.said))


@dataclass(frozen=True, slots=True)
class PythonStatement:
    """A statement that runs as Python at each call: what `StatementRan` says of it."""

    function: ClassVar[str] = ""

    reason: str
    said: Message
    lines: tuple[Span, ...]
    met: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.reason

    @property
    def text(self) -> str:
        return str(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledAsPython(Event):
    """A call ran as Python because that takes less time."""

    kind: ClassVar[str] = "called-as-python"
    about: AsPython
    start_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What happened in a while, for listeners that take it in bulk: calls that C functions answered, and single events."""

    calls: tuple[Calls, ...]
    events: tuple[Event, ...]


def each(calls: Calls) -> Iterator[Event]:
    """The same as events, in their order."""
    about = calls.about
    if about.as_python is not None:
        for started, ended in zip(calls.starts.tolist(), calls.words[:, native_call_log.END].tolist(), strict=True):
            yield _of_row((about, calls.cell, started, ended, None))
        return
    launches = [(launch, *(part.tolist() for part in parts)) for launch, *parts in calls.launches()]
    whole = zip(calls.starts.tolist(), calls.durations.tolist(), strict=True)
    for n, (started, duration) in enumerate(whole):
        for launch, starts, durations, kernels in launches:
            yield ClusterRan(
                cell=calls.cell, function=about.function, trace=about.trace, cluster=launch.cluster, start_ns=starts[n],
                duration_ns=durations[n], kernels_ns=tuple(kernels[n]) if any(kernels[n]) else (),
                scratch_bytes=launch.scratch_bytes,
            )  # fmt: skip
        if about.tells_call:
            yield FunctionCalled(
                cell=calls.cell, function=about.function, trace=about.trace, start_ns=started, duration_ns=duration
            )


Listener = Callable[[Event], None]
Taker = Callable[[Batch], None]

#: What happens in every run may wait so long for listeners that take it in bulk, and so many of them together.
WAIT_NS, WAITING = 250_000_000, 5000


def _fine(name: Literal["process_time", "thread_time"], clock: Callable[[], int]) -> Callable[[], int]:
    """A clock that tells microseconds; one that does not stands still."""
    return clock if time.get_clock_info(name).resolution <= 1e-6 else int


#: What this process, and this thread, has had of the processors so far.
processor_ns, thread_ns = _fine("process_time", time.process_time_ns), _fine("thread_time", time.thread_time_ns)


def had_ns() -> tuple[int, int]:
    """Both."""
    return processor_ns(), thread_ns()


#: Where Linux says of the thread that opens it how long it has run and how long it has waited for a processor.
SCHEDULE = "/proc/thread-self/schedstat"


class _Schedule:
    """What the system says of the thread that made it."""

    __slots__ = ("file", "process")

    def __init__(self) -> None:
        self.process, self.file = os.getpid(), -1
        with suppress(OSError):
            self.file = os.open(SCHEDULE, os.O_RDONLY)

    def delayed_ns(self) -> int:
        """0 where the system does not say."""
        try:
            return int(os.pread(self.file, 80, 0).split()[1]) if self.file >= 0 else 0
        except (OSError, ValueError, IndexError):
            return 0

    def __del__(self, close: Callable[[int], None] = os.close, here: Callable[[], int] = os.getpid) -> None:
        if self.file >= 0 and self.process == here():  # a forked process may have closed it, and have another file there
            with suppress(OSError):
                close(self.file)


class _Schedules(threading.local):
    now: _Schedule | None = None  # a forked process has a thread of its own

    def delayed_ns(self) -> int:
        if self.now is None or self.now.process != os.getpid():
            self.now = _Schedule()
        return self.now.delayed_ns()


_schedules = _Schedules()


class Moment(NamedTuple):
    """When something of a thread began or ended, and how long the thread had waited for a processor until then; None: nobody
    listened."""

    ns: int
    delayed_ns: int | None = None


def moment() -> Moment:
    """Now. The system is asked where somebody listens."""
    return Moment(time.perf_counter_ns(), _schedules.delayed_ns() if active() else None)


def between(began: Moment, ended: Moment) -> dict[str, Any]:
    """The times of an event that began and ended then."""
    took = ended.ns - began.ns
    delayed = 0  # who began to listen meanwhile knows but the end
    if began.delayed_ns is not None and ended.delayed_ns is not None:
        delayed = ended.delayed_ns - began.delayed_ns
    return {"start_ns": began.ns, "duration_ns": took, "delayed_ns": min(took, max(0, delayed))}


def active() -> bool:
    """Is anybody listening?"""
    return bool(_listeners) and not _muted.get()


def send(event: Event) -> None:
    """Tell every listener. A listener's own error never reaches the user's program: it is told once, as a warning, and the
    listener hears no more."""
    if _muted.get() or not _listeners:
        return
    if not busy.word.value and type(event) in FREQUENT:
        _waiting.append(event)
        if len(_waiting) >= WAITING or event.start_ns - _collected_ns > WAIT_NS:  # type: ignore[attr-defined]
            collect()
        return
    collect()
    for listener, _ in tuple(_listeners):
        _tell(listener, listener, event)


def in_bulk() -> bool:
    """Does everybody who listens take what happens in every run in bulk? Then `note` is enough."""
    return not busy.word.value


def note(about: About, start_ns: int, end_ns: int, context: Any = None) -> None:
    """What `native_call_log.note` notes, under the cell that runs."""
    waiting = native_call_log.note(about, _cell.get(), start_ns, end_ns, context)
    if waiting >= WAITING or start_ns - _collected_ns > WAIT_NS:
        collect()


def tell_of_python(about: About, start_ns: int) -> None:
    """Python has run what a note is about since then."""
    if in_bulk():
        note(about, start_ns, time.perf_counter_ns())
    elif active():
        send(_of_row((about, _cell.get(), start_ns, time.perf_counter_ns(), None)))


def collect() -> None:
    """Hand over what waits to those who take it in bulk: call it before what they have is read."""
    global _collected_ns, _is_handing
    if not _waiting and not native_call_log.has_notes() and not _is_handing:  # the last: another thread may have taken them
        return
    with locks.Released(_collecting), _collecting:
        before, _is_handing = _is_handing, True
        try:
            calls, rows = native_call_log.take()
            if not calls and not rows and not _waiting:
                return
            single = [_waiting.popleft() for _ in range(len(_waiting))]
            if rows:
                single = sorted([*single, *map(_of_row, rows)], key=_ended_ns)
            batch = Batch(tuple(calls), tuple(single))
            for listener, take in tuple(_listeners):
                if take is not None:  # who hears each event came after these
                    _tell(listener, take, batch)
            _collected_ns = time.perf_counter_ns()
        finally:
            _is_handing = before


def _of_row(row: Row) -> Event:
    about, cell, start, end, context = row
    duration = end - start
    if isinstance(said := about.as_python, PythonStatement):
        return StatementRan(
            cell=cell, reason=said.reason, said=said.said, lines=said.lines, start_ns=start, duration_ns=duration, met=said.met
        )
    if said is not None:
        return CalledAsPython(cell=cell, about=said, start_ns=start, duration_ns=duration)
    if about.tells_call:
        return FunctionCalled(cell=cell, function=about.function, trace=about.trace, start_ns=start, duration_ns=duration)
    (launch,) = about.launches
    process_ns, thread_ns, *ticks = context[-3 - len(launch.kernels) :].tolist()
    return ClusterRan(
        cell=cell, function=about.function, trace=about.trace, cluster=launch.cluster, start_ns=start, duration_ns=duration,
        kernels_ns=native_call_log.divided(duration, ticks, launch.kernels), scratch_bytes=launch.scratch_bytes,
        process_ns=process_ns, thread_ns=thread_ns,
    )  # fmt: skip


def _ended_ns(event: Any) -> int:
    return int(event.start_ns + event.duration_ns)


def _tell(listener: Listener, how: Callable[[Any], None], what: Any) -> None:
    try:
        how(what)
    except Exception as error:
        remove_listener(listener)
        warnings.warn(f"a listener to jitlab's events failed and was removed: {error!r}", RuntimeWarning, stacklevel=3)


@contextmanager
def listen(listener: Listener, take: Taker | None = None) -> Iterator[None]:
    """Call `listener` with each event, from any thread, inside the block. `take`: as for `add_listener`."""
    add_listener(listener, take)
    try:
        yield
    finally:
        remove_listener(listener)


@contextmanager
def muted() -> Iterator[None]:
    """Inside, this thread tells nobody anything: what is run for an experiment is no part of the user's program."""
    token = _muted.set(True)
    try:
        with busy:  # a C function would note its calls
            yield
    finally:
        _muted.reset(token)


def add_listener(listener: Listener, take: Taker | None = None, *, in_children: bool = True) -> None:
    """Who has `take` gets what happens in every run in bulk, some time later, and `collect` hands over the rest: compiled
    functions stay fast for it. Everybody else hears each event at once. `in_children`: in forked processes, too."""
    if not in_children:
        _in_parent.append(listener)
    collect()
    with locks.Released(busy.block), busy.block:
        _listeners.append((listener, take if native_call_log.clock() is not None else None))
        _count_listeners()


def remove_listener(listener: Listener) -> None:
    collect()
    with locks.Released(busy.block), busy.block:
        found = next((known for known in _listeners if known[0] == listener), None)
        if found is not None:
            _listeners.remove(found)
            _count_listeners()
        if listener in _in_parent:
            _in_parent.remove(listener)


def begin_cell() -> None:
    """What waits belongs to the cell before; in the new one each function is seen on the Python way once."""
    collect()
    native_call_log.renew()


def _count_listeners() -> None:
    eager = sum(take is None for _, take in _listeners)
    busy.word.value += eager - busy.listeners
    busy.listeners = eager
    native_call_log.watch(len(_listeners) > eager)


class Busy:
    """Somebody hears each event or something is being captured: while `word` is not 0, warm calls take the Python way, where
    both are looked after. C code reads the word."""

    def __init__(self) -> None:
        self.word = ctypes.c_int64(0)
        self.listeners = 0  # of the word
        self.for_all = 0  # of the word: what is so in every thread until it is taken back
        self.block = locks.shared("listeners")
        self._own = _Own()
        keep(lambda: self._own.depth, self._back_to)

    def __enter__(self) -> None:
        with locks.Released(self.block), self.block:
            self._own.depth += 1
            self.word.value += 1

    def __exit__(self, *_: object) -> None:
        with locks.Released(self.block), self.block:
            self._own.depth -= 1
            self.word.value -= 1

    def everywhere(self, more: int) -> None:
        """1: from now on, in every thread; -1: no more."""
        with locks.Released(self.block), self.block:
            self.for_all += more
            self.word.value += more

    def only_mine(self) -> None:
        """There are no other threads."""
        self.word.value = self.listeners + self.for_all + self._own.depth

    def _back_to(self, depth: int) -> None:
        with locks.Released(self.block), self.block:
            self.word.value -= self._own.depth - depth
            self._own.depth = depth


class _Own(threading.local):
    """What this thread has of the word."""

    depth = 0


class in_cell:  # noqa: N801 - it is written as a function
    """Inside, what happens is this cell's."""

    __slots__ = ("_cell", "_token")

    def __init__(self, cell: str) -> None:
        self._cell = cell

    def __enter__(self) -> None:
        self._token = _cell.set(native_call_log.named(self._cell))

    def __exit__(self, *_: object) -> None:
        _cell.reset(self._token)


def cell_variable() -> ContextVar[str]:
    """What C code asks for the cell."""
    return _cell


def _after_fork() -> None:
    """A listener of the parent alone hears nothing of the child."""
    _listeners[:] = [known for known in _listeners if known[0] not in _in_parent]
    _count_listeners()
    busy.only_mine()


#: What happens in every run.
FREQUENT = frozenset({FunctionCalled, CalledAsPython, ClusterRan, HostOperationRan, ArrayCopied, DeviceCopied, StatementRan})

busy = Busy()
_listeners: list[tuple[Listener, Taker | None]] = []
_in_parent: list[Listener] = []
_waiting: deque[Event] = deque()
_collecting = locks.shared("collecting")
_collected_ns = 0
_is_handing = False  # a thread that collects is between taking what waits and handing it over
_muted: ContextVar[bool] = variable("jitlab_muted", False)
_cell: ContextVar[str] = variable("jitlab_cell", "")
native_call_log.named(_cell.get())
native_call_log.full.append(collect)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

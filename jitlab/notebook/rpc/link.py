"""The kernel's end of the wire of docs/reference/report-format.md: one comm, events in batches, a ring for replay, a budget.

Nothing is sent while no panel is shown. Above the budget the picture lags, never the recording: events are told by their
numbers, reports of running cells less often, and `behind` says how many events the panel has not seen.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

from jitlab import events, messages
from jitlab.report.store.summary import estimated_size
from jitlab.support.native_call_log import Calls

from .budget import Budget, size_of

TARGET = "jitlab"
COMM_ID = "jitlab-v1"  # fixed: after a reload the panel listens again without asking a busy kernel for it

Message = dict[str, Any]
Send = Callable[[Message], None]
Entry = tuple[int, str, Any]  # sequence number, cell, event

ALWAYS_TOLD = {"cell-started", "cell-finished"}  # the running light, also when all others are only counted

logger = logging.getLogger(__name__)


class Link:
    """Carries events, reports, jobs and replies to the panel, in a thread of its own."""

    batch_seconds = 0.15  # leaves a third of the messages to reports and jobs
    batch_bytes = 60_000  # of the events in one message
    report_seconds = 0.25  # between two reports of a cell that is still running
    replay_seconds = 1.0  # between two replays: panels that ask too often get one answer together
    lag_seconds = 1.0  # a report younger than this is not behind
    quiet_seconds = 4.0  # after the last events; a server that drops messages above its limit counts them over 3 s
    ring_events = 20_000
    kept_reports = 256
    kept_jobs = 16  # that have ended, told again after a reload

    _attached: WeakKeyDictionary[Any, Link] = WeakKeyDictionary()

    def __init__(self, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self.epoch = uuid.uuid4().hex
        self.attached = False
        self._answer: Callable[[Any], Message] = unloaded
        self._resumed: Callable[[], None] = lambda: None
        self._switch: Callable[[bool | None], Message] = unswitched
        self._send = send
        self._clock = clock
        self._budget = Budget(self._clock)
        self._last = 0
        self._ring: deque[Entry] = deque()
        self._pending: deque[Entry] = deque()
        self._ring_count = self._pending_count = 0  # events of them
        self._unheld: Counter[tuple[str, str]] = Counter()  # pending events beyond the ring, by cell and kind
        self._heard: Counter[str] = Counter()  # events of each cell, but its start and end
        self._waiting: dict[str, float] = {}  # cells with events that no report showed, since when
        self._reports: OrderedDict[str, tuple[Message, int, int]] = OrderedDict()  # with the events it holds, and its order
        self._unsent: set[str] = set()
        self._report_sent: dict[str, tuple[float, int]] = {}  # when, and the events it held
        self._jobs: OrderedDict[str, Message] = OrderedDict()
        self._unsent_jobs: set[str] = set()
        self._replies: list[Message] = []
        self._replay_since: int | None = None
        self._replay_have: dict[str, int] = {}  # the reports that who asks has, by their marks
        self._replayed = float("-inf")
        self._batched = float("-inf")
        self._assured: float | None = None  # when the number of the last event is told once more
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def attach(cls, kernel: Any) -> Link:
        """The link of this kernel; the first call opens the comm and says hello."""
        link = cls._attached.get(kernel)
        if link is None:
            from comm import create_comm

            link = cls(lambda message: comm.send(message))
            comm = create_comm(target_name=TARGET, comm_id=COMM_ID, data=link.hello())
            keep_subshell(comm)
            comm.on_msg(lambda message: link.receive(message["content"]["data"]))
            cls._attached[kernel] = link
        return link

    def load(self, answer: Callable[[Any], Message], resumed: Callable[[], None]) -> None:
        """Who answers requests, and who is told that a panel is shown. Neither is called with a lock held."""
        self._answer, self._resumed = answer, resumed

    def has_switch(self, switch: Callable[[bool | None], Message]) -> None:
        """Who turns `%jit on` and off (None: leaves it) and says what it is then."""
        self._switch = switch

    def unload(self) -> None:
        """The extension goes; the comm stays for when it is loaded again, and says so to who asks."""
        self._answer, self._resumed, self._switch = unloaded, lambda: None, unswitched
        self.forget()
        self.tell_switch()

    def tell_switch(self, on: bool | None = None) -> None:
        """Whether `%jit` is on. Told also where no panel is shown: the notebook's toolbar shows it."""
        state = self._switch(on)
        with self._lock:
            self._replies = [reply for reply in self._replies if reply["op"] != "switch"] + [state]
        self._start()
        self._wake.set()

    # ---- what happens in the kernel
    def emit(self, cell: str, event: events.Event | Mapping[str, Any]) -> None:
        """Queues one event; the caller knows the cell, because the sending thread can't."""
        self._queue(cell, event, 1, kind_of(event) not in ALWAYS_TOLD)

    def emit_calls(self, cell: str, calls: Calls) -> None:
        """The same for calls that a C function noted; they become events when they are told."""
        bulk = Bulk(calls)
        self._queue(cell, bulk, len(bulk), True)

    def _queue(self, cell: str, what: Any, number: int, is_counted: bool) -> None:
        with self._lock:
            self._last += number
            entry = (self._last, cell, what)
            self._ring.append(entry)
            self._ring_count += number
            while self._ring_count > self.ring_events:
                self._ring_count -= number_of(self._ring.popleft())
            if is_counted:
                self._heard[cell] += number
            if not self.attached:
                return
            if cell not in self._waiting:
                self._waiting[cell] = self._clock()
            self._pending.append(entry)
            self._pending_count += number
            while self._pending_count > self.ring_events:
                gone = self._pending.popleft()
                self._pending_count -= number_of(gone)
                for kind, times in kinds_of(gone).items():
                    self._unheld[gone[1], kind] += times
        if not self._wake.is_set():
            self._wake.set()

    def mark(self, cell: str) -> int:
        """How many events of a cell there were; taken before its report is made."""
        return self._heard[cell]

    def report(self, cell: str, report: Message, mark: int | None = None, order: int = 0) -> None:
        """Keeps the newest report of a cell; sends it soon when the cell has ended, else at most every 250 ms. `mark`: how many
        of the cell's events it holds; `order`: cells that ran later have a higher one."""
        with self._lock:
            self._reports[cell] = report, self._heard[cell] if mark is None else mark, order
            self._reports.move_to_end(cell)
            while len(self._reports) > self.kept_reports:
                forgotten = self._reports.popitem(last=False)[0]
                self._unsent.discard(forgotten)
                self._waiting.pop(forgotten, None)
                self._report_sent.pop(forgotten, None)
            if self.attached:
                self._unsent.add(cell)
        if self.attached:
            self._wake.set()

    def job(self, state: Message) -> None:
        """Keeps the newest state of a job, and sends it."""
        with self._lock:
            self._jobs[state["id"]] = state
            ended = [id for id, job in self._jobs.items() if job["state"] in ("done", "failed", "cancelled")]
            for id in ended[: -self.kept_jobs]:
                del self._jobs[id]
                self._unsent_jobs.discard(id)
            if self.attached:
                self._unsent_jobs.add(state["id"])
        if self.attached:
            self._wake.set()

    def forget(self) -> None:
        """Reports of cells that were cleared are not told again."""
        with self._lock:
            self._reports.clear()
            self._unsent.clear()
            self._report_sent.clear()
            self._waiting.clear()
            self._heard.clear()

    def hello(self) -> Message:
        return {"op": "hello", "epoch": self.epoch, "last": self._last}

    # ---- what the panel says
    def receive(self, message: Any) -> None:
        """Takes a panel's message. It comes in a subshell's thread while user code may run, so it only notes it; a request is
        answered in that thread, with no lock held."""
        if not isinstance(message, dict):
            return
        match message.get("op"):
            case "resume":
                known = message.get("since") if message.get("epoch") == self.epoch else 0
                since = known if isinstance(known, int) and not isinstance(known, bool) else 0
                have = marks_of(message.get("have")) if message.get("epoch") == self.epoch else {}
                with self._lock:
                    if self._replay_since is not None:  # several panels: they get one answer together
                        since = min(since, self._replay_since)
                        have = {cell: mark for cell, mark in have.items() if self._replay_have.get(cell) == mark}
                    self._replay_since, self._replay_have = since, have
                    self.attached = True
                self._resumed()
            case "pause":
                with self._lock:
                    self._pause()
            case "request":
                id = message.get("id")
                reply = {
                    "op": "reply",
                    "id": id if isinstance(id, (int, str)) else None,
                    "body": self._reply(message.get("body")),
                }
                with self._lock:
                    self._replies.append(reply)
            case "switch":
                on = message.get("on")
                self.tell_switch(on if isinstance(on, bool) else None)
            case _:
                return
        self._start()
        self._wake.set()

    def _reply(self, body: Any) -> Message:
        match body:
            case {"want": "events", "first": int(first), "last": int(last)}:
                return {"events": self.events_between(first, last)}
        return self._answer(body)

    def events_between(self, first: int, last: int) -> list[Message]:
        """Events that were told by their number only, as many of them as one message holds and the ring still has."""
        with self._lock:
            entries = [entry for entry in self._ring if first <= entry[0] and entry[0] - number_of(entry) < last]
        told, size = [], 0
        for entry in (one for many in entries for one in singles(many)):
            if not first <= entry[0] <= last:
                continue
            event = {**light(entry), "cell": entry[1]}
            size += size_of(event)
            if size > self.batch_bytes:
                break
            told.append(event)
        return told

    def _pause(self) -> None:
        """Nobody looks: nothing is sent until a panel resumes. One that is still shown is told, and does so at once."""
        if self.attached:
            self._replies.append({"op": "paused"})
        self.attached = False
        self._assured = None
        self._replay_since = None
        self._drop_pending()
        self._unsent.clear()
        self._unsent_jobs.clear()
        self._waiting.clear()

    def _drop_pending(self) -> None:
        self._pending.clear()
        self._pending_count = 0
        self._unheld.clear()

    # ---- the thread
    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jitlab-link", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        wait = None
        while True:
            self._wake.wait(wait)
            self._wake.clear()
            wait = self.flush()
            time.sleep(self.batch_seconds / 2)

    def flush(self) -> float | None:
        """Sends what is due; the seconds until something else is, or None when only a new event can make it so."""
        with self._lock:
            self._budget.fill()
            messages, self._replies = self._replies, []
            for message in messages:
                self._budget.bytes -= size_of(message)
            waits: list[float] = []
            messages += self._replay(waits)
            for id in [id for id in self._jobs if id in self._unsent_jobs]:
                if not self._budget.allows():
                    waits.append(self._budget.seconds_until())
                    break
                self._unsent_jobs.discard(id)
                messages.append(self._spent(self._jobs[id]))
            messages += self._due_reports(waits, running=False)
            messages += self._due_batch(waits)
            messages += self._due_reports(waits, running=True)
            messages += self._assurance(any(message["op"] == "batch" for message in messages), waits)
        for message in messages:
            try:
                self._send(message)
            except Exception:  # one message that can't be sent must not silence the rest
                logger.warning("jitlab could not send a %s to its panel", message["op"], exc_info=True)
        return max(0.0, min(waits)) if waits else None

    def _spent(self, message: Message) -> Message:
        self._budget.spend(size_of(message))
        return message

    def _replay(self, waits: list[float]) -> list[Message]:
        """A panel asks for what it missed: a hello, the events since then, the jobs; the reports follow, newest first."""
        if self._replay_since is None:
            return []
        due_in = self._replayed + self.replay_seconds - self._clock()
        if due_in > 0:
            waits.append(due_in)
            return []
        missed = [entry for entry in self._ring if entry[0] > self._replay_since]
        self._drop_pending()  # the ring held them too
        had = {cell: mark for cell, (_, mark, _) in self._reports.items() if self._replay_have.get(cell) == mark}
        self._unsent.update(cell for cell in self._reports if cell not in had)
        self._unsent_jobs.update(self._jobs)
        self._report_sent = {cell: (float("-inf"), mark) for cell, mark in had.items()}
        self._waiting = {cell: self._clock() for cell, heard in self._heard.items() if heard > had.get(cell, 0)}
        self._replay_since, self._replayed = None, self._clock()
        hello = self._spent({**self.hello(), "behind": 0})
        return [hello, self._spent(self._batch(missed))] if missed else [hello]

    def _due_batch(self, waits: list[float]) -> list[Message]:
        """All events that wait, in one message."""
        if not self._pending:
            return []
        due_in = max(self._batched + self.batch_seconds - self._clock(), 0.0 if self._budget.messages >= 1 else 0.1)
        if due_in > 1e-9:
            waits.append(due_in)
            return []
        self._batched = self._clock()
        message = self._batch(self._pending, self._unheld)
        self._drop_pending()
        return [self._spent(message)]

    def _assurance(self, told: bool, waits: list[float]) -> list[Message]:
        """Once it is quiet, how many events there were: a server may have dropped the last ones, and no later one shows it."""
        if told:
            self._assured = self._clock() + self.quiet_seconds
        if self._assured is None:
            return []
        due_in = self._assured - self._clock()
        if due_in > 0:
            waits.append(due_in)
            return []
        self._assured = None
        return [self._spent({"op": "batch", "cell": None, "first": self._last + 1, "last": self._last, "events": []})]

    def _batch(self, entries: Iterable[Entry], unheld: Mapping[tuple[str, str], int] | None = None) -> Message:
        """One message for all these events. Those that are too many for the budget are told by their numbers, by cell and
        kind; `events` has a `cell` where it is not the message's."""
        entries = list(entries)
        cell = entries[-1][1]
        room = min(self.batch_bytes, max(int(self._budget.spare), 2000))
        told: list[Message] = []
        counts: dict[str, Counter[str]] = {}
        for (of, kind), number in (unheld or {}).items():
            counts.setdefault(of, Counter())[kind] += number
        size = 0
        for entry in entries:
            left = kinds_of(entry)
            for one in singles(entry):
                kind = kind_of(one[2])
                if size <= room:
                    event = light(one) if one[1] == cell else {**light(one), "cell": one[1]}
                    size += size_of(event)
                if size > room and kind not in ALWAYS_TOLD:
                    break  # it and the others of the same C function are counted
                told.append(event if size <= room else {**light(one), "cell": one[1]})
                left[kind] -= 1
            if any(left.values()):
                counts.setdefault(entry[1], Counter()).update(+left)
        first = entries[0][0] - number_of(entries[0]) + 1 - sum((unheld or {}).values())
        message: Message = {"op": "batch", "cell": cell, "first": first, "last": entries[-1][0], "events": told}
        if counts:
            message["counts"] = {of: dict(numbers) for of, numbers in counts.items()}
        return {**message, "behind": self._behind()}

    def _due_reports(self, waits: list[float], running: bool) -> list[Message]:
        """Reports that may go now; of ended cells first, those that ran last first."""
        messages: list[Message] = []
        waiting = [(cell, *self._reports[cell]) for cell in self._reports if cell in self._unsent]
        for cell, report, mark, order in sorted(waiting, key=lambda entry: -entry[3]):
            if is_running(report) != running:
                continue
            due_in = self._report_sent.get(cell, (float("-inf"), 0))[0] + self.report_seconds - self._clock()
            due_in = due_in if running else 0.0
            if due_in > 0 or not self._budget.allows():
                waits.append(max(due_in, self._budget.seconds_until()))
                continue
            self._unsent.discard(cell)
            self._report_sent[cell] = self._clock(), mark
            if self._heard[cell] > mark:
                self._waiting[cell] = self._clock()
            else:
                self._waiting.pop(cell, None)
            self._budget.spend(estimated_size(report))
            messages.append(
                {"op": "report", "cell": cell, "report": report, "mark": mark, "order": order, "behind": self._behind()}
            )
        return messages

    def _behind(self) -> int:
        """How many events the panel's pictures don't show yet, of cells where that has been so for more than a second."""
        now, behind = self._clock(), 0
        for cell, since in self._waiting.items():
            if now - since > self.lag_seconds:
                behind += max(0, self._heard[cell] - self._report_sent.get(cell, (0.0, 0))[1])
        return behind


class Bulk:
    """Calls that a C function noted, in the place of their events."""

    __slots__ = ("calls",)

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def __len__(self) -> int:
        return sum(self.kinds().values())

    def kinds(self) -> Counter[str]:
        about = self.calls.about
        calls = len(self.calls)
        if about.as_python is not None:
            return Counter({events.CalledAsPython.kind: calls})
        found = Counter({events.ClusterRan.kind: calls * len(about.launches)})
        if about.tells_call:
            found[events.FunctionCalled.kind] = calls
        return found


def number_of(entry: Entry) -> int:
    return len(entry[2]) if isinstance(entry[2], Bulk) else 1


def kinds_of(entry: Entry) -> Counter[str]:
    return entry[2].kinds() if isinstance(entry[2], Bulk) else Counter({kind_of(entry[2]): 1})


def singles(entry: Entry) -> Iterator[Entry]:
    """An entry of noted calls as one of each event."""
    if not isinstance(entry[2], Bulk):
        yield entry
        return
    first = entry[0] - len(entry[2]) + 1
    for n, event in enumerate(events.each(entry[2].calls)):
        yield first + n, entry[1], event


def kind_of(event: events.Event | Mapping[str, Any]) -> str:
    return event["kind"] if isinstance(event, Mapping) else event.kind


def light(entry: Entry) -> Message:
    """An event as it goes over the wire. A plan, and what is said of calls as Python, are not sent: the report brings them."""
    seq, _, event = entry
    if isinstance(event, Mapping):
        return {**event, "seq": seq}
    values = ((f.name, getattr(event, f.name)) for f in fields(event) if f.name not in ("plan", "cell", "about"))
    told = {name: value.to_json() if isinstance(value, (messages.Message, events.Event)) else value for name, value in values}
    return {"kind": event.kind, **told, "seq": seq}


def unloaded(body: Any) -> Message:
    return {"error": "The kernel has unloaded jitlab. Try: %load_ext jitlab."}


def unswitched(on: bool | None) -> Message:
    return {"op": "switch", "on": None}


def marks_of(have: Any) -> dict[str, int]:
    """What a panel says it has; nothing when that is no object of numbers."""
    if not isinstance(have, dict) or len(have) > 1000:
        return {}
    return {cell: mark for cell, mark in have.items() if isinstance(cell, str) and isinstance(mark, int)}


def is_running(report: Mapping[str, Any]) -> bool:
    cell = report.get("cell")
    return isinstance(cell, Mapping) and bool(cell.get("running"))


def running_cell(kernel: Any) -> str | None:
    """The id of the notebook cell whose code runs now; call it in the thread that runs the cell."""
    metadata = (kernel.get_parent("shell") or {}).get("metadata") or {}
    cell = metadata.get("cellId")
    return cell if isinstance(cell, str) else None


def keep_subshell(comm: Any) -> None:
    """ipykernel 7.4 routes what the panel sends to the shell that sent last, which is the one the cell blocks."""
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda data, default: default

"""The kernel's end of the wire of docs/report-format.md: one comm, events in batches, a ring for replay."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary

TARGET = "jitlab"
COMM_ID = "jitlab-v1"  # fixed: after a reload the panel listens again without asking a busy kernel for it

Message = dict[str, Any]
Send = Callable[[Message], None]

logger = logging.getLogger(__name__)


class Link:
    """Carries events and reports to the panel, in a thread of its own. Silent until a panel resumes, and while paused."""

    batch_seconds = 0.05
    batch_events = 2000
    report_seconds = 0.25  # between two reports of a cell that is still running
    replay_seconds = 1.0  # between two replays: panels that ask too often get one answer together
    ring_events = 20_000
    kept_reports = 256

    _attached: WeakKeyDictionary[Any, Link] = WeakKeyDictionary()

    def __init__(self, send: Send) -> None:
        self.epoch = uuid.uuid4().hex
        self.attached = False
        self._send = send
        self._last = 0
        self._ring: deque[tuple[str | None, Message]] = deque(maxlen=self.ring_events)
        self._pending: deque[tuple[str | None, Message]] = deque(maxlen=self.ring_events)
        self._reports: OrderedDict[str | None, Message] = OrderedDict()
        self._unsent: set[str | None] = set()
        self._report_sent: dict[str | None, float] = {}
        self._replies: list[Message] = []
        self._replay_since: int | None = None
        self._replayed = float("-inf")
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

    def emit(self, cell_id: str | None, event: Mapping[str, Any]) -> None:
        """Queues one event; the caller knows the cell, because the sending thread can't."""
        with self._lock:
            self._last += 1
            entry = (cell_id, {**event, "seq": self._last})
            self._ring.append(entry)
            if self.attached:
                self._pending.append(entry)
        if self.attached:
            self._wake.set()

    def report(self, cell_id: str | None, report: Message) -> None:
        """Keeps the newest report of a cell; sends it at once when the cell has ended, else at most every 250 ms."""
        with self._lock:
            self._reports[cell_id] = report
            self._reports.move_to_end(cell_id)
            while len(self._reports) > self.kept_reports:
                forgotten, _ = self._reports.popitem(last=False)
                self._unsent.discard(forgotten)
                self._report_sent.pop(forgotten, None)
            if self.attached:
                self._unsent.add(cell_id)
        if self.attached:
            self._wake.set()

    def hello(self) -> Message:
        return {"op": "hello", "epoch": self.epoch, "last": self._last}

    def receive(self, message: Any) -> None:
        """Takes a panel's message. It comes in a subshell's thread while user code may run, so it only notes it."""
        if not isinstance(message, dict):
            return
        with self._lock:
            if message.get("op") == "resume":
                known = message.get("since") if message.get("epoch") == self.epoch else 0
                since = known if isinstance(known, int) else 0
                self._replay_since = since if self._replay_since is None else min(since, self._replay_since)
                self.attached = True
            elif message.get("op") == "pause":
                self._pause()
            elif message.get("op") == "request":
                body = self._answer(message.get("body"))
                self._replies.append({"op": "reply", "id": message.get("id"), "body": body})
            else:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jitlab-link", daemon=True)
                self._thread.start()
        self._wake.set()

    def _pause(self) -> None:
        """Nobody looks: nothing is sent until a panel resumes. One that is still shown is told, and does so at once."""
        if self.attached:
            self._replies.append({"op": "paused"})
        self.attached = False
        self._replay_since = None
        self._pending.clear()
        self._unsent.clear()

    def _answer(self, body: Any) -> Message:
        match body:
            case {"want": "report", "cell": str(cell)} if cell in self._reports:
                return {"report": self._reports[cell]}
            case {"want": "report", "cell": str()}:
                return {"error": "jitlab has no report of this cell."}
            case {"want": "cells"}:
                return {"cells": list(self._reports)}
        return {"error": 'jitlab answers {"want": "report", "cell": id} and {"want": "cells"}.'}

    def _run(self) -> None:
        wait = None
        while True:
            self._wake.wait(wait)
            self._wake.clear()
            wait = self._flush()
            time.sleep(self.batch_seconds)

    def _flush(self) -> float | None:
        """Sends what is due; the seconds until something else is, or None when only a new event can make it so."""
        now = time.monotonic()
        messages: list[Message] = []
        with self._lock:
            replay_in = self._replayed + self.replay_seconds - now
            if self._replay_since is not None and replay_in <= 0:
                missed = [entry for entry in self._ring if entry[1]["seq"] > self._replay_since]
                messages += [self.hello(), *self._batches(missed)]
                self._pending.clear()  # the ring held them too
                self._unsent.update(self._reports)
                self._report_sent.clear()
                self._replay_since = None
                self._replayed = now
            messages += self._batches(self._pending)
            self._pending.clear()
            waits = [replay_in] if self._replay_since is not None else []
            for cell in [cell for cell in self._reports if cell in self._unsent]:
                report = self._reports[cell]
                due_in = self._report_sent.get(cell, float("-inf")) + self.report_seconds - now
                if due_in > 0 and is_running(report):
                    waits.append(due_in)
                    continue
                messages.append({"op": "report", "cell": cell, "report": report})
                self._unsent.discard(cell)
                self._report_sent[cell] = now
            messages += self._replies
            self._replies = []
        for message in messages:
            try:
                self._send(message)
            except Exception:  # one message that can't be sent must not silence the rest
                logger.warning("jitlab could not send a %s to its panel", message["op"], exc_info=True)
        return max(0.0, min(waits)) if waits else None

    def _batches(self, entries: Iterable[tuple[str | None, Message]]) -> list[Message]:
        batches = []
        for cell, group in groupby(entries, key=lambda entry: entry[0]):
            events = [event for _, event in group]
            for start in range(0, len(events), self.batch_events):
                part = events[start : start + self.batch_events]
                first, last = part[0]["seq"], part[-1]["seq"]
                batches.append({"op": "batch", "cell": cell, "first": first, "last": last, "events": part})
        return batches


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

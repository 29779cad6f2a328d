"""How far the compiler is, for who waits for a cell: told to the panel as a job that can be cancelled."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from jitlab.capture.effort import Wait
from jitlab.messages import text

if TYPE_CHECKING:
    from jitlab.notebook.cell_session import CellRun, Session

SAID_AFTER = 1.0  # seconds of a run, until it is told how far the compiler is
SAID_EACH = 0.25
TICK = 1.0  # so often it is told again, with its seconds: one kernel may compile for long


class Waiting(Wait):
    """One run of a cell. Its cancelling comes from another thread than the cell's."""

    def __init__(self, session: Session, run: CellRun) -> None:
        self.session, self.run = session, run
        self.ticket = f"compile-{run.number}"
        self.began = self.said = time.monotonic()
        self.is_told = False
        self.latest: tuple[str, int, int] | None = None
        self.over: threading.Event | None = None  # of the thread that ticks, which begins when there is something to tell
        self.saying = threading.RLock()

    def told(self, what: str, done: int, of: int) -> None:
        self.latest = what, done, of
        if self.over is None:
            self.over = threading.Event()
            threading.Thread(target=self._tick_on, args=(self.over,), name="jitlab-waiting", daemon=True).start()
        self.tell(SAID_EACH)

    def _tick_on(self, over: threading.Event) -> None:
        while not over.wait(TICK):
            self.tell(TICK)

    def tell(self, at_most_each: float) -> None:
        """How far it is, unless that is too early, or was told a moment ago."""
        with self.saying:
            now, latest = time.monotonic(), self.latest
            is_over = latest is None or self.over is None or self.over.is_set()
            if is_over or now - self.began < SAID_AFTER or (self.is_told and now - self.said < at_most_each):
                return
            assert latest is not None
            self.said, self.is_told = now, True
            what, done, of = latest
            said = text(f"waiting.of_{what}", title=self.run.title, done=done, of=of)
            seconds = int(now - self.began)
            self.say("running", text("waiting.so_far", said=said, seconds=seconds) if seconds > 1 else said, (done, of))

    def stop(self) -> bool:
        """Nothing more is compiled in this run; False when that was asked before."""
        if self.is_stopped:
            return False
        with self.saying:
            self.is_stopped, self.latest = True, None
            self.say("running", text("waiting.stopping", title=self.run.title), None)
            self.is_told = True
        return True

    def ended(self) -> None:
        with self.saying:
            if self.over is not None:
                self.over.set()
        if self.is_told:
            self.say("cancelled" if self.is_stopped else "done", text("waiting.ended", title=self.run.title), None)

    def say(self, state: str, title: str, progress: tuple[int, int] | None) -> None:
        link = self.session.link
        if link is not None:
            link.job(
                {
                    "op": "job", "id": self.ticket, "cell": self.run.id, "state": state, "title": title, "kind": "compile",
                    "waits_for": None, "progress": progress, "estimate_seconds": None, "result": None, "error": None,
                    "can_continue": False,
                }
            )  # fmt: skip


class Measuring(Waiting):
    """NumPy, measured beside a cell that has ended. Who sees no panel is told once that it is waited for, and for how long."""

    def __init__(self, session: Session, run: CellRun, limit_seconds: float) -> None:
        super().__init__(session, run)
        self.ticket, self.limit, self.is_noted = f"measure-{run.number}", limit_seconds, False

    def stop(self) -> bool:
        was_stopped, self.is_stopped = self.is_stopped, True
        return not was_stopped

    def between(self, done: int, total: int) -> None:
        """Before each round; raises where no more than those that were measured are wanted."""
        self.told("rounds", done, total)
        if self.is_stopped and done:
            raise KeyboardInterrupt

    def asked(self) -> bool:
        """Shall it end? Asked by a thread that looks at the clock while NumPy's first run takes its time."""
        if not self.is_noted and time.monotonic() - self.began >= SAID_AFTER:
            self.is_noted = self.is_told = True
            self.say("running", text("waiting.numpy", title=self.run.title), None)
            print(text("waiting.numpy_note", seconds=self.limit), file=sys.stderr, flush=True)
        return self.is_stopped


__all__ = ["Measuring", "Waiting"]

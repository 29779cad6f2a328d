"""Jobs: long work that a user asked for (what-if, sweep, measure, check), in one thread, only while no cell runs.

A job works in *rounds* and calls `checkpoint` between them. A cell that starts waits for the round that is being run, no
longer: the job stops there, goes back into the queue, and begins again when the cell has ended.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from itertools import count
from typing import Any

from jitlab import events
from jitlab.errors import JitlabError
from jitlab.support.lazy_dataclass import dataclass

Json = dict[str, Any]
Tell = Callable[[Json], object]
SoFar = Callable[[dict[str, Any]], Json | None]

KINDS = ("whatif", "sweep", "measure", "check")
MOST_QUEUED = 20  # a user does not wait for more
MOST_UNFINISHED = 3  # each keeps copies of its inputs
KEPT = 64  # ended jobs whose last state can still be told
CELL = "a job of jitlab's panel"  # events under it belong to no cell

logger = logging.getLogger(__name__)


class Preempted(BaseException):
    """A cell starts: the job goes back into the queue. No error, so that no `except Exception` keeps it."""


class Cancelled(BaseException):
    """The user wants no answer any more, or the kernel's session ends."""


class Refused(JitlabError, RuntimeError):
    """A job that can't be taken, or has to end without a result: the sentence says why and what to try."""


@dataclass(eq=False)
class Job:
    """One piece of work and its state, as docs/reference/report-format.md has it."""

    ticket: str
    kind: str
    cell: str
    title: str
    run: Callable[[JobContext], Json]
    estimate: float | None
    state: str = "queued"
    progress: tuple[int, int] | None = None
    result: Json | None = None
    error: str | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    cancelled: bool = False
    so_far: SoFar | None = None  # what a job that was cancelled has found; it can then be continued
    unfinished: bool = False  # ended, and can be continued
    continued: int = 0

    @property
    def has_ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


class JobContext:
    """What a running job sees of the kernel."""

    def __init__(self, jobs: Jobs, job: Job) -> None:
        self._jobs = jobs
        self._job = job
        self.cell = job.cell
        self.memory = job.memory  # outlives a pause: what was built and measured need not be made again
        self.continued = job.continued  # times that a user asked for more

    def checkpoint(self) -> None:
        """Call it between two rounds. Raises Preempted when a cell wants to start, Cancelled when nobody waits any more."""
        self._jobs._checkpoint(self._job)

    def progress(self, done: int, total: int) -> None:
        """Say how far the job is; the panel hears of it."""
        self._jobs._progress(self._job, done, total)

    def is_due(self) -> bool:
        """Would `checkpoint` raise? Another thread asks, where a round may take long."""
        return self._jobs._is_due(self._job)

    def between(self, done: int, total: int) -> None:
        """Both of them, for work that asks between its rounds."""
        self.progress(done, total)
        self.checkpoint()

    def is_unfinished(self) -> None:
        """Say that the result is not all: the job keeps its memory when it ends, and can be continued."""
        self._job.unfinished = True

    def estimate(self, seconds: float) -> None:
        """Say how long the whole job takes, once it is known."""
        self._job.estimate = seconds

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Work that touches nothing of the user's (compiling a plan): a cell that starts meanwhile does not wait for it, and
        the job pauses when the block has ended."""
        self.checkpoint()
        with self._jobs._aside():
            yield
        self.checkpoint()


class Jobs:
    """The queue of one session. `tell` gets the state of a job at each change and must not wait."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._numbers = count(1)
        self._cells: list[str | None] = []  # those that run, the innermost last
        self._in_round = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    def submit(
        self, kind: str, cell: str, title: str, run: Callable[[JobContext], Json], estimate: float | None = None,
        so_far: SoFar | None = None,
    ) -> str:  # fmt: skip
        """Queue a job and return its ticket. `run` gets a JobContext and returns the result as JSON; an error that it raises
        becomes the job's sentence. `estimate` is in seconds. `so_far`: of its memory, what it has when it is cancelled."""
        if kind not in KINDS:
            raise ValueError(f"there is no kind of job {kind!r}: {', '.join(KINDS)}")
        with self._changed:
            if self._stopped:
                raise Refused("The kernel has unloaded jitlab.", hint="%load_ext jitlab")
            if sum(not job.has_ended for job in self._jobs.values()) >= MOST_QUEUED:
                raise Refused(f"{MOST_QUEUED} measurements wait already.", hint="cancel one, or wait for them to end")
            job = Job(f"job-{next(self._numbers)}", kind, cell, title, run, estimate, so_far=so_far)
            self._jobs[job.ticket] = job
            self._forget()
            self._queue(job)
        return job.ticket

    def resume(self, ticket: str) -> None:
        """Continue a job that ended before it had all; what it has found stays."""
        with self._changed:
            job = self._jobs.get(ticket)
            if self._stopped or job is None or not job.unfinished:
                raise Refused("There is nothing left to continue: what it had measured is no longer kept.", hint="ask again")
            job.state, job.cancelled, job.unfinished, job.error = "queued", False, False, None
            job.progress, job.continued = None, job.continued + 1
            self._jobs.move_to_end(ticket)
            self._queue(job)

    def _queue(self, job: Job) -> None:
        self._say(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="jitlab-jobs", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def cancel(self, ticket: str) -> bool:
        """End a job: at once when it waits, at its next checkpoint when it runs. False when there is none to end."""
        with self._changed:
            job = self._jobs.get(ticket)
            if job is None or job.has_ended or job.cancelled:
                return False
            job.cancelled = True
            if job.state == "queued":
                self._end(job, "cancelled")
        return True

    def cell_started(self, title: str | None) -> None:
        """A cell starts: returns when no round of a job is being run. `title` is "In [9]"; None for a request without one."""
        with self._changed:
            self._cells.append(title)
            self._changed.wait_for(lambda: not self._in_round)
            for job in self._jobs.values():
                if job.state == "queued":
                    self._say(job)

    def cell_ended(self) -> None:
        """The cell that started last has ended; with the outermost, jobs go on."""
        with self._changed:
            if self._cells:
                self._cells.pop()
            if not self._cells:
                for job in self._jobs.values():
                    if job.state == "queued":
                        self._say(job)
            self._changed.notify_all()

    def states(self) -> list[Json]:
        """The state of each job that has not ended, for a panel that has just come."""
        with self._changed:
            return [self._json(job) for job in self._jobs.values() if not job.has_ended]

    def is_worker(self) -> bool:
        """Is this the thread in which jobs run? What happens in it is no cell's."""
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def stop(self, seconds: float = 2.0) -> None:
        """End all jobs; waits for the round that is being run, at most so many seconds."""
        with self._changed:
            self._stopped = True
            for job in self._jobs.values():
                if not job.has_ended:
                    job.cancelled = True
                    if job.state == "queued":
                        self._end(job, "cancelled")
                elif job.unfinished:
                    self._let_go(job)
            self._changed.notify_all()
        if self._thread is not None and not self.is_worker():
            self._thread.join(seconds)

    # ---- the worker
    def _work(self) -> None:
        with events.in_cell(CELL):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._stopped or (not self._cells and self._next() is not None))
                    job = self._next()
                    if self._stopped or job is None:
                        return
                    job.state = "running"
                    self._in_round = True
                    self._say(job)
                self._run(job)

    def _run(self, job: Job) -> None:
        state, result, error = "done", None, None
        try:
            result = job.run(JobContext(self, job))
        except Preempted:
            state = "queued"
        except Cancelled:
            state = "cancelled"
        except JitlabError as raised:
            state, error = "failed", sentence_of(raised)
        except BaseException as raised:  # whatever the user's own program raises while it is replayed
            state, error = "failed", f"{job.title}: {type(raised).__name__}: {raised}"[:1000]
            logger.info("a job failed", exc_info=raised)
        with self._changed:
            self._in_round = False
            if state == "queued" and not job.cancelled:
                job.state, job.progress = "queued", None
                self._say(job)
            else:
                job.result, job.error = result, error
                self._end(job, "cancelled" if state == "queued" else state)
            self._changed.notify_all()

    def _is_due(self, job: Job) -> bool:
        return job.cancelled or self._stopped or bool(self._cells)

    def _checkpoint(self, job: Job) -> None:
        with self._changed:
            if job.cancelled or self._stopped:
                raise Cancelled
            if self._cells:
                raise Preempted

    @contextmanager
    def _aside(self) -> Iterator[None]:
        with self._changed:
            self._in_round = False
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._in_round = True

    def _progress(self, job: Job, done: int, total: int) -> None:
        with self._changed:
            if job.progress != (done, total):
                job.progress = (done, total)
                self._say(job)

    # ---- with the lock held
    def _next(self) -> Job | None:
        return next((job for job in self._jobs.values() if job.state == "queued"), None)

    def _end(self, job: Job, state: str) -> None:
        job.state = state
        if state == "cancelled" and job.so_far is not None and not self._stopped:
            job.result = job.so_far(job.memory)
            job.unfinished = job.result is not None
        kept = [known for known in self._jobs.values() if known.unfinished and known.has_ended and known is not job]
        for old in kept[: len(kept) - MOST_UNFINISHED + 1] if job.unfinished else ():
            self._let_go(old)
            self._say(old)
        if not job.unfinished:
            self._let_go(job)
        self._say(job)

    @staticmethod
    def _let_go(job: Job) -> None:
        """Of what it held of the user's arrays."""
        job.memory.clear()
        job.run, job.so_far, job.unfinished = _nothing, None, False

    def _forget(self) -> None:
        ended = [ticket for ticket, job in self._jobs.items() if job.has_ended]
        for ticket in ended[:-KEPT]:
            del self._jobs[ticket]

    def _say(self, job: Job) -> None:
        try:
            self._tell(self._json(job))
        except Exception:
            logger.warning("jitlab could not tell the state of a job", exc_info=True)

    def _json(self, job: Job) -> Json:
        waits_for = next((title for title in reversed(self._cells) if title), None) if job.state == "queued" else None
        return {
            "op": "job", "id": job.ticket, "cell": job.cell, "state": job.state, "title": job.title, "kind": job.kind,
            "waits_for": waits_for, "progress": list(job.progress) if job.progress else None,
            "estimate_seconds": job.estimate, "result": job.result, "error": job.error,
            "can_continue": job.unfinished,
        }  # fmt: skip


def sentence_of(error: JitlabError) -> str:
    """An error in one line: what, why, and what to try."""
    what, why, hint = (" ".join(part.split()).rstrip(".") for part in (error.what, error.why, error.hint))
    text = f"{what}: {why}." if why else f"{what}."
    return f"{text} Try: {hint}." if hint else text


def _nothing(context: JobContext) -> Json:
    return {}

"""How much work it may be to capture and compile a program that nobody asked to compile: counted, never timed, so that what is
too much is so each time.

What a call has that would be more runs as Python.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from jitlab.errors import Unfit
from jitlab.ir import Node
from jitlab.messages import Message
from jitlab.ops.base import Elementwise

#: What it takes, about, to capture and compile: a piece, an element by element operation, another operation, a Python number, a
#: call, a guard, an item that is read, an item that is given back.
CAPTURE_NS, ELEMENTWISE_NS, OPERATION_NS = 2_000_000, 400_000, 1_000_000
NUMBER_NS, CALL_NS, GUARD_NS, ITEM_NS, RESULT_NS = 20_000, 5_000, 60_000, 2_000, 10_000
#: A call that is captured as a whole may take so long, and its pieces as long again.
MOST_NS = 1_000_000_000


def effort_of(nodes: Iterable[Node]) -> int:
    """What it takes to compile operations."""
    return sum(ELEMENTWISE_NS if isinstance(node.op, Elementwise) else OPERATION_NS for node in nodes if node.inputs)


#: Why what would take more is left to Python: the code, and a message.
TOO_MUCH = "budget", Message("refused.too_much")


class Effort:
    """What captures may still take."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_NS

    def begins(self) -> bool:
        """May another piece be captured?"""
        self.left -= CAPTURE_NS
        return self.left > 0

    @property
    def spent(self) -> int:
        return MOST_NS - self.left

    @property
    def is_spent(self) -> bool:
        return self.left <= 0


#: Why the rest of a run is left to Python whose compiler was stopped.
STOPPED = "stopped", Message("refused.stopped")


class Stopped(Unfit):
    """Whoever waits for a run wants no more of it compiled."""


class Wait:
    """A run of a cell that somebody waits for: it is told how far captures and compilers are, and whether they shall stop."""

    is_stopped = False
    executable: object = None  # of the piece that is about to run: it alone may be stopped before it has run at all

    def captured(self, statements: int, of: int) -> None:
        """So many statements are captured. Raises where the rest is left to Python."""
        self.told("statements", statements, of)
        if self.is_stopped:
            raise Stopped(*STOPPED)

    def came_to(self, what: str, done: int, of: int, executable: object) -> None:
        """So much of a program is planned or compiled, and nothing of it has run."""
        self.told(what, done, of)
        if self.is_stopped and executable is self.executable:
            raise Stopped(*STOPPED)

    def told(self, what: str, done: int, of: int) -> None:
        """For who waits."""


class _Here(threading.local):
    """The effort that captures of this thread may take; None: what they need. And who waits for them."""

    effort: Effort | None = None
    wait: Wait | None = None


here = _Here()


@contextmanager
def waited_by(wait: Wait) -> Iterator[None]:
    """Captures and compilers inside are waited for."""
    outer, here.wait = here.wait, wait
    try:
        yield
    finally:
        here.wait = outer


@contextmanager
def at_most(effort: Effort | None) -> Iterator[None]:
    """Captures inside may take so much."""
    outer, here.effort = here.effort, effort
    try:
        yield
    finally:
        here.effort = outer

"""How much may go over the wire: a bucket of messages and one of bytes, filled at a steady rate."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MESSAGES_A_SECOND = 10.0
BYTES_A_SECOND = 200_000.0
BURST_MESSAGES = 10.0
BURST_BYTES = 200_000.0


class Budget:
    """One message larger than what is there may go, as long as something is: what it takes too much, later ones wait for.
    So the sustained rate holds, and a report is never cut for its size alone."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self.messages, self.bytes = BURST_MESSAGES, BURST_BYTES

    def fill(self) -> None:
        """Add what the time since the last call allows."""
        now = self._clock()
        passed, self._at = max(0.0, now - self._at), now
        self.messages = min(BURST_MESSAGES, self.messages + passed * MESSAGES_A_SECOND)
        self.bytes = min(BURST_BYTES, self.bytes + passed * BYTES_A_SECOND)

    def allows(self) -> bool:
        return self.messages >= 1 and self.bytes > 0

    @property
    def spare(self) -> float:
        """What events may take: half of the bucket is for reports."""
        return self.bytes - BURST_BYTES / 2

    def seconds_until(self) -> float:
        """Until a message may go."""
        return max((1 - self.messages) / MESSAGES_A_SECOND, (1 - self.bytes) / BYTES_A_SECOND, 0.0)

    def spend(self, size: int) -> None:
        self.messages -= 1
        self.bytes -= size


def size_of(value: Any) -> int:
    """The bytes of small plain data as Jupyter sends it."""
    return len(json.dumps(value, default=str)) + 2

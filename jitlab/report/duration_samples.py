"""Durations of single calls, a bounded number of them, spread over the whole run and in its order."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

MOST = 256  # samples kept of one thing
FEW = 3  # fewer warm ones than this are joined by those before


class Samples:
    """Every `stride`-th duration; when there are `MOST`, every other one goes and the stride doubles."""

    __slots__ = ("_earlier", "_seen", "_stride", "_values")

    def __init__(self) -> None:
        self._values = array("q")
        self._earlier = array("q")  # before better code came
        self._stride = 1
        self._seen = 0

    def add(self, ns: int) -> None:
        if not self._seen % self._stride:
            self._values.append(ns)
            if len(self._values) >= MOST:
                self._values = self._values[::2]
                self._stride *= 2
        self._seen += 1

    def extend(self, durations: np.ndarray[Any, Any]) -> None:
        """The same as `add` for each of them."""
        at, end = 0, len(durations)
        while at < end:
            first = at + -self._seen % self._stride  # the next one that is kept
            kept = durations[first :: self._stride][: MOST - len(self._values)]
            self._values.extend(kept.tolist())
            is_full = len(self._values) >= MOST
            after = first + (len(kept) - 1) * self._stride + 1 if is_full else end
            self._seen += after - at
            at = after
            if is_full:
                self._values = self._values[::2]
                self._stride *= 2

    def renew(self) -> None:
        """Better code runs from now on: what was measured before is warm-up."""
        if self._values:
            self._earlier, self._values = self._values, array("q")
            self._stride, self._seen = 1, 0

    def copy(self) -> Samples:
        """As it is now: nothing is added to it later."""
        made = Samples()
        made._values, made._earlier = self._values[:], self._earlier
        return made

    @property
    def seconds(self) -> list[float]:
        """Of the code that runs now; of the code before, too, where there are too few. None is 0: a clock has steps."""
        values = self._values if len(self._values) >= FEW else self._earlier + self._values
        return [max(ns, 1) / 1e9 for ns in values]


def quantiles(seconds: list[float]) -> dict[str, float] | None:
    """The fastest, the middle, and the call that one in ten is slower than; None of no calls."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {name: ordered[round(share * last)] for name, share in (("least", 0.0), ("median", 0.5), ("p90", 0.9))}

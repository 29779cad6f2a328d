"""The spans of a timeline's lane, the last ones of many. Those of noted calls are made when somebody reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from jitlab import events
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.native_call_log import Calls


@dataclass(frozen=True, slots=True)
class Span:
    """One bar of the timeline; times in nanoseconds of `perf_counter_ns`."""

    name: str
    label: str
    kind: str
    start_ns: int
    duration_ns: int
    function: str = ""
    trace: int = 0
    cluster: str | None = None
    kernels_ns: tuple[int, ...] = ()  # of a launch that was timed kernel by kernel
    enqueued_ns: int = 0  # of a launch on a GPU: until it was handed over
    tier: str = ""  # of machine code
    bytes: int = 0  # of a copy
    lines: tuple[events.Span, ...] = ()  # of a statement
    thread: int = 0  # that compiled


class _Noted:
    """The launches of noted calls, from the first that is still kept."""

    __slots__ = ("calls", "count", "first")

    def __init__(self, calls: Calls) -> None:
        self.calls, self.first, self.count = calls, 0, len(calls)

    def spans(self) -> Iterator[Span]:
        about = self.calls.about
        if (as_python := about.as_python) is not None:
            kept = zip(self.calls.starts[self.first :].tolist(), self.calls.durations[self.first :].tolist(), strict=True)
            for start, duration in kept:
                said = as_python.text, as_python.label
                yield Span(*said, "statement", start, duration, as_python.function, lines=as_python.lines)
        for launch, starts, durations, kernels in self.calls.launches():
            launched = zip(*(part[self.first :].tolist() for part in (starts, durations, kernels)), strict=True)
            for start, duration, times in launched:
                yield Span(
                    launch.cluster, "_XlaLaunch", "launch", start, duration, about.function, about.trace, launch.cluster,
                    tuple(times) if any(times) else (),
                )  # fmt: skip


def _spans_of(calls: Calls) -> int:
    """How many spans each of the calls has."""
    return len(calls.about.launches) + (calls.about.as_python is not None)


class Lane:
    """The last `most` spans, in the order they ended; `dropped`: how many there were before them, and what those and their
    kernels took."""

    def __init__(self, most: int) -> None:
        self.most, self.dropped, self.dropped_ns, self.dropped_kernels_ns = most, 0, 0, 0
        self.began: int | None = None  # also where the first spans are dropped
        self._kept: deque[Span | _Noted] = deque()
        self._count = 0
        self._is_mixed = False

    def append(self, span: Span) -> None:
        self._kept.append(span)
        self._count += 1
        if self.began is None or span.start_ns < self.began:
            self.began = span.start_ns
        if self._count > self.most:
            self._drop()

    def note(self, calls: Calls) -> None:
        """The launches of noted calls."""
        self._is_mixed = True
        self._kept.append(_Noted(calls))
        self._count += len(calls) * _spans_of(calls)
        start = int(calls.starts.min())
        self.began = start if self.began is None else min(start, self.began)
        self._drop()

    def _drop(self) -> None:
        while self._count > self.most:
            first = self._kept[0]
            gone = 1
            if isinstance(first, _Noted):
                each = _spans_of(first.calls)
                calls = min(-(-(self._count - self.most) // max(each, 1)), first.count - first.first)
                self._count_noted(first, first.first + calls)
                first.first += calls
                gone = calls * each
            else:
                self.dropped_ns += first.duration_ns
                self.dropped_kernels_ns += sum(first.kernels_ns)
            if not isinstance(first, _Noted) or first.first == first.count:
                self._kept.popleft()
            self._count -= gone
            self.dropped += gone

    def _count_noted(self, noted: _Noted, end: int) -> None:
        if noted.calls.about.as_python is not None:
            self.dropped_ns += int(noted.calls.durations[noted.first : end].sum())
        for _, _, durations, kernels in noted.calls.launches():
            self.dropped_ns += int(durations[noted.first : end].sum())
            self.dropped_kernels_ns += int(kernels[noted.first : end].sum())

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Span]:
        made = [span for kept in self._kept for span in (kept.spans() if isinstance(kept, _Noted) else (kept,))]
        if self._is_mixed:
            made.sort(key=lambda span: span.start_ns + span.duration_ns)
        return iter(made)

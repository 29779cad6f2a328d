"""What a trace has cost and how it is used: times of capture and compilation with nested work counted once, calls, variants."""

from __future__ import annotations

import ctypes
import re
import threading
import time

from jitlab.events import VariantCause
from jitlab.messages import Message
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.native_call_log import About
from jitlab.support.transactions import keep

from . import events


@dataclass(frozen=True, slots=True)
class Variant:
    """A second form of a cluster's kernels, made for a known trace."""

    cluster: str
    cause: VariantCause
    argument: str
    before: str
    after: str
    seconds: float


class Costs:
    """The account of one trace. It outlives the trace: counts, no graphs."""

    __slots__ = (
        "_counters", "_seen", "about", "calls", "host_bytes", "host_copies", "host_ns", "is_kept", "kernels", "last_use_ns",
        "on_host", "run_ns", "spent_ns", "timed_calls", "variants", "whole",
    )  # fmt: skip

    def __init__(self, whole: Costs | None = None) -> None:
        self.whole = whole  # of a size of a trace that stands for many: that trace's account, which has it all, too
        self.spent_ns = 0  # capture, passes, planning, lowering, compilation: what calls waited for
        self.calls = 0  # that came through Python
        self.about: About | None = None  # what notes of its calls are about
        self._counters: tuple[ctypes.c_int64, ...] = ()  # of the C functions in front, where there are some
        self._seen = 0
        self.last_use_ns = 0  # of a call through Python, on time.perf_counter_ns's clock
        self.run_ns = self.timed_calls = 0  # of calls while somebody listened
        self.kernels: tuple[str, ...] = ()  # the machine code it runs, by the hash of its Program's text
        self.variants: list[Variant] = []
        self.on_host: dict[str, Message] = {}  # clusters that no kernel of a device takes, and why
        self.host_copies = self.host_bytes = self.host_ns = 0  # between a device and the host, for what the host does
        self.is_kept = False  # by a ledger: capture is charged, too

    def count_natively(self, counter: ctypes.c_int64) -> None:
        """A C function answers calls from now on, and counts them."""
        self._counters += (counter,)
        if self.whole is not None:
            self.whole.count_natively(counter)

    @property
    def native_calls(self) -> int:
        """Calls that C functions answered."""
        return sum(counter.value for counter in self._counters)

    @property
    def all_calls(self) -> int:
        """Calls through Python and through C."""
        return self.calls + self.native_calls

    def was_called_natively(self) -> bool:
        """The C function answered a call since this was last asked."""
        now = self.native_calls
        before, self._seen = self._seen, now
        return now != before

    @property
    def seconds(self) -> float:
        return self.spent_ns / 1e9

    @property
    def each_ns(self) -> float | None:
        """What a timed call took, besides what the first of them waited for; None where none was timed."""
        events.collect()  # calls that were timed and are not charged yet
        if not self.timed_calls:
            return None
        return (self.run_ns - (self.spent_ns if self.run_ns >= self.spent_ns else 0)) / self.timed_calls

    def called(self) -> None:
        self.calls += 1
        self.last_use_ns = time.perf_counter_ns()
        if self.whole is not None:
            self.whole.called()

    def ran(self, duration_ns: int, calls: int = 1) -> None:
        """Calls were timed."""
        self.timed_calls += calls
        self.run_ns += duration_ns
        if self.whole is not None:
            self.whole.ran(duration_ns, calls)

    def copied(self, nbytes: int, duration_ns: int) -> None:
        """A value went between a device and the host, for what the host does between kernels."""
        self.host_copies += 1
        self.host_bytes += nbytes
        self.host_ns += duration_ns
        if self.whole is not None:
            self.whole.copied(nbytes, duration_ns)

    def call_of(self, function: str, trace: int) -> About:
        """What notes of calls of the function are about."""
        if self.about is None:
            self.about = About(function, trace, (), True, self)
        return self.about

    def spent(self, ns: int) -> None:
        self.spent_ns += ns
        if self.whole is not None:
            self.whole.spent(ns)

    def spending(self) -> _Spending:
        """Inside, time is charged to this account; what an account opened inside is charged is taken off."""
        return _Spending(self)


def tell_charge(function: str, trace: int, costs: Costs) -> None:
    """Tell who listens what a trace has cost so far, where a ledger keeps its account."""
    if costs.is_kept and events.active():
        events.send(events.TraceCharged(function=function, trace=trace, spent_ns=costs.spent_ns))


class _Spending:
    __slots__ = ("costs", "inside_ns", "outer", "started_ns")

    def __init__(self, costs: Costs) -> None:
        self.costs = costs

    def __enter__(self) -> _Spending:
        self.inside_ns = 0
        self.started_ns = time.perf_counter_ns()
        self.outer = _open.top
        _open.top = self
        return self

    def __exit__(self, *_: object) -> None:
        took = time.perf_counter_ns() - self.started_ns
        self.costs.spent(took - self.inside_ns)
        _open.waited_ns += took - self.inside_ns
        _open.top = self.outer
        if self.outer is not None:
            self.outer.inside_ns += took


class _Open(threading.local):
    """The innermost account that this thread spends on, and what it has spent on all of them."""

    top: _Spending | None = None
    waited_ns: int = 0


_open = _Open()
keep(lambda: _open.top, lambda before: setattr(_open, "top", before))


def waited_ns() -> int:
    """How long this thread has waited so far for captures and compilers."""
    return _open.waited_ns


def short_numbers(before: str, after: str) -> tuple[str, str]:
    """Both sides of a change with numbers of very many digits in short, unless that makes the two look alike."""
    short = [re.sub(_LONG_NUMBER, lambda found: f"{float(found[0]):.6g}", side) for side in (before, after)]
    return (before, after) if short[0] == short[1] else (short[0], short[1])


_LONG_NUMBER = r"(?<![\w.])\d+\.\d{12,}(?:e[-+]?\d+)?(?![\w.])"  # 0.15000000000000002

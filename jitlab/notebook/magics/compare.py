"""`%%jit --compare`, `--check`, `-n`: the work of a cell once more, on copies taken before it ran."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from jitlab import events
from jitlab.api.check.check import check_calls
from jitlab.api.check.replaying import (
    Call,
    Copies,
    TooMuch,
    drawing_again,
    first_effect,
    generators,
    largest_error,
    run_compiled,
    run_op_by_op,
    warm_up,
)
from jitlab.config import config
from jitlab.messages import units
from jitlab.messages.escape import clean
from jitlab.ops.random_draws import States, random_states
from jitlab.report import Recording
from jitlab.report.render import wording
from jitlab.runtime import watching
from jitlab.support.lazy_dataclass import dataclass

from .timing import Replays, repeated

#: A comparison repeats all calls until each side ran this long in all: the fastest round of a side counts.
ENOUGH_NS = 200_000_000
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
LONG_NS = 2_000_000_000  # of both sides: long work needs no repetition


@dataclass
class Best:
    """The fastest round of one side, with all that was told of it; another process may disturb any of them."""

    recording: Recording = field(default_factory=Recording)
    least_ns: int = 0
    sum_ns: int = 0
    rounds: int = 0

    def add(self, recording: Recording, spent_ns: int) -> None:
        self.sum_ns += spent_ns
        if not self.rounds or spent_ns < self.least_ns:
            self.recording, self.least_ns = recording, spent_ns
        self.rounds += 1


class Comparison:
    """Collects the runs of compiled code while `watching`, and replays them. An array that did not change is copied once.
    `leaves_out`: of code that acts on the world outside only that run is left out, and not all are refused."""

    def __init__(self, leaves_out: bool = False) -> None:
        self.calls: list[Call] = []
        self.refused = ""
        self.left_out: dict[str, None] = {}  # what acted on the world outside, with its line
        self._leaves_out = leaves_out
        self._copies = Copies(config.copy_limit_bytes)
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, each run of compiled code is noted before it starts, in every thread."""
        with watching(self.note):
            yield

    def note(self, executable: Any, arguments: Sequence[Any], states: States | None = None) -> None:
        """Keep copies of the arguments of a run that is about to start, and what it is about to draw (`states`; None: as the
        generators are now); refuse when they would be too many bytes."""
        with self._lock:
            if self.refused:
                return
            effect = first_effect(executable.graph)
            if effect is not None:
                named = f"{effect.op.name} ({wording.line_text({s.line for s in effect.sources})})"
                self.left_out[named] = None
                if not self._leaves_out:
                    self._refuse(f"{named} acts on the world outside")
                return
            try:
                copies = [self._copies.of(argument) for argument in arguments]
                drawn = random_states(generators(executable.graph, arguments)) if states is None else states
                self.calls.append(Call(executable, copies, drawn))
            except TooMuch as refusal:
                self._refuse(
                    f"the copies of what the cell reads would take more than {units.size(refusal.limit)}"
                    f" ({units.size(refusal.needed)} so far). Try: jl.config.copy_limit_bytes = {2 * refusal.needed},"
                    " or fewer iterations"
                )

    def replay(self, recording: Recording, between: Callable[[int, int], None] = lambda done, total: None) -> str:
        """Run everything again, op by op and compiled in turn, short work several times, and tell the fastest times of each
        side to `recording`: both are measured alike, warm, with the code that later runs use. Returns the reason when there
        is nothing to compare. `between(done, total)` is called before each round, and may raise."""
        if refusal := self._why_not():
            return refusal
        for call in {id(call.executable): call for call in self.calls}.values():
            call.executable.settle()
            warm_up(call)
        start = time.perf_counter_ns()
        numpy, compiled, largest = Best(), Best(), 0.0
        for round in range(MOST_ROUNDS):
            between(round, MOST_ROUNDS)
            largest = max(largest, self._round(round, start, numpy, compiled))
            spent = numpy.sum_ns + compiled.sum_ns
            enough = round + 1 >= LEAST_ROUNDS and min(numpy.sum_ns, compiled.sum_ns) >= ENOUGH_NS
            if enough or spent >= LONG_NS:
                break
        replay = compiled.recording
        replay.numpy = numpy.recording.numpy
        replay.take_lane("op by op", numpy.recording)
        times = numpy.least_ns, compiled.least_ns
        replay.listen(events.Compared(rounds=numpy.rounds, numpy_ns=times[0], compiled_ns=times[1], largest_error=largest))
        recording.adopt_runs(replay)
        return ""

    def time(self, recording: Recording, loops: int | None, runs: int | None) -> str:
        """Run everything `loops` times in each of `runs` runs, compiled, and tell `recording` how long a loop took. What acts
        on the world outside is left out and named, statements that Python ran too. Returns why nothing was timed."""
        if self.refused:
            return self.refused
        left_out = [*self.left_out, *statements_of(recording)]
        if not self.calls:
            return f"{' and '.join(left_out)} would act again" if self.left_out else "nothing was compiled in this cell"
        needed = self._copies.bytes + Replays.more_bytes(self.calls)
        if needed > config.copy_limit_bytes:
            return (
                f"the copies of what the cell reads and changes would take {units.size(needed)}, more than"
                f" {units.size(config.copy_limit_bytes)}. Try: jl.config.copy_limit_bytes = {needed}"
            )
        loops, loop_ns = repeated(self.calls, loops, runs)
        recording.listen(events.Repeated(loops=loops, loop_ns=loop_ns, left_out=tuple(left_out)))
        return ""

    def check(self, recording: Recording) -> str:
        """Each compiled graph's last run beside NumPy, output by output, told to `recording`. Returns why there is nothing."""
        if refusal := self._why_not():
            return refusal
        rows: list[dict[str, Any]] = []
        for call in {id(call.executable): call for call in self.calls}.values():
            with drawing_again(call):
                found = check_calls("the cell", [(call.executable, call.arguments)])
            if found.refusal:
                return found.refusal.removesuffix(".")
            rows += [output.to_json() for output in found.outputs]
        recording.listen(events.NumericsChecked(numerics=tuple(rows)))
        return ""

    def _round(self, round: int, start_ns: int, numpy: Best, compiled: Best) -> float:
        """All calls once on both sides, which take turns in going first; returns the first round's largest error."""
        by_numpy, by_us = Recording(), Recording()
        numpy_ns, compiled_ns, largest = 0, 0, 0.0
        for n, call in enumerate(self.calls):
            if (n + round) % 2:
                found, ours = run_compiled(call, by_us.listen, start_ns + compiled_ns)
                expected, theirs = run_op_by_op(call, by_numpy.listen, start_ns + numpy_ns)
            else:
                expected, theirs = run_op_by_op(call, by_numpy.listen, start_ns + numpy_ns)
                found, ours = run_compiled(call, by_us.listen, start_ns + compiled_ns)
            numpy_ns, compiled_ns = numpy_ns + theirs, compiled_ns + ours
            if not round:
                largest = max(largest, largest_error(expected, found))
        numpy.add(by_numpy, numpy_ns)
        compiled.add(by_us, compiled_ns)
        return largest

    def _why_not(self) -> str:
        """A comparison needs every run."""
        if self.refused:
            return self.refused
        if self.left_out:
            return f"{next(iter(self.left_out))} acts on the world outside"
        return "" if self.calls else "nothing was compiled in this cell"

    def _refuse(self, why: str) -> None:
        self.refused = why
        self.calls.clear()
        self._copies.clear()


def statements_of(recording: Recording) -> list[str]:
    """The statements that Python ran, each with its line: "print(y) (line 3)"."""
    found = recording.report().data["statements"]
    return [f"{clean(entry['text'])} ({wording.line_text(wording.numbers_of(entry['lines']))})" for entry in found]

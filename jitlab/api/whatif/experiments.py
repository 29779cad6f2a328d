"""Two plans of one graph side by side: built, run in turns on copies, compared. The user's compiled function stays as it is."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from jitlab import events
from jitlab.api.check.replaying import (
    Call,
    Copies,
    TooMuch,
    draws,
    first_effect,
    keeping_random_state,
    largest_error_ulp,
    op_by_op,
)
from jitlab.compile import compiled_on
from jitlab.config import PLACES, config
from jitlab.errors import OptionError
from jitlab.ir import NO_OVERRIDES, Node, Overrides
from jitlab.messages import units
from jitlab.runtime import Executable
from jitlab.runtime.executable import on_device
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.statistics import Change, difference, interval
from jitlab.targets.devices import ON_GPU

from .blockers import Refusal, missed, refused_at_once
from .plan_questions import Place, Question, at

#: A comparison has at least and at most so many rounds, and takes about this long in all.
LEAST_ROUNDS, MOST_ROUNDS, ENOUGH_SECONDS = 12, 60, 1.0

#: Short programs run several times for one sample, so that a sample takes about this long.
SAMPLE_SECONDS, MOST_REPEATS = 3e-4, 200


@dataclass(frozen=True)
class Side:
    """What was measured of one plan: seconds of a run with their interval, and what the cost model counts."""

    seconds: float
    low: float
    high: float
    kernels: int
    clusters: int
    bytes: int
    temporaries: int
    temporary_bytes: int
    largest_error_ulp: float | None  # of a run beside NumPy op by op; None: an element is NaN or infinite on one side alone
    fingerprint: str


class Trial:
    """One plan that can be run and timed. `changes`: arguments that the program stores into are set back before each run."""

    def __init__(self, executable: Executable, arguments: Sequence[Any]) -> None:
        self.executable, self.given = executable, list(arguments)
        self.written = [number for number, _ in executable.writes]
        self.arguments = list(arguments)
        for number in self.written:
            self.arguments[number] = np.array(arguments[number])
        self.draws = draws(executable.graph)
        self.samples: list[float] = []
        self.repeats = 1

    @property
    def place(self) -> Place:
        return Place(self.executable.plan)

    def prepare(self) -> None:
        """Lower, compile by both tiers, and run once, so that what is timed is what later runs use."""
        self.executable.prepare(self.arguments, bool(self.written))
        with keeping_random_state(self.executable.graph, arguments=self.given):
            self.outputs = self.executable.run(self.given)
        self.run()
        self.executable.settle()
        self.run()

    def run(self) -> float:
        """Seconds of one run, or of each of `repeats` runs."""
        for number in self.written:
            np.copyto(self.arguments[number], self.given[number])
        run = self.executable.run_in_place if self.written else self.executable.run
        repeats = 1 if self.written or self.draws else self.repeats  # drawn anew, a mask may take another number of elements
        with keeping_random_state(self.executable.graph, arguments=self.given):
            started = time.perf_counter_ns()
            for _ in range(repeats):
                run(self.arguments)
            return (time.perf_counter_ns() - started) / repeats / 1e9

    def kept_seconds(self) -> float | None:
        """Seconds of a run whose arguments and results stay in the device's memory; None where that is the host's, or a run
        changes them."""
        target = self.executable.only_target
        if not self.executable.has_others or target is None or self.written or self.draws:
            return None
        device = target.device
        given = [device.array(x) if isinstance(x, np.ndarray) and x.ndim else x for x in self.arguments]
        samples = []
        for _ in range(LEAST_ROUNDS):
            on_device.keeps = True  # until the run has begun
            started = time.perf_counter_ns()
            self.executable.run(given)
            device.wait()
            samples.append((time.perf_counter_ns() - started) / 1e9)
        return median(samples)

    def side(self, error: float | None) -> Side:
        plan = self.executable.plan
        edges = (*plan.boundaries, *plan.clustering.apart)
        through = {edge.producer for edge in edges} - set(plan.clustering.graph.outputs)
        seconds, low, high = interval(self.samples)
        return Side(
            seconds, low, high, len(plan.kernels), len(plan.clustering.clusters), plan_bytes(self), len(through),
            sum(node.type.nbytes for node in through), error, fingerprint_of(self),
        )  # fmt: skip


class Experiment:
    """A question put to one executable: builds both plans, then measures round by round. A job may pause between rounds."""

    def __init__(self, executable: Executable, arguments: Sequence[Any], question: Question) -> None:
        self.executable, self.arguments = executable, arguments
        with events.muted():
            self.before = Trial(executable.changed(NO_OVERRIDES), arguments)
            self.before.executable.prepare(self.before.arguments, bool(self.before.written))
        self.question = self.before.place.resolved(question)
        self.after: Trial | None = None
        self.refusal: Refusal | None = None
        self.spent = 0.0

    def build(self) -> None:
        """Both plans, compiled and warm; or `refusal` when there is no such plan."""
        with events.muted():
            overrides = self.question.overrides()
            self.refusal = refused_at_once(self.before.place, self.question)
            if self.refusal is None:
                self.after = self._planned(overrides)
                self.refusal = missed(self.before.place, self.after.place, self.question)
            if self.refusal is not None:
                return
            assert self.after is not None
            self.before.prepare()
            self.after.prepare()
            self._choose_repeats()

    def _planned(self, overrides: Overrides) -> Trial:
        """The changed plan."""
        executable = self.executable
        if self.question.target is not None:
            executable = compiled_on(executable, ON_GPU if self.question.target.lower() == PLACES[1] else "")
        trial = Trial(executable.changed(overrides), self.arguments)
        trial.executable.prepare(trial.arguments, bool(trial.written))
        return trial

    @property
    def trials(self) -> list[Trial]:
        """Both sides, of an experiment that was built."""
        assert self.after is not None
        return [self.before, self.after]

    def _choose_repeats(self) -> None:
        assert self.after is not None
        slower = max(min(trial.run() for _ in range(2)) for trial in (self.before, self.after))
        repeats = int(np.clip(SAMPLE_SECONDS / max(slower, 1e-9), 1, MOST_REPEATS))
        self.before.repeats = self.after.repeats = repeats

    def rounds(self, seconds: float = ENOUGH_SECONDS, most: int = MOST_ROUNDS) -> tuple[int, int]:
        """(done, about how many there will be)."""
        done = len(self.before.samples)
        if not done:
            return 0, most
        total = int(np.clip(done * seconds / max(self.spent, 1e-9), LEAST_ROUNDS, most))
        return done, max(total, done)

    def round(self) -> None:
        """Both plans once, which take turns in going first."""
        assert self.after is not None
        started = time.perf_counter()
        trials = self.trials
        if len(self.before.samples) % 2:
            trials.reverse()
        collecting = gc.isenabled()
        gc.disable()  # a collection would fall on one side alone
        try:
            with events.muted():
                taken = {id(trial): trial.run() for trial in trials}
        finally:
            if collecting:
                gc.enable()
        for trial in trials:
            trial.samples.append(taken[id(trial)])
        self.spent += time.perf_counter() - started

    def measure(
        self, seconds: float = ENOUGH_SECONDS, between: Callable[[int, int], None] | None = None, most: int = MOST_ROUNDS
    ) -> None:
        """Rounds until the time is spent; `between(done, total)` is called before each."""
        while True:
            done, total = self.rounds(seconds, most)
            if between is not None:
                between(done, total)
            if done >= LEAST_ROUNDS and done >= total:
                return
            self.round()

    def change(self) -> Change:
        assert self.after is not None
        return difference(self.before.samples, self.after.samples, paired=True)

    def kept_seconds(self) -> float | None:
        """Of the plan on a device, without copies of what is read and given."""
        assert self.after is not None
        if self.question.target is None:
            return None
        with events.muted():
            found = [trial.kept_seconds() for trial in (self.after, self.before)]
        return next((seconds for seconds in found if seconds is not None), None)

    def sides(self) -> tuple[Side, Side]:
        """Both sides, each with its largest error beside NumPy op by op."""
        assert self.after is not None
        with events.muted(), keeping_random_state(self.executable.graph, arguments=self.arguments):
            expected, _ = op_by_op(self.executable.graph, self.arguments)
        errors = (largest_error_ulp(expected, trial.outputs) for trial in (self.before, self.after))
        before, after = (trial.side(error) for trial, error in zip((self.before, self.after), errors, strict=True))
        return before, after


def copied_call(executable: Executable, arguments: Sequence[Any]) -> Call:
    """A run of an executable to be done again, on copies. OptionError when it cannot be: an effect, too many bytes."""
    effect = first_effect(executable.graph)
    if effect is not None:
        raise OptionError(
            f"{effect.op.word}{at(sorted({s.line for s in effect.sources}))} acts on the world outside",
            why="a what-if runs the program again, and nothing outside may notice",
            hint="ask a function that does not call it",
        )
    copies = Copies(config.copy_limit_bytes)
    try:
        return Call(executable, [copies.of(argument) for argument in arguments])
    except TooMuch as refusal:
        raise OptionError(
            f"the copies of the arguments would take {units.size(refusal.needed)}, more than {units.size(refusal.limit)}",
            hint=f"jl.config.copy_limit_bytes = {2 * refusal.needed}",
        ) from None


# ---- what is counted

def plan_bytes(trial: Trial) -> int:
    """Bytes that a run moves: those of the kernels, and of what NumPy runs."""
    plan = trial.executable.plan
    moved = sum(kernel.bytes_read + kernel.bytes_written for kernel in plan.kernels)
    for step in plan.clustering.steps:
        if isinstance(step, Node) and step.inputs:
            moved += step.type.nbytes + sum(source.type.nbytes for source in step.inputs)
    return moved


def fingerprint_of(trial: Trial) -> str:
    """The plan's decisions as a short hex number."""
    import hashlib

    plan = trial.executable.plan
    kernels = [[node.op.name for node in kernel.nodes] for kernel in plan.kernels]
    host = [node.op.name for node in plan.clustering.stays]
    return hashlib.sha256(repr((kernels, host)).encode()).hexdigest()[:12]


__all__ = ["Experiment", "Refusal", "Side", "copied_call"]

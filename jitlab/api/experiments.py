"""Two plans of one graph side by side: built, run in turns on copies, compared. The user's compiled function stays as it is."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitlab import events
from jitlab.config import config
from jitlab.costs import duration
from jitlab.errors import OptionError
from jitlab.ir import NO_OVERRIDES, Apart, Node, NotFused, Overrides, Reason, Stays
from jitlab.ops.base import Elementwise, Generated
from jitlab.ops.indexing import Gather, Take
from jitlab.ops.views import Reshape, View
from jitlab.runtime import Executable
from jitlab.statistics import Change, difference, interval

from .questions import Pair, Place, Question, at, lines_of
from .replaying import Call, Copies, TooMuch, draws, first_effect, keeping_random_state, largest_error_ulp, op_by_op

#: A comparison has at least and at most so many rounds, and takes about this long in all.
LEAST_ROUNDS, MOST_ROUNDS, ENOUGH_SECONDS = 12, 60, 1.0

#: Short programs run several times for one sample, so that a sample takes about this long.
SAMPLE_SECONDS, MOST_REPEATS = 3e-4, 200


@dataclass(frozen=True)
class Refusal:
    """Why a plan cannot be as it was asked for. `path`: the operations that show it, as `Place.step` tells them."""

    code: str
    text: str
    path: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"code": self.code, "text": self.text, "path": [dict(step) for step in self.path]}


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
        with keeping_random_state(self.executable.graph):
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
        with keeping_random_state(self.executable.graph):
            started = time.perf_counter_ns()
            for _ in range(repeats):
                run(self.arguments)
            return (time.perf_counter_ns() - started) / repeats / 1e9

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
        """The changed plan. An edge that still goes through memory is fused by computing its producer a second time."""
        trial = Trial(self.executable.changed(overrides), self.arguments)
        trial.executable.prepare(trial.arguments, bool(trial.written))
        apart = tuple(pair for pair in overrides.fuse if not trial.place.together(*pair) and may_repeat(trial.place, pair))
        if not apart:
            return trial
        again = Overrides(overrides.cut, overrides.fuse, apart, overrides.keep_out)
        second = Trial(self.executable.changed(again), self.arguments)
        second.executable.prepare(second.arguments, bool(second.written))
        return second if all(second.place.together(f"{a}_again", b) for a, b in apart) else trial

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
        trials = [self.before, self.after]
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

    def sides(self) -> tuple[Side, Side]:
        """Both sides, each with its largest error beside NumPy op by op."""
        assert self.after is not None
        with events.muted(), keeping_random_state(self.executable.graph):
            expected, _ = op_by_op(self.executable.graph, self.arguments)
        errors = (largest_error_ulp(expected, trial.outputs) for trial in (self.before, self.after))
        before, after = (trial.side(error) for trial, error in zip((self.before, self.after), errors, strict=True))
        return before, after


def copied_call(executable: Executable, arguments: Sequence[Any]) -> Call:
    """A run of an executable to be done again, on copies. OptionError when it cannot be: an effect, too many bytes."""
    effect = first_effect(executable.graph)
    if effect is not None:
        raise OptionError(
            f"{effect.op.name}{at(sorted({s.line for s in effect.sources}))} acts on the world outside",
            why="a what-if runs the program again, and nothing outside may notice",
            hint="ask a function that does not call it",
        )
    copies = Copies(config.copy_limit_bytes)
    try:
        return Call(executable, [copies.of(argument) for argument in arguments])
    except TooMuch as refusal:
        raise OptionError(
            f"the copies of the arguments would take {size_text(refusal.needed)}, more than {size_text(refusal.limit)}",
            hint=f"jl.config.copy_limit_bytes = {2 * refusal.needed}",
        ) from None


# ---- what cannot be

#: Kinds of reasons for the two catalogues of design D8.
CODES = {
    NotFused.LIBRARY_CALL: "library", NotFused.WHOLE_REDUCTION: "space", NotFused.REDUCED_OUTER_AXIS: "space",
    NotFused.DIFFERENT_SPACE: "space", NotFused.RESHAPED: "space", NotFused.READ_AGAIN: "memory", NotFused.GATHERED: "memory",
    NotFused.OVERLAP: "memory", NotFused.UPDATED: "memory", NotFused.RECOMPUTE_IS_DEAR: "memory", NotFused.LEVEL: "level",
    NotFused.TOO_LONG: "size",
    Apart.CYCLE: "cycle", Apart.DEVICES: "device", Apart.CROSS_DEVICE: "device", Apart.RESOURCES: "variable",
    Apart.SCOPES: "scope", Apart.SIZE: "size", Stays.DTYPE: "type", Stays.FOREIGN_TYPE: "type",
}  # fmt: skip


def refused_at_once(place: Place, question: Question) -> Refusal | None:
    """What the plan as it is rules out."""
    if question.target is not None:
        if question.target in ("cpu", "CPU"):
            return Refusal("target", "The plan runs on the CPU as it is.")
        return Refusal("target", f"There is no target {question.target!r}. jitlab compiles for the CPU.")
    for pair in (*question.cut, *question.fuse):
        a, b = (place.named[name] for name in pair)
        if place._way(a, b) is None:
            steps = tuple(place.step(name) for name in pair)
            text = f"{place.text(pair[1])} does not read what {place.text(pair[0])} makes."
            turned = place._way(b, a) is not None
            return Refusal("not_adjacent", f"{text} It is the other way round." if turned else text, steps)
    for name in (*(name for pair in question.fuse for name in pair), *question.keep_out):
        if name in place.loop:
            loop = place.named[place.loop[name]]
            text = f"{place.text(name)} is inside {loop.op.name}{at(lines_of([loop]))}, which is compiled, or not, as a whole."
            return Refusal("loop", text, (place.step(name), place.step(place.loop[name])))
    for pair in question.cut:
        if pair[0] not in place.loop and not place.together(*pair):
            steps = tuple(place.step(name) for name in pair)
            text = f"{place.text(pair[0])} and {place.text(pair[1])} are in different kernels as it is."
            return Refusal("apart", text, steps)
    for pair in question.fuse:
        if place.together(*pair):
            name = place.kernel[pair[1]].name
            text = f"{place.text(pair[0])} and {place.text(pair[1])} share {name} as it is."
            return Refusal("fused", text, tuple(place.step(n) for n in pair))
    for name in question.keep_out:
        if place.home(name) is None:
            return Refusal("host", f"NumPy runs {place.text(name)} as it is.", (place.step(name),))
    return None


def missed(before: Place, after: Place, question: Question) -> Refusal | None:
    """Why the changed plan is not what was asked for: the one blocker, with the operations that show it."""
    for pair in question.cut:
        if after.together(*pair) or (pair[0] in before.loop and programs(before) == programs(after)):
            text = f"{before.text(pair[0])} is a number that stays in a register; there is nothing to store."
            if before.named[pair[0]].ndim:
                text = f"{before.text(pair[0])} and {before.text(pair[1])} are in different nests as it is."
            code = "apart" if before.named[pair[0]].ndim else "register"
            return Refusal(code, text, tuple(before.step(name) for name in pair))
    for pair in question.fuse:
        again = (f"{pair[0]}_again", pair[1])
        joint = next((p for p in (pair, again) if after.together(*p)), None)
        if joint is None or after.kernel[joint[1]].kind == "library":
            return _blocker(before, after, pair)
    for name in question.keep_out:
        if after.home(name) is not None:
            text = "Everything has to compile here: the function was made with jit_compile=True."
            return Refusal("must_compile", text, (before.step(name),))
    return None


def _blocker(before: Place, after: Place, pair: Pair) -> Refusal:
    """What keeps two operations apart although they were to be fused."""
    ends = tuple(before.step(name) for name in pair)
    names = f"{before.text(pair[0])} and {before.text(pair[1])}"
    for name in pair:
        if after.home(name) is None:
            reason = after.clustering.stays[after.named[name]]
            code = CODES.get(reason.code, "library" if reason.code is Stays.NO_LOOP_BODY else "kind")
            return Refusal(code, f"{names} can't share a nest: {before.text(name)} does not compile: {reason.text}.", ends)
    libraries = [name for name in pair if name in before.kernel and before.kernel[name].kind == "library"]
    if libraries:
        text = f"{before.text(libraries[-1])} is a library call, which reads and writes whole arrays"
        return Refusal("library", f"{names} can't share a nest: {text}.", ends)
    found, way = _edge_reason(after, pair)
    through = _around(after, pair)
    if through and (found is None or isinstance(found.code, NotFused) or found.code is Apart.CYCLE):
        path = (ends[0], *(before.step(name) if name in before.named else after.step(name) for name in through), ends[1])
        text = f"{names} can't share a nest: joining them would make a cycle through {_via(after, through)}."
        if found is None or found.code is Apart.CYCLE or not _is_kernel_matter(found):
            return Refusal("cycle", text, path)
    assert found is not None, f"{pair} are apart without a reason"
    text = found.text.removeprefix("Not fused: ")
    if isinstance(found.code, Apart):
        text = text.split(": ", 1)[-1]
    path = tuple(before.step(name) for name in way if name in before.named)
    return Refusal(CODES.get(found.code, "kind"), f"{names} can't share a nest: {text}.", path or ends)


def programs(place: Place) -> list[str]:
    """The Programs of a plan's clusters, as text."""
    return [text for (_, stage), text in sorted(place.plan.texts.items()) if stage == "program"]


def _is_kernel_matter(reason: Reason) -> bool:
    """Would the two be apart even if nothing stood between them?"""
    return reason.code in (NotFused.LIBRARY_CALL, NotFused.WHOLE_REDUCTION, NotFused.REDUCED_OUTER_AXIS, NotFused.LEVEL)


def _via(place: Place, through: Sequence[str]) -> str:
    return " and ".join(place.text(name) for name in through[:3])


def _edge_reason(place: Place, pair: Pair) -> tuple[Reason | None, tuple[str, ...]]:
    """The reason of the edge that keeps a pair apart, and the pair or the steps between."""
    way = place._way(place.named[pair[0]], place.named[pair[1]])
    names = [pair[0], *(node.name for node in way or ())]
    edges = {(e.producer.name, e.consumer.name): e.reason for e in (*place.plan.boundaries, *place.clustering.apart)}
    for step in zip(names, names[1:], strict=False):
        if step in edges:
            return edges[step], step
    return None, ()


def _around(place: Place, pair: Pair) -> list[str]:
    """Operations on a way from one to the other that run in neither's kernel: fused, the two would wait for themselves."""
    start, end = (place.named[name] for name in pair)
    homes = [{k.name for k in place.plan.kernels if node in k.nodes} for node in (start, end)]
    ways: list[list[Any]] = [[end]]
    seen = {end}
    while ways:
        way = ways.pop(0)
        for source in way[0].inputs:
            if source is start:
                between = [node for node in way[:-1] if not {k.name for k in place.plan.kernels if node in k.nodes} & homes[0]]
                outside = [n for n in between if not {k.name for k in place.plan.kernels if n in k.nodes} & homes[1]]
                if outside:
                    return [node.name for node in outside]
            elif source not in seen and source.name in place.named:
                seen.add(source)
                ways.append([source, *way])
    return []


def may_repeat(place: Place, pair: Pair) -> bool:
    """Can the producer be computed a second time for this consumer? Element by element, in one cluster, if others read it."""
    producer, consumer = (place.named[name] for name in pair)
    home = place.home(pair[0])
    if home is None or home is not place.home(pair[1]) or producer not in consumer.inputs:
        return False
    others = [node for node in place.clustering.graph.nodes if producer in node.inputs and node is not consumer]
    if not others and producer not in place.clustering.graph.outputs:
        return False
    return isinstance(producer.op, (Elementwise, Generated, View, Reshape, Take, Gather))


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


def size_text(count: float) -> str:
    """2_400_000 -> "2.4 MB"; as report.wording has it."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= least:
            return f"{count / least:.{0 if count / least >= 100 else 1}f} {unit}"
    return f"{int(count)} B"


__all__ = ["Experiment", "Refusal", "Side", "copied_call", "duration", "size_text"]

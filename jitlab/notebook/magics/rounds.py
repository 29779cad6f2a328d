"""The rounds of a comparison: NumPy's side and ours in turns, so many times and so long as it takes to tell them apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field

from jitlab import events
from jitlab.api.check.replaying import NOTHING, Took
from jitlab.support.lazy_dataclass import dataclass

from .timing import no_garbage_collection

#: A comparison has at least and at most so many rounds, and between these ends when they took this long in all.
LEAST_ROUNDS, MOST_ROUNDS, ENOUGH_NS = 10, 15, 300_000_000
#: In a round each side runs up to so many times, and the fastest counts: another program disturbs any of them.
MOST_REPEATS = 4
LONG_NS = 2_000_000_000  # before that many, rounds end when they took this long

Between = Callable[[int, int], None]


@dataclass
class Side:
    """What runs, and what its runs took, round by round."""

    run: Callable[[], Took]
    spent: list[list[Took]] = field(default_factory=list)

    @property
    def is_of_threads(self) -> bool:
        return sum((took for each in self.spent for took in each), NOTHING).is_of_threads

    def ns(self, by_clock: bool) -> tuple[int, ...]:
        """Of each round the fastest run."""
        return tuple(min(took.ns(by_clock) for took in each) for each in self.spent)


class Rounds:
    """Both sides."""

    def __init__(self, by_numpy: Callable[[], Took], by_us: Callable[[], Took]) -> None:
        self.numpy, self.ours = Side(by_numpy), Side(by_us)

    @property
    def by_clock(self) -> bool:
        """One clock for both sides."""
        return self.numpy.is_of_threads or self.ours.is_of_threads

    def measure(self, between: Between, known: Took = NOTHING, is_ended: bool = False) -> None:
        """`known`: a run of NumPy's side, which is that of the first round where it took long; of every round where it is all
        that there is (`is_ended`). An interrupt ends it: the rounds before it stand."""
        is_long = is_ended or known.clock >= ENOUGH_NS
        if is_long:
            self.numpy.spent.append([known])
        repeats, spent = 1, known.clock if is_long and not is_ended else 0
        for number in range(MOST_ROUNDS):
            began = time.perf_counter_ns()
            try:
                between(number, MOST_ROUNDS)
                self._round(number, repeats, [self.ours] if is_ended or (is_long and not number) else [self.numpy, self.ours])
            except KeyboardInterrupt:
                if not number:
                    raise
                for side in (self.numpy, self.ours):
                    del side.spent[number:]
                return
            spent += time.perf_counter_ns() - began
            if spent >= (ENOUGH_NS if is_ended or number + 1 >= LEAST_ROUNDS else LONG_NS):
                return
            repeats = max(1, min(MOST_REPEATS, ENOUGH_NS * (number + 1) // (MOST_ROUNDS * spent)))

    def _round(self, number: int, repeats: int, sides: list[Side]) -> None:
        """The sides take turns in going first."""
        with no_garbage_collection(), events.muted():
            for side in sides if number % 2 else sides[::-1]:
                side.spent.append([side.run() for _ in range(repeats)])


__all__ = ["Between", "Rounds"]

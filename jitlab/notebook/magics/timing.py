"""`%%jit -n N -r R`: the compiled work of a cell again and again, as `%timeit` repeats a statement."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitlab import events
from jitlab.api.check.replaying import NOTHING, Call, Stopwatch, Took, keeping_random_state
from jitlab.ops.random_draws import set_random_state

#: As in Python's timeit: runs, where none were asked for, and how long one takes at least, where no loops were.
RUNS = 7
LEAST_NS = 200_000_000


def whole_number(text: str) -> int:
    """The value of `-n` or `-r`; ValueError in words."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError(f"{text!r} is not a whole number from 1 on")
    return number


class Replays:
    """Runs of compiled code, one after the other, that give the same results however often they are done: on copies of what
    they were given, with the random numbers that they drew. Outputs are dropped; arguments that the program changes are set
    back before each run, outside the time that is measured."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = [self._prepared(call) for call in calls]
        self.is_plain = not any(call.states or restored for call, _, _, restored in self.calls)

    def _prepared(self, call: Call) -> tuple[Call, Callable[[Any], Any], list[Any], list[tuple[Any, Any]]]:
        """A call, what runs it, its arguments, and pairs of arrays: the second is copied into the first before each run."""
        executable, arguments = call.executable, list(call.arguments)
        if not executable.writes or executable.may_fail(arguments):  # as in a cell (jitlab/compile.py)
            return call, executable.run, arguments, []
        restored = []
        for at in {parameter for parameter, _ in executable.writes}:
            if isinstance(arguments[at], np.ndarray):
                own = arguments[at].copy(order="K")
                restored.append((own, arguments[at]))
                arguments[at] = own
        return call, executable.run_in_place, arguments, restored

    @staticmethod
    def more_bytes(calls: Sequence[Call]) -> int:
        """What the copies of the arguments that are changed take."""
        return sum(call.arguments[at].nbytes for call in calls for at in {at for at, _ in call.executable.writes})

    def loop(self, loops: int) -> Took:
        """All of them `loops` times; what this took."""
        if self.is_plain:
            steps = [(run, arguments) for _, run, arguments, _ in self.calls]
            taken = Stopwatch()
            for _ in range(loops):
                for run, arguments in steps:
                    run(arguments)
            return taken.took()
        spent = NOTHING
        for _ in range(loops):
            for call, run, arguments, restored in self.calls:
                for generator, state in call.states:
                    set_random_state(generator, state)
                for own, kept in restored:
                    np.copyto(own, kept)
                taken = Stopwatch()
                run(arguments)
                spent += taken.took()
        return spent


def repeated(calls: Sequence[Call], loops: int | None, runs: int | None) -> tuple[int, tuple[float, ...]]:
    """How many loops each run had, and the nanoseconds of one loop in each run. Nobody is told of what runs, and random
    generators are afterwards as they were. `loops` None: as many of 1, 2, 5, 10, … as take 0.2 s."""
    replays = Replays(calls)
    graphs, arguments = {id(c.executable.graph): c.executable.graph for c in calls}, [x for c in calls for x in c.arguments]
    with events.muted(), keeping_random_state(*graphs.values(), arguments=arguments):
        for call in {id(call.executable): call for call in calls}.values():
            call.executable.settle()
        replays.loop(1)  # nobody pays for the first touch of memory
        with no_garbage_collection():
            if loops is None:
                loops = next(n for n in _one_two_five() if replays.loop(n).ns() >= LEAST_NS)
            spent = tuple(replays.loop(loops).ns() / loops for _ in range(runs or RUNS))
    return loops, spent


def _one_two_five() -> Iterator[int]:
    scale = 1
    while True:
        yield from (scale, 2 * scale, 5 * scale)
        scale *= 10


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """As timeit does: it comes at any time, and is no part of what is measured."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

"""`%%jit --compare`, `--check`, `-n`: the work of a cell once more, on copies taken before it ran."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from statistics import median_low
from typing import Any

from jitlab import events
from jitlab.api.check.check import check_calls
from jitlab.api.check.load import BUSY, Load
from jitlab.api.check.replaying import (
    Call,
    Copies,
    Took,
    TooMuch,
    drawing_again,
    every,
    first_effect,
    generators,
    largest_error,
    run_op_by_op,
    warm_up,
)
from jitlab.config import config
from jitlab.messages import text, units
from jitlab.messages.escape import clean
from jitlab.notebook.magics.blas_threads import blas_threads, on_one_thread
from jitlab.ops.linear_algebra.linear_systems import MatrixLibrary
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.ops.random_draws import States, random_states
from jitlab.report import Recording
from jitlab.report.render import wording
from jitlab.runtime import watching
from jitlab.support.limits import OutOfTimeError

from .plain_cell import PlainCell
from .rounds import Between, Rounds
from .timing import Replays, repeated

#: NumPy's side is ended when it has taken that long, and so many times what the cell took. Its operations one by one, a picture
#: beside the comparison, have less time.
LONG_RUN_NS, TIMES = 2_000_000_000, 10
PICTURE_NS, PICTURE_TIMES = 1_000_000_000, 4  # of work, and of a round of NumPy's side: it runs twice, somewhat slower


class Comparison:
    """Collects the runs of compiled code while `watching`, and replays them. An array that did not change is copied once.
    `leaves_out`: of code that acts on the world outside only that run is left out, and not all are refused."""

    def __init__(self, leaves_out: bool = False) -> None:
        self.calls: list[Call] = []
        self.plain: PlainCell | str = text("speed.unknown")  # the cell's own statements, or why they are not run
        self.refused = ""
        self.left_out: dict[str, None] = {}  # what acted on the world outside, with its line
        self.copying_ns = 0  # what the run of the cell waited for copies
        self._leaves_out = leaves_out
        self._copies = Copies(config.copy_limit_bytes)
        self._lock = threading.Lock()

    def keep(
        self, nodes: Sequence[ast.stmt], filename: str, namespace: dict[str, Any], captured: Callable[[], None] | None
    ) -> None:
        """A cell is about to run: its statements as they are, on what they find. `captured`: runs them as jitlab does; None:
        the cell is an ordinary one, and only functions that it calls are compiled."""
        self.plain = PlainCell.of(nodes, filename, namespace, config.copy_limit_bytes, captured)

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
            began = time.perf_counter_ns()
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
                self.copying_ns += time.perf_counter_ns() - began
            except TooMuch as refusal:
                self._refuse(
                    f"the copies of what the cell reads would take more than {units.size(refusal.limit)}"
                    f" ({units.size(refusal.needed)} so far). Try: jl.config.copy_limit_bytes = {2 * refusal.needed},"
                    " or fewer iterations"
                )

    def replay(
        self, recording: Recording, between: Between = lambda done, total: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> str:  # fmt: skip
        """Do everything again, by NumPy and compiled in turns, short work several times, and tell `recording` what each side
        took: both are measured alike, warm, with the code that later runs use. What the run itself took stays as it is.
        NumPy's side is the cell's own statements, with
        the functions that they call as Python. Where Python ran some of the statements, the other side is the whole cell as
        jitlab runs it, with them. Returns the reason when there is nothing to compare: captured operations one by one are no
        program that anybody would run.
        `between(done, total)` is called before each round, and may raise; `is_stopped()` is asked by another thread."""
        plain = self.plain
        if refusal := self._why_not() or (plain if isinstance(plain, str) else ""):
            return refusal
        assert isinstance(plain, PlainCell)
        load = Load()
        is_busy = max(load.others() or 0.0, recording.others or 0.0) >= BUSY
        with on_one_thread() if is_busy else nullcontext():  # those of BLAS would wait for processors, at work
            for call in {id(call.executable): call for call in self.calls}.values():
                call.executable.settle()
                warm_up(call)
            with_python = plain.is_uncaptured or bool(statements_of(recording))
            with plain.again(with_python, self.limit_ns(recording), is_stopped) as why:
                if why:
                    return why
                rounds, compared = self._measured(plain, recording, between, with_python, is_ended=why is None)
            threads = blas_threads() if self._has_products() and (rounds.by_clock or is_busy) else 0
            others = load.others()
            longest = 0 if compared.is_ended else PICTURE_TIMES * median_low(compared.numpy_ns)
            lane, largest = self._op_by_op(max(PICTURE_NS, longest))
        recording.compare(lane, replace(compared, largest_error=largest, others=others, blas_threads=threads))
        return ""

    def _measured(
        self, plain: PlainCell, recording: Recording, between: Between, is_whole: bool, is_ended: bool
    ) -> tuple[Rounds, events.Compared]:
        """Both sides' rounds."""
        replays = Replays(self.calls)
        rounds = Rounds(plain.run, plain.run_captured if is_whole else lambda: replays.loop(1))
        if is_whole and is_ended:  # whether it may run again is not known
            between(0, 1)
            rounds.numpy.spent, rounds.ours.spent = [[plain.trial]], [[Took(recording.run_ns or 1)]]
        else:
            rounds.measure(between, plain.trial, is_ended)
        by_clock = rounds.by_clock
        return rounds, events.Compared(
            numpy_ns=rounds.numpy.ns(by_clock), compiled_ns=rounds.ours.ns(by_clock), largest_error=None, others=None,
            is_whole=is_whole, is_ended=is_ended, by_clock=by_clock,
        )  # fmt: skip

    @staticmethod
    def limit_ns(recording: Recording | None) -> int:
        """What one run of NumPy's side may take beside this run."""
        return max(LONG_RUN_NS, TIMES * ((recording.run_ns if recording is not None else None) or 0))

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

    def _op_by_op(self, limit_ns: int) -> tuple[Recording, float | None]:
        """What NumPy does for each captured operation, one by one, and the largest difference of the results; nothing where
        that takes this thread longer, or was interrupted."""
        until = time.thread_time_ns() + limit_ns
        try:
            for call in self.calls:
                run_op_by_op(call, lambda event: None, 0, until)  # nobody pays for the first touch of memory
            lane, spent, largest = Recording(), 0, 0.0
            for call in self.calls:
                expected, took = run_op_by_op(call, lane.listen, spent, until)
                with drawing_again(call), events.muted():
                    largest = max(largest, largest_error(expected, call.executable.run(call.arguments)))
                spent += took
        except (OutOfTimeError, KeyboardInterrupt):
            return Recording(), None
        return lane, largest

    def _has_products(self) -> bool:
        """Does BLAS have a share in what was compiled?"""
        nodes = (node for call in self.calls for node in every(*call.executable.graph.nodes))
        return any(isinstance(node.op, (Product, MatrixLibrary)) for node in nodes)

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

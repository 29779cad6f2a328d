"""Times the programs of this folder as plain Python and under `jl.jit`, which nothing was rewritten for.

    python -m benchmarks.programs [--only kmeans,welch] [--sizes small] [--seconds 0.2] [--json PATH]

Method: as `benchmarks/run.py`. One core, the processor time of the process, both sides warm, samples of the sides alternating,
the first result compared with Python's. `jl.config.settle` is "measure", as it is for a user: a call is made until the function
has settled for it, or has taken its share of the time. A first call that has the processor for longer than PATIENCE seconds is
broken off, and its row says so: the time under `jl.jit` is more than the one shown, and larger sizes are not tried. What a call
changes in its arguments it does to copies, made before the clock starts; what it prints goes nowhere. A ratio is the median,
over the pairs of neighbouring samples, of Python's time divided by that under `jl.jit`: the processor's clock rate drifts from
pair to pair, and both samples of a pair have the same. The status is 1 where a result was not Python's.
"""

from __future__ import annotations

import sys

from benchmarks.pinning import CORE, pin

if __name__ == "__main__":
    pin()

import argparse  # noqa: E402
import contextlib  # noqa: E402
import copy  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import signal  # noqa: E402
import statistics  # noqa: E402
import time  # noqa: E402
import types  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Iterator, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import jitlab as jl  # noqa: E402
from benchmarks.programs.alike import difference, state  # noqa: E402
from benchmarks.programs.record import SIZES, Given, Program  # noqa: E402
from benchmarks.programs.registry import PROGRAMS  # noqa: E402
from benchmarks.run import SAMPLE_SECONDS, settle, table  # noqa: E402
from jitlab.api.settling import FIRST_CALLS  # noqa: E402

TIMES_MORE = 40  # calls until a function has settled, at most
WARM_SECONDS = 2.0  # and seconds
BROKEN_OFF = "first call broken off"
PATIENCE = 4.0  # seconds of the processor: on a machine with other work the clock says little
MOST_COPIES = 200  # of arguments that calls change
BOUND = 1e-9  # of the largest results, sums of a million terms
LOSES, AT_LEAST = 0.9, 1e-7  # a row that loses: its ratio, and the seconds of a call


def called(function: Callable[..., Any], given: Given) -> Any:
    result = function(*given.args, **given.kwargs)
    return list(result) if isinstance(result, types.GeneratorType) else result


class Wrong(Exception):
    """What Python does not give, and where."""


class TooLong(BaseException):
    """A call takes longer than anybody would wait. (What jitlab leaves to Python is an Exception.)"""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TooLong where what stands inside has the processor for longer, on systems that have such alarms."""

    def stop(*_: Any) -> None:
        raise TooLong

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(function: Callable[..., Any], given: Given) -> Any:
    """What a call gives and leaves in its arguments."""
    return state([called(function, given), given])


def seconds_of(function: Callable[..., Any], many: Sequence[Given]) -> float:
    """Processor time of one call of these."""
    start = time.process_time()
    for given in many:
        called(function, given)
    return (time.process_time() - start) / len(many)


def is_changed_by(program: Program, size: str) -> bool:
    """Does a call do something to its arguments?"""
    given = program.arguments(size)
    called(program.function, given)
    return bool(difference(state(given), state(program.arguments(size))))


def way_of(compiled: Any) -> str:
    """How calls of the kind that was seen last go: one function is made for each case."""
    (trial,) = compiled._trials.values()
    if trial.way == "Python":
        return "Python"
    return ("pieces" if trial.pieces else "compiled") + ("" if trial.way else ", not settled")


def measure(program: Program, size: str, seconds: float) -> dict[str, Any]:
    plain, compiled = program.function, jl.jit(program.function)
    changes = is_changed_by(program, size)
    row = {"program": program.name, "size": size, "n": program.numbers[SIZES.index(size)]}
    fresh = program.arguments(size)

    def copies(count: int) -> list[Given]:
        return [copy.deepcopy(fresh) for _ in range(count)] if changes else [fresh] * count

    wanted = outcome(plain, copies(1)[0])
    try:
        with at_most(PATIENCE):
            wrong = difference(outcome(compiled, copies(1)[0]), wanted, BOUND)
    except TooLong:
        python = seconds_of(plain, copies(3))
        taken = {"python": {"min": python, "median": python}, "jit": {"min": PATIENCE, "median": PATIENCE}}
        return {**row, "times": taken, "ratio": python / PATIENCE, "way": BROKEN_OFF, "samples": 0, "in_pieces": True}
    if wrong:
        raise Wrong(f"{program.name}, {size}: not what Python gives: {wrong[:300]}")
    end = time.process_time() + WARM_SECONDS
    for number in range(TIMES_MORE):
        called(compiled, copies(1)[0])
        if number < FIRST_CALLS + 1:  # later ones compile nothing
            settle()
        if next(iter(compiled._trials.values())).way or time.process_time() > end:
            break
    sides = {"python": plain, "jit": compiled}
    calls = {}
    for side, function in sides.items():
        once = seconds_of(function, copies(1))
        calls[side] = max(1, min(int(SAMPLE_SECONDS / max(once, 1e-7)), MOST_COPIES if changes else 100_000))
    pairs: list[dict[str, float]] = []
    end = time.process_time() + 2 * seconds
    while time.process_time() < end or (len(pairs) < 5 and time.process_time() < end + WARM_SECONDS / 2):
        pair = {side: seconds_of(function, copies(calls[side])) for side, function in sides.items()}
        if all(pair.values()):  # the processor's clock stands still at times
            pairs.append(pair)
    times = {side: [pair[side] for pair in pairs] for side in sides}
    found = {side: {"min": min(taken), "median": statistics.median(taken)} for side, taken in times.items()}
    ratio = statistics.median(pair["python"] / pair["jit"] for pair in pairs)
    return {
        **row, "times": found, "ratio": ratio, "way": way_of(compiled),
        "samples": len(pairs), "in_pieces": next(iter(compiled._trials.values())).pieces,
    }  # fmt: skip


def loses(case: dict[str, Any]) -> bool:
    times = case["times"]
    return case["ratio"] < LOSES and times["jit"]["median"] - times["python"]["median"] > AT_LEAST


def geometric_mean(ratios: Sequence[float]) -> str:
    return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f} of {len(ratios)}" if ratios else "none"


def as_rows(cases: Sequence[dict[str, Any]]) -> str:
    rows = [["program", "size", "way", "n", "Python, µs", "jl.jit, µs", "ratio"]]
    for case in cases:
        python, jit = (f"{case['times'][side]['median'] * 1e6:.1f}" for side in ("python", "jit"))
        rows.append([case["program"], case["size"], case["way"], str(case["n"]), python, jit, f"{case['ratio']:.2f}"])
    return table(rows, 3)


def summary(cases: Sequence[dict[str, Any]]) -> str:
    lines = [f"geometric mean of the ratios: {geometric_mean([case['ratio'] for case in cases])}"]
    for size in SIZES:
        lines.append(f"  {size}: {geometric_mean([case['ratio'] for case in cases if case['size'] == size])}")
    pieces = [case["ratio"] for case in cases if case["in_pieces"]]
    lines.append(f"  captured in pieces: {geometric_mean(pieces)}")
    lines.append(f"  captured whole: {geometric_mean([case['ratio'] for case in cases if not case['in_pieces']])}")
    losing = [case for case in cases if loses(case)]
    lines.append(f"below {LOSES}, by more than 0.1 µs: {len(losing)} of {len(cases)}")
    return "\n".join(lines + [as_rows(losing)] * bool(losing))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description="Programs as they are, under jl.jit.")
    parser.add_argument("--only", metavar="NAMES", help="programs, comma separated")
    parser.add_argument("--sizes", metavar="NAMES", default=",".join(SIZES), help=f"of {', '.join(SIZES)}; comma separated")
    parser.add_argument("--seconds", type=float, default=0.2, help="time a side and case (default 0.2)")
    parser.add_argument("--json", metavar="PATH", help="write everything there too")
    options = parser.parse_args(arguments)
    names, sizes = options.only.split(",") if options.only else list(PROGRAMS), options.sizes.split(",")
    for name, known in [(name, PROGRAMS) for name in names] + [(size, SIZES) for size in sizes]:
        if name not in known:
            parser.error(f"there is no {name!r}; there are {', '.join(known)}")
    about = {
        "machine": platform.machine(), "cores": os.cpu_count(), "core": CORE, "python": platform.python_version(),
        "numpy": np.__version__, "jitlab": jl.__version__, "settle": jl.config.settle,
    }  # fmt: skip
    print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
    warnings.simplefilter("ignore")
    cases: list[dict[str, Any]] = []
    wrong: list[str] = []
    for name in names:
        for size in sizes:
            if cases and cases[-1]["program"] == name and cases[-1]["way"] == BROKEN_OFF:
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    cases.append(measure(PROGRAMS[name], size, options.seconds))
            except Wrong as error:
                wrong.append(str(error))
                print(error, file=sys.stderr, flush=True)
                continue
            print(f"{name}, {size}: {cases[-1]['ratio']:.2f}", file=sys.stderr, flush=True)
    print(as_rows(cases))
    print(summary(cases))
    if options.json:
        Path(options.json).write_text(json.dumps({"about": about, "cases": cases}, indent=1) + "\n", encoding="utf-8")
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Times the programs of `array_programs`: jitlab against NumPy, numexpr, Numba, JAX and torch.compile, whichever are there.

    python -m benchmarks.run [--cores all] [--only softmax,variance] [--sizes large] [--dtypes float64] [--peers numpy,jax]
                             [--first-calls] [--json PATH]

Method: on one core (this process is pinned before anything is imported) the processor time of the process, all its threads; on
all cores the wall clock. All sides warm, samples of the sides alternating, every result checked against NumPy before it is
timed (a float32 one that differs must be no further from NumPy in float64 than NumPy in float32 is). A ratio is the time of the
best peer divided by jitlab's: above 1 jitlab is ahead. JAX gets arrays that are on its device and each call waits for its
result. Numba runs the very NumPy function where no loops are written by hand for it, on all cores with `parallel=True`.
`memory` is the share of what copying a large array takes from memory and gives to it, that a call does to its arguments and
results alone: near 1 nothing is left to gain, above it they were in the caches.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import pkgutil
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if not __package__:
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from benchmarks.pinning import CORE, pin  # noqa: E402

if __name__ == "__main__":
    pin(is_parallel="all" in sys.argv)

import numpy as np  # noqa: E402

from benchmarks import array_programs  # noqa: E402
from benchmarks.sides import PEERS, SIDES, Skipped, given_to, imported, make  # noqa: E402

PROGRAMS = tuple(sorted(module.name for module in pkgutil.iter_modules(array_programs.__path__)))
SIZES = ("small", "medium", "large")
CORES = ("one", "all")
DTYPES = ("float32", "float64")
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
WRONG = 1e-3  # a peer that is further from NumPy is not timed
SAMPLE_SECONDS = 0.002  # a sample is as many calls as take this long
NEW_SHAPES = 5
COPIED = 8_000_000  # float64: memory's own speed, past the caches


# ---- one case: a program, a dtype, a size


def error_of(expected: Any, found: Any) -> float:
    """The largest error relative to the largest element of each result; infinite where a shape is not NumPy's."""
    expected, found = (value if isinstance(value, tuple) else (value,) for value in (expected, found))
    largest = 0.0
    for want, got in zip(expected, found, strict=True):
        want, got = np.asarray(want), np.asarray(got)
        if got.shape != want.shape:
            return float("inf")
        scale = float(np.max(np.abs(want))) or 1.0
        largest = max(largest, float(np.max(np.abs(want.astype(np.float64) - got))) / scale)
    return largest


def dtypes_of(result: Any) -> str:
    return ", ".join(str(np.asarray(value).dtype) for value in (result if isinstance(result, tuple) else (result,)))


def settle() -> None:
    """Until no thread of this process works any more: compilers that go on in the background have finished, also where other
    programs have the processor for a while."""
    quiet = 0
    while quiet < 5:
        before = time.process_time()
        time.sleep(0.04)
        quiet = quiet + 1 if time.process_time() - before < 0.002 else 0


def clock_of(is_parallel: bool) -> Callable[[], float]:
    """Seconds: of the processor where one core is used, else the wall clock."""
    return time.perf_counter if is_parallel else time.process_time


def calls_for_a_sample(run: Callable[..., Any], arguments: Sequence[Any], clock: Callable[[], float]) -> int:
    """As many as take `SAMPLE_SECONDS`, found by doubling: the clock is not read between calls."""
    calls = 1
    while (spent := sample(run, arguments, calls, clock) * calls) < SAMPLE_SECONDS / 2:
        calls *= 2
    return max(1, round(calls * SAMPLE_SECONDS / spent))


def sample(run: Callable[..., Any], arguments: Sequence[Any], calls: int, clock: Callable[[], float]) -> float:
    """Seconds of one call; a result replaces the one before, as in a loop of a user."""
    result = run(*arguments)
    start = clock()
    for _ in range(calls):
        result = run(*arguments)
    spent = clock() - start
    del result
    return spent / calls


def copy_speed(is_parallel: bool) -> float:
    """Bytes a second that copying a large array by NumPy reads and writes, the best of several."""
    source, target = np.ones(COPIED), np.zeros(COPIED)
    taken = [sample(np.copyto, (target, source), 1, clock_of(is_parallel)) for _ in range(7)]
    return 2 * source.nbytes / min(taken)


def bytes_of(values: Any) -> int:
    return sum(np.asarray(value).nbytes for value in (values if isinstance(values, (tuple, list)) else (values,)))


def measure(
    program: Any, sides: Sequence[str], shape: tuple[int, ...], dtype: str, seconds: float, is_parallel: bool = False
) -> dict[str, Any]:
    """{side: {"min": s, "median": s, "samples": n} or {"skipped": why}}, and "bytes" of arguments and results."""
    clock = clock_of(is_parallel)
    arrays = program.inputs(shape, np.dtype(dtype), np.random.default_rng(0))
    expected = program.program(*arrays)
    found: dict[str, Any] = {}
    runs: dict[str, tuple[Callable[..., Any], Sequence[Any], int]] = {}
    for side in sides:
        try:
            run, arguments = make(side, program, is_parallel), given_to(side, arrays)
            result = run(*arguments)
        except Skipped as skipped:
            found[side] = {"skipped": str(skipped)}
            continue
        except Exception as error:
            if side in ("numpy", "jitlab"):
                raise
            found[side] = {"skipped": f"{type(error).__name__}: {error}".split("\n")[0][:120]}  # the peer can't compile it
            continue
        error = error_of(expected, result)
        if error > TOLERANCE[dtype] and dtype == "float32":  # NumPy adds float32 one by one down the columns
            exact = program.program(*(value.astype(np.float64) if value.dtype == dtype else value for value in arrays))
            error = max(0.0, error_of(exact, result) - error_of(exact, expected))
        if error > TOLERANCE[dtype]:
            if side == "jitlab":
                raise SystemExit(f"{program.TITLE}, {dtype}, {shape}: jitlab differs from NumPy by {error:.1e}")
            if error > WRONG:
                found[side] = {"skipped": f"its {dtype} result differs from NumPy's by {error:.1e}"}
                continue
            print(f"{program.TITLE}, {dtype}, {shape}: {side} is less exact, it differs from NumPy by {error:.1e}")
        if dtypes_of(result) != dtypes_of(expected):
            print(f"{program.TITLE}, {dtype}, {shape}: {side} gives {dtypes_of(result)}, NumPy {dtypes_of(expected)}")
        del result
        runs[side] = run, arguments, 0
    settle()
    for side, (run, arguments, _) in runs.items():
        run(*arguments)
        runs[side] = run, arguments, calls_for_a_sample(run, arguments, clock)
    times: dict[str, list[float]] = {side: [] for side in runs}
    end = time.monotonic() + seconds * len(runs)
    while time.monotonic() < end or len(next(iter(times.values()))) < 5:
        for side, (run, arguments, calls) in runs.items():
            times[side].append(sample(run, arguments, calls, clock))
    for side, samples in times.items():
        found[side] = {"min": min(samples), "median": statistics.median(samples), "samples": len(samples)}
    return {side: found[side] for side in sides} | {"bytes": bytes_of(arrays) + bytes_of(expected)}


def first_calls(program: Any, sides: Sequence[str], dtype: str) -> dict[str, Any]:
    """{side: {"first": s, "new_shape": s}}: wall clock on small arrays, less a call that follows; new shapes: the median."""
    found: dict[str, Any] = {}
    for side in sides:
        try:
            run = make(side, program)
        except Skipped:
            continue
        rng = np.random.default_rng(0)
        shapes = [program.SMALL] + [(program.SMALL[0] + n, *program.SMALL[1:]) for n in range(1, NEW_SHAPES + 1)]
        costs = []
        for shape in shapes:
            arguments = given_to(side, program.inputs(shape, np.dtype(dtype), rng))
            start = time.perf_counter()
            run(*arguments)
            first = time.perf_counter() - start
            start = time.perf_counter()
            run(*arguments)
            costs.append(max(first - (time.perf_counter() - start), 0.0))
            if shape is shapes[0]:
                settle()
        found[side] = {"first": costs[0], "new_shape": statistics.median(costs[1:])}
        settle()
    return found


def start_up(sides: Sequence[str]) -> None:
    """Each compiler starts once before anything is measured: its own loading belongs to no program."""

    class Warm:
        @staticmethod
        def program(x: Any) -> Any:
            return x - 3.0

        @staticmethod
        def for_numexpr(numexpr: Any) -> Callable[..., Any]:
            return lambda x: numexpr.evaluate("x - 3.0")

    for side in sides:
        try:
            run = make(side, Warm)
            run(*given_to(side, [np.zeros(3)]))
        except Skipped:
            pass
    settle()


# ---- printing


def ratio(found: dict[str, Any], what: str) -> float | None:
    """The best peer divided by jitlab."""
    peers = [found[side][what] for side in PEERS if what in found.get(side, {})]
    return min(peers) / found["jitlab"][what] if peers and what in found.get("jitlab", {}) else None


def cell(times: dict[str, Any], what: str, unit: float = 1e3) -> str:
    """So many of a second's parts: milliseconds, if nothing is said."""
    return f"{times[what] * unit:.{2 if unit > 1e3 else 3}f}" if what in times else "-"


def table(rows: Sequence[Sequence[str]], left: int) -> str:
    """Columns of one width each, the first `left` of them set to the left."""
    columns = [
        [text.ljust(width) if n < left else text.rjust(width) for text in column]
        for n, column in enumerate(zip(*rows, strict=True))
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def geometric_mean(ratios: Sequence[float]) -> str:
    return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f} of {len(ratios)}" if ratios else "none"


def print_times(cases: Sequence[dict[str, Any]], sides: Sequence[str], speed: float) -> None:
    rows = [["program", "dtype", "size", *sides, "best peer / jitlab", "memory"]]
    for case in cases:
        times, ahead = case["times"], ratio(case["times"], "min")
        share = times["bytes"] / times["jitlab"]["min"] / speed if "jitlab" in times else 0.0
        told = [f"{ahead:.2f}" if ahead else "-", f"{share:.2f}" if case["size"] == SIZES[-1] else ""]
        rows.append([case["title"], case["dtype"], case["size"], *(cell(times[side], "min", 1e6) for side in sides), *told])
    print("\nthe least time of a call, µs")
    print(table(rows, 3))


def summary(cases: Sequence[dict[str, Any]], sides: Sequence[str]) -> str:
    """Geometric means of the times of each peer and of the best one over jitlab's, and the rows where one is ahead."""
    lines = []
    for side in (side for side in sides if side != "jitlab"):
        both = [case["times"] for case in cases if "min" in case["times"][side]]
        lines.append(f"{side} / jitlab: {geometric_mean([times[side]['min'] / times['jitlab']['min'] for times in both])}")
    best = {id(case): found for case in cases if (found := ratio(case["times"], "min")) is not None}
    lines.append(f"best peer / jitlab: {geometric_mean(list(best.values()))}")
    for size in SIZES:
        lines.append(f"  {size}: {geometric_mean([best[id(c)] for c in cases if c['size'] == size and id(c) in best])}")
    behind = sorted((best[id(c)], f"{c['title']}, {c['dtype']}, {c['size']}") for c in cases if best.get(id(c), 1) < 1)
    lines.append(f"a peer is ahead in {len(behind)} of {len(best)}" + ":" * bool(behind))
    lines += [f"  {found:.2f}  {name}" for found, name in behind]
    return "\n".join(lines)


def print_first_calls(cases: Sequence[dict[str, Any]], sides: Sequence[str]) -> None:
    sides = [side for side in sides if side != "numpy"]
    print("\nfirst call, and call with a new shape: wall clock over a following call, small arrays, ms")
    rows = [["program", "dtype", *(f"{side} {what}" for side in sides for what in ("first", "shape"))]]
    for case in cases:
        calls = case["calls"]
        both = [cell(calls.get(side, {}), what) for side in sides for what in ("first", "new_shape")]
        rows.append([case["title"], case["dtype"], *both])
    print(table(rows, 2))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description="jitlab against its peers.")
    parser.add_argument("--cores", choices=CORES, default="one", help="one: processor time; all: the wall clock (default one)")
    parser.add_argument("--only", metavar="NAMES", help=f"programs, comma separated: {', '.join(PROGRAMS)}")
    parser.add_argument("--sizes", metavar="NAMES", default=",".join(SIZES), help=f"of {', '.join(SIZES)}; comma separated")
    parser.add_argument("--dtypes", metavar="NAMES", default=",".join(DTYPES))
    parser.add_argument("--peers", metavar="NAMES", default=",".join(PEERS))
    parser.add_argument("--seconds", type=float, default=0.2, help="time a side and case (default 0.2)")
    parser.add_argument("--first-calls", action="store_true", help="also the first call, and one with a new shape")
    parser.add_argument("--json", metavar="PATH", help="write everything there too")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",") if options.only else list(PROGRAMS)
    for many, known in (("only", PROGRAMS), ("sizes", SIZES), ("dtypes", DTYPES), ("peers", PEERS)):
        names = getattr(options, many)
        names = names.split(",") if isinstance(names, str) else names
        setattr(options, many, names)
        for name in names:
            if name not in known:
                parser.error(f"--{many}: there is no {name!r}; there are {', '.join(known)}")
    return options


def about_machine(sides: list[str], is_parallel: bool) -> dict[str, Any]:
    """The machine and versions; a side that is not installed is taken out of `sides`."""
    cores = len(os.sched_getaffinity(0)) if is_parallel and hasattr(os, "sched_getaffinity") else 1
    about = {
        "date": time.strftime("%Y-%m-%d"), "machine": processor(), "cores": cores, "core": None if is_parallel else CORE,
        "python": platform.python_version(), "numpy": np.__version__,
    }  # fmt: skip
    for side in list(sides):
        try:
            about[side] = imported(side).__version__
        except Skipped as skipped:
            print(f"{side} is left out: {skipped}")
            sides.remove(side)
    return about


def processor() -> str:
    """Its name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    is_parallel = options.cores == "all"
    sides = [*options.peers, "jitlab"]
    about = about_machine(sides, is_parallel)
    print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
    start_up(sides)
    speed = copy_speed(is_parallel)
    about["copied_bytes_a_second"] = speed

    programs = [(name, importlib.import_module(f"{array_programs.__name__}.{name}")) for name in options.only]
    calls = []
    if options.first_calls:  # before anything else has compiled these programs
        for name, program in programs:
            for dtype in options.dtypes:
                case = {"program": name, "title": program.TITLE, "dtype": dtype}
                calls.append({**case, "calls": first_calls(program, sides, dtype)})
    cases: list[dict[str, Any]] = []
    told: set[tuple[str, str]] = set()
    for name, program in programs:
        for size in options.sizes:
            for dtype in options.dtypes:
                times = measure(program, sides, program.SIZES[size], dtype, options.seconds, is_parallel)
                cases.append({"program": name, "title": program.TITLE, "dtype": dtype, "size": size, "times": times})
                for side, found in times.items():
                    if side in SIDES and "skipped" in found and (name, side) not in told:
                        told.add((name, side))
                        print(f"{program.TITLE}: {side} is left out: {found['skipped']}", flush=True)
                ahead = ratio(times, "min")
                told_ratio = f"{ahead:.2f}" if ahead else "no ratio"
                print(f"{program.TITLE}, {dtype}, {size}: {told_ratio}", file=sys.stderr, flush=True)
    print_times(cases, sides, speed)
    print(summary(cases, sides))
    if calls:
        print_first_calls(calls, sides)
    if options.json:
        everything = {"about": about, "cases": cases, "first_calls": calls}
        Path(options.json).write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Times the programs of this folder: jitlab against NumPy, numexpr, Numba and JAX.

    python -m benchmarks.run [--only softmax,variance] [--sizes 1e6] [--dtypes float64] [--peers numpy,jax] [--json PATH]

Method: one core (this process is pinned before anything is imported), the processor time of the process (all its threads) and
not the wall clock, all sides warm, samples of the sides alternating, every result checked against NumPy before it is timed.
A ratio is the time of the best peer divided by jitlab's: above 1 jitlab is ahead. JAX gets arrays that are on its device and
each call waits for its result. Numba runs the very NumPy function where it compiles it, else loops written by hand.
"""

from __future__ import annotations

import argparse
import importlib
import json
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
    pin()

import numpy as np  # noqa: E402

PROGRAMS = ("multiply_add_sine", "scale_shift", "softmax", "layernorm", "variance", "logsumexp", "softmax_regression")
PEERS = ("numpy", "numexpr", "numba", "jax")
DTYPES = ("float32", "float64")
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
WRONG = 1e-3  # a peer that is further from NumPy is not timed
SAMPLE_SECONDS = 0.002  # a sample is as many calls as take this long
NEW_SHAPES = 5


class Skipped(Exception):
    """A side that can't take part, and why."""


# ---- the sides: each makes a callable of a program


def numpy_side(program: Any) -> Callable[..., Any]:
    return program.program


def numexpr_side(program: Any) -> Callable[..., Any]:
    numexpr = imported("numexpr")
    numexpr.set_num_threads(1)
    if not hasattr(program, "for_numexpr"):
        raise Skipped("it can't express the program")
    return program.for_numexpr(numexpr)


def numba_side(program: Any) -> Callable[..., Any]:
    numba = imported("numba")
    return program.for_numba(numba) if hasattr(program, "for_numba") else numba.njit(program.program)


def jax_side(program: Any) -> Callable[..., Any]:
    """The NumPy function with `np` standing for jax.numpy."""
    jax = imported("jax")
    jax.config.update("jax_enable_x64", True)
    source = program.program
    names = {**source.__globals__, "np": jax.numpy}
    compiled = jax.jit(type(source)(source.__code__, names, source.__name__))
    return lambda *arrays: jax.block_until_ready(compiled(*arrays))


def jitlab_side(program: Any) -> Callable[..., Any]:
    import jitlab as jl

    return jl.function(program.program)


SIDES = {"numpy": numpy_side, "numexpr": numexpr_side, "numba": numba_side, "jax": jax_side, "jitlab": jitlab_side}


def imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped("not installed") from None


def make(side: str, program: Any) -> Callable[..., Any]:
    reason = getattr(program, "UNSUPPORTED", {}).get(side)
    if reason:
        raise Skipped(reason)
    return SIDES[side](program)


def given_to(side: str, arrays: Sequence[np.ndarray]) -> Sequence[Any]:
    """The inputs as a side likes them best: JAX has copies on its device, where no call converts them."""
    if side != "jax":
        return arrays
    import jax

    return [jax.block_until_ready(jax.numpy.array(array, copy=True)) for array in arrays]


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
    """Until no thread of this process works any more: compilers that go on in the background have finished."""
    quiet = 0
    while quiet < 3:
        before = time.process_time()
        time.sleep(0.02)
        quiet = quiet + 1 if time.process_time() - before < 0.002 else 0


def calls_for_a_sample(run: Callable[..., Any], arguments: Sequence[Any]) -> int:
    start = time.process_time()
    calls = 0
    while time.process_time() - start < SAMPLE_SECONDS:
        run(*arguments)
        calls += 1
    return calls


def sample(run: Callable[..., Any], arguments: Sequence[Any], calls: int) -> float:
    """Seconds of processor time of one call; a result replaces the one before, as in a loop of a user."""
    result = run(*arguments)
    start = time.process_time()
    for _ in range(calls):
        result = run(*arguments)
    spent = time.process_time() - start
    del result
    return spent / calls


def measure(program: Any, sides: Sequence[str], shape: tuple[int, ...], dtype: str, seconds: float) -> dict[str, Any]:
    """{side: {"min": s, "median": s, "samples": n} or {"skipped": why}}"""
    arrays = program.inputs(shape, np.dtype(dtype), np.random.default_rng(0))
    expected = program.program(*arrays)
    found: dict[str, Any] = {}
    runs: dict[str, tuple[Callable[..., Any], Sequence[Any], int]] = {}
    for side in sides:
        try:
            run, arguments = make(side, program), given_to(side, arrays)
        except Skipped as skipped:
            found[side] = {"skipped": str(skipped)}
            continue
        result = run(*arguments)
        error = error_of(expected, result)
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
        runs[side] = run, arguments, calls_for_a_sample(run, arguments)
    times: dict[str, list[float]] = {side: [] for side in runs}
    end = time.monotonic() + seconds * len(runs)
    while time.monotonic() < end or len(next(iter(times.values()))) < 5:
        for side, (run, arguments, calls) in runs.items():
            times[side].append(sample(run, arguments, calls))
    for side, samples in times.items():
        found[side] = {"min": min(samples), "median": statistics.median(samples), "samples": len(samples)}
    return {side: found[side] for side in sides}


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
    peers = [times[what] for side, times in found.items() if side != "jitlab" and what in times]
    return min(peers) / found["jitlab"][what] if peers and what in found.get("jitlab", {}) else None


def cell(times: dict[str, Any], what: str) -> str:
    return f"{times[what] * 1e3:.3f}" if what in times else "-"


def table(rows: Sequence[Sequence[str]], left: int) -> str:
    """Columns of one width each, the first `left` of them set to the left."""
    columns = [
        [text.ljust(width) if n < left else text.rjust(width) for text in column]
        for n, column in enumerate(zip(*rows, strict=True))
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def print_times(cases: Sequence[dict[str, Any]], sides: Sequence[str]) -> None:
    head = ["program", "dtype", "size", *sides, "best peer / jitlab"]
    for what in ("min", "median"):
        print(f"\n{what} of the processor time of a call, ms")
        rows = [head]
        for case in cases:
            times, times_ahead = case["times"], ratio(case["times"], what)
            ahead = f"{times_ahead:.2f}" if times_ahead else "-"
            rows.append([case["title"], case["dtype"], case["size"], *(cell(times[side], what) for side in sides), ahead])
        print(table(rows, 3))


def print_first_calls(cases: Sequence[dict[str, Any]], sides: Sequence[str]) -> None:
    sides = [side for side in sides if side != "numpy"]
    print("\nfirst call, and call with a new shape: wall clock over a following call, small arrays, ms")
    rows = [["program", "dtype", *(f"{side} {what}" for side in sides for what in ("first", "shape"))]]
    for case in cases:
        calls = case["calls"]
        both = [cell(calls.get(side, {}), what) for side in sides for what in ("first", "new_shape")]
        rows.append([case["title"], case["dtype"], *both])
    print(table(rows, 2))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description="jitlab against its peers on one core.")
    parser.add_argument("--only", metavar="NAMES", help=f"programs, comma separated: {', '.join(PROGRAMS)}")
    parser.add_argument("--sizes", metavar="NAMES", help="sizes, comma separated (default 1e6, 1e7; a training step also 128)")
    parser.add_argument("--dtypes", metavar="NAMES", default=",".join(DTYPES))
    parser.add_argument("--peers", metavar="NAMES", default=",".join(PEERS))
    parser.add_argument("--seconds", type=float, default=0.5, help="time a side and case (default 0.5)")
    parser.add_argument("--no-first-calls", action="store_true", help="only the warm times")
    parser.add_argument("--json", metavar="PATH", help="write everything there too")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else list(PROGRAMS)
    for name in names:
        if name not in PROGRAMS:
            parser.error(f"there is no program {name!r}; there are {', '.join(PROGRAMS)}")
    sides = [*options.peers.split(","), "jitlab"]
    for side in sides:
        if side not in SIDES:
            parser.error(f"there is no peer {side!r}; there are {', '.join(PEERS)}")

    about = {"machine": platform.machine(), "python": platform.python_version(), "core": CORE, "numpy": np.__version__}
    for side in (*sides[:-1], "jitlab"):
        try:
            about[side] = imported(side).__version__
        except Skipped as skipped:
            print(f"{side} is left out: {skipped}")
            sides.remove(side)
    print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
    start_up(sides)

    programs = [(name, importlib.import_module(f"benchmarks.{name}")) for name in names]
    calls = []
    if not options.no_first_calls:  # before anything else has compiled these programs
        for name, program in programs:
            for dtype in options.dtypes.split(","):
                case = {"program": name, "title": program.TITLE, "dtype": dtype}
                calls.append({**case, "calls": first_calls(program, sides, dtype)})
    cases: list[dict[str, Any]] = []
    told: set[tuple[str, str]] = set()
    for name, program in programs:
        wanted = options.sizes.split(",") if options.sizes else getattr(program, "DEFAULT_SIZES", tuple(program.SIZES))
        for size in (size for size in wanted if size in program.SIZES):
            for dtype in options.dtypes.split(","):
                times = measure(program, sides, program.SIZES[size], dtype, options.seconds)
                cases.append({"program": name, "title": program.TITLE, "dtype": dtype, "size": size, "times": times})
                for side, found in times.items():
                    if "skipped" in found and (name, side) not in told:
                        told.add((name, side))
                        print(f"{program.TITLE}: {side} is left out: {found['skipped']}", flush=True)
                ahead = ratio(times, "min")
                print(f"{program.TITLE}, {dtype}, {size}: {f'{ahead:.2f}' if ahead else 'no ratio'}", flush=True)
    if cases:
        print_times(cases, sides)
    if calls:
        print_first_calls(calls, sides)
    if options.json:
        everything = {"about": about, "cases": cases, "first_calls": calls}
        Path(options.json).write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the cost model predicts beside what is measured, kernel by kernel.

    python -m benchmarks.predictions [--only softmax,variance] [--rounds 7] [--json PATH] [--plot PATH]

Each program of `benchmarks/` runs warm on one core; a kernel's time is the least processor time of its calls.
Kernels below 2 µs are left out (the clock around them is of their size), and calls of libraries, of which the model says
nothing. The error of a kernel is |predicted / measured - 1|; the last line has their median.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.pinning import pin

if __name__ == "__main__":
    pin()

import numpy as np  # noqa: E402

import jitlab as jl  # noqa: E402
from benchmarks.programs.registry import PROGRAMS as WHOLE  # noqa: E402
from benchmarks.run import DTYPES, PROGRAMS, settle  # noqa: E402
from jitlab import events  # noqa: E402
from jitlab.messages.units import duration  # noqa: E402

#: Seconds of a kernel from which on it is listed, and of a round of calls.
LEAST, ROUND = 2e-6, 0.02

#: The share of a run for which the thread had a processor, from which on nobody else had it.
ALONE = 0.97

#: Sizes of the programs of `benchmarks/programs/`.
SIZES = ("small", "large")

Case = tuple[str, Any, Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]]


def cases(only: set[str]) -> Iterator[Case]:
    """A name, a compiled function, and what makes its arguments."""
    for name in PROGRAMS:
        module = importlib.import_module(f"benchmarks.array_programs.{name}")
        for dtype in DTYPES if not only or name in only else ():
            for size, shape in module.SIZES.items():
                arrays = module.inputs(shape, np.dtype(dtype), np.random.default_rng(0))
                yield f"{name} {size} {dtype}", jl.function(module.program), lambda given=arrays: (tuple(given), {})
    for name, program in WHOLE.items():
        for size in SIZES if not only or name in only else ():
            given = program.arguments(size)
            yield f"{name} {size}", jl.jit(program.function), lambda given=given: (given.args, given.kwargs)


def kernels(name: str, function: Any, arguments: Callable[..., Any], rounds: int) -> list[dict[str, Any]]:
    """Of each kernel that ran the least processor time of a call, and what the model says."""
    args, kwargs = arguments()
    for _ in range(4):
        function(*args, **kwargs)
    settle()
    with jl.record() as recording:
        function(*args, **kwargs)
    report = recording.report().to_json()
    runs: dict[tuple[str, int], list[tuple[float, float]]] = {}  # of each: for how much of it the thread had a processor

    def note(event: Any) -> None:
        if isinstance(event, events.ClusterRan):
            had = min(1.0, event.thread_ns / event.duration_ns) if event.thread_ns else 1.0
            for number, ns in enumerate(event.kernels_ns or (event.duration_ns,)):
                runs.setdefault((event.cluster, number), []).append((had, ns / 1e9))

    end = time.monotonic() + rounds * ROUND
    with events.listen(note), events.busy:  # C functions do not ask the thread's clock
        while time.monotonic() < end or rounds > 0:
            function(*args, **kwargs)
            rounds -= 1
    found, place = [], Counter[str]()
    for kernel in report["kernels"]:
        cluster = kernel["cluster"]
        seconds = undisturbed(runs.get((cluster, place[cluster]), []))
        place[cluster] += 1
        if seconds is not None:
            found.append({
                "program": name, "kernel": f"{kernel['plan']} {kernel['name']}", "measured": seconds,
                "predicted": kernel.get("predicted"), "kind": kernel["kind"], "ops": kernel["ops"],
            })  # fmt: skip
    return found


def undisturbed(runs: list[tuple[float, float]]) -> float | None:
    """The least of the runs in which nobody else had the processor; where there was none, of that which had it longest."""
    alone = [seconds for had, seconds in runs if had > ALONE]
    return min(alone) if alone else max(runs)[0] * max(runs)[1] if runs else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs, by name")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="an SVG of the kernels: measured across, predicted up")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| {'program':34} | {'kernel':24} | measured µs | predicted µs | ratio |\n|---|---|---|---|---|")
    rows: list[dict[str, Any]] = []
    for name, function, arguments in cases(set(filter(None, options.only.split(",")))):
        try:
            found = kernels(name, function, arguments, options.rounds)
        except Exception as error:  # a program that cannot run here says so, and the others go on
            print(f"| {name:34} | {type(error).__name__}: {str(error)[:60]} |")
            continue
        for row in found:
            if row["predicted"] is not None and row["measured"] >= LEAST:
                rows.append(row)
                ratio = row["predicted"] / row["measured"]
                print(
                    f"| {name:34} | {row['kernel'][-24:]:24} | {row['measured'] * 1e6:11.1f} | {row['predicted'] * 1e6:12.1f} "
                    f"| {ratio:5.2f} |", flush=True,
                )  # fmt: skip
    if rows:
        errors = [abs(row["predicted"] / row["measured"] - 1) for row in rows]
        print(f"\n{len(rows)} kernels, median error {statistics.median(errors):.0%}")
    if options.json:
        options.json.write_text(json.dumps(rows))
    if options.plot:
        options.plot.write_text(plot(rows))


# ---- the plot

SIDE, EDGE = 480, 56  # of the square, and for what is written beside it
GREY, BLUE = "#808080", "#2a7ab8"  # read well on white and on black


def plot(rows: list[dict[str, Any]]) -> str:
    """SVG: a dot a kernel, both axes logarithmic; between the dashed lines the model errs by a fifth at most."""
    times = [row[what] for row in rows for what in ("measured", "predicted")]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def place(seconds: float) -> float:
        return (math.log10(seconds) - low) / (high - low) * SIDE

    def line(ratio: float, dash: str) -> str:
        shift = math.log10(ratio) / (high - low) * SIDE
        left, right, up = max(0.0, -shift), SIDE - max(0.0, shift), max(0.0, shift)  # it ends at the square's edges
        ends = f'x1="{left:.1f}" y1="{SIDE - up:.1f}" x2="{right:.1f}" y2="{left:.1f}"'
        return f'<line {ends} stroke="{GREY}" stroke-dasharray="{dash}"/>'

    marks = [line(1.0, "none"), line(1.2, "4 4"), line(1 / 1.2, "4 4")]
    for power in range(low, high + 1):
        at, name = place(10.0**power), duration(10.0**power)
        marks += [
            f'<path d="M{at:.1f} 0V{SIDE}M0 {SIDE - at:.1f}H{SIDE}" stroke="{GREY}" stroke-opacity=".25"/>',
            f'<text x="{at:.1f}" y="{SIDE + 18}" text-anchor="middle">{name}</text>',
            f'<text x="-6" y="{SIDE - at + 4:.1f}" text-anchor="end">{name}</text>',
        ]
    for row in rows:
        x, y = place(row["measured"]), SIDE - place(row["predicted"])
        told = " beside ".join(f"{duration(row[what])} {what}" for what in ("measured", "predicted"))
        title = f"<title>{escape(row['program'])}, {escape(row['kernel'])}: {told}</title>"
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{BLUE}" fill-opacity=".55">{title}</circle>')
    whole = SIDE + 2 * EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-EDGE - 14} -20 {whole} {SIDE + EDGE + 20}" width="{whole}" '
        f'font-family="sans-serif" font-size="12" fill="{GREY}" role="img" '
        f'aria-label="Predicted beside measured time of {len(rows)} kernels">\n' + "\n".join(marks)
        + f'\n<text x="{SIDE / 2}" y="{SIDE + 38}" text-anchor="middle">measured</text>'
        f'\n<text transform="translate({-EDGE} {SIDE / 2}) rotate(-90)" text-anchor="middle">predicted</text>\n</svg>\n'
    )  # fmt: skip


if __name__ == "__main__":
    main()

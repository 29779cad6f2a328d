"""Writes the docs page of `benchmarks/run.py`: machine, figures and what stands behind them, from the files of its runs.

    python -m benchmarks.page one.json [all.json] [--predictions predictions.json PLOT] > PAGE

`predictions.json` is from `benchmarks/predictions.py`; PLOT is the address of its plot, as the page has it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from benchmarks.run import SIZES, geometric_mean, ratio  # noqa: E402
from benchmarks.sides import PEERS  # noqa: E402

HEAD = """# How fast, beside what

NumPy programs of a few lines each (`benchmarks/array_programs`), as a user writes \
them, beside NumPy, numexpr, Numba, JAX and `torch.compile`, whichever are installed. Numba gets loops written by hand \
where it cannot compile the NumPy function, numexpr its own expressions, JAX the function with `jax.numpy` in NumPy's \
place and arrays that are on its device. Every result is compared with NumPy's before it is timed; samples of all sides \
take turns. The docstring of `benchmarks/run.py` has the method. A ratio is a peer's time divided by jitlab's: above 1 \
jitlab is faster. Read differences of ten percent as none.
"""


def section(run: dict[str, Any]) -> str:
    about, cases = run["about"], run["cases"]
    is_parallel = about["core"] is None
    named = ("numpy", *(peer for peer in PEERS[1:] if peer in about), "jitlab")
    versions = ", ".join(f"{name} {about[name]}" for name in named)
    command = f"python -m benchmarks.run --cores {'all' if is_parallel else 'one'}"
    what = f"All {about['cores']} cores, wall clock" if is_parallel else "One core, processor time"
    peers = [peer for peer in PEERS if peer in about]
    lines = [
        f"\n## {what}\n", f"`{command}`, {about['date']}, {about['machine']}, Python {about['python']}, {versions}.\n",
        f"| {' | '.join(['', *peers, 'the best of them'])} |", "|---" * (len(peers) + 2) + "|",
    ]  # fmt: skip
    for size in (*SIZES, ""):
        chosen = [case["times"] for case in cases if size in ("", case["size"])]
        means = [
            geometric_mean([t[peer]["min"] / t["jitlab"]["min"] for t in chosen if "min" in t[peer]]) for peer in peers
        ]
        best = geometric_mean([found for t in chosen if (found := ratio(t, "min")) is not None])
        lines.append(f"| {size or 'all'} | {' | '.join([*means, best])} |")
    lines += ["\nMicroseconds of a call, the least; the ratio is that of the best peer.\n", rows_of(cases, peers)]
    return "\n".join(lines) + "\n"


def rows_of(cases: Sequence[dict[str, Any]], peers: Sequence[str]) -> str:
    lines = [f"| program | dtype | size | {' | '.join([*peers, 'jitlab', 'ratio'])} |", "|---" * (len(peers) + 5) + "|"]
    for case in cases:
        times, found = case["times"], ratio(case["times"], "min")
        told = [micros(times[side]["min"]) if "min" in times[side] else "" for side in (*peers, "jitlab")]
        shown = "" if found is None else f"**{found:.2f}**" if found < 1 else f"{found:.2f}"
        title = case["title"].replace("*", "\\*")
        lines.append(f"| {title} | {case['dtype']} | {case['size']} | {' | '.join([*told, shown])} |")
    return "\n".join(lines)


def micros(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f}" if seconds >= 1e-4 else f"{seconds * 1e6:.3g}"


def predictions(rows: Sequence[dict[str, Any]], plot: str) -> str:
    errors: dict[str, list[float]] = {}
    for row in rows:
        errors.setdefault(row["kind"], []).append(abs(row["predicted"] / row["measured"] - 1))
    everything = [error for found in errors.values() for error in found]
    told = [f"{statistics.median(found):.0%} of the {len(found)} of kind `{kind}`" for kind, found in sorted(errors.items())]
    return f"""
## What the cost model predicts

`python -m benchmarks.predictions`: of each kernel of these programs and of `benchmarks/programs` the least processor time on \
one core, beside what the model said before it ran. The median error is {statistics.median(everything):.0%} of {len(rows)} \
kernels: {", ".join(told)}. Between the dashed lines it is a fifth at most.

![Predicted beside measured times, a dot a kernel]({plot})
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--predictions", nargs=2, metavar=("JSON", "PLOT"))
    options = parser.parse_args(arguments)
    page = HEAD + "".join(section(json.loads(path.read_text(encoding="utf-8"))) for path in options.runs)
    if options.predictions:
        page += predictions(json.loads(Path(options.predictions[0]).read_text(encoding="utf-8")), options.predictions[1])
    print(page, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

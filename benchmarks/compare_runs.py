"""Shows live that a comparison of runs tells an unchanged program from one that became 10 % slower.

    python -m benchmarks.compare_runs [--trials 20] [--seconds 0.3] [--json PATH]

A program of NumPy calls that jitlab compiles is run and recorded, run after run, as a cell of a notebook is: each run takes
`--seconds` of calls. Every run is compared with the one before it, of the same work (A/A), and with one of 10 % more rows (the
plan is the same, sizes are no part of it). The runs before tell how much runs differ. The same pairs are then taken in turns,
as a what-if does. Wall-clock time, nothing is pinned, nothing is repeated until it fits.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if not __package__:
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

import numpy as np  # noqa: E402

import jitlab as jl  # noqa: E402
from jitlab.report.store.comparing import compared  # noqa: E402
from jitlab.report.store.runs import pooled  # noqa: E402
from jitlab.support.statistics import difference  # noqa: E402

ROWS, COLUMNS, MORE = 500, 784, 1.1
PAIRS = 60
HISTORY = 6  # runs before that tell how much runs differ


@jl.function
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def recorded(x: Any, seconds: float) -> dict[str, Any]:
    """One run of a cell: calls for so many seconds; its facts."""
    with jl.record() as recording:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            softmax(x)
    facts: dict[str, Any] = recording.report().facts
    return {**facts, "source": "softmax"}


def timed(x: Any) -> float:
    start = time.perf_counter()
    softmax(x)
    return time.perf_counter() - start


def in_turns(one: Any, other: Any) -> Any:
    before, after = [], []
    for i in range(PAIRS):
        sides: list[tuple[list[float], Any]] = [(before, one), (after, other)]
        for kept, x in sides if i % 2 else sides[::-1]:
            kept.append(timed(x))
    return difference(before, after, paired=True)


def trials(count: int, seconds: float) -> dict[str, list[Any]]:
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    more = np.random.default_rng(1).normal(size=(round(ROWS * MORE), COLUMNS))
    for work in (x, more):
        for _ in range(50):
            softmax(work)
    time.sleep(0.5)  # the better code is ready by then
    found: dict[str, list[Any]] = {"runs, same": [], "runs, 10 % slower": [], "in turns, same": [], "in turns, 10 % slower": []}
    runs = [{**recorded(x, seconds), "run": i} for i in range(HISTORY)]
    for trial in range(count):
        before = pooled(runs[-HISTORY:], 20)
        again, slow = recorded(x, seconds), recorded(more, seconds)
        found["runs, same"].append(compared(before, {**again, "run": 0}).rows[0]["change"])
        found["runs, 10 % slower"].append(compared(before, {**slow, "run": 0}).rows[0]["change"])
        found["in turns, same"].append(in_turns(x, x.copy()).to_json())
        found["in turns, 10 % slower"].append(in_turns(x, more).to_json())
        runs.append({**again, "run": HISTORY + trial})
    return found


def table(found: dict[str, list[Any]], others: Callable[[], float | None]) -> str:
    lines = [f"{'':<24}{'reported':>10}{'ratio':>8}{'95 % interval':>18}   said most often"]
    for name, changes in found.items():
        ratio, low, high = (float(np.median([change[key] for change in changes])) for key in ("ratio", "low", "high"))
        said = [change["word"] for change in changes]
        number = sum(change["significant"] for change in changes)
        word = max(set(said), key=said.count)
        lines.append(f"{name:<24}{number:>6}/{len(changes):<3}{ratio:>8.3f}{f'{low:.3f} to {high:.3f}':>18}   {word}")
    busy = others()
    if busy is not None:
        lines.append(f"Other programs took {busy * 100:.0f} % of the processors meanwhile.")
    return "\n".join(lines)


def main() -> None:
    from jitlab.api.check.load import Load

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--json", metavar="PATH")
    asked = parser.parse_args()
    load = Load()
    found = trials(asked.trials, asked.seconds)
    print(table(found, load.others))
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

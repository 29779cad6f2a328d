"""Writes a real report of many operations, which jitlab makes itself: what `make bench-panel ARGS=report.json` is given.

python benchmarks/long_report.py report.json [operations, 50000]: graphs of 2,000 operations each are made and run.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import jitlab as jl

EACH = 2000


def network(x: np.ndarray, operations: int) -> np.ndarray:
    """Layers of elementwise work with a product of matrices after each."""
    made = 0
    while made < operations:
        for _ in range(23):
            x = x * 1.0001 + 0.01
        x = np.tanh(x @ x / 8)
        made += 49
    return x


def main(path: str, operations: int) -> None:
    start = time.perf_counter()
    x = np.linspace(-1, 1, 64).reshape(8, 8)
    with jl.record() as recording:
        for first in range(0, operations, EACH):
            graph = jl.Graph()
            with graph.as_default():
                a = jl.placeholder(np.float64, x.shape, name="x")
                with jl.jit_scope():
                    y = network(a, min(EACH, operations - first))
            jl.Session(graph).run(y, {a: x})
    report = recording.report().to_json()
    with open(path, "w") as file:
        json.dump(report, file)
    counts = ", ".join(f"{len(report[part])} {part}" for part in ("ops", "clusters", "kernels"))
    print(f"{path}: {counts}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50_000)

"""Kernels on one thread and on several, by the clock: `python -m benchmarks.threads [--threads 2] [name ...]`.

Both ways are called in turns, and the best of each counts: what another program has of the processors makes single calls slow.
`--threads 4` on two processors says what threads cost that have none.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

import jitlab as jl

ROUNDS, CALLS = 40, 5


def chain(x: np.ndarray) -> Any:
    return np.tanh(np.exp(-x * x) + np.sin(x))


def black_scholes(price: np.ndarray) -> Any:
    strike, rate, volatility, years = 1.1, 0.03, 0.2, 2.0
    d1 = (np.log(price / strike) + (rate + volatility**2 / 2) * years) / (volatility * np.sqrt(years))
    d2 = d1 - volatility * np.sqrt(years)
    return price * ndtr(d1) - strike * np.exp(-rate * years) * ndtr(d2)


def softmax(x: np.ndarray) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def positive(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape) + 0.5


#: Name -> function, argument.
KERNELS: dict[str, tuple[Callable[[np.ndarray], Any], np.ndarray]] = {
    "exp, sin, tanh, 1e5": (chain, positive(100_000)),
    "exp, sin, tanh, 1e6": (chain, positive(1_000_000)),
    "Black-Scholes, 1e6": (black_scholes, positive(1_000_000)),
    "softmax of rows, 1000 × 1000": (softmax, positive(1000, 1000)),
    "exp, sum of all, 4e6": (lambda x: np.exp(x).sum(), positive(4_000_000)),
    "standard deviation of columns, 2000 × 1000": (lambda x: x.std(axis=0), positive(2000, 1000)),
    "2 x + 1, 1e6": (lambda x: 2 * x + 1, positive(1_000_000)),
    "2 x + 1, 2e7": (lambda x: 2 * x + 1, positive(20_000_000)),
    "sum of all, 2e7": (lambda x: x.sum(), positive(20_000_000)),
}


def best(function: Callable[..., Any], argument: np.ndarray) -> float:
    """Seconds of the best of some calls."""
    found = []
    for _ in range(CALLS):
        start = time.perf_counter()
        function(argument)
        found.append(time.perf_counter() - start)
    return min(found)


def measured(function: Callable[..., Any], argument: np.ndarray, threads: int) -> tuple[float, float]:
    """Seconds on one thread and on several."""
    compiled = jl.function(function)
    for _ in range(2):
        best(compiled, argument)
        time.sleep(0.3)  # the good tier comes when nothing was compiled for a while
    found: dict[int, list[float]] = {1: [], threads: []}
    for _ in range(ROUNDS):
        for jl.config.threads in found:
            found[jl.config.threads].append(best(compiled, argument))
    return min(found[1]), min(found[threads])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help="what the names begin with; all by default")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(f"| kernel, float64 | 1 thread, ms | {options.threads} threads, ms | ratio |\n|---|---|---|---|")
    for name, (function, argument) in KERNELS.items():
        if not options.names or name.startswith(tuple(options.names)):
            one, several = measured(function, argument, options.threads)
            print(f"| {name} | {one * 1e3:.3f} | {several * 1e3:.3f} | {one / several:.2f} |", flush=True)


if __name__ == "__main__":
    main()

"""Random programs, each checked in a process apart: one that dies or hangs is told like one that differs."""

from __future__ import annotations

import argparse
import concurrent.futures
import logging
import multiprocessing
from concurrent.futures.process import BrokenProcessPool

#: Seconds after which a program hangs.
LONGEST = 120
KINDS = ("operations", "functions", "cells", "sizes")


def check(kind: str, seed: int, way: str, length: int | None) -> list[str]:
    """What is wrong with the program of a seed, made small, for each way that it is run in."""
    logging.getLogger("jitlab").setLevel(logging.ERROR)
    if kind == "operations":
        from . import fuzzing

        program = fuzzing.make(seed, length)
        program.mode = way or program.mode
        return [f"{text}\n{fuzzing.smaller(program)}"] if (text := fuzzing.failure(program)) else []
    if kind == "functions":
        from . import functions, outcomes

        whole = functions.make(seed)
        ways = [way] if way else outcomes.ways_of(whole)
        return [f"{text}\n{outcomes.least(whole, each)}" for each in ways if (text := outcomes.failure(whole, each))]
    if kind == "sizes":
        from . import notebooks

        text = notebooks.failure(seed)
        return ["\n# ----\n".join([text, *notebooks.Notebook(seed).cells])] if text else []
    from . import cells

    made = cells.make(seed)
    return [f"{text}\n{cells.least(made)}"] if (text := cells.failure(made)) else []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="random programs, compared with plain Python")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--way", default="", help="run each in this way only: 'jit', 'jit O0', 'function', ...")
    parser.add_argument("--length", type=int, help="statements of a program of operations")
    options = parser.parse_args()
    wrong, pool = 0, None
    for seed in range(options.seed, options.seed + options.count):
        pool = pool or concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            found = pool.submit(check, options.kind, seed, options.way, options.length).result(LONGEST)
        except (BrokenProcessPool, TimeoutError) as error:
            found = ["it hung" if isinstance(error, TimeoutError) else "its process died"]
            for process in pool._processes.values():
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)
            pool = None
        wrong += bool(found)
        for text in found:
            print(f"# ---- seed {seed}: {text}", flush=True)
    print(f"{wrong} of {options.count} {options.kind} differ")
    return 1 if wrong else 0

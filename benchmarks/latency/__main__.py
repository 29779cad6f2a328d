"""How long a user waits: imports, first calls, other sizes, warm calls; jitlab beside JAX and Numba where those are installed.

    python -m benchmarks.latency [--rounds 5] [--only first,warm] [--json PATH]

Method: each figure is taken in a process of its own (`child`), on one core; the tools take turns, and the least of the rounds
counts, as what a machine that does nothing else takes. Milliseconds are of the main thread's processor time, without the
processes that compile in the background; "right after another" is by the clock, since it is a wait. A first call comes half
a second after the function is decorated, as where somebody types the call, or "at once" behind it. "From disk" is a second
process with the code that the first has kept; JAX and Numba are measured without theirs. `goal` is what jitlab is to take.
Microseconds of warm calls are over an empty function's call, on ten elements. Each row is printed when it is measured. What one
tool cannot do stays empty, with its last line of error below; the status is then 1, and 0 whatever the goals say.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.pinning import CORE, pin
from benchmarks.run import table

ROOT = Path(__file__).parents[2]
TITLE = 46  # width of the first column


@dataclass(frozen=True)
class Row:
    """One figure: the child's command and the goal in the row's unit, by tool; `disk`: with the code that another kept."""

    title: str
    measured: str
    arguments: tuple[str, ...] = ()
    goal: float | None = None
    unit: str = "cpu"
    engine: str = "jit"
    peers: tuple[str, ...] = ("jax", "numba")
    disk: bool = False


ROWS = (
    Row("import, over NumPy's", "import", goal=75),
    Row("%load_ext", "extension", goal=150, peers=()),
    *(
        Row(f"first call{when}, {program}{' from disk' if disk else ''}", "first", (program, idle), goals[disk], disk=disk,
            peers=() if disk or when else ("jax", "numba"))
        for when, idle in {"": "0.5", " at once": "0"}.items()
        for program, goals in {"one-liner": (12, 4), "softmax": (20, 6), "Black-Scholes": (28, 12)}.items()
        for disk in (False, True)
    ),
    Row("first call right after another", "right after", goal=25, unit="wall"),
    *(Row(f"the same cell again, {p}", "same again", (p,), 0.5) for p in ("one-liner", "softmax", "Black-Scholes")),
    *(
        Row(f"another size, {engine}, {p}", "size", (p,), goal, engine=engine, peers=("jax",) if engine == "jit" else ())
        for engine, goal in (("jit", 0.3), ("function", 1.0))
        for p in ("one-liner", "softmax", "Black-Scholes")
    ),
    Row("another literal", "literal", goal=3),
)  # fmt: skip

#: Microseconds of a warm call.
WARM = {
    "plain": 0.15, "keywords": 0.3, "nested dict": 0.6, "Python number": 0.3, "in place": 0.4, "strided": 0.5,
    "result over 64 kB": 1.5, "jl.jit plain": 0.3, "jl.jit settled as Python": 0.1, "jl.jit, two pieces": 2.0,
}  # fmt: skip


class Failed(Exception):  # noqa: N818 - one figure is missing, the others are not
    """A process that measures ended without a figure."""


def child(*command: str, cache: str) -> dict[str, float]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))  # tools may be found by it
    environment = {
        **os.environ, "JITLAB_CACHE_DIR": cache, "PYTHONPATH": path, "JITLAB_SETTLE": "measure",
        "PYTHONDONTWRITEBYTECODE": "",  # as what is installed: modules are compiled already, from the second process on
    }  # fmt: skip
    run = [sys.executable, "-m", "benchmarks.latency.child", *command]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {(done.stderr.strip() or f'status {done.returncode}').splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def measured(row: Row, engines: Sequence[str], rounds: int, failed: list[str]) -> dict[str, float]:
    """The least of the rounds, by tool; a tool that fails has none."""
    found: dict[str, float] = {}
    left = [row.engine, *(peer for peer in row.peers if peer in engines)]
    for _ in range(rounds):
        for engine in left[:]:
            try:
                with tempfile.TemporaryDirectory() as cache:
                    for _ in range(1 + row.disk):
                        took = child(row.measured, engine, *row.arguments, cache=cache)[row.unit]
            except Failed as error:
                failed.append(str(error))
                left.remove(engine)
                found.pop(engine, None)
            else:
                found[engine] = min(took, found.get(engine, took))
    return found


def compiled_modules(engines: Sequence[str], failed: list[str]) -> list[str]:
    """The tools that run at all: what Python compiles of their modules is on disk before anything is measured."""
    run = []
    for engine in engines:
        try:
            with tempfile.TemporaryDirectory() as cache:
                child("first", engine, "one-liner", "0", cache=cache)
            run.append(engine)
        except Failed as error:
            failed.append(str(error))
    return run


def shown(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description="How long a user waits.")
    parser.add_argument("--rounds", type=int, default=5, help="processes a figure and tool (default 5)")
    parser.add_argument("--only", default="", help="import, extension, first, right after, same again, size, literal, warm")
    parser.add_argument("--json", type=Path, help="write everything there too")
    options = parser.parse_args()
    pin()
    failed: list[str] = []
    installed = [name for name in ("jax", "numba") if importlib.util.find_spec(name)]
    peers = compiled_modules(("jit", *installed), failed)
    wanted = [name.strip() for name in options.only.split(",") if name.strip()]
    print(f"machine {platform.machine()}, cores {os.cpu_count()}, core {CORE}, Python {platform.python_version()}")
    kept: dict[str, Any] = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "peers": peers[1:], "rows": {}}
    rows = [row for row in ROWS if not wanted or row.measured in wanted]
    if rows:
        print(f"{'milliseconds':<{TITLE}}{'goal':>7}{'jitlab':>9}{'JAX':>9}{'Numba':>9}")
    for row in rows:
        found = kept["rows"][row.title] = measured(row, peers, options.rounds, failed)
        own = found.get(row.engine)
        verdict = "" if row.goal is None or own is None else judged(own, row.goal)
        goal, figures = f"{row.goal or 0:g}", [shown(found.get(engine)) for engine in (row.engine, "jax", "numba")]
        print(f"{row.title:<{TITLE}}{goal:>7}{''.join(f'{figure:>9}' for figure in figures)}  {verdict}", flush=True)
    if not wanted or "warm" in wanted:
        print(warm_table(options.rounds, kept["rows"], failed))
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1))
    if failed:
        raise SystemExit("\n".join(["not measured:", *failed]))


def judged(took: float, goal: float) -> str:
    return "met" if took <= goal else f"{took / goal:.1f} times the goal"


def warm_table(rounds: int, kept: dict[str, Any], failed: list[str]) -> str:
    best: dict[str, dict[str, float]] = {"jit": {}, "extension": {}}
    for engine in [engine for _ in range(rounds) for engine in best]:
        known = best[engine]
        try:
            with tempfile.TemporaryDirectory() as cache:
                for name, took in child("warm", engine, cache=cache).items():
                    known[name] = min(took, known.get(name, took))
        except Failed as error:
            failed.append(str(error))
    lines: list[tuple[str, ...]] = [("microseconds of a warm call", "goal", "jitlab", "with the extension", "NumPy", "")]
    for name, goal in WARM.items():
        own, beside, extended = best["jit"].get(name), best["jit"].get(f"NumPy: {name}"), best["extension"].get(name)
        over = own - beside if name.startswith("jl.jit settled") and own is not None and beside is not None else own
        verdict = "" if over is None else judged(over, goal)
        lines.append((name, f"{goal:g}", shown(own, 2), shown(extended, 2), shown(beside, 2), verdict))
        kept[f"warm: {name}"] = {"jit": own, "extension": extended, "numpy": beside}
    return table(lines, 1)


if __name__ == "__main__":
    main()

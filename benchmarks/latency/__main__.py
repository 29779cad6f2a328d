"""How long a user waits: imports, first calls, other sizes, warm calls; jitlab beside JAX and Numba where those are installed.

    python -m benchmarks.latency [--rounds 5] [--only first,warm] [--json PATH]

Method: each figure is taken in a process of its own (`child`), on one core; the tools take turns, and the least of the rounds
counts, as what a machine that does nothing else takes. Milliseconds are of the main thread's processor time, without the
processes that compile in the background; "right after another" is by the clock, since it is a wait. "From disk" is a second
process with the code that the first has kept; JAX and Numba are measured without theirs. `goal` is what jitlab is to take.
Microseconds of warm calls are over an empty function's call, on ten elements. The status is 0 whatever the goals say.
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
        Row(f"first call, {program}{' from disk' if disk else ''}", "first", (program,), goals[disk], disk=disk,
            peers=() if disk else ("jax", "numba"))
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


def child(*command: str, cache: str) -> dict[str, float]:
    environment = {
        **os.environ, "JITLAB_CACHE_DIR": cache, "PYTHONPATH": str(ROOT), "JITLAB_SETTLE": "measure",
        "PYTHONDONTWRITEBYTECODE": "",  # as what is installed: modules are compiled already, from the second process on
    }  # fmt: skip
    run = [sys.executable, "-m", "benchmarks.latency.child", *command]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def measured(row: Row, engines: Sequence[str], rounds: int) -> dict[str, float]:
    """The least of the rounds, by tool."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        for engine in (row.engine, *(peer for peer in row.peers if peer in engines)):
            with tempfile.TemporaryDirectory() as cache:
                for _ in range(1 + row.disk):
                    took = child(row.measured, engine, *row.arguments, cache=cache)[row.unit]
            found[engine] = min(took, found.get(engine, took))
    return found


def shown(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description="How long a user waits.")
    parser.add_argument("--rounds", type=int, default=5, help="processes a figure and tool (default 5)")
    parser.add_argument("--only", default="", help="import, extension, first, right after, same again, size, literal, warm")
    parser.add_argument("--json", type=Path, help="write everything there too")
    options = parser.parse_args()
    pin()
    peers = [name for name in ("jax", "numba") if importlib.util.find_spec(name)]
    wanted = [name.strip() for name in options.only.split(",") if name.strip()]
    print(f"machine {platform.machine()}, cores {os.cpu_count()}, core {CORE}, Python {platform.python_version()}")
    kept: dict[str, Any] = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "peers": peers, "rows": {}}
    lines: list[tuple[str, ...]] = [("milliseconds", "goal", "jitlab", "JAX", "Numba", "")]
    for row in ROWS:
        if wanted and row.measured not in wanted:
            continue
        found = measured(row, peers, options.rounds)
        own = found[row.engine]
        kept["rows"][row.title] = found
        verdict = "" if row.goal is None else "met" if own <= row.goal else f"{own / row.goal:.1f} times the goal"
        goal = "" if row.goal is None else f"{row.goal:g}"
        lines.append((row.title, goal, shown(own), shown(found.get("jax")), shown(found.get("numba")), verdict))
    if len(lines) > 1:
        print(table(lines, 1))
    if not wanted or "warm" in wanted:
        print(warm_table(options.rounds, kept["rows"]))
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1))


def warm_table(rounds: int, kept: dict[str, Any]) -> str:
    best: dict[str, dict[str, float]] = {"jit": {}, "extension": {}}
    for _ in range(rounds):
        for engine, known in best.items():
            with tempfile.TemporaryDirectory() as cache:
                for name, took in child("warm", engine, cache=cache).items():
                    known[name] = min(took, known.get(name, took))
    lines: list[tuple[str, ...]] = [("microseconds of a warm call", "goal", "jitlab", "with the extension", "NumPy", "")]
    for name, goal in WARM.items():
        own, beside = best["jit"][name], best["jit"].get(f"NumPy: {name}")
        over = own - beside if name.startswith("jl.jit settled") and beside is not None else own
        verdict = "met" if over <= goal else f"{over / goal:.1f} times the goal"
        lines.append((name, f"{goal:g}", shown(own, 2), shown(best["extension"][name], 2), shown(beside, 2), verdict))
        kept[f"warm: {name}"] = {"jit": own, "extension": best["extension"][name], "numpy": beside}
    return table(lines, 1)


if __name__ == "__main__":
    main()

"""Writes extension/test/fixtures/explained.json: what a kernel says of one cell, for the panel's tests and its test page.

    python tests/explained_fixture.py

The report, the code, the what-ifs and the sweep are real; the comparison is the statistics' own, of simulated durations.
Run it again where the report's format has grown; its figures differ from run to run and no test depends on them.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.notebook.extension import session_of
from jitlab.notebook.requests import answer
from jitlab.statistics import difference

FIXTURE = Path(__file__).parents[1] / "extension" / "test" / "fixtures" / "explained.json"

SETUP = """
import numpy as np, jitlab as jl
rng = np.random.default_rng(0)
X = rng.random((6000, 64), dtype=np.float32)
W, b = np.zeros((64, 10), np.float32), np.zeros(10, np.float32)
y = rng.integers(0, 10, 6000)
Y, rows, k = np.eye(10, dtype=np.float32)[y], np.arange(6000), 3000
"""
STEP = """@jl.function
def step(X, W, b, lr):
    with jl.jit_scope():
        z = X @ W + b
        z = z - z.max(axis=1, keepdims=True)
        p = np.exp(z)
        p = p / p.sum(axis=1, keepdims=True)
    loss = -np.log(p[rows, y])
    hard = np.argpartition(loss, -k)[-k:]
    d = (p - Y)[hard] / k
    return W - lr * (X[hard].T @ d), b - lr * d.sum(axis=0), loss"""
CELL = """%%jit
for lr in (0.1, 0.095, 0.09, 0.085, 0.08, 0.075):
    W, b, loss = step(X, W, b, lr)"""


STAGES = ("graph", "program", "asm")
#: Lines of a stage that are kept: the assembly has thousands.
MOST_LINES = 400


def run(shell: InteractiveShell, source: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(source, store_history=True, cell_id=f"cell-{shell.execution_count}").raise_error()


def explained() -> dict[str, Any]:
    """The fixture: `report`, `code` by cluster and stage, `whatifs`, `sweep`, `comparison`."""
    shell = InteractiveShell.instance()
    for source in ("%load_ext jitlab", SETUP, STEP, CELL):
        run(shell, source)
    session = session_of(shell)
    assert session is not None
    cell = list(session.cells)[-1]
    report = answer(session, {"want": "report", "cell": cell})["report"]
    cluster = report["clusters"][0]["name"]
    code = [answer(session, {"want": "code", "cell": cell, "cluster": cluster, "stage": stage})["code"] for stage in STAGES]
    for stage in code:
        del stage["lines"][MOST_LINES:]
    step, names = shell.user_ns["step"], shell.user_ns
    arguments = [names[name] for name in ("X", "W", "b", "lr")]
    questions: list[dict[str, Any]] = [
        {"cut": [("exp", "sum")]}, {"keep_out": "exp"}, {"fuse": [("neg", "argpartition")]}, {"fuse": [("neg", "realdiv_1")]},
    ]  # fmt: skip
    whatifs = [asked(step, arguments, question) for question in questions]
    sweep = step.whatif(*arguments, sweep=True, seconds=4.0).to_json()
    return {
        "report": report, "code": code, "whatifs": whatifs, "sweep": sweep, "comparison": comparison(report),
        "history": {
            "run": 6, "baselines": ["gather first"],
            "runs": [
                {"run": n, "seconds": 0.0119 - 0.0004 * n, "calls": 6, "fingerprint": "", "retraces": 5, "error": None}
                for n in range(1, 7)
            ],
        },
    }  # fmt: skip


def asked(step: Any, arguments: list[Any], question: dict[str, Any]) -> dict[str, Any]:
    """The answer, also where it is that it can't be."""
    try:
        result: dict[str, Any] = step.whatif(*arguments, **question, seconds=1.0).to_json()
    except jl.errors.ImpossiblePlanError as error:
        result = {"error": str(error)}
    return result


def comparison(report: dict[str, Any]) -> dict[str, Any]:
    """Each part beside itself; the first cluster and with it the cell became a fifth slower."""
    rng = np.random.default_rng(1)

    def row(name: str, kind: str, seconds: float, slower: float, color: int | None = None) -> dict[str, Any]:
        before, after = (seconds * by * rng.normal(1, 0.02, 30).clip(0.9) for by in (1.0, slower))
        change = difference(before, after)
        state = "changed" if change.significant else "same"
        return {
            "name": name, "fingerprint": "", "color": color, "kind": kind, "state": state,
            "before": float(np.median(before)), "after": float(np.median(after)), "change": change.to_json(),
        }  # fmt: skip

    clusters = report["clusters"][:1]
    rows = [row("whole cell", "cell", 0.0119, 0.82)]
    rows += [row(c["name"], "cluster", c["seconds"] or 0.005, 0.8, c["color"]) for c in clusters]
    rows += [row("ArgPartition", "host", 0.00093, 1.0)]
    rows.append({**row("NonZero", "host", 0.0002, 1.0), "state": "removed", "after": None, "change": None})
    changes = [{"cluster": "cluster_0", "text": "3 kernels → 2; Take now runs inside k3", "lines": [10]}]
    return {
        "run": 6, "against": {"baseline": "gather first"}, "rows": rows, "plan_changes": changes,
        "retraces": {"before": 5, "after": 0}, "samples": [30, 30], "note": None,
    }  # fmt: skip


def main() -> None:
    FIXTURE.write_text(json.dumps(explained(), separators=(",", ":"), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

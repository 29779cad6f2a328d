"""Writes extension/test/fixtures/explained.json and gpu.json: what a kernel says of one cell, and of one that a simulated GPU
ran, for the panel's tests and its test page.

    python tests/explained_fixture.py               # or: gpu FILE, to write the second one alone elsewhere

All of it is asked of a real session, as the panel asks. Run it again where the report's format has grown; its figures
differ from run to run, and no test depends on them.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.notebook.cell_session import Session
from jitlab.notebook.extension import session_of
from jitlab.notebook.rpc.requests import answer

FIXTURES = Path(__file__).parents[1] / "extension" / "test" / "fixtures"
STAGES = ("graph", "program", "asm")
#: Lines of a stage that are kept: the assembly has thousands.
MOST_LINES = 250

SETUP = """
import numpy as np, jitlab as jl
rng = np.random.default_rng(0)
X = rng.random((6000, 64), dtype=np.float32)
W, b = np.zeros((64, 10), np.float32), np.zeros(10, np.float32)
y = rng.integers(0, 10, 6000)
Y, rows, k = np.eye(10, dtype=np.float32)[y], np.arange(6000), 3000
rates = [0.1, 0.095, 0.09, 0.085, 0.08] + 60 * [0.075]
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
#: As it was before, with more to compute, so that the change can be measured.
BEFORE = STEP.replace("np.exp(z)", "np.exp(np.sinh(z) - np.sin(z)) ** 3")
CELL = """%%jit
for lr in rates:
    W, b, loss = step(X, W, b, lr)"""
QUESTIONS: tuple[tuple[str, list[list[str]], list[str]], ...] = (
    ("cut", [["exp", "sum"]], []), ("keep_out", [], ["exp"]), ("fuse", [["neg", "argpartition"]], []),
    ("fuse", [["neg", "realdiv_1"]], []),
)  # fmt: skip

ARRAY = """
import numpy as np, jitlab as jl
X = np.random.default_rng(6).normal(size=(64, 32)).astype(np.float32)
"""
SOFTMAX = """%%jit{}
e = np.exp(X - X.max(1, keepdims=True))
p = e / e.sum(1, keepdims=True)"""


def on_gpu() -> dict[str, Any]:
    """`report` and `code` of a cell that a simulated GPU ran; of the same cell without one `on_processor`, the report, and in
    `jobs` the answer to what a GPU would take for it."""
    shell = InteractiveShell.instance()
    for number, source in enumerate(("%load_ext jitlab", ARRAY), 1):
        run(shell, source, f"c{number}")
    session = session_of(shell)
    assert session is not None
    with jl.simulated_gpu():
        run(shell, SOFTMAX.format(" --device gpu"), "c3")
        run(shell, SOFTMAX.format(" --device gpu"), "c3")
        report = ask(session, want="report", cell="c3")["report"]
        cluster = report["clusters"][0]["name"]
        code = [ask(session, want="code", cell="c3", cluster=cluster, stage=stage)["code"] for stage in ("program", "ptx")]
    run(shell, SOFTMAX.format(""), "c4")
    other = ask(session, want="report", cell="c4")["report"]
    question = {"plan": other["plans"][0]["name"], "kind": "target", "edges": [], "ops": [], "target": "gpu"}
    asked = job(session, want="whatif", cell="c4", **question)
    assert asked["result"]["refusal"], "a machine that has a GPU measures and predicts nothing"
    return {"report": report, "code": code, "on_processor": other, "jobs": [asked]}


def explained() -> dict[str, Any]:
    """The fixture: `report`, `code` by stage, `jobs` (what-ifs and a sweep), `comparison`."""
    shell = InteractiveShell.instance()
    for number, source in enumerate(("%load_ext jitlab", SETUP, BEFORE, CELL), 1):
        run(shell, source, f"c{number}")
    session = session_of(shell)
    assert session is not None
    ask(session, want="pin-baseline", cell="c4", name="gather first")
    run(shell, STEP, "c3")
    run(shell, CELL, "c4")
    checked = job(session, want="check", cell="c4")
    assert checked["state"] == "done", checked
    report = ask(session, want="report", cell="c4")["report"]
    plan, cluster = report["plans"][0]["name"], report["clusters"][0]["name"]
    code = [ask(session, want="code", cell="c4", cluster=cluster, stage=stage)["code"] for stage in STAGES]
    for stage in code:
        del stage["lines"][MOST_LINES:]
    questions = [
        {"want": "whatif", "cell": "c4", "plan": plan, "kind": kind, "edges": edges, "ops": ops}
        for kind, edges, ops in QUESTIONS
    ]
    jobs = [job(session, **question) for question in [*questions, {"want": "sweep", "cell": "c4", "plan": plan}]]
    comparison = ask(session, want="compare", cell="c4", against={"baseline": "gather first"})["comparison"]
    return {"report": report, "code": code, "jobs": jobs, "comparison": comparison}


def run(shell: InteractiveShell, source: str, cell_id: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(source, store_history=True, cell_id=cell_id).raise_error()


def ask(session: Session, **body: Any) -> dict[str, Any]:
    reply = answer(session, body)
    assert "error" not in reply, reply
    return reply


def job(session: Session, **body: Any) -> dict[str, Any]:
    """The last state of a job that was asked for."""
    told: list[dict[str, Any]] = []
    session.jobs._tell = told.append
    ticket = ask(session, **body)["job"]
    while not any(state["id"] == ticket and state["state"] in ("done", "failed") for state in told):
        time.sleep(0.05)
    return {**told[-1], "progress": None}


def write(made: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(made, separators=(",", ":"), ensure_ascii=False) + "\n")


def main(*arguments: str) -> None:
    if not arguments:
        write(explained(), FIXTURES / "explained.json")
    write(on_gpu(), Path(arguments[1]) if arguments else FIXTURES / "gpu.json")


if __name__ == "__main__":
    main(*sys.argv[1:])

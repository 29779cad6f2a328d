"""Stands in for the compiler: sends the fixtures' reports over the real link, as a cell under jitlab would."""

import json
import time
from pathlib import Path

from IPython import get_ipython
from IPython.display import display

from jitlab.notebook.rpc.link import Link, running_cell

FIXTURES = Path(__file__).parent / "fixtures"
LET_GO = Path(__file__).parent / "let-go.txt"  # the test writes it
MIME = "application/vnd.jitlab.report+json"


def load():
    """As %load_ext jitlab does."""
    return Link.attach(get_ipython().kernel)


def show(name, events=0):
    """Sends events, reports until the test lets go where there are any, and leaves the report in the cell's output."""
    link = load()
    cell = running_cell(get_ipython().kernel)
    report = json.loads((FIXTURES / f"{name}.json").read_text())
    report["cell"]["id"] = cell
    report["cell"]["source"] = get_ipython().user_ns["In"][-1].splitlines()
    link.emit(cell, {"kind": "cell-started", "execution_count": 1})
    running = {**report, "cell": {**report["cell"], "running": True}}
    link.report(cell, running)
    for number in range(events):
        link.emit(cell, {"kind": "cluster-ran", "cluster": "cluster_0", "number": number})
    end = time.monotonic() + 600
    while events and not LET_GO.exists() and time.monotonic() < end:
        link.report(cell, running)
        time.sleep(0.3)
    link.emit(cell, {"kind": "cell-finished", "execution_count": 1, "duration_ns": 1, "error": ""})
    link.report(cell, report)
    display({MIME: report, "text/plain": report["verdict"]["lead"]}, raw=True)

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


def show(name, events=0, part=None):
    """Sends events, reports until the test lets go where there are any, and leaves the report in the cell's output. `part`: the
    key of the report in a fixture that has also what the kernel answered: so it answers again."""
    link = load()
    cell = running_cell(get_ipython().kernel)
    report = said = json.loads((FIXTURES / f"{name}.json").read_text())
    if part is not None:
        report = said[part]
        link.load(lambda body: answered(link, cell, said, body), lambda: None)
        for source in report["sources"]:
            source["cell"] = cell
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


def answered(link, cell, said, body):
    """What a kernel said to such a request when the fixture was made."""
    if body["want"] == "code":
        found = [code for code in said["code"] if code["stage"] == body["stage"]]
        return {"code": found[0]} if found else {"error": "This stage was not recorded."}
    if body["want"] == "whatif" and body["target"] == "gpu":
        (job,) = said["jobs"]
        link.job({**job, "cell": cell})
        return {"job": job["id"]}
    return {"error": "This was not recorded."}

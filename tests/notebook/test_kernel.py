"""The whole way in a real kernel: a cell, its saved output, and what the panel hears."""

import pytest
from jupyter_client.manager import start_new_kernel

from jitlab.notebook.rpc.link import COMM_ID
from jitlab.report import MIME

LOAD = """\
import numpy as np
%load_ext jitlab
x = np.arange(12.0).reshape(3, 4)
"""


class Notebook:
    """Runs cells as JupyterLab does: each with its id."""

    def __init__(self, client):
        self.client = client
        self.sent = []  # to the panel, so far

    def run(self, code, cell_id):
        message = self.client.session.msg(
            "execute_request",
            {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False},
            metadata={"cellId": cell_id},
        )
        self.client.shell_channel.send(message)
        heard = []
        while True:
            reply = self.client.get_iopub_msg(timeout=120)
            if reply["msg_type"].startswith("comm_"):  # from a thread of its own, with this cell or another as the parent
                heard.append(reply)
                self.sent.append(reply)
                continue
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            heard.append(reply)
            if reply["msg_type"] == "status" and reply["content"]["execution_state"] == "idle":
                return heard

    def send(self, data):
        self.client.shell_channel.send(self.client.session.msg("comm_msg", {"comm_id": COMM_ID, "data": data}))


@pytest.fixture(scope="module")
def notebook():
    manager, client = start_new_kernel()
    try:
        yield Notebook(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def outputs(heard):
    return [m["content"]["data"] for m in heard if m["msg_type"] in ("display_data", "execute_result")]


def panel(heard, op):
    return [m["content"]["data"] for m in heard if m["msg_type"] == "comm_msg" and m["content"]["data"].get("op") == op]


def test_a_cell_in_a_real_kernel(notebook):
    heard = notebook.run(LOAD, "load")
    assert not [m for m in heard if m["msg_type"] == "error"], heard
    notebook.send({"op": "resume", "epoch": "", "since": 0})

    heard = notebook.run("%%jit\ny = np.tanh(x).sum()\ny", "cell-a")
    value, report = outputs(heard)
    assert "np.float64" in value["text/plain"]
    assert report[MIME]["cell"]["id"] == "cell-a" and report[MIME]["cell"]["execution_count"] is None
    assert report["text/html"].startswith("<img") and "compiled" in report["text/plain"]
    assert report[MIME]["ops"][0]["lines"][0][0] == "In [ ]"

    heard = notebook.run("%%jit\na = 1\nb = x / np.zeros(9)", "cell-b")
    (error,) = [m["content"] for m in heard if m["msg_type"] == "error"]
    assert error["ename"] == "ValueError"
    text = "\n".join(error["traceback"])
    assert "Cell" in text and "In[3]" in text and "run_cell_magic" not in text

    heard = notebook.run("%%jit --nope\nnever = 1", "cell-c")
    (error,) = [m["content"] for m in heard if m["msg_type"] == "error"]
    assert error["ename"] == "OptionError" and "--compare" in "\n".join(error["traceback"])
    heard = notebook.run("'never' in globals()", "cell-d")
    assert outputs(heard)[0]["text/plain"] == "False"

    kinds = set()
    while not {"cell-started", "cell-finished"} <= kinds:  # they come some time later, in batches
        notebook.run("import time; time.sleep(0.1)", "cell-e")
        kinds = {event["kind"] for message in panel(notebook.sent, "batch") for event in message["events"]}
    assert {message["cell"] for message in panel(notebook.sent, "report")} <= {"cell-a", "cell-b", "cell-c"}


def test_jit_on_and_await_in_a_real_kernel(notebook):
    notebook.run(LOAD, "load")
    heard = notebook.run("%%jit\nimport asyncio\na = np.tanh(x)\nawait asyncio.sleep(0)\nb = a + 1\nb.sum()", "await")
    value, report = outputs(heard)
    assert "np.float64" in value["text/plain"]
    assert {tuple(line[:2]) for op in report[MIME]["ops"] for line in op["lines"]} == {
        ("In [ ]", line) for line in (3, 5, 6)
    }
    notebook.run("%jit on", "on")
    value, report = outputs(notebook.run("c = np.exp(x)\nc[0, 0]", "on-1"))
    assert value["text/plain"] == "np.float64(1.0)" and report[MIME]["verdict"]["clusters"] == 1
    (value,) = outputs(notebook.run("1 + 1;\n'text'", "on-2"))
    assert value["text/plain"] == "'text'"
    value, report = outputs(notebook.run("%jit x * 2", "line"))
    assert value["text/plain"].startswith("array") and report[MIME]["ops"][0]["lines"][0][1] == 1
    (error,) = [
        m["content"] for m in notebook.run("d = 1\nawait asyncio.sleep(0)\nx + np.zeros(7)", "on-3") if m["msg_type"] == "error"
    ]
    text = "\n".join(error["traceback"])
    assert (
        error["ename"] == "ValueError"
        and "jitlab/" not in text
        and "----> 3" in text.replace("\x1b[32m", "").replace("\x1b[39m", "")
    )
    notebook.run("%jit off", "off")
    assert len(outputs(notebook.run("c = np.exp(x)\nc[0, 0]", "off-1"))) == 1


def test_a_notebook_runs_without_anybody_looking(tmp_path):
    """`jupyter nbconvert --execute` gives what the cells would have given, with their reports."""
    nbformat = pytest.importorskip("nbformat", reason="notebooks are part of the `lab` extra")
    execute = pytest.importorskip("nbclient", reason="notebooks are part of the `lab` extra").NotebookClient
    cells = [
        LOAD,
        "%jit on --level O0",
        "a = np.tanh(x) * 2\na.sum()",
        "print('plain')",
        "%%jit\nimport asyncio\nawait asyncio.sleep(0)\nb = a + 1\nb.sum()",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    execute(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [[output.get("data", {}) for output in cell.outputs] for cell in book.cells]
    assert [len(outputs) for outputs in shown] == [0, 0, 2, 1, 2]
    assert shown[2][1][MIME]["verdict"]["kernels"] == 3 and shown[4][1][MIME]["verdict"]["kernels"] == 1


def test_the_panel_asks_for_code_and_lines_are_those_of_the_cell(notebook):
    notebook.run(LOAD, "load")
    notebook.send({"op": "resume", "epoch": "", "since": 0})
    notebook.run("%%jit\nw = np.tanh(x)\nv = w * 2", "cell-code")
    heard = notebook.run("pass", "other")
    notebook.run("%%jit\nw = np.tanh(x)\nv = w * 2", "cell-code")
    body = {"want": "report", "cell": "cell-code"}
    report = reply(notebook, body)["report"]
    (source,) = [s for s in report["sources"] if s["cell"] == "cell-code"]
    assert source["lines"] == ["%%jit", "w = np.tanh(x)", "v = w * 2"] and heard
    cluster = report["clusters"][0]["name"]
    code = reply(notebook, {"want": "code", "cell": "cell-code", "cluster": cluster, "stage": "asm"})["code"]
    assert code["share"] >= 0.95 and {tuple(at) for line in code["lines"] for at in line["at"]} == {
        (source["file"], 2), (source["file"], 3),
    }  # fmt: skip
    asked = {"want": "code", "cell": "cell-code", "cluster": cluster, "stage": "asm"}
    assert reply(notebook, {**asked, "plan": report["clusters"][0]["plan"]})["code"] == code
    assert "the plan 'nobody' has no cluster" in reply(notebook, {**asked, "plan": "nobody"})["error"]
    refused = reply(notebook, {"want": "code", "cell": "cell-code", "cluster": cluster, "stage": "exec"})
    assert "stage has to be one of" in refused["error"]


NUMBERS = iter(range(1000, 2000))


def reply(notebook, body):
    """What the kernel answers to a request."""
    id = next(NUMBERS)
    notebook.send({"op": "request", "id": id, "body": body})
    while True:
        message = notebook.client.get_iopub_msg(timeout=120)
        data = message["content"].get("data", {}) if message["msg_type"] == "comm_msg" else {}
        if data.get("op") == "reply" and data.get("id") == id:
            return data["body"]


@pytest.mark.parametrize("code, offered", [("%%jit --ch", ["--check"]), ("%jitlab st", ["status"]), ("%jit o", ["on", "off"])])
def test_a_front_end_is_offered_options_and_commands(notebook, code, offered):
    notebook.run(LOAD, "load")
    answer = notebook.client.complete(code, len(code), reply=True, timeout=120)["content"]
    begun = code[answer["cursor_start"] : answer["cursor_end"]]
    assert [text for text in answer["matches"] if text in offered] == offered and code.endswith(begun)

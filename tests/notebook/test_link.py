"""The wire to the panel: first with a list in the panel's place, then through a real kernel."""

import json
import os
import time

import numpy as np
import pytest
from jupyter_client.manager import start_new_kernel

import jitlab as jl
from jitlab import events
from jitlab.notebook.rpc.link import Link, light

ENDED = {"version": 1, "cell": {"id": "a", "running": False}}


class Panel:
    """Stands for the panel: keeps what the link sends."""

    def __init__(self):
        self.messages = []
        self.link = Link(self.messages.append)
        self.link.replay_seconds = 0.3

    def resume(self, since=0, epoch=None):
        self.link.receive({"op": "resume", "epoch": epoch or self.link.epoch, "since": since})

    def counted(self):
        """Events that were told by their number only."""
        return sum(sum(kinds.values()) for batch in self.of("batch") for kinds in batch.get("counts", {}).values())

    def request(self, body):
        answers = len(self.of("reply"))
        self.link.receive({"op": "request", "id": 7, "body": body})
        return self.wait_for("reply", count=answers + 1)[-1]["body"]

    def of(self, op):
        return [message for message in self.messages if message["op"] == op]

    def events(self):
        return [event for batch in self.of("batch") for event in batch["events"]]

    def wait_for(self, op, count=1):
        return until(lambda: len(self.of(op)) >= count and self.of(op))

    def wait_for_event(self, seq):
        return until(lambda: self.events() and self.events()[-1]["seq"] == seq and self.events())


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.005)
    raise AssertionError("nothing came in time")


def test_what_a_retrace_tells_is_plain_data():
    told = []
    f = jl.function(lambda x, rate: np.exp(x) * rate)
    with events.listen(told.append):
        for rate in (0.1, 0.2, 0.3):
            f(np.ones(5), rate)
    traced = [light((n, "a", event)) for n, event in enumerate(told) if event.kind == "traced"]
    assert len(traced) > 1 and traced[1]["fix"]["code"] == "as_array"
    for n, event in enumerate(told):
        json.dumps(light((n, "a", event)))  # raises TypeError for an object


def test_what_a_call_as_python_tells_is_plain_data():
    about = events.AsPython("In [3]", (jl.messages.Message("settled.trial", {}),), (("cell", 1, 0, 1, 4),))
    told = light((1, "a", events.CalledAsPython(about=about, start_ns=1, duration_ns=2)))
    assert json.loads(json.dumps(told)) == {"kind": "called-as-python", "start_ns": 1, "duration_ns": 2, "seq": 1}


def test_what_a_comparison_of_before_tells_is_plain_data():
    compared = events.Compared(numpy_ns=(3,), compiled_ns=(1,), largest_error=0.0, others=None)
    told = light((1, "a", events.ComparedBefore(compared=compared, at="10:00")))
    assert json.loads(json.dumps(told))["compared"]["numpy_ns"] == [3]


@pytest.fixture
def panel():
    return Panel()


def test_nothing_is_sent_while_no_panel_has_asked(panel):
    panel.link.emit("a", {"kind": "traced"})
    panel.link.report("a", ENDED)
    time.sleep(0.15)
    assert panel.messages == []


def test_a_panel_that_resumes_gets_what_it_missed(panel):
    for number in range(3):
        panel.link.emit("a", {"kind": "kernel-ran", "number": number})
    panel.link.report("a", ENDED)
    panel.resume(since=1)
    panel.wait_for("report")
    assert [message["op"] for message in panel.messages] == ["hello", "batch", "report"]
    assert [event["seq"] for event in panel.events()] == [2, 3]
    assert panel.of("hello") == [{"op": "hello", "epoch": panel.link.epoch, "last": 3, "behind": 0}]


def test_a_panel_of_another_kernel_process_gets_everything(panel):
    panel.link.emit("a", {"kind": "traced"})
    panel.resume(since=900, epoch="of the kernel before")
    assert [event["seq"] for event in panel.wait_for_event(1)] == [1]


def test_many_events_travel_in_few_messages_and_none_is_lost(panel):
    panel.resume()
    panel.wait_for("hello")
    start = time.monotonic()
    for number in range(5000):
        panel.link.emit("a", {"kind": "kernel-ran", "number": number})
    until(lambda: panel.of("batch") and panel.of("batch")[-1]["last"] == 5000)
    assert len(panel.events()) + panel.counted() == 5000
    assert len(panel.of("batch")) <= (time.monotonic() - start) / Link.batch_seconds + 2


def test_a_batch_says_the_cells_of_its_events(panel):
    for cell in "aab":
        panel.link.emit(cell, {"kind": "traced"})
    panel.resume()
    panel.wait_for_event(3)
    (batch,) = panel.of("batch")
    assert (batch["cell"], batch["first"], batch["last"]) == ("b", 1, 3)
    assert [event.get("cell", batch["cell"]) for event in batch["events"]] == ["a", "a", "b"]


def test_the_ring_forgets_the_oldest_events(monkeypatch):
    monkeypatch.setattr(Link, "ring_events", 4)
    panel = Panel()
    for _ in range(6):
        panel.link.emit("a", {"kind": "traced"})
    panel.resume()
    assert [event["seq"] for event in panel.wait_for_event(6)] == [3, 4, 5, 6]


def test_a_paused_link_is_silent_until_a_panel_resumes(panel):
    panel.resume()
    panel.link.emit("a", {"kind": "kernel-ran"})
    panel.wait_for_event(1)
    panel.link.load(lambda body: {"cells": ["a"]}, lambda: None)
    panel.link.receive({"op": "pause"})
    panel.wait_for("paused")
    panel.link.emit("a", {"kind": "kernel-ran"})
    panel.link.report("a", ENDED)
    assert panel.request({"want": "cells"}) == {"cells": ["a"]}
    assert [event["seq"] for event in panel.events()] == [1]
    assert panel.of("report") == []
    panel.resume(since=1)
    assert [event["seq"] for event in panel.wait_for_event(2)] == [1, 2]
    panel.wait_for("report")


@pytest.mark.parametrize("nonsense", [None, 3, [], {}, {"op": "run"}, {"op": "resume", "since": "x"}], ids=str)
def test_nonsense_does_no_harm(panel, nonsense):
    panel.link.receive(nonsense)
    panel.link.emit("a", {"kind": "traced"})
    panel.resume()
    panel.wait_for_event(1)


def test_a_message_that_cannot_be_sent_does_not_silence_the_rest():
    panel = Panel()

    def send(message):
        if message["op"] == "hello":
            raise TypeError("not JSON")
        panel.messages.append(message)

    panel.link = Link(send)
    panel.link.emit("a", {"kind": "traced"})
    panel.resume()
    panel.wait_for_event(1)


ATTACH = """
from jitlab.notebook.rpc.link import Link, running_cell
kernel = get_ipython().kernel
link = Link.attach(kernel)
assert Link.attach(kernel) is link
"""
EMIT = """
link.emit(running_cell(kernel), {"kind": "traced"})
link.report(running_cell(kernel), {"version": 1, "cell": {"id": running_cell(kernel), "running": False}})
"""


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel()
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client, code):
    reply = client.execute_interactive(code, timeout=60, output_hook=lambda message: None)
    assert reply["content"]["status"] == "ok", reply["content"]


def send(client, data, subshell=None):
    message = client.session.msg("comm_msg", {"comm_id": "jitlab-v1", "data": data})
    message["header"]["subshell_id"] = subshell
    client.shell_channel.send(message)


def comm_messages(client, op, seconds=60):
    def next_one():
        message = client.get_iopub_msg(timeout=seconds)
        data = message["content"].get("data")
        return data if message["msg_type"].startswith("comm_") and data.get("op") == op else None

    return until(next_one, seconds)


def test_a_kernel_says_hello_when_it_opens_the_comm(kernel):
    kernel.execute(ATTACH)
    assert comm_messages(kernel, "hello")["last"] == 0


def test_a_real_panel_would_get_the_events_and_the_report_of_the_cell(kernel):
    run(kernel, ATTACH)
    message = kernel.session.msg("execute_request", {"code": EMIT, "silent": False})
    message["metadata"]["cellId"] = "cell-1"
    kernel.shell_channel.send(message)
    send(kernel, {"op": "resume", "epoch": "", "since": 0})
    assert comm_messages(kernel, "batch")["cell"] == "cell-1"
    assert comm_messages(kernel, "report")["report"]["cell"] == {"id": "cell-1", "running": False}


def test_a_request_is_answered_while_a_cell_runs_that_also_emits(kernel, tmp_path):
    """The cell ends when the answer is there: see keep_subshell."""
    run(kernel, ATTACH)
    kernel.control_channel.send(kernel.session.msg("create_subshell_request", {}))
    subshell = kernel.get_control_msg(timeout=60)["content"]["subshell_id"]
    send(kernel, {"op": "resume", "epoch": "", "since": 0})
    comm_messages(kernel, "hello")
    answered = tmp_path / "answered"
    emits = f"while not os.path.exists({os.fspath(answered)!r}):\n    link.emit('a', {{'kind': 'traced'}}); time.sleep(0.1)"
    busy = kernel.execute(f"import os, time\n{emits}")
    comm_messages(kernel, "batch")
    send(kernel, {"op": "request", "id": 1, "body": {"want": "cells"}}, subshell)
    try:
        assert comm_messages(kernel, "reply")["id"] == 1
    finally:
        answered.touch()
    until(lambda: kernel.get_shell_msg(timeout=60)["parent_header"].get("msg_id") == busy)


def test_whether_jit_is_on_is_told_also_to_a_panel_that_is_not_shown():
    panel = Panel()
    state = {"op": "switch", "on": False, "level": None, "strict": False}

    def switch(on):
        state["on"] = state["on"] if on is None else on
        return dict(state)

    panel.link.receive({"op": "switch"})
    assert panel.wait_for("switch")[-1]["on"] is None, "nobody has loaded it"
    panel.link.has_switch(switch)
    asked_and_told = [({}, False), ({"on": True}, True), ({"on": "no"}, True), ({"on": False}, False)]
    for number, (asked, told) in enumerate(asked_and_told, 2):
        panel.link.receive({"op": "switch", **asked})
        assert panel.wait_for("switch", number)[-1]["on"] is told
    assert not panel.link.attached
    panel.link.unload()
    assert panel.wait_for("switch", 6)[-1] == {"op": "switch", "on": None}

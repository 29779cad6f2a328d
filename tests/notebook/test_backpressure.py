"""The wire under load, with a clock that the test sets: what is sent is bounded, what is recorded is whole."""

import json
from collections import Counter

import pytest

from jitlab import events
from jitlab.notebook.rpc.link import Link
from jitlab.report import Recording
from jitlab.report.store.summary import on_wire, part


class Wire:
    """A link without its thread, and the panel's end of it."""

    def __init__(self):
        self.now, self.sent = 1000.0, []
        self.link = Link(lambda message: self.sent.append((self.now, message)), clock=lambda: self.now)
        self.link._start = lambda: None

    def run(self, seconds, each=lambda: None, step=0.05):
        for _ in range(round(seconds / step)):
            each()
            self.link.flush()
            self.now += step

    def resume(self, **more):
        self.link.receive({"op": "resume", "epoch": self.link.epoch, "since": 0, **more})

    def of(self, op):
        return [message for _, message in self.sent if message["op"] == op]

    def bytes(self):
        return sum(len(json.dumps(message)) for _, message in self.sent)

    def told(self):
        """How many events of each kind the panel heard of, one by one or by number."""
        heard = Counter(event["kind"] for batch in self.of("batch") for event in batch["events"])
        for batch in self.of("batch"):
            for kinds in batch.get("counts", {}).values():
                heard.update(kinds)
        return heard


@pytest.fixture
def wire():
    return Wire()


def ran(n):
    return events.ClusterRan(function="step", trace=1, cluster="cluster_0", start_ns=n, duration_ns=1000)


def report(size=0, running=False, cell="a"):
    return {
        "version": 1, "cell": {"id": cell, "running": running}, "ops": ["x" * 100] * (size // 103), "clusters": [],
    }  # fmt: skip


def test_ten_thousand_events_a_second_are_all_told_within_the_budget(wire):
    """A tenth of the benchmark's: 10 000 events/s for 1 s of the wire's time."""
    wire.resume()
    recording = Recording()

    def burst():
        for n in range(500):
            recording.listen(ran(n))
            wire.link.emit("a", ran(n))

    wire.run(1, burst)
    wire.run(1)
    assert recording.clusters["step", 1, "cluster_0"].calls == 10_000
    assert wire.told() == {"cluster-ran": 10_000}
    assert wire.of("batch")[-1]["last"] == 10_000
    starts = [batch["first"] for batch in wire.of("batch")]
    assert starts == [1, *(batch["last"] + 1 for batch in wire.of("batch")[:-1])]  # no gap that would be asked for
    assert len(wire.sent) <= 10 * 2 + 10
    assert all(len(json.dumps(batch)) <= 64_000 for batch in wire.of("batch"))


def test_the_sustained_rate_is_bounded_in_messages_and_bytes(wire):
    wire.resume()
    numbers = iter(range(10**9))

    def busy():
        for _ in range(300):
            wire.link.emit("a", ran(next(numbers)))
        wire.link.report("a", report(80_000, running=True))

    wire.run(5, busy)
    wire.sent.clear()
    wire.run(20, busy)
    assert len(wire.sent) / 20 <= 10.5
    assert wire.bytes() / 20 <= 230_000  # of them the wire's own estimate is 200 000
    assert wire.of("batch") and wire.of("report")


def test_more_events_than_the_ring_holds_are_counted(wire, monkeypatch):
    monkeypatch.setattr(Link, "ring_events", 100)
    wire = Wire()
    wire.resume()
    wire.run(0.1)
    for n in range(1000):
        wire.link.emit("ab"[n % 2], ran(n))
    wire.run(1)
    assert wire.told() == {"cluster-ran": 1000}
    assert wire.of("batch")[0]["first"] == 1 and wire.of("batch")[-1]["last"] == 1000


def test_the_running_light_is_told_also_when_all_else_is_only_counted(wire):
    wire.resume()
    wire.run(1)
    wire.link.emit("a", events.CellStarted(execution_count=1, source="x", start_ns=0))
    for n in range(15_000):
        wire.link.emit("a", ran(n))
    wire.link.emit("a", events.CellFinished(execution_count=1, duration_ns=1, error=""))
    wire.run(0.2)
    (batch,) = wire.of("batch")
    assert [event["kind"] for event in batch["events"]][0] == "cell-started"
    assert [event["kind"] for event in batch["events"]][-1] == "cell-finished"
    assert sum(batch["counts"]["a"].values()) + len(batch["events"]) == 15_002


def test_events_that_were_only_counted_can_be_asked_for(wire):
    for n in range(5000):
        wire.link.emit("a", ran(n))
    wire.link.receive({"op": "request", "id": 4, "body": {"want": "events", "first": 4001, "last": 4010}})
    wire.link.flush()
    (reply,) = wire.of("reply")
    assert [event["seq"] for event in reply["body"]["events"]] == list(range(4001, 4011))
    assert reply["body"]["events"][0]["start_ns"] == 4000


def test_the_panel_is_told_by_how_much_its_picture_lags(wire):
    wire.resume()
    wire.run(0.1)
    wire.link.report("big", report(2_000_000))  # ten seconds of the budget
    wire.run(0.1)
    for n in range(40):
        wire.link.emit("a", ran(n))
    wire.link.report("a", report(running=True))
    wire.run(0.5)
    assert wire.of("batch")[-1]["behind"] == 0  # nobody sees half a second
    wire.run(1.5)
    wire.link.emit("a", ran(41))
    wire.run(0.2)
    assert wire.of("batch")[-1]["behind"] == 41
    wire.link.report("a", report())
    wire.run(12)
    assert wire.of("report")[-1]["behind"] == 0 and wire.of("report")[-1]["cell"] == "a"


def test_a_closed_panel_gets_no_message_at_all(wire):
    def work():
        wire.link.emit("a", ran(1))
        wire.link.report("a", report(1000, running=True))
        wire.link.job({"op": "job", "id": "job-1", "state": "running"})

    wire.run(10, work)
    assert wire.sent == []
    wire.resume()
    wire.run(1)
    wire.link.receive({"op": "pause"})
    wire.run(0.1)
    wire.sent.clear()
    wire.run(10, work)
    assert wire.sent == []


def test_after_a_reload_all_is_there_in_two_seconds_the_newest_report_first(wire):
    for n in range(8):
        for _ in range(2000):
            wire.link.emit(f"cell {n}", ran(n))
        wire.link.report(f"cell {n}", report(40_000, cell=f"cell {n}"), order=n)
    wire.link.job({"op": "job", "id": "job-1", "state": "running"})
    wire.resume()
    wire.run(2)
    assert [message["op"] for _, message in wire.sent[:4]] == ["hello", "batch", "job", "report"]
    assert wire.sent[0][0] == 1000.0
    assert [message["cell"] for message in wire.of("report")] == [f"cell {n}" for n in reversed(range(8))]
    assert sum(wire.told().values()) == 16_000


def test_panels_that_resume_in_a_rush_share_one_replay(wire):
    wire.link.emit("a", ran(1))
    wire.resume()
    wire.run(0.1)
    wire.run(0.5, wire.resume, step=0.01)
    wire.run(3)
    assert [when for when, message in wire.sent if message["op"] == "hello"] == [1000.0, pytest.approx(1001.0, abs=0.06)]


def test_a_running_cell_reports_at_most_four_times_a_second_and_its_end_at_once(wire):
    wire.resume()
    wire.run(1)
    wire.run(0.6, lambda: wire.link.report("a", report(running=True)), step=0.01)
    ended = wire.now
    wire.link.report("a", report())
    wire.run(1)
    times = [when for when, message in wire.sent if message["op"] == "report"]
    assert times == pytest.approx([1001.0, 1001.25, 1001.5, ended], abs=0.025)
    assert not wire.of("report")[-1]["report"]["cell"]["running"]


def test_reports_that_a_panel_has_are_not_sent_again(wire):
    for n in range(3):
        wire.link.emit(f"cell {n}", ran(n))
        wire.link.report(f"cell {n}", report(), order=n)
    wire.resume()
    wire.run(1)
    have = {message["cell"]: message["mark"] for message in wire.of("report")}
    wire.link.receive({"op": "pause"})
    wire.link.emit("cell 1", ran(4))
    wire.link.report("cell 1", report(), order=3)
    wire.sent.clear()
    wire.resume(have=have)
    wire.run(2)
    assert [message["cell"] for message in wire.of("report")] == ["cell 1"]
    wire.run(3)
    wire.link.emit("cell 0", ran(5))
    wire.link.report("cell 0", report(), order=4)
    wire.run(2)
    assert wire.of("report")[-1]["behind"] == 0  # what it has shows all there was
    have |= {"cell 0": 2}
    wire.sent.clear()
    wire.now += 2
    wire.resume(have=have)
    wire.resume()  # of a second page, which has none
    wire.run(2)
    assert len(wire.of("hello")) == 1 and len(wire.of("report")) == 3


@pytest.mark.parametrize("have", [3, [], {"a": "x"}, {3: 4}, {"cell": True}, None, {"x" * 10: -1}], ids=str)
def test_a_panel_that_says_nonsense_of_what_it_has_gets_all(wire, have):
    wire.link.emit("a", ran(1))
    wire.link.report("a", report())
    wire.resume(have=have)
    wire.run(1)
    assert len(wire.of("report")) == 1


def test_two_pages_of_one_kernel_do_not_silence_one_another(wire):
    wire.resume()
    wire.resume()
    wire.run(1.5)
    assert len(wire.of("hello")) == 1
    wire.link.receive({"op": "pause"})  # the first page closes its panel; the second hears it, and resumes
    wire.run(0.1)
    assert len(wire.of("paused")) == 1
    wire.resume(since=0)
    wire.link.emit("a", ran(1))
    wire.run(1.5)
    assert sum(wire.told().values()) >= 1


def test_after_sleep_a_panel_that_missed_messages_has_all_in_two_seconds(wire):
    wire.resume()
    wire.run(1)
    for n in range(100):
        wire.link.emit("a", ran(n))
    wire.run(1)
    last = wire.of("batch")[-1]["last"]
    wire.now += 8 * 3600
    for n in range(50):  # goes out to nobody
        wire.link.emit("a", ran(n))
    wire.link.report("a", report())
    wire.run(1)
    wire.sent.clear()
    wire.resume(since=last)
    wire.run(2)
    assert wire.sent[0][1]["last"] == 150
    assert [batch["first"] for batch in wire.of("batch")] == [last + 1]
    assert len(wire.of("report")) == 1


def test_when_it_is_quiet_the_number_of_the_last_event_is_told_once_more(wire):
    """A server that was asked for too much drops the last messages, and no later one would show the gap."""
    wire.resume()
    wire.run(1)
    for n in range(100):
        wire.link.emit("a", ran(n))
    wire.run(3)
    assert wire.of("batch")[-1]["events"]
    wire.sent.clear()
    wire.run(60)
    assert [message for _, message in wire.sent] == [{"op": "batch", "cell": None, "first": 101, "last": 100, "events": []}]


def test_states_of_a_job_that_changes_quickly_are_told_by_their_last(wire):
    wire.resume()
    wire.run(1)
    for n in range(500):
        wire.link.job({"op": "job", "id": "job-1", "state": "running", "progress": [n, 500]})
    wire.link.job({"op": "job", "id": "job-1", "state": "done", "progress": None})
    wire.run(0.2)
    assert [job["state"] for job in wire.of("job")] == ["done"]


# ---- summaries
def huge(ops=50_000, spans=100_000, clusters=40):
    """A report as the kernel makes it, of very much."""
    names, each = [f"op_{n}" for n in range(ops)], ops // clusters
    of = [f"cluster_{n * clusters // ops}" if n % 1000 else None for n in range(ops)]
    return {
        "version": 1,
        "cell": {"id": "a", "execution_count": 1, "title": "In [1]", "source": ["x"], "running": False, "error": None},
        "verdict": {"lead": "much"},
        "plans": [{"name": "f #1", "function": "f", "trace": 1, "like": "f #1"}],
        "ops": [
            {
                "name": name, "plan": "f #1", "op": "Add", "cluster": of[n], "kernel": of[n] and "k0",
                "reason": None, "lines": [["In [1]", 1, 0, 1, 9]], "shape": [10, 4],
                "dtype": "float64", "inputs": names[max(0, n - 2) : n], "scope": None, "seconds": None,
            }
            for n, name in enumerate(names)
        ],
        "clusters": [
            {"name": f"cluster_{c}", "plan": "f #1", "ops": names[c * each : (c + 1) * each], "seconds": 1.0,
             "kernels": [f"k{n}" for n in range(ops // 25) if n // 50 == c]}
            for c in range(clusters)
        ],
        "kernels": [
            {"name": f"k{n}", "plan": "f #1", "cluster": f"cluster_{n // 50}", "ops": [names[25 * n]], "kind": "nest",
             "lines": [n % 100], "calls": 1, "seconds": 0.5 if n == 1234 else 1e-6 * n, "bytes_read": 1, "bytes_written": 1}
            for n in range(ops // 25)
        ],
        "temporaries": [
            {"plan": "f #1", "cluster": f"cluster_{n % clusters}", "name": name, "producer": name, "consumers": [],
             "bytes": n, "place": "result" if n % 2 else "scratch", "counted": not n % 2,
             "lines": [["In [1]", 1]], "reason": None}
            for n, name in enumerate(names[: ops // 25])
        ],
        "boundaries": [
            {"producer": names[n], "consumer": names[n + 1], "plan": "f #1", "bytes": n, "reason": {"code": "x", "text": "y"}}
            for n in range(ops - 1)
        ],
        "retraces": [], "fallbacks": [],
        "timeline": {
            "lanes": [
                {
                    "name": "compiled", "offset": 0, "dropped": 0,
                    "spans": [
                        {"name": name, "label": "launch", "kind": "launch", "start": n, "duration": n % 7, "cluster": name}
                        for n in range(spans)
                        for name in (f"cluster_{n % clusters}",)
                    ],
                }
            ]
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def large():
    return huge()


def test_a_report_that_is_too_big_goes_as_a_summary(large):
    sent = on_wire(large)
    assert len(json.dumps(sent)) < 200_000  # the budget of a second
    assert sent["summary"]["ops"] == 50_000 and sent["summary"]["spans"] == 100_000 and sent["summary"]["boundaries"] == 49_999
    assert len(sent["clusters"]) == 40 and sent["clusters"][0]["op_count"] == 1250
    assert sent["summary"]["clusters"]["cluster_0"] == {"ops": 1250}
    assert sum(op["cluster"] is None for op in sent["ops"]) == 50
    edges = sent["summary"]["edges"]
    assert {"plan": "f #1", "producer": "cluster_0", "consumer": "cluster_1", "count": 3, "bytes": 640} in edges
    assert sent["timeline"]["lanes"][0]["total"] == 100_000
    assert "summary" not in large and len(large["ops"]) == 50_000


def test_a_summary_says_of_each_line_and_cluster_what_its_whole_report_would(large):
    sent = on_wire(large)
    slowest: dict[int, dict] = {}
    for kernel in large["kernels"]:
        slowest[kernel["lines"][0]] = max(slowest.get(kernel["lines"][0], kernel), kernel, key=lambda kernel: kernel["seconds"])
    names = {kernel["name"] for kernel in sent["kernels"]}
    shown = sorted(slowest.values(), key=lambda kernel: -kernel["seconds"])[:60]
    assert {kernel["name"] for kernel in shown} <= names and len(names) < len(large["kernels"])
    here = {op["name"] for op in sent["ops"]}
    assert all(kernel["ops"][0] in here for kernel in shown) and all(c["ops"][0] in here for c in large["clusters"])
    assert sent["clusters"][24]["kernels"] == [f"k{n}" for n in range(1200, 1250) if f"k{n}" in names]
    assert sent["clusters"][24]["kernel_count"] == 50
    of_first = next(row for row in sent["summary"]["temporaries"] if row["cluster"] == "cluster_0")
    assert of_first["count"] == 50 and of_first["bytes"] == sum(range(0, 2000, 40)) and of_first["inside"] == 50
    assert part(large, "kernels", "cluster_24", 0, 20_000)["total"] == 50
    assert part(large, "temporaries", "cluster_0", 0, 20_000)["total"] == 50


def test_a_small_report_goes_whole():
    small = huge(ops=20, spans=20, clusters=2)
    assert on_wire(small) == small


def test_parts_of_a_report_come_on_request_and_join_to_the_whole(large):
    first = part(large, "ops", "cluster_3", 0, 20_000)
    assert first["total"] == 1249 and [op["name"] for op in first["items"][:1]] == ["op_3750"]
    got = []
    while len(got) < 100_000:
        answer = part(large, "spans", None, len(got), len(got) + 20_000)
        assert len(json.dumps(answer)) < 1_300_000 and answer["start"] == len(got)
        got += answer["items"]
    assert [span["start"] for span in got] == list(range(100_000)) and got[0]["lane"] == "compiled"
    assert part(large, "boundaries", "cluster_0", 5, 8)["items"][0]["producer"] == "op_5"
    assert part(large, "ops", "cluster_99", 0, 10)["items"] == []

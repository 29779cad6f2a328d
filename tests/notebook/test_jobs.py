"""Long work that a person asked for: in its own thread, only while no cell runs."""

import threading

import pytest

from jitlab.errors import OptionError
from jitlab.notebook.rpc.jobs import Jobs, Refused


class Heard:
    """The states of jobs, as the panel hears them."""

    def __init__(self):
        self.states = []
        self.changed = threading.Condition()
        self.jobs = Jobs(self.tell)

    def tell(self, state):
        with self.changed:
            self.states.append(state)
            self.changed.notify_all()

    def of(self, ticket):
        return [state["state"] for state in self.states if state["id"] == ticket]

    def wait(self, ticket, state, times=1):
        with self.changed:
            assert self.changed.wait_for(lambda: self.of(ticket).count(state) >= times, 10), self.states
            return [s for s in self.states if s["id"] == ticket][-1]


@pytest.fixture
def heard():
    heard = Heard()
    yield heard
    heard.jobs.stop()


class Rounds:
    """A job of rounds that the test lets go on one by one."""

    def __init__(self, rounds):
        self.rounds, self.done = rounds, 0
        self.inside, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, context):
        while self.done < self.rounds:
            context.checkpoint()
            self.inside.release()
            assert self.go.acquire(timeout=120)
            self.done += 1
            context.progress(self.done, self.rounds)
        return {"rounds": self.done}


def test_a_job_runs_and_tells_its_states(heard):
    ticket = heard.jobs.submit("whatif", "a", "Cut Take from MatMul (line 10)", lambda context: {"x": 1}, estimate=0.5)
    assert heard.wait(ticket, "done") == {
        "op": "job", "id": ticket, "cell": "a", "state": "done", "title": "Cut Take from MatMul (line 10)", "kind": "whatif",
        "waits_for": None, "progress": None, "estimate_seconds": 0.5, "result": {"x": 1}, "error": None,
        "can_continue": False,
    }  # fmt: skip
    assert heard.of(ticket) == ["queued", "running", "done"]


def test_a_cell_that_starts_waits_for_one_round_and_no_more(heard):
    rounds = Rounds(3)
    ticket = heard.jobs.submit("sweep", "a", "Try every cut", rounds)
    rounds.inside.acquire(timeout=120)
    cell = threading.Thread(target=heard.jobs.cell_started, args=("In [9]",))
    cell.start()
    cell.join(0.05)
    assert cell.is_alive()  # the round is being run
    rounds.go.release()
    cell.join(10)
    assert not cell.is_alive() and rounds.done == 1
    assert heard.wait(ticket, "queued", 2)["waits_for"] == "In [9]"
    heard.jobs.cell_ended()
    for _ in range(2):
        rounds.go.release()
    assert heard.wait(ticket, "done")["result"] == {"rounds": 3}
    assert heard.of(ticket).count("running") >= 2


def test_a_job_that_was_stopped_goes_on_with_what_it_has(heard):
    rounds = Rounds(3)

    def run(context):
        context.memory["rounds"] = rounds
        return rounds(context)

    ticket = heard.jobs.submit("sweep", "a", "Try every cut", run, so_far=lambda memory: {"rounds": memory["rounds"].done})
    rounds.inside.acquire(timeout=120)
    rounds.go.release()
    rounds.inside.acquire(timeout=120)
    assert heard.jobs.cancel(ticket)
    rounds.go.release()
    stopped = heard.wait(ticket, "cancelled")
    assert stopped["result"] == {"rounds": 2} and stopped["can_continue"]
    heard.jobs.resume(ticket)
    rounds.go.release()
    ended = heard.wait(ticket, "done")
    assert ended["result"] == {"rounds": 3} and not ended["can_continue"]
    with pytest.raises(Refused, match="nothing left to continue"):
        heard.jobs.resume(ticket)


def test_few_jobs_that_were_stopped_keep_what_they_hold(heard):
    def run(context):
        context.memory["inputs"] = bytearray(10)
        context.is_unfinished()
        return {}

    tickets = [heard.jobs.submit("sweep", "a", "Try every cut", run) for _ in range(5)]
    heard.wait(tickets[-1], "done")
    last = {state["id"]: state["can_continue"] for state in heard.states}
    assert [last[ticket] for ticket in tickets] == [False, False, True, True, True]


def test_a_job_that_is_asked_for_while_a_cell_runs_says_what_it_waits_for(heard):
    heard.jobs.cell_started("In [9]")
    heard.jobs.cell_started("In [10]")  # a cell inside it
    ticket = heard.jobs.submit("measure", "a", "Time NumPy", lambda context: {})
    assert heard.states[-1]["waits_for"] == "In [10]"
    heard.jobs.cell_ended()
    assert heard.of(ticket) == ["queued"]
    heard.jobs.cell_ended()
    heard.wait(ticket, "done")


def test_a_cell_does_not_wait_for_what_is_compiled_aside(heard):
    inside, go = threading.Event(), threading.Event()

    def run(context):
        if "plan" not in context.memory:
            with context.aside():
                inside.set()
                assert go.wait(10)
                context.memory["plan"] = "built once"
        return dict(context.memory)

    ticket = heard.jobs.submit("whatif", "a", "Cut", run)
    assert inside.wait(10)
    heard.jobs.cell_started("In [9]")  # returns at once
    heard.jobs.cell_ended()
    heard.jobs.cell_started("In [10]")
    go.set()
    heard.jobs.cell_ended()
    assert heard.wait(ticket, "done")["result"] == {"plan": "built once"}


def test_a_job_is_cancelled_while_it_waits_and_while_it_runs(heard):
    heard.jobs.cell_started("In [9]")
    waiting = heard.jobs.submit("check", "a", "Check", lambda context: {})
    assert heard.jobs.cancel(waiting) and heard.of(waiting)[-1] == "cancelled"
    heard.jobs.cell_ended()
    rounds = Rounds(100)
    running = heard.jobs.submit("check", "a", "Check", rounds)
    rounds.inside.acquire(timeout=120)
    assert heard.jobs.cancel(running)
    rounds.go.release()
    heard.wait(running, "cancelled")
    assert rounds.done == 1
    assert not heard.jobs.cancel(running) and not heard.jobs.cancel("job-999")


def test_an_error_becomes_a_sentence(heard):
    def ours(context):
        raise OptionError("there is no edge", why="Take reads x", hint="one of a, b")

    def theirs(context):
        raise ZeroDivisionError("division by zero")

    first = heard.jobs.submit("whatif", "a", "Cut", ours)
    assert heard.wait(first, "failed")["error"] == "there is no edge: Take reads x. Try: one of a, b."
    second = heard.jobs.submit("whatif", "a", "Cut", theirs)
    assert heard.wait(second, "failed")["error"] == "Cut: ZeroDivisionError: division by zero"


def test_an_except_in_the_work_does_not_keep_a_cell_waiting(heard):
    rounds = []

    def run(context):
        while len(rounds) < 1000:
            try:
                context.checkpoint()
                rounds.append(1)
            except Exception:
                raise AssertionError("a pause is no error") from None
        return {}

    ticket = heard.jobs.submit("whatif", "a", "Cut", run)
    heard.jobs.cell_started("In [9]")
    heard.jobs.cell_ended()
    heard.wait(ticket, "done")


def test_the_queue_has_an_end_and_stops_with_its_session(heard):
    heard.jobs.cell_started("In [9]")
    tickets = [heard.jobs.submit("whatif", "a", "Cut", lambda context: {}) for _ in range(20)]
    with pytest.raises(Refused, match="wait already"):
        heard.jobs.submit("whatif", "a", "Cut", lambda context: {})
    heard.jobs.stop()
    assert all(heard.of(ticket)[-1] == "cancelled" for ticket in tickets)
    assert heard.jobs._thread is None or not heard.jobs._thread.is_alive()
    with pytest.raises(Refused, match="unloaded"):
        heard.jobs.submit("whatif", "a", "Cut", lambda context: {})

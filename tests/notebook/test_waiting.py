"""How far the compiler is, and a cell whose compiler is stopped: its values are Python's, wherever it was stopped."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from jitlab.notebook.extension import session_of, unload_ipython_extension
from jitlab.notebook.magics import waiting
from jitlab.notebook.rpc.requests import answer
from jitlab.runtime.compiled import forget_compiled
from tests.notebook.shells import new_shell

BEGIN = """\
import numpy as np
rng = np.random.default_rng(3)
x = np.linspace(0.0, 1.0, 400).reshape(20, 20)
log = []
"""

#: Several clusters, arrays that are written, a loop in parts, draws, a helper, a branch on the data.
CELL = """\
%%jit
a = np.exp(x) * 2
x[0] += a[1]
x *= 0.5
b = np.cumsum(a @ x, axis=1)[:, ::-1]
noise = rng.standard_normal(20)
x[:, 3] = noise
for turn in range(4):
    x += np.tanh(x) * turn
    log.append(float(x.sum()))
    if x.sum() > 1e9:
        break
def helper(v):
    return np.sqrt(np.abs(v)) + len(log)
c = helper(x).sum(axis=0)
total = c @ b[0] + x.mean()
print(f"{total:.6f}")
"""
NAMES = ("x", "a", "b", "c", "noise", "log", "turn", "total")


class Told:
    """In the place of a session's link: keeps what is told of the compiler, and may stop it at one of the times."""

    attached = False

    def __init__(self, session, stop_at=None):
        self.session, self.stop_at, self.states = session, stop_at, []
        session.link = self

    def job(self, state):
        self.states.append(state)
        if state["state"] == "running" and state["progress"] and len(self.states) - 1 == self.stop_at:
            assert answer(self.session, {"want": "cancel", "job": state["id"]}) == {"cancelled": True}

    def __getattr__(self, name):
        return lambda *args, **options: None


@pytest.fixture
def shell(monkeypatch):
    monkeypatch.setattr(waiting, "SAID_AFTER", 0)
    monkeypatch.setattr(waiting, "SAID_EACH", 0)
    forget_compiled()
    shell = new_shell()
    yield shell
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


def ran(shell, cell, stop_at=None):
    """What is told while the cell runs from the same beginning."""
    told = Told(session_of(shell), stop_at)
    shell.run_cell(BEGIN).raise_error()
    shell.run_cell(cell, store_history=True).raise_error()
    return told.states


def left(shell):
    state = shell.user_ns["rng"].bit_generator.state["state"]["state"]
    return {name: np.copy(shell.user_ns[name]) for name in NAMES}, state


def alike(one, other):
    assert one[1] == other[1], "the generator has drawn as often"
    for name in NAMES:
        assert one[0][name].dtype == other[0][name].dtype and one[0][name].shape == other[0][name].shape, name
        np.testing.assert_allclose(one[0][name], other[0][name], rtol=1e-12, err_msg=name)  # exp and tanh have bounds


@pytest.fixture
def plain(shell):
    shell.run_cell(BEGIN).raise_error()
    shell.run_cell(CELL.replace("%%jit\n", "")).raise_error()
    return left(shell)


def test_statements_clusters_and_kernels_are_counted_up(shell):
    states = ran(shell, CELL)
    assert {state["kind"] for state in states} == {"compile"} and states[-1]["state"] == "done"
    titles = [state["title"] for state in states]
    for word in ("Recording In [", "Planning In [", "Compiling In ["):
        assert any(title.startswith(word) for title in titles), word
    assert all(done <= total for done, total in (state["progress"] for state in states[:-1]))
    assert any(" kernels" in title for title in titles)


def test_nothing_is_told_of_what_is_compiled_already(shell):
    ran(shell, CELL)
    ran(shell, CELL)
    again = ran(shell, CELL)
    assert not [state for state in again if "kernels" in state["title"]]


def test_one_kernel_that_compiles_long_is_told_again_with_its_seconds(shell, monkeypatch):
    session = session_of(shell)
    told, now = Told(session), [100.0]
    monkeypatch.setattr(waiting, "SAID_AFTER", 1.0)
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(waiting.threading.Thread, "start", lambda thread: None)  # this test ticks
    wait = waiting.Waiting(session, SimpleNamespace(title="In [3]", number=3, id="a"))
    wait.tell(waiting.TICK)
    now[0] += 0.2
    wait.told("kernels", 1, 1)
    for seconds in (0.7, 0.3, 1.0, 4.0):
        now[0] += seconds
        wait.tell(waiting.TICK)
    wait.ended()
    wait.tell(waiting.TICK)
    said = "Compiling In [3]: 1 of 1 kernel"
    assert [state["title"] for state in told.states] == [said, f"{said}, 2 s so far", f"{said}, 6 s so far", "Compile In [3]"]
    assert [state["state"] for state in told.states] == ["running"] * 3 + ["done"]


def test_what_ticks_ends_with_the_run(shell):
    ran(shell, CELL)
    ticking = [thread for thread in threading.enumerate() if thread.name == "jitlab-waiting"]
    for thread in ticking:
        thread.join(60)
    assert not any(thread.is_alive() for thread in ticking)


@pytest.mark.parametrize("cut", range(24))
def test_a_compiler_that_is_stopped_leaves_what_python_leaves_and_goes_on_in_the_next_run(shell, plain, cut, capsys):
    states = ran(shell, CELL, stop_at=cut)
    stopped = states[-1]["state"] == "cancelled"
    assert stopped or len(states) <= cut + 1, "every time of a whole run is one at which it is stopped"
    alike(left(shell), plain)
    session = session_of(shell)
    run = list(session.cells.values())[-1]
    if stopped:
        text = str(session.report_of(run))
        assert "you stopped the compiler in this run" in text
    for _ in range(2):
        ran(shell, CELL)
        alike(left(shell), plain)
    report = session.report_of(list(session.cells.values())[-1])
    assert report.data["verdict"]["compiled"] > 0 and "you stopped" not in str(report)


def test_a_job_that_is_not_of_the_cell_that_runs_is_none_to_cancel(shell):
    session = session_of(shell)
    assert answer(session, {"want": "cancel", "job": "compile-1"}) == {"cancelled": False}
    run = session.begin("1")
    wait = waiting.Waiting(session, run)
    session.waiting = wait
    assert answer(session, {"want": "cancel", "job": "compile-0"}) == {"cancelled": False}
    assert wait.stop() and not wait.stop()
    session.waiting = None
    session.end(run, None)
